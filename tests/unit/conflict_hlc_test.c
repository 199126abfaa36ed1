/* SPDX-License-Identifier: Apache-2.0 */
/* The hybrid clock: its laws by hand at the edges, and at random against what they say. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "conflict/hlc.h"

static void follows_the_wall(void **state)
{
    (void)state;
    struct hlc hlc;
    hlc_init(&hlc, HLC_HYBRID, 500, 0);
    assert_int_equal(hlc_tick(&hlc, 1000, 0), hlc_make(1000, 0));
    assert_int_equal(hlc_tick(&hlc, 1000, 0), hlc_make(1000, 1));
    assert_int_equal(hlc_tick(&hlc, 1001, 0), hlc_make(1001, 0));
}

static void wall_steps_back(void **state)
{
    (void)state;
    struct hlc hlc;
    hlc_init(&hlc, HLC_WALL, 500, 0);
    assert_int_equal(hlc_tick(&hlc, 5000, 0), hlc_make(5000, 0));
    assert_int_equal(hlc_tick(&hlc, 100, 0), hlc_make(5000, 1));
    assert_int_equal(hlc_tick(&hlc, 5001, 0), hlc_make(5001, 0));
}

static void counter_carries_into_milliseconds(void **state)
{
    (void)state;
    struct hlc hlc;
    hlc_init(&hlc, HLC_HYBRID, 500, hlc_make(7, UINT16_MAX));
    assert_int_equal(hlc_tick(&hlc, 3, 0), hlc_make(8, 0));
    assert_int_equal(hlc_ms(hlc.last), 8);
}

static void beats_what_it_overwrites(void **state)
{
    (void)state;
    struct hlc hlc;
    hlc_init(&hlc, HLC_HYBRID, 500, 0);
    assert_int_equal(hlc_tick(&hlc, 1000, hlc_make(1200, 9)), hlc_make(1200, 10));
    assert_int_equal(hlc_tick(&hlc, 1000, 0), hlc_make(1200, 11));
    /* Far in the future: that item's times only. */
    assert_int_equal(hlc_tick(&hlc, 1000, hlc_make(900000, 9)), hlc_make(900000, 10));
    assert_int_equal(hlc_tick(&hlc, 1000, 0), hlc_make(1200, 13));
    assert_int_equal(hlc_tick(&hlc, 1000, UINT64_MAX), UINT64_MAX);
    /* The plain wall clock is deaf to it. */
    hlc_init(&hlc, HLC_WALL, 500, 0);
    assert_int_equal(hlc_tick(&hlc, 1000, hlc_make(1200, 9)), hlc_make(1000, 0));
}

static void observes_within_the_limit(void **state)
{
    (void)state;
    struct hlc hlc;
    hlc_init(&hlc, HLC_HYBRID, 500, 0);
    hlc_observe(&hlc, 1000, hlc_make(1400, 7));
    assert_int_equal(hlc_tick(&hlc, 1000, 0), hlc_make(1400, 8));
    assert_int_equal(hlc.ahead_count, 0);
    hlc_observe(&hlc, 1000, hlc_make(99999, 0));
    assert_int_equal(hlc.ahead_count, 1);
    assert_int_equal(hlc_tick(&hlc, 1000, 0), hlc_make(1501, 0));
    hlc_init(&hlc, HLC_WALL, 500, 0);
    hlc_observe(&hlc, 1000, hlc_make(99999, 0));
    assert_int_equal(hlc.ahead_count, 1);
    assert_int_equal(hlc_tick(&hlc, 1000, 0), hlc_make(1000, 0));
}

