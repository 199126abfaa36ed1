/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator of strong tables in whole Regions over seeds; seeds.h tells the options. */

#include <inttypes.h>
#include <stdio.h>

#include "chaos/sim/strong.h"
#include "tests/sim/seeds.h"

static struct sim_strong_verdict totals;

static void add(const struct sim_strong_verdict *run)
{
    totals.writes += run->writes;
    totals.reads += run->reads;
    totals.failed += run->failed;
    totals.conflicts += run->conflicts;
    totals.refused += run->refused;
    totals.unknown += run->unknown;
    totals.crashes += run->crashes;
    totals.disks_lost += run->disks_lost;
    totals.logs_damaged += run->logs_damaged;
    totals.snapshots += run->snapshots;
    totals.dissolved += run->dissolved;
    totals.made_again += run->made_again;
    totals.checker_unknown += run->checker_unknown;
}

static void run(uint64_t seed, bool trace, bool count, struct seed_result *ret)
{
    struct sim_strong_verdict verdict;
    sim_strong_run(seed, trace, &verdict);
    if (count)
        add(&verdict);
    *ret = (struct seed_result){.violation = verdict.violation,
                                .detail = verdict.detail,
                                .hash = verdict.hash,
                                .events = verdict.events};
}

static void print_totals(void)
{
    const struct sim_strong_verdict *t = &totals;
    printf("%" PRIu64 " writes done, %" PRIu64 " conditions failed, %" PRIu64 " conflicts, %" PRIu64
           " refused, %" PRIu64 " unknown, %" PRIu64 " reads\n",
           t->writes, t->failed, t->conflicts, t->refused, t->unknown, t->reads);
    printf("%" PRIu64 " crashes, %" PRIu64 " disks lost, %" PRIu64 " logs damaged, %" PRIu64
           " snapshots, %" PRIu64 " tables dissolved, %" PRIu64 " made again, %" PRIu64
           " histories not judged by search\n",
           t->crashes, t->disks_lost, t->logs_damaged, t->snapshots, t->dissolved, t->made_again,
           t->checker_unknown);
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, &(struct seed_suite){"sim_strong_main", run, print_totals});
}
