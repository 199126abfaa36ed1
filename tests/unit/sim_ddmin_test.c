/* SPDX-License-Identifier: Apache-2.0 */
/* What is needed to fail is found, whatever it is; what chance hides is not lost; and the number of
 * questions has its bound. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/sim/ddmin.h"
#include "conflict/base/rng.h"

struct puzzle {
    uint64_t needed[2]; /* either of these sets is enough; 0: that one never is */
    uint64_t last;      /* the last subset that failed */
    uint32_t asked;
};

static bool fails(void *context, uint64_t subset)
{
    struct puzzle *puzzle = context;
    puzzle->asked++;
    for (int i = 0; i < 2; i++) {
        if (puzzle->needed[i] && (subset & puzzle->needed[i]) == puzzle->needed[i]) {
            puzzle->last = subset;
            return true;
        }
    }
    return false;
}

static bool always(void *context, uint64_t subset)
{
    (void)subset;
    ++*(uint32_t *)context;
    return true;
}

static uint64_t draw_set(struct rng *rng, uint32_t bits)
{
    uint64_t set = 0;
    while ((uint32_t)__builtin_popcountll(set) < bits)
        set |= UINT64_C(1) << rng_below(rng, 64);
    return set;
}

/* A subset of what is needed never fails, so the answer must be exactly that. */
static void finds_exactly_what_is_needed(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 7);
    for (int round = 0; round < 3000; round++) {
        struct puzzle puzzle = {.needed = {draw_set(&rng, 1 + (uint32_t)rng_below(&rng, 5))}};
        uint64_t set = puzzle.needed[0] | draw_set(&rng, (uint32_t)rng_below(&rng, 40));
        assert_int_equal(ddmin(set, 10000, fails, &puzzle), puzzle.needed[0]);
    }
}

static void of_two_ways_finds_one(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 8);
    for (int round = 0; round < 3000; round++) {
        struct puzzle puzzle = {.needed = {draw_set(&rng, 3), draw_set(&rng, 2)}};
        uint64_t set = puzzle.needed[0] | puzzle.needed[1] | draw_set(&rng, 20);
        uint64_t found = ddmin(set, 10000, fails, &puzzle);
        assert_int_equal(found, puzzle.last);
        assert_true(found == puzzle.needed[0] || found == puzzle.needed[1]);
    }
}

static void nothing_may_be_needed(void **state)
{
    (void)state;
    uint32_t asked = 0;
    assert_int_equal(ddmin(UINT64_MAX, 100, always, &asked), 0);
    assert_int_equal(asked, 1);
    assert_int_equal(ddmin(0, 100, always, &asked), 0);
}

static void all_may_be_needed(void **state)
{
    (void)state;
    struct puzzle puzzle = {.needed = {UINT64_MAX}};
    assert_int_equal(ddmin(UINT64_MAX, 10000, fails, &puzzle), UINT64_MAX);
}

/* Out of questions, it has what it has, which fails. */
static void stops_in_time(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 9);
    for (uint32_t tries = 1; tries < 60; tries++) {
        struct puzzle puzzle = {.needed = {draw_set(&rng, 6)}};
        uint64_t set = puzzle.needed[0] | draw_set(&rng, 30);
        uint64_t found = ddmin(set, tries, fails, &puzzle);
        assert_true(puzzle.asked <= tries);
        assert_int_equal(found & puzzle.needed[0], puzzle.needed[0]);
        assert_int_equal(found & ~set, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_exactly_what_is_needed),
        cmocka_unit_test(of_two_ways_finds_one),
        cmocka_unit_test(nothing_may_be_needed),
        cmocka_unit_test(all_may_be_needed),
        cmocka_unit_test(stops_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
