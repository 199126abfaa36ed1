/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_EXPR_INTERNAL_H
#define REGION_EXPR_INTERNAL_H

/* The parts of the expression language and what they hand on:
 *
 *   text -- expr_lex --> tokens -- expr_parse --> nodes -- expr_check --> nodes with names, values
 *                                                  |                        |
 *                     expr_legacy builds nodes ----+        expr_eval, expr_key, expr_project,
 *                                                           expr_update
 *
 * Parsing finds syntax errors only; all other complaints come from expr_check, in the order in
 * which AWS makes them. Nodes live in the request's arena and are never changed once checked. */

#include "region/core/expr.h"

enum expr_kind {
    EXPR_OR,
    EXPR_AND,
    EXPR_NOT,
    EXPR_EQ,
    EXPR_NE,
    EXPR_LT,
    EXPR_LE,
    EXPR_GT,
    EXPR_GE,
    EXPR_BETWEEN,
    EXPR_IN,
    EXPR_FUNCTION,
    EXPR_PLUS,
    EXPR_MINUS,
    EXPR_PATH,
    EXPR_VALUE
};

enum expr_function {
    FUNCTION_UNKNOWN,
    FUNCTION_ATTRIBUTE_EXISTS,
    FUNCTION_ATTRIBUTE_NOT_EXISTS,
    FUNCTION_ATTRIBUTE_TYPE,
    FUNCTION_BEGINS_WITH,
    FUNCTION_CONTAINS,
    FUNCTION_SIZE,
    FUNCTION_IF_NOT_EXISTS,
    FUNCTION_LIST_APPEND
};

struct expr_step {
    bool is_index;
    bool is_placeholder; /* name is still "#n" */
    uint32_t index;
    struct bytes name; /* of an index: its digits */
};

struct expr_path {
    struct expr_step *steps; /* steps[0] is a name */
    uint32_t count;
};

struct expr_node {
    enum expr_kind kind;
    bool in_parentheses;
    enum expr_function function;
    struct bytes text;      /* as written: operator, function name or ":v" */
    struct expr_node *args; /* in order, linked by next */
    struct expr_node *last_arg;
    struct expr_node *next;
    uint32_t arg_count;
    struct expr_path path;
    struct value value;
    enum value_type wanted_type; /* of attribute_type */
};

struct expr_condition {
    struct expr_node *root;
};

struct expr_projection {
    struct expr_path *paths; /* sorted by expr_path_compare, none a prefix of another */
    uint32_t count;
    bool nested;
};

enum expr_action_kind { ACTION_SET, ACTION_REMOVE, ACTION_ADD, ACTION_DELETE };

struct expr_action {
    enum expr_action_kind kind;
    struct expr_path path;
    struct expr_node *operand; /* NULL for REMOVE */
    struct expr_action *next;  /* while parsing */
};

struct expr_update {
    struct expr_action *actions; /* sorted by path, like a projection's paths */
    uint32_t count;
    struct expr_projection touched;
    const char *type_message; /* when an operand meets an attribute of the wrong type */
};

/* One condition on one key attribute. */
struct expr_key_term {
    struct bytes name;
    enum expr_kind kind; /* EQ, LT, LE, GT, GE, BETWEEN, or FUNCTION for begins_with */
    struct value low, high;
};

struct expr_key_condition {
    struct expr_key_term terms[2];
    uint32_t count; /* may be more than 2: that is an error once the schema is known */
};

/* expr_lex.c */

enum expr_token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_NAME_PLACEHOLDER,
    TOKEN_VALUE_PLACEHOLDER,
    TOKEN_NUMBER,
    TOKEN_EQ,
    TOKEN_NE,
    TOKEN_LT,
    TOKEN_LE,
    TOKEN_GT,
    TOKEN_GE,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_OPEN_INDEX,
    TOKEN_CLOSE_INDEX,
    TOKEN_COMMA,
    TOKEN_DOT,
    TOKEN_OR,
    TOKEN_AND,
    TOKEN_NOT,
    TOKEN_BETWEEN,
    TOKEN_IN,
    TOKEN_SET,
    TOKEN_REMOVE,
    TOKEN_ADD,
    TOKEN_DELETE,
    TOKEN_OTHER /* a character that starts no token */
};

