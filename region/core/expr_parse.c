/* SPDX-License-Identifier: Apache-2.0 */
/* From tokens to nodes, by recursive descent:
 *
 *   condition  := and (OR and)*          and := not (AND not)*          not := NOT* comparison
 *   comparison := primary [ operator operand | BETWEEN operand AND operand | IN ( operand, ... ) ]
 *   primary    := ( condition or operand ) | operand
 *   operand    := ( operand ) | :value | name ( operand, ... ) | path
 *   path       := step ( . step | [ number ] )*, whose beginning may stand in parentheses
 *
 *   update     := ( SET path = sum, ... | REMOVE path, ... | ADD path :value, ... | DELETE ... )+
 *   sum        := ( sum ) | operand [ + operand | - operand ]
 *
 * An operand and a condition can both begin with a parenthesis, so one rule reads both, and whoever
 * needs one or the other checks what it got. Only functions can be either; expr_check sorts them
 * out. Nesting is bounded, so that no text overflows the stack. */

#include "conflict/base/check.h"
#include "region/core/expr_internal.h"

/* Deeper than any text whose parentheses are not redundant and that keeps to the operator limit. */
enum { DEPTH_MAX = 400 };

struct parser {
    struct expr_lexer lexer;
    struct arena *arena;
    const char *what;
    const char *error; /* the first one */
    uint32_t depth;
    struct expr_parsed *out;
};

static enum expr_token_kind peek(const struct parser *parser)
{
    return parser->lexer.current.kind;
}

/* Always NULL, so that a caller can return it. */
static void *fail_syntax(struct parser *parser)
{
    struct expr_lexer *lexer = &parser->lexer;
    if (parser->error)
        return NULL;
    bool end = peek(parser) == TOKEN_END;
    struct bytes token = end ? bytes_literal("<EOF>") : expr_token_text(lexer, &lexer->current);
    size_t near_end = end ? lexer->previous.end : lexer->next.end;
    if (!end && lexer->next.kind == TOKEN_END)
        near_end = lexer->current.end;
    struct bytes near = {lexer->text.at + lexer->previous.start, near_end - lexer->previous.start};
    parser->error =
        expr_invalid(parser->arena, parser->what, "Syntax error; token: \"%.*s\", near: \"%.*s\"",
                     EXPR_TEXT(token), EXPR_TEXT(near));
    return NULL;
}

static bool take(struct parser *parser, enum expr_token_kind kind)
{
    if (peek(parser) != kind)
        return false;
    expr_lexer_advance(&parser->lexer);
    return true;
}

static bool expect(struct parser *parser, enum expr_token_kind kind)
{
    if (!take(parser, kind))
        fail_syntax(parser);
    return !parser->error;
}

static struct expr_node *node_new(struct parser *parser, enum expr_kind kind)
{
    struct expr_node *node = arena_new(parser->arena, struct expr_node);
    node->kind = kind;
    node->text = expr_token_text(&parser->lexer, &parser->lexer.current);
    return node;
}

void expr_node_append(struct expr_node *parent, struct expr_node *arg)
{
    if (parent->last_arg)
        parent->last_arg->next = arg;
    else
        parent->args = arg;
    parent->last_arg = arg;
    parent->arg_count++;
}

static bool is_operand(const struct expr_node *node)
{
    return node->kind >= EXPR_FUNCTION;
}

static bool is_condition(const struct expr_node *node)
{
    return node->kind <= EXPR_FUNCTION;
}

/* An operand that stands where a condition must is found out by what follows it. */
static bool require_condition(struct parser *parser, const struct expr_node *node)
{
    if (node && !is_condition(node))
        fail_syntax(parser);
    return !parser->error;
}

static bool nest(struct parser *parser)
{
    if (parser->depth < DEPTH_MAX) {
        parser->depth++;
        return true;
    }
    if (!parser->error && parser->out->operators > EXPR_OPERATORS_MAX)
        parser->error = expr_invalid(parser->arena, parser->what,
                                     "The expression contains too many operators; "
                                     "operator count: %u",
                                     parser->out->operators);
    if (!parser->error)
        parser->error =
            expr_invalid(parser->arena, parser->what, "The expression has redundant parentheses;");
    return false;
}

