/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_STALENESS_H
#define CHECK_STALENESS_H

/* How old is what was read. A read misses the writes of its item that were acknowledged before it
 * began and that it does not reflect: a value reflects what it was written over, and so on back
 * (lineage.h). Writes that lost to another are not waited for. A read's
 *
 *  - staleness is the time from the acknowledgement of the newest write it misses to its beginning,
 *    0 if it misses none;
 *  - k is the number of writes it misses;
 *  - age is the time from the acknowledgement of the oldest: how long what it read was out of date.
 *
 * The last is what "after t ms, a write is seen with probability p" is about. */

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

enum { STALENESS_POINTS = 64 };

struct staleness_row {
    uint8_t region;
    bool strong; /* reads that asked for consistency */
    uint32_t reads, stale;
    uint64_t p50_ns, p99_ns, max_ns; /* staleness, over all reads, as are these: */
    uint64_t age_p50_ns, age_p99_ns, age_max_ns;
    uint32_t p50_k, p99_k, max_k;
    uint32_t worst; /* the operation of age_max_ns */
    /* P(a read sees all writes that were acknowledged t before): t of each point, and the share of
     * reads in millionths. Rising in both; the first is t = 0, the last has all. */
    uint64_t point_ns[STALENESS_POINTS];
    uint32_t point_millionths[STALENESS_POINTS];
    uint32_t point_count;
};

struct staleness_table { /* by region, weak reads first */
    struct staleness_row *rows;
    uint32_t count;
};
void staleness_table_deinit(struct staleness_table *table);

struct staleness_options {
    /* Strong mode: a stale strong read is WRONG. None is where all operations have a right order,
     * whatever was never answered. */
    bool strong_fresh;
};

/* Figures: reads, stale, max_ns, age_max_ns, max_k, unjudged (reads of what nobody can place).
 * Never UNKNOWN. ret_table may be NULL. */
void check_staleness(const struct history *history, const struct staleness_options *options,
                     struct staleness_table *ret_table, struct verdict *ret);

#endif
