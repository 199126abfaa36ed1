/* SPDX-License-Identifier: Apache-2.0 */
/* Staleness against the definition read by read, on random chains with lagging readers; and planted
 * ones. In strong mode against a search of all orders: where one is right, no strong read is stale.
 */

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

/* ---- Strong mode ---- */

enum { SMALL = 8, SMALL_ROUNDS = 60000 };

/* What the operation would be told, and leave, over `value` (0: absent). False: it was told
 * otherwise. */
static bool applies(const struct history_op *op, uint64_t value, uint64_t *ret_left)
{
    bool told = op->saw == HISTORY_SAW_VALUE || op->saw == HISTORY_SAW_ABSENT;
    *ret_left = op->kind == HISTORY_READ ? value : op->kind == HISTORY_DELETE ? 0 : op->written;
    if (op->kind == HISTORY_PUT_IF && op->expected != value)
        return false;
    return !told || (op->saw == HISTORY_SAW_VALUE ? op->value : 0) == value;
}

/* Whether the operations that are not in `done` have a right order from `value` on. One that was
 * never answered may stand anywhere after its beginning, or nowhere. */
static bool has_order(const struct history *history, uint32_t done, uint64_t value)
{
    uint64_t first_end = UINT64_MAX, left;
    for (uint32_t i = 0; i < history->count; i++)
        if (!(done >> i & 1) && history_end(&history->ops[i]) < first_end)
            first_end = history_end(&history->ops[i]);
    if (first_end == UINT64_MAX)
        return true;
    for (uint32_t i = 0; i < history->count; i++)
        if (!(done >> i & 1) && history->ops[i].invoke_ns <= first_end &&
            applies(&history->ops[i], value, &left) && has_order(history, done | 1u << i, left))
            return true;
    return false;
}

/* When the operation takes effect: within its time, or when it was never answered at any time after
 * its beginning, or never. */
static uint64_t draw_op(struct rng *rng, bool deletes, uint64_t value, struct history_op *ret)
{
    uint64_t invoke = rng_between(rng, 1, 40), end = invoke + rng_below(rng, 12);
    bool info = rng_one_in(rng, 3), reads = rng_one_in(rng, 2);
    enum history_kind kind = reads                           ? HISTORY_READ
                             : deletes && rng_one_in(rng, 3) ? HISTORY_DELETE
                             : rng_one_in(rng, 5)            ? HISTORY_PUT_IF
                                                             : HISTORY_PUT;
    *ret = make_op(kind, 0, invoke, info && !reads ? NO_ANSWER : end);
    ret->written = kind == HISTORY_PUT || kind == HISTORY_PUT_IF ? value : 0;
    if (ret->outcome != HISTORY_INFO)
        return rng_between(rng, invoke, end);
    return rng_one_in(rng, 3) ? UINT64_MAX : invoke + rng_below(rng, 40);
}

/* A history that has a right order: that in which its operations took effect. */
static struct history draw_history(struct rng *rng)
{
    struct history_op ops[SMALL];
    uint64_t effect[SMALL];
    uint32_t count = (uint32_t)rng_between(rng, 2, SMALL - 1), done = 0;
    bool deletes = rng_one_in(rng, 2);
    for (uint32_t i = 0; i < count; i++)
        effect[i] = draw_op(rng, deletes, i + 1, &ops[i]);
    uint64_t value = 0;
    for (;;) {
        uint32_t next = SMALL;
        for (uint32_t i = 0; i < count; i++)
            if (!(done >> i & 1) && effect[i] != UINT64_MAX &&
                (next == SMALL || effect[i] < effect[next]))
                next = i;
        if (next == SMALL)
            break;
        done |= 1u << next;
        if (ops[next].outcome == HISTORY_OK)
            saw(&ops[next], value);
        ops[next].expected = ops[next].kind == HISTORY_PUT_IF ? value : 0;
        assert_true(applies(&ops[next], value, &value));
    }
    struct history history = new_history();
    for (uint32_t i = 0; i < count; i++)
        add(&history, &ops[i]);
    if (rng_one_in(rng, 2))
        last_look(&history, 0, 0, 100, value);
    return history;
}

/* A read is told something else, or everything takes place at another time. */
static void spoil(struct rng *rng, struct history *history)
{
    struct history_op *op = &history->ops[rng_below(rng, history->count)];
    if (op->kind == HISTORY_READ && op->outcome == HISTORY_OK && rng_one_in(rng, 2)) {
        saw(op, rng_below(rng, history->count + 1));
    } else {
        uint64_t by = rng_below(rng, 60);
        op->intended_ns += by;
        op->invoke_ns += by;
        op->return_ns += by;
    }
}

static void test_strong_against_all_orders(void **state)
{
    (void)state;
    struct rng rng;
    uint32_t right = 0, wrong = 0, late = 0;
    rng_init(&rng, 31);
    for (uint32_t round = 0; round < SMALL_ROUNDS; round++) {
        struct history history = draw_history(&rng);
        for (uint64_t turns = rng_below(&rng, 3); turns > 0; turns--)
            spoil(&rng, &history);
        bool order = has_order(&history, 0, 0);
        struct staleness_table table;
        struct verdict verdict;
        check_staleness(&history, &strict, &table, &verdict);
        if (order && verdict.kind != VERDICT_OK)
            fail_msg("round %u: %s, but there is a right order", round, said(&verdict));
        for (uint32_t i = 0; i < table.count; i++)
            late += order && table.rows[i].strong ? table.rows[i].stale : 0;
        right += order;
        wrong += verdict.kind == VERDICT_WRONG;
        staleness_table_deinit(&table);
        verdict_deinit(&verdict);
        history_deinit(&history);
    }
    assert_int_equal(late, 0);
    assert_in_range(right, SMALL_ROUNDS / 4, SMALL_ROUNDS);
    assert_in_range(wrong, SMALL_ROUNDS / 40, SMALL_ROUNDS);
}

/* 1 was sent first, timed out, and took effect after 2 had been acknowledged. */
static void test_strong_late_effect(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, NO_ANSWER, 1, 0);
    put(&history, 1, 0, 10, 20, 2, 0);
    get(&history, 2, 0, 30, 31, 1);
    struct verdict verdict;
    check_staleness(&history, &strict, NULL, &verdict);
    expect_verdict(&verdict, VERDICT_OK, "1 read, 0 stale");
    verdict_deinit(&verdict);
    put(&history, 1, 0, 32, 33, 3, 1);
    get(&history, 2, 0, 40, 41, 1);
    check_staleness(&history, &strict, NULL, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "a strong read missed");
    verdict_deinit(&verdict);
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_definition),
                                       cmocka_unit_test(test_losers), cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_strong_late_effect),
                                       cmocka_unit_test(test_strong_against_all_orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
