/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

/* The simulated worlds side by side, for whoever runs seeds of any of them: eventual tables and
 * strong ones in whole Regions, and the consensus of the strong ones alone. */

#include "chaos/sim/replay.h"

enum { SIM_FIGURES_MAX = 16 };

struct sim_result {
    const char *violation; /* NULL: ok. Static text */
    struct buf detail;     /* the caller's */
    uint64_t hash, events, virtual_ns;
    uint64_t figures[SIM_FIGURES_MAX]; /* by the world's names */
    struct sim_told told;
};

struct sim_world {
    const char *name;
    const char *about;
    unsigned bit; /* of coverage.h */
    const char *const *figure_names;
    uint32_t figure_count;
    void (*run)(const struct sim_replay *replay, struct sim_result *ret);
};

extern const struct sim_world sim_worlds[];
extern const uint32_t sim_world_count;
/* By name: "mrec", "mrsc", "consensus". NULL: there is none. */
const struct sim_world *sim_world_find(const char *name);

#endif
