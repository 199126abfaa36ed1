/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_INTERNAL_H
#define REGION_INTERNAL_H

/* What the files of the region core share. Who owns what:
 *
 *   region: tables    each with partitions, each with its applies (a peer's records, in order) and
 *                     its maintenance, one purge and one trim at a time
 *           lanes     (table, key) -> what the key holds, writes in flight included; those that
 *                     nobody needs are the cache of items
 *           batches   emitted and not yet durable, in order; each knows how to be undone
 *           reads     outstanding READ effects, by id
 *           requests  between REGION_REQUEST and REGION_REPLY
 *
 * A table is freed only when nothing refers to it any more (users, batches) and its rows are gone.
 * The header passes 500 lines because a directory shall have one internal header and no more. */

#include <stdbool.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HASH_FUNCTION(at, len, to) ((to) = (unsigned)XXH3_64bits((at), (len)))
#include <uthash.h>
/* Shorter chains than uthash's: each link is a lane out of the cache. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 3U

#include "conflict/base/alloc.h"
#include "conflict/base/arena.h"
#include "conflict/base/check.h"
#include "conflict/base/list.h"
#include "conflict/base/rng.h"
#include "region/core/control_wire.h"
#include "region/core/key.h"
#include "region/core/keyspace.h"
#include "region/core/region.h"

enum { NS_PER_MS = 1000000 };

struct apply;
struct purge;
struct change;

/* ---- Tables and partitions ---- */

struct partition {
    struct table_state *table;
    uint32_t index;
    struct partition_meta meta; /* writes in flight included */
    uint64_t seq_durable;
    uint64_t seq_reported;     /* to the replicator */
    uint64_t hlc_durable;      /* of the newest durable local write */
    uint64_t log_bytes_fresh;  /* durable and not yet reported */
    struct replica *replica;   /* NULL: not shared */
    struct list dirty;         /* region.dirty: has something to report */
    struct list applies;       /* struct apply, in order; the first few may be in flight */
    struct purge *collect;     /* NULL: none under way */
    uint64_t collect_after_ms; /* of the wall clock, as the age of tombstones is */
    uint64_t trim_to;          /* log rows up to it may go */
    bool trimming;             /* a read or a batch of it is under way */
    uint32_t caught_up;        /* bit per index of config.peers */
    struct strong *strong;     /* its consensus group (strong.h); NULL: none runs */
};

struct table_state {
    struct description d; /* d.table is what everyone sees */
    struct partition *partitions;
    struct list link;         /* region.erasing */
    bool hidden;              /* being created: its name is taken, no more */
    bool changing;            /* a change of d is under way: */
    struct change_op *change; /* this one */
    uint32_t users;           /* requests and reads that point here */
    uint32_t batches;         /* in flight that write its rows */
    uint32_t lanes;           /* of its keys, kept ones too */
    bool erasing;             /* a read or a batch of it is under way */
    uint32_t erase_step;
    uint64_t erase_after_ns;
    bool witness; /* of this table only a witness is held here, so it has no name here */
    /* The groups' rows of a strong table that is none any more: wanted once all batches up to
     * shed_after are done; under way for shed_partition; done in this life up to shed_epoch. */
    bool shed_wanted, shedding;
    uint64_t shed_after;
    uint32_t shed_epoch, shed_partition;
    struct table_state *free_next; /* region.freed */
    struct list
        parked;   /* struct parked: control requests that come while a peer's word is taken in */
    bool stashed; /* gossip that came while changing */
    struct description stash;
    uint32_t dirty;   /* bit per peer: has not confirmed our latest description */
    uint32_t calling; /* bit per peer: a MERGE call is under way */
    uint64_t dirty_generation;
    uint64_t gossip_round;   /* the last that named it */
    uint64_t push_after_ns;  /* next attempt after a failure */
    UT_hash_handle by_group; /* strong_region.tables */
    bool strong_listed;      /* it is in there */
    bool strong_ready;       /* strong_ready(), when it was last looked at */
    struct {
        bool joined;
        struct stamp since; /* of the member entry that it was joined for */
    } joins[VV_MAX];        /* by index of config.peers: what the replicator was told */
};

struct parked {
    struct list link; /* table_state.parked */
    struct op *op;
    uint64_t token;
};

