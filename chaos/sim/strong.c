/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a run: the table is made; clients and faults run together, and perhaps the table is
 * dissolved among them; faults end, and all must come to rest, equal. Then, in some runs, it is
 * dissolved in peace, written to where it is left, emptied and made strong again. */

#include "chaos/sim/strong_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static const uint64_t WATCH_NS = 97 * 1000000;
enum { ATTEMPTS_MAX = 4 };

void strong_violate(struct strong_run *run, const char *violation, const char *format, ...)
{
    if (run->verdict->violation)
        return;
    run->verdict->violation = violation;
    run->verdict->told.violated_ns = run->cluster.sim.now_ns;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    buf_printf(&run->verdict->detail, "at %.3fs: %s\n", (double)run->cluster.sim.now_ns / 1e9,
               text);
}

static bool violated(void *context)
{
    const struct strong_run *run = context;
    return run->verdict->violation != NULL;
}

/* ---- Events ---- */

static void replied(void *context, uint32_t node, uint64_t token, struct op *op)
{
    struct strong_run *run = context;
    (void)node;
    uint32_t index = token & 0xff;
    if (index < CLIENTS_MAX) {
        check(run->clients[index].token == token);
        strong_client_replied(run, index, op);
        return;
    }
    check(token == run->control_token);
    strong_control_replied(run, op);
}

static void node_died(struct strong_run *run, uint32_t node)
{
    strong_clients_died(run, node);
    if (run->control_busy && run->control_node == node) {
        run->control_busy = false;
        strong_control_later(run, 100 * ms);
    }
}

/* A disk may be harmed while all members count, and none is about to lose its part for good. */
static bool may_harm_disk(const struct strong_run *run)
{
    return run->phase == PHASE_STRONG && strong_control_done(run);
}

static void fault_begin(struct strong_run *run, struct sim_fault *fault)
{
    bool harms = fault->kind == SIM_FAULT_LOSE_DISK || fault->kind == SIM_FAULT_DAMAGE;
    if (harms && !may_harm_disk(run)) {
        fault->kind = SIM_FAULT_CRASH;
        harms = false;
    }
    bool crashes = harms || fault->kind == SIM_FAULT_CRASH;
    bool lived = run->cluster.nodes[fault->a].core != NULL;
    sim_fault_begin(&run->cluster, fault);
    if (crashes && lived) {
        run->verdict->crashes++;
        node_died(run, fault->a);
    }
    run->verdict->logs_damaged += fault->kind == SIM_FAULT_DAMAGE;
    if (fault->kind == SIM_FAULT_LOSE_DISK) {
        run->verdict->disks_lost++;
        strong_disk_lost(run, fault->a);
    }
}

static void watch_later(struct strong_run *run)
{
    struct sim_event event = {.kind = EVENT_WATCH};
    sim_schedule(&run->cluster.sim, run->cluster.sim.now_ns + WATCH_NS, &event);
}

static void note_groups(struct strong_run *run)
{
    struct sim *sim = &run->cluster.sim;
    for (uint32_t node = 0; node < run->cluster.node_count; node++) {
        const struct region *core = run->cluster.nodes[node].core;
        for (uint32_t i = 0; core && i < region_group_count(core); i++) {
            struct region_group group = region_group_at(core, i);
            SOMETIMES_IF(sim, CARETAKER, group.leads && group.witness);
            SOMETIMES_IF(sim, RECOVERING, group.standing == CONSENSUS_RECOVERING);
            SOMETIMES_IF(sim, REBUILDING, group.standing == CONSENSUS_REBUILDING);
            SOMETIMES_IF(sim, LOG_FULL, group.log_full);
            SOMETIMES_IF(sim, QUIET, group.quiet);
        }
    }
}

static void watch(struct strong_run *run)
{
    strong_clients_watch(run, WATCH_NS);
    note_groups(run);
    if (run->phase == PHASE_MAKE && !run->control_busy && strong_control_done(run))
        run->phase = PHASE_STRONG;
    if (run->phase == PHASE_DISSOLVE && strong_control_done(run)) {
        run->phase = PHASE_REGIONAL;
        run->dissolver = strong_keeper(run);
        run->verdict->dissolved++;
        SOMETIMES(&run->cluster.sim, DISSOLVED);
    }
    watch_later(run);
}

