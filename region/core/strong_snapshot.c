/* SPDX-License-Identifier: Apache-2.0 */
/* Items for a member whose log is too far behind. A piece is a run of rows in the order of their
 * keys, and stands for all keys behind the piece before it up to its last row, or to the end of the
 * partition. The receiver puts it in the place of what it has there, at once.
 *
 *   piece   format u8 | sealed be16 | ahead | row count | (row key, body), each length-prefixed
 *
 * The rows are read while writes go on, so they may be newer than the snapshot's index: `ahead` is
 * how new. That is no harm: the log from that index on writes them again, in order, and nothing
 * strong is read, nor anything evaluated, on items that are behind the log; but what a write found
 * before it, for its client, cannot be told there. `sealed` is as of the index. A transfer that
 * ends half-way leaves rows of two ages: what the member lacks is in the log that it is sent next,
 * or it gets a snapshot again. Its applied index moves only with the last piece. */

#include "conflict/record.h"
#include "region/core/strong_internal.h"

enum { PIECE_FORMAT = 1, PIECE_ROWS_MAX = 1024, PIECE_BYTES_MAX = 128 * 1024 };
enum { OWN_BYTES_MAX = 512 * 1024 };

static uint32_t rows_max(const struct region *region)
{
    uint32_t max = region->config.strong.snapshot_rows_max;
    return max > 0 ? max : PIECE_ROWS_MAX;
}

static struct bytes row_key(struct bytes store_key)
{
    check(store_key.len > KEYSPACE_ITEM_PREFIX);
    return bytes_make(store_key.at + KEYSPACE_ITEM_PREFIX, store_key.len - KEYSPACE_ITEM_PREFIX);
}

/* ---- The leader's side ---- */

static struct strong_outgoing *find_outgoing(struct strong *strong, uint64_t id)
{
    for (int i = 0; i < STRONG_OUTGOING; i++) {
        if (strong->outgoing[i].id == id)
            return &strong->outgoing[i];
    }
    return NULL;
}

static struct strong_outgoing *open_outgoing(struct strong *strong, uint64_t id, uint8_t peer)
{
    struct strong_outgoing *outgoing = find_outgoing(strong, id);
    for (int i = 0; i < STRONG_OUTGOING && !outgoing; i++) {
        if (strong->outgoing[i].id == 0 || strong->outgoing[i].peer == peer)
            outgoing = &strong->outgoing[i];
    }
    if (!outgoing || outgoing->id == id)
        return outgoing;
    /* Whether what is stable lies before the seal is not known while that is on its way. */
    if (strong->partition->meta.sealed && !planted(PLANT_SEAL_AHEAD) &&
        strong->stable < strong->partition->meta.applied_index)
        return NULL;
    struct buf after = outgoing->after;
    *outgoing = (struct strong_outgoing){.id = id,
                                         .peer = peer,
                                         .index = strong->stable,
                                         .sealed = strong->partition->meta.sealed,
                                         .after = after};
    return outgoing;
}

static void fail_piece(struct region *region, struct strong *strong, uint64_t id, uint64_t offset)
{
    strong_input(region, strong,
                 &(struct consensus_input){
                     .kind = CONSENSUS_SNAPSHOT_PIECE, .id = id, .offset = offset, .failed = true});
}

void strong_snapshot_read(struct region *region, struct strong *strong, uint64_t id, uint8_t peer,
                          uint64_t offset)
{
    struct strong_outgoing *outgoing =
        offset == 0 ? open_outgoing(strong, id, peer) : find_outgoing(strong, id);
    if (!outgoing || outgoing->index == 0 || (offset != 0 && offset != outgoing->next_offset)) {
        fail_piece(region, strong, id, offset);
        return;
    }
    if (offset == 0)
        buf_reset(&outgoing->after);
    outgoing->offset = offset;
    uint64_t read_id;
    struct read *read = read_new(region, READ_STRONG, strong, strong->table, &read_id);
    read->index = STRONG_READ_OUTGOING + (uint32_t)(outgoing - strong->outgoing);
    read->replicator_id = id;
    strong_use(strong);
    struct bytes begin =
        partition_begin(&region->key_scratch, strong->partition, buf_view(&outgoing->after));
    struct bytes end = partition_end(&region->end_scratch, strong->partition, BYTES_NONE);
    read_emit_range(region, read_id, begin, end, false, rows_max(region), PIECE_BYTES_MAX);
}

void strong_snapshot_close(struct strong *strong, uint64_t id)
{
    struct strong_outgoing *outgoing = find_outgoing(strong, id);
    if (outgoing)
        outgoing->id = 0;
}

