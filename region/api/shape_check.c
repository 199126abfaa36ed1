/* SPDX-License-Identifier: Apache-2.0 */
/* The first walker of shapes.h: JSON types against declared types. The messages show the insides of
 * AWS's Java server (ParameterizedTypeImpl, ByteBuffer); clients' tests match on them. */

#include <stdio.h>

#include "conflict/base/check.h"
#include "region/api/shapes.h"

static const char STRUCT_FOUND[] = "Start of structure or map found where not expected";
static const char GENERIC_CAST[] =
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and "
    "java.lang.Class are in module java.base of loader 'bootstrap')";

/* Where a value stands decides how AWS words a fault of it. */
enum place { PLACE_MEMBER, PLACE_ELEMENT };

struct walk {
    struct arena *arena;
    const char *problem;
};

static bool fail(struct walk *walk, const char *before, const char *name, const char *after)
{
    size_t size = strlen(before) + strlen(name) + strlen(after) + 1;
    char *message = arena_alloc(walk->arena, size);
    snprintf(message, size, "%s%s%s", before, name, after);
    walk->problem = message;
    return false;
}

static bool fail_with(struct walk *walk, const char *message)
{
    walk->problem = message;
    return false;
}

static bool check_value(struct walk *walk, const struct shape *shape, const json_t *json,
                        enum place place);

/* "NUMBER_VALUE cannot be converted to String" and its kin. */
static bool fail_scalar(struct walk *walk, const json_t *json, const char *wanted)
{
    const char *found = json_is_string(json)    ? "STRING_VALUE"
                        : json_is_integer(json) ? "NUMBER_VALUE"
                        : json_is_real(json)    ? "DECIMAL_VALUE"
                        : json_is_true(json)    ? "TRUE_VALUE"
                                                : "FALSE_VALUE";
    return fail(walk, found, " cannot be converted to ", wanted);
}

static bool check_scalar(struct walk *walk, const json_t *json, enum shape_kind kind)
{
    const char *wanted = kind == SHAPE_STRING    ? "String"
                         : kind == SHAPE_BOOLEAN ? "Boolean"
                         : kind == SHAPE_INTEGER ? "Integer"
                                                 : "Long";
    if (json_is_array(json))
        return fail(walk, "Unrecognized collection type class java.lang.", wanted, "");
    if (json_is_object(json))
        return fail_with(walk, STRUCT_FOUND);
    if (kind == SHAPE_STRING)
        return json_is_string(json) || fail_scalar(walk, json, wanted);
    if (kind != SHAPE_BOOLEAN)
        return json_is_number(json) || fail_scalar(walk, json, wanted);
    if (json_is_string(json))
        return fail_with(walk, "Unexpected token received from parser");
    return json_is_boolean(json) || fail_scalar(walk, json, wanted);
}