/* A grave: a global table this Region has left, kept so that stale gossip cannot bring it back. */
enum { GRAVES_MAX = 256 };
struct grave {
    struct list link; /* region.graves, oldest first */
    struct description d;
};

/* ---- Requests ---- */

enum wait_kind { WAIT_REQUEST, WAIT_APPLY, WAIT_PURGE, WAIT_STRONG };

/* Something that waits for a lane to be known, or for a batch to be durable. */
struct wait {
    struct list link;
    enum wait_kind kind;
    uint32_t index; /* of the key within its owner */
    void *owner;
};

struct request {
    struct list link; /* region.requests */
    struct op *op;
    uint64_t token;
    uint32_t pending;          /* keys (or reads) that are not settled */
    uint32_t executed;         /* READ: keys before it have been executed, in order */
    struct table_state *table; /* RANGE */
    struct bytes *bodies;      /* READ: those that came out of order; in the op's arena */
    bool *arrived;
    uint32_t barriers;   /* READ, RANGE: strong tables that have not answered yet */
    uint32_t user_count; /* of the op's keys, from the first: their tables count it as a user */
    struct wait waits[]; /* WRITE: one per key */
};

/* ---- Lanes ---- */

/* What a body adds to a partition's counts. */
struct lane_weight {
    uint64_t items, bytes, tombstones;
};

struct lane {
    UT_hash_handle hh;
    struct table_state *table;
    struct list changes; /* struct change, oldest first: writes in flight */
    struct list waiters; /* struct wait */
    struct list kept;    /* region.kept_lanes: not to be freed when nobody needs it */
    uint32_t pins;
    bool reading;
    bool used;                 /* since it was kept, or was given a second chance */
    bool known;                /* base is what the store holds, writes in flight apart */
    struct buf base;           /* a record body; empty for no row */
    struct lane_weight weight; /* of its image */
    uint32_t key_len;
    uint8_t key[]; /* table number be32 | row key */
};

/* One row that a batch in flight puts or deletes. */
struct change {
    struct list in_lane;
    struct change *next; /* of the same batch, the one before it */
    struct lane *lane;
    struct batch *batch;
    size_t body_at, body_len; /* within the batch's bytes; length 0: the row is deleted */
};

/* ---- Batches ---- */

enum batch_owner {
    OWNER_NONE,
    OWNER_APPLY,
    OWNER_PURGE,
    OWNER_TRIM,
    OWNER_ERASE,
    OWNER_CATALOG,
    OWNER_LEDGER,
    OWNER_START,
    OWNER_STRONG
};

struct batch {
    struct list link; /* region.batches, by id */
    uint64_t id;
    struct buf bytes;
    struct change *changes; /* newest first */
    struct list waiters;    /* struct wait of requests */
    enum batch_owner owner;
    void *owner_at;
    /* To undo: what was there before. */
    struct partition *partition; /* whose meta it writes; may be NULL */
    struct partition_meta meta_before;
    struct ledger_counts ledger_before;
    uint64_t ledger_writes;
    /* To be noted once it is durable. */
    int64_t items, size;
    uint64_t seq, hlc;  /* of its local write; hlc 0: none */
    uint64_t epoch;     /* of the partition's next local write */
    uint64_t log_bytes; /* that it added */
    uint64_t reserved;  /* clock reservation; 0: none */
    enum { STRONG_BATCH_LOG, STRONG_BATCH_APPLY, STRONG_BATCH_INSTALL } strong_part;
    uint64_t strong_seq; /* OWNER_STRONG: of the PERSIST, or the last entry applied */
};

/* ---- Outstanding reads ---- */

enum read_kind {
    READ_FREE,
    READ_START,
    READ_LANE,
    READ_KEY,
    READ_PAGE,
    READ_LOG,
    READ_SNAPSHOT,
    READ_PURGE,
    READ_TRIM,
    READ_ERASE,
    READ_LEDGER,
    READ_STRONG
};

struct read {
    enum read_kind kind;
    uint32_t generation; /* in the high half of the id, so that an old id finds nothing */
    uint32_t next_free;
    void *owner;
    uint32_t index;         /* READ_KEY */
    uint64_t replicator_id; /* READ_LOG, READ_SNAPSHOT */
    uint64_t seq;           /* READ_LOG: from */
    struct table_state *table;
};

/* ---- Calls to peers ---- */

