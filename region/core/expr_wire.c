/* SPDX-License-Identifier: Apache-2.0 */
/* Checked trees as bytes:
 *
 *   condition  node
 *   update     legacy u8 | count | action...             ascending by path
 *   action     kind u8 | path | node, but for REMOVE
 *   node       kind u8 | function u8, of a FUNCTION | count, of OR, AND and IN | node...
 *              or, in place of nodes, the path or value
 *   path       count | name, and then each a name or INDEX u8 and the index
 *   value      as in an item, or SHARED u8 and the number of a long one that was given before
 *   name       a value, of type S
 *
 * Counts, indices and numbers are varints. A placeholder may be used hundreds of times, so long
 * values and names travel once. What a node may hold is one table, read by both directions: the
 * decoder accepts no shape that expr_check would not have left, so evaluation meets no surprise.
 * Operand types that merely make a comparison false are not looked at. */

#include "conflict/base/check.h"
#include "region/core/expr_internal.h"
#include "region/core/op_wire.h"

enum {
    TAG_SHARED = 0,
    TAG_INDEX = VALUE_BS + 1,
    SHARED_LEN_MIN = 32,                /* of a payload, to be numbered */
    SHARED_MAX = 64,                    /* the first so many are */
    SHARED_USES_MAX = EXPR_LEN_MAX / 2, /* ":v" has two characters */
    STEP_LEN_MIN = 2,
    ACTION_LEN_MIN = 4,
    /* What has no text adds three rows of its own at most. */
    DEPTH_MAX = EXPR_OPERATORS_MAX + 4
};

/* What a node is to the one above it. */
enum {
    AS_CONDITION = 1 << 0,
    AS_PATH = 1 << 1,
    AS_VALUE = 1 << 2,
    AS_SIZE = 1 << 3,
    AS_SUM = 1 << 4,
    AS_IF_NOT_EXISTS = 1 << 5,
    AS_LIST_APPEND = 1 << 6,

    PLAIN = AS_PATH | AS_VALUE,
    OPERAND = PLAIN | AS_SIZE,
    /* Of an update. */
    LIST = PLAIN | AS_IF_NOT_EXISTS,
    TERM = LIST | AS_LIST_APPEND
};

struct shape {
    uint8_t role;  /* 0: there is no such node */
    uint8_t count; /* of args; the least, if many */
    bool many;
    uint8_t args[3]; /* their roles; if many, all are as the first */
};

static const struct shape shapes[] = {
    [EXPR_OR] = {AS_CONDITION, 1, true, {AS_CONDITION}},
    [EXPR_AND] = {AS_CONDITION, 1, true, {AS_CONDITION}},
    [EXPR_NOT] = {AS_CONDITION, 1, false, {AS_CONDITION}},
    [EXPR_EQ] = {AS_CONDITION, 2, false, {OPERAND, OPERAND}},
    [EXPR_NE] = {AS_CONDITION, 2, false, {OPERAND, OPERAND}},
    [EXPR_LT] = {AS_CONDITION, 2, false, {OPERAND, OPERAND}},
    [EXPR_LE] = {AS_CONDITION, 2, false, {OPERAND, OPERAND}},
    [EXPR_GT] = {AS_CONDITION, 2, false, {OPERAND, OPERAND}},
    [EXPR_GE] = {AS_CONDITION, 2, false, {OPERAND, OPERAND}},
    [EXPR_BETWEEN] = {AS_CONDITION, 3, false, {OPERAND, OPERAND, OPERAND}},
    [EXPR_IN] = {AS_CONDITION, 2, true, {OPERAND}},
    [EXPR_FUNCTION] = {0},
    [EXPR_PLUS] = {AS_SUM, 2, false, {TERM, TERM}},
    [EXPR_MINUS] = {AS_SUM, 2, false, {TERM, TERM}},
    [EXPR_PATH] = {.role = AS_PATH},
    [EXPR_VALUE] = {.role = AS_VALUE},
};

