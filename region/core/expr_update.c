/* SPDX-License-Identifier: Apache-2.0 */
/* Updates in two steps. First every action is worked out against the item as it was, into an edit:
 * a path and the value that it is to have, or none. Then one walk along the item and the edits,
 * both sorted, writes the new item. What no edit touches is copied as whole runs of bytes. */

#include <stdlib.h>

#include "conflict/base/check.h"
#include "region/core/expr_internal.h"
#include "region/core/number.h"

static const char message_path[] =
    "The document path provided in the update expression is invalid for update";
static const char message_missing[] =
    "The provided expression refers to an attribute that does not exist in the item";
static const char message_type[] = "An operand in the update expression has an incorrect data type";
static const char message_size[] = "Item size to update has exceeded the maximum allowed size";
static const char message_depth[] =
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "
    "beyond supported limit";

/* More encoded bytes than any item within AWS's size limit has (at worst two for one that counts):
 * expressions that repeat a big value stop here, before they have filled the memory. */
enum { ENCODED_MAX = 2 * ITEM_SIZE_MAX + 64 * 1024 };

struct edit {
    const struct expr_path *path;
    bool remove;
    struct value value;
};

struct applying {
    const struct expr_update *update;
    struct arena *arena;
    struct bytes attributes; /* as they were */
};

static int action_order(const void *a, const void *b)
{
    const struct expr_action *left = a, *right = b;
    return expr_path_compare(&left->path, &right->path);
}

void expr_update_init(struct arena *arena, const struct expr_parsed *parsed,
                      struct expr_update *ret)
{
    *ret = (struct expr_update){.type_message = message_type};
    ret->actions = arena_array(arena, struct expr_action, parsed->action_count);
    for (const struct expr_action *action = parsed->actions; action; action = action->next)
        ret->actions[ret->count++] = *action;
    qsort(ret->actions, ret->count, sizeof(*ret->actions), action_order);
    expr_projection_init(parsed->paths, parsed->path_count, &ret->touched);
}

const char *expr_update_check_key(const struct expr_update *update, const struct key_schema *key,
                                  struct arena *arena)
{
    for (uint32_t i = 0; i < update->count; i++) {
        struct bytes name = update->actions[i].path.steps[0].name;
        if (bytes_is(name, key->hash_name) || (key->has_range && bytes_is(name, key->range_name)))
            return expr_message(arena,
                                "One or more parameter values were invalid: Cannot update "
                                "attribute %.*s. This attribute is part of the key",
                                EXPR_TEXT(name));
    }
    return NULL;
}

/* Values. */

/* Room for a value whose payload is at most len bytes; returns where the payload goes. */
static uint8_t *value_reserve(struct arena *arena, size_t len)
{
    return (uint8_t *)arena_alloc(arena, 1 + VARINT_LEN_MAX + len) + 1 + VARINT_LEN_MAX;
}

/* Puts tag and length in front of such a payload. */
static struct value value_finish(enum value_type type, uint8_t *payload, size_t len)
{
    uint8_t *start = payload - varint_len(len) - 1;
    start[0] = (uint8_t)type;
    varint_encode(start + 1, len);
    return (struct value){type, {payload, len}, {start, (size_t)(payload - start) + len}};
}

static const char *value_of_sum(struct applying *applying, bool subtract, struct value a,
                                struct value b, struct value *ret)
{
    struct number left, right, sum;
    if (a.type != VALUE_N || b.type != VALUE_N)
        return applying->update->type_message;
    check(number_decode(a.payload, &left));
    check(number_decode(b.payload, &right));
    enum number_outcome outcome =
        subtract ? number_subtract(&left, &right, &sum) : number_add(&left, &right, &sum);
    if (outcome == NUMBER_TOO_PRECISE)
        outcome = NUMBER_OVERFLOW; /* AWS says so of a sum that would have to be rounded */
    if (outcome != NUMBER_OK)
        return number_outcome_message(outcome);
    uint8_t *payload = value_reserve(applying->arena, NUMBER_ENCODED_MAX);
    *ret = value_finish(VALUE_N, payload, number_encode(&sum, payload));
    return NULL;
}

static const char *value_of_lists(struct applying *applying, struct value a, struct value b,
                                  struct value *ret)
{
    if (a.type != VALUE_L || b.type != VALUE_L)
        return applying->update->type_message;
    size_t len = a.payload.len + b.payload.len;
    if (len > ENCODED_MAX)
        return message_size;
    uint8_t *payload = value_reserve(applying->arena, len);
    if (a.payload.len)
        memcpy(payload, a.payload.at, a.payload.len);
    if (b.payload.len)
        memcpy(payload + a.payload.len, b.payload.at, b.payload.len);
    *ret = value_finish(VALUE_L, payload, len);
    return NULL;
}

