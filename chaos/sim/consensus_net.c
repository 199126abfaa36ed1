/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between members: by the real relay, over links that lose, repeat, delay and, unless a
 * run's links are in order as TCP's are, reorder. */

#include "chaos/sim/consensus_world.h"

static void hop(struct world *world, uint8_t from, uint8_t to, struct bytes envelope)
{
    struct sim *sim = &world->sim;
    const struct options *options = &world->options;
    char text[SIM_LOG_TEXT_MAX] = "";
    if (sim->log)
        sim_log_name_envelope(envelope, text);
    if (world->cut[from][to] || (!world->calm && chance(world, options->loss_one_in))) {
        sim_log_message(sim->log, sim->now_ns, sim->now_ns, true, from, to, text);
        return;
    }
    int copies = !world->calm && chance(world, options->repeat_one_in) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
        uint64_t at = sim->now_ns + draw(world, options->delay_ns_min, options->delay_ns_max) +
                      world->extra_ns[from][to];
        if (!world->calm && chance(world, options->tail_one_in))
            at += draw(world, 0, 500 * ms);
        if (i == 1 && chance(world, 2)) /* one that was held up for long */
            at += draw(world, 0, 3 * second);
        else if (options->fifo && at < world->clear_ns[from][to])
            at = world->clear_ns[from][to];
        if (i == 0)
            world->clear_ns[from][to] = at;
        struct sim_event event = {
            .kind = EVENT_FRAME, .node = to, .other = from, .bytes = envelope};
        sim_schedule(sim, at, &event);
        sim_log_message(sim->log, sim->now_ns, at, false, from, to, text);
    }
}

void net_send(struct world *world, struct member *from, uint8_t to, struct bytes frame)
{
    struct relay_route route = relay_route(&from->relay, to, world->sim.now_ns);
    cleanup(buf_deinit) struct buf envelope = {0};
    relay_wrap(&from->relay, to, &route, frame, &envelope);
    for (uint8_t i = 0; i < route.count; i++)
        hop(world, from->index, route.via[i], buf_view(&envelope));
}

void net_arrive(struct world *world, const struct sim_event *event)
{
    struct member *member = &world->members[event->node];
    uint8_t peer = 0;
    struct bytes frame = BYTES_NONE;
    cleanup(buf_deinit) struct buf onward = {0};
    switch (relay_receive(&member->relay, (uint8_t)event->other, event->bytes, world->sim.now_ns,
                          &peer, &frame, &onward)) {
    case RELAY_DELIVER: {
        struct consensus_input in = {.kind = CONSENSUS_FRAME, .peer = peer, .bytes = frame};
        member->isolated_since = 0;
        member_step(world, member, &in);
        break;
    }
    case RELAY_FORWARD:
        SOMETIMES(&world->sim, RELAYED);
        hop(world, member->index, peer, buf_view(&onward));
        break;
    case RELAY_DROP:
        break;
    }
}
