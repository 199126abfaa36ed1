/* SPDX-License-Identifier: Apache-2.0 */
/* Updates: what an item becomes, what AWS says when it cannot, and that the result is canonical. */

#include "region/core/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "region/core/item_json.h"
#include "tests/lib/expr_text.h"

static const char item_text[] =
    "{pk:'x', a:'A0', b:'B0', n:10, l:[1,2,3,4], m:{k:'v',l:[10,{q:1}]}, "
    "ss:<'a' 'b'>, ns:<1 2>, bs:<x'01'>, e:[], t:true}";
static const char values_text[] =
    "{n:1, m:-3.5, s:'new', l:['x'], e:[], ss:<'b' 'c'>, sa:<'a' 'b'>, ns:<2 3>, bs:<x'02'>, "
    "big:9.9e125, mm:{z:1}, precise:0.0000000000000000000000000000000000000001, t:true}";

/* The new item in notation, or the message. */
static void expect(const char *text, const char *old, const char *want)
{
    struct arena arena;
    struct buf to = {0}, json = {0}, want_json = {0};
    struct expr_update *update;
    arena_init(&arena);
    struct expr_scope scope = expr_text_scope(&arena, "{a:'a'}", values_text);
    const char *message = expr_parse_update(&scope, bytes_text(text), &update);
    if (message)
        fail_msg("%s: %s", text, message);
    struct bytes item = old ? item_of_text(&arena, old) : BYTES_NONE;
    message = expr_update_apply(update, item, item_of_text(&arena, "{pk:'x'}"), &arena, &to);
    if (message) {
        if (strcmp(message, want) != 0)
            fail_msg("%s: %s", text, message);
    } else {
        assert_true(item_check(buf_view(&to)));
        item_write_json(&json, buf_view(&to));
        buf_append_u8(&json, '\0');
        if (want[0] != '{')
            fail_msg("%s: %s", text, (const char *)json.at);
        item_write_json(&want_json, item_of_text(&arena, want));
        buf_append_u8(&want_json, '\0');
        if (strcmp((const char *)json.at, (const char *)want_json.at) != 0)
            fail_msg("%s:\n  %s\n  %s", text, (const char *)json.at, (const char *)want_json.at);
    }
    buf_deinit(&to);
    buf_deinit(&json);
    buf_deinit(&want_json);
    arena_deinit(&arena);
}

#define INVALID_PATH "The document path provided in the update expression is invalid for update"
#define MISSING "The provided expression refers to an attribute that does not exist in the item"
#define WRONG_TYPE "An operand in the update expression has an incorrect data type"

static void test_set(void **state)
{
    (void)state;
    expect("SET a = :s", "{a:'o',z:1}", "{a:'new',z:1}");
    expect("SET b = :s", "{a:'o',z:1}", "{a:'o',b:'new',z:1}");
    expect("SET zz = :s", "{a:'o'}", "{a:'o',zz:'new'}");
    expect("SET #a = :s, c = :n", "{b:1}", "{a:'new',b:1,c:1}");
    /* Right sides read the item as it was. */
    expect("SET a = :s, b = a", "{a:'A0',b:'B0'}", "{a:'new',b:'A0'}");
    expect("SET a = b, b = a", "{a:'A0',b:'B0'}", "{a:'B0',b:'A0'}");
    expect("SET b = a REMOVE a", "{a:'A0'}", "{b:'A0'}");
    expect("SET c = (c - :n)", "{c:10}", "{c:9}");
    expect("SET c = c + :m", "{c:10}", "{c:6.5}");
    expect("SET c = :n - c", "{c:1}", "{c:0}");
    expect("SET c = if_not_exists(c, :n) + :n", "{c:10}", "{c:11}");
    expect("SET c = if_not_exists(c, :n) + :n", "{}", "{c:2}");
    expect("SET c = if_not_exists(x.y, if_not_exists(z, :s))", "{}", "{c:'new'}");
    expect("SET l = list_append(l, :l)", "{l:[1]}", "{l:[1,'x']}");
    expect("SET l = list_append(:l, l)", "{l:[1]}", "{l:['x',1]}");
    expect("SET l = list_append(if_not_exists(l, :e), :l)", "{}", "{l:['x']}");
    expect("SET a = pk", NULL, "{a:'x',pk:'x'}");
    expect("SET a = :s", NULL, "{a:'new',pk:'x'}");
    expect("SET m.k = :s, m.j = :n", "{m:{k:'v',z:1}}", "{m:{j:1,k:'new',z:1}}");
    expect("SET m.l[1].q = m.l[0] + :n", "{m:{l:[10,{q:1}]}}", "{m:{l:[10,{q:11}]}}");
    expect("SET l[1] = :s", "{l:[1,2,3]}", "{l:[1,'new',3]}");
    expect("SET l[5] = :s", "{l:[1,2,3]}", "{l:[1,2,3,'new']}");
    expect("SET l[9] = :s, l[7] = :n, l[0] = :t", "{l:[1]}", "{l:[true,1,'new']}");
    expect("SET l[0] = :s", "{l:[]}", "{l:['new']}");
}

