/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as bytes, by themselves: those that no text makes are refused, the largest that a text can
 * make pass, and nothing is larger or deeper. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "region/core/expr_internal.h"
#include "tests/lib/op_wire.h"

/* Nodes by hand. */
#define PATH(name) "\16\1\1\1" name /* of one letter */
#define TEXT "\17\1\1x"
#define NUMBER "\17\2\2\xc1\2"
#define LIST "\17\6\0"
#define SET_OF "\17\10\2\1x"

struct tree {
    const char *what;
    struct bytes bytes;
};

static void assert_refused(const struct tree *at, size_t count, bool update)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        arena_init(&arena);
        struct bytes rest = at[i].bytes;
        if (update ? (void *)expr_update_decode(&rest, &arena)
                   : (void *)expr_condition_decode(&rest, &arena))
            fail_msg("accepted: %s", at[i].what);
        assert_ptr_equal(rest.at, at[i].bytes.at);
        arena_deinit(&arena);
    }
}

static void conditions_that_none_wrote_are_refused(void **state)
{
    (void)state;
    const struct tree trees[] = {
        {"nothing", BYTES_NONE},
        {"a path", bytes_literal(PATH("a"))},
        {"a value", bytes_literal(TEXT)},
        {"a sum", bytes_literal("\14" PATH("a") PATH("b"))},
        {"an unknown node", bytes_literal("\20" PATH("a") PATH("b"))},
        {"an unknown function", bytes_literal("\13\11" PATH("a"))},
        {"no function", bytes_literal("\13\0" PATH("a"))},
        {"size alone", bytes_literal("\13\6" PATH("a"))},
        {"a function of updates", bytes_literal("\13\7" PATH("a") TEXT)},
        {"and of nothing", bytes_literal("\1\0")},
        {"and of a path", bytes_literal("\1\1" PATH("a"))},
        {"not of a path", bytes_literal("\2" PATH("a"))},
        {"half a comparison", bytes_literal("\3" PATH("a"))},
        {"a comparison of conditions", bytes_literal("\3\13\1" PATH("a") PATH("b"))},
        {"a comparison of a sum", bytes_literal("\3\14" PATH("a") PATH("b") PATH("c"))},
        {"between with one bound", bytes_literal("\11" PATH("a") TEXT)},
        {"in nothing", bytes_literal("\12\1" PATH("a"))},
        {"a value that exists", bytes_literal("\13\1" TEXT)},
        {"a type that is a path", bytes_literal("\13\3" PATH("a") PATH("b"))},
        {"a type that is none", bytes_literal("\13\3" PATH("a") TEXT)},
        {"a type that is binary", bytes_literal("\13\3" PATH("a") "\17\3\1S")},
        {"a type that is a list", bytes_literal("\13\3" PATH("a") LIST)},
        {"the size of a size", bytes_literal("\3\13\6\13\6" PATH("a") TEXT)},
        {"a path of no steps", bytes_literal("\13\1\16\0")},
        {"a path that begins with an index", bytes_literal("\13\1\16\1\13\0")},
        {"an index beyond a list's", bytes_literal("\13\1\16\2\1\1"
                                                   "a\13\200\200\200\200\10")},
        {"a name that is a number", bytes_literal("\13\1\16\1\2\2\xc1\2")},
        {"a name that is no text", bytes_literal("\13\1\16\1\1\1\xff")},
        {"a value that is none", bytes_literal("\3" PATH("a") "\17\4\1\2")},
        {"a number in a longer form", bytes_literal("\3" PATH("a") "\17\2\3\xc1\2\0")},
        {"a value that was not given before", bytes_literal("\3" PATH("a") "\17\0\0")},
    };
    assert_refused(trees, array_len(trees), false);
}

