/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_DELAY_H
#define LIVE_DELAY_H

/* How long one piece of data is delayed: about `delay`, off by jitter, in whole units that are the
 * caller's. Uniform stays within plus and minus jitter; of the others jitter is the standard
 * deviation, and they are netem's: a normal one, a Pareto with its long tail, and a quarter of the
 * former with three quarters of the latter. Never negative. Pure. */

#include <stdint.h>

#include "conflict/base/rng.h"

enum delay_distribution { DELAY_UNIFORM, DELAY_NORMAL, DELAY_PARETO, DELAY_PARETO_NORMAL };

uint64_t delay_draw(struct rng *rng, enum delay_distribution distribution, uint64_t delay,
                    uint64_t jitter);

#endif
