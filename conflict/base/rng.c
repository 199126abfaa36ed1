/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256**, seeded through splitmix64 as its authors advise, so that near seeds give unlike
 * streams. */

#include "conflict/base/rng.h"

#include "conflict/base/check.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

void rng_init(struct rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rng->state[i] = splitmix(&seed);
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *rng, uint64_t limit)
{
    check(limit > 0);
    /* Draws from the last, incomplete round would favour small numbers: draw again. */
    uint64_t threshold = (0 - limit) % limit;
    for (;;) {
        uint64_t value = rng_next(rng);
        if (value >= threshold)
            return value % limit;
    }
}

uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high)
{
    check(low <= high);
    if (high - low == UINT64_MAX)
        return rng_next(rng);
    return low + rng_below(rng, high - low + 1);
}

bool rng_one_in(struct rng *rng, uint64_t of)
{
    return rng_below(rng, of) == 0;
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}
