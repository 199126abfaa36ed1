/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a run: the cluster of the scenario with the figures that a Region process has by
 * default, its table, phase after phase, the end, the judgement. */

#include "chaos/simulate/play_internal.h"

#include <math.h>
#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

void play_later(struct play *play, uint64_t at_ns, int kind, uint64_t id, uint64_t generation)
{
    struct sim_event event = {.kind = kind, .id = id, .generation = generation};
    sim_schedule(&play->cluster.sim, at_ns, &event);
}

static bool stop(void *context)
{
    return ((struct play *)context)->stopped;
}

void play_run(struct play *play, uint64_t until_ns)
{
    sim_cluster_run(&play->cluster, until_ns, stop);
}

/* ---- Events ---- */

static void replied(void *context, uint32_t node, uint64_t token, struct op *op)
{
    struct play *play = context;
    (void)node;
    if (token == UINT64_MAX)
        play_table_replied(play, op);
    else
        play_request_replied(play, token, op);
}

static void persisted(void *context, uint32_t node, struct bytes batch, bool durable)
{
    (void)batch; /* clients and looks tell all of it */
    play_disk_used(context, node, durable);
}

static bool sync_failed(void *context, uint32_t node)
{
    return play_sync_failed(context, node);
}

static bool is_current(const struct play *play, const struct sim_event *event)
{
    return play->requests[event->id]->serial == event->generation &&
           !play->requests[event->id]->over;
}

static void event_run(void *context, const struct sim_event *event)
{
    struct play *play = context;
    uint32_t id = (uint32_t)event->id;
    switch (event->kind) {
    case EVENT_DUE:
        play_load_due(play);
        break;
    case EVENT_CLIENT:
        play_load_client(play, id);
        break;
    case EVENT_SUBMIT:
        if (is_current(play, event))
            play_request_submit(play, id);
        break;
    case EVENT_TIMEOUT:
        play_request_timeout(play, id, event->generation);
        break;
    case EVENT_FAULT:
        play_fault_begin(play, id);
        break;
    case EVENT_FAULT_STEP:
        play_fault_step(play, id, event->generation);
        break;
    case EVENT_FAULT_END:
        play_fault_end(play, id, event->generation);
        break;
    case EVENT_START:
        if (!play->cluster.nodes[id].core)
            sim_cluster_start(&play->cluster, id);
        break;
    case EVENT_SAMPLE:
        play_sample(play);
        play_later(play, now_of(play) + 100 * ms, EVENT_SAMPLE, 0, 0);
        break;
    default:
        unreachable();
    }
}

/* ---- The cluster ---- */

static void trace_line(void *context, enum trace_level level, const char *line)
{
    const struct play *play = context;
    (void)level;
    fprintf(stderr, "%10.6f %s\n", (double)now_of(play) / 1e9, line);
}

static void configure(struct play *play)
{
    struct region_config *config = &play->cluster.config;
    const struct scenario_cluster *cluster = &play->scenario->cluster;
    *config = (struct region_config){
        .clock_mode = cluster->clock == SCENARIO_WALL ? HLC_WALL : HLC_HYBRID,
        .clock_ahead_ms_max = 500,
        .partitions_per_table = 4,
        .tables_max = 10,
        .operations_in_flight_max = 10000,
        .persist_bytes_max = 64 * MIB,
        .item_cache_bytes_max = 8 * MIB,
        .call_timeout_ms = 2000,
        .ledger_rows_max = 1000000,
        .replication = {.window_bytes_max = 4 * MIB,
                        .batch_bytes_max = 256 * KIB,
                        .batch_records_max = 500,
                        .frame_bytes_max = MIB,
                        .heartbeat_ms = 200,
                        .silence_ms_max = 10000,
                        .log_bytes_max = UINT64_C(256) * MIB,
                        .tombstone_grace_ms = 3600000,
                        .apply_bytes_max = 4 * MIB},
        .strong = {.heartbeat_ms = 100,
                   .election_ms = 500,
                   .election_ms_max = 10000,
                   .request_timeout_ms = 2000,
                   .retry_ms = 200,
                   .placement_ms = 60000,
                   .relay_silence_ms = 300,
                   .log_bytes_max = 16 * MIB},
    };
    if (play->replay->trace)
        config->trace = config->replication.trace = (struct trace){trace_line, play, TRACE_DEBUG};
    play->cluster.conditions = (struct sim_conditions){.sync_ns_min = 200000,
                                                       .sync_ns_max = 2 * ms,
                                                       .reconnect_ns = 100 * ms,
                                                       .groups = play->strong};
}

