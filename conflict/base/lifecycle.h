/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LIFECYCLE_H
#define BASE_LIFECYCLE_H

/* A lifecycle is a table: the states by name and, for each, the states that may follow it. The
 * table is the diagram, and every move is checked against it, so a transition nobody thought of
 * stops the process where it happens instead of corrupting what comes later. At most 32 states. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/trace.h"

struct lifecycle_state {
    const char *name;
    uint32_t next; /* set of lifecycle_bit(state) */
};

struct lifecycle_table {
    const char *name; /* of the thing that lives: "conn" */
    const struct lifecycle_state *states;
    uint32_t count;
};

struct lifecycle {
    const struct lifecycle_table *table;
    const struct trace *trace; /* told of every move; may be NULL */
    uint32_t state;
};

#define lifecycle_bit(state) (1u << (state))

/* Starts in state 0. */
void lifecycle_init(struct lifecycle *life, const struct lifecycle_table *table,
                    const struct trace *trace);
/* Aborts when the table does not allow it. */
void lifecycle_move(struct lifecycle *life, uint32_t to);
bool lifecycle_may(const struct lifecycle *life, uint32_t to);
const char *lifecycle_name(const struct lifecycle *life);

#endif
