/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMULATE_PLAY_H
#define SIMULATE_PLAY_H

/* A scenario file in virtual time: the same cluster, load, faults and phases as on real processes,
 * but on the simulator's network, disks and clocks, and the same judge. Nothing waits, so a quarter
 * of an hour takes seconds, and a seed is the whole run. What there is no process or file for is
 * refused by its name before anything starts. */

#include <stdbool.h>

#include "chaos/run/outcome.h"
#include "chaos/sim/replay.h"

struct play_figures {
    uint64_t hash, events, virtual_ns;
    struct sim_told told;
};

/* Whether a scenario can be played, its drawn faults included: each line of error says what cannot
 * be, by line and name. */
bool play_accepts(const struct scenario *scenario, struct buf *error);
/* Plays it by the replay's seed and judges it. Faults are numbered in the order of the file, those
 * beyond 63 with the last; what only undoes others has no number, and always happens. The outcome
 * is initialised; scenario and outcome stay the caller's. */
void play_scenario(const struct scenario *scenario, const struct sim_replay *replay,
                   struct outcome *outcome, struct play_figures *ret);

#endif
