/* SPDX-License-Identifier: Apache-2.0 */
/* Fields are found by their name in the table, one after the other: a shape has few. */

#include "chaos/report/lines.h"

#include <inttypes.h>
#include <string.h>

#include "chaos/report/text.h"
#include "conflict/base/check.h"

#define EXACT_MAX (UINT64_C(1) << 53)

/* ---- Writing ---- */

void line_u64_write(uint64_t value, struct buf *to)
{
    bool quoted = value > EXACT_MAX;
    uint8_t *at = buf_reserve(to, DECIMAL_LEN_MAX + 2);
    size_t len = 0;
    if (quoted)
        at[len++] = '"';
    len += decimal_encode((char *)at + len, value);
    if (quoted)
        at[len++] = '"';
    to->len += len;
}

static void i64_write(int64_t value, struct buf *to)
{
    if (value < 0) /* nothing that far from the beginning needs to be exact to 2^53 and is not */
        buf_printf(to, value < -(int64_t)EXACT_MAX ? "\"%" PRId64 "\"" : "%" PRId64, value);
    else
        line_u64_write((uint64_t)value, to);
}

static void regions_write(const struct lines *lines, uint64_t regions, struct buf *to)
{
    bool first = true;
    buf_append_u8(to, '[');
    for (uint8_t i = 0; i < lines->cluster->region_count; i++)
        if (regions >> i & 1) {
            buf_append_text(to, first ? "" : ",");
            text_json(lines->cluster->region[i].name, to);
            first = false;
        }
    buf_append_u8(to, ']');
}

static uint64_t number_of(const struct line_field *field, const void *at)
{
    switch (field->type) {
    case LINE_U64:
    case LINE_MOMENT:
    case LINE_REGIONS:
        return *(const uint64_t *)at;
    case LINE_I64:
        return (uint64_t) * (const int64_t *)at;
    case LINE_U32:
        return *(const uint32_t *)at;
    case LINE_U16:
        return *(const uint16_t *)at;
    case LINE_INT:
        return (uint64_t) * (const int *)at;
    case LINE_BOOL:
        return *(const bool *)at;
    case LINE_NAME:
    case LINE_REGION:
        return *(const uint8_t *)at;
    case LINE_TEXT:
        return *(const char *const *)at != NULL;
    }
    unreachable();
}

static void value_write(const struct lines *lines, const struct line_field *field, const void *at,
                        uint64_t number, struct buf *to)
{
    switch (field->type) {
    case LINE_U64:
    case LINE_U32:
    case LINE_U16:
    case LINE_INT:
        line_u64_write(number, to);
        return;
    case LINE_I64:
        i64_write((int64_t)number, to);
        return;
    case LINE_MOMENT:
        i64_write((int64_t)(number - lines->began_ns), to);
        return;
    case LINE_BOOL:
        buf_append_text(to, number != 0 ? "true" : "false");
        return;
    case LINE_NAME:
        buf_append_u8(to, '"');
        buf_append_text(to, field->names[number]);
        buf_append_u8(to, '"');
        return;
    case LINE_REGION:
        check(number < lines->cluster->region_count);
        text_json(lines->cluster->region[number].name, to);
        return;
    case LINE_REGIONS:
        regions_write(lines, number, to);
        return;
    case LINE_TEXT:
        text_json(number == 0 ? "" : *(const char *const *)at, to);
        return;
    }
    unreachable();
}

void line_write(const struct lines *lines, const struct line_shape *shape, const void *from,
                bool first, struct buf *to)
{
    for (uint32_t i = 0; i < shape->count; i++) {
        const struct line_field *field = &shape->at[i];
        const void *at = (const char *)from + field->offset;
        uint64_t number = number_of(field, at);
        if (!field->required && number == field->none)
            continue;
        buf_append_text(to, first ? "\"" : ",\"");
        buf_append_text(to, field->key);
        buf_append_text(to, "\":");
        value_write(lines, field, at, number, to);
        first = false;
    }
}

/* ---- Reading ---- */

