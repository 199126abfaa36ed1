/* SPDX-License-Identifier: Apache-2.0 */
/* Committed entries into items, one by one in the order of the log. An entry waits until its lane
 * is known, for the counts, and for the client whose ReturnValues are about what was there before;
 * all that are ready at the end of a step go into one batch with the index that the items then
 * have.
 *
 *      APPLY -> applies -> lane known -> batch: rows, applied index -> told -> durable: stable
 *                 ^                                                  |
 *                 +---------- void, as the disk was full ------------+
 */

#include "conflict/record.h"
#include "region/core/strong_internal.h"

enum { BATCH_BYTES_MAX = 1024 * 1024 };

static bool payload_fits(const struct strong *strong, const struct strong_payload *payload)
{
    if (payload->kind == STRONG_SEAL)
        return true;
    struct bytes key = payload->key;
    return key.len >= KEYSPACE_ROW_KEY_MIN && key.len <= KEYSPACE_ROW_KEY_MAX &&
           key_partition(key, strong->table->d.table.partition_count) == strong->partition->index;
}

/* Finds out what the key holds. */
static void begin(struct region *region, struct strong *strong, struct strong_apply *apply)
{
    struct strong_payload payload;
    struct bytes from = bytes_make(apply->payload, apply->payload_len);
    if (!apply->noop &&
        (!strong_payload_decode(from, &payload) || !payload_fits(strong, &payload))) {
        /* All replicas see the same bytes, so all of them pass over it. */
        trace_emit(&region->config.trace, TRACE_ERROR,
                   "strong: an entry cannot be read table=%s partition=%u index=%llu",
                   strong->table->d.table.name, strong->partition->index,
                   (unsigned long long)apply->index);
        apply->noop = true;
    }
    if (apply->noop || payload.kind == STRONG_SEAL) {
        apply->known = true;
        return;
    }
    apply->lane = lane_get(region, strong->table, payload.key);
    lane_pin(apply->lane);
    lane_wait(region, apply->lane, &apply->wait);
}

static void add(struct region *region, struct strong *strong, const struct consensus_entry *entry,
                uint64_t token, struct list *to)
{
    struct strong_apply *apply = xmalloc(sizeof(*apply) + entry->payload.len);
    *apply = (struct strong_apply){.index = entry->index,
                                   .term = entry->term,
                                   .token = token,
                                   .origin = entry->origin,
                                   .noop = entry->kind == CONSENSUS_NOOP,
                                   .payload_len = entry->payload.len};
    apply->wait = (struct wait){.kind = WAIT_STRONG, .index = STRONG_WAIT_APPLY, .owner = strong};
    list_init(&apply->wait.link);
    if (entry->payload.len > 0)
        memcpy(apply->payload, entry->payload.at, entry->payload.len);
    list_append(to, &apply->link);
    apply->held = strong->incoming.busy;
    if (!apply->held)
        begin(region, strong, apply);
}

/* Rows of a snapshot were on their way past the lanes. */
void strong_applies_begin(struct region *region, struct strong *strong)
{
    list_each(link, spare, &strong->applies)
    {
        struct strong_apply *apply = container_of(link, struct strong_apply, link);
        if (!apply->held)
            continue;
        apply->held = false;
        begin(region, strong, apply);
    }
}

void strong_apply(struct region *region, struct strong *strong,
                  const struct consensus_effect *effect)
{
    strong->incoming.id = 0; /* a snapshot that was coming in has been given up */
    add(region, strong, &effect->entry, effect->token, &strong->applies);
    strong_mark(region, strong);
}

static void put_row(struct region *region, struct strong *strong, struct batch *batch,
                    const struct strong_apply *apply, const struct strong_payload *payload)
{
    struct bytes body, item = BYTES_NONE;
    bool known = lane_image(apply->lane, &body);
    check(known);
    struct record stored;
    if (body.len > 0 && record_decode_body(body, &stored))
        item = stored.item;
    struct strong_call *call = apply->token ? strong_call_find(region, apply->token) : NULL;
    /* Else the client cannot be told what it asked for, only that nobody knows. */
    if (call && call->kind == STRONG_CALL_WRITE && apply->index > strong->ahead)
        strong_execute(region, call, item);
    strong_image_applied(strong, payload->key, apply->index);
    if (payload->kind == STRONG_DELETE) {
        if (body.len > 0)
            batch_item(region, batch, apply->lane, BYTES_NONE);
        return;
    }
    /* The same bytes in every replica: the log's own order takes the place of a clock. */
    struct record record = {.key = payload->key,
                            .kind = RECORD_PUT,
                            .version = {.hlc = apply->index,
                                        .origin = strong_region_of(strong, apply->origin),
                                        .seq = apply->index},
                            .item = payload->item};
    buf_reset(&region->body_scratch);
    record_encode_body(&record, &region->body_scratch);
    batch_item(region, batch, apply->lane, buf_view(&region->body_scratch));
}

