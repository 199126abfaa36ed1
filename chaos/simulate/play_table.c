/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of a run, made global over all Regions or strong over them, and what a cluster that
 * has come to rest looks like, from the inside. */

#include <inttypes.h>

#include "chaos/sim/strong_workload.h"
#include "chaos/simulate/play_internal.h"
#include "conflict/base/check.h"

const struct table *play_table(const struct play *play, uint32_t node)
{
    const struct region *core = play->cluster.nodes[node].core;
    return core ? region_table_find(core, bytes_text(WORKLOAD_TABLE)) : NULL;
}

/* ---- Making it ---- */

static void ask(struct play *play, struct op *op)
{
    play->asking = true;
    play->asked = op;
    sim_cluster_request(&play->cluster, 0, UINT64_MAX, op);
}

void play_table_replied(struct play *play, struct op *op)
{
    check(op == play->asked);
    play->asking = false;
}

static bool is_member(const struct table *table, uint16_t region)
{
    for (uint32_t i = 0; i < table->replica_count; i++)
        if (table->replicas[i].region == region)
            return true;
    return false;
}

/* One request of whoever wants the table as the scenario has it. */
static void ask_next(struct play *play)
{
    const struct table *table = play_table(play, 0);
    arena_reset(&play->asking_arena);
    if (!table) {
        ask(play, workload_create_table(&play->asking_arena));
        return;
    }
    if (table->status != TABLE_ACTIVE)
        return;
    if (play->strong) {
        const uint16_t others[2] = {play->cluster.nodes[1].region, play->cluster.nodes[2].region};
        if (table->mode == TABLE_REGIONAL)
            ask(play, sim_strong_update(&play->asking_arena, true, others,
                                        scenario_has_witness(&play->scenario->cluster)));
        return;
    }
    for (uint32_t i = 1; i < play->data_count; i++) {
        if (!is_member(table, play->cluster.nodes[i].region)) {
            ask(play, workload_add_replica(&play->asking_arena, play->cluster.nodes[i].region));
            return;
        }
    }
}

static bool made_at(const struct play *play, uint32_t node)
{
    const struct table *table = play_table(play, node);
    if (!table || table->status != TABLE_ACTIVE || table->replica_count != play->data_count - 1u)
        return false;
    for (uint32_t i = 0; i < table->replica_count; i++)
        if (table->replicas[i].status != REPLICA_ACTIVE)
            return false;
    return !play->strong || table->mode == TABLE_STRONG;
}

bool play_table_make(struct play *play)
{
    uint64_t until = now_of(play) + 60 * second;
    while (now_of(play) < until) {
        bool made = !play->asking;
        for (uint32_t i = 0; i < play->data_count; i++)
            made = made && made_at(play, i);
        if (made && (play->data_count == 1 || play_equal(play)))
            return true;
        if (!play->asking && play_node_up(play, 0))
            ask_next(play);
        play_run(play, now_of(play) + 50 * ms);
    }
    play->outcome->harness =
        outcome_text(play->outcome, "the table could not be made within a minute");
    return false;
}

/* ---- Rest ---- */

static bool nothing_to_send(const struct play *play, uint32_t node)
{
    const struct sim_node *at = &play->cluster.nodes[node];
    const struct table *table = play_table(play, node);
    if (!play_node_up(play, node) || !table || at->queue_len > 0 ||
        sim_cluster_paused(&play->cluster, node) ||
        table->item_count != play_table(play, 0)->item_count)
        return false;
    for (uint32_t i = 0; i < play->data_count; i++) {
        struct replication_lag lag = {0};
        if (i != node &&
            (!region_lag(at->core, table, play->cluster.nodes[i].region, now_of(play), &lag) ||
             lag.pending > 0 || !lag.connected))
            return false;
    }
    return true;
}

static bool eventual_equal(const struct play *play)
{
    if (!play_table(play, 0))
        return false;
    for (uint32_t i = 0; i < play->data_count; i++)
        if (!nothing_to_send(play, i))
            return false;
    return true;
}

static uint64_t last_of(const struct play *play, uint32_t partition)
{
    uint64_t last = 0;
    for (uint32_t node = 0; node < play->cluster.node_count; node++) {
        const struct region *core = play->cluster.nodes[node].core;
        for (uint32_t i = 0; i < region_group_count(core); i++) {
            struct region_group group = region_group_at(core, i);
            if (group.partition == partition && group.last > last)
                last = group.last;
        }
    }
    return last;
}

static bool strong_equal(const struct play *play)
{
    for (uint32_t node = 0; node < play->cluster.node_count; node++) {
        if (!play_node_up(play, node) || sim_cluster_paused(&play->cluster, node))
            return false;
    }
    for (uint32_t node = 0; node < play->cluster.node_count; node++) {
        const struct sim_node *at = &play->cluster.nodes[node];
        if (at->queue_len > 0 ||
            region_group_count(at->core) != play->cluster.config.partitions_per_table)
            return false;
        for (uint32_t i = 0; i < region_group_count(at->core); i++) {
            struct region_group group = region_group_at(at->core, i);
            bool data = node < play->data_count;
            if (group.standing != CONSENSUS_FULL || group.leader == 0 ||
                (data && group.applied != last_of(play, group.partition)))
                return false;
        }
    }
    return play_led(play);
}

bool play_equal(struct play *play)
{
    bool equal = play->strong ? strong_equal(play) : eventual_equal(play);
    play->equal_looks = equal ? play->equal_looks + 1 : 0;
    return play->equal_looks >= 2;
}

/* ---- Leaders ---- */

bool play_led(const struct play *play)
{
    uint32_t leaders = 0;
    for (uint32_t node = 0; node < play->cluster.node_count; node++) {
        const struct region *core = play->cluster.nodes[node].core;
        for (uint32_t i = 0; core && i < region_group_count(core); i++)
            leaders += region_group_at(core, i).leads;
    }
    return leaders == play->cluster.config.partitions_per_table;
}

static uint32_t leads(const struct play *play, uint32_t node)
{
    const struct region *core = play->cluster.nodes[node].core;
    uint32_t count = 0;
    for (uint32_t i = 0; core && i < region_group_count(core); i++)
        count += region_group_at(core, i).leads;
    return count;
}

uint64_t play_leaders(const struct play *play)
{
    uint64_t leaders = 0;
    for (uint32_t node = 0; node < play->cluster.node_count; node++)
        if (leads(play, node) > 0)
            leaders |= UINT64_C(1) << node;
    return leaders;
}

uint8_t play_leader(const struct play *play)
{
    uint8_t best = SCENARIO_REGION_NONE;
    uint32_t most = 0;
    for (uint32_t node = 0; node < play->cluster.node_count; node++) {
        uint32_t count = leads(play, node);
        if (count > most) {
            most = count;
            best = (uint8_t)node;
        }
    }
    return best;
}
