/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WITNESS_CONSENSUS_H
#define WITNESS_CONSENSUS_H

/* Strong mode: one group of exactly three members agrees on one log. Raft (Ongaro's thesis) with
 * pre-vote and check-quorum, plus follower-origin commit and follower ReadIndex, so that a write or
 * a strong read costs one round trip to the leader in whichever Region it begins. One member may be
 * a witness: it holds the log, never the items. README.md tells which file does what and why it is
 * right.
 *
 * A `consensus` is one group at one member. Effects may be performed in any order, except that
 * PERSISTs become durable in the order of their numbers and APPLYs take effect in the order of
 * their indexes. A crash may drop any of them; restart is consensus_new and CONSENSUS_START on what
 * was durable. Whatever rests on a write is emitted by a step that knows the write to be durable.
 */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/base/trace.h"

struct consensus;

enum { CONSENSUS_MEMBERS = 3, CONSENSUS_NOBODY = 3, CONSENSUS_GROUP_ID_LEN = 16 };

enum consensus_kind { CONSENSUS_DATA, CONSENSUS_WITNESS };

/* Whether a member's word counts. Only a FULL one votes, acknowledges and serves. */
enum consensus_standing {
    CONSENSUS_FULL,
    CONSENSUS_RECOVERING, /* part of its log was damaged; what it once acknowledged may be missing
                           */
    CONSENSUS_REBUILDING  /* its disk was lost; it has forgotten its votes, too */
};

enum consensus_role {
    CONSENSUS_FOLLOWER,
    CONSENSUS_PRECANDIDATE, /* asks whether it would be elected; nobody's term moves */
    CONSENSUS_CANDIDATE,
    CONSENSUS_LEADER
};

struct consensus_place { /* one partition of a table */
    uint8_t group_id[CONSENSUS_GROUP_ID_LEN];
    uint32_t partition;
};

struct consensus_config {
    struct consensus_place place;
    uint32_t epoch; /* of the membership; frames of another are refused */
    uint8_t self;   /* 0..2 */
    enum consensus_kind kinds[CONSENSUS_MEMBERS]; /* at most one witness */
    uint64_t seed;
    uint64_t heartbeat_ns;       /* 100 ms */
    uint64_t election_ns;        /* at least so long without a leader before an election; 500 ms */
    uint64_t election_ns_max;    /* ten round trips may stretch it, up to here; 10 s */
    uint64_t request_timeout_ns; /* a proposal or strong read is answered within it; 2 s */
    uint64_t retry_ns;           /* an unanswered request to the leader is sent again; 200 ms */
    uint64_t placement_ns;    /* how long another Region must lead in proposals before it gets the
                                 leadership; 60 s; 0: it stays where it is */
    uint64_t batch_bytes_max; /* of payload in one frame, but at least one entry; 256 KiB */
    uint64_t inflight_bytes_max; /* sent to a member and not confirmed; 1 MiB */
    uint64_t log_bytes_max;   /* of payload kept. Beyond it a data member stops holding entries for
                                 a laggard, a witness stops taking them; 16 MiB */
    uint64_t frame_bytes_max; /* larger frames are refused; 2 MiB */
    uint32_t pending_max;     /* proposals and reads under way here, together; 1024 */
    uint32_t evaluate_max;    /* EVALUATEs not answered; 64 */
    uint32_t trim_entries;    /* the log is cut so many at a time; 64 */
    bool quiesce;             /* an idle group falls silent until somebody needs it */
    struct trace trace;
};

/* What must survive, besides the log. The owner keeps it in two checksummed slots that it writes in
 * turn, so that a torn write leaves the older one. */
struct consensus_hard {
    uint64_t term;
    uint8_t voted_for;    /* in that term; CONSENSUS_NOBODY */
    uint64_t incarnation; /* of the disk: greater than that of any disk this member had before */
    uint64_t boot;        /* counts starts: proposals and reads of different lives never mix */
    enum consensus_standing standing;
    uint64_t recover_upto; /* RECOVERING: the log once reached this index */
};

enum consensus_entry_kind { CONSENSUS_NOOP, CONSENSUS_WRITE };

struct consensus_entry {
    uint64_t index, term;
    enum consensus_entry_kind kind;
    uint8_t origin;       /* the member that proposed it, and ... */
    uint64_t incarnation; /* ... with this and ... */
    uint64_t seq;         /* ... this, its name: no two entries share it. WRITE only */
    struct bytes payload; /* the owner's post-image; WRITE only */
};

/* What was found durable. */
struct consensus_start {
    bool
        found; /* a hard state; without, the disk is new: the member rebuilds under `incarnation` */
    struct consensus_hard hard;
    uint64_t incarnation;           /* for a new disk. The time of its making does */
    uint64_t base_index, base_term; /* the log begins after it */
    const struct consensus_entry *entries;
    uint32_t entry_count;
    uint64_t damaged_upto; /* entries were once durable up to here, and those not given are damaged;
                              0: none. A torn tail, never known to be durable, is no damage */
    uint64_t applied_index, applied_term; /* data members: of the stored items */
};

/* ---- Input ---- */

