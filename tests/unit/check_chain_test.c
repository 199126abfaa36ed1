/* SPDX-License-Identifier: Apache-2.0 */
/* The chain checker against a search through all orders of small random histories; against planted
 * histories that show each kind of wrong; and on forks in eventual mode. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/chain.h"
#include "chaos/check/lineage.h"

enum { OPS = 8, ROUNDS = 60000 };

static const struct chain_options strong = {.weak_reads = true};
static const struct chain_options eventual = {.eventual = true};

static void expect_chain(const struct history *history, const struct chain_options *options,
                         enum verdict_kind kind, const char *part)
{
    struct verdict verdict;
    check_chain(history, options, NULL, &verdict);
    expect_verdict(&verdict, kind, part);
    verdict_deinit(&verdict);
}

/* ---- The twin ---- */

/* False: it cannot have had this result over *value. */
static bool twin_apply(const struct history_op *op, uint64_t *value)
{
    bool asked = op->saw == HISTORY_SAW_VALUE || op->saw == HISTORY_SAW_ABSENT;
    if (asked && op->value != *value)
        return false;
    if (op->kind == HISTORY_PUT_IF && op->outcome == HISTORY_FAILED)
        return *value != op->expected;
    if (op->kind == HISTORY_PUT_IF && op->outcome == HISTORY_OK && *value != op->expected)
        return false;
    if (op->kind == HISTORY_PUT_IF && *value != op->expected)
        return true;
    if (op->kind != HISTORY_READ)
        *value = op->written;
    return true;
}

static bool twin_counts(const struct history_op *op)
{
    return op->outcome != HISTORY_FAILED || op->reason == HISTORY_REASON_CONDITION;
}

static bool twin(const struct history *history, uint32_t done, uint64_t value)
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
        uint64_t after = value;
        if (may && twin_apply(&history->ops[i], &after) && twin(history, done | 1u << i, after))
            return true;
    }
    return false;
}

static bool twin_linearizable(const struct history *history)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < history->count; i++)
        done |= (uint32_t)!twin_counts(&history->ops[i]) << i;
    return twin(history, done, 0);
}

/* ---- Random histories ---- */

static struct history_op draw_op(struct rng *rng, uint32_t i, bool conditions, uint64_t unknown)
{
    static const enum history_kind kinds[] = {HISTORY_PUT, HISTORY_READ, HISTORY_PUT, HISTORY_READ,
                                              HISTORY_PUT_IF};
    enum history_kind kind = kinds[rng_below(rng, conditions ? 5 : 4)];
    uint64_t invoke = rng_below(rng, 20);
    struct history_op op = make_op(kind, 0, invoke, invoke + 1 + rng_below(rng, 8));
    if (kind != HISTORY_READ)
        op.written = i + 1;
    if (kind != HISTORY_READ && rng_below(rng, 10) < unknown) {
        op.outcome = HISTORY_INFO;
        op.reason = HISTORY_REASON_TIMEOUT;
    }
    return op;
}

/* Carries the operations out in the order of a moment drawn for each, so that they are right. */
static void play(struct rng *rng, struct history_op *ops, uint32_t count)
{
    uint64_t moments[OPS], value = 0;
    bool played[OPS] = {0};
    for (uint32_t i = 0; i < count; i++)
        moments[i] = ops[i].outcome == HISTORY_INFO
                         ? ops[i].invoke_ns + rng_below(rng, 20)
                         : rng_between(rng, ops[i].invoke_ns, ops[i].return_ns);
    for (uint32_t round = 0; round < count; round++) {
        uint32_t next = OPS;
        for (uint32_t i = 0; i < count; i++)
            if (!played[i] && (next == OPS || moments[i] < moments[next]))
                next = i;
        played[next] = true;
        struct history_op *op = &ops[next];
        bool known = op->outcome != HISTORY_INFO;
        if (!known && rng_one_in(rng, 3))
            continue;
        if (op->kind == HISTORY_PUT_IF)
            op->expected = rng_one_in(rng, 2) ? value : rng_below(rng, count + 1);
        if (known && (op->kind != HISTORY_PUT || !rng_one_in(rng, 8)))
            saw(op, value);
        if (op->kind == HISTORY_PUT_IF && op->expected != value) {
            if (known) {
                op->outcome = HISTORY_FAILED;
                op->reason = HISTORY_REASON_CONDITION;
            }
        } else if (op->kind != HISTORY_READ) {
            value = op->written;
        }
    }
}

