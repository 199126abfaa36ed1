/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_METRICS_H
#define REGION_METRICS_H

/* Counters and histograms of the process, and their text in Prometheus's exposition format 0.0.4,
 * with CloudWatch's names where AWS has one. Written on the loop's thread only. */

#include <stdint.h>

#include "conflict/base/bytes.h"
#include "region/core/error.h"
#include "region/core/op.h"

enum { HISTOGRAM_BOUNDS = 16 };

struct histogram {
    uint64_t buckets[HISTOGRAM_BOUNDS + 1]; /* one bound each (metrics.c), the last without */
    uint64_t count;
    uint64_t sum_ns;
};

struct metrics {
    uint64_t requests[OP_KIND_COUNT + 1][API_ERROR_COUNT]; /* the last row: no known operation */
    struct histogram latency[OP_KIND_COUNT + 1];           /* of what succeeded */
    struct histogram sync;                        /* one group of batches, written and synced */
    uint64_t groups, group_bytes, groups_refused; /* by the storage thread */
};

void histogram_add(struct histogram *histogram, uint64_t ns);
/* kind: OP_KIND_COUNT for a request that named no known operation. */
void metrics_request(struct metrics *metrics, enum op_kind kind, enum api_error error, uint64_t ns);
void metrics_group(struct metrics *metrics, uint64_t bytes, uint64_t ns, bool written);

/* Text. A family's head comes once, before its samples. */
void metrics_head(struct buf *to, const char *name, const char *type, const char *help);
/* labels: `a="b",c="d"` or empty. */
void metrics_histogram(struct buf *to, const char *name, const char *labels,
                       const struct histogram *histogram);
/* A label's value, quotes included. */
void metrics_label(struct buf *to, struct bytes value);
void metrics_write(struct buf *to, const struct metrics *metrics);

#endif
