/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_RECOUNT_H
#define RUN_RECOUNT_H

/* The RPO as the Regions themselves count it, without the help of any client: the data that a
 * Region lost with its disk was kept aside by inject; it is opened once more, by a Region process
 * that reaches nobody, which tells how long its own logs were; and the others have told, while it
 * was dead, how far they had them. Whatever is beyond that was lost. It counts what was durable, so
 * also what was never acknowledged, because the Region died first. */

#include <stdbool.h>

#include "chaos/live/cluster.h"
#include "chaos/run/watch.h"

struct recount;

/* count: UINT64_MAX if it cannot be told, and then error says why. Not from within this call. */
typedef void recount_done(void *context, uint64_t count, const char *error);

/* Of the Region at this place. */
struct recount *recount_begin(struct cluster *cluster, const struct watch *watch, uint8_t dead,
                              recount_done *done, void *context);
/* Ends its process, which is told as ever. */
void recount_stop(struct recount *recount);
/* Whether it has been told; also of NULL. */
bool recount_is_over(const struct recount *recount);
/* Only when it is over. */
void recount_free(struct recount *recount);

#endif