/* Paths. */

/* The array doubles when its length is a power of two. */
static struct expr_step *path_push(struct parser *parser, struct expr_path *path)
{
    if ((path->count & (path->count - 1)) == 0) {
        uint32_t room = path->count ? 2 * path->count : 1;
        struct expr_step *steps = arena_array(parser->arena, struct expr_step, room);
        if (path->count)
            memcpy(steps, path->steps, path->count * sizeof(*steps));
        path->steps = steps;
    }
    struct expr_step *step = &path->steps[path->count++];
    step->name = expr_token_text(&parser->lexer, &parser->lexer.current);
    return step;
}

static bool parse_name_step(struct parser *parser, struct expr_path *path)
{
    enum expr_token_kind kind = peek(parser);
    if (kind != TOKEN_NAME && kind != TOKEN_NAME_PLACEHOLDER) {
        fail_syntax(parser);
        return false;
    }
    path_push(parser, path)->is_placeholder = kind == TOKEN_NAME_PLACEHOLDER;
    expr_lexer_advance(&parser->lexer);
    return true;
}

static bool parse_path_rest(struct parser *parser, struct expr_path *path)
{
    for (;;) {
        if (take(parser, TOKEN_DOT)) {
            if (!parse_name_step(parser, path))
                return false;
        } else if (take(parser, TOKEN_OPEN_INDEX)) {
            if (peek(parser) == TOKEN_NUMBER)
                path_push(parser, path)->is_index = true;
            if (!expect(parser, TOKEN_NUMBER) || !expect(parser, TOKEN_CLOSE_INDEX))
                return false;
        } else {
            return true;
        }
    }
}

static bool parse_path(struct parser *parser, struct expr_path *path)
{
    return parse_name_step(parser, path) && parse_path_rest(parser, path);
}

/* Operands. */

static struct expr_node *parse_operand(struct parser *parser);
static struct expr_node *parse_condition(struct parser *parser);

static bool parse_operands(struct parser *parser, struct expr_node *parent)
{
    do {
        struct expr_node *arg = parse_operand(parser);
        if (!arg)
            return false;
        expr_node_append(parent, arg);
    } while (take(parser, TOKEN_COMMA));
    return expect(parser, TOKEN_CLOSE);
}

static struct expr_node *parse_bare_operand(struct parser *parser)
{
    struct expr_lexer *lexer = &parser->lexer;
    struct expr_node *node;
    if (peek(parser) == TOKEN_VALUE_PLACEHOLDER) {
        node = node_new(parser, EXPR_VALUE);
        expr_lexer_advance(lexer);
        return node;
    }
    if (peek(parser) == TOKEN_NAME && lexer->next.kind == TOKEN_OPEN) {
        node = node_new(parser, EXPR_FUNCTION);
        node->function = expr_function_find(node->text);
        parser->out->operators++;
        expr_lexer_advance(lexer);
        expr_lexer_advance(lexer);
        return nest(parser) && parse_operands(parser, node) ? (parser->depth--, node) : NULL;
    }
    node = node_new(parser, EXPR_PATH);
    return parse_path(parser, &node->path) ? node : NULL;
}

/* After the content of a parenthesis. */
static struct expr_node *parse_close(struct parser *parser, struct expr_node *inner)
{
    parser->depth--;
    if (!expect(parser, TOKEN_CLOSE))
        return NULL;
    if (inner->in_parentheses)
        parser->out->redundant_parentheses = true;
    inner->in_parentheses = true;
    bool continued = peek(parser) == TOKEN_DOT || peek(parser) == TOKEN_OPEN_INDEX;
    if (inner->kind == EXPR_PATH && continued && parser->lexer.grammar == GRAMMAR_CONDITION) {
        inner->in_parentheses = false;
        if (!parse_path_rest(parser, &inner->path))
            return NULL;
    }
    return inner;
}

static struct expr_node *parse_operand(struct parser *parser)
{
    if (peek(parser) != TOKEN_OPEN)
        return parse_bare_operand(parser);
    expr_lexer_advance(&parser->lexer);
    struct expr_node *inner = nest(parser) ? parse_operand(parser) : NULL;
    return inner ? parse_close(parser, inner) : NULL;
}

