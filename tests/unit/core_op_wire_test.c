/* SPDX-License-Identifier: Apache-2.0 */
/* A write that has travelled does what it would have done at home: the same change or the same
 * error on every image. What has been tampered with on the way is refused, or is another write that
 * harms nobody. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/lib/op_wire.h"

static const char *const conditions[] = {
    "attribute_exists(n)",
    "attribute_not_exists(pk)",
    "attribute_exists(m.k)",
    "attribute_exists(l[1])",
    "attribute_exists(m[1].k)",
    "attribute_exists(#odd)",
    "attribute_not_exists(m.z.y)",
    "attribute_type(s, :type)",
    "attribute_type(l, :ltype)",
    "attribute_type(l, :nstype)",
    "attribute_type(:n, :type)",
    "begins_with(s, :t)",
    "begins_with(b, :b)",
    "begins_with(:big, s)",
    "contains(s, :t)",
    "contains(l, :n)",
    "contains(ss, s)",
    "contains(l, :l)",
    "contains(m, size(s))",
    "contains(:l, n)",
    "size(s) > :n",
    "size(l) = size(m)",
    "size(:big) <> n",
    "size(ss) <= :n",
    "n = :n",
    "n <> :n",
    "n < :n",
    "n <= :n",
    "n > :m",
    "n >= :m",
    ":n = n",
    "s = :big",
    "m = :mm",
    "l = :l",
    "gone = :no",
    "gone <> :no",
    "n BETWEEN :m AND :n",
    "size(s) BETWEEN n AND :n",
    ":n BETWEEN n AND m.k",
    "n IN (:n)",
    "n IN (:m, :t, :yes, :l, s, size(s))",
    "s IN (n, :big, :big, :big)",
    "NOT n = :n",
    "NOT NOT NOT attribute_exists(n)",
    "n = :n AND s = :t",
    "n = :n OR s = :t OR attribute_exists(l)",
    "(n = :n OR s = :t) AND NOT (attribute_exists(l) AND contains(l, :n))",
    "n = :n AND s = :t OR l = :l AND m = :mm OR NOT size(l) < :n",
    "#deep.z.y = :t OR #list[2][0] = :n OR m.#deep[3].x = :t",
    "s > :big AND s > :t AND NOT s < :big",
};

static const char *const updates[] = {
    "SET n = :n",
    "SET s = :big",
    "SET n = n + :n",
    "SET n = :n + n",
    "SET n = n - :m",
    "SET n = :n - :m",
    "SET x = if_not_exists(n, :n)",
    "SET x = if_not_exists(x, :n) + :n",
    "SET x = if_not_exists(x, if_not_exists(m.k, if_not_exists(l[0], :big)))",
    "SET l = list_append(l, :l)",
    "SET l = list_append(:l, l)",
    "SET l = list_append(if_not_exists(l, :e), :l)",
    "SET x = (n + :n)",
    "SET x = (n) + (:n)",
    "SET x = l[0] + m.k",
    "SET m.k = :n",
    "SET m.k.k.k = :n",
    "SET m[0].k = :n",
    "SET l[0] = :n, l[7] = :t, l[3] = :yes",
    "SET m.z.y = s, m.z.x = n",
    "SET x = y, y = x",
    "SET x = :mm, y = :ss, z = :ns, w = :bs, v = :b, u = :no",
    "SET #odd = :big, x = :big, y = :big, z = if_not_exists(#odd, :big)",
    "REMOVE n",
    "REMOVE s, l[0], l[2], m.k",
    "REMOVE gone, m.gone",
    "REMOVE m.k.k",
    "ADD n :n",
    "ADD gone :n",
    "ADD s :ss",
    "ADD ss :ss",
    "ADD l :ns",
    "ADD bs :bs",
    "ADD m.k :n",
    "DELETE s :ss",
    "DELETE ss :ss",
    "DELETE l :ns",
    "DELETE bs :bs",
    "DELETE gone :ss",
    "SET a = :n REMOVE s ADD n :m DELETE ss :ss",
    "SET l[0] = l[1], l[1] = l[0] REMOVE m.k",
    "SET zz = :l, a = :n, m.q = list_append(m.q, :l) REMOVE aa, b",
};

static void conditions_travel(void **state)
{
    (void)state;
    static const enum op_kind kinds[] = {OP_PUT_ITEM, OP_DELETE_ITEM, OP_UPDATE_ITEM};
    for (size_t i = 0; i < array_len(conditions); i++) {
        for (size_t kind = 0; kind < array_len(kinds); kind++) {
            struct arena arena;
            struct op op;
            arena_init(&arena);
            set_keyed(&arena, kinds[kind],
                      kinds[kind] == OP_PUT_ITEM ? "{pk:'p', new:1}" : "{pk:'p'}", &op);
            set_condition(&op, conditions[i]);
            assert_travels(&op);
            arena_deinit(&arena);
        }
    }
}

static void updates_travel(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(updates); i++) {
        struct arena arena;
        struct op op;
        arena_init(&arena);
        set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
        set_update(&op, updates[i]);
        assert_travels(&op);
        set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
        set_update(&op, updates[i]);
        set_condition(&op, conditions[i % array_len(conditions)]);
        assert_travels(&op);
        arena_deinit(&arena);
    }
}

static void what_has_no_trees_travels(void **state)
{
    (void)state;
    struct arena arena;
    struct op op;
    arena_init(&arena);
    set_keyed(&arena, OP_PUT_ITEM, "{pk:'p', l:[1,{a:<1 2>}], b:x'00'}", &op);
    assert_travels(&op);
    set_keyed(&arena, OP_DELETE_ITEM, "{pk:'p'}", &op);
    assert_travels(&op);
    set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
    assert_travels(&op);
    arena_deinit(&arena);
}

/* ---- Without text ---- */

