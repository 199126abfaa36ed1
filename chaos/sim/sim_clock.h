/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SIM_CLOCK_H
#define SIM_SIM_CLOCK_H

/* One region's wall clock in virtual time: an offset, a rate and steps. The monotonic clock is
 * virtual time itself, unskewed: the cores promise nothing about a monotonic clock that lies. */

#include <stdint.h>

/* 2026-01-01, so that times look like times in a trace. */
#define SIM_CLOCK_EPOCH_MS UINT64_C(1767225600000)

struct sim_clock {
    int64_t offset_ms;
    int64_t rate_ppm; /* fast when positive */
};

static inline uint64_t sim_clock_wall_ms(const struct sim_clock *clock, uint64_t now_ns)
{
    int64_t passed_ms = (int64_t)(now_ns / 1000000);
    return SIM_CLOCK_EPOCH_MS +
           (uint64_t)(passed_ms + clock->offset_ms + passed_ms * clock->rate_ppm / 1000000);
}

#endif
