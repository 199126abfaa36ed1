/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of processes. A Region is dead as long as any fault wants it dead, and stopped as long as
 * any wants it stopped; the last that ends lets it go on. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chaos/inject/inject_internal.h"

enum { WATCH_MS = 5 };

void fault_each_place(struct fault *fault, void (*act)(struct fault *fault, struct place *place))
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        if ((fault->regions >> i & 1) != 0)
            act(fault, inject_place(fault->inject, i));
}

static uint8_t bit_of(const struct place *place)
{
    return (uint8_t)(1u << place->index);
}

/* ---- Ending processes: kill, leader.kill, restart, wipe ---- */

/* It runs, and no other fault is about to end it. */
static bool is_alive(const struct place *place)
{
    return place->site->process != NULL && place->downs == 0;
}

/* Of what a verb ends, at least one must be there. */
static bool any_alive(struct fault *fault)
{
    bool ending = false;
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        const struct place *place = inject_place(fault->inject, i);
        if ((fault->regions >> i & 1) == 0)
            continue;
        if (is_alive(place))
            return true;
        ending = ending || place->site->process != NULL;
    }
    return fault_refuse(fault,
                        ending ? "another fault is ending it just now" : "it is dead already");
}

static void kill_place(struct fault *fault, struct place *place)
{
    struct buf error;
    bool wiped = fault->spec->verb == VERB_DISK_WIPE;
    int signal = wiped || fault->spec->signal == 0 ? SIGKILL : fault->spec->signal;
    if (!is_alive(place))
        return;
    buf_init(&error);
    (void)site_signal(place->site, signal, &error);
    if (signal != SIGKILL && place->site->state == SITE_PAUSED)
        (void)site_resume(place->site, &error); /* else it cannot heed it */
    buf_deinit(&error);
    place->downs++;
    fault->down |= bit_of(place);
}

static bool kill_begin(struct fault *fault)
{
    if (fault->spec->lose_unsynced && fault->inject->disk_trouble[0] != 0)
        return fault_refuse(fault, "%s", fault->inject->disk_trouble);
    if (!any_alive(fault))
        return false;
    fault_each_place(fault, kill_place);
    fault->next_ns = fault->began_ns;
    return true;
}

/* As of its last process's end. */
static void note_loss(struct fault *fault, struct place *place, enum outcome_loss_why why,
                      bool kept)
{
    struct outcome *outcome = fault->inject->config.outcome;
    uint64_t now_ns = inject_now(fault->inject);
    outcome_lost(outcome, outcome_death_ns(outcome, place->index, now_ns), place->index, why, kept);
}

/* Where every acknowledgement waits for fsync, what was not synced was not acknowledged. */
static void lose_unsynced(struct fault *fault, struct place *place)
{
    struct disk_loss loss = disk_lose_unsynced(place->disk);
    if (fault->inject->config.scenario->cluster.durability == SCENARIO_OS && loss.bytes > 0)
        note_loss(fault, place, OUTCOME_LOSS_UNSYNCED, false);
    if (fault->times > 0 && loss.failed == 0)
        return;
    fault_note(fault, "%" PRIu64 " unsynced bytes of %u files dropped in %s", loss.bytes,
               loss.files, place->site->name);
    if (loss.failed != 0)
        fault_note(fault, "a file could not be cut: %s", strerror(loss.failed));
}

/* What is gone for the Region is kept beside its directory, for whoever counts what was lost. */
static void wipe(struct fault *fault, struct place *place)
{
    char directory[DISK_PATH_MAX], aside[DISK_PATH_MAX + sizeof(DISK_ASIDE)];
    snprintf(directory, sizeof(directory), "%s/%s", fault->inject->config.cluster->data,
             place->site->name);
    snprintf(aside, sizeof(aside), "%s%s", directory, DISK_ASIDE);
    int removed = disk_set_aside(place->disk, directory, aside);
    if (removed < 0)
        fault_note(fault, "%s could not be emptied: %s", directory, strerror(errno));
    else
        fault_note(fault, "%d files of %s removed", removed, place->site->name);
    fault->seen = removed > 0;
    if (removed > 0)
        note_loss(fault, place, OUTCOME_LOSS_WIPED, true);
    place->damaged = place->kept = false; /* there is nothing any more to be damaged */
}

