/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_EVENTUAL_INTERNAL_H
#define SIM_EVENTUAL_INTERNAL_H

/* A run of the eventual simulation, shared by what drives it (eventual.c), what takes its disks
 * away (eventual_loss.c) and what judges it (eventual_check.c). */

#include "chaos/check/ghost.h"
#include "chaos/sim/eventual.h"
#include "chaos/sim/fault.h"
#include "chaos/sim/workload.h"

enum { EVENT_CLIENT = SIM_USER, EVENT_FAULT_BEGIN, EVENT_FAULT_END, EVENT_CONTROL, EVENT_PENDING };

enum { CLIENTS_MAX = 12 };

/* A client has one operation under way at a time, in its own region. */
struct sim_client {
    uint32_t node;
    bool busy;
    uint64_t token;
    struct arena arena;
    struct workload_op call;
};

struct run {
    const struct sim_replay *replay;
    struct sim_cluster cluster;
    struct ghost *ghost;
    struct sim_plan plan;
    struct sim_client clients[CLIENTS_MAX];
    uint32_t client_count;
    struct workload workload;
    uint64_t next_token;
    uint64_t next_writer;
    uint64_t think_ns_max;
    bool clients_stopped;
    bool log_cut;             /* some log was, at its bound */
    bool logs_uncut;          /* no cap forces a log to be cut */
    bool exact;               /* two regions, and nothing that turns a log into a snapshot */
    bool loses;               /* disks, that is */
    struct rng loss_rng;      /* which, and when */
    bool lost[SIM_NODES_MAX]; /* has begun on an empty disk */
    uint32_t joined;          /* nodes that are replicas, from 0 */
    uint32_t control_step;    /* what control does next */
    uint64_t late_join_ns;    /* when the last replica is added */
    struct arena control_arena;
    bool control_busy;
    uint64_t control_token;
    struct op *control_op;
    uint64_t shared_ns;      /* what became durable before was written to a regional table */
    uint64_t collectable_ms; /* tombstones from before must go */
    struct version acknowledged[SIM_NODES_MAX]
                               [WORKLOAD_KEYS_MAX]; /* newest acknowledged, by node */
    struct sim_verdict *verdict;
};

void eventual_violate(struct run *run, const char *violation);
/* The cluster's `persisted`: keeps the books, and looks at what is deleted. */
void eventual_persisted(void *context, uint32_t node, struct bytes batch, bool durable);
/* What every region tells of its pending writes, against what its peers lack. */
void eventual_check_pending(struct run *run);
/* NULL when all replicas hold what they must. */
/* How far each is with each, for who wants to know why. */
void eventual_tell_vectors(struct run *run);
const char *eventual_difference(struct run *run, bool tombstones_gone);
/* One node's ledger is true. */
void eventual_check_ledger(struct run *run, uint32_t node);
void eventual_check_ledgers(struct run *run);

/* ---- eventual_loss.c ---- */
/* Adds losses of disks to the plan, and cuts by which the others hold different parts of what was
 * on them. Draws from a generator of its own. */
void eventual_losses_draw(struct run *run, struct rng *rng, uint64_t from_ns, uint64_t to_ns);
bool eventual_disk_has_table(const struct sim_node *node);
/* Whether the table would outlive the loss. */
bool eventual_loss_survivable(struct run *run, uint32_t node);
/* The node dies, if it lives, and its disk is gone. */
void eventual_lose_disk(struct run *run, uint32_t node);

#endif
