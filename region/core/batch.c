/* SPDX-License-Identifier: Apache-2.0 */
/* Batches in flight. A batch is emitted once and then owns everything that rests on it: the images
 * of the rows it writes, the replies that must wait for it, and what was there before, so that it
 * can be undone exactly if the disk is full.
 *
 *      emitted, in flight -+-> durable: images leave their lanes, counts and replies go out
 *                          +-> void: newest first, everything is as it was before; then owners and
 *                              clients are told, oldest first
 */

#include "conflict/record.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

enum { SPARE_MAX = 64, SPARE_BYTES_MAX = 64 * 1024 };

static const char DISK_FULL[] = "The disk of this Region is full: nothing was written. The request "
                                "may be retried once there is space again.";

struct batch *batch_begin(struct region *region, struct partition *partition,
                          enum batch_owner owner, void *owner_at)
{
    struct list *spare = list_take(&region->spare_batches);
    struct batch *batch;
    if (spare) {
        batch = container_of(spare, struct batch, link);
        region->spare_count--;
    } else {
        batch = xcalloc(1, sizeof(*batch));
    }
    struct buf bytes = batch->bytes;
    *batch = (struct batch){.bytes = bytes,
                            .owner = owner,
                            .owner_at = owner_at,
                            .partition = partition,
                            .ledger_before = region->ledger};
    buf_reset(&batch->bytes);
    list_init(&batch->link);
    list_init(&batch->waiters);
    if (partition) {
        batch->meta_before = partition->meta;
        partition->table->batches++;
    }
    return batch;
}

static void recycle(struct region *region, struct batch *batch)
{
    if (batch->partition) {
        struct table_state *table = batch->partition->table;
        check(table->batches > 0);
        table->batches--;
        table_erase(region, table);
    }
    if (region->spare_count == SPARE_MAX || batch->bytes.cap > SPARE_BYTES_MAX) {
        buf_deinit(&batch->bytes);
        free(batch);
        return;
    }
    list_append(&region->spare_batches, &batch->link);
    region->spare_count++;
}

static void count(struct batch *batch, struct lane_weight before, struct lane_weight after)
{
    struct partition_meta *meta = &batch->partition->meta;
    meta->items += after.items - before.items;
    meta->bytes += after.bytes - before.bytes;
    meta->tombstones += after.tombstones - before.tombstones;
    batch->items += (int64_t)after.items - (int64_t)before.items;
    batch->size += (int64_t)after.bytes - (int64_t)before.bytes;
}

void batch_row(struct region *region, struct batch *batch, struct bytes key, struct bytes old,
               struct bytes body)
{
    count(batch, lane_weigh(old), lane_weigh(body));
    struct bytes at =
        keyspace_item(&region->key_scratch, batch->partition->table->d.table.number, key);
    if (body.len > 0)
        store_batch_put(&batch->bytes, at, body);
    else
        store_batch_delete(&batch->bytes, at);
}

void batch_item(struct region *region, struct batch *batch, struct lane *lane, struct bytes body)
{
    struct bytes old;
    bool known = lane_image(lane, &old);
    check(known);
    struct lane_weight after = lane_weigh(body);
    count(batch, lane->weight, after);
    lane->weight = after;

    struct bytes key =
        keyspace_item(&region->key_scratch, lane->table->d.table.number, lane_key(lane));
    if (body.len > 0)
        store_batch_put(&batch->bytes, key, body);
    else
        store_batch_delete(&batch->bytes, key);

    struct change *change = region->spare_changes;
    if (change)
        region->spare_changes = change->next;
    else
        change = xmalloc(sizeof(*change));
    *change = (struct change){.next = batch->changes,
                              .lane = lane,
                              .batch = batch,
                              .body_at = batch->bytes.len - body.len, /* a put ends in its value */
                              .body_len = body.len};
    batch->changes = change;
    list_append(&lane->changes, &change->in_lane);
}

static void put_clock(struct region *region, struct batch *batch)
{
    uint64_t time = batch->hlc ? batch->hlc : hlc_make(region->wall_ms, 0);
    if (!hlc_reservation_due(&region->hlc, region->wall_ms, time, &batch->reserved))
        return;
    struct buf *value = &region->log_scratch;
    buf_reset(value);
    clock_encode(batch->reserved, value);
    store_batch_replace(&batch->bytes, keyspace_tag(&region->key_scratch, KEYSPACE_CLOCK),
                        buf_view(value));
}

void batch_emit(struct region *region, struct batch *batch)
{
    struct buf *value = &region->log_scratch;
    struct partition *partition = batch->partition;
    bool log_only = batch->owner == OWNER_STRONG && batch->strong_part == STRONG_BATCH_LOG;
    if (partition && !log_only) {
        buf_reset(value);
        partition_meta_encode(&partition->meta, value);
        struct bytes key = keyspace_partition(&region->key_scratch,
                                              partition->table->d.table.number, partition->index);
        store_batch_replace(&batch->bytes, key, buf_view(value));
    }
    if (batch->ledger_writes > 0) {
        buf_reset(value);
        ledger_counts_encode(&region->ledger, value);
        store_batch_replace(&batch->bytes,
                            keyspace_tag(&region->key_scratch, KEYSPACE_LEDGER_COUNTS),
                            buf_view(value));
    }
    put_clock(region, batch);
    if (partition)
        batch->epoch = version_epoch(partition->meta.seq);
    batch->id = ++region->batch_last;
    list_append(&region->batches, &batch->link);
    region->persist_bytes += batch->bytes.len;
    region->counters.batches++;
    region->counters.batch_bytes += batch->bytes.len;
    region->counters.batches_in_flight++;
    struct region_effect *effect = effect_add(region, REGION_PERSIST);
    effect->id = batch->id;
    effect->bytes = buf_view(&batch->bytes); /* the batch outlives the step */
}

