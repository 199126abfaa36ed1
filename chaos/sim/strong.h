/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_STRONG_H
#define SIM_STRONG_H

/* One simulated run of a strong table in whole Regions: three data members, or two and a witness,
 * which a full Region holds or one that is nothing else. UpdateTable makes the table strong while
 * faults may already hit; clients in every data Region; a drawn plan of faults; healing; in some
 * runs the table is dissolved, and made strong once more. The consensus alone is judged by
 * consensus_run.h; this judges its owner, the region core, by what is on the disks and what clients
 * are told:
 *
 *   durable on two        before an entry's item is written, and before a client is told of it
 *   applied index         in a store it never moves back
 *   one log               members write the same item for the same index
 *   linearizable          every key's history, from the first request to the last
 *   not done is not done  a refused write is nowhere
 *   committed reads       an eventual read shows an item that was once committed, whole
 *   equal                 healed members hold the same items at the same index, and count them
 * right progress              requests are answered, groups serve, the control plane finishes */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/sim/replay.h"
#include "conflict/base/bytes.h"

struct sim_strong_verdict {
    const char *violation; /* NULL: ok. Static text */
    struct buf detail;     /* the caller's */
    uint64_t hash;
    uint64_t events, writes, reads, failed, conflicts, refused, unknown;
    uint64_t crashes, disks_lost, logs_damaged, snapshots, dissolved, made_again;
    uint64_t checker_unknown; /* keys whose history the search could not judge within its bound */
    uint64_t virtual_ns;
    struct sim_told told;
};

void sim_strong_replay(const struct sim_replay *replay, struct sim_strong_verdict *ret);
/* The whole of a seed. trace: every core's trace lines go to stderr. */
void sim_strong_run(uint64_t seed, bool trace, struct sim_strong_verdict *ret);

#endif
