/* SPDX-License-Identifier: Apache-2.0 */
/* Key conditions: a condition that names one or two key attributes, once each, turned into the
 * range of row keys it selects. The first half knows the text only, the second the table's key. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/expr_internal.h"
#include "region/core/key.h"

#define INVALID "Invalid KeyConditionExpression: "

static enum expr_kind flip(enum expr_kind kind)
{
    switch (kind) {
    case EXPR_LT:
        return EXPR_GT;
    case EXPR_LE:
        return EXPR_GE;
    case EXPR_GT:
        return EXPR_LT;
    case EXPR_GE:
        return EXPR_LE;
    case EXPR_OR:
    case EXPR_AND:
    case EXPR_NOT:
    case EXPR_EQ:
    case EXPR_NE:
    case EXPR_BETWEEN:
    case EXPR_IN:
    case EXPR_FUNCTION:
    case EXPR_PLUS:
    case EXPR_MINUS:
    case EXPR_PATH:
    case EXPR_VALUE:
        return kind;
    }
    unreachable();
}

static bool is_key_operator(const struct expr_node *node)
{
    return (node->kind >= EXPR_EQ && node->kind <= EXPR_BETWEEN && node->kind != EXPR_NE) ||
           (node->kind == EXPR_FUNCTION && node->function == FUNCTION_BEGINS_WITH);
}

static const char *fail_operator(struct arena *arena, const struct expr_node *node)
{
    const char *name = node->kind == EXPR_OR    ? "OR"
                       : node->kind == EXPR_NOT ? "NOT"
                       : node->kind == EXPR_IN  ? "IN"
                                                : bytes_copy_text(arena, node->text);
    return expr_message(arena, "Invalid operator used in KeyConditionExpression: %s", name);
}

/* Finds the one key attribute of a comparison, and its values. */
static const char *term_read(struct arena *arena, const struct expr_node *node,
                             struct expr_key_term *ret)
{
    bool first_must = node->kind == EXPR_BETWEEN || node->kind == EXPR_FUNCTION;
    if (first_must && node->args->kind != EXPR_PATH)
        return expr_message(arena,
                            "Invalid condition in KeyConditionExpression: %s operator must have "
                            "the key attribute as its first operand",
                            node->kind == EXPR_BETWEEN ? "BETWEEN" : "begins_with");
    const struct expr_node *path = NULL, *values[2] = {NULL, NULL};
    uint32_t count = 0;
    for (const struct expr_node *arg = node->args; arg; arg = arg->next) {
        if (arg->kind == EXPR_FUNCTION)
            return INVALID "KeyConditionExpressions cannot contain nested operations";
        if (arg->kind == EXPR_VALUE) {
            if (count < 2)
                values[count++] = arg;
            continue;
        }
        if (path)
            return "Invalid condition in KeyConditionExpression: Multiple attribute names used in "
                   "one condition";
        if (arg->path.count > 1)
            return INVALID "KeyConditionExpressions cannot have conditions on nested attributes";
        path = arg;
    }
    if (!path)
        return "Invalid condition in KeyConditionExpression: No key attribute specified";
    ret->name = path->path.steps[0].name;
    ret->kind = path == node->args ? node->kind : flip(node->kind);
    ret->low = values[0]->value;
    ret->high = values[count - 1]->value;
    return NULL;
}

static const char *term_add(struct arena *arena, const struct expr_node *node,
                            struct expr_key_condition *ret)
{
    struct expr_key_term term;
    const char *error = term_read(arena, node, &term);
    if (error)
        return error;
    for (uint32_t i = 0; i < ret->count && i < array_len(ret->terms); i++) {
        if (bytes_equal(ret->terms[i].name, term.name))
            return INVALID "KeyConditionExpressions must only contain one condition per key";
    }
    if (ret->count < array_len(ret->terms))
        ret->terms[ret->count] = term;
    ret->count++;
    return NULL;
}

static const char *terms_add(struct arena *arena, const struct expr_node *node,
                             struct expr_key_condition *ret)
{
    const char *error = NULL;
    if (node->kind != EXPR_AND)
        return is_key_operator(node) ? term_add(arena, node, ret) : fail_operator(arena, node);
    for (const struct expr_node *arg = node->args; arg && !error; arg = arg->next)
        error = terms_add(arena, arg, ret);
    return error;
}

const char *expr_key_condition_shape(struct arena *arena, const struct expr_node *root,
                                     struct expr_key_condition *ret)
{
    *ret = (struct expr_key_condition){0};
    return terms_add(arena, root, ret);
}

static const struct expr_key_term *term_find(const struct expr_key_condition *condition,
                                             const char *name)
{
    for (uint32_t i = 0; i < condition->count && i < array_len(condition->terms); i++) {
        if (bytes_is(condition->terms[i].name, name))
            return &condition->terms[i];
    }
    return NULL;
}