static const struct shape function_shapes[] = {
    [FUNCTION_UNKNOWN] = {0},
    [FUNCTION_ATTRIBUTE_EXISTS] = {AS_CONDITION, 1, false, {AS_PATH}},
    [FUNCTION_ATTRIBUTE_NOT_EXISTS] = {AS_CONDITION, 1, false, {AS_PATH}},
    [FUNCTION_ATTRIBUTE_TYPE] = {AS_CONDITION, 2, false, {OPERAND, AS_VALUE}},
    [FUNCTION_BEGINS_WITH] = {AS_CONDITION, 2, false, {PLAIN, PLAIN}},
    [FUNCTION_CONTAINS] = {AS_CONDITION, 2, false, {PLAIN, OPERAND}},
    [FUNCTION_SIZE] = {AS_SIZE, 1, false, {PLAIN}},
    [FUNCTION_IF_NOT_EXISTS] = {AS_IF_NOT_EXISTS, 2, false, {AS_PATH, TERM}},
    [FUNCTION_LIST_APPEND] = {AS_LIST_APPEND, 2, false, {LIST, LIST}},
};

/* These numbers are the format's. */
_Static_assert(array_len(shapes) == 16, "a node's kind is on the wire");
_Static_assert(array_len(function_shapes) == 9, "so is its function");
_Static_assert(ACTION_DELETE == 3, "and an action's kind");

static const struct shape *shape_of(uint8_t kind, uint8_t function)
{
    return kind == EXPR_FUNCTION ? &function_shapes[function] : &shapes[kind];
}

/* ---- Encoding ---- */

struct writer {
    struct buf *to;
    size_t start;
    uint32_t nodes;
    uint32_t shared_count;
    struct bytes shared[SHARED_MAX];
};

static void writer_init(struct writer *writer, struct buf *to)
{
    writer->to = to;
    writer->start = to->len;
    writer->nodes = 0;
    writer->shared_count = 0;
}

static bool writer_fits(const struct writer *writer)
{
    return writer->nodes <= EXPR_WIRE_NODES_MAX &&
           writer->to->len - writer->start <= OP_WIRE_BYTES_MAX;
}

/* A placeholder is one run of memory of one type: its address tells whether it was given before. */
static void put_value(struct writer *writer, enum value_type type, struct bytes payload)
{
    if (payload.len >= SHARED_LEN_MIN) {
        for (uint32_t i = 0; i < writer->shared_count; i++) {
            if (writer->shared[i].at == payload.at && writer->shared[i].len == payload.len) {
                buf_append_u8(writer->to, TAG_SHARED);
                buf_append_varint(writer->to, i);
                return;
            }
        }
        if (writer->shared_count < SHARED_MAX)
            writer->shared[writer->shared_count++] = payload;
    }
    value_write(writer->to, type, payload);
}

static void put_path(struct writer *writer, const struct expr_path *path)
{
    buf_append_varint(writer->to, path->count);
    for (uint32_t i = 0; i < path->count; i++) {
        const struct expr_step *step = &path->steps[i];
        if (step->is_index) {
            buf_append_u8(writer->to, TAG_INDEX);
            buf_append_varint(writer->to, step->index);
        } else {
            put_value(writer, VALUE_S, step->name);
        }
    }
}

/* Goes on no further once it is too much. */
static void put_node(struct writer *writer, const struct expr_node *node)
{
    const struct shape *shape = shape_of((uint8_t)node->kind, (uint8_t)node->function);
    check(shape->role != 0);
    check(shape->many ? node->arg_count >= shape->count : node->arg_count == shape->count);
    writer->nodes++;
    if (!writer_fits(writer))
        return;
    buf_append_u8(writer->to, (uint8_t)node->kind);
    if (node->kind == EXPR_FUNCTION)
        buf_append_u8(writer->to, (uint8_t)node->function);
    if (shape->many)
        buf_append_varint(writer->to, node->arg_count);
    if (node->kind == EXPR_PATH)
        put_path(writer, &node->path);
    else if (node->kind == EXPR_VALUE)
        put_value(writer, node->value.type, node->value.payload);
    for (const struct expr_node *arg = node->args; arg; arg = arg->next)
        put_node(writer, arg);
}

bool expr_condition_encode(const struct expr_condition *condition, struct buf *to)
{
    struct writer writer;
    writer_init(&writer, to);
    put_node(&writer, condition->root);
    return writer_fits(&writer);
}

