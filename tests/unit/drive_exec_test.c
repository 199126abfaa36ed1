/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program as the load: what it finds in its environment, where its output goes, and that
 * it ends when the run does. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "conflict/base/check.h"
#include "tests/lib/drive/regions.h"

static char output[64];

static void open_exec(struct regions *regions, const char *command)
{
    char workload[512];
    struct buf error;
    buf_init(&error);
    snprintf(output, sizeof(output), "/tmp/tidemark-exec-XXXXXX");
    int fd = mkstemp(output);
    check(fd >= 0);
    close(fd);
    snprintf(workload, sizeof(workload), "{kind: exec, exec: %s}", command);
    char text[1024];
    snprintf(text, sizeof(text),
             "name: test\ncluster: {mode: eventual, regions: [us-east-1, eu-west-1, "
             "ap-northeast-1]}\nworkload: %s\nphases:\n  - {name: all, for: 1s}\n",
             workload);
    if (!scenario_read(&regions->scenario, "test", bytes_text(text), &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    buf_deinit(&error);
    const struct drive_config config = {.loop = &regions->loop,
                                        .scenario = &regions->scenario,
                                        .addresses = regions->addresses,
                                        .door = "127.0.0.1:8000",
                                        .control = "127.0.0.1:8474",
                                        .output = output,
                                        .history = &regions->history,
                                        .seed = 77};
    regions->drive = drive_new(&config);
    drive_prepare(regions->drive, 1000000000u, regions_on_done, regions);
    regions_await(regions);
}

static void expect_output(const char *expected)
{
    char text[512] = "";
    FILE *file = fopen(output, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    unlink(output);
    assert_string_equal(text, expected);
}

static void test_exec(void **state)
{
    struct regions *regions = *state;
    int code = -1;
    open_exec(regions, "'echo $AWS_ENDPOINT_URL $AWS_ENDPOINT_URL_DYNAMODB $AWS_REGION "
                       "$TIDEMARK_CONTROL $TIDEMARK_REGIONS $TIDEMARK_SEED; echo oh >&2; exit 3'");
    assert_false(drive_exited(regions->drive, &code));
    drive_phase(regions->drive, &(struct scenario_phase){.idle = true});
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    while (!drive_exited(regions->drive, &code))
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
    assert_int_equal(code, 3);
    drive_phase(regions->drive, &regions->scenario.phases[0]); /* once is enough */
    drive_stop(regions->drive, regions_on_done, regions);
    regions_await(regions);
    expect_output("http://127.0.0.1:8000 http://127.0.0.1:8000 us-east-1 http://127.0.0.1:8474 "
                  "us-east-1,eu-west-1,ap-northeast-1 77\noh\n");
}

static void test_exec_is_ended(void **state)
{
    struct regions *regions = *state;
    int code = -1;
    open_exec(regions, "[/bin/sleep, '1000']");
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    assert_false(drive_exited(regions->drive, &code));
    drive_stop(regions->drive, regions_on_done, regions);
    regions_await(regions);
    assert_true(drive_exited(regions->drive, &code));
    assert_int_equal(code, 128 + 15);
    expect_output("");
}

static void test_exec_goes_with_the_drive(void **state)
{
    struct regions *regions = *state;
    open_exec(regions, "[/bin/sleep, '1000']");
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    drive_free(regions->drive); /* waits for the program's end, or this would leave a zombie */
    regions->drive = NULL;
    unlink(output);
}

static void test_exec_is_not_there(void **state)
{
    struct regions *regions = *state;
    int code = -1;
    open_exec(regions, "[/nonexistent/program]");
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    assert_true(drive_exited(regions->drive, &code));
    assert_int_equal(code, 127);
    expect_output("/nonexistent/program can't be started: No such file or directory\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, regions_setup_bare, regions_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_exec),
        TEST(test_exec_is_ended),
        TEST(test_exec_goes_with_the_drive),
        TEST(test_exec_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
