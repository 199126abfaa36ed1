/* SPDX-License-Identifier: Apache-2.0 */
/* The register checker against all orders of small random histories of every kind it judges, with
 * values that repeat; planted ones; and its budgets. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/register.h"

enum { OPS = 6, ROUNDS = 20000 };

static const struct register_options all_reads = {.weak_reads = true};

static void expect_register(const struct history *history, const struct register_options *options,
                            enum verdict_kind kind, const char *part)
{
    struct verdict verdict;
    check_register(history, options, &verdict);
    expect_verdict(&verdict, kind, part);
    verdict_deinit(&verdict);
}

struct twin_item {
    bool present;
    uint64_t value;
};

static bool twin_saw(const struct history_op *op, const struct twin_item *item)
{
    if (op->saw == HISTORY_SAW_NOTHING)
        return true;
    return item->present ? op->saw == HISTORY_SAW_VALUE && op->value == item->value
                         : op->saw == HISTORY_SAW_ABSENT;
}

static bool twin_apply(const struct history_op *op, struct twin_item *item)
{
    struct twin_item before = *item;
    bool meets = op->expected ? item->present && item->value == op->expected : !item->present;
    switch ((enum history_kind)op->kind) {
    case HISTORY_PUT:
        *item = (struct twin_item){true, op->written};
        return twin_saw(op, &before);
    case HISTORY_PUT_IF:
        if (meets)
            *item = (struct twin_item){true, op->written};
        if (op->outcome == HISTORY_INFO)
            return true;
        return meets == (op->outcome == HISTORY_OK) && twin_saw(op, &before);
    case HISTORY_ADD:
        *item = (struct twin_item){true, (item->present ? item->value : 0) + op->written};
        return twin_saw(op, item);
    case HISTORY_DELETE:
        *item = (struct twin_item){0};
        return twin_saw(op, &before);
    case HISTORY_READ:
        return twin_saw(op, item);
    case HISTORY_APPEND:
    case HISTORY_INSERT:
    case HISTORY_SCAN:
    case HISTORY_KIND_COUNT:
        break;
    }
    return false;
}

static bool twin(const struct history *history, uint32_t done, struct twin_item item)
{
    bool complete = true;
    for (uint32_t i = 0; i < history->count; i++)
        complete = complete && (done >> i & 1 || history_end(&history->ops[i]) == UINT64_MAX);
    if (complete)
        return true;
    for (uint32_t i = 0; i < history->count; i++) {
        bool may = !(done >> i & 1);
        for (uint32_t j = 0; j < history->count && may; j++)
            may = done >> j & 1 || history_end(&history->ops[j]) >= history->ops[i].invoke_ns;
        struct twin_item after = item;
        if (may && twin_apply(&history->ops[i], &after) && twin(history, done | 1u << i, after))
            return true;
    }
    return false;
}

static struct history_op draw_op(struct rng *rng)
{
    static const enum history_kind kinds[] = {HISTORY_PUT,  HISTORY_PUT_IF, HISTORY_ADD,
                                              HISTORY_READ, HISTORY_DELETE, HISTORY_READ};
    uint64_t invoke = rng_below(rng, 12);
    struct history_op op =
        make_op(kinds[rng_below(rng, 6)], 0, invoke, invoke + 1 + rng_below(rng, 6));
    if (op.kind != HISTORY_READ && op.kind != HISTORY_DELETE)
        op.written = 1 + rng_below(rng, 2);
    if (op.kind == HISTORY_PUT_IF)
        op.expected = rng_below(rng, 3);
    if (op.kind != HISTORY_READ && rng_one_in(rng, 5)) {
        op.outcome = HISTORY_INFO;
        op.reason = HISTORY_REASON_SERVER;
        return op;
    }
    if (op.kind == HISTORY_PUT_IF && rng_one_in(rng, 2)) {
        op.outcome = HISTORY_FAILED;
        op.reason = HISTORY_REASON_CONDITION;
    }
    if (op.kind == HISTORY_ADD && rng_one_in(rng, 2))
        op.saw = HISTORY_SAW_VALUE, op.value = 1 + rng_below(rng, 4);
    else if (op.kind == HISTORY_READ || (op.kind != HISTORY_ADD && rng_one_in(rng, 3)))
        saw(&op, rng_below(rng, 4));
    return op;
}

static void test_against_all_orders(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    uint32_t right_count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = new_history();
        uint32_t count = (uint32_t)rng_between(&rng, 1, OPS);
        for (uint32_t i = 0; i < count; i++) {
            struct history_op op = draw_op(&rng);
            add(&history, &op);
        }
        bool right = twin(&history, 0, (struct twin_item){0});
        struct verdict verdict;
        check_register(&history, &all_reads, &verdict);
        if (verdict.kind != (right ? VERDICT_OK : VERDICT_WRONG))
            fail_msg("round %d: %s, and all orders say %d", round, said(&verdict), right);
        assert_true(right || verdict.op_count > 0);
        right_count += right;
        verdict_deinit(&verdict);
        history_deinit(&history);
    }
    assert_in_range(right_count, ROUNDS / 20, ROUNDS * 3 / 4);
}

/* Sixty items are right, one of them has a condition that held over what was gone. */
static void test_planted(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint32_t key = 0; key < 60; key++) {
        put(&history, 0, key, 1, 4, 1, 0);
        struct history_op op = make_op(HISTORY_PUT_IF, key, 5, 8);
        op.written = 2;
        op.expected = 1;
        add(&history, &op);
        op = make_op(HISTORY_PUT_IF, key, 9, 12);
        op.written = 1;
        op.expected = key == 33 ? 1 : 2;
        add(&history, &op);
        get(&history, 0, key, 13, 14, 1);
    }
    struct verdict verdict;
    check_register(&history, &(struct register_options){0}, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "table 0, key 33: no order");
    assert_int_equal(verdict_get(&verdict, "wrong_items"), 1);
    assert_int_equal(verdict_get(&verdict, "items"), 60);
    assert_true(verdict_get(&verdict, "window_to_ns") <= 12);
    assert_true(names_op(&verdict, 33 * 4 + 2) && !names_op(&verdict, 33 * 4 + 3));
    verdict_deinit(&verdict);
    history.ops[33 * 4 + 2].expected = 2;
    expect_register(&history, &(struct register_options){0}, VERDICT_OK, "240 operations");
    history_deinit(&history);
}

