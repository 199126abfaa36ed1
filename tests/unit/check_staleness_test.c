/* SPDX-License-Identifier: Apache-2.0 */
/* Staleness against the definition read by read, on random chains with lagging readers; and planted
 * ones. */

#include "tests/lib/check/history_make.h"

#include <stdlib.h>

#include "chaos/check/staleness.h"

enum { WRITES = 30, READS = 40, ROUNDS = 2000 };

static const struct staleness_options plain, strict = {.strong_fresh = true};

struct twin_read {
    uint64_t stale_ns, age_ns, k;
};

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t rank(uint64_t *values, uint32_t count, uint32_t percent)
{
    qsort(values, count, sizeof(*values), order);
    uint32_t at = (count * percent + 99) / 100;
    return values[at ? at - 1 : 0];
}

/* acks[i]: when the write of value i + 1 was acknowledged, or UINT64_MAX. */
static struct twin_read twin(const uint64_t *acks, uint32_t writes, uint64_t value, uint64_t at)
{
    struct twin_read read = {0};
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = (uint32_t)value; i < writes; i++) {
        if (acks[i] >= at)
            continue;
        read.k++;
        read.stale_ns = at - acks[i];
        oldest = acks[i] < oldest ? acks[i] : oldest;
    }
    read.age_ns = read.k ? at - oldest : 0;
    return read;
}

static void expect_row(const struct staleness_row *row, const struct twin_read *reads,
                       uint32_t count)
{
    uint64_t values[READS];
    for (uint32_t i = 0; i < count; i++)
        values[i] = reads[i].stale_ns;
    assert_int_equal(row->p50_ns, rank(values, count, 50));
    assert_int_equal(row->p99_ns, rank(values, count, 99));
    assert_int_equal(row->max_ns, rank(values, count, 100));
    for (uint32_t i = 0; i < count; i++)
        values[i] = reads[i].k;
    assert_int_equal(row->p50_k, rank(values, count, 50));
    assert_int_equal(row->max_k, rank(values, count, 100));
    for (uint32_t i = 0; i < count; i++)
        values[i] = reads[i].age_ns;
    assert_int_equal(row->age_p50_ns, rank(values, count, 50));
    assert_int_equal(row->age_p99_ns, rank(values, count, 99));
    assert_int_equal(row->age_max_ns, rank(values, count, 100));
    assert_int_equal(row->point_ns[0], 0);
    assert_int_equal(row->point_ns[row->point_count - 1], row->age_max_ns);
    assert_int_equal(row->point_millionths[row->point_count - 1], 1000000);
    for (uint32_t i = 0; i < row->point_count; i++) {
        uint64_t within = 0;
        for (uint32_t j = 0; j < count; j++)
            within += values[j] <= row->point_ns[i];
        assert_int_equal(row->point_millionths[i], within * 1000000 / count);
    }
}

static void test_against_definition(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 13);
    uint64_t stale = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = new_history();
        uint32_t writes = (uint32_t)rng_below(&rng, WRITES), count = 0;
        uint64_t acks[WRITES] = {0}, now = 1;
        for (uint32_t i = 0; i < writes; i++) {
            now += 1 + rng_below(&rng, 10);
            bool info =
                i + 1 == writes && rng_one_in(&rng, 2); /* elsewhere it would cut the chain */
            uint64_t end = now + rng_below(&rng, 30);
            put(&history, 0, 0, now, info ? NO_ANSWER : end, i + 1, i);
            acks[i] = info ? UINT64_MAX : end;
        }
        struct twin_read reads[READS];
        uint64_t lag = rng_below(&rng, 6);
        for (uint32_t i = 0; i < READS; i++) {
            uint64_t at = rng_between(&rng, 1, now + 40), value = 0;
            while (value < writes && history.ops[value].invoke_ns <= at)
                value++;
            value -= value < lag ? value : lag;
            if (value < writes && acks[value] == UINT64_MAX)
                value = writes - 1;
            uint32_t read = get(&history, 1, 0, at, at + 1, value);
            history.ops[read].strong = false;
            reads[count++] = twin(acks, writes, value, at);
        }
        struct staleness_table table;
        struct verdict verdict;
        check_staleness(&history, &plain, &table, &verdict);
        assert_int_equal(verdict.kind, VERDICT_OK);
        assert_int_equal(table.count, 1);
        assert_int_equal(table.rows[0].region, 1);
        assert_false(table.rows[0].strong);
        expect_row(&table.rows[0], reads, count);
        assert_int_equal(verdict_get(&verdict, "stale"), table.rows[0].stale);
        stale += table.rows[0].stale;
        staleness_table_deinit(&table);
        verdict_deinit(&verdict);
        history_deinit(&history);
    }
    assert_in_range(stale, ROUNDS, (uint64_t)ROUNDS * READS * 9 / 10);
}

/* 2 lost to 3, and nobody waits for it; who reads it has what it was written over. */
static void test_losers(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    put(&history, 1, 0, 10, 11, 2, 1);
    put(&history, 0, 0, 10, 12, 3, 1);
    put(&history, 0, 0, 20, 21, 4, 3);
    last_look(&history, 0, 0, 100, 4);
    get(&history, 1, 0, 50, 51, 2);
    get(&history, 2, 0, 15, 16, 3);
    struct staleness_table table;
    struct verdict verdict;
    check_staleness(&history, &strict, &table, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "region 1: a strong read missed");
    assert_int_equal(table.count, 3);
    assert_int_equal(table.rows[0].stale, 0);
    assert_int_equal(table.rows[1].max_k, 2);
    assert_int_equal(table.rows[1].max_ns, 29);
    assert_int_equal(table.rows[1].age_max_ns, 38);
    assert_int_equal(table.rows[1].worst, 5);
    assert_int_equal(table.rows[2].stale, 0);
    staleness_table_deinit(&table);
    verdict_deinit(&verdict);
    history_deinit(&history);
}

/* An INFO that was seen begins a run of its own, which stands where time puts it. */
static void test_runs(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    put(&history, 0, 0, 3, 4, 2, 1);
    put(&history, 0, 0, 5, NO_ANSWER, 3, 0);
    put(&history, 0, 0, 7, 8, 4, 3);
    get(&history, 0, 0, 20, 21, 4);
    get(&history, 0, 0, 20, 21, 1);
    get(&history, 1, 0, 20, 21, 0);
    struct verdict verdict;
    struct staleness_table table;
    check_staleness(&history, &plain, &table, &verdict);
    assert_int_equal(table.rows[0].stale, 1);
    assert_int_equal(table.rows[0].max_k, 2);
    assert_int_equal(table.rows[0].max_ns, 12);
    assert_int_equal(table.rows[1].max_k, 3);
    assert_int_equal(table.rows[1].age_max_ns, 18);
    staleness_table_deinit(&table);
    verdict_deinit(&verdict);
    history.ops[0].written = 9; /* now 1 is a phantom, and nothing can be placed */
    check_staleness(&history, &plain, NULL, &verdict);
    assert_int_equal(verdict_get(&verdict, "unjudged"), 3);
    verdict_deinit(&verdict);
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_definition),
                                       cmocka_unit_test(test_losers), cmocka_unit_test(test_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
