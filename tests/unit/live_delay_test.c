/* SPDX-License-Identifier: Apache-2.0 */
/* Delays: mean, deviation and tail of what is drawn, and that no draw is negative. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/live/delay.h"

enum { DRAWS = 200000 };

struct sums {
    double mean, deviation, beyond; /* share beyond three deviations above the mean */
    uint64_t least, most;
};

static struct sums draw_many(enum delay_distribution distribution, uint64_t delay, uint64_t jitter)
{
    struct rng rng;
    struct sums sums = {.least = UINT64_MAX};
    double square = 0;
    rng_init(&rng, 42);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t drawn = delay_draw(&rng, distribution, delay, jitter);
        double off = (double)drawn - (double)delay;
        sums.mean += (double)drawn / DRAWS;
        square += off * off / DRAWS;
        sums.beyond += off > 3 * (double)jitter ? 1.0 / DRAWS : 0;
        sums.least = drawn < sums.least ? drawn : sums.least;
        sums.most = drawn > sums.most ? drawn : sums.most;
    }
    double off = sums.mean - (double)delay;
    sums.deviation = sqrt(square - off * off);
    return sums;
}

static void assert_near(double a, double b, double share)
{
    if (fabs(a - b) > share * b)
        fail_msg("%g is not about %g", a, b);
}

static void uniform_stays_within_jitter(void **state)
{
    (void)state;
    struct sums sums = draw_many(DELAY_UNIFORM, 1000, 100);
    assert_int_equal(sums.least, 900);
    assert_int_equal(sums.most, 1100);
    assert_near(sums.mean, 1000, 0.002);
    assert_near(sums.deviation, 100 / sqrt(3), 0.02);
}

/* 0.135 % of a normal distribution lie beyond three deviations; of a long tail, more. */
static void jitter_is_the_deviation(void **state)
{
    (void)state;
    struct sums normal = draw_many(DELAY_NORMAL, 100000, 1000);
    assert_near(normal.mean, 100000, 0.001);
    assert_near(normal.deviation, 1000, 0.01);
    assert_near(normal.beyond, 0.00135, 0.2);
    struct sums pareto = draw_many(DELAY_PARETO, 100000, 1000);
    assert_near(pareto.mean, 100000, 0.001);
    assert_near(pareto.deviation, 1000, 0.15);
    assert_near(pareto.beyond, pow(1.5 + 3 * sqrt(0.75), -3), 0.1);
    struct sums both = draw_many(DELAY_PARETO_NORMAL, 100000, 1000);
    assert_near(both.mean, 100000, 0.001);
    assert_near(both.deviation, 1000 * sqrt(0.25 * 0.25 + 0.75 * 0.75), 0.15);
    assert_true(both.beyond > 2 * normal.beyond && both.beyond < pareto.beyond);
}

static void nothing_is_negative_or_without_end(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct sums sums = draw_many((enum delay_distribution)i, 10, 1000);
        assert_int_equal(sums.least, 0);
        assert_true(sums.most <= 10 + 50 * 1000);
        struct rng rng;
        rng_init(&rng, 1);
        assert_int_equal(delay_draw(&rng, (enum delay_distribution)i, 77, 0), 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_stays_within_jitter),
        cmocka_unit_test(jitter_is_the_deviation),
        cmocka_unit_test(nothing_is_negative_or_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
