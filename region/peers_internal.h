/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_PEERS_INTERNAL_H
#define REGION_PEERS_INTERNAL_H

/* What peers.c (streams, accepting, time), peers_groups.c (messages of strong groups),
 * peers_calls.c (control calls) and peers_seal.c (checksums) share. */

#include "conflict/base/list.h"
#include "region/peers.h"

#define PATH_REPLICATE "/tidemark.replication.v1.Replicator/Replicate"
#define PATH_GROUPS "/tidemark.replication.v1.Replicator/Groups"
#define PATH_CONTROL "/tidemark.replication.v1.Replicator/Control"
#define HEADER_REGION "tidemark-region"

enum {
    REOPEN_MS = 200, /* after a stream ended on a connection that is up */
    CALLS_MAX = 256, /* control calls under way, in each direction */
    CHANNELS = CHANNEL_GROUPS_IN + 1,
    PEERS_SEAL_LEN = 5, /* of a message's checksum */
    /* What may wait on the stream of the groups. They say anew what matters, so what comes on top
     * of it is dropped. */
    GROUPS_QUEUED_BYTES_MAX = 16 << 20
};

struct stream {
    struct peer *peer;
    enum region_channel channel;
    struct grpc_call *call; /* NULL: none */
    uint64_t generation;    /* of the call */
    bool known;             /* the core has been told of this generation */
    bool dropping;          /* the last message found no room (peers_groups.c) */
    bool begun;             /* something has been sent on it */
    bool spoilt;            /* a damaged message has come: what comes after it is not looked at */
    bool damaged;           /* a fault has damaged a message that was sent on it */
    struct list held;       /* messages that a fault holds back (peers_faults.c), by due time */
    uint64_t held_bytes;
    uint64_t reopen_ns; /* ours: when to open it; UINT64_MAX: it is open, or the link is down */
};

struct peer {
    struct peers *peers;
    uint16_t region;
    struct grpc_link *link;
    bool link_up;
    struct stream streams[CHANNELS];
    uint64_t groups_dropped; /* messages */
};

struct peers {
    struct loop *loop;
    const struct config *config;
    const struct log *log;
    struct driver *driver; /* NULL before the start and after the stop */
    struct faults *faults; /* NULL: none */
    uint64_t seed;
    uint64_t generation, token;
    struct buf scratch;
    struct list incoming, outgoing;
    uint32_t incoming_count, outgoing_count;
    uint32_t count;
    struct peer at[VV_MAX];
};

/* NULL when no peer is that Region. */
struct peer *peers_find(struct peers *peers, uint16_t region);

/* A message, on a stream that is open. */
void peers_send_now(struct stream *stream, struct bytes message);
/* The same with one bit turned on its way; luck says which. */
void peers_send_damaged(struct stream *stream, struct bytes message, uint64_t luck);
/* peers_faults.c: sends it as the faults let it. */
void peers_send_faulty(struct stream *stream, struct bytes message);
/* Sends what is due. */
void peers_send_held(struct stream *stream);
/* By when there is more; UINT64_MAX: nothing is held. */
uint64_t peers_held_deadline(const struct stream *stream);
void peers_drop_held(struct stream *stream);

/* peers_seal.c: appends the checksum; takes it off. False: what came is not what was sent. */
void peers_seal(struct buf *message);
bool peers_unseal(struct bytes wire, struct bytes *ret);
void peers_damage(struct buf *wire, uint64_t luck);

/* peers_groups.c: the message as it goes on the wire but for its checksum. */
void peers_wrap_groups(struct bytes message, struct buf *to);
/* Sends such a one, or drops it, on a stream that is open. */
void peers_send_groups(struct stream *stream, struct bytes wire);
/* What the core is to see of a message that has come: a view into it. False: it is none. */
bool peers_take_groups(struct bytes message, struct bytes *ret);

/* peers_calls.c: takes over a call of this peer. */
void peers_accept_call(struct peer *peer, struct grpc_call *call);
/* Ends the calls to peers whose time is up. */
void peers_expire_calls(struct peers *peers);
/* The connection to this peer is up: calls that wait for it go out. */
void peers_calls_connected(struct peer *peer);
/* By when the next is. */
uint64_t peers_calls_deadline(const struct peers *peers);
void peers_calls_free(struct peers *peers);

#endif