bool expr_update_encode(const struct expr_update *update, struct buf *to)
{
    struct writer writer;
    writer_init(&writer, to);
    buf_append_u8(to, update->type_message == expr_legacy_type_message);
    buf_append_varint(to, update->count);
    writer.nodes = update->count;
    for (uint32_t i = 0; i < update->count && writer_fits(&writer); i++) {
        const struct expr_action *action = &update->actions[i];
        buf_append_u8(to, (uint8_t)action->kind);
        put_path(&writer, &action->path);
        if (action->operand)
            put_node(&writer, action->operand);
    }
    return writer_fits(&writer);
}

/* ---- Decoding ---- */

struct reader {
    struct bytes rest;
    struct arena *arena;
    uint32_t nodes, shared_uses;
    uint32_t operators; /* of an update: those of a condition without text have no bound */
    uint32_t shared_count;
    struct value shared[SHARED_MAX];
};

static void reader_init(struct reader *reader, struct bytes from, struct arena *arena)
{
    reader->rest = from;
    reader->arena = arena;
    reader->nodes = reader->shared_uses = reader->operators = reader->shared_count = 0;
}

static bool take_count(struct reader *reader, uint64_t max, uint32_t *ret)
{
    uint64_t count;
    if (!bytes_take_varint(&reader->rest, &count) || count > max)
        return false;
    *ret = (uint32_t)count;
    return true;
}

static bool take_tag(struct reader *reader, uint8_t tag)
{
    struct bytes run;
    return reader->rest.len && reader->rest.at[0] == tag && bytes_take(&reader->rest, 1, &run);
}

static bool take_value(struct reader *reader, struct value *ret)
{
    if (take_tag(reader, TAG_SHARED)) {
        uint32_t number;
        if (!take_count(reader, SHARED_MAX, &number) || number >= reader->shared_count ||
            reader->shared_uses == SHARED_USES_MAX)
            return false;
        reader->shared_uses++;
        *ret = reader->shared[number];
        return true;
    }
    if (!value_take_checked(&reader->rest, ret))
        return false;
    if (ret->payload.len >= SHARED_LEN_MIN && reader->shared_count < SHARED_MAX)
        reader->shared[reader->shared_count++] = *ret;
    return true;
}

static bool take_step(struct reader *reader, struct expr_step *ret)
{
    struct value name;
    if (take_tag(reader, TAG_INDEX)) {
        ret->is_index = true;
        return take_count(reader, INT32_MAX, &ret->index);
    }
    if (!take_value(reader, &name) || name.type != VALUE_S)
        return false;
    ret->name = name.payload;
    return true;
}

static bool take_path(struct reader *reader, struct expr_path *ret)
{
    struct expr_path path;
    if (!take_count(reader, EXPR_PATH_DEPTH_MAX, &path.count) || path.count == 0 ||
        path.count > reader->rest.len / STEP_LEN_MIN)
        return false;
    path.steps = arena_array(reader->arena, struct expr_step, path.count);
    for (uint32_t i = 0; i < path.count; i++) {
        if (!take_step(reader, &path.steps[i]))
            return false;
    }
    *ret = path;
    return !path.steps[0].is_index;
}

static struct expr_node *take_node(struct reader *reader, unsigned allowed, uint32_t depth);

static bool take_args(struct reader *reader, const struct shape *shape, uint32_t count,
                      struct expr_node *node, uint32_t depth)
{
    for (uint32_t i = 0; i < count; i++) {
        struct expr_node *arg = take_node(reader, shape->args[shape->many ? 0 : i], depth + 1);
        if (!arg)
            return false;
        expr_node_append(node, arg);
    }
    return true;
}

/* What a node has besides its args. */
static bool complete(struct reader *reader, struct expr_node *node)
{
    if (node->kind == EXPR_PATH)
        return take_path(reader, &node->path);
    if (node->kind == EXPR_VALUE)
        return take_value(reader, &node->value);
    if (node->kind != EXPR_FUNCTION || node->function != FUNCTION_ATTRIBUTE_TYPE)
        return true;
    const struct value *wanted = &node->args->next->value;
    return wanted->type == VALUE_S && value_type_find(wanted->payload, &node->wanted_type);
}