static struct expr_condition *legacy_condition(struct arena *arena, bool any)
{
    static const struct {
        enum expr_legacy_operator operator;
        const char *name, *values; /* a list */
    } all[] = {
        {EXPR_LEGACY_EQ, "n", "[5]"},
        {EXPR_LEGACY_NE, "s", "['te']"},
        {EXPR_LEGACY_LE, "n", "[5]"},
        {EXPR_LEGACY_LT, "n", "[99]"},
        {EXPR_LEGACY_GE, "a name.of [its] own", "[5]"},
        {EXPR_LEGACY_GT, "b", "[x'00']"},
        {EXPR_LEGACY_NOT_NULL, "pk", "[]"},
        {EXPR_LEGACY_NULL, "gone", "[]"},
        {EXPR_LEGACY_CONTAINS, "l", "['a']"},
        {EXPR_LEGACY_NOT_CONTAINS, "l", "[7]"},
        {EXPR_LEGACY_BEGINS_WITH, "s", "['te']"},
        {EXPR_LEGACY_IN, "n", "[1, 'five', 5]"},
        {EXPR_LEGACY_BETWEEN, "n", "[1, 9]"},
    };
    struct expr_legacy_condition *to =
        arena_array(arena, struct expr_legacy_condition, array_len(all));
    for (size_t i = 0; i < array_len(all); i++) {
        struct bytes rest = value_of_text(arena, all[i].values).payload;
        struct value *list = arena_array(arena, struct value, 3);
        to[i] = (struct expr_legacy_condition){
            .name = bytes_text(all[i].name), .operator= all[i].operator, .values = list };
        while (value_take(&rest, &list[to[i].value_count]))
            to[i].value_count++;
    }
    return expr_build_condition(arena, to, array_len(all), any);
}

static struct expr_update *legacy_update(struct arena *arena, enum expr_legacy_action action,
                                         const char *name, const char *value)
{
    struct expr_legacy_update *to = arena_array(arena, struct expr_legacy_update, 2);
    to[0] = (struct expr_legacy_update){.name = bytes_literal("z, by itself"),
                                        .action = EXPR_LEGACY_PUT,
                                        .value_given = true,
                                        .value = value_of_text(arena, "1")};
    to[1] = (struct expr_legacy_update){.name = bytes_text(name), .action = action};
    if (value) {
        to[1].value_given = true;
        to[1].value = value_of_text(arena, value);
    }
    return expr_build_update(arena, to, 2);
}

