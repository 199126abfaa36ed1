/* SPDX-License-Identifier: Apache-2.0 */
/* RPO on planted histories: what each class is, and what is none. Random worlds that know their own
 * losses are in check_ledgers_test.c. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/rpo.h"

static const struct rpo_death at_50 = {50, 1}, at_25 = {25, 1};
static const struct rpo_options fault_at_50 = {.deaths = &at_50, .death_count = 1};

static void expect_rpo(const struct history *history, const struct rpo_options *options,
                       enum verdict_kind kind, uint64_t unreplicated, uint64_t lww, uint64_t other)
{
    struct verdict verdict;
    check_rpo(history, options, NULL, &verdict);
    if (verdict.kind != kind)
        fail_msg("%s: %s", verdict_text(verdict.kind), said(&verdict));
    assert_int_equal(verdict_get(&verdict, "rpo_count"), unreplicated);
    assert_int_equal(verdict_get(&verdict, "lost_lww"), lww);
    assert_int_equal(verdict_get(&verdict, "lost_other"), other);
    verdict_deinit(&verdict);
}

/* Region 1 wrote 2 and 3 over 1 and died. */
static void test_unreplicated(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    uint32_t second = put(&history, 1, 0, 10, 20, 2, 1);
    uint32_t third = put(&history, 1, 0, 30, 31, 3, 2);
    put(&history, 1, 0, 40, NO_ANSWER, 4, 0);
    history.ops[second].bytes = 100;
    history.ops[third].bytes = 50;
    uint32_t look = last_look(&history, 0, 0, 90, 1);
    struct rpo_losses losses;
    struct verdict verdict;
    check_rpo(&history, &fault_at_50, &losses, &verdict);
    expect_verdict(&verdict, VERDICT_OK, "3 acknowledged writes; lost: 2 unreplicated, 0 to a");
    assert_int_equal(verdict_get(&verdict, "rpo_ns"), 30);
    assert_int_equal(verdict_get(&verdict, "rpo_bytes"), 150);
    assert_int_equal(verdict_get(&verdict, "info"), 1);
    assert_int_equal(losses.count, 2);
    assert_int_equal(losses.at[0].op, second);
    assert_int_equal(losses.at[1].op, third);
    assert_int_equal(losses.at[1].class, RPO_UNREPLICATED);
    rpo_losses_deinit(&losses);
    verdict_deinit(&verdict);

    struct rpo_options options = fault_at_50;
    options.strong = true;
    check_rpo(&history, &options, NULL, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "2 was acknowledged and is lost: it had not left");
    assert_true(names_op(&verdict, second));
    verdict_deinit(&verdict);
    options.strong = false;
    options.death_count = 0; /* then nothing explains it */
    expect_rpo(&history, &options, VERDICT_WRONG, 0, 0, 2);
    options = fault_at_50;
    options.deaths = &at_25; /* 3 was written after it had died */
    expect_rpo(&history, &options, VERDICT_WRONG, 1, 0, 1);
    history.ops[look].value = 4; /* the INFO, of which nobody knows what it was written over */
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 0, 0, 0);
    history.ops[look].value = 3;
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 0, 0, 0);
    history.ops[look].value = 2;
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 1, 0, 0);
    history.ops[look].value = 1;
    get(&history, 2, 0, 32, 33, 3); /* region 2 had it: it should not be lost */
    expect_rpo(&history, &fault_at_50, VERDICT_WRONG, 0, 0, 2);
    history_deinit(&history);
}

static void test_lww(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    put(&history, 0, 0, 10, 11, 2, 1);
    put(&history, 2, 0, 10, 11, 3, 1);
    put(&history, 2, 0, 12, 13, 4, 3);
    last_look(&history, 0, 0, 90, 2);
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 0, 2, 0);
    history.ops[2].region = history.ops[3].region = 1; /* they died with it */
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 2, 0, 0);
    struct ledgers_row row = {.winner = 2, .loser = 4, .regions = 1 << 1};
    struct rpo_options options = fault_at_50;
    options.rows = &row;
    options.row_count = 1;
    expect_rpo(&history, &options, VERDICT_OK, 2, 0, 0); /* only the dead region says so */
    row.regions = 1 << 0;
    expect_rpo(&history, &options, VERDICT_OK, 0, 2, 0);
    history_deinit(&history);
}

/* Sent after the last value's write had ended, and over what nobody knows. */
static void test_unordered(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    struct history_op op = make_op(HISTORY_PUT, 0, 10, 11);
    op.written = 2;
    add(&history, &op);
    last_look(&history, 0, 0, 90, 1);
    expect_rpo(&history, &fault_at_50, VERDICT_WRONG, 0, 0, 1);
    history.ops[2].value = 2;
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 0, 0, 0);
    history_deinit(&history);
}

static void test_absent_and_deleted(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    uint32_t look = last_look(&history, 0, 0, 90, 0);
    expect_rpo(&history, &fault_at_50, VERDICT_WRONG, 0, 0, 1);
    struct history_op op = make_op(HISTORY_DELETE, 0, 3, 4);
    saw(&op, 1);
    add(&history, &op);
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 0, 0, 0);
    saw(&history.ops[look], 1); /* it rose again */
    expect_rpo(&history, &fault_at_50, VERDICT_WRONG, 0, 0, 1);
    history_deinit(&history);
}

static void test_unjudged(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    struct verdict verdict;
    check_rpo(&history, &fault_at_50, NULL, &verdict);
    expect_verdict(&verdict, VERDICT_UNKNOWN, "1 acknowledged write is on items that no last");
    verdict_deinit(&verdict);
    history_deinit(&history);
}

