/* SPDX-License-Identifier: Apache-2.0 */
/* A log line is one line, whatever is in the message. */

#include "region/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct fixture {
    int ends[2];
    struct log log;
    char text[8192];
};

static int setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    check(pipe(fixture->ends) == 0);
    fixture->log = (struct log){fixture->ends[1], TRACE_INFO, "eu-west-1"};
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    close(fixture->ends[0]);
    close(fixture->ends[1]);
    free(fixture);
    return 0;
}

static const char *logged(struct fixture *fixture)
{
    ssize_t len = read(fixture->ends[0], fixture->text, sizeof(fixture->text) - 1);
    check(len >= 0);
    fixture->text[len] = '\0';
    return fixture->text;
}

static void test_line(void **state)
{
    struct fixture *fixture = *state;
    log_line(&fixture->log, TRACE_DEBUG, "unseen");
    log_line(&fixture->log, TRACE_WARN, "port %d", 8001);
    const char *text = logged(fixture);
    /* Digits where the shape has a 0, the shape's own character elsewhere. */
    static const char shape[] = "time=0000-00-00T00:00:00.000Z level=warn";
    for (size_t i = 0; i < sizeof(shape) - 1; i++)
        assert_true(shape[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == shape[i]);
    assert_string_equal(text + sizeof(shape) - 1, " region=eu-west-1 msg=\"port 8001\"\n");
}

static void test_hostile_message(void **state)
{
    struct fixture *fixture = *state;
    log_line(&fixture->log, TRACE_INFO, "%s", "a\nb\"c\\d\x1b\x9b");
    assert_non_null(strstr(logged(fixture), "msg=\"a\\x0ab\\\"c\\\\d\\x1b\\x9b\"\n"));
    char longest[5000];
    memset(longest, '\n', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    log_line(&fixture->log, TRACE_INFO, "%s", longest);
    const char *text = logged(fixture);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_trace_and_levels(void **state)
{
    struct fixture *fixture = *state;
    struct trace trace = log_trace(&fixture->log);
    trace_emit(&trace, TRACE_DEBUG, "unseen");
    trace_emit(&trace, TRACE_ERROR, "seen");
    assert_non_null(strstr(logged(fixture), "level=error region=eu-west-1 msg=\"seen\"\n"));
    enum trace_level level;
    assert_true(log_level_find(bytes_literal("debug"), &level));
    assert_int_equal(level, TRACE_DEBUG);
    assert_false(log_level_find(bytes_literal("DEBUG"), &level));
    assert_string_equal(log_level_name(TRACE_WARN), "warn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_message, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trace_and_levels, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
