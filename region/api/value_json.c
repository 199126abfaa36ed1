/* SPDX-License-Identifier: Apache-2.0 */
/* See value_json.h. A scalar is encoded straight into the arena; a list or map is gathered from its
 * encoded members. The messages are AWS's, double blanks and wrong articles included. */

#include "region/api/value_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/number.h"

enum { ATTRIBUTE_NAME_MAX = 65535, NUMBER_ECHO_MAX = 256 };

static const char NO_TYPE[] =
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
static const char SEVERAL_TYPES[] = "Supplied AttributeValue has more than one datatypes set, must "
                                    "contain exactly one of the supported datatypes";
static const char TOO_DEEP[] = "Nesting Levels have exceeded supported limits: Attributes in the "
                               "item have nested levels beyond supported limit";
#define INVALID "One or more parameter values were invalid: "

static const char *value_at_depth(struct arena *arena, const json_t *json, uint32_t depth,
                                  struct value *ret);

/* Room for a value of so many payload bytes, its tag and length written; the caller fills payload.
 */
static uint8_t *value_reserve(struct arena *arena, enum value_type type, size_t len,
                              struct value *ret)
{
    size_t head = 1 + varint_len(len);
    uint8_t *at = arena_alloc(arena, head + len);
    at[0] = (uint8_t)type;
    varint_encode(at + 1, len);
    ret->type = type;
    ret->payload = bytes_make(at + head, len);
    ret->whole = bytes_make(at, head + len);
    return at + head;
}

static void value_of_bytes(struct arena *arena, enum value_type type, struct bytes payload,
                           struct value *ret)
{
    uint8_t *to = value_reserve(arena, type, payload.len, ret);
    if (payload.len > 0)
        memcpy(to, payload.at, payload.len);
}

static const char *number_from_text(struct arena *arena, struct bytes text, struct bytes *ret)
{
    struct number number;
    enum number_outcome outcome = number_parse(text, &number);
    if (outcome == NUMBER_OK) {
        uint8_t *to = arena_alloc(arena, NUMBER_ENCODED_MAX);
        *ret = bytes_make(to, number_encode(&number, to));
        return NULL;
    }
    const char *problem = number_outcome_message(outcome);
    if (outcome != NUMBER_NOT_NUMERIC || text.len == 0)
        return problem;
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    buf_append_text(&message, problem);
    buf_append_text(&message, ": ");
    buf_append_bytes(&message, text.len > NUMBER_ECHO_MAX ? bytes_literal("...") : text);
    return bytes_copy_text(arena, buf_view(&message));
}

static uint32_t base64_digit_value(uint8_t c)
{
    if (c >= 'a')
        return c - 'a' + 26U;
    if (c >= 'A')
        return c - 'A' + 0U;
    if (c >= '0')
        return c - '0' + 52U;
    return c == '+' ? 62U : 63U;
}

/* The text has passed the check of a blob, so it is whole quartets of digits and proper padding. */
static size_t base64_decode(struct bytes text, uint8_t *to)
{
    size_t len = 0;
    for (size_t i = 0; i + 4 <= text.len; i += 4) {
        const uint8_t *at = text.at + i;
        uint32_t bits = base64_digit_value(at[0]) << 18 | base64_digit_value(at[1]) << 12;
        if (at[2] != '=')
            bits |= base64_digit_value(at[2]) << 6;
        if (at[3] != '=')
            bits |= base64_digit_value(at[3]);
        to[len++] = (uint8_t)(bits >> 16);
        if (at[2] != '=')
            to[len++] = (uint8_t)(bits >> 8);
        if (at[3] != '=')
            to[len++] = (uint8_t)bits;
    }
    return len;
}

static struct bytes blob_from_text(struct arena *arena, struct bytes text)
{
    uint8_t *to = arena_alloc(arena, text.len / 4 * 3 + 1);
    return bytes_make(to, base64_decode(text, to));
}

