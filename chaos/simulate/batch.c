/* SPDX-License-Identifier: Apache-2.0 */
/* See batch.h. */

#include "chaos/simulate/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "chaos/live/command.h"
#include "chaos/run/outcome.h"
#include "chaos/sim/diagram.h"
#include "chaos/simulate/minimise.h"
#include "conflict/base/check.h"

enum {
    FAILURES_MAX = 3,    /* then the rest is not run */
    COVERAGE_SEEDS = 500 /* so many should have come by everything */
};

struct batch {
    const struct subject *subject;
    const struct batch_options *options;
    struct trial *trial;
    uint64_t ran, failed, events, virtual_ns;
    uint64_t figures[SIM_FIGURES_MAX];
    uint64_t sometimes[SOMETIMES_COUNT];
    double seconds;
    int exit_code;
    json_t *failures;
};

/* Of the processor, so that the figure means the same on a busy machine. */
static double children_seconds(void)
{
    struct rusage usage;
    check(getrusage(RUSAGE_CHILDREN, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* ---- A failure ---- */

static void write_replay(const struct batch *batch, const struct sim_replay *replay, struct buf *to)
{
    const struct sim_told *told = &batch->trial->told;
    if (batch->subject->world)
        buf_printf(to, "tidemark sim --mode %s", batch->subject->world->name);
    else
        buf_printf(to, "tidemark sim --scenario %s", batch->subject->scenario_file);
    buf_printf(to, " --first %" PRIu64 " --seeds 1", replay->seed);
    if (replay->faults != UINT64_MAX) {
        buf_append_text(to, " --faults ");
        for (uint32_t i = 0; i < told->fault_count; i++)
            buf_printf(to, "%s%u", i ? "," : "", told->faults[i].number);
        if (told->fault_count == 0)
            buf_append_text(to, "none");
    }
    if (replay->luck)
        buf_printf(to, " --luck %" PRIu64, replay->luck);
    if (replay->operations_max != UINT64_MAX)
        buf_printf(to, " --operations %" PRIu64, replay->operations_max);
    buf_append_u8(to, 0);
    to->len--;
}

static void draw(struct batch *batch, uint64_t seed, const char *violation)
{
    const char *path = batch->options->diagram;
    struct buf svg = {0};
    char title[128];
    snprintf(title, sizeof(title), "%s, seed %" PRIu64, subject_name(batch->subject), seed);
    const struct sim_diagram diagram = {.title = title,
                                        .violation = violation,
                                        .lanes = batch->subject->lanes,
                                        .lane_count = (uint32_t)batch->trial->told.nodes,
                                        .log = &batch->trial->log,
                                        .told = &batch->trial->told};
    if (diagram.lane_count == 0) /* it ended before it told */
        return;
    sim_diagram_write(&diagram, &svg);
    FILE *file = fopen(path, "we");
    bool good = file && fwrite(svg.at, 1, svg.len, file) == svg.len;
    if (!file || fclose(file) != 0 || !good) {
        fprintf(stderr, "tidemark: %s can't be written: %s\n", path, strerror(errno));
        batch->exit_code = EXIT_USAGE;
    } else if (!batch->options->quiet) {
        printf("diagram: %s\n", path);
    }
    buf_deinit(&svg);
}

/* Of a scenario. The run is the one that the command repeats, to the last event. */
static void write_page(struct batch *batch, const struct sim_replay *replay, const char *command)
{
    struct subject subject = *batch->subject;
    subject.report = batch->options->report;
    subject.again = command;
    trial_run(&subject, replay, false, 0, batch->trial);
    if (batch->trial->unwritten || batch->trial->aborted) /* which tells nothing, and has no page */
        batch->exit_code = batch->trial->unwritten ? EXIT_USAGE : batch->exit_code;
    else if (!batch->options->quiet)
        printf("report: %s\n", subject.report);
}

static void print_failure(const struct batch *batch, const struct sim_replay *replay,
                          const char *command, bool smaller)
{
    const struct trial *trial = batch->trial;
    printf("%s, seed %" PRIu64 ": %s\n%s", subject_name(batch->subject), replay->seed,
           trial->violation, trial->detail);
    printf("%u fault%s%s, %" PRIu64 " operation%s:\n", trial->told.fault_count,
           trial->told.fault_count == 1 ? "" : "s", smaller ? " needed" : "",
           trial->told.operations, plural(trial->told.operations));
    for (uint32_t i = 0; i < trial->told.fault_count; i++) {
        const struct sim_told_fault *fault = &trial->told.faults[i];
        printf("  %2u  %8.3f s to %8.3f s  %s\n", fault->number, (double)fault->from_ns / 1e9,
               (double)fault->to_ns / 1e9, fault->text);
    }
    printf("run it again: %s --trace\n", command);
}

static json_t *failure_json(const struct batch *batch, const struct sim_replay *replay,
                            const char *command)
{
    const struct trial *trial = batch->trial;
    json_t *faults = json_array();
    for (uint32_t i = 0; i < trial->told.fault_count; i++) {
        const struct sim_told_fault *fault = &trial->told.faults[i];
        json_array_append_new(faults,
                              json_pack("{s:i, s:f, s:f, s:s}", "number", (int)fault->number,
                                        "from", (double)fault->from_ns / 1e9, "to",
                                        (double)fault->to_ns / 1e9, "fault", fault->text));
    }
    json_t *root =
        json_pack("{s:I, s:s%, s:s, s:o, s:I, s:I, s:s}", "seed", (json_int_t)replay->seed,
                  "violation", trial->violation, strlen(trial->violation), "detail", trial->detail,
                  "faults", faults, "luck", (json_int_t)replay->luck, "operations",
                  (json_int_t)trial->told.operations, "again", command);
    check(root != NULL);
    return root;
}

static void fail(struct batch *batch, struct sim_replay *replay)
{
    const struct batch_options *options = batch->options;
    struct buf command = {0};
    bool smaller =
        options->whole && (batch->subject->world || batch->trial->exit_code == OUTCOME_WRONG ||
                           batch->trial->exit_code == OUTCOME_SLOW);
    batch->failed++;
    if (batch->exit_code == EXIT_DONE)
        batch->exit_code = batch->subject->world ? EXIT_FAILED : batch->trial->exit_code;
    if (smaller)
        minimise(batch->subject, replay, batch->trial);
    write_replay(batch, replay, &command);
    if (!options->quiet)
        print_failure(batch, replay, (const char *)command.at, smaller);
    json_array_append_new(batch->failures, failure_json(batch, replay, (const char *)command.at));
    if (options->report && batch->failed == 1)
        write_page(batch, replay, (const char *)command.at);
    if (options->diagram && batch->failed == 1) {
        minimise_log(batch->subject, replay, batch->trial);
        draw(batch, replay->seed, batch->trial->violation);
    }
    buf_deinit(&command);
}

/* ---- A seed ---- */

static void tally(struct batch *batch)
{
    const struct trial *trial = batch->trial;
    batch->events += trial->events;
    batch->virtual_ns += trial->virtual_ns;
    for (uint32_t i = 0; i < SIM_FIGURES_MAX; i++)
        batch->figures[i] += trial->figures[i];
    for (uint32_t i = 0; i < SOMETIMES_COUNT; i++)
        batch->sometimes[i] += trial->told.sometimes >> i & 1;
}

static bool is_same_again(struct batch *batch, const struct sim_replay *replay)
{
    uint64_t hash = batch->trial->hash, events = batch->trial->events;
    trial_run(batch->subject, replay, false, 0, batch->trial);
    if (batch->trial->hash == hash && batch->trial->events == events)
        return true;
    snprintf(batch->trial->violation, sizeof(batch->trial->violation),
             "two runs of one seed differ");
    if (!batch->options->quiet)
        printf("%s, seed %" PRIu64 ": %s\n", subject_name(batch->subject), replay->seed,
               batch->trial->violation);
    batch->failed++;
    batch->exit_code = EXIT_FAILED;
    return false;
}

static void run_seed(struct batch *batch, uint64_t seed)
{
    const struct batch_options *options = batch->options;
    struct sim_replay replay = {.seed = seed,
                                .faults = options->faults,
                                .luck = options->luck,
                                .operations_max = options->operations_max,
                                .trace = options->trace};
    double begin = children_seconds();
    trial_run(batch->subject, &replay, false, 0, batch->trial);
    batch->seconds += children_seconds() - begin;
    batch->ran++;
    tally(batch);
    replay.trace = false;
    if (!batch->trial->violated) {
        bool good = !options->twice || is_same_again(batch, &replay);
        if (!batch->subject->world && good && !options->quiet)
            printf("%s, seed %" PRIu64 ": %s\n%s", subject_name(batch->subject), seed,
                   batch->trial->violation, batch->trial->detail);
        if (options->report && options->seeds == 1) {
            struct buf command = {0};
            write_replay(batch, &replay, &command);
            write_page(batch, &replay, (const char *)command.at);
            buf_deinit(&command);
        }
        if (options->diagram && options->seeds == 1) {
            minimise_log(batch->subject, &replay, batch->trial);
            draw(batch, seed, NULL);
        }
        return;
    }
    fail(batch, &replay);
}

/* ---- The whole ---- */

static bool is_missed(const struct batch *batch, enum sometimes point)
{
    return batch->subject->world && batch->ran >= COVERAGE_SEEDS && batch->sometimes[point] == 0 &&
           sometimes_is_of(point, batch->subject->world->bit);
}

static double rate(const struct batch *batch, uint64_t count)
{
    return batch->seconds > 0 ? (double)count / batch->seconds : 0;
}

static void print_coverage(const struct batch *batch)
{
    printf("  came by, in so many seeds:\n");
    for (enum sometimes point = 0; point < SOMETIMES_COUNT; point++)
        if (sometimes_is_of(point, batch->subject->world->bit))
            printf("  %8" PRIu64 "  %-22s %s\n", batch->sometimes[point], sometimes_name(point),
                   sometimes_text(point));
    for (enum sometimes point = 0; point < SOMETIMES_COUNT; point++)
        if (is_missed(batch, point))
            printf("  MISSED: %" PRIu64 " seed%s never came by %s\n", batch->ran,
                   plural(batch->ran), sometimes_name(point));
}

static void print_totals(const struct batch *batch)
{
    const struct sim_world *world = batch->subject->world;
    printf("%s: %" PRIu64 " seed%s, %" PRIu64 " failed; %" PRIu64
           " events in %.2f s of processor time: %.*f seeds/s, %.0f events/s; %.0f s of virtual "
           "time\n",
           subject_name(batch->subject), batch->ran, batch->ran == 1 ? "" : "s", batch->failed,
           batch->events, batch->seconds, rate(batch, batch->ran) < 10 ? 2 : 0,
           rate(batch, batch->ran), rate(batch, batch->events), (double)batch->virtual_ns / 1e9);
    if (!world)
        return;
    for (uint32_t i = 0; i < world->figure_count; i++)
        printf("%s%" PRIu64 " %s", i ? ", " : "  ", batch->figures[i], world->figure_names[i]);
    printf("\n");
    print_coverage(batch);
}

static json_t *totals_json(const struct batch *batch)
{
    const struct sim_world *world = batch->subject->world;
    json_t *figures = json_object(), *came_by = json_object(), *missed = json_array();
    for (uint32_t i = 0; world && i < world->figure_count; i++)
        json_object_set_new(figures, world->figure_names[i],
                            json_integer((json_int_t)batch->figures[i]));
    for (enum sometimes point = 0; world && point < SOMETIMES_COUNT; point++) {
        if (sometimes_is_of(point, world->bit))
            json_object_set_new(came_by, sometimes_name(point),
                                json_integer((json_int_t)batch->sometimes[point]));
        if (is_missed(batch, point))
            json_array_append_new(missed, json_string(sometimes_name(point)));
    }
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:O}", "name",
                  subject_name(batch->subject), "first", (json_int_t)batch->options->first, "seeds",
                  (json_int_t)batch->ran, "failed", (json_int_t)batch->failed, "events",
                  (json_int_t)batch->events, "cpu_seconds", batch->seconds, "virtual_seconds",
                  (double)batch->virtual_ns / 1e9, "seeds_per_second", rate(batch, batch->ran),
                  "events_per_second", rate(batch, batch->events), "figures", figures, "came_by",
                  came_by, "missed", missed, "failures", batch->failures);
    check(root != NULL);
    return root;
}

int batch_run(const struct subject *subject, const struct batch_options *options, json_t *to)
{
    struct batch batch = {
        .subject = subject, .options = options, .trial = trial_new(), .failures = json_array()};
    while (batch.ran < options->seeds && batch.failed < FAILURES_MAX)
        run_seed(&batch, options->first + batch.ran);
    if (!options->quiet)
        print_totals(&batch);
    json_array_append_new(to, totals_json(&batch));
    json_decref(batch.failures);
    trial_free(batch.trial);
    return batch.exit_code;
}
