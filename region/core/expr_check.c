/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that can be wrong with an expression before there is an item: misplaced functions,
 * reserved words, placeholders without a meaning, operands that no item could make right. Each kind
 * of fault is one pass over the nodes, since AWS reports the kinds in a fixed order and not by
 * place; only the last ones are reported comparison by comparison, as they are written. The passes
 * also complete the nodes: placeholders become names and values. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/expr_internal.h"
#include "region/core/item_json.h"
#include "region/core/number.h"

#define FAIL(checker, ...) expr_invalid((checker)->scope->arena, (checker)->what, __VA_ARGS__)

enum { IN_OPERANDS_MAX = 100, LIST_INDEX_DIGITS_MAX = 10 };

/* Visits a node and all below it, parents first, until a visit complains. */
static const char *walk(struct expr_checker *checker, struct expr_node *node,
                        const char *visit(struct expr_checker *, struct expr_node *))
{
    const char *error = visit(checker, node);
    for (struct expr_node *arg = node->args; arg && !error; arg = arg->next)
        error = walk(checker, arg, visit);
    return error;
}

/* The same, children first. */
static const char *walk_up(struct expr_checker *checker, struct expr_node *node,
                           const char *visit(struct expr_checker *, struct expr_node *))
{
    for (struct expr_node *arg = node->args; arg; arg = arg->next) {
        const char *error = walk_up(checker, arg, visit);
        if (error)
            return error;
    }
    return visit(checker, node);
}

/* Passes that conditions and updates share. */

static const char *check_shape(struct expr_checker *checker, const struct expr_parsed *parsed)
{
    if (parsed->redundant_parentheses)
        return FAIL(checker, "The expression has redundant parentheses;");
    if (parsed->operators > EXPR_OPERATORS_MAX)
        return FAIL(checker, "The expression contains too many operators; operator count: %u",
                    parsed->operators);
    return NULL;
}

static const char *check_steps(struct expr_checker *checker, struct expr_path *path)
{
    for (uint32_t i = 0; i < path->count; i++) {
        struct expr_step *step = &path->steps[i];
        if (!step->is_index) {
            if (!step->is_placeholder && expr_is_reserved(step->name))
                return FAIL(checker, "Attribute name is a reserved keyword; reserved keyword: %.*s",
                            EXPR_TEXT(step->name));
            continue;
        }
        uint64_t index = 0;
        for (size_t at = 0; at < step->name.len && at < LIST_INDEX_DIGITS_MAX; at++)
            index = index * 10 + (uint64_t)(step->name.at[at] - '0');
        if (step->name.len > LIST_INDEX_DIGITS_MAX || index > INT32_MAX)
            return FAIL(checker, "List index is not within the allowable range; index: [%.*s]",
                        EXPR_TEXT(step->name));
        step->index = (uint32_t)index;
    }
    return NULL;
}

static const char *visit_steps(struct expr_checker *checker, struct expr_node *node)
{
    return node->kind == EXPR_PATH ? check_steps(checker, &node->path) : NULL;
}

static const char *visit_path(struct expr_checker *checker, struct expr_node *node)
{
    return node->kind == EXPR_PATH ? expr_resolve_path(checker, &node->path) : NULL;
}

static const char *visit_value(struct expr_checker *checker, struct expr_node *node)
{
    return node->kind == EXPR_VALUE ? expr_resolve_value(checker, node) : NULL;
}

static const char *fail_operand_type(struct expr_checker *checker, struct bytes operator,
                                     const char * type)
{
    return FAIL(checker,
                "Incorrect operand type for operator or function; operator or function: %.*s, "
                "operand type: %s",
                EXPR_TEXT(operator), type);
}

static const char *fail_operand_count(struct expr_checker *checker, const struct expr_node *node)
{
    return FAIL(checker,
                "Incorrect number of operands for operator or function; operator or function: "
                "%.*s, number of operands: %u",
                EXPR_TEXT(node->text), node->arg_count);
}

static const char *fail_needs_path(struct expr_checker *checker, const struct expr_node *node)
{
    return FAIL(checker,
                "Operator or function requires a document path; operator or function: %.*s",
                EXPR_TEXT(node->text));
}

/* A set of value types, as bits; none for what only an item can tell. */
static unsigned type_bit(enum value_type type)
{
    return 1u << type;
}

enum { ORDERED = 1 << VALUE_S | 1 << VALUE_N | 1 << VALUE_B };

/* The type that an operand has whatever the item; false if that depends. */
static bool static_type(const struct expr_node *node, enum value_type *ret)
{
    if (node->kind == EXPR_VALUE)
        *ret = node->value.type;
    else if (node->kind == EXPR_FUNCTION && node->function == FUNCTION_SIZE)
        *ret = VALUE_N;
    else
        return false;
    return true;
}

