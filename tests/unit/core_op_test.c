/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of an operation at the core's own border: what plan fills, that execute keeps nothing
 * of what it is lent, how a page moves its range, and what all of it costs. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "region/core/key.h"
#include "region/core/op.h"

static struct table table = {.name = "t",
                             .key = {.hash_name = "pk",
                                     .hash_type = VALUE_S,
                                     .has_range = true,
                                     .range_name = "sk",
                                     .range_type = VALUE_S}};

static const struct table *find(void *context, struct bytes name)
{
    (void)context;
    return bytes_is(name, "t") ? &table : NULL;
}

static int setup(void **state)
{
    struct arena *arena = xcalloc(1, sizeof(*arena));
    arena_init(arena);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    arena_deinit(*state);
    free(*state);
    return 0;
}

static struct value text_value(struct arena *arena, const char *text)
{
    struct buf to cleanup(buf_deinit);
    buf_init(&to);
    value_write(&to, VALUE_S, bytes_text(text));
    struct bytes rest = bytes_copy(arena, buf_view(&to));
    struct value value;
    assert_true(value_take(&rest, &value));
    return value;
}

/* {pk, sk} and, if given, x. */
static struct bytes make_item(struct arena *arena, const char *pk, const char *sk, const char *x)
{
    struct attribute attributes[3] = {
        {bytes_literal("pk"), text_value(arena, pk)},
        {bytes_literal("sk"), text_value(arena, sk)},
        {bytes_literal("x"), text_value(arena, x ? x : "")},
    };
    struct buf to cleanup(buf_deinit);
    buf_init(&to);
    item_begin(&to);
    assert_true(attributes_write_sorted(&to, attributes, x ? 3 : 2));
    return bytes_copy(arena, buf_view(&to));
}

static struct op *make_op(struct arena *arena, enum op_kind kind)
{
    struct op *op = arena_new(arena, struct op);
    op->kind = kind;
    op->arena = arena;
    op->return_capacity = CAPACITY_TOTAL;
    op->table_name = bytes_literal("t");
    op->scan_forward = true;
    return op;
}

static struct op *make_keyed(struct arena *arena, enum op_kind kind, struct bytes attributes)
{
    struct op *op = make_op(arena, kind);
    op->keys = arena_new(arena, struct op_key);
    op->key_count = 1;
    op->keys[0].table_name = op->table_name;
    op->keys[0].attributes = attributes;
    return op;
}

static void every_error_has_a_row(void **state)
{
    (void)state;
    for (int i = API_OK + 1; i < API_ERROR_COUNT; i++) {
        enum api_error error = (enum api_error)i;
        assert_true(api_error_status(error) >= 400 && api_error_status(error) < 600);
        assert_true(strlen(api_error_name(error)) > 0);
        size_t len = strlen(api_error_prefix(error));
        assert_int_equal(api_error_prefix(error)[len - 1], '#');
    }
    assert_int_equal(api_error_status(API_OK), 200);
    for (int i = 0; i < OP_KIND_COUNT; i++)
        (void)op_shape((enum op_kind)i);
    assert_string_equal(op_name(OP_BATCH_GET_ITEM), "BatchGetItem");
}

static void plan_gives_the_row_key(void **state)
{
    struct arena *arena = *state;
    struct op *op = make_keyed(arena, OP_GET_ITEM, make_item(arena, "p", "s", NULL));
    assert_true(op_plan(op, find, NULL));
    assert_ptr_equal(op->keys[0].table, &table);
    struct buf key cleanup(buf_deinit);
    buf_init(&key);
    key_write_hash(&key, text_value(arena, "p"));
    key_write_range(&key, text_value(arena, "s"));
    assert_true(bytes_equal(op->keys[0].key, buf_view(&key)));

    op = make_keyed(arena, OP_GET_ITEM, make_item(arena, "p", "s", NULL));
    op->keys[0].table_name = bytes_literal("other");
    assert_false(op_plan(op, find, NULL));
    assert_int_equal(op->result.error, API_RESOURCE_NOT_FOUND);
    assert_string_equal(op->result.message, "Requested resource not found");

    op = make_keyed(arena, OP_DELETE_ITEM, make_item(arena, "p", "s", "extra"));
    assert_false(op_plan(op, find, NULL));
    assert_int_equal(op->result.error, API_VALIDATION);
}

