/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

/* Between api.c and the parse_*.c files: a request on its way to an operation. By the time it gets
 * here its body has the right types and its members meet their constraints, so what is left are the
 * rules that tie members together. Every parse function returns false once it has refused. */

#include "region/api/api.h"
#include "region/api/json.h"

struct request {
    struct op *op;
    struct arena *arena; /* the op's */
    json_t *body;
};

bool parse_item(struct request *request);    /* Get, Put, Update, Delete */
bool parse_range(struct request *request);   /* Query, Scan */
bool parse_batch(struct request *request);   /* BatchGet, BatchWrite */
bool parse_control(struct request *request); /* tables */

/* parse.c, shared by the above. */

/* A ValidationException with this message; always false. */
bool request_refuse(struct request *request, const char *message);
/* Takes a name or an ARN, gives the name, copied. */
bool request_table_name(struct request *request, struct bytes text, struct bytes *ret);
/* Reads TableName into the op. */
bool request_read_table(struct request *request);
bool request_flag(const struct request *request, const char *name, bool otherwise);
/* A string member; empty when it is absent. */
struct bytes request_text(const struct request *request, const char *name);
bool request_is(const struct request *request, const char *name, const char *value);
/* ReturnConsumedCapacity and ReturnItemCollectionMetrics. */
void request_read_returns(struct request *request);
/* Key, Item or the like into an item. */
bool request_read_item(struct request *request, const json_t *json, struct bytes *ret);

/* Expressions and their forerunners exclude each other, and names and values need an expression.
 * `expressions` and `legacy` list members, NULL at the end. */
bool request_check_styles(struct request *request, const json_t *owner,
                          const char *const *expressions, const char *const *legacy);
/* ExpressionAttributeNames and Values of the owner: the body, or a table's part of a batch. */
bool request_read_scope(struct request *request, const json_t *owner, struct expr_scope *ret);
/* Each parses its member if it is there. */
bool request_read_condition(struct request *request, const char *member,
                            struct expr_condition **ret);
bool request_read_projection(struct request *request, const json_t *owner, struct expr_scope *scope,
                             struct expr_projection **ret);
bool request_check_unused(struct request *request, const struct expr_scope *scope);

/* parse_legacy.c: AttributesToGet, Expected, AttributeUpdates, KeyConditions, QueryFilter and
 * ScanFilter, each into the same structures as the expression that came after it. */
bool legacy_read_projection(struct request *request, const json_t *owner,
                            struct expr_projection **ret);
bool legacy_read_expected(struct request *request);
bool legacy_read_updates(struct request *request);
bool legacy_read_filter(struct request *request, const char *member);
bool legacy_read_key_conditions(struct request *request);

/* describe.c */
void table_write_json(struct buf *to, const struct table *table, uint16_t region);

#endif
