/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_APPEND_H
#define CHECK_APPEND_H

/* Lists that are only appended to (APPEND, READ): each read shows the whole order so far, so any
 * two reads must agree, one being a prefix of the other. That order is then put against real time,
 * which is exact, as in chain.h. In eventual mode lists may differ and lose elements to
 * last-writer-wins; only what nobody appended, or twice, is wrong, and the rest is counted. */

#include <stdbool.h>

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

struct append_options {
    bool eventual;
    bool weak_reads; /* strong mode: judge reads that did not ask for consistency as well */
};

/* Figures: items, appended, lost (acked that the last look misses), forked (reads that are no
 * prefix of the item's longest), duplicated, phantoms. */
void check_append(const struct history *history, const struct append_options *options,
                  struct verdict *ret);

#endif
