/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMULATE_BATCH_H
#define SIMULATE_BATCH_H

/* A range of seeds of one subject: how fast they ran, what they came by, and of each that failed
 * the smallest run that still does. */

#include <stdbool.h>

#include <jansson.h>

#include "chaos/simulate/trial.h"

struct batch_options {
    uint64_t first, seeds;
    uint64_t faults, luck, operations_max; /* of a replay; else as in sim_replay_whole */
    bool whole;                            /* it is no replay: failures are made smaller */
    bool trace;
    bool twice;          /* each seed must come to the same end again */
    bool quiet;          /* nothing is printed, as JSON will be */
    const char *diagram; /* file; NULL: none */
    const char *report;  /* file of a scenario's page; NULL: none */
};

/* Returns an exit code: 0 all is well, 1 a violation, 2 the diagram or the page can't be
 * written; of a scenario
 * what enum outcome_exit says. Adds what it found to the array. */
int batch_run(const struct subject *subject, const struct batch_options *options, json_t *to);

#endif
