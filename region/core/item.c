/* SPDX-License-Identifier: Apache-2.0 */
/* Items as bytes: finding, checking, measuring and writing them. Readers walk the bytes in place;
 * only item_check distrusts them, and it is the only door for bytes that we did not write
 * ourselves. */

#include "region/core/item.h"

#include <stdlib.h>

#include "conflict/base/check.h"
#include "region/core/number.h"

static const char *const type_names[] = {
    [VALUE_S] = "S",       [VALUE_N] = "N",  [VALUE_B] = "B", [VALUE_BOOL] = "BOOL",
    [VALUE_NULL] = "NULL", [VALUE_L] = "L",  [VALUE_M] = "M", [VALUE_SS] = "SS",
    [VALUE_NS] = "NS",     [VALUE_BS] = "BS"};

const char *value_type_name(enum value_type type)
{
    check(type >= VALUE_S);
    check(type <= VALUE_BS);
    return type_names[type];
}

bool value_type_find(struct bytes name, enum value_type *ret)
{
    for (enum value_type type = VALUE_S; type <= VALUE_BS; type++) {
        if (bytes_is(name, type_names[type])) {
            *ret = type;
            return true;
        }
    }
    return false;
}

struct bytes item_attributes(struct bytes item)
{
    return item.len ? bytes_make(item.at + 1, item.len - 1) : BYTES_NONE;
}

bool attributes_find(struct bytes attributes, struct bytes name, struct value *ret)
{
    struct attribute attribute;
    uint8_t first = name.len ? name.at[0] : 0;
    while (attribute_take(&attributes, &attribute)) {
        /* Most names differ in their first byte. */
        if (attribute.name.len && attribute.name.at[0] < first)
            continue;
        int order = bytes_compare(attribute.name, name);
        if (order == 0) {
            *ret = attribute.value;
            return true;
        }
        if (order > 0)
            return false;
    }
    return false;
}

bool item_find(struct bytes item, struct bytes name, struct value *ret)
{
    return attributes_find(item_attributes(item), name, ret);
}

/* Checking. */

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Well-formed UTF-8 (Unicode 15, table 3-7): no surrogates, no overlong forms, at most U+10FFFF. */
static bool utf8_check(struct bytes text)
{
    size_t i = 0;
    while (i < text.len) {
        const uint8_t *at = text.at + i;
        size_t left = text.len - i;
        uint64_t eight;
        if (left >= 8 && (memcpy(&eight, at, 8), (eight & 0x8080808080808080u) == 0)) {
            i += 8;
        } else if (at[0] < 0x80) {
            i++;
        } else if (at[0] >= 0xc2 && at[0] <= 0xdf) {
            if (left < 2 || !is_continuation(at[1]))
                return false;
            i += 2;
        } else if (at[0] >= 0xe0 && at[0] <= 0xef) {
            if (left < 3 || !is_continuation(at[1]) || !is_continuation(at[2]) ||
                (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f))
                return false;
            i += 3;
        } else if (at[0] >= 0xf0 && at[0] <= 0xf4) {
            if (left < 4 || !is_continuation(at[1]) || !is_continuation(at[2]) ||
                !is_continuation(at[3]) || (at[0] == 0xf0 && at[1] < 0x90) ||
                (at[0] == 0xf4 && at[1] > 0x8f))
                return false;
            i += 4;
        } else {
            return false;
        }
    }
    return true;
}

static bool scalar_check(enum value_type type, struct bytes payload)
{
    struct number number;
    if (type == VALUE_S || type == VALUE_SS)
        return utf8_check(payload);
    if (type == VALUE_N || type == VALUE_NS)
        return number_decode(payload, &number);
    return true;
}

static bool set_check(enum value_type type, struct bytes rest)
{
    struct bytes before = BYTES_NONE, element;
    bool first = true;
    while (rest.len) {
        if (!bytes_take_prefixed(&rest, &element) || !scalar_check(type, element))
            return false;
        if (!first && bytes_compare(before, element) >= 0)
            return false;
        before = element;
        first = false;
    }
    return !first;
}

static bool attributes_check(struct bytes rest, int level);

/* Takes one value off the front of *rest; level is its own, 1 for an attribute of the item. */
static bool value_check(struct bytes *rest, int level)
{
    uint8_t tag;
    struct bytes payload;
    if (level > ITEM_DEPTH_MAX || !bytes_take_u8(rest, &tag) ||
        !bytes_take_prefixed(rest, &payload))
        return false;
    if (tag < VALUE_S || tag > VALUE_BS)
        return false;
    switch ((enum value_type)tag) {
    case VALUE_S:
    case VALUE_N:
    case VALUE_B:
        return scalar_check((enum value_type)tag, payload);
    case VALUE_BOOL:
        return payload.len == 1 && payload.at[0] <= 1;
    case VALUE_NULL:
        return payload.len == 0;
    case VALUE_L:
        while (payload.len) {
            if (!value_check(&payload, level + 1))
                return false;
        }
        return true;
    case VALUE_M:
        return attributes_check(payload, level + 1);
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS:
        return set_check((enum value_type)tag, payload);
    }
    return false;
}

static bool attributes_check(struct bytes rest, int level)
{
    struct bytes before = BYTES_NONE, name;
    for (bool first = true; rest.len; first = false) {
        if (!bytes_take_prefixed(&rest, &name) || !utf8_check(name))
            return false;
        if (!first && bytes_compare(before, name) >= 0)
            return false;
        if (!value_check(&rest, level))
            return false;
        before = name;
    }
    return true;
}

