/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_REGISTER_H
#define CHECK_REGISTER_H

/* Linearizability of items as registers and numbers, by search (linear.h): for conditional writes
 * and sums whose values are not unique. Each item is judged alone. The search is exponential at
 * worst, so it has a budget. */

#include <stdbool.h>
#include <stddef.h>

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

struct register_options {
    uint64_t steps_max; /* of the search, for each item; about 10 million a second. 0: 50 million */
    size_t memory_max;  /* bytes, at any time; 0: 1 GiB */
    bool weak_reads;    /* judge reads that did not ask for consistency as well */
};

/* Judges PUT, PUT_IF, ADD, READ, DELETE; items with other kinds are left out. Figures: items,
 * operations, wrong_items, unknown_items, window_from_ns, window_to_ns. */
void check_register(const struct history *history, const struct register_options *options,
                    struct verdict *ret);

#endif