static int compare_elements(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

static const char *set_duplicates(struct arena *arena, enum value_type type, const json_t *json)
{
    if (type == VALUE_NS)
        return "Input collection contains duplicates";
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    buf_append_text(&message, INVALID "Input collection [");
    size_t i;
    json_t *element;
    json_array_foreach(json, i, element)
    {
        if (i > 0)
            buf_append_text(&message, ", ");
        if (message.len > 1024) {
            buf_append_text(&message, "...");
            break;
        }
        struct bytes text = json_text(element);
        buf_append_bytes(&message, text.len > 1024 ? bytes_literal("...") : text);
    }
    buf_append_text(&message, type == VALUE_BS ? "]of type BS contains duplicates."
                                               : "] contains duplicates.");
    return bytes_copy_text(arena, buf_view(&message));
}

static const char *element_from_json(struct arena *arena, enum value_type type, const json_t *json,
                                     struct bytes *ret)
{
    if (json_is_null(json))
        return type == VALUE_SS   ? INVALID "An string set may not have a null string as a member"
               : type == VALUE_NS ? INVALID "An number set may not have a null number as a member"
                                  : INVALID "Binary sets may not contain null values";
    if (type == VALUE_NS)
        return number_from_text(arena, json_text(json), ret);
    *ret = type == VALUE_BS ? blob_from_text(arena, json_text(json)) : json_text(json);
    return NULL;
}

static const char *set_from_json(struct arena *arena, enum value_type type, const json_t *json,
                                 struct value *ret)
{
    size_t count = json_array_size(json);
    if (count == 0)
        return type == VALUE_SS   ? INVALID "An string set  may not be empty"
               : type == VALUE_NS ? INVALID "An number set  may not be empty"
                                  : INVALID "Binary sets should not be empty";
    struct bytes *elements = arena_array(arena, struct bytes, count);
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        const char *problem = element_from_json(arena, type, json_array_get(json, i), &elements[i]);
        if (problem)
            return problem;
        len += varint_len(elements[i].len) + elements[i].len;
    }
    qsort(elements, count, sizeof(*elements), compare_elements);
    uint8_t *to = value_reserve(arena, type, len, ret);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && bytes_equal(elements[i - 1], elements[i]))
            return set_duplicates(arena, type, json);
        to += varint_encode(to, elements[i].len);
        if (elements[i].len > 0)
            memcpy(to, elements[i].at, elements[i].len);
        to += elements[i].len;
    }
    return NULL;
}

static const char *list_from_json(struct arena *arena, const json_t *json, uint32_t depth,
                                  struct value *ret)
{
    size_t count = json_array_size(json);
    struct value *values = arena_array(arena, struct value, count ? count : 1);
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        const char *problem = value_at_depth(arena, json_array_get(json, i), depth, &values[i]);
        if (problem)
            return problem;
        len += values[i].whole.len;
    }
    uint8_t *to = value_reserve(arena, VALUE_L, len, ret);
    for (size_t i = 0; i < count; i++) {
        memcpy(to, values[i].whole.at, values[i].whole.len);
        to += values[i].whole.len;
    }
    return NULL;
}

const char *attribute_name_problem(struct bytes name)
{
    if (name.len == 0)
        return "Empty attribute name";
    if (name.len > ATTRIBUTE_NAME_MAX)
        return "Attribute name is too large, must be less than 65536 bytes";
    return NULL;
}

static const char *invalid(struct arena *arena, const char *problem)
{
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    buf_printf(&message, INVALID "%s", problem);
    return bytes_copy_text(arena, buf_view(&message));
}

