/* SPDX-License-Identifier: Apache-2.0 */
/* Between struct consensus_message and protobuf-c's. Everything is allocated in the step's arena,
 * through an allocator that refuses beyond a budget; protobuf-c then reports a failed parse, which
 * to us is a bad frame like any other. */

#include "witness/consensus_wire.h"

#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "witness/consensus.pb-c.h"

/* What protoc-c makes of a package name, cut short. */
#define PB(name) Tidemark__Consensus__V1__##name
#define PB_INIT(name) TIDEMARK__CONSENSUS__V1__##name##__INIT
#define PB_IS(name) TIDEMARK__CONSENSUS__V1__FRAME__BODY_##name

enum { CRC_LEN = 4 };
/* No index comes near it; beyond, sums could overflow. */
static const uint64_t index_max = UINT64_MAX / 4;

const char *consensus_message_name(enum consensus_message_kind kind)
{
    static const char *const names[] = {
#define MESSAGE(enumerator, name) [MESSAGE_##enumerator] = name,
        CONSENSUS_MESSAGE_MAP(MESSAGE)
#undef MESSAGE
    };
    check((unsigned)kind < array_len(names));
    return names[kind];
}

static ProtobufCBinaryData binary(struct bytes from)
{
    return (ProtobufCBinaryData){.len = from.len, .data = (uint8_t *)from.at};
}

static struct bytes view(ProtobufCBinaryData from)
{
    return bytes_make(from.data, from.len);
}

/* ---- Encoding ---- */

static struct bytes pack(PB(Frame) * frame, struct arena *arena)
{
    size_t len = tidemark__consensus__v1__frame__get_packed_size(frame);
    uint8_t *to = arena_alloc(arena, CRC_LEN + len);
    check(tidemark__consensus__v1__frame__pack(frame, to + CRC_LEN) == len);
    uint32_t crc = crc32c(0, bytes_make(to + CRC_LEN, len));
    for (int i = 0; i < CRC_LEN; i++)
        to[i] = (uint8_t)(crc >> (24 - 8 * i));
    return bytes_make(to, CRC_LEN + len);
}

static struct bytes encode_append(const struct consensus_message *from, PB(Frame) * frame,
                                  struct arena *arena)
{
    PB(Append) to = PB_INIT(APPEND);
    PB(Entry) *entries = arena_array(arena, PB(Entry), from->entry_count);
    PB(Entry) **list = arena_array(arena, PB(Entry) *, from->entry_count);
    for (uint32_t i = 0; i < from->entry_count; i++) {
        const struct consensus_entry *entry = &from->entries[i];
        entries[i] = (PB(Entry))PB_INIT(ENTRY);
        entries[i].term = entry->term;
        entries[i].kind = entry->kind;
        entries[i].origin = entry->origin;
        entries[i].incarnation = entry->incarnation;
        entries[i].seq = entry->seq;
        entries[i].payload = binary(entry->payload);
        list[i] = &entries[i];
    }
    to.prev_index = from->prev_index;
    to.prev_term = from->prev_term;
    to.entries = list;
    to.n_entries = from->entry_count;
    to.commit = from->commit;
    to.leader_durable = from->leader_durable;
    to.all_durable = from->all_durable;
    to.last_index = from->last_index;
    to.round = from->round;
    to.known_incarnation = from->known_incarnation;
    to.known_boot = from->known_boot;
    to.rejoin_index = from->rejoin_index;
    to.quiesce = from->quiesce;
    to.round_trip_us = from->round_trip_us;
    frame->body_case = PB_IS(APPEND);
    frame->append = &to;
    return pack(frame, arena);
}

static struct bytes encode_append_response(const struct consensus_message *from, PB(Frame) * frame,
                                           struct arena *arena)
{
    PB(AppendResponse) to = PB_INIT(APPEND_RESPONSE);
    to.ok = from->ok;
    to.durable = from->durable;
    to.received = from->received;
    to.conflict_index = from->conflict_index;
    to.conflict_term = from->conflict_term;
    to.round = from->round;
    to.full = from->full;
    to.quiesced = from->quiesced;
    frame->body_case = PB_IS(APPEND_RESPONSE);
    frame->append_response = &to;
    return pack(frame, arena);
}

