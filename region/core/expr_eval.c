/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a condition holds for an item. Operands are views into the item or into the request, so
 * nothing is allocated; a size() is encoded into the operand itself. An attribute that is missing
 * or of an unsuitable type makes its comparison false (and <> true), never an error. */

#include "conflict/base/check.h"
#include "region/core/expr_internal.h"
#include "region/core/number.h"

struct operand {
    struct value value;
    uint8_t number[NUMBER_ENCODED_MAX + 2]; /* tag, length and encoding of a size */
};

static uint64_t elements_count(enum value_type type, struct bytes rest)
{
    uint64_t count = 0;
    struct attribute attribute;
    struct value value;
    struct bytes element;
    while (type == VALUE_M   ? attribute_take(&rest, &attribute)
           : type == VALUE_L ? value_take(&rest, &value)
                             : element_take(&rest, &element))
        count++;
    return count;
}

static bool operand_get(const struct expr_node *node, struct bytes attributes, struct operand *ret);

static bool size_get(const struct expr_node *node, struct bytes attributes, struct operand *ret)
{
    struct operand of;
    if (!operand_get(node->args, attributes, &of))
        return false;
    enum value_type type = of.value.type;
    if (type == VALUE_N || type == VALUE_BOOL || type == VALUE_NULL)
        return false;
    bool text = type == VALUE_S || type == VALUE_B;
    uint64_t size = text ? of.value.payload.len : elements_count(type, of.value.payload);
    size_t len = number_encode_u64(size, ret->number + 2);
    ret->number[0] = VALUE_N;
    ret->number[1] = (uint8_t)len;
    ret->value = (struct value){VALUE_N, {ret->number + 2, len}, {ret->number, len + 2}};
    return true;
}

static bool operand_get(const struct expr_node *node, struct bytes attributes, struct operand *ret)
{
    if (node->kind == EXPR_PATH)
        return expr_path_find(&node->path, attributes, &ret->value);
    if (node->kind == EXPR_FUNCTION)
        return size_get(node, attributes, ret);
    check(node->kind == EXPR_VALUE);
    ret->value = node->value;
    return true;
}

static bool is_equal(struct value a, struct value b)
{
    return bytes_equal(a.whole, b.whole);
}

static bool is_ordered(struct value a, struct value b)
{
    return a.type == b.type && (a.type == VALUE_S || a.type == VALUE_N || a.type == VALUE_B);
}

static bool compare(enum expr_kind kind, struct value a, struct value b)
{
    if (kind == EXPR_EQ)
        return is_equal(a, b);
    if (kind == EXPR_NE)
        return !is_equal(a, b);
    if (!is_ordered(a, b))
        return false;
    int order = value_compare(a, b);
    return kind == EXPR_LT   ? order < 0
           : kind == EXPR_LE ? order <= 0
           : kind == EXPR_GT ? order > 0
                             : order >= 0;
}

static bool compare_holds(const struct expr_node *node, struct bytes attributes)
{
    struct operand left, right;
    if (!operand_get(node->args, attributes, &left) ||
        !operand_get(node->args->next, attributes, &right))
        return node->kind == EXPR_NE;
    return compare(node->kind, left.value, right.value);
}

static bool between_holds(const struct expr_node *node, struct bytes attributes)
{
    struct operand of, low, high;
    return operand_get(node->args, attributes, &of) &&
           operand_get(node->args->next, attributes, &low) &&
           operand_get(node->args->next->next, attributes, &high) &&
           compare(EXPR_GE, of.value, low.value) && compare(EXPR_LE, of.value, high.value);
}

static bool in_holds(const struct expr_node *node, struct bytes attributes)
{
    struct operand of, candidate;
    if (!operand_get(node->args, attributes, &of))
        return false;
    for (const struct expr_node *arg = node->args->next; arg; arg = arg->next) {
        if (operand_get(arg, attributes, &candidate) && is_equal(of.value, candidate.value))
            return true;
    }
    return false;
}

static bool set_contains(struct bytes rest, struct bytes wanted)
{
    struct bytes element;
    while (element_take(&rest, &element)) {
        if (bytes_equal(element, wanted))
            return true;
    }
    return false;
}

