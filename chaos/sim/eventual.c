/* SPDX-License-Identifier: Apache-2.0 */
/* Phases: the table is made and becomes global (its last replica perhaps only later, while writes
 * go on); clients and faults run together; faults end, clients stop, everything is healed; then the
 * replicas must become equal, and the books must balance. */

#include "chaos/sim/eventual_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

static const uint64_t ms = 1000000;
static const uint64_t second = 1000000000;

static bool violated(void *context)
{
    struct run *run = context;
    return run->verdict->violation != NULL;
}

static void pending_later(struct run *run)
{
    struct sim_event event = {.kind = EVENT_PENDING};
    sim_schedule(&run->cluster.sim, run->cluster.sim.now_ns + 97 * ms, &event);
}

/* ---- Clients ---- */

static void client_later(struct run *run, uint32_t index)
{
    struct sim *sim = &run->cluster.sim;
    struct sim_event event = {.kind = EVENT_CLIENT, .id = index};
    sim_schedule(sim, sim->now_ns + rng_between(&sim->rng, 1, run->think_ns_max), &event);
}

static void client_call(struct run *run, uint32_t index)
{
    struct sim_client *client = &run->clients[index];
    struct sim_node *node = &run->cluster.nodes[client->node];
    if (run->clients_stopped || run->next_writer >= run->replay->operations_max)
        return;
    check(!client->busy);
    if (!node->core || !node->ready || client->node >= run->joined) {
        client_later(run, index);
        return;
    }
    arena_reset(&client->arena);
    workload_draw(&run->workload, &run->cluster.sim.rng, &client->arena, ++run->next_writer,
                  &client->call);
    client->call.acknowledged_before = run->acknowledged[client->node][client->call.key_index];
    client->busy = true;
    client->token = ++run->next_token << 8 | index;
    sim_log_mark(run->cluster.sim.log, run->cluster.sim.now_ns, client->node, "%llu: %s key %u",
                 (unsigned long long)run->next_writer, op_name(client->call.op->kind),
                 client->call.key_index);
    sim_cluster_request(&run->cluster, client->node, client->token, client->call.op);
}

static void check_read(struct run *run, const struct sim_client *client, const struct op *op)
{
    run->verdict->reads++;
    /* Unless the key was deleted since for good, before anyone shared it. */
    struct version floor = client->call.acknowledged_before;
    if (!ghost_has(run->ghost, op->keys[0].key, floor))
        floor = VERSION_NONE;
    if (op->result.attributes.len == 0) {
        const struct ghost_record *last = ghost_last(run->ghost, op->keys[0].key);
        if (last && version_compare(last->record.version, floor) < 0)
            eventual_violate(run,
                             "a read shows nothing although a write was acknowledged before it");
        return;
    }
    const struct ghost_record *shown =
        ghost_find_writer(run->ghost, workload_writer(op->result.attributes));
    if (!shown)
        eventual_violate(run, "a read shows a write that is not durable");
    else if (version_compare(shown->record.version, floor) < 0)
        eventual_violate(run, "a read shows less than its region had acknowledged before it");
}

static void check_write(struct run *run, struct sim_client *client)
{
    const struct workload_op *call = &client->call;
    run->verdict->writes_acknowledged++;
    if (call->kind == WORKLOAD_DELETE)
        return; /* a tombstone names no writer; convergence judges it */
    const struct ghost_record *written = ghost_find_writer(run->ghost, call->writer);
    if (!written) {
        eventual_violate(run, "a write was acknowledged before it was durable");
        return;
    }
    struct version *newest = &run->acknowledged[client->node][call->key_index];
    if (version_compare(written->record.version, *newest) > 0)
        *newest = written->record.version;
}

