/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's records. Each APPLY becomes one batch: every record resolved against what its key holds,
 * losers into the ledger, and how far the origin's log has been taken in. Those of a partition are
 * taken strictly in order, because a vector that is raised past a record that was not applied would
 * lose that record for ever.
 *
 *      queue:   [in flight] [in flight] [lanes known: next] [waits for lanes] [sweeping] ...
 *
 * Its keys' lanes are read and pinned, not held: local writes go on, and all records are resolved
 * in one instant when the last lane is known. */

#include "conflict/base/plant.h"
#include "conflict/record.h"
#include "conflict/region_id.h"
#include "region/core/region_internal.h"

struct apply_row {
    size_t key_at, key_len, body_at, body_len; /* in the apply's bytes */
    struct lane *lane;                         /* pinned; NULL once resolved */
};

struct apply {
    struct list link; /* partition.applies */
    enum replicator_effect_kind kind;
    struct partition *partition;
    uint16_t peer, origin;
    uint64_t apply_id, seq, epoch;
    struct vv vv;
    struct buf bytes;
    struct apply_row *rows;
    struct wait *waits;
    uint32_t count;
    uint32_t missing; /* lanes that are not known */
    size_t end_at;    /* SWEEP: begin lies before it in bytes, end from there on */
    struct purge *purge;
    bool in_flight, broken;
    bool orphan; /* nobody is to be told */
};

static struct bytes row_key(const struct apply *apply, uint32_t index)
{
    return bytes_make(apply->bytes.at + apply->rows[index].key_at, apply->rows[index].key_len);
}

static struct bytes row_body(const struct apply *apply, uint32_t index)
{
    return bytes_make(apply->bytes.at + apply->rows[index].body_at, apply->rows[index].body_len);
}

static void unpin_rows(struct region *region, struct apply *apply)
{
    for (uint32_t i = 0; i < apply->count; i++) {
        struct lane *lane = apply->rows[i].lane;
        apply->rows[i].lane = NULL;
        if (!lane)
            continue;
        list_remove(&apply->waits[i].link);
        lane_unpin(region, lane);
    }
}

static void free_memory(struct apply *apply)
{
    list_remove(&apply->link);
    buf_deinit(&apply->bytes);
    free(apply->rows);
    free(apply->waits);
    free(apply);
}

static void apply_free(struct region *region, struct apply *apply)
{
    struct table_state *table = apply->partition->table;
    if (apply->purge)
        purge_abandon(apply->purge);
    unpin_rows(region, apply);
    free_memory(apply);
    table_release(region, table);
}

void apply_free_all(struct region *region, struct partition *partition)
{
    (void)region;
    list_each(link, spare, &partition->applies)
    {
        struct apply *apply = container_of(link, struct apply, link);
        if (apply->purge)
            purge_free(region, apply->purge);
        free_memory(apply);
    }
}

static void report(struct region *region, const struct apply *apply, bool applied)
{
    struct replicator_input in = {
        .kind = applied ? REPLICATOR_APPLIED : REPLICATOR_APPLY_FAILED,
        .replica = apply->partition->replica,
        .peer = apply->peer,
        .apply_id = apply->apply_id,
    };
    if (apply->kind == REPLICATOR_APPLY)
        in.seq = apply->seq;
    if (apply->kind == REPLICATOR_FINISH_SNAPSHOT)
        in.vv = &apply->vv;
    check(in.replica != NULL);
    replicate(region, &in);
}

/* Nothing of it was kept, so nothing behind it from that peer may be: the stream begins anew. */
static void apply_fail(struct region *region, struct apply *apply)
{
    struct partition *partition = apply->partition;
    if (!apply->orphan)
        report(region, apply, false);
    uint16_t peer = apply->peer;
    bool behind = false;
    list_each(link, spare, &partition->applies)
    {
        struct apply *other = container_of(link, struct apply, link);
        behind |= other == apply;
        if (!behind || other->peer != peer || other == apply)
            continue;
        if (other->in_flight)
            other->orphan = true; /* its batch is void, too */
        else
            apply_free(region, other);
    }
    apply_free(region, apply);
}

void apply_abandon(struct region *region, struct partition *partition)
{
    list_each(link, spare, &partition->applies)
    {
        struct apply *apply = container_of(link, struct apply, link);
        apply->orphan = true;
        if (!apply->in_flight)
            apply_free(region, apply);
    }
}

/* ---- Taking in ---- */

/* Whether an item's key attributes are there and make this very row key: the language relies on it.
 */
