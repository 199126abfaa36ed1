/* SPDX-License-Identifier: Apache-2.0 */
/* Operations built by hand, as the API's parser would have built them, and what came of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "tests/lib/core/fixture.h"

struct op *fixture_op(struct fixture *f, enum op_kind kind, const char *table)
{
    struct fixture_op *at = xcalloc(1, sizeof(*at));
    at->next = f->ops;
    f->ops = at;
    arena_init(&at->arena);
    at->op.kind = kind;
    at->op.arena = &at->arena;
    at->op.scope.arena = &at->arena;
    at->op.table_name = bytes_text(bytes_copy_text(&at->arena, bytes_text(table)));
    return &at->op;
}

static struct bytes text_item(struct op *op, const char *pk, const char *v)
{
    struct buf item, values;
    buf_init(&item);
    buf_init(&values);
    value_write(&values, VALUE_S, bytes_text(pk));
    size_t first = values.len;
    if (v)
        value_write(&values, VALUE_S, bytes_text(v));
    struct bytes one = bytes_make(values.at, first);
    struct bytes two = bytes_make(values.at + first, values.len - first);
    struct attribute attributes[2] = {{.name = bytes_text("pk")}, {.name = bytes_text("v")}};
    assert_true(value_take(&one, &attributes[0].value));
    if (v)
        assert_true(value_take(&two, &attributes[1].value));
    item_begin(&item);
    assert_true(attributes_write_sorted(&item, attributes, v ? 2 : 1));
    struct bytes copy = bytes_copy(op->arena, buf_view(&item));
    buf_deinit(&item);
    buf_deinit(&values);
    return copy;
}

static struct op *key_op(struct fixture *f, enum op_kind kind, const char *table, const char *pk,
                         const char *v)
{
    struct op *op = fixture_op(f, kind, table);
    op->key_count = 1;
    op->keys = arena_array(op->arena, struct op_key, 1);
    op->keys[0].table_name = op->table_name;
    op->keys[0].attributes = text_item(op, pk, v);
    return op;
}

struct op *fixture_put(struct fixture *f, const char *table, const char *pk, const char *v)
{
    return key_op(f, OP_PUT_ITEM, table, pk, v);
}

struct op *fixture_delete(struct fixture *f, const char *table, const char *pk)
{
    return key_op(f, OP_DELETE_ITEM, table, pk, NULL);
}

struct op *fixture_get(struct fixture *f, const char *table, const char *pk)
{
    return key_op(f, OP_GET_ITEM, table, pk, NULL);
}

struct op *fixture_scan(struct fixture *f, const char *table)
{
    struct op *op = fixture_op(f, OP_SCAN, table);
    op->scan_forward = true;
    return op;
}

struct op *fixture_batch(struct fixture *f, const char *table, uint32_t count, const char *v)
{
    struct op *op = fixture_op(f, OP_BATCH_WRITE_ITEM, table);
    op->key_count = count;
    op->keys = arena_array(op->arena, struct op_key, count);
    op->group_count = 1;
    op->groups = arena_array(op->arena, struct op_group, 1);
    op->groups[0] = (struct op_group){.table_name = op->table_name, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        char pk[16];
        snprintf(pk, sizeof(pk), "pk%u", i);
        op->keys[i].table_name = op->table_name;
        op->keys[i].put = true;
        op->keys[i].attributes = text_item(op, pk, v);
    }
    return op;
}

void fixture_condition(struct op *op, const char *expression)
{
    const char *problem = expr_parse_condition(&op->scope, "ConditionExpression",
                                               bytes_text(expression), &op->condition);
    assert_null(problem);
}

struct op *fixture_create(struct fixture *f, const char *table)
{
    struct op *op = fixture_op(f, OP_CREATE_TABLE, table);
    op->control = arena_new(op->arena, struct op_control);
    memcpy(op->control->key.hash_name, "pk", 3);
    op->control->key.hash_type = VALUE_S;
    op->control->billing_given = true;
    op->control->billing = BILLING_PAY_PER_REQUEST;
    return op;
}

struct op *fixture_replica(struct fixture *f, const char *table, bool create, const char *region)
{
    struct op *op = fixture_op(f, OP_UPDATE_TABLE, table);
    op->control = arena_new(op->arena, struct op_control);
    op->control->replicas_given = true;
    op->control->replica_count = 1;
    op->control->replicas = arena_array(op->arena, struct op_replica_update, 1);
    op->control->replicas[0].kind = create ? REPLICA_UPDATE_CREATE : REPLICA_UPDATE_DELETE;
    op->control->replicas[0].region = bytes_text(region);
    return op;
}

static struct op *strong_update(struct fixture *f, const char *table, bool create,
                                const char *names[3])
{
    struct op *op = fixture_replica(f, table, create, names[0]);
    struct op_control *control = op->control;
    const struct op_replica_update first = control->replicas[0];
    control->replicas = arena_array(op->arena, struct op_replica_update, 2);
    control->replicas[0] = control->replicas[1] = first;
    if (names[1]) {
        control->replica_count = 2;
        control->replicas[1].region = bytes_text(names[1]);
    }
    if (names[2]) {
        control->witnesses_given = true;
        control->witness_count = 1;
        control->witnesses = arena_array(op->arena, struct op_replica_update, 1);
        control->witnesses[0] = first;
        control->witnesses[0].region = bytes_text(names[2]);
    }
    control->consistency_given = control->consistency_strong = create;
    return op;
}

struct op *fixture_strong(struct fixture *f, const char *table, const char *first,
                          const char *second, const char *witness)
{
    return strong_update(f, table, true, (const char *[3]){first, second, witness});
}

struct op *fixture_dissolve(struct fixture *f, const char *table, const char *first,
                            const char *second, const char *witness)
{
    return strong_update(f, table, false, (const char *[3]){first, second, witness});
}

void fixture_lose_disk(struct fixture *f, uint32_t node)
{
    assert_null(f->nodes[node].core);
    f->nodes[node].store->ops->free(f->nodes[node].store);
    f->nodes[node].store = store_mem_new();
}

void fixture_send(struct fixture *f, uint32_t node, struct op *op)
{
    struct fixture_op *at = container_of(op, struct fixture_op, op);
    at->token = ++f->tokens;
    struct region_input in = {.kind = REGION_REQUEST, .token = at->token, .op = op};
    fixture_step(f, node, &in);
}

enum api_error fixture_do(struct fixture *f, uint32_t node, struct op *op)
{
    fixture_send(f, node, op);
    fixture_run(f);
    assert_int_not_equal(fixture_replied(f, op), 0);
    return op->result.error;
}

uint32_t fixture_replied(const struct fixture *f, const struct op *op)
{
    (void)f;
    const struct fixture_op *at =
        (const struct fixture_op *)(const void *)((const char *)op -
                                                  offsetof(struct fixture_op, op));
    return at->replied;
}

static bool value_text(struct bytes item, struct arena *arena, const char **ret)
{
    struct value value;
    if (item.len == 0 || !item_find(item, bytes_text("v"), &value))
        return false;
    *ret = bytes_copy_text(arena, value.payload);
    return true;
}

const char *fixture_value(struct fixture *f, uint32_t node, const char *table, const char *pk)
{
    struct op *op = fixture_get(f, table, pk);
    const char *text = NULL;
    assert_int_equal(fixture_do(f, node, op), API_OK);
    value_text(op->result.attributes, op->arena, &text);
    return text;
}

const struct table *fixture_table(const struct fixture *f, uint32_t node, const char *name)
{
    return region_table_find(f->nodes[node].core, bytes_text(name));
}

void fixture_global(struct fixture *f)
{
    assert_int_equal(fixture_do(f, 0, fixture_create(f, "tbl")), API_OK);
    for (uint32_t i = 1; i < f->count; i++) {
        struct op *op = fixture_replica(f, "tbl", true, region_id_name(f->nodes[i].region));
        if (fixture_do(f, 0, op) != API_OK)
            fail_msg("%s", op->result.message);
        fixture_advance(f, 1000);
        assert_int_equal(fixture_table(f, 0, "tbl")->status, TABLE_ACTIVE);
        assert_int_equal(fixture_table(f, i, "tbl")->status, TABLE_ACTIVE);
    }
}

static void copy_image(const struct record *record, char *to, size_t size)
{
    struct value value;
    to[0] = 0;
    if (record->item.len > 0 && item_find(record->item, bytes_text("v"), &value))
        snprintf(to, size, "%.*s", (int)value.payload.len, (const char *)value.payload.at);
}

uint32_t fixture_ledger(struct fixture *f, uint32_t node, struct fixture_loss *at, uint32_t max)
{
    struct buf scratch;
    buf_init(&scratch);
    struct store_read read;
    struct store_rows rows;
    region_ledger_read(f->nodes[node].core, BYTES_NONE, 1000, &scratch, &read);
    struct store *store = f->nodes[node].store;
    assert_int_equal(store->ops->read(store, &read, &rows), STORE_OK);
    for (uint32_t i = 0; i < rows.count && i < max; i++) {
        const struct table *table;
        struct bytes name;
        struct ledger_entry entry;
        assert_true(region_ledger_row(f->nodes[node].core, &rows.at[i], &table, &name, &entry));
        copy_image(&entry.winner, at[i].winner, sizeof(at[i].winner));
        copy_image(&entry.loser, at[i].loser, sizeof(at[i].loser));
        at[i].relation = entry.relation;
        at[i].winner_region = entry.winner.version.origin;
        at[i].loser_region = entry.loser.version.origin;
    }
    buf_deinit(&scratch);
    return rows.count;
}

void fixture_dump(struct fixture *f, uint32_t node, uint8_t tag, struct buf *to)
{
    uint8_t begin = tag, end = (uint8_t)(tag + 1);
    struct store_read read = {.range = true,
                              .begin = bytes_make(&begin, 1),
                              .end = bytes_make(&end, 1),
                              .rows_max = UINT32_MAX,
                              .bytes_max = UINT64_MAX};
    struct store_rows rows;
    struct store *store = f->nodes[node].store;
    assert_int_equal(store->ops->read(store, &read, &rows), STORE_OK);
    for (uint32_t i = 0; i < rows.count; i++) {
        buf_append_prefixed(to, rows.at[i].key);
        buf_append_prefixed(to, rows.at[i].value);
    }
}
