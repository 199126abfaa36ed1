/* SPDX-License-Identifier: Apache-2.0 */
/* GetItem, PutItem, UpdateItem and DeleteItem: one key each. Most requests have no members but the
 * two that they must have, and to look for each of the others would be a good part of their cost.
 */

#include "conflict/base/check.h"
#include "region/api/api_internal.h"

static struct op_key *only_key(struct request *request)
{
    struct op *op = request->op;
    op->keys = arena_new(request->arena, struct op_key);
    op->key_count = 1;
    op->keys[0].table_name = op->table_name;
    return op->keys;
}

/* Nothing is asked beyond the required members, which are there: the constraints have been checked.
 */
static bool is_plain(const struct request *request)
{
    enum { REQUIRED = 2 }; /* TableName, and Key or Item */
    return json_object_size(request->body) == REQUIRED;
}

static bool parse_get(struct request *request)
{
    static const char *const expressions[] = {"ProjectionExpression", NULL};
    static const char *const legacy[] = {"AttributesToGet", NULL};
    struct op *op = request->op;
    struct op_key *key = only_key(request);
    if (is_plain(request))
        return request_read_item(request, json_member(request->body, "Key"), &key->attributes);
    op->consistent_read = request_flag(request, "ConsistentRead", false);
    return request_check_styles(request, request->body, expressions, legacy) &&
           request_read_item(request, json_member(request->body, "Key"), &key->attributes) &&
           legacy_read_projection(request, request->body, &op->projection) &&
           request_read_scope(request, request->body, &op->scope) &&
           request_read_projection(request, request->body, &op->scope, &op->projection) &&
           request_check_unused(request, &op->scope);
}

static enum return_values return_values_of(const struct request *request)
{
    struct bytes text = request_text(request, "ReturnValues");
    if (bytes_is(text, "ALL_OLD"))
        return RETURN_ALL_OLD;
    if (bytes_is(text, "ALL_NEW"))
        return RETURN_ALL_NEW;
    if (bytes_is(text, "UPDATED_OLD"))
        return RETURN_UPDATED_OLD;
    if (bytes_is(text, "UPDATED_NEW"))
        return RETURN_UPDATED_NEW;
    return RETURN_NONE;
}

static bool read_write_members(struct request *request)
{
    struct op *op = request->op;
    op->return_values = return_values_of(request);
    op->return_old_on_failure =
        request_is(request, "ReturnValuesOnConditionCheckFailure", "ALL_OLD");
    if (op->kind != OP_UPDATE_ITEM && op->return_values != RETURN_NONE &&
        op->return_values != RETURN_ALL_OLD)
        return request_refuse(request, "ReturnValues can only be ALL_OLD or NONE");
    return true;
}

static const char *const condition_only[] = {"ConditionExpression", NULL};
static const char *const condition_legacy[] = {"Expected", "ConditionalOperator", NULL};

static bool parse_put(struct request *request)
{
    struct op *op = request->op;
    struct op_key *key = only_key(request);
    bool plain = is_plain(request);
    key->put = true;
    if (!plain && !request_check_styles(request, request->body, condition_only, condition_legacy))
        return false;
    if (!request_read_item(request, json_member(request->body, "Item"), &key->attributes) ||
        (!plain && !read_write_members(request)))
        return false;
    if (item_size(key->attributes) > ITEM_SIZE_MAX)
        return request_refuse(request, "Item size has exceeded the maximum allowed size");
    if (plain)
        return true;
    return legacy_read_expected(request) &&
           request_read_scope(request, request->body, &op->scope) &&
           request_read_condition(request, "ConditionExpression", &op->condition) &&
           request_check_unused(request, &op->scope);
}

static bool parse_delete(struct request *request)
{
    struct op *op = request->op;
    struct op_key *key = only_key(request);
    return request_check_styles(request, request->body, condition_only, condition_legacy) &&
           request_read_item(request, json_member(request->body, "Key"), &key->attributes) &&
           read_write_members(request) && legacy_read_expected(request) &&
           request_read_scope(request, request->body, &op->scope) &&
           request_read_condition(request, "ConditionExpression", &op->condition) &&
           request_check_unused(request, &op->scope);
}

static bool read_update(struct request *request)
{
    json_t *text = json_member(request->body, "UpdateExpression");
    if (!text)
        return true;
    const char *problem = expr_parse_update(
        &request->op->scope, json_copy_text(request->arena, text), &request->op->update);
    return !problem || request_refuse(request, problem);
}

static bool parse_update(struct request *request)
{
    static const char *const expressions[] = {"UpdateExpression", "ConditionExpression", NULL};
    static const char *const legacy[] = {"AttributeUpdates", "Expected", "ConditionalOperator",
                                         NULL};
    struct op *op = request->op;
    struct op_key *key = only_key(request);
    return request_check_styles(request, request->body, expressions, legacy) &&
           request_read_item(request, json_member(request->body, "Key"), &key->attributes) &&
           read_write_members(request) && legacy_read_updates(request) &&
           legacy_read_expected(request) &&
           request_read_scope(request, request->body, &op->scope) && read_update(request) &&
           request_read_condition(request, "ConditionExpression", &op->condition) &&
           request_check_unused(request, &op->scope);
}

bool parse_item(struct request *request)
{
    if (!is_plain(request))
        request_read_returns(request);
    if (!request_read_table(request))
        return false;
    switch ((int)request->op->kind) {
    case OP_GET_ITEM:
        return parse_get(request);
    case OP_PUT_ITEM:
        return parse_put(request);
    case OP_UPDATE_ITEM:
        return parse_update(request);
    case OP_DELETE_ITEM:
        return parse_delete(request);
    default:
        unreachable();
    }
}
