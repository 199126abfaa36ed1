/* SPDX-License-Identifier: Apache-2.0 */
/* A search of a short list. */

#include "chaos/run/shipped.h"

#include <string.h>

const struct shipped_scenario *shipped_find(const char *name)
{
    for (uint32_t i = 0; i < shipped_scenario_count; i++)
        if (strcmp(shipped_scenarios[i].name, name) == 0)
            return &shipped_scenarios[i];
    return NULL;
}
