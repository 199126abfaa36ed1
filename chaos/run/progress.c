/* SPDX-License-Identifier: Apache-2.0 */
/* In a terminal the last lines are drawn again and again: the phase with a bar, and a line for each
 * Region; what happens is printed above them and stays. Elsewhere only what happens is printed. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chaos/run/run_internal.h"
#include "conflict/base/check.h"

enum { DRAW_TICKS = 2, FIGURE_TICKS = 10, BAR_LEN = 30 };

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != 0;
}

void progress_init(struct progress *progress, bool quiet)
{
    const char *terminal = getenv("TERM");
    progress->quiet = quiet;
    progress->live = !quiet && isatty(STDOUT_FILENO) && !is_set("NO_COLOR") && !is_set("CI") &&
                     terminal != NULL && strcmp(terminal, "dumb") != 0;
}

/* ---- Drawing ---- */

static void clear_lines(struct progress *progress)
{
    if (progress->lines > 0)
        printf("\x1b[%uA\x1b[J", progress->lines);
    progress->lines = 0;
}

void progress_clear(struct run *run)
{
    clear_lines(&run->progress);
}

static void print_seconds(uint64_t ns)
{
    if (ns < RUN_SECOND_NS)
        printf("%.0f ms", (double)ns / 1e6);
    else
        printf("%.1f s", (double)ns / 1e9);
}

static void draw_region(struct run *run, uint32_t place)
{
    struct progress *progress = &run->progress;
    const struct site *site = &run->cluster.sites[place];
    const struct outcome *outcome = &run->outcome;
    const struct outcome_sample *sample =
        outcome->sample_count == 0 ? NULL : &outcome->samples[outcome->sample_count - 1];
    bool strong = run->scenario->cluster.mode == SCENARIO_STRONG;
    printf("  %-16s %-8s", site->name, site_state_name(site->state));
    if (!site->witness)
        printf(" %6.0f/s %5.0f failed/s  p99 %6.1f ms", progress->rate[place],
               progress->errors[place], (double)progress->figures.region[place].p99_ns / 1e6);
    if (sample != NULL && strong) {
        printf("  leads %u", sample->region[place].leads);
    } else if (sample != NULL) {
        printf("  lag ");
        print_seconds(sample->region[place].lag_ns);
        printf(" (%" PRIu64 ")", sample->region[place].pending);
    }
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        if (fault->to_ns == 0 && !fault->refused && fault->regions >> place & 1)
            printf("  \x1b[33m%s\x1b[0m",
                   scenario_verb_info((enum scenario_verb)fault->verb)->name);
    }
    printf("\x1b[K\n");
}

static void draw(struct run *run)
{
    struct progress *progress = &run->progress;
    uint64_t length = timeline_length_ns(run->scenario);
    uint64_t into = run->loop.mono_ns - run->outcome.began_ns;
    uint32_t filled = length == 0 || into > length ? BAR_LEN : (uint32_t)(into * BAR_LEN / length);
    clear_lines(progress);
    printf("\x1b[?7l"); /* what is too long is cut, or the lines could not be counted */
    printf("  %-16s [", run->outcome.phases[run->outcome.phase_count - 1].name);
    for (uint32_t i = 0; i < BAR_LEN; i++)
        putchar(i < filled ? '=' : ' ');
    printf("] %.0f of %.0f s\x1b[K\n", (double)into / 1e9, (double)length / 1e9);
    for (uint32_t i = 0; i < run->cluster.site_count; i++)
        draw_region(run, i);
    printf("\x1b[?7h");
    progress->lines = run->cluster.site_count + 1;
    fflush(stdout);
}

/* ---- Lines that stay ---- */

/* Lines are in order of their times: what is told late is told as of now. */
static void begin_line(struct run *run, uint64_t at_ns)
{
    uint64_t began_ns = run->outcome.began_ns;
    clear_lines(&run->progress);
    at_ns = at_ns > run->progress.told_ns ? at_ns : run->progress.told_ns;
    run->progress.told_ns = at_ns;
    printf("[%5.1f s] ", began_ns == 0 || at_ns < began_ns ? 0 : (double)(at_ns - began_ns) / 1e9);
}

void progress_begin(struct run *run)
{
    if (run->progress.quiet)
        return;
    clear_lines(&run->progress);
    run->progress.told_ns = 0; /* the run's own time begins now */
    printf("%s%s%s\nseed %" PRIu64 "; look in with `tidemark status --control %s`\n",
           run->scenario->name, *run->scenario->about == 0 ? "" : ": ", run->scenario->about,
           run->options->seed, run->control_address);
    fflush(stdout);
}

static void tell_event(struct run *run, const struct outcome_event *event)
{
    begin_line(run, event->at_ns);
    if (event->region < run->cluster.site_count)
        printf("%s %s: %s\n", event->kind, run->cluster.sites[event->region].name, event->text);
    else
        printf("%s: %s\n", event->kind, event->text);
}