void strong_snapshot_rows(struct region *region, struct strong *strong, const struct read *read,
                          const struct region_input *in)
{
    struct strong_outgoing *outgoing = &strong->outgoing[read->index - STRONG_READ_OUTGOING];
    if (outgoing->id != read->replicator_id)
        return;
    if (in->outcome != STORE_OK) {
        fail_piece(region, strong, outgoing->id, outgoing->offset);
        return;
    }
    struct buf piece cleanup(buf_deinit);
    buf_init(&piece);
    buf_append_u8(&piece, PIECE_FORMAT);
    buf_append_be16(&piece,
                    planted(PLANT_SEAL_AHEAD) ? strong->partition->meta.sealed : outgoing->sealed);
    buf_append_varint(&piece, strong->partition->meta.applied_index);
    buf_append_varint(&piece, in->rows->count);
    for (uint32_t i = 0; i < in->rows->count; i++) {
        buf_append_prefixed(&piece, row_key(in->rows->at[i].key));
        buf_append_prefixed(&piece, in->rows->at[i].value);
    }
    if (in->rows->count > 0) {
        buf_reset(&outgoing->after);
        buf_append_bytes(&outgoing->after, row_key(in->rows->at[in->rows->count - 1].key));
    }
    outgoing->next_offset = outgoing->offset + piece.len;
    strong_input(region, strong,
                 &(struct consensus_input){.kind = CONSENSUS_SNAPSHOT_PIECE,
                                           .id = outgoing->id,
                                           .index = outgoing->index,
                                           .offset = outgoing->offset,
                                           .last = !in->rows->more,
                                           .bytes = buf_view(&piece)});
}

/* ---- The receiver's side ---- */

struct piece {
    uint16_t sealed;
    uint64_t ahead, count;
    struct bytes rows;
};

static bool piece_open(struct bytes from, struct piece *ret)
{
    uint8_t format;
    return bytes_take_u8(&from, &format) && format == PIECE_FORMAT &&
           bytes_take_be16(&from, &ret->sealed) && bytes_take_varint(&from, &ret->ahead) &&
           bytes_take_varint(&from, &ret->count) && (ret->rows = from, true);
}

static bool piece_take(struct bytes *rest, struct bytes *ret_key, struct bytes *ret_body)
{
    return bytes_take_prefixed(rest, ret_key) && bytes_take_prefixed(rest, ret_body);
}

/* Rows of this partition, in order, behind what came before; and, unless it is the last piece, at
 * least one. Leaves the last key in `upto`, and in `ahead` how new they are. */
static bool piece_check(struct strong *strong, struct strong_incoming *incoming)
{
    struct piece piece;
    if (!piece_open(buf_view(&incoming->piece), &piece) || (piece.count == 0 && !incoming->last))
        return false;
    struct bytes before = buf_view(&incoming->after), key, body;
    struct record record;
    for (uint64_t i = 0; i < piece.count; i++) {
        if (!piece_take(&piece.rows, &key, &body) || key.len < KEYSPACE_ROW_KEY_MIN ||
            key.len > KEYSPACE_ROW_KEY_MAX || bytes_compare(before, key) >= 0 ||
            key_partition(key, strong->table->d.table.partition_count) !=
                strong->partition->index ||
            !record_decode_body(body, &record) || record.kind != RECORD_PUT ||
            !item_check(record.item))
            return false;
        before = key;
    }
    if (piece.ahead > strong->ahead)
        strong->ahead = piece.ahead;
    buf_reset(&incoming->upto);
    if (!incoming->last)
        buf_append_bytes(&incoming->upto, before);
    return piece.rows.len == 0;
}

static void answer(struct region *region, struct strong *strong, enum consensus_input_kind kind,
                   uint64_t id, uint64_t offset)
{
    strong_input(region, strong,
                 &(struct consensus_input){.kind = kind, .id = id, .offset = offset});
}

void strong_snapshot_write(struct region *region, struct strong *strong,
                           const struct consensus_effect *effect)
{
    struct strong_incoming *incoming = &strong->incoming;
    if (effect->offset == 0)
        buf_reset(&incoming->after);
    incoming->id = effect->id;
    incoming->index = effect->index;
    incoming->term = effect->term;
    incoming->offset = effect->offset;
    incoming->last = effect->last;
    incoming->retry_ns = 0;
    buf_reset(&incoming->at);
    buf_reset(&incoming->piece);
    buf_append_bytes(&incoming->piece, effect->bytes);
    if (!piece_check(strong, incoming)) {
        trace_emit(&region->config.trace, TRACE_ERROR,
                   "strong: a piece of a snapshot is malformed table=%s partition=%u",
                   strong->table->d.table.name, strong->partition->index);
        incoming->id = 0;
        if (!incoming->last)
            answer(region, strong, CONSENSUS_SNAPSHOT_STAGED, effect->id, effect->offset);
        return;
    }
    strong_mark(region, strong);
}

/* Where the part of the piece begins that is not in place yet. */
static struct bytes progress(const struct strong_incoming *incoming)
{
    return buf_view(incoming->at.len > 0 ? &incoming->at : &incoming->after);
}