/* Once, when it is seen dead. */
static void meet_death(struct fault *fault, struct place *place)
{
    if ((fault->down & bit_of(place)) == 0 || (fault->seen_down & bit_of(place)) != 0 ||
        !place_dead(place))
        return;
    fault->seen_down |= bit_of(place);
    fault->seen = true;
    if (fault->times == 0) /* of a loop, the first round is told */
        fault_note(fault, "the process of %s has ended", place->site->name);
    if (fault->spec->lose_unsynced && place->disk != NULL)
        lose_unsynced(fault, place);
    if (fault->spec->verb == VERB_DISK_WIPE)
        wipe(fault, place);
}

static void kill_step(struct fault *fault, uint64_t now_ns)
{
    fault_each_place(fault, meet_death);
    bool all = fault->seen_down == fault->down;
    fault->next_ns = all ? NEVER : now_ns + WATCH_MS * NS_PER_MS;
}

/* What ends before its process has is not started before that either. */
static void let_start(struct fault *fault, struct place *place)
{
    if ((fault->down & bit_of(place)) == 0)
        return;
    meet_death(fault, place);
    place->downs--;
    place_start(place);
}

static void kill_end(struct fault *fault)
{
    fault->patience_ns = STARTING_MS_MAX * NS_PER_MS;
    fault_each_place(fault, let_start);
}

static bool all_up(struct fault *fault)
{
    bool up = true;
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        struct place *place = inject_place(fault->inject, i);
        if ((fault->regions >> i & 1) == 0)
            continue;
        if (fault->down != 0) /* it had not died yet when the fault ended */
            meet_death(fault, place);
        place_start(place);
        up = up && (place_running(place) || place->downs > 0 || place->pauses > 0);
    }
    return up;
}

static void kill_evidence(struct fault *fault)
{
    if (fault->seen_down == 0 && fault->times == 0)
        fault_note(fault, "it did not end");
}

const struct verb verb_kill = {.begin = kill_begin,
                               .step = kill_step,
                               .end = kill_end,
                               .settled = all_up,
                               .evidence = kill_evidence};
const struct verb verb_wipe = {.begin = kill_begin,
                               .step = kill_step,
                               .end = kill_end,
                               .settled = all_up,
                               .evidence = kill_evidence};

/* ---- restart: over as soon as it has begun; what is left is done while it ends ---- */

static void restart_step(struct fault *fault, uint64_t now_ns)
{
    fault_each_place(fault, meet_death);
    if (fault->seen_down != fault->down)
        fault->next_ns = now_ns + WATCH_MS * NS_PER_MS;
    else if (!fault->phase) {
        fault->phase = true; /* all are dead: so long they stay so */
        fault->next_ns = now_ns + fault->spec->down_ns;
    } else {
        fault->next_ns = NEVER;
        fault_each_place(fault, let_start);
        fault->times = 1;
    }
}

static bool restart_settled(struct fault *fault)
{
    return fault->times > 0 && all_up(fault);
}

static void restart_end(struct fault *fault)
{
    fault->patience_ns = fault->spec->down_ns + STARTING_MS_MAX * NS_PER_MS;
}

static void restart_evidence(struct fault *fault)
{
    kill_evidence(fault);
    if (fault->times == 0) { /* given up: nobody is kept dead by it */
        fault_each_place(fault, let_start);
        fault->seen = false;
    }
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        const struct place *place = inject_place(fault->inject, i);
        if ((fault->down >> i & 1) == 0)
            continue;
        fault->seen = fault->seen && (place_running(place) || place->downs + place->pauses > 0);
        fault_note(fault, "%s is %s", place->site->name, site_state_name(place->site->state));
    }
}