static void restart_starts_above_the_reservation(void **state)
{
    (void)state;
    struct hlc hlc;
    uint64_t reserved = 0, again = 0;
    hlc_init(&hlc, HLC_HYBRID, 500, 0);
    uint64_t time = hlc_tick(&hlc, 1000, 0);
    assert_true(hlc_reservation_due(&hlc, 1000, time, &reserved));
    assert_int_equal(reserved, hlc_make(1000 + HLC_RESERVATION_MS, 0));
    uint64_t inside = 1000 + HLC_RESERVATION_MS - 1, outside = 1000 + HLC_RESERVATION_MS + 1;
    assert_false(hlc_reservation_due(&hlc, inside, hlc_tick(&hlc, inside, 0), &again));
    assert_true(hlc_reservation_due(&hlc, outside, hlc_tick(&hlc, outside, 0), &again));
    /* The batch failed: it is due again. */
    hlc_reservation_lost(&hlc);
    assert_true(hlc_reservation_due(&hlc, outside, hlc_tick(&hlc, outside, 0), &again));
    hlc_init(&hlc, HLC_HYBRID, 500, reserved);
    assert_true(hlc_tick(&hlc, 10, 0) > reserved);
    /* A far-future item must not take the clock along over a restart. */
    hlc_init(&hlc, HLC_HYBRID, 500, 0);
    time = hlc_tick(&hlc, 1000, hlc_make(90000000, 0));
    assert_true(hlc_reservation_due(&hlc, 1000, time, &reserved));
    assert_true(hlc_ms(reserved) <= 1000 + 500 + HLC_RESERVATION_MS);
}

/* A Region that dies again and again within a moment must not run ahead by a reservation each time:
 * its writes would beat those that others made seconds later. */
static void crashes_do_not_add_up(void **state)
{
    (void)state;
    enum { CRASHES = 50, WALL_MS = 1000 };
    uint64_t reserved = 0;
    for (int i = 0; i < CRASHES; i++) {
        struct hlc hlc;
        hlc_init(&hlc, HLC_HYBRID, 500, reserved);
        uint64_t time = hlc_tick(&hlc, WALL_MS, 0);
        assert_true(time > reserved);
        assert_true(hlc_reservation_due(&hlc, WALL_MS, time, &reserved));
        assert_true(hlc_ms(reserved) <= WALL_MS + HLC_RESERVATION_MS + (uint64_t)i);
    }
}

static void end_of_time_is_no_overflow(void **state)
{
    (void)state;
    struct hlc hlc;
    uint64_t reserved;
    hlc_init(&hlc, HLC_HYBRID, UINT64_MAX, 0);
    hlc_observe(&hlc, UINT64_MAX, UINT64_MAX);
    uint64_t before = hlc.last;
    uint64_t time = hlc_tick(&hlc, UINT64_MAX, 0);
    assert_true(time > before);
    hlc_reservation_due(&hlc, UINT64_MAX, time, &reserved);
    assert_true(reserved >= time);
}

/* Whatever the wall does, and however often the process dies: times strictly rise, a promise is
 * never broken, and what is persisted in time is never passed by what a crash could lose. */
static void laws_at_random(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        struct hlc hlc;
        enum hlc_mode mode = rng_one_in(&rng, 2) ? HLC_WALL : HLC_HYBRID;
        hlc_init(&hlc, mode, 500, 0);
        uint64_t issued = 0, promised = 0, durable = 0, flying = 0;
        for (int i = 0; i < 500; i++) {
            uint64_t wall = rng_between(&rng, 1000, 6000);
            switch (rng_below(&rng, 6)) {
            case 0:
                hlc_observe(&hlc, wall, hlc_make(rng_below(&rng, 9000), 3));
                break;
            case 1:
                promised = hlc_now(&hlc, wall);
                assert_true(promised <= durable);
                break;
            case 2: /* the batch lands */
                if (flying) {
                    hlc_reservation_kept(&hlc, flying);
                    durable = flying;
                }
                break;
            case 3: /* a crash: what flew is lost, and with it the times that only it bore */
                if (!rng_one_in(&rng, 10))
                    break;
                hlc_init(&hlc, mode, 500, durable);
                issued = durable;
                flying = 0;
                break;
            default: {
                uint64_t time = hlc_tick(&hlc, wall, 0);
                assert_true(time > issued);
                assert_true(time > promised);
                issued = time;
                hlc_reservation_due(&hlc, wall, time, &flying);
                assert_true(time <= hlc.reserved);
            }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_wall),
        cmocka_unit_test(wall_steps_back),
        cmocka_unit_test(counter_carries_into_milliseconds),
        cmocka_unit_test(beats_what_it_overwrites),
        cmocka_unit_test(observes_within_the_limit),
        cmocka_unit_test(restart_starts_above_the_reservation),
        cmocka_unit_test(crashes_do_not_add_up),
        cmocka_unit_test(end_of_time_is_no_overflow),
        cmocka_unit_test(laws_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
