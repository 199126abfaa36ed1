/* SPDX-License-Identifier: Apache-2.0 */
/* A limit that names no Region is about the worst of them: each is measured by itself, so that one
 * Region in trouble does not hide behind two that are well. */

#include "chaos/run/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/check/items.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* Operations are noted when they are over, so the end of the history is about in order of
 * return_ns; this is how far one may be out of it. */
#define LATE_NS UINT64_C(1000000000)

struct tally {
    uint64_t count, served, unknown, conflicts;
    uint64_t from_ns, to_ns; /* of the first intended and the last return */
};

const struct outcome_check *measure_check(const struct outcome *outcome, const char *name)
{
    for (uint32_t i = 0; i < outcome->check_count; i++)
        if (strcmp(outcome->checks[i].name, name) == 0)
            return &outcome->checks[i];
    return NULL;
}

/* ---- Rates and latencies ---- */

static bool is_of_class(const struct history_op *op, uint8_t class)
{
    bool writes = history_kind_writes((enum history_kind)op->kind);
    switch ((enum scenario_class) class) {
    case SCENARIO_CLASS_ANY:
        return true;
    case SCENARIO_CLASS_WRITE:
        return writes;
    case SCENARIO_CLASS_READ_STRONG:
        return !writes && op->strong;
    case SCENARIO_CLASS_READ_EVENTUAL:
        return !writes && !op->strong;
    case SCENARIO_CLASS_COUNT:
        break;
    }
    unreachable();
}

static bool was_served(const struct history_op *op)
{
    return history_answered(op) || op->reason == HISTORY_REASON_CONFLICT;
}

/* region: a place, or ALL. latencies: room for those that were served, or NULL. */
static struct tally count_up(const struct outcome *outcome, uint8_t class, uint8_t region,
                             struct measure_span span, uint64_t *latencies)
{
    const struct history *history = &outcome->history;
    struct tally tally = {.from_ns = UINT64_MAX};
    for (uint32_t i = history->count; i > 0; i--) {
        const struct history_op *op = &history->ops[i - 1];
        if (op->return_ns + LATE_NS < span.from_ns)
            break;
        if (op->final || op->return_ns < span.from_ns || op->return_ns >= span.to_ns ||
            !is_of_class(op, class) || (region != SCENARIO_REGION_ALL && op->region != region))
            continue;
        if (was_served(op) && latencies != NULL)
            latencies[tally.served] = op->return_ns - op->intended_ns;
        tally.count++;
        tally.served += was_served(op);
        tally.unknown += op->outcome == HISTORY_INFO;
        tally.conflicts += op->reason == HISTORY_REASON_CONFLICT;
        tally.from_ns = op->intended_ns < tally.from_ns ? op->intended_ns : tally.from_ns;
        tally.to_ns = op->return_ns > tally.to_ns ? op->return_ns : tally.to_ns;
    }
    return tally;
}

static bool latency_of(const struct outcome *outcome, const struct scenario_expect *expect,
                       uint8_t region, struct measure_span span, double *ret)
{
    uint64_t count = count_up(outcome, expect->class, region, span, NULL).served;
    if (count == 0)
        return false;
    uint64_t *latencies = xcalloc(count, sizeof(*latencies));
    count_up(outcome, expect->class, region, span, latencies);
    numbers_sort(latencies, count);
    *ret = (double)numbers_quantile(latencies, count,
                                    expect->metric == METRIC_LATENCY_P50 ? 500000 : 990000);
    free(latencies);
    return true;
}

static bool throughput(const struct outcome *outcome, const struct scenario_expect *expect,
                       struct measure_span span, double *ret)
{
    struct tally tally = count_up(outcome, expect->class, expect->region, span, NULL);
    bool live = span.to_ns != UINT64_MAX;
    if (!live && (tally.count == 0 || tally.to_ns <= tally.from_ns))
        return false;
    uint64_t ns = live ? span.to_ns - span.from_ns : tally.to_ns - tally.from_ns;
    *ret = (double)tally.served / ((double)ns / 1e9);
    return true;
}

