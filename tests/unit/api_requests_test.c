/* SPDX-License-Identifier: Apache-2.0 */
/* More than 500 lines, as there is a row for each refusal. Requests and their answers, as tables:
 * each row is one call on a small database that the group's setup has filled. `expect` is the whole
 * body, or a part of it when it starts with "~". */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/lib/language_calls.h"

static int setup(void **state)
{
    struct language *language = language_new();
    struct key_schema hash = {.hash_name = "pk", .hash_type = VALUE_S};
    struct key_schema range = {.hash_name = "pk",
                               .hash_type = VALUE_S,
                               .has_range = true,
                               .range_name = "sk",
                               .range_type = VALUE_S};
    struct key_schema numbers = {.hash_name = "id",
                                 .hash_type = VALUE_N,
                                 .has_range = true,
                                 .range_name = "at",
                                 .range_type = VALUE_B};
    language_add_table(language, "hash", &hash);
    language_add_table(language, "range", &range);
    language_add_table(language, "numbers", &numbers);
    *state = language;
    return 0;
}

static int teardown(void **state)
{
    language_free(*state);
    return 0;
}

static void items_come_back_as_they_went(void **state)
{
    static const struct call calls[] = {
        {"GetItem", GET("a"), "{}"},
        {"PutItem",
         PUT("{\"pk\":{\"S\":\"a\"},\"n\":{\"N\":\"1.50\"},\"b\":{\"B\":\"AQI=\"},\"t\":{\"BOOL\":"
             "true},\"x\":{\"NULL\":true},\"l\":{\"L\":[{\"S\":\"\"},{\"L\":[]}]},\"m\":{\"M\":{"
             "\"z\":{\"N\":\"1\"},\"a\":{\"M\":{}}}},\"ss\":{\"SS\":[\"b\",\"a\"]},\"ns\":{\"NS\":"
             "[\"10\",\"9\"]},\"bs\":{\"BS\":[\"Ag==\",\"AQ==\"]}}"),
         "{}"},
        {"GetItem", GET("a"),
         "{\"Item\":{\"b\":{\"B\":\"AQI=\"},\"bs\":{\"BS\":[\"AQ==\",\"Ag==\"]},\"l\":{\"L\":[{"
         "\"S\":\"\"},{\"L\":[]}]},\"m\":{\"M\":{\"a\":{\"M\":{}},\"z\":{\"N\":\"1\"}}},\"n\":{"
         "\"N\":\"1.5\"},\"ns\":{\"NS\":[\"9\",\"10\"]},\"pk\":{\"S\":\"a\"},\"ss\":{\"SS\":[\"a\","
         "\"b\"]},\"t\":{\"BOOL\":true},\"x\":{\"NULL\":true}}}"},
        {"GetItem",
         "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"}},\"ProjectionExpression\":\"#m.z, "
         "n\",\"ExpressionAttributeNames\":{\"#m\":\"m\"},\"ReturnConsumedCapacity\":\"TOTAL\"}",
         "{\"Item\":{\"m\":{\"M\":{\"z\":{\"N\":\"1\"}}},\"n\":{\"N\":\"1.5\"}},"
         "\"ConsumedCapacity\":{\"TableName\":\"hash\",\"CapacityUnits\":0.5}}"},
        {"GetItem",
         "{\"TableName\":\"arn:aws:dynamodb:us-east-1:000000000000:table/hash\",\"Key\":{\"pk\":{"
         "\"S\":\"a\"}},\"AttributesToGet\":[\"n\"],\"ConsistentRead\":true,"
         "\"ReturnConsumedCapacity\":\"INDEXES\"}",
         "{\"Item\":{\"n\":{\"N\":\"1.5\"}},\"ConsumedCapacity\":{\"TableName\":\"hash\","
         "\"CapacityUnits\":1.0,\"Table\":{\"CapacityUnits\":1.0}}}"},
        {"PutItem", PUT("{\"pk\":{\"S\":\"a\"},\"note\":null,\"x\":{\"S\":\"q\"}}"),
         VALIDATION "Supplied AttributeValue is empty, must contain exactly one of the supported "
                    "datatypes\"}"},
        {"PutItem", PUT("{\"pk\":{\"S\":\"nul\"},\"x\":{\"S\":\"a\\u0000\\\"b\"}}"), "{}"},
        {"GetItem", GET("nul"),
         "{\"Item\":{\"pk\":{\"S\":\"nul\"},\"x\":{\"S\":\"a\\u0000\\\"b\"}}}"},
        {"DeleteItem",
         "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"nul\"}},\"ReturnValues\":"
         "\"ALL_OLD\"}",
         "~\"Attributes\":{\"pk\""},
        {"GetItem", GET("nul"), "{}"},
    };
    RUN(*state, calls);
}

