/* SPDX-License-Identifier: Apache-2.0 */
/* See refused.h. */

#include "tests/lib/scenario/refused.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

bool read_text(const char *yaml, struct scenario *scenario, struct buf *error)
{
    buf_init(error);
    scenario_init(scenario);
    bool good = scenario_read(scenario, "x.yaml", bytes_text(yaml), error);
    if (good && error->len > 0)
        fail_msg("it was taken, and yet: %.*s", (int)error->len, (const char *)error->at);
    buf_append_u8(error, 0);
    return good;
}

void must_refuse(const char *yaml, const char *wanted)
{
    struct scenario scenario;
    struct buf error;
    if (read_text(yaml, &scenario, &error))
        fail_msg("taken: %s", yaml);
    if (strcmp((const char *)error.at, wanted) != 0) {
        fprintf(stderr, "of      %s\nwanted  %s\ngot     %s", yaml, wanted, (const char *)error.at);
        fail();
    }
    scenario_deinit(&scenario);
    buf_deinit(&error);
}

void must_refuse_with(const char *yaml, const char *part)
{
    struct scenario scenario;
    struct buf error;
    if (read_text(yaml, &scenario, &error))
        fail_msg("taken: %s", yaml);
    if (strstr((const char *)error.at, part) == NULL) {
        fprintf(stderr, "of      %s\nwanted  %s\ngot     %s", yaml, part, (const char *)error.at);
        fail();
    }
    scenario_deinit(&scenario);
    buf_deinit(&error);
}

void must_take(const char *yaml)
{
    struct scenario scenario;
    struct buf error;
    if (!read_text(yaml, &scenario, &error)) {
        fprintf(stderr, "of      %s\nrefused %s", yaml, (const char *)error.at);
        fail();
    }
    scenario_deinit(&scenario);
    buf_deinit(&error);
}
