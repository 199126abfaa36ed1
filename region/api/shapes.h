/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_SHAPES_H
#define API_SHAPES_H

/* The members of every operation as data: type, whether required, bounds, pattern, enumeration. Two
 * walkers read it. The first checks types in the order of the body and stops at the first fault, a
 * SerializationException; the second checks constraints in the order of the table, which is AWS's,
 * and reports up to ten at once, a ValidationException. A member that is not in the table is
 * ignored, as AWS ignores it. */

#include <stdint.h>

#include "conflict/base/arena.h"
#include "region/api/json.h"
#include "region/core/op.h"

enum shape_kind {
    SHAPE_STRING,
    SHAPE_BOOLEAN,
    SHAPE_INTEGER, /* Java's Integer and Long differ in the messages only */
    SHAPE_LONG,
    SHAPE_BLOB,
    SHAPE_LIST,
    SHAPE_MAP,
    SHAPE_STRUCT,
    SHAPE_VALUE /* AttributeValue: its content is value_json.h's to check */
};

struct shape;
struct shape_member {
    const char *name; /* NULL ends the list */
    const struct shape *shape;
    bool required;
};

enum shape_pattern {
    PATTERN_NONE,
    PATTERN_NAME,       /* [a-zA-Z0-9_.-]+ */
    PATTERN_NAME_OR_ARN /* the same, but a table's ARN is excused from all constraints of a name */
};

struct shape {
    enum shape_kind kind;
    const char *class_name;             /* AWS's name for a struct or a map's element */
    const struct shape_member *members; /* of a struct */
    const struct shape *element;        /* of a list or map */
    const struct shape *key;            /* constraints on a map's keys, or NULL */
    bool element_together;     /* report an element's bounds as "Map value must satisfy ..." */
    bool min_given, max_given; /* of a string's, list's or map's length; of an integer's value */
    int64_t min, max;
    enum shape_pattern pattern;
    const char *const *values; /* enumeration, NULL at the end */
};

/* The request of each operation that is served; NULL for the others. */
const struct shape *shape_of_request(enum op_kind kind);

/* Each returns NULL when all is well, else the message, in the arena. */
const char *shape_check_types(const struct shape *shape, const json_t *body, struct arena *arena);
const char *shape_check_constraints(const struct shape *shape, const json_t *body,
                                    struct arena *arena);

#endif
