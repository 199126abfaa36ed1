/* SPDX-License-Identifier: Apache-2.0 */
/* The command `tidemark`: takes its words and options apart, and hands over. Options may stand
 * anywhere. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/live/command.h"
#include "chaos/live/config.h"
#include "chaos/live/option.h"
#include "chaos/live/tell.h"
#include "chaos/live/up.h"
#include "chaos/run/command.h"
#include "chaos/simulate/command.h"
#include "conflict/base/check.h"
#include "conflict/base/plant.h"

enum option_key {
    KEY_CONTROL = 'c',
    KEY_JSON = 'j',
    KEY_REGIONS = 'r',
    KEY_PORT = 'p',
    KEY_DATA = 'd',
    KEY_WITNESS = 256,
    KEY_DURABILITY,
    KEY_CLOCK,
    KEY_LISTEN,
    KEY_CONFIG,
    KEY_SEED,
    KEY_LOG_LEVEL,
    KEY_MRSC_CONFLICT,
    KEY_DISCARD,
};

/* `up` reads its file first, whatever the order of the options. */
struct arguments {
    bool json, discard;
    const char *control, *regions, *port, *data, *witness, *durability, *clock, *listen, *config,
        *seed, *log_level, *mrsc_conflict;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "For every command:", 1},
    {"control", KEY_CONTROL, "URL", 0,
     "The cluster's control API, HOST:PORT or http://HOST:PORT (default: $TIDEMARK_CONTROL, else "
     "127.0.0.1:8474); for up: where it and the console in a browser listen, port 0 for any",
     1},
    {"json", KEY_JSON, NULL, 0, "Print JSON", 1},
    {NULL, 0, NULL, 0, "For up and region restart:", 3},
    {"discard-damaged-store", KEY_DISCARD, NULL, 0,
     "If a region's store is damaged, set it aside and start empty", 3},
    {NULL, 0, NULL, 0, "For up:", 2},
    {"regions", KEY_REGIONS, "A,B,C", 0, "Default: us-east-1,eu-west-1,ap-northeast-1", 2},
    {"port", KEY_PORT, "PORT", 0,
     "Of the front door (default: 8000); the regions take the ports that follow it; 0: any free "
     "ones",
     2},
    {"listen", KEY_LISTEN, "IP", 0, "Host of the front door and the regions (default: 127.0.0.1)",
     2},
    {"data", KEY_DATA, "DIR", 0,
     "Keep the data here (default: a temporary directory, removed at the end)", 2},
    {"durability", KEY_DURABILITY, "fsync|os", 0,
     "What an answered write survives: loss of power (default) or the death of the process", 2},
    {"clock", KEY_CLOCK, "hybrid|wall", 0, "What orders writes (default: hybrid)", 2},
    {"log-level", KEY_LOG_LEVEL, "LEVEL", 0,
     "Of the regions' log, on stderr: debug, info, warn (default) or error", 2},
    {"seed", KEY_SEED, "N", 0, "Of jitter and toxicity (default: 1)", 2},
    {"witness", KEY_WITNESS, "R[,R...]", 0,
     "Regions that hold witnesses of strong tables and nothing else; none of --regions", 2},
    {"mrsc-conflict", KEY_MRSC_CONFLICT, "aws|serialize", 0,
     "Strong tables: refuse a write of an item that another region is modifying, as AWS does "
     "(default), or let it wait its turn",
     2},
    {"config", KEY_CONFIG, "FILE", 0, "YAML with the same names, and links; options win", 2},
    {0},
};

const char *argp_program_version = "tidemark " TIDEMARK_VERSION;

static const char doc[] =
    "DynamoDB global tables on your own machine: regions as processes, and the links between them "
    "to "
    "cut.\v"
    "Commands:\n"
    "  up                        start a cluster, in the foreground; Ctrl-C ends it\n"
    "  status                    regions, links, lag, conflicts\n"
    "  conflicts                 every write that lost to another region's\n"
    "  link cut|heal A B         stop, or let flow, what A sends to B\n"
    "  link delay A B MS         delay what A sends to B; 0 ends it\n"
    "  region kill|restart R     end the process of R; start it again\n"
    "  region pause|resume R     freeze it; let it run on\n"
    "  region isolate|rejoin R   cut all its links, not its clients; heal them\n"
    "  chaos ...                 break a cluster by a scenario, judge what became of\n"
    "                            the data; `tidemark chaos --help`\n"
    "  sim ...                   the same cores on simulated networks, disks, clocks,\n"
    "                            by seeds; `tidemark sim --help`\n"
    "  version, help\n"
    "\n"
    "Exit code: 0 done, 1 failed, 2 not understood.";

#define TEXT(key, member)                                                                          \
    {                                                                                              \
        key, OPTION_TEXT, offsetof(struct arguments, member), 0, 0, NULL                           \
    }
#define TRUTH(key, member)                                                                         \
    {                                                                                              \
        key, OPTION_TRUTH, offsetof(struct arguments, member), 0, 0, NULL                          \
    }
