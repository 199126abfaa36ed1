/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OP_WIRE_H
#define TESTS_OP_WIRE_H

/* Writes of one table, in text, and whether they do abroad what they do at home, on a row of
 * images. For cmocka programs, after their includes. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "region/core/op_wire.h"
#include "tests/lib/expr_text.h"

static struct table table = {.name = "t", .key = {.hash_name = "pk", .hash_type = VALUE_S}};

static inline const struct table *find(void *context, struct bytes name)
{
    (void)context;
    (void)name;
    return &table;
}

/* What expressions may name. */
static const char names[] = "{n:'n', s:'s', odd:'a name.of [its] own: longer than most names are', "
                            "deep:'m', list:'l'}";
static const char values[] = "{n:5, m:-1.5, big:'a text that is long enough to travel only once, "
                             "and is used often', t:'te', "
                             "b:x'00ff', yes:true, no:null, l:[1,'a',[2]], e:[], mm:{k:true, "
                             "q:[1]}, ss:<'a' 'b'>, ns:<1 2>, "
                             "bs:<x'00'>, type:'S', ltype:'L', nstype:'NS'}";

static const char *const images[] = {
    NULL,
    "{pk:'p'}",
    "{pk:'p', n:5, s:'text', b:x'00ff01', t:true}",
    "{pk:'p', n:4, s:'te', l:[1,'a',[2]], m:{k:true, q:[1], z:{y:'deep'}}}",
    "{pk:'p', n:'five', s:<'a' 'c'>, l:<1 2 3>, m:[{k:1},{k:2}], x:null}",
    "{pk:'p', n:-0.00000000000000000000000000000000000001, s:'', l:[], m:{}, ss:<'a'>, bs:<x'00' "
    "x'01'>}",
    "{pk:'p', n:99999999999999999999999999999999999999e87, l:[[[[1]]]], m:{k:{k:{k:{k:1}}}}}",
};

static inline void set_keyed(struct arena *arena, enum op_kind kind, const char *attributes,
                             struct op *ret)
{
    *ret = (struct op){.kind = kind, .arena = arena, .table_name = bytes_literal("t")};
    ret->scope = expr_text_scope(arena, names, values);
    ret->keys = arena_new(arena, struct op_key);
    ret->key_count = 1;
    ret->keys[0].table_name = ret->table_name;
    ret->keys[0].attributes = item_of_text(arena, attributes);
}

static inline void set_condition(struct op *op, const char *text)
{
    if (!text)
        return;
    const char *error =
        expr_parse_condition(&op->scope, "ConditionExpression", bytes_text(text), &op->condition);
    if (error)
        fail_msg("%s: %s", text, error);
}

static inline void set_update(struct op *op, const char *text)
{
    const char *error = expr_parse_update(&op->scope, bytes_text(text), &op->update);
    if (error)
        fail_msg("%s: %s", text, error);
}

static inline void plan(struct op *op)
{
    if (!op_plan(op, find, NULL))
        fail_msg("%s", op->result.message);
}

/* Executes a copy, so that an operation can be executed on many images. */
static inline struct op execute(const struct op *op, struct bytes image, struct op_change *ret)
{
    struct op copy = *op;
    copy.keys = arena_copy(op->arena, op->keys, sizeof(*op->keys));
    op_execute_key(&copy, 0, image, ret);
    return copy;
}

static inline void assert_same_result(const struct op *home, const struct op *away,
                                      struct bytes image)
{
    struct op_change here, there;
    struct op one = execute(home, image, &here), two = execute(away, image, &there);
    assert_int_equal(here.kind, there.kind);
    assert_true(bytes_equal(here.item, there.item));
    assert_int_equal(one.result.error, two.result.error);
    if (one.result.error)
        assert_string_equal(one.result.message, two.result.message);
}

static inline struct bytes image_of(struct arena *arena, size_t i)
{
    return images[i] ? item_of_text(arena, images[i]) : BYTES_NONE;
}

