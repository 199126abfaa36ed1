/* SPDX-License-Identifier: Apache-2.0 */
/* Query and Scan walked page by page. Whatever the limits, the direction, the filter and the
 * store's own chunks, a walk must give what one would pick out of the whole by hand: that is the
 * twin. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "conflict/base/rng.h"
#include "tests/lib/language.h"

#define VALIDATION "{\"__type\":\"com.amazon.coral.validate#ValidationException\",\"message\":\""

static int setup(void **state)
{
    struct language *language = language_new();
    struct key_schema range = {.hash_name = "pk",
                               .hash_type = VALUE_S,
                               .has_range = true,
                               .range_name = "sk",
                               .range_type = VALUE_N};
    struct key_schema hash = {.hash_name = "pk", .hash_type = VALUE_S};
    language_add_table(language, "range", &range);
    language_add_table(language, "hash", &hash);
    *state = language;
    return 0;
}

static int teardown(void **state)
{
    language_free(*state);
    return 0;
}

static void put(struct language *language, const char *pk, int sk, bool keep)
{
    char body[256];
    snprintf(body, sizeof(body),
             "{\"TableName\":\"range\",\"Item\":{\"pk\":{\"S\":\"%s\"},\"sk\":{\"N\":\"%d\"}%s}}",
             pk, sk, keep ? ",\"keep\":{\"BOOL\":true}" : "");
    assert_string_equal(language_call(language, "PutItem", body), "{}");
}

static void a_filter_empties_a_page_but_not_the_walk(void **state)
{
    struct language *language = *state;
    for (int sk = 1; sk <= 4; sk++)
        put(language, "p", sk, sk == 4);
#define QUERY                                                                                      \
    "{\"TableName\":\"range\",\"Limit\":2,\"KeyConditionExpression\":\"pk = :p\","                 \
    "\"FilterExpression\":\"keep = :t\",\"ExpressionAttributeValues\":{\":p\":{\"S\":\"p\"},"      \
    "\":t\":{\"BOOL\":true}},\"ReturnConsumedCapacity\":\"TOTAL\""
    assert_string_equal(
        language_call(language, "Query", QUERY "}"),
        "{\"Items\":[],\"Count\":0,\"ScannedCount\":2,\"LastEvaluatedKey\":{\"pk\":{"
        "\"S\":\"p\"},\"sk\":{\"N\":\"2\"}},\"ConsumedCapacity\":{\"TableName\":"
        "\"range\",\"CapacityUnits\":0.5}}");
    assert_string_equal(
        language_call(language, "Query",
                      QUERY ",\"ExclusiveStartKey\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":\"2\"}}}"),
        "{\"Items\":[{\"keep\":{\"BOOL\":true},\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":\"4\"}}],"
        "\"Count\":"
        "1,\"ScannedCount\":2,\"LastEvaluatedKey\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":\"4\"}},"
        "\"ConsumedCapacity\":{\"TableName\":\"range\",\"CapacityUnits\":0.5}}");
    assert_string_equal(
        language_call(language, "Query",
                      QUERY ",\"ExclusiveStartKey\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":\"4\"}}}"),
        "{\"Items\":[],\"Count\":0,\"ScannedCount\":0,\"ConsumedCapacity\":{\"TableName\":"
        "\"range\","
        "\"CapacityUnits\":0.5}}");
}

/* Walks all pages and gathers the sort keys, in order. */
static uint32_t walk(struct language *language, const char *operation, const char *members, int *to,
                     uint32_t cap)
{
    struct buf start cleanup(buf_deinit);
    struct buf body cleanup(buf_deinit);
    buf_init(&start);
    buf_init(&body);
    uint32_t count = 0;
    for (uint32_t pages = 0;; pages++) {
        assert_true(pages < 1000);
        buf_reset(&body);
        buf_printf(&body, "{\"TableName\":\"range\",%s%.*s}", members, (int)start.len,
                   (const char *)start.at);
        buf_append_u8(&body, 0);
        json_t *answer = json_loads(language_call(language, operation, (char *)body.at), 0, NULL);
        json_t *items = json_object_get(answer, "Items");
        if (!items)
            fail_msg("%s gave %s", (char *)body.at, (char *)language->answer.at);
        assert_int_equal(json_array_size(items),
                         json_integer_value(json_object_get(answer, "Count")));
        size_t i;
        json_t *item;
        json_array_foreach(items, i, item)
        {
            assert_true(count < cap);
            to[count++] = (int)strtol(
                json_string_value(json_object_get(json_object_get(item, "sk"), "N")), NULL, 10);
        }
        json_t *last = json_object_get(answer, "LastEvaluatedKey");
        buf_reset(&start);
        if (last) {
            char *text = json_dumps(last, JSON_COMPACT);
            buf_printf(&start, ",\"ExclusiveStartKey\":%s", text);
            free(text);
        }
        bool more = last != NULL;
        json_decref(answer);
        if (!more)
            return count;
    }
}

