/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPLICATOR_INTERNAL_H
#define REPLICATOR_INTERNAL_H

/* What the files of this directory share. A `peer` is another Region with its two streams; a
 * `replica` is one of our partitions; a `member` is where the two meet, and holds both directions:
 * how far the peer is with our log, and how far we are with its.
 *
 *     replicator ──< peer ──────┐
 *         └────────< replica ──┴──< member
 *
 * Work that waits is kept in intrusive lists of members per peer, so no step ever walks over all
 * partitions. */

#include "conflict/base/arena.h"
#include "conflict/base/lifecycle.h"
#include "conflict/base/list.h"
#include "replicator/lag.h"
#include "replicator/replicator.h"
#include "replicator/replicator_wire.h"

/* uthash finds a replica by its place; the order of insertion is the order of iteration. */
#include "conflict/base/alloc.h"
#define uthash_malloc(size) xmalloc(size)
#include <uthash.h>

/* How we stand with a peer as sender of one partition's log. */
enum member_state {
    MEMBER_AWAY,             /* no stream */
    MEMBER_OFFERED,          /* the peer was told of the partition and has not answered */
    MEMBER_LOG,              /* the log flows */
    MEMBER_SNAPSHOT_OFFERED, /* our log does not reach back; the peer has not accepted yet */
    MEMBER_SNAPSHOT,         /* rows flow */
    MEMBER_AHEAD             /* the peer has numbers that we have yet to give out */
};

/* An effect that the owner has not made durable yet. */
enum apply_kind { APPLY_LOG, APPLY_ROWS, APPLY_SWEEP, APPLY_FINISH };

struct apply {
    struct list link; /* member.applies, by id */
    uint64_t id;
    enum apply_kind kind;
    bool done;
    uint64_t seq;         /* APPLY_LOG */
    uint64_t bytes;       /* of the window of ... */
    uint64_t stream;      /* ... the peer's stream of this number */
    uint64_t snapshot_id; /* APPLY_FINISH */
    struct vv vv;         /* APPLY_FINISH */
};

/* Tombstones may go below a time that an origin has promised to stay above, once everyone has what
 * came before the promise (design of tombstone collection: README.md). */
struct promise {
    uint64_t stable;      /* hlc; 0: none yet */
    uint64_t pending_seq; /* everyone must have this ... */
    uint64_t pending_hlc; /* ... and then this is stable; 0: none pending */
};

struct member {
    struct replica *replica;
    struct peer *peer;
    struct list of_peer;

    /* The peer takes our log in. */
    struct lifecycle life;    /* enum member_state */
    uint64_t sent;            /* on this stream, or from where it will go on */
    uint64_t hold;            /* the log is kept after this, whatever the peer has acknowledged */
    struct vv known;          /* durable at the peer, as it last said */
    struct list ready;        /* peer.out.ready: rows to be read for it */
    struct list pending;      /* peer.out.pending: to be named in heartbeats */
    struct list waiting;      /* peer.out.waiting: offered, no answer */
    struct list offer;        /* peer.out.offers: to be offered in this step */
    uint64_t asked, answered; /* rounds of Offer and Resume: a repeated question is one */
    struct read *read;        /* outstanding for it, or NULL */
    uint64_t snapshot_id;     /* of MEMBER_SNAPSHOT_OFFERED and MEMBER_SNAPSHOT */
    uint32_t snapshot_chunks;
    bool announce;             /* the next heartbeat names it: heartbeats speak of it from now on */
    struct vv snapshot_vv;     /* of the last snapshot sent ... */
    bool snapshot_unconfirmed; /* ... which the peer has not shown to have whole */
    struct buf snapshot_after; /* last key sent */
    bool orphans_sent;         /* with it, our orphans ... */
    bool has_orphans;          /* ... of which it has all */
    uint64_t caught_up_target;
    bool caught_up;       /* told the owner */
    uint64_t acked_ns;    /* when the peer last acknowledged something new, or had all */
    uint64_t acked_bytes; /* log bytes up to its acknowledgement, ever */
    uint64_t lag_seq;     /* lags are recorded up to here */
    uint64_t lag_count;
    double lag_sum_ms;
    struct lag_table *lag;

