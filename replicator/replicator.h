/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPLICATOR_REPLICATOR_H
#define REPLICATOR_REPLICATOR_H

/* Eventual replication between Regions: ships each Region's own log of local writes to every other
 * member of a table, takes the peers' logs in, and knows at all times how far everyone is. It holds
 * positions, not data: log rows and snapshot rows are read through effects, incoming records leave
 * as APPLY effects, and the owner (region core) resolves, persists and reports back.
 *
 * One `replica` per table partition that is part of a global table. A partition's state that must
 * survive a crash (vv, first logged sequence) is the owner's to persist, in the same batch as the
 * records it speaks of, and comes back through replicator_open.
 *
 * Guarantee: at least once, in order per (partition, origin), idempotent by sequence; see
 * README.md. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/base/rng.h"
#include "conflict/base/trace.h"
#include "conflict/record.h"
#include "conflict/version.h"

struct replicator;
struct replica; /* one partition */

struct replicator_config {
    uint16_t region;
    uint16_t peers[VV_MAX];
    uint32_t peer_count;
    uint64_t seed;
    uint64_t window_bytes_max;  /* sent to one peer and not acknowledged; 4 MiB */
    uint64_t batch_bytes_max;   /* 256 KiB */
    uint32_t batch_records_max; /* 500 */
    uint64_t frame_bytes_max;   /* an incoming message beyond it closes the stream; 1 MiB */
    uint64_t heartbeat_ms;      /* 200 */
    uint64_t silence_ms_max;    /* a stream with no message for so long is closed; 10000 */
    uint64_t log_bytes_max;     /* per partition and origin: cut beyond it, peers that lack the rest
                                   get a snapshot; 256 MiB */
    uint64_t tombstone_grace_ms; /* 1 h */
    uint64_t apply_bytes_max;    /* handed to the owner and not yet durable, per peer; 4 MiB */
    struct trace trace;
};

/* ---- Input ---- */

enum replicator_input_kind {
    REPLICATOR_PEER_UP,      /* peer, outbound */
    REPLICATOR_PEER_DOWN,    /* peer, outbound */
    REPLICATOR_FRAME,        /* peer, outbound, bytes */
    REPLICATOR_COMMITTED,    /* replica, seq, hlc, log_bytes: local writes up to seq are durable;
                                log_bytes is what they added to the log */
    REPLICATOR_APPLIED,      /* replica, peer, apply_id: an APPLY or *_SNAPSHOT effect is durable.
                                Those of one replica must become so in order of apply_id. seq of
                                an APPLY, vv of a FINISH_SNAPSHOT: as the effect had them */
    REPLICATOR_APPLY_FAILED, /* replica, peer, apply_id: nothing of it was kept (disk full), nor of
                                later ones of that replica and peer: the stream from that peer is
                                closed and taken up again later */
    REPLICATOR_ROWS,         /* id, rows..., more: answers READ_LOG and READ_SNAPSHOT */
    REPLICATOR_TIMEOUT
};

struct replicator_row {
    struct bytes key;  /* row key within the table */
    struct bytes body; /* record.h's body */
    uint64_t seq;      /* READ_LOG: place in the origin's log */
};

struct replicator_input {
    enum replicator_input_kind kind;
    uint64_t mono_ns;
    uint64_t wall_ms;
    uint64_t hlc_now; /* hlc_now() of the owner's clock, in every input: the promise that heartbeats
                         carry. See replica_note_stamped */
    uint16_t peer;
    bool outbound;      /* the stream we opened, with our log; else the peer's */
    struct bytes bytes; /* borrowed for the call, as all of the input is */
    struct replica *replica;
    uint64_t seq, hlc, log_bytes;
    uint64_t apply_id;
    const struct vv *vv;
    uint64_t id;
    const struct replicator_row *rows;
    uint32_t row_count;
    bool more;
    bool failed; /* ROWS: the rows asked for are gone (trimmed) or unreadable */
};

/* ---- Output ---- */

enum replicator_effect_kind {
    REPLICATOR_SEND,          /* peer, outbound, bytes */
    REPLICATOR_CLOSE,         /* peer, outbound, reason: bad bytes or silence */
    REPLICATOR_READ_LOG,      /* id, replica, origin, seq (from, inclusive), rows_max, bytes_max */
    REPLICATOR_READ_SNAPSHOT, /* id, replica, after (row key, exclusive; empty: from the start),
                                 rows_max, bytes_max: live items and tombstones, in key order */
    REPLICATOR_APPLY,         /* peer, replica, apply_id, origin, seq (of the last record), rows: in
                                 one batch: resolve each, vv[origin] := seq */
    REPLICATOR_APPLY_SNAPSHOT, /* peer, replica, apply_id, epoch, rows: resolve each; vv stays. The
                                  partition is partial then (see replica_state) */
    REPLICATOR_SWEEP_SNAPSHOT, /* peer, replica, apply_id, begin, end, vv, rows (keys that the chunk
                                  holds): in (begin, end], remove every local row whose key is not
                                  among them and whose version vv covers (replicator.md 7,
                                  resurrection). Empty begin: from the partition's start; empty end:
                                  to its end. Follows each chunk's APPLY_SNAPSHOT, with an apply_id
                                  of its own */
    REPLICATOR_FINISH_SNAPSHOT, /* peer, replica, apply_id, epoch, vv: vv := join; not partial any
                                   more as to that peer and epoch */
    REPLICATOR_ORPHANS_SHARED,  /* replica, vv: nor as to these */
    REPLICATOR_TRIM,            /* replica, origin, seq: log rows up to it may go */
    REPLICATOR_COLLECT, /* replica, vv (stable), hlc (horizon): tombstones with seq covered by vv,
                           version time below hlc and age over the grace may go */
    REPLICATOR_OBSERVE, /* hlc: a peer's time, for the clock */
    REPLICATOR_PEER_TABLES, /* peer, bytes: the peer's table descriptions, opaque to us, as it gave
                               them in its Hello (owner: control plane) */
    REPLICATOR_CAUGHT_UP, /* peer, replica: the peer has durably applied our snapshot and log up to
                             the sequence we had when it joined (control plane: replica ACTIVE) */
    REPLICATOR_ACKED,     /* peer, replica, seq: for lag; also drives nothing else */
    REPLICATOR_PEER_AHEAD /* peer, replica, seq: the peer has numbers of ours that are not below
                             those which we are to give out, so our storage or clock was set back.
                             Nothing is shipped there until the owner numbers its writes in an epoch
                             above seq's; then that peer gets a snapshot */
};

