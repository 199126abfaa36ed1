/* SPDX-License-Identifier: Apache-2.0 */
/* A line through the moment at which it was last set. */

#include "region/clock.h"

#include "conflict/base/check.h"

/* Drift stops here, so that a rate that is left alone for years cannot leave the range of versions.
 */
static int64_t clamp_offset(int64_t offset_ms)
{
    if (offset_ms > CLOCK_OFFSET_MS_MAX)
        return CLOCK_OFFSET_MS_MAX;
    return offset_ms < -CLOCK_OFFSET_MS_MAX ? -CLOCK_OFFSET_MS_MAX : offset_ms;
}

int64_t clock_ahead_ms(const struct clock *clock, uint64_t mono_ns)
{
    uint64_t elapsed_ms = mono_ns > clock->since_ns ? (mono_ns - clock->since_ns) / 1000000 : 0;
    int64_t drift_ms = (int64_t)((double)elapsed_ms * (double)clock->rate_ppm / 1e6);
    return clamp_offset(clock->offset_ms + drift_ms);
}

uint64_t clock_wall_ms(const struct clock *clock, uint64_t mono_ns, uint64_t wall_ms)
{
    int64_t ahead_ms = clock_ahead_ms(clock, mono_ns);
    if (ahead_ms < 0 && (uint64_t)-ahead_ms > wall_ms)
        return 0;
    return wall_ms + (uint64_t)ahead_ms;
}

void clock_set(struct clock *clock, uint64_t mono_ns, int64_t offset_ms, int64_t rate_ppm)
{
    check(offset_ms <= CLOCK_OFFSET_MS_MAX && offset_ms >= -CLOCK_OFFSET_MS_MAX);
    check(rate_ppm <= CLOCK_RATE_PPM_MAX && rate_ppm >= -CLOCK_RATE_PPM_MAX);
    *clock = (struct clock){offset_ms, rate_ppm, mono_ns};
}