static bool digits_read(const char *text, size_t len, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (len == 0 || len > DECIMAL_LEN_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (value > max || value <= EXACT_MAX)
        return false; /* as a text, only what must be one: each value has one form */
    *ret = value;
    return true;
}

bool line_u64_read(const json_t *json, uint64_t max, uint64_t *ret)
{
    if (json_is_string(json))
        return digits_read(json_string_value(json), json_string_length(json), max, ret);
    json_int_t value = json_integer_value(json);
    if (!json_is_integer(json) || value < 0 || (uint64_t)value > EXACT_MAX || (uint64_t)value > max)
        return false;
    *ret = (uint64_t)value;
    return true;
}

static bool i64_read(const json_t *json, int64_t *ret)
{
    uint64_t value;
    if (json_is_string(json)) {
        const char *text = json_string_value(json);
        bool negative = *text == '-';
        size_t len = json_string_length(json) - negative;
        if (!digits_read(text + negative, len, (uint64_t)INT64_MAX + negative, &value))
            return false;
        *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
        return true;
    }
    *ret = json_integer_value(json);
    return json_is_integer(json) && *ret >= -(int64_t)EXACT_MAX && *ret <= (int64_t)EXACT_MAX;
}

static bool moment_read(const struct lines *lines, const json_t *json, uint64_t *ret)
{
    int64_t since;
    if (!i64_read(json, &since))
        return false;
    uint64_t distance = since < 0 ? 0 - (uint64_t)since : (uint64_t)since;
    bool good =
        since < 0 ? distance <= lines->began_ns : distance < (uint64_t)INT64_MAX - lines->began_ns;
    *ret = lines->began_ns + (uint64_t)since;
    return good;
}

static bool region_read(const struct lines *lines, const json_t *json, uint8_t *ret)
{
    if (!json_is_string(json))
        return false;
    for (uint8_t i = 0; i < lines->cluster->region_count; i++)
        if (strcmp(lines->cluster->region[i].name, json_string_value(json)) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

static bool regions_read(const struct lines *lines, const json_t *json, uint64_t *ret)
{
    uint64_t regions = 0;
    if (!json_is_array(json))
        return false;
    for (size_t i = 0; i < json_array_size(json); i++) {
        uint8_t region;
        if (!region_read(lines, json_array_get(json, i), &region) ||
            regions >= UINT64_C(1) << region) /* in order, each once */
            return false;
        regions |= UINT64_C(1) << region;
    }
    *ret = regions;
    return true;
}

static bool name_read(const struct line_field *field, const json_t *json, uint8_t *ret)
{
    if (!json_is_string(json))
        return false;
    for (uint8_t i = 0; field->names[i] != NULL; i++)
        if (strcmp(field->names[i], json_string_value(json)) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

static bool text_read(const struct lines *lines, const json_t *json, const char **ret)
{
    if (!json_is_string(json) || json_string_length(json) > LINE_TEXT_MAX)
        return false;
    struct buf clean = {0};
    text_clean(bytes_make(json_string_value(json), json_string_length(json)), &clean);
    *ret = bytes_copy_text(lines->arena, buf_view(&clean));
    buf_deinit(&clean);
    return true;
}

static bool value_read(const struct lines *lines, const struct line_field *field,
                       const json_t *json, void *at)
{
    uint64_t number = 0;
    bool good;
    switch (field->type) {
    case LINE_U64:
        return line_u64_read(json, UINT64_MAX, at);
    case LINE_U32:
        good = line_u64_read(json, UINT32_MAX, &number);
        *(uint32_t *)at = (uint32_t)number;
        return good;
    case LINE_U16:
        good = line_u64_read(json, UINT16_MAX, &number);
        *(uint16_t *)at = (uint16_t)number;
        return good;
    case LINE_INT:
        good = line_u64_read(json, UINT8_MAX, &number);
        *(int *)at = (int)number;
        return good;
    case LINE_BOOL:
        *(bool *)at = json_is_true(json);
        return json_is_boolean(json);
    case LINE_I64:
        return i64_read(json, at);
    case LINE_MOMENT:
        return moment_read(lines, json, at);
    case LINE_NAME:
        return name_read(field, json, at);
    case LINE_REGION:
        return region_read(lines, json, at);
    case LINE_REGIONS:
        return regions_read(lines, json, at);
    case LINE_TEXT:
        return text_read(lines, json, at);
    }
    unreachable();
}

static void none_set(const struct line_field *field, void *at)
{
    switch (field->type) {
    case LINE_U64:
    case LINE_MOMENT:
        *(uint64_t *)at = field->none;
        return;
    case LINE_NAME:
    case LINE_REGION:
        *(uint8_t *)at = (uint8_t)field->none;
        return;
    case LINE_U32:
    case LINE_U16:
    case LINE_I64:
    case LINE_INT:
    case LINE_BOOL:
    case LINE_REGIONS:
    case LINE_TEXT:
        check(field->none == 0); /* as the struct is zeroed */
        return;
    }
    unreachable();
}

static void wants(const struct line_field *field, struct buf *why)
{
    static const char *const kinds[] = {
        [LINE_U64] = "a whole number, or a text of digits beyond 2^53",
        [LINE_U32] = "a whole number below 2^32",
        [LINE_U16] = "a whole number below 65536",
        [LINE_I64] = "a whole number, or a text of digits beyond 2^53",
        [LINE_INT] = "a whole number below 256",
        [LINE_BOOL] = "true or false",
        [LINE_MOMENT] = "nanoseconds since the run began",
        [LINE_NAME] = "one of its names",
        [LINE_REGION] = "a Region of the scenario",
        [LINE_REGIONS] = "Regions of the scenario, in its order",
        [LINE_TEXT] = "a text of at most 4096 bytes",
    };
    buf_printf(why, "%s: expected %s", field->key, kinds[field->type]);
    for (uint32_t i = 0; field->type == LINE_NAME && field->names[i] != NULL && i < 16; i++)
        buf_printf(why, "%s%s", i == 0 ? ": " : ", ", field->names[i]);
}

bool line_read(const struct lines *lines, const struct line_shape *shape, json_t *object, void *to,
               struct buf *why)
{
    size_t known = 0;
    for (uint32_t i = 0; i < shape->count; i++) {
        const struct line_field *field = &shape->at[i];
        void *at = (char *)to + field->offset;
        const json_t *json = json_object_get(object, field->key);
        none_set(field, at);
        if (json == NULL && field->required) {
            buf_printf(why, "%s: is missing", field->key);
            return false;
        }
        if (json == NULL)
            continue;
        known++;
        if (!value_read(lines, field, json, at)) {
            wants(field, why);
            return false;
        }
    }
    if (known == json_object_size(object))
        return true;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        bool found = false;
        for (uint32_t i = 0; i < shape->count; i++)
            found = found || strcmp(shape->at[i].key, key) == 0;
        if (!found) {
            buf_append_text(why, "no such key: ");
            text_clean(bytes_make(key, strnlen(key, 64)), why);
            return false;
        }
    }
    unreachable();
}