static void wrong_json_types_are_serialization_errors(void **state)
{
    static const struct call calls[] = {
        {"PutItem", "", "{\"__type\":\"com.amazon.coral.service#SerializationException\"}"},
        {"PutItem", "{\"TableName\":\"hash\"",
         "{\"__type\":\"com.amazon.coral.service#SerializationException\"}"},
        {"PutItem", "[]", SERIALIZATION "Start of list found where not expected\"}"},
        {"PutItem", "{\"TableName\":1}",
         SERIALIZATION "NUMBER_VALUE cannot be converted to String\"}"},
        {"PutItem", "{\"TableName\":1.5}",
         SERIALIZATION "DECIMAL_VALUE cannot be converted to String\"}"},
        {"PutItem", "{\"TableName\":true}",
         SERIALIZATION "TRUE_VALUE cannot be converted to String\"}"},
        {"PutItem", "{\"TableName\":[]}",
         SERIALIZATION "Unrecognized collection type class java.lang.String\"}"},
        {"PutItem", "{\"TableName\":{}}",
         SERIALIZATION "Start of structure or map found where not expected\"}"},
        {"PutItem", "{\"Item\":1}", SERIALIZATION "Unexpected field type\"}"},
        {"PutItem", "{\"Item\":[]}",
         SERIALIZATION "Unrecognized collection type java.util.Map<java.lang.String, "
                       "com.amazonaws.dynamodb.v20120810.AttributeValue>\"}"},
        {"PutItem", "{\"Item\":{\"a\":\"x\"}}",
         SERIALIZATION "Unexpected value type in payload\"}"},
        {"PutItem", "{\"Item\":{\"a\":[]}}",
         SERIALIZATION "Unrecognized collection type class "
                       "com.amazonaws.dynamodb.v20120810.AttributeValue\"}"},
        {"PutItem", PUT("{\"pk\":{\"S\":\"x\"},\"n\":{\"N\":123}}"),
         SERIALIZATION "NUMBER_VALUE cannot be converted to String\"}"},
        {"PutItem", PUT("{\"a\":{\"BOOL\":\"true\"}}"),
         SERIALIZATION "Unexpected token received from parser\"}"},
        {"PutItem", PUT("{\"a\":{\"BOOL\":1}}"),
         SERIALIZATION "NUMBER_VALUE cannot be converted to Boolean\"}"},
        {"PutItem", PUT("{\"a\":{\"B\":true}}"),
         SERIALIZATION "only base-64-encoded strings are convertible to bytes\"}"},
        {"PutItem", PUT("{\"a\":{\"B\":\"23456\"}}"),
         SERIALIZATION "Base64 encoded length is expected a multiple of 4 bytes but found: 5\"}"},
        {"PutItem", PUT("{\"a\":{\"B\":\"ab!=\"}}"),
         SERIALIZATION "Invalid Base64 character: '!'\"}"},
        {"PutItem", PUT("{\"a\":{\"B\":\"=+/=\"}}"),
         SERIALIZATION "Invalid last non-pad Base64 character dectected\"}"},
        {"PutItem", PUT("{\"a\":{\"BS\":[\"+/+=\"]}}"),
         SERIALIZATION "Invalid last non-pad Base64 character dectected\"}"},
        {"PutItem", PUT("{\"a\":{\"L\":[{\"M\":{\"b\":{\"SS\":[[]]}}}]}}"),
         SERIALIZATION "Unrecognized collection type class java.lang.String\"}"},
        {"Query", "{\"Limit\":\"1\"}",
         SERIALIZATION "STRING_VALUE cannot be converted to Integer\"}"},
        {"Query", "{\"ConsistentRead\":[]}",
         SERIALIZATION "Unrecognized collection type class java.lang.Boolean\"}"},
        {"BatchWriteItem", "{\"RequestItems\":{\"hash\":1}}",
         "~ParameterizedTypeImpl cannot be cast"},
        {"BatchWriteItem", "{\"RequestItems\":[]}",
         "~java.util.Map<java.lang.String, java.util.List<com.amazonaws.dynamodb.v20120810."
         "WriteRequest>>"},
        {"CreateTable", "{\"ProvisionedThroughput\":{\"ReadCapacityUnits\":\"1\"}}",
         SERIALIZATION "STRING_VALUE cannot be converted to Long\"}"},
        {"CreateTable", "{\"ProvisionedThroughput\":1}", SERIALIZATION "Unexpected field type\"}"},
        /* The first fault in the order of the body, not of the table. */
        {"PutItem", "{\"Item\":{\"a\":1},\"TableName\":1}",
         SERIALIZATION "Unexpected value type in payload\"}"},
        {"PutItem", "{\"TableName\":\"hash\",\"TableName\":\"hash\"}",
         "{\"__type\":\"com.amazon.coral.service#SerializationException\"}"},
    };
    RUN(*state, calls);
}

