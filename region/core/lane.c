/* SPDX-License-Identifier: Apache-2.0 */
/* A lane is one key that somebody is busy with: a local write, a peer's record, a purge. It answers
 * "what does this key hold now?", writes in flight included, and it makes them run in order.
 *
 *      lane: base (what is durable, once it is known) <- change <- change <- change
 *                                                        in flight; the last is what the key holds
 *
 * Nothing is written through a lane before it is known, so the answer to its READ cannot be
 * overtaken; from then on each write that becomes durable becomes its base, so it stays known. A
 * pin keeps it for somebody who must know many keys at one instant, without holding up the others.
 *
 * A known lane stays when nobody needs it any more, as a cache: the next to need the key reads
 * nothing. What is kept is bounded by bytes, and the first to be kept is the first to go, unless it
 * was of use since (a second chance: a hit writes one flag, where a list in order of use would move
 * cold neighbours about). As every row of an item is written through its key's lane, none can be
 * out of date; what passes the lanes by forgets the table's first (lanes_forget). */

#include "conflict/record.h"
#include "region/core/item.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

enum { BASE_SPARE_BYTES = 256, CHANCES_MAX = 16 };

/* What a kept lane counts for. */
static size_t lane_bytes(const struct lane *lane)
{
    return sizeof(*lane) + lane->key_len + lane->base.cap;
}

static bool is_kept(const struct lane *lane)
{
    return !list_empty(&lane->kept);
}

static bool is_busy(const struct lane *lane)
{
    return lane->pins > 0 || lane->reading || !list_empty(&lane->changes) ||
           !list_empty(&lane->waiters);
}

/* Besides the erasure of a dropped table, the snapshots of a strong one pass the lanes by. */
static bool may_keep(const struct table_state *table)
{
    return !table->d.dropped && table->d.table.mode != TABLE_STRONG;
}

/* Leaves the lane's key in key_scratch. */
static struct lane *find(struct region *region, const struct table_state *table, struct bytes key)
{
    struct buf *scratch = &region->key_scratch;
    buf_reset(scratch);
    buf_append_be32(scratch, table->d.table.number);
    buf_append_bytes(scratch, key);
    struct lane *lane;
    HASH_FIND(hh, region->lanes, scratch->at, (unsigned)scratch->len, lane);
    return lane;
}

struct lane *lane_get(struct region *region, struct table_state *table, struct bytes key)
{
    struct lane *lane = find(region, table, key);
    if (lane) {
        lane->used = true;
        return lane;
    }
    const struct buf *scratch = &region->key_scratch;
    lane = xmalloc(sizeof(*lane) + scratch->len);
    *lane = (struct lane){.table = table, .key_len = (uint32_t)scratch->len};
    memcpy(lane->key, scratch->at, scratch->len);
    list_init(&lane->changes);
    list_init(&lane->waiters);
    list_init(&lane->kept);
    table->lanes++;
    HASH_ADD_KEYPTR(hh, region->lanes, lane->key, lane->key_len, lane);
    return lane;
}

bool lane_durable(struct region *region, const struct table_state *table, struct bytes key,
                  struct bytes *ret_body)
{
    struct lane *lane = find(region, table, key);
    /* What is in flight may be in the store already: only the store can tell. */
    if (!lane || !may_keep(table) || !lane->known || !list_empty(&lane->changes))
        return false;
    lane->used = true;
    *ret_body = buf_view(&lane->base);
    return true;
}

struct bytes lane_key(const struct lane *lane)
{
    return bytes_make(lane->key + 4, lane->key_len - 4);
}

static struct change *newest(const struct lane *lane)
{
    if (list_empty(&lane->changes))
        return NULL;
    return container_of(lane->changes.prev, struct change, in_lane);
}

bool lane_image(const struct lane *lane, struct bytes *ret_body)
{
    const struct change *change = newest(lane);
    if (change) {
        *ret_body = bytes_make(change->batch->bytes.at + change->body_at, change->body_len);
        return true;
    }
    if (!lane->known)
        return false;
    *ret_body = buf_view(&lane->base);
    return true;
}

struct lane_weight lane_weigh(struct bytes body)
{
    struct record record;
    if (body.len == 0 || !record_decode_body(body, &record))
        return (struct lane_weight){0};
    if (record_is_tombstone(&record))
        return (struct lane_weight){.tombstones = 1};
    return (struct lane_weight){.items = 1, .bytes = item_size(record.item)};
}

void lane_undo(struct lane *lane)
{
    struct bytes body;
    bool known = lane_image(lane, &body);
    check(known);
    lane->weight = lane_weigh(body);
}

struct batch *lane_batch(const struct lane *lane)
{
    const struct change *change = newest(lane);
    return change ? change->batch : NULL;
}

void lane_pin(struct lane *lane)
{
    lane->pins++;
}

