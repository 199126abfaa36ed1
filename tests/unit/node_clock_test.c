/* SPDX-License-Identifier: Apache-2.0 */
/* The movable wall clock. */

#include "region/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)

static void test_unmoved(void **state)
{
    (void)state;
    struct clock clock = {0};
    clock_set(&clock, 5 * SECOND_NS, 0, 0);
    assert_int_equal(clock_wall_ms(&clock, 6 * SECOND_NS, 1234), 1234);
}

static void test_offset(void **state)
{
    (void)state;
    struct clock clock;
    clock_set(&clock, 0, 3600000, 0);
    assert_int_equal(clock_wall_ms(&clock, SECOND_NS, 1000), 3601000);
    clock_set(&clock, 0, -400, 0);
    assert_int_equal(clock_wall_ms(&clock, SECOND_NS, 1000), 600);
    assert_int_equal(clock_wall_ms(&clock, SECOND_NS, 399), 0);
}

static void test_rate(void **state)
{
    (void)state;
    struct clock clock;
    clock_set(&clock, 10 * SECOND_NS, 5, 1000);
    assert_int_equal(clock_ahead_ms(&clock, 10 * SECOND_NS), 5);
    assert_int_equal(clock_ahead_ms(&clock, 110 * SECOND_NS), 105);
    assert_int_equal(clock_ahead_ms(&clock, 9 * SECOND_NS),
                     5); /* a reading from before it was set */
    clock_set(&clock, 0, 0, -1000000);
    assert_int_equal(clock_wall_ms(&clock, 7 * SECOND_NS, 50000 + 7000),
                     50000); /* it stands still */
}

static void test_stays_in_range(void **state)
{
    (void)state;
    struct clock clock;
    clock_set(&clock, 0, CLOCK_OFFSET_MS_MAX, CLOCK_RATE_PPM_MAX);
    assert_int_equal(clock_ahead_ms(&clock, UINT64_MAX), CLOCK_OFFSET_MS_MAX);
    clock_set(&clock, 0, -CLOCK_OFFSET_MS_MAX, -CLOCK_RATE_PPM_MAX);
    assert_int_equal(clock_ahead_ms(&clock, UINT64_MAX), -CLOCK_OFFSET_MS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unmoved),
        cmocka_unit_test(test_offset),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_stays_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