static bool text_contains(struct bytes text, struct bytes part)
{
    return part.len == 0 || (text.len && memmem(text.at, text.len, part.at, part.len));
}

static bool contains(struct value of, struct value wanted)
{
    struct bytes rest = of.payload;
    struct value element;
    switch (of.type) {
    case VALUE_S:
    case VALUE_B:
        return wanted.type == of.type && text_contains(of.payload, wanted.payload);
    case VALUE_SS:
        return wanted.type == VALUE_S && set_contains(rest, wanted.payload);
    case VALUE_NS:
        return wanted.type == VALUE_N && set_contains(rest, wanted.payload);
    case VALUE_BS:
        return wanted.type == VALUE_B && set_contains(rest, wanted.payload);
    case VALUE_L:
        while (value_take(&rest, &element)) {
            if (is_equal(element, wanted))
                return true;
        }
        return false;
    case VALUE_N:
    case VALUE_BOOL:
    case VALUE_NULL:
    case VALUE_M:
        return false;
    }
    return false;
}

static bool function_holds(const struct expr_node *node, struct bytes attributes)
{
    struct operand of, other;
    bool exists = operand_get(node->args, attributes, &of);
    switch (node->function) {
    case FUNCTION_ATTRIBUTE_EXISTS:
        return exists;
    case FUNCTION_ATTRIBUTE_NOT_EXISTS:
        return !exists;
    case FUNCTION_ATTRIBUTE_TYPE:
        return exists && of.value.type == node->wanted_type;
    case FUNCTION_BEGINS_WITH:
        return exists && operand_get(node->args->next, attributes, &other) &&
               of.value.type == other.value.type &&
               (of.value.type == VALUE_S || of.value.type == VALUE_B) &&
               bytes_starts_with(of.value.payload, other.value.payload);
    case FUNCTION_CONTAINS:
        return exists && operand_get(node->args->next, attributes, &other) &&
               contains(of.value, other.value);
    case FUNCTION_SIZE:
    case FUNCTION_IF_NOT_EXISTS:
    case FUNCTION_LIST_APPEND:
    case FUNCTION_UNKNOWN:
        break;
    }
    unreachable();
}

static bool holds(const struct expr_node *node, struct bytes attributes)
{
    switch (node->kind) {
    case EXPR_OR:
    case EXPR_AND:
        /* The first part that settles it. */
        for (const struct expr_node *arg = node->args; arg; arg = arg->next) {
            if (holds(arg, attributes) == (node->kind == EXPR_OR))
                return node->kind == EXPR_OR;
        }
        return node->kind == EXPR_AND;
    case EXPR_NOT:
        return !holds(node->args, attributes);
    case EXPR_EQ:
    case EXPR_NE:
    case EXPR_LT:
    case EXPR_LE:
    case EXPR_GT:
    case EXPR_GE:
        return compare_holds(node, attributes);
    case EXPR_BETWEEN:
        return between_holds(node, attributes);
    case EXPR_IN:
        return in_holds(node, attributes);
    case EXPR_FUNCTION:
        return function_holds(node, attributes);
    case EXPR_PLUS:
    case EXPR_MINUS:
    case EXPR_PATH:
    case EXPR_VALUE:
        break;
    }
    unreachable();
}

bool expr_condition_holds(const struct expr_condition *condition, struct bytes item)
{
    return holds(condition->root, item_attributes(item));
}

static bool reads(const struct expr_node *node, const char *name)
{
    if (node->kind == EXPR_PATH)
        return bytes_is(node->path.steps[0].name, name);
    for (const struct expr_node *arg = node->args; arg; arg = arg->next) {
        if (reads(arg, name))
            return true;
    }
    return false;
}

const char *expr_filter_check_key(const struct expr_condition *filter, const struct key_schema *key,
                                  struct arena *arena)
{
    const char *name = NULL;
    if (reads(filter->root, key->hash_name))
        name = key->hash_name;
    else if (key->has_range && reads(filter->root, key->range_name))
        name = key->range_name;
    if (!name)
        return NULL;
    return expr_message(arena,
                        "Filter Expression can only contain non-primary key attributes: Primary "
                        "key attribute: %s",
                        name);
}
