/* SPDX-License-Identifier: Apache-2.0 */
/* What a user asks of the control plane, again and again until it is so: that what it was doing
 * when something crashed is taken up again is part of what is tested. */

#include <inttypes.h>

#include "chaos/sim/strong_internal.h"
#include "chaos/sim/workload.h"
#include "conflict/base/check.h"

const struct table *strong_table(const struct strong_run *run, uint32_t node)
{
    const struct region *core = run->cluster.nodes[node].core;
    return core ? region_table_find(core, bytes_text(WORKLOAD_TABLE)) : NULL;
}

void strong_control_later(struct strong_run *run, uint64_t after_ns)
{
    struct sim_event event = {.kind = EVENT_CONTROL};
    sim_schedule(&run->cluster.sim, run->cluster.sim.now_ns + after_ns, &event);
}

static void request(struct strong_run *run, uint32_t node, struct op *op)
{
    run->control_busy = true;
    run->control_node = node;
    run->control_waited_ns = 0;
    run->control_token = ++run->next_token << 8 | CLIENTS_MAX;
    sim_cluster_request(&run->cluster, node, run->control_token, op);
}

static void update(struct strong_run *run, uint32_t node, bool create)
{
    uint16_t others[2] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) { /* the witness, if there is one, is the last */
        if (i != node)
            others[count++] = run->cluster.nodes[i].region;
    }
    request(run, node, sim_strong_update(&run->control_arena, create, others, run->witness));
}

static bool up(const struct strong_run *run, uint32_t node)
{
    return run->cluster.nodes[node].core && run->cluster.nodes[node].ready &&
           !sim_cluster_paused(&run->cluster, node);
}

/* Without a request: there was nothing to ask for. */
static void ask(struct strong_run *run)
{
    if (run->phase == PHASE_MAKE && up(run, run->maker)) {
        const struct table *table = strong_table(run, run->maker);
        if (!table)
            request(run, run->maker, sim_strong_create_table(&run->control_arena));
        else if (table->mode == TABLE_REGIONAL && table->status == TABLE_ACTIVE)
            update(run, run->maker, true);
    } else if (run->phase == PHASE_DISSOLVE) {
        uint32_t node = rng_one_in(&run->cluster.sim.rng, 2) ? run->rival : run->dissolver;
        const struct table *table = strong_table(run, node);
        if (up(run, node) && table && table->mode == TABLE_STRONG && table->status == TABLE_ACTIVE)
            update(run, node, false);
    }
}

void strong_control_event(struct strong_run *run)
{
    if (!run->control_busy) {
        arena_reset(&run->control_arena);
        ask(run);
    }
    if (!run->control_busy)
        strong_control_later(run, 100 * ms);
}

void strong_control_replied(struct strong_run *run, struct op *op)
{
    run->control_busy = false;
    if (op->result.error == API_VALIDATION)
        strong_violate(run, "a request of the control plane was refused for good", "%s",
                       op->result.message);
    strong_control_later(run, 100 * ms);
}

/* ---- What has come of it ---- */

static bool groups_serve(const struct strong_run *run)
{
    for (uint32_t node = 0; node < MEMBERS; node++) {
        const struct sim_node *at = &run->cluster.nodes[node];
        if (!at->core || !at->ready ||
            region_group_count(at->core) != run->cluster.config.partitions_per_table)
            return false;
        for (uint32_t i = 0; i < region_group_count(at->core); i++) {
            struct region_group group = region_group_at(at->core, i);
            if (group.leader == 0 || group.standing != CONSENSUS_FULL || group.commit == 0)
                return false;
        }
    }
    return true;
}

static bool made_at(const struct strong_run *run, uint32_t node)
{
    const struct table *table = strong_table(run, node);
    if (!table || table->mode != TABLE_STRONG || table->status != TABLE_ACTIVE ||
        table->replica_count != run->data_count - 1 || (table->witness != 0) != run->witness)
        return false;
    for (uint32_t i = 0; i < table->replica_count; i++) {
        if (table->replicas[i].status != REPLICA_ACTIVE)
            return false;
    }
    return !run->witness || table->witness_status == REPLICA_ACTIVE;
}

static bool made(const struct strong_run *run)
{
    for (uint32_t i = 0; i < run->data_count; i++) {
        if (!made_at(run, run->data[i]))
            return false;
    }
    return groups_serve(run);
}

uint32_t strong_keeper(const struct strong_run *run)
{
    return strong_table(run, run->rival) ? run->rival : run->dissolver;
}

static bool dissolved(const struct strong_run *run)
{
    uint32_t keeper = strong_keeper(run);
    for (uint32_t node = 0; node < MEMBERS; node++) {
        const struct table *table = strong_table(run, node);
        if (!run->cluster.nodes[node].core || !run->cluster.nodes[node].ready ||
            region_group_count(run->cluster.nodes[node].core) > 0)
            return false;
        if (node != keeper && table)
            return false;
        if (node == keeper &&
            (!table || table->mode != TABLE_REGIONAL || table->status != TABLE_ACTIVE ||
             table->replica_count > 0 || table->witness != 0))
            return false;
    }
    return true;
}

void strong_control_print(const struct strong_run *run, struct buf *to)
{
    static const char *const modes[] = {"regional", "eventual", "strong"};
    static const char *const statuses[] = {"CREATING", "ACTIVE", "UPDATING", "DELETING"};
    for (uint32_t node = 0; node < MEMBERS; node++) {
        const struct region *core = run->cluster.nodes[node].core;
        const struct table *table = strong_table(run, node);
        buf_printf(to, "node %u: %s, %s %s, %u replicas%s\n", node, core ? "up" : "down",
                   table ? modes[table->mode] : "no table", table ? statuses[table->status] : "",
                   table ? table->replica_count : 0, table && table->witness ? ", a witness" : "");
        for (uint32_t i = 0; core && i < region_group_count(core); i++) {
            struct region_group group = region_group_at(core, i);
            buf_printf(to,
                       "  partition %u: leader %u, standing %d, term %" PRIu64 ", commit %" PRIu64
                       ", applied %" PRIu64 ", last %" PRIu64 ", pending %" PRIu64 "%s\n",
                       group.partition, group.leader, (int)group.standing, group.term, group.commit,
                       group.applied, group.last, group.pending,
                       group.log_full ? ", log full" : "");
        }
    }
}

bool strong_control_done(const struct strong_run *run)
{
    if (run->control_busy)
        return false;
    switch (run->phase) {
    case PHASE_MAKE:
    case PHASE_STRONG:
        return made(run);
    case PHASE_DISSOLVE:
    case PHASE_REGIONAL:
        return dissolved(run);
    case PHASE_EMPTY:
        return true;
    }
    unreachable();
}
