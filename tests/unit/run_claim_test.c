/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories a run may write into, and what it finds of one that was killed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/run/claim.h"
#include "chaos/run/output.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static char home[64];

static const char *at(const char *name)
{
    static char path[200];
    snprintf(path, sizeof(path), "%s/%s", home, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(at(name), "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    snprintf(home, sizeof(home), "/tmp/tidemark-claim-XXXXXX");
    return mkdtemp(home) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(home, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool may(const char *name, const char *refusal)
{
    struct buf error = {0};
    bool good = claim_check(at(name), &error);
    buf_append_u8(&error, 0);
    assert_int_equal(good, error.len == 1);
    if (!good)
        assert_non_null(strstr((const char *)error.at, refusal));
    buf_deinit(&error);
    return good;
}

static void test_whose_it_is(void **state)
{
    (void)state;
    struct buf error = {0};
    assert_true(may("none", ""));
    assert_true(may("none/below", ""));
    assert_int_equal(mkdir(at("empty"), 0755), 0);
    assert_true(may("empty", ""));
    assert_int_equal(mkdir(at("foreign"), 0755), 0);
    put("foreign/result.json", "{\"version\": 1, \"run\": {\"tool\": \"jest\"}}");
    assert_false(may("foreign", "holds files that are not of a run"));
    put("foreign/result.json", "{\"version\": 1, \"run\": [");
    assert_false(may("foreign", "holds files that are not of a run"));
    put("foreign/result.json", "{\"version\": 1, \"run\": {\"tidemark\": \"0.1.0\"}}");
    assert_true(may("foreign", "")); /* of an older version, then */
    assert_int_equal(mkdir(at("killed"), 0755), 0);
    put("killed/log", "");
    assert_false(may("killed", "holds files"));
    assert_true(claim_mark(at("killed"), &error));
    assert_true(may("killed", ""));
    put("file", "");
    assert_false(may("file", "can't be read: Not a directory"));
    assert_false(claim_mark(at("none"), &error));
    buf_deinit(&error);
}

static void test_room(void **state)
{
    (void)state;
    struct buf error = {0};
    assert_true(claim_check_space(home, CLAIM_BYTES_MIN, &error));
    assert_true(claim_check_space(home, UINT64_MAX, &error));
    assert_false(claim_check_space(home, CLAIM_BYTES_MIN - 1, &error));
    assert_true(bytes_starts_with(buf_view(&error), bytes_literal("only 63 MiB are free under ")));
    assert_true(claim_space(home) > 0);
    assert_true(claim_space(at("none")) == UINT64_MAX);
    buf_deinit(&error);
}

static void test_another_program_s_lock(void **state)
{
    (void)state;
    struct output output;
    struct buf error = {0};
    put(".lock", "held by make\n");
    assert_false(output_open(&output, home, at("run"), &error));
    assert_true(bytes_starts_with(buf_view(&error), bytes_text(at(".lock is not of a run"))));
    output_close(&output, false);
    buf_deinit(&error);
    struct stat status;
    assert_int_equal(stat(at(".lock"), &status), 0);
    assert_int_equal(status.st_size, strlen("held by make\n"));
}

/* Forks a child that opens the output there, starts a process that is its own session's, and is
 * killed. Returns the process's number; it holds the pipe. */
static pid_t crash(const char *directory, int held)
{
    int numbers[2];
    pid_t left;
    assert_int_equal(pipe(numbers), 0);
    pid_t harness = fork();
    if (harness == 0) {
        struct output output;
        struct buf error = {0};
        check(output_open(&output, home, directory, &error));
        pid_t child = fork();
        if (child == 0) {
            char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"echo; exec sleep 1000"},
                                  NULL};
            setsid();
            dup2(held, STDOUT_FILENO);
            execv("/bin/sh", argv);
            _exit(1);
        }
        check(write(numbers[1], &child, sizeof(child)) == (ssize_t)sizeof(child));
        raise(SIGKILL);
    }
    assert_int_equal(read(numbers[0], &left, sizeof(left)), sizeof(left));
    assert_int_equal(waitpid(harness, NULL, 0), harness);
    close(numbers[0]);
    close(numbers[1]);
    return left;
}

static void test_after_a_crash(void **state)
{
    (void)state;
    int held[2];
    char byte, directory[100];
    struct output output;
    struct buf error = {0};
    snprintf(directory, sizeof(directory), "%s/run", home);
    assert_int_equal(pipe(held), 0);
    pid_t left = crash(directory, held[1]);
    close(held[1]);
    assert_int_equal(read(held[0], &byte, 1), 1);
    assert_int_equal(kill(left, 0), 0);
    assert_int_equal(access(at("run/data"), F_OK), 0);
    assert_true(output_open(&output, home, directory, &error));
    assert_int_equal(read(held[0], &byte, 1), 0); /* nobody holds it any more */
    close(held[0]);
    output_close(&output, false);
    assert_int_not_equal(access(at("run/data"), F_OK), 0);
    buf_deinit(&error);
}

static void test_marks_of_others(void **state)
{
    (void)state;
    assert_int_equal(leftovers_kill(""), 0);
    assert_int_equal(leftovers_kill("1"), 0);
    assert_int_equal(leftovers_kill("1.x"), 0);
    assert_int_equal(leftovers_kill("1.1\n"), 0);
    assert_int_equal(leftovers_kill("=1.1"), 0);
    assert_int_equal(leftovers_kill("0.0"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_whose_it_is),
        TEST(test_room),
        TEST(test_another_program_s_lock),
        TEST(test_after_a_crash),
        cmocka_unit_test(test_marks_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
