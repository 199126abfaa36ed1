/* SPDX-License-Identifier: Apache-2.0 */
/* The counter checker against all orders of small random histories, and planted ones. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/counter.h"

enum { OPS = 7, ROUNDS = 30000 };

static const struct counter_options strong, eventual = {.eventual = true};

static void expect_counter(const struct history *history, const struct counter_options *options,
                           enum verdict_kind kind, const char *part)
{
    struct verdict verdict;
    check_counter(history, options, &verdict);
    expect_verdict(&verdict, kind, part);
    verdict_deinit(&verdict);
}

static uint32_t plus(struct history *history, uint64_t invoke_ns, uint64_t return_ns, uint64_t sum)
{
    struct history_op op = make_op(HISTORY_ADD, 0, invoke_ns, return_ns);
    op.written = 1;
    if (return_ns != NO_ANSWER) {
        op.saw = HISTORY_SAW_VALUE;
        op.value = sum;
    }
    return add(history, &op);
}

static bool twin(const struct history *history, uint32_t done, uint64_t sum)
{
    bool complete = true;
    for (uint32_t i = 0; i < history->count; i++)
        complete = complete && (done >> i & 1 || history_end(&history->ops[i]) == UINT64_MAX);
    if (complete)
        return true;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        bool may = !(done >> i & 1);
        for (uint32_t j = 0; j < history->count && may; j++)
            may = done >> j & 1 || history_end(&history->ops[j]) >= op->invoke_ns;
        uint64_t after = sum + (op->kind == HISTORY_ADD);
        if (may && (op->outcome == HISTORY_INFO || op->value == after) &&
            twin(history, done | 1u << i, after))
            return true;
    }
    return false;
}

/* Right histories of a moment for each operation, then often one sum changed a little. */
static struct history draw_history(struct rng *rng)
{
    struct history history = new_history();
    uint32_t count = (uint32_t)rng_between(rng, 2, OPS);
    uint64_t moments[OPS], sum = 0;
    bool played[OPS] = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t invoke = rng_below(rng, 15), end = invoke + 1 + rng_below(rng, 6);
        if (rng_one_in(rng, 3)) {
            get(&history, 0, 0, invoke, end, 0);
        } else {
            plus(&history, invoke, rng_one_in(rng, 4) ? NO_ANSWER : end, 0);
        }
        bool info = history.ops[i].outcome == HISTORY_INFO;
        moments[i] = info ? invoke + rng_below(rng, 15) : rng_between(rng, invoke, end);
    }
    for (uint32_t round = 0; round < count; round++) {
        uint32_t next = OPS;
        for (uint32_t i = 0; i < count; i++)
            if (!played[i] && (next == OPS || moments[i] < moments[next]))
                next = i;
        played[next] = true;
        struct history_op *op = &history.ops[next];
        bool info = op->outcome == HISTORY_INFO;
        sum += op->kind == HISTORY_ADD && !(info && rng_one_in(rng, 3));
        if (!info)
            saw(op, sum);
    }
    struct history_op *op = &history.ops[rng_below(rng, count)];
    if (op->outcome == HISTORY_OK && rng_one_in(rng, 2)) {
        op->saw = HISTORY_SAW_VALUE;
        op->value += rng_below(rng, 3);
        op->value -= op->value > 0;
    }
    return history;
}

static void test_against_all_orders(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 9);
    uint32_t right_count = 0, judged = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = draw_history(&rng);
        uint32_t adds = 0;
        for (uint32_t i = 0; i < history.count; i++)
            adds += history.ops[i].kind == HISTORY_ADD;
        bool right = twin(&history, 0, 0);
        struct verdict verdict;
        check_counter(&history, &strong, &verdict);
        if (adds && verdict.kind != (right ? VERDICT_OK : VERDICT_WRONG))
            fail_msg("round %d: %s, and all orders say %d", round, said(&verdict), right);
        judged += adds > 0;
        right_count += adds && right;
        verdict_deinit(&verdict);
        history_deinit(&history);
    }
    assert_in_range(right_count, judged / 4, judged * 9 / 10);
}

static void test_planted(void **state)
{
    (void)state;
    struct history history = new_history();
    plus(&history, 1, 2, 1);
    plus(&history, 3, 4, 2);
    plus(&history, 5, NO_ANSWER, 0);
    plus(&history, 7, 8, 4);
    last_look(&history, 0, 0, 20, 4);
    struct verdict verdict;
    check_counter(&history, &strong, &verdict);
    expect_verdict(&verdict, VERDICT_OK, "3 additions to 1 counter, 0 lost");
    assert_int_equal(verdict_get(&verdict, "final_min"), 3);
    assert_int_equal(verdict_get(&verdict, "final_max"), 4);
    verdict_deinit(&verdict);
    history.ops[3].value = 3;
    expect_counter(&history, &strong, VERDICT_OK, "");
    history.ops[3].value = 2;
    expect_counter(&history, &strong, VERDICT_WRONG, "two additions gave one sum");
    expect_counter(&history, &eventual, VERDICT_OK, "");
    history.ops[3].value = 5;
    expect_counter(&history, &strong, VERDICT_WRONG, "");
    expect_counter(&history, &eventual, VERDICT_WRONG, "more than was sent");
    history.ops[3].value = 4;
    history.ops[4].value = 2;
    expect_counter(&history, &strong, VERDICT_WRONG, "before one began that is less");
    expect_counter(&history, &eventual, VERDICT_OK, "1 lost");
    history.ops[4].value = 5;
    expect_counter(&history, &strong, VERDICT_WRONG, "more than can have been added");
    history_deinit(&history);
}

/* The INFO was sent too late to fill the gap. */
static void test_gap(void **state)
{
    (void)state;
    struct history history = new_history();
    plus(&history, 1, 2, 2);
    plus(&history, 3, NO_ANSWER, 0);
    expect_counter(&history, &strong, VERDICT_WRONG, "more than can have been added by then");
    history.ops[1].invoke_ns = history.ops[1].intended_ns = 2;
    expect_counter(&history, &strong, VERDICT_OK, "");
    history_deinit(&history);
}

static void test_not_its_business(void **state)
{
    (void)state;
    struct history history = new_history();
    uint32_t by_two = plus(&history, 1, 2, 2);
    history.ops[by_two].written = 2;
    put(&history, 0, 1, 1, 2, 5, 0);
    expect_counter(&history, &strong, VERDICT_OK, "0 counters");
    history.ops[by_two].written = 1;
    history.ops[by_two].saw = HISTORY_SAW_NOTHING;
    expect_counter(&history, &strong, VERDICT_UNKNOWN, "did not ask");
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all_orders),
                                       cmocka_unit_test(test_planted), cmocka_unit_test(test_gap),
                                       cmocka_unit_test(test_not_its_business)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
