/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_REGION_H
#define REGION_REGION_H

/* One Region's node as a state machine: requests, peers' messages, completed reads and writes and
 * the passing of time go in; reads, batches, replies and messages come out. No socket, file, clock
 * or thread: under libuv the driver performs the effects, in the simulator the simulator does, and
 * both run this object code.
 *
 * Order: PERSIST effects are numbered 1, 2, 3, ... and take effect in that order; all other effects
 * may be performed in any order. A REPLY, SEND or CALL_REPLY that tells of a write is emitted by
 * the step that takes its PERSISTED, never before. A crash may drop any effect and loses the
 * batches that were not durable; restart is region_new and REGION_START on what the store then
 * holds. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/base/trace.h"
#include "conflict/hlc.h"
#include "conflict/ledger.h"
#include "region/core/op.h"
#include "region/core/store.h"
#include "region/core/table.h"
#include "replicator/replicator.h"
#include "witness/consensus.h"

struct region;

/* Strong tables. What the figures mean is told in consensus.h. */
enum strong_conflict {
    STRONG_CONFLICT_AWS,      /* a write of an item that another Region is modifying is refused */
    STRONG_CONFLICT_SERIALIZE /* it waits its turn */
};
struct strong_config {
    enum strong_conflict conflict;
    uint64_t heartbeat_ms;       /* 100 */
    uint64_t election_ms;        /* 500 */
    uint64_t election_ms_max;    /* 10000 */
    uint64_t request_timeout_ms; /* 2000 */
    uint64_t retry_ms;           /* 200 */
    uint64_t placement_ms;       /* 60000 */
    uint64_t relay_silence_ms;   /* a peer not heard directly for so long is spoken to by way of the
                                    third member, too; 300 */
    uint64_t log_bytes_max;      /* 16 MiB */
    uint32_t evaluate_max;       /* 0: as many as surely fit log_bytes_max; 256 at most */
    uint32_t trim_entries;       /* 0: 64 */
    uint32_t snapshot_rows_max;  /* of one piece; 0: 1024 */
};

struct region_config {
    uint16_t region;        /* this one */
    uint16_t peers[VV_MAX]; /* every other Region of the cluster */
    uint32_t peer_count;
    uint64_t seed; /* of its generator: identifiers, jitter */
    enum hlc_mode clock_mode;
    uint64_t clock_ahead_ms_max;       /* hlc.h; 500 */
    uint32_t partitions_per_table;     /* 4 */
    uint32_t tables_max;               /* 2500 */
    uint32_t operations_in_flight_max; /* beyond it, requests are throttled; 10000 */
    uint64_t persist_bytes_max;        /* batches not yet durable, likewise; 64 MiB */
    uint64_t item_cache_bytes_max;     /* of items written or looked at last; 8 MiB */
    uint64_t call_timeout_ms;          /* control calls to peers; 2000 */
    uint64_t ledger_rows_max;          /* the oldest lost writes are dropped beyond it; 100000 */
    struct replicator_config replication;
    struct strong_config strong;
    bool witness_only; /* holds witnesses of strong tables and nothing else */
    struct trace trace;
};

enum region_input_kind {
    REGION_START,          /* once, first: reads what is durable, then serves */
    REGION_REQUEST,        /* op, token */
    REGION_READ_DONE,      /* id, outcome, rows */
    REGION_PERSISTED,      /* id: this batch and all before it are durable */
    REGION_PERSIST_FAILED, /* id, outcome STORE_FULL: nothing of this batch, or of any that was
                              emitted after it and before this input, was written */
    REGION_PEER_UP,        /* peer, channel: a new stream, nothing sent on it yet */
    REGION_PEER_DOWN,      /* peer, channel */
    REGION_PEER_FRAME,     /* peer, channel, bytes: one message, whole */
    REGION_CALL,           /* peer, token, bytes: a control call from a peer */
    REGION_CALL_DONE,      /* id, bytes, or failed */
    REGION_TRANSFER,       /* peer, bytes: a table's name, or empty: those of its strong groups that
                              are led here shall be led there. A hint: it may not come to pass */
    REGION_TIMEOUT         /* region_deadline has come */
};

/* The streams of a pair of Regions: each Region opens those that carry its own log and what it says
 * to the strong groups. Those of the groups carry messages one way only, may lose any, and lose all
 * that is sent while they are closed. */
enum region_channel {
    CHANNEL_OUTBOUND,
    CHANNEL_INBOUND,
    CHANNEL_GROUPS_OUT, /* SEND only; PEER_UP and PEER_DOWN as of the others */
    CHANNEL_GROUPS_IN   /* PEER_FRAME only */
};

