/* SPDX-License-Identifier: Apache-2.0 */
/* stop_if looks at the last second, ten times in it. A limit is broken when that has been so for as
 * long as the scenario asks, without a break; with nothing to look at there is none. */

#include "chaos/run/measure.h"
#include "chaos/run/run_internal.h"

const struct scenario_expect *guard_tick(struct guard *guard, const struct outcome *outcome,
                                         uint64_t now_ns)
{
    const struct scenario_expects *all = &outcome->scenario->stop_if;
    const struct measure_span span = {now_ns > RUN_SECOND_NS ? now_ns - RUN_SECOND_NS : 0, now_ns};
    for (uint32_t i = 0; i < all->count; i++) {
        double actual;
        bool broken = measure_live(outcome, &all->at[i], span, &actual) &&
                      scenario_expect_holds(&all->at[i], actual);
        if (!broken)
            guard->since_ns[i] = 0;
        else if (guard->since_ns[i] == 0)
            guard->since_ns[i] = now_ns;
        if (broken && now_ns - guard->since_ns[i] >= all->at[i].for_ns)
            return &all->at[i];
    }
    return NULL;
}
