/* SPDX-License-Identifier: Apache-2.0 */
/* The network between simulated regions: a stream for each directed pair, as one region's link to
 * another is one TCP connection, and control calls beside it. Loss, repetition and reordering of
 * whole messages are harsher than TCP allows; the protocol is to survive them all the same. */

#include "chaos/sim/cluster_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

void sim_connect_later(struct sim_cluster *cluster, uint32_t from, uint32_t to, bool groups)
{
    struct sim_stream *stream = sim_stream_of(cluster, from, to, groups);
    if (stream->connecting || stream->up)
        return;
    stream->connecting = true;
    struct sim_event event = {.kind = EVENT_CONNECT, .node = from, .other = to, .id = groups};
    uint64_t delay = sim_draw_between(cluster, cluster->conditions.reconnect_ns / 2,
                                      cluster->conditions.reconnect_ns);
    sim_schedule(&cluster->sim, cluster->sim.now_ns + delay, &event);
}

/* One end of a stream, if it lives. */
static void tell(struct sim_cluster *cluster, uint32_t node, uint32_t other,
                 enum region_input_kind kind, enum region_channel channel)
{
    if (!cluster->nodes[node].core)
        return;
    struct region_input in = {
        .kind = kind, .peer = cluster->nodes[other].region, .channel = channel};
    sim_node_step(cluster, node, &in);
}

void sim_stream_end(struct sim_cluster *cluster, uint32_t from, uint32_t to, bool groups)
{
    struct sim_stream *stream = sim_stream_of(cluster, from, to, groups);
    if (!stream->up)
        return;
    stream->up = false;
    stream->generation++;
    tell(cluster, from, to, REGION_PEER_DOWN, groups ? CHANNEL_GROUPS_OUT : CHANNEL_OUTBOUND);
    tell(cluster, to, from, REGION_PEER_DOWN, groups ? CHANNEL_GROUPS_IN : CHANNEL_INBOUND);
    sim_connect_later(cluster, from, to, groups);
}

void sim_stream_connect(struct sim_cluster *cluster, const struct sim_event *event)
{
    uint32_t from = event->node, to = event->other;
    bool groups = event->id != 0;
    struct sim_stream *stream = sim_stream_of(cluster, from, to, groups);
    stream->connecting = false;
    if (stream->up)
        return;
    if (cluster->streams[from][to].cut || !cluster->nodes[from].core || !cluster->nodes[to].core ||
        !cluster->nodes[from].ready || !cluster->nodes[to].ready) {
        sim_connect_later(cluster, from, to, groups);
        return;
    }
    stream->up = true;
    stream->generation++;
    stream->clear_ns[0] = stream->clear_ns[1] = 0;
    stream->carried = stream->broken = false;
    uint64_t generation = stream->generation;
    tell(cluster, to, from, REGION_PEER_UP, groups ? CHANNEL_GROUPS_IN : CHANNEL_INBOUND);
    if (stream->up && stream->generation == generation)
        tell(cluster, from, to, REGION_PEER_UP, groups ? CHANNEL_GROUPS_OUT : CHANNEL_OUTBOUND);
}

static struct sim_travel travel(struct sim_cluster *cluster, uint32_t from, uint32_t to, size_t len)
{
    if (cluster->travel)
        return cluster->travel(cluster->context, from, to, len);
    return (struct sim_travel){.delay_ns =
                                   sim_draw_between(cluster, cluster->conditions.delay_ns_min,
                                                    cluster->conditions.delay_ns_max)};
}

/* The first byte of a replicator's message is the field, and so the kind, of its body. */
enum { TAG_RESUME = 4 << 3 | 2, TAG_BATCH = 5 << 3 | 2 };

/* A Resume answers an offer, or says that what came does not follow what was there. */
static void note_stream(struct sim_cluster *cluster, struct sim_stream *stream, bool forward,
                        struct bytes message)
{
    uint8_t tag = message.len ? message.at[0] : 0;
    stream->carried |= forward && tag == TAG_BATCH;
    SOMETIMES_IF(&cluster->sim, GAP_FILLED,
                 !forward && tag == TAG_RESUME && stream->carried && stream->broken);
}

static void log_message(struct sim_cluster *cluster, const struct sim_event *event, uint64_t at,
                        bool lost, bool groups)
{
    char text[SIM_LOG_TEXT_MAX];
    if (groups)
        sim_log_name_groups(event->bytes, text);
    else
        sim_log_name_stream(event->bytes, text);
    sim_log_message(cluster->sim.log, cluster->sim.now_ns, at, lost, event->other, event->node,
                    text);
}

