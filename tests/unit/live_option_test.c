/* SPDX-License-Identifier: Apache-2.0 */
/* How options are read and refused, and what the signals do that want an end. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/live/option.h"
#include "chaos/live/signals.h"
#include "chaos/live/tell.h"
#include "conflict/base/check.h"

/* ---- Options ---- */

static void test_numbers(void **state)
{
    uint64_t value = 7;
    (void)state;
    static const char *const wrong[] = {"",
                                        " 1",
                                        "1 ",
                                        "+1",
                                        "-1",
                                        "0x1",
                                        "1e3",
                                        "1.0",
                                        "0",
                                        "101",
                                        "1,2",
                                        "one",
                                        "18446744073709551617",
                                        "99999999999999999999999999"};
    for (size_t i = 0; i < array_len(wrong); i++)
        assert_false(option_number(wrong[i], 1, 100, &value));
    assert_int_equal(value, 7);
    assert_true(option_number("1", 1, 100, &value));
    assert_true(option_number("0100", 1, 100, &value));
    assert_int_equal(value, 100);
    assert_true(option_number("18446744073709551615", 0, UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    assert_false(option_number("18446744073709551616", 0, UINT64_MAX, &value));
}

struct asked {
    const char *name;
    bool loud;
    uint64_t count;
};

static const struct argp_option options[] = {{"name", 'n', "NAME", 0, "A name", 1},
                                             {"loud", 'l', NULL, 0, "Loudly", 1},
                                             {"count", 'c', "N", 0, "So often", 1},
                                             {0}};
static const struct option_slot slots[] = {
    {'n', OPTION_TEXT, offsetof(struct asked, name), 0, 0, NULL},
    {'l', OPTION_TRUTH, offsetof(struct asked, loud), 0, 0, NULL},
    {'c', OPTION_NUMBER, offsetof(struct asked, count), 2, 9, NULL},
};
static const struct option_command command = {"tidemark try",   options, slots,
                                              array_len(slots), "WORD",  "Tries."};

static void parse(char *const *words, int count, struct asked *asked, struct option_words *rest)
{
    char *argv[16] = {(char[]){"try"}};
    memcpy(argv + 1, words, (size_t)count * sizeof(*argv));
    option_parse(&command, count + 1, argv, asked, rest);
}

static void test_slots(void **state)
{
    struct asked asked = {.count = 5};
    struct option_words words;
    (void)state;
    char *const given[] = {(char[]){"one"}, (char[]){"--name"}, (char[]){"x"},
                           (char[]){"two"}, (char[]){"-l"},     (char[]){"-c9"}};
    parse(given, array_len(given), &asked, &words);
    assert_string_equal(asked.name, "x");
    assert_true(asked.loud);
    assert_int_equal(asked.count, 9);
    assert_int_equal(words.count, 2);
    assert_string_equal(words.at[1], "two");
}

/* Runs in a child, whose standard output and error are these; gives its status. */
static int in_child(void (*run)(void), int output, char *ret_errors, size_t size)
{
    int errors[2], status;
    assert_int_equal(pipe(errors), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(output, STDOUT_FILENO);
        dup2(errors[1], STDERR_FILENO);
        close(errors[0]);
        run();
        exit(0);
    }
    close(errors[1]);
    size_t len = 0;
    for (ssize_t got = 1; got > 0 && len<size - 1; len += got> 0 ? (size_t)got : 0)
        got = read(errors[0], ret_errors + len, size - 1 - len);
    ret_errors[len] = 0;
    close(errors[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void give_ten(void)
{
    struct asked asked;
    struct option_words words;
    char *const given[] = {(char[]){"--count"}, (char[]){"10"}};
    parse(given, array_len(given), &asked, &words);
}

static void test_refusal(void **state)
{
    char errors[1000];
    (void)state;
    int status = in_child(give_ten, STDOUT_FILENO, errors, sizeof(errors));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    assert_memory_equal(errors,
                        "tidemark try: --count: expected a whole number from 2 to 9, came "
                        "'10'\n",
                        68);
}

/* ---- Output ---- */

static void say_much(void)
{
    tell_begin();
    signal(SIGPIPE, SIG_IGN); /* as every command that has a cluster */
    for (int i = 0; i < 100000; i++)
        puts("line");
}

static void say_little(void)
{
    tell_begin();
    signal(SIGPIPE, SIG_IGN);
    puts("line");
}

static void say_nothing(void)
{
    tell_begin();
}

static void test_output_that_is_lost(void **state)
{
    char errors[1000];
    int full = open("/dev/full", O_WRONLY), pipes[2];
    (void)state;
    assert_int_equal(WEXITSTATUS(in_child(say_little, full, errors, sizeof(errors))), 2);
    assert_string_equal(errors, "tidemark: standard output could not be written: No space left on "
                                "device\n");
    assert_int_equal(WEXITSTATUS(in_child(say_much, full, errors, sizeof(errors))), 2);
    assert_non_null(strstr(errors, "tidemark: standard output could not be written"));
    assert_int_equal(in_child(say_nothing, full, errors, sizeof(errors)), 0);
    close(full);
    assert_int_equal(pipe(pipes), 0);
    close(pipes[0]); /* whoever read has gone */
    assert_int_equal(in_child(say_little, pipes[1], errors, sizeof(errors)), 0);
    assert_string_equal(errors, "");
    assert_int_equal(in_child(say_much, pipes[1], errors, sizeof(errors)), 0);
    assert_string_equal(errors, "");
    close(pipes[1]);
}

static void say_into_the_void(void)
{
    close(STDOUT_FILENO);
    tell_begin();
    int file = open("/dev/null", O_WRONLY); /* must not be taken for standard output */
    check(file > STDERR_FILENO);
    puts("line");
}

static void test_output_that_is_closed(void **state)
{
    char errors[1000];
    (void)state;
    int status = in_child(say_into_the_void, STDOUT_FILENO, errors, sizeof(errors));
    assert_int_equal(WEXITSTATUS(status), 2);
    assert_string_equal(errors,
                        "tidemark: standard output could not be written: Bad file descriptor\n");
}

/* ---- Signals ---- */

static void on_signal(void *context, int number)
{
    *(int *)context = number;
}

static void hear(struct loop *loop, int number)
{
    int came = 0;
    struct signals signals;
    signals_init(&signals, loop, on_signal, &came);
    raise(number);
    while (came == 0)
        uv_run(&loop->uv, UV_RUN_ONCE);
    check(came == number);
    signals_close(&signals);
    uv_run(&loop->uv, UV_RUN_NOWAIT); /* lets go of them */
}

static void hear_all(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct loop loop;
    loop_init(&loop);
    for (size_t i = 0; i < array_len(numbers); i++) {
        hear(&loop, numbers[i]);
        signals_hold();
        signals_release();
        check(!signals_came());
    }
    loop_deinit(&loop);
}

static void ignore_some(void)
{
    int came = 0;
    struct loop loop;
    struct signals signals;
    signal(SIGHUP, SIG_IGN); /* as nohup does */
    signal(SIGINT, SIG_IGN); /* as a shell does, of what it starts in the background */
    loop_init(&loop);
    signals_init(&signals, &loop, on_signal, &came);
    raise(SIGHUP);
    raise(SIGINT);
    raise(SIGTTOU); /* would stop us */
    raise(SIGTERM);
    while (came == 0)
        uv_run(&loop.uv, UV_RUN_ONCE);
    check(came == SIGTERM);
    signals_close(&signals);
    loop_deinit(&loop);
    signals_hold();
    raise(SIGHUP);
    signals_release();
    check(!signals_came());
    raise(SIGHUP);
}

static void hold_one(void)
{
    struct loop loop;
    struct signals signals;
    loop_init(&loop);
    signals_init(&signals, &loop, on_signal, NULL);
    signals_close(&signals);
    loop_deinit(&loop);
    raise(SIGHUP); /* waits */
    signals_hold();
    signals_release();
    check(signals_came());
}

static void hold_two(void)
{
    struct loop loop;
    struct signals signals;
    loop_init(&loop);
    signals_init(&signals, &loop, on_signal, NULL);
    signals_close(&signals);
    loop_deinit(&loop);
    signals_hold();
    raise(SIGTERM);
    raise(SIGHUP);
    check(false);
}

static void test_signals(void **state)
{
    char errors[1000];
    (void)state;
    int heard = in_child(hear_all, STDOUT_FILENO, errors, sizeof(errors));
    if (heard != 0)
        fail_msg("%s", errors);
    assert_int_equal(in_child(ignore_some, STDOUT_FILENO, errors, sizeof(errors)), 0);
    assert_int_equal(in_child(hold_one, STDOUT_FILENO, errors, sizeof(errors)), 0);
    assert_string_equal(errors, "tidemark: writing the report; again to leave it unwritten\n");
    int status = in_child(hold_two, STDOUT_FILENO, errors, sizeof(errors));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGHUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_output_that_is_lost),
        cmocka_unit_test(test_output_that_is_closed),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
