/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_CLOCK_H
#define REGION_CLOCK_H

/* This Region's wall clock: the machine's, moved by an offset and made to run fast or slow by a
 * rate, so that users can see what clock skew between Regions does. Timers use the monotonic clock
 * and are not moved. */

#include <stdint.h>

struct clock {
    int64_t offset_ms; /* as of since_ns */
    int64_t rate_ppm;  /* gained per million milliseconds of monotonic time since then */
    uint64_t since_ns;
};

/* A hundred years, so that times stay within a version's 48 bits; and from standing still to twice
 * as fast. */
#define CLOCK_OFFSET_MS_MAX 3155760000000
#define CLOCK_RATE_PPM_MAX 1000000

/* How far the Region's clock is ahead of the machine's now; negative: behind. */
int64_t clock_ahead_ms(const struct clock *clock, uint64_t mono_ns);
/* The Region's time, given the machine's. Never negative. */
uint64_t clock_wall_ms(const struct clock *clock, uint64_t mono_ns, uint64_t wall_ms);
/* From now on: this far ahead, drifting at this rate. */
void clock_set(struct clock *clock, uint64_t mono_ns, int64_t offset_ms, int64_t rate_ppm);

#endif