static void schedule(struct sim_cluster *cluster, struct sim_stream *stream, bool forward,
                     const struct sim_travel *way, const struct sim_event *event)
{
    uint64_t at = cluster->sim.now_ns + way->delay_ns;
    uint64_t *clear = &stream->clear_ns[forward];
    if (way->overtakes || sim_draw(cluster, cluster->conditions.reorder_one_in)) {
        cluster->reordered++;
        stream->broken = true;
    } else if (at < *clear) {
        at = *clear;
    }
    if (at > *clear)
        *clear = at;
    sim_schedule(&cluster->sim, at, event);
    if (cluster->sim.log)
        log_message(cluster, event, at, false, sim_channel_groups((enum region_channel)event->id));
    if (way->repeated || sim_draw(cluster, cluster->conditions.repeat_one_in)) {
        cluster->repeated++;
        sim_schedule(&cluster->sim,
                     at + sim_draw_between(cluster, 0, cluster->conditions.delay_ns_max), event);
    }
}

/* One message of a stream's end: `sender` is a node, `channel` the sender's view. */
void sim_message_send(struct sim_cluster *cluster, uint32_t sender,
                      const struct region_effect *effect)
{
    uint32_t receiver = sim_node_find(cluster, effect->peer);
    bool forward = sim_channel_forward(effect->channel);
    bool groups = sim_channel_groups(effect->channel);
    uint32_t from = forward ? sender : receiver;
    uint32_t to = forward ? receiver : sender;
    struct sim_stream *stream = sim_stream_of(cluster, from, to, groups);
    const struct sim_stream *link = &cluster->streams[from][to];
    if (!stream->up)
        return;
    cluster->messages++;
    check(!groups || forward);
    struct sim_event event = {
        .kind = EVENT_FRAME,
        .node = receiver,
        .other = sender,
        .id = groups    ? CHANNEL_GROUPS_IN
              : forward ? CHANNEL_INBOUND
                        : CHANNEL_OUTBOUND,
        .generation = stream->generation,
        .bytes = effect->bytes,
    };
    if (link->cut || sim_draw(cluster, cluster->conditions.loss_one_in)) {
        cluster->lost++;
        stream->broken = true;
        if (cluster->sim.log)
            log_message(cluster, &event, cluster->sim.now_ns, true, groups);
        return;
    }
    if (!groups)
        note_stream(cluster, stream, forward, effect->bytes);
    struct sim_travel way = travel(cluster, sender, receiver, effect->bytes.len);
    if (way.lost) {
        cluster->lost++;
        stream->broken = true;
        if (cluster->sim.log)
            log_message(cluster, &event, cluster->sim.now_ns + way.delay_ns, true, groups);
        return;
    }
    way.delay_ns += forward ? link->extra_delay_ns : 0;
    schedule(cluster, stream, forward, &way, &event);
}

void sim_message_arrive(struct sim_cluster *cluster, const struct sim_event *event)
{
    enum region_channel channel = (enum region_channel)event->id;
    bool groups = sim_channel_groups(channel), forward = sim_channel_forward(channel);
    uint32_t from = forward ? event->node : event->other;
    uint32_t to = forward ? event->other : event->node;
    struct sim_stream *stream = sim_stream_of(cluster, from, to, groups);
    if (!stream->up || stream->generation != event->generation || !cluster->nodes[event->node].core)
        return;
    if (sim_draw(cluster, cluster->conditions.reset_one_in)) {
        cluster->resets++;
        sim_stream_end(cluster, from, to, groups);
        return;
    }
    struct region_input in = {
        .kind = REGION_PEER_FRAME,
        .peer = cluster->nodes[event->other].region,
        .channel = channel,
        .bytes = event->bytes,
    };
    sim_node_step(cluster, event->node, &in);
}

void sim_cluster_cut(struct sim_cluster *cluster, uint32_t from, uint32_t to, bool cut)
{
    bool was = cluster->streams[from][to].cut;
    cluster->streams[from][to].cut = cut;
    if (cut) {
        sim_stream_end(cluster, from, to, false);
        if (!cluster->conditions.silent_cuts)
            sim_stream_end(cluster, from, to, true);
        return;
    }
    sim_connect_later(cluster, from, to, false);
    if (was && cluster->conditions.silent_cuts)
        sim_stream_end(cluster, from, to, true);
}