const struct verb verb_restart = {.begin = kill_begin,
                                  .step = restart_step,
                                  .end = restart_end,
                                  .settled = restart_settled,
                                  .evidence = restart_evidence};

/* ---- restart-loop: rounds of it, for as long as it holds ---- */

static void start_place(struct fault *fault, struct place *place)
{
    (void)fault;
    place_start(place);
}

/* A round: all that run are ended, are seen dead, stay so, are started; then the next is waited
 * for. phase: they are dead. */
static void loop_step(struct fault *fault, uint64_t now_ns)
{
    if (fault->down == 0) {
        fault_each_place(fault, start_place); /* what has not come up from the last round */
        fault_each_place(fault, kill_place);
        fault->next_ns = now_ns + (fault->down == 0 ? TICK_MS : WATCH_MS) * NS_PER_MS;
        return;
    }
    fault_each_place(fault, meet_death);
    if (fault->seen_down != fault->down) {
        fault->next_ns = now_ns + WATCH_MS * NS_PER_MS;
    } else if (!fault->phase) {
        fault->phase = true;
        fault->next_ns = now_ns + fault->spec->down_ns;
    } else {
        fault_each_place(fault, let_start);
        fault->phase = false;
        fault->down = fault->seen_down = 0;
        fault->times++;
        fault->next_ns = fault->began_ns + fault->times * fault->spec->period_ns;
    }
}

static void loop_end(struct fault *fault)
{
    fault->patience_ns = STARTING_MS_MAX * NS_PER_MS;
    fault->next_ns = NEVER;
    fault_each_place(fault, let_start);
}

static void loop_evidence(struct fault *fault)
{
    kill_evidence(fault);
    fault->seen = fault->times > 0;
    fault_note(fault, "started again %" PRIu64 " time%s", fault->times, plural(fault->times));
}

const struct verb verb_restart_loop = {.begin = kill_begin,
                                       .step = loop_step,
                                       .end = loop_end,
                                       .settled = all_up,
                                       .evidence = loop_evidence};

/* ---- start: ends the faults that keep it dead ---- */

static bool keeps_dead(const struct fault *fault)
{
    return fault->verb == &verb_kill || fault->verb == &verb_wipe ||
           fault->verb == &verb_restart_loop ||
           (fault->verb == &verb_disk && fault->spec->verb == VERB_DISK_TORN_WRITE);
}

void fault_end_those(struct fault *fault, bool (*of)(const struct fault *fault))
{
    list_each(link, spare, &fault->inject->faults)
    {
        struct fault *other = container_of(link, struct fault, link);
        if (other != fault && of(other) && (other->regions & fault->regions) != 0)
            fault_end(other);
    }
}

static bool start_begin(struct fault *fault)
{
    bool all_run = true;
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        all_run = all_run && ((fault->regions >> i & 1) == 0 ||
                              inject_place(fault->inject, i)->site->process != NULL);
    if (all_run)
        return fault_refuse(fault, "it runs already");
    fault_end_those(fault, keeps_dead);
    fault_each_place(fault, start_place);
    return true;
}

static void start_end(struct fault *fault)
{
    fault->patience_ns = STARTING_MS_MAX * NS_PER_MS;
}

static void start_evidence(struct fault *fault)
{
    fault->seen = true;
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        const struct place *place = inject_place(fault->inject, i);
        if ((fault->regions >> i & 1) == 0)
            continue;
        fault->seen = fault->seen && place_running(place);
        fault_note(fault, "%s is %s", place->site->name, site_state_name(place->site->state));
    }
}

const struct verb verb_start = {
    .begin = start_begin, .end = start_end, .settled = all_up, .evidence = start_evidence};
