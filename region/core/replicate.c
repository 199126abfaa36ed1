/* SPDX-License-Identifier: Apache-2.0 */
/* Between the replicator, which holds positions, and the store, which holds the data: feeds it what
 * has become durable and what was read, and performs its effects. An effect may bring up a further
 * input (a batch of a peer's that must be refused): those queue, as the replicator's output lasts
 * only until its next step. */

#include "conflict/record.h"
#include "region/core/region_internal.h"

enum { TRIM_ROWS_MAX = 512, TRIM_BYTES_MAX = 256 * 1024 };

static struct partition *partition_of(const struct replica *replica)
{
    return replica_owner(replica);
}

static void read_log(struct region *region, const struct replicator_effect *effect)
{
    struct partition *partition = partition_of(effect->replica);
    uint32_t number = partition->table->d.table.number;
    uint64_t id;
    struct read *read = read_new(region, READ_LOG, partition, partition->table, &id);
    read->replicator_id = effect->id;
    read->seq = effect->seq;
    read_emit_range(region, id,
                    keyspace_log(&region->key_scratch, number, partition->index, effect->seq),
                    keyspace_log(&region->end_scratch, number, partition->index + 1, 0), false,
                    effect->rows_max, effect->bytes_max);
}

/* Where a partition's items end, as a store key. */
static struct bytes items_end(struct buf *to, const struct partition *partition)
{
    const struct table *table = &partition->table->d.table;
    uint32_t next = partition->index + 1;
    if (next == table->partition_count)
        return keyspace_item(to, table->number + 1, BYTES_NONE);
    return keyspace_item_hash(to, table->number, key_partition_start(next, table->partition_count));
}

static struct bytes items_begin(struct buf *to, const struct partition *partition)
{
    const struct table *table = &partition->table->d.table;
    return keyspace_item_hash(to, table->number,
                              key_partition_start(partition->index, table->partition_count));
}

struct bytes partition_begin(struct buf *to, const struct partition *partition, struct bytes after)
{
    if (after.len == 0)
        return items_begin(to, partition);
    keyspace_item(to, partition->table->d.table.number, after);
    buf_append_u8(to, 0);
    return buf_view(to);
}

struct bytes partition_end(struct buf *to, const struct partition *partition, struct bytes last)
{
    if (last.len == 0)
        return items_end(to, partition);
    keyspace_item(to, partition->table->d.table.number, last);
    buf_append_u8(to, 0);
    return buf_view(to);
}

static void read_snapshot(struct region *region, const struct replicator_effect *effect)
{
    struct partition *partition = partition_of(effect->replica);
    uint64_t id;
    struct read *read = read_new(region, READ_SNAPSHOT, partition, partition->table, &id);
    read->replicator_id = effect->id;
    read_emit_range(region, id, partition_begin(&region->key_scratch, partition, effect->after),
                    items_end(&region->end_scratch, partition), false, effect->rows_max,
                    effect->bytes_max);
}

