/* SPDX-License-Identifier: Apache-2.0 */
/* The words and options of `tidemark chaos`. A scenario is named by its file or, if it is one of
 * those that are built in, by its name alone. */

#include "chaos/run/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "chaos/live/command.h"
#include "chaos/live/option.h"
#include "chaos/live/signals.h"
#include "chaos/live/tell.h"
#include "chaos/live/text.h"
#include "chaos/report/report.h"
#include "chaos/run/claim.h"
#include "chaos/run/run.h"
#include "chaos/run/shipped.h"
#include "chaos/scenario/import.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { REPEAT_MAX = 10000, IMPORT_BYTES_MAX = SCENARIO_FILE_MAX };

enum option_key {
    KEY_OUT = 'o',
    KEY_SEED = 's',
    KEY_REPEAT = 'n',
    KEY_KEEP = 'k',
    KEY_QUIET = 'q',
    KEY_REGIONS = 'r',
    KEY_REGION = 256,
    KEY_STRONG,
    KEY_STOP_IF,
    KEY_MAP
};

#define NOT_GIVEN UINT64_MAX

struct arguments {
    struct option_words words;
    const char *out;
    uint64_t seed, repeat;
    bool keep_data, quiet;
    struct import_options import;
    char *regions; /* the names that import points into */
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "For run:", 1},
    {"out", KEY_OUT, "DIR", 0,
     "Write the reports here (default: runs/NAME/TIME); with --repeat, into DIR/1, DIR/2, ...", 1},
    {"seed", KEY_SEED, "N", 0, "Draw by this seed instead of the scenario's", 1},
    {"repeat", KEY_REPEAT, "N", 0, "Run it so often, each time with the next seed", 1},
    {"keep-data", KEY_KEEP, NULL, 0, "Keep the data of the Regions, in DIR/data", 1},
    {"quiet", KEY_QUIET, NULL, 0, "Print nothing but the verdict", 1},
    {NULL, 0, NULL, 0, "For import:", 2},
    {"regions", KEY_REGIONS, "A,B,C", 0,
     "Of the cluster to run on (default: us-east-1,eu-west-1,ap-northeast-1)", 2},
    {"region", KEY_REGION, "R", 0, "Where the experiment runs (default: the first)", 2},
    {"strong", KEY_STRONG, NULL, 0, "Run it on strong consistency", 2},
    {"map", KEY_MAP, "NAME=R", 0,
     "What their selector or target NAME stands for; may be given often", 2},
    {"stop-if", KEY_STOP_IF, "LIMIT", 0,
     "What stands for their alarms, such as \"error_rate: '>0.5 for 30s'\"", 2},
    {0},
};

static const char doc[] =
    "Break a cluster on purpose, and know what was lost.\v"
    "Commands:\n"
    "  run FILE|NAME             run a scenario; NAME is one of the list\n"
    "  check FILE...             is it a scenario? names every mistake by file, line and field\n"
    "  list                      the scenarios that are built in\n"
    "  show NAME                 the text of one of them\n"
    "  recheck DIR               judge a run again, from its files\n"
    "  import fis|chaos-mesh FILE\n"
    "                            an experiment of AWS FIS or Chaos Mesh, as a scenario\n"
    "  schema                    the JSON Schema of scenario files\n"
    "\n"
    "Exit code of run and recheck: 0 pass, 1 wrong data, 2 the harness failed, 3 unknown (a "
    "checker "
    "ran out of its budget, or could not tell), 4 too slow. Of the others: 0 done, 1 refused, 2 "
    "not "
    "understood.";

static void take_regions(void *into, char *text, struct argp_state *state)
{
    struct arguments *arguments = into;
    struct import_options *import = &arguments->import;
    free(arguments->regions);
    arguments->regions = xstrdup(text);
    import->region_count = 0;
    for (char *rest = arguments->regions, *name; (name = strsep(&rest, ",")) != NULL;) {
        if (import->region_count == SCENARIO_REGIONS_MAX)
            argp_error(state, "--regions: at most %d", SCENARIO_REGIONS_MAX);
        import->regions[import->region_count++] = name;
    }
}

