/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_CHAIN_H
#define CHECK_CHAIN_H

/* Exact and cheap: when values are unique and every write tells the value that it replaced, the
 * order of an item's writes needs no search. It is judged as a register, in O(n log n) and without
 * "unknown"; in eventual mode the same chains show every lost update without the servers' help.
 *
 * Judges the items that see nothing but PUT, PUT_IF, READ and DELETE; others are not its business.
 * Deletes leave absences that do not name their writer: an item that has them is judged as far as
 * possible, and is UNKNOWN in strong mode if nothing was found wrong.
 *
 * Lost updates are exact all the same, as long as every write is answered. Whoever wrote over an
 * absence had seen that nothing was there, whichever deletion had done it, so one absence is as
 * good as another; and a deletion is lost only where another write over the same value (or over one
 * that led to it) prevailed; it ends a run of writes, and what came after counts by itself. A value
 * is lost if nobody was told to have replaced or deleted it, and it is not the last. Only a write
 * that was never answered and may have replaced it leaves that open: such a value is not counted
 * but told as `unjudged`. */

#include <stdbool.h>

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

struct chain_options {
    /* Two writes over one value are wrong in strong mode, and so is any order against real time. In
     * eventual mode they are counted and told, and only what is wrong everywhere is: a value that
     * nobody wrote, that was refused, or that was seen before it was sent. */
    bool eventual;
    bool weak_reads; /* strong mode: judge reads that did not ask for consistency as well */
};

/* A lost update: `loser` was acknowledged or seen, and the item's last value neither is it nor was
 * written over it. `rival` was written over the same value (`base`) as loser or as a write that
 * loser builds upon, and prevailed. */
struct chain_fork {
    uint32_t loser, rival, base; /* operations; base: CHAIN_ABSENT if there was no item */
    bool late; /* rival is what loser builds upon, and was the last value all the same */
    bool open; /* so many are lost, but nobody can tell whether this is one of them */
};
#define CHAIN_ABSENT UINT32_MAX

struct chain_forks { /* by item */
    struct chain_fork *at;
    uint32_t count, cap;
};
void chain_forks_deinit(struct chain_forks *forks);

/* Figures: items, operations, segments, forks (lost updates, but for the late ones), late, unjudged
 * (eventual: values that are lost or not, beside those), wrong_items. ret_forks may be NULL. */
void check_chain(const struct history *history, const struct chain_options *options,
                 struct chain_forks *ret_forks, struct verdict *ret);

#endif
