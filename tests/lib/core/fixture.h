/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

/* Region cores on memory stores, joined by queues: everything that a test of the core needs from a
 * process, a disk and a network, in one thread and without time of its own. Nothing happens unless
 * the test says so: inputs queue until fixture_run, batches are durable at once unless a disk is
 * held, the clocks stand still unless fixture_advance moves them. */

#include <stdbool.h>
#include <stdint.h>

#include "region/core/op.h"
#include "region/core/region.h"
#include "region/core/store.h"

enum { FIXTURE_REGIONS_MAX = 4 };

/* Calls fail when they are blocked, frames get lost. */
enum fixture_kind { FIXTURE_CALLS = 1, FIXTURE_LOGS = 2, FIXTURE_GROUPS = 4 };

struct fixture_event;

struct fixture_op {
    struct fixture_op *next;
    struct arena arena;
    struct op op;
    uint64_t token;
    uint32_t replied;
};

struct fixture_node {
    uint16_t region;
    struct region *core; /* NULL: down */
    struct store *store;
    uint64_t wall_offset_ms;
    bool ready;
    bool hold_disk;  /* batches wait for fixture_sync */
    bool hold_reads; /* reads wait for fixture_release_reads */
    bool disk_full;
    bool witness_only;                            /* from its next start on */
    uint64_t life;                                /* events of an earlier one are void */
    struct fixture_event *batches, **batches_end; /* emitted, not durable */
    struct fixture_event *reads, **reads_end;
};

struct fixture {
    struct fixture_node nodes[FIXTURE_REGIONS_MAX];
    uint32_t count;
    struct region_config config; /* region, peers and seed are set per node */
    uint64_t mono_ns;
    uint64_t wall_ms;
    bool cut[FIXTURE_REGIONS_MAX][FIXTURE_REGIONS_MAX]; /* from, to */
    bool up[FIXTURE_REGIONS_MAX][FIXTURE_REGIONS_MAX];  /* the stream that `from` has opened */
    uint32_t blocked; /* what does not get through between any two: of fixture_kind */
    struct fixture_event *events, **events_end;
    struct fixture_op *ops;
    uint64_t tokens;
    uint32_t replies; /* so far: the order in which ops were answered */
    uint64_t reads;   /* READ effects so far */
    bool (*drop)(void *context, uint32_t from, uint32_t to); /* loses a message; may be NULL */
    void *context;
};

/* Region numbers from region_id.h: 1, 9, 17 and 4, in this order. */
void fixture_init(struct fixture *fixture, uint32_t count);
void fixture_deinit(struct fixture *fixture);

/* One input to one core, now; its effects become events. */
void fixture_step(struct fixture *fixture, uint32_t node, struct region_input *in);
/* Delivers all that is queued, until nothing is. */
void fixture_run(struct fixture *fixture);
/* Moves the clocks in steps, with all timers that come due, running after each. */
void fixture_advance(struct fixture *fixture, uint64_t ms);
/* Makes the first `count` held batches durable; UINT32_MAX for all. */
void fixture_sync(struct fixture *fixture, uint32_t node, uint32_t count);
/* The disk is full: all held batches are void. */
void fixture_fail(struct fixture *fixture, uint32_t node);
void fixture_release_reads(struct fixture *fixture, uint32_t node);
/* Ends the process: what is not durable is lost, nobody is answered. Then starts it again. */
void fixture_kill(struct fixture *fixture, uint32_t node);
void fixture_start(struct fixture *fixture, uint32_t node);
void fixture_restart(struct fixture *fixture, uint32_t node);
void fixture_cut(struct fixture *fixture, uint32_t from, uint32_t to, bool cut);

/* ---- Operations: built by hand, live until the fixture ends ---- */

/* A table named `table` has a string key "pk". */
struct op *fixture_op(struct fixture *fixture, enum op_kind kind, const char *table);
struct op *fixture_create(struct fixture *fixture, const char *table);
struct op *fixture_put(struct fixture *fixture, const char *table, const char *pk, const char *v);
struct op *fixture_delete(struct fixture *fixture, const char *table, const char *pk);
struct op *fixture_get(struct fixture *fixture, const char *table, const char *pk);
struct op *fixture_scan(struct fixture *fixture, const char *table);
/* BatchWriteItem of puts pk0, pk1, ... */
struct op *fixture_batch(struct fixture *fixture, const char *table, uint32_t count, const char *v);
void fixture_condition(struct op *op, const char *expression);
/* UpdateTable with one replica action. */
struct op *fixture_replica(struct fixture *fixture, const char *table, bool create,
                           const char *region);

void fixture_send(struct fixture *fixture, uint32_t node, struct op *op);
/* Sends, runs, and returns the error; fails the test if there is no reply. */
enum api_error fixture_do(struct fixture *fixture, uint32_t node, struct op *op);
/* 0: not yet; else its place in the order of replies, from 1. */
uint32_t fixture_replied(const struct fixture *fixture, const struct op *op);

/* The text of attribute v that a key has in a Region, or NULL: by a GetItem. */
const char *fixture_value(struct fixture *fixture, uint32_t node, const char *table,
                          const char *pk);
/* UpdateTable: makes a table strong, with replicas in one or two Regions and perhaps a witness. */
struct op *fixture_strong(struct fixture *fixture, const char *table, const char *first,
                          const char *second, const char *witness);
/* UpdateTable: takes it apart. */
struct op *fixture_dissolve(struct fixture *fixture, const char *table, const char *first,
                            const char *second, const char *witness);
/* Loses the node's store; it is down before, and after. */
void fixture_lose_disk(struct fixture *fixture, uint32_t node);
/* Table "tbl" in node 0 with replicas in all others, all active. */
void fixture_global(struct fixture *fixture);
const struct table *fixture_table(const struct fixture *fixture, uint32_t node, const char *name);
/* Ledger rows in a Region's store; at most `max` entries are copied, images as texts of v. */
struct fixture_loss {
    char winner[32], loser[32]; /* "" for a delete */
    enum resolve_relation relation;
    uint16_t winner_region, loser_region;
};
uint32_t fixture_ledger(struct fixture *fixture, uint32_t node, struct fixture_loss *at,
                        uint32_t max);
/* All rows of a store as one run, for comparison. */
void fixture_dump(struct fixture *fixture, uint32_t node, uint8_t tag, struct buf *to);

#endif
