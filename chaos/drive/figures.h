/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_FIGURES_H
#define DRIVE_FIGURES_H

/* How the load fares just now, for live lines: counts, and latencies in buckets of a sixteenth of a
 * power of two. The history has it all exactly; this has a bound. Pure. */

#include "chaos/check/history.h"

enum { FIGURES_BUCKETS = 64 * 16 };

struct figures { /* zero is empty */
    uint32_t ok, failed, info;
    uint32_t latency_count; /* of what was answered */
    uint32_t latency[FIGURES_BUCKETS];
};

void figures_add(struct figures *figures, const struct history_op *op);
/* Within 4 percent; 0 if nothing was answered. */
uint64_t figures_quantile_ns(const struct figures *figures, uint32_t percent);

#endif
