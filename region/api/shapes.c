/* SPDX-License-Identifier: Apache-2.0 */
/* The second walker of shapes.h: constraints, gathered and worded as AWS's framework words them.
 * The echo of an offending value is cut at 1 KB, as a request may offend with 16 MB. */

#include "region/api/shapes.h"

#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { FAULTS_MAX = 10, ECHO_MAX = 1024, PATH_MAX_LEN = 1024 };

static const char NAME_PATTERN[] = "[a-zA-Z0-9_.-]+";

struct faults {
    struct buf text; /* "Value ... failed to satisfy constraint: ...", joined by "; " */
    uint32_t count;
    char path[PATH_MAX_LEN];
    size_t path_len;
};

static bool name_matches(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '.' || c == '-'))
            return false;
    }
    return text.len > 0;
}

static void append_cut(struct buf *to, struct bytes text)
{
    if (text.len > ECHO_MAX) {
        text.len = ECHO_MAX;
        while (text.len > 0 && (text.at[text.len] & 0xc0) == 0x80)
            text.len--; /* not within a character */
    }
    buf_append_bytes(to, text);
}

static int append_text(const char *text, size_t len, void *to)
{
    buf_append(to, text, len);
    return 0;
}

/* Java's toString of lists of strings, and of scalars; JSON for what has no short form in Java. */
static void append_echo(struct buf *to, const json_t *json)
{
    if (json_is_string(json)) {
        append_cut(to, json_text(json));
        return;
    }
    if (json_is_integer(json)) {
        buf_printf(to, "%lld", (long long)json_integer_value(json));
        return;
    }
    bool plain = json_is_array(json);
    size_t i;
    json_t *element;
    json_array_foreach(json, i, element) plain = plain && json_is_string(element);
    if (!plain) {
        struct buf text cleanup(buf_deinit);
        buf_init(&text);
        json_dump_callback(json, append_text, &text, JSON_COMPACT | JSON_ENCODE_ANY);
        append_cut(to, buf_view(&text));
        return;
    }
    size_t start = to->len;
    buf_append_text(to, "[");
    json_array_foreach(json, i, element)
    {
        if (i > 0)
            buf_append_text(to, ", ");
        append_cut(to, json_text(element));
        if (to->len - start > ECHO_MAX)
            break;
    }
    buf_append_text(to, "]");
}

static void begin_fault(struct faults *faults, const json_t *json)
{
    struct buf *text = &faults->text;
    if (faults->count++ > 0)
        buf_append_text(text, "; ");
    if (json) {
        buf_append_text(text, "Value '");
        append_echo(text, json);
        buf_append_text(text, "' at '");
    } else {
        buf_append_text(text, "Value null at '");
    }
    buf_append(text, faults->path, faults->path_len);
    buf_append_text(text, "' failed to satisfy constraint: ");
}

/* Extends the path; returns its length before, for path_pop. What does not fit is left out. */
static size_t path_push(struct faults *faults, const char *name, size_t len, bool lower)
{
    size_t before = faults->path_len;
    if (before + 1 + len > sizeof(faults->path))
        return before;
    if (before > 0)
        faults->path[faults->path_len++] = '.';
    memcpy(faults->path + faults->path_len, name, len);
    if (lower && len > 0 && name[0] >= 'A' && name[0] <= 'Z')
        faults->path[faults->path_len] = (char)(name[0] - 'A' + 'a');
    faults->path_len += len;
    return before;
}

static void path_pop(struct faults *faults, size_t before)
{
    faults->path_len = before;
}

static int64_t length_of(const json_t *json)
{
    if (json_is_array(json))
        return (int64_t)json_array_size(json);
    if (json_is_object(json))
        return (int64_t)json_object_size(json);
    /* AWS counts UTF-16 units; for the names that have bounds, characters are bytes or are refused
     * by their pattern. */
    return (int64_t)json_string_length(json);
}

static bool excused(const struct shape *shape, struct bytes text)
{
    return shape->pattern == PATTERN_NAME_OR_ARN && bytes_starts_with(text, bytes_literal("arn:"));
}

static bool value_in(const char *const *values, struct bytes text)
{
    for (; *values; values++) {
        if (bytes_is(text, *values))
            return true;
    }
    return false;
}

static void fault_enumeration(struct faults *faults, const struct shape *shape, const json_t *json)
{
    begin_fault(faults, json);
    buf_append_text(&faults->text, "Member must satisfy enum value set: [");
    for (const char *const *value = shape->values; *value; value++) {
        if (value != shape->values)
            buf_append_text(&faults->text, ", ");
        buf_append_text(&faults->text, *value);
    }
    buf_append_text(&faults->text, "]");
}

static int64_t integer_of(const json_t *json)
{
    if (json_is_integer(json))
        return json_integer_value(json);
    double real = json_real_value(json);
    return real >= 9e18 ? INT64_MAX : real <= -9e18 ? INT64_MIN : (int64_t)real;
}

static void check_bounds(struct faults *faults, const struct shape *shape, const json_t *json)
{
    bool number = shape->kind == SHAPE_INTEGER || shape->kind == SHAPE_LONG;
    int64_t measure = number ? integer_of(json) : length_of(json);
    const char *what = number ? "value" : "length";
    if (shape->min_given && measure < shape->min) {
        begin_fault(faults, json);
        buf_printf(&faults->text, "Member must have %s greater than or equal to %lld", what,
                   (long long)shape->min);
    }
    if (shape->max_given && measure > shape->max) {
        begin_fault(faults, json);
        buf_printf(&faults->text, "Member must have %s less than or equal to %lld", what,
                   (long long)shape->max);
    }
}

