/* SPDX-License-Identifier: Apache-2.0 */
/* What comes between a cluster's start and its end, one stage after the other. A stage that asks
 * others for something goes on when they call back; one that waits looks ten times a second. When
 * the user wants an end, the stages that only look at what there is are left out. */

#include <string.h>

#include "chaos/run/run_internal.h"
#include "conflict/base/check.h"

#define PREPARE_NS (60 * RUN_SECOND_NS)
#define SETTLE_NS (60 * RUN_SECOND_NS)
#define GONE_NS (3 * RUN_SECOND_NS) /* a Region that has no table so long will get none */
#define LOOK_NS (30 * RUN_SECOND_NS)
#define SCAN_NS (60 * RUN_SECOND_NS)

static bool is_strong(const struct run *run)
{
    return run->scenario->cluster.mode == SCENARIO_STRONG;
}

static uint64_t running(const struct run *run, bool data_only)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < run->cluster.site_count; i++)
        if (run->cluster.sites[i].state == SITE_RUNNING &&
            !(data_only && run->cluster.sites[i].witness))
            bits |= UINT64_C(1) << i;
    return bits;
}

static void on_ledgers(void *context, bool good, const char *error);

/* ---- After each ---- */

static void on_prepared(void *context, bool good, const char *error)
{
    struct run *run = context;
    if (run->stage != STAGE_PREPARE)
        return;
    if (good) {
        stage_enter(run, STAGE_PHASES);
        return;
    }
    run_fail(run, "the tables could not be made: %s", error == NULL ? "no reason given" : error);
}

static void on_drained(void *context, bool good, const char *error)
{
    struct run *run = context;
    (void)good, (void)error; /* what was not answered is recorded so */
    if (run->stage == STAGE_DRAIN)
        stage_enter(run, STAGE_HEAL);
}

static void on_healed(void *context, bool good, const char *error)
{
    struct run *run = context;
    if (run->stage != STAGE_HEAL)
        return;
    if (!good)
        run_fail(run, "not all could be healed: %s", error == NULL ? "no reason given" : error);
    else
        stage_enter(run, run->cut_short ? STAGE_END : STAGE_SETTLE);
}

static void on_looked(void *context, bool good, const char *error)
{
    struct run *run = context;
    if (run->stage != STAGE_LOOK)
        return;
    if (!good)
        outcome_event(&run->outcome, run->loop.mono_ns, SCENARIO_REGION_NONE, "note",
                      "the last look is not whole: %s", error == NULL ? "" : error);
    stage_enter(run, is_strong(run) ? STAGE_SCAN : STAGE_LEDGERS);
}

static void on_ledgers(void *context, bool good, const char *error)
{
    struct run *run = context;
    if (run->stage != STAGE_LEDGERS)
        return;
    if (!good)
        run_fail(run, "%s", error);
    else
        stage_enter(run, STAGE_SCAN);
}

static struct converge_scan *keep_scans(struct run *run, uint32_t *ret_count)
{
    struct arena *arena = &run->outcome.arena;
    const struct converge_scan *from = drive_scans(run->drive, ret_count);
    struct converge_scan *to = arena_array(arena, struct converge_scan, *ret_count + 1);
    for (uint32_t i = 0; i < *ret_count; i++) {
        to[i] = from[i];
        to[i].items = arena_copy(arena, from[i].count == 0 ? (const void *)"" : from[i].items,
                                 from[i].count * sizeof(*from[i].items));
    }
    return to;
}

static void on_scanned(void *context, bool good, const char *error)
{
    struct run *run = context;
    struct outcome *outcome = &run->outcome;
    if (run->stage != STAGE_SCAN && run->stage != STAGE_RESCAN)
        return;
    if (!good) {
        run_fail(run, "the tables could not be scanned: %s", error == NULL ? "" : error);
        return;
    }
    if (run->stage == STAGE_RESCAN)
        outcome->rescans = keep_scans(run, &outcome->rescan_count);
    else
        outcome->scans = keep_scans(run, &outcome->scan_count);
    if (run->stage == STAGE_SCAN && age_is_wanted(run))
        stage_enter(run, STAGE_AGE);
    else
        stage_enter(run, STAGE_RECOUNT);
}

static void on_recounted(void *context, uint64_t count, const char *error)
{
    struct run *run = context;
    run->outcome.region_rpo_count = count;
    if (count == UINT64_MAX) {
        run->outcome.region_rpo_why = outcome_text(&run->outcome, "%s", error);
        outcome_event(&run->outcome, run->loop.mono_ns, SCENARIO_REGION_NONE, "note",
                      "the Regions' own count of what was lost is not known: %s", error);
    }
    run_end_loop(run);
    if (run->stage == STAGE_RECOUNT)
        stage_enter(run, STAGE_END);
}

/* ---- What the faults have done for good ---- */

