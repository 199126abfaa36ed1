/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `tidemark sim`. */

#include "chaos/simulate/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/live/command.h"
#include "chaos/live/option.h"
#include "chaos/live/tell.h"
#include "chaos/run/shipped.h"
#include "chaos/scenario/random.h"
#include "chaos/simulate/batch.h"
#include "chaos/simulate/play.h"
#include "conflict/base/check.h"
#include "conflict/base/plant.h"

enum option_key {
    KEY_MODE = 'm',
    KEY_SEEDS = 'n',
    KEY_FIRST = 'f',
    KEY_SCENARIO = 's',
    KEY_TRACE = 't',
    KEY_DIAGRAM = 'd',
    KEY_REPORT = 'r',
    KEY_JSON = 'j',
    KEY_TWICE = 256,
    KEY_FAULTS,
    KEY_LUCK,
    KEY_OPERATIONS,
    KEY_PLANT
};

#define NOT_GIVEN UINT64_MAX
#define SEEDS_MAX UINT64_C(1000000000000) /* with any first one they stay below 2^64 */

struct arguments {
    const char *mode, *scenario;
    struct batch_options batch; /* its numbers: NOT_GIVEN */
    bool has_faults, json;
};

static const struct argp_option options[] = {
    {"mode", KEY_MODE, "mrec|mrsc|consensus", 0,
     "Eventual tables, strong ones, or the consensus of these alone (default: all three)", 1},
    {"scenario", KEY_SCENARIO, "FILE|NAME", 0,
     "Play a scenario of `tidemark chaos` in virtual time instead", 1},
    {"seeds", KEY_SEEDS, "N", 0, "How many (default: 100; of a scenario 1)", 1},
    {"first", KEY_FIRST, "N", 0, "The first of them (default: 1; of a scenario its own)", 1},
    {"twice", KEY_TWICE, NULL, 0, "Run each seed again: it must come to the same end", 1},
    {"diagram", KEY_DIAGRAM, "FILE.svg", 0,
     "Draw the messages before the first violation; of a single seed in any case", 1},
    {"report", KEY_REPORT, "FILE.html", 0,
     "Of a scenario: the page that `tidemark chaos run` makes, of the seed that fails, else of the "
     "last",
     1},
    {"trace", KEY_TRACE, NULL, 0, "The cores' own lines, on standard error", 1},
    {"json", KEY_JSON, NULL, 0, "Print JSON", 1},
    {NULL, 0, NULL, 0, "To run a failure again, as it was made smaller:", 2},
    {"faults", KEY_FAULTS, "N,N,...", 0, "Of the faults drawn, only these, or none", 2},
    {"luck", KEY_LUCK, "N", 0, "Other luck once the faults are drawn", 2},
    {"operations", KEY_OPERATIONS, "N", 0, "Clients send no more", 2},
#ifdef TIDEMARK_PLANTED
    {"plant", KEY_PLANT, "BUG", 0, "With a deliberate bug (conflict/base/plant.h)", 3},
#endif
    {0},
};

static const char doc[] =
    "Run the real cores on simulated networks, disks and clocks, by seeds that draw everything, "
    "and judge what comes of it.\v"
    "A seed is a whole run: the same seed is the same run, to the last event. A failure is printed "
    "with the fewest faults and operations that still show it.\n\n"
    "Exit code: 0 nothing found, 1 a violation, 2 not understood; with a scenario those of "
    "`tidemark chaos run`.";

/* "3,7" or "none". */
static void take_faults(void *arguments, char *text, struct argp_state *state)
{
    struct arguments *into = arguments;
    uint64_t number;
    into->has_faults = true;
    into->batch.faults = 0;
    if (strcmp(text, "none") == 0)
        return;
    for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL;) {
        if (!option_number(one, 0, 63, &number))
            argp_error(state,
                       "--faults: expected whole numbers from 0 to 63, as in 3,7, or none; came "
                       "'%s'",
                       one);
        into->batch.faults |= UINT64_C(1) << (number & 63);
    }
}

static void take_mode(void *arguments, char *text, struct argp_state *state)
{
    ((struct arguments *)arguments)->mode = text;
    if (!sim_world_find(text))
        argp_error(state, "--mode: expected mrec, mrsc or consensus, came '%s'", text);
}

#ifdef TIDEMARK_PLANTED
static void take_plant(void *arguments, char *name, struct argp_state *state)
{
    (void)arguments;
#define PLANT(enumerator, plant_name)                                                              \
    if (strcmp(name, plant_name) == 0)                                                             \
        plant_active = PLANT_##enumerator;
    PLANT_MAP(PLANT)
#undef PLANT
    if (plant_active == PLANT_NONE)
        argp_error(state, "no bug named %s is planted in this build", name);
}
#endif

