/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program as the load: what it finds in its environment, where its output goes, and that
 * it ends when the run does, with all that it has started. That processes are gone is seen on a
 * pipe that they hold open. */

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "chaos/drive/drive_internal.h"
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
                                        .output_max = 1000,
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

/* ---- What it prints ---- */

static void run_to_end(struct regions *regions, const char *command, int expected)
{
    int code = -1;
    open_exec(regions, command);
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    while (!drive_exited(regions->drive, &code))
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
    assert_int_equal(code, expected);
}

static void test_output_is_bounded(void **state)
{
    enum { COUNT = 30000, LINE = 10, FIRST = 1000 };
    static char text[COUNT * LINE];
    char number[16], left_out[100];
    struct stat status;
    run_to_end(*state, "'seq -f %09.0f 30000'", 0);
    assert_int_equal(stat(output, &status), 0);
    snprintf(left_out, sizeof(left_out), "\n[tidemark: %d bytes are left out here]\n",
             COUNT * LINE - FIRST - KEEPER_TAIL_BYTES);
    assert_int_equal(status.st_size, FIRST + KEEPER_TAIL_BYTES + (off_t)strlen(left_out));
    FILE *file = fopen(output, "r");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    unlink(output);
    assert_int_equal(len, status.st_size);
    for (int i = 0; i < FIRST / LINE; i++) {
        snprintf(number, sizeof(number), "%09d\n", i + 1);
        assert_memory_equal(text + i * LINE, number, LINE);
    }
    assert_memory_equal(text + FIRST, left_out, strlen(left_out));
    for (int i = 1; i <= KEEPER_TAIL_BYTES / LINE; i++) {
        snprintf(number, sizeof(number), "%09d\n", COUNT - i + 1);
        assert_memory_equal(text + len - (size_t)(i * LINE), number, LINE);
    }
}

static void test_tail_without_gap(void **state)
{
    char expected[2048];
    for (int i = 0; i < 200; i++)
        snprintf(expected + i * 10, 32, "%09d\n", i + 1);
    run_to_end(*state, "'seq -f %09.0f 200'", 0);
    char text[2100] = "";
    FILE *file = fopen(output, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof(text) - 1, file), 2000);
    fclose(file);
    unlink(output);
    assert_string_equal(text, expected);
}

static void test_closes_its_output(void **state)
{
    run_to_end(*state, "'echo said; exec >&- 2>&-; sleep 0.05; exit 5'", 5);
    expect_output("said\n");
}

/* ---- Ends ---- */

struct witness { /* a pipe with a name, held open by what the program has started */
    char directory[40], path[48];
    int fd;
};

/* The program of a test: a daemon, deaf to every signal that one can be deaf to, in a session of
 * its own, left by its parent; and the program itself, just as deaf. */
static void open_deaf(struct regions *regions, struct witness *witness)
{
    char command[400], byte;
    snprintf(witness->directory, sizeof(witness->directory), "/tmp/tidemark-held-XXXXXX");
    assert_non_null(mkdtemp(witness->directory));
    snprintf(witness->path, sizeof(witness->path), "%s/pipe", witness->directory);
    assert_int_equal(mkfifo(witness->path, 0600), 0);
    snprintf(
        command, sizeof(command),
        "'trap \"\" TERM HUP INT; exec 3>%s; (setsid sh -c \"(sleep 1000 & echo up >&3; wait)\" "
        "&) ; while :; do sleep 1000; done'",
        witness->path);
    witness->fd = open(witness->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(witness->fd >= 0);
    fcntl(witness->fd, F_SETFL, 0);
    open_exec(regions, command);
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    struct pollfd up = {.fd = witness->fd, .events = POLLIN};
    assert_int_equal(poll(&up, 1, -1), 1);
    for (int i = 0; i < 3; i++) /* "up\n" */
        assert_int_equal(read(witness->fd, &byte, 1), 1);
}

/* The end of the pipe comes when nobody holds it any more. */
static void expect_gone(struct witness *witness)
{
    char byte;
    assert_int_equal(read(witness->fd, &byte, 1), 0);
    close(witness->fd);
    unlink(witness->path);
    rmdir(witness->directory);
    unlink(output);
}

static void test_deaf_program(void **state)
{
    struct regions *regions = *state;
    struct witness witness;
    int code = -1;
    open_deaf(regions, &witness);
    drive_stop(regions->drive, regions_on_done, regions);
    for (int i = 0; i < 10; i++)
        uv_run(&regions->loop.uv, UV_RUN_NOWAIT);
    assert_false(drive_exited(regions->drive, &code));
    uv_timer_set_repeat(&regions->drive->kill_timer, 1); /* as if its time were over */
    uv_timer_again(&regions->drive->kill_timer);
    regions_await(regions);
    assert_true(drive_exited(regions->drive, &code));
    assert_int_equal(code, 128 + SIGKILL);
    expect_gone(&witness);
}

static void test_children_of_one_that_ends(void **state)
{
    struct witness witness;
    char command[200];
    snprintf(witness.directory, sizeof(witness.directory), "/tmp/tidemark-held-XXXXXX");
    assert_non_null(mkdtemp(witness.directory));
    snprintf(witness.path, sizeof(witness.path), "%s/pipe", witness.directory);
    assert_int_equal(mkfifo(witness.path, 0600), 0);
    witness.fd = open(witness.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    snprintf(command, sizeof(command), "'exec 3>%s; setsid sleep 1000 & exit 0'", witness.path);
    run_to_end(*state, command, 0);
    fcntl(witness.fd, F_SETFL, 0);
    expect_gone(&witness);
}

static void test_harness_is_killed(void **state)
{
    struct regions *regions = *state;
    struct witness witness;
    open_deaf(regions, &witness);
    pid_t keeper = regions->drive->keeper.pid;
    /* The end of the orders is all that the keeper sees of our death. */
    close(regions->drive->keeper.orders);
    expect_gone(&witness);
    int status;
    assert_int_equal(waitpid(keeper, &status, 0), keeper);
    assert_true(WIFEXITED(status));
    regions->drive->process_runs = false;
}

static void test_keeper_is_killed(void **state)
{
    struct regions *regions = *state;
    int code = -1;
    open_exec(regions, "[/bin/sleep, '1000']");
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    kill(regions->drive->keeper.pid, SIGKILL);
    while (!drive_exited(regions->drive, &code))
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
    assert_int_equal(code, 128 + SIGKILL);
    unlink(output);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, regions_setup_bare, regions_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_exec),
        TEST(test_exec_is_ended),
        TEST(test_exec_goes_with_the_drive),
        TEST(test_exec_is_not_there),
        TEST(test_output_is_bounded),
        TEST(test_tail_without_gap),
        TEST(test_closes_its_output),
        TEST(test_deaf_program),
        TEST(test_children_of_one_that_ends),
        TEST(test_harness_is_killed),
        TEST(test_keeper_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
