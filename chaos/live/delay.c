/* SPDX-License-Identifier: Apache-2.0 */
/* Each distribution is drawn with mean 0 and deviation 1, and then stretched by jitter and moved by
 * the delay. */

#include "chaos/live/delay.h"

#include <math.h>

#include "conflict/base/check.h"

/* Of the Pareto distribution: its deviation is finite, its third moment is not. */
static const double SHAPE = 3;
/* Beyond it a draw is cut: a tail without end would stop a link for good. */
static const double FAR = 50;

/* In (0, 1], so that its logarithm is finite. */
static double draw_unit(struct rng *rng)
{
    return 1 - rng_unit(rng);
}

/* Box and Muller, 1958; one of the two. */
static double draw_normal(struct rng *rng)
{
    double radius = sqrt(-2 * log(draw_unit(rng)));
    return radius * cos(2 * M_PI * rng_unit(rng));
}

static double draw_pareto(struct rng *rng)
{
    double mean = SHAPE / (SHAPE - 1);
    double deviation = sqrt(SHAPE / (SHAPE - 2)) / (SHAPE - 1);
    return (pow(draw_unit(rng), -1 / SHAPE) - mean) / deviation;
}

static double draw(struct rng *rng, enum delay_distribution distribution)
{
    switch (distribution) {
    case DELAY_UNIFORM:
        break;
    case DELAY_NORMAL:
        return draw_normal(rng);
    case DELAY_PARETO:
        return draw_pareto(rng);
    case DELAY_PARETO_NORMAL: {
        double normal = draw_normal(rng);
        return 0.25 * normal + 0.75 * draw_pareto(rng);
    }
    }
    unreachable();
}

uint64_t delay_draw(struct rng *rng, enum delay_distribution distribution, uint64_t delay,
                    uint64_t jitter)
{
    if (jitter == 0)
        return delay;
    if (distribution == DELAY_UNIFORM) {
        uint64_t shifted = delay + rng_between(rng, 0, 2 * jitter);
        return shifted > jitter ? shifted - jitter : 0;
    }
    double off = fmin(draw(rng, distribution), FAR);
    double drawn = (double)delay + (double)jitter * off;
    return drawn > 0 ? (uint64_t)drawn : 0;
}
