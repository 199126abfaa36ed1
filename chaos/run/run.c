/* SPDX-License-Identifier: Apache-2.0 */
/* A run's beginning and end. The cluster is one like that of `tidemark up`, on ports that were
 * free, with its front door and control API open, so that whoever watches can look into it with the
 * usual commands meanwhile. */

#include "chaos/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "chaos/live/paths.h"
#include "chaos/live/tell.h"
#include "chaos/live/text.h"
#include "chaos/report/report.h"
#include "chaos/run/claim.h"
#include "chaos/run/run_internal.h"
#include "chaos/scenario/random.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { SPACE_TICKS = 10 };

/* ---- Going wrong ---- */

void run_fail(struct run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = text_new_list(format, arguments);
    va_end(arguments);
    if (run->outcome.harness == NULL) {
        run->outcome.harness = outcome_text(&run->outcome, "%s", text);
        outcome_event(&run->outcome, run->loop.mono_ns, SCENARIO_REGION_NONE, "stop", "%s", text);
    }
    free(text);
    run->cut_short = true;
    if (run->stage == STAGE_PHASES)
        stage_drain(run);
    else if (run->stage != STAGE_DRAIN && run->stage != STAGE_END)
        stage_enter(run, STAGE_END);
}

void run_end_loop(struct run *run)
{
    if (run->cluster.stopping && cluster_stopped(&run->cluster) && recount_is_over(run->recount))
        loop_stop(&run->loop);
}

static void on_signal(void *context, int number)
{
    struct run *run = context;
    if (run->cut_short && run->outcome.harness != NULL) { /* the second: at once */
        if (run->stage != STAGE_END)
            stage_enter(run, STAGE_END);
        recount_stop(run->recount);
        cluster_stop(&run->cluster);
        return;
    }
    progress_stage(run, "stopping: everything is healed first; again to stop at once");
    run_fail(run, "interrupted by %s", signals_name(number));
}

/* A Region may end by itself only when its disk was tampered with. */
static bool may_end(const struct run *run, uint32_t index)
{
    for (uint32_t i = 0; i < run->outcome.fault_count; i++) {
        const struct outcome_fault *fault = &run->outcome.faults[i];
        bool disk = fault->verb >= VERB_DISK_FULL && fault->verb <= VERB_DISK_WIPE;
        if (disk && fault->regions >> index & 1)
            return true;
    }
    return false;
}

static void on_changed(void *context, struct site *site, const char *line)
{
    struct run *run = context;
    uint8_t place = (uint8_t)site->index;
    uint64_t now_ns = run->loop.mono_ns;
    if (run->cluster.stopping) {
        run_end_loop(run);
        return;
    }
    if (run->stage == STAGE_START) {
        bool all = true;
        for (uint32_t i = 0; i < run->cluster.site_count; i++)
            all = all && run->cluster.sites[i].state == SITE_RUNNING;
        if (site->state == SITE_DEAD)
            run_fail(run, "%s could not be started; its log says why: %s/log", site->name,
                     run->output.directory);
        else if (all)
            stage_enter(run, STAGE_PREPARE);
        return;
    }
    if (site->state == SITE_DEAD) {
        outcome_event(&run->outcome, now_ns, place, "down", "%s",
                      line == NULL ? "its process has ended" : "its process ended by itself");
        if (line != NULL && !may_end(run, site->index))
            run_fail(run, "%s ended by itself, which no fault explains; its log is %s/log",
                     site->name, run->output.directory);
    } else if (site->state == SITE_RUNNING) {
        if (run->inject != NULL)
            inject_serves(run->inject, place);
        outcome_event(&run->outcome, now_ns, place, "up", "it serves");
    } else if (site->state == SITE_PAUSED) {
        outcome_event(&run->outcome, now_ns, place, "paused", "its process is stopped");
    }
}

/* ---- Beginning ---- */

