/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `tidemark sim`. */

#include "chaos/simulate/command.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/live/command.h"
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
    KEY_JSON = 'j',
    KEY_TWICE = 256,
    KEY_FAULTS,
    KEY_LUCK,
    KEY_OPERATIONS,
    KEY_PLANT
};

struct arguments {
    const char *mode, *scenario;
    struct batch_options batch;
    bool has_seeds, has_first, json;
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

static uint64_t parse_number(const char *text, const char *name, struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != 0 || errno != 0 || text[0] == '-')
        argp_error(state, "--%s expects a number; came '%s'", name, text);
    return value;
}

static uint64_t parse_faults(const char *text, struct argp_state *state)
{
    uint64_t set = 0;
    if (strcmp(text, "none") == 0)
        return 0;
    for (;;) {
        char *end;
        unsigned long number = strtoul(text, &end, 10);
        if (end == text || number > 63 || (*end != ',' && *end != 0))
            argp_error(state, "--faults expects numbers up to 63, as in 3,7, or none");
        set |= UINT64_C(1) << (number & 63);
        if (*end == 0)
            return set;
        text = end + 1;
    }
}

static void plant(const char *name, struct argp_state *state)
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
    argp_error(state, "no bug named %s is planted in this build", name);
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    struct batch_options *batch = &arguments->batch;
    switch (key) {
    case KEY_MODE:
        arguments->mode = value;
        if (!sim_world_find(value))
            argp_error(state, "--mode is mrec, mrsc or consensus; came '%s'", value);
        return 0;
    case KEY_SCENARIO:
        arguments->scenario = value;
        return 0;
    case KEY_SEEDS:
        batch->seeds = parse_number(value, "seeds", state);
        arguments->has_seeds = true;
        return 0;
    case KEY_FIRST:
        batch->first = parse_number(value, "first", state);
        arguments->has_first = true;
        return 0;
    case KEY_TWICE:
        batch->twice = true;
        return 0;
    case KEY_DIAGRAM:
        batch->diagram = value;
        return 0;
    case KEY_TRACE:
        batch->trace = true;
        return 0;
    case KEY_JSON:
        arguments->json = batch->quiet = true;
        return 0;
    case KEY_FAULTS:
        batch->faults = parse_faults(value, state);
        batch->whole = false;
        return 0;
    case KEY_LUCK:
        batch->luck = parse_number(value, "luck", state);
        batch->whole = false;
        return 0;
    case KEY_OPERATIONS:
        batch->operations_max = parse_number(value, "operations", state);
        batch->whole = false;
        return 0;
    case KEY_PLANT:
        plant(value, state);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "sim takes options only; came '%s'", value);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {options, parse_option, NULL, doc, NULL, NULL, NULL};

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
        int found = batch_run(&subject, &arguments->batch, to);
        exit_code = found > exit_code ? found : exit_code;
    }
    return exit_code;
}

/* ---- A scenario ---- */

static void print_lines(const struct buf *error) /* each line after our name */
{
    const char *at = (const char *)error->at, *end = at + error->len;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t len = line == NULL ? (size_t)(end - at) : (size_t)(line - at);
        fprintf(stderr, "tidemark: %.*s\n", (int)len, at);
        at += len + 1;
    }
}

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
        batch.first = (arguments->has_first ? batch.first : scenario.seed) + nth;
        batch.seeds = 1;
        random_expand(&scenario, batch.first);
        struct subject subject = {.scenario = &scenario, .scenario_file = arguments->scenario};
        for (uint32_t i = 0; i < scenario.cluster.region_count; i++)
            subject.lanes[i] = scenario.cluster.region[i].name;
        if (play_accepts(&scenario, &error))
            exit_code = batch_run(&subject, &batch, to);
    }
    print_lines(&error);
    buf_deinit(&error);
    scenario_deinit(&scenario);
    return exit_code;
}

static int run_scenario(const struct arguments *arguments, json_t *to)
{
    uint64_t seeds = arguments->has_seeds ? arguments->batch.seeds : 1;
    int exit_code = EXIT_DONE;
    for (uint64_t i = 0; i < seeds && exit_code == EXIT_DONE; i++)
        exit_code = run_seed(arguments, i, to);
    return exit_code;
}

int simulate_command(int argc, char **argv)
{
    static char name[] = "tidemark sim";
    struct arguments arguments = {.batch = {.first = 1,
                                            .seeds = 100,
                                            .faults = UINT64_MAX,
                                            .operations_max = UINT64_MAX,
                                            .whole = true}};
    argp_err_exit_status = EXIT_USAGE;
    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    if (arguments.mode && arguments.scenario) {
        fprintf(stderr, "tidemark: --scenario has its own mode; leave out --mode\n");
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