enum consensus_input_kind {
    CONSENSUS_START,     /* once, first */
    CONSENSUS_FRAME,     /* peer, bytes */
    CONSENSUS_PERSISTED, /* seq: that PERSIST and all before it are durable */
    CONSENSUS_PROPOSE,   /* token, bytes: an operation, opaque */
    CONSENSUS_READ,      /* token, strong */
    CONSENSUS_EVALUATED, /* id, verdict, bytes. For one item, answer in the order of EVALUATE */
    CONSENSUS_APPLIED,   /* index: may be read; stable: is durable in the items' store */
    CONSENSUS_SNAPSHOT_PIECE, /* id, index, offset, bytes, last; or failed. Answers SNAPSHOT_READ */
    CONSENSUS_SNAPSHOT_STAGED,    /* id, offset: what came so far, up to offset, is kept. Answers
                                     SNAPSHOT_WRITE */
    CONSENSUS_SNAPSHOT_INSTALLED, /* id: the items are those of the snapshot, durably. Answers
                                     the last SNAPSHOT_WRITE */
    CONSENSUS_PEER_DOWN,          /* peer: a hint. An idle group looks whether its leader lives */
    CONSENSUS_TRANSFER, /* peer: shall lead instead, if it can. Only the leader heeds it */
    CONSENSUS_TIMEOUT
};

enum consensus_verdict {
    CONSENSUS_EVALUATED_WRITE,   /* bytes: payload of the entry */
    CONSENSUS_EVALUATED_FAILED,  /* the condition is false; bytes: for the origin */
    CONSENSUS_EVALUATED_CONFLICT /* another Region is modifying the item */
};

struct consensus_input {
    enum consensus_input_kind kind;
    uint64_t mono_ns;
    uint64_t wall_ms; /* not used: no rule of this core looks at a wall clock */
    const struct consensus_start *start;
    uint8_t peer;
    struct bytes bytes; /* borrowed for the step */
    uint64_t seq, token, id;
    bool strong, last, failed;
    enum consensus_verdict verdict;
    uint64_t index, stable, offset;
};

/* ---- Output ---- */

enum consensus_effect_kind {
    CONSENSUS_PERSIST,        /* seq, write */
    CONSENSUS_SEND,           /* peer, bytes */
    CONSENSUS_EVALUATE,       /* id, origin, index (what the origin had applied), bytes (operation):
                                 against all items as of this log's end. Leader */
    CONSENSUS_APPENDED,       /* id, index: the payload of that EVALUATED became this entry */
    CONSENSUS_APPLY,          /* entry; token if it is ours and somebody waits, else 0 */
    CONSENSUS_REPLY,          /* token, outcome, index, bytes */
    CONSENSUS_READ_OK,        /* token, index: the items as they are may be read */
    CONSENSUS_ROLE_CHANGED,   /* consensus_status tells. Evaluations not answered are void */
    CONSENSUS_SNAPSHOT_READ,  /* id, peer, offset: open one at offset 0, and give a piece of it */
    CONSENSUS_SNAPSHOT_CLOSE, /* id */
    CONSENSUS_SNAPSHOT_WRITE, /* id, index, term, offset, bytes, last: at offset 0 begin anew; at
                                 the last piece replace the items */
    CONSENSUS_BAD_FRAME       /* peer, reason: not a frame of this group, or against the rules */
};

enum consensus_outcome {
    CONSENSUS_COMMITTED,   /* index */
    CONSENSUS_FAILED,      /* the condition was false as of index, which has been applied; bytes */
    CONSENSUS_CONFLICT,    /* not done */
    CONSENSUS_NOT_SERVING, /* not done, and never will be */
    CONSENSUS_UNKNOWN      /* may have been done, may yet be */
};

/* One durable write, parts in this order: hard state, cut, base, entries. */
struct consensus_write {
    const struct consensus_hard *hard; /* NULL: unchanged */
    uint64_t truncate_from;            /* entries from here on go; 0: none */
    bool base_moved; /* entries up to base_index go; a log that ends below it is empty */
    uint64_t base_index, base_term;
    const struct consensus_entry *entries;
    uint32_t entry_count;
};

struct consensus_effect {
    enum consensus_effect_kind kind;
    uint64_t seq, token, id, index, term, offset;
    uint8_t peer, origin;
    bool last;
    struct bytes bytes;
    enum consensus_outcome outcome;
    struct consensus_write write;
    struct consensus_entry entry;
    const char *reason;
};

struct consensus_output {
    const struct consensus_effect *at; /* with all they point to, borrowed until the next step */
    uint32_t count;
};

struct consensus *consensus_new(const struct consensus_config *config);
struct consensus *consensus_free(struct consensus *consensus);
void consensus_step(struct consensus *consensus, const struct consensus_input *in,
                    struct consensus_output *out);
/* mono_ns by which a TIMEOUT is due; UINT64_MAX for never. */
uint64_t consensus_deadline(const struct consensus *consensus);

/* The hard state of a member of a new group: full, for there is nothing that it could have
 * forgotten. Written by whoever makes the group, once, before the first start. */
struct consensus_hard consensus_hard_initial(uint64_t incarnation);
/* Which group a frame is for, so that the owner can find it. False: not a frame. */
bool consensus_frame_place(struct bytes frame, struct consensus_place *ret);

/* ---- Figures, between steps ---- */

struct consensus_status {
    enum consensus_role role;
    enum consensus_standing standing;
    uint8_t leader; /* CONSENSUS_NOBODY */
    bool serving;   /* leader: proposals are evaluated */
    bool quiet;     /* quiesced */
    uint64_t term, commit, durable, applied, base, last, log_bytes;
    uint64_t pending; /* proposals and reads under way */
    bool log_full;    /* it takes no more until others catch up */
};
struct consensus_status consensus_status(const struct consensus *consensus);
/* Views an entry after the base. False: not there. */
bool consensus_entry_at(const struct consensus *consensus, uint64_t index,
                        struct consensus_entry *ret);
/* Of an entry or of the base. False: not there. */
bool consensus_term_at(const struct consensus *consensus, uint64_t index, uint64_t *ret);

#endif