/* The links are given their shapes by inject. */
static bool configure(struct run *run, struct buf *error)
{
    const struct scenario_cluster *from = &run->scenario->cluster;
    struct config *to = &run->config;
    config_init(to);
    to->region_count = to->witness_count = 0;
    for (uint8_t i = 0; i < from->region_count; i++) {
        if (i < from->data_count)
            to->regions[to->region_count++] = from->region[i].id;
        else
            to->witnesses[to->witness_count++] = from->region[i].id;
    }
    to->seed = run->options->seed;
    to->durability = from->durability == SCENARIO_FSYNC ? DURABILITY_FSYNC : DURABILITY_OS;
    to->clock = from->clock == SCENARIO_HYBRID ? CLOCK_HYBRID : CLOCK_WALL;
    return config_set_port(to, "0", error) && config_set_control(to, "127.0.0.1:0", error) &&
           config_check(to, error);
}

static bool open_cluster(struct run *run, struct buf *error)
{
    char *programs = paths_programs();
    bool good = cluster_init(&run->cluster, &run->loop, &run->config, programs, run->output.data,
                             on_changed, run, error);
    free(programs);
    if (!good)
        return false;
    char *path = text_new("%s/log", run->output.directory);
    run->cluster.log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (run->cluster.log_fd < 0)
        buf_printf(error, "%s can't be written: %s", path, strerror(errno));
    free(path);
    if (run->cluster.log_fd < 0)
        return false;
    for (uint32_t i = 0; i < run->cluster.site_count; i++)
        if (!output_make_data(&run->output, run->cluster.sites[i].name, error))
            return false;
    struct address address = run->cluster.sites[0].address;
    address.port = 0;
    address_print(&address, run->door_address);
    run->door = door_open(&run->cluster, run->door_address, error);
    if (run->door == NULL)
        return false;
    address.port = door_port(run->door);
    address_print(&address, run->door_address);
    run->control = control_open(&run->cluster, run->config.control, error);
    if (run->control == NULL)
        return false;
    told_init(run);
    address_print(&run->control->address, run->control_address);
    return true;
}

static uint64_t leaders(void *context)
{
    return watch_leaders(((struct run *)context)->watch);
}

static uint8_t leader_of(void *context, const char *table)
{
    return watch_leader_of(((struct run *)context)->watch, table);
}

static void open_parts(struct run *run)
{
    for (uint32_t i = 0; i < run->cluster.site_count; i++)
        run->addresses[i] = run->cluster.sites[i].dial;
    run->program_log = program_log(run);
    const struct drive_config drive = {.loop = &run->loop,
                                       .scenario = run->scenario,
                                       .addresses = run->addresses,
                                       .door = run->door_address,
                                       .control = run->control_address,
                                       .output = run->program_log,
                                       .history = &run->outcome.history,
                                       .seed = run->options->seed};
    const struct inject_config inject = {.loop = &run->loop,
                                         .cluster = &run->cluster,
                                         .scenario = run->scenario,
                                         .outcome = &run->outcome,
                                         .journal = run->output.journal,
                                         .seed = run->options->seed,
                                         .leaders = leaders,
                                         .leader_of = leader_of,
                                         .context = run};
    run->watch = watch_new(&run->cluster, &run->outcome);
    run->drive = drive_new(&drive);
    run->inject = inject_new(&inject);
}

/* Regions then fail at what they would not fail at, so what was seen proves nothing. */
static void check_space(struct run *run)
{
    uint64_t space = claim_space(run->output.directory);
    if (space < CLAIM_BYTES_FULL)
        run_fail(run, "the disk under %s is full: what the Regions could not write proves nothing",
                 run->output.directory);
}

static void on_tick(uv_timer_t *timer)
{
    struct run *run = timer->data;
    loop_refresh_time(&run->loop);
    if (run->stage > STAGE_START && run->stage < STAGE_END)
        watch_tick(run->watch, run->loop.mono_ns);
    if (run->space_ticks++ % SPACE_TICKS == 0 && run->outcome.harness == NULL)
        check_space(run);
    stage_tick(run);
    progress_tick(run);
}

/* Every link and client costs descriptors, and the usual soft limit is far below the hard one. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* ---- The end ---- */

