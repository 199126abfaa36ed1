/* SPDX-License-Identifier: Apache-2.0 */
/* Counts, quantiles and bins against what one gets by looking at each operation in turn. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "chaos/report/measures.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "tests/lib/report/outcomes.h"

static bool counts(const struct history_op *op)
{
    return !op->final && (history_answered(op) || op->reason == HISTORY_REASON_CONFLICT);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct picked {
    uint64_t *at;
    uint32_t count;
};

static uint64_t nearest_rank(const struct picked *picked, double share)
{
    uint32_t rank = (uint32_t)(share * picked->count);
    rank += rank < share * picked->count - 1e-9 || rank == 0;
    return picked->at[rank - 1];
}

static void check_bins(const struct measures *measures, const struct history *history)
{
    struct picked picked = {.at = xmalloc(history->count * sizeof(uint64_t))};
    for (uint8_t region = 0; measures->bins[region] != NULL; region++)
        for (uint32_t bin = 0; bin < measures->bin_count; bin++) {
            uint32_t failed = 0, info = 0;
            picked.count = 0;
            for (uint32_t i = 0; i < history->count; i++) {
                const struct history_op *op = &history->ops[i];
                uint64_t since = op->intended_ns - measures->from_ns;
                if (op->region != region || op->final || since / measures->bin_ns != bin)
                    continue;
                if (counts(op))
                    picked.at[picked.count++] = op->return_ns - op->intended_ns;
                else if (op->outcome == HISTORY_INFO)
                    info++;
                else
                    failed++;
            }
            const struct measures_bin *got = &measures->bins[region][bin];
            assert_int_equal(got->answered, picked.count);
            assert_int_equal(got->failed, failed);
            assert_int_equal(got->info, info);
            if (picked.count == 0)
                continue;
            qsort(picked.at, picked.count, sizeof(*picked.at), by_size);
            assert_int_equal(got->p50_ns, nearest_rank(&picked, 0.5));
            assert_int_equal(got->p99_ns, nearest_rank(&picked, 0.99));
        }
    free(picked.at);
}

static void check_classes(const struct measures *measures, const struct history *history)
{
    struct picked picked = {.at = xmalloc(history->count * sizeof(uint64_t))};
    for (uint8_t region = 0; region < SCENARIO_REGIONS_MAX; region++)
        for (uint32_t class = 0; class < RTO_CLASS_COUNT; class ++) {
            uint32_t in_buckets = 0;
            picked.count = 0;
            for (uint32_t i = 0; i < history->count; i++) {
                const struct history_op *op = &history->ops[i];
                enum rto_class of = history_kind_writes((enum history_kind)op->kind) ? RTO_WRITE
                                    : op->strong ? RTO_READ_STRONG
                                                 : RTO_READ_WEAK;
                if (op->region == region && of == class && counts(op))
                    picked.at[picked.count++] = op->return_ns - op->intended_ns;
            }
            const struct measures_class *got = &measures->class[region][class];
            assert_int_equal(got->answered, picked.count);
            for (uint32_t i = 0; i < MEASURES_BUCKETS; i++)
                in_buckets += got->bucket[i];
            assert_int_equal(in_buckets, picked.count);
            if (picked.count == 0)
                continue;
            qsort(picked.at, picked.count, sizeof(*picked.at), by_size);
            assert_int_equal(got->p50_ns, nearest_rank(&picked, 0.5));
            assert_int_equal(got->p90_ns, nearest_rank(&picked, 0.9));
            assert_int_equal(got->p99_ns, nearest_rank(&picked, 0.99));
            assert_int_equal(got->p999_ns, nearest_rank(&picked, 0.999));
            assert_int_equal(got->max_ns, picked.at[picked.count - 1]);
        }
    free(picked.at);
}

static void they_are_those_of_each_operation(void **state)
{
    (void)state;
    static const struct {
        enum outcomes_kind kind;
        uint32_t bins_max;
    } cases[] = {{OUTCOMES_PASS, 2000},
                 {OUTCOMES_LOST, 2000},
                 {OUTCOMES_LOST, 7},
                 {OUTCOMES_LOST, 1},
                 {OUTCOMES_EMPTY, 2000}};
    for (size_t i = 0; i < array_len(cases); i++) {
        struct sample_run run;
        struct measures measures;
        outcomes_make(cases[i].kind, &run);
        measures_init(&measures, &run.outcome, cases[i].bins_max);
        assert_true(measures.bin_count >= 1 && measures.bin_count <= cases[i].bins_max);
        assert_int_equal(measures.bin_ns % 100000000, 0);
        check_bins(&measures, &run.outcome.history);
        check_classes(&measures, &run.outcome.history);
        uint64_t total = 0;
        for (uint32_t j = 0; j < HISTORY_OUTCOME_COUNT; j++)
            total += measures_total(&measures, (enum history_outcome)j);
        assert_int_equal(total, run.outcome.history.count);
        measures_deinit(&measures);
        outcomes_free(&run);
    }
}

/* Every latency falls into the one bucket whose bound is the least that is not below it. */
static void buckets_leave_no_gap(void **state)
{
    (void)state;
    struct sample_run run;
    struct rng rng;
    rng_init(&rng, 1);
    outcomes_make(OUTCOMES_EMPTY, &run);
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t latency = rng_next(&rng) >> rng_between(&rng, 1, 63) >> 1;
        const struct history_op op = {.kind = HISTORY_READ,
                                      .saw = HISTORY_SAW_ABSENT,
                                      .intended_ns = 0,
                                      .invoke_ns = 0,
                                      .return_ns = latency};
        struct measures measures;
        run.outcome.history.count = 0;
        history_append(&run.outcome.history, &op, NULL);
        measures_init(&measures, &run.outcome, 1);
        uint32_t bucket = 0;
        while (measures.class[0][RTO_READ_WEAK].bucket[bucket] == 0)
            bucket++;
        assert_true(latency <= measures_bucket_ns(bucket));
        assert_true(bucket == 0 || latency > measures_bucket_ns(bucket - 1));
        measures_deinit(&measures);
    }
    outcomes_free(&run);
}

/* A run of any length, and operations outside of it, as a file may claim. */
static void no_length_is_too_much(void **state)
{
    (void)state;
    static const uint64_t ends[] = {0, 1, 1000000, (uint64_t)INT64_MAX - 1};
    struct sample_run run;
    outcomes_make(OUTCOMES_EMPTY, &run);
    const struct history_op op = {
        .kind = HISTORY_READ, .saw = HISTORY_SAW_ABSENT, .return_ns = (uint64_t)INT64_MAX - 1};
    history_append(&run.outcome.history, &op, NULL);
    run.outcome.began_ns = 0;
    for (size_t i = 0; i < array_len(ends); i++) {
        struct measures measures;
        run.outcome.ended_ns = ends[i];
        measures_init(&measures, &run.outcome, 2000);
        assert_true(measures.bin_count >= 1 && measures.bin_count <= 2000);
        assert_int_equal(measures.bins[0][0].answered, 1);
        measures_deinit(&measures);
    }
    outcomes_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_those_of_each_operation),
        cmocka_unit_test(buckets_leave_no_gap),
        cmocka_unit_test(no_length_is_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
