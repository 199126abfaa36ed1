/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

/* Virtual time: a heap of events ordered by (time, sequence), one generator, and a running hash of
 * all that happened. One seed draws everything, so a seed is a whole run, and the same seed twice
 * must end in the same hash. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/sim/coverage.h"
#include "conflict/base/bytes.h"
#include "conflict/base/rng.h"

struct sim_event {
    uint64_t at_ns;
    uint64_t sequence; /* of scheduling: decides between events of one instant */
    int kind;          /* the owner's */
    uint32_t node, other;
    uint64_t generation; /* the owner's: of the process or stream it was meant for */
    uint64_t id;
    struct bytes bytes; /* owned copy */
};

struct sim {
    uint64_t now_ns;
    uint64_t next_sequence;
    uint64_t event_count; /* run so far */
    struct rng rng;
    uint64_t hash;
    uint64_t sometimes;  /* bits: what this run has come by */
    struct sim_log *log; /* NULL: nobody draws this run */
    struct sim_event *heap;
    uint32_t heap_len, heap_cap;
};

void sim_init(struct sim *sim, uint64_t seed);
void sim_deinit(struct sim *sim);
/* at_ns is not before now; event->at_ns and sequence are set here; event->bytes is copied. */
void sim_schedule(struct sim *sim, uint64_t at_ns, const struct sim_event *event);
/* Takes the next event and moves time to it. False when there is none at or before until_ns; time
 * is then until_ns. The event's bytes are the caller's: free with sim_event_free. */
bool sim_next(struct sim *sim, uint64_t until_ns, struct sim_event *ret);
void sim_event_free(struct sim_event *event);
/* Mixes bytes or a number into the hash of the run. */
void sim_note(struct sim *sim, const void *at, size_t len);
void sim_note_u64(struct sim *sim, uint64_t value);

#endif