static struct expr_node *take_node(struct reader *reader, unsigned allowed, uint32_t depth)
{
    uint8_t kind, function = FUNCTION_UNKNOWN;
    if (depth > DEPTH_MAX || reader->nodes == EXPR_WIRE_NODES_MAX ||
        !bytes_take_u8(&reader->rest, &kind) || kind > EXPR_VALUE)
        return NULL;
    if (kind == EXPR_FUNCTION &&
        (!bytes_take_u8(&reader->rest, &function) || function > FUNCTION_LIST_APPEND))
        return NULL;
    const struct shape *shape = shape_of(kind, function);
    uint32_t count = shape->count;
    if (!(shape->role & allowed) ||
        (shape->many && (!take_count(reader, EXPR_WIRE_NODES_MAX, &count) || count < shape->count)))
        return NULL;
    struct expr_node *node = arena_new(reader->arena, struct expr_node);
    node->kind = (enum expr_kind)kind;
    node->function = (enum expr_function)function;
    reader->nodes++;
    reader->operators += count > 0;
    return take_args(reader, shape, count, node, depth) && complete(reader, node) ? node : NULL;
}

struct expr_condition *expr_condition_decode(struct bytes *from, struct arena *arena)
{
    struct reader reader;
    reader_init(&reader, *from, arena);
    struct expr_condition *condition = arena_new(arena, struct expr_condition);
    condition->root = take_node(&reader, AS_CONDITION, 1);
    if (!condition->root)
        return NULL;
    *from = reader.rest;
    return condition;
}

static bool take_operand(struct reader *reader, bool legacy, struct expr_action *action)
{
    if (action->kind == ACTION_REMOVE)
        return true;
    bool plain = legacy || action->kind != ACTION_SET;
    action->operand = take_node(reader, plain ? AS_VALUE : TERM | AS_SUM, 1);
    if (!action->operand)
        return false;
    enum value_type type = action->operand->value.type;
    if (action->kind == ACTION_SET || type >= VALUE_SS)
        return true;
    return action->kind == ACTION_ADD && (type == VALUE_N || (legacy && type == VALUE_L));
}

static bool take_action(struct reader *reader, bool legacy, struct expr_action *ret)
{
    uint8_t kind;
    if (!bytes_take_u8(&reader->rest, &kind) || kind > ACTION_DELETE ||
        !take_path(reader, &ret->path))
        return false;
    ret->kind = (enum expr_action_kind)kind;
    return (!legacy || ret->path.count == 1) && take_operand(reader, legacy, ret);
}

/* In their order, neighbours show whether any two paths overlap or conflict. */
static bool follows(struct reader *reader, const struct expr_path *pair)
{
    return expr_path_compare(&pair[0], &pair[1]) < 0 &&
           expr_paths_check(reader->arena, "", pair, 2) == NULL;
}

struct expr_update *expr_update_decode(struct bytes *from, struct arena *arena)
{
    struct reader reader;
    struct expr_parsed parsed = {0};
    uint8_t legacy;
    reader_init(&reader, *from, arena);
    if (!bytes_take_u8(&reader.rest, &legacy) || legacy > 1 ||
        !take_count(&reader, EXPR_WIRE_NODES_MAX, &parsed.action_count) ||
        parsed.action_count == 0 || parsed.action_count > reader.rest.len / ACTION_LEN_MIN)
        return NULL;
    parsed.path_count = reader.nodes = parsed.action_count;
    parsed.paths = arena_array(arena, struct expr_path, parsed.path_count);
    parsed.actions = arena_array(arena, struct expr_action, parsed.action_count);
    for (uint32_t i = 0; i < parsed.action_count; i++) {
        struct expr_action *action = &parsed.actions[i];
        if (!take_action(&reader, legacy, action) || reader.operators > EXPR_OPERATORS_MAX)
            return NULL;
        parsed.paths[i] = action->path;
        if (i > 0 && !follows(&reader, &parsed.paths[i - 1]))
            return NULL;
        if (i > 0)
            parsed.actions[i - 1].next = action;
    }
    struct expr_update *update = arena_new(arena, struct expr_update);
    expr_update_init(arena, &parsed, update);
    if (legacy)
        update->type_message = expr_legacy_type_message;
    *from = reader.rest;
    return update;
}