    /* We take the peer's log in. */
    uint64_t received;    /* of its log: durable, or handed to the owner */
    bool offered;         /* named on this stream, so its heartbeats speak of it */
    struct list unnamed;  /* peer.in.unnamed: not yet */
    uint64_t ask_beat;    /* the peer's heartbeat at which it is asked for that again */
    uint64_t round;       /* of the peer's Offer that is still to be answered */
    bool resuming;        /* asked after a gap; further gaps are the same one */
    struct list ack;      /* peer.in.acks */
    struct list report;   /* peer.in.reports: our vector moved, to be told with the next Ack */
    struct list resume;   /* peer.in.resumes */
    struct list applies;  /* struct apply */
    bool deferred;        /* waits while we take a snapshot from another peer */
    struct list snapshot; /* peer.in.snapshots: we take one in from it */
    uint64_t in_id;       /* that snapshot; 0: none, or all of it is with the owner */
    uint32_t in_index;    /* next chunk */
    struct vv in_vv;
    uint64_t in_done;       /* the last that was taken in whole on this stream */
    struct buf in_end;      /* end of the chunk before */
    uint64_t in_beat;       /* the peer's heartbeat that last named the snapshot */
    uint64_t listed_beat;   /* the peer's heartbeat that last named the partition ... */
    uint64_t listed_seq;    /* ... and its promise's start */
    struct promise promise; /* the peer's */
};

struct replica {
    struct replicator *replicator;
    struct wire_place place; /* key of replicator.replicas */
    UT_hash_handle hh;
    void *owner;
    struct vv vv;            /* durable */
    uint64_t epoch;          /* of our own next write */
    struct vv partial;       /* replica_state */
    uint64_t stamped;        /* last local sequence given out */
    uint64_t log_first;      /* 0: nothing is logged */
    uint64_t log_bytes;      /* about */
    uint64_t appended_bytes; /* to the log, ever; lag_entry.bytes */
    uint64_t trimmed;        /* TRIM was emitted up to here */
    struct lag_ring ring;
    struct member *members[VV_MAX];
    uint32_t member_count;
    struct member *snapshot_from; /* one at a time; until its end is durable */
    struct promise promise;       /* our own */
    bool tombstones;
    struct list collect; /* replicator.collects */
    uint64_t collect_ns; /* when it is due */
    struct list trim;    /* replicator.trims */
};

/* All partitions of one table towards one peer. */
struct lag_key {
    uint8_t group_id[WIRE_GROUP_ID_LEN];
    uint16_t peer;
};
struct lag_table {
    struct lag_key key;
    uint32_t refs;
    struct lag_histogram histogram;
    UT_hash_handle hh;
};

/* An outstanding READ_LOG (for all members that are at the same place) or READ_SNAPSHOT (for one).
 */
struct read {
    uint64_t id;
    bool active;
    bool snapshot;
    struct replica *replica; /* NULL: closed meanwhile */
    uint64_t from;
    struct member *members[VV_MAX]; /* NULL: no longer interested */
    uint32_t member_count;
};

enum { READS_MAX = 1024 };
/* A message names at most so many partitions, which keeps it well below a frame. */
enum { POSITIONS_MAX = 2048 };

struct outbound {
    bool up;
    bool greeted; /* the peer's Hello is in */
    bool tables_due;
    uint64_t heard_ns, beat_ns, offer_ns;
    uint64_t sent_bytes, consumed_bytes, window_bytes;
    uint64_t reserved_bytes; /* for outstanding reads */
    struct list ready, pending, waiting, offers;
};

