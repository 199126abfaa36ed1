/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of a scenario file: its type, bounds, default and meaning. */

#include "chaos/scenario/fields.h"

#include <signal.h>

#include "conflict/base/check.h"

#define MINUTE_NS (60 * INT64_C(1000000000))
#define MS_NS INT64_C(1000000)

const struct choice scenario_distributions[] = {{"uniform", SCENARIO_UNIFORM},
                                                {"normal", SCENARIO_NORMAL},
                                                {"pareto", SCENARIO_PARETO},
                                                {"paretonormal", SCENARIO_PARETO_NORMAL},
                                                {NULL, 0}};
const struct choice scenario_directions[] = {
    {"one", SCENARIO_ONE_WAY}, {"both", SCENARIO_BOTH_WAYS}, {NULL, 0}};
const struct choice scenario_shapes[] = {{"one", SCENARIO_ONE},
                                         {"halves", SCENARIO_HALVES},
                                         {"majorities-ring", SCENARIO_MAJORITIES_RING},
                                         {"bridge", SCENARIO_BRIDGE},
                                         {"primaries", SCENARIO_PRIMARIES},
                                         {"asymmetric", SCENARIO_ASYMMETRIC},
                                         {"swizzle", SCENARIO_SWIZZLE},
                                         {NULL, 0}};
const struct choice scenario_hows[] = {{"cut", SCENARIO_CUT},
                                       {"blackhole", SCENARIO_BLACKHOLE},
                                       {"refuse", SCENARIO_REFUSE},
                                       {"reset", SCENARIO_RESET},
                                       {NULL, 0}};
const struct choice scenario_files[] = {{"any", SCENARIO_FILES_ANY},
                                        {"log", SCENARIO_FILES_LOG},
                                        {"tables", SCENARIO_FILES_TABLES},
                                        {"manifest", SCENARIO_FILES_MANIFEST},
                                        {NULL, 0}};
const struct choice scenario_calls[] = {{"any", SCENARIO_CALLS_ANY},
                                        {"read", SCENARIO_CALLS_READ},
                                        {"write", SCENARIO_CALLS_WRITE},
                                        {"sync", SCENARIO_CALLS_SYNC},
                                        {NULL, 0}};
const struct choice scenario_signals[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM}, {"ABRT", SIGABRT},
                                          {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"SEGV", SIGSEGV},
                                          {NULL, 0}};
const struct choice scenario_modes[] = {{"eventual", SCENARIO_EVENTUAL},
                                        {"strong", SCENARIO_STRONG},
                                        {"MREC", SCENARIO_EVENTUAL},
                                        {"MRSC", SCENARIO_STRONG},
                                        {NULL, 0}};
static const struct choice durabilities[] = {
    {"fsync", SCENARIO_FSYNC}, {"os", SCENARIO_OS}, {NULL, 0}};
static const struct choice clocks[] = {
    {"hybrid", SCENARIO_HYBRID}, {"wall", SCENARIO_WALL}, {NULL, 0}};
static const struct choice workloads[] = {
#define WORKLOAD(enumerator, name, ...) {name, SCENARIO_##enumerator},
    SCENARIO_WORKLOAD_MAP(WORKLOAD)
#undef WORKLOAD
        {NULL, 0}};
static const struct choice key_choices[] = {
    {"uniform", SCENARIO_KEYS_UNIFORM}, {"zipfian", SCENARIO_KEYS_ZIPFIAN}, {NULL, 0}};

/* ---- Cluster ---- */

#define OF(type, member) .offset = offsetof(struct type, member)