static const char *check_type(struct expr_checker *checker, struct bytes operator,
                              const struct expr_node * operand, unsigned allowed)
{
    enum value_type type;
    if (!static_type(operand, &type) || (allowed & type_bit(type)))
        return NULL;
    return fail_operand_type(checker, operator, value_type_name(type));
}

/* Conditions. */

static const char *visit_condition_function(struct expr_checker *checker, struct expr_node *node)
{
    if (node->kind != EXPR_FUNCTION)
        return NULL;
    if (node->function == FUNCTION_UNKNOWN)
        return FAIL(checker, "Invalid function name; function: %.*s", EXPR_TEXT(node->text));
    if (node->function >= FUNCTION_IF_NOT_EXISTS)
        return FAIL(checker,
                    "The function is not allowed in a condition expression; function: %.*s",
                    EXPR_TEXT(node->text));
    return NULL;
}

static bool is_logical(const struct expr_node *node)
{
    return node->kind <= EXPR_NOT;
}

static const char *fail_misused(struct expr_checker *checker, const struct expr_node *node)
{
    return FAIL(checker,
                "The function is not allowed to be used this way in an expression; function: %.*s",
                EXPR_TEXT(node->text));
}

/* size() is a number and all other functions are conditions. */
static const char *visit_misused(struct expr_checker *checker, struct expr_node *node)
{
    for (const struct expr_node *arg = node->args; arg; arg = arg->next) {
        if (arg->kind == EXPR_FUNCTION && is_logical(node) == (arg->function == FUNCTION_SIZE))
            return fail_misused(checker, arg);
    }
    return NULL;
}

static const char *visit_placeholders(struct expr_checker *checker, struct expr_node *node)
{
    const char *error = visit_path(checker, node);
    return error ? error : visit_value(checker, node);
}

static const char *visit_operand_count(struct expr_checker *checker, struct expr_node *node)
{
    if (node->kind == EXPR_IN && node->arg_count - 1 > IN_OPERANDS_MAX)
        return FAIL(checker,
                    "The IN operator is provided with too many operands; number of operands: %u",
                    node->arg_count - 1);
    if (node->kind != EXPR_FUNCTION)
        return NULL;
    bool one = node->function == FUNCTION_ATTRIBUTE_EXISTS ||
               node->function == FUNCTION_ATTRIBUTE_NOT_EXISTS || node->function == FUNCTION_SIZE;
    return node->arg_count == (one ? 1 : 2) ? NULL : fail_operand_count(checker, node);
}

static const char *visit_distinct(struct expr_checker *checker, struct expr_node *node)
{
    const struct expr_node *first = node->args;
    if (!first || first->kind != EXPR_PATH)
        return NULL;
    for (const struct expr_node *arg = first->next; arg; arg = arg->next) {
        if (arg->kind == EXPR_PATH && expr_path_compare(&first->path, &arg->path) == 0)
            return FAIL(checker,
                        "The first operand must be distinct from the remaining operands for this "
                        "operator or function; operator: %.*s, first operand: %s",
                        EXPR_TEXT(node->text), expr_path_text(checker->scope->arena, &first->path));
    }
    return NULL;
}

/* "AttributeValue: {S:text}", for a scalar. */
static const char *value_text(struct arena *arena, struct value value)
{
    char number[NUMBER_TEXT_MAX];
    struct bytes text = value.payload;
    cleanup(buf_deinit) struct buf json = {0};
    if (value.type == VALUE_N) {
        text = bytes_make(number, number_format_encoded(value.payload, number));
    } else if (value.type == VALUE_B) {
        value_write_json(&json, value); /* {"B":"..."} */
        text = bytes_make(json.at + 6, json.len - 8);
    }
    return expr_message(arena, "AttributeValue: {%s:%.*s}", value_type_name(value.type),
                        EXPR_TEXT(text));
}

static const char *check_between(struct expr_checker *checker, const struct expr_node *node)
{
    const struct expr_node *low = node->args->next, *high = low->next;
    struct arena *arena = checker->scope->arena;
    for (const struct expr_node *arg = node->args; arg; arg = arg->next) {
        const char *error = check_type(checker, bytes_literal("BETWEEN"), arg, ORDERED);
        if (error)
            return error;
    }
    if (low->kind != EXPR_VALUE || high->kind != EXPR_VALUE)
        return NULL;
    bool same_type = low->value.type == high->value.type;
    if (same_type && value_compare(low->value, high->value) <= 0)
        return NULL;
    return FAIL(checker,
                "The BETWEEN operator requires %s; lower bound operand: %s, upper bound operand: "
                "%s",
                same_type ? "upper bound to be greater than or equal to lower bound"
                          : "same data type for lower and upper bounds",
                value_text(arena, low->value), value_text(arena, high->value));
}

