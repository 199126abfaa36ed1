/* SPDX-License-Identifier: Apache-2.0 */
/* Draws requests and builds their operations. A put's number is unlike any other's, so most
 * histories can be judged at once. */

#include "chaos/sim/strong_workload.h"

#include <stdio.h>

#include "chaos/sim/workload.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/core/number.h"

enum { PUT_STEP = 1000 }; /* between the numbers of two puts */

const char *sim_strong_kind_name(enum sim_strong_kind kind)
{
    static const char *const names[] = {
#define KIND(enumerator, name) [SIM_STRONG_##enumerator] = name,
        SIM_STRONG_KIND_MAP(KIND)
#undef KIND
    };
    check((unsigned)kind < array_len(names));
    return names[kind];
}

void sim_strong_workload_init(struct sim_strong_workload *workload, struct rng *rng)
{
    *workload =
        (struct sim_strong_workload){.hashes = (uint32_t)rng_between(rng, 1, STRONG_HASHES_MAX)};
    workload->hot = (uint32_t)rng_between(rng, 2, STRONG_SORTS);
    for (uint32_t i = 0; i < SIM_STRONG_KIND_COUNT; i++)
        workload->weights[i] = (uint32_t)rng_below(rng, 10);
    workload->weights[SIM_STRONG_PUT]++; /* so that there is something to do */
    workload->weights[SIM_STRONG_GET]++;
}

static enum sim_strong_kind draw_kind(const struct sim_strong_workload *workload, struct rng *rng)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < SIM_STRONG_KIND_COUNT; i++)
        total += workload->weights[i];
    uint64_t left = rng_below(rng, total);
    enum sim_strong_kind kind = 0;
    while (left >= workload->weights[kind])
        left -= workload->weights[kind++];
    return kind;
}

static uint32_t draw_key(const struct sim_strong_workload *workload, struct rng *rng)
{
    return (uint32_t)rng_below(rng, rng_one_in(rng, 5) ? workload->hashes * STRONG_SORTS
                                                       : workload->hot);
}

/* ---- Items ---- */

static struct bytes name_copy(struct arena *arena, char letter, uint32_t number)
{
    char name[16];
    int len = snprintf(name, sizeof(name), "%c%u", letter, number);
    return bytes_copy(arena, bytes_make(name, (size_t)len));
}

/* The attributes of a key; and, with a writer, of an item. */
static struct bytes make_item(struct arena *arena, uint32_t key, uint64_t writer, int64_t number)
{
    struct attribute attributes[4] = {
        {bytes_literal("pk"),
         workload_value(arena, VALUE_S, name_copy(arena, 'p', key / STRONG_SORTS))},
        {bytes_literal("sk"),
         workload_value(arena, VALUE_S, name_copy(arena, 's', key % STRONG_SORTS))},
    };
    if (!writer)
        return workload_item(arena, attributes, 2);
    attributes[2] = (struct attribute){bytes_literal("w"), workload_number(arena, writer)};
    attributes[3] =
        (struct attribute){bytes_literal("n"), workload_number(arena, (uint64_t)number)};
    return workload_item(arena, attributes, 4);
}

static bool take_number(struct bytes item, struct bytes name, uint64_t *ret)
{
    struct value value;
    struct number number;
    return item_find(item, name, &value) && value.type == VALUE_N &&
           number_decode(value.payload, &number) && number_to_u64(&number, ret);
}

bool sim_strong_item(struct bytes item, int64_t *ret_number, uint64_t *ret_writer)
{
    uint64_t number, writer;
    if (item.len == 0 || !take_number(item, bytes_literal("n"), &number) ||
        !take_number(item, bytes_literal("w"), &writer))
        return false;
    if (ret_number)
        *ret_number = (int64_t)number;
    if (ret_writer)
        *ret_writer = writer;
    return true;
}

static uint32_t take_digit(struct bytes item, struct bytes name)
{
    struct value value;
    bool found = item_find(item, name, &value);
    check(found);
    check(value.payload.len == 2);
    return (uint32_t)(value.payload.at[1] - '0');
}

uint32_t sim_strong_key(struct bytes item)
{
    return take_digit(item, bytes_literal("pk")) * STRONG_SORTS +
           take_digit(item, bytes_literal("sk"));
}

/* ---- Requests ---- */