/* Partition "p" holds the sort keys that `held` marks, -30 to 29; others lie around it. */
static void fill(struct language *language, struct rng *rng, bool held[60], bool kept[60])
{
    for (int i = 0; i < 60; i++) {
        held[i] = rng_one_in(rng, 2);
        kept[i] = rng_one_in(rng, 3);
        if (held[i])
            put(language, "p", i - 30, kept[i]);
        put(language, "o", i - 30, true);
        put(language, "q", i - 30, true);
        if (!held[i] && rng_one_in(rng, 3)) { /* deleted rows lie between the live ones */
            put(language, "p", i - 30, true);
            char body[128];
            snprintf(
                body, sizeof(body),
                "{\"TableName\":\"range\",\"Key\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":\"%d\"}}}",
                i - 30);
            assert_string_equal(language_call(language, "DeleteItem", body), "{}");
        }
    }
}

static void query_walks_match_the_twin(void **state)
{
    struct language *language = *state;
    struct rng rng;
    rng_init(&rng, 20260131);
    bool held[60], kept[60];
    fill(language, &rng, held, kept);
    for (int round = 0; round < 300; round++) {
        int low = (int)rng_between(&rng, 0, 70) - 35;
        int high = low + (int)rng_below(&rng, 30);
        bool forward = rng_one_in(&rng, 2);
        bool filter = rng_one_in(&rng, 2);
        static const char *const conditions[] = {"", " AND sk BETWEEN :l AND :h", " AND sk > :l",
                                                 " AND sk <= :h"};
        uint64_t kind = rng_below(&rng, 4);
        char limit[32] = "";
        if (!rng_one_in(&rng, 4))
            snprintf(limit, sizeof(limit), ",\"Limit\":%d", (int)rng_between(&rng, 1, 9));
        language->rows_per_read = (uint32_t)rng_below(&rng, 6);
        char members[512], low_value[48] = "", high_value[48] = "";
        if (kind == 1 || kind == 2)
            snprintf(low_value, sizeof(low_value), ",\":l\":{\"N\":\"%d\"}", low);
        if (kind == 1 || kind == 3)
            snprintf(high_value, sizeof(high_value), ",\":h\":{\"N\":\"%d\"}", high);
        snprintf(
            members, sizeof(members),
            "\"KeyConditionExpression\":\"pk = :p%s\",%s\"ExpressionAttributeValues\":{\":p\":{"
            "\"S\":\"p\"}%s%s%s},\"ScanIndexForward\":%s%s",
            conditions[kind], filter ? "\"FilterExpression\":\"keep = :t\"," : "", low_value,
            high_value, filter ? ",\":t\":{\"BOOL\":true}" : "", forward ? "true" : "false", limit);
        int expected[60], found[60];
        uint32_t expected_count = 0;
        for (int step = 0; step < 60; step++) {
            int sk = forward ? step - 30 : 29 - step;
            bool wanted = held[sk + 30] && (!filter || kept[sk + 30]);
            if (kind == 1)
                wanted = wanted && sk >= low && sk <= high;
            if (kind == 2)
                wanted = wanted && sk > low;
            if (kind == 3)
                wanted = wanted && sk <= high;
            if (wanted)
                expected[expected_count++] = sk;
        }
        uint32_t count = walk(language, "Query", members, found, 60);
        if (count != expected_count || memcmp(found, expected, sizeof(int) * count) != 0)
            fail_msg("round %d: %s: %u items, expected %u", round, members, count, expected_count);
    }
}

