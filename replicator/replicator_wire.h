/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPLICATOR_WIRE_H
#define REPLICATOR_WIRE_H

/* The messages of replicator.proto as plain structs, and their codec. protobuf-c is used in
 * replicator_wire.c and nowhere else. A decoded message lives in the arena it was decoded into; its
 * byte fields are copies there, and so are an encoded message's bytes. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "conflict/record.h"
#include "conflict/version.h"

enum { WIRE_PROTOCOL = 1, WIRE_GROUP_ID_LEN = 16 };

enum wire_kind {
    WIRE_HELLO,
    WIRE_TABLES,
    WIRE_OFFER,
    WIRE_RESUME,
    WIRE_BATCH,
    WIRE_ACK,
    WIRE_HEARTBEAT,
    WIRE_SNAPSHOT_OFFER,
    WIRE_SNAPSHOT_ACCEPT,
    WIRE_SNAPSHOT_CHUNK
};

struct wire_place {
    uint8_t group_id[WIRE_GROUP_ID_LEN];
    uint32_t partition;
};

/* What a message tells of one partition; see replicator.proto for which kind uses what. */
struct wire_position {
    struct wire_place place;
    struct vv vv;
    uint64_t have;
    uint64_t stamped, sent;
    uint64_t snapshot_id;
    uint32_t snapshot_chunks;
    uint64_t round;
};

struct wire_message {
    enum wire_kind kind;
    uint32_t protocol, region;       /* HELLO */
    struct bytes part;               /* TABLES */
    bool more;                       /* TABLES */
    struct wire_position *positions; /* OFFER, RESUME, ACK, HEARTBEAT */
    uint32_t position_count;         /* the same */
    uint64_t window_bytes;           /* ACK */
    uint64_t consumed_bytes;         /* ACK */
    bool want_tables;                /* ACK */
    uint64_t promise, sent_bytes;    /* HEARTBEAT */
    bool partial;                    /* HEARTBEAT */
    uint32_t tables_crc;             /* HEARTBEAT */
    struct wire_place place;         /* BATCH, SNAPSHOT_* */
    uint64_t first_seq;              /* BATCH */
    struct bytes records;            /* BATCH, SNAPSHOT_CHUNK; the codec checks their checksum */
    uint32_t record_count;           /* the same */
    uint64_t snapshot_id;            /* SNAPSHOT_* */
    uint32_t index;                  /* SNAPSHOT_CHUNK, and all below */
    struct bytes begin, end;
    bool last;
    struct vv vv;
    uint64_t epoch;
};

struct bytes wire_encode(const struct wire_message *message, struct arena *arena);
/* Takes at most memory_max bytes of the arena: a small frame of many empty parts cannot make a
 * large message. */
bool wire_decode(struct bytes from, uint64_t memory_max, struct arena *arena,
                 struct wire_message *ret);

void wire_record_append(struct bytes key, struct bytes body, struct buf *to);
/* Takes the next record off the front: the decoded record with its key, and its body as it came. */
bool wire_record_take(struct bytes *from, struct record *ret, struct bytes *ret_body);

#endif
