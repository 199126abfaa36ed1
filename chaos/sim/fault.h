/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

/* A plan of faults, drawn whole from a seed before the run, so that it can be printed, and undone
 * at its end. Swarm testing (Groce et al. 2012): a plan uses only some kinds of fault, because a
 * run that always has all of them never gets into the states that only one leads to. */

#include <stdint.h>

#include "chaos/sim/cluster.h"
#include "chaos/sim/replay.h"

/* FAULT(enumerator, name) */
#define SIM_FAULT_MAP(FAULT)                                                                       \
    FAULT(CRASH, "crash")         /* a dies, unsynced batches are lost; starts again at the end */ \
    FAULT(CUT, "cut")             /* a's stream to b */                                            \
    FAULT(PARTITION, "partition") /* both streams between a and b */                               \
    FAULT(ISOLATE, "isolate")     /* all streams from and to a */                                  \
    FAULT(DELAY, "delay")         /* a's messages to b take longer */                              \
    FAULT(CLOCK_OFFSET, "clock-offset")                                                            \
    FAULT(CLOCK_RATE, "clock-rate")                                                                \
    FAULT(DISK_FULL, "disk-full")                                                                  \
    FAULT(DISK_SLOW, "disk-slow")                                                                  \
    FAULT(PAUSE, "pause")         /* a stands still */                                             \
    FAULT(LOSE_DISK, "lose-disk") /* a crash, and an empty disk */                                 \
    FAULT(DAMAGE, "damage")       /* a crash, and a row of a strong group's log is unreadable */

enum sim_fault_kind {
#define FAULT(enumerator, name) SIM_FAULT_##enumerator,
    SIM_FAULT_MAP(FAULT)
#undef FAULT
        SIM_FAULT_KIND_COUNT
};

struct sim_fault {
    uint64_t at_ns, until_ns;
    enum sim_fault_kind kind;
    uint32_t a, b;
    uint8_t number; /* as drawn */
    int64_t amount; /* ns of delay, ms of offset, ppm of rate, times slower */
};

enum { SIM_FAULTS_MAX = 12, SIM_FAULTS_ADDED_MAX = 8 }; /* drawn; and added to those */
/* What eventual tables are tried with; which disks are lost is drawn apart (eventual_loss.c). */
enum { SIM_FAULTS_EVENTUAL = (1 << SIM_FAULT_DISK_SLOW) - 1 };

struct sim_plan {
    struct sim_fault faults[SIM_FAULTS_MAX + SIM_FAULTS_ADDED_MAX];
    uint32_t count;
};

const char *sim_fault_name(enum sim_fault_kind kind);
/* Faults within [from_ns, to_ns). `allowed` is a set of 1 << kind. */
void sim_plan_draw(struct sim_plan *plan, struct rng *rng, uint32_t nodes, uint64_t from_ns,
                   uint64_t to_ns, uint32_t allowed);
/* `number` is set here. */
void sim_plan_add(struct sim_plan *plan, struct sim_fault fault);
/* Leaves out what is not in the set of numbers. */
void sim_plan_keep(struct sim_plan *plan, uint64_t numbers);
void sim_plan_tell(const struct sim_plan *plan, struct sim_told *told);
void sim_fault_begin(struct sim_cluster *cluster, const struct sim_fault *fault);
/* Undoes this fault; what another fault still holds down stays down (the plan is asked). */
void sim_fault_end(struct sim_cluster *cluster, const struct sim_plan *plan,
                   const struct sim_fault *fault);
/* One line a fault. */
void sim_plan_print(const struct sim_plan *plan, struct buf *to);

#endif
