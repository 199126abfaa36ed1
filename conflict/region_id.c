/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up in the table of region_id.h, both ways. */

#include "conflict/region_id.h"

#include <stddef.h>

#include "conflict/base/check.h"

static const struct {
    const char *name;
    bool strong;
} regions[] = {
#define REGION(number, region_name, is_strong) [number] = {region_name, is_strong},
    REGION_ID_MAP(REGION)
#undef REGION
};

uint16_t region_id_find(struct bytes name)
{
    for (uint16_t id = 1; id <= REGION_ID_MAX; id++)
        if (bytes_is(name, regions[id].name))
            return id;
    return REGION_ID_NONE;
}

const char *region_id_name(uint16_t id)
{
    check(region_id_valid(id));
    return regions[id].name;
}

bool region_id_valid(uint64_t id)
{
    return id >= 1 && id <= REGION_ID_MAX;
}

bool region_id_strong(uint16_t id)
{
    check(region_id_valid(id));
    return regions[id].strong;
}