static void free_changes(struct region *region, struct batch *batch, bool durable)
{
    /* Oldest first, so that a base ends up as the newest. */
    struct change *at = batch->changes, *oldest = NULL;
    while (at) {
        struct change *next = at->next;
        at->next = oldest;
        oldest = at;
        at = next;
    }
    batch->changes = NULL;
    while (oldest) {
        struct change *change = oldest;
        oldest = change->next;
        struct lane *lane = change->lane;
        list_remove(&change->in_lane);
        if (durable)
            lane_settle(region, lane,
                        bytes_make(batch->bytes.at + change->body_at, change->body_len));
        else
            lane_undo(lane);
        change->next = region->spare_changes;
        region->spare_changes = change;
        lane_release(region, lane);
    }
}

void batch_drop(struct region *region, struct batch *batch)
{
    free_changes(region, batch, false);
    list_remove(&batch->link);
    if (batch->partition)
        batch->partition->table->batches--;
    buf_deinit(&batch->bytes);
    free(batch);
}

static void tell_owner(struct region *region, struct batch *batch, bool durable)
{
    switch (batch->owner) {
    case OWNER_NONE:
        return;
    case OWNER_APPLY:
        apply_durable(region, batch->owner_at, durable);
        return;
    case OWNER_PURGE:
        purge_durable(region, batch->owner_at, durable);
        return;
    case OWNER_TRIM:
        replicate_trimmed(region, batch->owner_at, durable);
        return;
    case OWNER_ERASE:
        table_erased(region, batch->owner_at, durable);
        return;
    case OWNER_CATALOG:
        change_durable(region, batch->owner_at, durable);
        return;
    case OWNER_LEDGER:
        ledger_trimmed(region, durable);
        return;
    case OWNER_START:
        start_durable(region, durable);
        return;
    case OWNER_STRONG:
        strong_durable(region, batch, durable);
        return;
    }
    unreachable();
}

static void settle_waiters(struct region *region, struct batch *batch, const char *failure)
{
    for (struct list *link; (link = list_take(&batch->waiters));) {
        struct request *request = container_of(link, struct wait, link)->owner;
        struct op_result *result = &request->op->result;
        /* A condition that failed, failed on what is void. */
        if (failure && request->op->key_count == 1) {
            result->error = API_OK;
            result->error_item = BYTES_NONE;
        }
        if (failure)
            request_fail_undone(request, failure);
        request_settle(region, request);
    }
}

static void make_durable(struct region *region, struct batch *batch)
{
    list_remove(&batch->link);
    region->persist_bytes -= batch->bytes.len;
    region->counters.batches_in_flight--;
    if (batch->reserved)
        hlc_reservation_kept(&region->hlc, batch->reserved);
    struct partition *partition = batch->partition;
    if (partition) {
        struct table *table = &partition->table->d.table;
        table->item_count += (uint64_t)batch->items;
        table->size_bytes += (uint64_t)batch->size;
        if (partition->replica)
            replica_note_epoch(partition->replica, batch->epoch);
        if (batch->hlc) {
            check(batch->seq > partition->seq_durable);
            partition->seq_durable = batch->seq;
            partition->hlc_durable = batch->hlc;
            partition->log_bytes_fresh += batch->log_bytes;
            if (partition->replica && list_empty(&partition->dirty))
                list_append(&region->dirty, &partition->dirty);
            if (partition->trim_to > 0)
                replicate_trim(region, partition);
        }
    }
    free_changes(region, batch, true);
    settle_waiters(region, batch, NULL);
    tell_owner(region, batch, true);
    if (batch->ledger_writes > 0)
        ledger_trim(region);
    recycle(region, batch);
}

void batches_durable(struct region *region, uint64_t id)
{
    check(id <= region->batch_last);
    while (!list_empty(&region->batches)) {
        struct batch *batch = container_of(region->batches.next, struct batch, link);
        if (batch->id > id)
            return;
        make_durable(region, batch);
    }
}

static void undo(struct region *region, struct batch *batch)
{
    region->persist_bytes -= batch->bytes.len;
    region->counters.batches_in_flight--;
    struct partition *partition = batch->partition;
    if (partition) {
        partition->meta = batch->meta_before;
        if (batch->hlc && partition->replica)
            replica_note_unstamped(partition->replica, batch->seq - 1);
    }
    region->ledger = batch->ledger_before;
    free_changes(region, batch, false);
}

void batches_failed(struct region *region, uint64_t id)
{
    struct list lost;
    list_init(&lost);
    bool reserved = false;
    while (!list_empty(&region->batches)) {
        struct batch *batch = container_of(region->batches.prev, struct batch, link);
        if (batch->id < id)
            break;
        list_remove(&batch->link);
        list_append(lost.next, &batch->link); /* in front */
        reserved |= batch->reserved != 0;
        undo(region, batch);
    }
    if (reserved) {
        hlc_reservation_lost(&region->hlc);
        /* What is still on its way holds. */
        list_each(link, spare, &region->batches)
        {
            uint64_t kept = container_of(link, struct batch, link)->reserved;
            if (kept > region->hlc.reserved)
                region->hlc.reserved = kept;
        }
    }
    trace_emit(&region->config.trace, TRACE_DEBUG, "disk full: batches are void from id=%llu",
               (unsigned long long)id);
    for (struct list *link; (link = list_take(&lost));) {
        struct batch *batch = container_of(link, struct batch, link);
        settle_waiters(region, batch, DISK_FULL);
        tell_owner(region, batch, false);
        recycle(region, batch);
    }
}