/* Which words are keywords: elsewhere they are names (and, if reserved, refused as such). */
enum expr_grammar { GRAMMAR_CONDITION, GRAMMAR_UPDATE, GRAMMAR_PROJECTION };

struct expr_token {
    enum expr_token_kind kind;
    size_t start, end; /* in the text */
};

struct expr_lexer {
    enum expr_grammar grammar;
    struct bytes text;
    struct expr_token previous, current, next;
};

void expr_lexer_init(struct expr_lexer *lexer, enum expr_grammar grammar, struct bytes text);
void expr_lexer_advance(struct expr_lexer *lexer);
struct bytes expr_token_text(const struct expr_lexer *lexer, const struct expr_token *token);

/* Formats into the arena. */
const char *expr_message(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same behind "Invalid <what>: ". */
const char *expr_invalid(struct arena *arena, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Text for "%.*s". */
#define EXPR_TEXT(bytes) (int)(bytes).len, (const char *)(bytes).at

/* expr_words.c */

bool expr_is_reserved(struct bytes word);
enum expr_function expr_function_find(struct bytes name);

/* expr_parse.c: the first error, or NULL. */

struct expr_parsed {
    struct expr_node *condition;
    struct expr_action *actions;
    uint32_t action_count;
    const char *repeated_section; /* "ADD", or NULL */
    struct expr_path *paths;
    uint32_t path_count;
    bool redundant_parentheses;
    uint32_t operators;
};

const char *expr_parse(struct arena *arena, enum expr_grammar grammar, const char *what,
                       struct bytes text, struct expr_parsed *ret);

void expr_node_append(struct expr_node *parent, struct expr_node *arg);

/* expr_resolve.c: the error, or NULL. */

/* Finds a placeholder among many in constant time; empty until it is needed. */
struct expr_placeholder_index {
    uint32_t *slots; /* position + 1, or 0 */
    uint32_t mask;
};

/* One check of one expression. */
struct expr_checker {
    struct expr_scope *scope;
    const char *what; /* for messages */
    struct expr_placeholder_index names, values;
};

const char *expr_resolve_path(struct expr_checker *checker, struct expr_path *path);
const char *expr_resolve_value(struct expr_checker *checker, struct expr_node *node);

/* expr_check.c: completes what was parsed; the first error, or NULL. */

const char *expr_check_condition(struct expr_scope *scope, const char *what,
                                 struct expr_parsed *parsed);
const char *expr_check_projection(struct expr_scope *scope, struct expr_parsed *parsed);
const char *expr_check_update(struct expr_scope *scope, struct expr_parsed *parsed);

/* expr_path.c */

/* Step by step; a prefix comes first, indices by number and before names. */
int expr_path_compare(const struct expr_path *a, const struct expr_path *b);
/* "[a, [1], b]", in the arena. */
const char *expr_path_text(struct arena *arena, const struct expr_path *path);
/* AWS's complaint about the first two paths that overlap or else conflict, or NULL. */
const char *expr_paths_check(struct arena *arena, const char *what, const struct expr_path *paths,
                             uint32_t count);
bool expr_path_find(const struct expr_path *path, struct bytes attributes, struct value *ret);
/* Whether both have the same step at `depth`. */
bool expr_path_shares(const struct expr_path *a, const struct expr_path *b, uint32_t depth);
/* Sorts the paths; they must have passed expr_paths_check. */
void expr_projection_init(struct expr_path *paths, uint32_t count, struct expr_projection *ret);

/* expr_update.c */

/* Sorts the actions by path. */
void expr_update_init(struct arena *arena, const struct expr_parsed *parsed,
                      struct expr_update *ret);

/* expr_legacy.c: the type_message of what AttributeUpdates asks for. */

extern const char expr_legacy_type_message[];

/* expr_key.c */

const char *expr_key_condition_shape(struct arena *arena, const struct expr_node *root,
                                     struct expr_key_condition *ret);

#endif