static const struct field cluster_fields[] = {
    {.key = "mode",
     .type = FIELD_CHOICE,
     OF(scenario_cluster, mode),
     .choices = scenario_modes,
     .standard = "eventual",
     .help = "Replication: eventual (MREC) or strong (MRSC)"},
    {.key = "regions",
     .type = FIELD_CUSTOM,
     .read = scenario_read_regions,
     .schema = scenario_schema_regions,
     .help = "AWS Regions of the cluster, at most 8"},
    {.key = "witness",
     .type = FIELD_CUSTOM,
     .read = scenario_read_witness,
     .help = "The Region that holds no data, of a strong cluster; listed under regions or not"},
    {.key = "durability",
     .type = FIELD_CHOICE,
     OF(scenario_cluster, durability),
     .choices = durabilities,
     .standard = "fsync",
     .help = "fsync survives power loss, os the death of the process"},
    {.key = "clock",
     .type = FIELD_CHOICE,
     OF(scenario_cluster, clock),
     .choices = clocks,
     .standard = "hybrid",
     .help = "hybrid is never behind what it has seen; wall shows skew"},
    {.key = "links",
     .type = FIELD_CUSTOM,
     .read = scenario_read_links,
     .schema = scenario_schema_links,
     .help = "Delays between Regions: `default`, `a<->b` for both ways, `a->b` for one"},
};
const struct shape scenario_shape_cluster = {cluster_fields, array_len(cluster_fields)};

static const struct field link_fields[] = {
    [LINK_RTT] = {.key = "rtt",
                  .type = FIELD_TIME,
                  OF(link_values, rtt_ns),
                  .max = MINUTE_NS,
                  .help = "There and back; half of it each way"},
    [LINK_DELAY] = {.key = "delay",
                    .type = FIELD_TIME,
                    OF(link_values, link.delay_ns),
                    .max = MINUTE_NS,
                    .help = "One way, instead of rtt"},
    [LINK_JITTER] = {.key = "jitter",
                     .type = FIELD_TIME,
                     OF(link_values, link.jitter_ns),
                     .max = MINUTE_NS,
                     .help = "How far each delay may be off"},
    [LINK_BANDWIDTH] = {.key = "bandwidth",
                        .type = FIELD_BANDWIDTH,
                        OF(link_values, link.rate_bytes),
                        .min = 1,
                        .help = "Without it, there is no bound"},
    [LINK_DISTRIBUTION] = {.key = "distribution",
                           .type = FIELD_CHOICE,
                           OF(link_values, link.distribution),
                           .choices = scenario_distributions,
                           .help = "How jitter is spread"},
};
const struct shape scenario_shape_link = {link_fields, array_len(link_fields)};

/* ---- Workload ---- */

static const struct field mix_fields[] = {
    {.key = "write",
     .type = FIELD_SHARE,
     OF(scenario_mix, write),
     .standard = "0",
     .help = "Writes"},
    {.key = "read_strong",
     .type = FIELD_SHARE,
     OF(scenario_mix, read_strong),
     .standard = "0",
     .help = "Reads that ask for consistency"},
    {.key = "read_eventual",
     .type = FIELD_SHARE,
     OF(scenario_mix, read_eventual),
     .standard = "0",
     .help = "Reads that do not"},
    {.key = "delete",
     .type = FIELD_SHARE,
     OF(scenario_mix, erase),
     .standard = "0",
     .help = "Deletes (swap-register, lww-conflict)"},
    {.key = "scan",
     .type = FIELD_SHARE,
     OF(scenario_mix, scan),
     .standard = "0",
     .help = "Reads of a whole set (set)"},
};
static const struct shape shape_mix = {mix_fields, array_len(mix_fields)};

