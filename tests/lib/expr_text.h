/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXPR_TEXT_H
#define TESTS_EXPR_TEXT_H

/* The placeholders of a request in value_text's notation, without their first characters:
 * {n:'name'} defines #n as names, {v:1} defines :v as values. */

#include "region/core/expr.h"
#include "tests/lib/value_text.h"

static inline struct bytes expr_text_placeholder(struct arena *arena, char prefix,
                                                 struct bytes name)
{
    char *placeholder = arena_alloc(arena, name.len + 1);
    placeholder[0] = prefix;
    memcpy(placeholder + 1, name.at, name.len);
    return bytes_make(placeholder, name.len + 1);
}

/* names or values may be NULL: not given. */
static inline struct expr_scope expr_text_scope(struct arena *arena, const char *names,
                                                const char *values)
{
    struct expr_scope scope = {
        .arena = arena, .names_given = names != NULL, .values_given = values != NULL};
    struct attribute attribute;
    enum { MAX = 512 };
    scope.names = arena_array(arena, struct expr_name, MAX);
    scope.values = arena_array(arena, struct expr_value, MAX);
    struct bytes rest = names ? value_of_text(arena, names).payload : BYTES_NONE;
    while (attribute_take(&rest, &attribute)) {
        struct expr_name *name = &scope.names[scope.name_count++];
        name->placeholder = expr_text_placeholder(arena, '#', attribute.name);
        name->name = attribute.value.payload;
    }
    rest = values ? value_of_text(arena, values).payload : BYTES_NONE;
    while (attribute_take(&rest, &attribute)) {
        struct expr_value *value = &scope.values[scope.value_count++];
        value->placeholder = expr_text_placeholder(arena, ':', attribute.name);
        value->value = attribute.value;
    }
    return scope;
}

#endif
