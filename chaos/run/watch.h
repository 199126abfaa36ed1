/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_WATCH_H
#define RUN_WATCH_H

/* What the Regions say of themselves while a run goes on: each is asked for its status every 100
 * ms, never twice at a time. From it come the samples of an outcome, the marks of leaders, and the
 * answer to "have they all the same by now?". Only answers that were asked for after `since` count
 * there, for an old one may be of a better time. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/live/cluster.h"
#include "chaos/run/outcome.h"

struct watch;

struct watch *watch_new(struct cluster *cluster, struct outcome *outcome);
void watch_free(struct watch *watch);
/* Every 100 ms: notes a sample and asks again. */
void watch_tick(struct watch *watch, uint64_t now_ns);
/* Whether every table of every data Region is there, has nothing to send and as many items as
 * elsewhere, in two answers of each running; and strong ones are caught up and led. */
bool watch_converged(const struct watch *watch, uint64_t since_ns);
/* Bits of the data Regions that run and have no table any more, though they had some. */
uint64_t watch_gone(const struct watch *watch, uint64_t since_ns);
/* Whether every member of every group has all entries applied, and serves. */
bool watch_caught_up(const struct watch *watch, uint64_t since_ns);
/* Whether every group has a leader that serves, and one only. */
bool watch_led(const struct watch *watch, uint64_t since_ns);
/* How many tombstones the data Regions hold together; UINT64_MAX: one has not said. */
uint64_t watch_tombstones(const struct watch *watch, uint64_t since_ns);
/* The place in the Region's own log, of a partition of a table, up to which some other Region had
 * it when it was last known dead; 0: nothing is known. */
uint64_t watch_known_of(const struct watch *watch, uint8_t dead, const char *table,
                        uint64_t partition);
/* Regions that lead, as bits. */
uint64_t watch_leaders(const struct watch *watch);
/* Who leads the table, or most groups (NULL); SCENARIO_REGION_NONE. */
uint8_t watch_leader_of(const struct watch *watch, const char *table);

#endif