static void client_replied(struct run *run, uint32_t index, struct op *op)
{
    struct sim_client *client = &run->clients[index];
    client->busy = false;
    sim_log_mark(run->cluster.sim.log, run->cluster.sim.now_ns, client->node, "%llu: %s",
                 (unsigned long long)client->call.writer,
                 op->result.error == API_OK ? "done" : api_error_name(op->result.error));
    if (op->result.error == API_OK) {
        if (client->call.kind == WORKLOAD_GET)
            check_read(run, client, op);
        else
            check_write(run, client);
    } else if (op->result.error == API_INTERNAL) {
        run->verdict->writes_unknown++;
        SOMETIMES(&run->cluster.sim, UNKNOWN);
    } else if (op->result.error != API_CONDITION_FAILED && op->result.error != API_THROTTLING &&
               op->result.error != API_THROTTLED && op->result.error != API_RESOURCE_NOT_FOUND) {
        buf_printf(&run->verdict->detail, "answer: %s: %s\n", api_error_name(op->result.error),
                   op->result.message ? op->result.message : "");
        eventual_violate(run, "an operation was answered with an error it cannot have");
    }
    SOMETIMES_IF(&run->cluster.sim, CONDITION, op->result.error == API_CONDITION_FAILED);
    client_later(run, index);
}

/* ---- The table and its replicas ---- */

static void control_later(struct run *run, uint64_t after_ns)
{
    struct sim_event event = {.kind = EVENT_CONTROL};
    sim_schedule(&run->cluster.sim, run->cluster.sim.now_ns + after_ns, &event);
}

static void control_request(struct run *run, struct op *op)
{
    run->control_busy = true;
    run->control_op = op;
    run->control_token = ++run->next_token << 8 | CLIENTS_MAX;
    sim_cluster_request(&run->cluster, 0, run->control_token, op);
}

/* Creates the table, then adds a replica, waits until it is active, adds the next. Whatever fails
 * is tried again: that it may be is part of what is tested. */
static void control_run(struct run *run)
{
    const struct sim_node *node = &run->cluster.nodes[0];
    if (run->control_busy)
        return;
    if (run->joined == run->cluster.node_count)
        return;
    if (!node->core || !node->ready) {
        control_later(run, 200 * ms);
        return;
    }
    arena_reset(&run->control_arena);
    const struct table *table = region_table_find(node->core, bytes_text(WORKLOAD_TABLE));
    if (!table && run->joined > 0) {
        control_later(run, 200 * ms); /* it is on its way back from the others */
        return;
    }
    if (!table) {
        control_request(run, workload_create_table(&run->control_arena));
        return;
    }
    if (run->joined == 0)
        run->joined = 1;
    for (uint32_t i = 0; i < table->replica_count; i++)
        if (table->replicas[i].region == run->cluster.nodes[run->joined].region &&
            table->replicas[i].status == REPLICA_ACTIVE && table->status == TABLE_ACTIVE) {
            run->joined++;
            control_later(run, 1);
            return;
        }
    bool last = run->joined == run->cluster.node_count - 1;
    if (last && run->cluster.sim.now_ns < run->late_join_ns) {
        control_later(run, run->late_join_ns - run->cluster.sim.now_ns);
        return;
    }
    if (table->status != TABLE_ACTIVE) {
        control_later(run, 100 * ms);
        return;
    }
    control_request(
        run, workload_add_replica(&run->control_arena, run->cluster.nodes[run->joined].region));
}

static void replied(void *context, uint32_t node, uint64_t token, struct op *op)
{
    struct run *run = context;
    (void)node;
    uint32_t index = token & 0xff;
    if (index < CLIENTS_MAX) {
        check(run->clients[index].token == token);
        client_replied(run, index, op);
        return;
    }
    check(token == run->control_token);
    run->control_busy = false;
    control_later(run, 50 * ms);
}

/* What was under way at a region that died is never answered: nobody knows the outcome. */
static void node_died(struct run *run, uint32_t node)
{
    for (uint32_t i = 0; i < run->client_count; i++) {
        struct sim_client *client = &run->clients[i];
        if (client->node != node || !client->busy)
            continue;
        client->busy = false;
        run->verdict->writes_unknown++;
        SOMETIMES(&run->cluster.sim, UNKNOWN);
        client_later(run, i);
    }
    if (node == 0 && run->control_busy) {
        run->control_busy = false;
        control_later(run, 50 * ms);
    }
}

