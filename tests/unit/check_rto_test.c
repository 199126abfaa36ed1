/* SPDX-License-Identifier: Apache-2.0 */
/* RTO against the definition computed window by window, and planted outages. */

#include "tests/lib/check/history_make.h"

#include <stdlib.h>

#include "chaos/check/rto.h"

#define MS 1000000ull

static void send(struct history *history, uint64_t at_ms, uint64_t latency_ms, bool served)
{
    struct history_op op = make_op(HISTORY_PUT, 0, at_ms * MS, (at_ms + latency_ms) * MS);
    op.written = history->count + 1;
    if (!served) {
        op.outcome = HISTORY_FAILED;
        op.reason = HISTORY_REASON_REFUSED;
    }
    add(history, &op);
}

static struct rto_row judge(const struct history *history, const struct rto_options *options,
                            enum verdict_kind kind)
{
    struct rto_table table;
    struct verdict verdict;
    check_rto(history, options, &table, &verdict);
    assert_int_equal(verdict.kind, kind);
    assert_int_equal(table.count, 1);
    struct rto_row row = table.rows[0];
    assert_true(verdict_get(&verdict, "rto_max_ns") == row.rto_ns);
    rto_table_deinit(&table);
    verdict_deinit(&verdict);
    return row;
}

static const struct rto_options ten_to_thirty = {
    .from_ns = 0, .fault_ns = 10000 * MS, .to_ns = 30000 * MS, .slo_ns = 50 * MS};

static void test_no_outage(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint64_t at = 1; at < 30000; at += 10)
        send(&history, at, 4, true);
    struct rto_row row = judge(&history, &ten_to_thirty, VERDICT_OK);
    assert_int_equal(row.class, RTO_WRITE);
    assert_int_equal(row.baseline_count, 1000);
    assert_int_equal(row.baseline_p99_ns, 4 * MS);
    assert_int_equal(row.rto_ns, 2000 * MS);
    assert_int_equal(row.first_success_ns, 5 * MS);
    assert_int_equal(row.unavailable_ns, 0);
    history_deinit(&history);
}

static void test_outage(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint64_t at = 1; at < 30000; at += 10)
        send(&history, at, 4, at < 10000 || at >= 13000);
    struct rto_row row = judge(&history, &ten_to_thirty, VERDICT_OK);
    /* The window that begins at 3 s is the first without a refusal; one in a hundred may be one. */
    assert_int_equal(row.rto_ns, 5000 * MS);
    assert_int_equal(row.unavailable_ns, 3000 * MS);
    assert_int_equal(row.first_success_ns, 3005 * MS);
    history_deinit(&history);
}

/* Requests that were meant to be sent in the outage and waited for its end count as slow. */
static void test_coordinated_omission(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint64_t at = 1; at < 30000; at += 10) {
        bool waits = at >= 10000 && at < 13000;
        send(&history, at, waits ? 13004 - at : 4, true);
        if (waits)
            history.ops[history.count - 1].invoke_ns = 13000 * MS;
    }
    struct rto_row row = judge(&history, &ten_to_thirty, VERDICT_OK);
    /* The window that begins at 2.9 s still holds six of 200 that took more than 50 ms. */
    assert_int_equal(row.rto_ns, 5000 * MS);
    assert_int_equal(row.unavailable_ns, 0);
    history_deinit(&history);
}

static void test_never(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint64_t at = 1; at < 30000; at += 10)
        send(&history, at, 4, at < 10000);
    struct rto_row row = judge(&history, &ten_to_thirty, VERDICT_WRONG);
    assert_true(row.rto_ns == RTO_NEVER && row.first_success_ns == RTO_NEVER);
    struct rto_options options = ten_to_thirty;
    options.down_regions = 1;
    struct verdict verdict;
    check_rto(&history, &options, NULL, &verdict);
    expect_verdict(&verdict, VERDICT_UNKNOWN, "no operation after the fault");
    verdict_deinit(&verdict);
    history_deinit(&history);
}

/* Half of a bin is enough to be available, and less is not. */
static void test_half_available(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint64_t at = 1; at < 30000; at += 10) {
        bool half = at / 10 % 2 == 0, less = at % 100 < 35;
        send(&history, at, 4, at < 10000 || (at < 11000 ? half : at < 12000 ? less : true));
    }
    struct rto_row row = judge(&history, &ten_to_thirty, VERDICT_OK);
    assert_int_equal(row.unavailable_ns, 1000 * MS);
    history_deinit(&history);
}

