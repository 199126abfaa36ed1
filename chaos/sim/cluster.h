/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

/* Region cores on fakes: a network that delays, loses, repeats and reorders messages and whose
 * links are cut one way or both, disks that lose what was not synced, clocks that are wrong,
 * processes that die. The cores are the shipped object code; everything around them is drawn from
 * one seed. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/sim/sim.h"
#include "chaos/sim/sim_clock.h"
#include "chaos/sim/sim_log.h"
#include "region/core/region.h"

enum { SIM_NODES_MAX = 8 };

/* What the network and the disks do, for the whole run. Rates are "one in so many", 0 for never. */
struct sim_conditions {
    uint64_t delay_ns_min, delay_ns_max; /* of a message */
    uint64_t loss_one_in, repeat_one_in, reorder_one_in;
    uint64_t reset_one_in;             /* a message breaks its stream instead of arriving */
    uint64_t sync_ns_min, sync_ns_max; /* of a batch group */
    uint64_t read_ns_max;              /* 0: reads are answered in the same instant */
    uint64_t reconnect_ns;             /* from a stream's end to the next attempt */
    bool groups;                       /* streams for the strong groups are opened, too */
    bool silent_cuts; /* those are not told of a cut: what is sent is lost, and they end with it */
};

/* What becomes of one message. */
struct sim_travel {
    uint64_t delay_ns;
    bool lost, repeated;
    bool overtakes; /* it need not arrive in order */
};

struct sim_persist { /* a batch that was handed to the disk and is not known to be durable */
    uint64_t id;
    struct buf batch;
};

struct sim_read {
    uint64_t id;
    struct store_read read; /* its keys are in the two below */
    struct buf begin, end;
};

struct sim_node {
    uint16_t region;
    struct region *core; /* NULL while dead */
    struct store *store; /* what is durable */
    struct sim_clock clock;
    uint64_t generation; /* counts starts: events of an earlier life are void */
    bool ready;
    bool disk_full;
    bool witness_only;                      /* for its whole life */
    uint64_t resume_ns;                     /* it stands still until then */
    uint64_t sync_slow;                     /* times; 0: not */
    uint64_t sync_extra_ns, sync_jitter_ns; /* each takes longer by extra, plus or minus jitter */
    bool sync_fails;                        /* which the process does not survive: sync_failed() */
    bool syncing;
    uint32_t syncing_count; /* of the queue's front, in the group on its way */
    struct sim_persist *queue;
    uint32_t queue_len, queue_cap;
    uint64_t timer_at_ns;   /* earliest timer event on its way, UINT64_MAX for none */
    struct sim_read *reads; /* asked for and not yet answered */
    uint32_t reads_len, reads_cap;
    uint64_t *calls; /* ids of its calls to peers that have no answer yet */
    uint32_t calls_len, calls_cap;
};

struct sim_stream { /* from the region that opened it to the other */
    uint64_t generation;
    bool up;
    bool connecting;
    bool cut;                /* nothing passes, either way, and nothing connects */
    bool carried, broken;    /* a batch has passed; and something has not, or out of order */
    uint64_t extra_delay_ns; /* of the opener's messages */
    uint64_t clear_ns[2];    /* when the last message sent each way arrives: keeps order */
};

struct sim_cluster {
    struct sim sim;
    struct sim_conditions conditions;
    struct region_config config; /* for every node; region, peers and seed are set per node */
    uint32_t node_count;
    uint32_t stepping; /* whose core took the last step: whose line a trace line is */
    struct sim_node nodes[SIM_NODES_MAX];
    struct sim_stream streams[SIM_NODES_MAX][SIM_NODES_MAX];
    /* Those of the strong groups. Cuts and delays are of the link: in `streams`. */
    struct sim_stream group_streams[SIM_NODES_MAX][SIM_NODES_MAX];
    /* An operation has its result; it is the caller's again. Called within a step: schedule, don't
     * step. */
    void (*replied)(void *context, uint32_t node, uint64_t token, struct op *op);
    /* A batch became durable at a node; or, with durable false, was handed to its disk. */
    void (*persisted)(void *context, uint32_t node, struct bytes batch, bool durable);
    /* An event of a kind from SIM_USER on. */
    void (*event)(void *context, const struct sim_event *event);
    /* NULL: messages fare as the conditions say. */
    struct sim_travel (*travel)(void *context, uint32_t from, uint32_t to, size_t len);
    /* A sync was to fail. True: the owner has ended the process; else it has not failed. */
    bool (*sync_failed)(void *context, uint32_t node);
    void *context;
    uint64_t messages, lost, repeated, reordered, resets;
};

enum { SIM_USER = 100 }; /* event kinds below are the cluster's own */

void sim_cluster_init(struct sim_cluster *cluster, uint64_t seed, uint32_t node_count,
                      const uint16_t *regions);
void sim_cluster_deinit(struct sim_cluster *cluster);
/* Starts a dead node on what its disk holds. */
void sim_cluster_start(struct sim_cluster *cluster, uint32_t node);
/* A random part of what was not synced, from the front, is kept all the same; the rest is lost.
 * Operations under way never reply. */
void sim_cluster_crash(struct sim_cluster *cluster, uint32_t node);
/* The process alone ends: all that it had handed to its disk is there. */
void sim_cluster_end(struct sim_cluster *cluster, uint32_t node);
/* An empty disk in the place of a dead node's. */
void sim_cluster_lose_disk(struct sim_cluster *cluster, uint32_t node);
bool sim_cluster_paused(const struct sim_cluster *cluster, uint32_t node);
/* From `from` to `to`, one way: the streams that `from` opened. */
void sim_cluster_cut(struct sim_cluster *cluster, uint32_t from, uint32_t to, bool cut);
void sim_cluster_request(struct sim_cluster *cluster, uint32_t node, uint64_t token, struct op *op);
/* Any other input that comes from outside. */
void sim_cluster_input(struct sim_cluster *cluster, uint32_t node, struct region_input *in);
/* Breaks what `from` has open to `to`; it is opened again. */
void sim_cluster_reset(struct sim_cluster *cluster, uint32_t from, uint32_t to);
/* Runs until the time, or until stop() says so after an event. */
void sim_cluster_run(struct sim_cluster *cluster, uint64_t until_ns, bool (*stop)(void *context));
uint64_t sim_cluster_wall_ms(const struct sim_cluster *cluster, uint32_t node);

#endif
