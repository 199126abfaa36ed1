/* SPDX-License-Identifier: Apache-2.0 */
/* What the console of a run's cluster shows of the run: the faults that hold just now. */

#include <jansson.h>

#include "chaos/run/run_internal.h"

static json_t *fault_of(const struct run *run, const struct outcome_fault *fault)
{
    const struct outcome *outcome = &run->outcome;
    uint64_t since_ms = (fault->from_ns - outcome->began_ns) / RUN_MS_NS + outcome->began_wall_ms;
    return json_pack("{s:s, s:s, s:s, s:I, s:s}", "id", fault->id, "verb",
                     scenario_verb_info((enum scenario_verb)fault->verb)->name, "target",
                     fault->target == NULL ? "" : fault->target, "since_ms", (json_int_t)since_ms,
                     "evidence", fault->evidence == NULL ? "" : fault->evidence);
}

static json_t *faults(void *context)
{
    const struct run *run = context;
    json_t *all = json_array();
    for (uint32_t i = 0; i < run->outcome.fault_count; i++) {
        const struct outcome_fault *fault = &run->outcome.faults[i];
        if (fault->to_ns == 0 && !fault->refused)
            json_array_append_new(all, fault_of(run, fault));
    }
    return all;
}

void told_init(struct run *run)
{
    run->told = (struct control_run){faults, run};
    run->control->run = &run->told;
}