static const struct option_slot slots[] = {
    TEXT(KEY_CONTROL, control),
    TRUTH(KEY_JSON, json),
    TEXT(KEY_REGIONS, regions),
    TEXT(KEY_PORT, port),
    TEXT(KEY_DATA, data),
    TEXT(KEY_WITNESS, witness),
    TEXT(KEY_DURABILITY, durability),
    TEXT(KEY_CLOCK, clock),
    TEXT(KEY_LISTEN, listen),
    TEXT(KEY_CONFIG, config),
    TEXT(KEY_SEED, seed),
    TEXT(KEY_LOG_LEVEL, log_level),
    TEXT(KEY_MRSC_CONFLICT, mrsc_conflict),
    TRUTH(KEY_DISCARD, discard),
};

static const struct option_command tidemark = {"tidemark",       options,   slots,
                                               array_len(slots), "COMMAND", doc};

/* http://HOST:PORT is a form for clients; a server listens on HOST:PORT. */
static const char *without_scheme(const char *control)
{
    static const char scheme[] = "http://";
    bool has = control != NULL && strncmp(control, scheme, sizeof(scheme) - 1) == 0;
    return has ? control + sizeof(scheme) - 1 : control;
}

static bool configure(struct config *config, const struct arguments *arguments, struct buf *error)
{
    const struct {
        const char *value;
        bool (*set)(struct config *, const char *, struct buf *);
    } settings[] = {
        {arguments->witness, config_set_witness},
        {arguments->regions, config_set_regions},
        {arguments->port, config_set_port},
        {without_scheme(arguments->control), config_set_control},
        {arguments->listen, config_set_listen},
        {arguments->durability, config_set_durability},
        {arguments->clock, config_set_clock},
        {arguments->log_level, config_set_log_level},
        {arguments->seed, config_set_seed},
        {arguments->mrsc_conflict, config_set_mrsc_conflict},
    };
    if (arguments->config != NULL && !config_load(config, arguments->config, error))
        return false;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (settings[i].value != NULL && !settings[i].set(config, settings[i].value, error))
            return false;
    if (arguments->data != NULL)
        config_set_data(config, arguments->data);
    return config_check(config, error);
}

static int run_up(const struct arguments *arguments, const struct option_words *words)
{
    struct config config;
    struct buf error;
    int exit_code = EXIT_USAGE;
    config_init(&config);
    buf_init(&error);
    config.discard_damaged_store = arguments->discard;
    if (words->count > 1)
        fprintf(stderr, "tidemark: up takes options only; came '%s'. `tidemark help` lists them.\n",
                words->at[1]);
    else if (!configure(&config, arguments, &error))
        tell_lines(buf_view(&error));
    else
        exit_code = up_run(&config, arguments->json);
    buf_deinit(&error);
    config_deinit(&config);
    return exit_code;
}

/* `chaos help` and `help chaos` are `chaos --help`. */
static int take_help(int argc, char **argv)
{
    static char option[] = "--help";
    bool first = argc > 2 && strcmp(argv[1], "help") == 0;
    const char *command = argc > 2 ? argv[first ? 2 : 1] : "";
    if (strcmp(command, "chaos") != 0 && strcmp(command, "sim") != 0)
        return argc;
    if (!first && (argc != 3 || strcmp(argv[2], "help") != 0))
        return argc;
    argv[1] = argv[first ? 2 : 1];
    argv[2] = option;
    argv[3 < argc ? 3 : argc] = NULL;
    return 3;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct option_words words;
    tell_begin();
#ifdef TIDEMARK_PLANTED /* sim has the option itself */
    if (argc > 1 && strcmp(argv[1], "sim") != 0 && !plant_take(&argc, argv)) {
        fputs("tidemark: --plant: there is no such bug\n", stderr);
        return EXIT_USAGE;
    }
#endif
    argc = take_help(argc, argv);
    if (argc > 1 && strcmp(argv[1], "chaos") == 0) /* it has words and options of its own */
        return chaos_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "sim") == 0)
        return simulate_command(argc - 1, argv + 1);
    option_parse(&tidemark, argc, argv, &arguments, &words);
    const char *command = words.count == 0 ? "" : words.at[0];
    if (strcmp(command, "version") == 0) {
        printf(arguments.json ? "{\"version\": \"%s\"}\n" : "tidemark %s\n", TIDEMARK_VERSION);
        return EXIT_DONE;
    }
    if (strcmp(command, "help") == 0 || *command == 0) {
        bool asked = *command != 0;
        option_help(&tidemark, asked ? stdout : stderr);
        return asked ? EXIT_DONE : EXIT_USAGE;
    }
    if (strcmp(command, "up") == 0)
        return run_up(&arguments, &words);
    const struct command_options asked = {arguments.control, arguments.json, arguments.discard};
    return command_run(&asked, words.at, words.count);
}
