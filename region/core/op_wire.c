/* SPDX-License-Identifier: Apache-2.0 */
/* One write as bytes:
 *
 *   format u8 = 1 | kind u8 | row key, length-prefixed | flags u8
 *     | attributes, length-prefixed | condition | update
 *
 * The row key could be worked out of the attributes, but stands in front, so that whoever orders
 * writes by key need not read the rest. The decoder works it out all the same, through op_plan: a
 * write is done to the item that its attributes name, or not at all. */

#include "region/core/op_wire.h"

#include "conflict/base/check.h"

enum { WIRE_FORMAT = 1 };
enum wire_kind { WIRE_PUT = 1, WIRE_DELETE, WIRE_UPDATE };
enum { FLAG_CONDITION = 1 << 0, FLAG_UPDATE = 1 << 1, FLAGS_ALL = FLAG_CONDITION | FLAG_UPDATE };
/* Of all that is no key, attributes, condition or update; and room for small ones of those. */
enum { RESERVE_LEN = 256 };

static enum wire_kind wire_kind_of(const struct op *op, const struct op_key *key)
{
    bool batch = op->kind == OP_BATCH_WRITE_ITEM;
    check(op_shape(op->kind) == OP_SHAPE_WRITE);
    if (op->kind == OP_UPDATE_ITEM)
        return WIRE_UPDATE;
    return op->kind == OP_PUT_ITEM || (batch && key->put) ? WIRE_PUT : WIRE_DELETE;
}

bool op_wire_encode(const struct op *op, uint32_t index, struct buf *to)
{
    check(index < op->key_count);
    const struct op_key *key = &op->keys[index];
    check(key->key.len > 0);
    size_t start = to->len;
    buf_reserve(to, RESERVE_LEN + key->key.len + key->attributes.len);
    buf_append_u8(to, WIRE_FORMAT);
    buf_append_u8(to, (uint8_t)wire_kind_of(op, key));
    buf_append_prefixed(to, key->key);
    buf_append_u8(to,
                  (uint8_t)((op->condition ? FLAG_CONDITION : 0) | (op->update ? FLAG_UPDATE : 0)));
    buf_append_prefixed(to, key->attributes);
    bool fits = (!op->condition || expr_condition_encode(op->condition, to)) &&
                (!op->update || expr_update_encode(op->update, to)) &&
                to->len - start <= OP_WIRE_BYTES_MAX;
    if (!fits)
        to->len = start;
    return fits;
}

static bool take_head(struct bytes *from, uint8_t *ret_kind, struct bytes *ret_key)
{
    uint8_t format;
    return bytes_take_u8(from, &format) && format == WIRE_FORMAT && bytes_take_u8(from, ret_kind) &&
           *ret_kind >= WIRE_PUT && *ret_kind <= WIRE_UPDATE && bytes_take_prefixed(from, ret_key);
}

bool op_wire_key(struct bytes from, struct bytes *ret)
{
    uint8_t kind;
    return take_head(&from, &kind, ret);
}

static const struct table *find_given(void *context, struct bytes name)
{
    (void)name;
    return *(const struct table *const *)context;
}

static enum op_kind op_kind_of(enum wire_kind kind)
{
    switch (kind) {
    case WIRE_PUT:
        return OP_PUT_ITEM;
    case WIRE_DELETE:
        return OP_DELETE_ITEM;
    case WIRE_UPDATE:
        return OP_UPDATE_ITEM;
    }
    unreachable();
}

static bool take_trees(struct bytes *from, uint8_t flags, struct op *op)
{
    if ((flags & FLAG_CONDITION) && !(op->condition = expr_condition_decode(from, op->arena)))
        return false;
    if ((flags & FLAG_UPDATE) && !(op->update = expr_update_decode(from, op->arena)))
        return false;
    return from->len == 0;
}

bool op_wire_decode(struct bytes from, const struct table *table, struct arena *arena,
                    struct op *ret)
{
    uint8_t kind, flags;
    struct bytes key, attributes;
    if (from.len > OP_WIRE_BYTES_MAX)
        return false;
    struct bytes rest = bytes_copy(arena, from);
    if (!take_head(&rest, &kind, &key) || !bytes_take_u8(&rest, &flags) || flags > FLAGS_ALL ||
        (kind != WIRE_UPDATE && (flags & FLAG_UPDATE)) ||
        !bytes_take_prefixed(&rest, &attributes) || !item_check(attributes) ||
        item_size(attributes) > ITEM_SIZE_MAX)
        return false;
    struct op op = {.kind = op_kind_of((enum wire_kind)kind),
                    .arena = arena,
                    .table_name = bytes_text(table->name),
                    .keys = arena_new(arena, struct op_key),
                    .key_count = 1};
    op.keys[0].table_name = op.table_name;
    op.keys[0].attributes = attributes;
    if (!take_trees(&rest, flags, &op) || !op_plan(&op, find_given, &table) ||
        !bytes_equal(op.keys[0].key, key))
        return false;
    *ret = op;
    return true;
}