static void values_are_checked(void **state)
{
#define BAD(value, message)                                                                        \
    {                                                                                              \
        "PutItem", PUT("{\"pk\":{\"S\":\"x\"},\"a\":" value "}"), VALIDATION message "\"}"         \
    }
    static const struct call calls[] = {
        BAD("{}", "Supplied AttributeValue is empty, must contain exactly one of the supported "
                  "datatypes"),
        BAD("{\"Q\":\"\"}", "Supplied AttributeValue is empty, must contain exactly one of the "
                            "supported datatypes"),
        BAD("{\"S\":\"a\",\"N\":\"1\"}", "Supplied AttributeValue has more than one datatypes set, "
                                         "must contain exactly one of the supported datatypes"),
        BAD("{\"NULL\":false}", INVALID "Null attribute value types must have the value of true"),
        BAD("{\"SS\":[]}", INVALID "An string set  may not be empty"),
        BAD("{\"NS\":[]}", INVALID "An number set  may not be empty"),
        BAD("{\"BS\":[]}", INVALID "Binary sets should not be empty"),
        BAD("{\"SS\":[\"a\",\"a\"]}", INVALID "Input collection [a, a] contains duplicates."),
        BAD("{\"NS\":[\"7\",\"7.0\"]}", "Input collection contains duplicates"),
        BAD("{\"BS\":[\"Yg==\",\"Yg==\"]}",
            INVALID "Input collection [Yg==, Yg==]of type BS contains duplicates."),
        BAD("{\"N\":\"\"}", "The parameter cannot be converted to a numeric value"),
        BAD("{\"N\":\"b\"}", "The parameter cannot be converted to a numeric value: b"),
        BAD("{\"NS\":[\"1\",\"b\"]}", "The parameter cannot be converted to a numeric value: b"),
        BAD("{\"N\":\"123456789012345678901234567890123456789\"}",
            "Attempting to store more than 38 significant digits in a Number"),
        BAD("{\"N\":\"1e126\"}", "Number overflow. Attempting to store a number with magnitude "
                                 "larger than supported range"),
        BAD("{\"N\":\"-1e-131\"}", "Number underflow. Attempting to store a number with magnitude "
                                   "smaller than supported range"),
        BAD("{\"L\":[null]}", "Supplied AttributeValue is empty, must contain exactly one of the "
                              "supported datatypes"),
        /* Empty strings and empty members of sets are data like any other, except in keys. */
        {"PutItem",
         PUTR("{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"s\"},\"note\":{\"S\":\"\"},\"s\":{"
              "\"SS\":[\"\",\"a\"]}}"),
         "{}"},
        {"GetItem", "{\"TableName\":\"range\",\"Key\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"s\"}}}",
         "{\"Item\":{\"note\":{\"S\":\"\"},\"pk\":{\"S\":\"p\"},\"s\":{\"SS\":[\"\",\"a\"]},\"sk\":"
         "{\"S\":\"s\"}}}"},
        {"PutItem", PUTR("{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"\"}}"),
         VALIDATION "One or more parameter values are not valid. The AttributeValue for a key "
                    "attribute cannot contain an empty string value. Key: sk\"}"},
    };
    RUN(*state, calls);
}

static void keys_are_checked_against_the_schema(void **state)
{
    static const struct call calls[] = {
        {"PutItem", "{\"TableName\":\"nope\",\"Item\":{\"pk\":{\"S\":\"a\"}}}", NOT_FOUND},
        {"GetItem", "{\"TableName\":\"nope\",\"Key\":{}}", NOT_FOUND},
        {"PutItem", PUT("{\"q\":{\"S\":\"a\"}}"),
         VALIDATION INVALID "Missing the key pk in the item\"}"},
        {"PutItem", PUT("{\"pk\":{\"N\":\"1\"}}"),
         VALIDATION INVALID "Type mismatch for key pk expected: S actual: N\"}"},
        {"PutItem", PUTR("{\"pk\":{\"S\":\"1\"}}"),
         VALIDATION INVALID "Missing the key sk in the item\"}"},
        {"GetItem", "{\"TableName\":\"hash\",\"Key\":{}}",
         VALIDATION "The provided key element does not match the schema\"}"},
        {"GetItem", "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"},\"x\":{\"S\":\"a\"}}}",
         VALIDATION "The provided key element does not match the schema\"}"},
        {"DeleteItem", "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"B\":\"abcd\"}}}",
         VALIDATION "The provided key element does not match the schema\"}"},
        {"UpdateItem", "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"\"}}}",
         VALIDATION "One or more parameter values are not valid. The AttributeValue for a key "
                    "attribute cannot contain an empty string value. Key: pk\"}"},
        {"PutItem",
         "{\"TableName\":\"numbers\",\"Item\":{\"id\":{\"N\":\"1\"},\"at\":{\"B\":\"\"}}}",
         "~cannot contain an empty binary value. Key: at"},
        {"UpdateItem",
         "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"}},\"UpdateExpression\":\"SET pk = "
         ":v\",\"ExpressionAttributeValues\":{\":v\":{\"S\":\"b\"}}}",
         VALIDATION INVALID "Cannot update attribute pk. This attribute is part of the key\"}"},
    };
    RUN(*state, calls);
}

static void sizes_are_bounded(void **state)
{
    struct language *language = *state;
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    buf_append_text(&body, "{\"TableName\":\"range\",\"Item\":{\"pk\":{\"S\":\"");
    size_t pk = body.len;
    memset(buf_reserve(&body, 2049), 'p', 2049);
    body.len += 2049;
    buf_append_text(&body, "\"},\"sk\":{\"S\":\"");
    memset(buf_reserve(&body, 1025), 's', 1025);
    body.len += 1025;
    buf_append_text(&body, "\"}}}");
    buf_append_u8(&body, 0);
    char *text = (char *)body.at;
    assert_non_null(strstr(language_call(language, "PutItem", text),
                           "Size of hashkey has exceeded the maximum size limit of2048 bytes"));
    memmove(text + pk, text + pk + 1, strlen(text + pk));
    assert_non_null(strstr(language_call(language, "PutItem", text),
                           "Aggregated size of all range keys has exceeded the size limit of 1024 "
                           "bytes"));
    char *sk = strstr(text, "sss");
    memmove(sk, sk + 1, strlen(sk));
    assert_string_equal(language_call(language, "PutItem", text), "{}");

    /* 409,600 bytes of item are fine, one more is not: pk + a, x + 409596 bytes. */
    buf_reset(&body);
    buf_append_text(&body,
                    "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"a\"},\"x\":{\"S\":\"");
    memset(buf_reserve(&body, ITEM_SIZE_MAX), 'x', ITEM_SIZE_MAX);
    body.len += ITEM_SIZE_MAX - 4;
    size_t end = body.len;
    buf_append_text(&body, "\"}}}");
    buf_append_u8(&body, 0);
    assert_string_equal(language_call(language, "PutItem", (char *)body.at), "{}");
    body.len = end;
    buf_append_text(&body, "x\"}}}");
    buf_append_u8(&body, 0);
    assert_string_equal(language_call(language, "PutItem", (char *)body.at),
                        VALIDATION "Item size has exceeded the maximum allowed size\"}");
    assert_string_equal(
        language_call(language, "UpdateItem",
                      "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"}},\"UpdateExpression\":"
                      "\"SET y = :y\",\"ExpressionAttributeValues\":{\":y\":{\"S\":\"y\"}}}"),
        VALIDATION "Item size to update has exceeded the maximum allowed size\"}");
}