static struct history draw_history(struct rng *rng)
{
    struct history_op ops[OPS];
    uint32_t count = (uint32_t)rng_between(rng, 3, OPS);
    bool conditions = rng_one_in(rng, 2);
    uint64_t unknown = rng_one_in(rng, 2) ? 3 : 9; /* of ten writes */
    for (uint32_t i = 0; i < count; i++)
        ops[i] = draw_op(rng, i, conditions, unknown);
    play(rng, ops, count);
    if (rng_one_in(rng, 2)) { /* someone sees something else */
        struct history_op *op = &ops[rng_below(rng, count)];
        if (op->saw != HISTORY_SAW_NOTHING)
            saw(op, rng_below(rng, count + 2));
    }
    if (rng_one_in(rng, 8)) {
        struct history_op *op = &ops[rng_below(rng, count)];
        if (op->outcome == HISTORY_INFO) { /* Jepsen's classic mistake */
            op->outcome = HISTORY_FAILED;
            op->reason = HISTORY_REASON_THROTTLED;
        }
    }
    struct history history = new_history();
    for (uint32_t i = 0; i < count; i++)
        history_append(&history, &ops[i], NULL);
    return history;
}

static void test_against_all_orders(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 42);
    uint32_t right_count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = draw_history(&rng);
        bool right = twin_linearizable(&history);
        struct verdict verdict;
        check_chain(&history, &strong, NULL, &verdict);
        if (verdict.kind != (right ? VERDICT_OK : VERDICT_WRONG)) {
            struct buf text = {0};
            for (uint32_t i = 0; i < history.count; i++) {
                history_print(&history, i, NULL, 0, &text);
                buf_append_text(&text, "\n");
            }
            buf_append_u8(&text, 0);
            fail_msg("round %d: %s (%s), and all orders say %d:\n%s", round,
                     verdict_text(verdict.kind), said(&verdict), right, (char *)text.at);
        }
        assert_true(right || verdict.op_count > 0);
        right_count += right;
        verdict_deinit(&verdict);
        history_deinit(&history);
    }
    assert_in_range(right_count, ROUNDS / 4, ROUNDS * 4 / 5);
}

/* ---- Planted ---- */

static void test_clean(void **state)
{
    (void)state;
    struct history history = new_history();
    expect_chain(&history, &strong, VERDICT_OK, "0 operations");
    for (uint32_t i = 0; i < 100; i++) {
        put(&history, 0, i % 7, 10 * i + 1, 10 * i + 4, i + 1, i < 7 ? 0 : i - 6);
        get(&history, 1, i % 7, 10 * i + 3, 10 * i + 9, i + 1);
    }
    expect_chain(&history, &strong, VERDICT_OK, "200 operations, linearizable");
    expect_chain(&history, &eventual, VERDICT_OK, "0 writes were overwritten unseen");
    history_deinit(&history);
}

static void test_wrong_in_any_mode(void **state)
{
    (void)state;
    for (int fault = 0; fault < 5; fault++) {
        struct history history = new_history();
        put(&history, 0, 0, 1, 2, 10, 0);
        struct history_op refused = make_op(HISTORY_PUT, 0, 3, 4);
        refused.written = 11;
        refused.outcome = HISTORY_FAILED;
        refused.reason = HISTORY_REASON_CONFLICT;
        add(&history, &refused);
        put(&history, 0, 1, 1, 2, 20, 0);
        put(&history, 0, 0, 30, 31, 12, 10);
        static const uint64_t values[] = {99, 11, 20, 12, 14};
        static const char *const texts[] = {"nobody wrote", "had failed", "another item",
                                            "before it was sent", "written over the other"};
        if (fault < 4) {
            get(&history, 0, 0, 10, 11, values[fault]);
        } else {
            put(&history, 0, 0, 40, 50, 13, 14);
            put(&history, 0, 0, 40, 50, 14, 13);
        }
        expect_chain(&history, &strong, VERDICT_WRONG, texts[fault]);
        expect_chain(&history, &eventual, VERDICT_WRONG, texts[fault]);
        history_deinit(&history);
    }
}

