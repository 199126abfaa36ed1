/* SPDX-License-Identifier: Apache-2.0 */
/* Between the structs of replicator_wire.h and protobuf-c's. Everything is allocated in the step's
 * arena, through an allocator that refuses beyond a budget; protobuf-c then reports a failed parse,
 * which to us is a bad frame like any other. */

#include "replicator/replicator_wire.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "replicator/replicator.pb-c.h"

/* What protoc-c makes of a package name, cut short. */
#define PB(name) Tidemark__Replication__V1__##name
#define PB_INIT(name) TIDEMARK__REPLICATION__V1__##name##__INIT
#define PB_IS(name) TIDEMARK__REPLICATION__V1__PEER_MESSAGE__BODY_##name

static ProtobufCBinaryData binary(struct bytes from)
{
    return (ProtobufCBinaryData){.len = from.len, .data = (uint8_t *)from.at};
}

static struct bytes view(ProtobufCBinaryData from)
{
    return bytes_make(from.data, from.len);
}

/* ---- Encoding ---- */

static ProtobufCBinaryData encode_vv(const struct vv *vv, struct arena *arena)
{
    cleanup(buf_deinit) struct buf encoded;
    buf_init(&encoded);
    vv_encode(vv, &encoded);
    return binary(bytes_copy(arena, buf_view(&encoded)));
}

static PB(Place) * encode_place(const struct wire_place *place, struct arena *arena)
{
    PB(Place) *to = arena_alloc(arena, sizeof(*to));
    *to = (PB(Place))PB_INIT(PLACE);
    to->group_id = binary(bytes_make(place->group_id, WIRE_GROUP_ID_LEN));
    to->partition = place->partition;
    return to;
}

static PB(Position) * *encode_positions(const struct wire_message *from, struct arena *arena)
{
    bool vectors = from->kind == WIRE_RESUME || from->kind == WIRE_ACK;
    PB(Position) **list = arena_array(arena, PB(Position) *, from->position_count);
    for (uint32_t i = 0; i < from->position_count; i++) {
        const struct wire_position *position = &from->positions[i];
        PB(Position) *to = arena_alloc(arena, sizeof(*to));
        *to = (PB(Position))PB_INIT(POSITION);
        to->place = encode_place(&position->place, arena);
        if (vectors)
            to->vector = encode_vv(&position->vv, arena);
        to->have = position->have;
        to->stamped = position->stamped;
        to->sent = position->sent;
        to->snapshot_id = position->snapshot_id;
        to->snapshot_chunks = position->snapshot_chunks;
        to->round = position->round;
        list[i] = to;
    }
    return list;
}

static struct bytes pack(PB(PeerMessage) * message, struct arena *arena)
{
    size_t len = tidemark__replication__v1__peer_message__get_packed_size(message);
    uint8_t *to = arena_alloc(arena, len);
    check(tidemark__replication__v1__peer_message__pack(message, to) == len);
    return bytes_make(to, len);
}

static struct bytes encode_chunk(const struct wire_message *from, struct arena *arena)
{
    PB(PeerMessage) message = PB_INIT(PEER_MESSAGE);
    PB(SnapshotChunk) chunk = PB_INIT(SNAPSHOT_CHUNK);
    message.body_case = PB_IS(SNAPSHOT_CHUNK);
    message.snapshot_chunk = &chunk;
    chunk.place = encode_place(&from->place, arena);
    chunk.snapshot_id = from->snapshot_id;
    chunk.index = from->index;
    chunk.begin = binary(from->begin);
    chunk.end = binary(from->end);
    chunk.last = from->last;
    chunk.vector = encode_vv(&from->vv, arena);
    chunk.count = from->record_count;
    chunk.crc32c = crc32c(0, from->records);
    chunk.records = binary(from->records);
    chunk.epoch = from->epoch;
    return pack(&message, arena);
}

static struct bytes encode_batch(const struct wire_message *from, struct arena *arena)
{
    PB(PeerMessage) message = PB_INIT(PEER_MESSAGE);
    PB(Batch) batch = PB_INIT(BATCH);
    message.body_case = PB_IS(BATCH);
    message.batch = &batch;
    batch.place = encode_place(&from->place, arena);
    batch.first_seq = from->first_seq;
    batch.count = from->record_count;
    batch.crc32c = crc32c(0, from->records);
    batch.records = binary(from->records);
    return pack(&message, arena);
}

