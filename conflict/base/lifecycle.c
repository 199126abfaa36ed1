/* SPDX-License-Identifier: Apache-2.0 */
/* Moves along a table of states; see lifecycle.h for why. */

#include "conflict/base/lifecycle.h"

#include <stdio.h>

#include "conflict/base/check.h"

void lifecycle_init(struct lifecycle *life, const struct lifecycle_table *table,
                    const struct trace *trace)
{
    check(table->count > 0);
    check(table->count <= 32);
    *life = (struct lifecycle){.table = table, .trace = trace};
}

bool lifecycle_may(const struct lifecycle *life, uint32_t to)
{
    return to < life->table->count &&
           (life->table->states[life->state].next & lifecycle_bit(to)) != 0;
}

void lifecycle_move(struct lifecycle *life, uint32_t to)
{
    const struct lifecycle_table *table = life->table;
    check(to < table->count);
    if (!lifecycle_may(life, to)) {
        char move[128];
        snprintf(move, sizeof(move), "%s may not go from %s to %s", table->name,
                 table->states[life->state].name, table->states[to].name);
        check_failed(move, __FILE__, __LINE__);
    }
    trace_emit(life->trace, TRACE_DEBUG, "%s %s -> %s", table->name,
               table->states[life->state].name, table->states[to].name);
    life->state = to;
}

const char *lifecycle_name(const struct lifecycle *life)
{
    return life->table->states[life->state].name;
}
