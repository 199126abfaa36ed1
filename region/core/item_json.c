/* SPDX-License-Identifier: Apache-2.0 */
/* An item's JSON, written in one pass straight from its bytes. Room for the longest form of each
 * piece is reserved before it is written, so the inner loops check nothing. */

#include "region/core/item_json.h"

#include <string.h>

#include "conflict/base/check.h"
#include "region/core/number.h"

static const char hex[] = "0123456789abcdef";

/* Whether one of eight bytes must be escaped: a control, a quote or a backslash. Each term leaves
 * the high bit of a byte set when that byte, being ASCII, is below 0x20, or equals the character
 * (Mycroft's zero-byte test, which may also flag the byte above a match: such a run only goes the
 * slow way). */
static bool has_escape(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t high = 0x8080808080808080u;
    uint64_t quote = eight ^ (ones * '"');
    uint64_t backslash = eight ^ (ones * '\\');
    uint64_t flags = (eight - ones * 0x20) | (quote - ones) | (backslash - ones);
    return (flags & ~eight & high) != 0;
}

static uint8_t *escape(uint8_t *to, uint8_t byte)
{
    static const char short_forms[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    *to++ = '\\';
    for (size_t i = 0; i + 1 < sizeof(short_forms); i += 2) {
        if (byte == (uint8_t)short_forms[i]) {
            *to++ = (uint8_t)short_forms[i + 1];
            return to;
        }
    }
    memcpy(to, "u00", 3);
    to[3] = (uint8_t)hex[byte >> 4];
    to[4] = (uint8_t)hex[byte & 15];
    return to + 5;
}

/* How many bytes from `from` on go as they are. */
static size_t plain_len(struct bytes text, size_t from)
{
    size_t i = from;
    uint64_t eight;
    while (i + 8 <= text.len && (memcpy(&eight, text.at + i, 8), !has_escape(eight)))
        i += 8;
    while (i < text.len && text.at[i] >= 0x20 && text.at[i] != '"' && text.at[i] != '\\')
        i++;
    return i - from;
}

void json_write_string(struct buf *to, struct bytes text)
{
    enum { ESCAPED_MAX = 6 };
    size_t i = 0;
    uint8_t *at = buf_reserve(to, 1);
    *at = '"';
    to->len++;
    for (;;) {
        size_t len = plain_len(text, i);
        at = buf_reserve(to, len + ESCAPED_MAX);
        if (len)
            memcpy(at, text.at + i, len);
        at += len;
        i += len;
        if (i == text.len)
            break;
        at = escape(at, text.at[i++]);
        to->len = (size_t)(at - to->at);
    }
    *at++ = '"';
    to->len = (size_t)(at - to->at);
}

/* RFC 4648, section 4, in quotes. */
static void json_write_base64(struct buf *to, struct bytes from)
{
    static const char table[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t *start = buf_reserve(to, (from.len + 2) / 3 * 4 + 2);
    uint8_t *at = start;
    *at++ = '"';
    size_t i = 0;
    for (; i + 3 <= from.len; i += 3) {
        uint32_t three =
            (uint32_t)from.at[i] << 16 | (uint32_t)from.at[i + 1] << 8 | from.at[i + 2];
        at[0] = (uint8_t)table[three >> 18];
        at[1] = (uint8_t)table[three >> 12 & 63];
        at[2] = (uint8_t)table[three >> 6 & 63];
        at[3] = (uint8_t)table[three & 63];
        at += 4;
    }
    if (i < from.len) {
        bool two = from.len - i == 2;
        uint32_t rest = (uint32_t)from.at[i] << 16 | (two ? (uint32_t)from.at[i + 1] << 8 : 0);
        at[0] = (uint8_t)table[rest >> 18];
        at[1] = (uint8_t)table[rest >> 12 & 63];
        at[2] = two ? (uint8_t)table[rest >> 6 & 63] : '=';
        at[3] = '=';
        at += 4;
    }
    *at++ = '"';
    to->len += (size_t)(at - start);
}

static void json_write_number(struct buf *to, struct bytes encoded)
{
    uint8_t *at = buf_reserve(to, NUMBER_TEXT_MAX + 2);
    at[0] = '"';
    size_t len = number_format_encoded(encoded, (char *)at + 1);
    at[len + 1] = '"';
    to->len += len + 2;
}

static void json_write_scalar(struct buf *to, enum value_type type, struct bytes payload)
{
    if (type == VALUE_N || type == VALUE_NS)
        json_write_number(to, payload);
    else if (type == VALUE_B || type == VALUE_BS)
        json_write_base64(to, payload);
    else
        json_write_string(to, payload);
}

static void json_write_set(struct buf *to, enum value_type type, struct bytes rest)
{
    struct bytes element;
    uint8_t before = '[';
    buf_append_u8(to, before);
    while (element_take(&rest, &element)) {
        if (before == ',')
            buf_append_u8(to, before);
        json_write_scalar(to, type, element);
        before = ',';
    }
    buf_append_u8(to, ']');
}

static void json_write_list(struct buf *to, struct bytes rest)
{
    struct value element;
    bool first = true;
    buf_append_u8(to, '[');
    while (value_take(&rest, &element)) {
        if (!first)
            buf_append_u8(to, ',');
        value_write_json(to, element);
        first = false;
    }
    buf_append_u8(to, ']');
}

/* {"S": and so on, with its length in front. */
static const char openings[][10] = {
    [VALUE_S] = "\5{\"S\":",        [VALUE_N] = "\5{\"N\":",        [VALUE_B] = "\5{\"B\":",
    [VALUE_BOOL] = "\10{\"BOOL\":", [VALUE_NULL] = "\10{\"NULL\":", [VALUE_L] = "\5{\"L\":",
    [VALUE_M] = "\5{\"M\":",        [VALUE_SS] = "\6{\"SS\":",      [VALUE_NS] = "\6{\"NS\":",
    [VALUE_BS] = "\6{\"BS\":"};

void value_write_json(struct buf *to, struct value value)
{
    check(value.type >= VALUE_S);
    check(value.type <= VALUE_BS);
    const char *opening = openings[value.type];
    buf_append(to, opening + 1, (size_t)opening[0]);
    switch (value.type) {
    case VALUE_S:
    case VALUE_N:
    case VALUE_B:
        json_write_scalar(to, value.type, value.payload);
        break;
    case VALUE_BOOL:
        buf_append_text(to, value.payload.at[0] ? "true" : "false");
        break;
    case VALUE_NULL:
        buf_append_text(to, "true");
        break;
    case VALUE_L:
        json_write_list(to, value.payload);
        break;
    case VALUE_M:
        attributes_write_json(to, value.payload);
        break;
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS:
        json_write_set(to, value.type, value.payload);
        break;
    }
    buf_append_u8(to, '}');
}

void attributes_write_json(struct buf *to, struct bytes attributes)
{
    struct attribute attribute;
    bool first = true;
    buf_append_u8(to, '{');
    while (attribute_take(&attributes, &attribute)) {
        if (!first)
            buf_append_u8(to, ',');
        json_write_string(to, attribute.name);
        buf_append_u8(to, ':');
        value_write_json(to, attribute.value);
        first = false;
    }
    buf_append_u8(to, '}');
}

void item_write_json(struct buf *to, struct bytes item)
{
    attributes_write_json(to, item_attributes(item));
}