static uint8_t *element_copy(uint8_t *to, struct bytes element)
{
    to += varint_encode(to, element.len);
    if (element.len)
        memcpy(to, element.at, element.len);
    return to + element.len;
}

/* Elements of a, and of b too if `all`, else those of a that are not in b. */
static struct value value_of_sets(struct arena *arena, struct value a, struct value b, bool all)
{
    uint8_t *payload = value_reserve(arena, a.payload.len + (all ? b.payload.len : 0));
    uint8_t *to = payload;
    struct bytes left, right;
    bool more_left = element_take(&a.payload, &left);
    bool more_right = element_take(&b.payload, &right);
    while (more_left || (all && more_right)) {
        int order = !more_right ? -1 : !more_left ? 1 : bytes_compare(left, right);
        if (order < 0 || (order == 0 && all))
            to = element_copy(to, left);
        else if (order > 0 && all)
            to = element_copy(to, right);
        if (order <= 0)
            more_left = element_take(&a.payload, &left);
        if (order >= 0)
            more_right = element_take(&b.payload, &right);
    }
    return value_finish(a.type, payload, (size_t)(to - payload));
}

/* What a SET's right side is worth. */
static const char *evaluate(struct applying *applying, const struct expr_node *node,
                            struct value *ret)
{
    struct value a, b;
    if (node->kind == EXPR_VALUE) {
        *ret = node->value;
        return NULL;
    }
    if (node->kind == EXPR_PATH)
        return expr_path_find(&node->path, applying->attributes, ret) ? NULL : message_missing;
    if (node->kind == EXPR_FUNCTION && node->function == FUNCTION_IF_NOT_EXISTS) {
        if (expr_path_find(&node->args->path, applying->attributes, ret))
            return NULL;
        return evaluate(applying, node->args->next, ret);
    }
    const char *error = evaluate(applying, node->args, &a);
    if (!error)
        error = evaluate(applying, node->args->next, &b);
    if (error)
        return error;
    if (node->kind == EXPR_FUNCTION)
        return value_of_lists(applying, a, b, ret);
    return value_of_sum(applying, node->kind == EXPR_MINUS, a, b, ret);
}

/* Edits. */

static bool has_parent(struct applying *applying, const struct expr_path *path)
{
    struct expr_path parent = {path->steps, path->count - 1};
    struct value value;
    return !parent.count ||
           (expr_path_find(&parent, applying->attributes, &value) &&
            value.type == (path->steps[parent.count].is_index ? VALUE_L : VALUE_M));
}

static const char *add(struct applying *applying, struct value old, struct value operand,
                       struct value *ret)
{
    if (operand.type == VALUE_N)
        return value_of_sum(applying, false, old, operand, ret);
    if (operand.type == VALUE_L) /* of AttributeUpdates only */
        return value_of_lists(applying, old, operand, ret);
    if (old.type != operand.type)
        return applying->update->type_message;
    *ret = value_of_sets(applying->arena, old, operand, true);
    return NULL;
}

/* Works one action out. *ret_any is false when it changes nothing. */
static const char *edit_make(struct applying *applying, const struct expr_action *action,
                             struct edit *ret, bool *ret_any)
{
    struct value old = {0};
    bool exists = expr_path_find(&action->path, applying->attributes, &old);
    *ret = (struct edit){.path = &action->path};
    *ret_any = true;
    if (!exists && !has_parent(applying, &action->path))
        return message_path;
    switch (action->kind) {
    case ACTION_SET:
        return evaluate(applying, action->operand, &ret->value);
    case ACTION_REMOVE:
        ret->remove = true;
        *ret_any = exists;
        return NULL;
    case ACTION_ADD:
        ret->value = action->operand->value;
        return exists ? add(applying, old, action->operand->value, &ret->value) : NULL;
    case ACTION_DELETE:
        *ret_any = exists;
        if (!exists)
            return NULL;
        if (old.type != action->operand->value.type)
            return applying->update->type_message;
        ret->value = value_of_sets(applying->arena, old, action->operand->value, false);
        ret->remove = ret->value.payload.len == 0;
        return NULL;
    }
    unreachable();
}

static const char *edits_make(struct applying *applying, struct edit *edits, uint32_t *ret_count)
{
    const struct expr_update *update = applying->update;
    size_t len = 0;
    *ret_count = 0;
    for (uint32_t i = 0; i < update->count; i++) {
        struct edit edit;
        bool any;
        const char *error = edit_make(applying, &update->actions[i], &edit, &any);
        if (error)
            return error;
        if (!any)
            continue;
        if (!edit.remove) {
            len += edit.value.whole.len;
            if (len > ENCODED_MAX)
                return message_size;
            if (edit.path->count - 1 + value_depth(edit.value) > ITEM_DEPTH_MAX)
                return message_depth;
        }
        edits[(*ret_count)++] = edit;
    }
    return NULL;
}

