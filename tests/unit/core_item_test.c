/* SPDX-License-Identifier: Apache-2.0 */
/* Items: what the writers write, item_check accepts; nothing else does it. Sizes are AWS's. */

#include "region/core/item.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/rng.h"
#include "tests/lib/value_text.h"

static const char everything[] =
    "{b:x'00ff', bool:true, bs:<x'00' x'01'>, l:[1,'a',[null]], m:{k:{},z:'y'}, n:-12.5, "
    "ns:<3 1 2>, off:false, nil:null, s:'text', ss:<'b' 'a'>, e:'', le:[]}";

static int setup(void **state)
{
    static struct arena arena;
    arena_init(&arena);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_deinit(*state);
    return 0;
}

static void test_find(void **state)
{
    struct bytes item = item_of_text(*state, everything);
    struct value value;
    assert_true(item_find(item, bytes_literal("s"), &value));
    assert_int_equal(value.type, VALUE_S);
    assert_true(bytes_is(value.payload, "text"));
    assert_true(item_find(item, bytes_literal("b"), &value));
    assert_true(item_find(item, bytes_literal("ss"), &value));
    assert_false(item_find(item, bytes_literal("a"), &value));
    assert_false(item_find(item, bytes_literal("zz"), &value));
    assert_false(item_find(item, bytes_literal(""), &value));
    assert_false(item_find(BYTES_NONE, bytes_literal("s"), &value));
    assert_true(item_find(item, bytes_literal("m"), &value));
    struct value inner;
    assert_true(attributes_find(value.payload, bytes_literal("z"), &inner));
}

static void test_canonical(void **state)
{
    struct bytes one = item_of_text(*state, "{a:1, b:<2 10 1>, c:{x:1, y:2}}");
    struct bytes two = item_of_text(*state, "{c:{y:2.0, x:1e0}, b:<1 2 10>, a:1.00}");
    assert_true(bytes_equal(one, two));
}

static void test_duplicates(void **state)
{
    struct value value = value_of_text(*state, "1");
    struct attribute attributes[] = {
        {bytes_literal("b"), value}, {bytes_literal("a"), value}, {bytes_literal("b"), value}};
    struct bytes elements[] = {bytes_literal("x"), bytes_literal("y"), bytes_literal("x")};
    struct buf buf = {0};
    assert_false(attributes_write_sorted(&buf, attributes, 3));
    assert_false(set_write_sorted(&buf, VALUE_SS, elements, 3));
    assert_int_equal(buf.len, 0);
    assert_true(attributes_write_sorted(&buf, attributes, 2));
    buf_deinit(&buf);
}

static void test_type_names(void **state)
{
    (void)state;
    for (enum value_type type = VALUE_S; type <= VALUE_BS; type++) {
        enum value_type back;
        assert_true(value_type_find(bytes_text(value_type_name(type)), &back));
        assert_int_equal(back, type);
    }
    enum value_type type;
    assert_false(value_type_find(bytes_literal("s"), &type));
    assert_false(value_type_find(bytes_literal(""), &type));
}

static void test_check_accepts(void **state)
{
    assert_true(item_check(item_of_text(*state, everything)));
    assert_true(item_check(item_of_text(*state, "{}")));
    assert_true(
        item_check(item_of_text(*state, "{u:'h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80'}")));
}

static void test_check_refuses(void **state)
{
    const struct {
        const char *what;
        struct bytes item;
    } cases[] = {
        {"empty", {(const uint8_t *)"", 0}},
        {"version", bytes_literal("\2")},
        {"cut name", bytes_literal("\1\2a")},
        {"no value", bytes_literal("\1\1a")},
        {"unknown tag", bytes_literal("\1\1a\13\0")},
        {"tag zero", bytes_literal("\1\1a\0\0")},
        {"cut payload", bytes_literal("\1\1a\1\2x")},
        {"long varint", bytes_literal("\1\1a\1\x81\0x")},
        {"bool of two bytes", bytes_literal("\1\1a\4\2\0\0")},
        {"bool 2", bytes_literal("\1\1a\4\1\2")},
        {"null with content", bytes_literal("\1\1a\5\1\0")},
        {"number without digits", bytes_literal("\1\1a\2\1\xc1")},
        {"no number", bytes_literal("\1\1a\2\0")},
        {"names out of order", bytes_literal("\1\1b\5\0\1a\5\0")},
        {"name twice", bytes_literal("\1\1a\5\0\1a\5\0")},
        {"empty set", bytes_literal("\1\1a\10\0")},
        {"set out of order", bytes_literal("\1\1a\10\4\1y\1x")},
        {"element twice", bytes_literal("\1\1a\10\4\1x\1x")},
        {"bad UTF-8", bytes_literal("\1\1a\1\1\xff")},
        {"surrogate", bytes_literal("\1\1a\1\3\xed\xa0\x80")},
        {"overlong", bytes_literal("\1\1a\1\2\xc0\x80")},
        {"beyond Unicode", bytes_literal("\1\1a\1\4\xf4\x90\x80\x80")},
        {"bad UTF-8 in a name", bytes_literal("\1\1\xc3\5\0")},
        {"cut list", bytes_literal("\1\1a\6\1\1")},
        {"trailing byte", bytes_literal("\1\1a\5\0\0")},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        if (item_check(cases[i].item))
            fail_msg("%s", cases[i].what);
    }
}