static bool key_matches(struct region *region, const struct key_schema *schema, struct bytes key,
                        struct bytes item)
{
    struct value hash, range;
    if (!item_find(item, bytes_text(schema->hash_name), &hash) || hash.type != schema->hash_type)
        return false;
    if (schema->has_range && (!item_find(item, bytes_text(schema->range_name), &range) ||
                              range.type != schema->range_type))
        return false;
    struct buf *expected = &region->key_scratch;
    buf_reset(expected);
    key_write_hash(expected, hash);
    if (schema->has_range)
        key_write_range(expected, range);
    return bytes_equal(key, buf_view(expected));
}

static bool row_valid(struct region *region, const struct partition *partition,
                      const struct replicator_effect *effect, const struct replicator_row *row)
{
    const struct table *table = &partition->table->d.table;
    struct record record;
    if (row->key.len <= KEYSPACE_ROW_KEY_MIN || row->key.len > KEYSPACE_ROW_KEY_MAX ||
        key_partition(row->key, table->partition_count) != partition->index)
        return false;
    if (effect->kind == REPLICATOR_SWEEP_SNAPSHOT)
        return true;
    if (!record_decode_body(row->body, &record))
        return false;
    if (effect->kind == REPLICATOR_APPLY &&
        (record.version.origin != effect->origin || record.version.seq > effect->seq))
        return false;
    return record_is_tombstone(&record) ||
           (item_check(record.item) && item_size(record.item) <= ITEM_SIZE_MAX &&
            key_matches(region, &table->key, row->key, record.item));
}

static bool effect_valid(struct region *region, const struct partition *partition,
                         const struct replicator_effect *effect)
{
    for (uint32_t i = 0; i < effect->row_count; i++) {
        if (!row_valid(region, partition, effect, &effect->rows[i])) {
            trace_emit(&region->config.trace, TRACE_WARN,
                       "malformed record refused table=%s partition=%u peer=%s",
                       partition->table->d.table.name, partition->index,
                       region_id_name(effect->peer));
            return false;
        }
    }
    return true;
}

static void copy_rows(struct apply *apply, const struct replicator_effect *effect)
{
    apply->count = effect->row_count;
    apply->rows = xcalloc(effect->row_count, sizeof(*apply->rows));
    apply->waits = xcalloc(effect->row_count, sizeof(*apply->waits));
    for (uint32_t i = 0; i < effect->row_count; i++) {
        const struct replicator_row *from = &effect->rows[i];
        struct apply_row *row = &apply->rows[i];
        row->key_at = apply->bytes.len;
        row->key_len = from->key.len;
        buf_append_bytes(&apply->bytes, from->key);
        row->body_at = apply->bytes.len;
        row->body_len = from->body.len;
        buf_append_bytes(&apply->bytes, from->body);
        apply->waits[i] = (struct wait){.kind = WAIT_APPLY, .index = i, .owner = apply};
        list_init(&apply->waits[i].link);
    }
}

static void pin_rows(struct region *region, struct apply *apply)
{
    apply->missing = apply->count + 1; /* one for ourselves, until all are asked for */
    for (uint32_t i = 0; i < apply->count; i++) {
        struct lane *lane = lane_get(region, apply->partition->table, row_key(apply, i));
        apply->rows[i].lane = lane;
        lane_pin(lane);
        lane_wait(region, lane, &apply->waits[i]);
    }
    apply->missing--;
}

void apply_begin(struct region *region, const struct replicator_effect *effect)
{
    struct partition *partition = replica_owner(effect->replica);
    if (!effect_valid(region, partition, effect)) {
        struct replicator_input in = {
            .kind = REPLICATOR_APPLY_FAILED,
            .replica = effect->replica,
            .peer = effect->peer,
            .apply_id = effect->apply_id,
        };
        replicate(region, &in);
        return;
    }
    struct apply *apply = xcalloc(1, sizeof(*apply));
    *apply = (struct apply){
        .kind = effect->kind,
        .partition = partition,
        .peer = effect->peer,
        .origin = effect->origin,
        .apply_id = effect->apply_id,
        .seq = effect->seq,
        .epoch = effect->epoch,
    };
    if (effect->vv)
        apply->vv = *effect->vv;
    partition->table->users++;
    if (effect->kind == REPLICATOR_SWEEP_SNAPSHOT) {
        buf_append_bytes(&apply->bytes, effect->begin);
        apply->end_at = apply->bytes.len;
        buf_append_bytes(&apply->bytes, effect->end);
        apply->seq = apply->bytes.len; /* where end ends */
    }
    copy_rows(apply, effect);
    list_append(&partition->applies, &apply->link);
    if (effect->kind == REPLICATOR_APPLY || effect->kind == REPLICATOR_APPLY_SNAPSHOT)
        pin_rows(region, apply);
    apply_advance(region, partition);
}