/* Writing. */

struct cursor {
    const struct edit *edits; /* what is left of them, all alike before `depth` */
    uint32_t count;
    uint32_t depth;
    const uint8_t *run; /* old bytes from here on are still to be copied */
};

static const struct expr_step *cursor_step(const struct cursor *cursor)
{
    return &cursor->edits[0].path->steps[cursor->depth];
}

static void cursor_copy(struct cursor *cursor, const uint8_t *end, struct buf *to)
{
    if (end > cursor->run)
        buf_append(to, cursor->run, (size_t)(end - cursor->run));
    cursor->run = end;
}

static void write_attributes(struct cursor cursor, struct bytes attributes, struct buf *to);
static void write_list(struct cursor cursor, struct bytes rest, struct buf *to);

/* Writes what becomes of `old`, and moves past the edits that say so. The name of an attribute, if
 * any, is written first. */
static void write_edited(struct cursor *cursor, const struct bytes *name, struct value old,
                         struct buf *to)
{
    const struct edit *edit = &cursor->edits[0];
    uint32_t len = 1;
    while (len < cursor->count &&
           expr_path_shares(edit->path, cursor->edits[len].path, cursor->depth))
        len++;
    bool leaf = edit->path->count == cursor->depth + 1;
    cursor->edits += len;
    cursor->count -= len;
    if (leaf && edit->remove)
        return;
    if (name)
        buf_append_prefixed(to, *name);
    if (leaf) {
        buf_append_bytes(to, edit->value.whole);
        return;
    }
    struct cursor inner = {edit, len, cursor->depth + 1, old.payload.at};
    size_t start = value_begin(to, old.type);
    if (old.type == VALUE_L)
        write_list(inner, old.payload, to);
    else
        write_attributes(inner, old.payload, to);
    value_end(to, start);
}

static void write_attributes(struct cursor cursor, struct bytes attributes, struct buf *to)
{
    struct attribute attribute;
    const uint8_t *end = attributes.len ? attributes.at + attributes.len : attributes.at;
    while (cursor.count && attributes.len) {
        const uint8_t *start = attributes.at;
        check(attribute_take(&attributes, &attribute));
        int order = -1;
        while (cursor.count &&
               (order = bytes_compare(cursor_step(&cursor)->name, attribute.name)) <= 0) {
            struct bytes name = cursor_step(&cursor)->name;
            cursor_copy(&cursor, start, to);
            if (order == 0)
                cursor.run = attributes.at;
            write_edited(&cursor, &name, attribute.value, to);
        }
    }
    cursor_copy(&cursor, end, to);
    while (cursor.count) {
        struct bytes name = cursor_step(&cursor)->name;
        write_edited(&cursor, &name, (struct value){0}, to);
    }
}

/* Indices are those of the list as it was; beyond its end they append, in their order. */
static void write_list(struct cursor cursor, struct bytes rest, struct buf *to)
{
    struct value element;
    const uint8_t *end = rest.len ? rest.at + rest.len : rest.at;
    for (uint32_t index = 0; cursor.count && rest.len; index++) {
        const uint8_t *start = rest.at;
        check(value_take(&rest, &element));
        if (cursor_step(&cursor)->index != index)
            continue;
        cursor_copy(&cursor, start, to);
        cursor.run = rest.at;
        write_edited(&cursor, NULL, element, to);
    }
    cursor_copy(&cursor, end, to);
    while (cursor.count)
        write_edited(&cursor, NULL, (struct value){0}, to);
}

const char *expr_update_apply(const struct expr_update *update, struct bytes item, struct bytes key,
                              struct arena *arena, struct buf *to)
{
    struct applying applying = {update, arena, item_attributes(item.len ? item : key)};
    struct edit *edits = arena_array(arena, struct edit, update->count);
    uint32_t count;
    const char *error = edits_make(&applying, edits, &count);
    if (error)
        return error;
    struct cursor cursor = {edits, count, 0, applying.attributes.at};
    item_begin(to);
    write_attributes(cursor, applying.attributes, to);
    return NULL;
}

bool expr_update_creates(const struct expr_update *update)
{
    for (uint32_t i = 0; i < update->count; i++) {
        if (update->actions[i].kind == ACTION_SET || update->actions[i].kind == ACTION_ADD)
            return true;
    }
    return false;
}

void expr_update_touched(const struct expr_update *update, struct bytes item, struct buf *to)
{
    expr_project(&update->touched, item, to);
}
