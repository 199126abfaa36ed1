/* SPDX-License-Identifier: Apache-2.0 */
/* The record itself: its limits, its names, what it refuses to believe, and the lines for people;
 * and the ground floor of the checkers: items, writers, quantiles, verdicts. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/items.h"

static void test_append_and_limits(void **state)
{
    (void)state;
    struct history history;
    history_init(&history, 3, 5);
    uint64_t values[] = {7, 8, 9};
    struct history_op op = make_op(HISTORY_READ, 1, 1, 2);
    op.saw = HISTORY_SAW_LIST;
    op.list_count = 3;
    assert_int_equal(history_append(&history, &op, values), 0);
    assert_int_equal(history_append(&history, &op, values), HISTORY_FULL);
    op.list_count = 2;
    assert_int_equal(history_append(&history, &op, values + 1), 1);
    assert_int_equal(history_list(&history, &history.ops[0])[2], 9);
    assert_int_equal(history_list(&history, &history.ops[1])[0], 8);
    op.list_count = 0;
    assert_int_equal(history_append(&history, &op, NULL), 2);
    assert_int_equal(history_append(&history, &op, NULL), HISTORY_FULL);
    assert_int_equal(history.count, 3);
    history_deinit(&history);
}

static void test_names(void **state)
{
    (void)state;
    uint8_t found;
    for (uint8_t i = 0; i < HISTORY_KIND_COUNT; i++) {
        assert_true(history_kind_find(bytes_text(history_kind_text(i)), &found));
        assert_int_equal(found, i);
    }
    for (uint8_t i = 0; i < HISTORY_REASON_COUNT; i++) {
        assert_true(history_reason_find(bytes_text(history_reason_text(i)), &found));
        assert_int_equal(found, i);
    }
    assert_true(history_outcome_find(bytes_literal("info"), &found) && found == HISTORY_INFO);
    assert_true(history_saw_find(bytes_literal("list"), &found) && found == HISTORY_SAW_LIST);
    assert_false(history_kind_find(bytes_literal("putt"), &found));
    assert_false(history_saw_find(BYTES_NONE, &found));
    assert_true(history_kind_writes(HISTORY_DELETE) && !history_kind_writes(HISTORY_SCAN));
}

/* Each of these can stand in a file, and in no history. */
static void test_faults(void **state)
{
    (void)state;
    struct history_op good = make_op(HISTORY_PUT, 1, 5, 6), bad;
    good.written = 1;
    assert_null(history_op_fault(&good));
#define REFUSES(change)                                                                            \
    do {                                                                                           \
        bad = good;                                                                                \
        change;                                                                                    \
        assert_non_null(history_op_fault(&bad));                                                   \
    } while (0)
    REFUSES(bad.kind = HISTORY_KIND_COUNT);
    REFUSES(bad.outcome = 9);
    REFUSES(bad.reason = 99);
    REFUSES(bad.saw = 4);
    REFUSES(bad.region = HISTORY_REGIONS_MAX);
    REFUSES(bad.intended_ns = 6);
    REFUSES(bad.return_ns = 4);
    REFUSES(bad.return_ns = UINT64_MAX);
    REFUSES(bad.written = 0);
    REFUSES(bad.expected = 3);
    REFUSES(bad.reason = HISTORY_REASON_TIMEOUT);
    REFUSES(bad.outcome = HISTORY_FAILED);
    REFUSES((bad.outcome = HISTORY_FAILED, bad.reason = HISTORY_REASON_TIMEOUT));
    REFUSES((bad.outcome = HISTORY_INFO, bad.reason = HISTORY_REASON_THROTTLED));
    REFUSES((bad.outcome = HISTORY_FAILED, bad.reason = HISTORY_REASON_CONDITION));
    REFUSES((bad.outcome = HISTORY_FAILED, bad.reason = HISTORY_REASON_THROTTLED,
             bad.saw = HISTORY_SAW_VALUE));
    REFUSES(bad.saw = HISTORY_SAW_LIST);
    REFUSES(bad.list_count = 1);
    REFUSES((bad.kind = HISTORY_SCAN, bad.written = 0, bad.saw = HISTORY_SAW_VALUE));
    REFUSES(bad.kind = HISTORY_READ);
}

static void test_print(void **state)
{
    (void)state;
    struct history history = new_history();
    struct history_op op = make_op(HISTORY_PUT_IF, 1, 3000000000u, 3000004000u);
    op.written = 41;
    op.expected = 39;
    op.client = 7;
    op.outcome = HISTORY_FAILED;
    op.reason = HISTORY_REASON_CONDITION;
    saw(&op, 40);
    add(&history, &op);
    get(&history, 1, 1, 1, 2, 0);
    uint64_t values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    list(&history, HISTORY_SCAN, 1, 2000000000u, 2000000001u, values, 2);
    list(&history, HISTORY_SCAN, 1, 2000000000u, 2000000001u, values, 17);
    const char *const regions[] = {"us-east-1", "eu-west-1"};
    const char *const lines[] = {
        "us-east-1 c7 put_if 41 if 39 saw 40: failed, condition, 1.000000 to 1.000004 s",
        "eu-west-1 c0 read saw nothing there, -1.999999 to -1.999999 s",
        "us-east-1 c0 scan saw [1 2], 0.000000 to 0.000000 s",
        ("us-east-1 c0 scan saw [... 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17], 0.000000 to "
         "0.000000 s")};
    for (uint32_t i = 0; i < history.count; i++) {
        struct buf text = {0};
        history_print(&history, i, regions, 2000000000u, &text);
        buf_append_u8(&text, 0);
        assert_string_equal((char *)text.at, lines[i]);
        buf_deinit(&text);
    }
    history_deinit(&history);
}