void apply_lane_known(struct region *region, struct apply *apply, bool broken)
{
    check(apply->missing > 0);
    apply->broken |= broken;
    if (--apply->missing == 0)
        apply_advance(region, apply->partition);
}

/* ---- Resolving ---- */

void partition_outrun(struct region *region, struct partition *partition, uint64_t seq)
{
    if (seq <= partition->meta.seq || planted(PLANT_EPOCH_REUSED))
        return;
    uint64_t epoch = version_epoch(seq) + 1;
    if (epoch >> (64 - VERSION_EPOCH_SHIFT) != 0)
        return; /* beyond all epochs: not a number that we ever gave */
    trace_emit(&region->config.trace, TRACE_WARN,
               "a peer knows later writes of ours than we do, new epoch table=%s partition=%u",
               partition->table->d.table.name, partition->index);
    if (partition->meta.seq > version_epoch_base(version_epoch(partition->meta.seq)))
        vv_raise(&partition->meta.vv, region->config.region, partition->meta.seq);
    partition->meta.seq = version_epoch_base(epoch);
    if (region->meta.epoch < epoch)
        region->meta.epoch = epoch;
}

static void resolve_row(struct region *region, struct apply *apply, struct batch *batch,
                        uint32_t index)
{
    struct partition *partition = apply->partition;
    struct lane *lane = apply->rows[index].lane;
    struct record incoming, stored_record, *stored = NULL;
    struct bytes body = row_body(apply, index), held;
    bool decoded = record_decode_body(body, &incoming);
    bool known = lane_image(lane, &held);
    check(decoded);
    check(known);
    incoming.key = row_key(apply, index);
    if (held.len > 0) {
        decoded = record_decode_body(held, &stored_record);
        check(decoded); /* inspect_lanes has seen it */
        stored = &stored_record;
    }
    uint16_t own = region->config.region;
    if (incoming.version.origin == own)
        partition_outrun(region, partition, incoming.version.seq);
    partition_outrun(region, partition, vv_get(&incoming.dep, own));
    hlc_observe(&region->hlc, region->wall_ms, incoming.version.hlc);

    struct resolution outcome = resolve(stored, &incoming);
    bool wins = outcome.winner == RESOLVE_INCOMING;
    if (outcome.relation == RESOLVE_CONCURRENT || outcome.relation == RESOLVE_LATE)
        ledger_write(region, batch, partition, incoming.key, outcome.relation,
                     wins ? &incoming : stored, wins ? stored : &incoming);
    if (wins) {
        batch_item(region, batch, lane, body);
        region->counters.applied_records++;
    } else if (outcome.winner == RESOLVE_SAME) {
        region->counters.duplicate_records++;
    } else {
        region->counters.dropped_records++;
    }
}

/* Notes whether what the lanes hold is whole. */
static void inspect_lanes(struct apply *apply)
{
    struct bytes body;
    struct record record;
    for (uint32_t i = 0; i < apply->count && !apply->broken; i++) {
        bool known = lane_image(apply->rows[i].lane, &body);
        check(known);
        apply->broken = body.len > 0 && !record_decode_body(body, &record);
    }
}

/* The log of an origin has no gaps; a record that would leave one is not taken. */
static bool continues(const struct apply *apply)
{
    uint64_t last = vv_get(&apply->partition->meta.vv, apply->origin);
    struct record first;
    if (apply->count == 0)
        return true;
    bool decoded = record_decode_body(row_body(apply, 0), &first);
    check(decoded);
    return first.version.seq <= last || version_seq_follows(last, first.version.seq);
}

static struct batch *begin_batch(struct region *region, struct apply *apply)
{
    apply->in_flight = true;
    return batch_begin(region, apply->partition, OWNER_APPLY, apply);
}

static bool apply_rows(struct region *region, struct apply *apply)
{
    if (apply->kind == REPLICATOR_APPLY && !continues(apply)) {
        trace_emit(&region->config.trace, TRACE_WARN,
                   "gap in a peer's log refused table=%s partition=%u peer=%s",
                   apply->partition->table->d.table.name, apply->partition->index,
                   region_id_name(apply->peer));
        return false;
    }
    struct batch *batch = begin_batch(region, apply);
    for (uint32_t i = 0; i < apply->count; i++)
        resolve_row(region, apply, batch, i);
    if (apply->kind == REPLICATOR_APPLY && apply->origin != region->config.region)
        vv_raise(&apply->partition->meta.vv, apply->origin, apply->seq);
    if (apply->kind == REPLICATOR_APPLY_SNAPSHOT)
        vv_raise(&apply->partition->meta.partial, apply->peer,
                 version_epoch_base(apply->epoch) + 1);
    batch_emit(region, batch);
    unpin_rows(region, apply);
    return true;
}