/* 32 levels are the most, whether they come in one value or by an update. */
static void nesting_is_bounded(void **state)
{
    struct language *language = *state;
    static const char too_deep[] =
        VALIDATION "Nesting Levels have exceeded supported limits: Attributes in the item have "
                   "nested levels beyond supported limit\"}";
    for (int levels = 31; levels <= 600; levels += levels < 40 ? 1 : 280) {
        struct buf body cleanup(buf_deinit);
        buf_init(&body);
        buf_append_text(&body, "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"deep\"},\"x\":");
        for (int i = 1; i < levels; i++)
            buf_append_text(&body, "{\"L\":[");
        buf_append_text(&body, "{\"S\":\"leaf\"}");
        for (int i = 1; i < levels; i++)
            buf_append_text(&body, "]}");
        buf_append_text(&body, "}}");
        buf_append_u8(&body, 0);
        assert_string_equal(language_call(language, "PutItem", (char *)body.at),
                            levels <= 32 ? "{}" : too_deep);
    }
    static const struct call calls[] = {
        {"UpdateItem",
         "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"deep\"}},\"UpdateExpression\":\"SET "
         "x[0][0][0] = :v\",\"ExpressionAttributeValues\":{\":v\":{\"S\":\"flat\"}}}",
         "{}"},
        {"PutItem", PUT("{\"pk\":{\"S\":\"deep\"},\"x\":{\"L\":[{\"L\":[]}]}}"), "{}"},
    };
    RUN(*state, calls);
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    buf_append_text(&body, "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"deep\"}},"
                           "\"UpdateExpression\":\"SET x[0][0] = :v\","
                           "\"ExpressionAttributeValues\":{\":v\":");
    for (int i = 0; i < 31; i++)
        buf_append_text(&body, "{\"L\":[");
    buf_append_text(&body, "{\"S\":\"leaf\"}");
    for (int i = 0; i < 31; i++)
        buf_append_text(&body, "]}");
    buf_append_text(&body, "}}");
    buf_append_u8(&body, 0);
    assert_string_equal(language_call(language, "UpdateItem", (char *)body.at), too_deep);
}

static void expressions_and_their_members(void **state)
{
#define UPDATE(rest) "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"}}," rest "}"
    static const struct call calls[] = {
        {"PutItem",
         "{\"TableName\":\"abc\",\"Item\":{},\"Expected\":{},\"ConditionExpression\":\"a = b\"}",
         VALIDATION "Can not use both expression and non-expression parameters in the same "
                    "request: Non-expression parameters: {Expected} Expression parameters: "
                    "{ConditionExpression}\"}"},
        {"UpdateItem",
         UPDATE("\"AttributeUpdates\":{},\"Expected\":{},\"UpdateExpression\":\"a\","
                "\"ConditionExpression\":\"b\""),
         "~Non-expression parameters: {AttributeUpdates, Expected} Expression parameters: "
         "{UpdateExpression, ConditionExpression}"},
        {"GetItem", UPDATE("\"ExpressionAttributeNames\":{\"#a\":\"b\"}"),
         VALIDATION "ExpressionAttributeNames can only be specified when using expressions\"}"},
        {"PutItem", "{\"TableName\":\"abc\",\"Item\":{},\"ExpressionAttributeValues\":{}}",
         VALIDATION "ExpressionAttributeValues can only be specified when using expressions: "
                    "ConditionExpression is null\"}"},
        {"UpdateItem", UPDATE("\"ExpressionAttributeValues\":{}"),
         VALIDATION "ExpressionAttributeValues can only be specified when using expressions: "
                    "UpdateExpression and ConditionExpression are null\"}"},
        {"UpdateItem", UPDATE("\"UpdateExpression\":\"a\",\"ExpressionAttributeNames\":{}"),
         VALIDATION "ExpressionAttributeNames must not be empty\"}"},
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"a\",\"ExpressionAttributeValues\":{\"v\":{\"S\":\"\"}}"),
         VALIDATION
         "ExpressionAttributeValues contains invalid key: Syntax error; key: \\\"v\\\"\"}"},
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"a\",\"ExpressionAttributeValues\":{\":v\":{\"N\":\"x\"}}"),
         VALIDATION "ExpressionAttributeValues contains invalid value: The parameter cannot be "
                    "converted to a numeric value: x for key :v\"}"},
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"REMOVE a\",\"ExpressionAttributeNames\":{\"#x\":\"a\"}"),
         VALIDATION "Value provided in ExpressionAttributeNames unused in expressions: keys: "
                    "{#x}\"}"},
        {"PutItem",
         "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"a\"}},\"ReturnValues\":"
         "\"ALL_NEW\"}",
         VALIDATION "ReturnValues can only be ALL_OLD or NONE\"}"},
        /* Digits are good placeholders. */
        {"PutItem",
         "{\"TableName\":\"range\",\"Item\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"s3\"}},"
         "\"ConditionExpression\":\"(attribute_not_exists (#0) AND "
         "attribute_not_exists (#1))\",\"ExpressionAttributeNames\":{\"#0\":\"pk\","
         "\"#1\":\"sk\"}}",
         "{}"},
        {"Query",
         "{\"TableName\":\"range\",\"KeyConditionExpression\":\"#0 = :0 AND "
         "begins_with(#1, :1)\",\"ExpressionAttributeNames\":{\"#0\":\"pk\",\"#1\":\"sk\"},"
         "\"ExpressionAttributeValues\":{\":0\":{\"S\":\"p\"},\":1\":{\"S\":\"s\"}}}",
         "{\"Items\":[{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"s3\"}}],\"Count\":1,\"ScannedCount\":"
         "1}"},
    };
    RUN(*state, calls);
}

