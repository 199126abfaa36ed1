/* SPDX-License-Identifier: Apache-2.0 */
/* Removes rows of a range for good, by rule: tombstones that nobody needs any more, and rows that a
 * snapshot shows to have been deleted elsewhere. A page is read, and each row that the rule fits is
 * looked at again in its lane, because the page may be older than a write that has come since; only
 * what still fits goes.
 *
 *      read a page -> candidates' lanes -> one batch -> durable -> next page ... -> done
 */

#include "conflict/record.h"
#include "region/core/region_internal.h"

enum { PAGE_ROWS_MAX = 256, PAGE_ROW_BYTES_MAX = 256 * 1024 };
/* A scan that finds every tombstone too young shall not be the partition's main occupation. */
enum { COLLECTIONS_PER_GRACE = 8 };

struct candidate {
    struct wait wait;
    struct lane *lane; /* pinned */
};

struct purge {
    struct partition *partition;
    struct purge_rule rule;
    struct apply *apply;    /* NULL: a collection */
    struct buf cursor, end; /* store keys */
    bool more;
    bool broken, abandoned;
    struct candidate *candidates;
    uint32_t count, missing;
};

static bool fits(const struct purge_rule *rule, struct bytes key, struct bytes body)
{
    struct record record;
    if (body.len == 0 || !record_decode_body(body, &record))
        return false;
    if (rule->tombstones &&
        (!record_is_tombstone(&record) || record.version.hlc >= rule->hlc_horizon ||
         hlc_ms(record.version.hlc) > rule->wall_ms_max))
        return false;
    if (!rule->unread && !vv_knows(&rule->vv, record.version.origin, record.version.seq))
        return false;
    uint32_t low = 0, high = rule->keep_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = bytes_compare(rule->keep[middle], key);
        if (order == 0)
            return false;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return true;
}

static void drop_candidates(struct region *region, struct purge *purge)
{
    for (uint32_t i = 0; i < purge->count; i++) {
        list_remove(&purge->candidates[i].wait.link);
        lane_unpin(region, purge->candidates[i].lane);
    }
    purge->count = 0;
}

void purge_free(struct region *region, struct purge *purge)
{
    (void)region;
    buf_deinit(&purge->cursor);
    buf_deinit(&purge->end);
    free(purge->rule.keep);
    free(purge->candidates);
    free(purge);
}

static void finish(struct region *region, struct purge *purge, bool whole)
{
    struct partition *partition = purge->partition;
    struct apply *apply = purge->abandoned ? NULL : purge->apply;
    bool unshared = purge->abandoned && !partition->replica && !partition->table->d.dropped;
    drop_candidates(region, purge);
    if (partition->collect == purge)
        partition->collect = NULL;
    purge_free(region, purge);
    if (partition->replica)
        replica_note_tombstones(partition->replica, partition->meta.tombstones > 0);
    if (unshared)
        collect_all(region, partition);
    if (apply)
        apply_swept(region, apply, whole);
    table_release(region, partition->table);
}

void purge_abandon(struct purge *purge)
{
    purge->abandoned = true;
    purge->apply = NULL;
    /* Its keys were the apply's. */
    purge->rule.keep_count = 0;
}

static void read_page(struct region *region, struct purge *purge)
{
    uint64_t id;
    read_new(region, READ_PURGE, purge, purge->partition->table, &id);
    read_emit_range(region, id, buf_view(&purge->cursor), buf_view(&purge->end), false,
                    PAGE_ROWS_MAX, PAGE_ROW_BYTES_MAX);
}

struct purge *purge_begin(struct region *region, struct partition *partition, struct bytes begin,
                          struct bytes end, const struct purge_rule *rule, struct apply *apply)
{
    struct purge *purge = xcalloc(1, sizeof(*purge));
    purge->partition = partition;
    purge->rule = *rule;
    purge->apply = apply;
    partition_begin(&purge->cursor, partition, begin);
    partition_end(&purge->end, partition, end);
    partition->table->users++;
    if (!apply)
        partition->collect = purge;
    read_page(region, purge);
    return purge;
}

/* True: the purge is over. */
static bool stopped(struct region *region, struct purge *purge)
{
    if (!purge->abandoned && !purge->broken && !purge->partition->table->d.dropped)
        return false;
    finish(region, purge, false);
    return true;
}

static void next_page(struct region *region, struct purge *purge)
{
    drop_candidates(region, purge);
    if (!purge->more)
        finish(region, purge, true);
    else
        read_page(region, purge);
}

