/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_EXPR_H
#define REGION_EXPR_H

/* DynamoDB's expression language. Parsing happens once, at the edge, before the table is looked up
 * (AWS's order); what it returns lives in the request's arena and borrows from the request's names
 * and values. Evaluation reads encoded items in place.
 *
 * Error texts are AWS's, whole: "Invalid UpdateExpression: Syntax error; token: ...". Every parser
 * bounds length (4096 bytes), operators (300), nesting and path depth, as AWS does. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "region/core/item.h"
#include "region/core/table.h"

enum { EXPR_LEN_MAX = 4096, EXPR_OPERATORS_MAX = 300, EXPR_PATH_DEPTH_MAX = 32 };

/* ExpressionAttributeNames and Values of one request, with marks of what was used. */
struct expr_name {
    struct bytes placeholder; /* "#n" */
    struct bytes name;
    bool used;
};
struct expr_value {
    struct bytes placeholder; /* ":v" */
    struct value value;
    bool used;
};
struct expr_scope {
    struct arena *arena;
    struct expr_name *names;
    uint32_t name_count;
    bool names_given; /* the member was present, even if empty */
    struct expr_value *values;
    uint32_t value_count;
    bool values_given;
};

struct expr_condition;     /* also a FilterExpression */
struct expr_key_condition; /* a KeyConditionExpression, not yet tied to a schema */
struct expr_projection;
struct expr_update;

/* Each returns NULL on success, else AWS's message (in the arena, NUL-terminated), for a
 * ValidationException. `what` is "ConditionExpression" or "FilterExpression". */
const char *expr_parse_condition(struct expr_scope *scope, const char *what, struct bytes text,
                                 struct expr_condition **ret);
const char *expr_parse_key_condition(struct expr_scope *scope, struct bytes text,
                                     struct expr_key_condition **ret);
const char *expr_parse_projection(struct expr_scope *scope, struct bytes text,
                                  struct expr_projection **ret);
const char *expr_parse_update(struct expr_scope *scope, struct bytes text,
                              struct expr_update **ret);
/* Whether a key of ExpressionAttributeNames ('#') or Values (':') is well-formed. */
bool expr_placeholder_check(struct bytes placeholder, char prefix);
/* After all expressions of a request: names or values that none of them used. */
const char *expr_check_unused(const struct expr_scope *scope);

/* What a condition, projection or update touches of the key: AWS refuses filters on key attributes
 * in Query ("Filter Expression can only contain non-primary key attributes: ...") and updates of
 * them ("Cannot update attribute X. This attribute is part of the key"). NULL when fine. */
const char *expr_filter_check_key(const struct expr_condition *filter, const struct key_schema *key,
                                  struct arena *arena);
const char *expr_update_check_key(const struct expr_update *update, const struct key_schema *key,
                                  struct arena *arena);

/* Whether the condition holds for an item (empty run: no item). A comparison of unlike types is
 * false, never an error. */
bool expr_condition_holds(const struct expr_condition *condition, struct bytes item);

/* A key condition tied to a schema: one partition key value and bounds on the sort key. */
struct key_range {
    struct value hash;
    struct bytes begin; /* row keys, inclusive; in the arena */
    struct bytes end;   /* exclusive */
};
const char *expr_key_condition_bind(const struct expr_key_condition *condition,
                                    const struct key_schema *key, struct arena *arena,
                                    struct key_range *ret);

/* Appends the projected item, canonical. A list keeps its elements' order and closes its gaps. */
void expr_project(const struct expr_projection *projection, struct bytes item, struct buf *to);
/* Names of the top-level attributes a projection reads, for size and key checks. */
bool expr_projection_has_nested(const struct expr_projection *projection);

/* Applies an update to `item` (empty run: none; then `key`, an item of the key attributes, is what
 * it starts from) and appends the new item. Returns NULL or AWS's message ("The provided expression
 * refers to an attribute that does not exist in the item", "An operand in the update expression has
 * an incorrect data type", ...). Size is the caller's to check, though an item far beyond it is
 * refused here already. */
const char *expr_update_apply(const struct expr_update *update, struct bytes item, struct bytes key,
                              struct arena *arena, struct buf *to);
/* Whether it makes an item where there is none: what only removes and deletes does
 * not, and AWS does not even look whether its paths are there. */
bool expr_update_creates(const struct expr_update *update);
/* For ReturnValues UPDATED_OLD and UPDATED_NEW: appends the item of the touched paths as they are
 * in `item` (the old or the new one). */
void expr_update_touched(const struct expr_update *update, struct bytes item, struct buf *to);

/* The same things without text, for the members that expressions replaced: Expected,
 * KeyConditions, QueryFilter, ScanFilter, AttributesToGet, AttributeUpdates. A name is a whole
 * top-level attribute, whatever characters it has. The caller has validated the number and types of
 * the values, as the messages for those name the member, and that no name comes twice. Everything
 * given must outlive the result. */
enum expr_legacy_operator {
    EXPR_LEGACY_EQ,
    EXPR_LEGACY_NE,
    EXPR_LEGACY_LE,
    EXPR_LEGACY_LT,
    EXPR_LEGACY_GE,
    EXPR_LEGACY_GT,
    EXPR_LEGACY_NOT_NULL, /* also Exists: true, without a value */
    EXPR_LEGACY_NULL,     /* also Exists: false */
    EXPR_LEGACY_CONTAINS,
    EXPR_LEGACY_NOT_CONTAINS,
    EXPR_LEGACY_BEGINS_WITH,
    EXPR_LEGACY_IN,
    EXPR_LEGACY_BETWEEN
};
struct expr_legacy_condition {
    struct bytes name;
    enum expr_legacy_operator operator;
    const struct value *values;
    uint32_t value_count;
};
/* How many values an operator takes. */
bool expr_legacy_takes(enum expr_legacy_operator operator, uint32_t value_count);
/* `any`: ConditionalOperator is OR. count > 0. */
struct expr_condition *expr_build_condition(struct arena *arena,
                                            const struct expr_legacy_condition *at, uint32_t count,
                                            bool any);
/* NULL for an operator that is none for keys. */
struct expr_key_condition *expr_build_key_condition(struct arena *arena,
                                                    const struct expr_legacy_condition *at,
                                                    uint32_t count);
struct expr_projection *expr_build_projection(struct arena *arena, const struct bytes *names,
                                              uint32_t count);

enum expr_legacy_action { EXPR_LEGACY_PUT, EXPR_LEGACY_ADD, EXPR_LEGACY_DELETE };
struct expr_legacy_update {
    struct bytes name;
    enum expr_legacy_action action;
    bool value_given; /* only DELETE does without */
    struct value value;
};
struct expr_update *expr_build_update(struct arena *arena, const struct expr_legacy_update *at,
                                      uint32_t count);

#endif