static void test_classes(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint64_t at = 1; at < 30000; at += 10)
        for (uint8_t region = 0; region < 2; region++) {
            uint32_t index = get(&history, region, 0, at * MS, at * MS + MS, 0);
            history.ops[index].strong = at % 20 == 1;
            send(&history, at, 1, true);
            struct history_op *op = &history.ops[history.count - 1];
            op->region = region;
            op->outcome = HISTORY_FAILED;
            op->reason = at % 20 == 1 ? HISTORY_REASON_CONFLICT : HISTORY_REASON_CONDITION;
        }
    struct rto_table table;
    struct verdict verdict;
    check_rto(&history, &ten_to_thirty, &table, &verdict);
    assert_int_equal(verdict.kind, VERDICT_OK);
    assert_int_equal(table.count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(table.rows[i].region, i / 3);
        assert_int_equal(table.rows[i].class, i % 3);
        assert_int_equal(table.rows[i].count, i % 3 == RTO_WRITE ? 2000 : 1000);
    }
    rto_table_deinit(&table);
    verdict_deinit(&verdict);
    history_deinit(&history);
}

/* ---- The twin ---- */

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t p99(const struct history *history, uint64_t from, uint64_t to, uint32_t *ret_all,
                    uint32_t *ret_good)
{
    static uint64_t latencies[2000];
    *ret_all = *ret_good = 0;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->intended_ns < from || op->intended_ns >= to)
            continue;
        ++*ret_all;
        if (op->outcome == HISTORY_OK)
            latencies[(*ret_good)++] = op->return_ns - op->intended_ns;
    }
    qsort(latencies, *ret_good, sizeof(*latencies), order);
    for (uint32_t i = 0; i < *ret_good; i++)
        if (100 * (i + 1) >= 99 * *ret_good)
            return latencies[i];
    return 0;
}

static void test_against_definition(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 17);
    uint32_t never = 0, at_once = 0;
    for (int round = 0; round < 400; round++) {
        struct history history = new_history();
        bool well = rng_one_in(&rng, 5);
        uint64_t sick = well ? 0 : 3000 + rng_below(&rng, 7500);
        uint64_t slow_until = well ? 0 : 3000 + rng_below(&rng, 7500);
        uint64_t pace = rng_one_in(&rng, 4) ? 1500 : 30;
        for (uint64_t at = 1; at < 10000; at += 1 + rng_below(&rng, pace))
            send(&history, at, 5 + rng_below(&rng, at > 3000 && at < slow_until ? 600 : 20),
                 at < 3000 || at > sick || rng_one_in(&rng, 3));
        struct rto_options options = {.fault_ns = 3000 * MS,
                                      .to_ns = 10000 * MS,
                                      .window_ns = rng_one_in(&rng, 2) ? 0 : 350 * MS,
                                      .slo_ns = rng_below(&rng, 60) * MS};
        uint64_t window = options.window_ns ? options.window_ns : 2000 * MS;
        uint32_t all, good;
        uint64_t limit = 3 * p99(&history, 0, options.fault_ns, &all, &good);
        limit = limit > options.slo_ns ? limit : options.slo_ns;
        uint64_t rto = RTO_NEVER;
        for (uint64_t from = options.fault_ns; from + window <= options.to_ns; from += 100 * MS) {
            uint64_t tail = p99(&history, from, from + window, &all, &good);
            if (all && 100 * good >= 99 * all && tail <= limit) {
                rto = from + window - options.fault_ns;
                break;
            }
        }
        struct rto_row row =
            judge(&history, &options, rto == RTO_NEVER ? VERDICT_WRONG : VERDICT_OK);
        assert_true(row.rto_ns == rto);
        never += rto == RTO_NEVER;
        at_once += rto == window;
        history_deinit(&history);
    }
    assert_in_range(never, 10, 390);
    assert_in_range(at_once, 5, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_outage),
                                       cmocka_unit_test(test_outage),
                                       cmocka_unit_test(test_coordinated_omission),
                                       cmocka_unit_test(test_never),
                                       cmocka_unit_test(test_half_available),
                                       cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_against_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
