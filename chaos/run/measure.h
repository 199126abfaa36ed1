/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_MEASURE_H
#define RUN_MEASURE_H

/* What an expectation is about, as a number: rates and latencies off the history and the samples
 * (also of the last seconds, while a run goes on), all else off what the checkers said. Times are
 * in ns, INFINITY is never, a truth is 0 or 1. */

#include <stdbool.h>

#include "chaos/run/outcome.h"

struct measure_span {
    uint64_t from_ns, to_ns; /* of operations that were over, and samples taken, in [from, to) */
};

/* Whether the metric can be measured while a run goes on. */
bool measure_is_live(enum scenario_metric metric);
/* A live metric over a span. The end of the history is looked at first, and nothing before the span
 * but what happened to be noted late. False: there was nothing to measure. */
bool measure_live(const struct outcome *outcome, const struct scenario_expect *expect,
                  struct measure_span span, double *ret);
/* Any metric of a run that is over and checked; LINEARIZABLE only in strong mode, where a check has
 * judged it. */
bool measure_expect(const struct outcome *outcome, const struct scenario_expect *expect,
                    double *ret);
/* measure_data.c: one of what became of the data. */
bool measure_data(const struct outcome *outcome, enum scenario_metric metric, double *ret);
/* The same of what became of the data, where it is exact: the one figure that the sentence, the
 * page and result.json all tell. False: it is unknown. */
bool measure_known(const struct outcome *outcome, enum scenario_metric metric, double *ret);
/* How much greater than measure_expect's answer the number may be in truth, as some of what it
 * counts nobody can tell; 0: it is exact. */
double measure_doubt(const struct outcome *outcome, enum scenario_metric metric);
/* Whether the workload, if its operations are seen, has had any write acknowledged. Where none was,
 * that nothing was lost says nothing. */
bool measure_any_write(const struct outcome *outcome);
/* The data Regions that lost what they had, as bits: with a disk, for good, or with the tables. */
uint64_t measure_lost(const struct outcome *outcome);
/* When they did; the caller's to free. */
struct rpo_death *measure_deaths(const struct outcome *outcome, uint32_t *ret_count);
/* No Region had a table any more in the end, so everything is lost. */
bool measure_all_gone(const struct outcome *outcome);
/* The check of that name, or NULL. */
const struct outcome_check *measure_check(const struct outcome *outcome, const char *name);
/* The checker that tells whether the workload's history is linearizable; NULL: none can. */
const char *measure_order_check(const struct scenario *scenario);
/* "1.234 s", "no", "17", as the metric is. */
void measure_print(enum scenario_metric metric, double actual, struct buf *to);

#endif