static bool bounds_hold(const struct shape *shape, int64_t measure)
{
    return !(shape->min_given && measure < shape->min) &&
           !(shape->max_given && measure > shape->max);
}

/* "Map keys must satisfy constraint: [...]": once for the map, however many keys offend. */
static void check_map_keys(struct faults *faults, const struct shape *map, const json_t *json)
{
    const struct shape *key = map->key;
    const char *name;
    size_t len;
    json_t *element;
    json_object_keylen_foreach((json_t *)(uintptr_t)json, name, len, element)
    {
        struct bytes text = bytes_make(name, len);
        if (excused(key, text) || (bounds_hold(key, (int64_t)len) && name_matches(text)))
            continue;
        begin_fault(faults, json);
        buf_printf(&faults->text,
                   "Map keys must satisfy constraint: [Member must have length less than or equal "
                   "to %lld, Member must have length greater than or equal to %lld, Member must "
                   "satisfy regular expression pattern: %s]",
                   (long long)key->max, (long long)key->min, NAME_PATTERN);
        return;
    }
}

static void check_map_values(struct faults *faults, const struct shape *map, const json_t *json)
{
    const char *name;
    json_t *element;
    json_object_foreach((json_t *)(uintptr_t)json, name, element)
    {
        if (json_is_null(element) || bounds_hold(map->element, length_of(element)))
            continue;
        begin_fault(faults, json);
        buf_printf(&faults->text,
                   "Map value must satisfy constraint: [Member must have length less than or equal "
                   "to %lld, Member must have length greater than or equal to %lld]",
                   (long long)map->element->max, (long long)map->element->min);
        return;
    }
}

static void check_shape(struct faults *faults, const struct shape *shape, const json_t *json,
                        bool bounds_done);

static void check_members(struct faults *faults, const struct shape *shape, const json_t *json)
{
    size_t unseen = json_object_size(json); /* most members are absent from most requests */
    for (const struct shape_member *member = shape->members; member->name; member++) {
        if (faults->count >= FAULTS_MAX)
            return;
        json_t *value = unseen > 0 ? json_member(json, member->name) : NULL;
        unseen -= value != NULL;
        if (!value && !member->required)
            continue;
        size_t before = path_push(faults, member->name, strlen(member->name), true);
        if (value) {
            check_shape(faults, member->shape, value, false);
        } else {
            begin_fault(faults, NULL);
            buf_append_text(&faults->text, "Member must not be null");
        }
        path_pop(faults, before);
    }
}

static bool has_constraints(const struct shape *shape)
{
    return shape->kind != SHAPE_VALUE &&
           (shape->kind != SHAPE_STRING || shape->values || shape->pattern || shape->min_given);
}

static void check_elements(struct faults *faults, const struct shape *shape, const json_t *json)
{
    if (!has_constraints(shape->element))
        return;
    size_t i = 0;
    json_t *element;
    char number[24];
    if (shape->kind == SHAPE_LIST) {
        json_array_foreach(json, i, element)
        {
            int len = snprintf(number, sizeof(number), "%zu", i + 1);
            size_t before = path_push(faults, number, (size_t)len, false);
            path_push(faults, "member", 6, false);
            if (!json_is_null(element) && faults->count < FAULTS_MAX)
                check_shape(faults, shape->element, element, false);
            path_pop(faults, before);
        }
        return;
    }
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)json, name, element)
    {
        size_t before = path_push(faults, name, strlen(name), false);
        path_push(faults, "member", 6, false);
        if (!json_is_null(element) && faults->count < FAULTS_MAX)
            check_shape(faults, shape->element, element, shape->element_together);
        path_pop(faults, before);
    }
}

static void check_shape(struct faults *faults, const struct shape *shape, const json_t *json,
                        bool bounds_done)
{
    if (shape->kind == SHAPE_STRING) {
        struct bytes text = json_text(json);
        if (excused(shape, text))
            return;
        if (shape->values && !value_in(shape->values, text))
            fault_enumeration(faults, shape, json);
        if (shape->pattern != PATTERN_NONE && !name_matches(text)) {
            begin_fault(faults, json);
            buf_printf(&faults->text, "Member must satisfy regular expression pattern: %s",
                       NAME_PATTERN);
        }
    }
    if (!bounds_done && (shape->min_given || shape->max_given))
        check_bounds(faults, shape, json);
    if (shape->kind == SHAPE_MAP && shape->key)
        check_map_keys(faults, shape, json);
    if (shape->kind == SHAPE_MAP && shape->element_together)
        check_map_values(faults, shape, json);
    if (shape->kind == SHAPE_LIST || shape->kind == SHAPE_MAP)
        check_elements(faults, shape, json);
    if (shape->kind == SHAPE_STRUCT)
        check_members(faults, shape, json);
}

const char *shape_check_constraints(const struct shape *shape, const json_t *body,
                                    struct arena *arena)
{
    struct faults faults;
    faults.count = 0;
    faults.path_len = 0;
    buf_init(&faults.text);
    check_members(&faults, shape, body);
    if (faults.count == 0)
        return NULL;
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    buf_printf(&message, "%u validation error%s detected: ", faults.count,
               faults.count == 1 ? "" : "s");
    buf_append_bytes(&message, buf_view(&faults.text));
    buf_deinit(&faults.text);
    return bytes_copy_text(arena, buf_view(&message));
}
