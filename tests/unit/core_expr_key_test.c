/* SPDX-License-Identifier: Apache-2.0 */
/* Key conditions tied to schemas: the range of row keys against a twin that tests each sort key by
 * the condition itself, and the messages for conditions that do not fit the key. */

#include "region/core/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "region/core/key.h"
#include "tests/lib/expr_text.h"

static const struct key_schema text_key = {.hash_name = "pk",
                                           .hash_type = VALUE_S,
                                           .has_range = true,
                                           .range_name = "sk",
                                           .range_type = VALUE_S};
static const struct key_schema number_key = {.hash_name = "pk",
                                             .hash_type = VALUE_S,
                                             .has_range = true,
                                             .range_name = "sk",
                                             .range_type = VALUE_N};
static const struct key_schema binary_key = {.hash_name = "pk",
                                             .hash_type = VALUE_S,
                                             .has_range = true,
                                             .range_name = "sk",
                                             .range_type = VALUE_B};
static const struct key_schema hash_only = {.hash_name = "pk", .hash_type = VALUE_S};

static const char *bind(struct arena *arena, const struct key_schema *key, const char *text,
                        const char *values, struct key_range *ret)
{
    struct expr_scope scope = expr_text_scope(arena, NULL, values);
    struct expr_key_condition *condition;
    const char *message = expr_parse_key_condition(&scope, bytes_text(text), &condition);
    if (message)
        fail_msg("%s: %s", text, message);
    return expr_key_condition_bind(condition, key, arena, ret);
}

static bool selects(const struct key_range *range, struct value hash, struct value sort)
{
    struct buf key = {0};
    key_write_hash(&key, hash);
    key_write_range(&key, sort);
    bool inside = bytes_compare(range->begin, buf_view(&key)) <= 0 &&
                  bytes_compare(buf_view(&key), range->end) < 0;
    buf_deinit(&key);
    return inside;
}

/* The condition's sort key part must select exactly what it says as a filter. */
static void expect_range(const struct key_schema *key, const char *condition, const char *values,
                         const char *const *sort_keys, size_t count)
{
    struct arena arena;
    struct key_range range;
    struct expr_condition *filter;
    char text[256];
    arena_init(&arena);
    snprintf(text, sizeof(text), "pk = :p AND %s", condition);
    assert_null(bind(&arena, key, text, values, &range));
    struct expr_scope scope = expr_text_scope(&arena, NULL, values);
    assert_null(expr_parse_condition(&scope, "f", bytes_text(condition), &filter));
    struct value hash = value_of_text(&arena, "'p'"), other = value_of_text(&arena, "'q'");
    assert_true(bytes_equal(range.hash.whole, hash.whole));
    for (size_t i = 0; i < count; i++) {
        char item[256];
        snprintf(item, sizeof(item), "{sk:%s}", sort_keys[i]);
        struct value sort = value_of_text(&arena, sort_keys[i]);
        bool wanted = expr_condition_holds(filter, item_of_text(&arena, item));
        if (selects(&range, hash, sort) != wanted)
            fail_msg("%s at %s", condition, sort_keys[i]);
        assert_false(selects(&range, other, sort));
    }
    arena_deinit(&arena);
}

static void test_ranges(void **state)
{
    static const char *const texts[] = {"'a'",  "'ab'", "'abc'", "'b'",  "'m'",
                                        "'mm'", "'n'",  "'z'",   "'zz'", "'\x7f'"};
    static const char *const numbers[] = {"-1e10", "-2", "-1", "0", "0.5", "1", "1.5", "2", "1e20"};
    static const char *const binaries[] = {"x'00'", "x'0000'", "x'01'",
                                           "x'ff'", "x'ffff'", "x'ff00'"};
    static const char *const conditions[] = {"sk = :a",
                                             "sk < :a",
                                             "sk <= :a",
                                             "sk > :a",
                                             "sk >= :a",
                                             ":a < sk",
                                             ":a <= sk",
                                             ":a > sk",
                                             ":a >= sk",
                                             ":a = sk",
                                             "(sk BETWEEN :a AND :b)",
                                             "sk BETWEEN :a AND :a"};
    (void)state;
    for (size_t i = 0; i < array_len(conditions); i++) {
        expect_range(&text_key, conditions[i], "{p:'p',a:'ab',b:'mm'}", texts, array_len(texts));
        expect_range(&number_key, conditions[i], "{p:'p',a:-1,b:1.5}", numbers, array_len(numbers));
        expect_range(&binary_key, conditions[i], "{p:'p',a:x'0000',b:x'ff'}", binaries,
                     array_len(binaries));
    }
    expect_range(&text_key, "begins_with(sk, :a)", "{p:'p',a:'ab'}", texts, array_len(texts));
    expect_range(&binary_key, "begins_with(sk, :a)", "{p:'p',a:x'ff'}", binaries,
                 array_len(binaries));
}

