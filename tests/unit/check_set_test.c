/* SPDX-License-Identifier: Apache-2.0 */
/* The set checker against the definitions written out, element by element and scan by scan, on
 * random histories; and planted ones. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/set.h"

enum { ELEMENTS_MAX = 70, ROUNDS = 3000 };

static const struct set_options strict = {.linearizable = true}, loose = {.allow_lost = true},
                                plain;

static uint32_t insert(struct history *history, uint64_t invoke_ns, uint64_t return_ns,
                       uint64_t element)
{
    struct history_op op = make_op(HISTORY_INSERT, 0, invoke_ns, return_ns);
    op.written = element;
    return add(history, &op);
}

static void expect_set(const struct history *history, const struct set_options *options,
                       enum verdict_kind kind, const char *part)
{
    struct verdict verdict;
    check_set(history, options, &verdict);
    expect_verdict(&verdict, kind, part);
    verdict_deinit(&verdict);
}

/* ---- The twin ---- */

static uint32_t times_seen(const struct history *history, const struct history_op *scan,
                           uint64_t element)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < scan->list_count; i++)
        times += history_list(history, scan)[i] == element;
    return times;
}

struct counts {
    uint64_t stable, lost, lost_info, never_read, unsettled, stale, duplicated, strong_stale;
    uint64_t stable_max, lost_max;
};

static void twin_element(const struct history *history, const struct history_op *op,
                         struct counts *counts)
{
    uint64_t known = history_end(op), seen_last = 0;
    const struct history_op *present = NULL, *absent = NULL;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *scan = &history->ops[i];
        if (scan->kind != HISTORY_SCAN || scan->outcome != HISTORY_OK)
            continue;
        uint32_t times = times_seen(history, scan, op->written);
        counts->duplicated += times > 1 ? times - 1 : 0;
        const struct history_op **last = times ? &present : &absent;
        if (!*last || scan->invoke_ns >= (*last)->invoke_ns)
            *last = scan;
        if (times && scan->return_ns < known)
            known = scan->return_ns;
        if (times && scan->return_ns > seen_last)
            seen_last = scan->return_ns;
    }
    bool strong_stale = false;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *scan = &history->ops[i];
        strong_stale = strong_stale ||
                       (scan->kind == HISTORY_SCAN && scan->outcome == HISTORY_OK && scan->strong &&
                        scan->invoke_ns > known && !times_seen(history, scan, op->written));
    }
    counts->strong_stale += strong_stale;
    if (present && (!absent || present->invoke_ns >= absent->invoke_ns)) {
        uint64_t latency =
            absent && absent->invoke_ns + 1 > known ? absent->invoke_ns + 1 - known : 0;
        counts->stable_max = latency > counts->stable_max ? latency : counts->stable_max;
        counts->stable++;
        counts->stale += absent && absent->invoke_ns > known;
    } else if (absent && known < absent->invoke_ns && seen_last < absent->invoke_ns) {
        uint64_t latency =
            present && present->invoke_ns + 1 > known ? present->invoke_ns + 1 - known : 0;
        counts->lost_max = latency > counts->lost_max ? latency : counts->lost_max;
        counts->lost++;
        counts->lost_info += op->outcome == HISTORY_INFO;
    } else if (!present) {
        counts->never_read++;
    } else {
        counts->unsettled++;
    }
}

static struct history draw_history(struct rng *rng)
{
    struct history history = new_history();
    uint32_t elements = (uint32_t)rng_between(rng, 1, ELEMENTS_MAX);
    for (uint32_t i = 0; i < elements; i++) {
        uint64_t invoke = 1 + rng_below(rng, 100);
        insert(&history, invoke, rng_one_in(rng, 5) ? NO_ANSWER : invoke + rng_below(rng, 20),
               i + 1);
    }
    uint64_t at = 1 + rng_below(rng, 30);
    bool seen[ELEMENTS_MAX] = {0};
    uint64_t miss = rng_one_in(rng, 2) ? 1000000 : rng_between(rng, 2, 40);
    while (at < 150) { /* no two begin at once */
        uint64_t values[2 * ELEMENTS_MAX], end = at + rng_below(rng, 15);
        uint32_t count = 0;
        for (uint32_t i = 0; i < elements; i++) {
            bool may = history.ops[i].invoke_ns <= end;
            bool must = seen[i] || history_end(&history.ops[i]) < at;
            seen[i] = may && (must || rng_one_in(rng, 2));
            if (seen[i] && !rng_one_in(rng, miss))
                values[count++] = i + 1;
            if (count && rng_one_in(rng, 500)) {
                values[count] = values[count - 1];
                count++;
            }
        }
        uint32_t scan = list(&history, HISTORY_SCAN, 0, at, end, values, count);
        history.ops[scan].strong = rng_one_in(rng, 2);
        at += 1 + rng_below(rng, 30);
    }
    return history;
}