static void test_stale_read(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 3, 1, 2, 10, 0);
    uint32_t newer = put(&history, 0, 3, 3, 4, 11, 10);
    uint32_t read = get(&history, 1, 3, 5, 6, 10);
    struct verdict verdict;
    check_chain(&history, &strong, NULL, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "table 0, key 3: an operation ended before one began");
    assert_true(names_op(&verdict, newer) && names_op(&verdict, read));
    verdict_deinit(&verdict);
    history.ops[read].strong = false;
    expect_chain(&history, &(struct chain_options){0}, VERDICT_OK, "");
    expect_chain(&history, &strong, VERDICT_WRONG, "");
    expect_chain(&history, &eventual, VERDICT_OK, "");
    history_deinit(&history);
}

/* Unknown writes that were seen are runs of their own, of which the second ends before the last
 * read of the first begins, with a third in between. */
static void test_segments_cross(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, NO_ANSWER, 10, 0);
    put(&history, 0, 0, 1, NO_ANSWER, 20, 0);
    get(&history, 0, 0, 2, 3, 10);
    get(&history, 0, 0, 4, 5, 20);
    expect_chain(&history, &strong, VERDICT_OK, "");
    put(&history, 0, 0, 1, NO_ANSWER, 30, 0);
    get(&history, 0, 0, 6, 7, 10);
    get(&history, 0, 0, 3, 4, 30);
    expect_chain(&history, &strong, VERDICT_WRONG, "two runs of writes");
    expect_chain(&history, &eventual, VERDICT_OK, "0 writes were overwritten unseen");
    history_deinit(&history);
}

static void test_unusable(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 10, 0);
    put(&history, 0, 0, 3, 4, 10, 10);
    expect_chain(&history, &strong, VERDICT_UNKNOWN, "two writes of one value");
    expect_chain(&history, &eventual, VERDICT_OK,
                 "0 writes were overwritten unseen, and 2 of which nobody can tell");
    history_deinit(&history);
    history = new_history();
    put(&history, 0, 0, 1, 2, 10, 0);
    struct history_op deletion = make_op(HISTORY_DELETE, 0, 3, 4);
    saw(&deletion, 10);
    add(&history, &deletion);
    get(&history, 0, 0, 5, 6, 0);
    expect_chain(&history, &strong, VERDICT_UNKNOWN, "deletions");
    put(&history, 0, 0, 7, 8, 11, 10);
    expect_chain(&history, &strong, VERDICT_WRONG, "two writes over one value");
    history_deinit(&history);
}

/* ---- Lost updates ---- */

static void test_forks(void **state)
{
    (void)state;
    struct history history = new_history();
    uint32_t first = put(&history, 0, 5, 1, 2, 1, 0);
    uint32_t second = put(&history, 0, 5, 3, 4, 2, 1);
    put(&history, 1, 5, 3, 4, 3, 2);                  /* over 2, and built upon by 5 */
    uint32_t rival = put(&history, 0, 5, 5, 6, 4, 2); /* over 2 as well, and prevails */
    uint32_t loser = put(&history, 1, 5, 7, 8, 5, 3);
    uint32_t other = put(&history, 2, 5, 9, 10, 6, 0); /* over nothing, like 1 */
    put(&history, 0, 5, 11, 12, 7, 4);
    last_look(&history, 0, 5, 20, 7);
    struct chain_forks forks;
    struct verdict verdict;
    check_chain(&history, &eventual, &forks, &verdict);
    expect_verdict(&verdict, VERDICT_OK, "2 writes were overwritten unseen");
    assert_int_equal(verdict_get(&verdict, "forks"), 2);
    assert_int_equal(forks.count, 2);
    assert_int_equal(forks.at[0].loser, other);
    assert_int_equal(forks.at[0].rival, first);
    assert_int_equal(forks.at[0].base, CHAIN_ABSENT);
    assert_int_equal(forks.at[1].loser, loser);
    assert_int_equal(forks.at[1].rival, rival);
    assert_int_equal(forks.at[1].base, second);
    chain_forks_deinit(&forks);
    verdict_deinit(&verdict);
    expect_chain(&history, &strong, VERDICT_WRONG, "two writes over");
    history_deinit(&history);
}

