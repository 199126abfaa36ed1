/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the clients kept the rate that the scenario asks for. Faults keep them from it, and
 * shall; so it is measured while none holds, and only of a run that has next to no such time over
 * all. A machine that is too slow for the load shows there, too. It is a fact beside the verdict.
 */

#include "chaos/run/run_internal.h"

#define ENOUGH_NS (RUN_SECOND_NS / 2)

static void add(struct load_part *part, struct drive_load now, struct drive_load before)
{
    part->due += now.due - before.due;
    part->begun += now.begun - before.begun;
    part->running_ns += now.running_ns - before.running_ns;
}

void load_tick(struct load *load, struct drive_load now, bool calm)
{
    add(&load->all, now, load->last);
    if (calm && load->was_calm)
        add(&load->calm, now, load->last);
    load->was_calm = calm;
    load->last = now;
}

static uint64_t per_second(uint64_t count, uint64_t ns)
{
    return (uint64_t)((double)count * 1e9 / (double)ns + 0.5);
}

void load_conclude(const struct load *load, struct outcome *outcome)
{
    const struct load_part *part = load->calm.running_ns >= ENOUGH_NS ? &load->calm : &load->all;
    double rate = outcome->scenario->workload.rate;
    if (part->running_ns < ENOUGH_NS || part->due == 0 || rate == 0)
        return;
    outcome->asked_per_s = (uint64_t)(rate + 0.5); /* the file's, whoever was to begin them */
    outcome->begun_per_s = per_second(part->begun, part->running_ns);
}