static bool lag_of(const struct outcome *outcome, uint8_t region, struct measure_span span,
                   double *ret)
{
    bool known = false;
    *ret = 0;
    for (uint32_t i = outcome->sample_count; i > 0; i--) {
        const struct outcome_sample *sample = &outcome->samples[i - 1];
        if (sample->at_ns < span.from_ns)
            break;
        if (sample->at_ns >= span.to_ns || !sample->region[region].up)
            continue;
        known = true;
        *ret = fmax(*ret, (double)sample->region[region].lag_ns);
    }
    return known;
}

static bool live_of(const struct outcome *outcome, const struct scenario_expect *expect,
                    uint8_t region, struct measure_span span, double *ret)
{
    if (expect->metric == METRIC_LATENCY_P50 || expect->metric == METRIC_LATENCY_P99)
        return latency_of(outcome, expect, region, span, ret);
    if (expect->metric == METRIC_LAG)
        return lag_of(outcome, region, span, ret);
    struct tally tally = count_up(outcome, expect->class, region, span, NULL);
    if (tally.count == 0)
        return false;
    if (expect->metric == METRIC_CONFLICTS)
        *ret = (double)tally.conflicts;
    else
        *ret = (double)(expect->metric == METRIC_UNKNOWN_RATE ? tally.unknown
                                                              : tally.count - tally.served) /
               (double)tally.count;
    return true;
}

bool measure_is_live(enum scenario_metric metric)
{
#define METRIC(enumerator, name, type, divided, timing, live, help) [METRIC_##enumerator] = live,
    static const bool live[] = {SCENARIO_METRIC_MAP(METRIC)};
#undef METRIC
    return live[metric];
}

bool measure_live(const struct outcome *outcome, const struct scenario_expect *expect,
                  struct measure_span span, double *ret)
{
    check(measure_is_live((enum scenario_metric)expect->metric));
    if (expect->metric == METRIC_THROUGHPUT)
        return throughput(outcome, expect, span, ret);
    if (expect->region != SCENARIO_REGION_ALL)
        return live_of(outcome, expect, expect->region, span, ret);
    bool known = false;
    double worst = 0, one;
    for (uint8_t i = 0; i < outcome->scenario->cluster.data_count; i++) {
        if (!live_of(outcome, expect, i, span, &one))
            continue;
        worst = known ? fmax(worst, one) : one;
        known = true;
    }
    if (known)
        *ret = worst;
    return known;
}

/* ---- Service ---- */

static double time_of(uint64_t ns)
{
    return ns == UINT64_MAX ? INFINITY : (double)ns;
}

static bool rto_of(const struct outcome *outcome, const struct scenario_expect *expect, double *ret)
{
    bool known = false;
    double worst = 0;
    for (uint32_t i = 0; i < outcome->rto.count; i++) {
        const struct rto_row *row = &outcome->rto.rows[i];
        if ((expect->region != SCENARIO_REGION_ALL && expect->region != row->region) ||
            (expect->class != SCENARIO_CLASS_ANY && expect->class != (uint8_t)row->class + 1))
            continue;
        known = true;
        worst =
            fmax(worst, time_of(expect->metric == METRIC_RTO             ? row->rto_ns
                                : expect->metric == METRIC_FIRST_SUCCESS ? row->first_success_ns
                                                                         : row->unavailable_ns));
    }
    *ret = worst;
    return known;
}

/* When the last fault that was on the Region ended; 0: there was none. */
static uint64_t returned_ns(const struct outcome *outcome, uint8_t region)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        if (fault->refused || !(fault->regions >> region & 1))
            continue;
        uint64_t end = fault->to_ns != 0 ? fault->to_ns : outcome->healed_ns;
        at = end > at ? end : at;
    }
    return at;
}

static bool catch_up_of(const struct outcome *outcome, const struct scenario_expect *expect,
                        uint8_t region, double *ret)
{
    uint64_t from = returned_ns(outcome, region), first = UINT64_MAX;
    bool strong = outcome->scenario->cluster.mode == SCENARIO_STRONG;
    if (from == 0 || outcome->down_regions >> region & 1)
        return false;
    for (uint32_t i = 0; i < outcome->history.count; i++) {
        const struct history_op *op = &outcome->history.ops[i];
        bool asks = history_kind_writes((enum history_kind)op->kind) || op->strong || !strong;
        if (op->region == region && asks && is_of_class(op, expect->class) && was_served(op) &&
            op->return_ns >= from && op->return_ns < first)
            first = op->return_ns;
    }
    *ret = first == UINT64_MAX ? INFINITY : (double)(first - from);
    return true;
}