static bool base64_digit(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

static bool check_blob(struct walk *walk, const json_t *json)
{
    if (json_is_array(json))
        return fail_with(walk, "Unrecognized collection type class java.nio.ByteBuffer");
    if (json_is_object(json))
        return fail_with(walk, STRUCT_FOUND);
    if (!json_is_string(json))
        return fail_with(walk, "only base-64-encoded strings are convertible to bytes");
    struct bytes text = json_text(json);
    if (text.len % 4 != 0) {
        char length[24];
        snprintf(length, sizeof(length), "%zu", text.len);
        return fail(walk,
                    "Base64 encoded length is expected a multiple of 4 bytes but found: ", length,
                    "");
    }
    size_t digits = 0;
    while (digits < text.len && base64_digit(text.at[digits]))
        digits++;
    size_t padding = text.len - digits;
    if (padding == 0)
        return true;
    bool padded = padding <= 2;
    for (size_t i = digits; i < text.len; i++)
        padded = padded && text.at[i] == '=';
    if (!padded) {
        char found[2] = {(char)text.at[digits], 0};
        if (found[0] == '=')
            return fail_with(walk, "Invalid last non-pad Base64 character dectected");
        /* A byte of a longer UTF-8 sequence may not stand alone in an answer. */
        if ((uint8_t)found[0] >= 0x80)
            found[0] = '?';
        return fail(walk, "Invalid Base64 character: '", found, "'");
    }
    /* The bits that the padding leaves over must be zero, or two texts would mean one value. */
    uint8_t last = text.at[digits - 1];
    uint32_t value = last >= 'a'   ? last - 'a' + 26U
                     : last >= 'A' ? last - 'A' + 0U
                     : last >= '0' ? last - '0' + 52U
                     : last == '+' ? 62U
                                   : 63U;
    if (value & (padding == 1 ? 3U : 15U))
        return fail_with(walk, "Invalid last non-pad Base64 character dectected");
    return true;
}

static bool check_list(struct walk *walk, const struct shape *shape, const json_t *json,
                       enum place place)
{
    if (json_is_object(json))
        return fail_with(walk, STRUCT_FOUND);
    if (!json_is_array(json))
        return fail_with(walk, place == PLACE_MEMBER ? "Unexpected field type" : GENERIC_CAST);
    size_t i;
    json_t *element;
    json_array_foreach(json, i, element)
    {
        if (!json_is_null(element) && !check_value(walk, shape->element, element, PLACE_ELEMENT))
            return false;
    }
    return true;
}

static bool check_map(struct walk *walk, const struct shape *shape, const json_t *json,
                      enum place place)
{
    if (json_is_array(json))
        return fail(walk, "Unrecognized collection type java.util.Map<java.lang.String, ",
                    shape->class_name, ">");
    if (!json_is_object(json))
        return fail_with(walk, place == PLACE_MEMBER ? "Unexpected field type" : GENERIC_CAST);
    const char *name;
    json_t *element;
    json_object_foreach((json_t *)(uintptr_t)json, name, element)
    {
        if (!json_is_null(element) && !check_value(walk, shape->element, element, PLACE_ELEMENT))
            return false;
    }
    return true;
}

/* Fails unless json is an object. */
static bool check_struct_start(struct walk *walk, const struct shape *shape, const json_t *json,
                               enum place place)
{
    if (json_is_array(json))
        return fail(walk, "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.",
                    shape->class_name, "");
    if (!json_is_object(json))
        return fail_with(walk, place == PLACE_MEMBER ? "Unexpected field type"
                                                     : "Unexpected value type in payload");
    return true;
}

static const struct shape_member *find_member(const struct shape *shape, const char *name)
{
    for (const struct shape_member *member = shape->members; member->name; member++) {
        if (strcmp(member->name, name) == 0)
            return member;
    }
    return NULL;
}

static bool check_struct(struct walk *walk, const struct shape *shape, const json_t *json,
                         enum place place)
{
    if (!check_struct_start(walk, shape, json, place))
        return false;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        const struct shape_member *member = json_is_null(value) ? NULL : find_member(shape, name);
        if (member && !check_value(walk, member->shape, value, PLACE_MEMBER))
            return false;
    }
    return true;
}

static bool check_value(struct walk *walk, const struct shape *shape, const json_t *json,
                        enum place place)
{
    switch (shape->kind) {
    case SHAPE_STRING:
    case SHAPE_BOOLEAN:
    case SHAPE_INTEGER:
    case SHAPE_LONG:
        return check_scalar(walk, json, shape->kind);
    case SHAPE_BLOB:
        return check_blob(walk, json);
    case SHAPE_LIST:
        return check_list(walk, shape, json, place);
    case SHAPE_MAP:
        return check_map(walk, shape, json, place);
    case SHAPE_STRUCT:
    case SHAPE_VALUE: /* a struct whose members lead back to itself; the parser bounds the depth */
        return check_struct(walk, shape, json, place);
    }
    unreachable();
}

const char *shape_check_types(const struct shape *shape, const json_t *body, struct arena *arena)
{
    struct walk walk = {.arena = arena};
    if (json_is_array(body))
        return "Start of list found where not expected";
    if (!json_is_object(body))
        return "Unexpected token received from parser";
    return check_struct(&walk, shape, body, PLACE_MEMBER) ? NULL : walk.problem;
}
