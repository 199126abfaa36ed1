/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_STRONG_INTERNAL_H
#define SIM_STRONG_INTERNAL_H

/* A run of the strong simulation, shared by its course (strong.c), the conditions that are drawn
 * for it (strong_draw.c), its clients and their histories (strong_client.c), what it asks of the
 * control plane (strong_control.c), and the judge of what is on the disks (strong_check.c). */

#include "chaos/sim/cluster.h"
#include "chaos/sim/fault.h"
#include "chaos/sim/strong.h"
#include "chaos/sim/strong_workload.h"

enum { EVENT_CLIENT = SIM_USER, EVENT_FAULT_BEGIN, EVENT_FAULT_END, EVENT_CONTROL, EVENT_WATCH };

enum { CLIENTS_MAX = 9, MEMBERS = 3, PARTITIONS_MAX = 3, OPERATIONS_MAX = 400, TERMS_MAX = 6 };

static const uint64_t ms = 1000000, second = 1000000000;

/* A client has one request under way at a time, in its own Region. */
struct strong_client {
    uint32_t node;
    bool busy;
    uint64_t token, called; /* called: by the run's count of calls and returns */
    uint64_t waited_ns;     /* since the call, while its Region was fit to answer */
    struct arena arena;
    struct sim_strong_request request;
};

struct strong_record { /* one part of a request that may have done something */
    uint32_t key;
    struct linear_op linear;
};

/* An entry of a group's log as it was found in stores, one for each term it was seen in. */
struct strong_seen {
    uint64_t term, item_hash; /* of the payload: key and item */
    uint32_t nodes;           /* bit per node on whose disk it has been */
    uint64_t writer;
    bool removes;
};
struct strong_slot {
    struct strong_seen seen[TERMS_MAX];
    uint32_t count;
    uint64_t item_hash; /* of the item that some member wrote; 0: none yet */
};
struct strong_log { /* of one partition, in one epoch */
    uint32_t epoch;
    struct strong_slot *slots; /* [i] is index i + 1 */
    uint64_t count, cap;
};

struct strong_writer {
    int64_t number;
    bool applied, refused, removes;
    uint32_t partition;
    uint64_t indexes[TERMS_MAX]; /* where its entry has been seen */
    uint32_t index_count;
};

enum strong_phase {
    PHASE_MAKE, /* create, UpdateTable, until it is strong everywhere */
    PHASE_STRONG,
    PHASE_DISSOLVE, /* UpdateTable, until it is regional at one and gone at all others */
    PHASE_REGIONAL,
    PHASE_EMPTY /* its items are deleted, to make it strong again */
};

struct strong_run {
    const struct sim_replay *replay;
    struct sim_cluster cluster;
    struct sim_strong_workload workload;
    struct sim_plan plan;
    struct sim_strong_verdict *verdict;

    bool witness;           /* node 2 holds the witness */
    uint32_t data[MEMBERS]; /* nodes with items */
    uint32_t data_count;
    bool faults_early; /* they begin before the table is made */
    bool dissolves, dissolves_early, remakes;

    struct strong_client clients[CLIENTS_MAX];
    uint32_t client_count;
    uint64_t think_ns_max;
    bool clients_stopped;
    uint64_t next_token, clock, operation_count;
    struct strong_record *records;
    uint32_t record_count, record_cap;

    enum strong_phase phase;
    uint32_t maker;            /* a node */
    uint32_t dissolver, rival; /* nodes; where they differ, both want to keep the table */
    struct arena control_arena;
    bool control_busy;
    uint32_t control_node;
    uint64_t control_token, control_waited_ns;

    struct strong_log logs[PARTITIONS_MAX];
    struct strong_writer *writers; /* by number */
    uint64_t writer_cap;
    uint64_t applied[SIM_NODES_MAX][PARTITIONS_MAX];
    uint32_t numbers[SIM_NODES_MAX]; /* of the table there */
};

void strong_violate(struct strong_run *run, const char *violation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const struct table *strong_table(const struct strong_run *run, uint32_t node);

/* strong_draw.c */
void strong_draw(struct strong_run *run);

/* strong_client.c */
void strong_client_later(struct strong_run *run, uint32_t index);
void strong_client_event(struct strong_run *run, uint32_t index);
/* One request outside of what is drawn. */
void strong_client_ask(struct strong_run *run, uint32_t index, enum sim_strong_kind kind,
                       uint32_t key);
void strong_client_replied(struct strong_run *run, uint32_t index, struct op *op);
/* What was under way at a node that died: nobody knows what became of it. */
void strong_clients_died(struct strong_run *run, uint32_t node);
/* All requests are answered in time. */
void strong_clients_watch(struct strong_run *run, uint64_t passed_ns);
void strong_clients_judge(struct strong_run *run);
bool strong_clients_idle(const struct strong_run *run);

/* strong_control.c */
void strong_control_event(struct strong_run *run);
void strong_control_later(struct strong_run *run, uint64_t after_ns);
void strong_control_replied(struct strong_run *run, struct op *op);
/* The table and its groups at every node. */
void strong_control_print(const struct strong_run *run, struct buf *to);
/* Whether the phase has reached its end. */
bool strong_control_done(const struct strong_run *run);
/* The node that has the table when it is dissolved. */
uint32_t strong_keeper(const struct strong_run *run);

/* strong_check.c */
void strong_persisted(void *context, uint32_t node, struct bytes batch, bool durable);
void strong_disk_lost(struct strong_run *run, uint32_t node);
struct strong_writer *strong_writer_at(struct strong_run *run, uint64_t writer);
/* A client is told that its write is done. */
void strong_check_done(struct strong_run *run, const struct sim_strong_part *part);
/* NULL when all members hold the same, at the end of their logs. */
const char *strong_difference(struct strong_run *run);
/* NULL when a node's counts are those of its rows. */
const char *strong_miscount(struct strong_run *run, uint32_t node);
void strong_check_deinit(struct strong_run *run);

#endif