void sim_cluster_reset(struct sim_cluster *cluster, uint32_t from, uint32_t to)
{
    sim_stream_end(cluster, from, to, false);
    if (cluster->conditions.groups)
        sim_stream_end(cluster, from, to, true);
}

/* ---- Control calls: they take the link of the caller, like everything the caller opens ---- */

void sim_call_send(struct sim_cluster *cluster, uint32_t caller, const struct region_effect *effect)
{
    uint32_t callee = sim_node_find(cluster, effect->peer);
    struct sim_node *node = &cluster->nodes[caller];
    if (node->calls_len == node->calls_cap) {
        node->calls_cap = node->calls_cap ? node->calls_cap * 2 : 16;
        node->calls = xrealloc(node->calls, node->calls_cap * sizeof(*node->calls));
    }
    node->calls[node->calls_len++] = effect->id;
    struct sim_event late = {
        .kind = EVENT_CALL_LATE, .node = caller, .id = effect->id, .generation = node->generation};
    struct sim_event call = {.kind = EVENT_CALL,
                             .node = callee,
                             .other = caller,
                             .id = effect->id,
                             .generation = node->generation,
                             .bytes = effect->bytes};
    uint64_t now = cluster->sim.now_ns;
    sim_schedule(&cluster->sim, now + cluster->config.call_timeout_ms * 1000000, &late);
    if (cluster->streams[caller][callee].cut || sim_draw(cluster, cluster->conditions.loss_one_in))
        return;
    struct sim_travel way = travel(cluster, caller, callee, effect->bytes.len);
    if (way.lost)
        return;
    sim_log_message(cluster->sim.log, now, now + way.delay_ns, false, caller, callee, "Call");
    sim_schedule(&cluster->sim, now + way.delay_ns, &call);
}

/* The token of a call tells where its answer goes: caller, and the caller's id. Calls of an earlier
 * life of the caller are answered too, and dropped by generation. */
enum { CALLER_SHIFT = 56, GENERATION_SHIFT = 40 };

void sim_call_arrive(struct sim_cluster *cluster, const struct sim_event *event)
{
    if (!cluster->nodes[event->node].core || !cluster->nodes[event->node].ready ||
        cluster->streams[event->other][event->node].cut)
        return;
    check(event->id < UINT64_C(1) << GENERATION_SHIFT && event->generation < 1 << 16);
    struct region_input in = {
        .kind = REGION_CALL,
        .peer = cluster->nodes[event->other].region,
        .token = (uint64_t)event->other << CALLER_SHIFT | event->generation << GENERATION_SHIFT |
                 event->id,
        .bytes = event->bytes,
    };
    sim_node_step(cluster, event->node, &in);
}

void sim_call_reply(struct sim_cluster *cluster, uint32_t callee,
                    const struct region_effect *effect)
{
    uint32_t caller = (uint32_t)(effect->token >> CALLER_SHIFT);
    if (cluster->streams[caller][callee].cut || sim_draw(cluster, cluster->conditions.loss_one_in))
        return;
    struct sim_event event = {
        .kind = EVENT_CALL_REPLY,
        .node = caller,
        .generation = effect->token >> GENERATION_SHIFT & 0xffff,
        .id = effect->token & ((UINT64_C(1) << GENERATION_SHIFT) - 1),
        .bytes = effect->bytes,
    };
    struct sim_travel way = travel(cluster, callee, caller, effect->bytes.len);
    if (way.lost)
        return;
    uint64_t now = cluster->sim.now_ns;
    sim_log_message(cluster->sim.log, now, now + way.delay_ns, false, callee, caller, "Answer");
    sim_schedule(&cluster->sim, now + way.delay_ns, &event);
}

/* False when the call has had its answer, or has been given up. */
static bool call_take(struct sim_node *node, uint64_t id)
{
    for (uint32_t i = 0; i < node->calls_len; i++) {
        if (node->calls[i] == id) {
            node->calls[i] = node->calls[--node->calls_len];
            return true;
        }
    }
    return false;
}

void sim_call_done(struct sim_cluster *cluster, const struct sim_event *event, bool failed)
{
    struct sim_node *node = &cluster->nodes[event->node];
    if (!node->core || node->generation != event->generation || !call_take(node, event->id))
        return;
    struct region_input in = {
        .kind = REGION_CALL_DONE, .id = event->id, .bytes = event->bytes, .failed = failed};
    sim_node_step(cluster, event->node, &in);
}