static void updates_return_what_is_asked(void **state)
{
#define SET_N(returns)                                                                             \
    UPDATE("\"UpdateExpression\":\"SET n = if_not_exists(n, :zero) + :one, m.x = :one\","          \
           "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"},\":zero\":{\"N\":\"0\"}},"       \
           "\"ReturnValues\":\"" returns "\"")
    static const struct call calls[] = {
        {"UpdateItem", UPDATE("\"ReturnValues\":\"ALL_NEW\""),
         "{\"Attributes\":{\"pk\":{\"S\":\"a\"}}}"},
        {"UpdateItem", SET_N("NONE"),
         VALIDATION "The document path provided in the update expression is invalid for update\"}"},
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"SET m = :m\",\"ExpressionAttributeValues\":{\":m\":{\"M\":{"
                "\"y\":{\"S\":\"k\"}}}}"),
         "{}"},
        {"UpdateItem", SET_N("UPDATED_OLD"), "{}"},
        {"UpdateItem", SET_N("UPDATED_OLD"),
         "{\"Attributes\":{\"m\":{\"M\":{\"x\":{\"N\":\"1\"}}},\"n\":{\"N\":\"1\"}}}"},
        {"UpdateItem", SET_N("UPDATED_NEW"),
         "{\"Attributes\":{\"m\":{\"M\":{\"x\":{\"N\":\"1\"}}},\"n\":{\"N\":\"3\"}}}"},
        {"UpdateItem", SET_N("ALL_OLD"),
         "{\"Attributes\":{\"m\":{\"M\":{\"x\":{\"N\":\"1\"},\"y\":{\"S\":\"k\"}}},\"n\":{\"N\":"
         "\"3\"},\"pk\":{\"S\":\"a\"}}}"},
        {"UpdateItem", SET_N("ALL_NEW"),
         "{\"Attributes\":{\"m\":{\"M\":{\"x\":{\"N\":\"1\"},\"y\":{\"S\":\"k\"}}},\"n\":{\"N\":"
         "\"5\"},\"pk\":{\"S\":\"a\"}}}"},
        /* The old item on a failed condition, at the top of the error. */
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"SET v = :n\",\"ConditionExpression\":\"v = :o\","
                "\"ExpressionAttributeValues\":{\":n\":{\"N\":\"3\"},\":o\":{\"N\":\"2\"}},"
                "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""),
         FAILED "\"Item\":{\"m\":{\"M\":{\"x\":{\"N\":\"1\"},\"y\":{\"S\":\"k\"}}},\"n\":{\"N\":"
                "\"5\"},\"pk\":{\"S\":\"a\"}},\"message\":\"The conditional request failed\"}"},
        {"DeleteItem", UPDATE("\"ConditionExpression\":\"attribute_not_exists(pk)\""),
         FAILED "\"message\":\"The conditional request failed\"}"},
        {"PutItem",
         "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"a\"}},\"ReturnValues\":"
         "\"ALL_OLD\",\"ReturnConsumedCapacity\":\"TOTAL\"}",
         "~\"n\":{\"N\":\"5\"},\"pk\":{\"S\":\"a\"}},\"ConsumedCapacity\":{\"TableName\":\"hash\","
         "\"CapacityUnits\":1.0}}"},
        {"DeleteItem", UPDATE("\"ReturnItemCollectionMetrics\":\"SIZE\""), "{}"},
    };
    RUN(*state, calls);
}

/* An update that changes nothing makes an item of the bare key, but not one that only takes away.
 */
static void an_update_that_only_takes_away_creates_nothing(void **state)
{
    static const struct call calls[] = {
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"REMOVE n\",\"ReturnValues\":\"ALL_NEW\","
                "\"ReturnConsumedCapacity\":\"TOTAL\""),
         "{\"ConsumedCapacity\":{\"TableName\":\"hash\",\"CapacityUnits\":1.0}}"},
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"DELETE s :s REMOVE n\",\"ExpressionAttributeValues\":{"
                "\":s\":{\"SS\":[\"x\"]}}"),
         "{}"},
        {"UpdateItem", UPDATE("\"AttributeUpdates\":{\"n\":{\"Action\":\"DELETE\"}}"), "{}"},
        {"UpdateItem",
         UPDATE("\"AttributeUpdates\":{\"n\":{\"Action\":\"DELETE\",\"Value\":{\"NS\":[\"1\"]}}}"),
         "{}"},
        {"UpdateItem", UPDATE("\"UpdateExpression\":\"REMOVE m.n\""), "{}"},
        {"GetItem", GET("a"), "{}"},
        {"UpdateItem",
         UPDATE("\"UpdateExpression\":\"REMOVE n SET o = :o\",\"ExpressionAttributeValues\":{"
                "\":o\":{\"N\":\"1\"}}"),
         "{}"},
        {"GetItem", GET("a"), "{\"Item\":{\"o\":{\"N\":\"1\"},\"pk\":{\"S\":\"a\"}}}"},
    };
    RUN(*state, calls);
    assert_int_equal(((struct language *)*state)->writes, 1);
}

