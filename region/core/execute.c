/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of an operation on keys: from what a key holds now to what it shall hold and what
 * the client is told. `item` is lent for the call, so whatever is kept of it is copied. The strong
 * mode's leader is to call the same function. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/op_internal.h"

static struct bytes keep(struct op *op, const struct buf *from)
{
    return bytes_copy(op->arena, buf_view(from));
}

/* A read's answer: whole, or what the projection leaves of it. */
static struct bytes read_item(struct op *op, const struct expr_projection *projection,
                              struct bytes item)
{
    if (item.len == 0)
        return BYTES_NONE;
    if (!projection)
        return bytes_copy(op->arena, item);
    struct buf to cleanup(buf_deinit);
    buf_init(&to);
    expr_project(projection, item, &to);
    return keep(op, &to);
}

static void execute_get(struct op *op, struct bytes item)
{
    op->result.attributes = read_item(op, op->projection, item);
    if (op->return_capacity != CAPACITY_NONE)
        capacity_add(op, 0, capacity_read(item_size(item), op->consistent_read));
}

static void execute_batch_get(struct op *op, struct op_key *key, struct bytes item)
{
    const struct op_group *group = &op->groups[key->group];
    size_t size = item_size(item);
    if (op->batch_bytes + size > BATCH_GET_BYTES_MAX) {
        key->unprocessed = true;
        return;
    }
    op->batch_bytes += size;
    key->item = read_item(op, group->projection, item);
    capacity_add(op, key->group, capacity_read(size, group->consistent_read));
}

static bool condition_holds(struct op *op, struct bytes item)
{
    if (!op->condition || expr_condition_holds(op->condition, item))
        return true;
    if (op->return_old_on_failure && item.len > 0)
        op->result.error_item = bytes_copy(op->arena, item);
    return op_fail(op, API_CONDITION_FAILED, "The conditional request failed");
}

/* A write that changes nothing makes no stream record, as on AWS, so it is none at all where there
 * is a stream. In a global table it is a write like any other: it is the later one, and another
 * Region may have changed the item meanwhile. */
static void change_to(const struct op_key *key, struct bytes old, struct bytes new,
                      struct op_change *ret)
{
    if (key->table->stream != STREAM_NONE && key->table->mode == TABLE_REGIONAL &&
        bytes_equal(old, new))
        return;
    ret->kind = OP_CHANGE_PUT;
    ret->item = new;
}

static void add_write_capacity(struct op *op, const struct op_key *key, struct bytes old,
                               struct bytes new)
{
    if (op->return_capacity == CAPACITY_NONE)
        return; /* nobody will see it, and a size takes a walk through the item */
    size_t old_size = item_size(old), new_size = item_size(new);
    capacity_add(op, key->group, capacity_write(old_size > new_size ? old_size : new_size));
}

static void execute_put(struct op *op, const struct op_key *key, struct bytes old,
                        struct op_change *ret)
{
    if (!condition_holds(op, old))
        return;
    change_to(key, old, key->attributes, ret);
    add_write_capacity(op, key, old, key->attributes);
    if (op->return_values == RETURN_ALL_OLD && old.len > 0)
        op->result.attributes = bytes_copy(op->arena, old);
}

static void execute_delete(struct op *op, const struct op_key *key, struct bytes old,
                           struct op_change *ret)
{
    if (!condition_holds(op, old))
        return;
    if (old.len > 0)
        ret->kind = OP_CHANGE_DELETE;
    add_write_capacity(op, key, old, BYTES_NONE);
    if (op->return_values == RETURN_ALL_OLD && old.len > 0)
        op->result.attributes = bytes_copy(op->arena, old);
}

static void return_updated(struct op *op, struct bytes old, struct bytes new)
{
    struct bytes from = BYTES_NONE;
    switch (op->return_values) {
    case RETURN_NONE:
        return;
    case RETURN_ALL_OLD:
        if (old.len > 0)
            op->result.attributes = bytes_copy(op->arena, old);
        return;
    case RETURN_ALL_NEW:
        op->result.attributes = new;
        return;
    case RETURN_UPDATED_OLD:
        from = old;
        break;
    case RETURN_UPDATED_NEW:
        from = new;
        break;
    }
    if (!op->update || from.len == 0)
        return;
    struct buf touched cleanup(buf_deinit);
    buf_init(&touched);
    expr_update_touched(op->update, from, &touched);
    if (item_attributes(buf_view(&touched)).len > 0)
        op->result.attributes = keep(op, &touched);
}

static void execute_update(struct op *op, const struct op_key *key, struct bytes old,
                           struct op_change *ret)
{
    if (!condition_holds(op, old))
        return;
    if (op->update && old.len == 0 && !expr_update_creates(op->update)) {
        add_write_capacity(op, key, BYTES_NONE, BYTES_NONE);
        return;
    }
    struct bytes new;
    if (op->update) {
        struct buf to cleanup(buf_deinit);
        buf_init(&to);
        const char *problem = expr_update_apply(op->update, old, key->attributes, op->arena, &to);
        if (problem) {
            op_fail(op, API_VALIDATION, "%s", problem);
            return;
        }
        new = keep(op, &to);
        if (item_size(new) > ITEM_SIZE_MAX) {
            op_fail(op, API_VALIDATION,
                    "Item size to update has exceeded the maximum allowed size");
            return;
        }
    } else {
        new = old.len > 0 ? bytes_copy(op->arena, old) : key->attributes;
    }
    change_to(key, old, new, ret);
    add_write_capacity(op, key, old, new);
    return_updated(op, old, new);
}

void op_execute_key(struct op *op, uint32_t index, struct bytes item, struct op_change *ret)
{
    check(index < op->key_count);
    struct op_key *key = &op->keys[index];
    check(!key->done);
    check(key->table != NULL);
    key->done = true;
    *ret = (struct op_change){.kind = OP_CHANGE_NONE};
    switch (op->kind) {
    case OP_GET_ITEM:
        execute_get(op, item);
        return;
    case OP_BATCH_GET_ITEM:
        execute_batch_get(op, key, item);
        return;
    case OP_PUT_ITEM:
        execute_put(op, key, item, ret);
        return;
    case OP_DELETE_ITEM:
        execute_delete(op, key, item, ret);
        return;
    case OP_UPDATE_ITEM:
        execute_update(op, key, item, ret);
        return;
    case OP_BATCH_WRITE_ITEM:
        if (key->put)
            execute_put(op, key, item, ret);
        else
            execute_delete(op, key, item, ret);
        return;
    case OP_QUERY:
    case OP_SCAN:
    case OP_CREATE_TABLE:
    case OP_DESCRIBE_TABLE:
    case OP_LIST_TABLES:
    case OP_UPDATE_TABLE:
    case OP_DELETE_TABLE:
    case OP_DESCRIBE_LIMITS:
    case OP_DESCRIBE_ENDPOINTS:
    case OP_CREATE_GLOBAL_TABLE:
    case OP_UPDATE_GLOBAL_TABLE:
    case OP_DESCRIBE_GLOBAL_TABLE:
    case OP_LIST_GLOBAL_TABLES:
    case OP_KIND_COUNT:
        break;
    }
    unreachable();
}