static struct sim_strong_part *add_part(struct sim_strong_workload *workload,
                                        struct sim_strong_request *request, uint32_t key,
                                        enum linear_kind kind)
{
    struct sim_strong_part *part = &request->parts[request->part_count++];
    *part = (struct sim_strong_part){.key = key, .linear = {.kind = kind}};
    if (kind != LINEAR_READ)
        part->writer = ++workload->next_writer;
    part->linear.name = part->writer;
    return part;
}

static struct op_key *give_keys(struct op *op, uint32_t count)
{
    op->keys = arena_array(op->arena, struct op_key, count);
    op->key_count = count;
    for (uint32_t i = 0; i < count; i++)
        op->keys[i].table_name = op->table_name;
    return op->keys;
}

/* An operation on the key of the one part; a put if it has a number to write. */
static void give_key(struct op *op, const struct sim_strong_part *part)
{
    bool put = op->kind == OP_PUT_ITEM;
    struct op_key *key = give_keys(op, 1);
    key->put = put;
    key->attributes =
        make_item(op->arena, part->key, put ? part->writer : 0, part->linear.argument);
}

static enum return_values draw_old(struct rng *rng)
{
    return rng_one_in(rng, 2) ? RETURN_ALL_OLD : RETURN_NONE;
}

static void make_put(struct sim_strong_workload *workload, struct rng *rng, uint32_t key,
                     struct sim_strong_request *ret)
{
    struct sim_strong_part *part = add_part(workload, ret, key, LINEAR_PUT);
    part->linear.argument = (int64_t)part->writer * PUT_STEP;
    give_key(ret->op, part);
    ret->op->return_values = draw_old(rng);
}

static void make_put_if(struct sim_strong_workload *workload, struct rng *rng, uint32_t key,
                        struct sim_strong_request *ret)
{
    struct op *op = ret->op;
    struct sim_strong_part *part = add_part(workload, ret, key, LINEAR_IF);
    part->linear.argument = (int64_t)part->writer * PUT_STEP;
    part->linear.expected_present = workload->seen_present[key];
    part->linear.expected = part->linear.expected_present ? workload->seen[key] : 0;
    give_key(op, part);
    op->return_values = draw_old(rng);
    op->return_old_on_failure = rng_one_in(rng, 2);
    const char *condition = "attribute_not_exists(pk)";
    if (part->linear.expected_present) {
        workload_give_value(op, ":e", workload_number(op->arena, (uint64_t)part->linear.expected));
        condition = "n = :e";
    }
    const char *problem = expr_parse_condition(&op->scope, "ConditionExpression",
                                               bytes_text(condition), &op->condition);
    check(problem == NULL);
}

static void make_add(struct sim_strong_workload *workload, struct rng *rng, uint32_t key,
                     struct sim_strong_request *ret)
{
    static const enum return_values values[] = {RETURN_NONE, RETURN_ALL_OLD, RETURN_UPDATED_OLD,
                                                RETURN_ALL_NEW, RETURN_UPDATED_NEW};
    struct op *op = ret->op;
    struct sim_strong_part *part = add_part(workload, ret, key, LINEAR_ADD);
    part->linear.argument = (int64_t)rng_between(rng, 1, 9);
    give_key(op, part);
    op->return_values = values[rng_below(rng, array_len(values))];
    workload_give_value(op, ":w", workload_number(op->arena, part->writer));
    workload_give_value(op, ":a", workload_number(op->arena, (uint64_t)part->linear.argument));
    const char *problem =
        expr_parse_update(&op->scope, bytes_literal("SET w = :w ADD n :a"), &op->update);
    check(problem == NULL);
}

static void make_batch(struct sim_strong_workload *workload, struct rng *rng, uint32_t key,
                       struct sim_strong_request *ret)
{
    struct op *op = ret->op;
    uint32_t all = workload->hashes * STRONG_SORTS;
    uint32_t count = (uint32_t)rng_between(rng, 1, STRONG_SORTS);
    struct op_key *keys = give_keys(op, count);
    for (uint32_t i = 0; i < count; i++) { /* no key twice, and of more than one partition */
        bool put = !rng_one_in(rng, 3);
        struct sim_strong_part *part = add_part(workload, ret, (key + i * (all / count)) % all,
                                                put ? LINEAR_PUT : LINEAR_DELETE);
        part->linear.argument = put ? (int64_t)part->writer * PUT_STEP : 0;
        keys[i].put = put;
        keys[i].attributes =
            make_item(op->arena, part->key, put ? part->writer : 0, part->linear.argument);
    }
    op->groups = arena_new(op->arena, struct op_group);
    op->group_count = 1;
    op->groups->table_name = op->table_name;
    op->groups->count = count;
}

