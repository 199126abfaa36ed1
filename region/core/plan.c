/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of an operation: from what the request says to what is to be read. Here the
 * request meets the table's schema for the first time, so here are AWS's refusals that need it, in
 * AWS's order; after this nothing but a condition, an update or an item's size can refuse an
 * operation. A batch is checked whole before any of it is done. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/key.h"
#include "region/core/op_internal.h"

static const char NO_SCHEMA_MATCH[] = "The provided key element does not match the schema";

static const char *message_of(const struct op *op, const char *before, const char *name)
{
    size_t before_len = strlen(before);
    size_t name_len = strlen(name);
    char *message = arena_alloc(op->arena, before_len + name_len + 1);
    memcpy(message, before, before_len);
    memcpy(message + before_len, name, name_len + 1);
    return message;
}

/* What any value of a key attribute must be, once its type is known to be right. */
static const char *check_key_value(const struct op *op, struct value value, const char *name,
                                   bool hash)
{
    if (value.type == VALUE_N)
        return NULL; /* numbers are bounded by themselves */
    if (value.payload.len == 0)
        return message_of(
            op,
            value.type == VALUE_S
                ? "One or more parameter values are not valid. The AttributeValue for "
                  "a key attribute cannot contain an empty string value. Key: "
                : "One or more parameter values are not valid. The AttributeValue for "
                  "a key attribute cannot contain an empty binary value. Key: ",
            name);
    if (hash && value.payload.len > ITEM_PARTITION_KEY_MAX)
        return "One or more parameter values were invalid: Size of hashkey has exceeded the "
               "maximum "
               "size limit of2048 bytes";
    if (!hash && value.payload.len > ITEM_SORT_KEY_MAX)
        return "One or more parameter values were invalid: Aggregated size of all range keys has "
               "exceeded the size limit of 1024 bytes";
    return NULL;
}

const char *op_key_check(const struct op *op, const struct key_schema *schema,
                         struct bytes attributes, struct buf *row_key)
{
    struct bytes rest = item_attributes(attributes);
    struct attribute attribute;
    uint32_t count = 0;
    while (attribute_take(&rest, &attribute))
        count++;
    struct value hash, range;
    if (count != (schema->has_range ? 2U : 1U) ||
        !item_find(attributes, bytes_text(schema->hash_name), &hash) ||
        hash.type != schema->hash_type)
        return NO_SCHEMA_MATCH;
    if (schema->has_range && (!item_find(attributes, bytes_text(schema->range_name), &range) ||
                              range.type != schema->range_type))
        return NO_SCHEMA_MATCH;
    const char *problem = check_key_value(op, hash, schema->hash_name, true);
    if (!problem && schema->has_range)
        problem = check_key_value(op, range, schema->range_name, false);
    if (problem)
        return problem;
    key_write_hash(row_key, hash);
    if (schema->has_range)
        key_write_range(row_key, range);
    return NULL;
}

static const char *find_key_attribute(const struct op *op, struct bytes item, const char *name,
                                      enum value_type type, struct value *ret)
{
    struct value value;
    if (!item_find(item, bytes_text(name), &value)) {
        if (op->kind == OP_BATCH_WRITE_ITEM)
            return NO_SCHEMA_MATCH;
        const char *message =
            message_of(op, "One or more parameter values were invalid: Missing the key ", name);
        return message_of(op, message, " in the item");
    }
    if (value.type != type) {
        if (op->kind == OP_BATCH_WRITE_ITEM)
            return NO_SCHEMA_MATCH;
        const char *message = message_of(
            op, "One or more parameter values were invalid: Type mismatch for key ", name);
        message = message_of(op, message, " expected: ");
        message = message_of(op, message, value_type_name(type));
        message = message_of(op, message, " actual: ");
        return message_of(op, message, value_type_name(value.type));
    }
    *ret = value;
    return NULL;
}

