/* SPDX-License-Identifier: Apache-2.0 */
/* Which figures a run can have at all, by workload and mode: what no checker of such a run tells
 * (chaos/run/judge.c) is never measured, however the run goes. The test of chaos/simulate plays
 * each workload in each mode and compares what was measured with this. */

#include "chaos/scenario/scenario.h"

#include "conflict/base/check.h"

#define KIND(kind) (1u << SCENARIO_##kind)
/* Each value names the write that it is of. */
#define REGISTERS (KIND(SWAP_REGISTER) | KIND(CAS_REGISTER) | KIND(LWW_CONFLICT))
/* Some checker knows what is to be there. */
#define CHECKED (REGISTERS | KIND(COUNTER) | KIND(APPEND) | KIND(SET))
/* Clients of ours, of whose operations there is a history. */
#define OURS (CHECKED | KIND(YCSB_A) | KIND(YCSB_B) | KIND(YCSB_F))
#define ALL (OURS | KIND(EXEC))

static const struct row {
    uint32_t eventual, strong; /* sets of workloads */
    const char *why;           /* it is in none of those */
} rows[SCENARIO_METRIC_COUNT] = {
    [METRIC_RPO_COUNT] = {ALL, ALL, NULL},
    [METRIC_RPO_TIME] = {ALL, ALL, NULL},
    [METRIC_RPO_BYTES] = {ALL, ALL, NULL},
    [METRIC_RTO] = {OURS, OURS, NULL},
    [METRIC_FIRST_SUCCESS] = {OURS, OURS, NULL},
    [METRIC_UNAVAILABLE] = {OURS, OURS, NULL},
    [METRIC_LINEARIZABLE] = {CHECKED, CHECKED, "no checker judges the order of such operations"},
    [METRIC_LOST_UPDATES] = {CHECKED, CHECKED, "nobody knows what its items should hold"},
    [METRIC_LOST_OTHER] = {REGISTERS | KIND(APPEND) | KIND(SET), CHECKED,
                           "no checker can tell why one of its writes is missing"},
    [METRIC_PHANTOMS] = {ALL, ALL, NULL},
    [METRIC_ZOMBIES] = {ALL, 0, "a strong table keeps no tombstones that could go too early"},
    [METRIC_CONVERGED] = {ALL, ALL, NULL},
    [METRIC_CONVERGE] = {ALL, ALL, NULL},
    [METRIC_CATCH_UP] = {OURS, OURS, NULL},
    [METRIC_LEDGER_COMPLETE] = {REGISTERS, 0,
                                "ledgers are of eventual tables, and judged where each value names "
                                "its writer: swap-register, cas-register, lww-conflict"},
    [METRIC_STALENESS_P50] = {REGISTERS, REGISTERS,
                              "the age of a read is known only where each "
                              "value names its writer: swap-register, "
                              "cas-register, lww-conflict"},
    [METRIC_STALENESS_P99] = {REGISTERS, REGISTERS,
                              "the age of a read is known only where each "
                              "value names its writer: swap-register, "
                              "cas-register, lww-conflict"},
    [METRIC_STALENESS_MAX] = {REGISTERS, REGISTERS,
                              "the age of a read is known only where each "
                              "value names its writer: swap-register, "
                              "cas-register, lww-conflict"},
    [METRIC_LATENCY_P50] = {OURS, OURS, NULL},
    [METRIC_LATENCY_P99] = {OURS, OURS, NULL},
    [METRIC_THROUGHPUT] = {OURS, OURS, NULL},
    [METRIC_ERROR_RATE] = {OURS, OURS, NULL},
    [METRIC_UNKNOWN_RATE] = {OURS, OURS, NULL},
    [METRIC_CONFLICTS] = {OURS, OURS, NULL},
    [METRIC_LAG] = {ALL, 0, "a strong table waits for its copies, so there is no lag"},
    [METRIC_EXIT_CODE] = {KIND(EXEC), KIND(EXEC),
                          "only a workload of `kind: exec` has a program that exits"},
};

const char *scenario_never_measured(const struct scenario *scenario, enum scenario_metric metric)
{
    check(metric < SCENARIO_METRIC_COUNT);
    const struct row *row = &rows[metric];
    uint32_t kind = 1u << scenario->workload.kind;
    uint32_t kinds = scenario->cluster.mode == SCENARIO_STRONG ? row->strong : row->eventual;
    if ((kinds & kind) != 0)
        return NULL;
    if (kind == KIND(EXEC) && (row->why == NULL || row->eventual != 0))
        return "of what a program of your own does there is no history to measure it by";
    return row->why;
}
