/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting and hashing, once for all. */

#include "chaos/check/items.h"

#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct sortable {
    uint64_t item, invoke_ns;
    uint32_t op;
};

static uint64_t item_of(uint16_t table, uint32_t key)
{
    return (uint64_t)table << 32 | key;
}

static int sortable_order(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    if (x->invoke_ns != y->invoke_ns)
        return x->invoke_ns < y->invoke_ns ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

void items_init(struct items *items, const struct history *history)
{
    struct sortable *sortables = xcalloc(history->count, sizeof(*sortables));
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        sortables[i] = (struct sortable){item_of(op->table, op->key), op->invoke_ns, i};
    }
    qsort(sortables, history->count, sizeof(*sortables), sortable_order);
    uint32_t count = 0;
    for (uint32_t i = 0; i < history->count; i++)
        count += i == 0 || sortables[i].item != sortables[i - 1].item;
    items->order = xcalloc(history->count, sizeof(*items->order));
    items->at = xcalloc(count, sizeof(*items->at));
    items->count = 0;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[sortables[i].op];
        if (i == 0 || sortables[i].item != sortables[i - 1].item)
            items->at[items->count++] =
                (struct item_range){.from = i, .key = op->key, .table = op->table};
        struct item_range *item = &items->at[items->count - 1];
        item->to = i + 1;
        if (op->outcome != HISTORY_FAILED)
            item->kinds = (uint16_t)(item->kinds | 1u << op->kind);
        items->order[i] = sortables[i].op;
    }
    free(sortables);
}

void items_deinit(struct items *items)
{
    free(items->order);
    free(items->at);
    *items = (struct items){0};
}

const struct item_range *items_find(const struct items *items, uint16_t table, uint32_t key)
{
    uint32_t low = 0, high = items->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct item_range *at = &items->at[middle];
        if (item_of(at->table, at->key) < item_of(table, key))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < items->count && items->at[low].table == table && items->at[low].key == key;
    return found ? &items->at[low] : NULL;
}

/* ---- Writers ---- */

static uint64_t place_of(const struct writers *writers, uint16_t table, uint64_t value)
{
    uint64_t x = value ^ (uint64_t)table * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return (x ^ x >> 32) & writers->mask;
}

static bool names_itself(const struct history_op *op)
{
    return op->written != 0 && op->kind != HISTORY_ADD;
}

static uint64_t writers_place(const struct writers *writers, uint16_t table, uint64_t value)
{
    uint64_t place = place_of(writers, table, value);
    for (; writers->slots[place] != ITEMS_NONE; place = (place + 1) & writers->mask) {
        const struct history_op *op = &writers->history->ops[writers->slots[place]];
        if (op->table == table && op->written == value)
            break;
    }
    return place;
}

void writers_init(struct writers *writers, const struct history *history)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)history->count)
        size *= 2;
    *writers = (struct writers){.history = history, .mask = size - 1};
    writers->slots = xmalloc(size * sizeof(*writers->slots));
    memset(writers->slots, 0xff, size * sizeof(*writers->slots));
    writers->repeated = xcalloc(history->count, sizeof(bool));
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        if (!names_itself(op))
            continue;
        uint64_t place = writers_place(writers, op->table, op->written);
        if (writers->slots[place] == ITEMS_NONE)
            writers->slots[place] = i;
        else
            writers->repeated[i] = writers->repeated[writers->slots[place]] = true;
    }
}

void writers_deinit(struct writers *writers)
{
    free(writers->slots);
    free(writers->repeated);
    *writers = (struct writers){0};
}

uint32_t writers_find(const struct writers *writers, uint16_t table, uint64_t value)
{
    return writers->slots[writers_place(writers, table, value)];
}

/* ---- Quantiles ---- */

static int number_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void numbers_sort(uint64_t *values, size_t count)
{
    if (count)
        qsort(values, count, sizeof(*values), number_order);
}

uint64_t numbers_quantile(const uint64_t *values, size_t count, uint32_t millionths)
{
    check(millionths <= 1000000);
    if (count == 0)
        return 0;
    size_t rank = (count * (size_t)millionths + 999999) / 1000000;
    return values[rank ? rank - 1 : 0];
}
