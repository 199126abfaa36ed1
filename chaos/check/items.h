/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_ITEMS_H
#define CHECK_ITEMS_H

/* What all checkers begin with: a history cut into items, who wrote a value, and quantiles. */

#include <stdbool.h>

#include "chaos/check/history.h"

#define ITEMS_NONE UINT32_MAX

struct item_range { /* of items.order */
    uint32_t from, to;
    uint32_t key;
    uint16_t table;
    uint16_t kinds; /* bits: 1 << kind of each operation on it, but for FAILED ones */
};

struct items {
    uint32_t *order; /* all operations by table, key, invoke_ns, index */
    struct item_range *at;
    uint32_t count;
};

void items_init(struct items *items, const struct history *history);
void items_deinit(struct items *items);
/* NULL if no operation names it. */
const struct item_range *items_find(const struct items *items, uint16_t table, uint32_t key);

/* From (table, value) to the write of it: PUT, PUT_IF, APPEND, INSERT of any outcome. A value that
 * several write is a workload's mistake; the first is found, and all are marked. */
struct writers {
    const struct history *history;
    uint32_t *slots; /* open addressing; ITEMS_NONE is a free place */
    uint64_t mask;
    bool *repeated; /* by operation: another one writes this value */
};

void writers_init(struct writers *writers, const struct history *history);
void writers_deinit(struct writers *writers);
/* ITEMS_NONE if there is none. */
uint32_t writers_find(const struct writers *writers, uint16_t table, uint64_t value);

/* Sorts. */
void numbers_sort(uint64_t *values, size_t count);
/* Of sorted values, by nearest rank; 0 if there are none. quantile in millionths. */
uint64_t numbers_quantile(const uint64_t *values, size_t count, uint32_t millionths);

#endif
