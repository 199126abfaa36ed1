/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_SHIPPED_H
#define RUN_SHIPPED_H

/* The scenarios of chaos/scenarios, which are built into the program (embed.cmake), so that they
 * can be named without a path wherever it is installed. */

#include <stdint.h>

#include "conflict/base/bytes.h"

struct shipped_scenario {
    const char *name; /* of its file, without .yaml */
    const char *text;
    size_t len;
};

extern const struct shipped_scenario shipped_scenarios[]; /* by name */
extern const uint32_t shipped_scenario_count;

/* NULL: there is none of that name. */
const struct shipped_scenario *shipped_find(const char *name);

#endif