struct replicator_effect {
    enum replicator_effect_kind kind;
    uint16_t peer;
    bool outbound;
    struct bytes bytes;
    struct replica *replica;
    uint64_t apply_id;
    uint64_t id;
    uint16_t origin;
    uint64_t seq;
    uint64_t hlc;
    uint64_t epoch;
    uint32_t rows_max;
    uint64_t bytes_max;
    struct bytes after;
    struct bytes begin, end;
    const struct replicator_row *rows;
    uint32_t row_count;
    const struct vv *vv;
    const char *reason;
};

struct replicator_output {
    struct replicator_effect *at; /* borrowed until the next step */
    uint32_t count;
};

struct replicator *replicator_new(const struct replicator_config *config);
struct replicator *replicator_free(struct replicator *replicator);
void replicator_step(struct replicator *replicator, const struct replicator_input *in,
                     struct replicator_output *out);
uint64_t replicator_deadline(const struct replicator *replicator);

/* ---- Partitions: called between steps by the owner ---- */

struct replica_state {
    uint8_t group_id[16]; /* the global table's, table.h */
    uint32_t partition;
    struct vv
        vv; /* durable; own Region: last local sequence, and what is known of earlier epochs */
    uint64_t epoch;     /* in which local writes are numbered */
    struct vv partial;  /* durable: from which peers, in which of their epochs, we have rows of a
                           snapshot that was not finished; any number of the epoch. Should the peer
                           lose its disk, they are orphans: in nobody's vector, and perhaps nowhere
                           else */
    uint64_t log_first; /* own log: first sequence still logged; 0 when nothing is */
    uint64_t log_bytes;
    void *owner; /* comes back by replica_owner */
};

struct replica *replicator_open(struct replicator *replicator, const struct replica_state *state);
/* The table left the group or was deleted: streams stop naming it. Frees the replica: no input may
 * name it any more, and answers to its outstanding reads are ignored. */
void replicator_close(struct replicator *replicator, struct replica *replica);
void *replica_owner(const struct replica *replica);
/* A member joined: it is sent a snapshot (unless it shows in its Hello that it needs none), then
 * the log. Until then its cursor holds the log from here. Idempotent. */
void replicator_add_member(struct replicator *replicator, struct replica *replica, uint16_t peer);
/* A member left: it holds neither log nor tombstones any more. */
void replicator_remove_member(struct replicator *replicator, struct replica *replica,
                              uint16_t peer);
/* What our Hello says of our tables, to be sent again to all peers when it changes. Copied. */
void replicator_set_tables(struct replicator *replicator, struct bytes descriptions);
/* A local write has been numbered seq and is on its way to disk: the promise in our heartbeats is
 * for writes after it, since its own time is already below the clock. */
void replica_note_stamped(struct replica *replica, uint64_t seq);
/* Those after seq will not be written after all (disk full): their numbers will be given out again,
 * to later writes, so the promises made meanwhile hold. */
void replica_note_unstamped(struct replica *replica, uint64_t seq);
/* Local writes are numbered in this epoch from now on, durably. Peers are told, so that they know
 * earlier epochs for what they are: of the past, where what one of them has is for all. */
void replica_note_epoch(struct replica *replica, uint64_t epoch);
/* Of which peers the partition is partial, when it has changed. */
void replica_note_partial(struct replica *replica, const struct vv *partial);
/* Whether the partition may hold tombstones: while it does, COLLECT is emitted from time to time.
 */
void replica_note_tombstones(struct replica *replica, bool any);
/* vv as received, in flight included: what a new local write depends on is the durable one, which
 * the owner holds itself. */
const struct vv *replica_vv_durable(const struct replica *replica);

/* ---- Lag ---- */

struct replication_lag {
    uint64_t pending; /* local writes not durable at the peer */
    uint64_t pending_bytes;
    uint64_t oldest_ms;    /* age of the oldest of them, 0 for none: with pending, the RPO if this
                              Region died now */
    double p50_ms, p99_ms; /* commit here to acknowledgement, over the last minute; 0: none */
    uint64_t count;        /* acknowledged, ever */
    double sum_ms;         /* of their lags */
    bool connected;
    bool stalled; /* pending, and nothing acknowledged for 5 s */
};
/* Adds one partition's figures towards one peer to *into (which starts zeroed). The percentiles are
 * those of the whole table towards that peer, whichever of its partitions are added. */
void replica_lag(const struct replica *replica, uint16_t peer, uint64_t mono_ns,
                 struct replication_lag *into);

#endif
