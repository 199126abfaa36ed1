/* SPDX-License-Identifier: Apache-2.0 */
/* A local write, eventual mode: lane, execute, stamp, one batch, and the reply once that is durable
 * (DESIGN.md 4). Each key of a batch request is a write of its own.
 *
 *      lane known -> op_execute_key -+-> no change -> reply, after the newest write it has looked
 * at
 *                                    +-> change -> version -> one batch -> PERSIST -> reply
 *
 * With plain wall clocks (or after a peer wrote at the end of time) a new version may be below the
 * stored one. Then the write loses here as it does everywhere: it is logged, shipped and
 * acknowledged, and the ledger says that it was lost. */

#include "conflict/base/plant.h"
#include "conflict/record.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

void write_begin(struct region *region, struct op *op, uint64_t token)
{
    struct request *request = request_new(region, op, token, op->key_count);
    request->pending = op->key_count;
    request->user_count = op->key_count;
    for (uint32_t i = 0; i < op->key_count; i++)
        table_of(op->keys[i].table)->users++;
    for (uint32_t i = 0, count = op->key_count; i < count; i++) {
        if (op->keys[i].table->mode == TABLE_STRONG) {
            strong_write(region, request, i);
            continue;
        }
        struct lane *lane = lane_get(region, table_of(op->keys[i].table), op->keys[i].key);
        /* After the last of these the request may be gone. */
        lane_wait(region, lane, &request->waits[i]);
    }
}

/* All that the writer has seen: what its Region holds of the other logs, and what the stored record
 * rested on. Its own log needs no entry for this epoch, as its writes are ordered by their numbers.
 */
static void make_dep(const struct region *region, const struct partition *partition,
                     const struct record *stored, struct vv *ret)
{
    *ret = partition->meta.vv;
    if (!stored)
        return;
    uint16_t own = region->config.region;
    uint64_t epoch = version_epoch(partition->meta.seq);
    /* When there are too many origins the rest is left out: seen less is never wrong, only louder.
     */
    for (uint32_t i = 0; i < stored->dep.count; i++) {
        if (stored->dep.at[i].origin != own || version_epoch(stored->dep.at[i].seq) != epoch)
            vv_raise(ret, stored->dep.at[i].origin, stored->dep.at[i].seq);
    }
    if (stored->version.origin != own || version_epoch(stored->version.seq) != epoch)
        vv_raise(ret, stored->version.origin, stored->version.seq);
}

static void put_log(struct region *region, struct batch *batch, struct bytes key, struct bytes body)
{
    struct partition *partition = batch->partition;
    struct buf *row = &region->log_scratch;
    buf_reset(row);
    record_encode_log(key, body, row);
    struct bytes log_key = keyspace_log(&region->key_scratch, partition->table->d.table.number,
                                        partition->index, partition->meta.seq);
    store_batch_put(&batch->bytes, log_key, buf_view(row));
    if (partition->meta.log_first == 0)
        partition->meta.log_first = partition->meta.seq;
    batch->log_bytes = row->len;
    partition->meta.log_bytes += row->len;
}

static struct batch *write_record(struct region *region, struct lane *lane,
                                  const struct record *stored, struct record *record)
{
    struct table_state *table = lane->table;
    uint32_t index = key_partition(record->key, table->d.table.partition_count);
    struct partition *partition = &table->partitions[index];
    struct batch *batch = batch_begin(region, partition, OWNER_NONE, NULL);

    record->version = (struct version){
        .hlc = hlc_tick(&region->hlc, region->wall_ms, stored ? stored->version.hlc : 0),
        .origin = region->config.region,
        .seq = ++partition->meta.seq,
    };
    make_dep(region, partition, stored, &record->dep);
    batch->hlc = record->version.hlc;
    batch->seq = record->version.seq;
    struct buf *body = &region->body_scratch;
    buf_reset(body);
    record_encode_body(record, body);

    struct resolution outcome = resolve(stored, record);
    if (outcome.winner == RESOLVE_INCOMING) {
        /* Only other Regions need to be told that there is nothing: else the row just goes. */
        bool gone = record_is_tombstone(record) && !partition->replica;
        batch_item(region, batch, lane, gone ? BYTES_NONE : buf_view(body));
    } else {
        ledger_write(region, batch, partition, record->key, outcome.relation, stored, record);
    }
    if (partition->replica) {
        put_log(region, batch, record->key, buf_view(body));
        replica_note_stamped(partition->replica, record->version.seq);
    }
    batch_emit(region, batch);
    return batch;
}

void write_key(struct region *region, struct request *request, uint32_t index, struct lane *lane)
{
    struct op *op = request->op;
    struct bytes body;
    struct record stored_record, *stored = NULL;
    bool known = lane_image(lane, &body);
    check(known);
    if (lane->table->d.dropped) {
        request_fail(request, API_RESOURCE_NOT_FOUND, "Requested resource not found");
    } else if (body.len > 0 && !record_decode_body(body, &stored_record)) {
        request_fail(request, API_INTERNAL, read_failure(STORE_CORRUPT));
    } else {
        stored = body.len > 0 ? &stored_record : NULL;
        struct op_change change;
        op_execute_key(op, index, stored ? stored->item : BYTES_NONE, &change);
        struct batch *batch = lane_batch(lane);
        if (change.kind != OP_CHANGE_NONE) {
            struct record record = {.key = lane_key(lane), .kind = RECORD_DELETE};
            if (change.kind == OP_CHANGE_PUT) {
                record.kind = RECORD_PUT;
                record.item = change.item;
            }
            batch = write_record(region, lane, stored, &record);
        }
        if (batch && !planted(PLANT_REPLY_EARLY)) {
            list_append(&batch->waiters, &request->waits[index].link);
            return;
        }
    }
    lane_release(region, lane);
    request_settle(region, request);
}