static bool catch_up(const struct outcome *outcome, const struct scenario_expect *expect,
                     double *ret)
{
    if (expect->region != SCENARIO_REGION_ALL)
        return catch_up_of(outcome, expect, expect->region, ret);
    bool known = false;
    double worst = 0, one;
    for (uint8_t i = 0; i < outcome->scenario->cluster.data_count; i++)
        if (catch_up_of(outcome, expect, i, &one)) {
            worst = fmax(worst, one);
            known = true;
        }
    *ret = worst;
    return known;
}

static bool staleness_of(const struct outcome *outcome, const struct scenario_expect *expect,
                         double *ret)
{
    bool known = false;
    double worst = 0;
    for (uint32_t i = 0; i < outcome->staleness.count; i++) {
        const struct staleness_row *row = &outcome->staleness.rows[i];
        uint8_t class = row->strong ? SCENARIO_CLASS_READ_STRONG : SCENARIO_CLASS_READ_EVENTUAL;
        if ((expect->region != SCENARIO_REGION_ALL && expect->region != row->region) ||
            (expect->class != SCENARIO_CLASS_ANY && expect->class != class))
            continue;
        known = true;
        worst = fmax(worst, (double)(expect->metric == METRIC_STALENESS_P50   ? row->p50_ns
                                     : expect->metric == METRIC_STALENESS_P99 ? row->p99_ns
                                                                              : row->max_ns));
    }
    *ret = worst;
    return known;
}

/* ---- All ---- */

bool measure_expect(const struct outcome *outcome, const struct scenario_expect *expect,
                    double *ret)
{
    const struct measure_span whole = {0, UINT64_MAX};
    switch ((enum scenario_metric)expect->metric) {
    case METRIC_RTO:
    case METRIC_FIRST_SUCCESS:
    case METRIC_UNAVAILABLE:
        return rto_of(outcome, expect, ret);
    case METRIC_CATCH_UP:
        return catch_up(outcome, expect, ret);
    case METRIC_RPO_COUNT:
    case METRIC_RPO_TIME:
    case METRIC_RPO_BYTES:
    case METRIC_LINEARIZABLE:
    case METRIC_LOST_UPDATES:
    case METRIC_LOST_OTHER:
    case METRIC_PHANTOMS:
    case METRIC_ZOMBIES:
    case METRIC_CONVERGED:
    case METRIC_CONVERGE:
    case METRIC_LEDGER_COMPLETE:
        return measure_data(outcome, (enum scenario_metric)expect->metric, ret);
    case METRIC_STALENESS_P50:
    case METRIC_STALENESS_P99:
    case METRIC_STALENESS_MAX:
        return staleness_of(outcome, expect, ret);
    case METRIC_LATENCY_P50:
    case METRIC_LATENCY_P99:
    case METRIC_THROUGHPUT:
    case METRIC_ERROR_RATE:
    case METRIC_UNKNOWN_RATE:
    case METRIC_CONFLICTS:
    case METRIC_LAG:
        return measure_live(outcome, expect, whole, ret);
    case METRIC_EXIT_CODE:
        *ret = outcome->exit_code;
        return outcome->exited;
    case SCENARIO_METRIC_COUNT:
        break;
    }
    unreachable();
}

void measure_print(enum scenario_metric metric, double actual, struct buf *to)
{
    enum type { NUMBER, TIME, BYTES, BOOL };
#define METRIC(enumerator, name, type, ...) [METRIC_##enumerator] = type,
    static const enum type types[] = {SCENARIO_METRIC_MAP(METRIC)};
#undef METRIC
    if (isinf(actual))
        buf_append_text(to, "never");
    else if (types[metric] == BOOL)
        buf_append_text(to, actual != 0 ? "true" : "false");
    else if (types[metric] == TIME && actual < 1e9)
        buf_printf(to, "%.4g ms", actual / 1e6);
    else if (types[metric] == TIME)
        buf_printf(to, "%.4g s", actual / 1e9);
    else if (types[metric] == BYTES)
        buf_printf(to, "%.0f bytes", actual);
    else
        buf_printf(to, "%.6g", actual);
}