static void take_map(void *arguments, char *text, struct argp_state *state)
{
    struct import_options *import = &((struct arguments *)arguments)->import;
    char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == 0)
        argp_error(state, "--map: expected NAME=REGION, came '%s'", text);
    if (import->name_count == IMPORT_NAMES_MAX)
        argp_error(state, "--map: at most %d", IMPORT_NAMES_MAX);
    *equals = 0;
    import->names[import->name_count++] = (struct import_name){text, equals + 1};
}

#define AT(member) offsetof(struct arguments, member)
static const struct option_slot slots[] = {
    {KEY_OUT, OPTION_TEXT, AT(out), 0, 0, NULL},
    {KEY_SEED, OPTION_NUMBER, AT(seed), 0, INT64_MAX, NULL},
    {KEY_REPEAT, OPTION_NUMBER, AT(repeat), 1, REPEAT_MAX, NULL},
    {KEY_KEEP, OPTION_TRUTH, AT(keep_data), 0, 0, NULL},
    {KEY_QUIET, OPTION_TRUTH, AT(quiet), 0, 0, NULL},
    {KEY_REGIONS, OPTION_CALL, 0, 0, 0, take_regions},
    {KEY_REGION, OPTION_TEXT, AT(import.region), 0, 0, NULL},
    {KEY_STRONG, OPTION_TRUTH, AT(import.strong), 0, 0, NULL},
    {KEY_MAP, OPTION_CALL, 0, 0, 0, take_map},
    {KEY_STOP_IF, OPTION_TEXT, AT(import.stop_if), 0, 0, NULL},
};

static const struct option_command chaos = {"tidemark chaos", options,   slots,
                                            array_len(slots), "COMMAND", doc};

/* ---- Scenarios ---- */

static bool read_file(const char *path, struct buf *to, struct buf *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        buf_printf(error, "%s: %s", path, strerror(errno));
        return false;
    }
    to->len = fread(buf_reserve(to, IMPORT_BYTES_MAX + 1), 1, IMPORT_BYTES_MAX + 1, file);
    bool good = !ferror(file) && to->len <= IMPORT_BYTES_MAX;
    if (!good)
        buf_printf(error, "%s: %s", path,
                   ferror(file) ? strerror(errno) : "expected at most 1 MiB of text");
    fclose(file);
    return good;
}

static void name_shipped(struct buf *to)
{
    for (uint32_t i = 0; i < shipped_scenario_count; i++)
        buf_printf(to, "%s%s", i == 0 ? "" : ", ", shipped_scenarios[i].name);
}

/* A file of that name, or a scenario that is built in. */
static bool find_text(const char *name, struct buf *to, struct buf *error)
{
    struct stat status;
    const struct shipped_scenario *shipped = shipped_find(name);
    if (shipped != NULL && (stat(name, &status) != 0 || S_ISDIR(status.st_mode))) {
        buf_append(to, shipped->text, shipped->len);
        return true;
    }
    if (strchr(name, '/') != NULL || strchr(name, '.') != NULL || access(name, F_OK) == 0)
        return read_file(name, to, error);
    buf_printf(error, "there is no file and no scenario '%s'; built in are ", name);
    name_shipped(error);
    return false;
}

static bool load(const char *name, struct scenario *scenario, struct buf *text, struct buf *error)
{
    return find_text(name, text, error) && scenario_read(scenario, name, buf_view(text), error);
}

static int check_one(const char *name)
{
    struct scenario scenario;
    struct buf text = {0}, error = {0};
    scenario_init(&scenario);
    bool good = load(name, &scenario, &text, &error);
    if (good)
        printf("%s: %s, %u phase%s, %u expectation%s\n", name, scenario.name, scenario.phase_count,
               plural(scenario.phase_count), scenario.expect.count, plural(scenario.expect.count));
    else
        tell_lines(buf_view(&error));
    scenario_deinit(&scenario);
    buf_deinit(&text);
    buf_deinit(&error);
    return good ? EXIT_DONE : EXIT_FAILED;
}

static int check_all(const struct arguments *arguments)
{
    int exit_code = EXIT_DONE;
    for (int i = 1; i < arguments->words.count; i++)
        if (check_one(arguments->words.at[i]) != EXIT_DONE)
            exit_code = EXIT_FAILED;
    return exit_code;
}