enum { CALLS_MAX = 256 };
struct call {
    struct list link; /* region.calls */
    uint64_t id;
    uint16_t peer;
    enum call_kind kind;
    struct table_state *table; /* holds a user */
    struct change_op *change;  /* that waits for it; NULL for a push */
    uint64_t dirty_generation;
};

/* ---- The region ---- */

struct region {
    struct region_config config;
    struct rng rng;
    struct hlc hlc;
    uint64_t mono_ns, wall_ms; /* of the current step */
    bool started, ready;
    struct region_meta meta;
    struct ledger_counts ledger;
    bool ledger_trimming;

    struct arena out; /* what effects point to, until the next step */
    struct region_effect *effects;
    uint32_t effect_count, effect_cap;

    struct table_state **tables; /* by name */
    uint32_t table_count, table_cap;
    uint32_t named_count; /* the first of them: by name. Behind them those of which a witness is
                             held here: no client sees them, and their names are free */
    struct list erasing;
    struct list graves;
    uint32_t grave_count;
    bool tables_changed; /* since peers were told */
    uint64_t gossip_rounds;

    struct lane *lanes;     /* uthash */
    struct list kept_lanes; /* the first to go first */
    size_t kept_bytes;
    struct list batches;
    struct list spare_batches;
    uint32_t spare_count;
    struct change *spare_changes;
    uint64_t batch_last;
    uint64_t persist_bytes;

    struct read *reads;
    uint32_t read_cap, read_free;

    struct list requests;
    uint32_t request_count;

    struct list calls;
    uint64_t call_last;

    struct strong_region *strong; /* strong.h */

    struct replicator *replicator;
    uint64_t
        promise_after_ns; /* when the clock's reservation may next be renewed for its own sake */
    uint64_t retry_at_ns; /* of pushes and erasures that failed */
    struct list dirty;    /* partitions with something to report */
    struct replicator_input *reports;
    uint32_t report_count, report_cap;
    bool reporting;
    bool peer_up[VV_MAX][2]; /* before the start: streams to be told of */

    struct table_state *freed; /* at the next step, as the last effects may point there */
    struct buf key_scratch, end_scratch, body_scratch, log_scratch;
    struct op_row *rows;
    uint32_t rows_cap;
    struct replicator_row *replicator_rows;
    uint32_t replicator_rows_cap;

    struct region_counters counters;
};

/* region.c */
struct region_effect *effect_add(struct region *region, enum region_effect_kind kind);
/* What an effect may point to: a copy that lives until the next step. */
struct bytes out_copy(struct region *region, struct bytes from);
struct request *request_new(struct region *region, struct op *op, uint64_t token,
                            uint32_t wait_count);
void request_finish(struct region *region, struct request *request);
/* One of its keys is settled; replies after the last. */
void request_settle(struct region *region, struct request *request);
/* A refusal of the whole request, unless there is one already. */
void request_fail(struct request *request, enum api_error error, const char *message);
/* Of one key, on which nothing was done: API_INTERNAL, and the message if that is all there is. */
void request_fail_undone(struct request *request, const char *message);
/* A REGION_TIMEOUT no later than this. */
void retry_at(struct region *region, uint64_t mono_ns);
uint32_t peer_index(const struct region *region, uint16_t peer); /* VV_MAX: not a peer */
static inline struct table_state *table_of(const struct table *table)
{
    return container_of((void *)(uintptr_t)table, struct table_state, d.table);
}

/* reads.c: outstanding READ effects. begin and end are copied. */
struct read *read_new(struct region *region, enum read_kind kind, void *owner,
                      struct table_state *table, uint64_t *ret_id);
void read_emit_key(struct region *region, uint64_t id, struct bytes key);
void read_emit_range(struct region *region, uint64_t id, struct bytes begin, struct bytes end,
                     bool reverse, uint32_t rows_max, uint64_t bytes_max);
void read_done(struct region *region, const struct region_input *in);

/* start.c */
void region_meta_put(struct region *region, struct batch *batch);
/* An epoch that no table's log has been started in. */
uint64_t epoch_take(struct region *region);
void start_begin(struct region *region);
void start_rows(struct region *region, const struct region_input *in);
void start_durable(struct region *region, bool durable);
void start_retry(struct region *region);

/* read.c: GetItem, BatchGetItem, Query, Scan. */
void read_begin(struct region *region, struct op *op, uint64_t token);
void read_key_rows(struct region *region, struct request *request, uint32_t index,
                   const struct region_input *in);