void lane_unpin(struct region *region, struct lane *lane)
{
    check(lane->pins > 0);
    lane->pins--;
    lane_release(region, lane);
}

static void keep(struct region *region, struct lane *lane)
{
    lane->used = false;
    list_append(&region->kept_lanes, &lane->kept);
    region->kept_bytes += lane_bytes(lane);
}

static void keep_no_more(struct region *region, struct lane *lane)
{
    if (!is_kept(lane))
        return;
    list_remove(&lane->kept);
    region->kept_bytes -= lane_bytes(lane);
}

static void lane_free(struct region *region, struct lane *lane)
{
    check(lane->table->lanes > 0);
    lane->table->lanes--;
    keep_no_more(region, lane);
    HASH_DEL(region->lanes, lane);
    buf_deinit(&lane->base);
    free(lane);
}

/* A busy lane is not kept: it is when it comes to rest. */
static void make_room(struct region *region)
{
    uint32_t chances = CHANCES_MAX;
    while (region->kept_bytes > region->config.item_cache_bytes_max) {
        check(!list_empty(&region->kept_lanes));
        struct lane *lane = container_of(region->kept_lanes.next, struct lane, kept);
        if (is_busy(lane)) {
            keep_no_more(region, lane);
        } else if (lane->used && chances > 0) {
            chances--;
            keep_no_more(region, lane);
            keep(region, lane);
        } else {
            lane_free(region, lane);
        }
    }
}

void lane_release(struct region *region, struct lane *lane)
{
    if (is_busy(lane))
        return;
    if (!lane->known || !may_keep(lane->table) ||
        lane_bytes(lane) > region->config.item_cache_bytes_max) {
        lane_free(region, lane);
        return;
    }
    if (!is_kept(lane))
        keep(region, lane);
    make_room(region);
}

void lane_settle(struct region *region, struct lane *lane, struct bytes body)
{
    check(lane->known);
    size_t before = lane_bytes(lane);
    /* No lane shall be dear because it held something large once. */
    if (lane->base.cap > 2 * body.len + BASE_SPARE_BYTES)
        buf_deinit(&lane->base);
    buf_reset(&lane->base);
    buf_append_bytes(&lane->base, body);
    if (is_kept(lane))
        region->kept_bytes += lane_bytes(lane) - before;
}

void lanes_forget(struct region *region, const struct table_state *table)
{
    list_each(link, spare, &region->kept_lanes)
    {
        struct lane *lane = container_of(link, struct lane, kept);
        if (lane->table == table && !is_busy(lane))
            lane_free(region, lane);
    }
}

void lanes_free(struct region *region)
{
    struct lane *lane, *after;
    HASH_ITER(hh, region->lanes, lane, after)
    {
        lane_free(region, lane);
    }
}

static void wake(struct region *region, struct lane *lane, struct wait *wait, bool broken)
{
    switch (wait->kind) {
    case WAIT_REQUEST: {
        struct request *request = wait->owner;
        if (broken) {
            request_fail(request, API_INTERNAL, read_failure(STORE_CORRUPT));
            request_settle(region, request);
        } else {
            write_key(region, request, wait->index, lane);
        }
        return;
    }
    case WAIT_APPLY:
        apply_lane_known(region, wait->owner, broken);
        return;
    case WAIT_PURGE:
        purge_lane_known(region, wait->owner, broken);
        return;
    case WAIT_STRONG:
        strong_lane_known(region, wait, lane, broken);
        return;
    }
    unreachable();
}

void lane_wait(struct region *region, struct lane *lane, struct wait *wait)
{
    struct bytes body;
    if (lane_image(lane, &body)) {
        wake(region, lane, wait, false);
        return;
    }
    list_append(&lane->waiters, &wait->link);
    if (lane->reading)
        return;
    lane->reading = true;
    uint64_t id;
    read_new(region, READ_LANE, lane, lane->table, &id);
    struct buf *key = &region->key_scratch;
    read_emit_key(region, id, keyspace_item(key, lane->table->d.table.number, lane_key(lane)));
}

void lane_rows(struct region *region, struct lane *lane, const struct region_input *in)
{
    check(lane->reading);
    lane->reading = false;
    bool broken = in->outcome != STORE_OK;
    if (!broken) {
        check(list_empty(&lane->changes));
        lane->known = true;
        lane_settle(region, lane, in->rows->count > 0 ? in->rows->at[0].value : BYTES_NONE);
        lane->weight = lane_weigh(buf_view(&lane->base));
    }
    /* The pin keeps the lane while those who waited come and go. */
    lane_pin(lane);
    struct list waiters;
    list_init(&waiters);
    list_append_all(&waiters, &lane->waiters);
    for (struct list *link; (link = list_take(&waiters));)
        wake(region, lane, container_of(link, struct wait, link), broken);
    lane_unpin(region, lane);
}