static void make_query(struct sim_strong_workload *workload, uint32_t key,
                       struct sim_strong_request *ret)
{
    struct op *op = ret->op;
    uint32_t hash = key / STRONG_SORTS;
    for (uint32_t i = 0; i < STRONG_SORTS; i++)
        add_part(workload, ret, hash * STRONG_SORTS + i, LINEAR_READ);
    op->consistent_read = op->scan_forward = true;
    workload_give_value(op, ":p",
                        workload_value(op->arena, VALUE_S, name_copy(op->arena, 'p', hash)));
    const char *problem =
        expr_parse_key_condition(&op->scope, bytes_literal("pk = :p"), &op->key_condition);
    check(problem == NULL);
}

void sim_strong_make(struct sim_strong_workload *workload, struct rng *rng, struct arena *arena,
                     enum sim_strong_kind kind, uint32_t key, struct sim_strong_request *ret)
{
    static const enum op_kind kinds[] = {
        [SIM_STRONG_PUT] = OP_PUT_ITEM,           [SIM_STRONG_PUT_IF] = OP_PUT_ITEM,
        [SIM_STRONG_ADD] = OP_UPDATE_ITEM,        [SIM_STRONG_DELETE] = OP_DELETE_ITEM,
        [SIM_STRONG_GET] = OP_GET_ITEM,           [SIM_STRONG_PEEK] = OP_GET_ITEM,
        [SIM_STRONG_BATCH] = OP_BATCH_WRITE_ITEM, [SIM_STRONG_QUERY] = OP_QUERY,
    };
    *ret = (struct sim_strong_request){.kind = kind, .op = workload_op_new(arena, kinds[kind])};
    switch (kind) {
    case SIM_STRONG_PUT:
        make_put(workload, rng, key, ret);
        break;
    case SIM_STRONG_PUT_IF:
        make_put_if(workload, rng, key, ret);
        break;
    case SIM_STRONG_ADD:
        make_add(workload, rng, key, ret);
        break;
    case SIM_STRONG_DELETE:
        give_key(ret->op, add_part(workload, ret, key, LINEAR_DELETE));
        ret->op->return_values = draw_old(rng);
        break;
    case SIM_STRONG_GET:
    case SIM_STRONG_PEEK:
        give_key(ret->op, add_part(workload, ret, key, LINEAR_READ));
        ret->op->consistent_read = kind == SIM_STRONG_GET;
        break;
    case SIM_STRONG_BATCH:
        make_batch(workload, rng, key, ret);
        break;
    case SIM_STRONG_QUERY:
        make_query(workload, key, ret);
        break;
    case SIM_STRONG_KIND_COUNT:
        unreachable();
    }
}

void sim_strong_draw(struct sim_strong_workload *workload, struct rng *rng, struct arena *arena,
                     struct sim_strong_request *ret)
{
    enum sim_strong_kind kind = draw_kind(workload, rng);
    sim_strong_make(workload, rng, arena, kind, draw_key(workload, rng), ret);
}

/* ---- The table ---- */

struct op *sim_strong_create_table(struct arena *arena)
{
    struct op *op = workload_create_table(arena);
    op->control->key.has_range = true;
    memcpy(op->control->key.range_name, "sk", 3);
    op->control->key.range_type = VALUE_S;
    return op;
}

struct op *sim_strong_update(struct arena *arena, bool create, const uint16_t others[2],
                             bool witness)
{
    struct op *op = workload_op_new(arena, OP_UPDATE_TABLE);
    struct op_control *control = op->control = arena_new(arena, struct op_control);
    struct op_replica_update *updates = arena_array(arena, struct op_replica_update, 2);
    for (int i = 0; i < 2; i++) {
        updates[i].kind = create ? REPLICA_UPDATE_CREATE : REPLICA_UPDATE_DELETE;
        updates[i].region = bytes_text(region_id_name(others[i]));
    }
    control->replicas_given = true;
    control->replicas = updates;
    control->replica_count = witness ? 1 : 2;
    if (witness) {
        control->witnesses_given = true;
        control->witnesses = updates + 1;
        control->witness_count = 1;
    }
    control->consistency_given = control->consistency_strong = create;
    return op;
}