static void a_write_that_changes_nothing_is_none_where_there_is_a_stream(void **state)
{
    struct language *language = *state;
    language_call(language, "PutItem", PUT("{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"1\"}}"));
    language_call(language, "PutItem", PUT("{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"1.0\"}}"));
    assert_int_equal(language->writes, 2);
    language_find(language, bytes_literal("hash"))->stream = STREAM_BOTH;
    language_call(language, "PutItem", PUT("{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"1\"}}"));
    language_call(language, "DeleteItem",
                  "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"b\"}}}");
    assert_int_equal(language->writes, 2);
    language_call(language, "PutItem", PUT("{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}"));
    assert_int_equal(language->writes, 3);
}

static void batches(void **state)
{
    static const struct call calls[] = {
        {"BatchWriteItem",
         "{\"RequestItems\":{\"hash\":[{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"a\"},\"v\":{"
         "\"N\":"
         "\"1\"}}}},{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}}}]}}",
         VALIDATION "Provided list of item keys contains duplicates\"}"},
        {"BatchGetItem",
         "{\"RequestItems\":{\"hash\":{\"Keys\":[{\"pk\":{\"S\":\"a\"}},{\"pk\":{\"S\":\"a\"}}]}}}",
         VALIDATION "Provided list of item keys contains duplicates\"}"},
        {"BatchWriteItem",
         "{\"RequestItems\":{\"hash\":[{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"good\"}}}},{"
         "\"PutRequest\":{\"Item\":{\"pk\":{\"N\":\"1\"}}}}]}}",
         VALIDATION "The provided key element does not match the schema\"}"},
        {"GetItem", GET("good"), "{}"},
        {"BatchWriteItem",
         "{\"RequestItems\":{\"hash\":[{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"good\"}}}}],"
         "\"nope\":[{\"DeleteRequest\":{\"Key\":{\"pk\":{\"S\":\"good\"}}}}]}}",
         NOT_FOUND},
        {"GetItem", GET("good"), "{}"},
        {"BatchWriteItem", "{\"RequestItems\":{\"hash\":[{}]}}",
         "~Supplied AttributeValue is empty"},
        {"BatchWriteItem", "{\"RequestItems\":{\"hash\":null}}", "~Member must not be null"},
        {"BatchGetItem", "{\"RequestItems\":{\"hash\":null}}", "~Member must not be null"},
        {"BatchWriteItem",
         "{\"RequestItems\":{\"hash\":[{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"a\"}}}},{"
         "\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"b\"}}}}],\"range\":[{\"PutRequest\":{\"Item\":{"
         "\"pk\":{\"S\":\"a\"},\"sk\":{\"S\":\"s\"},\"x\":{\"N\":\"1\"}}}}]},"
         "\"ReturnConsumedCapacity\":\"TOTAL\"}",
         "{\"UnprocessedItems\":{},\"ConsumedCapacity\":[{\"TableName\":\"hash\",\"CapacityUnits\":"
         "2.0},{\"TableName\":\"range\",\"CapacityUnits\":1.0}]}"},
        {"BatchGetItem",
         "{\"RequestItems\":{\"hash\":{\"Keys\":[{\"pk\":{\"S\":\"a\"}},{\"pk\":{\"S\":\"zz\"}},{"
         "\"pk\":{\"S\":\"b\"}}],\"ConsistentRead\":true},\"range\":{\"Keys\":[{\"pk\":{\"S\":"
         "\"a\"},"
         "\"sk\":{\"S\":\"s\"}}],\"ProjectionExpression\":\"#x\",\"ExpressionAttributeNames\":{"
         "\"#x\":\"x\"}}},\"ReturnConsumedCapacity\":\"TOTAL\"}",
         "{\"Responses\":{\"hash\":[{\"pk\":{\"S\":\"a\"}},{\"pk\":{\"S\":\"b\"}}],\"range\":[{"
         "\"x\":{\"N\":\"1\"}}]},\"UnprocessedKeys\":{},\"ConsumedCapacity\":[{\"TableName\":"
         "\"hash\",\"CapacityUnits\":3.0},{\"TableName\":\"range\",\"CapacityUnits\":0.5}]}"},
        {"BatchWriteItem",
         "{\"RequestItems\":{\"hash\":[{\"DeleteRequest\":{\"Key\":{\"pk\":{\"S\":\"a\"}}}}]}}",
         "{\"UnprocessedItems\":{}}"},
        {"GetItem", GET("a"), "{}"},
        {"BatchGetItem",
         "{\"RequestItems\":{\"arn:aws:dynamodb:us-east-1:000000000000:table/hash\":{\"Keys\":[{"
         "\"pk\":{\"S\":\"b\"}}]}}}",
         "{\"Responses\":{\"hash\":[{\"pk\":{\"S\":\"b\"}}]},\"UnprocessedKeys\":{}}"},
    };
    RUN(*state, calls);
}