void strong_install(struct region *region, struct strong *strong)
{
    struct strong_incoming *incoming = &strong->incoming;
    /* What is on its way into the items would not be seen by the read. */
    if (!incoming->id || incoming->busy || incoming->retry_ns || !list_empty(&strong->applies) ||
        strong->behind ||
        (strong->stable < strong->partition->meta.applied_index && !planted(PLANT_INSTALL_AT_ONCE)))
        return;
    incoming->busy = true;
    uint64_t id;
    struct read *read = read_new(region, READ_STRONG, strong, strong->table, &id);
    read->index = STRONG_READ_INCOMING;
    read->replicator_id = incoming->id;
    strong_use(strong);
    struct bytes begin =
        partition_begin(&region->key_scratch, strong->partition, progress(incoming));
    struct bytes end =
        partition_end(&region->end_scratch, strong->partition, buf_view(&incoming->upto));
    read_emit_range(region, id, begin, end, false, rows_max(region), OWN_BYTES_MAX);
}

/* Rows of the piece from where it has got to, up to `upto` (empty: all), merged with our own. */
static void put_rows(struct region *region, struct strong *strong, struct batch *batch,
                     const struct store_rows *own, struct bytes upto)
{
    struct strong_incoming *incoming = &strong->incoming;
    struct piece piece;
    bool opened = piece_open(buf_view(&incoming->piece), &piece);
    check(opened);
    struct bytes from = progress(incoming), key = BYTES_NONE, body = BYTES_NONE;
    uint32_t at = 0;
    for (;;) {
        bool some = piece_take(&piece.rows, &key, &body);
        if (some && bytes_compare(key, from) <= 0)
            continue;
        if (some && upto.len > 0 && bytes_compare(key, upto) > 0)
            some = false;
        /* Own rows before it are not in the snapshot. */
        while (at < own->count && (!some || bytes_compare(row_key(own->at[at].key), key) < 0)) {
            if (!planted(PLANT_INSTALL_KEEPS))
                batch_row(region, batch, row_key(own->at[at].key), own->at[at].value, BYTES_NONE);
            at++;
        }
        if (!some)
            return;
        bool same = at < own->count && bytes_equal(row_key(own->at[at].key), key);
        batch_row(region, batch, key, same ? own->at[at].value : BYTES_NONE, body);
        at += same;
    }
}

void strong_install_rows(struct region *region, struct strong *strong, const struct read *read,
                         const struct region_input *in)
{
    struct strong_incoming *incoming = &strong->incoming;
    incoming->busy = false;
    strong_mark(region, strong);
    if (incoming->id != read->replicator_id) { /* given up; another may have begun */
        strong_applies_begin(region, strong);
        return;
    }
    static const struct store_rows nothing = {0};
    /* Rows that cannot be read are replaced if the snapshot has them. */
    const struct store_rows *own = in->outcome == STORE_OK ? in->rows : &nothing;
    struct bytes upto =
        own->more ? row_key(own->at[own->count - 1].key) : buf_view(&incoming->upto);
    struct batch *batch = batch_begin(region, strong->partition, OWNER_STRONG, strong);
    batch->strong_part = STRONG_BATCH_INSTALL;
    batch->strong_seq = incoming->id;
    put_rows(region, strong, batch, own, upto);
    lanes_forget(region, strong->table); /* these rows do not go by the lanes */
    incoming->piece_done = !own->more;
    if (incoming->piece_done && incoming->last) {
        struct piece piece;
        bool opened = piece_open(buf_view(&incoming->piece), &piece);
        check(opened);
        strong->partition->meta.applied_index = incoming->index;
        strong->partition->meta.applied_term = incoming->term;
        strong->partition->meta.sealed = piece.sealed;
    }
    if (own->more) {
        struct bytes last = upto;
        buf_reset(&region->body_scratch);
        buf_append_bytes(&region->body_scratch, last);
        buf_reset(&incoming->at);
        buf_append_bytes(&incoming->at, buf_view(&region->body_scratch));
    }
    incoming->busy = true;
    strong_use(strong);
    batch_emit(region, batch);
}

void strong_install_durable(struct region *region, struct strong *strong, uint64_t id, bool durable)
{
    struct strong_incoming *incoming = &strong->incoming;
    incoming->busy = false;
    strong_applies_begin(region, strong);
    if (incoming->id != id)
        return;
    if (!durable) {
        buf_reset(&incoming->at);
        incoming->retry_ns = region->mono_ns + (uint64_t)STRONG_RETRY_MS * NS_PER_MS;
        return;
    }
    if (!incoming->piece_done)
        return;
    incoming->id = 0;
    buf_reset(&incoming->at);
    buf_reset(&incoming->after);
    buf_append_bytes(&incoming->after, buf_view(&incoming->upto));
    if (!incoming->last) {
        answer(region, strong, CONSENSUS_SNAPSHOT_STAGED, id,
               incoming->offset + incoming->piece.len);
        return;
    }
    strong->told = strong->stable = strong->stable_told = incoming->index;
    strong->told_term = incoming->term;
    answer(region, strong, CONSENSUS_SNAPSHOT_INSTALLED, id, 0);
    strong_reads_settle(region, strong);
}
