/* SPDX-License-Identifier: Apache-2.0 */
/* stop_if: broken for as long as it asks, without a break. */

#include "tests/lib/outcome_make.h"

#include "chaos/run/run_internal.h"

/* An operation a tenth of a second; all fail in [from, to) tenths. Returns when the guard spoke, in
 * tenths; 0: never. */
static uint64_t run_guard(const char *stop_if, uint64_t from, uint64_t to, uint64_t gap)
{
    char workload[200];
    struct made made;
    struct guard guard = {0};
    snprintf(workload, sizeof(workload), "{kind: lww-conflict, keys: 4}\nstop_if: {%s}", stop_if);
    make_run(&made, "eventual", workload, "{lost_updates: 0}");
    uint64_t spoke = 0;
    for (uint64_t i = 0; i < 100 && spoke == 0; i++) {
        bool good = i < from || i >= to || i == gap;
        uint64_t at = (100 + i) * 100 * MS_NS;
        struct history_op op = make_op(HISTORY_READ, 0, at, good ? at + MS_NS : NO_ANSWER);
        if (good)
            op.saw = HISTORY_SAW_ABSENT;
        add(&made.outcome.history, &op);
        if (guard_tick(&guard, &made.outcome, at + 2 * MS_NS) != NULL)
            spoke = i;
    }
    free_run(&made);
    return spoke;
}

static void test_lasts(void **state)
{
    (void)state;
    assert_int_equal(run_guard("error_rate: '>0.9 for 2s'", 0, 0, 0), 0);
    assert_int_equal(run_guard("error_rate: '>0.9 for 2s'", 20, 50, 0), 49);
    assert_int_equal(run_guard("error_rate: '>0.9 for 2s'", 20, 49, 0), 0);
    assert_int_equal(run_guard("error_rate: '>0.9 for 500ms'", 20, 40, 0), 34);
    assert_int_equal(run_guard("error_rate: '>0.9 for 2s'", 20, 61, 30), 60);
    assert_int_equal(run_guard("throughput: '<5 for 1s'", 20, 60, 0), 35);
    assert_int_equal(run_guard("latency_p99: '>1s'", 0, 100, 0), 0); /* nothing to look at */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lasts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
