/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WITNESS_CONSENSUS_INTERNAL_H
#define WITNESS_CONSENSUS_INTERNAL_H

/* What the files of this directory share. A step works on the state below and marks what must go
 * out; consensus.c gathers it at the end of the step: new entries to the members, one PERSIST for
 * all that changed, and messages, which wait while the hard state they speak from is not durable.
 */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/lifecycle.h"
#include "conflict/base/list.h"
#include "conflict/base/plant.h"
#include "conflict/base/rng.h"
#include "witness/consensus.h"
#include "witness/consensus_wire.h"
#include "witness/log.h"
#include "witness/quorum.h"

#include <uthash.h>

enum {
    NONCES_MAX = 4, /* ReadIndex requests under way: more reads wait and share the next */
    ROUNDS_MAX = 4, /* likewise the leader's rounds */
    ROUNDS_TIMED = 64,
    APPLY_MAX = 256,  /* entries given to the owner and not applied */
    GATED_MAX = 4096, /* messages that wait for a hard state; more are lost, as messages may be */
    ENTRIES_MAX = 512 /* in one frame */
};

struct written { /* a PERSIST under way */
    uint64_t seq;
    uint64_t last_index; /* the log is durable up to here after it; lowered by a cut meanwhile */
    uint64_t at_ns;
};

struct gated { /* a message that waits for the hard state to be durable */
    struct list link;
    uint8_t peer;
    struct buf frame;
};

struct peer_snapshot { /* items on their way to a member; id 0: none */
    uint64_t id;
    uint64_t index, term; /* 0 until the first piece */
    uint64_t offset;      /* the member has what is before it */
    bool reading;         /* the owner has been asked */
    uint64_t moved_ns;
    struct buf piece; /* last one sent; again if nobody answers */
    bool piece_last;
};

/* Another member, as the leader knows it. Starts anew with every leadership, and with every life of
 * that member. */
struct peer {
    uint64_t incarnation, boot; /* 0: not heard of */
    enum consensus_standing standing;
    uint64_t next;     /* next entry to send */
    uint64_t match;    /* verified in this term and durable there */
    uint64_t received; /* verified in this term */
    bool probing;      /* where its log parts from ours is not known: no entries are sent */
    bool beat;         /* an Append is due, with entries or without */
    bool full;
    bool snapshot_failed; /* the owner could give no piece: not before the next heartbeat */
    bool quiesced;
    uint64_t told;         /* greatest of our commit and durable mark that it was sent */
    uint64_t heard_ns;     /* its last answer, if it is FULL */
    uint64_t round;        /* greatest it answered */
    uint64_t rejoin_index; /* an entry of ours from after its rebuilding incarnation was seen */
    uint64_t rejoin_incarnation;
    struct peer_snapshot snapshot;
};

enum request_kind { REQUEST_WRITE, REQUEST_READ };

/* A proposal or strong read that began here.
 *
 *     write:  unsent -> sent -> limbo -> waiting        sent: it may be lost, and is sent again
 *               ^________________|                      limbo: only the log can tell
 *     read:   new -> asked -> waiting                   waiting: for APPLIED to reach index
 *              ^_______|
 *     A write whose condition failed at the leader itself becomes a read until the round is over.
 */
struct request {
    struct list by_age;   /* consensus.requests: one timeout for all, so oldest first */
    struct list link;     /* of the list of its state */
    struct list of_write; /* consensus.writes, by seq */
    enum request_kind kind;
    uint64_t token;
    uint64_t deadline_ns;
    uint64_t seq; /* WRITE */
    UT_hash_handle hh;
    struct buf operation;
    uint64_t term_sent; /* 0: no leader can have it */
    uint64_t sent_ns;
    uint64_t nonce;                 /* asked: of the ReadIndex, or the leader's round */
    uint64_t index;                 /* that must be applied, and ... */
    uint64_t index_term;            /* ... that the entry there must be of; 0: any */
    enum consensus_outcome outcome; /* WRITE, waiting or asking */
    struct buf answer;
};

enum proposal_state { PROPOSAL_QUEUED, PROPOSAL_EVALUATING, PROPOSAL_SETTLED };

/* A proposal at the leader. It is remembered until its origin says that it is settled, so that one
 * sent twice is answered twice and appended once. */
struct proposal {
    struct list link; /* consensus.queue while QUEUED */
    uint64_t id;
    uint8_t origin;
    uint64_t incarnation, seq;
    uint64_t applied; /* at the origin */
    struct buf operation;
    enum proposal_state state;
    enum propose_outcome outcome;
    uint64_t index, index_term;
    struct buf answer;
    UT_hash_handle by_id;
    UT_hash_handle by_seq; /* of the origin's table */
};

struct origin { /* a member as proposer, at the leader */
    uint64_t incarnation;
    uint64_t low;
    struct proposal *proposals;
    uint64_t proposed; /* in this placement window */
};