/* OFFER, RESUME, ACK and HEARTBEAT. */
static struct bytes encode_list(const struct wire_message *from, struct arena *arena)
{
    PB(PeerMessage) message = PB_INIT(PEER_MESSAGE);
    PB(Offer) offer = PB_INIT(OFFER);
    PB(Resume) resume = PB_INIT(RESUME);
    PB(Ack) ack = PB_INIT(ACK);
    PB(Heartbeat) heartbeat = PB_INIT(HEARTBEAT);
    PB(Position) **positions = encode_positions(from, arena);
    if (from->kind == WIRE_OFFER) {
        message.body_case = PB_IS(OFFER);
        message.offer = &offer;
        offer.positions = positions;
        offer.n_positions = from->position_count;
    } else if (from->kind == WIRE_RESUME) {
        message.body_case = PB_IS(RESUME);
        message.resume = &resume;
        resume.positions = positions;
        resume.n_positions = from->position_count;
    } else if (from->kind == WIRE_ACK) {
        message.body_case = PB_IS(ACK);
        message.ack = &ack;
        ack.window_bytes = from->window_bytes;
        ack.consumed_bytes = from->consumed_bytes;
        ack.positions = positions;
        ack.n_positions = from->position_count;
        ack.want_tables = from->want_tables;
    } else {
        check(from->kind == WIRE_HEARTBEAT);
        message.body_case = PB_IS(HEARTBEAT);
        message.heartbeat = &heartbeat;
        heartbeat.promise = from->promise;
        heartbeat.sent_bytes = from->sent_bytes;
        heartbeat.positions = positions;
        heartbeat.n_positions = from->position_count;
        heartbeat.partial = from->partial;
        heartbeat.tables_crc32c = from->tables_crc;
    }
    return pack(&message, arena);
}

struct bytes wire_encode(const struct wire_message *from, struct arena *arena)
{
    PB(PeerMessage) message = PB_INIT(PEER_MESSAGE);
    PB(Hello) hello = PB_INIT(HELLO);
    PB(Tables) tables = PB_INIT(TABLES);
    PB(SnapshotOffer) offer = PB_INIT(SNAPSHOT_OFFER);
    PB(SnapshotAccept) accept = PB_INIT(SNAPSHOT_ACCEPT);
    switch (from->kind) {
    case WIRE_HELLO:
        message.body_case = PB_IS(HELLO);
        message.hello = &hello;
        hello.protocol = from->protocol;
        hello.region = from->region;
        return pack(&message, arena);
    case WIRE_TABLES:
        message.body_case = PB_IS(TABLES);
        message.tables = &tables;
        tables.part = binary(from->part);
        tables.more = from->more;
        return pack(&message, arena);
    case WIRE_SNAPSHOT_OFFER:
        message.body_case = PB_IS(SNAPSHOT_OFFER);
        message.snapshot_offer = &offer;
        offer.place = encode_place(&from->place, arena);
        offer.snapshot_id = from->snapshot_id;
        return pack(&message, arena);
    case WIRE_SNAPSHOT_ACCEPT:
        message.body_case = PB_IS(SNAPSHOT_ACCEPT);
        message.snapshot_accept = &accept;
        accept.place = encode_place(&from->place, arena);
        accept.snapshot_id = from->snapshot_id;
        return pack(&message, arena);
    case WIRE_BATCH:
        return encode_batch(from, arena);
    case WIRE_SNAPSHOT_CHUNK:
        return encode_chunk(from, arena);
    case WIRE_OFFER:
    case WIRE_RESUME:
    case WIRE_ACK:
    case WIRE_HEARTBEAT:
        return encode_list(from, arena);
    }
    unreachable();
}

/* ---- Decoding ---- */

struct budget {
    struct arena *arena;
    uint64_t left;
};

static void *budget_alloc(void *data, size_t size)
{
    struct budget *budget = data;
    if (size > budget->left)
        return NULL;
    budget->left -= size;
    return arena_alloc(budget->arena, size);
}

/* The arena frees. */
static void budget_free(void *data, void *at)
{
    (void)data;
    (void)at;
}

static bool decode_place(const PB(Place) * from, struct wire_place *ret)
{
    if (!from || from->group_id.len != WIRE_GROUP_ID_LEN)
        return false;
    memcpy(ret->group_id, from->group_id.data, WIRE_GROUP_ID_LEN);
    ret->partition = from->partition;
    return true;
}

static bool decode_vv(ProtobufCBinaryData from, struct vv *ret)
{
    struct bytes rest = view(from);
    return vv_decode(&rest, ret) && rest.len == 0;
}

static bool decode_positions(PB(Position) *const *list, size_t count, struct budget *budget,
                             struct wire_message *to)
{
    bool vectors = to->kind == WIRE_RESUME || to->kind == WIRE_ACK;
    to->position_count = (uint32_t)count;
    to->positions = budget_alloc(budget, count * sizeof(to->positions[0]));
    if (!to->positions)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct wire_position *position = &to->positions[i];
        *position = (struct wire_position){.have = list[i]->have,
                                           .stamped = list[i]->stamped,
                                           .sent = list[i]->sent,
                                           .snapshot_id = list[i]->snapshot_id,
                                           .snapshot_chunks = list[i]->snapshot_chunks,
                                           .round = list[i]->round};
        if (!decode_place(list[i]->place, &position->place))
            return false;
        if (vectors && !decode_vv(list[i]->vector, &position->vv))
            return false;
    }
    return true;
}

