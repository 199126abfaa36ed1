/* SPDX-License-Identifier: Apache-2.0 */
/* READ effects that have no answer yet, in slots. An id is a slot and how often it was used, so the
 * answer to a read that nobody remembers finds nothing. A read keeps its table from being freed. */

#include "region/core/region_internal.h"
#include "region/core/strong.h"

struct read *read_new(struct region *region, enum read_kind kind, void *owner,
                      struct table_state *table, uint64_t *ret_id)
{
    if (region->read_free == UINT32_MAX) {
        uint32_t cap = region->read_cap ? region->read_cap * 2 : 64;
        region->reads = xrealloc(region->reads, sizeof(*region->reads) * cap);
        for (uint32_t i = cap; i-- > region->read_cap;) {
            region->reads[i] = (struct read){.next_free = region->read_free};
            region->read_free = i;
        }
        region->read_cap = cap;
    }
    uint32_t slot = region->read_free;
    struct read *read = &region->reads[slot];
    check(read->kind == READ_FREE);
    region->read_free = read->next_free;
    uint32_t generation = read->generation + 1;
    *read = (struct read){.kind = kind, .generation = generation, .owner = owner, .table = table};
    if (table)
        table->users++;
    *ret_id = (uint64_t)generation << 32 | slot;
    return read;
}

void read_emit_key(struct region *region, uint64_t id, struct bytes key)
{
    struct region_effect *effect = effect_add(region, REGION_READ);
    effect->id = id;
    effect->read.begin = out_copy(region, key);
}

void read_emit_range(struct region *region, uint64_t id, struct bytes begin, struct bytes end,
                     bool reverse, uint32_t rows_max, uint64_t bytes_max)
{
    check(rows_max > 0);
    check(bytes_max > 0);
    struct region_effect *effect = effect_add(region, REGION_READ);
    effect->id = id;
    effect->read = (struct store_read){
        .range = true,
        .reverse = reverse,
        .begin = out_copy(region, begin),
        .end = out_copy(region, end),
        .rows_max = rows_max,
        .bytes_max = bytes_max,
    };
}

static void dispatch(struct region *region, const struct read *read, const struct region_input *in)
{
    switch (read->kind) {
    case READ_FREE:
        unreachable();
    case READ_START:
        start_rows(region, in);
        return;
    case READ_LANE:
        lane_rows(region, read->owner, in);
        return;
    case READ_KEY:
        read_key_rows(region, read->owner, read->index, in);
        return;
    case READ_PAGE:
        read_page_rows(region, read->owner, in);
        return;
    case READ_LOG:
        replicate_log_rows(region, *read, in);
        return;
    case READ_SNAPSHOT:
        replicate_snapshot_rows(region, *read, in);
        return;
    case READ_PURGE:
        purge_rows(region, read->owner, in);
        return;
    case READ_TRIM:
        replicate_trim_rows(region, read->owner, in);
        return;
    case READ_ERASE:
        table_erase_rows(region, read->owner, in);
        return;
    case READ_LEDGER:
        ledger_trim_rows(region, in);
        return;
    case READ_STRONG:
        strong_rows(region, *read, in);
        return;
    }
    unreachable();
}

void read_done(struct region *region, const struct region_input *in)
{
    uint32_t slot = (uint32_t)in->id;
    if (slot >= region->read_cap)
        return;
    struct read *at = &region->reads[slot];
    if (at->kind == READ_FREE || at->generation != (uint32_t)(in->id >> 32))
        return;
    struct read read = *at;
    at->kind = READ_FREE;
    at->next_free = region->read_free;
    region->read_free = slot;
    if (in->outcome != STORE_OK)
        trace_emit(&region->config.trace, TRACE_ERROR, "read failed table=%s outcome=%d",
                   read.table ? read.table->d.table.name : "-", (int)in->outcome);
    dispatch(region, &read, in);
    if (read.table)
        table_release(region, read.table);
}
