/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a consensus group: their codec, and the judgement of what a start finds of them.
 *
 * The judge has one question: was there ever more than I can read? It trusts what one write brings
 * with another. A log row vouches for the log below it, and for what its write knew to be durable;
 * a hard state that has seen a start came with a base; an entry came after the hard state of its
 * term; slots alternate. Whatever contradicts this has lost something, and a member that may have
 * lost something must say so: counted as whole, it could lose what two members acknowledged. */

#include "region/core/strong_rows.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "conflict/region_id.h"
#include "region/core/item.h"

enum {
    ROW_FORMAT = 1,
    CHECKSUM_LEN = 4,
    ROW_KEY_MIN = 8 + 2,                                                  /* hash, terminator */
    ROW_KEY_MAX = 8 + 2 * ITEM_PARTITION_KEY_MAX + 2 + ITEM_SORT_KEY_MAX, /* every byte escaped */
    /* Of a row without its payload: the numbers that it may have. */
    ROW_LEN_MAX = CHECKSUM_LEN + 8 * VARINT_LEN_MAX
};

/* As frames have it (consensus_wire.c): the core's sums must not overflow. */
static const uint64_t index_max = UINT64_MAX / 4;

/* ---- Codec ---- */

static size_t row_begin(struct buf *to, size_t payload_len)
{
    size_t start = to->len;
    buf_reserve(to, ROW_LEN_MAX + payload_len);
    buf_append_be32(to, 0);
    buf_append_u8(to, ROW_FORMAT);
    return start;
}

/* before: the checksum of what is not in the row. */
static void row_end(struct buf *to, size_t start, uint32_t before)
{
    uint8_t *at = to->at + start;
    uint32_t sum = crc32c(before, bytes_make(at + CHECKSUM_LEN, to->len - start - CHECKSUM_LEN));
    for (int i = 0; i < CHECKSUM_LEN; i++)
        at[i] = (uint8_t)(sum >> (24 - 8 * i));
}

static bool row_open(struct bytes *from, uint32_t before)
{
    uint32_t sum;
    uint8_t format;
    return bytes_take_be32(from, &sum) && crc32c(before, *from) == sum &&
           bytes_take_u8(from, &format) && format == ROW_FORMAT;
}

static bool take_below(struct bytes *from, uint64_t max, uint64_t *ret)
{
    return bytes_take_varint(from, ret) && *ret <= max;
}

void strong_hard_encode(const struct consensus_hard *hard, uint64_t generation, struct buf *to)
{
    check(hard->voted_for <= CONSENSUS_NOBODY);
    size_t start = row_begin(to, 0);
    buf_append_varint(to, generation);
    buf_append_varint(to, hard->term);
    buf_append_varint(to, hard->voted_for);
    buf_append_varint(to, hard->incarnation);
    buf_append_varint(to, hard->boot);
    buf_append_varint(to, hard->standing);
    buf_append_varint(to, hard->recover_upto);
    row_end(to, start, 0);
}

bool strong_hard_decode(struct bytes from, struct consensus_hard *ret, uint64_t *ret_generation)
{
    struct consensus_hard hard = {0};
    uint64_t generation, vote, standing;
    if (!row_open(&from, 0) || !take_below(&from, index_max, &generation) ||
        !take_below(&from, index_max, &hard.term) || !take_below(&from, CONSENSUS_NOBODY, &vote) ||
        !bytes_take_varint(&from, &hard.incarnation) || !bytes_take_varint(&from, &hard.boot) ||
        !take_below(&from, CONSENSUS_REBUILDING, &standing) ||
        !bytes_take_varint(&from, &hard.recover_upto) || from.len)
        return false;
    hard.voted_for = (uint8_t)vote;
    hard.standing = (enum consensus_standing)standing;
    *ret = hard;
    *ret_generation = generation;
    return true;
}

void strong_base_encode(uint64_t index, uint64_t term, struct buf *to)
{
    size_t start = row_begin(to, 0);
    buf_append_varint(to, index);
    buf_append_varint(to, term);
    row_end(to, start, 0);
}