/* The last value is one that another was written over: a late write. */
static void test_late(void **state)
{
    (void)state;
    struct history history = new_history();
    uint32_t a = put(&history, 0, 0, 1, 2, 1, 0);
    uint32_t b = put(&history, 1, 0, 3, 4, 2, 1);
    last_look(&history, 0, 0, 9, 1);
    last_look(&history, 1, 0, 9, 1);
    struct chain_forks forks;
    struct verdict verdict;
    check_chain(&history, &eventual, &forks, &verdict);
    assert_int_equal(forks.count, 1);
    assert_true(forks.at[0].late && forks.at[0].loser == b && forks.at[0].rival == a);
    assert_int_equal(verdict_get(&verdict, "late"), 1);
    assert_int_equal(verdict_get(&verdict, "forks"), 0);
    chain_forks_deinit(&forks);
    verdict_deinit(&verdict);
    history_deinit(&history);
}

/* A replay of last-writer-wins between two regions, which knows what it loses. */
static void test_forks_twin(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 7);
    for (int round = 0; round < 2000; round++) {
        struct history history = new_history();
        uint64_t value[2] = {0, 0}, next = 1, base = 0, lost = 0;
        for (uint64_t now = 1; now < 100; now += 2) {
            if (rng_one_in(&rng, 4)) { /* they meet, and the greater wins */
                lost += value[0] != value[1] && value[0] != base && value[1] != base;
                value[0] = value[1] = base = value[0] > value[1] ? value[0] : value[1];
            } else {
                uint8_t region = (uint8_t)rng_below(&rng, 2);
                put(&history, region, 0, now, now + 1, next, value[region]);
                value[region] = next++;
            }
        }
        lost += value[0] != value[1] && value[0] != base && value[1] != base;
        if (next > 1)
            last_look(&history, 0, 0, 1000, value[0] > value[1] ? value[0] : value[1]);
        struct verdict verdict;
        check_chain(&history, &eventual, NULL, &verdict);
        assert_int_equal(verdict_get(&verdict, "forks"), lost);
        assert_int_equal(verdict_get(&verdict, "late"), 0);
        verdict_deinit(&verdict);
        history_deinit(&history);
    }
}

static void test_deep_and_wide(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct history history = new_history();
    for (uint32_t i = 0; i < COUNT; i++)
        put(&history, 0, 0, i + 1, i + 1, i + 1, i);
    expect_chain(&history, &strong, VERDICT_OK, "");
    for (uint32_t i = 0; i < COUNT; i++)
        put(&history, 1, 1, i + 1, i + 1, COUNT + i + 1, 0);
    struct chain_forks forks;
    struct verdict verdict;
    check_chain(&history, &eventual, &forks, &verdict);
    assert_int_equal(forks.count, COUNT - 1);
    chain_forks_deinit(&forks);
    verdict_deinit(&verdict);
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all_orders),
                                       cmocka_unit_test(test_clean),
                                       cmocka_unit_test(test_wrong_in_any_mode),
                                       cmocka_unit_test(test_stale_read),
                                       cmocka_unit_test(test_segments_cross),
                                       cmocka_unit_test(test_unusable),
                                       cmocka_unit_test(test_forks),
                                       cmocka_unit_test(test_late),
                                       cmocka_unit_test(test_forks_twin),
                                       cmocka_unit_test(test_deep_and_wide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
