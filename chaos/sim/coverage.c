/* SPDX-License-Identifier: Apache-2.0 */
/* See coverage.h. */

#include "chaos/sim/coverage.h"

#include "conflict/base/check.h"

static const struct {
    unsigned worlds;
    const char *name, *text;
} points[] = {
#define POINT(enumerator, worlds, name, text) {worlds, name, text},
    SOMETIMES_MAP(POINT)
#undef POINT
};

const char *sometimes_name(enum sometimes point)
{
    check((unsigned)point < array_len(points));
    return points[point].name;
}

const char *sometimes_text(enum sometimes point)
{
    check((unsigned)point < array_len(points));
    return points[point].text;
}

bool sometimes_is_of(enum sometimes point, unsigned world)
{
    check((unsigned)point < array_len(points));
    return (points[point].worlds & world) != 0;
}
