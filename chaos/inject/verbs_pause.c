/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are stopped as they are, and go on. Several faults may want one stopped; the last
 * that ends lets it go on. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chaos/inject/inject_internal.h"

static uint8_t bit_of(const struct place *place)
{
    return (uint8_t)(1u << place->index);
}

/* What the kernel says: T is stopped. */
static bool is_stopped(const struct place *place)
{
    char path[64], text[512];
    if (place->site->process == NULL)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process_pid(place->site->process));
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && strncmp(name_end, ") T", 3) == 0;
}

static void pause_place(struct fault *fault, struct place *place)
{
    struct buf error;
    buf_init(&error);
    if (place->site->process != NULL)
        journal_add_process(fault->inject->journal, process_pid(place->site->process));
    if (place->site->state == SITE_PAUSED || site_pause(place->site, &error)) {
        place->pauses++;
        fault->down |= bit_of(place);
        fault->seen = fault->seen || is_stopped(place);
    }
    buf_deinit(&error);
}

static bool pause_begin(struct fault *fault)
{
    fault_each_place(fault, pause_place);
    return fault->down != 0 || fault_refuse(fault, "it does not run");
}

static void resume_place(struct fault *fault, struct place *place)
{
    struct buf error;
    if ((fault->down & bit_of(place)) == 0 || --place->pauses > 0)
        return;
    buf_init(&error);
    if (place->site->state == SITE_PAUSED)
        (void)site_resume(place->site, &error);
    buf_deinit(&error);
}

static void pause_end(struct fault *fault)
{
    fault_each_place(fault, resume_place);
}

static void pause_evidence(struct fault *fault)
{
    fault_note(fault, fault->seen ? "stopped, as the kernel says" : "it was not seen stopped");
}

const struct verb verb_pause = {.begin = pause_begin, .end = pause_end, .evidence = pause_evidence};

/* ---- hiccup: pauses that come and go ---- */

static void hiccup_step(struct fault *fault, uint64_t now_ns)
{
    fault_each_place(fault, fault->phase ? resume_place : pause_place);
    if (fault->phase)
        fault->down = 0;
    fault_alternate(fault, now_ns);
}

static bool hiccup_begin(struct fault *fault)
{
    fault->next_ns = fault->began_ns;
    hiccup_step(fault, fault->began_ns);
    return fault->down != 0 || fault_refuse(fault, "it does not run");
}

static void hiccup_end(struct fault *fault)
{
    fault->next_ns = NEVER;
    if (fault->phase)
        fault_each_place(fault, resume_place);
}

static void hiccup_evidence(struct fault *fault)
{
    fault_note(fault, "stopped %" PRIu64 " time%s%s", fault->times, plural(fault->times),
               fault->seen ? ", as the kernel says" : ", and never seen so");
}

const struct verb verb_hiccup = {
    .begin = hiccup_begin, .step = hiccup_step, .end = hiccup_end, .evidence = hiccup_evidence};

/* ---- resume ---- */

static bool is_pause(const struct fault *fault)
{
    return fault->verb == &verb_pause || fault->verb == &verb_hiccup;
}

static bool any_pause(const struct fault *fault)
{
    list_each(link, spare, &fault->inject->faults)
    {
        const struct fault *other = container_of(link, struct fault, link);
        if (is_pause(other) && other->state == FAULT_HOLDS &&
            (other->regions & fault->regions) != 0)
            return true;
    }
    return false;
}

static bool resume_begin(struct fault *fault)
{
    bool any_paused = any_pause(fault);
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        any_paused = any_paused || ((fault->regions >> i & 1) != 0 &&
                                    inject_place(fault->inject, i)->site->state == SITE_PAUSED);
    if (!any_paused)
        return fault_refuse(fault, "it is not paused");
    fault_end_those(fault, is_pause);
    return true;
}

static void resume_evidence(struct fault *fault)
{
    fault->seen = true;
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        const struct place *place = inject_place(fault->inject, i);
        if ((fault->regions >> i & 1) == 0)
            continue;
        fault->seen = fault->seen && place->site->state != SITE_PAUSED;
        fault_note(fault, "%s is %s", place->site->name, site_state_name(place->site->state));
    }
}

const struct verb verb_resume = {.begin = resume_begin, .evidence = resume_evidence};