void read_page_rows(struct region *region, struct request *request, const struct region_input *in);
/* What had to be asked before the store may be read has been answered. */
void read_continue(struct region *region, struct request *request);
const char *read_failure(enum store_outcome outcome);

/* write_eventual.c */
void write_begin(struct region *region, struct op *op, uint64_t token);
void write_key(struct region *region, struct request *request, uint32_t index, struct lane *lane);

/* lane.c */
struct lane *lane_get(struct region *region, struct table_state *table, struct bytes key);
/* What the key holds, writes in flight included; false when that is not known. */
bool lane_image(const struct lane *lane, struct bytes *ret_body);
/* The newest batch in flight that writes it, or NULL. */
struct batch *lane_batch(const struct lane *lane);
struct bytes lane_key(const struct lane *lane); /* the row key */
/* Calls the wait's owner as soon as the lane is known: now, or when it has been read. */
void lane_wait(struct region *region, struct lane *lane, struct wait *wait);
void lane_pin(struct lane *lane);
void lane_unpin(struct region *region, struct lane *lane);
void lane_rows(struct region *region, struct lane *lane, const struct region_input *in);
/* Freed, or kept as a cache, if nobody needs it. */
void lane_release(struct region *region, struct lane *lane);
/* Its oldest write has become durable: body is what the store holds now. */
void lane_settle(struct region *region, struct lane *lane, struct bytes body);
/* Its newest write is void. */
void lane_undo(struct lane *lane);
struct lane_weight lane_weigh(struct bytes body);
/* What the store holds for a key, if that can be told without asking it. */
bool lane_durable(struct region *region, const struct table_state *table, struct bytes key,
                  struct bytes *ret_body);
/* Frees the lanes of a table whose rows are about to change past them, as soon as nobody needs
 * them. */
void lanes_forget(struct region *region, const struct table_state *table);
void lanes_free(struct region *region);

/* batch.c */
struct batch *batch_begin(struct region *region, struct partition *partition,
                          enum batch_owner owner, void *owner_at);
/* A row of an item; an empty body deletes it. Keeps the partition's counts right. */
void batch_item(struct region *region, struct batch *batch, struct lane *lane, struct bytes body);
/* The same for a row that no lane is busy with; old is what it holds. */
void batch_row(struct region *region, struct batch *batch, struct bytes key, struct bytes old,
               struct bytes body);
/* Adds what is due beside it (partition meta, ledger counts, clock) and emits it. */
void batch_emit(struct region *region, struct batch *batch);
void batch_drop(struct region *region, struct batch *batch); /* not emitted */
void batches_durable(struct region *region, uint64_t id);
void batches_failed(struct region *region, uint64_t id);

/* ledger_rows.c */
void ledger_write(struct region *region, struct batch *batch, struct partition *partition,
                  struct bytes key, enum resolve_relation relation, const struct record *winner,
                  const struct record *loser);
void ledger_trim(struct region *region);
void ledger_trim_rows(struct region *region, const struct region_input *in);
void ledger_trimmed(struct region *region, bool durable);

/* replicate.c: the replicator's inputs and effects. */
void replicate(struct region *region, const struct replicator_input *in);
void replicate_dirty(struct region *region); /* reports what has become durable */
void replicate_log_rows(struct region *region, struct read read, const struct region_input *in);
void replicate_snapshot_rows(struct region *region, struct read read,
                             const struct region_input *in);
/* Store keys of the partition's items: the first after a row key, and just past one; an empty run
 * stands for the partition's own begin or end. */
struct bytes partition_begin(struct buf *to, const struct partition *partition, struct bytes after);
struct bytes partition_end(struct buf *to, const struct partition *partition, struct bytes last);
void replicate_trim(struct region *region, struct partition *partition);
void replicate_trim_rows(struct region *region, struct partition *partition,
                         const struct region_input *in);
void replicate_trimmed(struct region *region, struct partition *partition, bool durable);

/* apply.c */
void apply_begin(struct region *region, const struct replicator_effect *effect);
void apply_lane_known(struct region *region, struct apply *apply, bool broken);
void apply_durable(struct region *region, struct apply *apply, bool durable);
void apply_swept(struct region *region, struct apply *apply, bool swept);
void apply_advance(struct region *region, struct partition *partition);
/* The partition is no longer shared: forgets what came for it. */
void apply_abandon(struct region *region, struct partition *partition);
void apply_free_all(struct region *region, struct partition *partition);
/* A sequence of our own that we do not know of: number on above it. */
void partition_outrun(struct region *region, struct partition *partition, uint64_t seq);

