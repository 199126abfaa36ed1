/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WITNESS_CONSENSUS_WIRE_H
#define WITNESS_CONSENSUS_WIRE_H

/* The messages of consensus.proto as one plain struct, and their codec. protobuf-c is used in
 * consensus_wire.c and nowhere else. A decoded message lives in the arena it was decoded into. What
 * the codec vouches for: member numbers and enumerators are in range, the entries of an Append
 * follow each other, and no sum of an index and a count overflows. */

#include "conflict/base/arena.h"
#include "witness/consensus.h"

/* MESSAGE(enumerator, name) */
#define CONSENSUS_MESSAGE_MAP(MESSAGE)                                                             \
    MESSAGE(PRE_VOTE, "PreVote")                                                                   \
    MESSAGE(PRE_VOTE_RESPONSE, "PreVoteResponse")                                                  \
    MESSAGE(VOTE, "Vote")                                                                          \
    MESSAGE(VOTE_RESPONSE, "VoteResponse")                                                         \
    MESSAGE(APPEND, "Append")                                                                      \
    MESSAGE(APPEND_RESPONSE, "AppendResponse")                                                     \
    MESSAGE(PROPOSE, "Propose")                                                                    \
    MESSAGE(PROPOSE_RESPONSE, "ProposeResponse")                                                   \
    MESSAGE(READ_INDEX, "ReadIndex")                                                               \
    MESSAGE(READ_INDEX_RESPONSE, "ReadIndexResponse")                                              \
    MESSAGE(TIMEOUT_NOW, "TimeoutNow")                                                             \
    MESSAGE(SNAPSHOT, "Snapshot")                                                                  \
    MESSAGE(SNAPSHOT_RESPONSE, "SnapshotResponse")

enum consensus_message_kind {
#define MESSAGE(enumerator, name) MESSAGE_##enumerator,
    CONSENSUS_MESSAGE_MAP(MESSAGE)
#undef MESSAGE
};

enum propose_outcome {
    PROPOSE_APPENDED,
    PROPOSE_FAILED,
    PROPOSE_CONFLICT,
    PROPOSE_REFUSED,
    PROPOSE_BUSY
};

struct consensus_message {
    enum consensus_message_kind kind;
    struct consensus_place place;
    uint32_t epoch;
    uint8_t source, destination;
    uint64_t term, incarnation, boot;
    enum consensus_standing standing;

    uint64_t next_term;             /* PRE_VOTE, PRE_VOTE_RESPONSE */
    uint64_t last_index, last_term; /* PRE_VOTE, VOTE; last_index also APPEND */
    bool transfer;                  /* VOTE */
    bool granted;                   /* PRE_VOTE_RESPONSE, VOTE_RESPONSE */

    uint64_t prev_index, prev_term; /* APPEND, and all below up to the next line */
    struct consensus_entry *entries;
    uint32_t entry_count;
    uint64_t commit, leader_durable, all_durable, rejoin_index, round_trip_us;
    uint64_t known_incarnation, known_boot;
    bool quiesce;
    uint64_t round; /* APPEND, APPEND_RESPONSE */

    bool ok, full, quiesced; /* APPEND_RESPONSE */
    uint64_t durable, received, conflict_index, conflict_term;

    uint64_t seq;          /* PROPOSE, PROPOSE_RESPONSE */
    uint64_t low, applied; /* PROPOSE */
    struct bytes bytes;    /* PROPOSE: operation; PROPOSE_RESPONSE: answer; SNAPSHOT: piece */
    enum propose_outcome outcome;
    uint64_t index; /* PROPOSE_RESPONSE, READ_INDEX_RESPONSE, SNAPSHOT, SNAPSHOT_RESPONSE */

    uint64_t for_incarnation; /* PROPOSE_RESPONSE, READ_INDEX_RESPONSE */
    uint64_t nonce;           /* READ_INDEX, READ_INDEX_RESPONSE */
    bool refused;             /* READ_INDEX_RESPONSE */

    uint64_t index_term;  /* PROPOSE_RESPONSE, SNAPSHOT */
    uint64_t offset;      /* SNAPSHOT, SNAPSHOT_RESPONSE */
    uint64_t transfer_id; /* likewise */
    bool last, installed; /* SNAPSHOT; SNAPSHOT_RESPONSE */
};

const char *consensus_message_name(enum consensus_message_kind kind);
struct bytes consensus_encode(const struct consensus_message *message, struct arena *arena);
/* Takes at most memory_max bytes of the arena. */
bool consensus_decode(struct bytes frame, uint64_t memory_max, struct arena *arena,
                      struct consensus_message *ret);

#endif
