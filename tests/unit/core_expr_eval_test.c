/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on one item of every type, the check of filters against keys, and projections. */

#include "region/core/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "region/core/item_json.h"
#include "tests/lib/expr_text.h"

static const char item_text[] =
    "{s:'hello', e:'', n:42, neg:-1, b:x'00ff', t:true, f:false, nil:null, "
    "l:[1,'two',[3],{k:'v'}], "
    "m:{a:1,b:{c:'deep'},d:[10,20]}, ss:<'x' 'y'>, ns:<1 2.5>, bs:<x'01'>, le:[], "
    "big:100000000000000001}";

static const char values_text[] =
    "{s:'hello', h:'he', lo:'lo', e:'', n:42, nn:42.0, one:1, two:2, five:5, ten:10, z:0, three:3, "
    "four:4, b:x'00ff', b0:x'00', t:true, nil:null, l:[1,'two',[3],{k:'v'}], m:{b:{c:'deep'},"
    "d:[10,20],a:1}, ss:<'y' 'x'>, ns:<2.5 1>, x:'x', b1:x'01', half:2.5, S:'S', M:'M', N:'N', "
    "deep:'deep', k:{k:'v'}, big:100000000000000002}";

struct sample {
    const char *text;
    bool holds;
};

static const struct sample conditions[] = {
    {"s = :s", true},
    {"s = :h", false},
    {"s <> :h", true},
    {"n = :nn", true},
    {"n <> :nn", false},
    {"b = :b", true},
    {"t = :t", true},
    {"f = :t", false},
    {"nil = :nil", true},
    {"l = :l", true},
    {"m = :m", true},
    {"ss = :ss", true},
    {"ns = :ns", true},
    {"big = :big", false},
    {"s = :n", false},
    {"s <> :n", true},
    /* Missing attributes equal nothing and differ from all. */
    {"gone = :s", false},
    {"gone <> :s", true},
    {"gone = gone2", false},
    {"gone <> gone2", true},
    {"NOT gone = gone2", true},
    {"gone < :s", false},
    {"NOT gone < :s", true},
    /* Order, within a type. */
    {"n > :ten", true},
    {"n < :ten", false},
    {"n >= :n", true},
    {"n <= :n", true},
    {"n < :n", false},
    {":ten < n", true},
    {"s > :h", true},
    {"s < :h", false},
    {"b > :b0", true},
    {"neg < :z", true},
    {"s > :n", false},
    {"s < :n", false},
    {"m < n", false},
    {"e < s", true},
    {"n BETWEEN :ten AND :n", true},
    {"n BETWEEN :one AND :ten", false},
    {"n BETWEEN neg AND big", true},
    {"n BETWEEN big AND neg", false},
    {"s BETWEEN :one AND :ten", false},
    {"gone BETWEEN :one AND :ten", false},
    {"n IN (:one, :s, :n)", true},
    {"n IN (:one, gone, s)", false},
    {"gone IN (no2)", false},
    {"l IN (:s, :l)", true},
    /* Functions. */
    {"attribute_exists(s)", true},
    {"attribute_exists(gone)", false},
    {"attribute_exists(m.b.c)", true},
    {"attribute_exists(m.b.x)", false},
    {"attribute_exists(l[2][0])", true},
    {"attribute_exists(l[4])", false},
    {"attribute_exists(l.a)", false},
    {"attribute_exists(m[0])", false},
    {"attribute_exists(s.a)", false},
    {"attribute_not_exists(gone)", true},
    {"attribute_not_exists(nil)", false},
    {"attribute_exists(le[0])", false},
    {"attribute_type(s, :S)", true},
    {"attribute_type(m, :M)", true},
    {"attribute_type(s, :M)", false},
    {"attribute_type(gone, :S)", false},
    {"attribute_type(:one, :N)", true},
    {"begins_with(s, :h)", true},
    {"begins_with(s, :lo)", false},
    {"begins_with(s, :e)", true},
    {"begins_with(b, :b0)", true},
    {"begins_with(b, :h)", false},
    {"begins_with(n, :h)", false},
    {"begins_with(gone, :h)", false},
    {"begins_with(:s, :h)", true},
    {"contains(s, :lo)", true},
    {"contains(s, :x)", false},
    {"contains(s, :e)", true},
    {"contains(e, :e)", true},
    {"contains(e, :x)", false},
    {"contains(b, :b0)", true},
    {"contains(ss, :x)", true},
    {"contains(ss, :one)", false},
    {"contains(ns, :half)", true},
    {"contains(bs, :b1)", true},
    {"contains(l, :one)", true},
    {"contains(l, :k)", true},
    {"contains(l, :two)", false},
    {"contains(m, :one)", false},
    {"contains(n, :one)", false},
    {"contains(gone, :one)", false},
    {"contains(s, gone)", false},
    {"size(s) = :five", true},
    {"size(b) = :two", true},
    {"size(l) = :four", true},
    {"size(m) = :three", true},
    {"size(ss) = :two", true},
    {"size(ns) = :two", true},
    {"size(e) = :z", true},
    {"size(le) = :z", true},
    {"size(n) = :two", false},
    {"size(t) = :one", false},
    {"size(gone) = :z", false},
    {"size(gone) <> :z", true},
    {":four < size(s)", true},
    {"size(s) > size(b)", true},
    {"size(s) BETWEEN :one AND :ten", true},
    {"size(s) IN (:one, :five)", true},
    {"size(m.b) = :one", true},
    {"size(:s) = :five", true},
    /* Paths and logic. */
    {"m.b.c = :deep", true},
    {"(m.b).c = :deep", true},
    {"m.d[1] > :ten", true},
    {"l[3].k = m.b.c", false},
    {"l[0] = :one", true},
    {"s = :s AND n = :n", true},
    {"s = :s AND n = :one", false},
    {"s = :h OR n = :n", true},
    {"s = :h OR n = :one", false},
    {"NOT s = :h AND n = :n", true},
    {"NOT (s = :s AND n = :n)", false},
    {"s = :s OR n = :one AND f = :t", true},
    {"(s = :s OR n = :one) AND f = :t", false},
    {"NOT NOT s = :s", true},
    {"NOT s = :s OR n = :n", true},
    {"s=:s and (n=:one or (t=:t and not f=:t))", true},
};

