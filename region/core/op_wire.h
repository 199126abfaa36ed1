/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_OP_WIRE_H
#define REGION_OP_WIRE_H

/* A write of one key on its way to the leader of its group: the key, what to put or how to update,
 * and the condition, as checked trees, so that the leader parses no text. What the client is told
 * stays behind: the origin executes the same operation again on the same image. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "region/core/op.h"

/* An item, the values of its condition and update, and their trees. */
enum { OP_WIRE_BYTES_MAX = 1024 * 1024 + 512 * 1024 };

/* Appends keys[index] of a write that op_plan has passed. A key of BatchWriteItem becomes a put or
 * delete of its own. False, and nothing is appended: it is larger than OP_WIRE_BYTES_MAX, or its
 * trees have more nodes than a decoder takes (only AttributeUpdates and Expected can be so long).
 */
bool op_wire_encode(const struct op *op, uint32_t index, struct buf *to);
/* The row key alone, without looking at the rest: a view. False: malformed. */
bool op_wire_key(struct bytes from, struct bytes *ret);
/* Into an op of one key, as op_plan would have left it, for op_execute_key. All of it lives in the
 * arena. False for anything that could not have come from a valid request on this table: trees
 * beyond the language's bounds, values that are none, a row key that is not that of the attributes,
 * an update of a key attribute. */
bool op_wire_decode(struct bytes from, const struct table *table, struct arena *arena,
                    struct op *ret);

/* The trees, in expr_wire.c. False on encode of what is too large. Decoders take from the front,
 * give views into *from, and NULL of what is malformed. */
enum { EXPR_WIRE_NODES_MAX = 64 * 1024 };
bool expr_condition_encode(const struct expr_condition *condition, struct buf *to);
struct expr_condition *expr_condition_decode(struct bytes *from, struct arena *arena);
bool expr_update_encode(const struct expr_update *update, struct buf *to);
struct expr_update *expr_update_decode(struct bytes *from, struct arena *arena);

#endif
