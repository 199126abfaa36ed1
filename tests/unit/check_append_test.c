/* SPDX-License-Identifier: Apache-2.0 */
/* The list checker against all orders of small random histories, and planted ones. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/append.h"

enum { OPS = 7, ROUNDS = 30000 };

static const struct append_options strong, eventual = {.eventual = true};

static void expect_append(const struct history *history, const struct append_options *options,
                          enum verdict_kind kind, const char *part)
{
    struct verdict verdict;
    check_append(history, options, &verdict);
    expect_verdict(&verdict, kind, part);
    verdict_deinit(&verdict);
}

static uint32_t append(struct history *history, uint64_t invoke_ns, uint64_t return_ns,
                       uint64_t value)
{
    struct history_op op = make_op(HISTORY_APPEND, 0, invoke_ns, return_ns);
    op.written = value;
    return add(history, &op);
}

struct twin_list {
    uint32_t count;
    uint64_t at[OPS];
};

static bool twin_apply(const struct history *history, const struct history_op *op,
                       struct twin_list *item)
{
    if (op->kind == HISTORY_APPEND)
        item->at[item->count++] = op->written;
    if (op->saw == HISTORY_SAW_NOTHING)
        return true;
    if (op->saw == HISTORY_SAW_ABSENT || op->list_count == 0)
        return item->count == 0;
    return item->count == op->list_count &&
           memcmp(item->at, history_list(history, op), item->count * sizeof(uint64_t)) == 0;
}

static bool twin(const struct history *history, uint32_t done, const struct twin_list *item)
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
        struct twin_list after = *item;
        if (may && twin_apply(history, &history->ops[i], &after) &&
            twin(history, done | 1u << i, &after))
            return true;
    }
    return false;
}

static void spoil(struct rng *rng, struct history *history)
{
    struct history_op *op = &history->ops[rng_below(rng, history->count)];
    if (op->saw != HISTORY_SAW_LIST || op->list_count == 0)
        return;
    uint64_t *values = history->values + op->list_at;
    if (rng_one_in(rng, 2)) {
        op->list_count--;
    } else {
        uint64_t i = rng_below(rng, op->list_count), kept = values[0];
        values[0] = values[i];
        values[i] = rng_one_in(rng, 8) ? 99 : kept;
    }
}

static struct history draw_history(struct rng *rng)
{
    struct history_op ops[OPS];
    uint64_t moments[OPS];
    bool played[OPS] = {0};
    struct twin_list item = {0};
    struct history history = new_history();
    uint32_t count = (uint32_t)rng_between(rng, 2, OPS);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t invoke = rng_below(rng, 15), end = invoke + 1 + rng_below(rng, 6);
        bool reads = rng_one_in(rng, 2);
        bool info = !reads && rng_one_in(rng, 4);
        ops[i] = make_op(reads ? HISTORY_READ : HISTORY_APPEND, 0, invoke, info ? NO_ANSWER : end);
        ops[i].written = reads ? 0 : i + 1;
        moments[i] = info ? invoke + rng_below(rng, 15) : rng_between(rng, invoke, end);
    }
    for (uint32_t round = 0; round < count; round++) {
        uint32_t next = OPS;
        for (uint32_t i = 0; i < count; i++)
            if (!played[i] && (next == OPS || moments[i] < moments[next]))
                next = i;
        played[next] = true;
        struct history_op *op = &ops[next];
        bool info = op->outcome == HISTORY_INFO;
        if (op->kind == HISTORY_APPEND && !(info && rng_one_in(rng, 3)))
            item.at[item.count++] = op->written;
        if (op->kind == HISTORY_READ || (!info && rng_one_in(rng, 3))) {
            op->saw = item.count ? HISTORY_SAW_LIST : HISTORY_SAW_ABSENT;
            op->list_count = item.count;
        }
        history_append(&history, op, item.at);
    }
    for (uint64_t i = rng_below(rng, 4); i > 0; i--)
        spoil(rng, &history);
    return history;
}

static void test_against_all_orders(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 31);
    uint32_t right_count = 0, judged = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = draw_history(&rng);
        uint32_t appends = 0;
        for (uint32_t i = 0; i < history.count; i++)
            appends += history.ops[i].kind == HISTORY_APPEND;
        struct twin_list empty = {0};
        bool right = twin(&history, 0, &empty);
        struct verdict verdict;
        check_append(&history, &strong, &verdict);
        if (appends && verdict.kind != (right ? VERDICT_OK : VERDICT_WRONG))
            fail_msg("round %d: %s, and all orders say %d", round, said(&verdict), right);
        assert_true(verdict.kind == VERDICT_OK || verdict.op_count > 0);
        judged += appends > 0;
        right_count += appends && right;
        verdict_deinit(&verdict);
        history_deinit(&history);
    }
    assert_in_range(right_count, judged / 4, judged * 9 / 10);
}

static void test_planted(void **state)
{
    (void)state;
    struct history history = new_history();
    append(&history, 1, 2, 1);
    append(&history, 3, 4, 2);
    append(&history, 3, 4, 3);
    append(&history, 5, NO_ANSWER, 4);
    uint64_t values[] = {1, 3, 2, 4, 1};
    uint32_t first = list(&history, HISTORY_READ, 0, 6, 7, values, 3);
    uint32_t last = list(&history, HISTORY_READ, 0, 8, 9, values, 4);
    history.ops[last].final = true;
    expect_append(&history, &strong, VERDICT_OK, "3 appends to 1 list, 0 lost");

    uint64_t *seen = history.values + history.ops[first].list_at;
    seen[1] = 2, seen[2] = 3;
    expect_append(&history, &strong, VERDICT_WRONG, "neither is a prefix");
    expect_append(&history, &eventual, VERDICT_OK, "");
    seen[1] = 3, seen[2] = 3;
    expect_append(&history, &strong, VERDICT_WRONG, "one element twice");
    expect_append(&history, &eventual, VERDICT_WRONG, "one element twice");
    seen[2] = 9;
    expect_append(&history, &eventual, VERDICT_WRONG, "nobody appended");
    seen[2] = 2;

    history.ops[last].list_count = 2; /* 2 was seen, and is gone */
    expect_append(&history, &eventual, VERDICT_OK, "1 lost");
    expect_append(&history, &strong, VERDICT_WRONG, "must precede it");
    history.ops[last].list_count = 4;
    history.ops[3].outcome = HISTORY_FAILED;
    history.ops[3].reason = HISTORY_REASON_CONFLICT;
    expect_append(&history, &eventual, VERDICT_WRONG, "failed to be appended");
    history.ops[3].outcome = HISTORY_INFO;
    history.ops[3].invoke_ns = 10;
    history.ops[3].reason = HISTORY_REASON_TIMEOUT;
    expect_append(&history, &eventual, VERDICT_WRONG, "had not been sent");
    history.ops[3].key = 1;
    expect_append(&history, &eventual, VERDICT_WRONG, "written elsewhere");
    history_deinit(&history);
}

static void test_told(void **state)
{
    (void)state;
    struct history history = new_history();
    uint64_t values[] = {1, 2};
    struct history_op op = make_op(HISTORY_APPEND, 0, 1, 2);
    op.written = 1;
    op.saw = HISTORY_SAW_LIST;
    op.list_count = 1;
    history_append(&history, &op, values);
    op.written = 2;
    op.invoke_ns = op.intended_ns = 3;
    op.return_ns = 4;
    op.list_count = 2;
    history_append(&history, &op, values);
    expect_append(&history, &strong, VERDICT_OK, "");
    history.ops[1].list_count = 1;
    expect_append(&history, &strong, VERDICT_WRONG, "does not end with it");
    history.ops[0].written = 2;
    expect_append(&history, &strong, VERDICT_UNKNOWN, "two appends of one value");
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all_orders),
                                       cmocka_unit_test(test_planted), cmocka_unit_test(test_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