static bool is_noted_down(const struct outcome *outcome, uint8_t region)
{
    for (uint32_t i = 0; i < outcome->disk_loss_count; i++)
        if (outcome->disk_losses[i].region == region &&
            outcome->disk_losses[i].why == OUTCOME_LOSS_DOWN)
            return true;
    return false;
}

/* What disks have lost was noted as it happened; what does not come back is lost, too. */
static void note_down(struct run *run)
{
    struct outcome *outcome = &run->outcome;
    uint64_t all = (UINT64_C(1) << run->cluster.site_count) - 1, now_ns = run->loop.mono_ns;
    outcome->down_regions = all & ~running(run, false);
    for (uint8_t i = 0; i < run->cluster.site_count; i++)
        if (outcome->down_regions >> i & 1 && !is_noted_down(outcome, i))
            outcome_lost(outcome, outcome_death_ns(outcome, i, now_ns), i, OUTCOME_LOSS_DOWN,
                         false);
}

/* ---- Entering ---- */

static void begin_phases(struct run *run)
{
    struct outcome *outcome = &run->outcome;
    outcome->began_ns = run->loop.mono_ns;
    outcome->began_wall_ms = run->loop.wall_ms;
    outcome->sample_count = outcome->event_count = 0;
    progress_begin(run);
    timeline_begin(run);
}

static void begin_healing(struct run *run)
{
    uint64_t all = (UINT64_C(1) << run->cluster.site_count) - 1;
    if (inject_active(run->inject) > 0 || running(run, false) != all)
        timeline_heal(run, on_healed);
    else
        stage_enter(run, run->cut_short ? STAGE_END : STAGE_SETTLE);
}

/* The Regions that there is something to read in. */
static uint64_t readable(const struct run *run)
{
    return running(run, true) & ~run->outcome.gone_regions;
}

/* Only where the workload knows its items, and somebody is there to ask. */
static void begin_look(struct run *run)
{
    uint8_t kind = run->scenario->workload.kind;
    bool knows = kind != SCENARIO_EXEC && kind != SCENARIO_YCSB_A && kind != SCENARIO_YCSB_B &&
                 kind != SCENARIO_YCSB_F;
    if (running(run, true) == 0)
        run_fail(run, "no Region is running any more");
    else if (knows)
        drive_look(run->drive, readable(run), LOOK_NS, on_looked, run);
    else
        stage_enter(run, is_strong(run) ? STAGE_SCAN : STAGE_LEDGERS);
}

/* Faults first, so that nothing is started again. */
static void end(struct run *run)
{
    run->outcome.exited = run->scenario->workload.kind == SCENARIO_EXEC &&
                          drive_exited(run->drive, &run->outcome.exit_code);
    run->outcome.ended_ns = run->loop.mono_ns;
    load_conclude(&run->load, &run->outcome);
    note_down(run);
    inject_free(run->inject);
    run->inject = NULL;
    recount_stop(run->recount);
    cluster_stop(&run->cluster);
    run_end_loop(run);
}

/* Why the Regions cannot count what the loss took; NULL: they can. What a Region still has of a
 * store that was damaged, or not synced, nobody can tell from outside. */
static const char *uncounted(const struct outcome_loss *loss)
{
    switch ((enum outcome_loss_why)loss->why) {
    case OUTCOME_LOSS_WIPED:
    case OUTCOME_LOSS_DISCARDED:
        return loss->kept ? NULL : "not counted: what the lost disk held was not kept";
    case OUTCOME_LOSS_DAMAGED:
        return "not counted: a Region serves what was left of its damaged store";
    case OUTCOME_LOSS_UNSYNCED:
        return "not counted: it had not reached the disk";
    case OUTCOME_LOSS_DOWN:
        return "not counted: a Region did not come back";
    case OUTCOME_LOSS_WHY_COUNT:
        break;
    }
    unreachable();
}

/* Of one Region that lost its disk. Of several nobody kept the books: what one had of another went
 * down with it, and a disk that is lost again leaves only its last data. */
static void begin_recount(struct run *run)
{
    struct outcome *outcome = &run->outcome;
    const struct outcome_loss *lost = NULL;
    uint32_t losses = 0;
    note_down(run);
    for (uint32_t i = 0; i < outcome->disk_loss_count && !is_strong(run); i++)
        if (outcome->disk_losses[i].region < run->scenario->cluster.data_count) {
            lost = &outcome->disk_losses[i];
            losses++;
        }
    const char *why = losses > 1 ? "not counted: several losses" : lost ? uncounted(lost) : NULL;
    if (why != NULL)
        on_recounted(run, UINT64_MAX, why);
    else if (lost != NULL)
        run->recount = recount_begin(&run->cluster, run->watch, lost->region, on_recounted, run);
    if (run->recount == NULL && run->stage == STAGE_RECOUNT)
        stage_enter(run, STAGE_END);
}

