/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the reports of made-up runs, one directory each, for tests that look at them from outside:
 * report_pages_main DIRECTORY [NAME...] */

#include <stdio.h>
#include <string.h>

#include "chaos/report/report.h"
#include "tests/lib/report/outcomes.h"

static bool is_wanted(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: report_pages_main DIRECTORY [NAME...]\n");
        return 2;
    }
    for (enum outcomes_kind kind = 0; kind < OUTCOMES_COUNT; kind++) {
        struct sample_run run;
        struct buf error = {0};
        char path[4096];
        if (!is_wanted(outcomes_name(kind), argv + 2, argc - 2))
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], outcomes_name(kind));
        outcomes_make(kind, &run);
        bool good = report_write(&run.outcome, path, &error);
        printf("%s: %s\n", outcomes_name(kind), run.outcome.verdict);
        outcomes_free(&run);
        if (!good) {
            fprintf(stderr, "%.*s", (int)error.len, (const char *)error.at);
            buf_deinit(&error);
            return 1;
        }
    }
    return 0;
}