static void legacy_forms_travel(void **state)
{
    (void)state;
    static const struct {
        enum expr_legacy_action action;
        const char *name, *value;
    } all[] = {
        {EXPR_LEGACY_PUT, "n", "{a:[1]}"}, {EXPR_LEGACY_ADD, "n", "7"},
        {EXPR_LEGACY_ADD, "s", "<'x'>"},   {EXPR_LEGACY_ADD, "l", "[3]"},
        {EXPR_LEGACY_DELETE, "n", NULL},   {EXPR_LEGACY_DELETE, "s", "<'a'>"},
        {EXPR_LEGACY_DELETE, "l", "<1>"},
    };
    for (size_t i = 0; i < array_len(all); i++) {
        struct arena arena;
        struct op op;
        arena_init(&arena);
        set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
        op.update = legacy_update(&arena, all[i].action, all[i].name, all[i].value);
        assert_travels(&op);
        op.keys[0].done = false;
        op.condition = legacy_condition(&arena, i % 2);
        assert_travels(&op);
        arena_deinit(&arena);
    }
    /* The two languages word this differently. */
    struct arena arena;
    struct op op, away;
    struct op_change change;
    cleanup(buf_deinit) struct buf bytes = {0};
    arena_init(&arena);
    set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
    op.update = legacy_update(&arena, EXPR_LEGACY_ADD, "s", "1");
    plan(&op);
    assert_true(op_wire_encode(&op, 0, &bytes));
    assert_true(op_wire_decode(buf_view(&bytes), &table, &arena, &away));
    op_execute_key(&away, 0, item_of_text(&arena, "{pk:'p', s:'text'}"), &change);
    assert_string_equal(away.result.message, "Type mismatch for attribute to update");
    arena_deinit(&arena);
}

static void batches_become_single_writes(void **state)
{
    (void)state;
    struct arena arena;
    struct op op, away;
    arena_init(&arena);
    set_keyed(&arena, OP_BATCH_WRITE_ITEM, "{pk:'p', x:1}", &op);
    struct op_key keys[2] = {op.keys[0], op.keys[0]};
    struct op_group group = {.table_name = op.table_name, .count = 2};
    keys[0].put = true;
    keys[1].attributes = item_of_text(&arena, "{pk:'q'}");
    op.keys = keys;
    op.key_count = 2;
    op.groups = &group;
    op.group_count = 1;
    plan(&op);
    for (uint32_t i = 0; i < 2; i++) {
        struct op_change change;
        cleanup(buf_deinit) struct buf bytes = {0};
        assert_true(op_wire_encode(&op, i, &bytes));
        assert_true(op_wire_decode(buf_view(&bytes), &table, &arena, &away));
        assert_int_equal(away.kind, i == 0 ? OP_PUT_ITEM : OP_DELETE_ITEM);
        assert_true(bytes_equal(away.keys[0].key, keys[i].key));
        op_execute_key(&away, 0, keys[i].attributes, &change);
        assert_int_equal(change.kind, i == 0 ? OP_CHANGE_PUT : OP_CHANGE_DELETE);
    }
    arena_deinit(&arena);
}

/* ---- Random items ---- */

static void random_items_fare_the_same(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    for (int round = 0; round < 2000; round++) {
        struct arena arena;
        struct op op, away;
        cleanup(buf_deinit) struct buf bytes = {0};
        arena_init(&arena);
        set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
        if (rng_one_in(&rng, 2))
            set_condition(&op, conditions[rng_below(&rng, array_len(conditions))]);
        if (!op.condition || rng_one_in(&rng, 2))
            set_update(&op, updates[rng_below(&rng, array_len(updates))]);
        plan(&op);
        assert_true(op_wire_encode(&op, 0, &bytes));
        assert_true(op_wire_decode(buf_view(&bytes), &table, &arena, &away));
        for (int i = 0; i < 20; i++)
            assert_same_result(&op, &away, random_item(&rng, &arena));
        arena_deinit(&arena);
    }
}

/* ---- Tampering ---- */

/* Refused, or harmless: what it would write is an item, of that key. */
static bool survives(struct bytes bytes, struct bytes key)
{
    struct arena arena;
    struct op op;
    arena_init(&arena);
    bool decoded = op_wire_decode(bytes, &table, &arena, &op);
    for (size_t i = 0; decoded && i < array_len(images); i++) {
        struct op_change change;
        execute(&op, image_of(&arena, i), &change);
        assert_true(bytes_equal(op.keys[0].key, key));
        struct value pk;
        if (change.kind == OP_CHANGE_PUT) {
            assert_true(item_check(change.item));
            assert_true(item_find(change.item, bytes_literal("pk"), &pk));
            assert_true(bytes_equal(pk.payload, bytes_literal("p")));
        }
    }
    arena_deinit(&arena);
    return decoded;
}

static void tamper(struct buf *bytes, struct bytes key)
{
    assert_true(survives(buf_view(bytes), key));
    for (size_t len = 0; len < bytes->len; len++)
        assert_false(survives(bytes_make(bytes->at, len), key));
    for (size_t at = 0; at < bytes->len; at++) {
        static const uint8_t flips[] = {1, 2, 3, 4, 8, 16, 32, 64, 128, 255};
        for (size_t i = 0; i < array_len(flips); i++) {
            bytes->at[at] ^= flips[i];
            bool decoded = survives(buf_view(bytes), key);
            assert_false(decoded && at >= 2 && at < 3 + key.len); /* it is not of that key */
            bytes->at[at] ^= flips[i];
        }
    }
    buf_append_u8(bytes, 0);
    assert_false(survives(buf_view(bytes), key));
}