/* There and over, on all images. */
static inline void assert_travels(struct op *op)
{
    struct op away;
    struct bytes key;
    cleanup(buf_deinit) struct buf bytes = {0};
    plan(op);
    assert_true(op_wire_encode(op, 0, &bytes));
    assert_true(op_wire_key(buf_view(&bytes), &key));
    assert_true(bytes_equal(key, op->keys[0].key));
    assert_true(op_wire_decode(buf_view(&bytes), &table, op->arena, &away));
    size_t len = bytes.len;
    assert_true(op_wire_encode(&away, 0, &bytes)); /* and the same again */
    assert_true(
        bytes_equal(bytes_make(bytes.at, len), bytes_make(bytes.at + len, bytes.len - len)));
    memset(bytes.at, 0xee, bytes.len); /* nothing is kept of what was read */
    assert_int_equal(away.kind, op->kind);
    assert_int_equal(away.key_count, 1);
    assert_ptr_equal(away.keys[0].table, &table);
    assert_true(bytes_equal(away.keys[0].key, op->keys[0].key));
    assert_true(bytes_equal(away.keys[0].attributes, op->keys[0].attributes));
    assert_int_equal(away.return_values, RETURN_NONE);
    assert_true(!away.condition == !op->condition && !away.update == !op->update);
    for (size_t i = 0; i < array_len(images); i++)
        assert_same_result(op, &away, image_of(op->arena, i));
}

static inline void write_random_value(struct rng *rng, struct buf *to, int depth)
{
    static const char letters[] = "text";
    uint8_t encoded[NUMBER_ENCODED_MAX];
    struct number number;
    char text[32];
    size_t start, len = (size_t)snprintf(text, sizeof(text), "%d", (int)rng_below(rng, 12) - 3);
    check(number_parse(bytes_make(text, len), &number) == NUMBER_OK);
    struct bytes n = bytes_make(encoded, number_encode(&number, encoded));
    switch (rng_below(rng, depth < 3 ? 8 : 6)) {
    case 0:
        value_write(to, VALUE_S, bytes_make(letters, rng_below(rng, 5)));
        return;
    case 1:
        value_write(to, VALUE_N, n);
        return;
    case 2:
        value_write(to, VALUE_B, bytes_make("\0\xff", rng_below(rng, 3)));
        return;
    case 3:
        value_write(to, VALUE_BOOL, bytes_make("\1", 1));
        return;
    case 4:
        check(set_write_sorted(to, VALUE_NS, &n, 1));
        return;
    case 5:
        check(set_write_sorted(to, VALUE_SS, (struct bytes[]){bytes_literal("a")}, 1));
        return;
    case 6:
        start = value_begin(to, VALUE_L);
        for (uint64_t i = rng_below(rng, 4); i > 0; i--)
            write_random_value(rng, to, depth + 1);
        value_end(to, start);
        return;
    default:
        start = value_begin(to, VALUE_M);
        for (const char *name = "kqz"; *name; name++) {
            if (rng_one_in(rng, 2))
                continue;
            buf_append_prefixed(to, bytes_make(name, 1));
            write_random_value(rng, to, depth + 1);
        }
        value_end(to, start);
        return;
    }
}

static inline struct bytes random_item(struct rng *rng, struct arena *arena)
{
    static const char *const sorted[] = {"b", "l", "m", "n", "pk", "s", "ss", "x"};
    cleanup(buf_deinit) struct buf item = {0};
    item_begin(&item);
    for (size_t i = 0; i < array_len(sorted); i++) {
        bool key = strcmp(sorted[i], "pk") == 0;
        if (!key && rng_one_in(rng, 3))
            continue;
        buf_append_prefixed(&item, bytes_text(sorted[i]));
        if (key)
            value_write(&item, VALUE_S, bytes_literal("p"));
        else
            write_random_value(rng, &item, 0);
    }
    check(item_check(buf_view(&item)));
    return bytes_copy(arena, buf_view(&item));
}

#endif