static void test_whole_partition(void **state)
{
    struct arena arena;
    struct key_range range;
    (void)state;
    arena_init(&arena);
    assert_null(bind(&arena, &text_key, "(:p = pk)", "{p:'p'}", &range));
    assert_true(selects(&range, value_of_text(&arena, "'p'"), value_of_text(&arena, "''")));
    assert_true(selects(&range, value_of_text(&arena, "'p'"), value_of_text(&arena, "x'ffff'")));
    assert_false(selects(&range, value_of_text(&arena, "'pp'"), value_of_text(&arena, "''")));
    assert_null(bind(&arena, &hash_only, "pk = :p", "{p:'p'}", &range));
    assert_true(selects(&range, value_of_text(&arena, "'p'"), value_of_text(&arena, "''")));
    assert_null(bind(&arena, &text_key, "sk > :a AND pk = :p", "{p:'p',a:'a'}", &range));
    assert_true(selects(&range, value_of_text(&arena, "'p'"), value_of_text(&arena, "'b'")));
    arena_deinit(&arena);
}

static void test_messages(void **state)
{
#define SCHEMA                                                                                     \
    "One or more parameter values were invalid: Condition parameter type does not match schema "   \
    "type"
    static const struct {
        const struct key_schema *key;
        const char *text, *values, *message;
    } samples[] = {
        {&text_key, "sk = :a", "{a:'x'}", "Query condition missed key schema element: pk"},
        {&text_key, "pk = :a AND third = :a", "{a:'x'}",
         "Query condition missed key schema element: sk"},
        {&hash_only, "pk = :a AND sk = :a", "{a:'x'}",
         "The number of query conditions (2) exceeds the number of key attributes defined in the "
         "schema (1)"},
        {&text_key, "pk = :a AND sk > :a AND extra = :a", "{a:'x'}",
         "The number of query conditions (3) exceeds the number of key attributes defined in the "
         "schema (2)"},
        {&text_key, "pk > :a", "{a:'x'}", "Query key condition not supported"},
        {&text_key, "begins_with(pk, :a) AND sk = :a", "{a:'x'}",
         "Query key condition not supported"},
        {&text_key, "pk = :a", "{a:1}", SCHEMA},
        {&number_key, "pk = :a AND begins_with(sk, :a)", "{a:'x'}", SCHEMA},
        {&number_key, "pk = :a AND sk = :b", "{a:'x',b:true}", SCHEMA},
        {&text_key, "pk = :a", "{a:''}",
         "One or more parameter values are not valid. The AttributeValue for a key attribute "
         "cannot contain an empty string value. Key: pk"},
        {&text_key, "pk = :a AND begins_with(sk, :b)", "{a:'x',b:''}",
         "One or more parameter values are not valid. The AttributeValue for a key attribute "
         "cannot contain an empty string value. Key: sk"},
        {&binary_key, "pk = :a AND sk BETWEEN :b AND :c", "{a:'x',b:x'',c:x'00'}",
         "One or more parameter values are not valid. The AttributeValue for a key attribute "
         "cannot contain an empty binary value. Key: sk"},
    };
    struct arena arena;
    struct key_range range;
    (void)state;
    arena_init(&arena);
    for (size_t i = 0; i < array_len(samples); i++) {
        const char *message =
            bind(&arena, samples[i].key, samples[i].text, samples[i].values, &range);
        if (!message || strcmp(message, samples[i].message) != 0)
            fail_msg("%s: %s", samples[i].text, message ? message : "(none)");
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_whole_partition),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
