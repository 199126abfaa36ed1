/* SPDX-License-Identifier: Apache-2.0 */
/* The doors of the expression language: parse, check, and keep what evaluation needs. */

#include "region/core/expr.h"

#include "conflict/base/alloc.h"
#include "region/core/expr_internal.h"

const char *expr_parse_condition(struct expr_scope *scope, const char *what, struct bytes text,
                                 struct expr_condition **ret)
{
    struct expr_parsed parsed;
    const char *error = expr_parse(scope->arena, GRAMMAR_CONDITION, what, text, &parsed);
    if (!error)
        error = expr_check_condition(scope, what, &parsed);
    if (error)
        return error;
    *ret = arena_new(scope->arena, struct expr_condition);
    (*ret)->root = parsed.condition;
    return NULL;
}

const char *expr_parse_key_condition(struct expr_scope *scope, struct bytes text,
                                     struct expr_key_condition **ret)
{
    struct expr_condition *condition;
    struct expr_key_condition key;
    const char *error = expr_parse_condition(scope, "KeyConditionExpression", text, &condition);
    if (!error)
        error = expr_key_condition_shape(scope->arena, condition->root, &key);
    if (error)
        return error;
    *ret = arena_copy(scope->arena, &key, sizeof(key));
    return NULL;
}

const char *expr_parse_projection(struct expr_scope *scope, struct bytes text,
                                  struct expr_projection **ret)
{
    struct expr_parsed parsed;
    const char *error =
        expr_parse(scope->arena, GRAMMAR_PROJECTION, "ProjectionExpression", text, &parsed);
    if (!error)
        error = expr_check_projection(scope, &parsed);
    if (error)
        return error;
    *ret = arena_new(scope->arena, struct expr_projection);
    expr_projection_init(parsed.paths, parsed.path_count, *ret);
    return NULL;
}

const char *expr_parse_update(struct expr_scope *scope, struct bytes text, struct expr_update **ret)
{
    struct expr_parsed parsed;
    const char *error = expr_parse(scope->arena, GRAMMAR_UPDATE, "UpdateExpression", text, &parsed);
    if (!error)
        error = expr_check_update(scope, &parsed);
    if (error)
        return error;
    *ret = arena_new(scope->arena, struct expr_update);
    expr_update_init(scope->arena, &parsed, *ret);
    return NULL;
}

static const char *unused_message(struct arena *arena, const char *what, const struct buf *keys)
{
    return expr_message(arena, "Value provided in %s unused in expressions: keys: {%.*s}", what,
                        EXPR_TEXT(*keys));
}

static void unused_add(struct buf *keys, struct bytes placeholder)
{
    if (keys->len)
        buf_append_text(keys, ", ");
    buf_append_bytes(keys, placeholder);
}

const char *expr_check_unused(const struct expr_scope *scope)
{
    cleanup(buf_deinit) struct buf keys = {0};
    for (uint32_t i = 0; i < scope->name_count; i++) {
        if (!scope->names[i].used)
            unused_add(&keys, scope->names[i].placeholder);
    }
    if (keys.len)
        return unused_message(scope->arena, "ExpressionAttributeNames", &keys);
    for (uint32_t i = 0; i < scope->value_count; i++) {
        if (!scope->values[i].used)
            unused_add(&keys, scope->values[i].placeholder);
    }
    return keys.len ? unused_message(scope->arena, "ExpressionAttributeValues", &keys) : NULL;
}
