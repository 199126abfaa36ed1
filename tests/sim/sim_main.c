/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator of eventual tables over seeds; seeds.h tells the options. */

#include <inttypes.h>
#include <stdio.h>

#include "chaos/sim/eventual.h"
#include "tests/sim/seeds.h"

static struct sim_verdict totals;

static void run(uint64_t seed, bool trace, bool count, struct seed_result *ret)
{
    struct sim_verdict verdict;
    sim_eventual_run(seed, trace, &verdict);
    if (count) {
        totals.writes_acknowledged += verdict.writes_acknowledged;
        totals.writes_unknown += verdict.writes_unknown;
        totals.reads += verdict.reads;
        totals.conflicts += verdict.conflicts;
        totals.crashes += verdict.crashes;
        totals.disks_lost += verdict.disks_lost;
        totals.writes_lost += verdict.writes_lost;
    }
    *ret = (struct seed_result){.violation = verdict.violation,
                                .detail = verdict.detail,
                                .hash = verdict.hash,
                                .events = verdict.events};
}

static void print_totals(void)
{
    printf("%" PRIu64 " writes acknowledged, %" PRIu64 " unknown, %" PRIu64 " reads, %" PRIu64
           " lost-write rows, %" PRIu64 " crashes, %" PRIu64 " disks lost and %" PRIu64
           " writes with them\n",
           totals.writes_acknowledged, totals.writes_unknown, totals.reads, totals.conflicts,
           totals.crashes, totals.disks_lost, totals.writes_lost);
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, &(struct seed_suite){"sim_main", run, print_totals});
}
