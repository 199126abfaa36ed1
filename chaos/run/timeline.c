/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a scenario, one after the other on the harness's clock: each with its load, its
 * faults at their times, and an end when its time is over and what it waits for holds. To see
 * whether all Regions have the same, the clients must rest; so once its own time is over, a phase
 * that waits for that lets them. */

#include "chaos/run/run_internal.h"
#include "conflict/base/check.h"

static uint64_t now_of(const struct run *run)
{
    return run->loop.mono_ns;
}

static const struct scenario_phase *phase_of(const struct run *run)
{
    return &run->scenario->phases[run->timeline.phase];
}

static struct outcome_phase *noted_of(struct run *run)
{
    return &run->outcome.phases[run->timeline.phase];
}

/* ---- Healing ---- */

static void note_heal(struct run *run)
{
    run->outcome.healed_ns = now_of(run);
    run->outcome.converged_ns = 0;
    outcome_event(&run->outcome, now_of(run), SCENARIO_REGION_NONE, "heal", "all faults undone");
}

void timeline_heal(struct run *run, void (*done)(void *context, bool good, const char *error))
{
    note_heal(run);
    inject_heal(run->inject, 60 * RUN_SECOND_NS, done, run);
}

static void on_healed(void *context, bool good, const char *error)
{
    struct run *run = context;
    run->timeline.healing = false;
    if (!good)
        run_fail(run, "not all could be healed: %s", error == NULL ? "no reason given" : error);
}

/* ---- Faults ---- */

static void begin_fault(struct run *run, const struct scenario_fault *fault)
{
    if (fault->verb == VERB_HEAL_ALL)
        note_heal(run);
    inject_begin(run->inject, fault);
}

static void begin_due(struct run *run);

static void on_timer(uv_timer_t *timer)
{
    struct run *run = timer->data;
    loop_refresh_time(&run->loop);
    begin_due(run);
}

static void begin_due(struct run *run)
{
    const struct scenario_phase *phase = phase_of(run);
    uint64_t into_ns = now_of(run) - run->timeline.from_ns;
    while (run->timeline.fault < phase->fault_count) {
        const struct scenario_fault *fault = &phase->faults[run->timeline.fault];
        if (fault->at_ns > into_ns) {
            uv_timer_start(&run->timeline.timer, on_timer,
                           (fault->at_ns - into_ns + RUN_MS_NS - 1) / RUN_MS_NS, 0);
            return;
        }
        run->timeline.fault++;
        begin_fault(run, fault);
    }
}

/* ---- Phases ---- */

static void begin_phase(struct run *run)
{
    const struct scenario_phase *phase = phase_of(run);
    run->timeline.fault = 0;
    run->timeline.from_ns = now_of(run);
    run->timeline.paused_ns = phase->idle ? now_of(run) : 0;
    *noted_of(run) = (struct outcome_phase){.name = phase->name, .from_ns = now_of(run)};
    run->outcome.phase_count = run->timeline.phase + 1;
    progress_phase(run, phase->name);
    drive_phase(run->drive, phase);
    if (phase->heal && !run->timeline.healing) {
        run->timeline.healing = true;
        timeline_heal(run, on_healed);
    }
    begin_due(run);
}

void timeline_init(struct run *run)
{
    check(uv_timer_init(&run->loop.uv, &run->timeline.timer) == 0);
    run->timeline.timer.data = run;
    run->outcome.phases =
        arena_array(&run->outcome.arena, struct outcome_phase, run->scenario->phase_count + 1);
}

void timeline_begin(struct run *run)
{
    run->timeline.phase = 0;
    begin_phase(run);
}

void timeline_end(struct run *run)
{
    uv_timer_stop(&run->timeline.timer);
    struct outcome_phase *noted = noted_of(run);
    if (run->outcome.phase_count > 0 && noted->to_ns == 0)
        noted->to_ns = now_of(run);
}

void timeline_deinit(struct run *run)
{
    uv_close((uv_handle_t *)&run->timeline.timer, NULL);
}

bool timeline_is_quiet(const struct run *run)
{
    return run->timeline.paused_ns != 0;
}

/* The clients rest until the next phase. */
static void let_rest(struct run *run)
{
    struct scenario_phase idle = *phase_of(run);
    idle.idle = true;
    run->timeline.paused_ns = now_of(run);
    drive_phase(run->drive, &idle);
}

static bool holds(struct run *run, const struct scenario_until *until)
{
    uint64_t since = run->timeline.paused_ns;
    if (since < run->outcome.healed_ns)
        since = run->outcome.healed_ns;
    if (since < run->timeline.from_ns)
        since = run->timeline.from_ns;
    if (until->converged && !watch_converged(run->watch, since))
        return false;
    if (until->caught_up && !watch_caught_up(run->watch, since))
        return false;
    if (until->leaders && !watch_led(run->watch, since))
        return false;
    if (run->outcome.converged_ns == 0 && (until->converged || until->caught_up))
        run->outcome.converged_ns = now_of(run);
    return true;
}

static void next_phase(struct run *run)
{
    noted_of(run)->to_ns = now_of(run);
    run->timeline.phase++;
    if (run->timeline.phase < run->scenario->phase_count)
        begin_phase(run);
    else
        stage_drain(run);
}

void timeline_tick(struct run *run)
{
    const struct scenario_phase *phase = phase_of(run);
    const struct scenario_until *until = &phase->until;
    uint64_t into_ns = now_of(run) - run->timeline.from_ns;
    int code;
    if (run->scenario->workload.kind == SCENARIO_EXEC && drive_exited(run->drive, &code) &&
        run->timeline.phase + 1 == run->scenario->phase_count && inject_active(run->inject) == 0 &&
        run->timeline.fault == phase->fault_count && !phase->has_until) {
        next_phase(run); /* the program is done, and nothing is left to try on it */
        return;
    }
    if (into_ns < phase->for_ns || run->timeline.fault < phase->fault_count)
        return;
    if (!phase->has_until) {
        next_phase(run);
        return;
    }
    if ((until->converged || until->caught_up) && run->timeline.paused_ns == 0)
        let_rest(run);
    if (!run->timeline.healing && holds(run, until)) {
        next_phase(run);
    } else if (into_ns - phase->for_ns >= until->timeout_ns) {
        noted_of(run)->timed_out = true;
        next_phase(run);
    }
}

uint64_t timeline_length_ns(const struct scenario *scenario)
{
    uint64_t length = 0;
    for (uint32_t i = 0; i < scenario->phase_count; i++)
        length += scenario->phases[i].for_ns;
    return length;
}