/* In the order of enum workload_key. */
static const struct field workload_fields[] = {
    [WORKLOAD_KIND] = {.key = "kind",
                       .type = FIELD_CHOICE,
                       OF(scenario_workload, kind),
                       .choices = workloads,
                       .help = "What clients do, and so what can be checked"},
    [WORKLOAD_KEYS] = {.key = "keys",
                       .type = FIELD_WHOLE,
                       OF(scenario_workload, keys),
                       .min = 1,
                       .max = 1000000,
                       .standard = "64",
                       .help = "How many items"},
    [WORKLOAD_KEY_CHOICE] = {.key = "key_choice",
                             .type = FIELD_CHOICE,
                             OF(scenario_workload, keys_chosen),
                             .choices = key_choices,
                             .help = "zipfian: few items get most operations"},
    [WORKLOAD_RATE] = {.key = "rate",
                       .type = FIELD_FREQUENCY,
                       OF(scenario_workload, rate),
                       .min = 1,
                       .max = 1000000,
                       .help = "Operations of all clients together"},
    [WORKLOAD_OPEN_LOOP] = {.key = "open_loop",
                            .type = FIELD_BOOL,
                            OF(scenario_workload, open_loop),
                            .standard = "false",
                            .help = "Keep to the rate when answers are late, too"},
    [WORKLOAD_CLIENTS] = {.key = "clients_per_region",
                          .type = FIELD_WHOLE,
                          OF(scenario_workload, clients_per_region),
                          .min = 1,
                          .max = 256,
                          .standard = "4",
                          .help = "Each sends one operation at a time"},
    [WORKLOAD_MIX] = {.key = "mix",
                      .type = FIELD_MAP,
                      OF(scenario_workload, mix),
                      .shape = &shape_mix,
                      .help = "Shares of the operations; together 1"},
    [WORKLOAD_TIMEOUT] = {.key = "timeout",
                          .type = FIELD_TIME,
                          OF(scenario_workload, timeout_ns),
                          .min = 10 * MS_NS,
                          .max = MINUTE_NS,
                          .standard = "2s",
                          .help = "After it, the outcome of an operation is unknown"},
    [WORKLOAD_ITEM_SIZE] = {.key = "item_size",
                            .type = FIELD_BYTES,
                            OF(scenario_workload, item_bytes),
                            .min = 16,
                            .max = 400 * 1024,
                            .standard = "100",
                            .help = "Of what is written, about"},
    [WORKLOAD_WRITERS] = {.key = "writers",
                          .type = FIELD_REGIONS,
                          OF(scenario_workload, writers),
                          .help = "Regions whose clients write; all, if none is named"},
    [WORKLOAD_EXEC] = {.key = "exec",
                       .type = FIELD_CUSTOM,
                       .read = scenario_read_exec,
                       .schema = scenario_schema_exec,
                       .help = "A program of your own as the load: a shell command or a list"},
};
const struct shape scenario_shape_workload = {workload_fields, array_len(workload_fields)};

/* ---- Phases ---- */

static const struct field until_fields[] = {
    {.key = "converged",
     .type = FIELD_BOOL,
     OF(scenario_until, converged),
     .standard = "false",
     .help = "All Regions hold the same and have nothing left to send"},
    {.key = "caught_up",
     .type = FIELD_BOOL,
     OF(scenario_until, caught_up),
     .standard = "false",
     .help = "Every member serves and has applied all (strong mode)"},
    {.key = "leaders",
     .type = FIELD_BOOL,
     OF(scenario_until, leaders),
     .standard = "false",
     .help = "Every group has a serving leader (strong mode)"},
    {.key = "timeout",
     .type = FIELD_TIME,
     OF(scenario_until, timeout_ns),
     .min = 100 * MS_NS,
     .max = SCENARIO_HOUR_NS,
     .standard = "60s",
     .help = "The run fails when it takes longer"},
};
const struct shape scenario_shape_until = {until_fields, array_len(until_fields)};

