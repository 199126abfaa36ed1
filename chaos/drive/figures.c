/* SPDX-License-Identifier: Apache-2.0 */
/* See figures.h. A time of less than 32 ns has a bucket of its own; above, a bucket is the position
 * of the highest bit and the four bits below it. */

#include "chaos/drive/figures.h"

static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 16)
        return (uint32_t)ns;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(ns);
    return (power - 3) * 16 + (uint32_t)(ns >> (power - 4) & 15);
}

/* The middle of the bucket. */
static uint64_t bucket_ns(uint32_t bucket)
{
    if (bucket < 32)
        return bucket;
    uint32_t shift = bucket / 16 - 1;
    return ((uint64_t)(16 + bucket % 16) << shift) + ((uint64_t)1 << shift) / 2;
}

void figures_add(struct figures *figures, const struct history_op *op)
{
    figures->ok += op->outcome == HISTORY_OK;
    figures->failed += op->outcome == HISTORY_FAILED;
    figures->info += op->outcome == HISTORY_INFO;
    if (!history_answered(op))
        return;
    figures->latency[bucket_of(op->return_ns - op->intended_ns)]++;
    figures->latency_count++;
}

uint64_t figures_quantile_ns(const struct figures *figures, uint32_t percent)
{
    uint64_t before = (uint64_t)figures->latency_count * percent / 100, sum = 0;
    for (uint32_t i = 0; i < FIGURES_BUCKETS; i++) {
        sum += figures->latency[i];
        if (sum > before)
            return bucket_ns(i);
    }
    return 0;
}