bool strong_base_decode(struct bytes from, uint64_t *ret_index, uint64_t *ret_term)
{
    uint64_t index, term;
    if (!row_open(&from, 0) || !take_below(&from, index_max, &index) ||
        !take_below(&from, index_max, &term) || from.len)
        return false;
    *ret_index = index;
    *ret_term = term;
    return true;
}

static uint32_t sum_of_index(uint64_t index)
{
    uint8_t at[8];
    be64_encode(at, index);
    return crc32c(0, bytes_make(at, sizeof(at)));
}

void strong_log_encode(const struct consensus_entry *entry, uint64_t synced_upto, struct buf *to)
{
    check(entry->index > 0);
    check(entry->origin < CONSENSUS_MEMBERS);
    /* What the write cuts off no longer counts as durable. */
    if (synced_upto >= entry->index)
        synced_upto = entry->index - 1;
    size_t start = row_begin(to, entry->payload.len);
    buf_append_varint(to, synced_upto);
    buf_append_varint(to, entry->term);
    buf_append_varint(to, entry->kind);
    buf_append_varint(to, entry->origin);
    buf_append_varint(to, entry->incarnation);
    buf_append_varint(to, entry->seq);
    buf_append_bytes(to, entry->payload);
    row_end(to, start, sum_of_index(entry->index));
}

bool strong_log_decode(uint64_t index, struct bytes from, struct consensus_entry *ret,
                       uint64_t *ret_synced_upto)
{
    struct consensus_entry entry = {.index = index};
    uint64_t synced_upto, kind, origin;
    if (index == 0 || index > index_max || !row_open(&from, sum_of_index(index)) ||
        !take_below(&from, index - 1, &synced_upto) || !take_below(&from, index_max, &entry.term) ||
        entry.term == 0 || !take_below(&from, CONSENSUS_WRITE, &kind) ||
        !take_below(&from, CONSENSUS_MEMBERS - 1, &origin) ||
        !bytes_take_varint(&from, &entry.incarnation) || !bytes_take_varint(&from, &entry.seq))
        return false;
    entry.kind = (enum consensus_entry_kind)kind;
    entry.origin = (uint8_t)origin;
    entry.payload = from;
    *ret = entry;
    *ret_synced_upto = synced_upto;
    return true;
}

void strong_payload_encode(const struct strong_payload *payload, struct buf *to)
{
    buf_reserve(to, 4 * VARINT_LEN_MAX + payload->key.len + payload->item.len);
    buf_append_u8(to, ROW_FORMAT);
    buf_append_varint(to, payload->kind);
    buf_append_prefixed(to, payload->key);
    switch (payload->kind) {
    case STRONG_PUT:
        check(payload->item.len > 0);
        buf_append_bytes(to, payload->item);
        return;
    case STRONG_DELETE:
        return;
    case STRONG_SEAL:
        check(payload->key.len == 0);
        buf_append_varint(to, payload->dissolver);
        return;
    }
    unreachable();
}

static bool row_key_check(struct bytes key)
{
    return key.len >= ROW_KEY_MIN && key.len <= ROW_KEY_MAX;
}

bool strong_payload_decode(struct bytes from, struct strong_payload *ret)
{
    struct strong_payload payload = {0};
    uint8_t format, kind;
    uint64_t dissolver;
    if (!bytes_take_u8(&from, &format) || format != ROW_FORMAT || !bytes_take_u8(&from, &kind) ||
        kind < STRONG_PUT || kind > STRONG_SEAL || !bytes_take_prefixed(&from, &payload.key))
        return false;
    payload.kind = (enum strong_payload_kind)kind;
    switch (payload.kind) {
    case STRONG_PUT:
        if (!row_key_check(payload.key) || !item_check(from) || item_size(from) > ITEM_SIZE_MAX)
            return false;
        payload.item = from;
        break;
    case STRONG_DELETE:
        if (!row_key_check(payload.key) || from.len)
            return false;
        break;
    case STRONG_SEAL:
        if (payload.key.len || !bytes_take_varint(&from, &dissolver) || from.len ||
            !region_id_valid(dissolver))
            return false;
        payload.dissolver = (uint16_t)dissolver;
        break;
    }
    *ret = payload;
    return true;
}

/* ---- What a start finds ---- */

void strong_found_init(struct strong_found *found)
{
    *found = (struct strong_found){0};
    arena_init(&found->arena);
}