static void open_cluster(struct play *play)
{
    const struct scenario_cluster *from = &play->scenario->cluster;
    uint16_t regions[SCENARIO_REGIONS_MAX];
    for (uint32_t i = 0; i < from->region_count; i++)
        regions[i] = from->region[i].id;
    sim_cluster_init(&play->cluster, play->replay->seed, from->region_count, regions);
    play->cluster.sim.log = play->replay->log;
    play->cluster.replied = replied;
    play->cluster.persisted = persisted;
    play->cluster.event = event_run;
    play->cluster.travel = play_travel;
    play->cluster.sync_failed = sync_failed;
    play->cluster.context = play;
    configure(play);
    if (play->replay->luck)
        rng_init(&play->cluster.sim.rng, play->replay->luck);
    for (uint32_t i = from->data_count; i < from->region_count; i++)
        play->cluster.nodes[i].witness_only = true;
    play_faults_init(play);
    play_links_apply(play);
    for (uint32_t i = 0; i < from->region_count; i++)
        sim_cluster_start(&play->cluster, i);
}

/* ---- Phases ---- */

static bool until_holds(struct play *play, const struct scenario_until *until)
{
    bool equal = play_equal(play);
    if ((until->converged || until->caught_up) && !equal)
        return false;
    if (until->leaders && !play_led(play))
        return false;
    if ((until->converged || until->caught_up) && play->outcome->converged_ns == 0)
        play->outcome->converged_ns = now_of(play);
    return true;
}

static void wait_until(struct play *play, const struct scenario_phase *phase,
                       struct outcome_phase *noted)
{
    uint64_t end = now_of(play) + phase->until.timeout_ns;
    if (phase->until.converged || phase->until.caught_up)
        play_load_stop(play);
    while (!play->stopped && !until_holds(play, &phase->until)) {
        if (now_of(play) >= end) {
            noted->timed_out = true;
            return;
        }
        play_run(play, now_of(play) + 100 * ms);
    }
}

/* `first` is the number of the phase's first fault. */
static void run_phase(struct play *play, uint32_t index, uint32_t first)
{
    const struct scenario_phase *phase = &play->scenario->phases[index];
    struct outcome_phase *noted = &play->outcome->phases[play->outcome->phase_count++];
    uint64_t from = now_of(play), to = from + phase->for_ns;
    *noted = (struct outcome_phase){.name = phase->name, .from_ns = from};
    play_load_phase(play, phase);
    if (!phase->idle)
        play->outcome->converged_ns = 0;
    if (phase->heal)
        play_heal(play);
    for (uint32_t i = 0; i < phase->fault_count; i++) {
        uint64_t at = from + phase->faults[i].at_ns;
        play_later(play, at, EVENT_FAULT, first + i, 0);
        to = at > to ? at : to;
    }
    play_run(play, to);
    if (phase->has_until)
        wait_until(play, phase, noted);
    noted->to_ns = now_of(play);
}

static void run_phases(struct play *play)
{
    const struct scenario *scenario = play->scenario;
    struct outcome *outcome = play->outcome;
    uint32_t first = 0;
    outcome->began_ns = now_of(play);
    outcome->phases = arena_array(&outcome->arena, struct outcome_phase, scenario->phase_count + 1);
    play_later(play, now_of(play), EVENT_SAMPLE, 0, 0);
    for (uint32_t i = 0; i < scenario->phase_count && !play->stopped; i++) {
        run_phase(play, i, first);
        first += scenario->phases[i].fault_count;
    }
    play->stopped = false;
}

