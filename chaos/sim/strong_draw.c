/* SPDX-License-Identifier: Apache-2.0 */
/* What the network, the disks and the Regions of a run are like, drawn from its seed: often close
 * to the bounds, since it is there that queues are full and answers late. */

#include "chaos/sim/strong_internal.h"

static void draw_conditions(struct strong_run *run)
{
    struct rng *rng = &run->cluster.sim.rng;
    struct sim_conditions *conditions = &run->cluster.conditions;
    conditions->groups = true;
    conditions->silent_cuts = rng_one_in(rng, 2);
    conditions->delay_ns_min = rng_between(rng, 100000, 2 * ms);
    conditions->delay_ns_max =
        conditions->delay_ns_min + rng_between(rng, 0, rng_one_in(rng, 4) ? 60 * ms : 8 * ms);
    conditions->sync_ns_min = rng_between(rng, 10000, 1 * ms);
    conditions->sync_ns_max = conditions->sync_ns_min + rng_between(rng, 0, 20 * ms);
    conditions->read_ns_max = rng_one_in(rng, 2) ? 0 : rng_between(rng, 1000, 5 * ms);
    conditions->reconnect_ns = rng_between(rng, 10 * ms, 300 * ms);
    if (rng_one_in(rng, 3)) /* streams are no streams any more */
        conditions->repeat_one_in = rng_between(rng, 5, 200);
    if (rng_one_in(rng, 3))
        conditions->loss_one_in = rng_between(rng, 20, 200);
    if (rng_one_in(rng, 3))
        conditions->reorder_one_in = rng_between(rng, 5, 200);
    if (rng_one_in(rng, 3))
        conditions->reset_one_in = rng_between(rng, 50, 500);
}

static void draw_config(struct strong_run *run)
{
    struct rng *rng = &run->cluster.sim.rng;
    struct region_config *config = &run->cluster.config;
    config->clock_mode = HLC_HYBRID;
    config->clock_ahead_ms_max = 500;
    config->partitions_per_table = (uint32_t)rng_between(rng, 1, PARTITIONS_MAX);
    config->tables_max = 10;
    config->operations_in_flight_max = (uint32_t)rng_between(rng, 4, 1000);
    config->persist_bytes_max = 1 << 20;
    config->call_timeout_ms = 500;
    config->ledger_rows_max = 1000;
    config->replication = (struct replicator_config){
        .window_bytes_max = 1 << 20,
        .batch_bytes_max = 1 << 16,
        .batch_records_max = 100,
        .frame_bytes_max = 1 << 20,
        .heartbeat_ms = 500,
        .silence_ms_max = 5000,
        .log_bytes_max = 1 << 20,
        .tombstone_grace_ms = 100,
        .apply_bytes_max = 1 << 20,
    };
    uint64_t heartbeat = rng_between(rng, 30, 100);
    config->strong = (struct strong_config){
        .conflict = rng_one_in(rng, 3) ? STRONG_CONFLICT_SERIALIZE : STRONG_CONFLICT_AWS,
        .heartbeat_ms = heartbeat,
        .election_ms = heartbeat * 5,
        .election_ms_max = 4000,
        .request_timeout_ms = rng_between(rng, 500, 2000),
        .retry_ms = rng_between(rng, 50, 200),
        .placement_ms = rng_one_in(rng, 2) ? 0 : rng_between(rng, 200, 2000),
        .relay_silence_ms = heartbeat * 3,
        /* All that clients may have under way fits it; of data members alone it need not. */
        .log_bytes_max =
            rng_one_in(rng, 3) ? 1 << 20 : rng_between(rng, run->witness ? 3000 : 300, 6000),
        .evaluate_max = (uint32_t)rng_between(rng, 1, 64),
        .trim_entries = (uint32_t)rng_between(rng, 1, 20),
        .snapshot_rows_max = (uint32_t)rng_between(rng, 1, 5),
    };
}

void strong_draw(struct strong_run *run)
{
    draw_conditions(run);
    draw_config(run);
}