struct ask {        /* a ReadIndex under way */
    uint64_t nonce; /* 0: free */
    uint64_t sent_ns;
};

struct consensus {
    struct consensus_config config;
    struct rng rng;
    struct lifecycle role; /* enum consensus_role */
    bool started;
    uint64_t now;

    struct consensus_hard hard;
    struct consensus_log log;
    uint64_t durable; /* the log, verified or not */
    uint64_t commit;
    uint64_t emitted, applied, stable; /* data: given to the owner, readable, durable as items */
    uint64_t emitted_term;

    /* As follower, in this term. */
    uint8_t leader;
    uint64_t matched;        /* our log is the leader's up to here */
    uint64_t leader_durable; /* greatest mark received */
    uint64_t leader_last;
    uint64_t told_durable; /* what of it the leader was last told to be durable */
    uint64_t all_durable;
    uint64_t round_answered;
    uint64_t heard_ns; /* the leader */
    uint64_t round_trip_ns;
    bool quiet;
    uint64_t staging_index; /* of a snapshot coming in; 0: none */
    uint64_t staging_term;
    uint64_t staged;                                /* offset */
    uint64_t staging_sender_term, staging_transfer; /* they name the transfer */
    uint64_t staging_id;                            /* of the last SNAPSHOT_WRITE */
    bool staging_write, staging_last;

    /* Elections. */
    uint64_t election_at;
    uint64_t asked_ns;         /* for votes */
    uint64_t elections_failed; /* since a leader was heard */
    uint8_t votes;
    bool transfer_vote; /* this candidacy was asked for by the leader */

    /* As leader. */
    struct peer peers[CONSENSUS_MEMBERS];
    uint64_t term_start; /* our first entry */
    uint64_t round, round_answers;
    uint64_t round_ns;                  /* when the last began */
    uint64_t round_times[ROUNDS_TIMED]; /* when each of the last did */
    uint64_t beat_at, stall_at;
    struct origin origins[CONSENSUS_MEMBERS];
    struct proposal *proposals;
    struct list queue;
    uint32_t evaluating;
    uint64_t next_id;
    uint8_t transfer_to;
    bool transfer_told;
    uint64_t transfer_until;
    uint64_t placement_at;
    uint8_t placement_favourite;

    /* Requests that began here. */
    struct list requests, writes, unsent, sent, limbo, reads_new, reads_asked, waiting;
    struct request *by_seq;
    uint32_t request_count;
    uint64_t next_seq;
    uint64_t next_nonce;
    struct ask asks[NONCES_MAX];
    uint64_t nonce_first; /* of this term, and of this leader */

    /* Output. */
    bool hard_dirty, base_dirty;
    uint64_t truncate_from; /* 0: none */
    uint64_t unwritten;     /* first entry not given to a PERSIST */
    struct written *writing;
    uint32_t writing_head, writing_count, writing_cap;
    uint64_t last_write_seq, persisted_seq, hard_seq;
    struct list gated;
    uint32_t gated_count;
    struct consensus_status shown; /* as of the last ROLE_CHANGED */
    struct arena arena;
    struct consensus_effect *effects;
    uint32_t effect_count, effect_cap;
};

static inline enum consensus_role role(const struct consensus *c)
{
    return (enum consensus_role)c->role.state;
}
static inline uint64_t last_index(const struct consensus *c)
{
    return consensus_log_last(&c->log);
}
static inline uint64_t last_term(const struct consensus *c)
{
    return consensus_log_term(&c->log, last_index(c));
}
static inline bool is_witness(const struct consensus *c)
{
    return c->config.kinds[c->config.self] == CONSENSUS_WITNESS;
}
static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
/* For each other member. */
#define each_peer(c, peer)                                                                         \
    for (uint8_t peer = 0; peer < CONSENSUS_MEMBERS; peer++)                                       \
        if (peer != (c)->config.self)

/* What we may claim of our log: no more than is durable. */
static inline uint64_t claim(const struct consensus *c)
{
    return planted(PLANT_CLAIM_UNSYNCED) ? last_index(c) : c->durable;
}

/* consensus.c */
struct consensus_effect *consensus_emit(struct consensus *c, enum consensus_effect_kind kind);
struct consensus_message consensus_message_to(const struct consensus *c,
                                              enum consensus_message_kind kind, uint8_t to);