/* purge.c: removes rows from a range by rule, each checked in its lane. */
struct purge_rule {
    struct vv vv;    /* covers the version, */
    bool unread;     /* unless nobody else is there to read it */
    bool tombstones; /* only tombstones, below the horizon and written by wall_ms_max */
    uint64_t hlc_horizon;
    uint64_t wall_ms_max;
    struct bytes *keep; /* row keys that stay, sorted; the array is the purge's, the keys are not */
    uint32_t keep_count;
};
/* begin (exclusive) and end (inclusive) are row keys; empty for the partition's own ends. apply is
 * told at the end; NULL for a collection. */
struct purge *purge_begin(struct region *region, struct partition *partition, struct bytes begin,
                          struct bytes end, const struct purge_rule *rule, struct apply *apply);
void purge_rows(struct region *region, struct purge *purge, const struct region_input *in);
void purge_lane_known(struct region *region, struct purge *purge, bool broken);
void purge_durable(struct region *region, struct purge *purge, bool durable);
void purge_free(struct region *region, struct purge *purge);
/* The owning apply is gone: stop at the next opportunity. */
void purge_abandon(struct purge *purge);
void collect_begin(struct region *region, struct partition *partition,
                   const struct replicator_effect *effect);
/* The table is no longer shared: tombstones are of no use. */
void collect_all(struct region *region, struct partition *partition);

/* catalog.c: the set of tables, and their durable changes. */
struct table_state *catalog_find(const struct region *region, struct bytes name);
struct table_state *catalog_find_group(const struct region *region, const uint8_t group_id[16]);
struct grave *catalog_grave(const struct region *region, const uint8_t group_id[16]);
const struct table *catalog_find_usable(void *region, struct bytes name); /* op_find_table */
/* Takes a table in, with its partitions. */
struct table_state *catalog_add(struct region *region, const struct description *description);
/* Fills in what this Region gives a table that it is about to have: number, identity, epoch. */
void table_prepare(struct region *region, struct description *description);
/* Remembers for good that this Region has left a group that it has no table of. */
void grave_write(struct region *region, const struct description *description);
void catalog_add_grave(struct region *region, const struct description *description);
void table_release(struct region *region, struct table_state *table); /* a user less */
void table_free(struct table_state *table);
/* Who is told when a change of a table is durable, or has failed. */
struct change_op {
    struct table_state *table;
    struct request *request; /* NULL: no client waits */
    bool told;               /* it comes from another Region, which has told the others */
    bool call;               /* a peer waits: call_token */
    uint64_t call_token;
    enum { CHANGE_CREATE, CHANGE_UPDATE, CHANGE_DROP } kind;
    struct description next;
    enum table_status answer_status; /* what the client is shown */
    uint32_t calls;                  /* checks at peers that are under way */
    enum call_outcome refused;       /* the first refusal of a check; 0: none */
    uint16_t refused_by;             /* that Region */
    bool unreachable;
    uint16_t target; /* where a replica is created or deleted; 0: this Region leaves */
    bool adding;
    enum { STRONG_STEP_NONE, STRONG_STEP_MAKE, STRONG_STEP_DISSOLVE } strong_step;
    bool strong_first; /* this Region's part of new groups begins: with its first rows */
    bool strong_last;  /* the groups end, and the items become this Region's own */
};
struct change_op *change_new(struct table_state *table);
/* Writes change->next. The table is `changing` from change_new until it is durable or has failed.
 */
void change_write(struct region *region, struct change_op *change);
void change_durable(struct region *region, struct change_op *change, bool durable);
void change_abort(struct region *region, struct change_op *change);
void change_free_all(struct region *region);

/* erase.c: rows that nobody needs any more. */
void table_erase(struct region *region, struct table_state *table);
/* Its groups have ended: their rows go. */
void table_shed(struct region *region, struct table_state *table);
void table_erase_rows(struct region *region, struct table_state *table,
                      const struct region_input *in);
void table_erased(struct region *region, struct table_state *table, bool durable);

