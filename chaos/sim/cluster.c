/* SPDX-License-Identifier: Apache-2.0 */
/* Performs the effects of region cores in virtual time. Every message, sync and read becomes an
 * event some drawn time ahead; events of a process or stream that has ended since are void, told by
 * generation. */

#include "chaos/sim/cluster_internal.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

uint64_t sim_cluster_wall_ms(const struct sim_cluster *cluster, uint32_t node)
{
    return sim_clock_wall_ms(&cluster->nodes[node].clock, cluster->sim.now_ns);
}

uint32_t sim_node_find(const struct sim_cluster *cluster, uint16_t region)
{
    for (uint32_t i = 0; i < cluster->node_count; i++)
        if (cluster->nodes[i].region == region)
            return i;
    unreachable();
}

uint64_t sim_draw_between(struct sim_cluster *cluster, uint64_t low, uint64_t high)
{
    return high > low ? rng_between(&cluster->sim.rng, low, high) : low;
}

bool sim_draw(struct sim_cluster *cluster, uint64_t one_in)
{
    return one_in && rng_one_in(&cluster->sim.rng, one_in);
}

static void timer_set(struct sim_cluster *cluster, uint32_t index)
{
    struct sim_node *node = &cluster->nodes[index];
    uint64_t deadline = region_deadline(node->core);
    if (deadline >= node->timer_at_ns)
        return;
    if (deadline < cluster->sim.now_ns)
        deadline = cluster->sim.now_ns;
    node->timer_at_ns = deadline;
    struct sim_event event = {.kind = EVENT_TIMER, .node = index, .generation = node->generation};
    sim_schedule(&cluster->sim, deadline, &event);
}

static void timer_run(struct sim_cluster *cluster, const struct sim_event *event)
{
    struct sim_node *node = &cluster->nodes[event->node];
    if (!node->core || node->generation != event->generation)
        return;
    if (node->timer_at_ns <= cluster->sim.now_ns)
        node->timer_at_ns = UINT64_MAX;
    if (region_deadline(node->core) <= cluster->sim.now_ns) {
        struct region_input in = {.kind = REGION_TIMEOUT};
        sim_node_step(cluster, event->node, &in);
    } else {
        timer_set(cluster, event->node);
    }
}

static void effect_note(struct sim *sim, uint32_t index, const struct region_effect *effect)
{
    sim_note_u64(sim, sim->now_ns << 8 | index << 4 | effect->kind);
    sim_note_u64(sim, effect->id ^ effect->token);
    sim_note(sim, effect->bytes.at, effect->bytes.len);
}

struct closing {
    uint32_t other;
    enum region_channel channel;
};

/* Effects that would step a core, this one or another, wait until this step's output has been used
 * up. */
void sim_node_step(struct sim_cluster *cluster, uint32_t index, struct region_input *in)
{
    struct sim_node *node = &cluster->nodes[index];
    in->mono_ns = cluster->sim.now_ns;
    in->wall_ms = sim_cluster_wall_ms(cluster, index);
    struct region_output out;
    cluster->stepping = index;
    region_step(node->core, in, &out);
    struct closing closing[4 * SIM_NODES_MAX];
    uint32_t closing_count = 0;
    bool became_ready = false;
    for (uint32_t i = 0; i < out.count; i++) {
        const struct region_effect *effect = &out.at[i];
        effect_note(&cluster->sim, index, effect);
        switch (effect->kind) {
        case REGION_READ:
            sim_read_take(cluster, index, effect);
            break;
        case REGION_PERSIST:
            sim_persist_take(cluster, index, effect);
            break;
        case REGION_REPLY:
            cluster->replied(cluster->context, index, effect->token, effect->op);
            break;
        case REGION_SEND:
            sim_message_send(cluster, index, effect);
            break;
        case REGION_CLOSE:
            check(closing_count < array_len(closing));
            closing[closing_count++] =
                (struct closing){sim_node_find(cluster, effect->peer), effect->channel};
            break;
        case REGION_CALL_PEER:
            sim_call_send(cluster, index, effect);
            break;
        case REGION_CALL_REPLY:
            sim_call_reply(cluster, index, effect);
            break;
        case REGION_READY:
            became_ready = true;
            break;
        }
    }
    if (became_ready)
        node->ready = true;
    timer_set(cluster, index);
    sim_sync_begin(cluster, index);
    for (uint32_t i = 0; i < closing_count; i++) {
        uint32_t other = closing[i].other;
        bool groups = sim_channel_groups(closing[i].channel);
        if (sim_channel_forward(closing[i].channel))
            sim_stream_end(cluster, index, other, groups);
        else
            sim_stream_end(cluster, other, index, groups);
    }
}

void sim_cluster_init(struct sim_cluster *cluster, uint64_t seed, uint32_t node_count,
                      const uint16_t *regions)
{
    check(node_count <= SIM_NODES_MAX);
    memset(cluster, 0, sizeof(*cluster));
    sim_init(&cluster->sim, seed);
    cluster->node_count = node_count;
    for (uint32_t i = 0; i < node_count; i++) {
        cluster->nodes[i].region = regions[i];
        cluster->nodes[i].store = store_mem_new();
        cluster->nodes[i].timer_at_ns = UINT64_MAX;
    }
}

void sim_cluster_deinit(struct sim_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct sim_node *node = &cluster->nodes[i];
        region_free(node->core);
        node->store->ops->free(node->store);
        sim_queue_drop(node);
        free(node->queue);
        sim_node_reads_drop(node);
        free(node->reads);
        free(node->calls);
    }
    sim_deinit(&cluster->sim);
}

