/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

/* How one run of a seed is asked for, and what every kind of run tells. A seed draws its faults as
 * one list before the first of them, so a run can be had again with some of them left out, with a
 * shorter workload, or with other luck from there on: that is what a failure is made smaller by.
 * The same replay twice is the same run, to the last event. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/sim/coverage.h"
#include "chaos/sim/sim_log.h"
#include "conflict/base/bytes.h"

enum { SIM_TOLD_FAULTS_MAX = 64, SIM_TOLD_TEXT_MAX = 64 };

struct sim_told;

struct sim_replay {
    uint64_t seed;
    uint64_t faults;         /* which of the drawn ones happen, by bit */
    uint64_t luck;           /* 0: as the seed has it; else what follows the drawing of faults
                                begins from this one */
    uint64_t operations_max; /* clients send no more */
    bool trace;              /* the cores' lines go to stderr */
    struct sim_log *log;     /* NULL: nothing is to be drawn */
    struct sim_told *drawn;  /* NULL, or what is told the faults as soon as they are drawn, should
                                a core's own check end the process */
};

static inline struct sim_replay sim_replay_whole(uint64_t seed, bool trace)
{
    return (struct sim_replay){
        .seed = seed, .faults = UINT64_MAX, .operations_max = UINT64_MAX, .trace = trace};
}

struct sim_told_fault {
    uint64_t from_ns, to_ns;
    uint8_t number; /* its bit */
    uint8_t node;   /* whose lane it shades */
    char text[SIM_TOLD_TEXT_MAX];
};

struct sim_told {
    uint64_t sometimes;   /* a bit for each of coverage.h */
    uint64_t operations;  /* that clients sent amid the faults */
    uint64_t violated_ns; /* when, if it was */
    uint64_t nodes;
    struct sim_told_fault faults[SIM_TOLD_FAULTS_MAX]; /* those that happened */
    uint32_t fault_count;
};

#endif
