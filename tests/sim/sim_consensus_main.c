/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator of the strong mode's consensus alone over seeds; seeds.h tells the options. */

#include <inttypes.h>
#include <stdio.h>

#include "chaos/sim/consensus_run.h"
#include "tests/sim/seeds.h"

static struct sim_consensus_verdict totals;

static void add(const struct sim_consensus_verdict *run)
{
    totals.committed += run->committed;
    totals.failed += run->failed;
    totals.conflicts += run->conflicts;
    totals.refused += run->refused;
    totals.unknown += run->unknown;
    totals.reads += run->reads;
    totals.elections += run->elections;
    totals.crashes += run->crashes;
    totals.snapshots += run->snapshots;
    totals.recoveries += run->recoveries;
    totals.rebuilds += run->rebuilds;
    totals.quiet += run->quiet;
    totals.checker_unknown += run->checker_unknown;
}

static void run(uint64_t seed, bool trace, bool count, struct seed_result *ret)
{
    struct sim_consensus_verdict verdict;
    sim_consensus_run(seed, trace, &verdict);
    if (count)
        add(&verdict);
    *ret = (struct seed_result){.violation = verdict.violation,
                                .detail = verdict.detail,
                                .hash = verdict.hash,
                                .events = verdict.events};
}

static void print_totals(void)
{
    const struct sim_consensus_verdict *t = &totals;
    printf("writes: %" PRIu64 " committed, %" PRIu64 " conditions failed, %" PRIu64
           " conflicts, %" PRIu64 " refused (with reads), %" PRIu64
           " unknown; strong reads: %" PRIu64 "\n",
           t->committed, t->failed, t->conflicts, t->refused, t->unknown, t->reads);
    printf("%" PRIu64 " elections, %" PRIu64 " crashes, %" PRIu64 " snapshots, %" PRIu64
           " recoveries of a damaged log, %" PRIu64 " rebuilds of a lost disk, %" PRIu64
           " times quiet, %" PRIu64 " histories not judged by search\n",
           t->elections, t->crashes, t->snapshots, t->recoveries, t->rebuilds, t->quiet,
           t->checker_unknown);
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, &(struct seed_suite){"sim_consensus_main", run, print_totals});
}
