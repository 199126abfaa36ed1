/* SPDX-License-Identifier: Apache-2.0 */
/* Document paths: their order, AWS's rules for paths that may not stand in one expression, and the
 * walk down an encoded item. */

#include <stdlib.h>

#include "region/core/expr_internal.h"

static int step_compare(const struct expr_step *a, const struct expr_step *b)
{
    if (a->is_index != b->is_index)
        return a->is_index ? -1 : 1;
    if (!a->is_index)
        return bytes_compare(a->name, b->name);
    return a->index == b->index ? 0 : a->index < b->index ? -1 : 1;
}

int expr_path_compare(const struct expr_path *a, const struct expr_path *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        int order = step_compare(&a->steps[i], &b->steps[i]);
        if (order)
            return order;
    }
    return a->count == b->count ? 0 : a->count < b->count ? -1 : 1;
}

bool expr_path_shares(const struct expr_path *a, const struct expr_path *b, uint32_t depth)
{
    return a->count > depth && b->count > depth &&
           step_compare(&a->steps[depth], &b->steps[depth]) == 0;
}

const char *expr_path_text(struct arena *arena, const struct expr_path *path)
{
    const char *text = "[";
    for (uint32_t i = 0; i < path->count; i++) {
        const struct expr_step *step = &path->steps[i];
        const char *comma = i ? ", " : "";
        text = step->is_index ? expr_message(arena, "%s%s[%u]", text, comma, step->index)
                              : expr_message(arena, "%s%s%.*s", text, comma, EXPR_TEXT(step->name));
    }
    return expr_message(arena, "%s]", text);
}

enum relation { APART, OVERLAP, CONFLICT };

/* Paths that address one thing, or a part of it, overlap; paths that go on differently from one
 * place, one by index and one by name, conflict. */
static enum relation path_relation(const struct expr_path *a, const struct expr_path *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        if (a->steps[i].is_index != b->steps[i].is_index)
            return CONFLICT;
        if (step_compare(&a->steps[i], &b->steps[i]))
            return APART;
    }
    return OVERLAP;
}

const char *expr_paths_check(struct arena *arena, const char *what, const struct expr_path *paths,
                             uint32_t count)
{
    const struct expr_path *one = NULL, *two = NULL;
    enum relation found = APART;
    for (uint32_t i = 1; i < count && found != OVERLAP; i++) {
        for (uint32_t j = 0; j < i && found != OVERLAP; j++) {
            enum relation relation = path_relation(&paths[j], &paths[i]);
            if (relation == APART || relation == found)
                continue;
            found = relation;
            one = &paths[j];
            two = &paths[i];
        }
    }
    if (found == APART)
        return NULL;
    return expr_invalid(arena, what,
                        "Two document paths %s with each other; must remove or rewrite "
                        "one of these paths; path one: %s, path two: %s",
                        found == OVERLAP ? "overlap" : "conflict", expr_path_text(arena, one),
                        expr_path_text(arena, two));
}

bool expr_path_find(const struct expr_path *path, struct bytes attributes, struct value *ret)
{
    struct value value;
    if (!attributes_find(attributes, path->steps[0].name, &value))
        return false;
    for (uint32_t i = 1; i < path->count; i++) {
        const struct expr_step *step = &path->steps[i];
        struct bytes rest = value.payload;
        if (value.type != (step->is_index ? VALUE_L : VALUE_M))
            return false;
        if (!step->is_index) {
            if (!attributes_find(rest, step->name, &value))
                return false;
            continue;
        }
        for (uint32_t left = step->index;; left--) {
            if (!value_take(&rest, &value))
                return false;
            if (left == 0)
                break;
        }
    }
    *ret = value;
    return true;
}

static int path_order(const void *a, const void *b)
{
    return expr_path_compare(a, b);
}

void expr_projection_init(struct expr_path *paths, uint32_t count, struct expr_projection *ret)
{
    if (count > 1)
        qsort(paths, count, sizeof(*paths), path_order);
    *ret = (struct expr_projection){.paths = paths, .count = count};
    for (uint32_t i = 0; i < count; i++)
        ret->nested = ret->nested || paths[i].count > 1;
}
