/* SPDX-License-Identifier: Apache-2.0 */
/* A lane is one key that somebody is busy with: a local write, a peer's record, a purge. It answers
 * "what does this key hold now?", writes in flight included, and it makes them run in order.
 *
 *      lane: base (what is durable, once it is known) <- change <- change <- change
 *                                                        in flight; the last is what the key holds
 *
 * Nothing is written through a lane before it is known, so the answer to its READ cannot be
 * overtaken. A key with a write in flight needs no READ at all. A pin keeps the base up to date for
 * somebody who must know many keys at one instant, without holding up the others. A lane that
 * nobody needs is freed; the next one reads again. */

#include "region/core/region_internal.h"
#include "region/core/strong.h"

struct lane *lane_get(struct region *region, struct table_state *table, struct bytes key)
{
    struct buf *scratch = &region->key_scratch;
    buf_reset(scratch);
    buf_append_be32(scratch, table->d.table.number);
    buf_append_bytes(scratch, key);
    struct lane *lane;
    HASH_FIND(hh, region->lanes, scratch->at, (unsigned)scratch->len, lane);
    if (lane)
        return lane;
    lane = xmalloc(sizeof(*lane) + scratch->len);
    *lane = (struct lane){.table = table, .key_len = (uint32_t)scratch->len};
    memcpy(lane->key, scratch->at, scratch->len);
    list_init(&lane->changes);
    list_init(&lane->waiters);
    HASH_ADD_KEYPTR(hh, region->lanes, lane->key, lane->key_len, lane);
    return lane;
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

void lane_release(struct region *region, struct lane *lane)
{
    if (lane->pins > 0 || lane->reading || !list_empty(&lane->changes) ||
        !list_empty(&lane->waiters))
        return;
    HASH_DEL(region->lanes, lane);
    buf_deinit(&lane->base);
    free(lane);
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
        buf_reset(&lane->base);
        if (in->rows->count > 0)
            buf_append_bytes(&lane->base, in->rows->at[0].value);
        lane->known = true;
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
