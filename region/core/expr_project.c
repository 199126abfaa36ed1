/* SPDX-License-Identifier: Apache-2.0 */
/* Projection: the paths are sorted as attributes are, so one walk along both writes the result,
 * which is canonical because its source was. A path that leads nowhere leaves no trace, not even
 * the maps and lists on its way. */

#include "conflict/base/check.h"
#include "region/core/expr_internal.h"

/* How many of the paths, from the first on, share its step at `depth`. */
static uint32_t group_len(const struct expr_path *paths, uint32_t count, uint32_t depth)
{
    uint32_t len = 1;
    while (len < count && expr_path_shares(&paths[0], &paths[len], depth))
        len++;
    return len;
}

static void project_attributes(const struct expr_path *paths, uint32_t count, uint32_t depth,
                               struct bytes attributes, struct buf *to);

static void project_list(const struct expr_path *paths, uint32_t count, uint32_t depth,
                         struct bytes rest, struct buf *to);

/* Writes what the paths, all through `depth`, select of a value; false if that is nothing. */
static bool project_value(const struct expr_path *paths, uint32_t count, uint32_t depth,
                          struct value value, struct buf *to)
{
    if (paths[0].count == depth + 1) {
        buf_append_bytes(to, value.whole);
        return true;
    }
    bool by_index = paths[0].steps[depth + 1].is_index;
    if (value.type != (by_index ? VALUE_L : VALUE_M))
        return false;
    size_t start = value_begin(to, value.type);
    if (by_index)
        project_list(paths, count, depth + 1, value.payload, to);
    else
        project_attributes(paths, count, depth + 1, value.payload, to);
    if (to->len == start)
        return false;
    value_end(to, start);
    return true;
}

static void project_list(const struct expr_path *paths, uint32_t count, uint32_t depth,
                         struct bytes rest, struct buf *to)
{
    struct value element;
    for (uint32_t index = 0; count && value_take(&rest, &element); index++) {
        if (paths[0].steps[depth].index != index)
            continue;
        uint32_t len = group_len(paths, count, depth);
        size_t before = to->len;
        if (!project_value(paths, len, depth, element, to))
            to->len = before;
        paths += len;
        count -= len;
    }
}

static void project_attributes(const struct expr_path *paths, uint32_t count, uint32_t depth,
                               struct bytes attributes, struct buf *to)
{
    struct attribute attribute;
    while (count && attribute_take(&attributes, &attribute)) {
        int order = -1;
        uint32_t len = 0;
        while (count && (order = bytes_compare(paths[0].steps[depth].name, attribute.name)) < 0) {
            len = group_len(paths, count, depth);
            paths += len;
            count -= len;
        }
        if (!count || order > 0)
            continue;
        len = group_len(paths, count, depth);
        size_t before = to->len;
        buf_append_prefixed(to, attribute.name);
        if (!project_value(paths, len, depth, attribute.value, to))
            to->len = before;
        paths += len;
        count -= len;
    }
}

void expr_project(const struct expr_projection *projection, struct bytes item, struct buf *to)
{
    item_begin(to);
    project_attributes(projection->paths, projection->count, 0, item_attributes(item), to);
}

bool expr_projection_has_nested(const struct expr_projection *projection)
{
    return projection->nested;
}
