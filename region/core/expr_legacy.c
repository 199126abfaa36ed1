/* SPDX-License-Identifier: Apache-2.0 */
/* The members that expressions replaced, built into the same nodes, so that nothing behind the
 * parser knows which of the two a request used. */

#include "conflict/base/check.h"
#include "region/core/expr_internal.h"

const char expr_legacy_type_message[] = "Type mismatch for attribute to update";

static struct expr_node *node_new(struct arena *arena, enum expr_kind kind)
{
    struct expr_node *node = arena_new(arena, struct expr_node);
    node->kind = kind;
    return node;
}

static struct expr_path path_of(struct arena *arena, struct bytes name)
{
    struct expr_step *step = arena_new(arena, struct expr_step);
    step->name = name;
    return (struct expr_path){step, 1};
}

/* A node over the attribute and its values. */
static struct expr_node *node_over(struct arena *arena, enum expr_kind kind,
                                   enum expr_function function,
                                   const struct expr_legacy_condition *condition)
{
    struct expr_node *node = node_new(arena, kind);
    struct expr_node *path = node_new(arena, EXPR_PATH);
    node->function = function;
    path->path = path_of(arena, condition->name);
    expr_node_append(node, path);
    for (uint32_t i = 0; i < condition->value_count; i++) {
        struct expr_node *value = node_new(arena, EXPR_VALUE);
        value->value = condition->values[i];
        expr_node_append(node, value);
    }
    return node;
}

/* NOT_CONTAINS wants the attribute to be there: exists and not contains. */
static struct expr_node *node_not_contains(struct arena *arena,
                                           const struct expr_legacy_condition *condition)
{
    struct expr_node *both = node_new(arena, EXPR_AND);
    struct expr_node *not = node_new(arena, EXPR_NOT);
    struct expr_legacy_condition bare = {.name = condition->name};
    expr_node_append(not, node_over(arena, EXPR_FUNCTION, FUNCTION_CONTAINS, condition));
    expr_node_append(both, node_over(arena, EXPR_FUNCTION, FUNCTION_ATTRIBUTE_EXISTS, &bare));
    expr_node_append(both, not );
    return both;
}

bool expr_legacy_takes(enum expr_legacy_operator operator, uint32_t value_count)
{
    switch (operator) {
    case EXPR_LEGACY_NOT_NULL:
    case EXPR_LEGACY_NULL:
        return value_count == 0;
    case EXPR_LEGACY_IN:
        return value_count > 0;
    case EXPR_LEGACY_BETWEEN:
        return value_count == 2;
    case EXPR_LEGACY_EQ:
    case EXPR_LEGACY_NE:
    case EXPR_LEGACY_LE:
    case EXPR_LEGACY_LT:
    case EXPR_LEGACY_GE:
    case EXPR_LEGACY_GT:
    case EXPR_LEGACY_CONTAINS:
    case EXPR_LEGACY_NOT_CONTAINS:
    case EXPR_LEGACY_BEGINS_WITH:
        return value_count == 1;
    }
    unreachable();
}

static enum expr_kind kind_of(enum expr_legacy_operator operator)
{
    static const enum expr_kind kinds[] = {
        [EXPR_LEGACY_EQ] = EXPR_EQ,
        [EXPR_LEGACY_NE] = EXPR_NE,
        [EXPR_LEGACY_LE] = EXPR_LE,
        [EXPR_LEGACY_LT] = EXPR_LT,
        [EXPR_LEGACY_GE] = EXPR_GE,
        [EXPR_LEGACY_GT] = EXPR_GT,
        [EXPR_LEGACY_IN] = EXPR_IN,
        [EXPR_LEGACY_BETWEEN] = EXPR_BETWEEN,
        [EXPR_LEGACY_NOT_NULL] = EXPR_FUNCTION,
        [EXPR_LEGACY_NULL] = EXPR_FUNCTION,
        [EXPR_LEGACY_CONTAINS] = EXPR_FUNCTION,
        [EXPR_LEGACY_BEGINS_WITH] = EXPR_FUNCTION,
    };
    return kinds[operator];
}