static void event(void *context, const struct sim_event *event)
{
    struct strong_run *run = context;
    switch (event->kind) {
    case EVENT_CLIENT:
        strong_client_event(run, (uint32_t)event->id);
        break;
    case EVENT_FAULT_BEGIN:
        fault_begin(run, &run->plan.faults[event->id]);
        break;
    case EVENT_FAULT_END:
        sim_fault_end(&run->cluster, &run->plan, &run->plan.faults[event->id]);
        break;
    case EVENT_CONTROL:
        if (event->id) /* now it is to be dissolved, if it is strong by now */
            run->phase = run->phase == PHASE_STRONG ? PHASE_DISSOLVE : run->phase;
        else
            strong_control_event(run);
        break;
    case EVENT_WATCH:
        watch(run);
        break;
    default:
        unreachable();
    }
}

/* ---- The setting up of a run ---- */

static void trace_line(void *context, enum trace_level level, const char *line)
{
    struct strong_run *run = context;
    (void)level;
    fprintf(stderr, "%10.6f %s\n", (double)run->cluster.sim.now_ns / 1e9, line);
}

static void count_snapshots(void *context, enum trace_level level, const char *line)
{
    struct strong_run *run = context;
    (void)level;
    run->verdict->snapshots += strstr(line, "has the snapshot of") != NULL;
}

static void run_init(struct strong_run *run, const struct sim_replay *replay,
                     struct sim_strong_verdict *verdict)
{
    bool trace = replay->trace;
    static const uint16_t regions[MEMBERS] = {1, 9, 17};
    sim_cluster_init(&run->cluster, replay->seed, MEMBERS, regions);
    run->cluster.sim.log = replay->log;
    run->replay = replay;
    run->verdict = verdict;
    struct rng *rng = &run->cluster.sim.rng;
    run->witness = rng_one_in(rng, 2);
    strong_draw(run);
    run->cluster.config.trace =
        (struct trace){trace ? trace_line : count_snapshots, run, trace ? TRACE_DEBUG : TRACE_INFO};
    if (trace)
        run->cluster.config.replication.trace = run->cluster.config.trace;
    run->cluster.replied = replied;
    run->cluster.persisted = strong_persisted;
    run->cluster.event = event;
    run->cluster.context = run;
    run->cluster.nodes[2].witness_only = run->witness && rng_one_in(rng, 2);
    for (uint32_t i = 0; i < MEMBERS - (run->witness ? 1 : 0); i++)
        run->data[run->data_count++] = i;
    run->maker = (uint32_t)rng_below(rng, run->data_count);
    run->dissolver = (uint32_t)rng_below(rng, run->data_count);
    run->rival = rng_one_in(rng, 4) ? (uint32_t)rng_below(rng, run->data_count) : run->dissolver;
    run->faults_early = rng_one_in(rng, 3);
    run->dissolves = rng_one_in(rng, 3);
    run->dissolves_early = run->dissolves && rng_one_in(rng, 2);
    run->remakes = run->dissolves && rng_one_in(rng, 2);
    sim_strong_workload_init(&run->workload, rng);
    run->client_count = (uint32_t)rng_between(rng, run->data_count, CLIENTS_MAX);
    run->think_ns_max = rng_between(rng, 5 * ms, 200 * ms);
    for (uint32_t i = 0; i < run->client_count; i++) {
        run->clients[i].node = i % run->data_count;
        arena_init(&run->clients[i].arena);
    }
}

static void run_deinit(struct strong_run *run)
{
    sim_cluster_deinit(&run->cluster);
    strong_check_deinit(run);
    for (uint32_t i = 0; i < run->client_count; i++)
        arena_deinit(&run->clients[i].arena);
    arena_deinit(&run->control_arena);
}

/* ---- Waiting ---- */

/* Runs until it is so, looking twenty times a second; after `bound` it is a violation. */
static void run_until(struct strong_run *run, uint64_t bound, bool (*so)(struct strong_run *run),
                      const char *violation, const char *what)
{
    uint64_t until = run->cluster.sim.now_ns + bound;
    while (!violated(run) && !so(run)) {
        if (run->cluster.sim.now_ns >= until) {
            strong_violate(run, violation, "%s", what);
            strong_control_print(run, &run->verdict->detail);
            return;
        }
        sim_cluster_run(&run->cluster, run->cluster.sim.now_ns + 50 * ms, violated);
    }
}

static bool is_strong(struct strong_run *run)
{
    return run->phase == PHASE_STRONG && strong_control_done(run);
}

static bool is_regional(struct strong_run *run)
{
    return run->phase == PHASE_REGIONAL && strong_control_done(run);
}

static bool is_idle(struct strong_run *run)
{
    return strong_clients_idle(run);
}