static void a_large_batch_leaves_keys_unprocessed(void **state)
{
    struct language *language = *state;
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    for (int i = 0; i < 45; i++) {
        buf_reset(&body);
        buf_printf(&body,
                   "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"%02d\"},\"x\":{\"S\":\"", i);
        memset(buf_reserve(&body, 400000), 'x', 400000);
        body.len += 400000;
        buf_append_text(&body, "\"}}}");
        buf_append_u8(&body, 0);
        assert_string_equal(language_call(language, "PutItem", (char *)body.at), "{}");
    }
    buf_reset(&body);
    buf_append_text(&body, "{\"RequestItems\":{\"hash\":{\"ConsistentRead\":true,\"Keys\":[");
    for (int i = 0; i < 45; i++)
        buf_printf(&body, "%s{\"pk\":{\"S\":\"%02d\"}}", i ? "," : "", i);
    buf_append_text(&body, "],\"AttributesToGet\":[\"pk\"]}}}");
    buf_append_u8(&body, 0);
    const char *answer = language_call(language, "BatchGetItem", (char *)body.at);
    /* 16 MiB hold 41 items of 400,005 bytes, projected or not. */
    assert_non_null(strstr(answer,
                           "\"UnprocessedKeys\":{\"hash\":{\"Keys\":[{\"pk\":{\"S\":\"41\"}}"
                           ",{\"pk\":{\"S\":\"42\"}},{\"pk\":{\"S\":\"43\"}},{\"pk\":{\"S\":"
                           "\"44\"}}],\"ConsistentRead\":true,\"AttributesToGet\":[\"pk\"]}}"));
    assert_non_null(strstr(answer, "{\"pk\":{\"S\":\"40\"}}]},\"UnprocessedKeys\""));
}

static void legacy_members(void **state)
{
    static const struct call calls[] = {
        {"PutItem", "{\"TableName\":\"aaa\",\"Item\":{},\"Expected\":{\"a\":{}}}",
         VALIDATION INVALID "Value must be provided when Exists is null for Attribute: a\"}"},
        {"PutItem",
         "{\"TableName\":\"aaa\",\"Item\":{},\"Expected\":{\"a\":{\"Exists\":false,"
         "\"Value\":{\"S\":\"a\"}}}}",
         VALIDATION INVALID "Value cannot be used when Exists is false for Attribute: a\"}"},
        {"PutItem",
         "{\"TableName\":\"aaa\",\"Item\":{},\"Expected\":{\"a\":{\"ComparisonOperator\":"
         "\"LT\"}}}",
         VALIDATION INVALID "Value or AttributeValueList must be used with ComparisonOperator: LT "
                            "for Attribute: a\"}"},
        {"PutItem",
         "{\"TableName\":\"aaa\",\"Item\":{},\"Expected\":{\"a\":{\"AttributeValueList\":"
         "[],\"ComparisonOperator\":\"EQ\"}}}",
         VALIDATION INVALID "Invalid number of argument(s) for the EQ ComparisonOperator\"}"},
        {"PutItem", "{\"TableName\":\"aaa\",\"Item\":{},\"ConditionalOperator\":\"OR\"}",
         VALIDATION INVALID "ConditionalOperator cannot be used without Filter or Expected\"}"},
        {"PutItem", PUT("{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"1\"}}"), "{}"},
        {"PutItem",
         "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"a\"}},\"Expected\":{\"v\":{"
         "\"Exists\":false}}}",
         FAILED "\"message\":\"The conditional request failed\"}"},
        {"UpdateItem",
         UPDATE("\"Expected\":{\"v\":{\"Value\":{\"N\":\"1\"}}},\"AttributeUpdates\":{\"v\":{"
                "\"Action\":\"ADD\",\"Value\":{\"N\":\"4\"}},\"w\":{\"Value\":{\"S\":\"new\"}}},"
                "\"ReturnValues\":\"ALL_NEW\""),
         "{\"Attributes\":{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"5\"},\"w\":{\"S\":\"new\"}}}"},
        {"UpdateItem", UPDATE("\"AttributeUpdates\":{\"v\":{\"Action\":\"PUT\"}}"),
         VALIDATION INVALID
         "Only DELETE action is allowed when no attribute value is specified\"}"},
        {"UpdateItem", UPDATE("\"AttributeUpdates\":{\"w\":{\"Action\":\"DELETE\"}}"), "{}"},
        {"Scan",
         "{\"TableName\":\"hash\",\"ScanFilter\":{\"v\":{\"ComparisonOperator\":\"BETWEEN\","
         "\"AttributeValueList\":[{\"N\":\"2\"},{\"N\":\"7\"}]}}}",
         "{\"Items\":[{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"5\"}}],\"Count\":1,\"ScannedCount\":1}"},
        {"Scan",
         "{\"TableName\":\"hash\",\"ScanFilter\":{\"v\":{\"ComparisonOperator\":\"GT\","
         "\"AttributeValueList\":[{\"SS\":[\"a\"]}]}}}",
         VALIDATION INVALID "ComparisonOperator GT is not valid for SS AttributeValue type\"}"},
        {"Query",
         "{\"TableName\":\"hash\",\"KeyConditions\":{\"pk\":{\"ComparisonOperator\":\"EQ\","
         "\"AttributeValueList\":[{\"S\":\"a\"}]}},\"AttributesToGet\":[\"v\"]}",
         "{\"Items\":[{\"v\":{\"N\":\"5\"}}],\"Count\":1,\"ScannedCount\":1}"},
        {"Query",
         "{\"TableName\":\"hash\",\"KeyConditions\":{\"pk\":{\"ComparisonOperator\":\"NULL\"}}}",
         VALIDATION "Attempted conditional constraint is not an indexable operation\"}"},
        {"Query", "{\"TableName\":\"hash\",\"KeyConditions\":{}}",
         VALIDATION "Conditions can be of length 1 or 2 only\"}"},
        {"Scan",
         "{\"TableName\":\"hash\",\"ConditionalOperator\":\"OR\",\"ScanFilter\":{\"v\":{"
         "\"ComparisonOperator\":\"EQ\",\"AttributeValueList\":[{\"N\":\"9\"}]},\"pk\":{"
         "\"ComparisonOperator\":\"NOT_NULL\"}},\"Select\":\"COUNT\"}",
         "{\"Count\":1,\"ScannedCount\":1}"},
        {"Scan",
         "{\"TableName\":\"hash\",\"ConditionalOperator\":\"OR\",\"ScanFilter\":{\"v\":{"
         "\"ComparisonOperator\":\"NULL\"}}}",
         VALIDATION INVALID
         "ConditionalOperator can only be used when Filter or Expected has two or "
         "more elements\"}"},
        {"GetItem", UPDATE("\"AttributesToGet\":[\"a\",\"a\"]"),
         VALIDATION INVALID "Duplicate value in attribute name: a\"}"},
    };
    RUN(*state, calls);
}