static void finish_snapshot(struct region *region, struct apply *apply)
{
    struct batch *batch = begin_batch(region, apply);
    uint16_t own = region->config.region;
    struct partition_meta *meta = &apply->partition->meta;
    partition_outrun(region, apply->partition, vv_get(&apply->vv, own));
    for (uint32_t i = 0; i < apply->vv.count; i++) {
        uint16_t origin = apply->vv.at[i].origin;
        uint64_t seq = apply->vv.at[i].seq;
        /* Of our own it may have what an earlier disk of ours had. */
        if (origin != own || version_epoch(seq) != version_epoch(meta->seq))
            vv_raise(&meta->vv, origin, seq);
    }
    vv_drop(&meta->partial, apply->peer, apply->epoch);
    batch_emit(region, batch);
}

static int compare_keys(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

static void begin_sweep(struct region *region, struct apply *apply)
{
    struct purge_rule rule = {.vv = apply->vv, .keep_count = apply->count};
    rule.keep = xcalloc(apply->count, sizeof(*rule.keep));
    for (uint32_t i = 0; i < apply->count; i++)
        rule.keep[i] = row_key(apply, i); /* the apply outlives the purge, or tells it to stop */
    qsort(rule.keep, apply->count, sizeof(*rule.keep), compare_keys);
    struct bytes begin = bytes_make(apply->bytes.at, apply->end_at);
    struct bytes end = bytes_make(apply->bytes.at + apply->end_at, apply->seq - apply->end_at);
    apply->purge = purge_begin(region, apply->partition, begin, end, &rule, apply);
}

void apply_swept(struct region *region, struct apply *apply, bool swept)
{
    struct partition *partition = apply->partition;
    apply->purge = NULL;
    if (swept)
        batch_emit(region, begin_batch(region, apply));
    else
        apply_fail(region, apply);
    apply_advance(region, partition);
}

/* False: it must wait, and so must all behind it. */
static bool take_turn(struct region *region, struct apply *apply)
{
    switch (apply->kind) {
    case REPLICATOR_APPLY:
    case REPLICATOR_APPLY_SNAPSHOT:
        if (apply->missing > 0)
            return false;
        inspect_lanes(apply);
        if (apply->broken || !apply_rows(region, apply))
            apply_fail(region, apply);
        return true;
    case REPLICATOR_SWEEP_SNAPSHOT:
        if (!apply->purge)
            begin_sweep(region, apply);
        return false; /* apply_swept goes on */
    case REPLICATOR_FINISH_SNAPSHOT:
        finish_snapshot(region, apply);
        return true;
    case REPLICATOR_SEND:
    case REPLICATOR_CLOSE:
    case REPLICATOR_READ_LOG:
    case REPLICATOR_READ_SNAPSHOT:
    case REPLICATOR_TRIM:
    case REPLICATOR_COLLECT:
    case REPLICATOR_OBSERVE:
    case REPLICATOR_PEER_TABLES:
    case REPLICATOR_CAUGHT_UP:
    case REPLICATOR_ACKED:
    case REPLICATOR_PEER_AHEAD:
    case REPLICATOR_ORPHANS_SHARED:
        break;
    }
    unreachable();
}

void apply_advance(struct region *region, struct partition *partition)
{
    for (;;) {
        struct apply *next = NULL;
        for (struct list *link = partition->applies.next; link != &partition->applies;
             link = link->next) {
            next = container_of(link, struct apply, link);
            if (!next->in_flight)
                break;
            next = NULL;
        }
        if (!next || !take_turn(region, next))
            return;
    }
}

void apply_durable(struct region *region, struct apply *apply, bool durable)
{
    struct partition *partition = apply->partition;
    if (!durable) {
        apply_fail(region, apply);
        apply_advance(region, partition);
        return;
    }
    if (partition->replica &&
        (apply->kind == REPLICATOR_APPLY_SNAPSHOT || apply->kind == REPLICATOR_FINISH_SNAPSHOT))
        replica_note_partial(partition->replica, &partition->meta.partial);
    if (!apply->orphan)
        report(region, apply, true);
    if (partition->replica)
        replica_note_tombstones(partition->replica, partition->meta.tombstones > 0);
    apply_free(region, apply);
}
