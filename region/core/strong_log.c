/* SPDX-License-Identifier: Apache-2.0 */
/* A group's PERSIST effects as rows of the store. Each is kept until it is durable, so that a full
 * disk, which voids batches, only makes it late: the same rows are written again, in order. */

#include "region/core/strong_internal.h"

static void put_hard(struct region *region, struct strong *strong,
                     const struct consensus_hard *hard, struct buf *rows)
{
    uint32_t number = strong->table->d.table.number, epoch = strong->table->d.strong.epoch;
    /* The first write of a life leaves nothing of an unreadable slot. */
    uint64_t slots = strong->persisted == 0 && list_empty(&strong->persists) ? 2 : 1;
    for (uint64_t i = 0; i < slots; i++) {
        uint64_t generation = ++strong->generation;
        struct buf *value = &region->strong->scratch;
        buf_reset(value);
        strong_hard_encode(hard, generation, value);
        store_batch_put(rows,
                        keyspace_strong_hard(&region->key_scratch, number, strong->partition->index,
                                             epoch, (uint8_t)(generation & 1)),
                        buf_view(value));
    }
}

static void delete_entries(struct region *region, struct strong *strong, uint64_t from,
                           uint64_t upto, struct buf *rows)
{
    for (uint64_t index = from; index <= upto && index >= from; index++)
        store_batch_delete(rows,
                           keyspace_strong_log(&region->key_scratch, strong->table->d.table.number,
                                               strong->partition->index,
                                               strong->table->d.strong.epoch, index));
}

static void put_base(struct region *region, struct strong *strong,
                     const struct consensus_write *write, struct buf *rows)
{
    struct buf *value = &region->strong->scratch;
    buf_reset(value);
    strong_base_encode(write->base_index, write->base_term, value);
    store_batch_put(rows,
                    keyspace_strong_base(&region->key_scratch, strong->table->d.table.number,
                                         strong->partition->index, strong->table->d.strong.epoch),
                    buf_view(value));
    uint64_t upto = write->base_index < strong->log_high ? write->base_index : strong->log_high;
    delete_entries(region, strong, strong->log_low, upto, rows);
    if (write->base_index >= strong->log_low)
        strong->log_low = write->base_index + 1;
    if (strong->log_high < write->base_index)
        strong->log_high = write->base_index;
}

static void emit(struct region *region, struct strong *strong, struct strong_persist *persist)
{
    struct batch *batch = batch_begin(region, strong->partition, OWNER_STRONG, strong);
    batch->strong_part = STRONG_BATCH_LOG;
    batch->strong_seq = persist->seq;
    buf_append_bytes(&batch->bytes, buf_view(&persist->rows));
    persist->in_flight = true;
    strong_use(strong);
    batch_emit(region, batch);
    if (planted(PLANT_PERSISTED_EARLY) && strong->persisted < persist->seq)
        strong->persisted = persist->seq;
}

void strong_persist(struct region *region, struct strong *strong, uint64_t seq,
                    const struct consensus_write *write)
{
    struct strong_persist *persist = xcalloc(1, sizeof(*persist));
    persist->seq = seq;
    struct buf *rows = &persist->rows;
    if (write->hard)
        put_hard(region, strong, write->hard, rows);
    if (write->truncate_from && write->truncate_from <= strong->log_high) {
        delete_entries(region, strong, write->truncate_from, strong->log_high, rows);
        strong->log_high = write->truncate_from - 1;
        if (strong->log_synced > strong->log_high)
            strong->log_synced = strong->log_high;
    }
    if (write->base_moved)
        put_base(region, strong, write, rows);
    for (uint32_t i = 0; i < write->entry_count; i++) {
        const struct consensus_entry *entry = &write->entries[i];
        struct buf *value = &region->strong->scratch;
        buf_reset(value);
        strong_log_encode(entry, strong->log_synced, value);
        store_batch_put(rows,
                        keyspace_strong_log(&region->key_scratch, strong->table->d.table.number,
                                            strong->partition->index, strong->table->d.strong.epoch,
                                            entry->index),
                        buf_view(value));
        if (entry->index > strong->log_high)
            strong->log_high = entry->index;
    }
    persist->last = strong->log_high;
    bool waits = !list_empty(&strong->persists) &&
                 !container_of(strong->persists.prev, struct strong_persist, link)->in_flight;
    list_append(&strong->persists, &persist->link);
    if (!waits)
        emit(region, strong, persist);
}

static void free_persist(struct strong_persist *persist)
{
    list_remove(&persist->link);
    buf_deinit(&persist->rows);
    free(persist);
}

void strong_persist_durable(struct region *region, struct strong *strong, uint64_t seq)
{
    (void)region;
    while (!list_empty(&strong->persists)) {
        struct strong_persist *first =
            container_of(strong->persists.next, struct strong_persist, link);
        if (first->seq > seq)
            break;
        if (first->last > strong->log_synced && first->last <= strong->log_high)
            strong->log_synced = first->last;
        free_persist(first);
    }
    strong->persisted = seq;
}

/* Of this batch and of all behind it nothing was written; each of them comes here. */
void strong_persist_failed(struct region *region, struct strong *strong)
{
    list_each(link, spare, &strong->persists)
    {
        container_of(link, struct strong_persist, link)->in_flight = false;
    }
    uint64_t at = region->mono_ns + (uint64_t)STRONG_RETRY_MS * NS_PER_MS;
    if (at < strong->retry_ns)
        strong->retry_ns = at;
}

void strong_persist_retry(struct region *region, struct strong *strong)
{
    list_each(link, spare, &strong->persists)
    {
        struct strong_persist *persist = container_of(link, struct strong_persist, link);
        if (!persist->in_flight)
            emit(region, strong, persist);
    }
}

void strong_persists_free(struct strong *strong)
{
    list_each(link, spare, &strong->persists)
    {
        free_persist(container_of(link, struct strong_persist, link));
    }
}