static int list_shipped(void)
{
    for (uint32_t i = 0; i < shipped_scenario_count; i++) {
        const struct shipped_scenario *shipped = &shipped_scenarios[i];
        struct scenario scenario;
        struct buf error = {0};
        scenario_init(&scenario);
        bool good = scenario_read(&scenario, shipped->name, bytes_make(shipped->text, shipped->len),
                                  &error);
        printf("%-26s %-9s %s\n", shipped->name,
               !good                                      ? "?"
               : scenario.cluster.mode == SCENARIO_STRONG ? "strong"
                                                          : "eventual",
               good ? scenario.about : "this program cannot read it");
        scenario_deinit(&scenario);
        buf_deinit(&error);
    }
    return EXIT_DONE;
}

static int show_shipped(const char *name)
{
    const struct shipped_scenario *shipped = shipped_find(name);
    struct buf error = {0};
    if (shipped != NULL) {
        fwrite(shipped->text, 1, shipped->len, stdout);
        return EXIT_DONE;
    }
    buf_printf(&error, "there is no scenario '%s' built in; there are ", name);
    name_shipped(&error);
    tell_lines(buf_view(&error));
    buf_deinit(&error);
    return EXIT_FAILED;
}

/* ---- Running ---- */

static char *new_stamp(const char *home)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts));
    char *path = text_new("%s/%s", home, stamp);
    for (int i = 2; access(path, F_OK) == 0; i++) {
        free(path);
        path = text_new("%s/%s-%d", home, stamp, i);
    }
    return path;
}

/* The scenario is read anew each time: a run draws its faults into it. */
static enum outcome_exit run_one(const struct arguments *arguments, uint64_t number,
                                 struct buf *error)
{
    struct scenario scenario;
    struct buf text = {0};
    enum outcome_exit exit_code = OUTCOME_HARNESS;
    const char *name = arguments->words.at[1];
    scenario_init(&scenario);
    if (load(name, &scenario, &text, error)) {
        const char *out = arguments->out;
        char *home = out == NULL ? text_new("runs/%s", scenario.name) : xstrdup(out);
        char *directory = out == NULL ? new_stamp(home)
                          : arguments->repeat > 1
                              ? text_new("%s/%llu", out, (unsigned long long)number)
                              : xstrdup(out);
        uint64_t seed = arguments->seed != NOT_GIVEN ? arguments->seed : scenario.seed;
        const struct run_options run = {.scenario = &scenario,
                                        .file = name,
                                        .text = buf_view(&text),
                                        .seed = seed + number - 1,
                                        .home = home,
                                        .directory = directory,
                                        .keep_data = arguments->keep_data,
                                        .quiet = arguments->quiet};
        exit_code = run_scenario(&run);
        free(home);
        free(directory);
    }
    scenario_deinit(&scenario);
    buf_deinit(&text);
    return exit_code;
}

/* Of many runs, the gravest; one that the harness failed is the last, and so is one that was being
 * judged when the user wanted an end. */
