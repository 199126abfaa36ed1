/* SPDX-License-Identifier: Apache-2.0 */
/* The members that expressions replaced in 2014 and that AWS still serves. Each becomes the
 * structure that its successor is parsed into, so nothing behind this file knows the difference. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/api/api_internal.h"
#include "region/api/value_json.h"

#define INVALID "One or more parameter values were invalid: "

static bool read_name(struct request *request, struct bytes text, struct bytes *ret)
{
    const char *problem = attribute_name_problem(text);
    if (problem)
        return op_fail(request->op, API_VALIDATION, INVALID "%s", problem);
    *ret = bytes_copy(request->arena, text);
    return true;
}

bool legacy_read_projection(struct request *request, const json_t *owner,
                            struct expr_projection **ret)
{
    json_t *list = json_member(owner, "AttributesToGet");
    if (!list)
        return true;
    uint32_t count = (uint32_t)json_array_size(list);
    struct bytes *names = arena_array(request->arena, struct bytes, count);
    for (uint32_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(list, i);
        if (!read_name(request, json_is_string(name) ? json_text(name) : BYTES_NONE, &names[i]))
            return false;
        for (uint32_t before = 0; before < i; before++) {
            if (bytes_equal(names[before], names[i]))
                return op_fail(request->op, API_VALIDATION,
                               INVALID "Duplicate value in attribute name: %.*s", (int)names[i].len,
                               (const char *)names[i].at);
        }
    }
    *ret = expr_build_projection(request->arena, names, count);
    return true;
}

static enum expr_legacy_operator operator_of(struct bytes name)
{
    static const char *const names[] = {
        [EXPR_LEGACY_EQ] = "EQ",
        [EXPR_LEGACY_NE] = "NE",
        [EXPR_LEGACY_LE] = "LE",
        [EXPR_LEGACY_LT] = "LT",
        [EXPR_LEGACY_GE] = "GE",
        [EXPR_LEGACY_GT] = "GT",
        [EXPR_LEGACY_NOT_NULL] = "NOT_NULL",
        [EXPR_LEGACY_NULL] = "NULL",
        [EXPR_LEGACY_CONTAINS] = "CONTAINS",
        [EXPR_LEGACY_NOT_CONTAINS] = "NOT_CONTAINS",
        [EXPR_LEGACY_BEGINS_WITH] = "BEGINS_WITH",
        [EXPR_LEGACY_IN] = "IN",
        [EXPR_LEGACY_BETWEEN] = "BETWEEN",
    };
    for (size_t i = 0; i < array_len(names); i++) {
        if (bytes_is(name, names[i]))
            return (enum expr_legacy_operator)i;
    }
    unreachable(); /* the table of shapes has the same names */
}

static bool type_allowed(enum expr_legacy_operator operator, enum value_type type)
{
    bool scalar = type == VALUE_S || type == VALUE_N || type == VALUE_B;
    switch (operator) {
    case EXPR_LEGACY_EQ:
    case EXPR_LEGACY_NE:
    case EXPR_LEGACY_NULL:
    case EXPR_LEGACY_NOT_NULL:
        return true;
    case EXPR_LEGACY_LE:
    case EXPR_LEGACY_LT:
    case EXPR_LEGACY_GE:
    case EXPR_LEGACY_GT:
    case EXPR_LEGACY_IN:
    case EXPR_LEGACY_BETWEEN:
        return scalar;
    case EXPR_LEGACY_CONTAINS:
    case EXPR_LEGACY_NOT_CONTAINS:
        return scalar || type == VALUE_BOOL || type == VALUE_NULL;
    case EXPR_LEGACY_BEGINS_WITH:
        return type == VALUE_S || type == VALUE_B;
    }
    unreachable();
}

/* A condition being read, with the names its messages need. */
struct reading {
    struct request *request;
    struct expr_legacy_condition *to;
    const json_t *json;
};

static bool refuse_attribute(const struct reading *reading, const char *before)
{
    struct bytes name = reading->to->name;
    return op_fail(reading->request->op, API_VALIDATION, INVALID "%s for Attribute: %.*s", before,
                   (int)name.len, (const char *)name.at);
}

