/* SPDX-License-Identifier: Apache-2.0 */
/* Placeholders become names and values, and are marked as used. A request may define many more than
 * an expression can name, so beyond a handful they are found through an index. */

#include "region/core/expr_internal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { INDEX_MIN = 16 };

/* Placeholders of names and of values stand first in their structs, so one index serves both. */
static struct bytes placeholder_at(const void *entries, size_t stride, uint32_t i)
{
    const void *entry = (const char *)entries + stride * i;
    return *(const struct bytes *)entry;
}

static void index_build(struct arena *arena, const void *entries, size_t stride, uint32_t count,
                        struct expr_placeholder_index *ret)
{
    uint32_t room = 2 * INDEX_MIN;
    while (room / 2 < count)
        room *= 2;
    ret->slots = arena_array(arena, uint32_t, room);
    ret->mask = room - 1;
    for (uint32_t i = 0; i < count; i++) {
        struct bytes key = placeholder_at(entries, stride, i);
        uint32_t slot = (uint32_t)XXH3_64bits(key.at, key.len) & ret->mask;
        while (ret->slots[slot])
            slot = (slot + 1) & ret->mask;
        ret->slots[slot] = i + 1;
    }
}

/* The position, or `count`. */
static uint32_t placeholder_find(struct arena *arena, struct expr_placeholder_index *index,
                                 const void *entries, size_t stride, uint32_t count,
                                 struct bytes placeholder)
{
    if (count < INDEX_MIN) {
        uint32_t i = 0;
        while (i < count && !bytes_equal(placeholder_at(entries, stride, i), placeholder))
            i++;
        return i;
    }
    if (!index->slots)
        index_build(arena, entries, stride, count, index);
    uint32_t slot = (uint32_t)XXH3_64bits(placeholder.at, placeholder.len) & index->mask;
    for (; index->slots[slot]; slot = (slot + 1) & index->mask) {
        uint32_t i = index->slots[slot] - 1;
        if (bytes_equal(placeholder_at(entries, stride, i), placeholder))
            return i;
    }
    return count;
}

const char *expr_resolve_path(struct expr_checker *checker, struct expr_path *path)
{
    struct expr_scope *scope = checker->scope;
    if (path->count > EXPR_PATH_DEPTH_MAX)
        return expr_invalid(scope->arena, checker->what,
                            "The document path has too many nesting levels; nesting levels: %u",
                            path->count);
    for (uint32_t i = 0; i < path->count; i++) {
        struct expr_step *step = &path->steps[i];
        if (!step->is_placeholder)
            continue;
        uint32_t at = placeholder_find(scope->arena, &checker->names, scope->names,
                                       sizeof(*scope->names), scope->name_count, step->name);
        if (at == scope->name_count)
            return expr_invalid(
                scope->arena, checker->what,
                "An expression attribute name used in the document path is not defined; "
                "attribute name: %.*s",
                EXPR_TEXT(step->name));
        scope->names[at].used = true;
        step->name = scope->names[at].name;
        step->is_placeholder = false;
    }
    return NULL;
}

const char *expr_resolve_value(struct expr_checker *checker, struct expr_node *node)
{
    struct expr_scope *scope = checker->scope;
    uint32_t at = placeholder_find(scope->arena, &checker->values, scope->values,
                                   sizeof(*scope->values), scope->value_count, node->text);
    if (at == scope->value_count)
        return expr_invalid(
            scope->arena, checker->what,
            "An expression attribute value used in expression is not defined; attribute "
            "value: %.*s",
            EXPR_TEXT(node->text));
    scope->values[at].used = true;
    node->value = scope->values[at].value;
    return NULL;
}