/* ---- A run ---- */

static void refuse(struct buf *error, const char *what, const char *why)
{
    buf_printf(error, "%s can't be simulated: %s\n", what, why);
}

bool play_accepts(const struct scenario *scenario, struct buf *error)
{
    size_t before = error->len;
    switch (scenario->workload.kind) {
    case SCENARIO_APPEND:
    case SCENARIO_SET:
    case SCENARIO_EXEC:
        refuse(error, scenario_workload_name((enum scenario_workload_kind)scenario->workload.kind),
               "simulated clients know registers, cas, counters, lww-conflict and ycsb");
        break;
    default:
        break;
    }
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        for (uint32_t j = 0; j < scenario->phases[i].fault_count; j++) {
            const struct scenario_fault *fault = &scenario->phases[i].faults[j];
            const char *why = play_verb_refusal(fault);
            if (fault->lose_unsynced && scenario->cluster.durability == SCENARIO_OS)
                why = "with durability os, what an answered write survives is the kernel's affair";
            if (why) {
                buf_printf(error, "line %u: ", fault->line);
                refuse(error, scenario_verb_info((enum scenario_verb)fault->verb)->name, why);
            }
        }
    }
    return error->len == before;
}

/* When the first thing that a checker calls wrong was over. */
static uint64_t violated_ns(const struct outcome *outcome)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < outcome->check_count; i++) {
        const struct verdict *verdict = &outcome->checks[i].verdict;
        uint64_t last = 0;
        if (verdict->kind != VERDICT_WRONG)
            continue;
        for (uint32_t j = 0; j < verdict->op_count; j++) {
            const struct history_op *op = &outcome->history.ops[verdict->ops[j]];
            if (op->return_ns > last && !op->final)
                last = op->return_ns;
        }
        if (last > 0 && last < first)
            first = last;
    }
    return first == UINT64_MAX ? outcome->ended_ns : first;
}

static void tell(const struct play *play, struct play_figures *ret)
{
    const struct sim *sim = &play->cluster.sim;
    struct sim_told *told = &ret->told;
    *ret = (struct play_figures){
        .hash = sim->hash, .events = sim->event_count, .virtual_ns = sim->now_ns};
    told->operations = play->operations;
    told->nodes = play->cluster.node_count;
    told->sometimes = sim->sometimes;
    told->violated_ns = violated_ns(play->outcome);
    for (uint32_t i = 0; i < play->fault_count; i++) {
        const struct play_fault *fault = &play->faults[i];
        if (!fault->told || fault->number == 64 || told->fault_count == SIM_TOLD_FAULTS_MAX)
            continue;
        struct sim_told_fault *to = &told->faults[told->fault_count++];
        *to = (struct sim_told_fault){
            .from_ns = fault->told->from_ns,
            .to_ns = fault->told->to_ns ? fault->told->to_ns : sim->now_ns,
            .number = fault->number,
            .node = fault->regions ? (uint8_t)__builtin_ctz(fault->regions) : 0};
        snprintf(to->text, sizeof(to->text), "%s", fault->told->target);
    }
}

void play_scenario(const struct scenario *scenario, const struct sim_replay *replay,
                   struct outcome *outcome, struct play_figures *ret)
{
    struct play *play = xcalloc(1, sizeof(*play));
    play->scenario = scenario;
    play->replay = replay;
    play->outcome = outcome;
    play->strong = scenario->cluster.mode == SCENARIO_STRONG;
    play->data_count = scenario->cluster.data_count;
    outcome->seed = replay->seed;
    arena_init(&play->asking_arena);
    open_cluster(play);
    play_load_init(play);
    if (play_table_make(play)) {
        run_phases(play);
        play_end(play);
    } else {
        outcome->began_ns = outcome->ended_ns = now_of(play);
    }
    outcome_judge(outcome, NULL);
    tell(play, ret);
    sim_cluster_deinit(&play->cluster);
    play_load_deinit(play);
    free(play->faults);
    arena_deinit(&play->asking_arena);
    free(play);
}