void consensus_send(struct consensus *c, const struct consensus_message *m);
void consensus_bad_frame(struct consensus *c, uint8_t peer, const char *reason);
void consensus_trace(const struct consensus *c, enum trace_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void consensus_extend(struct consensus *c, struct consensus_entry *entry);
void consensus_cut(struct consensus *c, uint64_t from);
void consensus_restart_log(struct consensus *c, uint64_t index, uint64_t term, bool durable);
void consensus_commit(struct consensus *c, uint64_t index);

/* start.c */
void consensus_begin(struct consensus *c, const struct consensus_start *start);

/* elect.c */
uint64_t consensus_patience(const struct consensus *c);
/* How long to wait for an answer before asking again. */
uint64_t consensus_retry(const struct consensus *c);
void consensus_election_reset(struct consensus *c);
void consensus_election_timeout(struct consensus *c);
void consensus_wake(struct consensus *c);
void consensus_adopt_term(struct consensus *c, uint64_t term);
void consensus_become_follower(struct consensus *c, uint8_t leader);
void consensus_campaign(struct consensus *c, bool transfer);
void consensus_on_pre_vote(struct consensus *c, const struct consensus_message *m);
void consensus_on_pre_vote_response(struct consensus *c, const struct consensus_message *m);
void consensus_on_vote(struct consensus *c, const struct consensus_message *m);
void consensus_on_vote_response(struct consensus *c, const struct consensus_message *m);
void consensus_on_timeout_now(struct consensus *c, const struct consensus_message *m);

/* follow.c */
void consensus_follow(struct consensus *c, uint8_t leader);
void consensus_on_append(struct consensus *c, const struct consensus_message *m);
void consensus_follower_durable(struct consensus *c);

/* append.c */
void consensus_lead(struct consensus *c);
void consensus_leader_stop(struct consensus *c);
void consensus_leader_noop(struct consensus *c);
void consensus_leader_advance(struct consensus *c);
void consensus_leader_beat(struct consensus *c);
void consensus_leader_flush(struct consensus *c);
void consensus_leader_timeout(struct consensus *c);
uint64_t consensus_leader_deadline(const struct consensus *c);
bool consensus_leader_serving(const struct consensus *c);
uint64_t consensus_leader_all_durable(const struct consensus *c);
void consensus_on_append_response(struct consensus *c, const struct consensus_message *m);

/* placement.c */
bool consensus_quorum_heard(const struct consensus *c);
void consensus_transfer_begin(struct consensus *c, uint8_t to);
void consensus_transfer_try(struct consensus *c);
void consensus_placement_timeout(struct consensus *c);
void consensus_caretaker_try(struct consensus *c);

/* snapshot.c */
void consensus_snapshot_send(struct consensus *c, uint8_t to);
void consensus_snapshot_close(struct consensus *c, uint8_t to);
void consensus_snapshot_abandon(struct consensus *c);
void consensus_on_snapshot(struct consensus *c, const struct consensus_message *m);
void consensus_on_snapshot_response(struct consensus *c, const struct consensus_message *m);
void consensus_on_snapshot_piece(struct consensus *c, const struct consensus_input *in);
void consensus_on_snapshot_staged(struct consensus *c, const struct consensus_input *in);
void consensus_on_snapshot_installed(struct consensus *c, const struct consensus_input *in);

/* propose.c: the leader's side of a proposal */
void consensus_proposals_drop(struct consensus *c);
void consensus_proposals_pump(struct consensus *c);
enum propose_outcome consensus_leader_propose(struct consensus *c,
                                              const struct consensus_message *m,
                                              struct proposal **ret);
void consensus_on_propose(struct consensus *c, const struct consensus_message *m);
void consensus_on_evaluated(struct consensus *c, const struct consensus_input *in);

/* request.c: the origin's side */
void consensus_request_propose(struct consensus *c, uint64_t token, struct bytes operation);
void consensus_request_free(struct consensus *c, struct request *request);
struct request *consensus_request_new(struct consensus *c, enum request_kind kind, uint64_t token);
void consensus_request_wait(struct consensus *c, struct request *request, uint64_t index);
void consensus_requests_restart(struct consensus *c);
void consensus_requests_flush(struct consensus *c);
void consensus_requests_applied(struct consensus *c);
void consensus_requests_lost(struct consensus *c);
void consensus_requests_timeout(struct consensus *c);
uint64_t consensus_requests_deadline(const struct consensus *c);
/* The entry is about to be applied; returns the token of whoever waits for it, or 0. */
uint64_t consensus_request_committed(struct consensus *c, const struct consensus_entry *entry);
/* m is a PROPOSE_RESPONSE, from another member or ourselves. */
void consensus_request_answered(struct consensus *c, const struct consensus_message *m);
void consensus_on_propose_response(struct consensus *c, const struct consensus_message *m);

/* barrier.c */
void consensus_read_begin(struct consensus *c, uint64_t token, bool strong);
void consensus_reads_flush(struct consensus *c);
void consensus_reads_round(struct consensus *c);
void consensus_reads_timeout(struct consensus *c);
uint64_t consensus_reads_deadline(const struct consensus *c);
void consensus_on_read_index(struct consensus *c, const struct consensus_message *m);
void consensus_on_read_index_response(struct consensus *c, const struct consensus_message *m);

/* witness.c */
void consensus_trim(struct consensus *c);
bool consensus_full(const struct consensus *c);
bool consensus_room_for(const struct consensus *c, uint64_t bytes);

#endif
