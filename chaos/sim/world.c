/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. Each kind of run has a verdict of its own; a table of its members makes figures of
 * it. */

#include "chaos/sim/world.h"

#include <string.h>

#include "chaos/sim/consensus_run.h"
#include "chaos/sim/eventual.h"
#include "chaos/sim/strong.h"
#include "conflict/base/check.h"

#define EVENTUAL_FIGURES(FIGURE)                                                                   \
    FIGURE(writes_acknowledged, "writes")                                                          \
    FIGURE(writes_unknown, "unknown")                                                              \
    FIGURE(reads, "reads")                                                                         \
    FIGURE(conflicts, "lost writes in ledgers")                                                    \
    FIGURE(crashes, "crashes")                                                                     \
    FIGURE(disks_lost, "disks lost")                                                               \
    FIGURE(writes_lost, "writes lost with them")

#define STRONG_FIGURES(FIGURE)                                                                     \
    FIGURE(writes, "writes")                                                                       \
    FIGURE(reads, "reads")                                                                         \
    FIGURE(failed, "conditions failed")                                                            \
    FIGURE(conflicts, "write conflicts")                                                           \
    FIGURE(refused, "refused")                                                                     \
    FIGURE(unknown, "unknown")                                                                     \
    FIGURE(crashes, "crashes")                                                                     \
    FIGURE(disks_lost, "disks lost")                                                               \
    FIGURE(logs_damaged, "logs damaged")                                                           \
    FIGURE(snapshots, "snapshots")                                                                 \
    FIGURE(dissolved, "tables dissolved")                                                          \
    FIGURE(made_again, "made again")                                                               \
    FIGURE(checker_unknown, "histories not judged by search")

#define CONSENSUS_FIGURES(FIGURE)                                                                  \
    FIGURE(committed, "writes")                                                                    \
    FIGURE(reads, "strong reads")                                                                  \
    FIGURE(failed, "conditions failed")                                                            \
    FIGURE(conflicts, "write conflicts")                                                           \
    FIGURE(refused, "refused")                                                                     \
    FIGURE(unknown, "unknown")                                                                     \
    FIGURE(elections, "elections")                                                                 \
    FIGURE(crashes, "crashes")                                                                     \
    FIGURE(snapshots, "snapshots")                                                                 \
    FIGURE(recoveries, "damaged logs recovered")                                                   \
    FIGURE(rebuilds, "lost disks rebuilt")                                                         \
    FIGURE(quiet, "times quiet")                                                                   \
    FIGURE(checker_unknown, "histories not judged by search")

#define NAME(member, name) name,
#define VALUE(member, name) verdict.member,
/* Both of one kind of run: the names, and the call that fills a result. */
#define WORLD(stem, type, function, FIGURES)                                                       \
    static const char *const stem##_names[] = {FIGURES(NAME)};                                     \
    static void stem##_run(const struct sim_replay *replay, struct sim_result *ret)                \
    {                                                                                              \
        struct type verdict;                                                                       \
        function(replay, &verdict);                                                                \
        const uint64_t values[] = {FIGURES(VALUE)};                                                \
        _Static_assert(array_len(values) <= SIM_FIGURES_MAX, "there is room");                     \
        *ret = (struct sim_result){.violation = verdict.violation,                                 \
                                   .detail = verdict.detail,                                       \
                                   .hash = verdict.hash,                                           \
                                   .events = verdict.events,                                       \
                                   .virtual_ns = verdict.virtual_ns,                               \
                                   .told = verdict.told};                                          \
        memcpy(ret->figures, values, sizeof(values));                                              \
    }

WORLD(eventual, sim_verdict, sim_eventual_replay, EVENTUAL_FIGURES)
WORLD(strong, sim_strong_verdict, sim_strong_replay, STRONG_FIGURES)
WORLD(consensus, sim_consensus_verdict, sim_consensus_replay, CONSENSUS_FIGURES)

const struct sim_world sim_worlds[] = {
    {"mrec", "eventual tables in whole Regions", WORLD_EVENTUAL, eventual_names,
     array_len(eventual_names), eventual_run},
    {"mrsc", "strong tables in whole Regions", WORLD_STRONG, strong_names, array_len(strong_names),
     strong_run},
    {"consensus", "the consensus of strong tables alone", WORLD_CONSENSUS, consensus_names,
     array_len(consensus_names), consensus_run},
};
const uint32_t sim_world_count = array_len(sim_worlds);

const struct sim_world *sim_world_find(const char *name)
{
    for (uint32_t i = 0; i < sim_world_count; i++)
        if (strcmp(sim_worlds[i].name, name) == 0)
            return &sim_worlds[i];
    return NULL;
}