struct region_input {
    enum region_input_kind kind;
    uint64_t mono_ns; /* monotonic, for timers and lag */
    uint64_t wall_ms; /* this Region's wall clock, its offset included */
    uint64_t token;   /* REQUEST, CALL: the caller's, comes back in the reply */
    uint64_t id;      /* READ_DONE, PERSISTED, PERSIST_FAILED, CALL_DONE: from the effect */
    struct op *op;    /* REQUEST: lent until its REPLY */
    uint16_t peer;
    enum region_channel channel;
    struct bytes bytes;            /* PEER_FRAME, CALL, CALL_DONE; borrowed for the step */
    const struct store_rows *rows; /* READ_DONE; borrowed for the step */
    enum store_outcome outcome;    /* READ_DONE, PERSIST_FAILED */
    bool failed;                   /* CALL_DONE: no answer, for whatever reason */
};

enum region_effect_kind {
    REGION_READ,       /* id, read */
    REGION_PERSIST,    /* id, bytes: a store batch */
    REGION_REPLY,      /* token, op: its result is filled; the op is the caller's again */
    REGION_SEND,       /* peer, channel, bytes: one message */
    REGION_CLOSE,      /* peer, channel, reason: the stream broke the rules */
    REGION_CALL_PEER,  /* peer, id, bytes; CALL_DONE is due within call_timeout_ms */
    REGION_CALL_REPLY, /* token, bytes */
    REGION_READY       /* what was durable has been read: requests are served from now on */
};

struct region_effect {
    enum region_effect_kind kind;
    uint64_t token;
    uint64_t id;
    struct op *op;
    struct store_read read;
    uint16_t peer;
    enum region_channel channel;
    struct bytes bytes;
    const char *reason;
};

struct region_output {
    struct region_effect *at; /* with all they point to, borrowed until the next step */
    uint32_t count;
};

struct region *region_new(const struct region_config *config);
struct region *region_free(struct region *region);
void region_step(struct region *region, const struct region_input *in, struct region_output *out);
/* mono_ns by which a REGION_TIMEOUT is due; UINT64_MAX for never. */
uint64_t region_deadline(const struct region *region);

/* Reading of figures, between steps, for status and metrics. */
uint32_t region_table_count(const struct region *region);
const struct table *region_table_at(const struct region *region, uint32_t index);
const struct table *region_table_find(const struct region *region, struct bytes name);
/* Replication of one table to one peer; mono_ns is now. False when they are not joined. */
bool region_lag(const struct region *region, const struct table *table, uint16_t peer,
                uint64_t mono_ns, struct replication_lag *ret);
/* How far one partition of a shared table is: its own log, and what is here of the others'. False
 * when it is not shared. */
struct region_log {
    uint64_t last;       /* own, durable */
    const struct vv *vv; /* of the others, durable */
    uint64_t tombstones;
};
bool region_log_at(const struct region *region, const struct table *table, uint32_t partition,
                   struct region_log *ret);

/* The consensus groups held here, of strong tables and of witnesses. */
struct region_group {
    const struct table *table;
    uint32_t partition;
    uint16_t members[CONSENSUS_MEMBERS];
    uint16_t leader; /* a Region; 0: none known */
    bool leads, serving, witness, quiet, log_full;
    enum consensus_standing standing;
    uint64_t term, commit, applied, durable, last, log_bytes;
    uint64_t pending; /* proposals and strong reads under way here */
};
uint32_t region_group_count(const struct region *region);
struct region_group region_group_at(const struct region *region, uint32_t index);

struct region_counters {
    uint64_t conflicts_concurrent, conflicts_late; /* ledger entries written here */
    uint64_t ledger_rows;
    uint64_t clock_ahead;
    uint64_t batches, batch_bytes, batches_in_flight;
    uint64_t operations_in_flight, throttled;
    uint64_t applied_records, duplicate_records, dropped_records; /* from peers */
    /* Strong writes and reads that began here. */
    uint64_t strong_committed, strong_conflicts, strong_unknown, strong_refused;
};
struct region_counters region_counters(const struct region *region);

/* The ledger lives in the store: this gives the range to read (newest last), to be decoded with
 * region_ledger_row. `after` is the last row's key of the page before, or empty. */
void region_ledger_read(const struct region *region, struct bytes after, uint32_t rows_max,
                        struct buf *scratch, struct store_read *ret);
/* Views into the row. *ret_table is NULL when the table is gone. */
bool region_ledger_row(const struct region *region, const struct store_row *row,
                       const struct table **ret_table, struct bytes *ret_table_name,
                       struct ledger_entry *ret);

#endif