/* All candidates' lanes are known: what still fits goes, in one batch. */
static void remove_candidates(struct region *region, struct purge *purge)
{
    struct batch *batch = NULL;
    for (uint32_t i = 0; i < purge->count; i++) {
        struct lane *lane = purge->candidates[i].lane;
        struct bytes body;
        bool known = lane_image(lane, &body);
        check(known);
        if (!fits(&purge->rule, lane_key(lane), body))
            continue;
        if (!batch)
            batch = batch_begin(region, purge->partition, OWNER_PURGE, purge);
        batch_item(region, batch, lane, BYTES_NONE);
    }
    if (batch)
        batch_emit(region, batch);
    else if (!stopped(region, purge))
        next_page(region, purge);
}

void purge_lane_known(struct region *region, struct purge *purge, bool broken)
{
    check(purge->missing > 0);
    purge->broken |= broken;
    if (--purge->missing == 0 && !stopped(region, purge))
        remove_candidates(region, purge);
}

static void add_candidate(struct region *region, struct purge *purge, struct bytes key)
{
    struct candidate *candidate = &purge->candidates[purge->count];
    *candidate = (struct candidate){
        .wait = {.kind = WAIT_PURGE, .index = purge->count, .owner = purge},
        .lane = lane_get(region, purge->partition->table, key),
    };
    list_init(&candidate->wait.link);
    purge->count++;
    lane_pin(candidate->lane);
}

void purge_rows(struct region *region, struct purge *purge, const struct region_input *in)
{
    purge->broken |= in->outcome != STORE_OK;
    if (stopped(region, purge))
        return;
    const struct store_rows *rows = in->rows;
    purge->more = rows->more;
    if (!purge->candidates)
        purge->candidates = xcalloc(PAGE_ROWS_MAX, sizeof(*purge->candidates));
    check(rows->count <= PAGE_ROWS_MAX);
    for (uint32_t i = 0; i < rows->count; i++) {
        struct bytes key = rows->at[i].key;
        key = bytes_make(key.at + KEYSPACE_ITEM_PREFIX, key.len - KEYSPACE_ITEM_PREFIX);
        if (fits(&purge->rule, key, rows->at[i].value))
            add_candidate(region, purge, key);
    }
    if (rows->count > 0) {
        buf_reset(&purge->cursor);
        buf_append_bytes(&purge->cursor, rows->at[rows->count - 1].key);
        buf_append_u8(&purge->cursor, 0);
    }
    if (purge->count == 0) {
        next_page(region, purge);
        return;
    }
    purge->missing = purge->count + 1; /* one for ourselves */
    for (uint32_t i = 0; i < purge->count; i++)
        lane_wait(region, purge->candidates[i].lane, &purge->candidates[i].wait);
    purge_lane_known(region, purge, false);
}

void purge_durable(struct region *region, struct purge *purge, bool durable)
{
    purge->broken |= !durable;
    if (!stopped(region, purge))
        next_page(region, purge);
}

void collect_begin(struct region *region, struct partition *partition,
                   const struct replicator_effect *effect)
{
    uint64_t grace_ms = region->config.replication.tombstone_grace_ms;
    uint64_t rest_ms = grace_ms / COLLECTIONS_PER_GRACE, after_ms = partition->collect_after_ms;
    /* A wall clock that was set back is not waited for. */
    bool resting = region->wall_ms < after_ms && after_ms - region->wall_ms <= rest_ms;
    if (partition->collect || partition->meta.tombstones == 0 || region->wall_ms < grace_ms ||
        resting)
        return;
    partition->collect_after_ms = region->wall_ms + rest_ms;
    struct purge_rule rule = {
        .vv = *effect->vv,
        .tombstones = true,
        .hlc_horizon = effect->hlc,
        .wall_ms_max = region->wall_ms - grace_ms,
    };
    purge_begin(region, partition, BYTES_NONE, BYTES_NONE, &rule, NULL);
}

void collect_all(struct region *region, struct partition *partition)
{
    if (partition->collect || partition->meta.tombstones == 0)
        return;
    /* Deletes from now on may be needed again, should the table be shared again. */
    struct purge_rule rule = {
        .tombstones = true,
        .unread = true,
        .hlc_horizon = region->hlc.last + 1,
        .wall_ms_max = UINT64_MAX,
    };
    purge_begin(region, partition, BYTES_NONE, BYTES_NONE, &rule, NULL);
}
