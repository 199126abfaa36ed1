/* SPDX-License-Identifier: Apache-2.0 */
/* Moves that the table allows happen and are traced; one that it does not allow ends the process.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conflict/base/check.h"
#include "conflict/base/lifecycle.h"

enum door { OPEN, SHUT, LOCKED };

static const struct lifecycle_state door_states[] = {
    [OPEN] = {"open", lifecycle_bit(SHUT)},
    [SHUT] = {"shut", lifecycle_bit(OPEN) | lifecycle_bit(LOCKED)},
    [LOCKED] = {"locked", lifecycle_bit(SHUT)},
};
static const struct lifecycle_table door = {"door", door_states, array_len(door_states)};

static void note(void *context, enum trace_level level, const char *line)
{
    char *lines = context;
    (void)level;
    snprintf(lines + strlen(lines), 256 - strlen(lines), "%s\n", line);
}

static void test_moves(void **state)
{
    (void)state;
    char lines[256] = "";
    struct trace trace = {.line = note, .context = lines};
    struct lifecycle life;
    lifecycle_init(&life, &door, &trace);
    assert_string_equal(lifecycle_name(&life), "open");
    lifecycle_move(&life, SHUT);
    lifecycle_move(&life, LOCKED);
    assert_true(lifecycle_may(&life, SHUT));
    assert_false(lifecycle_may(&life, OPEN));
    assert_false(lifecycle_may(&life, 31));
    assert_int_equal(life.state, LOCKED);
    assert_string_equal(lines, "door open -> shut\ndoor shut -> locked\n");
}

static void test_a_forbidden_move_aborts(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct lifecycle life;
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        lifecycle_init(&life, &door, NULL);
        lifecycle_move(&life, LOCKED);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_a_forbidden_move_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
