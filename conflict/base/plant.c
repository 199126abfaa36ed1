/* SPDX-License-Identifier: Apache-2.0 */
/* The switch of a build with planted bugs; empty in every other. */

#include "conflict/base/plant.h"

#ifdef TIDEMARK_PLANTED
#include <stddef.h>
#include <string.h>

enum plant plant_active = PLANT_NONE;

static const char *const names[] = {
#define PLANT(enumerator, name) name,
    PLANT_MAP(PLANT)
#undef PLANT
};

const char *plant_name(void)
{
    return plant_active == PLANT_NONE ? NULL : names[plant_active - 1];
}

bool plant_take(int *argc, char **argv)
{
    int kept = 1;
    bool known = true;
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--plant") != 0 || i + 1 == *argc) {
            argv[kept++] = argv[i];
            continue;
        }
        size_t found = 0;
        while (found < sizeof(names) / sizeof(names[0]) && strcmp(names[found], argv[i + 1]) != 0)
            found++;
        known = found < sizeof(names) / sizeof(names[0]);
        plant_active = known ? (enum plant)(found + 1) : PLANT_NONE;
        i++;
    }
    argv[kept] = NULL;
    *argc = kept;
    return known;
}
#endif
