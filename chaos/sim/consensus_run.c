/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a run: clients and faults together; then all is healed and must converge, within a
 * bound, with nobody left behind; then, in half of the runs, one link is cut for good or one member
 * is gone, and the others must go on serving; and at the end the clients' histories are judged. */

#include "chaos/sim/consensus_world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const uint64_t faults_from_ns = 500000000, faults_to_ns = 6000000000;

void violate(struct world *world, const char *violation, const char *format, ...)
{
    if (world->verdict->violation)
        return;
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    world->verdict->violation = violation;
    world->verdict->told.violated_ns = world->sim.now_ns;
    buf_printf(&world->verdict->detail, "  at %.4f s: %s\n", (double)world->sim.now_ns / 1e9, line);
}

static bool violated(const struct world *world)
{
    return world->verdict->violation != NULL;
}

static void event_run(struct world *world, const struct sim_event *event)
{
    switch (event->kind) {
    case EVENT_CLIENT:
        client_event(world, event->id);
        break;
    case EVENT_FAULT_BEGIN:
        consensus_fault_begin(world, &world->faults[event->id]);
        break;
    case EVENT_FAULT_END:
        consensus_fault_end(world, &world->faults[event->id]);
        break;
    default:
        member_event(world, event);
    }
}

static void run_until(struct world *world, uint64_t until_ns)
{
    struct sim_event event;
    while (!violated(world) && sim_next(&world->sim, until_ns, &event)) {
        event_run(world, &event);
        sim_event_free(&event);
    }
}

/* ---- Liveness ---- */

static bool converged(const struct world *world)
{
    for (uint8_t i = 0; i < MEMBERS; i++) {
        struct consensus_status status = consensus_status(world->members[i].core);
        bool same = status.commit == world->ghost.count && status.last == world->ghost.count &&
                    (!is_data(world, i) || status.applied == world->ghost.count);
        if (status.standing != CONSENSUS_FULL || !same)
            return false;
    }
    for (uint32_t i = 0; i < world->options.clients; i++)
        if (world->clients[i].token)
            return false;
    return true;
}

static void describe(struct world *world)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (!world->members[i].core) {
            buf_printf(&world->verdict->detail, "  member %d: gone\n", i);
            continue;
        }
        struct consensus_status s = consensus_status(world->members[i].core);
        buf_printf(&world->verdict->detail,
                   "  member %d: role %d standing %d leader %u serving %d quiet %d term %" PRIu64
                   " base %" PRIu64 " last %" PRIu64 " durable %" PRIu64 " commit %" PRIu64
                   " applied %" PRIu64 " full %d\n",
                   i, s.role, s.standing, s.leader, s.serving, s.quiet, s.term, s.base, s.last,
                   s.durable, s.commit, s.applied, s.log_full);
    }
}

static void converge(struct world *world)
{
    uint64_t bound = world->sim.now_ns + 30 * second;
    while (!violated(world) && world->sim.now_ns < bound) {
        run_until(world, world->sim.now_ns + 100 * ms);
        if (converged(world))
            return;
    }
    violate(world, "healed, the members do not become equal", "within 30 s");
    describe(world);
}

/* A write and a read at each data member that is up: they must succeed within the bound, though
 * each try may be given up. */
static void serve(struct world *world, const char *when)
{
    uint64_t bound = world->sim.now_ns + 20 * second;
    for (uint8_t i = 0; i < MEMBERS; i++) {
        if (!is_data(world, i) || !world->members[i].core)
            continue;
        for (int kind = CALL_READ; kind <= CALL_PUT; kind++) {
            bool done = false;
            while (!done && !violated(world)) {
                struct call call = {.kind = (uint8_t)kind,
                                    .key = (uint8_t)draw(world, 0, KEYS - 1),
                                    .argument = (int64_t)world->operation_count + 1};
                uint64_t place = client_call(world, i, CLIENTS_MAX, &call);
                while (world->operations[place].fate == OP_OPEN && !violated(world))
                    run_until(world, world->sim.now_ns + 50 * ms);
                done = world->operations[place].fate == OP_OK;
                if (!done && world->sim.now_ns >= bound) {
                    violate(world, when, "member %u cannot %s", i, kind ? "write" : "read");
                    describe(world);
                }
            }
        }
    }
}

