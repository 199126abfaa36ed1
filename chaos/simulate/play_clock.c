/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, as all faults that are active together want them (chaos/inject/verbs_region.c has the
 * same for processes): the last offset, plus all steps, plus what strobes add now, plus what the
 * last rate has gained. So one that ends leaves the others as they are. */

#include "chaos/simulate/play_internal.h"

static int64_t to_ms(int64_t ns)
{
    return ns / 1000000;
}

/* Whether it began after the one that was found before; in order of the file within an instant. */
static bool is_later(const struct play_fault *fault, const struct play_fault *found)
{
    return found == NULL || fault->told->from_ns >= found->told->from_ns;
}

static void clock_apply(struct play *play, uint32_t node)
{
    struct sim_clock *clock = &play->cluster.nodes[node].clock;
    const struct play_fault *offset = NULL, *rate = NULL;
    int64_t now_ms = (int64_t)(now_of(play) / ms);
    *clock = (struct sim_clock){0};
    for (uint32_t i = 0; i < play->fault_count; i++) {
        const struct play_fault *fault = &play->faults[i];
        const struct scenario_fault *spec = fault->spec;
        if (!fault->active || !(fault->regions >> node & 1))
            continue;
        if (spec->verb == VERB_CLOCK_OFFSET && is_later(fault, offset))
            offset = fault;
        else if (spec->verb == VERB_CLOCK_RATE && is_later(fault, rate))
            rate = fault;
        else if (spec->verb == VERB_CLOCK_STEP || (spec->verb == VERB_CLOCK_STROBE && fault->odd))
            clock->offset_ms += to_ms(spec->offset_ns);
    }
    if (offset)
        clock->offset_ms += to_ms(offset->spec->offset_ns);
    if (!rate)
        return;
    /* A rate counts from the beginning of time, and shall gain only from its own. */
    clock->rate_ppm = rate->spec->ppm;
    int64_t passed_ms = now_ms - (int64_t)(rate->told->from_ns / ms);
    clock->offset_ms += (passed_ms - now_ms) * clock->rate_ppm / 1000000;
}

void play_clocks_apply(struct play *play)
{
    for (uint32_t i = 0; i < play->cluster.node_count; i++)
        clock_apply(play, i);
}