static const char *check_attribute_type(struct expr_checker *checker, struct expr_node *node)
{
    const struct expr_node *wanted = node->args->next;
    enum value_type type;
    if (!static_type(wanted, &type))
        return fail_operand_type(checker, node->text, "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}");
    if (type != VALUE_S)
        return fail_operand_type(checker, node->text, value_type_name(type));
    if (!value_type_find(wanted->value.payload, &node->wanted_type))
        return FAIL(checker,
                    "Invalid attribute type name found; type: %.*s, valid types: "
                    "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
                    EXPR_TEXT(wanted->value.payload));
    return NULL;
}

static const char *check_condition_function_types(struct expr_checker *checker,
                                                  struct expr_node *node)
{
    enum {
        TEXTS = 1 << VALUE_S | 1 << VALUE_B,
        SETS = 1 << VALUE_SS | 1 << VALUE_NS | 1 << VALUE_BS,
        SIZED = TEXTS | SETS | 1 << VALUE_L | 1 << VALUE_M,
        HOLDERS = TEXTS | SETS | 1 << VALUE_L
    };
    const char *error;
    switch (node->function) {
    case FUNCTION_ATTRIBUTE_EXISTS:
    case FUNCTION_ATTRIBUTE_NOT_EXISTS:
        return node->args->kind == EXPR_PATH ? NULL : fail_needs_path(checker, node);
    case FUNCTION_ATTRIBUTE_TYPE:
        return check_attribute_type(checker, node);
    case FUNCTION_BEGINS_WITH:
        error = check_type(checker, node->text, node->args, TEXTS);
        return error ? error : check_type(checker, node->text, node->args->next, TEXTS);
    case FUNCTION_CONTAINS:
        return check_type(checker, node->text, node->args, HOLDERS);
    case FUNCTION_SIZE:
        return check_type(checker, node->text, node->args, SIZED);
    case FUNCTION_IF_NOT_EXISTS:
    case FUNCTION_LIST_APPEND:
    case FUNCTION_UNKNOWN:
        break;
    }
    unreachable();
}

static const char *visit_condition_types(struct expr_checker *checker, struct expr_node *node)
{
    if (node->kind == EXPR_FUNCTION)
        return check_condition_function_types(checker, node);
    if (node->kind == EXPR_BETWEEN)
        return check_between(checker, node);
    if (node->kind < EXPR_LT || node->kind > EXPR_GE)
        return NULL;
    const char *error = check_type(checker, node->text, node->args, ORDERED);
    return error ? error : check_type(checker, node->text, node->args->next, ORDERED);
}

/* The first fault of the first comparison that has one. */
static const char *check_comparisons(struct expr_checker *checker, struct expr_node *node)
{
    const char *error = NULL;
    if (is_logical(node)) {
        for (struct expr_node *arg = node->args; arg && !error; arg = arg->next)
            error = check_comparisons(checker, arg);
        return error;
    }
    error = walk(checker, node, visit_placeholders);
    if (!error)
        error = walk_up(checker, node, visit_operand_count);
    if (!error)
        error = walk_up(checker, node, visit_distinct);
    if (!error)
        error = walk_up(checker, node, visit_condition_types);
    return error;
}

const char *expr_check_condition(struct expr_scope *scope, const char *what,
                                 struct expr_parsed *parsed)
{
    struct expr_checker checker = {.scope = scope, .what = what};
    struct expr_node *root = parsed->condition;
    const char *error = check_shape(&checker, parsed);
    if (!error)
        error = walk(&checker, root, visit_condition_function);
    if (!error && root->kind == EXPR_FUNCTION && root->function == FUNCTION_SIZE)
        error = fail_misused(&checker, root);
    if (!error)
        error = walk_up(&checker, root, visit_misused);
    if (!error)
        error = walk(&checker, root, visit_steps);
    if (!error)
        error = check_comparisons(&checker, root);
    return error;
}

/* Projections. */

const char *expr_check_projection(struct expr_scope *scope, struct expr_parsed *parsed)
{
    struct expr_checker checker = {.scope = scope, .what = "ProjectionExpression"};
    const char *error = NULL;
    for (uint32_t i = 0; i < parsed->path_count && !error; i++)
        error = check_steps(&checker, &parsed->paths[i]);
    for (uint32_t i = 0; i < parsed->path_count && !error; i++)
        error = expr_resolve_path(&checker, &parsed->paths[i]);
    if (!error)
        error = expr_paths_check(scope->arena, checker.what, parsed->paths, parsed->path_count);
    return error;
}

/* Updates. */

