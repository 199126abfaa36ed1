/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CLUSTER_INTERNAL_H
#define SIM_CLUSTER_INTERNAL_H

/* What the files of the simulated cluster share: the kinds of its events and the calls between its
 * network (sim_net.c), its disks (sim_disk.c) and its nodes (cluster.c). */

#include "chaos/sim/cluster.h"

enum {
    EVENT_FRAME,   /* node, other, id = channel as the receiver sees it, generation of the stream */
    EVENT_CONNECT, /* node opens its stream to other; id: 1 for that of the groups */
    EVENT_SYNCED,  /* node; generation */
    EVENT_READ,    /* node; id; generation */
    EVENT_TIMER,   /* node; generation */
    EVENT_CALL,    /* other calls node; id = caller's id; generation of the caller */
    EVENT_CALL_REPLY, /* node is answered; id; generation of node */
    EVENT_CALL_LATE   /* node gets no answer to id */
};

/* cluster.c */
void sim_node_step(struct sim_cluster *cluster, uint32_t index, struct region_input *in);
uint32_t sim_node_find(const struct sim_cluster *cluster, uint16_t region);
uint64_t sim_draw_between(struct sim_cluster *cluster, uint64_t low, uint64_t high);
bool sim_draw(struct sim_cluster *cluster, uint64_t one_in);

/* sim_net.c */
void sim_connect_later(struct sim_cluster *cluster, uint32_t from, uint32_t to, bool groups);
void sim_stream_end(struct sim_cluster *cluster, uint32_t from, uint32_t to, bool groups);
void sim_stream_connect(struct sim_cluster *cluster, const struct sim_event *event);
static inline struct sim_stream *sim_stream_of(struct sim_cluster *cluster, uint32_t from,
                                               uint32_t to, bool groups)
{
    return groups ? &cluster->group_streams[from][to] : &cluster->streams[from][to];
}
static inline bool sim_channel_groups(enum region_channel channel)
{
    return channel == CHANNEL_GROUPS_OUT || channel == CHANNEL_GROUPS_IN;
}
/* Whether this end of the stream is that of the one who opened it. */
static inline bool sim_channel_forward(enum region_channel channel)
{
    return channel == CHANNEL_OUTBOUND || channel == CHANNEL_GROUPS_OUT;
}
void sim_message_send(struct sim_cluster *cluster, uint32_t sender,
                      const struct region_effect *effect);
void sim_message_arrive(struct sim_cluster *cluster, const struct sim_event *event);
void sim_call_send(struct sim_cluster *cluster, uint32_t caller,
                   const struct region_effect *effect);
void sim_call_arrive(struct sim_cluster *cluster, const struct sim_event *event);
void sim_call_reply(struct sim_cluster *cluster, uint32_t callee,
                    const struct region_effect *effect);
void sim_call_done(struct sim_cluster *cluster, const struct sim_event *event, bool failed);

/* sim_disk.c */
void sim_sync_begin(struct sim_cluster *cluster, uint32_t index);
void sim_sync_end(struct sim_cluster *cluster, const struct sim_event *event);
void sim_persist_take(struct sim_cluster *cluster, uint32_t index,
                      const struct region_effect *effect);
/* Applies the first `count` of the queue to the durable store and drops them from it. */
void sim_queue_apply(struct sim_cluster *cluster, uint32_t index, uint32_t count);
void sim_queue_drop(struct sim_node *node);
void sim_read_take(struct sim_cluster *cluster, uint32_t index, const struct region_effect *effect);
void sim_read_done(struct sim_cluster *cluster, const struct sim_event *event);
void sim_node_reads_drop(struct sim_node *node);

#endif
