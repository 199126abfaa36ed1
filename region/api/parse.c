/* SPDX-License-Identifier: Apache-2.0 */
/* What several operations' requests have in common: table names, placeholders, expressions. */

#include "region/api/api_internal.h"

#include "conflict/base/alloc.h"
#include "conflict/region_id.h"
#include "region/api/value_json.h"

bool request_refuse(struct request *request, const char *message)
{
    return op_fail(request->op, API_VALIDATION, "%s", message);
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME */
static bool split_arn(struct bytes arn, struct bytes *ret_region, struct bytes *ret_name)
{
    struct bytes prefix = bytes_literal("arn:aws:dynamodb:");
    if (!bytes_starts_with(arn, prefix))
        return false;
    struct bytes rest = bytes_make(arn.at + prefix.len, arn.len - prefix.len);
    const uint8_t *colon = memchr(rest.at, ':', rest.len);
    if (!colon)
        return false;
    *ret_region = bytes_make(rest.at, (size_t)(colon - rest.at));
    rest = bytes_make(colon + 1, rest.len - ret_region->len - 1);
    struct bytes account = bytes_literal(API_ACCOUNT_ID ":table/");
    if (!bytes_starts_with(rest, account))
        return false;
    *ret_name = bytes_make(rest.at + account.len, rest.len - account.len);
    return ret_name->len >= TABLE_NAME_MIN && ret_name->len <= TABLE_NAME_MAX &&
           !memchr(ret_name->at, '/', ret_name->len);
}

bool request_table_name(struct request *request, struct bytes text, struct bytes *ret)
{
    if (bytes_starts_with(text, bytes_literal("arn:"))) {
        struct bytes region, name;
        if (!split_arn(text, &region, &name) ||
            !bytes_is(region, region_id_name(request->op->region)))
            return request_refuse(
                request, "Invalid TableArn: Invalid ResourceArn provided as input: it must name a "
                         "table of this account in this Region");
        text = name;
    }
    *ret = bytes_copy(request->arena, text);
    return true;
}

bool request_read_table(struct request *request)
{
    return request_table_name(request, json_text(json_member(request->body, "TableName")),
                              &request->op->table_name);
}

bool request_flag(const struct request *request, const char *name, bool otherwise)
{
    json_t *flag = json_member(request->body, name);
    return flag ? json_is_true(flag) : otherwise;
}

struct bytes request_text(const struct request *request, const char *name)
{
    json_t *text = json_member(request->body, name);
    return text ? json_text(text) : BYTES_NONE;
}

bool request_is(const struct request *request, const char *name, const char *value)
{
    return bytes_is(request_text(request, name), value);
}

void request_read_returns(struct request *request)
{
    struct op *op = request->op;
    struct bytes capacity = request_text(request, "ReturnConsumedCapacity");
    if (bytes_is(capacity, "TOTAL"))
        op->return_capacity = CAPACITY_TOTAL;
    else if (bytes_is(capacity, "INDEXES"))
        op->return_capacity = CAPACITY_INDEXES;
    op->return_collection_metrics =
        bytes_is(request_text(request, "ReturnItemCollectionMetrics"), "SIZE");
}

bool request_read_item(struct request *request, const json_t *json, struct bytes *ret)
{
    const char *problem = item_from_json(request->arena, json, ret);
    return !problem || request_refuse(request, problem);
}

/* Appends the members of the list that are present: "A, B". Returns how many. */
static uint32_t list_present(struct buf *to, const json_t *owner, const char *const *members)
{
    uint32_t count = 0;
    for (; *members; members++) {
        if (!json_member(owner, *members))
            continue;
        if (count++ > 0)
            buf_append_text(to, ", ");
        buf_append_text(to, *members);
    }
    return count;
}

static bool refuse_values_alone(struct request *request, const char *const *expressions)
{
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    buf_append_text(&message,
                    "ExpressionAttributeValues can only be specified when using expressions: ");
    uint32_t count = 0;
    for (; *expressions; expressions++) {
        if (strcmp(*expressions, "ProjectionExpression") == 0)
            continue; /* it has no values */
        if (count++ > 0)
            buf_append_text(&message, " and ");
        buf_append_text(&message, *expressions);
    }
    buf_append_text(&message, count == 1 ? " is null" : " are null");
    return request_refuse(request, bytes_copy_text(request->arena, buf_view(&message)));
}

bool request_check_styles(struct request *request, const json_t *owner,
                          const char *const *expressions, const char *const *legacy)
{
    bool names = json_member(owner, "ExpressionAttributeNames");
    bool values = json_member(owner, "ExpressionAttributeValues");
    bool any = false;
    bool any_with_values = false;
    for (const char *const *expression = expressions; *expression; expression++) {
        bool present = json_member(owner, *expression);
        any = any || present;
        any_with_values =
            any_with_values || (present && strcmp(*expression, "ProjectionExpression") != 0);
    }
    if (any) {
        struct buf message cleanup(buf_deinit);
        buf_init(&message);
        buf_append_text(&message, "Can not use both expression and non-expression parameters in "
                                  "the same request: Non-expression parameters: {");
        if (list_present(&message, owner, legacy) > 0) {
            buf_append_text(&message, "} Expression parameters: {");
            list_present(&message, owner, expressions);
            buf_append_text(&message, "}");
            return request_refuse(request, bytes_copy_text(request->arena, buf_view(&message)));
        }
    }
    if (names && !any)
        return request_refuse(
            request, "ExpressionAttributeNames can only be specified when using expressions");
    if (values && !any_with_values)
        return refuse_values_alone(request, expressions);
    return true;
}

static bool refuse_placeholder(struct request *request, const char *member, struct bytes key)
{
    size_t shown = key.len < 256 ? key.len : 256;
    while (shown < key.len && shown > 0 && (key.at[shown] & 0xc0) == 0x80)
        shown--;
    return op_fail(request->op, API_VALIDATION,
                   "%s contains invalid key: Syntax error; key: \"%.*s\"", member, (int)shown,
                   (const char *)key.at);
}

static bool read_names(struct request *request, json_t *json, struct expr_scope *scope)
{
    scope->names_given = true;
    if (json_object_size(json) == 0)
        return request_refuse(request, "ExpressionAttributeNames must not be empty");
    scope->names = arena_array(request->arena, struct expr_name, json_object_size(json));
    const char *key;
    size_t len;
    json_t *value;
    json_object_keylen_foreach(json, key, len, value)
    {
        struct expr_name *name = &scope->names[scope->name_count++];
        name->placeholder = bytes_copy(request->arena, bytes_make(key, len));
        if (!expr_placeholder_check(name->placeholder, '#'))
            return refuse_placeholder(request, "ExpressionAttributeNames", name->placeholder);
        const char *problem =
            attribute_name_problem(json_is_string(value) ? json_text(value) : BYTES_NONE);
        if (problem)
            return op_fail(request->op, API_VALIDATION,
                           "ExpressionAttributeNames contains invalid value: %s; key: %.*s",
                           problem, (int)len, key);
        name->name = json_copy_text(request->arena, value);
    }
    return true;
}

static bool read_values(struct request *request, json_t *json, struct expr_scope *scope)
{
    scope->values_given = true;
    if (json_object_size(json) == 0)
        return request_refuse(request, "ExpressionAttributeValues must not be empty");
    scope->values = arena_array(request->arena, struct expr_value, json_object_size(json));
    const char *key;
    size_t len;
    json_t *json_value;
    json_object_keylen_foreach(json, key, len, json_value)
    {
        struct expr_value *value = &scope->values[scope->value_count++];
        value->placeholder = bytes_copy(request->arena, bytes_make(key, len));
        if (!expr_placeholder_check(value->placeholder, ':'))
            return refuse_placeholder(request, "ExpressionAttributeValues", value->placeholder);
        const char *problem = value_from_json(request->arena, json_value, &value->value);
        if (problem)
            return op_fail(request->op, API_VALIDATION,
                           "ExpressionAttributeValues contains invalid value: %s for key %.*s",
                           problem, (int)len, key);
    }
    return true;
}

bool request_read_scope(struct request *request, const json_t *owner, struct expr_scope *ret)
{
    *ret = (struct expr_scope){.arena = request->arena};
    json_t *names = json_member(owner, "ExpressionAttributeNames");
    json_t *values = json_member(owner, "ExpressionAttributeValues");
    return (!names || read_names(request, names, ret)) &&
           (!values || read_values(request, values, ret));
}

bool request_read_condition(struct request *request, const char *member,
                            struct expr_condition **ret)
{
    json_t *text = json_member(request->body, member);
    if (!text)
        return true;
    const char *problem = expr_parse_condition(&request->op->scope, member,
                                               json_copy_text(request->arena, text), ret);
    return !problem || request_refuse(request, problem);
}

bool request_read_projection(struct request *request, const json_t *owner, struct expr_scope *scope,
                             struct expr_projection **ret)
{
    json_t *text = json_member(owner, "ProjectionExpression");
    if (!text)
        return true;
    const char *problem = expr_parse_projection(scope, json_copy_text(request->arena, text), ret);
    return !problem || request_refuse(request, problem);
}

bool request_check_unused(struct request *request, const struct expr_scope *scope)
{
    const char *problem = expr_check_unused(scope);
    return !problem || request_refuse(request, problem);
}