#define AT(member) offsetof(struct arguments, member)
static const struct option_slot slots[] = {
    {KEY_MODE, OPTION_CALL, 0, 0, 0, take_mode},
    {KEY_SCENARIO, OPTION_TEXT, AT(scenario), 0, 0, NULL},
    {KEY_SEEDS, OPTION_NUMBER, AT(batch.seeds), 1, SEEDS_MAX, NULL},
    {KEY_FIRST, OPTION_NUMBER, AT(batch.first), 0, INT64_MAX, NULL},
    {KEY_TWICE, OPTION_TRUTH, AT(batch.twice), 0, 0, NULL},
    {KEY_DIAGRAM, OPTION_TEXT, AT(batch.diagram), 0, 0, NULL},
    {KEY_REPORT, OPTION_TEXT, AT(batch.report), 0, 0, NULL},
    {KEY_TRACE, OPTION_TRUTH, AT(batch.trace), 0, 0, NULL},
    {KEY_JSON, OPTION_TRUTH, AT(json), 0, 0, NULL},
    {KEY_FAULTS, OPTION_CALL, 0, 0, 0, take_faults},
    {KEY_LUCK, OPTION_NUMBER, AT(batch.luck), 0, INT64_MAX, NULL},
    {KEY_OPERATIONS, OPTION_NUMBER, AT(batch.operations_max), 0, INT64_MAX, NULL},
#ifdef TIDEMARK_PLANTED
    {KEY_PLANT, OPTION_CALL, 0, 0, 0, take_plant},
#endif
};

static const struct option_command sim = {"tidemark sim",   options, slots,
                                          array_len(slots), NULL,    doc};

/* ---- Worlds ---- */

static int run_worlds(const struct arguments *arguments, json_t *to)
{
    int exit_code = EXIT_DONE;
    for (uint32_t i = 0; i < sim_world_count; i++) {
        struct subject subject = {
            .world = &sim_worlds[i],
            .lanes = {"node 0", "node 1", "node 2", "node 3", "node 4", "node 5", "node 6",
                      "node 7"},
        };
        if (arguments->mode && strcmp(arguments->mode, sim_worlds[i].name) != 0)
            continue;
        struct batch_options batch = arguments->batch;
        batch.first = batch.first == NOT_GIVEN ? 1 : batch.first;
        batch.seeds = batch.seeds == NOT_GIVEN ? 100 : batch.seeds;
        int found = batch_run(&subject, &batch, to);
        exit_code = found > exit_code ? found : exit_code;
    }
    return exit_code;
}

/* ---- A scenario ---- */

static bool load(const char *name, struct scenario *scenario, struct buf *error)
{
    const struct shipped_scenario *shipped = shipped_find(name);
    if (shipped)
        return scenario_read(scenario, name, bytes_make(shipped->text, shipped->len), error);
    return scenario_load(scenario, name, error);
}

/* Anew for each seed, which draws the scenario's random faults, too. */
static int run_seed(const struct arguments *arguments, uint64_t nth, json_t *to)
{
    struct scenario scenario;
    struct buf error = {0};
    int exit_code = EXIT_USAGE;
    scenario_init(&scenario);
    if (load(arguments->scenario, &scenario, &error)) {
        struct batch_options batch = arguments->batch;
        batch.first = (batch.first != NOT_GIVEN ? batch.first : scenario.seed) + nth;
        batch.seeds = 1;
        random_expand(&scenario, batch.first);
        struct subject subject = {.scenario = &scenario, .scenario_file = arguments->scenario};
        for (uint32_t i = 0; i < scenario.cluster.region_count; i++)
            subject.lanes[i] = scenario.cluster.region[i].name;
        if (play_accepts(&scenario, &error))
            exit_code = batch_run(&subject, &batch, to);
    }
    tell_lines(buf_view(&error));
    buf_deinit(&error);
    scenario_deinit(&scenario);
    return exit_code;
}

static int run_scenario(const struct arguments *arguments, json_t *to)
{
    uint64_t seeds = arguments->batch.seeds != NOT_GIVEN ? arguments->batch.seeds : 1;
    int exit_code = EXIT_DONE;
    for (uint64_t i = 0; i < seeds && exit_code == EXIT_DONE; i++)
        exit_code = run_seed(arguments, i, to);
    return exit_code;
}

int simulate_command(int argc, char **argv)
{
    struct arguments arguments = {.batch = {.first = NOT_GIVEN,
                                            .seeds = NOT_GIVEN,
                                            .faults = UINT64_MAX,
                                            .luck = NOT_GIVEN,
                                            .operations_max = NOT_GIVEN}};
    struct option_words words;
    option_parse(&sim, argc, argv, &arguments, &words);
    struct batch_options *batch = &arguments.batch;
    batch->whole =
        !arguments.has_faults && batch->luck == NOT_GIVEN && batch->operations_max == NOT_GIVEN;
    batch->luck = batch->luck == NOT_GIVEN ? 0 : batch->luck;
    batch->quiet = arguments.json;
    if (arguments.mode && arguments.scenario) {
        fprintf(stderr, "tidemark: --scenario has its own mode; leave out --mode\n");
        return EXIT_USAGE;
    }
    if (batch->report && !arguments.scenario) {
        fprintf(stderr, "tidemark: --report is of a scenario; add --scenario FILE|NAME\n");
        return EXIT_USAGE;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    json_t *found = json_array();
    int exit_code =
        arguments.scenario ? run_scenario(&arguments, found) : run_worlds(&arguments, found);
    if (arguments.json && json_array_size(found) > 0) {
        json_dumpf(found, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        printf("\n");
    }
    json_decref(found);
    return exit_code;
}