struct inbound {
    bool up;
    bool greeted;
    bool ack_due;
    uint64_t heard_ns;
    uint64_t hold_ns;    /* no Resume before: the owner's disk was full */
    uint64_t told_bytes; /* consumed, as the last Ack said */
    bool report_due;     /* the next Ack tells all that moved */
    bool want_tables;
    uint64_t stream;                         /* counts streams */
    uint64_t received_bytes, applying_bytes; /* of this stream */
    uint64_t old_bytes;                      /* of earlier streams, with the owner still */
    struct buf tables;                       /* parts so far */
    bool tables_told;                        /* whole, on this stream */
    uint32_t tables_crc;                     /* of the last whole one */
    uint64_t beat;                           /* counts heartbeats, never reset */
    uint64_t promise;                        /* of the last whole one */
    uint64_t promise_beat;
    struct list acks, reports, resumes, snapshots, unnamed;
};

struct peer {
    struct replicator *replicator;
    uint16_t region;
    struct list members;
    struct outbound out;
    struct inbound in;
};

struct replicator {
    struct replicator_config config;
    struct peer peers[VV_MAX];
    struct replica *replicas; /* by place */
    struct lag_table *lags;
    struct buf tables;
    uint32_t tables_crc;
    struct rng rng;
    uint64_t mono_ns, wall_ms, hlc_now; /* of the step */
    uint64_t next_apply_id, next_snapshot_id, next_read_id, next_round;
    struct read reads[READS_MAX];
    uint32_t free_reads[READS_MAX];
    uint32_t free_read_count;
    struct list free_applies;
    struct list trims, collects;
    uint64_t trim_ns, expire_ns;
    bool unborn; /* replicas were opened before the first step told the time */
    bool urgent; /* something was queued between steps */
    struct replicator_effect *effects;
    uint32_t effect_count, effect_cap;
    struct arena arena; /* everything that the effects point to */
    struct buf scratch;
};

/* ---- replicator.c, replica.c ---- */
struct peer *peer_find(struct replicator *replicator, uint16_t region);
struct replicator_effect *effect(struct replicator *replicator, enum replicator_effect_kind kind);
struct replicator_effect *effect_for(struct member *member, enum replicator_effect_kind kind);
void peer_send(struct peer *peer, bool outbound, const struct wire_message *message);
/* Emits CLOSE and forgets the stream. reason is static. */
void peer_close(struct peer *peer, bool outbound, const char *reason);
struct replica *replica_find(struct replicator *replicator, const struct wire_place *place);
struct member *member_find(const struct replica *replica, uint16_t region);
/* NULL when the place or the peer is not in it. */
struct member *member_at(struct peer *peer, const struct wire_place *place);
uint64_t replica_last(const struct replica *replica); /* durable, of our own log */
uint64_t ms_to_ns(uint64_t ms);
/* At most max. */
uint32_t list_length(const struct list *head, uint32_t max);
void list_add_once(struct list *head, struct list *link);
void trace_member(const struct member *member, enum trace_level level, const char *what);

/* Durable at the peer, of our log. */
static inline uint64_t acked(const struct member *member)
{
    return vv_get(&member->known, member->replica->replicator->config.region);
}

/* ---- outbound.c, member.c ---- */
void outbound_up(struct peer *peer);
void outbound_down(struct peer *peer);
void outbound_message(struct peer *peer, const struct wire_message *message);
/* `before` was the last durable sequence until now. */
void outbound_committed(struct replica *replica, uint64_t before);
void outbound_rows(struct read *read, const struct replicator_input *in);
void outbound_timers(struct peer *peer);
void outbound_flush(struct peer *peer);
void outbound_join(struct member *member);
void outbound_leave(struct member *member);
void member_resumed(struct member *member, const struct wire_position *position);
void member_move(struct member *member, enum member_state to);
static inline enum member_state member_state(const struct member *member)
{
    return (enum member_state)member->life.state;
}
/* Whether heartbeats must name it. */
void member_pending_update(struct member *member);
void member_forget_read(struct member *member);
void member_ready(struct member *member);
void member_enter_log(struct member *member, uint64_t sent);
/* Asks the peer where it is. */
void member_offer(struct member *member);
bool log_reaches(const struct replica *replica, uint64_t have);
/* Our numbers are above the peer's again. */
void member_ahead_ends(struct member *member);
/* Whether the peer has what an origin numbered so. An origin has whatever it wrote on its present
 * disk. */