static void close_all(struct run *run)
{
    ledger_free(run->ledger);
    recount_free(run->recount);
    age_end(run);
    watch_free(run->watch);
    inject_free(run->inject);
    if (run->drive != NULL)
        drive_free(run->drive);
    timeline_deinit(run);
    signals_close(&run->signals);
    uv_close((uv_handle_t *)&run->tick, NULL);
    if (run->control != NULL)
        control_close(run->control);
    if (run->door != NULL)
        door_close(run->door);
    cluster_deinit(&run->cluster);
    loop_deinit(&run->loop);
    if (run->cluster.log_fd > 0)
        close(run->cluster.log_fd);
    signals_hold();
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * RUN_SECOND_NS + (uint64_t)time.tv_nsec;
}

/* Where a report could be written, the verdict is in it. Else it is said here and nowhere else. */
static void print_verdict(struct run *run, const struct buf *error)
{
    struct outcome *outcome = &run->outcome;
    bool written = error->len == 0;
    progress_clear(run);
    if (written) {
        printf("%s: %s\n", run->scenario->name, outcome->verdict);
        printf("report: %s/report.html\n", run->output.directory);
    } else {
        printf("%s: harness error: the report could not be written, so this is all there is of it "
               "(%s)\n",
               run->scenario->name, outcome->verdict);
        tell_lines(buf_view(error));
        outcome->exit = OUTCOME_HARNESS;
    }
    program_conclude(run);
    fflush(stdout);
}

/* Even a run that failed is judged by what there is. */
static void conclude(struct run *run)
{
    struct buf error = {0};
    progress_stage(run, "judging");
    if (!run->options->keep_data)
        output_drop_data(&run->output);
    if (run->outcome.ended_ns == 0)
        run->outcome.ended_ns = now_ns();
    outcome_judge(&run->outcome, now_ns);
    report_write(&run->outcome, run->output.directory, &error);
    print_verdict(run, &error);
    buf_deinit(&error);
}

static bool begin(struct run *run, struct buf *error)
{
    if (!open_cluster(run, error))
        return false;
    open_parts(run);
    run->stage_ns = run->loop.mono_ns;
    uv_timer_start(&run->tick, on_tick, RUN_TICK_MS, RUN_TICK_MS);
    progress_stage(run, "starting the Regions");
    return cluster_start(&run->cluster, error);
}

static void live(struct run *run)
{
    struct buf error = {0};
    loop_init(&run->loop);
    signals_init(&run->signals, &run->loop, on_signal, run);
    check(uv_timer_init(&run->loop.uv, &run->tick) == 0);
    run->tick.data = run;
    timeline_init(run);
    if (!begin(run, &error)) {
        run->outcome.harness = outcome_text(&run->outcome, "%.*s", (int)error.len,
                                            error.len == 0 ? "" : (const char *)error.at);
        run->stage = STAGE_END;
        run->entered = true;
        cluster_stop(&run->cluster);
    }
    if (!run->cluster.stopping || !cluster_stopped(&run->cluster))
        loop_run(&run->loop);
    close_all(run);
    buf_deinit(&error);
}

enum outcome_exit run_scenario(const struct run_options *options)
{
    struct run *run = xcalloc(1, sizeof(*run));
    struct buf error = {0};
    enum outcome_exit exit_code = OUTCOME_HARNESS;
    raise_descriptor_limit();
    random_expand(options->scenario, options->seed);
    run->options = options;
    run->scenario = options->scenario;
    outcome_init(&run->outcome, options->scenario);
    run->outcome.seed = options->seed;
    run->outcome.scenario_file = options->file;
    run->outcome.scenario_text = bytes_copy_text(&run->outcome.arena, options->text);
    progress_init(&run->progress, options->quiet);
    if (!configure(run, &error) ||
        !output_open(&run->output, options->home, options->directory, &error)) {
        tell_lines(buf_view(&error));
    } else {
        live(run);
        conclude(run);
        exit_code = run->outcome.exit;
    }
    output_close(&run->output, options->keep_data);
    signals_release();
    free(run->program_log);
    config_deinit(&run->config);
    outcome_deinit(&run->outcome);
    buf_deinit(&error);
    free(run);
    return exit_code;
}