/* No disk is still at what it was given when it was slow. */
static bool is_synced(struct strong_run *run)
{
    bool synced = true;
    for (uint32_t i = 0; i < run->cluster.node_count; i++)
        synced = synced && run->cluster.nodes[i].queue_len == 0;
    return synced;
}

static bool is_equal(struct strong_run *run)
{
    return strong_difference(run) == NULL;
}

static void clients_go(struct strong_run *run)
{
    run->clients_stopped = false;
    for (uint32_t i = 0; i < run->client_count; i++)
        strong_client_later(run, i);
}

static void clients_stop(struct strong_run *run)
{
    run->clients_stopped = true;
    run_until(run, 60 * second, is_idle, "a request is never answered", "after all was healed");
    run_until(run, 10 * second, is_synced, "a disk is always busy", "after all was healed");
}

/* One request by the first client of a node, until its answer is good. A few times it may fail, as
 * the time that a request has is drawn, and slow links may take all of it. */
static void ask(struct strong_run *run, uint32_t node, enum sim_strong_kind kind, uint32_t key)
{
    for (uint32_t attempt = 1; !violated(run); attempt++) {
        strong_client_ask(run, node, kind, key);
        run_until(run, 10 * second, is_idle, "a request is not answered", "in peace");
        const struct op_result *result = &run->clients[node].request.op->result;
        if (result->error == API_OK)
            return;
        if (attempt == ATTEMPTS_MAX)
            strong_violate(run, "a request fails although nothing is in its way",
                           "%s at node %u, key %u: %s: %s", sim_strong_kind_name(kind), node, key,
                           api_error_name(result->error), result->message ? result->message : "");
    }
}

/* Every Region reads everything and writes something, and sees what the others wrote. */
static void ask_all(struct strong_run *run)
{
    for (uint32_t i = 0; i < run->data_count; i++) {
        uint32_t node = run->data[i];
        for (uint32_t hash = 0; hash < run->workload.hashes; hash++)
            ask(run, node, SIM_STRONG_QUERY, hash * STRONG_SORTS);
        for (uint32_t key = 0; key < run->workload.hot; key++) {
            ask(run, node, SIM_STRONG_GET, key);
            ask(run, node, key % 2 ? SIM_STRONG_ADD : SIM_STRONG_PUT, key);
        }
    }
}

/* ---- The course ---- */

static void heal(struct strong_run *run)
{
    struct sim_cluster *cluster = &run->cluster;
    cluster->conditions.loss_one_in = cluster->conditions.repeat_one_in = 0;
    cluster->conditions.reorder_one_in = cluster->conditions.reset_one_in = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct sim_node *node = &cluster->nodes[i];
        node->clock = (struct sim_clock){0};
        node->disk_full = false;
        node->sync_slow = node->resume_ns = 0;
        if (!node->core)
            sim_cluster_start(cluster, i);
        for (uint32_t j = 0; j < cluster->node_count; j++) {
            cluster->streams[i][j].extra_delay_ns = 0;
            if (i != j && cluster->streams[i][j].cut)
                sim_cluster_cut(cluster, i, j, false);
        }
    }
}

static void faults(struct strong_run *run)
{
    struct sim *sim = &run->cluster.sim;
    uint64_t begin = sim->now_ns;
    uint64_t end = begin + rng_between(&sim->rng, 4, 10) * second;
    sim_plan_draw(&run->plan, &sim->rng, run->cluster.node_count, begin, end, UINT32_MAX);
    sim_plan_keep(&run->plan, run->replay->faults);
    if (run->replay->drawn) {
        sim_plan_tell(&run->plan, run->replay->drawn);
        run->replay->drawn->nodes = MEMBERS;
    }
    if (run->replay->luck)
        rng_init(&sim->rng, run->replay->luck);
    for (uint32_t i = 0; i < run->plan.count; i++) {
        struct sim_event fault = {.kind = EVENT_FAULT_BEGIN, .id = i};
        sim_schedule(sim, run->plan.faults[i].at_ns, &fault);
        fault.kind = EVENT_FAULT_END;
        sim_schedule(sim, run->plan.faults[i].until_ns, &fault);
    }
    if (run->dissolves_early) {
        struct sim_event dissolve = {.kind = EVENT_CONTROL, .id = 1};
        sim_schedule(sim, rng_between(&sim->rng, begin, end), &dissolve);
    }
    clients_go(run);
    sim_cluster_run(&run->cluster, end + 1, violated);
    heal(run);
}

