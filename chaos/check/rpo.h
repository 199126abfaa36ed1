/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_RPO_H
#define CHECK_RPO_H

/* RPO: what lost disks took, read off the history alone. A write is lost if it was acknowledged and
 * the item's last value (of its `final` READs and SCANs) neither is it nor descends from it. Why:
 *
 *  - unreplicated: the Region that acknowledged it lost its data since, and no other that kept its
 *    own had it: none showed it or what was built upon it, and no other's ledger names either;
 *  - lww: a concurrent write prevailed, or the write's own clock was behind;
 *  - other: neither, which is always a bug.
 *
 * So a whole run of writes is lost when the last of them is, where chain.h counts one lost update.
 * INFO writes are told apart and never lost. Sums (ADD) name no writer: see counter.h.
 *
 * A Region may lose its data more than once. What a loss took was acknowledged since the one
 * before, so the age of a write is the time to the next loss of its Region. */

#include <stdbool.h>

#include "chaos/check/history.h"
#include "chaos/check/ledgers.h"
#include "chaos/check/verdict.h"

#define RPO_NEVER UINT64_MAX

enum rpo_class { RPO_UNREPLICATED, RPO_LWW, RPO_OTHER };

struct rpo_loss {
    uint32_t op;
    enum rpo_class class;
    uint64_t age_ns; /* unreplicated: how long ago it was acknowledged, when it was lost */
};

struct rpo_losses { /* by return_ns */
    struct rpo_loss *at;
    uint32_t count, cap;
};
void rpo_losses_deinit(struct rpo_losses *losses);

struct rpo_death { /* a Region lost its data, or will not come back */
    uint64_t at_ns;
    uint8_t region;
};

struct rpo_options {
    const struct rpo_death *deaths; /* in any order */
    uint32_t death_count;
    /* The ledgers of all that are alive. Without them, what another region had and lost before it
     * showed it to anyone counts as unreplicated. */
    const struct ledgers_row *rows;
    uint32_t row_count;
    bool strong;   /* every class must be empty; else only `other` */
    bool all_gone; /* nothing is left of the tables, so every acknowledged write is unreplicated */
};

/* The age of a write when its Region lost it; 0 if it was still under way, or was not lost so. */
uint64_t rpo_age_ns(const struct rpo_options *options, const struct history_op *write);

/* Whether the Region has lost its data since then. */
bool rpo_was_lost_since(const struct rpo_options *options, uint8_t region, uint64_t ns);

/* Figures: acked, info, rpo_count, rpo_ns, rpo_bytes (of the unreplicated), lost_lww, lost_other,
 * unjudged (acked, on items that no final look shows). WRONG if one is lost that must not be;
 * UNKNOWN if some are unjudged. ret_losses may be NULL. */
void check_rpo(const struct history *history, const struct rpo_options *options,
               struct rpo_losses *ret_losses, struct verdict *ret);

#endif