void strong_found_deinit(struct strong_found *found)
{
    free(found->entries);
    arena_deinit(&found->arena);
    *found = (struct strong_found){0};
}

void strong_found_hard(struct strong_found *found, struct bytes value)
{
    struct consensus_hard hard;
    uint64_t generation;
    if (!strong_hard_decode(value, &hard, &generation)) {
        found->hard_damaged = true;
        return;
    }
    found->hard_count++;
    uint64_t before = found->generation;
    if (found->hard_found && before + 1 != generation && generation + 1 != before)
        found->hard_damaged = true;
    if (found->hard_found && generation < before)
        return;
    found->hard_found = true;
    found->hard = hard;
    found->generation = generation;
}

void strong_found_base(struct strong_found *found, struct bytes value)
{
    if (strong_base_decode(value, &found->base_index, &found->base_term))
        found->base_found = true;
    else
        found->base_damaged = true;
}

static void found_push(struct strong_found *found, const struct consensus_entry *entry)
{
    if (found->entry_count == found->entry_cap) {
        check(found->entry_cap < UINT32_MAX / 2);
        found->entry_cap = found->entry_cap ? 2 * found->entry_cap : 64;
        found->entries = xrealloc(found->entries, found->entry_cap * sizeof(*found->entries));
    }
    struct consensus_entry *to = &found->entries[found->entry_count++];
    *to = *entry;
    to->payload = bytes_copy(&found->arena, entry->payload);
    found->log_bytes += entry->payload.len;
}

void strong_found_log(struct strong_found *found, uint64_t index, struct bytes value)
{
    struct consensus_entry entry;
    uint64_t synced_upto;
    check(index > found->last_index || found->last_index == 0);
    found->last_index = index;
    if (!strong_log_decode(index, value, &entry, &synced_upto)) {
        found->damaged = true;
        return;
    }
    if (synced_upto > found->synced_upto)
        found->synced_upto = synced_upto;
    found_push(found, &entry);
}

/* The base came with the first start's hard state and was only ever replaced: without it, nobody
 * knows where the log began or, as it may have been empty, how far it went. */
static bool base_lost(const struct strong_found *found)
{
    return found->base_damaged || (!found->base_found && found->hard_found && found->hard.boot > 0);
}

static bool anything_but_hard(const struct strong_found *found)
{
    return found->base_found || found->base_damaged || found->last_index > 0;
}

/* Whether the hard state is the newest there was. Each leaves the one before in the other slot;
 * only the one that the group was made with is alone, and only until the first start has written.
 */
static bool hard_is_newest(const struct strong_found *found)
{
    if (!found->hard_found || found->hard_damaged || found->base_term > found->hard.term)
        return false;
    for (uint32_t i = 0; i < found->entry_count; i++) {
        if (found->entries[i].term > found->hard.term)
            return false;
    }
    return found->hard_count == 2 || (found->hard_count == 1 && found->generation <= 1 &&
                                      found->hard.boot == 0 && !anything_but_hard(found));
}

void strong_found_judge(struct strong_found *found, struct consensus_start *ret)
{
    bool lost = base_lost(found);
    uint64_t last = lost ? 0 : found->base_index;
    uint64_t last_term = lost ? 0 : found->base_term;
    ret->base_index = last;
    ret->base_term = last_term;
    uint32_t from = 0;
    while (from < found->entry_count && found->entries[from].index <= last)
        from++;
    uint32_t to = from;
    while (!lost && to < found->entry_count && found->entries[to].index == last + 1 &&
           found->entries[to].term >= last_term) {
        last++;
        last_term = found->entries[to++].term;
    }
    ret->entries = found->entries ? found->entries + from : NULL;
    ret->entry_count = to - from;
    /* What a row vouches for is below itself, so the last one says how far the log once went. */
    check(found->synced_upto <= found->last_index);
    uint64_t end = found->last_index;
    ret->damaged_upto = lost || found->unreadable ? UINT64_MAX : end > last ? end : 0;
    ret->hard = found->hard;
    ret->found = hard_is_newest(found);
    /* A new disk has nothing at all. */
    if (!ret->found && (found->hard_found || anything_but_hard(found)))
        found->hard_damaged = true;
}
