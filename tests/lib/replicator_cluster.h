/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REPLICATOR_CLUSTER_H
#define TESTS_REPLICATOR_CLUSTER_H

/* Replicators with owners of the simplest kind, durable at once, and between every two a queue of
 * frames per stream that the test delivers, drops or repeats. All that happens can be written down,
 * for the transcripts. Headers and not a library, since only the tests of one room may link them.
 */

#include "tests/lib/replicator_owner.h"

/* ---- Life ---- */

static inline void cluster_trace(void *context, enum trace_level level, const char *line)
{
    struct node *node = context;
    (void)level;
    if (node->cluster->trace)
        say(node->cluster, "%s: [%s]", node->name, line);
}

static inline void node_open(struct node *node)
{
    struct replica_state state = {.partition = 0,
                                  .vv = node->vv,
                                  .epoch = node->epoch,
                                  .partial = node->partial,
                                  .log_first = node->log_first,
                                  .owner = node};
    memcpy(state.group_id, "a global table..", sizeof(state.group_id));
    for (uint32_t i = 0; i < node->log_count; i++)
        state.log_bytes += node->log[i].body.len + node->log[i].key.len;
    node->replica = replicator_open(node->replicator, &state);
    for (uint32_t i = 0; i < node->member_count; i++)
        replicator_add_member(node->replicator, node->replica, node->members[i]);
    replica_note_tombstones(node->replica, true);
}

static inline void node_start(struct node *node)
{
    node->config.trace = (struct trace){cluster_trace, node, TRACE_DEBUG};
    node->replicator = replicator_new(&node->config);
    hlc_init(&node->clock, HLC_HYBRID, 500, node->clock.reserved);
    replicator_set_tables(node->replicator, bytes_text(node->name));
    node_open(node);
}

/* kill -9: what was asked of the owner and not done is lost. */
static inline void node_stop(struct node *node)
{
    tasks_drop(node);
    replicator_free(node->replicator);
    node->replicator = NULL;
    for (int i = 0; i < NODES; i++) {
        stream_down(node, &node->cluster->nodes[i], false, true);
        stream_down(&node->cluster->nodes[i], node, true, false);
    }
}

static inline void node_wipe(struct node *node)
{
    rows_deinit(node->rows, node->row_count);
    rows_deinit(node->log, node->log_count);
    node->rows = node->log = NULL;
    node->row_count = node->log_count = 0;
    node->log_first = 0;
    node->vv = node->partial = (struct vv){0};
    node->epoch++;
}

static inline struct replicator_config cluster_config(void)
{
    return (struct replicator_config){.window_bytes_max = 4 << 20,
                                      .batch_bytes_max = 256 << 10,
                                      .batch_records_max = 500,
                                      .frame_bytes_max = 1 << 20,
                                      .heartbeat_ms = 200,
                                      .silence_ms_max = 10000,
                                      .log_bytes_max = 256 << 20,
                                      .tombstone_grace_ms = 1000,
                                      .apply_bytes_max = 4 << 20};
}

static inline struct cluster *cluster_new(struct replicator_config config, uint64_t seed)
{
    static const uint16_t regions[NODES] = {1, 9, 17};
    static const char *const names[NODES] = {"us", "eu", "ap"};
    struct cluster *cluster = xcalloc(1, sizeof(*cluster));
    cluster->now_ms = 1000000;
    for (int i = 0; i < NODES; i++) {
        struct node *node = &cluster->nodes[i];
        node->cluster = cluster;
        node->region = regions[i];
        node->name = names[i];
        node->config = config;
        node->config.region = regions[i];
        node->config.seed = seed + (uint64_t)i;
        for (int peer = 0; peer < NODES; peer++)
            if (peer != i)
                node->config.peers[node->config.peer_count++] = regions[peer];
    }
    return cluster;
}

static inline void cluster_free(struct cluster *cluster)
{
    cluster->out = NULL;
    for (int i = 0; i < NODES; i++) {
        struct node *node = &cluster->nodes[i];
        if (node->replicator)
            node_stop(node);
        node_wipe(node);
        free(node->tasks);
    }
    free(cluster);
}

/* Delivers the first frame of a queue; false when there is none. */
static inline bool deliver(struct node *from, struct node *to, bool opener)
{
    struct frame_queue *queue = &from->cluster->queues[node_index(from)][node_index(to)][opener];
    if (queue->count == 0)
        return false;
    struct buf bytes = queue->frames[0];
    queue->count--;
    memmove(queue->frames, queue->frames + 1, queue->count * sizeof(queue->frames[0]));
    struct replicator_input in = node_input(to, REPLICATOR_FRAME);
    in.peer = from->region;
    in.outbound = !opener;
    in.bytes = buf_view(&bytes);
    node_step(to, &in);
    buf_deinit(&bytes);
    return true;
}

/* Until nothing moves. */
static inline void cluster_settle(struct cluster *cluster)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < NODES; i++)
            if (cluster->nodes[i].replicator)
                node_work(&cluster->nodes[i]);
        for (int from = 0; from < NODES; from++)
            for (int to = 0; to < NODES; to++)
                for (int opener = 0; opener < 2; opener++)
                    if (cluster->nodes[to].replicator &&
                        deliver(&cluster->nodes[from], &cluster->nodes[to], opener))
                        moved = true;
    }
}

static inline void cluster_timeout(struct cluster *cluster)
{
    for (int i = 0; i < NODES; i++) {
        struct node *node = &cluster->nodes[i];
        if (!node->replicator || replicator_deadline(node->replicator) > cluster->now_ms * 1000000)
            continue;
        struct replicator_input in = node_input(node, REPLICATOR_TIMEOUT);
        node_step(node, &in);
    }
}

#endif
