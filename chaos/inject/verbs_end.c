/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that only end others: undo, heal-all, clock.reset. */

#include <string.h>

#include "chaos/inject/inject_internal.h"

static bool undo_begin(struct fault *fault)
{
    list_each(link, spare, &fault->inject->faults)
    {
        struct fault *other = container_of(link, struct fault, link);
        if (other == fault || other->state != FAULT_HOLDS ||
            strcmp(other->spec->id, fault->spec->fault) != 0)
            continue;
        fault->regions = other->regions;
        fault_end(other);
        fault->times++;
    }
    return true;
}

static bool heal_begin(struct fault *fault)
{
    list_each(link, spare, &fault->inject->faults)
    {
        struct fault *other = container_of(link, struct fault, link);
        fault->times += other != fault && other->state == FAULT_HOLDS;
        if (other != fault)
            fault_end(other);
    }
    for (uint8_t i = 0; i < fault->inject->place_count; i++) /* also what has died by itself */
        place_start(inject_place(fault->inject, i));
    return true;
}

static bool clock_reset_begin(struct fault *fault)
{
    list_each(link, spare, &fault->inject->faults)
    {
        struct fault *other = container_of(link, struct fault, link);
        if (other->verb != &verb_clock || (other->regions & fault->regions) == 0)
            continue;
        fault->times += other->state == FAULT_HOLDS;
        fault_end(other);
    }
    return true;
}

/* Whoever undoes what does not hold has not tried what he means to try. */
static void ended_evidence(struct fault *fault)
{
    fault->seen = fault->times > 0;
    if (fault->seen)
        fault_note(fault, "%llu fault%s ended", (unsigned long long)fault->times,
                   plural(fault->times));
    else
        fault_note(fault, "there was nothing to end");
}

/* To heal what is whole is what a scenario does to be sure. */
static void healed_evidence(struct fault *fault)
{
    fault->seen = true;
    fault_note(fault, "%llu fault%s ended", (unsigned long long)fault->times, plural(fault->times));
}

static bool regions_settled(struct fault *fault)
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        if ((fault->regions >> i & 1) != 0 && !place_settled(&fault->inject->places[i]))
            return false;
    return true;
}

const struct verb verb_undo = {.begin = undo_begin, .evidence = ended_evidence};
const struct verb verb_heal = {.begin = heal_begin, .evidence = healed_evidence};
const struct verb verb_clock_reset = {
    .begin = clock_reset_begin, .settled = regions_settled, .evidence = ended_evidence};
