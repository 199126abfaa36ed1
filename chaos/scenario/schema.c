/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Schema (draft 2020-12) of scenario files, from the reader's own tables. It says what an
 * editor can help with: keys, types, choices, whole bounds. What depends on several keys, only the
 * reader knows. */

#include "chaos/scenario/fields.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* Literals that a YAML reader may take for numbers are texts or numbers. */
#define TIME_PATTERN                                                                               \
    "^(0|([0-9]+(\\.[0-9]{1,9})?(ns|us|ms|s|m|h))+"                                                \
    "|P(?=.)([0-9.]+D)?(T(?=.)([0-9.]+H)?([0-9.]+M)?([0-9.]+S)?)?)$"
#define OFFSET_PATTERN                                                                             \
    "^[+-]?(0|([0-9]+(\\.[0-9]{1,9})?(ns|us|ms|s|m|h))+"                                           \
    "|P(?=.)([0-9.]+D)?(T(?=.)([0-9.]+H)?([0-9.]+M)?([0-9.]+S)?)?)$"

static const struct {
    const char *types; /* with a space between */
    const char *pattern;
} kinds[] = {
    [FIELD_TEXT] = {"string number boolean", NULL},
    [FIELD_BOOL] = {"boolean", NULL},
    [FIELD_WHOLE] = {"integer", NULL},
    [FIELD_SIGNED] = {"integer", NULL},
    [FIELD_NUMBER] = {"number", NULL},
    [FIELD_SHARE] = {"string number", "^[0-9.]+%?$"},
    [FIELD_PERCENT] = {"string number", "^[0-9.]+%?$"},
    [FIELD_TIME] = {"string integer", TIME_PATTERN},
    [FIELD_OFFSET] = {"string integer", OFFSET_PATTERN},
    [FIELD_BYTES] = {"string integer", "^[0-9]+(\\.[0-9]{1,9})?(B|kB|KB|KiB|MB|MiB|GB|GiB)?$"},
    [FIELD_BANDWIDTH] = {"string", "^[0-9]+(\\.[0-9]{1,9})?(B|kB|KB|KiB|MB|MiB|GB|GiB|kbit|mbit|"
                                   "Mbit|gbit|Gbit)/s$"},
    [FIELD_FREQUENCY] = {"string number", "^[0-9]+(\\.[0-9]{1,9})?(/s|/min)?$"},
    [FIELD_CHOICE] = {"", NULL},
    [FIELD_REGION] = {"string", "^([a-z]+-[a-z]+-[0-9]|all|leader)$"},
    [FIELD_REGIONS] = {"array", NULL},
    [FIELD_TEXTS] = {"array", NULL},
    [FIELD_MAP] = {"", NULL},
    [FIELD_CUSTOM] = {"string", NULL},
};

static json_t *types_of(const char *words)
{
    json_t *types = json_array();
    for (const char *at = words; *at != 0;) {
        size_t len = strcspn(at, " ");
        json_array_append_new(types, json_stringn(at, len));
        at += len + (at[len] == ' ');
    }
    if (json_array_size(types) == 1) {
        json_t *only = json_incref(json_array_get(types, 0));
        json_decref(types);
        return only;
    }
    return types;
}

static void set_bounds(const struct field *field, json_t *to)
{
    bool text = field->type == FIELD_TEXT;
    bool number = field->type == FIELD_WHOLE || field->type == FIELD_SIGNED;
    if (field->min == 0 && field->max == 0)
        return;
    if (text || number)
        json_object_set_new(to, text ? "minLength" : "minimum", json_integer(field->min));
    if ((text || number) && field->max != 0)
        json_object_set_new(to, text ? "maxLength" : "maximum", json_integer(field->max));
}

static json_t *scalar_schema(const struct field *field)
{
    json_t *schema = json_object();
    if (field->type == FIELD_CHOICE) {
        json_t *names = json_array();
        for (const struct choice *at = field->choices; at->name != NULL; at++)
            json_array_append_new(names, json_string(at->name));
        json_object_set_new(schema, "enum", names);
        return schema;
    }
    json_object_set_new(schema, "type", types_of(kinds[field->type].types));
    if (kinds[field->type].pattern != NULL)
        json_object_set_new(schema, "pattern", json_string(kinds[field->type].pattern));
    if (field->type == FIELD_REGIONS || field->type == FIELD_TEXTS)
        json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
    if (field->type == FIELD_TEXTS)
        json_object_set_new(schema, "minItems", json_integer(1));
    set_bounds(field, schema);
    return schema;
}

json_t *field_schema(const struct field *field)
{
    json_t *schema = field->schema != NULL  ? field->schema()
                     : field->shape != NULL ? shape_schema(field->shape)
                                            : scalar_schema(field);
    check(schema != NULL);
    json_object_set_new(schema, "description", json_string(field->help));
    if (field->standard != NULL)
        json_object_set_new(schema, "default", json_string(field->standard));
    return schema;
}

json_t *shape_schema(const struct shape *shape)
{
    json_t *properties = json_object(), *required = json_array();
    for (uint32_t i = 0; i < shape->count; i++) {
        json_object_set_new(properties, shape->at[i].key, field_schema(&shape->at[i]));
        if (shape->at[i].required)
            json_array_append_new(required, json_string(shape->at[i].key));
    }
    json_t *schema = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                               "additionalProperties", 0);
    if (json_array_size(required) > 0)
        json_object_set_new(schema, "required", required);
    else
        json_decref(required);
    return schema;
}

static json_t *definitions(void)
{
    json_t *defs = json_object();
    for (uint32_t i = 0; i < scenario_shape_params.count; i++)
        json_object_set_new(defs, scenario_shape_params.at[i].key,
                            field_schema(&scenario_shape_params.at[i]));
    json_object_set_new(defs, "truth", json_pack("{s:s}", "type", "boolean"));
    json_object_set_new(
        defs, "comparison",
        json_pack("{s:[s,s], s:s}", "type", "string", "number", "pattern",
                  "^ *(<=|>=|==|!=|<|>|=)? *[0-9P][0-9A-Za-z.%]*( +for +[0-9A-Za-z.]+)? *$"));
    json_object_set_new(defs, "limit",
                        json_pack("{s:[{s:s}, {s:s, s:{s:s}, s:i}]}", "anyOf", "$ref",
                                  "#/$defs/comparison", "type", "array", "items", "$ref",
                                  "#/$defs/comparison", "minItems", 1));
    json_object_set_new(defs, "limits",
                        json_pack("{s:[{s:s}, {s:s, s:{s:s}, s:i}]}", "anyOf", "$ref",
                                  "#/$defs/limit", "type", "object", "additionalProperties", "$ref",
                                  "#/$defs/limit", "minProperties", 1));
    return defs;
}

void scenario_schema_write(struct buf *to)
{
    json_t *schema =
        json_pack("{s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
                  "A Tidemark scenario");
    json_t *body = shape_schema(&scenario_shape_top);
    json_object_update(schema, body);
    json_decref(body);
    json_object_set_new(schema, "$defs", definitions());
    char *text = json_dumps(schema, JSON_INDENT(1));
    check(text != NULL);
    buf_append_text(to, text);
    buf_append_text(to, "\n");
    free(text);
    json_decref(schema);
}