static void tampering_is_refused_or_harmless(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(conditions) + array_len(updates); i++) {
        struct arena arena;
        struct op op;
        cleanup(buf_deinit) struct buf bytes = {0};
        arena_init(&arena);
        bool put = i < array_len(conditions);
        set_keyed(&arena, put ? OP_PUT_ITEM : OP_UPDATE_ITEM, put ? "{pk:'p', x:[1]}" : "{pk:'p'}",
                  &op);
        if (put)
            set_condition(&op, conditions[i]);
        else
            set_update(&op, updates[i - array_len(conditions)]);
        plan(&op);
        assert_true(op_wire_encode(&op, 0, &bytes));
        tamper(&bytes, op.keys[0].key);
        arena_deinit(&arena);
    }
}

static void keys_are_those_of_the_attributes(void **state)
{
    (void)state;
    struct arena arena;
    struct op op, away;
    cleanup(buf_deinit) struct buf bytes = {0};
    arena_init(&arena);
    set_keyed(&arena, OP_UPDATE_ITEM, "{pk:'p'}", &op);
    set_update(&op, "SET pj = :n");
    plan(&op);
    assert_true(op_wire_encode(&op, 0, &bytes));
    assert_true(op_wire_decode(buf_view(&bytes), &table, &arena, &away));
    /* The key attribute itself. */
    uint8_t *name = memmem(bytes.at, bytes.len, "pj", 2);
    name[1] = 'k';
    assert_false(op_wire_decode(buf_view(&bytes), &table, &arena, &away));
    name[1] = 'j';
    /* Another table's. */
    struct table other = table;
    other.key.hash_type = VALUE_N;
    assert_false(op_wire_decode(buf_view(&bytes), &other, &arena, &away));
    other = table;
    other.key.has_range = true;
    other.key.range_type = VALUE_S;
    memcpy(other.key.range_name, "sk", sizeof("sk"));
    assert_false(op_wire_decode(buf_view(&bytes), &other, &arena, &away));
    struct bytes key;
    assert_true(op_wire_decode(buf_view(&bytes), &table, &arena, &away));
    bytes.at[1] = 2; /* a delete with an update */
    assert_false(op_wire_decode(buf_view(&bytes), &table, &arena, &away));
    assert_false(op_wire_key(BYTES_NONE, &key));
    assert_false(op_wire_key(bytes_literal("\1\4\0"), &key));
    assert_false(op_wire_key(bytes_literal("\1\1\2k"), &key));
    arena_deinit(&arena);
}

static void items_beyond_the_limit_are_refused(void **state)
{
    (void)state;
    struct arena arena;
    struct op op, away;
    cleanup(buf_deinit) struct buf bytes = {0};
    cleanup(buf_deinit) struct buf item = {0};
    arena_init(&arena);
    set_keyed(&arena, OP_PUT_ITEM, "{pk:'p'}", &op);
    for (int over = 0; over < 2; over++) {
        uint8_t *run = arena_zalloc(&arena, ITEM_SIZE_MAX);
        buf_reset(&item);
        item_begin(&item);
        buf_append_prefixed(&item, bytes_literal("b"));
        value_write(&item, VALUE_B, bytes_make(run, (size_t)(ITEM_SIZE_MAX - 4 + over)));
        buf_append_prefixed(&item, bytes_literal("pk"));
        value_write(&item, VALUE_S, bytes_literal("p"));
        op.keys[0].attributes = buf_view(&item);
        plan(&op);
        buf_reset(&bytes);
        assert_true(op_wire_encode(&op, 0, &bytes));
        assert_int_equal(op_wire_decode(buf_view(&bytes), &table, &arena, &away), !over);
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_travel),
        cmocka_unit_test(updates_travel),
        cmocka_unit_test(what_has_no_trees_travels),
        cmocka_unit_test(legacy_forms_travel),
        cmocka_unit_test(batches_become_single_writes),
        cmocka_unit_test(random_items_fare_the_same),
        cmocka_unit_test(tampering_is_refused_or_harmless),
        cmocka_unit_test(keys_are_those_of_the_attributes),
        cmocka_unit_test(items_beyond_the_limit_are_refused),
    };
    return cmocka_run_group_tests_name("core/op_wire", tests, NULL, NULL);
}