void sim_cluster_start(struct sim_cluster *cluster, uint32_t index)
{
    struct sim_node *node = &cluster->nodes[index];
    check(!node->core);
    struct region_config config = cluster->config;
    config.region = node->region;
    config.witness_only = node->witness_only;
    config.peer_count = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++)
        if (i != index)
            config.peers[config.peer_count++] = cluster->nodes[i].region;
    config.seed = rng_next(&cluster->sim.rng);
    config.replication.region = config.region;
    config.replication.seed = config.seed;
    config.replication.peer_count = config.peer_count;
    memcpy(config.replication.peers, config.peers, sizeof(config.peers));
    sim_log_mark(cluster->sim.log, cluster->sim.now_ns, index, "starts");
    node->generation++;
    node->timer_at_ns = UINT64_MAX;
    node->core = region_new(&config);
    struct region_input in = {.kind = REGION_START};
    sim_node_step(cluster, index, &in);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        if (i == index)
            continue;
        for (int groups = 0; groups <= (int)cluster->conditions.groups; groups++) {
            sim_connect_later(cluster, index, i, groups);
            sim_connect_later(cluster, i, index, groups);
        }
    }
}

/* A leader that dies with entries in its log that its disk has not. */
static void note_groups(struct sim_cluster *cluster, const struct sim_node *node)
{
    for (uint32_t i = 0; i < region_group_count(node->core); i++) {
        struct region_group group = region_group_at(node->core, i);
        SOMETIMES_IF(&cluster->sim, LEADER_UNSYNCED, group.leads && group.durable < group.last);
    }
}

static void end(struct sim_cluster *cluster, uint32_t index, bool whole)
{
    struct sim_node *node = &cluster->nodes[index];
    check(node->core);
    SOMETIMES(&cluster->sim, CRASHED);
    SOMETIMES_IF(&cluster->sim, CRASHED_UNSYNCED, node->queue_len > 0);
    note_groups(cluster, node);
    sim_log_mark(cluster->sim.log, cluster->sim.now_ns, index, "dies");
    node->core = region_free(node->core);
    node->ready = false;
    node->syncing = false;
    node->resume_ns = 0;
    uint32_t kept = node->queue_len;
    if (!whole && !node->disk_full)
        kept = (uint32_t)rng_between(&cluster->sim.rng, 0, node->queue_len);
    if (node->disk_full)
        kept = 0;
    sim_queue_apply(cluster, index, kept);
    sim_queue_drop(node);
    sim_node_reads_drop(node);
    node->calls_len = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        if (i == index)
            continue;
        for (int groups = 0; groups < 2; groups++) {
            sim_stream_end(cluster, index, i, groups);
            sim_stream_end(cluster, i, index, groups);
        }
    }
}

void sim_cluster_crash(struct sim_cluster *cluster, uint32_t index)
{
    end(cluster, index, false);
}

void sim_cluster_end(struct sim_cluster *cluster, uint32_t index)
{
    end(cluster, index, true);
}

void sim_cluster_lose_disk(struct sim_cluster *cluster, uint32_t index)
{
    struct sim_node *node = &cluster->nodes[index];
    check(!node->core && node->queue_len == 0);
    node->store->ops->free(node->store);
    node->store = store_mem_new();
}

bool sim_cluster_paused(const struct sim_cluster *cluster, uint32_t index)
{
    return cluster->nodes[index].resume_ns > cluster->sim.now_ns;
}

void sim_cluster_request(struct sim_cluster *cluster, uint32_t node, uint64_t token, struct op *op)
{
    struct region_input in = {.kind = REGION_REQUEST, .token = token, .op = op};
    sim_node_step(cluster, node, &in);
}

void sim_cluster_input(struct sim_cluster *cluster, uint32_t node, struct region_input *in)
{
    sim_node_step(cluster, node, in);
}

static void event_run(struct sim_cluster *cluster, const struct sim_event *event)
{
    /* What happens to a process that stands still, happens to it when it goes on, in order. */
    if (event->kind < SIM_USER && sim_cluster_paused(cluster, event->node)) {
        sim_schedule(&cluster->sim, cluster->nodes[event->node].resume_ns, event);
        return;
    }
    switch (event->kind) {
    case EVENT_FRAME:
        sim_message_arrive(cluster, event);
        break;
    case EVENT_CONNECT:
        sim_stream_connect(cluster, event);
        break;
    case EVENT_SYNCED:
        sim_sync_end(cluster, event);
        break;
    case EVENT_READ:
        sim_read_done(cluster, event);
        break;
    case EVENT_TIMER:
        timer_run(cluster, event);
        break;
    case EVENT_CALL:
        sim_call_arrive(cluster, event);
        break;
    case EVENT_CALL_REPLY:
        sim_call_done(cluster, event, false);
        break;
    case EVENT_CALL_LATE:
        sim_call_done(cluster, event, true);
        break;
    default:
        cluster->event(cluster->context, event);
    }
}

void sim_cluster_run(struct sim_cluster *cluster, uint64_t until_ns, bool (*stop)(void *context))
{
    struct sim_event event;
    while (sim_next(&cluster->sim, until_ns, &event)) {
        event_run(cluster, &event);
        sim_event_free(&event);
        if (stop && stop(cluster->context))
            return;
    }
}