static void test_sets_and_lists(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint32_t i = 1; i <= 6; i++) {
        struct history_op op =
            make_op(i <= 3 ? HISTORY_INSERT : HISTORY_APPEND, i <= 3 ? 0 : 1, 10 * i, 10 * i + 1);
        op.written = i;
        op.region = i % 3 == 2;
        add(&history, &op);
    }
    uint64_t values[] = {1, 2, 3, 4, 5, 6};
    struct verdict verdict;
    check_rpo(&history, &fault_at_50, NULL, &verdict);
    assert_int_equal(verdict_get(&verdict, "unjudged"), 6);
    verdict_deinit(&verdict);
    uint32_t scan = list(&history, HISTORY_SCAN, 0, 90, 91, values, 3);
    uint32_t read = list(&history, HISTORY_READ, 1, 90, 91, values + 3, 3);
    history.ops[scan].final = history.ops[read].final = true;
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 0, 0, 0);
    history.values[history.ops[scan].list_at + 1] = 3; /* 2 is of the dead region */
    history.values[history.ops[read].list_at + 1] = 6; /* so is 5 */
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 2, 0, 0);
    list(&history, HISTORY_SCAN, 0, 45, 46, values, 3); /* but region 0 had seen 2 */
    expect_rpo(&history, &fault_at_50, VERDICT_WRONG, 1, 0, 1);
    history.ops[history.count - 1].region = 1;
    history.ops[read].list_count = 2; /* lists are written whole: 6 lost to a concurrent append */
    history.values[history.ops[read].list_at + 1] = 5;
    expect_rpo(&history, &fault_at_50, VERDICT_OK, 1, 1, 0);
    struct rpo_options strong = fault_at_50;
    strong.strong = true;
    expect_rpo(&history, &strong, VERDICT_WRONG, 1, 0, 1);
    history_deinit(&history);
}

/* Region 1 lost its disk at 25 and at 50, so each write is as old as its own loss finds it. */
static void test_several_losses(void **state)
{
    (void)state;
    static const struct rpo_death deaths[] = {{50, 1}, {25, 1}, {90, 2}};
    struct rpo_options options = {.deaths = deaths, .death_count = 2};
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    put(&history, 1, 0, 10, 20, 2, 1);
    put(&history, 1, 0, 41, 42, 3, 1);
    put(&history, 1, 0, 49, 51, 4, 3);
    last_look(&history, 0, 0, 100, 1);
    struct rpo_losses losses;
    struct verdict verdict;
    check_rpo(&history, &options, &losses, &verdict);
    assert_int_equal(verdict_get(&verdict, "rpo_count"), 3);
    assert_int_equal(verdict_get(&verdict, "rpo_ns"), 8);
    assert_int_equal(losses.at[0].age_ns, 5);
    assert_int_equal(losses.at[1].age_ns, 8);
    assert_int_equal(losses.at[2].age_ns, 0); /* it was under way */
    rpo_losses_deinit(&losses);
    verdict_deinit(&verdict);
    get(&history, 2, 0, 22, 23, 2); /* region 2 had it, and then lost its disk as well */
    expect_rpo(&history, &options, VERDICT_WRONG, 2, 0, 1);
    options.death_count = 3;
    expect_rpo(&history, &options, VERDICT_OK, 3, 0, 0);
    history_deinit(&history);
}

/* By a clock that is behind, a deletion loses to what it was told it removes. */
static void test_late_deletion(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    struct history_op op = make_op(HISTORY_DELETE, 0, 10, 11);
    saw(&op, 1);
    uint32_t deletion = add(&history, &op);
    last_look(&history, 0, 0, 90, 1);
    struct rpo_options options = {0};
    struct verdict verdict;
    check_rpo(&history, &options, NULL, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "key 0: a delete was acknowledged and is lost");
    assert_true(names_op(&verdict, deletion));
    verdict_deinit(&verdict);
    struct ledgers_row row = {.winner = 1, .late = true, .regions = 1};
    options.rows = &row;
    options.row_count = 1;
    expect_rpo(&history, &options, VERDICT_OK, 0, 1, 0);
    row.key = 1; /* of another item */
    expect_rpo(&history, &options, VERDICT_WRONG, 0, 0, 1);
    history_deinit(&history);
}

/* Region 1 appended 2 and 3 and died. Another had 2, which lost to 4 there, as its ledger tells. */
static void test_lost_appends(void **state)
{
    (void)state;
    struct history history = new_history();
    static const uint8_t regions[] = {0, 1, 1, 0};
    static const uint64_t kept[] = {1, 4};
    for (uint32_t i = 0; i < 4; i++) {
        struct history_op op = make_op(HISTORY_APPEND, 0, 10 * (i + 1), 10 * (i + 1) + 1);
        op.written = i + 1;
        op.region = regions[i];
        add(&history, &op);
    }
    history.ops[list(&history, HISTORY_READ, 0, 90, 91, kept, 2)].final = true;
    struct rpo_options options = fault_at_50;
    expect_rpo(&history, &options, VERDICT_OK, 2, 0, 0);
    struct ledgers_row row = {.winner = 4, .loser = 2, .regions = 1 << 0};
    options.rows = &row;
    options.row_count = 1;
    expect_rpo(&history, &options, VERDICT_OK, 1, 1, 0);
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unreplicated),   cmocka_unit_test(test_lww),
        cmocka_unit_test(test_unordered),      cmocka_unit_test(test_absent_and_deleted),
        cmocka_unit_test(test_unjudged),       cmocka_unit_test(test_sets_and_lists),
        cmocka_unit_test(test_several_losses), cmocka_unit_test(test_late_deletion),
        cmocka_unit_test(test_lost_appends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
