/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_COUNTER_H
#define CHECK_COUNTER_H

/* Counters: every ADD adds 1 and is told the sum. In strong mode no two are told the same sum, a
 * sum grows in real time over ADDs and strong reads, and lies between what must have been added
 * by then and what may have been. In eventual mode ADDs that cross are lost by last-writer-wins, so
 * only sums that nobody can have made are wrong, and the rest is counted. */

#include <stdbool.h>

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

struct counter_options {
    bool eventual;
};

/* Items that see nothing but ADD 1 and READ. Figures: items, acked, info, duplicates, final_min and
 * final_max (of the sums over all items that last looks allow), lost (acked that the last look
 * misses). */
void check_counter(const struct history *history, const struct counter_options *options,
                   struct verdict *ret);

#endif
