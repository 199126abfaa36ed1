/* SPDX-License-Identifier: Apache-2.0 */
/* The winner is the greater version and nothing else; what the writers had seen of each other only
 * says what to call it.
 *
 *                      loser's write was          loser's writer had
 *                      seen by the winner's?      seen the winner's?
 *      SUCCESSION      yes                        (cannot be)
 *      LATE            no                         yes
 *      CONCURRENT      no                         no
 */

#include "conflict/resolve.h"

#include <stddef.h>

#include "conflict/base/plant.h"

bool resolve_seen(const struct record *a, const struct record *b)
{
    if (a->version.origin == b->version.origin && a->version.seq <= b->version.seq &&
        version_epoch(a->version.seq) == version_epoch(b->version.seq))
        return true;
    return vv_knows(&b->dep, a->version.origin, a->version.seq);
}

/* Positive when the incoming record wins. */
static int contest(const struct record *stored, const struct record *incoming)
{
    if (planted(PLANT_SKIP_TIE_BREAK) && incoming->version.hlc == stored->version.hlc &&
        incoming->version.origin != stored->version.origin)
        return -1; /* whoever came first keeps a tie, so replicas differ */
    return version_compare(incoming->version, stored->version);
}

struct resolution resolve(const struct record *stored, const struct record *incoming)
{
    if (!stored)
        return (struct resolution){RESOLVE_INCOMING, RESOLVE_SUCCESSION};
    int order = contest(stored, incoming);
    if (order == 0)
        return (struct resolution){RESOLVE_SAME, RESOLVE_DUPLICATE};
    const struct record *winner = order > 0 ? incoming : stored;
    const struct record *loser = order > 0 ? stored : incoming;
    enum resolve_relation relation = RESOLVE_CONCURRENT;
    if (resolve_seen(loser, winner))
        relation = RESOLVE_SUCCESSION;
    else if (resolve_seen(winner, loser))
        relation = RESOLVE_LATE;
    return (struct resolution){order > 0 ? RESOLVE_INCOMING : RESOLVE_STORED, relation};
}