static void test_against_definitions(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 21);
    uint32_t lossy = 0, stale = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = draw_history(&rng);
        struct counts counts = {0};
        for (uint32_t i = 0; i < history.count; i++)
            if (history.ops[i].kind == HISTORY_INSERT)
                twin_element(&history, &history.ops[i], &counts);
        struct verdict verdict;
        check_set(&history, &plain, &verdict);
        bool wrong = counts.lost || counts.duplicated;
        assert_int_equal(verdict.kind, wrong ? VERDICT_WRONG : VERDICT_OK);
        assert_int_equal(verdict_get(&verdict, "stable"), counts.stable);
        assert_int_equal(verdict_get(&verdict, "lost"), counts.lost);
        assert_int_equal(verdict_get(&verdict, "lost_info"), counts.lost_info);
        assert_int_equal(verdict_get(&verdict, "never_read"), counts.never_read);
        assert_int_equal(verdict_get(&verdict, "unsettled"), counts.unsettled);
        assert_int_equal(verdict_get(&verdict, "stale"), counts.stale);
        assert_int_equal(verdict_get(&verdict, "duplicated"), counts.duplicated);
        assert_int_equal(verdict_get(&verdict, "stable_max_ns"), counts.stable_max);
        assert_int_equal(verdict_get(&verdict, "lost_max_ns"), counts.lost_max);
        verdict_deinit(&verdict);
        check_set(&history, &strict, &verdict);
        assert_int_equal(verdict.kind, wrong || counts.strong_stale ? VERDICT_WRONG : VERDICT_OK);
        verdict_deinit(&verdict);
        lossy += counts.lost > 0;
        stale += counts.stale > 0;
        history_deinit(&history);
    }
    assert_in_range(lossy, ROUNDS / 20, ROUNDS * 9 / 10);
    assert_in_range(stale, ROUNDS / 20, ROUNDS * 9 / 10);
}

/* ---- Planted ---- */

static void test_planted(void **state)
{
    (void)state;
    struct history history = new_history();
    for (uint32_t i = 1; i <= 5; i++)
        insert(&history, 10 * i, i == 5 ? NO_ANSWER : 10 * i + 5, i);
    uint64_t values[] = {4, 3, 2, 1, 5, 6};
    uint32_t first = list(&history, HISTORY_SCAN, 0, 60, 61, values, 5);
    uint32_t last = list(&history, HISTORY_SCAN, 0, 70, 71, values, 5);
    expect_set(&history, &strict, VERDICT_OK, "5 elements, 0 lost, 0 stale");

    history.ops[first].list_count = 3; /* misses 1 and 5, which come back */
    expect_set(&history, &plain, VERDICT_OK, "1 stale");
    expect_set(&history, &strict, VERDICT_WRONG, "element 1: known, and missed by a strong scan");
    history.ops[first].strong = false;
    expect_set(&history, &strict, VERDICT_OK, "");

    history.ops[first].list_count = 5;
    history.ops[last].list_count = 3; /* misses 1, and the INFO that was seen */
    struct verdict verdict;
    check_set(&history, &plain, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "element 1: known, and lost");
    assert_true(names_op(&verdict, 0) && names_op(&verdict, first) && names_op(&verdict, last));
    assert_int_equal(verdict_get(&verdict, "lost"), 2);
    assert_int_equal(verdict_get(&verdict, "lost_info"), 1);
    verdict_deinit(&verdict);
    expect_set(&history, &loose, VERDICT_OK, "2 lost");
    history.ops[last].list_count = 5;

    history.ops[last].list_count = 6;
    history.values[history.ops[last].list_at + 5] = 6;
    expect_set(&history, &plain, VERDICT_WRONG, "element 6: seen, and nobody inserted it");
    history.values[history.ops[last].list_at + 5] = 2;
    expect_set(&history, &plain, VERDICT_WRONG, "element 2: twice");
    history_deinit(&history);
}

static void test_phantoms(void **state)
{
    (void)state;
    for (int fault = 0; fault < 3; fault++) {
        struct history history = new_history();
        uint32_t op = insert(&history, 1, 2, 1);
        uint64_t value = 1;
        list(&history, HISTORY_SCAN, 0, 3, 4, &value, 1);
        if (fault == 0) {
            history.ops[op].outcome = HISTORY_FAILED;
            history.ops[op].reason = HISTORY_REASON_REFUSED;
        } else if (fault == 1) {
            history.ops[op].key = 7;
        } else {
            history.ops[op].invoke_ns = 5;
            history.ops[op].return_ns = 6;
        }
        static const char *const texts[] = {"insertion had failed", "elsewhere", "before it was"};
        expect_set(&history, &loose, VERDICT_WRONG, texts[fault]);
        history_deinit(&history);
    }
}

/* Long enough that a step for each element and scan would be felt. */
static void test_large(void **state)
{
    (void)state;
    enum { COUNT = 20000, SCANS = 100 };
    struct history history = new_history();
    static uint64_t values[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        insert(&history, i + 1, i + 1, i + 1);
        values[i] = i + 1;
        if (i % (COUNT / SCANS) == 0)
            list(&history, HISTORY_SCAN, 0, i + 1, i + 1, values, i);
    }
    list(&history, HISTORY_SCAN, 0, COUNT + 1, COUNT + 1, values, COUNT);
    expect_set(&history, &strict, VERDICT_OK, "20000 elements");
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_definitions), cmocka_unit_test(test_planted),
        cmocka_unit_test(test_phantoms), cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
