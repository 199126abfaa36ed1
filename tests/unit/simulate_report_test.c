/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a played scenario: of the run that the command on it repeats, and of nothing that
 * lies beside it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chaos/live/command.h"
#include "chaos/run/outcome.h"
#include "chaos/simulate/batch.h"

/* `expect` decides how it ends. */
static const char form[] =
    "name: played\n"
    "seed: 5\n"
    "cluster: {mode: eventual, regions: [us-east-1, eu-west-1], links: {default: {rtt: 20ms}}}\n"
    "workload: {kind: swap-register, keys: 4, rate: 40/s, timeout: 2s}\n"
    "phases:\n"
    "  - {name: only, for: 2s, until: {converged: true, timeout: 60s}}\n"
    "expect: {%s}\n";

/* Plays it, and reads the page, if there is one. */
static int play(const char *expect, const char *path, struct buf *page)
{
    struct scenario scenario;
    char text[1000];
    struct buf error = {0};
    snprintf(text, sizeof(text), form, expect);
    scenario_init(&scenario);
    if (!scenario_read(&scenario, "played.yaml", bytes_text(text), &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    const struct subject subject = {.scenario = &scenario,
                                    .scenario_file = "no-such-file.yaml",
                                    .lanes = {"us-east-1", "eu-west-1"}};
    const struct batch_options options = {.first = 5,
                                          .seeds = 1,
                                          .faults = UINT64_MAX,
                                          .operations_max = UINT64_MAX,
                                          .whole = true,
                                          .quiet = true,
                                          .report = path};
    json_t *found = json_array();
    int exit_code = batch_run(&subject, &options, found);
    json_decref(found);
    scenario_deinit(&scenario);
    FILE *file = fopen(path, "re");
    buf_reset(page);
    if (file != NULL) {
        page->len = fread(buf_reserve(page, 1 << 22), 1, (1 << 22) - 1, file);
        fclose(file);
    }
    buf_append_u8(page, 0);
    return exit_code;
}

static bool has(const struct buf *page, const char *part)
{
    return strstr((const char *)page->at, part) != NULL;
}

static void a_page_of_a_good_and_of_a_bad_run(void **state)
{
    (void)state;
    char path[] = "/tmp/tidemark-page-XXXXXX";
    struct buf page = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(play("lost_other: 0", path, &page), EXIT_DONE);
    assert_true(has(&page, "✓ Pass"));
    assert_true(has(&page, "Tidemark, simulated run"));
    assert_true(has(&page, "in virtual time"));
    assert_true(
        has(&page, "<code>tidemark sim --scenario no-such-file.yaml --first 5 --seeds 1</code>"));
    assert_false(has(&page, "recheck"));
    assert_int_equal(play("throughput: \">=100000\"", path, &page), OUTCOME_SLOW);
    assert_true(has(&page, "Too slow"));
    assert_true(has(&page, "--first 5 --seeds 1 --operations ")); /* as it was made smaller */
    unlink(path);
    buf_deinit(&page);
}

static void a_page_that_cannot_be_written_is_told(void **state)
{
    (void)state;
    struct buf page = {0};
    assert_int_equal(play("lost_other: 0", "/tmp", &page), EXIT_USAGE);
    buf_deinit(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_a_good_and_of_a_bad_run),
        cmocka_unit_test(a_page_that_cannot_be_written_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