static void fault_begin(struct run *run, const struct sim_fault *fault)
{
    /* Not the last disk that knows the table: then there would be nothing left to look at. */
    if (fault->kind != SIM_FAULT_LOSE_DISK)
        sim_fault_begin(&run->cluster, fault);
    else if (eventual_loss_survivable(run, fault->a))
        eventual_lose_disk(run, fault->a);
    if (fault->kind != SIM_FAULT_CRASH && fault->kind != SIM_FAULT_LOSE_DISK)
        return;
    run->verdict->crashes += fault->kind == SIM_FAULT_CRASH;
    if (!run->cluster.nodes[fault->a].core)
        node_died(run, fault->a);
}

static void event(void *context, const struct sim_event *event)
{
    struct run *run = context;
    switch (event->kind) {
    case EVENT_CLIENT:
        client_call(run, (uint32_t)event->id);
        break;
    case EVENT_FAULT_BEGIN:
        fault_begin(run, &run->plan.faults[event->id]);
        break;
    case EVENT_FAULT_END:
        sim_fault_end(&run->cluster, &run->plan, &run->plan.faults[event->id]);
        break;
    case EVENT_CONTROL:
        control_run(run);
        break;
    case EVENT_PENDING:
        eventual_check_pending(run);
        pending_later(run);
        break;
    default:
        unreachable();
    }
}

/* ---- The end ---- */

static void heal(struct run *run)
{
    struct sim_cluster *cluster = &run->cluster;
    cluster->conditions.loss_one_in = cluster->conditions.repeat_one_in = 0;
    cluster->conditions.reorder_one_in = cluster->conditions.reset_one_in = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct sim_node *node = &cluster->nodes[i];
        node->clock = (struct sim_clock){0};
        node->disk_full = false;
        if (!node->core)
            sim_cluster_start(cluster, i);
        for (uint32_t j = 0; j < cluster->node_count; j++) {
            cluster->streams[i][j].extra_delay_ns = 0;
            if (i != j && cluster->streams[i][j].cut)
                sim_cluster_cut(cluster, i, j, false);
        }
    }
}

/* Runs until nothing differs, at most `bound` long. */
static void settle(struct run *run, uint64_t bound, bool tombstones_gone)
{
    uint64_t until = run->cluster.sim.now_ns + bound;
    /* A clock that ran ahead wrote tombstones of a time that is yet to come: those may stay. */
    run->collectable_ms = sim_cluster_wall_ms(&run->cluster, 0);
    const char *difference = "";
    while (!run->verdict->violation && run->cluster.sim.now_ns < until) {
        sim_cluster_run(&run->cluster, run->cluster.sim.now_ns + second / 2, violated);
        difference = run->joined == run->cluster.node_count
                         ? eventual_difference(run, tombstones_gone)
                         : "a replica that was asked for never becomes active";
        if (!difference)
            return;
    }
    eventual_tell_vectors(run);
    eventual_violate(run, difference);
}

/* ---- One run ---- */