static bool read_values(const struct reading *reading, const json_t *list, const json_t *single)
{
    struct request *request = reading->request;
    uint32_t count = single ? 1 : (uint32_t)json_array_size(list);
    struct value *values = arena_array(request->arena, struct value, count ? count : 1);
    for (uint32_t i = 0; i < count; i++) {
        const char *problem =
            value_from_json(request->arena, single ? single : json_array_get(list, i), &values[i]);
        if (problem)
            return request_refuse(request, problem);
    }
    reading->to->values = values;
    reading->to->value_count = count;
    return true;
}

/* What a comparison's values must be. */
static bool check_comparison(const struct reading *reading, const char *name)
{
    const struct expr_legacy_condition *to = reading->to;
    struct op *op = reading->request->op;
    if (!expr_legacy_takes(to->operator, to->value_count))
        return op_fail(op, API_VALIDATION,
                       INVALID "Invalid number of argument(s) for the %s ComparisonOperator", name);
    for (uint32_t i = 0; i < to->value_count; i++) {
        enum value_type type = to->values[i].type;
        if (!type_allowed(to->operator, type))
            return op_fail(op, API_VALIDATION,
                           INVALID "ComparisonOperator %s is not valid for %s AttributeValue type",
                           name, value_type_name(type));
        if (type != to->values[0].type)
            return request_refuse(reading->request, INVALID
                                  "AttributeValues inside AttributeValueList must be of same type");
    }
    if (to->operator== EXPR_LEGACY_BETWEEN && value_compare(to->values[0], to->values[1]) > 0)
        return request_refuse(reading->request,
                              "The BETWEEN condition was provided a range where the lower bound is "
                              "greater than the upper bound");
    return true;
}

static bool read_comparison(const struct reading *reading, const json_t *single)
{
    const char *name = json_string_value(json_member(reading->json, "ComparisonOperator"));
    reading->to->operator= operator_of(bytes_text(name));
    return read_values(reading, json_member(reading->json, "AttributeValueList"), single) &&
           check_comparison(reading, name);
}

/* One attribute of Expected: a comparison, or the still older Exists and Value. */
static bool read_expectation(const struct reading *reading)
{
    const json_t *operator= json_member(reading->json, "ComparisonOperator");
    const json_t *list = json_member(reading->json, "AttributeValueList");
    const json_t *value = json_member(reading->json, "Value");
    const json_t *exists = json_member(reading->json, "Exists");
    if (operator) {
        if (exists)
            return refuse_attribute(reading,
                                    "Exists and ComparisonOperator cannot be used together");
        if (list && value)
            return refuse_attribute(reading,
                                    "Value and AttributeValueList cannot be used together");
        enum expr_legacy_operator kind = operator_of(json_text(operator));
        if (!list && !value && !expr_legacy_takes(kind, 0)) {
            struct bytes name = reading->to->name;
            return op_fail(reading->request->op, API_VALIDATION,
                           INVALID "Value or AttributeValueList must be used with "
                                   "ComparisonOperator: %s for Attribute: %.*s",
                           json_string_value(operator), (int)name.len, (const char *)name.at);
        }
        return read_comparison(reading, value);
    }
    if (list)
        return refuse_attribute(reading,
                                "AttributeValueList can only be used with a ComparisonOperator");
    bool must_exist = !exists || json_is_true(exists);
    if (must_exist && !value)
        return refuse_attribute(reading, exists ? "Value must be provided when Exists is true"
                                                : "Value must be provided when Exists is null");
    if (!must_exist && value)
        return refuse_attribute(reading, "Value cannot be used when Exists is false");
    reading->to->operator= must_exist ? EXPR_LEGACY_EQ : EXPR_LEGACY_NULL;
    return !value || read_values(reading, NULL, value);
}

/* Reads a map of conditions. *ret_count is 0 when the member is absent. */
static bool read_conditions(struct request *request, const char *member,
                            struct expr_legacy_condition **ret, uint32_t *ret_count)
{
    json_t *map = json_member(request->body, member);
    bool expected = strcmp(member, "Expected") == 0;
    *ret_count = 0;
    *ret = arena_array(request->arena, struct expr_legacy_condition, json_object_size(map) + 1);
    const char *name;
    size_t len;
    json_t *json;
    json_object_keylen_foreach(map, name, len, json)
    {
        struct expr_legacy_condition *to = &(*ret)[(*ret_count)++];
        if (!read_name(request, bytes_make(name, len), &to->name))
            return false;
        if (!json_is_object(json))
            return request_refuse(request, INVALID "A condition must not be null");
        struct reading reading = {request, to, json};
        if (expected ? !read_expectation(&reading) : !read_comparison(&reading, NULL))
            return false;
    }
    return true;
}

