/* SPDX-License-Identifier: Apache-2.0 */
/* Builds operations as the API's parser would, straight into an arena. */

#include "chaos/sim/workload.h"

#include <inttypes.h>
#include <stdio.h>

#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/core/number.h"

void workload_init(struct workload *workload, struct rng *rng)
{
    workload->key_count = (uint32_t)rng_between(rng, 1, WORKLOAD_KEYS_MAX);
    for (uint32_t i = 0; i < WORKLOAD_KIND_COUNT; i++)
        workload->weights[i] = (uint32_t)rng_below(rng, 10);
    workload->weights[WORKLOAD_PUT]++; /* so that there is something to do */
}

static enum workload_kind draw_kind(const struct workload *workload, struct rng *rng)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < WORKLOAD_KIND_COUNT; i++)
        total += workload->weights[i];
    uint64_t left = rng_below(rng, total);
    enum workload_kind kind = 0;
    while (left >= workload->weights[kind])
        left -= workload->weights[kind++];
    return kind;
}

struct value workload_value(struct arena *arena, enum value_type type, struct bytes payload)
{
    struct buf to = {0};
    value_write(&to, type, payload);
    struct bytes whole = bytes_copy(arena, buf_view(&to));
    buf_deinit(&to);
    struct value value;
    struct bytes rest = whole;
    bool taken = value_take(&rest, &value);
    check(taken);
    return value;
}

struct value workload_number(struct arena *arena, uint64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRIu64, value);
    struct number number;
    enum number_outcome outcome = number_parse(bytes_make(text, (size_t)len), &number);
    check(outcome == NUMBER_OK);
    uint8_t encoded[NUMBER_ENCODED_MAX];
    size_t encoded_len = number_encode(&number, encoded);
    return workload_value(arena, VALUE_N, bytes_make(encoded, encoded_len));
}

struct bytes workload_item(struct arena *arena, struct attribute *attributes, size_t count)
{
    struct buf to = {0};
    item_begin(&to);
    bool distinct = attributes_write_sorted(&to, attributes, count);
    check(distinct);
    struct bytes item = bytes_copy(arena, buf_view(&to));
    buf_deinit(&to);
    return item;
}

struct op *workload_op_new(struct arena *arena, enum op_kind kind)
{
    struct op *op = arena_new(arena, struct op);
    op->kind = kind;
    op->arena = arena;
    op->table_name = bytes_literal(WORKLOAD_TABLE);
    op->scope.arena = arena;
    return op;
}

void workload_give_value(struct op *op, const char *placeholder, struct value value)
{
    struct expr_value *values =
        arena_array(op->arena, struct expr_value, op->scope.value_count + 1);
    if (op->scope.value_count)
        memcpy(values, op->scope.values, op->scope.value_count * sizeof(*values));
    values[op->scope.value_count] =
        (struct expr_value){.placeholder = bytes_text(placeholder), .value = value};
    op->scope.values = values;
    op->scope.value_count++;
    op->scope.values_given = true;
}

void workload_draw(struct workload *workload, struct rng *rng, struct arena *arena, uint64_t writer,
                   struct workload_op *ret)
{
    static const enum op_kind kinds[WORKLOAD_KIND_COUNT] = {
        [WORKLOAD_PUT] = OP_PUT_ITEM,    [WORKLOAD_PUT_NEW] = OP_PUT_ITEM,
        [WORKLOAD_ADD] = OP_UPDATE_ITEM, [WORKLOAD_DELETE] = OP_DELETE_ITEM,
        [WORKLOAD_GET] = OP_GET_ITEM,
    };
    enum workload_kind kind = draw_kind(workload, rng);
    uint32_t key_index = (uint32_t)rng_below(rng, workload->key_count);
    char name[16];
    int name_len = snprintf(name, sizeof(name), "key%u", key_index);
    struct bytes key_text = bytes_copy(arena, bytes_make(name, (size_t)name_len));
    struct op *op = workload_op_new(arena, kinds[kind]);
    struct attribute attributes[2] = {
        {bytes_literal("pk"), workload_value(arena, VALUE_S, key_text)},
        {bytes_literal("w"), workload_number(arena, writer)},
    };
    bool put = kind == WORKLOAD_PUT || kind == WORKLOAD_PUT_NEW;
    op->keys = arena_new(arena, struct op_key);
    op->key_count = 1;
    op->keys[0].table_name = op->table_name;
    op->keys[0].put = put;
    op->keys[0].attributes = workload_item(arena, attributes, put ? 2 : 1);
    op->consistent_read = true;
    const char *problem = NULL;
    if (kind == WORKLOAD_PUT_NEW) {
        problem = expr_parse_condition(&op->scope, "ConditionExpression",
                                       bytes_literal("attribute_not_exists(pk)"), &op->condition);
    } else if (kind == WORKLOAD_ADD) {
        workload_give_value(op, ":w", attributes[1].value);
        workload_give_value(op, ":one", workload_number(arena, 1));
        problem =
            expr_parse_update(&op->scope, bytes_literal("SET w = :w ADD n :one"), &op->update);
    }
    check(problem == NULL);
    *ret = (struct workload_op){.kind = kind, .key_index = key_index, .writer = writer, .op = op};
}

uint64_t workload_writer(struct bytes item)
{
    struct value value;
    struct number number;
    uint64_t writer = 0;
    if (item.len && item_find(item, bytes_literal("w"), &value) &&
        number_decode(value.payload, &number) && number_to_u64(&number, &writer))
        return writer;
    return 0;
}

struct op *workload_create_table(struct arena *arena)
{
    struct op *op = workload_op_new(arena, OP_CREATE_TABLE);
    op->control = arena_new(arena, struct op_control);
    op->control->key = (struct key_schema){.hash_name = "pk", .hash_type = VALUE_S};
    op->control->billing_given = true;
    op->control->billing = BILLING_PAY_PER_REQUEST;
    return op;
}

struct op *workload_add_replica(struct arena *arena, uint16_t region)
{
    struct op *op = workload_op_new(arena, OP_UPDATE_TABLE);
    op->control = arena_new(arena, struct op_control);
    op->control->replicas_given = true;
    op->control->replica_count = 1;
    op->control->replicas = arena_new(arena, struct op_replica_update);
    op->control->replicas->kind = REPLICA_UPDATE_CREATE;
    op->control->replicas->region = bytes_text(region_id_name(region));
    return op;
}