static void perform(struct region *region, const struct replicator_effect *effect)
{
    struct region_effect *to;
    switch (effect->kind) {
    case REPLICATOR_SEND:
        to = effect_add(region, REGION_SEND);
        to->peer = effect->peer;
        to->channel = effect->outbound ? CHANNEL_OUTBOUND : CHANNEL_INBOUND;
        to->bytes = out_copy(region, effect->bytes);
        return;
    case REPLICATOR_CLOSE:
        to = effect_add(region, REGION_CLOSE);
        to->peer = effect->peer;
        to->channel = effect->outbound ? CHANNEL_OUTBOUND : CHANNEL_INBOUND;
        to->reason = effect->reason;
        return;
    case REPLICATOR_READ_LOG:
        read_log(region, effect);
        return;
    case REPLICATOR_READ_SNAPSHOT:
        read_snapshot(region, effect);
        return;
    case REPLICATOR_APPLY:
    case REPLICATOR_APPLY_SNAPSHOT:
    case REPLICATOR_SWEEP_SNAPSHOT:
    case REPLICATOR_FINISH_SNAPSHOT:
        apply_begin(region, effect);
        return;
    case REPLICATOR_TRIM: {
        struct partition *partition = partition_of(effect->replica);
        if (effect->origin == region->config.region && effect->seq > partition->trim_to)
            partition->trim_to = effect->seq;
        replicate_trim(region, partition);
        return;
    }
    case REPLICATOR_COLLECT:
        collect_begin(region, partition_of(effect->replica), effect);
        return;
    case REPLICATOR_OBSERVE:
        hlc_observe(&region->hlc, region->wall_ms, effect->hlc);
        return;
    case REPLICATOR_PEER_TABLES:
        gossip(region, effect->peer, effect->bytes);
        return;
    case REPLICATOR_CAUGHT_UP:
        group_caught_up(region, partition_of(effect->replica), effect->peer);
        return;
    case REPLICATOR_ACKED:
        return;
    case REPLICATOR_ORPHANS_SHARED: {
        struct partition *partition = partition_of(effect->replica);
        struct batch *batch = batch_begin(region, partition, OWNER_NONE, NULL);
        for (uint32_t i = 0; i < effect->vv->count; i++)
            vv_drop(&partition->meta.partial, effect->vv->at[i].origin,
                    version_epoch(effect->vv->at[i].seq));
        batch_emit(region, batch);
        return;
    }
    case REPLICATOR_PEER_AHEAD: {
        struct partition *partition = partition_of(effect->replica);
        if (effect->seq <= partition->meta.seq)
            return;
        /* The epoch is written at once, so that it is not taken a second time after a crash. */
        struct batch *batch = batch_begin(region, partition, OWNER_NONE, NULL);
        partition_outrun(region, partition, effect->seq);
        batch_emit(region, batch);
        return;
    }
    }
    unreachable();
}

void replicate(struct region *region, const struct replicator_input *in)
{
    if (region->report_count == region->report_cap) {
        region->report_cap = region->report_cap ? region->report_cap * 2 : 16;
        region->reports = xrealloc(region->reports, sizeof(*region->reports) * region->report_cap);
    }
    region->reports[region->report_count++] = *in;
    if (region->reporting)
        return;
    region->reporting = true;
    for (uint32_t i = 0; i < region->report_count; i++) {
        struct replicator_input next = region->reports[i];
        next.mono_ns = region->mono_ns;
        next.wall_ms = region->wall_ms;
        next.hlc_now = hlc_now(&region->hlc, region->wall_ms);
        struct replicator_output out;
        replicator_step(region->replicator, &next, &out);
        for (uint32_t j = 0; j < out.count; j++)
            perform(region, &out.at[j]);
    }
    region->report_count = 0;
    region->reporting = false;
}

void replicate_dirty(struct region *region)
{
    for (struct list *link; (link = list_take(&region->dirty));) {
        struct partition *partition = container_of(link, struct partition, dirty);
        check(partition->replica != NULL);
        replica_note_tombstones(partition->replica, partition->meta.tombstones > 0);
        if (partition->seq_durable == partition->seq_reported)
            continue;
        struct replicator_input in = {
            .kind = REPLICATOR_COMMITTED,
            .replica = partition->replica,
            .seq = partition->seq_durable,
            .hlc = partition->hlc_durable,
            .log_bytes = partition->log_bytes_fresh,
        };
        partition->seq_reported = partition->seq_durable;
        partition->log_bytes_fresh = 0;
        replicate(region, &in);
    }
}

/* ---- Rows for the replicator ---- */

static struct replicator_row *rows_for(struct region *region, uint32_t count)
{
    if (count > region->replicator_rows_cap) {
        region->replicator_rows_cap = count;
        region->replicator_rows =
            xrealloc(region->replicator_rows, sizeof(struct replicator_row) * count);
    }
    return region->replicator_rows;
}

