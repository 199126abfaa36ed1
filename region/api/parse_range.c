/* SPDX-License-Identifier: Apache-2.0 */
/* Query and Scan: which attributes, which rows, from where on. */

#include "region/api/api_internal.h"
#include "region/api/value_json.h"

#define INVALID "One or more parameter values were invalid: "

static bool read_select(struct request *request)
{
    struct op *op = request->op;
    const char *attributes = json_member(request->body, "ProjectionExpression")
                                 ? "ProjectionExpression"
                             : json_member(request->body, "AttributesToGet") ? "AttributesToGet"
                                                                             : NULL;
    struct bytes select = request_text(request, "Select");
    if (bytes_is(select, "COUNT")) {
        op->select = SELECT_COUNT;
        if (attributes)
            return op_fail(op, API_VALIDATION,
                           INVALID "Cannot specify the %s when choosing to get only the Count",
                           attributes);
    } else if (bytes_is(select, "SPECIFIC_ATTRIBUTES")) {
        op->select = SELECT_SPECIFIC;
        if (!attributes)
            return request_refuse(request, INVALID "Must specify the AttributesToGet or "
                                                   "ProjectionExpression when choosing to get "
                                                   "SPECIFIC_ATTRIBUTES");
    } else if (bytes_is(select, "ALL_PROJECTED_ATTRIBUTES")) {
        if (!json_member(request->body, "IndexName"))
            return request_refuse(request, INVALID "ALL_PROJECTED_ATTRIBUTES can be used only when "
                                                   "Querying using an IndexName");
        if (attributes)
            return op_fail(op, API_VALIDATION,
                           INVALID "Cannot specify the %s when choosing to get "
                                   "ALL_PROJECTED_ATTRIBUTES",
                           attributes);
    } else if (bytes_is(select, "ALL_ATTRIBUTES") && attributes) {
        return op_fail(op, API_VALIDATION,
                       INVALID "Cannot specify the %s when choosing to get ALL_ATTRIBUTES",
                       attributes);
    }
    return true;
}

/* Whole numbers; a fraction is cut off, as AWS does. The table of shapes has bounded it from below;
 * what is beyond 32 bits cannot be reached by any page. */
static uint32_t read_number(const json_t *json)
{
    double real = json_number_value(json);
    return real >= (double)UINT32_MAX ? UINT32_MAX : (uint32_t)real;
}

static bool read_segments(struct request *request)
{
    struct op *op = request->op;
    json_t *segment = json_member(request->body, "Segment");
    json_t *count = json_member(request->body, "TotalSegments");
    if (segment && !count)
        return request_refuse(request,
                              "The TotalSegments parameter is required but was not present in the "
                              "request when Segment parameter is present");
    if (count && !segment)
        return request_refuse(request,
                              "The Segment parameter is required but was not present in the "
                              "request when parameter TotalSegments is present");
    if (!count)
        return true;
    op->segments_given = true;
    op->segment = read_number(segment);
    op->segment_count = read_number(count);
    if (op->segment >= op->segment_count)
        return op_fail(op, API_VALIDATION,
                       "The Segment parameter is zero-based and must be less than parameter "
                       "TotalSegments: Segment: %u is not less than TotalSegments: %u",
                       op->segment, op->segment_count);
    return true;
}

static bool read_start_key(struct request *request)
{
    struct op *op = request->op;
    json_t *key = json_member(request->body, "ExclusiveStartKey");
    if (!key)
        return true;
    op->start_key_given = true;
    const char *problem = item_from_json(request->arena, key, &op->start_key);
    return !problem ||
           op_fail(op, API_VALIDATION, "The provided starting key is invalid: %s", problem);
}

static bool read_key_condition(struct request *request)
{
    struct op *op = request->op;
    json_t *text = json_member(request->body, "KeyConditionExpression");
    if (!text)
        return op->key_condition ||
               request_refuse(request,
                              "Either the KeyConditions or KeyConditionExpression parameter must "
                              "be specified in the request.");
    const char *problem = expr_parse_key_condition(&op->scope, json_copy_text(request->arena, text),
                                                   &op->key_condition);
    return !problem || request_refuse(request, problem);
}

static bool read_index(struct request *request)
{
    struct op *op = request->op;
    json_t *index = json_member(request->body, "IndexName");
    if (!index)
        return true;
    op->index_given = true;
    op->index_name = json_copy_text(request->arena, index);
    return true;
}

static bool read_conditions(struct request *request, bool query)
{
    struct op *op = request->op;
    if (!legacy_read_filter(request, query ? "QueryFilter" : "ScanFilter") ||
        (query && !legacy_read_key_conditions(request)) ||
        !request_read_scope(request, request->body, &op->scope))
        return false;
    /* AWS's order when several are wrong: key condition, filter, projection. */
    return (!query || read_key_condition(request)) &&
           request_read_condition(request, "FilterExpression", &op->filter) &&
           request_read_projection(request, request->body, &op->scope, &op->projection) &&
           request_check_unused(request, &op->scope);
}

bool parse_range(struct request *request)
{
    static const char *const query_expressions[] = {"ProjectionExpression", "FilterExpression",
                                                    "KeyConditionExpression", NULL};
    static const char *const query_legacy[] = {"AttributesToGet", "QueryFilter",
                                               "ConditionalOperator", "KeyConditions", NULL};
    static const char *const scan_expressions[] = {"ProjectionExpression", "FilterExpression",
                                                   NULL};
    static const char *const scan_legacy[] = {"AttributesToGet", "ScanFilter",
                                              "ConditionalOperator", NULL};
    struct op *op = request->op;
    bool query = op->kind == OP_QUERY;
    request_read_returns(request);
    op->consistent_read = request_flag(request, "ConsistentRead", false);
    op->scan_forward = request_flag(request, "ScanIndexForward", true);
    json_t *limit = json_member(request->body, "Limit");
    if (limit)
        op->limit = read_number(limit);
    return request_read_table(request) &&
           request_check_styles(request, request->body,
                                query ? query_expressions : scan_expressions,
                                query ? query_legacy : scan_legacy) &&
           read_index(request) && read_start_key(request) &&
           legacy_read_projection(request, request->body, &op->projection) &&
           read_select(request) && (query || read_segments(request)) &&
           read_conditions(request, query);
}