static void run_less(struct world *world)
{
    if (chance(world, 2)) {
        uint64_t a = draw(world, 0, MEMBERS - 1), b = (a + 1) % MEMBERS;
        world->cut[a][b] = true;
        world->cut[b][a] = !chance(world, 3);
        serve(world, "with one link cut, not all serve");
    } else {
        struct member *gone = &world->members[draw(world, 0, MEMBERS - 1)];
        gone->held = true;
        member_crash(world, gone);
        serve(world, "with one member gone, the others do not serve");
    }
}

/* ---- A run ---- */

static void draw_options(struct world *world)
{
    struct options *options = &world->options;
    options->witness = chance(world, 2);
    options->fifo = chance(world, 2);
    options->conflicts = chance(world, 2);
    options->clocks = chance(world, 2);
    options->delay_ns_min = draw(world, 50 * us, 2 * ms);
    options->delay_ns_max = options->delay_ns_min + (chance(world, 2) ? 1 * ms : 25 * ms);
    options->loss_one_in = chance(world, 2) ? draw(world, 10, 200) : 0;
    options->repeat_one_in = chance(world, 2) ? draw(world, 5, 100) : 0;
    options->tail_one_in = chance(world, 3) ? draw(world, 4, 60) : 0;
    options->sync_ns_min = 20 * us;
    options->sync_ns_max = chance(world, 2) ? 1 * ms : 30 * ms;
    options->think_ns_max = draw(world, 0, 2) == 0 ? 1500 * ms : draw(world, 20, 300) * ms;
    options->evaluate_ns_max = chance(world, 2) ? 0 : 3 * ms;
    options->apply_ns_max = chance(world, 2) ? 100 * us : 20 * ms;
    options->clients = (uint32_t)draw(world, 3, CLIENTS_MAX);
    options->flush_one_in = (uint32_t)draw(world, 1, 12);
    options->duel = chance(world, 4);
    if (options->duel) {
        options->clients = CLIENTS_MAX;
        options->think_ns_max = 30 * ms;
        options->sync_ns_max = draw(world, 1, 60) * ms;
    }
}

static void draw_config(struct world *world)
{
    struct consensus_config *config = &world->config;
    *config = (struct consensus_config){.epoch = 1,
                                        .heartbeat_ns = 50 * ms,
                                        .election_ns = 250 * ms,
                                        .election_ns_max = 2 * second,
                                        .request_timeout_ns = 1200 * ms,
                                        .retry_ns = 120 * ms,
                                        .placement_ns = chance(world, 2) ? 700 * ms : 0,
                                        .batch_bytes_max = draw(world, 1, 600),
                                        .inflight_bytes_max = draw(world, 1, 1500),
                                        .log_bytes_max =
                                            chance(world, 2) ? draw(world, 600, 3000) : 1 << 20,
                                        .frame_bytes_max = 1 << 16,
                                        .pending_max = (uint32_t)draw(world, 4, 32),
                                        .evaluate_max = (uint32_t)draw(world, 1, 6),
                                        .trim_entries = (uint32_t)draw(world, 1, 12),
                                        .quiesce = !chance(world, 3)};
    if (world->options.witness)
        config->kinds[draw(world, 0, MEMBERS - 1)] = CONSENSUS_WITNESS;
}

static void set_up(struct world *world)
{
    draw_options(world);
    draw_config(world);
    for (uint8_t i = 0; i < MEMBERS; i++) {
        struct member *member = &world->members[i];
        member->index = i;
        member->disk.found = true;
        member->disk.hard = consensus_hard_initial(++world->next_incarnation);
        member_start(world, member);
    }
    for (uint32_t i = 0; i < world->options.clients; i++) {
        uint8_t at = (uint8_t)(i % MEMBERS);
        world->clients[i].member = (uint8_t)(is_data(world, at) ? at : (at + 1) % MEMBERS);
        struct sim_event event = {.kind = EVENT_CLIENT, .id = i};
        sim_schedule(&world->sim, draw(world, 0, 500 * ms), &event);
    }
    faults_draw(world, faults_from_ns, faults_to_ns);
    faults_schedule(world);
    if (world->replay->drawn) {
        faults_tell(world, world->replay->drawn);
        world->replay->drawn->nodes = MEMBERS;
    }
    if (world->replay->luck)
        rng_init(&world->sim.rng, world->replay->luck);
}