/* Like op_key_check, for a whole item: AWS words these refusals differently. */
static const char *check_item(const struct op *op, const struct key_schema *schema,
                              struct bytes item, struct buf *row_key)
{
    struct value hash, range;
    const char *problem = find_key_attribute(op, item, schema->hash_name, schema->hash_type, &hash);
    if (!problem)
        problem = check_key_value(op, hash, schema->hash_name, true);
    if (problem)
        return problem;
    if (schema->has_range) {
        problem = find_key_attribute(op, item, schema->range_name, schema->range_type, &range);
        if (!problem)
            problem = check_key_value(op, range, schema->range_name, false);
        if (problem)
            return problem;
    }
    key_write_hash(row_key, hash);
    if (schema->has_range)
        key_write_range(row_key, range);
    return NULL;
}

struct bytes op_key_of_item(struct op *op, const struct key_schema *schema, struct bytes item)
{
    struct attribute attributes[2] = {{.name = bytes_text(schema->hash_name)},
                                      {.name = bytes_text(schema->range_name)}};
    bool found = item_find(item, attributes[0].name, &attributes[0].value);
    check(found);
    if (schema->has_range) {
        found = item_find(item, attributes[1].name, &attributes[1].value);
        check(found);
    }
    struct buf to cleanup(buf_deinit);
    buf_init(&to);
    item_begin(&to);
    bool distinct = attributes_write_sorted(&to, attributes, schema->has_range ? 2 : 1);
    check(distinct);
    return bytes_copy(op->arena, buf_view(&to));
}

/* Finds the table of one key and writes its row key. */
static bool plan_key(struct op *op, struct op_key *key, bool whole_item, op_find_table *find,
                     void *context)
{
    key->table = find(context, key->table_name);
    if (!key->table)
        return op_fail(op, API_RESOURCE_NOT_FOUND, "Requested resource not found");
    struct buf row_key cleanup(buf_deinit);
    buf_init(&row_key);
    const char *problem = whole_item
                              ? check_item(op, &key->table->key, key->attributes, &row_key)
                              : op_key_check(op, &key->table->key, key->attributes, &row_key);
    if (problem)
        return op_fail(op, API_VALIDATION, "%s", problem);
    key->key = bytes_copy(op->arena, buf_view(&row_key));
    return true;
}

static bool plan_batch(struct op *op, op_find_table *find, void *context)
{
    for (uint32_t g = 0; g < op->group_count; g++) {
        const struct op_group *group = &op->groups[g];
        check(group->first + group->count <= op->key_count);
        struct op_key *keys = op->keys + group->first;
        for (uint32_t i = 0; i < group->count; i++) {
            if (!plan_key(op, &keys[i], keys[i].put, find, context))
                return false;
        }
        for (uint32_t i = 1; i < group->count; i++) {
            for (uint32_t before = 0; before < i; before++) {
                if (bytes_equal(keys[i].key, keys[before].key))
                    return op_fail(op, API_VALIDATION,
                                   "Provided list of item keys contains duplicates");
            }
        }
    }
    return true;
}

bool op_plan(struct op *op, op_find_table *find, void *context)
{
    switch (op_shape(op->kind)) {
    case OP_SHAPE_READ:
    case OP_SHAPE_WRITE:
        capacity_prepare(op);
        if (op->group_count > 0)
            return plan_batch(op, find, context);
        check(op->key_count == 1);
        if (!plan_key(op, op->keys, op->kind == OP_PUT_ITEM, find, context))
            return false;
        if (op->update) {
            const char *problem =
                expr_update_check_key(op->update, &op->keys[0].table->key, op->arena);
            if (problem)
                return op_fail(op, API_VALIDATION, "%s", problem);
        }
        return true;
    case OP_SHAPE_RANGE: {
        const struct table *table = find(context, op->table_name);
        if (!table)
            return op_fail(op, API_RESOURCE_NOT_FOUND, "Requested resource not found");
        capacity_prepare(op);
        return op_plan_range(op, table);
    }
    case OP_SHAPE_CONTROL:
        break;
    }
    unreachable();
}
