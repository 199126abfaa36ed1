/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_LEDGER_H
#define RUN_LEDGER_H

/* The Regions' ledgers of lost writes, read page by page at the end of a run into the rows that the
 * checkers know. What the workload did not write is left out. */

#include <stdbool.h>

#include "chaos/drive/drive.h"
#include "chaos/live/cluster.h"
#include "chaos/run/outcome.h"

struct ledger_reading;

/* Of all data Regions that run. done once all have told everything, or one has failed to: then with
 * a reason. Not from within this call. */
struct ledger_reading *ledger_read(struct cluster *cluster, struct drive *drive,
                                   struct outcome *outcome,
                                   void (*done)(void *context, bool good, const char *error),
                                   void *context);
/* Gives up, if it is not done; frees. */
void ledger_free(struct ledger_reading *reading);

#endif