/* The members of an object as attributes, unsorted. */
static const char *attributes_from_json(struct arena *arena, const json_t *json, uint32_t depth,
                                        struct attribute **ret, size_t *ret_bytes)
{
    size_t size = json_object_size(json);
    struct attribute *attributes = arena_array(arena, struct attribute, size ? size : 1);
    size_t count = 0;
    size_t bytes = 0;
    const char *name;
    size_t len;
    json_t *value;
    json_object_keylen_foreach((json_t *)(uintptr_t)json, name, len, value)
    {
        const char *problem = attribute_name_problem(bytes_make(name, len));
        if (problem)
            return invalid(arena, problem);
        struct attribute *attribute = &attributes[count++];
        attribute->name = bytes_make(name, len);
        problem = value_at_depth(arena, value, depth, &attribute->value);
        if (problem)
            return problem;
        bytes += VARINT_LEN_MAX + len + attribute->value.whole.len;
    }
    check(count == size);
    *ret = attributes;
    *ret_bytes = bytes;
    return NULL;
}

static const char *map_from_json(struct arena *arena, const json_t *json, uint32_t depth,
                                 struct value *ret)
{
    struct attribute *attributes;
    size_t bytes;
    const char *problem = attributes_from_json(arena, json, depth, &attributes, &bytes);
    if (problem)
        return problem;
    struct buf payload cleanup(buf_deinit);
    buf_init(&payload);
    buf_reserve(&payload, bytes + 1);
    bool distinct = attributes_write_sorted(&payload, attributes, json_object_size(json));
    check(distinct); /* the parser refuses a name that comes twice */
    value_of_bytes(arena, VALUE_M, buf_view(&payload), ret);
    return NULL;
}

static const char *typed_value(struct arena *arena, enum value_type type, const json_t *json,
                               uint32_t depth, struct value *ret)
{
    switch (type) {
    case VALUE_S:
        value_of_bytes(arena, type, json_text(json), ret);
        return NULL;
    case VALUE_N: {
        struct bytes encoded;
        const char *problem = number_from_text(arena, json_text(json), &encoded);
        if (!problem)
            value_of_bytes(arena, type, encoded, ret);
        return problem;
    }
    case VALUE_B:
        value_of_bytes(arena, type, blob_from_text(arena, json_text(json)), ret);
        return NULL;
    case VALUE_BOOL: {
        uint8_t byte = json_is_true(json);
        value_of_bytes(arena, type, bytes_make(&byte, 1), ret);
        return NULL;
    }
    case VALUE_NULL:
        if (!json_is_true(json))
            return INVALID "Null attribute value types must have the value of true";
        value_of_bytes(arena, type, BYTES_NONE, ret);
        return NULL;
    case VALUE_L:
    case VALUE_M:
        return type == VALUE_L ? list_from_json(arena, json, depth + 1, ret)
                               : map_from_json(arena, json, depth + 1, ret);
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS:
        return set_from_json(arena, type, json, ret);
    }
    unreachable();
}

/* depth: lists and maps around this value. */
static const char *value_at_depth(struct arena *arena, const json_t *json, uint32_t depth,
                                  struct value *ret)
{
    if (depth >= ITEM_DEPTH_MAX)
        return TOO_DEEP;
    uint32_t types = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)json, name, member)
    {
        enum value_type type;
        if (json_is_null(member) || !value_type_find(bytes_text(name), &type))
            continue;
        types++;
        const char *problem = typed_value(arena, type, member, depth, ret);
        if (problem)
            return problem;
    }
    return types == 0 ? NO_TYPE : types > 1 ? SEVERAL_TYPES : NULL;
}

const char *value_from_json(struct arena *arena, const json_t *json, struct value *ret)
{
    return value_at_depth(arena, json, 0, ret);
}

const char *item_from_json(struct arena *arena, const json_t *json, struct bytes *ret)
{
    struct attribute *attributes;
    size_t bytes;
    const char *problem = attributes_from_json(arena, json, 0, &attributes, &bytes);
    if (problem)
        return problem;
    struct buf item cleanup(buf_deinit);
    buf_init(&item);
    buf_reserve(&item, bytes + 1);
    item_begin(&item);
    bool distinct = attributes_write_sorted(&item, attributes, json_object_size(json));
    check(distinct);
    *ret = bytes_copy(arena, buf_view(&item));
    return NULL;
}
