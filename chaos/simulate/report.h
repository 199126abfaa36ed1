/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMULATE_REPORT_H
#define SIMULATE_REPORT_H

/* The page that `tidemark chaos run` makes of a run, of a scenario that was played. Nothing lies
 * beside it, for the command that plays it again brings back all of it. */

#include <stdbool.h>

#include "chaos/run/outcome.h"

/* Writes the page of a judged outcome; file is the scenario's, or the name of a shipped one. False:
 * it can't be written, and standard error says so. */
bool simulate_report(struct outcome *outcome, const char *file, const char *again,
                     const char *path);

#endif