static void updates_that_none_wrote_are_refused(void **state)
{
    (void)state;
#define STEP(name) "\1\1\1" name
    const struct tree trees[] = {
        {"nothing", BYTES_NONE},
        {"no actions", bytes_literal("\0\0")},
        {"more actions than bytes", bytes_literal("\0\100\1" STEP("a"))},
        {"an unknown language", bytes_literal("\2\1\1" STEP("a"))},
        {"an unknown action", bytes_literal("\0\1\4" STEP("a") TEXT)},
        {"a set of a condition", bytes_literal("\0\1\0" STEP("a") "\13\1" PATH("b"))},
        {"a set of a size", bytes_literal("\0\1\0" STEP("a") "\13\6" PATH("b"))},
        {"a sum of sums", bytes_literal("\0\1\0" STEP("a") "\14\14" PATH("b") PATH("c") PATH("d"))},
        {"list_append of itself",
         bytes_literal("\0\1\0" STEP("a") "\13\10\13\10" PATH("b") LIST LIST)},
        {"if_not_exists of a value", bytes_literal("\0\1\0" STEP("a") "\13\7" TEXT TEXT)},
        {"add of a path", bytes_literal("\0\1\2" STEP("a") PATH("b"))},
        {"add of a text", bytes_literal("\0\1\2" STEP("a") TEXT)},
        {"add of a list", bytes_literal("\0\1\2" STEP("a") LIST)},
        {"delete of a number", bytes_literal("\0\1\3" STEP("a") NUMBER)},
        {"delete of a number, without text", bytes_literal("\1\1\3" STEP("a") NUMBER)},
        {"one path twice", bytes_literal("\0\2\1" STEP("a") "\1" STEP("a"))},
        {"paths out of order", bytes_literal("\0\2\1" STEP("b") "\1" STEP("a"))},
        {"paths that overlap", bytes_literal("\0\2\1" STEP("a") "\1\2\1\1"
                                                                "a\1\1x")},
        {"paths that conflict", bytes_literal("\0\2\1\2\1\1"
                                              "a\13\1\1\2\1\1"
                                              "a\1\1x")},
        {"a nested path without text", bytes_literal("\1\1\1\2\1\1"
                                                     "a\1\1x")},
        {"a sum without text", bytes_literal("\1\1\0" STEP("a") "\14" PATH("b") PATH("c"))},
    };
    assert_refused(trees, array_len(trees), true);
    struct arena arena;
    arena_init(&arena);
    struct bytes fine = bytes_literal("\0\2\1" STEP("a") "\3" STEP("b") SET_OF "rest");
    struct expr_update *update = expr_update_decode(&fine, &arena);
    assert_non_null(update);
    assert_int_equal(update->count, 2);
    assert_int_equal(update->touched.count, 2);
    assert_true(bytes_is(fine, "rest"));
    fine = bytes_literal("\1\1\2" STEP("a") LIST);
    assert_non_null(expr_update_decode(&fine, &arena));
    arena_deinit(&arena);
}

/* ---- Bounds ---- */

static void long_values_travel_once(void **state)
{
    (void)state;
    struct arena arena;
    struct op op;
    cleanup(buf_deinit) struct buf bytes = {0};
    cleanup(buf_deinit) struct buf text = {0};
    arena_init(&arena);
    set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
    struct expr_value *big = op.scope.values; /* the first by name is :b; any will do */
    char *run = arena_zalloc(&arena, 100000);
    memset(run, 'x', 100000);
    cleanup(buf_deinit) struct buf value = {0};
    value_write(&value, VALUE_S, bytes_make(run, 100000));
    struct bytes rest = buf_view(&value);
    assert_true(value_take(&rest, &big->value));
    buf_append_text(&text, "s = :b");
    for (int i = 0; i < 149; i++)
        buf_append_text(&text, " OR s = :b");
    buf_append_u8(&text, 0);
    set_condition(&op, (const char *)text.at);
    set_update(&op, "SET a = :b, c = :b, d = :b");
    assert_travels(&op);
    assert_true(op_wire_encode(&op, 0, &bytes));
    assert_in_range(bytes.len, 200000, 205000); /* once for each tree */
    arena_deinit(&arena);
}

static void the_language_fits(void **state)
{
    (void)state;
    struct arena arena;
    struct op op;
    cleanup(buf_deinit) struct buf text = {0};
    arena_init(&arena);
    /* As many operators as there may be, one inside the other. */
    set_keyed(&arena, OP_DELETE_ITEM, "{pk:'p'}", &op);
    for (int i = 0; i < EXPR_OPERATORS_MAX - 1; i++)
        buf_append_text(&text, "NOT ");
    buf_append_text(&text, "attribute_exists(n)");
    buf_append_u8(&text, 0);
    set_condition(&op, (const char *)text.at);
    assert_travels(&op);
    /* As many steps. */
    set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
    buf_reset(&text);
    buf_append_text(&text, "SET m");
    for (int i = 1; i < EXPR_PATH_DEPTH_MAX; i++)
        buf_append_text(&text, i % 2 ? "[0]" : ".m");
    buf_append_text(&text, " = :n");
    buf_append_u8(&text, 0);
    set_update(&op, (const char *)text.at);
    assert_travels(&op);
    /* As many functions. */
    set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
    buf_reset(&text);
    buf_append_text(&text, "SET a = ");
    for (int i = 0; i < 150; i++)
        buf_append_text(&text, "if_not_exists(x,");
    buf_append_text(&text, ":n");
    for (int i = 0; i < 150; i++)
        buf_append_text(&text, ")");
    buf_append_u8(&text, 0);
    set_update(&op, (const char *)text.at);
    assert_travels(&op);
    arena_deinit(&arena);
}

