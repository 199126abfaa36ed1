/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STRONG_INTERNAL_H
#define STRONG_INTERNAL_H

/* What the strong_*.c files share.
 *
 * A consensus's output is borrowed until its next step, and performing an effect may bring up a
 * further input: so inputs queue per group and are stepped one by one, the last of them at the end
 * of the region's step (strong_flush). What refers to a group from outside (reads, batches) is
 * counted, and a closed group is freed when nothing does. */

#include "conflict/base/plant.h"
#include "region/core/strong.h"
#include "region/core/strong_rows.h"
#include "witness/relay.h"

/* A proposal or a strong read of this Region, by the token that the consensus knows it by. */
enum strong_call_kind { STRONG_CALL_WRITE, STRONG_CALL_READ, STRONG_CALL_SEAL };
struct strong_call {
    UT_hash_handle hh;
    struct list link; /* strong.calls_new or calls_open or calls_read */
    uint64_t token;
    enum strong_call_kind kind;
    struct request *request; /* NULL: SEAL */
    uint32_t index;          /* WRITE: of the key */
    bool executed;           /* WRITE: the result is filled */
    uint64_t read_index;     /* READ: what must be durable among the items first */
    uint64_t deadline_ns;    /* READ, while it waits for that: a full disk is no reason to hang */
};

/* A committed entry on its way into the items. */
struct strong_apply {
    struct list link; /* strong.applies, by index */
    uint64_t index, term, token;
    uint8_t origin;
    bool noop, known;
    bool held;         /* until the rows of a snapshot are not on their way any more */
    struct lane *lane; /* pinned; NULL: none is needed */
    struct wait wait;
    size_t payload_len;
    uint8_t payload[];
};

/* A proposal that is being evaluated here, at the leader. */
struct strong_evaluation {
    struct list link; /* strong.evaluations */
    uint64_t id, origin_applied;
    uint8_t origin;
    struct lane *lane; /* pinned */
    struct wait wait;
    size_t operation_len;
    uint8_t operation[];
};

/* What a key will hold once all that was evaluated here is applied. */
struct strong_image {
    UT_hash_handle hh;
    uint64_t id;    /* of the evaluation */
    uint64_t index; /* of its entry; 0: not appended yet */
    uint8_t origin;
    bool present;
    struct buf item;
    uint32_t key_len;
    uint8_t key[];
};

struct strong_input {
    struct list link; /* strong.inputs */
    struct consensus_input in;
    size_t len;
    uint8_t bytes[];
};

/* A write of the log, kept until it is durable: a full disk only delays it. */
struct strong_persist {
    struct list link;   /* strong.persists, by seq */
    uint64_t seq, last; /* last: index up to which the log is durable with it */
    bool in_flight;
    struct buf rows;
};

/* A snapshot that is being sent. */
struct strong_outgoing {
    uint64_t id; /* 0: none */
    uint8_t peer;
    uint64_t index, offset, next_offset;
    uint16_t sealed;  /* as of the index */
    struct buf after; /* the last row key given; empty at the beginning */
};

/* A snapshot that is coming in: one piece at a time is put in the place of the rows it covers. */
struct strong_incoming {
    uint64_t id; /* of the piece at work; 0: none */
    uint64_t index, term, offset;
    bool last;
    bool busy;         /* a read or a batch of it is under way */
    bool piece_done;   /* with the batch that is under way */
    struct buf piece;  /* as it came */
    struct buf after;  /* row key behind which the piece begins; empty: the partition's begin */
    struct buf at;     /* how far this piece has been put in place */
    struct buf upto;   /* the last row key that it covers; empty: the partition's end */
    uint64_t retry_ns; /* the disk was full; 0: not waiting */
};

/* Whether the items lack entries of which the consensus was told that they have them, as the disk
 * was full. Until they have them again nothing is evaluated. */
enum strong_behind {
    STRONG_UP_TO_DATE,
    STRONG_BEHIND_WAITING, /* for the time of the next attempt */
    STRONG_BEHIND          /* they are among the applies again */
};

enum strong_state { STRONG_LOADING, STRONG_RUNNING, STRONG_CLOSED };
enum { STRONG_OUTGOING = 2 };