void replicate_log_rows(struct region *region, struct read read, const struct region_input *in)
{
    struct partition *partition = read.owner;
    struct replicator_input to = {
        .kind = REPLICATOR_ROWS, .replica = partition->replica, .id = read.replicator_id};
    if (!partition->replica)
        return;
    to.failed = in->outcome != STORE_OK;
    uint32_t count = to.failed ? 0 : in->rows->count;
    struct replicator_row *rows = rows_for(region, count);
    uint64_t last = read.seq - 1;
    for (uint32_t i = 0; i < count && !to.failed; i++) {
        struct record record;
        struct replicator_row *row = &rows[i];
        if (!keyspace_log_seq(in->rows->at[i].key, &row->seq) ||
            !record_decode_log(in->rows->at[i].value, &record, &row->body) ||
            (row->seq != last + 1 && !version_seq_follows(last, row->seq))) {
            trace_emit(
                &region->config.trace, TRACE_ERROR, "log unreadable table=%s partition=%u seq=%llu",
                partition->table->d.table.name, partition->index, (unsigned long long)last + 1);
            to.failed = true;
            break;
        }
        row->key = record.key;
        last = row->seq;
    }
    if (!to.failed) {
        to.rows = rows;
        to.row_count = count;
        to.more = in->rows->more;
    }
    replicate(region, &to);
}

void replicate_snapshot_rows(struct region *region, struct read read, const struct region_input *in)
{
    struct partition *partition = read.owner;
    struct replicator_input to = {
        .kind = REPLICATOR_ROWS, .replica = partition->replica, .id = read.replicator_id};
    if (!partition->replica)
        return;
    if (in->outcome != STORE_OK) {
        to.failed = true;
        replicate(region, &to);
        return;
    }
    struct replicator_row *rows = rows_for(region, in->rows->count);
    for (uint32_t i = 0; i < in->rows->count; i++) {
        struct bytes key = in->rows->at[i].key;
        rows[i] = (struct replicator_row){
            .key = bytes_make(key.at + KEYSPACE_ITEM_PREFIX, key.len - KEYSPACE_ITEM_PREFIX),
            .body = in->rows->at[i].value,
        };
    }
    to.rows = rows;
    to.row_count = in->rows->count;
    to.more = in->rows->more;
    replicate(region, &to);
}

/* ---- Trimming the log ---- */

void replicate_trim(struct region *region, struct partition *partition)
{
    struct partition_meta *meta = &partition->meta;
    /* Rows that are still on their way to the disk would be missed. */
    if (partition->trimming || meta->log_first == 0 || meta->log_first > partition->trim_to ||
        partition->trim_to > partition->seq_durable || partition->table->d.dropped)
        return;
    partition->trimming = true;
    uint32_t number = partition->table->d.table.number;
    uint64_t id;
    read_new(region, READ_TRIM, partition, partition->table, &id);
    read_emit_range(
        region, id, keyspace_log(&region->key_scratch, number, partition->index, meta->log_first),
        keyspace_log(&region->end_scratch, number, partition->index, partition->trim_to + 1), false,
        TRIM_ROWS_MAX, TRIM_BYTES_MAX);
}

void replicate_trim_rows(struct region *region, struct partition *partition,
                         const struct region_input *in)
{
    if (in->outcome != STORE_OK || partition->table->d.dropped) {
        partition->trimming = false;
        return;
    }
    struct batch *batch = batch_begin(region, partition, OWNER_TRIM, partition);
    struct partition_meta *meta = &partition->meta;
    uint64_t last = 0;
    for (uint32_t i = 0; i < in->rows->count; i++) {
        const struct store_row *row = &in->rows->at[i];
        bool known = keyspace_log_seq(row->key, &last);
        check(known);
        store_batch_delete(&batch->bytes, row->key);
        uint64_t size = row->value.len;
        meta->log_bytes -= size < meta->log_bytes ? size : meta->log_bytes;
    }
    if (!in->rows->more)
        last = partition->trim_to;
    meta->log_first = last < meta->seq ? last + 1 : 0;
    if (meta->log_first == 0)
        meta->log_bytes = 0;
    batch_emit(region, batch);
}

void replicate_trimmed(struct region *region, struct partition *partition, bool durable)
{
    partition->trimming = false;
    if (durable)
        replicate_trim(region, partition);
}