/* Together the segments hold every item once, however many there are. */
static void scan_segments_share_out_the_table(void **state)
{
    struct language *language = *state;
    for (int i = 0; i < 200; i++) {
        char pk[16];
        snprintf(pk, sizeof(pk), "k%d", i);
        put(language, pk, i, false);
    }
    static const uint32_t totals[] = {1, 2, 3, 7, 64, 1000000};
    for (size_t t = 0; t < sizeof(totals) / sizeof(*totals); t++) {
        bool seen[200] = {false};
        uint32_t all = 0;
        uint32_t busy = 0;
        for (uint32_t segment = 0; segment < totals[t] && segment < 64; segment++) {
            char members[128];
            snprintf(members, sizeof(members), "\"Segment\":%u,\"TotalSegments\":%u,\"Limit\":5",
                     segment, totals[t]);
            int found[200];
            uint32_t count = walk(language, "Scan", members, found, 200);
            for (uint32_t i = 0; i < count; i++) {
                assert_false(seen[found[i]]);
                seen[found[i]] = true;
            }
            all += count;
            busy += count > 0;
        }
        if (totals[t] <= 64)
            assert_int_equal(all, 200);
        if (totals[t] == 7)
            assert_int_equal(busy, 7);
    }
    int found[200];
    assert_int_equal(walk(language, "Scan", "\"Limit\":7", found, 200), 200);
    assert_int_equal(walk(language, "Scan", "\"Select\":\"ALL_ATTRIBUTES\"", found, 200), 200);
    assert_string_equal(
        language_call(language, "Scan", "{\"TableName\":\"range\",\"Select\":\"COUNT\"}"),
        "{\"Count\":200,\"ScannedCount\":200}");
}