static void execute_copies_what_it_keeps(void **state)
{
    struct arena *arena = *state;
    struct arena lent;
    arena_init(&lent);
    struct bytes expected = make_item(arena, "p", "s", "old");

    struct op *get = make_keyed(arena, OP_GET_ITEM, make_item(arena, "p", "s", NULL));
    struct op *put = make_keyed(arena, OP_PUT_ITEM, make_item(arena, "p", "s", "new"));
    put->return_values = RETURN_ALL_OLD;
    struct op *delete = make_keyed(arena, OP_DELETE_ITEM, make_item(arena, "p", "s", NULL));
    delete->return_values = RETURN_ALL_OLD;
    struct op *update = make_keyed(arena, OP_UPDATE_ITEM, make_item(arena, "p", "s", NULL));
    update->return_values = RETURN_ALL_NEW;
    struct op *const ops[] = {get, put, delete, update};
    static const enum op_change_kind changes[] = {OP_CHANGE_NONE, OP_CHANGE_PUT, OP_CHANGE_DELETE,
                                                  OP_CHANGE_PUT};
    for (int i = 0; i < 4; i++) {
        assert_true(op_plan(ops[i], find, NULL));
        struct bytes item = make_item(&lent, "p", "s", "old");
        struct op_change change;
        op_execute_key(ops[i], 0, item, &change);
        memset((uint8_t *)(uintptr_t)item.at, 0xee, item.len);
        assert_int_equal(change.kind, changes[i]);
        assert_true(ops[i]->keys[0].done);
        assert_true(bytes_equal(ops[i]->result.attributes, expected));
        if (change.kind == OP_CHANGE_PUT)
            assert_true(item_check(change.item));
    }
    arena_deinit(&lent);
}

static void a_delete_of_nothing_is_no_change(void **state)
{
    struct arena *arena = *state;
    struct op *op = make_keyed(arena, OP_DELETE_ITEM, make_item(arena, "p", "s", NULL));
    assert_true(op_plan(op, find, NULL));
    struct op_change change = {.kind = OP_CHANGE_PUT};
    op_execute_key(op, 0, BYTES_NONE, &change);
    assert_int_equal(change.kind, OP_CHANGE_NONE);
    assert_int_equal(op->result.capacity[0].half_units, 2);
}

/* Alone it would only be a stream record less; to another Region it is the later write. */
static void a_put_of_the_same_is_a_change_in_a_global_table(void **state)
{
    struct arena *arena = *state;
    struct bytes item = make_item(arena, "p", "s", "same");
    static const enum table_mode modes[] = {TABLE_REGIONAL, TABLE_EVENTUAL};
    static const enum op_change_kind changes[] = {OP_CHANGE_NONE, OP_CHANGE_PUT};
    table.stream = STREAM_BOTH;
    for (int i = 0; i < 2; i++) {
        table.mode = modes[i];
        struct op *op = make_keyed(arena, OP_PUT_ITEM, item);
        assert_true(op_plan(op, find, NULL));
        struct op_change change = {.kind = OP_CHANGE_NONE};
        op_execute_key(op, 0, item, &change);
        assert_int_equal(change.kind, changes[i]);
    }
    table.stream = STREAM_NONE;
    table.mode = TABLE_REGIONAL;
}