void stage_enter(struct run *run, enum run_stage stage)
{
    run->stage = stage;
    run->stage_ns = run->loop.mono_ns;
    run->entered = false;
    switch (stage) {
    case STAGE_START:
        return;
    case STAGE_PREPARE:
        progress_stage(run, "making the tables");
        drive_prepare(run->drive, PREPARE_NS, on_prepared, run);
        return;
    case STAGE_PHASES:
        begin_phases(run);
        return;
    case STAGE_DRAIN:
        progress_stage(run, "waiting for the last answers");
        program_tick(run);
        timeline_end(run);
        drive_stop(run->drive, on_drained, run);
        return;
    case STAGE_RECOUNT:
        begin_recount(run);
        return;
    case STAGE_HEAL: /* a phase may still be at it */
    case STAGE_END:  /* not from within what is to be freed */
        return;
    case STAGE_SETTLE:
        progress_stage(run, is_strong(run) ? "waiting until all have caught up"
                                           : "waiting until all Regions have the same");
        return;
    case STAGE_LOOK:
        progress_stage(run, "reading everything once more");
        begin_look(run);
        return;
    case STAGE_LEDGERS:
        run->ledger = ledger_read(&run->cluster, run->drive, &run->outcome, on_ledgers, run);
        return;
    case STAGE_SCAN:
    case STAGE_RESCAN:
        drive_scan(run->drive, readable(run), SCAN_NS, on_scanned, run);
        return;
    case STAGE_AGE:
        progress_stage(run, "letting tombstones go, to see whether anything comes back");
        age_begin(run);
        return;
    }
    unreachable();
}

void stage_drain(struct run *run)
{
    if (run->stage == STAGE_PHASES)
        stage_enter(run, STAGE_DRAIN);
}

/* ---- Waiting ---- */

static void tick_phases(struct run *run)
{
    uint64_t now_ns = run->loop.mono_ns;
    struct drive_load load;
    program_tick(run);
    drive_load(run->drive, &load);
    load_tick(&run->load, load, inject_active(run->inject) == 0 && !run->timeline.healing);
    if (run->stage != STAGE_PHASES)
        return;
    const struct scenario_expect *broken = guard_tick(&run->guard, &run->outcome, now_ns);
    if (broken != NULL) {
        run->outcome.stopped = outcome_text(&run->outcome, "stop_if %s", broken->text);
        outcome_event(&run->outcome, now_ns, SCENARIO_REGION_NONE, "stop", "%s",
                      run->outcome.stopped);
        stage_drain(run);
    } else if (now_ns - run->outcome.began_ns > run->scenario->budgets.wall_ns) {
        run_fail(run, "the run took longer than budgets.wall");
    } else {
        timeline_tick(run);
    }
}

static void note_gone(struct run *run, uint64_t gone)
{
    run->outcome.gone_regions = gone;
    for (uint8_t i = 0; i < run->cluster.site_count; i++)
        if (gone >> i & 1)
            outcome_event(&run->outcome, run->loop.mono_ns, i, "note", "the table itself is gone");
}

static void tick_settle(struct run *run)
{
    uint64_t now_ns = run->loop.mono_ns, since_ns = run->stage_ns;
    bool there = is_strong(run)
                     ? watch_caught_up(run->watch, since_ns) && watch_led(run->watch, since_ns)
                     : watch_converged(run->watch, since_ns);
    uint64_t gone = watch_gone(run->watch, since_ns), waited_ns = now_ns - run->stage_ns;
    if (gone != 0) { /* from the others it comes again; if all have lost it, nothing will */
        there = gone == running(run, true) && waited_ns >= GONE_NS;
        if (there || waited_ns >= SETTLE_NS)
            note_gone(run, gone);
    } else if (there && run->outcome.converged_ns == 0) {
        run->outcome.converged_ns = now_ns;
    }
    if (!there && now_ns - run->stage_ns < SETTLE_NS)
        return;
    if (!there)
        outcome_event(&run->outcome, now_ns, SCENARIO_REGION_NONE, "note",
                      "the Regions did not become equal within a minute");
    stage_enter(run, STAGE_LOOK);
}

void stage_tick(struct run *run)
{
    switch (run->stage) {
    case STAGE_PHASES:
        tick_phases(run);
        return;
    case STAGE_SETTLE:
        tick_settle(run);
        return;
    case STAGE_AGE:
        age_tick(run);
        return;
    case STAGE_HEAL:
        if (!run->entered && !run->timeline.healing) {
            run->entered = true;
            begin_healing(run);
        }
        return;
    case STAGE_END:
        if (!run->entered) {
            run->entered = true;
            end(run);
        }
        return;
    case STAGE_START:
    case STAGE_PREPARE:
    case STAGE_DRAIN:
    case STAGE_LOOK:
    case STAGE_LEDGERS:
    case STAGE_SCAN:
    case STAGE_RESCAN:
    case STAGE_RECOUNT:
        return;
    }
    unreachable();
}