static void apply_one(struct region *region, struct strong *strong, struct batch *batch,
                      struct strong_apply *apply)
{
    struct partition_meta *meta = &strong->partition->meta;
    check(apply->index == meta->applied_index + 1);
    struct strong_payload payload;
    if (!apply->noop) {
        bool decoded =
            strong_payload_decode(bytes_make(apply->payload, apply->payload_len), &payload);
        check(decoded);
        if (payload.kind == STRONG_SEAL) {
            if (!meta->sealed)
                meta->sealed = payload.dissolver;
        } else if (!meta->sealed || planted(PLANT_SEAL_IGNORED)) {
            put_row(region, strong, batch, apply, &payload);
        }
    }
    meta->applied_index = apply->index;
    meta->applied_term = apply->term;
}

static void free_apply(struct region *region, struct strong_apply *apply)
{
    list_remove(&apply->link);
    list_remove(&apply->wait.link);
    if (apply->lane)
        lane_unpin(region, apply->lane);
    free(apply);
}

static struct strong_apply *ready(const struct strong *strong)
{
    if (list_empty(&strong->applies))
        return NULL;
    struct strong_apply *apply = container_of(strong->applies.next, struct strong_apply, link);
    return apply->known ? apply : NULL;
}

static struct batch *drain_batch(struct region *region, struct strong *strong)
{
    struct batch *batch = batch_begin(region, strong->partition, OWNER_STRONG, strong);
    batch->strong_part = STRONG_BATCH_APPLY;
    strong_use(strong);
    struct strong_apply *apply;
    while ((apply = ready(strong)) && batch->bytes.len < BATCH_BYTES_MAX) {
        apply_one(region, strong, batch, apply);
        batch->strong_seq = apply->index;
        if (apply->index > strong->told) {
            strong->told = apply->index;
            strong->told_term = apply->term;
        }
        free_apply(region, apply);
    }
    return batch;
}

void strong_applies_drain(struct region *region, struct strong *strong)
{
    if (strong->behind == STRONG_BEHIND_WAITING)
        return;
    while (ready(strong)) {
        uint64_t before = strong->told;
        struct batch *batch = drain_batch(region, strong);
        if (planted(PLANT_INDEX_APART))
            batch_emit(region, batch_begin(region, strong->partition, OWNER_NONE, NULL));
        batch_emit(region, batch);
        if (planted(PLANT_STABLE_EARLY))
            strong->stable = strong->told;
        if (strong->behind && strong->partition->meta.applied_index >= strong->told) {
            strong->behind = STRONG_UP_TO_DATE;
            strong_evaluations_wake(region, strong);
        }
        if (strong->told > before)
            strong_input(region, strong,
                         &(struct consensus_input){.kind = CONSENSUS_APPLIED,
                                                   .index = strong->told,
                                                   .stable = strong->stable});
    }
}

void strong_apply_durable(struct region *region, struct strong *strong, uint64_t index)
{
    if (index > strong->stable)
        strong->stable = index;
    strong_reads_settle(region, strong);
    if (strong->partition->meta.sealed && index == strong->partition->meta.applied_index)
        group_advance(region, strong->table); /* the last: it may close the group */
}

/* The batch is void, and so are all behind it. What they held is in the log, which is cut only
 * behind what is stable. */
void strong_apply_failed(struct region *region, struct strong *strong)
{
    strong->behind = STRONG_BEHIND_WAITING;
    list_each(link, spare, &strong->applies)
    {
        struct strong_apply *apply = container_of(link, struct strong_apply, link);
        if (apply->index <= strong->told)
            free_apply(region, apply);
    }
    uint64_t at = region->mono_ns + (uint64_t)STRONG_RETRY_MS * NS_PER_MS;
    if (at < strong->retry_ns)
        strong->retry_ns = at;
}

void strong_applies_again(struct region *region, struct strong *strong)
{
    if (strong->behind != STRONG_BEHIND_WAITING)
        return;
    strong->behind = STRONG_BEHIND;
    struct list again;
    list_init(&again);
    for (uint64_t index = strong->partition->meta.applied_index + 1; index <= strong->told;
         index++) {
        struct consensus_entry entry;
        bool there = consensus_entry_at(strong->core, index, &entry);
        check(there);
        add(region, strong, &entry, 0, &again);
    }
    list_append_all(&again, &strong->applies);
    list_append_all(&strong->applies, &again);
    strong_mark(region, strong);
}

void strong_applies_drop(struct region *region, struct strong *strong)
{
    list_each(link, spare, &strong->applies)
    {
        free_apply(region, container_of(link, struct strong_apply, link));
    }
}