static struct bytes encode_election(const struct consensus_message *from, PB(Frame) * frame,
                                    struct arena *arena)
{
    PB(PreVote) pre_vote = PB_INIT(PRE_VOTE);
    PB(PreVoteResponse) pre_vote_response = PB_INIT(PRE_VOTE_RESPONSE);
    PB(Vote) vote = PB_INIT(VOTE);
    PB(VoteResponse) vote_response = PB_INIT(VOTE_RESPONSE);
    PB(TimeoutNow) timeout_now = PB_INIT(TIMEOUT_NOW);
    if (from->kind == MESSAGE_PRE_VOTE) {
        frame->body_case = PB_IS(PRE_VOTE);
        frame->pre_vote = &pre_vote;
        pre_vote.next_term = from->next_term;
        pre_vote.last_index = from->last_index;
        pre_vote.last_term = from->last_term;
    } else if (from->kind == MESSAGE_PRE_VOTE_RESPONSE) {
        frame->body_case = PB_IS(PRE_VOTE_RESPONSE);
        frame->pre_vote_response = &pre_vote_response;
        pre_vote_response.next_term = from->next_term;
        pre_vote_response.granted = from->granted;
    } else if (from->kind == MESSAGE_VOTE) {
        frame->body_case = PB_IS(VOTE);
        frame->vote = &vote;
        vote.last_index = from->last_index;
        vote.last_term = from->last_term;
        vote.transfer = from->transfer;
    } else if (from->kind == MESSAGE_VOTE_RESPONSE) {
        frame->body_case = PB_IS(VOTE_RESPONSE);
        frame->vote_response = &vote_response;
        vote_response.granted = from->granted;
    } else {
        check(from->kind == MESSAGE_TIMEOUT_NOW);
        frame->body_case = PB_IS(TIMEOUT_NOW);
        frame->timeout_now = &timeout_now;
    }
    return pack(frame, arena);
}

static struct bytes encode_request(const struct consensus_message *from, PB(Frame) * frame,
                                   struct arena *arena)
{
    PB(Propose) propose = PB_INIT(PROPOSE);
    PB(ProposeResponse) propose_response = PB_INIT(PROPOSE_RESPONSE);
    PB(ReadIndex) read_index = PB_INIT(READ_INDEX);
    PB(ReadIndexResponse) read_index_response = PB_INIT(READ_INDEX_RESPONSE);
    if (from->kind == MESSAGE_PROPOSE) {
        frame->body_case = PB_IS(PROPOSE);
        frame->propose = &propose;
        propose.seq = from->seq;
        propose.low = from->low;
        propose.applied = from->applied;
        propose.operation = binary(from->bytes);
    } else if (from->kind == MESSAGE_PROPOSE_RESPONSE) {
        frame->body_case = PB_IS(PROPOSE_RESPONSE);
        frame->propose_response = &propose_response;
        propose_response.seq = from->seq;
        propose_response.outcome = (PB(ProposeResponse__Outcome))from->outcome;
        propose_response.index = from->index;
        propose_response.index_term = from->index_term;
        propose_response.for_incarnation = from->for_incarnation;
        propose_response.answer = binary(from->bytes);
    } else if (from->kind == MESSAGE_READ_INDEX) {
        frame->body_case = PB_IS(READ_INDEX);
        frame->read_index = &read_index;
        read_index.nonce = from->nonce;
    } else {
        check(from->kind == MESSAGE_READ_INDEX_RESPONSE);
        frame->body_case = PB_IS(READ_INDEX_RESPONSE);
        frame->read_index_response = &read_index_response;
        read_index_response.nonce = from->nonce;
        read_index_response.index = from->index;
        read_index_response.refused = from->refused;
        read_index_response.for_incarnation = from->for_incarnation;
    }
    return pack(frame, arena);
}