bool member_has(const struct member *member, uint16_t origin, uint64_t seq);
/* The newest epoch of an origin that anybody has told of; earlier ones are its past, and all are of
 * one that is no member any more. */
uint64_t replica_epoch(const struct replica *replica, uint16_t origin);
/* Somebody's past may have become known, or the past of something: who lacks it gets a snapshot. */
void replica_reconsider(struct replica *replica);
/* Takes what the owner has into our vector; true when something of it is news. */
bool replica_learn(struct replica *replica, const struct vv *vv);
/* Packs rows as records until a bound; how many went in. */
uint32_t pack_rows(struct replicator *replicator, const struct replicator_row *rows,
                   uint32_t count);
struct read *read_start(struct replica *replica, bool snapshot, uint64_t from);
void read_join(struct read *read, struct member *member);

/* ---- snapshot.c: sending ---- */
/* The member needs one; it is offered in this step if `now`, else with the next repetition. */
void snapshot_offer(struct member *member, bool now);
void snapshot_send_offer(struct member *member);
void snapshot_accepted(struct member *member, uint64_t id);
/* The peer has taken it in whole. */
void snapshot_done(struct member *member, uint64_t id);
/* Whether we have rows of a snapshot that can never be finished. */
bool replica_has_orphans(const struct replica *replica);
void snapshot_read(struct member *member);
void snapshot_rows(struct member *member, const struct replicator_input *in);
/* ---- snapshot.c: taking in ---- */
void snapshot_offered(struct member *member, uint64_t id);
void snapshot_chunk(struct member *member, const struct wire_message *message);
/* Gives it up; what was applied of it does no harm. */
void snapshot_drop(struct member *member);
/* No snapshot is being taken in any more: the members that were kept waiting go on. */
void snapshot_release(struct replica *replica);
void snapshot_finished(struct member *member, const struct vv *vv);

/* ---- inbound.c, batch.c ---- */
void batch_in(struct peer *peer, const struct wire_message *batch);
void inbound_up(struct peer *peer);
void inbound_down(struct peer *peer);
void inbound_message(struct peer *peer, const struct wire_message *message);
/* False: we do not wait for it any more. */
bool inbound_applied(struct member *member, uint64_t apply_id, bool kept);
void inbound_applied_late(const struct replicator_input *in);
void inbound_flush(struct peer *peer);
void inbound_timers(struct peer *peer);
void inbound_join(struct member *member);
void inbound_leave(struct member *member);
void member_resume(struct member *member);
struct apply *apply_new(struct member *member, enum apply_kind kind, uint64_t bytes);
/* Decodes message's records into rows in the arena; false when they are not what their sender may
 * send. *ret_hlc is the latest time among them. */
bool unpack_rows(struct peer *peer, const struct wire_message *message,
                 struct replicator_row **ret_rows, uint64_t *ret_hlc);
/* Whether the vector can take more in beside all that is on its way to the owner. */
bool vv_has_room(const struct replica *replica, const struct vv *more);
bool window_fits(const struct peer *peer, uint64_t bytes);

/* ---- watermark.c ---- */
/* The peer has said what is durable there; exact: even if it is less than before (its disk is new).
 */
void member_acknowledged(struct member *member, const struct vv *vv, bool exact);
void member_check_caught_up(struct member *member);
/* Something may have become free to be trimmed. */
void trim_note(struct replica *replica);
void trim_run(struct replicator *replicator);
/* Cuts the log, which is over its bound. */
void trim_force(struct replica *replica);
void collect_run(struct replicator *replicator);
uint64_t watermark_deadline(const struct replicator *replicator);

#endif
