/* SPDX-License-Identifier: Apache-2.0 */
/* A group is opened when its table's setup is complete, and closed when the table is dissolved or
 * dropped. Reads and batches that are under way then may still point to it: the last of them frees
 * it. */

#include "region/core/strong_internal.h"

/* ---- Opening and closing ---- */

uint8_t strong_member_of(const struct strong_setup *setup, uint16_t region)
{
    for (uint8_t i = 0; i < STRONG_MEMBERS; i++) {
        if (setup->regions[i] == region)
            return i;
    }
    return CONSENSUS_NOBODY;
}

bool strong_formed(const struct strong_setup *setup)
{
    if (setup->epoch == 0 || setup->ended)
        return false;
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (setup->incarnations[i] == 0)
            return false;
    }
    return true;
}

void strong_use(struct strong *strong)
{
    strong->uses++;
}

static void free_inputs(struct strong *strong)
{
    for (struct list *link; (link = list_take(&strong->inputs));)
        free(container_of(link, struct strong_input, link));
}

static void free_group(struct strong *strong)
{
    check(strong->state == STRONG_CLOSED);
    list_remove(&strong->dirty);
    free_inputs(strong);
    strong_persists_free(strong);
    strong_found_deinit(&strong->found);
    consensus_free(strong->core);
    for (int i = 0; i < STRONG_OUTGOING; i++)
        buf_deinit(&strong->outgoing[i].after);
    buf_deinit(&strong->incoming.piece);
    buf_deinit(&strong->incoming.after);
    buf_deinit(&strong->incoming.at);
    buf_deinit(&strong->incoming.upto);
    free(strong);
}

void strong_release(struct strong *strong)
{
    check(strong->uses > 0);
    if (--strong->uses == 0 && strong->state == STRONG_CLOSED)
        free_group(strong);
}

static void open_group(struct region *region, struct partition *partition)
{
    struct strong *strong = xcalloc(1, sizeof(*strong));
    const struct strong_setup *setup = &partition->table->d.strong;
    *strong = (struct strong){
        .partition = partition,
        .table = partition->table,
        .self = strong_member_of(setup, region->config.region),
        .heap_at = UINT32_MAX,
        .deadline = UINT64_MAX,
        .retry_ns = UINT64_MAX,
        .uses = 1, /* the partition's */
    };
    check(strong->self < STRONG_MEMBERS);
    strong->witness = strong->self == setup->witness;
    struct list *lists[] = {&strong->dirty,      &strong->inputs,     &strong->persists,
                            &strong->applies,    &strong->calls_new,  &strong->calls_open,
                            &strong->calls_read, &strong->evaluations};
    for (size_t i = 0; i < array_len(lists); i++)
        list_init(lists[i]);
    relay_init(&strong->relay, strong->self, region->config.strong.relay_silence_ms * NS_PER_MS,
               region->mono_ns);
    partition->strong = strong;
    struct strong_region *all = region->strong;
    if (all->all_count == all->all_cap) {
        all->all_cap = all->all_cap ? all->all_cap * 2 : 16;
        all->all = xrealloc(all->all, all->all_cap * sizeof(struct strong *));
    }
    all->all[all->all_count++] = strong;
    strong_load(region, strong);
}

static void close_group(struct region *region, struct strong *strong)
{
    struct strong_region *all = region->strong;
    for (uint32_t i = 0; i < all->all_count; i++) {
        if (all->all[i] == strong)
            all->all[i--] = all->all[--all->all_count];
    }
    strong->partition->strong = NULL;
    strong->state = STRONG_CLOSED;
    list_remove(&strong->dirty);
    strong_timer_remove(all, strong);
    strong_calls_fail(region, strong);
    strong_evaluations_drop(region, strong);
    strong_applies_drop(region, strong);
    list_append(&all->closing, &strong->dirty);
    strong_release(strong);
}

void strong_close(struct region *region, struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        if (table->partitions[i].strong)
            close_group(region, table->partitions[i].strong);
    }
    table->strong_ready = false;
    if (table->strong_listed)
        HASH_DELETE(by_group, region->strong->tables, table);
    table->strong_listed = false;
}

void strong_settle(struct region *region, struct table_state *table)
{
    const struct strong_setup *setup = &table->d.strong;
    if (!region->ready || table->hidden || table->d.dropped)
        return;
    if (!strong_formed(setup) ||
        strong_member_of(setup, region->config.region) == CONSENSUS_NOBODY) {
        strong_close(region, table);
        return;
    }
    if (!table->strong_listed)
        HASH_ADD_KEYPTR(by_group, region->strong->tables, table->d.table.group_id, TABLE_ID_LEN,
                        table);
    table->strong_listed = true;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        if (!partition->strong)
            open_group(region, partition);
    }
}

bool strong_ready(const struct table_state *table)
{
    if (!strong_formed(&table->d.strong))
        return false;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        const struct strong *strong = table->partitions[i].strong;
        if (!strong || strong->state != STRONG_RUNNING)
            return false;
        struct consensus_status status = consensus_status(strong->core);
        if (status.leader == CONSENSUS_NOBODY || status.leader == table->d.strong.witness ||
            status.standing != CONSENSUS_FULL || status.commit == 0 ||
            (!strong->witness && status.applied == 0))
            return false;
    }
    return true;
}

void strong_start_all(struct region *region)
{
    for (uint32_t i = 0; i < region->table_count; i++)
        strong_settle(region, region->tables[i]);
}

/* ---- Life ---- */

void strong_new(struct region *region)
{
    region->strong = xcalloc(1, sizeof(*region->strong));
    list_init(&region->strong->dirty);
    list_init(&region->strong->closing);
    arena_init(&region->strong->arena);
}

void strong_free(struct region *region)
{
    struct strong_region *all = region->strong;
    while (all->all_count > 0) {
        struct strong *strong = all->all[0];
        strong->uses = 1; /* whoever else points here goes with the region */
        close_group(region, strong);
    }
    list_each(link, spare, &all->closing)
    {
        free_group(container_of(link, struct strong, dirty));
    }
    check(!all->calls);
    HASH_CLEAR(by_group, all->tables);
    for (uint32_t i = 0; i < VV_MAX; i++)
        buf_deinit(&all->outbox[i]);
    arena_deinit(&all->arena);
    buf_deinit(&all->scratch);
    buf_deinit(&all->payload);
    free(all->heap);
    free(all->all);
    free(all);
    region->strong = NULL;
}