static void test_conditions(void **state)
{
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct bytes item = item_of_text(&arena, item_text);
    struct expr_scope scope = expr_text_scope(&arena, NULL, values_text);
    for (size_t i = 0; i < array_len(conditions); i++) {
        struct expr_condition *condition;
        const char *message = expr_parse_condition(&scope, "ConditionExpression",
                                                   bytes_text(conditions[i].text), &condition);
        if (message)
            fail_msg("%s: %s", conditions[i].text, message);
        if (expr_condition_holds(condition, item) != conditions[i].holds)
            fail_msg("%s is not %d", conditions[i].text, conditions[i].holds);
    }
    arena_deinit(&arena);
}

static void test_no_item(void **state)
{
    static const struct sample samples[] = {
        {"attribute_not_exists(s)", true},
        {"attribute_exists(s)", false},
        {"s = :s", false},
        {"s <> :s", true},
        {"size(s) = :z", false},
    };
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct expr_scope scope = expr_text_scope(&arena, NULL, values_text);
    for (size_t i = 0; i < array_len(samples); i++) {
        struct expr_condition *condition;
        assert_null(expr_parse_condition(&scope, "ConditionExpression", bytes_text(samples[i].text),
                                         &condition));
        assert_int_equal(expr_condition_holds(condition, BYTES_NONE), samples[i].holds);
    }
    arena_deinit(&arena);
}

static void test_filter_on_keys(void **state)
{
    static const struct {
        const char *text, *name;
    } samples[] = {{"a = :one", NULL},
                   {"pk = :one", "pk"},
                   {"a = :one or size(sk[1]) = :two", "sk"},
                   {"not contains(a, pk)", "pk"},
                   {"sk = :one and pk = :one", "pk"},
                   {"a.pk = :one", NULL}};
    struct key_schema key = {.hash_name = "pk", .has_range = true, .range_name = "sk"};
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct expr_scope scope = expr_text_scope(&arena, NULL, values_text);
    for (size_t i = 0; i < array_len(samples); i++) {
        struct expr_condition *filter;
        char want[128];
        assert_null(
            expr_parse_condition(&scope, "FilterExpression", bytes_text(samples[i].text), &filter));
        const char *message = expr_filter_check_key(filter, &key, &arena);
        assert_int_equal(message != NULL, samples[i].name != NULL);
        snprintf(want, sizeof(want),
                 "Filter Expression can only contain non-primary key attributes: Primary key "
                 "attribute: %s",
                 samples[i].name ? samples[i].name : "");
        if (message)
            assert_string_equal(message, want);
    }
    arena_deinit(&arena);
}

static void test_projections(void **state)
{
    static const struct {
        const char *text, *json;
        bool nested;
    } samples[] = {
        {"s", "{\"s\":{\"S\":\"hello\"}}", false},
        {"gone, n, gone2", "{\"n\":{\"N\":\"42\"}}", false},
        {"gone", "{}", false},
        {"t, e, f", "{\"e\":{\"S\":\"\"},\"f\":{\"BOOL\":false},\"t\":{\"BOOL\":true}}", false},
        {"m.b.c", "{\"m\":{\"M\":{\"b\":{\"M\":{\"c\":{\"S\":\"deep\"}}}}}}", true},
        {"m.d[1], m.a", "{\"m\":{\"M\":{\"a\":{\"N\":\"1\"},\"d\":{\"L\":[{\"N\":\"20\"}]}}}}",
         true},
        {"l[3].k, l[0]", "{\"l\":{\"L\":[{\"N\":\"1\"},{\"M\":{\"k\":{\"S\":\"v\"}}}]}}", true},
        {"l[2][0]", "{\"l\":{\"L\":[{\"L\":[{\"N\":\"3\"}]}]}}", true},
        {"m.x, m.b.x, l[9], s.x, n[0], gone.x", "{}", true},
        {"l.x, m[0]", "{}", true},
        {"m.x, m.a", "{\"m\":{\"M\":{\"a\":{\"N\":\"1\"}}}}", true},
        {"l[9], l[1]", "{\"l\":{\"L\":[{\"S\":\"two\"}]}}", true},
    };
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct bytes item = item_of_text(&arena, item_text);
    for (size_t i = 0; i < array_len(samples); i++) {
        struct expr_scope scope = expr_text_scope(&arena, NULL, NULL);
        struct expr_projection *projection;
        struct buf to = {0}, json = {0};
        assert_null(expr_parse_projection(&scope, bytes_text(samples[i].text), &projection));
        assert_int_equal(expr_projection_has_nested(projection), samples[i].nested);
        expr_project(projection, item, &to);
        assert_true(item_check(buf_view(&to)));
        item_write_json(&json, buf_view(&to));
        buf_append_u8(&json, '\0');
        assert_string_equal((const char *)json.at, samples[i].json);
        buf_reset(&to);
        expr_project(projection, BYTES_NONE, &to);
        assert_true(bytes_equal(buf_view(&to), bytes_literal("\1")));
        buf_deinit(&to);
        buf_deinit(&json);
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_no_item),
        cmocka_unit_test(test_filter_on_keys),
        cmocka_unit_test(test_projections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