static const struct field random_fields[] = {
    {.key = "count",
     .type = FIELD_WHOLE,
     OF(scenario_random, count),
     .min = 1,
     .max = 256,
     .required = true,
     .help = "How many faults are drawn"},
    {.key = "hold_min",
     .type = FIELD_TIME,
     OF(scenario_random, hold_min_ns),
     .min = 10 * MS_NS,
     .max = SCENARIO_HOUR_NS,
     .standard = "500ms",
     .help = "A fault holds at least so long"},
    {.key = "hold_max",
     .type = FIELD_TIME,
     OF(scenario_random, hold_max_ns),
     .min = 10 * MS_NS,
     .max = SCENARIO_HOUR_NS,
     .standard = "2s",
     .help = "And at most so long"},
    {.key = "at_once",
     .type = FIELD_WHOLE,
     OF(scenario_random, at_once),
     .min = 1,
     .max = 16,
     .standard = "1",
     .help = "How many may hold at one time"},
    {.key = "swarm",
     .type = FIELD_BOOL,
     OF(scenario_random, swarm),
     .standard = "false",
     .help = "Each seed also draws which of the verbs it uses"},
    {.key = "weights",
     .type = FIELD_CUSTOM,
     .read = scenario_read_weights,
     .schema = scenario_schema_weights,
     .required = true,
     .help = "Verbs to draw from, and how often each"},
};
const struct shape scenario_shape_random = {random_fields, array_len(random_fields)};

/* In the order of enum phase_key. */
static const struct field phase_fields[] = {
    [PHASE_NAME] = {.key = "name",
                    .type = FIELD_TEXT,
                    OF(scenario_phase, name),
                    .min = 1,
                    .max = 64,
                    .help = "For the report"},
    [PHASE_FOR] = {.key = "for",
                   .type = FIELD_TIME,
                   OF(scenario_phase, for_ns),
                   .min = 1,
                   .max = 24 * SCENARIO_HOUR_NS,
                   .help = "How long it lasts; with until, at least"},
    [PHASE_UNTIL] = {.key = "until",
                     .type = FIELD_CUSTOM,
                     .shape = &scenario_shape_until,
                     .read = scenario_read_until,
                     .help = "What must hold for it to end"},
    [PHASE_DO] = {.key = "do",
                  .type = FIELD_CUSTOM,
                  .read = scenario_read_heal,
                  .help = "heal-all, at its beginning"},
    [PHASE_IDLE] = {.key = "idle",
                    .type = FIELD_BOOL,
                    OF(scenario_phase, idle),
                    .standard = "false",
                    .help = "No load in this phase"},
    [PHASE_WRITERS] = {.key = "writers",
                       .type = FIELD_REGIONS,
                       OF(scenario_phase, writers),
                       .help = "Regions whose clients write; as the workload says, if not given"},
    [PHASE_FAULTS] = {.key = "faults",
                      .type = FIELD_CUSTOM,
                      .read = scenario_read_faults,
                      .schema = scenario_schema_faults,
                      .help = "What goes wrong, and when"},
    [PHASE_RANDOM] = {.key = "random",
                      .type = FIELD_MAP,
                      OF(scenario_phase, random),
                      .shape = &scenario_shape_random,
                      .help = "Faults drawn from the scenario's seed"},
};
const struct shape scenario_shape_phase = {phase_fields, array_len(phase_fields)};

/* Before a fault's parameters, those of every fault. In the order of enum fault_key. */
static const struct field fault_fields[] = {
    [FAULT_AT] = {.key = "at",
                  .type = FIELD_TIME,
                  OF(scenario_fault, at_ns),
                  .max = 24 * SCENARIO_HOUR_NS,
                  .standard = "0",
                  .help = "When it begins, from the beginning of its phase"},
    [FAULT_FOR] = {.key = "for",
                   .type = FIELD_TIME,
                   OF(scenario_fault, for_ns),
                   .min = 1,
                   .max = 24 * SCENARIO_HOUR_NS,
                   .help = "How long it holds; else until undone"},
    [FAULT_ID] = {.key = "id",
                  .type = FIELD_TEXT,
                  OF(scenario_fault, id),
                  .min = 1,
                  .max = 64,
                  .help = "A name of its own, for the report and for undo"},
    [FAULT_DO] = {.key = "do", .type = FIELD_CUSTOM, .required = true, .help = "The verb"},
};
const struct shape scenario_shape_fault = {fault_fields, array_len(fault_fields)};

