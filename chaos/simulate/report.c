/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h. What the judge has no need of is filled in here. */

#include "chaos/simulate/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chaos/report/report.h"
#include "chaos/run/shipped.h"

/* It has been read once, so it can be; if it is gone by now, the page does without. */
static void add_text(struct outcome *outcome, const char *name)
{
    const struct shipped_scenario *shipped = shipped_find(name);
    struct buf text = {0};
    FILE *file = shipped == NULL ? fopen(name, "re") : NULL;
    if (shipped != NULL)
        buf_append(&text, shipped->text, shipped->len);
    if (file != NULL) {
        text.len = fread(buf_reserve(&text, SCENARIO_FILE_MAX), 1, SCENARIO_FILE_MAX, file);
        fclose(file);
    }
    outcome->scenario_text = bytes_copy_text(&outcome->arena, buf_view(&text));
    buf_deinit(&text);
}

bool simulate_report(struct outcome *outcome, const char *file, const char *again, const char *path)
{
    struct buf page = {0};
    outcome->scenario_file = file;
    outcome->simulated = again;
    add_text(outcome, file);
    report_html(outcome, &page);
    FILE *to = fopen(path, "we");
    bool good = to != NULL && fwrite(page.at, 1, page.len, to) == page.len;
    good = to != NULL && fclose(to) == 0 && good;
    if (!good)
        fprintf(stderr, "tidemark: %s can't be written: %s\n", path, strerror(errno));
    buf_deinit(&page);
    return good;
}
