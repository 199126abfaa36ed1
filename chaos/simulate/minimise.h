/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMULATE_MINIMISE_H
#define SIMULATE_MINIMISE_H

/* Makes a failure smaller: first fewer faults, then fewer operations, as long as the run fails in
 * the same way. Leaving anything out shifts what chance has in store for the rest, so a smaller run
 * is tried with a few lucks before it is given up. */

#include "chaos/simulate/trial.h"

/* *replay fails as `failed` tells; it is made smaller in place, and *failed becomes that run. */
void minimise(const struct subject *subject, struct sim_replay *replay, struct trial *failed);
/* The same once more with its messages kept up to the violation. */
void minimise_log(const struct subject *subject, const struct sim_replay *replay,
                  struct trial *failed);

#endif