static void test_remove(void **state)
{
    (void)state;
    expect("REMOVE a", "{a:1,b:2}", "{b:2}");
    expect("REMOVE gone", "{a:1,b:2}", "{a:1,b:2}");
    expect("REMOVE a, b", "{a:1,b:2}", "{}");
    expect("REMOVE m.k", "{m:{k:1,z:2}}", "{m:{z:2}}");
    expect("REMOVE m.k", "{m:{k:1}}", "{m:{}}");
    expect("REMOVE m.gone", "{m:{k:1}}", "{m:{k:1}}");
    expect("REMOVE l[1]", "{l:['a','b','c','d']}", "{l:['a','c','d']}");
    expect("REMOVE l[0], l[2]", "{l:['a','b','c','d']}", "{l:['b','d']}");
    expect("REMOVE l[9]", "{l:['a']}", "{l:['a']}");
    expect("REMOVE l[0] SET l[1] = :s, l[8] = :n", "{l:['a','b','c']}", "{l:['new','c',1]}");
    expect("REMOVE l[1].q", "{l:[1,{q:1,r:2}]}", "{l:[1,{r:2}]}");
    expect("REMOVE a", NULL, "{pk:'x'}");
}

static void test_add_and_delete(void **state)
{
    (void)state;
    expect("ADD n :n", "{n:10}", "{n:11}");
    expect("ADD n :m", "{}", "{n:-3.5}");
    expect("ADD n :n", NULL, "{n:1,pk:'x'}");
    expect("ADD ss :ss", "{ss:<'a' 'b'>}", "{ss:<'a' 'b' 'c'>}");
    expect("ADD ns :ns", "{ns:<10 1>}", "{ns:<1 2 3 10>}");
    expect("ADD bs :bs", "{bs:<x'01' x'03'>}", "{bs:<x'01' x'02' x'03'>}");
    expect("ADD ss :ss", "{}", "{ss:<'b' 'c'>}");
    expect("ADD m.n :n, l[0] :n, l[9] :n", "{m:{},l:[5]}", "{m:{n:1},l:[6,1]}");
    expect("DELETE ss :ss", "{ss:<'a' 'b'>}", "{ss:<'a'>}");
    expect("DELETE ss :sa", "{ss:<'a' 'b'>,z:1}", "{z:1}");
    expect("DELETE ss :ss", "{z:1}", "{z:1}");
    expect("DELETE m.s :ss", "{m:{s:<'b'>}}", "{m:{}}");
    expect("DELETE ns :ns", "{ns:<4 2>}", "{ns:<4>}");
    expect("DELETE ss :ss", "{ss:<'x' 'y'>}", "{ss:<'x' 'y'>}");
}