/* AttributeUpdates adds a list as it adds a set; ADD of an update expression does not. */
static void lists_are_added_by_attribute_updates(void **state)
{
#define ADD_LIST(name, list)                                                                       \
    UPDATE("\"AttributeUpdates\":{\"" name "\":{\"Action\":\"ADD\",\"Value\":{\"L\":" list "}}},"  \
           "\"ReturnValues\":\"UPDATED_NEW\"")
    static const struct call calls[] = {
        {"PutItem", PUT("{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"1\"}}"), "{}"},
        {"UpdateItem", ADD_LIST("l", "[{\"N\":\"1\"}]"),
         "{\"Attributes\":{\"l\":{\"L\":[{\"N\":\"1\"}]}}}"},
        {"UpdateItem", ADD_LIST("l", "[{\"S\":\"x\"},{\"N\":\"1\"}]"),
         "{\"Attributes\":{\"l\":{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"},{\"N\":\"1\"}]}}}"},
        {"UpdateItem", ADD_LIST("v", "[]"), VALIDATION "Type mismatch for attribute to update\"}"},
        {"UpdateItem",
         UPDATE("\"AttributeUpdates\":{\"l\":{\"Action\":\"DELETE\"},\"v\":{\"Action\":\"ADD\","
                "\"Value\":{\"M\":{}}}}"),
         VALIDATION INVALID "ADD action is not supported for the type M\"}"},
    };
    RUN(*state, calls);
}

/* An attribute's name has less than 64 KiB, wherever it is given. */
static void name_length(void **state)
{
    static const struct {
        const char *operation, *before, *after, *introduction;
    } places[] = {
        {"PutItem", "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"a\"},\"",
         "\":{\"N\":\"1\"}}}", INVALID},
        {"UpdateItem",
         "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"}},\"AttributeUpdates\":{\"",
         "\":{\"Value\":{\"N\":\"1\"}}}}", INVALID},
        {"UpdateItem",
         "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"}},\"UpdateExpression\":\"REMOVE "
         "#n\","
         "\"ExpressionAttributeNames\":{\"#n\":\"",
         "\"}}", "ExpressionAttributeNames contains invalid value: "},
        {"GetItem",
         "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"a\"}},\"AttributesToGet\":[\"", "\"]}",
         INVALID},
        {"Scan", "{\"TableName\":\"hash\",\"ScanFilter\":{\"",
         "\":{\"ComparisonOperator\":\"NULL\"}}}", INVALID},
    };
    for (size_t i = 0; i < array_len(places); i++) {
        for (size_t len = 65535; len <= 65536; len++) {
            struct buf body cleanup(buf_deinit);
            buf_init(&body);
            buf_append_text(&body, places[i].before);
            memset(buf_reserve(&body, len), 'n', len);
            body.len += len;
            buf_append_text(&body, places[i].after);
            buf_append_u8(&body, 0);
            const char *answer = language_call(*state, places[i].operation, (char *)body.at);
            char expected[256];
            snprintf(expected, sizeof(expected),
                     "%sAttribute name is too large, must be less than 65536 bytes",
                     places[i].introduction);
            assert_true((strstr(answer, expected) != NULL) == (len > 65535));
            assert_true((strstr(answer, "__type") != NULL) == (len > 65535));
        }
    }
}

/* An expression of 4,096 bytes is the longest. */
static void expression_length(void **state)
{
    struct language *language = *state;
    for (int len = 4096; len <= 4097; len++) {
        struct buf body cleanup(buf_deinit);
        buf_init(&body);
        buf_printf(&body,
                   "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"%d\"}},"
                   "\"ConditionExpression\":\"attribute_not_exists(pk)%*s\"}",
                   len, len - 24, "");
        buf_append_u8(&body, 0);
        const char *answer = language_call(language, "PutItem", (char *)body.at);
        if (len == 4096)
            assert_string_equal(answer, "{}");
        else
            assert_non_null(
                strstr(answer, "Expression size has exceeded the maximum allowed size"));
    }
    assert_string_equal(language_call(language, "GetItem", GET("4097")), "{}");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(items_come_back_as_they_went),
        TEST(wrong_json_types_are_serialization_errors),
        TEST(values_are_checked),
        TEST(keys_are_checked_against_the_schema),
        TEST(sizes_are_bounded),
        TEST(nesting_is_bounded),
        TEST(expressions_and_their_members),
        TEST(updates_return_what_is_asked),
        TEST(an_update_that_only_takes_away_creates_nothing),
        TEST(a_write_that_changes_nothing_is_none_where_there_is_a_stream),
        TEST(batches),
        TEST(a_large_batch_leaves_keys_unprocessed),
        TEST(legacy_members),
        TEST(lists_are_added_by_attribute_updates),
        TEST(name_length),
        TEST(expression_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
