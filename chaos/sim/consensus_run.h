/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CONSENSUS_RUN_H
#define SIM_CONSENSUS_RUN_H

/* One simulated run of a strong group: three data members, or two and a witness; clients in every
 * Region on few keys; a drawn plan of faults; then healing. After every event the rules of the
 * protocol are checked on the inside of all members (consensus_ghost.c says which); at the end,
 * that every key's history is linearizable, that everything works again within a bounded time, and
 * that it does so too with one link cut or one member gone. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/sim/replay.h"
#include "conflict/base/bytes.h"

struct sim_consensus_verdict {
    const char *violation; /* NULL: ok. Static text */
    struct buf detail;     /* the caller's */
    uint64_t hash;
    uint64_t events, committed, failed, conflicts, refused, unknown, reads;
    uint64_t elections, crashes, snapshots, recoveries, rebuilds, quiet;
    uint64_t checker_unknown; /* keys whose history the search could not judge within its bound */
    uint64_t virtual_ns;
    struct sim_told told;
};

void sim_consensus_replay(const struct sim_replay *replay, struct sim_consensus_verdict *ret);
/* The whole of a seed. trace: every member's trace lines go to stderr. */
void sim_consensus_run(uint64_t seed, bool trace, struct sim_consensus_verdict *ret);

#endif