static bool decode_batch(const PB(Batch) * from, struct wire_message *to)
{
    to->kind = WIRE_BATCH;
    to->first_seq = from->first_seq;
    to->record_count = from->count;
    to->records = view(from->records);
    return decode_place(from->place, &to->place) && from->first_seq > 0 && from->count > 0 &&
           from->first_seq <= UINT64_MAX - from->count && crc32c(0, to->records) == from->crc32c;
}

static bool decode_chunk(const PB(SnapshotChunk) * from, struct wire_message *to)
{
    to->kind = WIRE_SNAPSHOT_CHUNK;
    to->snapshot_id = from->snapshot_id;
    to->index = from->index;
    to->begin = view(from->begin);
    to->end = view(from->end);
    to->last = from->last;
    to->epoch = from->epoch;
    to->record_count = from->count;
    to->records = view(from->records);
    return decode_place(from->place, &to->place) && from->snapshot_id > 0 &&
           from->epoch <= VERSION_EPOCH_MAX && from->last == (to->end.len == 0) &&
           decode_vv(from->vector, &to->vv) && crc32c(0, to->records) == from->crc32c;
}

static bool decode_message(const PB(PeerMessage) * from, struct budget *budget,
                           struct wire_message *to)
{
    switch (from->body_case) {
    case PB_IS(HELLO):
        to->kind = WIRE_HELLO;
        to->protocol = from->hello->protocol;
        to->region = from->hello->region;
        return true;
    case PB_IS(TABLES):
        to->kind = WIRE_TABLES;
        to->part = view(from->tables->part);
        to->more = from->tables->more;
        return true;
    case PB_IS(OFFER):
        to->kind = WIRE_OFFER;
        return decode_positions(from->offer->positions, from->offer->n_positions, budget, to);
    case PB_IS(RESUME):
        to->kind = WIRE_RESUME;
        return decode_positions(from->resume->positions, from->resume->n_positions, budget, to);
    case PB_IS(BATCH):
        return decode_batch(from->batch, to);
    case PB_IS(ACK):
        to->kind = WIRE_ACK;
        to->window_bytes = from->ack->window_bytes;
        to->consumed_bytes = from->ack->consumed_bytes;
        to->want_tables = from->ack->want_tables;
        return decode_positions(from->ack->positions, from->ack->n_positions, budget, to);
    case PB_IS(HEARTBEAT):
        to->kind = WIRE_HEARTBEAT;
        to->promise = from->heartbeat->promise;
        to->sent_bytes = from->heartbeat->sent_bytes;
        to->partial = from->heartbeat->partial;
        to->tables_crc = from->heartbeat->tables_crc32c;
        return decode_positions(from->heartbeat->positions, from->heartbeat->n_positions, budget,
                                to);
    case PB_IS(SNAPSHOT_OFFER):
        to->kind = WIRE_SNAPSHOT_OFFER;
        to->snapshot_id = from->snapshot_offer->snapshot_id;
        return to->snapshot_id > 0 && decode_place(from->snapshot_offer->place, &to->place);
    case PB_IS(SNAPSHOT_ACCEPT):
        to->kind = WIRE_SNAPSHOT_ACCEPT;
        to->snapshot_id = from->snapshot_accept->snapshot_id;
        return to->snapshot_id > 0 && decode_place(from->snapshot_accept->place, &to->place);
    case PB_IS(SNAPSHOT_CHUNK):
        return decode_chunk(from->snapshot_chunk, to);
    case TIDEMARK__REPLICATION__V1__PEER_MESSAGE__BODY__NOT_SET:
    case _TIDEMARK__REPLICATION__V1__PEER_MESSAGE__BODY__CASE_IS_INT_SIZE:
        break;
    }
    return false;
}

bool wire_decode(struct bytes from, uint64_t memory_max, struct arena *arena,
                 struct wire_message *ret)
{
    struct budget budget = {arena, memory_max};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    /* protobuf-c reads from the pointer even when there is nothing to read. */
    const uint8_t *at = from.len ? from.at : (const uint8_t *)"";
    PB(PeerMessage) *message =
        tidemark__replication__v1__peer_message__unpack(&allocator, from.len, at);
    struct wire_message decoded = {0};
    if (!message || !decode_message(message, &budget, &decoded))
        return false;
    *ret = decoded;
    return true;
}

/* ---- Records inside BATCH and SNAPSHOT_CHUNK ---- */

void wire_record_append(struct bytes key, struct bytes body, struct buf *to)
{
    buf_append_prefixed(to, key);
    buf_append_prefixed(to, body);
}

bool wire_record_take(struct bytes *from, struct record *ret, struct bytes *ret_body)
{
    struct bytes rest = *from;
    struct bytes key, body;
    struct record record;
    if (!bytes_take_prefixed(&rest, &key) || key.len == 0 || !bytes_take_prefixed(&rest, &body) ||
        !record_decode_body(body, &record))
        return false;
    record.key = key;
    *from = rest;
    *ret = record;
    *ret_body = body;
    return true;
}