static void test_messages(void **state)
{
    static const struct {
        const char *text, *message;
    } samples[] = {
        {"SET x = gone", MISSING},
        {"SET x = list_append(gone, :l)", MISSING},
        {"SET x = gone + :n", MISSING},
        {"SET x = m.gone", MISSING},
        {"SET x = l[4]", MISSING},
        {"SET x = a + :n", WRONG_TYPE},
        {"SET x = n - m", WRONG_TYPE},
        {"SET x = list_append(ss, :l)", WRONG_TYPE},
        {"SET x = if_not_exists(a, :n) + :n", WRONG_TYPE},
        {"SET x = list_append(:l, n)", WRONG_TYPE},
        {"ADD ss :n", WRONG_TYPE},
        {"ADD ss :ns", WRONG_TYPE},
        {"ADD m :ns", WRONG_TYPE},
        {"ADD a :n", WRONG_TYPE},
        {"DELETE ss :ns", WRONG_TYPE},
        {"DELETE n :ns", WRONG_TYPE},
        {"DELETE m.k :ns", WRONG_TYPE},
        {"SET gone.x = :n", INVALID_PATH},
        {"SET gone[1] = :n", INVALID_PATH},
        {"SET a.x = :n", INVALID_PATH},
        {"SET a[1] = :n", INVALID_PATH},
        {"SET m[1] = :n", INVALID_PATH},
        {"SET l.x = :n", INVALID_PATH},
        {"SET m.gone.x = :n", INVALID_PATH},
        {"SET l[9].x = :n", INVALID_PATH},
        {"REMOVE a.x", INVALID_PATH},
        {"REMOVE gone.x", INVALID_PATH},
        {"REMOVE m[1]", INVALID_PATH},
        {"REMOVE l.x", INVALID_PATH},
        {"DELETE gone.x :ss", INVALID_PATH},
        {"DELETE l.x :ss", INVALID_PATH},
        {"ADD gone.x :n", INVALID_PATH},
        {"ADD a[1] :n", INVALID_PATH},
        {"SET x = :big + :big", "Number overflow. Attempting to store a number with magnitude "
                                "larger than supported range"},
        {"SET x = n + :precise", "Number overflow. Attempting to store a number with magnitude "
                                 "larger than supported range"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(samples); i++)
        expect(samples[i].text, item_text, samples[i].message);
    expect("SET b.a = pk", NULL, INVALID_PATH);
}

static void test_depth(void **state)
{
    struct arena arena;
    struct expr_update *update;
    struct buf to = {0}, value = {0};
    (void)state;
    arena_init(&arena);
    /* A value of 31 levels under an attribute is fine, one level further down it is not. */
    value_write(&value, VALUE_NULL, BYTES_NONE);
    for (int i = 1; i < ITEM_DEPTH_MAX; i++) {
        struct buf outer = {0};
        value_write(&outer, VALUE_L, buf_view(&value));
        buf_deinit(&value);
        value = outer;
    }
    for (int i = 0; i < 2; i++) {
        struct expr_scope scope = expr_text_scope(&arena, NULL, "{v:1}");
        struct bytes rest = buf_view(&value);
        assert_true(value_take(&rest, &scope.values[0].value));
        assert_null(expr_parse_update(
            &scope, i ? bytes_literal("SET m.a = :v") : bytes_literal("SET m = :v"), &update));
        const char *message =
            expr_update_apply(update, item_of_text(&arena, "{m:{}}"), BYTES_NONE, &arena, &to);
        if (i)
            assert_string_equal(message, "Nesting Levels have exceeded supported limits: "
                                         "Attributes in the item have nested levels beyond "
                                         "supported limit");
        else
            assert_null(message);
    }
    buf_deinit(&to);
    buf_deinit(&value);
    arena_deinit(&arena);
}

/* An expression that would make a giant of a big item is stopped on the way. */
static void test_amplification(void **state)
{
    struct arena arena;
    struct expr_update *update;
    struct buf item = {0}, text = {0}, to = {0};
    (void)state;
    arena_init(&arena);
    item_begin(&item);
    buf_append_prefixed(&item, bytes_literal("l"));
    size_t start = value_begin(&item, VALUE_L);
    while (item.len < 300 * 1024)
        value_write(&item, VALUE_S, bytes_literal("0123456789012345678901234567890123456789"));
    value_end(&item, start);
    for (int round = 0; round < 2; round++) {
        buf_reset(&text);
        buf_append_text(&text, "SET x = l");
        for (int i = 0; i < 100; i++)
            buf_printf(&text, round ? ", x%d = list_append(l, l)" : ", x%d = l", i);
        struct expr_scope scope = expr_text_scope(&arena, NULL, NULL);
        assert_null(expr_parse_update(&scope, buf_view(&text), &update));
        assert_string_equal(expr_update_apply(update, buf_view(&item), BYTES_NONE, &arena, &to),
                            "Item size to update has exceeded the maximum allowed size");
        assert_int_equal(to.len, 0);
    }
    buf_deinit(&item);
    buf_deinit(&text);
    buf_deinit(&to);
    arena_deinit(&arena);
}

static void test_touched(void **state)
{
    struct arena arena;
    struct expr_update *update;
    struct buf to = {0}, json = {0};
    (void)state;
    arena_init(&arena);
    struct expr_scope scope = expr_text_scope(&arena, NULL, values_text);
    assert_null(expr_parse_update(
        &scope, bytes_literal("SET m.k = :s, x = :n, m.l[1].q = :n REMOVE b"), &update));
    expr_update_touched(update, item_of_text(&arena, item_text), &to);
    item_write_json(&json, buf_view(&to));
    buf_append_u8(&json, '\0');
    assert_string_equal((const char *)json.at,
                        "{\"b\":{\"S\":\"B0\"},\"m\":{\"M\":{\"k\":{\"S\":\"v\"},\"l\":{\"L\":[{"
                        "\"M\":{\"q\":{\"N\":\"1\"}}}]}}}}");
    buf_deinit(&to);
    buf_deinit(&json);
    arena_deinit(&arena);
}

static void test_key_attributes(void **state)
{
    static const struct {
        const char *text, *name;
    } samples[] = {{"SET a = :n", NULL},
                   {"SET pk = :s", "pk"},
                   {"ADD pk.b :n", "pk"},
                   {"REMOVE d SET b = :n, sk = :n", "sk"},
                   {"SET d[1] = :n ADD sk.b :n", "sk"},
                   {"SET a = pk", NULL},
                   {"SET a.pk = :n", NULL}};
    struct key_schema key = {.hash_name = "pk", .has_range = true, .range_name = "sk"};
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct expr_scope scope = expr_text_scope(&arena, NULL, values_text);
    for (size_t i = 0; i < array_len(samples); i++) {
        struct expr_update *update;
        char want[128];
        assert_null(expr_parse_update(&scope, bytes_text(samples[i].text), &update));
        const char *message = expr_update_check_key(update, &key, &arena);
        assert_int_equal(message != NULL, samples[i].name != NULL);
        snprintf(want, sizeof(want),
                 "One or more parameter values were invalid: Cannot update attribute %s. This "
                 "attribute is part of the key",
                 samples[i].name ? samples[i].name : "");
        if (message)
            assert_string_equal(message, want);
    }
    arena_deinit(&arena);
}

/* Random sets and removals of top-level attributes against a twin that keeps an array of 26
 * numbers. */
static void test_top_level_against_twin(void **state)
{
    enum { LETTERS = 26 };
    struct rng rng;
    struct arena arena;
    struct buf item = {0}, next = {0}, text = {0};
    int twin[LETTERS] = {0};
    rng_init(&rng, 9);
    (void)state;
    item_begin(&item);
    for (int round = 0; round < 2000; round++) {
        struct expr_update *update;
        arena_init(&arena);
        struct expr_scope scope = expr_text_scope(&arena, NULL, "{v:1}");
        buf_reset(&text);
        bool set = rng_one_in(&rng, 2);
        uint64_t first = rng_below(&rng, LETTERS), step = rng_between(&rng, 1, 9);
        buf_append_text(&text, set ? "SET " : "REMOVE ");
        for (uint64_t i = first; i < LETTERS; i += step) {
            buf_printf(&text, "%sq%c%s", i == first ? "" : ",", (int)('a' + i), set ? " = :v" : "");
            twin[i] = set;
        }
        assert_null(expr_parse_update(&scope, buf_view(&text), &update));
        buf_reset(&next);
        assert_null(expr_update_apply(update, buf_view(&item), BYTES_NONE, &arena, &next));
        struct buf swap = item;
        item = next;
        next = swap;
        assert_true(item_check(buf_view(&item)));
        for (int i = 0; i < LETTERS; i++) {
            char name[2] = {'q', (char)('a' + i)};
            struct value value;
            assert_int_equal(item_find(buf_view(&item), bytes_make(name, 2), &value), twin[i]);
        }
        arena_deinit(&arena);
    }
    buf_deinit(&item);
    buf_deinit(&next);
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_add_and_delete),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_amplification),
        cmocka_unit_test(test_touched),
        cmocka_unit_test(test_key_attributes),
        cmocka_unit_test(test_top_level_against_twin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