static const char *visit_update_function(struct expr_checker *checker, struct expr_node *node)
{
    if (node->kind != EXPR_FUNCTION)
        return NULL;
    if (node->function == FUNCTION_UNKNOWN)
        return FAIL(checker, "Invalid function name; function: %.*s", EXPR_TEXT(node->text));
    if (node->function < FUNCTION_IF_NOT_EXISTS)
        return FAIL(checker, "The function is not allowed in an update expression; function: %.*s",
                    EXPR_TEXT(node->text));
    return NULL;
}

static const char *visit_update_types(struct expr_checker *checker, struct expr_node *node)
{
    const char *error;
    if (node->kind == EXPR_PLUS || node->kind == EXPR_MINUS) {
        error = check_type(checker, node->text, node->args, 1 << VALUE_N);
        return error ? error : check_type(checker, node->text, node->args->next, 1 << VALUE_N);
    }
    if (node->kind != EXPR_FUNCTION)
        return NULL;
    if (node->arg_count != 2)
        return fail_operand_count(checker, node);
    if (node->function == FUNCTION_IF_NOT_EXISTS)
        return node->args->kind == EXPR_PATH ? NULL : fail_needs_path(checker, node);
    /* AWS takes if_not_exists() as an operand here, but not the function itself. */
    for (struct expr_node *arg = node->args; arg; arg = arg->next) {
        if (arg->kind == EXPR_FUNCTION && arg->function == FUNCTION_LIST_APPEND)
            return fail_misused(checker, arg);
    }
    error = check_type(checker, node->text, node->args, 1 << VALUE_L);
    return error ? error : check_type(checker, node->text, node->args->next, 1 << VALUE_L);
}

/* ADD takes numbers and sets, DELETE sets; their message names types in words. */
static const char *check_operand(struct expr_checker *checker, const struct expr_action *action)
{
    static const char *const words[] = {
        [VALUE_S] = "STRING",  [VALUE_N] = "NUMBER", [VALUE_B] = "BINARY", [VALUE_BOOL] = "BOOLEAN",
        [VALUE_NULL] = "NULL", [VALUE_L] = "LIST",   [VALUE_M] = "MAP"};
    if (action->kind != ACTION_ADD && action->kind != ACTION_DELETE)
        return NULL;
    enum value_type type = action->operand->value.type;
    if (type >= VALUE_SS || (type == VALUE_N && action->kind == ACTION_ADD))
        return NULL;
    return FAIL(checker,
                "Incorrect operand type for operator or function; operator: %s, operand type: %s",
                action->kind == ACTION_ADD ? "ADD" : "DELETE", words[type]);
}

/* Visits the operands of all actions. */
static const char *walk_actions(struct expr_checker *checker, struct expr_parsed *parsed,
                                const char *visit(struct expr_checker *, struct expr_node *))
{
    const char *error = NULL;
    for (struct expr_action *action = parsed->actions; action && !error; action = action->next) {
        if (action->operand)
            error = walk_up(checker, action->operand, visit);
    }
    return error;
}

/* The paths and the operands of all actions, in the order in which they are written. */
static const char *check_names(struct expr_checker *checker, struct expr_parsed *parsed,
                               const char *check_path(struct expr_checker *, struct expr_path *),
                               const char *visit(struct expr_checker *, struct expr_node *))
{
    const char *error = NULL;
    for (struct expr_action *action = parsed->actions; action && !error; action = action->next) {
        error = check_path(checker, &action->path);
        if (!error && action->operand)
            error = walk(checker, action->operand, visit);
    }
    return error;
}

const char *expr_check_update(struct expr_scope *scope, struct expr_parsed *parsed)
{
    struct expr_checker checker = {.scope = scope, .what = "UpdateExpression"};
    const char *error = check_shape(&checker, parsed);
    if (!error)
        error = check_names(&checker, parsed, check_steps, visit_steps);
    if (!error)
        error = walk_actions(&checker, parsed, visit_update_function);
    if (!error && parsed->repeated_section)
        error = FAIL(&checker, "The \"%s\" section can only be used once in an update expression;",
                     parsed->repeated_section);
    if (!error)
        error = check_names(&checker, parsed, expr_resolve_path, visit_path);
    if (!error)
        error = walk_actions(&checker, parsed, visit_value);
    if (error)
        return error;
    parsed->path_count = parsed->action_count;
    parsed->paths = arena_array(scope->arena, struct expr_path, parsed->path_count);
    uint32_t count = 0;
    for (struct expr_action *action = parsed->actions; action; action = action->next)
        parsed->paths[count++] = action->path;
    error = expr_paths_check(scope->arena, checker.what, parsed->paths, count);
    for (struct expr_action *action = parsed->actions; action && !error; action = action->next)
        error = check_operand(&checker, action);
    return error ? error : walk_actions(&checker, parsed, visit_update_types);
}
