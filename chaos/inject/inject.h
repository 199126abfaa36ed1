/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INJECT_INJECT_H
#define INJECT_INJECT_H

/* Faults on a live cluster: each verb of a scenario begun, watched for its effect, and undone. What
 * is to be undone is also written to a file, so that the next run of the harness can clean up what
 * a crash of this one has left (stopped processes, a full disk's filler). heal-all undoes
 * everything, any number of times.
 *
 * A fault proves itself: connections that a cut has reset, bytes that a black hole holds, calls of
 * the disk that failed, an offset read back from the Region. One that shows nothing by its end is
 * `ineffective`, and fails the run. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/live/cluster.h"
#include "chaos/run/outcome.h"
#include "chaos/scenario/scenario.h"
#include "net/loop.h"

struct inject;

struct inject_config {
    struct loop *loop;
    struct cluster *cluster; /* its sites are the scenario's Regions, in order of place */
    const struct scenario *scenario;
    struct outcome *outcome; /* faults and events go there */
    const char *journal;     /* path of the file with what is to be undone */
    uint64_t seed;
    uint64_t (*leaders)(void *context); /* bits: Regions that lead a group now */
    uint8_t (*leader_of)(void *context, const char *table); /* NULL: of most groups */
    void *context;
};

/* Between cluster_init and cluster_start: gives links the shapes that the scenario says, and, if
 * the scenario has faults of the disk, each Region the shim (chaos/shim/) that they need. */
struct inject *inject_new(const struct inject_config *config);
/* Ends what holds, without waiting. Before cluster_deinit; the processes may have ended before. */
void inject_free(struct inject *inject);
/* Whether any fault of it, drawn or not, needs the shim. */
bool inject_needs_disk(const struct scenario *scenario);
/* Begins one; it ends by itself after for_ns. Whatever happens is in outcome->faults. */
void inject_begin(struct inject *inject, const struct scenario_fault *fault);
void inject_undo(struct inject *inject, const char *id);
/* Ends all, also what somebody else has done to links and Regions by the control API, which is then
 * noted as an event. done once nothing holds any more and every Region that should run does, or the
 * timeout is over.
 */
void inject_heal(struct inject *inject, uint64_t timeout_ns,
                 void (*done)(void *context, bool good, const char *error), void *context);
/* Its process serves: before that is noted as an event. Notes in the outcome what the Region has
 * lost, if it came back with less than it had. */
void inject_serves(struct inject *inject, uint8_t region);
/* How many hold, those included that somebody else has brought about by the control API. */
uint32_t inject_active(struct inject *inject);
/* Undoes what the journal of an earlier run names. Returns how many; -1: it cannot be read. */
int inject_recover(const char *journal, struct buf *error);

#endif
