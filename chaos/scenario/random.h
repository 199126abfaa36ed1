/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_RANDOM_H
#define SCENARIO_RANDOM_H

/* Draws the faults of the phases that have a random part: which, on whom, when, for how long. The
 * same scenario and seed give the same faults, and every drawn fault ends within its phase, by
 * itself. Each phase has a generator of its own, so that a change to one leaves the others alone.
 */

#include "chaos/scenario/scenario.h"

/* Whether a random phase may ask for the verb: not for what only ends others, nor in an eventual
 * cluster for what needs a leader. */
bool random_can_draw(enum scenario_verb verb, bool strong);
/* Adds the drawn faults to the phases' own; those of an earlier call go. */
void random_expand(struct scenario *scenario, uint64_t seed);

#endif
