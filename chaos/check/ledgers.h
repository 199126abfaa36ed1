/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_LEDGERS_H
#define CHECK_LEDGERS_H

/* The regions' ledgers of lost writes against what clients saw, both ways: every lost update that
 * the chains show (chain.h) has a row, and every row tells of two writes that were made and did
 * lose one to the other, the same one in every Region. */

#include <stdbool.h>

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

struct ledgers_row { /* the same pair may come from several regions, in one row or in many */
    /* The values that they put. 0: a deletion, or one that the caller cannot read. */
    uint64_t winner, loser;
    uint64_t regions; /* bits: whose ledgers it is from; 0: nobody knows */
    uint32_t key;
    uint16_t table;
    bool late; /* kind LATE; else CONCURRENT */
};

struct ledgers_options {
    const struct ledgers_row *rows;
    uint32_t row_count;
    /* Regions, as bits, that were lost with their ledger and what they had not shipped. No row is
     * missed for a lost update of theirs that no other region saw, nor for one whose rival came
     * through them, as the two may have met there. */
    uint64_t dead_regions;
};

/* Figures: rows, pairs (distinct), forks, missing (forks without a row), excused (those that
 * dead_regions explain), false_rows, unjudged (pairs of which nobody can tell whether one had seen
 * the other: with a write of unknown outcome, or with absences between them), open (writes without
 * a row, of which nobody can tell whether they need one: whether they are lost, or, of a deletion,
 * whether something was written over it that is in a row). */
void check_ledgers(const struct history *history, const struct ledgers_options *options,
                   struct verdict *ret);

#endif