static void draw_conditions(struct run *run)
{
    struct sim_cluster *cluster = &run->cluster;
    struct rng *rng = &cluster->sim.rng;
    struct sim_conditions *conditions = &cluster->conditions;
    conditions->delay_ns_min = rng_between(rng, 100000, 2 * ms);
    conditions->delay_ns_max = conditions->delay_ns_min + rng_between(rng, 0, 60 * ms);
    conditions->sync_ns_min = rng_between(rng, 10000, 1 * ms);
    conditions->sync_ns_max = conditions->sync_ns_min + rng_between(rng, 0, 20 * ms);
    conditions->read_ns_max = rng_one_in(rng, 2) ? 0 : rng_between(rng, 1000, 2 * ms);
    conditions->reconnect_ns = rng_between(rng, 10 * ms, 300 * ms);
    uint64_t *const rates[] = {&conditions->loss_one_in, &conditions->repeat_one_in,
                               &conditions->reorder_one_in, &conditions->reset_one_in};
    for (uint32_t i = 0; i < array_len(rates); i++)
        *rates[i] = rng_one_in(rng, 2) ? 0 : rng_between(rng, 5, 200);
    struct region_config *config = &cluster->config;
    config->clock_mode = HLC_HYBRID;
    config->clock_ahead_ms_max = 500;
    config->partitions_per_table = (uint32_t)rng_between(rng, 1, 3);
    config->tables_max = 10;
    config->operations_in_flight_max = (uint32_t)rng_between(rng, 4, 1000);
    config->persist_bytes_max = 1 << 20;
    config->call_timeout_ms = 500;
    config->ledger_rows_max = 1000000;
    struct replicator_config *replication = &config->replication;
    replication->window_bytes_max = rng_one_in(rng, 3) ? 2000 : 1 << 20;
    replication->batch_bytes_max = rng_one_in(rng, 3) ? 500 : 1 << 16;
    replication->batch_records_max = (uint32_t)rng_between(rng, 1, 100);
    replication->frame_bytes_max = 1 << 20;
    replication->heartbeat_ms = rng_between(rng, 20, 200);
    replication->silence_ms_max = replication->heartbeat_ms * 10;
    run->logs_uncut = run->exact || rng_one_in(rng, 2);
    replication->log_bytes_max = run->logs_uncut ? 1 << 28 : 4000;
    replication->tombstone_grace_ms = rng_between(rng, 1, 2000);
    replication->apply_bytes_max = replication->window_bytes_max;
}

/* What only a core can tell that has happened, it tells in fixed words. */
static void note_line(struct run *run, const char *line)
{
    struct sim *sim = &run->cluster.sim;
    run->log_cut |= strstr(line, "the log is over its bound and was cut") != NULL;
    SOMETIMES_IF(sim, SNAPSHOT, strstr(line, "snapshot taken in") != NULL);
    SOMETIMES_IF(sim, SNAPSHOT_GIVEN_UP, strstr(line, "snapshot given up") != NULL);
    SOMETIMES_IF(sim, MEMBER_EXPIRED,
                 run->log_cut && run->joined == run->cluster.node_count &&
                     strstr(line, "sending a snapshot") != NULL);
}

static void listen(void *context, enum trace_level level, const char *line)
{
    (void)level;
    note_line(context, line);
}

static void trace_line(void *context, enum trace_level level, const char *line)
{
    struct run *run = context;
    (void)level;
    note_line(run, line);
    fprintf(stderr, "%10.6f node %u: %s\n", (double)run->cluster.sim.now_ns / 1e9,
            run->cluster.stepping, line);
}

static void run_init(struct run *run, const struct sim_replay *replay, struct sim_verdict *verdict)
{
    uint64_t seed = replay->seed;
    bool trace = replay->trace;
    static const uint16_t regions[SIM_NODES_MAX] = {1, 9, 17, 4, 20};
    struct rng shape;
    rng_init(&shape, ~seed);
    uint32_t nodes = rng_one_in(&shape, 3) ? 2 : rng_one_in(&shape, 4) ? 4 : 3;
    sim_cluster_init(&run->cluster, seed, nodes, regions);
    run->cluster.sim.log = replay->log;
    run->replay = replay;
    run->verdict = verdict;
    run->ghost = ghost_new();
    run->exact = nodes == 2 && rng_one_in(&shape, 2);
    draw_conditions(run);
    run->cluster.config.item_cache_bytes_max = rng_one_in(&shape, 3)   ? 0
                                               : rng_one_in(&shape, 2) ? 2000
                                                                       : 1 << 20;
    run->cluster.config.trace = run->cluster.config.replication.trace =
        (struct trace){trace ? trace_line : listen, run, trace ? TRACE_DEBUG : TRACE_INFO};
    run->cluster.replied = replied;
    run->cluster.persisted = eventual_persisted;
    run->cluster.event = event;
    run->cluster.context = run;
    /* Chosen so that the runs in tests/sim/seeds.txt are what they were. */
    run->loses = !run->exact && rng_below(&shape, 7) >= 5;
    run->loss_rng = shape;
    struct rng *rng = &run->cluster.sim.rng;
    workload_init(&run->workload, rng);
    run->client_count = (uint32_t)rng_between(rng, nodes, CLIENTS_MAX);
    run->think_ns_max = rng_between(rng, 5 * ms, 300 * ms);
    run->late_join_ns = !run->exact && rng_one_in(rng, 3) ? rng_between(rng, 1, 6) * second : 0;
    for (uint32_t i = 0; i < run->client_count; i++) {
        run->clients[i].node = i % nodes;
        arena_init(&run->clients[i].arena);
    }
}