static void capacity_counts_the_larger_image(void **state)
{
    struct arena *arena = *state;
    char text[5000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    /* pk + p, sk + s, x + text: 7 bytes around it. */
    static const struct {
        size_t text_len;
        uint64_t put_half_units, read_half_units;
    } cases[] = {{1, 2, 1}, {1017, 2, 1}, {1018, 4, 1}, {4089, 8, 1}, {4090, 10, 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *at = text + sizeof(text) - 1 - cases[i].text_len;
        struct bytes large = make_item(arena, "p", "s", at);
        struct op *put = make_keyed(arena, OP_PUT_ITEM, make_item(arena, "p", "s", "tiny"));
        assert_true(op_plan(put, find, NULL));
        struct op_change change;
        op_execute_key(put, 0, large, &change);
        assert_int_equal(put->result.capacity[0].half_units, cases[i].put_half_units);
        for (int consistent = 0; consistent < 2; consistent++) {
            struct op *get = make_keyed(arena, OP_GET_ITEM, make_item(arena, "p", "s", NULL));
            get->consistent_read = consistent;
            assert_true(op_plan(get, find, NULL));
            op_execute_key(get, 0, large, &change);
            assert_int_equal(get->result.capacity[0].half_units,
                             cases[i].read_half_units * (consistent ? 2 : 1));
        }
    }
}

static void a_page_moves_its_range_past_deleted_rows(void **state)
{
    struct arena *arena = *state;
    struct op *op = make_op(arena, OP_SCAN);
    op->limit = 2;
    assert_true(op_plan(op, find, NULL));
    assert_int_equal(op->range.begin.len, 0);
    assert_int_equal(op->range.end.len, 0);
    assert_int_equal(op->range.rows_max, 2);
    uint8_t first[] = {1}, second[] = {2}, third[] = {3};
    struct op_row rows[] = {{bytes_make(first, 1), BYTES_NONE},
                            {bytes_make(second, 1), BYTES_NONE}};
    assert_false(op_page_rows(op, rows, 2, true));
    first[0] = second[0] = 0xee; /* rows are lent for the call */
    static const uint8_t after[] = {2, 0};
    assert_true(bytes_equal(op->range.begin, bytes_make(after, 2)));
    assert_int_equal(op->range.rows_max, 2);
    rows[0] = (struct op_row){bytes_make(third, 1), make_item(arena, "p", "s", "x")};
    assert_false(op_page_rows(op, rows, 1, true));
    assert_int_equal(op->range.rows_max, 1);
    assert_true(op_page_rows(op, rows, 0, false));
    assert_false(op->result.last_key_given);
    assert_int_equal(op->result.count, 1);
    assert_int_equal(op->result.scanned_count, 1);
}

static void a_full_page_has_a_last_key(void **state)
{
    struct arena *arena = *state;
    struct op *op = make_op(arena, OP_SCAN);
    op->limit = 1;
    assert_true(op_plan(op, find, NULL));
    struct op_row rows[] = {{bytes_literal("k"), make_item(arena, "p", "s", "x")},
                            {bytes_literal("l"), make_item(arena, "p", "t", "x")}};
    assert_true(op_page_rows(op, rows, 2, false));
    assert_int_equal(op->result.row_count, 1);
    assert_true(op->result.last_key_given);
    assert_true(bytes_equal(op->result.last_key, make_item(arena, "p", "s", NULL)));
}

static void a_failure_formats_its_message(void **state)
{
    struct op *op = make_op(*state, OP_SCAN);
    assert_false(op_fail(op, API_INTERNAL, "%s and %d", "text", 42));
    assert_int_equal(op->result.error, API_INTERNAL);
    assert_string_equal(op->result.message, "text and 42");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_error_has_a_row),
        TEST(plan_gives_the_row_key),
        TEST(execute_copies_what_it_keeps),
        TEST(a_delete_of_nothing_is_no_change),
        TEST(a_put_of_the_same_is_a_change_in_a_global_table),
        TEST(capacity_counts_the_larger_image),
        TEST(a_page_moves_its_range_past_deleted_rows),
        TEST(a_full_page_has_a_last_key),
        TEST(a_failure_formats_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