/* Conditions. */

static struct expr_node *parse_primary(struct parser *parser)
{
    if (peek(parser) != TOKEN_OPEN)
        return parse_bare_operand(parser);
    expr_lexer_advance(&parser->lexer);
    struct expr_node *inner = nest(parser) ? parse_condition(parser) : NULL;
    return inner ? parse_close(parser, inner) : NULL;
}

static bool parse_right_side(struct parser *parser, struct expr_node *node)
{
    struct expr_node *arg;
    if (node->kind == EXPR_IN)
        return expect(parser, TOKEN_OPEN) && parse_operands(parser, node);
    if (!(arg = parse_operand(parser)))
        return false;
    expr_node_append(node, arg);
    if (node->kind != EXPR_BETWEEN)
        return true;
    if (!expect(parser, TOKEN_AND) || !(arg = parse_operand(parser)))
        return false;
    expr_node_append(node, arg);
    return true;
}

static struct expr_node *parse_comparison(struct parser *parser)
{
    static const enum expr_kind kinds[] = {
        [TOKEN_EQ] = EXPR_EQ, [TOKEN_NE] = EXPR_NE,           [TOKEN_LT] = EXPR_LT,
        [TOKEN_LE] = EXPR_LE, [TOKEN_GT] = EXPR_GT,           [TOKEN_GE] = EXPR_GE,
        [TOKEN_IN] = EXPR_IN, [TOKEN_BETWEEN] = EXPR_BETWEEN,
    };
    struct expr_node *left = parse_primary(parser);
    if (!left || peek(parser) >= array_len(kinds) || kinds[peek(parser)] == EXPR_OR)
        return left;
    if (!is_operand(left))
        return fail_syntax(parser);
    struct expr_node *node = node_new(parser, kinds[peek(parser)]);
    parser->out->operators++;
    expr_lexer_advance(&parser->lexer);
    expr_node_append(node, left);
    return parse_right_side(parser, node) ? node : NULL;
}

static struct expr_node *parse_not(struct parser *parser)
{
    struct expr_node *outer = NULL, *inner = NULL;
    while (peek(parser) == TOKEN_NOT) {
        struct expr_node *node = node_new(parser, EXPR_NOT);
        parser->out->operators++;
        expr_lexer_advance(&parser->lexer);
        if (inner)
            expr_node_append(inner, node);
        else
            outer = node;
        inner = node;
    }
    struct expr_node *operand = parse_comparison(parser);
    if (!operand || !inner)
        return operand;
    if (!require_condition(parser, operand))
        return NULL;
    expr_node_append(inner, operand);
    return outer;
}

/* One node for a whole row of ANDs or ORs, so that a long row is not a deep tree. */
static struct expr_node *parse_row(struct parser *parser, enum expr_token_kind token,
                                   enum expr_kind kind,
                                   struct expr_node *parse_part(struct parser *))
{
    struct expr_node *first = parse_part(parser);
    if (!first || peek(parser) != token)
        return first;
    struct expr_node *row = node_new(parser, kind);
    if (!require_condition(parser, first))
        return NULL;
    expr_node_append(row, first);
    while (take(parser, token)) {
        parser->out->operators++;
        struct expr_node *part = parse_part(parser);
        if (!part || !require_condition(parser, part))
            return NULL;
        expr_node_append(row, part);
    }
    return row;
}

static struct expr_node *parse_and(struct parser *parser)
{
    return parse_row(parser, TOKEN_AND, EXPR_AND, parse_not);
}

static struct expr_node *parse_condition(struct parser *parser)
{
    return parse_row(parser, TOKEN_OR, EXPR_OR, parse_and);
}

static void parse_whole_condition(struct parser *parser)
{
    struct expr_node *root = parse_condition(parser);
    if (!root)
        return;
    if (peek(parser) != TOKEN_END || !is_condition(root))
        fail_syntax(parser);
    parser->out->condition = root;
}

