/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that are lost. What only they had is lost with them, and is counted; what any other disk
 * has must be everywhere in the end. So a loss is worth most when the others hold different parts
 * of what was on it: its links to some are cut for a while before. The next disk to go is often
 * that of the one from which the first is being filled again, or the same one once more. */

#include "chaos/sim/eventual_internal.h"

#include "conflict/base/check.h"
#include "region/core/keyspace.h"

static const uint64_t ms = 1000000;

enum { LOSSES_MAX = SIM_FAULTS_ADDED_MAX / 2 };

void eventual_losses_draw(struct run *run, struct rng *rng, uint64_t from_ns, uint64_t to_ns)
{
    uint32_t nodes = run->cluster.node_count;
    uint32_t node = (uint32_t)rng_below(rng, nodes);
    uint64_t at_ns = rng_between(rng, from_ns, to_ns - 1);
    for (uint64_t left = rng_between(rng, 1, LOSSES_MAX); left > 0 && at_ns < to_ns; left--) {
        uint32_t other = (node + 1 + (uint32_t)rng_below(rng, nodes - 1)) % nodes;
        uint64_t down_ns = rng_between(rng, 1, rng_one_in(rng, 2) ? 200 * ms : 2000 * ms);
        if (rng_one_in(rng, 2)) {
            uint64_t before_ns = rng_between(rng, 0, 2000 * ms);
            uint64_t after_ns = rng_between(rng, 0, 4000 * ms);
            struct sim_fault cut = {
                .kind = rng_one_in(rng, 2) ? SIM_FAULT_CUT : SIM_FAULT_PARTITION,
                .at_ns = at_ns > from_ns + before_ns ? at_ns - before_ns : from_ns,
                .until_ns = at_ns + down_ns + after_ns,
                .a = node,
                .b = other};
            sim_plan_add(&run->plan, cut);
        }
        struct sim_fault loss = {
            .kind = SIM_FAULT_LOSE_DISK, .at_ns = at_ns, .until_ns = at_ns + down_ns, .a = node};
        sim_plan_add(&run->plan, loss);
        /* The next one while this one is being filled again, soon after, or at any time; wherever,
         * here too. */
        static const uint64_t apart_ms[] = {150, 500, 4000};
        node = rng_one_in(rng, 3) ? node : other;
        at_ns += down_ns + rng_below(rng, apart_ms[rng_below(rng, array_len(apart_ms))] * ms);
    }
}

bool eventual_disk_has_table(const struct sim_node *node)
{
    static const uint8_t begin = KEYSPACE_TABLE, end = KEYSPACE_TABLE + 1;
    struct store_read read = {.range = true,
                              .begin = bytes_make(&begin, 1),
                              .end = bytes_make(&end, 1),
                              .rows_max = 1,
                              .bytes_max = UINT64_MAX};
    struct store_rows rows;
    check(node->store->ops->read(node->store, &read, &rows) == STORE_OK);
    return rows.count > 0;
}

bool eventual_loss_survivable(struct run *run, uint32_t node)
{
    for (uint32_t i = 0; i < run->cluster.node_count; i++)
        if (i != node && eventual_disk_has_table(&run->cluster.nodes[i]))
            return true;
    return false;
}

void eventual_lose_disk(struct run *run, uint32_t node)
{
    if (run->cluster.nodes[node].core)
        sim_cluster_crash(&run->cluster, node);
    eventual_check_ledger(run, node);
    sim_cluster_lose_disk(&run->cluster, node);
    run->verdict->disks_lost++;
    run->verdict->writes_lost += ghost_lose(run->ghost, node);
    run->lost[node] = true;
    memset(run->acknowledged[node], 0, sizeof(run->acknowledged[node]));
}