static void deeper_than_the_language_is_refused(void **state)
{
    (void)state;
    struct arena arena;
    cleanup(buf_deinit) struct buf bytes = {0};
    arena_init(&arena);
    for (int i = 0; i < 100000; i++)
        buf_append_u8(&bytes, EXPR_NOT);
    buf_append_bytes(&bytes, bytes_literal("\13\1" PATH("a")));
    struct bytes rest = buf_view(&bytes);
    assert_null(expr_condition_decode(&rest, &arena));

    buf_reset(&bytes);
    buf_append_bytes(&bytes, bytes_literal("\13\1\16\41\1\1"
                                           "a"));
    for (int i = 0; i < 32; i++)
        buf_append_bytes(&bytes, bytes_literal("\13\0"));
    rest = buf_view(&bytes);
    assert_null(expr_condition_decode(&rest, &arena));
    bytes.at[3]--; /* one step less */
    rest = buf_view(&bytes);
    assert_non_null(expr_condition_decode(&rest, &arena));

    /* Each of more nodes than there may be is one that may be. */
    buf_reset(&bytes);
    buf_append_u8(&bytes, EXPR_AND);
    buf_append_varint(&bytes, EXPR_WIRE_NODES_MAX / 2);
    for (int i = 0; i < EXPR_WIRE_NODES_MAX / 2; i++)
        buf_append_bytes(&bytes, bytes_literal("\13\1" PATH("a")));
    rest = buf_view(&bytes);
    assert_null(expr_condition_decode(&rest, &arena));
    arena_deinit(&arena);
}

static void what_is_too_large_is_not_sent(void **state)
{
    (void)state;
    struct arena arena;
    struct op op;
    cleanup(buf_deinit) struct buf bytes = {0};
    arena_init(&arena);
    buf_append_text(&bytes, "before");
    set_keyed(&arena, OP_DELETE_ITEM, "{pk:'p'}", &op);
    plan(&op);
    enum { COUNT = EXPR_WIRE_NODES_MAX / 2 };
    struct expr_legacy_condition *at = arena_array(&arena, struct expr_legacy_condition, COUNT);
    for (int i = 0; i < COUNT; i++)
        at[i] = (struct expr_legacy_condition){.name = bytes_literal("a"),
                                               .operator= EXPR_LEGACY_NULL };
    op.condition = expr_build_condition(&arena, at, COUNT, false);
    assert_false(op_wire_encode(&op, 0, &bytes));
    assert_true(bytes_is(buf_view(&bytes), "before"));
    op.condition = expr_build_condition(&arena, at, COUNT - 1, false);
    assert_true(op_wire_encode(&op, 0, &bytes));
    struct op away;
    assert_true(op_wire_decode(bytes_make(bytes.at + 6, bytes.len - 6), &table, &arena, &away));

    buf_reset(&bytes);
    char *run = arena_zalloc(&arena, OP_WIRE_BYTES_MAX);
    struct value value = {VALUE_B, bytes_make(run, OP_WIRE_BYTES_MAX), BYTES_NONE};
    at[0] = (struct expr_legacy_condition){
        .name = bytes_literal("a"), .operator= EXPR_LEGACY_EQ, .values = &value, .value_count = 1};
    op.condition = expr_build_condition(&arena, at, 1, false);
    assert_false(op_wire_encode(&op, 0, &bytes));
    value.payload.len -= 200;
    op.condition = expr_build_condition(&arena, at, 1, false);
    assert_true(op_wire_encode(&op, 0, &bytes));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_that_none_wrote_are_refused),
        cmocka_unit_test(updates_that_none_wrote_are_refused),
        cmocka_unit_test(long_values_travel_once),
        cmocka_unit_test(the_language_fits),
        cmocka_unit_test(deeper_than_the_language_is_refused),
        cmocka_unit_test(what_is_too_large_is_not_sent),
    };
    return cmocka_run_group_tests_name("core/expr_wire", tests, NULL, NULL);
}
