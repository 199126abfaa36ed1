/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the strong mode's simulator over a range of seeds, each twice, which must end in the same
 * hash. On a violation prints the seed, what was wrong, the plan of faults and the command that
 * replays it.
 *
 *   sim_consensus_main [--first N] [--seeds N] [--once] [--trace] [--plant NAME]
 *
 * With --plant (in a build that has the bugs) the run must find a violation, and prints after how
 * many seeds. */

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chaos/sim/consensus_run.h"
#include "conflict/base/check.h"
#include "conflict/base/plant.h"

struct options {
    uint64_t first, seeds;
    bool trace, once;
    const char *plant;
};

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: sim_consensus_main [--first N] [--seeds N] [--once] [--trace] "
                    "[--plant NAME]\n");
    exit(2);
}

static struct options parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"first", required_argument, NULL, 'f'}, {"seeds", required_argument, NULL, 's'},
        {"once", no_argument, NULL, 'o'},        {"trace", no_argument, NULL, 't'},
        {"plant", required_argument, NULL, 'p'}, {0}};
    struct options options = {.first = 1, .seeds = 100};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'f':
            options.first = strtoull(optarg, NULL, 10);
            break;
        case 's':
            options.seeds = strtoull(optarg, NULL, 10);
            break;
        case 'o':
            options.once = true;
            break;
        case 't':
            options.trace = true;
            break;
        case 'p':
            options.plant = optarg;
            break;
        default:
            usage();
        }
    }
    return options;
}

static void plant(const char *name)
{
#ifdef TIDEMARK_PLANTED
#define PLANT(enumerator, plant_name)                                                              \
    if (strcmp(name, plant_name) == 0)                                                             \
        plant_active = PLANT_##enumerator;
    PLANT_MAP(PLANT)
#undef PLANT
    if (plant_active != PLANT_NONE)
        return;
#endif
    fprintf(stderr, "no bug named %s is planted in this build\n", name);
    exit(2);
}

static void add(struct sim_consensus_verdict *totals, const struct sim_consensus_verdict *run)
{
    totals->events += run->events;
    totals->committed += run->committed;
    totals->failed += run->failed;
    totals->conflicts += run->conflicts;
    totals->refused += run->refused;
    totals->unknown += run->unknown;
    totals->reads += run->reads;
    totals->elections += run->elections;
    totals->crashes += run->crashes;
    totals->snapshots += run->snapshots;
    totals->recoveries += run->recoveries;
    totals->rebuilds += run->rebuilds;
    totals->quiet += run->quiet;
    totals->checker_unknown += run->checker_unknown;
}

/* True when the seed ran clean. */
static bool run_seed(const struct options *options, uint64_t seed,
                     struct sim_consensus_verdict *totals)
{
    struct sim_consensus_verdict verdict;
    sim_consensus_run(seed, options->trace, &verdict);
    bool clean = verdict.violation == NULL;
    add(totals, &verdict);
    if (!clean)
        printf("seed %" PRIu64 ": %s\n%.*sreplay: sim_consensus_main --first %" PRIu64
               " --seeds 1 --trace\n",
               seed, verdict.violation, (int)verdict.detail.len, (const char *)verdict.detail.at,
               seed);
    if (clean && !options->trace && !options->plant && !options->once) {
        struct sim_consensus_verdict again;
        sim_consensus_run(seed, false, &again);
        if (again.hash != verdict.hash || again.events != verdict.events) {
            printf("seed %" PRIu64 ": two runs of one seed differ\n", seed);
            clean = false;
        }
        sim_consensus_verdict_deinit(&again);
    }
    sim_consensus_verdict_deinit(&verdict);
    return clean;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void print(const struct sim_consensus_verdict *t, uint64_t ran, uint64_t failed, double took)
{
    printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " events, %.1f s, %.0f seeds/hour\n",
           ran, failed, t->events, took, (double)ran / took * 3600);
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

/* A core's own assertion may be what catches a planted bug. */
static uint64_t running;

static void aborted(int signal)
{
    char line[128];
    (void)signal;
    int len = snprintf(line, sizeof(line), "planted: caught after %" PRIu64 " seeds, by a check\n",
                       running);
    _exit(write(1, line, (size_t)len) == len ? 0 : 1);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct options options = parse(argc, argv);
    if (options.plant)
        plant(options.plant);
    if (options.plant)
        signal(SIGABRT, aborted);
    struct sim_consensus_verdict totals = {0};
    double begin = seconds_now();
    uint64_t ran = 0, failed = 0;
    for (; ran < options.seeds && failed < (options.plant ? 1 : 5); ran++) {
        running = ran + 1;
        failed += !run_seed(&options, options.first + ran, &totals);
    }
    print(&totals, ran, failed, seconds_now() - begin);
    if (options.plant) {
        printf("planted %s: %s after %" PRIu64 " seeds\n", options.plant,
               failed ? "caught" : "NOT CAUGHT", ran);
        return failed ? 0 : 1;
    }
    return failed ? 1 : 0;
}
