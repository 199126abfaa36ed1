/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of a toxic. Field names, defaults and refusals are Toxiproxy's, so that its client
 * libraries can be pointed at us. Unlike it, we refuse values that can mean nothing (negative
 * times, a toxicity of 7), as a fault that was never on is worse than an error. */

#include "chaos/live/toxic.h"

#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct toxic_kind {
    const char *name;
    const char *attributes[TOXIC_ATTRIBUTES_MAX];
};

static const struct toxic_kind kinds[] = {
#define TYPE(enumerator, name, a, b, c) {name, {a, b, c}},
    TOXIC_TYPE_MAP(TYPE)
#undef TYPE
};

static const char *const stream_names[] = {"upstream", "downstream"};

const char *toxic_type_name(enum toxic_type type)
{
    check(type < TOXIC_TYPE_COUNT);
    return kinds[type].name;
}

struct toxic *toxic_new(enum toxic_type type, enum toxic_stream stream, const char *name)
{
    struct toxic *toxic = xcalloc(1, sizeof(*toxic));
    list_init(&toxic->link);
    toxic->name = xstrdup(name);
    toxic->type = type;
    toxic->stream = stream;
    toxic->toxicity = 1;
    return toxic;
}

struct toxic *toxic_free(struct toxic *toxic)
{
    if (toxic == NULL)
        return NULL;
    list_remove(&toxic->link);
    free(toxic->name);
    free(toxic);
    return NULL;
}

/* A field of the wrong JSON type is refused; null counts as absent, as it does to Go's decoder. */
static bool field(json_t *body, const char *name, json_type type, char *reason, json_t **ret)
{
    json_t *value = json_object_get(body, name);
    if (json_is_null(value))
        value = NULL;
    if (value != NULL && json_typeof(value) != type) {
        snprintf(reason, TOXIC_REASON_MAX, "%.64s has the wrong JSON type", name);
        return false;
    }
    *ret = value;
    return true;
}

static bool read_toxicity(json_t *body, char *reason, double *toxicity)
{
    json_t *value = json_object_get(body, "toxicity");
    if (value == NULL || json_is_null(value))
        return true;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0 && number <= 1)) {
        snprintf(reason, TOXIC_REASON_MAX, "toxicity must be a number from 0 to 1");
        return false;
    }
    *toxicity = number;
    return true;
}

static bool read_attributes(json_t *body, enum toxic_type type, char *reason, int64_t *values)
{
    json_t *attributes;
    if (!field(body, "attributes", JSON_OBJECT, reason, &attributes))
        return false;
    for (int i = 0; i < TOXIC_ATTRIBUTES_MAX && kinds[type].attributes[i] != NULL; i++) {
        json_t *value = json_object_get(attributes, kinds[type].attributes[i]);
        if (value == NULL || json_is_null(value))
            continue;
        int64_t number = json_is_integer(value) ? json_integer_value(value) : -1;
        /* Some client libraries send 100.0. */
        if (json_is_real(value) && json_real_value(value) >= 0 &&
            json_real_value(value) <= (double)TOXIC_VALUE_MAX)
            number = (int64_t)json_real_value(value);
        if (number < 0 || number > TOXIC_VALUE_MAX) {
            snprintf(reason, TOXIC_REASON_MAX, "attribute %s must be a whole number from 0 to %lld",
                     kinds[type].attributes[i], (long long)TOXIC_VALUE_MAX);
            return false;
        }
        values[i] = number;
    }
    if (type == TOXIC_SLICER && values[TOXIC_SIZE_VARIATION] > values[TOXIC_AVERAGE_SIZE]) {
        snprintf(reason, TOXIC_REASON_MAX, "size_variation must not be above average_size");
        return false;
    }
    return true;
}

static enum toxic_error read_stream(const char *name, enum toxic_stream *ret)
{
    for (size_t i = 0; i < array_len(stream_names); i++) {
        if (strcmp(name, stream_names[i]) == 0) {
            *ret = (enum toxic_stream)i;
            return TOXIC_OK;
        }
    }
    return TOXIC_BAD_STREAM;
}

static enum toxic_error read_type(const char *name, enum toxic_type *ret)
{
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (i != TOXIC_HOLD && strcmp(name, kinds[i].name) == 0) {
            *ret = (enum toxic_type)i;
            return TOXIC_OK;
        }
    }
    return TOXIC_BAD_TYPE;
}

