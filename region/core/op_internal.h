/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_OP_INTERNAL_H
#define REGION_OP_INTERNAL_H

/* Shared by plan.c, execute.c, query.c and capacity.c; nobody else includes it. */

#include "region/core/op.h"

/* Checks an item of just the key attributes against the schema; on success appends the row key.
 * NULL or AWS's message. */
const char *op_key_check(const struct op *op, const struct key_schema *schema,
                         struct bytes attributes, struct buf *row_key);
/* The key attributes of a whole item, as an item in the arena. */
struct bytes op_key_of_item(struct op *op, const struct key_schema *schema, struct bytes item);

/* query.c: turns key condition, segment and start key into op->range. */
bool op_plan_range(struct op *op, const struct table *table);

/* capacity.c. One entry per table named, made by op_plan. */
void capacity_prepare(struct op *op);
void capacity_add(struct op *op, uint32_t group, uint64_t half_units);
/* A read of so many bytes, in half units: 4 KB each, twice that when consistent, never none. */
uint64_t capacity_read(uint64_t bytes, bool consistent);
/* A write whose larger image has so many bytes: 1 KB a unit, never none. */
uint64_t capacity_write(uint64_t bytes);

#endif