static void dissolve(struct strong_run *run)
{
    if (run->phase == PHASE_STRONG) {
        run->phase = PHASE_DISSOLVE;
        clients_go(run);
    }
    run_until(run, 60 * second, is_regional, "the table is never dissolved", "after healing");
    clients_stop(run);
    for (uint32_t key = 0; key < run->workload.hashes * STRONG_SORTS; key++) {
        ask(run, run->dissolver, SIM_STRONG_GET, key);
        ask(run, run->dissolver, SIM_STRONG_ADD, key);
    }
    const char *wrong = violated(run) ? NULL : strong_miscount(run, run->dissolver);
    if (wrong)
        strong_violate(run, wrong, "after it was dissolved");
}

static void make_again(struct strong_run *run)
{
    run->phase = PHASE_EMPTY;
    for (uint32_t key = 0; key < run->workload.hashes * STRONG_SORTS; key++)
        ask(run, run->dissolver, SIM_STRONG_DELETE, key);
    run->maker = run->dissolver;
    run->phase = PHASE_MAKE;
    run_until(run, 60 * second, is_strong, "the table never becomes strong again", "in peace");
    run->verdict->made_again++;
    SOMETIMES(&run->cluster.sim, MADE_AGAIN);
    run->operation_count /= 2;
    clients_go(run);
    sim_cluster_run(&run->cluster, run->cluster.sim.now_ns + second, violated);
    clients_stop(run);
}

static void settle(struct strong_run *run)
{
    run_until(run, 30 * second, is_strong, "the table or its groups never serve again",
              "after healing");
    clients_stop(run);
    ask_all(run);
    run_until(run, 10 * second, is_equal, "members do not become equal", "in peace");
    if (violated(run)) {
        const char *difference = is_strong(run) ? strong_difference(run) : NULL;
        if (difference)
            buf_printf(&run->verdict->detail, "difference: %s\n", difference);
    }
}

static void course(struct strong_run *run)
{
    for (uint32_t i = 0; i < run->cluster.node_count; i++)
        sim_cluster_start(&run->cluster, i);
    strong_control_later(run, 10 * ms);
    watch_later(run);
    if (!run->faults_early)
        run_until(run, 30 * second, is_strong, "the table does not become strong",
                  "although nothing but lossy links is in its way");
    if (!violated(run))
        faults(run);
    if (run->phase == PHASE_MAKE || run->phase == PHASE_STRONG)
        settle(run);
    if (run->dissolves && !violated(run))
        dissolve(run);
    if (run->remakes && !violated(run)) {
        make_again(run);
        settle(run);
    }
    strong_clients_judge(run);
}

void sim_strong_run(uint64_t seed, bool trace, struct sim_strong_verdict *ret)
{
    struct sim_replay replay = sim_replay_whole(seed, trace);
    sim_strong_replay(&replay, ret);
}

void sim_strong_replay(const struct sim_replay *replay, struct sim_strong_verdict *ret)
{
    *ret = (struct sim_strong_verdict){0};
    struct strong_run *run = xcalloc(1, sizeof(*run));
    run_init(run, replay, ret);
    course(run);
    buf_printf(&ret->detail, "%s, made by node %u%s%s, %u partitions\n",
               !run->witness                        ? "three data members"
               : run->cluster.nodes[2].witness_only ? "a witness that is nothing else"
                                                    : "a witness in a Region",
               run->maker, run->dissolves_early ? ", dissolved amid faults" : "",
               run->dissolves ? ", dissolved" : "", run->cluster.config.partitions_per_table);
    if (!replay->drawn) /* else the caller has them */
        sim_plan_print(&run->plan, &ret->detail);
    sim_plan_tell(&run->plan, &ret->told);
    SOMETIMES_IF(&run->cluster.sim, SNAPSHOT, ret->snapshots > 0);
    SOMETIMES_IF(&run->cluster.sim, CONFLICT, ret->conflicts > 0);
    SOMETIMES_IF(&run->cluster.sim, CONDITION, ret->failed > 0);
    SOMETIMES_IF(&run->cluster.sim, UNKNOWN, ret->unknown > 0);
    ret->told.sometimes = run->cluster.sim.sometimes;
    ret->told.operations = run->operation_count;
    ret->told.nodes = run->cluster.node_count;
    ret->hash = run->cluster.sim.hash;
    ret->events = run->cluster.sim.event_count;
    ret->virtual_ns = run->cluster.sim.now_ns;
    run_deinit(run);
    free(run);
}
