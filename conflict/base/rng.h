/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

/* A seeded generator (xoshiro256**, Blackman and Vigna 2018), so that every run with one seed
 * draws the same. There is no default instance: whoever draws, owns one. Not for secrets. */

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state[4];
};

void rng_init(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* Uniform in [0, limit); limit > 0. */
uint64_t rng_below(struct rng *rng, uint64_t limit);
/* Uniform in [low, high]. */
uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high);
/* True once in `of` draws. */
bool rng_one_in(struct rng *rng, uint64_t of);
/* Uniform in [0, 1). */
double rng_unit(struct rng *rng);

#endif