static int run_all(const struct arguments *arguments)
{
    static const enum outcome_exit gravest[] = {OUTCOME_HARNESS, OUTCOME_WRONG, OUTCOME_UNKNOWN,
                                                OUTCOME_SLOW, OUTCOME_PASS};
    uint64_t count[OUTCOME_SLOW + 1] = {0}, runs = 0;
    struct buf error = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (runs < arguments->repeat && count[OUTCOME_HARNESS] == 0 && !signals_came())
        count[run_one(arguments, ++runs, &error)]++;
    tell_lines(buf_view(&error));
    buf_deinit(&error);
    if (arguments->repeat > 1)
        printf("%llu of %llu run%s passed\n", (unsigned long long)count[OUTCOME_PASS],
               (unsigned long long)runs, plural(runs));
    if (runs < arguments->repeat && signals_came())
        return OUTCOME_HARNESS;
    for (size_t i = 0; i < array_len(gravest); i++)
        if (count[gravest[i]] > 0)
            return (int)gravest[i];
    return EXIT_USAGE;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static bool write_again(const struct outcome *outcome, const char *directory, struct buf *error)
{
    if (!claim_check(directory, error))
        return false;
    if (mkdir(directory, 0755) != 0 && errno != EEXIST) {
        buf_printf(error, "directory %s can't be made: %s", directory, strerror(errno));
        return false;
    }
    return claim_mark(directory, error) && report_write(outcome, directory, error);
}

static int recheck(const struct arguments *arguments)
{
    struct scenario scenario;
    struct outcome outcome;
    struct buf error = {0};
    int exit_code = OUTCOME_HARNESS;
    if (report_read(arguments->words.at[1], &scenario, &outcome, &error)) {
        outcome_judge(&outcome, now_ns);
        printf("%s: %s\n", scenario.name, outcome.verdict);
        exit_code = (int)outcome.exit;
        if (arguments->out != NULL && write_again(&outcome, arguments->out, &error))
            printf("report: %s/report.html\n", arguments->out);
        if (error.len > 0)
            exit_code = OUTCOME_HARNESS;
        outcome_deinit(&outcome);
        scenario_deinit(&scenario);
    }
    tell_lines(buf_view(&error));
    buf_deinit(&error);
    return exit_code;
}

/* ---- Texts ---- */

static int import(const struct arguments *arguments)
{
    const char *kind = arguments->words.at[1], *path = arguments->words.at[2];
    struct buf text = {0}, to = {0}, error = {0};
    bool good = read_file(path, &text, &error);
    if (good)
        good = strcmp(kind, "fis") == 0
                   ? scenario_import_fis(path, buf_view(&text), &arguments->import, &to, &error)
                   : scenario_import_chaos_mesh(path, buf_view(&text), &arguments->import, &to,
                                                &error);
    if (good)
        fwrite(to.at, 1, to.len, stdout);
    else
        tell_lines(buf_view(&error));
    buf_deinit(&text);
    buf_deinit(&to);
    buf_deinit(&error);
    return good ? EXIT_DONE : EXIT_FAILED;
}

static int print_schema(void)
{
    struct buf schema = {0};
    scenario_schema_write(&schema);
    fwrite(schema.at, 1, schema.len, stdout);
    buf_deinit(&schema);
    return EXIT_DONE;
}

static int misunderstood(const char *format, const char *word)
{
    fputs("tidemark: ", stderr);
    fprintf(stderr, format, word);
    fputs("; `tidemark chaos --help` lists what there is\n", stderr);
    return EXIT_USAGE;
}

static int obey(const struct arguments *arguments)
{
    const char *command = arguments->words.count == 0 ? "" : arguments->words.at[0];
    const char *second = arguments->words.count > 1 ? arguments->words.at[1] : "";
    int more = arguments->words.count - 1;
    if (strcmp(command, "run") == 0 && more == 1)
        return run_all(arguments);
    if (strcmp(command, "check") == 0 && more > 0)
        return check_all(arguments);
    if (strcmp(command, "list") == 0 && more == 0)
        return list_shipped();
    if (strcmp(command, "show") == 0 && more == 1)
        return show_shipped(second);
    if (strcmp(command, "recheck") == 0 && more == 1)
        return recheck(arguments);
    if (strcmp(command, "schema") == 0 && more == 0)
        return print_schema();
    if (strcmp(command, "import") == 0 && more == 2 &&
        (strcmp(second, "fis") == 0 || strcmp(second, "chaos-mesh") == 0))
        return import(arguments);
    static const char *const known[] = {"run",     "check",  "list",  "show",
                                        "recheck", "import", "schema"};
    for (size_t i = 0; i < array_len(known); i++)
        if (strcmp(command, known[i]) == 0)
            return misunderstood("chaos %s: too few words, or too many", command);
    return misunderstood(*command == 0 ? "chaos: a command is missing%s"
                                       : "chaos: '%s' is no command of it",
                         command);
}

int chaos_command(int argc, char **argv)
{
    struct arguments arguments = {.repeat = 1, .seed = NOT_GIVEN};
    option_parse(&chaos, argc, argv, &arguments, &arguments.words);
    int exit_code = obey(&arguments);
    free(arguments.regions);
    return exit_code;
}