bool item_check(struct bytes item)
{
    return item.len && item.at[0] == ITEM_FORMAT && attributes_check(item_attributes(item), 1);
}

bool value_take_checked(struct bytes *rest, struct value *ret)
{
    struct bytes after = *rest;
    return value_check(&after, 1) && value_take(rest, ret);
}

/* Measuring. */

uint32_t value_depth(struct value value)
{
    uint32_t deepest = 0;
    struct bytes rest = value.payload;
    struct value element;
    struct attribute attribute;
    if (value.type == VALUE_L) {
        while (value_take(&rest, &element)) {
            uint32_t depth = value_depth(element);
            deepest = depth > deepest ? depth : deepest;
        }
    } else if (value.type == VALUE_M) {
        while (attribute_take(&rest, &attribute)) {
            uint32_t depth = value_depth(attribute.value);
            deepest = depth > deepest ? depth : deepest;
        }
    }
    return 1 + deepest;
}

/* Names and values; per_attribute is what AWS adds for each inside a map. */
static size_t attributes_size(struct bytes rest, size_t per_attribute)
{
    struct attribute attribute;
    size_t size = 0;
    while (attribute_take(&rest, &attribute))
        size += attribute.name.len + value_size(attribute.value) + per_attribute;
    return size;
}

size_t value_size(struct value value)
{
    /* AWS, "Item sizes and formats": 3 bytes for a list or map, and 1 for each of its elements. */
    enum { CONTAINER = 3, ELEMENT = 1 };
    struct bytes rest = value.payload;
    struct bytes element;
    struct value inner;
    size_t size = 0;
    switch (value.type) {
    case VALUE_S:
    case VALUE_B:
        return rest.len;
    case VALUE_N:
        return number_size(rest);
    case VALUE_BOOL:
    case VALUE_NULL:
        return 1;
    case VALUE_L:
        while (value_take(&rest, &inner))
            size += value_size(inner) + ELEMENT;
        return size + CONTAINER;
    case VALUE_M:
        return attributes_size(rest, ELEMENT) + CONTAINER;
    case VALUE_SS:
    case VALUE_BS:
        while (element_take(&rest, &element))
            size += element.len;
        return size;
    case VALUE_NS:
        while (element_take(&rest, &element))
            size += number_size(element);
        return size;
    }
    return 0;
}

size_t item_size(struct bytes item)
{
    return attributes_size(item_attributes(item), 0);
}

/* Writing. */

void item_begin(struct buf *to)
{
    buf_append_u8(to, ITEM_FORMAT);
}

void value_write(struct buf *to, enum value_type type, struct bytes payload)
{
    buf_append_u8(to, (uint8_t)type);
    buf_append_prefixed(to, payload);
}

void attribute_write(struct buf *to, struct bytes name, struct value value)
{
    buf_append_prefixed(to, name);
    buf_append_bytes(to, value.whole);
}

size_t value_begin(struct buf *to, enum value_type type)
{
    buf_append_u8(to, (uint8_t)type);
    return to->len;
}

void value_end(struct buf *to, size_t payload_start)
{
    uint8_t prefix[VARINT_LEN_MAX];
    size_t payload_len = to->len - payload_start;
    size_t len = varint_encode(prefix, payload_len);
    buf_reserve(to, len);
    uint8_t *payload = to->at + payload_start;
    memmove(payload + len, payload, payload_len);
    memcpy(payload, prefix, len);
    to->len += len;
}

static int attribute_order(const void *a, const void *b)
{
    const struct attribute *left = a, *right = b;
    return bytes_compare(left->name, right->name);
}

/* Most items have few attributes, which are in order sooner than qsort has begun. */
static void attributes_sort(struct attribute *at, size_t count)
{
    enum { FEW = 16 };
    if (count > FEW) {
        qsort(at, count, sizeof(*at), attribute_order);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct attribute moving = at[i];
        size_t to = i;
        for (; to > 0 && bytes_compare(at[to - 1].name, moving.name) > 0; to--)
            at[to] = at[to - 1];
        if (to < i)
            at[to] = moving;
    }
}

bool attributes_write_sorted(struct buf *to, struct attribute *at, size_t count)
{
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++)
        sorted = bytes_compare(at[i - 1].name, at[i].name) < 0;
    if (!sorted)
        attributes_sort(at, count);
    for (size_t i = 1; i < count; i++) {
        if (bytes_equal(at[i - 1].name, at[i].name))
            return false;
    }
    for (size_t i = 0; i < count; i++)
        attribute_write(to, at[i].name, at[i].value);
    return true;
}

static int element_order(const void *a, const void *b)
{
    const struct bytes *left = a, *right = b;
    return bytes_compare(*left, *right);
}

bool set_write_sorted(struct buf *to, enum value_type type, struct bytes *at, size_t count)
{
    if (count > 1)
        qsort(at, count, sizeof(*at), element_order);
    for (size_t i = 1; i < count; i++) {
        if (bytes_equal(at[i - 1], at[i]))
            return false;
    }
    size_t start = value_begin(to, type);
    for (size_t i = 0; i < count; i++)
        buf_append_prefixed(to, at[i]);
    value_end(to, start);
    return true;
}

int value_compare(struct value a, struct value b)
{
    check(a.type == b.type);
    check(a.type == VALUE_S || a.type == VALUE_N || a.type == VALUE_B);
    return bytes_compare(a.payload, b.payload);
}