struct strong {
    struct partition *partition;
    struct table_state *table;
    enum strong_state state;
    uint8_t self;
    bool witness; /* this member */
    struct consensus *core;
    struct relay relay;
    uint32_t uses; /* reads and batches that point here */

    struct list dirty; /* strong_region.dirty; once it is closed, strong_region.closing */
    struct list inputs;
    bool stepping;
    struct bytes stepped; /* the input's bytes that are being stepped */

    uint64_t deadline;
    uint32_t heap_at; /* in strong_region.heap; UINT32_MAX: not in it */

    /* strong_start.c */
    struct strong_found found;
    uint32_t loading; /* reads that are not answered */

    /* strong_log.c */
    uint64_t generation; /* of the hard state's slots */
    uint64_t log_low;    /* the lowest row that may be in the store */
    uint64_t log_high;   /* the highest */
    uint64_t log_synced; /* durable up to here */
    struct list persists;
    uint64_t persisted, persisted_told;
    uint64_t retry_ns; /* the disk was full; UINT64_MAX: not waiting */

    /* strong_apply.c */
    struct list applies;
    uint64_t told, told_term; /* in the items, batches in flight included */
    uint64_t stable, stable_told;
    enum strong_behind behind;
    uint64_t ahead; /* rows that came with a snapshot may hold what entries up to here wrote */

    /* strong_write.c */
    struct list evaluations;
    struct strong_image *images;
    bool serving;
    uint64_t serving_term;
    uint16_t sealing;       /* a SEAL for this dissolver was evaluated here; 0 */
    bool seal_asked;        /* our own SEAL is under way */
    uint64_t seal_after_ns; /* when to try again */
    struct list calls_new;  /* before the group runs */
    struct list calls_open; /* proposed */
    struct list calls_read; /* READ_OK, and the items are not durable that far */

    struct strong_outgoing outgoing[STRONG_OUTGOING];
    struct strong_incoming incoming;
};

struct strong_region {
    struct table_state *tables; /* uthash: those with groups here, by group_id */
    struct list dirty;          /* groups with something to do before the step ends */
    struct list closing;        /* closed, and still referred to */
    struct strong **heap;
    uint32_t heap_count, heap_cap;
    struct strong_call *calls; /* uthash, by token */
    uint64_t token_last;
    struct strong **all; /* every open group */
    uint32_t all_count, all_cap;
    bool stream_up[VV_MAX]; /* CHANNEL_GROUPS_OUT, by index of config.peers */
    struct buf outbox[VV_MAX];
    uint64_t bad_frame_after_ns; /* when the next may be told of */
    uint64_t bad_frames_untold;
    struct arena arena; /* of one evaluation */
    struct buf scratch, payload;
};

/* The leader's word to an origin about a proposal that did not enter the log. */
enum strong_answer {
    STRONG_ANSWER_IMAGE = 1, /* what the key holds: the origin sees for itself */
    STRONG_ANSWER_SEALED,
    STRONG_ANSWER_REFUSED
};
/* First byte of a proposal. */
enum strong_proposal { STRONG_PROPOSAL_WRITE = 1, STRONG_PROPOSAL_SEAL };

enum { STRONG_RETRY_MS = 200 };

/* What a READ of a group is for, in read.index, with the part or slot added. */
enum { STRONG_READ_LOAD = 0, STRONG_READ_OUTGOING = 16, STRONG_READ_INCOMING = 32 };
/* wait.index of a WAIT_STRONG. */
enum { STRONG_WAIT_APPLY, STRONG_WAIT_EVALUATION };

/* strong.c */
void strong_input(struct region *region, struct strong *strong, const struct consensus_input *in);
/* Not before the caller has returned: for those who would not survive what may come of it. */
void strong_input_later(struct region *region, struct strong *strong,
                        const struct consensus_input *in);
void strong_mark(struct region *region, struct strong *strong);
void strong_use(struct strong *strong);
void strong_release(struct strong *strong);
static inline uint16_t strong_region_of(const struct strong *strong, uint8_t member)
{
    return member < STRONG_MEMBERS ? strong->table->d.strong.regions[member] : 0;
}