/* An attribute whose value is `levels` deep, lists around a null. */
static struct bytes nested(struct arena *arena, int levels)
{
    struct buf value = {0};
    value_write(&value, VALUE_NULL, BYTES_NONE);
    for (int i = 1; i < levels; i++) {
        struct buf outer = {0};
        value_write(&outer, VALUE_L, buf_view(&value));
        buf_deinit(&value);
        value = outer;
    }
    struct buf item = {0};
    item_begin(&item);
    buf_append_prefixed(&item, bytes_literal("a"));
    buf_append_bytes(&item, buf_view(&value));
    struct bytes copy = bytes_copy(arena, buf_view(&item));
    buf_deinit(&value);
    buf_deinit(&item);
    return copy;
}

static void test_depth(void **state)
{
    struct value value;
    assert_true(item_check(nested(*state, ITEM_DEPTH_MAX)));
    assert_false(item_check(nested(*state, ITEM_DEPTH_MAX + 1)));
    assert_false(item_check(nested(*state, 5000)));
    assert_true(item_find(nested(*state, 7), bytes_literal("a"), &value));
    assert_int_equal(value_depth(value), 7);
    assert_int_equal(value_depth(value_of_text(*state, "{a:[1],b:{c:{d:{}}}}")), 4);
    assert_int_equal(value_depth(value_of_text(*state, "<1 2>")), 1);
}

/* Whatever one byte is changed to, the item is refused, or is canonical: it reads back in order. */
static void test_check_mutations(void **state)
{
    struct bytes item = item_of_text(*state, everything);
    struct rng rng;
    rng_init(&rng, 3);
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = xmalloc(item.len);
        memcpy(copy, item.at, item.len);
        size_t len = rng_one_in(&rng, 10) ? rng_below(&rng, item.len) : item.len;
        for (uint64_t edits = rng_between(&rng, 1, 3); len && edits; edits--)
            copy[rng_below(&rng, len)] = (uint8_t)rng_next(&rng);
        struct bytes rest = {copy, len};
        if (item_check(rest)) {
            struct bytes attributes = item_attributes(rest);
            struct attribute attribute;
            while (attribute_take(&attributes, &attribute))
                (void)value_size(attribute.value);
            assert_int_equal(attributes.len, 0);
            accepted++;
        }
        free(copy);
    }
    assert_true(accepted > 100);
}

static void test_size(void **state)
{
    static const struct {
        const char *item;
        size_t size;
    } cases[] = {
        {"{}", 0},
        {"{a:'xyz'}", 4},
        {"{a:''}", 1},
        {"{abc:x'0011'}", 5},
        {"{a:true}", 2},
        {"{a:null}", 2},
        {"{a:0}", 2},
        {"{a:-42}", 4},
        {"{a:[]}", 4},
        {"{a:{}}", 4},
        {"{a:['xy']}", 7},
        {"{a:{k:'xy'}}", 8},
        {"{a:<'x' 'yz'>}", 4},
        {"{a:<1 100>}", 5},
        {"{a:'h\xc3\xa9'}", 4},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        if (item_size(item_of_text(*state, cases[i].item)) != cases[i].size)
            fail_msg("%s", cases[i].item);
    }
    assert_int_equal(item_size(BYTES_NONE), 0);
}

static void test_compare(void **state)
{
    static const char *const ascending[][2] = {
        {"'a'", "'b'"}, {"'a'", "'aa'"}, {"''", "'a'"},      {"-2", "-1"},      {"-1", "0"},
        {"0", "0.1"},   {"9", "10"},     {"x'00'", "x'01'"}, {"x'7f'", "x'80'"}};
    for (size_t i = 0; i < array_len(ascending); i++) {
        struct value low = value_of_text(*state, ascending[i][0]);
        struct value high = value_of_text(*state, ascending[i][1]);
        assert_int_equal(value_compare(low, high), -1);
        assert_int_equal(value_compare(high, low), 1);
        assert_int_equal(value_compare(low, low), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),          cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_duplicates),    cmocka_unit_test(test_type_names),
        cmocka_unit_test(test_check_accepts), cmocka_unit_test(test_check_refuses),
        cmocka_unit_test(test_depth),         cmocka_unit_test(test_check_mutations),
        cmocka_unit_test(test_size),          cmocka_unit_test(test_compare),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
