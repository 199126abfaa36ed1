/* SPDX-License-Identifier: Apache-2.0 */
/* For each region and class, its operations by intended start, and a window that slides over them
 * in steps of 100 ms. A p99 need not be computed to be judged: it is within the limit if at most
 * one in a hundred is slower. Stretches without operations are jumped over. */

#include "chaos/check/rto.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/items.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { BIN_NS = 100000000 };

struct point {
    uint64_t at_ns, latency_ns;
    bool served;
};

struct series { /* of one region and class, after the fault */
    struct point *points;
    uint32_t count;
    uint64_t limit_ns; /* of a good p99 */
};

const char *rto_class_text(enum rto_class class)
{
    static const char *const texts[] = {"write", "read_strong", "read_weak"};
    check(class < RTO_CLASS_COUNT);
    return texts[class];
}

void rto_table_deinit(struct rto_table *table)
{
    free(table->rows);
    *table = (struct rto_table){0};
}

static enum rto_class class_of(const struct history_op *op)
{
    if (history_kind_writes((enum history_kind)op->kind))
        return RTO_WRITE;
    return op->strong ? RTO_READ_STRONG : RTO_READ_WEAK;
}

static bool served(const struct history_op *op)
{
    return history_answered(op) || op->reason == HISTORY_REASON_CONFLICT;
}

static int point_order(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->latency_ns < y->latency_ns ? -1 : x->latency_ns > y->latency_ns;
}

/* ---- A series ---- */

static uint64_t find_first_success(const struct series *series, uint64_t fault_ns)
{
    uint64_t first = RTO_NEVER;
    for (uint32_t i = 0; i < series->count; i++) {
        const struct point *point = &series->points[i];
        uint64_t end = point->at_ns + point->latency_ns - fault_ns;
        if (point->served && end < first)
            first = end;
    }
    return first;
}

static uint64_t find_unavailable(const struct series *series, uint64_t fault_ns)
{
    uint64_t unavailable = 0;
    for (uint32_t from = 0, to; from < series->count; from = to) {
        uint64_t bin = (series->points[from].at_ns - fault_ns) / BIN_NS;
        uint32_t good = 0;
        for (to = from; to < series->count; to++) {
            if ((series->points[to].at_ns - fault_ns) / BIN_NS != bin)
                break;
            good += series->points[to].served;
        }
        if (2 * good < to - from)
            unavailable += BIN_NS;
    }
    return unavailable;
}

struct tally {
    uint64_t all, served, slow;
};

static void tally_add(struct tally *tally, const struct series *series, uint32_t at, uint64_t sign)
{
    const struct point *point = &series->points[at];
    tally->all += sign;
    tally->served += point->served ? sign : 0;
    tally->slow += point->served && point->latency_ns > series->limit_ns ? sign : 0;
}

static bool good(const struct tally *tally)
{
    uint64_t rank = (99 * tally->served + 99) / 100; /* of the p99, from 1 */
    return tally->all > 0 && 100 * tally->served >= 99 * tally->all &&
           tally->served - tally->slow >= rank;
}

static uint64_t find_rto(const struct series *series, const struct rto_options *options)
{
    uint64_t window = options->window_ns ? options->window_ns : 2000000000u;
    uint64_t length = options->to_ns - options->fault_ns;
    struct tally tally = {0};
    uint32_t from = 0, to = 0; /* the points in the window */
    for (uint64_t start = 0; length >= window && start <= length - window; start += BIN_NS) {
        while (to < series->count && series->points[to].at_ns - options->fault_ns < start + window)
            tally_add(&tally, series, to++, 1);
        while (from < to && series->points[from].at_ns - options->fault_ns < start)
            tally_add(&tally, series, from++, UINT64_MAX);
        if (good(&tally))
            return start + window;
        if (from == series->count)
            break;
        uint64_t next = series->points[from].at_ns - options->fault_ns;
        if (from == to && next > start + window) /* empty: on to the last step before `next` */
            start += (next - start - window) / BIN_NS * BIN_NS;
    }
    return RTO_NEVER;
}

/* ---- All ---- */

