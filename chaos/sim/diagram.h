/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DIAGRAM_H
#define SIM_DIAGRAM_H

/* The messages around a violation, as one SVG that can be looked at anywhere and printed in black
 * and white: a lane for each node, time downwards, an arrow for each message, faults as hatched
 * bands beside the lanes. A row is an event, not a span of time: what happened in which order
 * matters, and the times stand at the left. */

#include "chaos/sim/replay.h"

enum { SIM_DIAGRAM_ENTRIES_MAX = 80, SIM_DIAGRAM_LANES_MAX = 8 };

struct sim_diagram {
    const char *title;        /* "mrsc, seed 17" */
    const char *violation;    /* what is wrong; NULL: nothing */
    const char *const *lanes; /* names */
    uint32_t lane_count;
    const struct sim_log *log;
    const struct sim_told *told; /* its faults, and when it was violated: the window ends there */
};

void sim_diagram_write(const struct sim_diagram *diagram, struct buf *to);

#endif