static void tear_down(struct world *world)
{
    for (int i = 0; i < MEMBERS; i++) {
        struct member *member = &world->members[i];
        if (member->core)
            member_crash(world, member);
        disk_clear(&member->disk);
        free(member->queue);
        free(member->evaluations);
        buf_deinit(&member->staging);
    }
    ghost_deinit(&world->ghost);
    free(world->operations);
    arena_deinit(&world->arena);
    sim_deinit(&world->sim);
}

static void report(struct world *world)
{
    struct buf *detail = &world->verdict->detail;
    const struct options *options = &world->options;
    buf_printf(detail,
               "  %s, %s, delay %.1f to %.1f ms, loss 1/%" PRIu64 ", repeat 1/%" PRIu64
               ", sync to %.1f ms, %u clients\n",
               options->witness ? "two data members and a witness" : "three data members",
               options->fifo ? "in order" : "reordered", (double)options->delay_ns_min / 1e6,
               (double)options->delay_ns_max / 1e6, options->loss_one_in, options->repeat_one_in,
               (double)options->sync_ns_max / 1e6, options->clients);
    if (!world->replay->drawn) /* else the caller has them */
        faults_print(world, detail);
}

static void tell(struct world *world)
{
    struct sim_consensus_verdict *verdict = world->verdict;
    struct sim *sim = &world->sim;
    SOMETIMES_IF(sim, CRASHED, verdict->crashes > 0);
    SOMETIMES_IF(sim, UNKNOWN, verdict->unknown > 0);
    SOMETIMES_IF(sim, RECOVERING, verdict->recoveries > 0);
    SOMETIMES_IF(sim, REBUILDING, verdict->rebuilds > 0);
    SOMETIMES_IF(sim, QUIET, verdict->quiet > 0);
    SOMETIMES_IF(sim, CONFLICT, verdict->conflicts > 0);
    SOMETIMES_IF(sim, CONDITION, verdict->failed > 0);
    faults_tell(world, &verdict->told);
    verdict->told.sometimes = sim->sometimes;
    verdict->told.operations = world->operation_count;
    verdict->told.nodes = MEMBERS;
}

void sim_consensus_run(uint64_t seed, bool trace, struct sim_consensus_verdict *ret)
{
    struct sim_replay replay = sim_replay_whole(seed, trace);
    sim_consensus_replay(&replay, ret);
}

void sim_consensus_replay(const struct sim_replay *replay, struct sim_consensus_verdict *ret)
{
    *ret = (struct sim_consensus_verdict){0};
    struct world world = {.verdict = ret, .trace = replay->trace, .replay = replay};
    sim_init(&world.sim, replay->seed);
    world.sim.log = replay->log;
    set_up(&world);
    while (!violated(&world) && world.sim.now_ns < faults_to_ns) {
        run_until(&world, world.sim.now_ns + 50 * ms);
        ghost_isolation(&world);
    }
    world.calm = true;
    faults_heal(&world);
    run_until(&world, world.sim.now_ns + 500 * ms);
    world.clients_stopped = true;
    converge(&world);
    serve(&world, "healed, not all serve");
    if (!violated(&world) && chance(&world, 2))
        run_less(&world);
    if (!violated(&world))
        clients_judge(&world);
    if (violated(&world))
        report(&world);
    tell(&world);
    ret->hash = world.sim.hash;
    ret->events = world.sim.event_count;
    ret->virtual_ns = world.sim.now_ns;
    struct sim_consensus_verdict kept = *ret; /* taking down counts nothing */
    tear_down(&world);
    *ret = kept;
}