/* Expected and the filters share ConditionalOperator. */
static bool read_filter(struct request *request, const char *member, struct expr_condition **ret)
{
    struct expr_legacy_condition *conditions;
    uint32_t count;
    if (!read_conditions(request, member, &conditions, &count))
        return false;
    if (json_member(request->body, "ConditionalOperator")) {
        if (!json_member(request->body, member))
            return request_refuse(request, INVALID
                                  "ConditionalOperator cannot be used without Filter or Expected");
        if (count < 2)
            return request_refuse(request, INVALID "ConditionalOperator can only be used when "
                                                   "Filter or Expected has two or more elements");
    }
    if (count > 0)
        *ret = expr_build_condition(request->arena, conditions, count,
                                    request_is(request, "ConditionalOperator", "OR"));
    return true;
}

bool legacy_read_expected(struct request *request)
{
    return read_filter(request, "Expected", &request->op->condition);
}

bool legacy_read_filter(struct request *request, const char *member)
{
    return read_filter(request, member, &request->op->filter);
}

bool legacy_read_key_conditions(struct request *request)
{
    struct op *op = request->op;
    struct expr_legacy_condition *conditions;
    uint32_t count;
    if (!json_member(request->body, "KeyConditions"))
        return true;
    if (!read_conditions(request, "KeyConditions", &conditions, &count))
        return false;
    if (count < 1 || count > 2)
        return request_refuse(request, "Conditions can be of length 1 or 2 only");
    op->key_condition = expr_build_key_condition(request->arena, conditions, count);
    return op->key_condition ||
           request_refuse(request,
                          "Attempted conditional constraint is not an indexable operation");
}

static bool read_attribute_update(struct request *request, const json_t *json,
                                  struct expr_legacy_update *to)
{
    const json_t *action = json_member(json, "Action");
    const json_t *value = json_member(json, "Value");
    struct bytes name = action ? json_text(action) : bytes_literal("PUT");
    to->action = bytes_is(name, "ADD")      ? EXPR_LEGACY_ADD
                 : bytes_is(name, "DELETE") ? EXPR_LEGACY_DELETE
                                            : EXPR_LEGACY_PUT;
    if (!value)
        return to->action == EXPR_LEGACY_DELETE ||
               request_refuse(request, INVALID
                              "Only DELETE action is allowed when no attribute value is specified");
    to->value_given = true;
    const char *problem = value_from_json(request->arena, value, &to->value);
    if (problem)
        return request_refuse(request, problem);
    enum value_type type = to->value.type;
    bool set = type == VALUE_SS || type == VALUE_NS || type == VALUE_BS;
    if (to->action == EXPR_LEGACY_DELETE && !set)
        return op_fail(request->op, API_VALIDATION,
                       INVALID "DELETE action with value is not supported for the type %s",
                       value_type_name(type));
    if (to->action == EXPR_LEGACY_ADD && !set && type != VALUE_N && type != VALUE_L)
        return op_fail(request->op, API_VALIDATION,
                       INVALID "ADD action is not supported for the type %s",
                       value_type_name(type));
    return true;
}

bool legacy_read_updates(struct request *request)
{
    json_t *map = json_member(request->body, "AttributeUpdates");
    size_t size = json_object_size(map);
    if (size == 0)
        return true;
    struct expr_legacy_update *updates =
        arena_array(request->arena, struct expr_legacy_update, size);
    uint32_t count = 0;
    const char *name;
    size_t len;
    json_t *json;
    json_object_keylen_foreach(map, name, len, json)
    {
        struct expr_legacy_update *to = &updates[count++];
        if (!read_name(request, bytes_make(name, len), &to->name))
            return false;
        if (!read_attribute_update(request, json, to))
            return false;
    }
    request->op->update = expr_build_update(request->arena, updates, count);
    return true;
}
