/* SPDX-License-Identifier: Apache-2.0 */
/* The disks of simulated regions: what was handed over becomes durable a while later, in groups and
 * in order, or never if the process dies before. Reads see what is durable. */

#include "chaos/sim/cluster_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

void sim_sync_begin(struct sim_cluster *cluster, uint32_t index)
{
    struct sim_node *node = &cluster->nodes[index];
    if (node->syncing || node->queue_len == 0)
        return;
    node->syncing = true;
    node->syncing_count = node->queue_len;
    struct sim_event event = {.kind = EVENT_SYNCED, .node = index, .generation = node->generation};
    uint64_t takes_ns =
        sim_draw_between(cluster, cluster->conditions.sync_ns_min, cluster->conditions.sync_ns_max);
    takes_ns *= node->sync_slow ? node->sync_slow : 1;
    uint64_t extra = node->sync_extra_ns, jitter = node->sync_jitter_ns;
    takes_ns += sim_draw_between(cluster, extra > jitter ? extra - jitter : 0, extra + jitter);
    sim_schedule(&cluster->sim, cluster->sim.now_ns + takes_ns, &event);
}

void sim_persist_take(struct sim_cluster *cluster, uint32_t index,
                      const struct region_effect *effect)
{
    struct sim_node *node = &cluster->nodes[index];
    if (node->queue_len == node->queue_cap) {
        node->queue_cap = node->queue_cap ? node->queue_cap * 2 : 16;
        node->queue = xrealloc(node->queue, node->queue_cap * sizeof(*node->queue));
    }
    struct sim_persist *persist = &node->queue[node->queue_len++];
    *persist = (struct sim_persist){.id = effect->id};
    buf_append_bytes(&persist->batch, effect->bytes);
    cluster->persisted(cluster->context, index, effect->bytes, false);
}

/* Applies the first `count` of the queue to the durable store and drops them from it. */
void sim_queue_apply(struct sim_cluster *cluster, uint32_t index, uint32_t count)
{
    struct sim_node *node = &cluster->nodes[index];
    for (uint32_t i = 0; i < count; i++) {
        struct buf *batch = &node->queue[i].batch;
        check(node->store->ops->write(node->store, buf_view(batch), true) == STORE_OK);
        cluster->persisted(cluster->context, index, buf_view(batch), true);
        buf_deinit(batch);
    }
    node->queue_len -= count;
    memmove(node->queue, node->queue + count, node->queue_len * sizeof(*node->queue));
}

void sim_queue_drop(struct sim_node *node)
{
    for (uint32_t i = 0; i < node->queue_len; i++)
        buf_deinit(&node->queue[i].batch);
    node->queue_len = 0;
}

void sim_sync_end(struct sim_cluster *cluster, const struct sim_event *event)
{
    struct sim_node *node = &cluster->nodes[event->node];
    if (!node->core || node->generation != event->generation)
        return;
    node->syncing = false;
    if (node->sync_fails && cluster->sync_failed(cluster->context, event->node))
        return;
    struct region_input in = {.kind = REGION_PERSISTED};
    if (node->disk_full) {
        in.kind = REGION_PERSIST_FAILED;
        in.id = node->queue[0].id;
        in.outcome = STORE_FULL;
        SOMETIMES(&cluster->sim, DISK_REFUSED);
        sim_queue_drop(node);
    } else {
        in.id = node->queue[node->syncing_count - 1].id;
        sim_queue_apply(cluster, event->node, node->syncing_count);
    }
    sim_node_step(cluster, event->node, &in);
    if (node->core)
        sim_sync_begin(cluster, event->node);
}

/* ---- Reads ---- */

void sim_read_take(struct sim_cluster *cluster, uint32_t index, const struct region_effect *effect)
{
    struct sim_node *node = &cluster->nodes[index];
    if (node->reads_len == node->reads_cap) {
        node->reads_cap = node->reads_cap ? node->reads_cap * 2 : 16;
        node->reads = xrealloc(node->reads, node->reads_cap * sizeof(*node->reads));
    }
    struct sim_read *read = &node->reads[node->reads_len++];
    memset(read, 0, sizeof(*read));
    read->id = effect->id;
    read->read = effect->read;
    buf_append_bytes(&read->begin, effect->read.begin);
    buf_append_bytes(&read->end, effect->read.end);
    struct sim_event event = {
        .kind = EVENT_READ, .node = index, .id = effect->id, .generation = node->generation};
    sim_schedule(&cluster->sim,
                 cluster->sim.now_ns +
                     sim_draw_between(cluster, 0, cluster->conditions.read_ns_max),
                 &event);
}

void sim_read_done(struct sim_cluster *cluster, const struct sim_event *event)
{
    struct sim_node *node = &cluster->nodes[event->node];
    if (!node->core || node->generation != event->generation)
        return;
    uint32_t i = 0;
    while (node->reads[i].id != event->id)
        i++;
    struct sim_read read = node->reads[i];
    node->reads[i] = node->reads[--node->reads_len];
    read.read.begin = buf_view(&read.begin);
    read.read.end = buf_view(&read.end);
    struct store_rows rows = {0};
    struct region_input in = {.kind = REGION_READ_DONE, .id = event->id, .rows = &rows};
    in.outcome = node->store->ops->read(node->store, &read.read, &rows);
    sim_node_step(cluster, event->node, &in);
    buf_deinit(&read.begin);
    buf_deinit(&read.end);
}

void sim_node_reads_drop(struct sim_node *node)
{
    for (uint32_t i = 0; i < node->reads_len; i++) {
        buf_deinit(&node->reads[i].begin);
        buf_deinit(&node->reads[i].end);
    }
    node->reads_len = 0;
}