static enum expr_function function_of(enum expr_legacy_operator operator)
{
    return operator== EXPR_LEGACY_NOT_NULL ? FUNCTION_ATTRIBUTE_EXISTS :
           operator== EXPR_LEGACY_NULL     ? FUNCTION_ATTRIBUTE_NOT_EXISTS
           :
           operator== EXPR_LEGACY_CONTAINS ? FUNCTION_CONTAINS
           :
           operator== EXPR_LEGACY_BEGINS_WITH ? FUNCTION_BEGINS_WITH
                                              : FUNCTION_UNKNOWN;
}

struct expr_condition *expr_build_condition(struct arena *arena,
                                            const struct expr_legacy_condition *at, uint32_t count,
                                            bool any)
{
    check(count > 0);
    struct expr_condition *condition = arena_new(arena, struct expr_condition);
    condition->root = node_new(arena, any ? EXPR_OR : EXPR_AND);
    for (uint32_t i = 0; i < count; i++) {
        check(expr_legacy_takes(at[i].operator, at[i].value_count));
        struct expr_node *node =
            at[i].operator== EXPR_LEGACY_NOT_CONTAINS
                ? node_not_contains(arena, &at[i])
                : node_over(arena, kind_of(at[i].operator), function_of(at[i].operator), &at[i]);
        expr_node_append(condition->root, node);
    }
    return condition;
}

struct expr_key_condition *expr_build_key_condition(struct arena *arena,
                                                    const struct expr_legacy_condition *at,
                                                    uint32_t count)
{
    struct expr_key_condition *key = arena_new(arena, struct expr_key_condition);
    for (uint32_t i = 0; i < count; i++) {
        enum expr_legacy_operator operator= at[i].operator;
        bool allowed = operator== EXPR_LEGACY_EQ || operator== EXPR_LEGACY_BETWEEN || operator==
            EXPR_LEGACY_BEGINS_WITH ||(operator>= EXPR_LEGACY_LE && operator<= EXPR_LEGACY_GT);
        if (!allowed)
            return NULL;
        check(expr_legacy_takes(operator, at[i].value_count));
        if (i < array_len(key->terms))
            key->terms[i] = (struct expr_key_term){.name = at[i].name,
                                                   .kind = kind_of(operator),
                                                   .low = at[i].values[0],
                                                   .high = at[i].values[at[i].value_count - 1]};
        key->count++;
    }
    return key;
}

struct expr_projection *expr_build_projection(struct arena *arena, const struct bytes *names,
                                              uint32_t count)
{
    struct expr_projection *projection = arena_new(arena, struct expr_projection);
    struct expr_path *paths = arena_array(arena, struct expr_path, count);
    for (uint32_t i = 0; i < count; i++)
        paths[i] = path_of(arena, names[i]);
    expr_projection_init(paths, count, projection);
    return projection;
}

struct expr_update *expr_build_update(struct arena *arena, const struct expr_legacy_update *at,
                                      uint32_t count)
{
    struct expr_parsed parsed = {.action_count = count, .path_count = count};
    parsed.paths = arena_array(arena, struct expr_path, count);
    struct expr_action *actions = arena_array(arena, struct expr_action, count);
    for (uint32_t i = 0; i < count; i++) {
        struct expr_action *action = &actions[i];
        check(at[i].value_given || at[i].action == EXPR_LEGACY_DELETE);
        action->kind = at[i].action == EXPR_LEGACY_PUT   ? ACTION_SET
                       : at[i].action == EXPR_LEGACY_ADD ? ACTION_ADD
                       : at[i].value_given               ? ACTION_DELETE
                                                         : ACTION_REMOVE;
        action->path = parsed.paths[i] = path_of(arena, at[i].name);
        if (at[i].value_given) {
            action->operand = node_new(arena, EXPR_VALUE);
            action->operand->value = at[i].value;
        }
        if (i + 1 < count)
            action->next = &actions[i + 1];
    }
    if (count)
        parsed.actions = actions;
    struct expr_update *update = arena_new(arena, struct expr_update);
    expr_update_init(arena, &parsed, update);
    update->type_message = expr_legacy_type_message;
    return update;
}
