/* SPDX-License-Identifier: Apache-2.0 */
/* The members that expressions replaced: every operator, the key conditions, projections and
 * updates that are built without text. */

#include "region/core/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "region/core/item_json.h"
#include "tests/lib/value_text.h"

static const char item_text[] = "{n:5, s:'hello', ss:<'a' 'b'>, a.b:1}";

static void test_operators(void **state)
{
    static const struct {
        const char *name;
        enum expr_legacy_operator operator;
        const char *values[2];
        bool holds;
    } samples[] = {
        {"n", EXPR_LEGACY_EQ, {"5"}, true},
        {"n", EXPR_LEGACY_EQ, {"6"}, false},
        {"x", EXPR_LEGACY_EQ, {"5"}, false},
        {"n", EXPR_LEGACY_NE, {"6"}, true},
        {"x", EXPR_LEGACY_NE, {"6"}, true},
        {"n", EXPR_LEGACY_NE, {"5"}, false},
        {"n", EXPR_LEGACY_LE, {"5"}, true},
        {"n", EXPR_LEGACY_LT, {"5"}, false},
        {"n", EXPR_LEGACY_GE, {"5"}, true},
        {"n", EXPR_LEGACY_GT, {"4"}, true},
        {"n", EXPR_LEGACY_GT, {"'4'"}, false},
        {"n", EXPR_LEGACY_NOT_NULL, {0}, true},
        {"x", EXPR_LEGACY_NOT_NULL, {0}, false},
        {"x", EXPR_LEGACY_NULL, {0}, true},
        {"n", EXPR_LEGACY_NULL, {0}, false},
        {"s", EXPR_LEGACY_CONTAINS, {"'ell'"}, true},
        {"ss", EXPR_LEGACY_CONTAINS, {"'a'"}, true},
        {"x", EXPR_LEGACY_CONTAINS, {"'a'"}, false},
        {"s", EXPR_LEGACY_NOT_CONTAINS, {"'ell'"}, false},
        {"ss", EXPR_LEGACY_NOT_CONTAINS, {"'c'"}, true},
        {"x", EXPR_LEGACY_NOT_CONTAINS, {"'c'"}, false},
        {"s", EXPR_LEGACY_BEGINS_WITH, {"'he'"}, true},
        {"n", EXPR_LEGACY_IN, {"4", "5"}, true},
        {"n", EXPR_LEGACY_IN, {"4"}, false},
        {"n", EXPR_LEGACY_BETWEEN, {"5", "6"}, true},
        {"n", EXPR_LEGACY_BETWEEN, {"6", "7"}, false},
        {"a.b", EXPR_LEGACY_EQ, {"1"}, true},
    };
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct bytes item = item_of_text(&arena, item_text);
    for (size_t i = 0; i < array_len(samples); i++) {
        struct value values[2];
        struct expr_legacy_condition one = {bytes_text(samples[i].name), samples[i].operator,
                                            values, 0};
        while (one.value_count < 2 && samples[i].values[one.value_count]) {
            values[one.value_count] = value_of_text(&arena, samples[i].values[one.value_count]);
            one.value_count++;
        }
        assert_true(expr_legacy_takes(one.operator, one.value_count));
        struct expr_condition *condition = expr_build_condition(&arena, &one, 1, false);
        if (expr_condition_holds(condition, item) != samples[i].holds)
            fail_msg("sample %zu", i);
    }
    assert_false(expr_legacy_takes(EXPR_LEGACY_BETWEEN, 1));
    assert_false(expr_legacy_takes(EXPR_LEGACY_NULL, 1));
    assert_false(expr_legacy_takes(EXPR_LEGACY_IN, 0));
    assert_false(expr_legacy_takes(EXPR_LEGACY_EQ, 2));
    arena_deinit(&arena);
}

static void test_any_or_all(void **state)
{
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct value five = value_of_text(&arena, "5"), six = value_of_text(&arena, "6");
    struct expr_legacy_condition both[] = {
        {bytes_literal("n"), EXPR_LEGACY_EQ, &five, 1},
        {bytes_literal("n"), EXPR_LEGACY_EQ, &six, 1},
    };
    struct bytes item = item_of_text(&arena, item_text);
    assert_false(expr_condition_holds(expr_build_condition(&arena, both, 2, false), item));
    assert_true(expr_condition_holds(expr_build_condition(&arena, both, 2, true), item));
    arena_deinit(&arena);
}

