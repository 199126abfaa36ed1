/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_EVENTUAL_H
#define SIM_EVENTUAL_H

/* One simulated run of an eventual global table: two to four regions, clients that write and read
 * few keys everywhere, a drawn plan of faults, then healing. In some runs disks are lost, several
 * of them, also that of a Region from which another is just being filled again. Judged all the
 * while and at the end:
 *
 *   acknowledged is kept     a write that was answered is durable in its Region when it is answered
 *   reads are committed      a read shows nothing that is not durable, and never less than the
 *                            reader's own Region had acknowledged before it, on this disk
 *   convergence              after healing every replica holds, for every key, the greatest version
 *                            that any disk has had since it was new; only what no disk has any more
 *                            is lost, and counted
 *   the ledger is true       it names only writes that were thrown away unseen, with their images,
 *                            and accounts for every one
 *   logs                     are not cut below what a member still needs
 *   tombstones               go in the end, and no deleted item comes back
 *   progress                 all of this within a bounded time after healing */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/sim/replay.h"
#include "conflict/base/bytes.h"

struct sim_verdict {
    const char *violation; /* NULL: ok. Static text */
    struct buf
        detail;    /* the caller's: what was expected and what was found; the plan; the options */
    uint64_t hash; /* of everything that happened */
    uint64_t events, writes_acknowledged, writes_unknown, reads, conflicts, crashes, snapshots;
    uint64_t disks_lost, writes_lost; /* writes: of those disks, and on no other */
    uint64_t virtual_ns;
    struct sim_told told;
};

/* trace: every core's trace lines go to stderr. */
void sim_eventual_replay(const struct sim_replay *replay, struct sim_verdict *ret);
/* The whole of a seed. */
void sim_eventual_run(uint64_t seed, bool trace, struct sim_verdict *ret);

#endif
