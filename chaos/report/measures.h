/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_MEASURES_H
#define REPORT_MEASURES_H

/* A history in numbers for people: how many operations of each kind came to what, how long answers
 * took, and both over time. An operation counts from the moment it was due, as in rto.h, and its
 * last look is not counted. Pure. */

#include "chaos/check/rto.h"
#include "chaos/run/outcome.h"

enum { MEASURES_BUCKETS = 512 }; /* eight to each power of two of ns */

struct measures_class {              /* one Region, one class of operations */
    uint64_t answered, failed, info; /* answered: as in rto.h, refusals by a condition included */
    uint64_t p50_ns, p90_ns, p99_ns, p999_ns, max_ns; /* of answers */
    uint32_t bucket[MEASURES_BUCKETS];
};

struct measures_bin {
    uint32_t answered, failed, info;
    uint64_t p50_ns, p99_ns; /* 0: no answer */
};

struct measures {
    uint64_t from_ns, span_ns; /* of the run; the span is at least 1 ms */
    uint64_t bin_ns;           /* a multiple of 100 ms */
    uint32_t bin_count;
    struct measures_bin *bins[SCENARIO_REGIONS_MAX]; /* NULL: beyond the last Region */
    struct measures_class class[SCENARIO_REGIONS_MAX][RTO_CLASS_COUNT];
    /* Of all operations, the last look included. */
    uint64_t count[SCENARIO_REGIONS_MAX][HISTORY_KIND_COUNT][HISTORY_OUTCOME_COUNT];
    uint64_t reason[SCENARIO_REGIONS_MAX][HISTORY_REASON_COUNT];
};

/* As many bins of 100 ms as the run has, or fewer and longer ones, at most bins_max. */
void measures_init(struct measures *measures, const struct outcome *outcome, uint32_t bins_max);
void measures_deinit(struct measures *measures);
/* The greatest latency that falls into a bucket. */
uint64_t measures_bucket_ns(uint32_t bucket);
/* By kind and outcome, as one number. */
uint64_t measures_total(const struct measures *measures, enum history_outcome outcome);

#endif