static struct bytes encode_snapshot(const struct consensus_message *from, PB(Frame) * frame,
                                    struct arena *arena)
{
    PB(Snapshot) snapshot = PB_INIT(SNAPSHOT);
    PB(SnapshotResponse) snapshot_response = PB_INIT(SNAPSHOT_RESPONSE);
    if (from->kind == MESSAGE_SNAPSHOT) {
        frame->body_case = PB_IS(SNAPSHOT);
        frame->snapshot = &snapshot;
        snapshot.index = from->index;
        snapshot.index_term = from->index_term;
        snapshot.offset = from->offset;
        snapshot.piece = binary(from->bytes);
        snapshot.last = from->last;
        snapshot.transfer_id = from->transfer_id;
    } else {
        check(from->kind == MESSAGE_SNAPSHOT_RESPONSE);
        frame->body_case = PB_IS(SNAPSHOT_RESPONSE);
        frame->snapshot_response = &snapshot_response;
        snapshot_response.index = from->index;
        snapshot_response.next_offset = from->offset;
        snapshot_response.installed = from->installed;
        snapshot_response.transfer_id = from->transfer_id;
    }
    return pack(frame, arena);
}

struct bytes consensus_encode(const struct consensus_message *from, struct arena *arena)
{
    PB(Frame) frame = PB_INIT(FRAME);
    frame.group_id = binary(bytes_make(from->place.group_id, CONSENSUS_GROUP_ID_LEN));
    frame.partition = from->place.partition;
    frame.epoch = from->epoch;
    frame.source = from->source;
    frame.destination = from->destination;
    frame.term = from->term;
    frame.incarnation = from->incarnation;
    frame.boot = from->boot;
    frame.standing = from->standing;
    switch (from->kind) {
    case MESSAGE_PRE_VOTE:
    case MESSAGE_PRE_VOTE_RESPONSE:
    case MESSAGE_VOTE:
    case MESSAGE_VOTE_RESPONSE:
    case MESSAGE_TIMEOUT_NOW:
        return encode_election(from, &frame, arena);
    case MESSAGE_APPEND:
        return encode_append(from, &frame, arena);
    case MESSAGE_APPEND_RESPONSE:
        return encode_append_response(from, &frame, arena);
    case MESSAGE_PROPOSE:
    case MESSAGE_PROPOSE_RESPONSE:
    case MESSAGE_READ_INDEX:
    case MESSAGE_READ_INDEX_RESPONSE:
        return encode_request(from, &frame, arena);
    case MESSAGE_SNAPSHOT:
    case MESSAGE_SNAPSHOT_RESPONSE:
        return encode_snapshot(from, &frame, arena);
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

static bool decode_append(const PB(Append) * from, struct budget *budget,
                          struct consensus_message *to)
{
    to->kind = MESSAGE_APPEND;
    to->prev_index = from->prev_index;
    to->prev_term = from->prev_term;
    to->commit = from->commit;
    to->leader_durable = from->leader_durable;
    to->all_durable = from->all_durable;
    to->last_index = from->last_index;
    to->round = from->round;
    to->known_incarnation = from->known_incarnation;
    to->known_boot = from->known_boot;
    to->rejoin_index = from->rejoin_index;
    to->quiesce = from->quiesce;
    to->round_trip_us = from->round_trip_us;
    if (from->prev_index > index_max || from->n_entries > UINT32_MAX ||
        from->last_index < from->prev_index + from->n_entries || from->last_index > index_max ||
        from->commit > from->last_index || from->leader_durable > from->last_index ||
        from->all_durable > from->commit || from->rejoin_index > from->last_index)
        return false;
    to->entry_count = (uint32_t)from->n_entries;
    to->entries = budget_alloc(budget, from->n_entries * sizeof(to->entries[0]));
    if (!to->entries)
        return false;
    uint64_t term = from->prev_term;
    for (uint32_t i = 0; i < to->entry_count; i++) {
        const PB(Entry) *entry = from->entries[i];
        if (entry->term < term || entry->term > to->term || entry->term == 0 ||
            entry->kind > CONSENSUS_WRITE || entry->origin >= CONSENSUS_MEMBERS)
            return false;
        term = entry->term;
        to->entries[i] = (struct consensus_entry){.index = from->prev_index + 1 + i,
                                                  .term = term,
                                                  .kind = (enum consensus_entry_kind)entry->kind,
                                                  .origin = (uint8_t)entry->origin,
                                                  .incarnation = entry->incarnation,
                                                  .seq = entry->seq,
                                                  .payload = view(entry->payload)};
    }
    return true;
}

static bool decode_append_response(const PB(AppendResponse) * from, struct consensus_message *to)
{
    to->kind = MESSAGE_APPEND_RESPONSE;
    to->ok = from->ok;
    to->durable = from->durable;
    to->received = from->received;
    to->conflict_index = from->conflict_index;
    to->conflict_term = from->conflict_term;
    to->round = from->round;
    to->full = from->full;
    to->quiesced = from->quiesced;
    return from->durable <= from->received && from->received <= index_max &&
           from->conflict_index <= index_max;
}

static bool decode_snapshot(const PB(Snapshot) * from, struct consensus_message *to)
{
    to->kind = MESSAGE_SNAPSHOT;
    to->index = from->index;
    to->index_term = from->index_term;
    to->offset = from->offset;
    to->bytes = view(from->piece);
    to->last = from->last;
    to->transfer_id = from->transfer_id;
    return from->index > 0 && from->index <= index_max && from->index_term > 0 &&
           from->index_term <= to->term && from->offset <= index_max;
}

static bool decode_propose_response(const PB(ProposeResponse) * from, struct consensus_message *to)
{
    to->kind = MESSAGE_PROPOSE_RESPONSE;
    to->seq = from->seq;
    to->outcome = (enum propose_outcome)from->outcome;
    to->index = from->index;
    to->index_term = from->index_term;
    to->for_incarnation = from->for_incarnation;
    to->bytes = view(from->answer);
    return (unsigned)from->outcome <= PROPOSE_BUSY && from->index <= index_max;
}

static bool decode_body(const PB(Frame) * from, struct budget *budget, struct consensus_message *to)
{
    switch (from->body_case) {
    case PB_IS(PRE_VOTE):
        to->kind = MESSAGE_PRE_VOTE;
        to->next_term = from->pre_vote->next_term;
        to->last_index = from->pre_vote->last_index;
        to->last_term = from->pre_vote->last_term;
        return true;
    case PB_IS(PRE_VOTE_RESPONSE):
        to->kind = MESSAGE_PRE_VOTE_RESPONSE;
        to->next_term = from->pre_vote_response->next_term;
        to->granted = from->pre_vote_response->granted;
        return true;
    case PB_IS(VOTE):
        to->kind = MESSAGE_VOTE;
        to->last_index = from->vote->last_index;
        to->last_term = from->vote->last_term;
        to->transfer = from->vote->transfer;
        return true;
    case PB_IS(VOTE_RESPONSE):
        to->kind = MESSAGE_VOTE_RESPONSE;
        to->granted = from->vote_response->granted;
        return true;
    case PB_IS(APPEND):
        return decode_append(from->append, budget, to);
    case PB_IS(APPEND_RESPONSE):
        return decode_append_response(from->append_response, to);
    case PB_IS(PROPOSE):
        to->kind = MESSAGE_PROPOSE;
        to->seq = from->propose->seq;
        to->low = from->propose->low;
        to->applied = from->propose->applied;
        to->bytes = view(from->propose->operation);
        return true;
    case PB_IS(PROPOSE_RESPONSE):
        return decode_propose_response(from->propose_response, to);
    case PB_IS(READ_INDEX):
        to->kind = MESSAGE_READ_INDEX;
        to->nonce = from->read_index->nonce;
        return true;
    case PB_IS(READ_INDEX_RESPONSE):
        to->kind = MESSAGE_READ_INDEX_RESPONSE;
        to->nonce = from->read_index_response->nonce;
        to->index = from->read_index_response->index;
        to->refused = from->read_index_response->refused;
        to->for_incarnation = from->read_index_response->for_incarnation;
        return to->index <= index_max;
    case PB_IS(TIMEOUT_NOW):
        to->kind = MESSAGE_TIMEOUT_NOW;
        return true;
    case PB_IS(SNAPSHOT):
        return decode_snapshot(from->snapshot, to);
    case PB_IS(SNAPSHOT_RESPONSE):
        to->kind = MESSAGE_SNAPSHOT_RESPONSE;
        to->index = from->snapshot_response->index;
        to->offset = from->snapshot_response->next_offset;
        to->installed = from->snapshot_response->installed;
        to->transfer_id = from->snapshot_response->transfer_id;
        return true;
    case TIDEMARK__CONSENSUS__V1__FRAME__BODY__NOT_SET:
    case _TIDEMARK__CONSENSUS__V1__FRAME__BODY__CASE_IS_INT_SIZE:
        break;
    }
    return false;
}

static bool decode_header(const PB(Frame) * from, struct consensus_message *to)
{
    if (from->group_id.len != CONSENSUS_GROUP_ID_LEN || from->source >= CONSENSUS_MEMBERS ||
        from->destination >= CONSENSUS_MEMBERS || from->source == from->destination ||
        from->standing > CONSENSUS_REBUILDING || from->term > index_max)
        return false;
    memcpy(to->place.group_id, from->group_id.data, CONSENSUS_GROUP_ID_LEN);
    to->place.partition = from->partition;
    to->epoch = from->epoch;
    to->source = (uint8_t)from->source;
    to->destination = (uint8_t)from->destination;
    to->term = from->term;
    to->incarnation = from->incarnation;
    to->boot = from->boot;
    to->standing = (enum consensus_standing)from->standing;
    return true;
}

bool consensus_decode(struct bytes from, uint64_t memory_max, struct arena *arena,
                      struct consensus_message *ret)
{
    uint32_t crc;
    if (!bytes_take_be32(&from, &crc) || from.len == 0 || crc32c(0, from) != crc)
        return false;
    struct budget budget = {arena, memory_max};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    PB(Frame) *frame = tidemark__consensus__v1__frame__unpack(&allocator, from.len, from.at);
    struct consensus_message decoded = {0};
    if (!frame || !decode_header(frame, &decoded) || !decode_body(frame, &budget, &decoded))
        return false;
    *ret = decoded;
    return true;
}

bool consensus_frame_place(struct bytes frame, struct consensus_place *ret)
{
    /* The first two fields, as protobuf writes them: 0a 10 group, 10 partition. An encoder of ours
     * writes fields in order and leaves out a partition of 0. */
    struct bytes group;
    uint8_t tag, len;
    uint64_t partition = 0;
    uint32_t crc;
    if (!bytes_take_be32(&frame, &crc) || !bytes_take_u8(&frame, &tag) || tag != 0x0a ||
        !bytes_take_u8(&frame, &len) || len != CONSENSUS_GROUP_ID_LEN ||
        !bytes_take(&frame, CONSENSUS_GROUP_ID_LEN, &group))
        return false;
    struct bytes peek = frame;
    if (bytes_take_u8(&peek, &tag) && tag == 0x10 &&
        (!bytes_take_varint(&peek, &partition) || partition > UINT32_MAX))
        return false;
    memcpy(ret->group_id, group.at, CONSENSUS_GROUP_ID_LEN);
    ret->partition = (uint32_t)partition;
    return true;
}
