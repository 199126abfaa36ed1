/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies are put in order by what they are counted for (a class, or a bin), each in a run of its
 * own in one array; a run is then sorted by itself. */

#include "chaos/report/measures.h"

#include <stdlib.h>

#include "chaos/check/items.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

#define BIN_NS UINT64_C(100000000)

static enum rto_class class_of(const struct history_op *op)
{
    if (history_kind_writes((enum history_kind)op->kind))
        return RTO_WRITE;
    return op->strong ? RTO_READ_STRONG : RTO_READ_WEAK;
}

static bool is_answered(const struct history_op *op)
{
    return history_answered(op) || op->reason == HISTORY_REASON_CONFLICT;
}

static uint64_t latency_of(const struct history_op *op)
{
    return op->return_ns - op->intended_ns;
}

static uint32_t bucket_of(uint64_t ns)
{
    uint32_t power = 63 - (uint32_t)__builtin_clzll(ns | 1);
    if (power < 3)
        return (uint32_t)ns;
    return (power - 2) * 8 + (uint32_t)(ns >> (power - 3) & 7);
}

uint64_t measures_bucket_ns(uint32_t bucket)
{
    check(bucket < MEASURES_BUCKETS);
    if (bucket < 8)
        return bucket;
    uint32_t power = bucket / 8 + 2;
    uint64_t step = UINT64_C(1) << (power - 3);
    return (UINT64_C(1) << power) + (bucket % 8) * step + (step - 1);
}

/* ---- What each operation is counted for ---- */

static uint32_t class_run(const struct measures *measures, const struct history_op *op)
{
    (void)measures;
    return op->region * (uint32_t)RTO_CLASS_COUNT + class_of(op);
}

static uint32_t bin_at(const struct measures *measures, uint64_t at_ns)
{
    uint64_t since = at_ns < measures->from_ns ? 0 : at_ns - measures->from_ns;
    uint64_t bin = since / measures->bin_ns;
    return bin < measures->bin_count ? (uint32_t)bin : measures->bin_count - 1;
}

static uint32_t bin_run(const struct measures *measures, const struct history_op *op)
{
    return op->region * measures->bin_count + bin_at(measures, op->intended_ns);
}

struct runs {
    uint64_t *values; /* sorted within each run */
    uint32_t *end;    /* of each run; it begins where the one before ends */
    uint32_t count;
};

/* Sorts the latencies of all answers into runs. */
static struct runs runs_make(const struct measures *measures, const struct history *history,
                             uint32_t count,
                             uint32_t (*run_of)(const struct measures *, const struct history_op *))
{
    struct runs runs = {.values = xmalloc((size_t)history->count * sizeof(*runs.values)),
                        .end = xcalloc(count, sizeof(*runs.end)),
                        .count = count};
    for (uint32_t i = 0; i < history->count; i++)
        if (!history->ops[i].final && is_answered(&history->ops[i]))
            runs.end[run_of(measures, &history->ops[i])]++;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) { /* from lengths to beginnings, which grow to ends */
        uint32_t len = runs.end[i];
        runs.end[i] = at;
        at += len;
    }
    for (uint32_t i = 0; i < history->count; i++)
        if (!history->ops[i].final && is_answered(&history->ops[i]))
            runs.values[runs.end[run_of(measures, &history->ops[i])]++] =
                latency_of(&history->ops[i]);
    for (uint32_t i = 0, from = 0; i < count; from = runs.end[i++])
        numbers_sort(runs.values + from, runs.end[i] - from);
    return runs;
}

static void runs_free(struct runs *runs)
{
    free(runs->values);
    free(runs->end);
}

/* ---- Filling ---- */

static void count_ops(struct measures *measures, const struct history *history)
{
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        check(op->region < SCENARIO_REGIONS_MAX && measures->bins[op->region] != NULL);
        measures->count[op->region][op->kind][op->outcome]++;
        measures->reason[op->region][op->reason]++;
        if (op->final)
            continue;
        struct measures_class *class = &measures->class[op->region][class_of(op)];
        struct measures_bin *bin = &measures->bins[op->region][bin_at(measures, op->intended_ns)];
        bool info = op->outcome == HISTORY_INFO;
        if (is_answered(op)) {
            class->answered++;
            class->bucket[bucket_of(latency_of(op))]++;
            bin->answered++;
        } else {
            class->info += info;
            class->failed += !info;
            bin->info += info;
            bin->failed += !info;
        }
    }
}

static void time_classes(struct measures *measures, const struct history *history)
{
    struct runs runs =
        runs_make(measures, history, SCENARIO_REGIONS_MAX * RTO_CLASS_COUNT, class_run);
    for (uint32_t i = 0, from = 0; i < runs.count; from = runs.end[i++]) {
        struct measures_class *class = &measures->class[i / RTO_CLASS_COUNT][i % RTO_CLASS_COUNT];
        const uint64_t *values = runs.values + from;
        uint32_t count = runs.end[i] - from;
        if (count == 0)
            continue;
        class->p50_ns = numbers_quantile(values, count, 500000);
        class->p90_ns = numbers_quantile(values, count, 900000);
        class->p99_ns = numbers_quantile(values, count, 990000);
        class->p999_ns = numbers_quantile(values, count, 999000);
        class->max_ns = values[count - 1];
    }
    runs_free(&runs);
}

static void time_bins(struct measures *measures, const struct history *history,
                      uint32_t region_count)
{
    struct runs runs = runs_make(measures, history, region_count * measures->bin_count, bin_run);
    for (uint32_t i = 0, from = 0; i < runs.count; from = runs.end[i++]) {
        struct measures_bin *bin =
            &measures->bins[i / measures->bin_count][i % measures->bin_count];
        uint32_t count = runs.end[i] - from;
        if (count == 0)
            continue;
        bin->p50_ns = numbers_quantile(runs.values + from, count, 500000);
        bin->p99_ns = numbers_quantile(runs.values + from, count, 990000);
    }
    runs_free(&runs);
}

void measures_init(struct measures *measures, const struct outcome *outcome, uint32_t bins_max)
{
    enum { SPAN_MIN_NS = 1000000 };
    uint32_t region_count = outcome->scenario->cluster.region_count;
    uint64_t span =
        outcome->ended_ns > outcome->began_ns ? outcome->ended_ns - outcome->began_ns : 0;
    check(bins_max > 0);
    *measures = (struct measures){.from_ns = outcome->began_ns,
                                  .span_ns = span < SPAN_MIN_NS ? SPAN_MIN_NS : span};
    uint64_t bins = (measures->span_ns + BIN_NS - 1) / BIN_NS;
    measures->bin_ns = (bins + bins_max - 1) / bins_max * BIN_NS;
    measures->bin_count = (uint32_t)((measures->span_ns + measures->bin_ns - 1) / measures->bin_ns);
    for (uint32_t i = 0; i < region_count; i++)
        measures->bins[i] = xcalloc(measures->bin_count, sizeof(struct measures_bin));
    count_ops(measures, &outcome->history);
    time_classes(measures, &outcome->history);
    time_bins(measures, &outcome->history, region_count);
}

void measures_deinit(struct measures *measures)
{
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++)
        free(measures->bins[i]);
    *measures = (struct measures){0};
}

uint64_t measures_total(const struct measures *measures, enum history_outcome outcome)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++)
        for (uint32_t j = 0; j < HISTORY_KIND_COUNT; j++)
            total += measures->count[i][j][outcome];
    return total;
}