static void run_deinit(struct run *run)
{
    sim_cluster_deinit(&run->cluster);
    ghost_free(run->ghost);
    for (uint32_t i = 0; i < run->client_count; i++)
        arena_deinit(&run->clients[i].arena);
    arena_deinit(&run->control_arena);
}

static void run_faults(struct run *run)
{
    struct sim *sim = &run->cluster.sim;
    uint64_t begin = sim->now_ns;
    uint64_t end = begin + rng_between(&sim->rng, 4, 10) * second;
    sim_plan_draw(&run->plan, &sim->rng, run->cluster.node_count, begin, end, SIM_FAULTS_EVENTUAL);
    if (run->loses)
        eventual_losses_draw(run, &run->loss_rng, begin, end);
    sim_plan_keep(&run->plan, run->replay->faults);
    if (run->replay->drawn) {
        sim_plan_tell(&run->plan, run->replay->drawn);
        run->replay->drawn->nodes = run->cluster.node_count;
    }
    if (run->replay->luck)
        rng_init(&sim->rng, run->replay->luck);
    SOMETIMES_IF(sim, JOINED_LATE, run->late_join_ns > begin);
    for (uint32_t i = 0; i < run->plan.count; i++) {
        struct sim_event fault = {.kind = EVENT_FAULT_BEGIN, .id = i};
        sim_schedule(sim, run->plan.faults[i].at_ns, &fault);
        fault.kind = EVENT_FAULT_END;
        sim_schedule(sim, run->plan.faults[i].until_ns, &fault);
    }
    for (uint32_t i = 0; i < run->client_count; i++)
        client_later(run, i);
    sim_cluster_run(&run->cluster, end + 1, violated);
}

static bool replicas_made(void *context)
{
    struct run *run = context;
    return run->verdict->violation ||
           run->joined >= run->cluster.node_count - (run->late_join_ns ? 1 : 0);
}

void sim_eventual_run(uint64_t seed, bool trace, struct sim_verdict *ret)
{
    struct sim_replay replay = sim_replay_whole(seed, trace);
    sim_eventual_replay(&replay, ret);
}

void sim_eventual_replay(const struct sim_replay *replay, struct sim_verdict *ret)
{
    *ret = (struct sim_verdict){0};
    struct run *run = xcalloc(1, sizeof(*run));
    run_init(run, replay, ret);
    for (uint32_t i = 0; i < run->cluster.node_count; i++)
        sim_cluster_start(&run->cluster, i);
    control_later(run, 10 * ms);
    pending_later(run);
    sim_cluster_run(&run->cluster, 30 * second, replicas_made);
    if (!replicas_made(run))
        eventual_violate(run, "the table does not become global although nothing is in its way");
    if (!ret->violation)
        run_faults(run);
    run->clients_stopped = true;
    if (!ret->violation) {
        heal(run);
        settle(run, 60 * second, false);
    }
    if (!ret->violation)
        settle(run, 60 * second, true);
    if (!ret->violation)
        eventual_check_ledgers(run);
    if (!replay->drawn) /* else the caller has them */
        sim_plan_print(&run->plan, &ret->detail);
    sim_plan_tell(&run->plan, &ret->told);
    ret->told.sometimes = run->cluster.sim.sometimes;
    ret->told.operations = run->next_writer;
    ret->told.nodes = run->cluster.node_count;
    ret->hash = run->cluster.sim.hash;
    ret->events = run->cluster.sim.event_count;
    ret->virtual_ns = run->cluster.sim.now_ns;
    run_deinit(run);
    free(run);
}