static void baseline(const struct history *history, const struct rto_options *options,
                     struct rto_row *row, uint64_t *scratch)
{
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->region == row->region && class_of(op) == row->class && served(op) &&
            op->intended_ns >= options->from_ns && op->intended_ns < options->fault_ns)
            scratch[row->baseline_count++] = op->return_ns - op->intended_ns;
    }
    numbers_sort(scratch, row->baseline_count);
    row->baseline_p50_ns = numbers_quantile(scratch, row->baseline_count, 500000);
    row->baseline_p99_ns = numbers_quantile(scratch, row->baseline_count, 990000);
}

static void fill(const struct history *history, const struct rto_options *options,
                 const struct rto_row *row, struct series *series)
{
    series->count = 0;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->region == row->region && class_of(op) == row->class && !op->final &&
            op->intended_ns >= options->fault_ns && op->intended_ns < options->to_ns)
            series->points[series->count++] =
                (struct point){op->intended_ns, op->return_ns - op->intended_ns, served(op)};
    }
    if (series->count)
        qsort(series->points, series->count, sizeof(*series->points), point_order);
    series->limit_ns = options->slo_ns;
    uint64_t p99 = row->baseline_p99_ns;
    if (p99 > series->limit_ns / 3)
        series->limit_ns = p99 > UINT64_MAX / 3 ? UINT64_MAX : 3 * p99;
    if (row->baseline_count == 0 && options->slo_ns == 0)
        series->limit_ns = UINT64_MAX; /* nothing to compare with */
}

static void worst(uint64_t *to, uint64_t value)
{
    if (value > *to)
        *to = value;
}

static void conclude(const struct history *history, const struct rto_table *table,
                     struct verdict *ret)
{
    uint64_t rto = 0, first = 0, unavailable = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct rto_row *row = &table->rows[i];
        worst(&rto, row->rto_ns);
        worst(&first, row->first_success_ns);
        worst(&unavailable, row->unavailable_ns);
        if (row->rto_ns == RTO_NEVER)
            verdict_worsen(ret, VERDICT_WRONG, "region %u never served again: %s", row->region,
                           rto_class_text(row->class));
    }
    if (table->count == 0)
        verdict_worsen(ret, VERDICT_UNKNOWN, "no operation after the fault");
    verdict_figure(ret, "rto_max_ns", rto);
    verdict_figure(ret, "first_success_max_ns", first);
    verdict_figure(ret, "unavailable_max_ns", unavailable);
    verdict_conclude(ret, history, "served again after %" PRIu64 " ms at most", rto / 1000000);
}

void check_rto(const struct history *history, const struct rto_options *options,
               struct rto_table *ret_table, struct verdict *ret)
{
    check(options->from_ns <= options->fault_ns && options->fault_ns <= options->to_ns);
    verdict_init(ret);
    struct series series = {.points = xcalloc(history->count, sizeof(*series.points))};
    uint64_t *scratch = xcalloc(history->count, sizeof(*scratch));
    struct rto_table table = {0};
    uint64_t present = 0;
    for (uint32_t i = 0; i < history->count; i++)
        present |= 1ull << history->ops[i].region % HISTORY_REGIONS_MAX;
    present &= ~options->down_regions;
    table.rows = xcalloc(HISTORY_REGIONS_MAX * RTO_CLASS_COUNT, sizeof(*table.rows));
    for (unsigned i = 0; i < HISTORY_REGIONS_MAX * RTO_CLASS_COUNT; i++) {
        struct rto_row row = {.region = (uint8_t)(i / RTO_CLASS_COUNT),
                              .class = (enum rto_class)(i % RTO_CLASS_COUNT)};
        if (!(present >> row.region & 1))
            continue;
        baseline(history, options, &row, scratch);
        fill(history, options, &row, &series);
        if (series.count == 0)
            continue;
        row.count = series.count;
        row.first_success_ns = find_first_success(&series, options->fault_ns);
        row.unavailable_ns = find_unavailable(&series, options->fault_ns);
        row.rto_ns = find_rto(&series, options);
        table.rows[table.count++] = row;
    }
    conclude(history, &table, ret);
    free(series.points);
    free(scratch);
    if (ret_table)
        *ret_table = table;
    else
        rto_table_deinit(&table);
}
