/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_RTO_H
#define CHECK_RTO_H

/* RTO: how long until service again, for each region and class of operation, read off the history
 * alone. An operation counts from its intended start, or the outage would hide the requests that
 * waited for it. A conflict or a failed condition is an answer. Service is back at the end of the
 * first window after the fault in which at least 99 % were answered, and the p99 of their latency
 * was good enough. */

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

#define RTO_NEVER UINT64_MAX

enum rto_class { RTO_WRITE, RTO_READ_STRONG, RTO_READ_WEAK, RTO_CLASS_COUNT };
const char *rto_class_text(enum rto_class class); /* "write", "read_strong", "read_weak" */

struct rto_options {
    uint64_t from_ns, fault_ns, to_ns; /* [from, fault): the baseline; to: the end of the run */
    uint64_t window_ns;                /* 0: 2 s */
    uint64_t slo_ns;                   /* a p99 up to here is always good enough */
    uint64_t down_regions;             /* bits: meant to stay down, and not judged */
};

struct rto_row {
    uint8_t region;
    enum rto_class class;
    uint32_t baseline_count, count;            /* operations before the fault, and after */
    uint64_t baseline_p50_ns, baseline_p99_ns; /* of what was answered */
    uint64_t first_success_ns;                 /* after the fault; RTO_NEVER */
    uint64_t rto_ns;                           /* after the fault; RTO_NEVER */
    uint64_t unavailable_ns; /* in bins of 100 ms after the fault with under 50 % success */
};

struct rto_table { /* a row for each region and class that has operations after the fault */
    struct rto_row *rows;
    uint32_t count;
};
void rto_table_deinit(struct rto_table *table);

/* UNKNOWN if there is no operation to judge. WRONG if some row's rto is never; whether it was soon
 * enough is the caller's. Figures: rto_max_ns, first_success_max_ns, unavailable_max_ns. No rto is
 * below the window. ret_table may be NULL. */
void check_rto(const struct history *history, const struct rto_options *options,
               struct rto_table *ret_table, struct verdict *ret);

#endif