static void tell_begin_of(struct run *run, const struct outcome_fault *fault)
{
    begin_line(run, fault->from_ns);
    printf("fault %s: %s %s%s\n", fault->id,
           scenario_verb_info((enum scenario_verb)fault->verb)->name,
           fault->target == NULL ? "" : fault->target, fault->refused ? " could not be begun" : "");
}

static uint64_t end_of(const struct outcome_fault *fault)
{
    return fault->to_ns == 0 ? fault->from_ns : fault->to_ns;
}

/* Its evidence may take a while to be whole. */
static void tell_end_of(struct run *run, const struct outcome_fault *fault)
{
    uint64_t began_ns = run->outcome.began_ns, told_ns = run->progress.told_ns;
    uint64_t end_ns = end_of(fault);
    begin_line(run, end_ns);
    printf("fault %s is over", fault->id);
    if (end_ns + RUN_TICK_MS * RUN_MS_NS < told_ns && end_ns >= began_ns)
        printf(" since %.1f s", (double)(end_ns - began_ns) / 1e9);
    printf(": %s%s\n", fault->effective ? "" : "NOT EFFECTIVE, ",
           fault->evidence == NULL ? "nothing was seen of it" : fault->evidence);
}

/* The fault that has ended first, of those whose end is known and untold; UINT32_MAX: none. Of a
 * fault whose beginning is untold, that comes first. */
static uint32_t next_end(const struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    uint32_t next = UINT32_MAX;
    for (uint32_t i = 0; i < run->progress.faults_told; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        if (run->progress.ended[i] || (fault->to_ns == 0 && !fault->refused))
            continue;
        if (next == UINT32_MAX || end_of(fault) < end_of(&outcome->faults[next]))
            next = i;
    }
    return next;
}

/* Whatever has happened and is untold, in order of time: events, and beginnings and ends of faults,
 * each of which is in order already but for ends. */
static void tell_all(struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    struct progress *progress = &run->progress;
    if (progress->events_told > outcome->event_count)
        progress->events_told = 0; /* those before the phases have been dropped */
    for (;;) {
        const struct outcome_event *event = progress->events_told < outcome->event_count
                                                ? &outcome->events[progress->events_told]
                                                : NULL;
        const struct outcome_fault *begun = progress->faults_told < outcome->fault_count
                                                ? &outcome->faults[progress->faults_told]
                                                : NULL;
        uint32_t end = next_end(run);
        uint64_t event_ns = event == NULL ? UINT64_MAX : event->at_ns;
        uint64_t begun_ns = begun == NULL ? UINT64_MAX : begun->from_ns;
        uint64_t end_ns = end == UINT32_MAX ? UINT64_MAX : end_of(&outcome->faults[end]);
        if (begun != NULL && begun_ns <= event_ns && begun_ns <= end_ns) {
            progress->faults_told++;
            tell_begin_of(run, begun);
        } else if (end != UINT32_MAX && end_ns <= event_ns) {
            progress->ended[end] = true;
            tell_end_of(run, &outcome->faults[end]);
        } else if (event != NULL) {
            progress->events_told++;
            tell_event(run, event);
        } else {
            return;
        }
    }
}

void progress_phase(struct run *run, const char *name)
{
    if (run->progress.quiet)
        return;
    if (run->outcome.began_ns != 0)
        tell_all(run);
    begin_line(run, run->loop.mono_ns);
    printf("phase %s\n", name);
    fflush(stdout);
}

void progress_stage(struct run *run, const char *text)
{
    if (run->progress.quiet)
        return;
    if (run->outcome.began_ns != 0)
        tell_all(run);
    begin_line(run, run->loop.mono_ns);
    printf("%s\n", text);
    fflush(stdout);
}

static void take_figures(struct run *run)
{
    struct progress *progress = &run->progress;
    uint64_t now_ns = run->loop.mono_ns;
    double seconds = (double)(now_ns - progress->figures_ns) / 1e9;
    drive_figures(run->drive, &progress->figures);
    progress->figures_ns = now_ns;
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++) {
        progress->rate[i] = progress->figures.region[i].ok / seconds;
        progress->errors[i] =
            (progress->figures.region[i].failed + progress->figures.region[i].info) / seconds;
    }
}

void progress_tick(struct run *run)
{
    struct progress *progress = &run->progress;
    if (progress->quiet || run->outcome.began_ns == 0)
        return;
    tell_all(run);
    fflush(stdout);
    if (!progress->live || run->stage != STAGE_PHASES || run->outcome.phase_count == 0)
        return;
    if (progress->ticks % FIGURE_TICKS == 0)
        take_figures(run);
    if (progress->ticks++ % DRAW_TICKS == 0)
        draw(run);
}