static void test_key_conditions(void **state)
{
    struct key_schema key = {.hash_name = "pk",
                             .hash_type = VALUE_S,
                             .has_range = true,
                             .range_name = "sk",
                             .range_type = VALUE_N};
    struct arena arena;
    struct key_range range, again;
    (void)state;
    arena_init(&arena);
    struct value values[] = {value_of_text(&arena, "1"), value_of_text(&arena, "2")};
    struct value hash = value_of_text(&arena, "'p'");
    struct expr_legacy_condition both[] = {
        {bytes_literal("sk"), EXPR_LEGACY_BETWEEN, values, 2},
        {bytes_literal("pk"), EXPR_LEGACY_EQ, &hash, 1},
    };
    assert_null(
        expr_key_condition_bind(expr_build_key_condition(&arena, both, 2), &key, &arena, &range));
    both[0].operator= EXPR_LEGACY_GE;
    both[0].value_count = 1;
    assert_null(
        expr_key_condition_bind(expr_build_key_condition(&arena, both, 2), &key, &arena, &again));
    assert_true(bytes_equal(range.begin, again.begin));
    assert_true(bytes_compare(range.end, again.end) < 0);
    assert_string_equal(
        expr_key_condition_bind(expr_build_key_condition(&arena, both, 1), &key, &arena, &range),
        "Query condition missed key schema element: pk");
    both[0].operator= EXPR_LEGACY_NE;
    assert_null(expr_build_key_condition(&arena, both, 2));
    arena_deinit(&arena);
}

static void expect_json(struct buf *item, const char *want)
{
    struct buf json = {0};
    item_write_json(&json, buf_view(item));
    buf_append_u8(&json, '\0');
    assert_string_equal((const char *)json.at, want);
    buf_deinit(&json);
    buf_reset(item);
}

static void test_projection_and_update(void **state)
{
    struct arena arena;
    struct buf to = {0};
    (void)state;
    arena_init(&arena);
    struct bytes item = item_of_text(&arena, item_text);
    struct bytes names[] = {bytes_literal("n"), bytes_literal("a.b"), bytes_literal("n")};
    expr_project(expr_build_projection(&arena, names, 3), item, &to);
    expect_json(&to, "{\"a.b\":{\"N\":\"1\"},\"n\":{\"N\":\"5\"}}");

    struct expr_legacy_update updates[] = {
        {bytes_literal("s"), EXPR_LEGACY_DELETE, false, {0}},
        {bytes_literal("n"), EXPR_LEGACY_ADD, true, value_of_text(&arena, "2")},
        {bytes_literal("ss"), EXPR_LEGACY_DELETE, true, value_of_text(&arena, "<'a'>")},
        {bytes_literal("a.b"), EXPR_LEGACY_PUT, true, value_of_text(&arena, "true")},
    };
    struct expr_update *update = expr_build_update(&arena, updates, 4);
    assert_null(expr_update_apply(update, item, BYTES_NONE, &arena, &to));
    expect_json(&to, "{\"a.b\":{\"BOOL\":true},\"n\":{\"N\":\"7\"},\"ss\":{\"SS\":[\"b\"]}}");
    updates[2].value = value_of_text(&arena, "<1>");
    update = expr_build_update(&arena, updates, 4);
    assert_string_equal(expr_update_apply(update, item, BYTES_NONE, &arena, &to),
                        "Type mismatch for attribute to update");
    update = expr_build_update(&arena, NULL, 0);
    assert_null(expr_update_apply(update, BYTES_NONE, item_of_text(&arena, "{pk:1}"), &arena, &to));
    expect_json(&to, "{\"pk\":{\"N\":\"1\"}}");
    buf_deinit(&to);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_any_or_all),
        cmocka_unit_test(test_key_conditions),
        cmocka_unit_test(test_projection_and_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
