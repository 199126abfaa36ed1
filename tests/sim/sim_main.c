/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the simulator over a range of seeds, each twice, which must end in the same hash. On a
 * violation prints the seed, what was wrong, the plan of faults and the command that replays it.
 *
 *   sim_main [--first N] [--seeds N] [--file FILE] [--trace] [--plant NAME]
 *
 * --file runs the seeds that a file names instead, one a line, with what each once found behind it.
 *
 * With --plant (in a build that has the bugs) the run must find a violation, and prints after how
 * many seeds. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chaos/sim/eventual.h"
#include "conflict/base/check.h"
#include "conflict/base/plant.h"

struct options {
    uint64_t first, seeds;
    bool trace;
    const char *plant;
    const char *file;
};

struct totals {
    uint64_t events, acknowledged, unknown, reads, conflicts, crashes;
};

static void usage(void)
{
    fprintf(stderr,
            "usage: sim_main [--first N] [--seeds N] [--file FILE] [--trace] [--plant NAME]\n");
    exit(2);
}

static struct options parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"first", required_argument, NULL, 'f'}, {"seeds", required_argument, NULL, 's'},
        {"trace", no_argument, NULL, 't'},       {"plant", required_argument, NULL, 'p'},
        {"file", required_argument, NULL, 'l'},  {0}};
    struct options options = {.first = 1, .seeds = 100};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'f':
            options.first = strtoull(optarg, NULL, 10);
            break;
        case 's':
            options.seeds = strtoull(optarg, NULL, 10);
            break;
        case 't':
            options.trace = true;
            break;
        case 'p':
            options.plant = optarg;
            break;
        case 'l':
            options.file = optarg;
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

/* True when the seed ran clean. */
static bool run_seed(const struct options *options, uint64_t seed, struct totals *totals)
{
    struct sim_verdict verdict;
    sim_eventual_run(seed, options->trace, &verdict);
    bool clean = verdict.violation == NULL;
    totals->events += verdict.events;
    totals->acknowledged += verdict.writes_acknowledged;
    totals->unknown += verdict.writes_unknown;
    totals->reads += verdict.reads;
    totals->conflicts += verdict.conflicts;
    totals->crashes += verdict.crashes;
    if (!clean)
        printf("seed %" PRIu64 ": %s\n%.*sreplay: sim_main --first %" PRIu64 " --seeds 1 --trace\n",
               seed, verdict.violation, (int)verdict.detail.len, (const char *)verdict.detail.at,
               seed);
    if (clean && !options->trace && !options->plant) {
        struct sim_verdict again;
        sim_eventual_run(seed, false, &again);
        if (again.hash != verdict.hash || again.events != verdict.events) {
            printf("seed %" PRIu64 ": two runs of one seed differ\n", seed);
            clean = false;
        }
        sim_verdict_deinit(&again);
    }
    sim_verdict_deinit(&verdict);
    return clean;
}

struct tally {
    uint64_t ran, failed;
};

static void run_one(const struct options *options, uint64_t seed, struct totals *totals,
                    struct tally *tally)
{
    tally->ran++;
    tally->failed += !run_seed(options, seed, totals);
}

static void run_file(const struct options *options, struct totals *totals, struct tally *tally)
{
    FILE *file = fopen(options->file, "r");
    if (!file) {
        fprintf(stderr, "%s: cannot be read\n", options->file);
        exit(2);
    }
    char line[512];
    while (fgets(line, sizeof(line), file)) {
        char *end;
        uint64_t seed = strtoull(line, &end, 10);
        if (end != line)
            run_one(options, seed, totals, tally);
    }
    fclose(file);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct options options = parse(argc, argv);
    if (options.plant)
        plant(options.plant);
    struct totals totals = {0};
    double begin = seconds_now();
    struct tally tally = {0};
    if (options.file)
        run_file(&options, &totals, &tally);
    else
        while (tally.ran < options.seeds && tally.failed < (options.plant ? 1 : 5))
            run_one(&options, options.first + tally.ran, &totals, &tally);
    uint64_t ran = tally.ran, failed = tally.failed;
    double took = seconds_now() - begin;
    printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " events, %" PRIu64
           " writes acknowledged, %" PRIu64 " unknown, %" PRIu64 " reads, %" PRIu64
           " lost-write rows, %" PRIu64 " crashes, %.1f s, %.0f seeds/s\n",
           ran, failed, totals.events, totals.acknowledged, totals.unknown, totals.reads,
           totals.conflicts, totals.crashes, took, (double)ran / took);
    if (options.plant) {
        printf("planted %s: %s after %" PRIu64 " seeds\n", options.plant,
               failed ? "caught" : "NOT CAUGHT", ran);
        return failed ? 0 : 1;
    }
    return failed ? 1 : 0;
}
