/* SPDX-License-Identifier: Apache-2.0 */
/* Convergence against nested loops over small random scans, and planted differences. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/converge.h"

enum { KEYS = 4, REGIONS = 3, ROUNDS = 20000 };

struct twin_scan {
    bool held[KEYS];
    uint64_t digest[KEYS];
    struct converge_item items[KEYS];
    struct converge_scan scan;
};

static void draw_scan(struct rng *rng, struct twin_scan *scan, uint8_t region, uint64_t odd)
{
    uint32_t count = 0;
    for (uint32_t i = KEYS; i-- > 0;) {
        scan->held[i] = (i % 2 == 0) != rng_one_in(rng, odd);
        scan->digest[i] = 100 + i + rng_one_in(rng, odd);
        if (scan->held[i])
            scan->items[count++] = (struct converge_item){.digest = scan->digest[i], .key = i};
    }
    scan->scan = (struct converge_scan){scan->items, count, region};
}

static void test_against_loops(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    struct history history = new_history();
    uint32_t right_count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct twin_scan first[REGIONS], again[REGIONS];
        struct converge_scan scans[REGIONS], rescans[REGIONS];
        bool rescan = rng_one_in(&rng, 2);
        uint64_t odd = rng_one_in(&rng, 2) ? 1000000 : rng_between(&rng, 10, 60);
        for (uint8_t i = 0; i < REGIONS; i++) {
            draw_scan(&rng, &first[i], i, odd);
            draw_scan(&rng, &again[i], i, odd);
            scans[i] = first[i].scan;
            rescans[i] = again[i].scan;
        }
        uint64_t different = 0, zombies = 0, vanished = 0, wrong = 0;
        for (uint32_t key = 0; key < KEYS; key++) {
            bool differs = false, back = false, gone = false, changed = false;
            for (uint32_t i = 0; i < REGIONS; i++) {
                differs = differs || first[i].held[key] != first[0].held[key] ||
                          (first[i].held[key] && first[i].digest[key] != first[0].digest[key]);
                back = back || (rescan && again[i].held[key] && !first[i].held[key]);
                gone = gone || (rescan && !again[i].held[key] && first[i].held[key]);
                for (uint32_t j = 0; j < REGIONS; j++)
                    changed = changed || (rescan && again[i].held[key] && first[j].held[key] &&
                                          again[i].digest[key] != first[j].digest[key]);
            }
            different += differs;
            zombies += back;
            vanished += gone;
            wrong += differs || back || gone || changed;
        }
        struct converge_options options = {scans, REGIONS, rescans, rescan ? REGIONS : 0};
        struct verdict verdict;
        check_converge(&history, &options, &verdict);
        assert_int_equal(verdict.kind, wrong ? VERDICT_WRONG : VERDICT_OK);
        assert_int_equal(verdict_get(&verdict, "different"), different);
        assert_int_equal(verdict_get(&verdict, "zombies"), zombies);
        assert_int_equal(verdict_get(&verdict, "vanished"), vanished);
        right_count += wrong == 0;
        verdict_deinit(&verdict);
    }
    assert_in_range(right_count, ROUNDS / 4, ROUNDS * 3 / 4);
    history_deinit(&history);
}

static void expect_items(const struct history *history, const struct converge_item *items,
                         uint32_t count, enum verdict_kind kind, const char *part)
{
    struct converge_scan scan = {items, count, 1};
    struct converge_options options = {.scans = &scan, .scan_count = 1};
    struct verdict verdict;
    check_converge(history, &options, &verdict);
    expect_verdict(&verdict, kind, part);
    verdict_deinit(&verdict);
}

static void test_phantoms(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 1, 1, 2, 10, 0);
    put(&history, 0, 1, 3, NO_ANSWER, 11, 0);
    struct history_op op = make_op(HISTORY_PUT, 1, 5, 6);
    op.written = 12;
    op.outcome = HISTORY_FAILED;
    op.reason = HISTORY_REASON_CONFLICT;
    add(&history, &op);
    op = make_op(HISTORY_INSERT, 2, 7, 8);
    op.written = 20;
    add(&history, &op);
    struct converge_item items[] = {{.key = 1, .value = 10}, {.key = 2, .element = 20}};
    expect_items(&history, items, 2, VERDICT_OK, "2 items, alike in 1 region");
    items[0].value = 11;
    expect_items(&history, items, 2, VERDICT_OK, "");
    items[0].value = 12;
    expect_items(&history, items, 2, VERDICT_WRONG, "key 1: it holds what was refused");
    items[0].value = 13;
    expect_items(&history, items, 2, VERDICT_WRONG, "nobody wrote");
    items[0].value = 20;
    expect_items(&history, items, 2, VERDICT_WRONG, "elsewhere");
    items[0].value = 0;
    items[1].element = 10;
    expect_items(&history, items, 2, VERDICT_WRONG, "element 10");
    items[1] = items[0];
    expect_items(&history, items, 2, VERDICT_WRONG, "shows it twice");
    history_deinit(&history);
}

static void test_no_scan(void **state)
{
    (void)state;
    struct history history = new_history();
    struct converge_options options = {0};
    struct verdict verdict;
    check_converge(&history, &options, &verdict);
    expect_verdict(&verdict, VERDICT_UNKNOWN, "no region");
    verdict_deinit(&verdict);
    history_deinit(&history);
}

/* What is shown of a finding: who wrote what came back, and who had deleted it. */
static void test_zombie_names_its_operations(void **state)
{
    (void)state;
    struct history history = new_history();
    struct history_op op = make_op(HISTORY_DELETE, 1, 5, 6);
    uint32_t other = put(&history, 0, 2, 1, 2, 20, 0);
    uint32_t gone = add(&history, &op);
    uint32_t written = put(&history, 0, 1, 3, 4, 10, 0);
    put(&history, 0, 1, 1, 2, 9, 0);
    const struct converge_item kept = {.key = 2, .value = 20};
    const struct converge_item back[] = {{.key = 1, .value = 10}, {.key = 2, .value = 20}};
    struct converge_scan scans[] = {{&kept, 1, 0}, {&kept, 1, 1}};
    struct converge_scan rescans[] = {{back, 2, 0}, {&kept, 1, 1}};
    struct converge_options options = {scans, 2, rescans, 2};
    struct verdict verdict;
    check_converge(&history, &options, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "key 1: it came back");
    assert_int_equal(verdict.op_count, 2);
    assert_int_equal(verdict.ops[0], written);
    assert_int_equal(verdict.ops[1], gone);
    assert_false(names_op(&verdict, other));
    verdict_deinit(&verdict);
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_loops), cmocka_unit_test(test_phantoms),
        cmocka_unit_test(test_no_scan), cmocka_unit_test(test_zombie_names_its_operations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
