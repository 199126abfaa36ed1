/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_STRONG_ROWS_H
#define TESTS_STRONG_ROWS_H

/* Whether what a group keeps is the same. For cmocka programs, after their includes. */

#include "witness/consensus.h"

static inline void assert_hard_equal(const struct consensus_hard *a, const struct consensus_hard *b)
{
    assert_int_equal(a->term, b->term);
    assert_int_equal(a->voted_for, b->voted_for);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->boot, b->boot);
    assert_int_equal(a->standing, b->standing);
    assert_int_equal(a->recover_upto, b->recover_upto);
}

static inline void assert_entry_equal(const struct consensus_entry *a,
                                      const struct consensus_entry *b)
{
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->term, b->term);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->origin, b->origin);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->seq, b->seq);
    assert_true(bytes_equal(a->payload, b->payload));
}

#endif