/* control.c: the control plane's operations. */
void control_begin(struct region *region, struct op *op, uint64_t token);
void control_answer_change(struct region *region, struct change_op *change);
/* The table is not changing any more: takes up what was parked. */
void control_resume(struct region *region, struct table_state *table);
/* All checks at peers have been answered. */
void control_checked(struct region *region, struct change_op *change);
/* control_replicas.c: UpdateTable's ReplicaUpdates. */
bool replicas_check_shape(struct op *op);
/* False: refused at once. */
bool replicas_begin(struct region *region, struct op *op, uint64_t token,
                    struct table_state *table);
void replicas_leave(struct region *region, struct change_op *change);
bool replicas_sourced_lately(const struct region *region, const struct table_state *table);
extern const char replicas_source_message[];
/* Refusals that both kinds of global tables share; they return false. */
bool replicas_refuse_region(const struct region *region, struct op *op, struct bytes name);
bool replicas_refuse_local(struct op *op);
bool replicas_refuse_stranger(struct op *op, struct bytes name);
bool replicas_refuse_billing(struct op *op);
bool table_has_replica(const struct table *table, uint16_t region);

/* control_strong.c: what UpdateTable does to strong tables, and to make one. */
bool strong_check_witnesses(struct op *op);
bool strong_check_shape(struct op *op);
bool strong_refuse_stranger(struct op *op, struct bytes name);
bool strong_refuse_region(struct op *op, const char *name);
bool strong_refuse_existing(struct op *op);
bool strong_refuse_epoch(struct op *op);
/* False: refused at once. */
bool strong_make(struct region *region, struct op *op, uint64_t token, struct table_state *table);
bool strong_change(struct region *region, struct op *op, uint64_t token, struct table_state *table);
void strong_checked(struct region *region, struct change_op *change);

/* group_strong.c: members of a strong table. */
uint64_t strong_incarnation_after(const struct region *region, uint64_t known);
/* Fills in this Region's part of a description that it was told, whose table it is about to have.
 * False: it makes no sense. */
bool strong_take_part(const struct region *region, struct description *d, bool *ret_first);
/* Joins the setups. True if `to` has changed. */
bool strong_merge(struct region *region, struct description *to, const struct description *from);
bool strong_setup_equal(const struct strong_setup *a, const struct strong_setup *b);
/* Leaves out what Regions must not be told by Hello. */
void strong_censor(const struct region *region, struct description *d);
void strong_set_dissolver(struct region *region, struct description *next, uint16_t dissolver);
void strong_advance(struct region *region, struct table_state *table);
/* The change with strong_last is durable. */
void strong_take_over(struct table_state *table);

/* group.c: members of a global table: merging, pushing, and what follows from them. */
struct member *group_member(struct description *d, uint16_t region);
void group_set_member(struct region *region, struct description *d, uint16_t member,
                      enum member_state state);
struct stamp group_stamp(struct region *region, struct stamp after);
/* Joins `from` into `to`, register by register. True if `to` has changed. */
bool group_merge(struct region *region, struct description *to, const struct description *from);
/* Makes replicas, statuses and the replicator agree with d's members. After each change of d. */
void group_settle(struct region *region, struct table_state *table);
/* Takes the next step of whatever is under way. */
void group_advance(struct region *region, struct table_state *table);
void group_advance_all(struct region *region);
void group_caught_up(struct region *region, struct partition *partition, uint16_t peer);
void group_close(struct region *region, struct table_state *table);
/* The other members of which this Region is seeing a change through, by index of config.peers. */
uint32_t group_charges(const struct region *region, const struct table_state *table);
void group_mark_dirty(struct region *region, struct table_state *table);
/* Tells the Regions of the mask, by index of config.peers. */
void group_push(struct region *region, struct table_state *table, uint32_t mask);
void group_tell_peers(struct region *region); /* the Hello's descriptions, if they changed */

/* control_peer.c: calls, both ways, and gossip. */
void call_peer(struct region *region, uint16_t peer, enum call_kind kind, struct table_state *table,
               const struct description *description, struct change_op *change);
void call_serve(struct region *region, const struct region_input *in);
void call_answered(struct region *region, const struct region_input *in);
void call_answer(struct region *region, uint64_t token, enum call_outcome outcome,
                 const struct description *description);
void gossip(struct region *region, uint16_t peer, struct bytes descriptions);
void stash_merge(struct region *region, struct table_state *table);

#endif
