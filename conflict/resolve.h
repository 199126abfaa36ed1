/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFLICT_RESOLVE_H
#define CONFLICT_RESOLVE_H

/* Last writer wins, on whole items: of two records of one key the one with the later version is
 * kept everywhere, so the outcome does not depend on the order of arrival (join of a total order:
 * commutative, associative, idempotent). Beside the winner we say how the two were related, which
 * is what the lost-write ledger records and AWS shows nobody. */

#include "conflict/record.h"

enum resolve_winner { RESOLVE_INCOMING, RESOLVE_STORED, RESOLVE_SAME };

enum resolve_relation {
    RESOLVE_DUPLICATE,  /* the same version */
    RESOLVE_SUCCESSION, /* one writer had seen the other's write, and it wins: nothing is lost */
    RESOLVE_CONCURRENT, /* neither writer had seen the other's: the loser is a lost write */
    RESOLVE_LATE        /* a write that had seen the other loses to it all the same, by its clock
                           (plain wall clocks only): a lost write too */
};

struct resolution {
    enum resolve_winner winner;
    enum resolve_relation relation;
};

/* stored is NULL when the key has neither item nor tombstone. */
struct resolution resolve(const struct record *stored, const struct record *incoming);
/* Whether b's writer had seen a (a's version is covered by b's dep, or an earlier one of the same
 * origin and epoch). */
bool resolve_seen(const struct record *a, const struct record *b);

#endif