static const struct field param_fields[] = {
#define PARAM(enumerator, text, kind, member, low, high, names, def, about)                        \
    [PARAM_##enumerator] = {.key = text,                                                           \
                            .type = FIELD_##kind,                                                  \
                            OF(scenario_fault, member),                                            \
                            .min = low,                                                            \
                            .max = high,                                                           \
                            .choices = names,                                                      \
                            .standard = def,                                                       \
                            .help = about},
    SCENARIO_PARAM_MAP(PARAM)
#undef PARAM
};
const struct shape scenario_shape_params = {param_fields, array_len(param_fields)};

/* ---- The whole ---- */

static const struct field budget_fields[] = {
    {.key = "checker_seconds",
     .type = FIELD_WHOLE,
     OF(scenario_budgets, checker_seconds),
     .min = 1,
     .max = 86400,
     .standard = "120",
     .help = "Beyond it, a checker's verdict is unknown"},
    {.key = "checker_memory",
     .type = FIELD_BYTES,
     OF(scenario_budgets, checker_bytes),
     .min = 1 << 20,
     .standard = "1GiB",
     .help = "The same for its memory"},
    {.key = "wall",
     .type = FIELD_TIME,
     OF(scenario_budgets, wall_ns),
     .min = 1000 * MS_NS,
     .max = 24 * SCENARIO_HOUR_NS,
     .standard = "10m",
     .help = "Of the whole run"},
    {.key = "operations",
     .type = FIELD_WHOLE,
     OF(scenario_budgets, operations),
     .min = 1,
     .max = 100000000,
     .standard = "2000000",
     .help = "The load stops after so many"},
    {.key = "report_size",
     .type = FIELD_BYTES,
     OF(scenario_budgets, report_bytes),
     .min = 64 * 1024,
     .standard = "5MB",
     .help = "The page leaves out points to keep to it"},
};
static const struct shape shape_budgets = {budget_fields, array_len(budget_fields)};

/* What a field needs of another comes before it: Regions are known before anything names one. */
static const struct field top_fields[] = {
    {.key = "name",
     .type = FIELD_TEXT,
     OF(scenario, name),
     .min = 1,
     .max = 64,
     .required = true,
     .help = "Letters, digits, - and _"},
    {.key = "about",
     .type = FIELD_TEXT,
     OF(scenario, about),
     .min = 1,
     .max = 400,
     .help = "One line for lists and reports"},
    {.key = "seed",
     .type = FIELD_WHOLE,
     OF(scenario, seed),
     .standard = "1",
     .help = "Of everything that is drawn"},
    {.key = "cluster",
     .type = FIELD_CUSTOM,
     .shape = &scenario_shape_cluster,
     .read = scenario_read_cluster,
     .help = "What is started"},
    {.key = "workload",
     .type = FIELD_CUSTOM,
     .shape = &scenario_shape_workload,
     .read = scenario_read_workload,
     .help = "What clients do"},
    {.key = "phases",
     .type = FIELD_CUSTOM,
     .read = scenario_read_phases,
     .schema = scenario_schema_phases,
     .required = true,
     .help = "What happens, in order"},
    {.key = "expect",
     .type = FIELD_CUSTOM,
     .read = scenario_read_expect,
     .schema = scenario_schema_expect,
     .help = "What must hold afterwards"},
    {.key = "stop_if",
     .type = FIELD_CUSTOM,
     .read = scenario_read_stop_if,
     .schema = scenario_schema_stop_if,
     .help = "What ends the run at once"},
    {.key = "budgets",
     .type = FIELD_MAP,
     OF(scenario, budgets),
     .shape = &shape_budgets,
     .help = "Bounds of the run and its checkers"},
};
const struct shape scenario_shape_top = {top_fields, array_len(top_fields)};