static void test_weak_reads_and_contradictions(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    uint32_t stale = get(&history, 0, 0, 3, 4, 0);
    history.ops[stale].strong = false;
    expect_register(&history, &(struct register_options){0}, VERDICT_OK, "");
    expect_register(&history, &all_reads, VERDICT_WRONG, "no order");
    struct history_op op = make_op(HISTORY_PUT_IF, 0, 5, 6);
    op.written = 2;
    op.expected = 7;
    saw(&op, 1);
    add(&history, &op);
    expect_register(&history, &(struct register_options){0}, VERDICT_WRONG, "contradicts");
    history_deinit(&history);
}

static void test_budget(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint32_t i = 0; i < 20; i++) {
        struct history_op op = make_op(HISTORY_ADD, 0, i + 1, 100 + i);
        op.written = 1u << i;
        add(&history, &op);
    }
    get(&history, 0, 0, 50, 90, 1u << 30);
    expect_register(&history, &(struct register_options){.steps_max = 1000}, VERDICT_UNKNOWN,
                    "budget");
    expect_register(&history, &(struct register_options){.memory_max = 100000}, VERDICT_UNKNOWN,
                    "budget");
    put(&history, 0, 1, 1, 2, 9, 8);
    expect_register(&history, &(struct register_options){.steps_max = 1000}, VERDICT_WRONG,
                    "key 1");
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_all_orders), cmocka_unit_test(test_planted),
        cmocka_unit_test(test_weak_reads_and_contradictions), cmocka_unit_test(test_budget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