static void parse_projection(struct parser *parser)
{
    struct expr_path *paths = NULL;
    uint32_t count = 0;
    do {
        if ((count & (count - 1)) == 0) {
            struct expr_path *more =
                arena_array(parser->arena, struct expr_path, count ? 2 * count : 1);
            if (count)
                memcpy(more, paths, count * sizeof(*more));
            paths = more;
        }
        if (!parse_path(parser, &paths[count++]))
            return;
    } while (take(parser, TOKEN_COMMA));
    if (peek(parser) != TOKEN_END)
        fail_syntax(parser);
    parser->out->paths = paths;
    parser->out->path_count = count;
}

/* Updates. */

static struct expr_node *parse_sum(struct parser *parser)
{
    struct expr_node *left;
    if (peek(parser) == TOKEN_OPEN) {
        expr_lexer_advance(&parser->lexer);
        struct expr_node *inner = nest(parser) ? parse_sum(parser) : NULL;
        left = inner ? parse_close(parser, inner) : NULL;
    } else {
        left = parse_bare_operand(parser);
    }
    enum expr_token_kind token = peek(parser);
    /* A sum in parentheses takes no further operator: AWS allows one in a value. */
    if (!left || !is_operand(left) || left->kind == EXPR_PLUS || left->kind == EXPR_MINUS ||
        (token != TOKEN_PLUS && token != TOKEN_MINUS))
        return left;
    struct expr_node *sum = node_new(parser, token == TOKEN_PLUS ? EXPR_PLUS : EXPR_MINUS);
    parser->out->operators++;
    expr_lexer_advance(&parser->lexer);
    struct expr_node *right = parse_operand(parser);
    if (!right)
        return NULL;
    expr_node_append(sum, left);
    expr_node_append(sum, right);
    return sum;
}

static bool parse_action(struct parser *parser, struct expr_action *action)
{
    if (!parse_path(parser, &action->path))
        return false;
    switch (action->kind) {
    case ACTION_SET:
        if (!expect(parser, TOKEN_EQ))
            return false;
        action->operand = parse_sum(parser);
        return action->operand != NULL;
    case ACTION_REMOVE:
        return true;
    case ACTION_ADD:
    case ACTION_DELETE:
        if (peek(parser) != TOKEN_VALUE_PLACEHOLDER)
            return fail_syntax(parser) != NULL;
        action->operand = parse_bare_operand(parser);
        return true;
    }
    unreachable();
}

static void parse_update(struct parser *parser)
{
    static const char *const names[] = {"SET", "REMOVE", "ADD", "DELETE"};
    struct expr_action **end = &parser->out->actions;
    bool seen[4] = {false};
    do {
        if (peek(parser) < TOKEN_SET || peek(parser) > TOKEN_DELETE) {
            fail_syntax(parser);
            return;
        }
        enum expr_action_kind kind = (enum expr_action_kind)(peek(parser) - TOKEN_SET);
        if (seen[kind] && !parser->out->repeated_section)
            parser->out->repeated_section = names[kind];
        seen[kind] = true;
        expr_lexer_advance(&parser->lexer);
        do {
            struct expr_action *action = arena_new(parser->arena, struct expr_action);
            action->kind = kind;
            if (!parse_action(parser, action))
                return;
            *end = action;
            end = &action->next;
            parser->out->action_count++;
        } while (take(parser, TOKEN_COMMA));
    } while (peek(parser) != TOKEN_END);
}

const char *expr_parse(struct arena *arena, enum expr_grammar grammar, const char *what,
                       struct bytes text, struct expr_parsed *ret)
{
    struct parser parser = {.arena = arena, .what = what, .out = ret};
    *ret = (struct expr_parsed){0};
    if (text.len > EXPR_LEN_MAX)
        return expr_invalid(arena, what,
                            "Expression size has exceeded the maximum allowed size; "
                            "expression size: %zu",
                            text.len);
    expr_lexer_init(&parser.lexer, grammar, text);
    if (peek(&parser) == TOKEN_END)
        return expr_invalid(arena, what, "The expression can not be empty;");
    switch (grammar) {
    case GRAMMAR_CONDITION:
        parse_whole_condition(&parser);
        break;
    case GRAMMAR_UPDATE:
        parse_update(&parser);
        break;
    case GRAMMAR_PROJECTION:
        parse_projection(&parser);
        break;
    }
    return parser.error;
}