/* A page ends with the item that fills its megabyte, wherever the filter left the count. */
static void pages_end_at_a_megabyte(void **state)
{
    struct language *language = *state;
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    for (int i = 0; i < 8; i++) {
        buf_reset(&body);
        buf_printf(&body,
                   "{\"TableName\":\"range\",\"Item\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":"
                   "\"%d\"},\"x\":{\"S\":\"",
                   i);
        memset(buf_reserve(&body, 300000), 'x', 300000);
        body.len += 300000;
        buf_append_text(&body, "\"}}}");
        buf_append_u8(&body, 0);
        assert_string_equal(language_call(language, "PutItem", (char *)body.at), "{}");
    }
    const char *answer =
        language_call(language, "Scan",
                      "{\"TableName\":\"range\",\"FilterExpression\":\"attribute_exists(nothing)\","
                      "\"ReturnConsumedCapacity\":\"TOTAL\",\"ConsistentRead\":true}");
    /* Four items of 300,009 bytes pass 1 MiB: 1,200,036 bytes are 293 units of 4 KiB. */
    assert_string_equal(
        answer, "{\"Items\":[],\"Count\":0,\"ScannedCount\":4,\"LastEvaluatedKey\":{\"pk\":{"
                "\"S\":\"p\"},\"sk\":{\"N\":\"3\"}},\"ConsumedCapacity\":{\"TableName\":"
                "\"range\",\"CapacityUnits\":293.0}}");
    int found[8];
    assert_int_equal(walk(language, "Scan", "\"ProjectionExpression\":\"sk\"", found, 8), 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(found[i], i);
}

static void what_is_refused(void **state)
{
#define Q                                                                                          \
    "{\"TableName\":\"range\",\"KeyConditionExpression\":\"pk = :p AND sk > :s\","                 \
    "\"ExpressionAttributeValues\":{\":p\":{\"S\":\"p\"},\":s\":{\"N\":\"5\"}},"
#define S "{\"TableName\":\"range\","
    static const struct {
        const char *operation, *body, *message;
    } calls[] = {
        {"Query", Q "\"ExclusiveStartKey\":{\"pk\":{\"S\":\"p\"}}}",
         "The provided starting key is invalid"},
        {"Query", Q "\"ExclusiveStartKey\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"5\"}}}",
         "The provided starting key is invalid"},
        {"Query", Q "\"ExclusiveStartKey\":{\"pk\":{\"S\":\"q\"},\"sk\":{\"N\":\"6\"}}}",
         "The provided starting key is outside query boundaries based on provided conditions"},
        {"Query", Q "\"ExclusiveStartKey\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":\"5\"}}}",
         "The provided starting key does not match the range key predicate"},
        {"Query", Q "\"ExclusiveStartKey\":{\"pk\":{}}}",
         "The provided starting key is invalid: Supplied AttributeValue is empty, must contain "
         "exactly one of the supported datatypes"},
        {"Query", Q "\"IndexName\":\"nope\"}", "The table does not have the specified index: nope"},
        {"Scan", S "\"IndexName\":\"nope\"}", "The table does not have the specified index: nope"},
        {"Query", Q "\"Select\":\"SPECIFIC_ATTRIBUTES\"}",
         "One or more parameter values were invalid: Must specify the AttributesToGet or "
         "ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
        {"Query", Q "\"Select\":\"ALL_PROJECTED_ATTRIBUTES\"}",
         "One or more parameter values were invalid: ALL_PROJECTED_ATTRIBUTES can be used only "
         "when "
         "Querying using an IndexName"},
        {"Scan", S "\"Select\":\"COUNT\",\"AttributesToGet\":[\"a\"]}",
         "One or more parameter values were invalid: Cannot specify the AttributesToGet when "
         "choosing to get only the Count"},
        {"Scan", S "\"Segment\":1}",
         "The TotalSegments parameter is required but was not present in the request when Segment "
         "parameter is present"},
        {"Scan", S "\"TotalSegments\":1}",
         "The Segment parameter is required but was not present in the request when parameter "
         "TotalSegments is present"},
        {"Scan", S "\"TotalSegments\":2,\"Segment\":2}",
         "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
         "Segment: 2 is not less than TotalSegments: 2"},
        {"Scan", S "\"ExclusiveStartKey\":{\"pk\":{\"S\":\"p\"}}}",
         "The provided starting key is invalid: The provided key element does not match the "
         "schema"},
        {"Query", "{\"TableName\":\"range\"}",
         "Either the KeyConditions or KeyConditionExpression parameter must be specified in the "
         "request."},
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        char expected[512];
        snprintf(expected, sizeof(expected), VALIDATION "%s\"}", calls[i].message);
        assert_string_equal(language_call(*state, calls[i].operation, calls[i].body), expected);
    }
    /* A start key belongs to one segment. */
    uint32_t refused = 0;
    for (int segment = 0; segment < 4; segment++) {
        char body[256];
        snprintf(body, sizeof(body),
                 S "\"TotalSegments\":4,\"Segment\":%d,\"ExclusiveStartKey\":{\"pk\":{\"S\":\"p\"},"
                   "\"sk\":{\"N\":\"1\"}}}",
                 segment);
        refused += strstr(language_call(*state, "Scan", body),
                          "Please use ExclusiveStartKey with correct Segment") != NULL;
    }
    assert_int_equal(refused, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_filter_empties_a_page_but_not_the_walk),
        TEST(query_walks_match_the_twin),
        TEST(scan_segments_share_out_the_table),
        TEST(pages_end_at_a_megabyte),
        TEST(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
