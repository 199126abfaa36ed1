/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. The scan below reads structure only, it judges nothing: a text that it lets pass may
 * still be no JSON, and then the parser says so. */

#include "region/api/json.h"

static bool within_bounds(struct bytes text)
{
    bool in_string = false;
    uint32_t weight = 0;
    uint32_t depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == ',') {
            weight++;
        } else if (c == '[' || c == '{') {
            weight += 4;
            depth++;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
        if (weight > JSON_WEIGHT_MAX || depth > JSON_DEPTH_MAX)
            return false;
    }
    return true;
}

json_t *json_read(struct bytes text)
{
    if (text.len >= JSON_SCAN_BYTES_MIN && !within_bounds(text))
        return NULL;
    return json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
                      NULL);
}

void json_release(json_t **json)
{
    json_decref(*json);
    *json = NULL;
}

json_t *json_member(const json_t *object, const char *name)
{
    json_t *member = json_object_get(object, name);
    return json_is_null(member) ? NULL : member;
}

struct bytes json_text(const json_t *string)
{
    return bytes_make(json_string_value(string), json_string_length(string));
}

struct bytes json_copy_text(struct arena *arena, const json_t *string)
{
    return bytes_copy(arena, json_text(string));
}