/* A value that a key attribute is compared with must be one that it could have. */
static const char *check_value(struct arena *arena, struct value value, const char *name,
                               enum value_type type, bool is_hash)
{
    size_t len_max = is_hash ? ITEM_PARTITION_KEY_MAX : ITEM_SORT_KEY_MAX;
    if (value.type != type)
        return "One or more parameter values were invalid: Condition parameter type does not match "
               "schema type";
    if (value.payload.len == 0)
        return expr_message(arena,
                            "One or more parameter values are not valid. The AttributeValue for a "
                            "key attribute cannot contain an empty %s value. Key: %s",
                            type == VALUE_B ? "binary" : "string", name);
    if (value.payload.len <= len_max)
        return NULL;
    /* The missing space is AWS's. */
    return is_hash ? "One or more parameter values were invalid: Size of hashkey has exceeded the "
                     "maximum size limit of2048 bytes"
                   : "One or more parameter values were invalid: Aggregated size of all range keys "
                     "has exceeded the size limit of 1024 bytes";
}

static struct bytes finish(struct arena *arena, struct buf *key)
{
    struct bytes copy = bytes_copy(arena, buf_view(key));
    buf_reset(key);
    return copy;
}

/* The row keys of the partition from `low` on, or if `after`, from the next key on. */
static struct bytes key_from(struct arena *arena, struct bytes partition, struct value low,
                             bool after)
{
    cleanup(buf_deinit) struct buf key = {0};
    buf_append_bytes(&key, partition);
    key_write_range(&key, low);
    if (after)
        buf_append_u8(&key, 0); /* no key lies between a key and itself with a zero behind it */
    return finish(arena, &key);
}

static struct bytes key_behind(struct arena *arena, struct bytes prefix)
{
    cleanup(buf_deinit) struct buf key = {0};
    /* A partition's prefix ends in a terminator, which is no 0xff: there always is a next one. */
    check(key_prefix_end(prefix, &key));
    return finish(arena, &key);
}

static void narrow(struct arena *arena, const struct expr_key_term *term, struct bytes partition,
                   struct key_range *range)
{
    switch (term->kind) {
    case EXPR_EQ:
    case EXPR_BETWEEN:
        range->begin = key_from(arena, partition, term->low, false);
        range->end = key_from(arena, partition, term->high, true);
        return;
    case EXPR_LT:
    case EXPR_LE:
        range->end = key_from(arena, partition, term->low, term->kind == EXPR_LE);
        return;
    case EXPR_GT:
    case EXPR_GE:
        range->begin = key_from(arena, partition, term->low, term->kind == EXPR_GT);
        return;
    case EXPR_FUNCTION:
        range->begin = key_from(arena, partition, term->low, false);
        range->end = key_behind(arena, range->begin);
        return;
    case EXPR_OR:
    case EXPR_AND:
    case EXPR_NOT:
    case EXPR_NE:
    case EXPR_IN:
    case EXPR_PLUS:
    case EXPR_MINUS:
    case EXPR_PATH:
    case EXPR_VALUE:
        break;
    }
    unreachable();
}

const char *expr_key_condition_bind(const struct expr_key_condition *condition,
                                    const struct key_schema *key, struct arena *arena,
                                    struct key_range *ret)
{
    uint32_t key_count = 1 + key->has_range;
    if (condition->count > key_count)
        return expr_message(arena,
                            "The number of query conditions (%u) exceeds the number of key "
                            "attributes defined in the schema (%u)",
                            condition->count, key_count);
    const struct expr_key_term *hash = term_find(condition, key->hash_name);
    const struct expr_key_term *range =
        key->has_range ? term_find(condition, key->range_name) : NULL;
    if (!hash || (condition->count == 2 && !range))
        return expr_message(arena, "Query condition missed key schema element: %s",
                            hash ? key->range_name : key->hash_name);
    if (hash->kind != EXPR_EQ)
        return "Query key condition not supported";
    const char *error = check_value(arena, hash->low, key->hash_name, key->hash_type, true);
    if (!error && range)
        error = check_value(arena, range->low, key->range_name, key->range_type, false);
    if (!error && range)
        error = check_value(arena, range->high, key->range_name, key->range_type, false);
    if (error)
        return error;

    cleanup(buf_deinit) struct buf prefix = {0};
    key_write_hash(&prefix, hash->low);
    struct bytes partition = finish(arena, &prefix);
    ret->hash = hash->low;
    ret->begin = partition;
    ret->end = key_behind(arena, partition);
    if (range)
        narrow(arena, range, partition, ret);
    return NULL;
}
