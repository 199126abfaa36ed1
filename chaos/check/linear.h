/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_LINEAR_H
#define CHECK_LINEAR_H

/* Is a history of operations on one key linearizable: is there one order of them, each at a moment
 * between its call and its return, that a single item could have gone through? Wing and Gong's
 * search with Lowe's memory of what was tried ("Testing for linearizability", 2017). A history of
 * many keys is linearizable if that of each key is (locality), so each is judged alone.
 *
 * An operation whose outcome is unknown may have happened at any moment after its call, or never.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

enum linear_kind {
    LINEAR_READ,  /* value, present: what was read */
    LINEAR_PUT,   /* argument */
    LINEAR_IF,    /* argument, if the item is expected/expected_present; ok tells whether it was */
    LINEAR_ADD,   /* argument; an absent item counts as 0. value: the sum, if `observed` */
    LINEAR_DELETE /* if `observed`, what it removed is expected/expected_present */
};

struct linear_op {
    enum linear_kind kind;
    uint64_t call, ret; /* call < ret; distinct over the history. UINT64_MAX: unknown outcome */
    int64_t argument, expected, value;
    bool expected_present, present, ok, observed;
    uint64_t name; /* for the report */
};

struct linear_window { /* of time: operations that return from `from` on, called up to `to` */
    uint64_t from, to;
};

enum linear_verdict { LINEAR_OK, LINEAR_VIOLATED, LINEAR_UNKNOWN };

struct linear_budget {
    uint64_t steps_max; /* of the search, and as many again to narrow a violation */
    size_t memory_max;  /* bytes that the search may hold at any time */
};

/* The item is absent at first. Orders ops by call. Beyond the budget the verdict is UNKNOWN. When
 * VIOLATED, *ret is the smallest window that is not linearizable from any value that the item could
 * have had before it. */
enum linear_verdict linear_check_within(struct linear_op *ops, uint32_t count,
                                        const struct linear_budget *budget,
                                        struct linear_window *ret);
/* The same, with any amount of memory. */
enum linear_verdict linear_check(struct linear_op *ops, uint32_t count, uint64_t steps_max,
                                 struct linear_window *ret);
/* The operations that are under way in the window, one a line. */
void linear_print(const struct linear_op *ops, uint32_t count, struct linear_window window,
                  struct buf *to);

#endif