enum toxic_error toxic_decode(json_t *body, char reason[TOXIC_REASON_MAX], struct toxic **ret)
{
    json_t *name, *type_name, *stream_name;
    double toxicity = 1;
    if (!json_is_object(body)) {
        snprintf(reason, TOXIC_REASON_MAX, "an object was expected");
        return TOXIC_BAD_BODY;
    }
    if (!field(body, "name", JSON_STRING, reason, &name) ||
        !field(body, "type", JSON_STRING, reason, &type_name) ||
        !field(body, "stream", JSON_STRING, reason, &stream_name) ||
        !read_toxicity(body, reason, &toxicity))
        return TOXIC_BAD_BODY;
    if (json_string_length(name) > TOXIC_NAME_MAX) {
        snprintf(reason, TOXIC_REASON_MAX, "name is longer than %d bytes", TOXIC_NAME_MAX);
        return TOXIC_BAD_BODY;
    }

    enum toxic_stream stream = TOXIC_DOWNSTREAM;
    if (stream_name != NULL && read_stream(json_string_value(stream_name), &stream) != TOXIC_OK)
        return TOXIC_BAD_STREAM;
    enum toxic_type type;
    if (type_name == NULL || read_type(json_string_value(type_name), &type) != TOXIC_OK)
        return TOXIC_BAD_TYPE;
    int64_t values[TOXIC_ATTRIBUTES_MAX] = {0};
    if (!read_attributes(body, type, reason, values))
        return TOXIC_BAD_BODY;

    char default_name[64];
    snprintf(default_name, sizeof(default_name), "%s_%s", kinds[type].name, stream_names[stream]);
    bool named = json_string_length(name) > 0;
    *ret = toxic_new(type, stream, named ? json_string_value(name) : default_name);
    (*ret)->toxicity = toxicity;
    memcpy((*ret)->value, values, sizeof(values));
    return TOXIC_OK;
}

enum toxic_error toxic_update(struct toxic *toxic, json_t *body, char reason[TOXIC_REASON_MAX])
{
    double toxicity = toxic->toxicity;
    int64_t values[TOXIC_ATTRIBUTES_MAX];
    memcpy(values, toxic->value, sizeof(values));
    if (!json_is_object(body)) {
        snprintf(reason, TOXIC_REASON_MAX, "an object was expected");
        return TOXIC_BAD_BODY;
    }
    if (!read_toxicity(body, reason, &toxicity) ||
        !read_attributes(body, toxic->type, reason, values))
        return TOXIC_BAD_BODY;
    toxic->toxicity = toxicity;
    for (size_t i = 0; i < array_len(toxic->rest_ns); i++)
        if (toxic->value[i] != values[i])
            toxic->rest_ns[i] = 0;
    memcpy(toxic->value, values, sizeof(values));
    return TOXIC_OK;
}

void toxic_set_latency(struct toxic *toxic, uint64_t latency_ns, uint64_t jitter_ns)
{
    toxic->value[TOXIC_LATENCY_MS] = (int64_t)(latency_ns / 1000000);
    toxic->value[TOXIC_JITTER_MS] = (int64_t)(jitter_ns / 1000000);
    toxic->rest_ns[TOXIC_LATENCY_MS] = latency_ns % 1000000;
    toxic->rest_ns[TOXIC_JITTER_MS] = jitter_ns % 1000000;
}

json_t *toxic_encode(const struct toxic *toxic)
{
    json_t *attributes = json_object();
    for (int i = 0; i < TOXIC_ATTRIBUTES_MAX && kinds[toxic->type].attributes[i] != NULL; i++)
        json_object_set_new(attributes, kinds[toxic->type].attributes[i],
                            json_integer(toxic->value[i]));
    /* A whole share prints as 1, as Toxiproxy prints it. */
    bool whole = toxic->toxicity == 0 || toxic->toxicity == 1;
    json_t *toxicity =
        whole ? json_integer((json_int_t)toxic->toxicity) : json_real(toxic->toxicity);
    return json_pack("{s:o, s:s, s:s, s:s, s:o}", "attributes", attributes, "name", toxic->name,
                     "type", kinds[toxic->type].name, "stream", stream_names[toxic->stream],
                     "toxicity", toxicity);
}