static void test_items(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 2, 30, 31, 1, 0);
    put(&history, 0, 1, 20, 21, 2, 0);
    put(&history, 0, 2, 10, 11, 3, 0);
    put(&history, 0, 2, 10, 11, 3, 0);
    struct items items;
    items_init(&items, &history);
    assert_int_equal(items.count, 2);
    const struct item_range *item = items_find(&items, 0, 2);
    assert_int_equal(item->to - item->from, 3);
    assert_int_equal(items.order[item->from], 2);
    assert_int_equal(items.order[item->from + 2], 0);
    assert_int_equal(item->kinds, 1 << HISTORY_PUT);
    assert_null(items_find(&items, 0, 3));
    assert_null(items_find(&items, 1, 2));
    struct writers writers;
    writers_init(&writers, &history);
    assert_int_equal(writers_find(&writers, 0, 2), 1);
    assert_int_equal(writers_find(&writers, 1, 2), ITEMS_NONE);
    assert_true(writers.repeated[2] && writers.repeated[3] && !writers.repeated[0]);
    writers_deinit(&writers);
    items_deinit(&items);
    history_deinit(&history);
}

static void test_quantiles(void **state)
{
    (void)state;
    uint64_t values[100];
    for (uint32_t i = 0; i < 100; i++)
        values[i] = 100 - i;
    numbers_sort(values, 100);
    assert_int_equal(numbers_quantile(values, 100, 0), 1);
    assert_int_equal(numbers_quantile(values, 100, 500000), 50);
    assert_int_equal(numbers_quantile(values, 100, 990000), 99);
    assert_int_equal(numbers_quantile(values, 100, 990001), 100);
    assert_int_equal(numbers_quantile(values, 100, 1000000), 100);
    assert_int_equal(numbers_quantile(values, 0, 500000), 0);
}

static void test_verdict(void **state)
{
    (void)state;
    struct history history = new_history();
    uint32_t late = put(&history, 0, 0, 9, 10, 1, 0), early = put(&history, 0, 0, 1, 2, 2, 0);
    struct verdict verdict;
    verdict_init(&verdict);
    assert_true(verdict_worsen(&verdict, VERDICT_UNKNOWN, "budget"));
    assert_true(verdict_worsen(&verdict, VERDICT_WRONG, "first of %d", 2));
    verdict_add_op(&verdict, late);
    verdict_add_op(&verdict, early);
    verdict_add_op(&verdict, late);
    assert_false(verdict_worsen(&verdict, VERDICT_UNKNOWN, "third"));
    for (uint32_t i = 0; i < 2 * VERDICT_OPS_MAX; i++)
        verdict_add_op(&verdict, i == late || i == early ? 1000 : i);
    assert_int_equal(verdict.op_count, VERDICT_OPS_MAX);
    verdict.op_count = 2;
    verdict_figure(&verdict, "n", 5);
    verdict_conclude(&verdict, &history, "fine");
    expect_verdict(&verdict, VERDICT_WRONG, "first of 2");
    assert_int_equal(verdict.op_count, 2);
    assert_int_equal(verdict.ops[0], early);
    assert_int_equal(verdict_get(&verdict, "n"), 5);
    assert_true(verdict_get(&verdict, "m") == UINT64_MAX);
    verdict_deinit(&verdict);
    history_deinit(&history);
}

/* What else is wrong is kept beside the first, each once, up to a limit; operations go with it. */
static void test_findings(void **state)
{
    (void)state;
    struct history history = new_history();
    uint32_t late = put(&history, 0, 0, 9, 10, 1, 0), early = put(&history, 0, 0, 1, 2, 2, 0);
    struct verdict verdict;
    verdict_init(&verdict);
    assert_true(verdict_worsen(&verdict, VERDICT_WRONG, "first"));
    verdict_add_op(&verdict, early);
    assert_false(verdict_worsen(&verdict, VERDICT_WRONG, "first"));
    for (uint32_t i = 0; i < VERDICT_MORE_MAX; i++) {
        assert_true(verdict_worsen(&verdict, VERDICT_WRONG, "more %u", i));
        verdict_add_op(&verdict, late);
        verdict_add_op(&verdict, early);
        assert_int_equal(verdict.more_count, i + 1);
        assert_int_equal(verdict.more[i].op_count, 2);
    }
    assert_false(verdict_worsen(&verdict, VERDICT_WRONG, "too many"));
    assert_int_equal(verdict.untold, 2);
    verdict_conclude(&verdict, &history, "fine");
    expect_verdict(&verdict, VERDICT_WRONG, "first");
    assert_int_equal(verdict.op_count, 1);
    assert_true(bytes_is(buf_view(&verdict.more[0].text), "more 0"));
    assert_int_equal(verdict.more[0].ops[0], early);
    verdict_deinit(&verdict);
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_append_and_limits),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_print),
                                       cmocka_unit_test(test_items),
                                       cmocka_unit_test(test_quantiles),
                                       cmocka_unit_test(test_verdict),
                                       cmocka_unit_test(test_findings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