/* strong_timer.c */
void strong_timer_set(struct strong_region *all, struct strong *strong, uint64_t deadline);
void strong_timer_remove(struct strong_region *all, struct strong *strong);

/* strong_start.c */
void strong_load(struct region *region, struct strong *strong);
void strong_load_rows(struct region *region, struct strong *strong, uint32_t part,
                      const struct region_input *in);

/* strong_log.c */
void strong_persist(struct region *region, struct strong *strong, uint64_t seq,
                    const struct consensus_write *write);
void strong_persist_durable(struct region *region, struct strong *strong, uint64_t seq);
void strong_persist_failed(struct region *region, struct strong *strong);
void strong_persist_retry(struct region *region, struct strong *strong);
void strong_persists_free(struct strong *strong);

/* strong_write.c */
void strong_evaluate(struct region *region, struct strong *strong,
                     const struct consensus_effect *effect);
void strong_appended(struct strong *strong, uint64_t id, uint64_t index);
void strong_role(struct region *region, struct strong *strong);
void strong_evaluation_known(struct region *region, struct strong_evaluation *evaluation,
                             bool broken);
void strong_reply(struct region *region, struct strong *strong,
                  const struct consensus_effect *effect);
/* The entry of this call is about to be applied on this image. */
void strong_execute(struct region *region, struct strong_call *call, struct bytes item);
void strong_image_applied(struct strong *strong, struct bytes key, uint64_t index);
void strong_evaluations_drop(struct region *region, struct strong *strong);
void strong_evaluations_wake(struct region *region, struct strong *strong);
void strong_seal_retry(struct region *region, struct strong *strong);
struct strong_call *strong_call_new(struct region *region, struct strong *strong,
                                    enum strong_call_kind kind, struct request *request,
                                    uint32_t index);
struct strong_call *strong_call_find(struct region *region, uint64_t token);
void strong_call_free(struct region *region, struct strong_call *call);
void strong_calls_begin(struct region *region, struct strong *strong);
void strong_calls_fail(struct region *region, struct strong *strong);

/* strong_apply.c */
void strong_apply(struct region *region, struct strong *strong,
                  const struct consensus_effect *effect);
void strong_applies_begin(struct region *region, struct strong *strong);
void strong_applies_drain(struct region *region, struct strong *strong);
void strong_apply_durable(struct region *region, struct strong *strong, uint64_t index);
void strong_apply_failed(struct region *region, struct strong *strong);
void strong_applies_again(struct region *region, struct strong *strong);
void strong_applies_drop(struct region *region, struct strong *strong);

/* strong_read.c */
void strong_read_ok(struct region *region, struct strong *strong, uint64_t token, uint64_t index);
void strong_reads_settle(struct region *region, struct strong *strong);
/* Ends those that have waited for the store too long; strong_reads_deadline: when the next has. */
void strong_reads_expire(struct region *region, struct strong *strong);
uint64_t strong_reads_deadline(const struct strong *strong);
void strong_read_end(struct region *region, struct strong_call *call, const char *failure);

/* strong_snapshot.c */
void strong_snapshot_read(struct region *region, struct strong *strong, uint64_t id, uint8_t peer,
                          uint64_t offset);
void strong_snapshot_close(struct strong *strong, uint64_t id);
void strong_snapshot_rows(struct region *region, struct strong *strong, const struct read *read,
                          const struct region_input *in);
void strong_snapshot_write(struct region *region, struct strong *strong,
                           const struct consensus_effect *effect);
void strong_install(struct region *region, struct strong *strong);
void strong_install_rows(struct region *region, struct strong *strong, const struct read *read,
                         const struct region_input *in);
void strong_install_durable(struct region *region, struct strong *strong, uint64_t id,
                            bool durable);

/* strong_net.c */
void strong_send(struct region *region, struct strong *strong, uint8_t peer, struct bytes frame);
void strong_net_flush(struct region *region);
/* Hints the groups that this Region may be away. */
void strong_peer_down(struct region *region, uint16_t peer);

#endif
