/* SPDX-License-Identifier: Apache-2.0 */
/* Options, the loop over seeds and the verdict; see seeds.h. */

#include "tests/sim/seeds.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conflict/base/plant.h"

enum { FAILURES_MAX = 5 }; /* then the rest is not run */

struct options {
    uint64_t first, seeds;
    bool trace, once;
    const char *plant;
    const char *file;
};

struct tally {
    uint64_t ran, failed, events;
};

static _Noreturn void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--first N] [--seeds N] [--file FILE] [--once] [--trace] [--plant NAME]\n",
            program);
    exit(2);
}

static struct options parse(int argc, char **argv, const char *program)
{
    static const struct option known[] = {{"first", required_argument, NULL, 'f'},
                                          {"seeds", required_argument, NULL, 's'},
                                          {"file", required_argument, NULL, 'l'},
                                          {"once", no_argument, NULL, 'o'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"plant", required_argument, NULL, 'p'},
                                          {0}};
    struct options options = {.first = 1, .seeds = 100};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'f':
            options.first = strtoull(optarg, NULL, 10);
            break;
        case 's':
            options.seeds = strtoull(optarg, NULL, 10);
            break;
        case 'l':
            options.file = optarg;
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
            usage(program);
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

/* A core's own assertion may be what catches a planted bug. */
static volatile uint64_t running;

static void aborted(int signal)
{
    char line[128];
    (void)signal;
    int len = snprintf(line, sizeof(line), "planted: caught after %" PRIu64 " seeds, by a check\n",
                       (uint64_t)running);
    _exit(write(1, line, (size_t)len) == len ? 0 : 1);
}

/* True when the seed ran clean. */
static bool run_seed(const struct seed_suite *suite, const struct options *options, uint64_t seed,
                     struct tally *tally)
{
    struct seed_result result = {0};
    suite->run(seed, options->trace, true, &result);
    bool clean = result.violation == NULL;
    tally->events += result.events;
    if (!clean)
        printf("seed %" PRIu64 ": %s\n%.*sreplay: %s --first %" PRIu64 " --seeds 1 --trace\n", seed,
               result.violation, (int)result.detail.len, (const char *)result.detail.at,
               suite->program, seed);
    if (clean && !options->trace && !options->plant && !options->once) {
        struct seed_result again = {0};
        suite->run(seed, false, false, &again);
        if (again.hash != result.hash || again.events != result.events) {
            printf("seed %" PRIu64 ": two runs of one seed differ\n", seed);
            clean = false;
        }
        buf_deinit(&again.detail);
    }
    buf_deinit(&result.detail);
    return clean;
}

static void run_one(const struct seed_suite *suite, const struct options *options, uint64_t seed,
                    struct tally *tally)
{
    running = ++tally->ran;
    tally->failed += !run_seed(suite, options, seed, tally);
}

static void run_file(const struct seed_suite *suite, const struct options *options,
                     struct tally *tally)
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
            run_one(suite, options, seed, tally);
    }
    fclose(file);
}

/* Of the processor, so that the figure means the same on a busy machine. */
static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int seeds_main(int argc, char **argv, const struct seed_suite *suite)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct options options = parse(argc, argv, suite->program);
    if (options.plant) {
        plant(options.plant);
        signal(SIGABRT, aborted);
    }
    struct tally tally = {0};
    double begin = seconds_now();
    if (options.file)
        run_file(suite, &options, &tally);
    else
        while (tally.ran < options.seeds && tally.failed < (options.plant ? 1 : FAILURES_MAX))
            run_one(suite, &options, options.first + tally.ran, &tally);
    double took = seconds_now() - begin;
    printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64
           " events, %.1f s of processor time, %.0f seeds/s\n",
           tally.ran, tally.failed, tally.events, took, (double)tally.ran / took);
    suite->print_totals();
    if (options.plant) {
        printf("planted %s: %s after %" PRIu64 " seeds\n", options.plant,
               tally.failed ? "caught" : "NOT CAUGHT", tally.ran);
        return tally.failed ? 0 : 1;
    }
    return tally.failed ? 1 : 0;
}
