/* SPDX-License-Identifier: Apache-2.0 */
/* What a run is judged to mean: every metric on an outcome of which the answer is known, each exit
 * code, and which of them wins. */

#include "tests/lib/outcome_make.h"

#include <math.h>

#include "chaos/run/measure.h"

/* An answered read of an absent item in `region`, `at` ms into the run, that took 2 ms. */
static void add_read(struct made *made, uint8_t region, uint64_t at_ms, bool strong, bool good)
{
    struct history_op op =
        make_op(HISTORY_READ, 3, at_ms * MS_NS, good ? (at_ms + 2) * MS_NS : NO_ANSWER);
    op.region = region;
    op.strong = strong;
    if (good)
        op.saw = HISTORY_SAW_ABSENT;
    add(&made->outcome.history, &op);
}

/* Chains in both Regions that end with all equal: nothing is wrong. */
static void make_clean(struct made *made)
{
    struct history *history = &made->outcome.history;
    put(history, 0, 0, 1 * SECOND_NS, 1 * SECOND_NS + 5 * MS_NS, 1, 0);
    put(history, 1, 0, 2 * SECOND_NS, 2 * SECOND_NS + 5 * MS_NS, 2, 1);
    put(history, 1, 1, 3 * SECOND_NS, 3 * SECOND_NS + 5 * MS_NS, 3, 0);
    for (uint8_t region = 0; region < 2; region++) {
        last_look(history, region, 0, 11 * SECOND_NS, 2);
        last_look(history, region, 1, 11 * SECOND_NS, 3);
    }
}

static struct converge_scan *make_scans(struct made *made, uint64_t of_second)
{
    struct arena *arena = &made->outcome.arena;
    struct converge_scan *scans = arena_array(arena, struct converge_scan, 2);
    for (uint8_t i = 0; i < 2; i++) {
        struct converge_item *items = arena_array(arena, struct converge_item, 2);
        items[0] = (struct converge_item){.digest = 7, .value = 2, .key = 0};
        items[1] = (struct converge_item){
            .digest = i == 0 ? 8 : of_second, .value = i == 0 ? 3 : of_second, .key = 1};
        if (i == 0)
            items[1].digest = items[1].value = 3;
        scans[i] = (struct converge_scan){items, 2, i};
    }
    return scans;
}

/* ---- Exit codes ---- */

static void test_pass(void **state)
{
    (void)state;
    struct made made;
    make_run(
        &made, "eventual", LWW,
        "{lost_updates: 0, lost_other: 0, phantoms: 0, converged: true, ledger_complete: true, "
        "rpo_count: 0, converge: '<=2s'}");
    make_clean(&made);
    made.outcome.scans = make_scans(&made, 3);
    made.outcome.scan_count = 2;
    made.outcome.healed_ns = 8 * SECOND_NS;
    made.outcome.converged_ns = 9 * SECOND_NS;
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass: RPO 0 writes, all Regions equal 1 s after healing");
    for (uint32_t i = 0; i < 6; i++)
        assert_true(made.outcome.expects[i].holds);
    assert_true(actual(&made, 6) == 1e9);
    free_run(&made);
}

static void test_wrong(void **state)
{
    (void)state;
    struct made made;
    make_run(&made, "eventual", LWW, "{lost_updates: 0}"); /* an expectation */
    make_clean(&made);
    put(&made.outcome.history, 0, 0, 2 * SECOND_NS, 2 * SECOND_NS + 1, 9, 1);
    struct ledgers_row row = {.winner = 2, .loser = 9, .regions = 3};
    made.outcome.ledger = &row;
    made.outcome.ledger_count = 1;
    judge(&made);
    expect_exit(&made, OUTCOME_WRONG, "wrong: expected lost_updates 0, 1 (RPO 0 writes, 1 lost");
    free_run(&made);

    make_run(&made, "eventual", LWW, "{phantoms: '<9'}"); /* a checker, whatever is expected */
    make_clean(&made);
    get(&made.outcome.history, 0, 1, 4 * SECOND_NS, 4 * SECOND_NS + 1, 77);
    judge(&made);
    expect_exit(&made, OUTCOME_WRONG, "wrong: chain: ");
    assert_true(actual(&made, 0) == 1);
    free_run(&made);

    make_run(&made, "eventual", LWW, "{converged: true}");
    make_clean(&made);
    made.outcome.scans = make_scans(&made, 2);
    made.outcome.scan_count = 2;
    judge(&made);
    expect_exit(&made, OUTCOME_WRONG, "wrong: converge: ");
    assert_true(actual(&made, 0) == 0);
    free_run(&made);
}

static void test_harness(void **state)
{
    (void)state;
    struct made made;
    make_run(&made, "eventual", LWW, "{lost_updates: '>5'}"); /* also wrong */
    make_clean(&made);
    made.outcome.harness = "no port";
    judge(&made);
    expect_exit(&made, OUTCOME_HARNESS, "harness error: no port (RPO 0");
    free_run(&made);

    make_run(&made, "eventual", LWW, "{lost_updates: 0}");
    make_clean(&made);
    make_fault(&made, VERB_LINK_CUT, 5, 6)->effective = false;
    judge(&made);
    expect_exit(&made, OUTCOME_HARNESS, "fault loss (link.cut us-east-1) hit nothing: seen");
    free_run(&made);

    make_run(&made, "eventual", LWW, "{lost_updates: 0}");
    make_clean(&made);
    make_fault(&made, VERB_LINK_CUT, 5, 6)->refused = true;
    judge(&made);
    expect_exit(&made, OUTCOME_HARNESS, "could not be begun");
    free_run(&made);

    make_run(&made, "eventual", LWW, "{lost_updates: 0}"); /* drawn ones may meet each other */
    make_clean(&made);
    make_fault(&made, VERB_LINK_CUT, 5, 6)->refused = true;
    made.scenario.phases[0].faults[0].drawn = true;
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass");
    free_run(&made);
}

static void test_unknown(void **state)
{
    (void)state;
    struct made made;
    make_run(&made, "eventual", LWW, "{lost_updates: 0, converge: '<1s'}"); /* also slow */
    put(&made.outcome.history, 0, 0, 1, 2, 1, 0);                           /* and no last look */
    judge(&made);
    expect_exit(&made, OUTCOME_UNKNOWN, "unknown: rpo: 1 acknowledged write is on items that no");
    free_run(&made);

    make_run(&made, "eventual", LWW, "{converged: true}"); /* nothing was scanned */
    make_clean(&made);
    judge(&made);
    expect_exit(&made, OUTCOME_UNKNOWN,
                "expected converged true, and there was nothing to measure");
    free_run(&made);
}

static void test_slow(void **state)
{
    (void)state;
    struct made made;
    make_run(&made, "eventual", LWW, "{converge: '<=2s'}");
    make_clean(&made);
    judge(&made);
    expect_exit(&made, OUTCOME_SLOW, "too slow: expected converge <=2s, never");
    assert_true(isinf(actual(&made, 0)));
    free_run(&made);

    make_run(&made, "eventual", LWW, "{lost_updates: 0}");
    make_clean(&made);
    made.outcome.phases[0].timed_out = true;
    judge(&made);
    expect_exit(&made, OUTCOME_SLOW, "phase only did not reach what it waits for");
    free_run(&made);

    make_run(&made, "eventual", LWW, "{lost_updates: 0}");
    make_clean(&made);
    made.outcome.stopped = "stop_if lag >1s";
    judge(&made);
    expect_exit(&made, OUTCOME_SLOW, "stopped early: stop_if lag >1s");
    free_run(&made);
}

/* ---- Metrics ---- */

/* us-east-1 is wiped at 5 s; 2 and 3 were only there. */
static void test_losses(void **state)
{
    (void)state;
    struct made made;
    make_run(&made, "eventual", LWW,
             "{rpo_count: 2, rpo_seconds: '<3', rpo_bytes: 150, lost_updates: 0, lost_other: 0}");
    struct history *history = &made.outcome.history;
    put(history, 0, 0, 1 * SECOND_NS, 1 * SECOND_NS + 1, 1, 0);
    get(history, 1, 0, 2 * SECOND_NS, 2 * SECOND_NS + 1, 1);
    history->ops[put(history, 0, 0, 2 * SECOND_NS, 3 * SECOND_NS, 2, 1)].bytes = 100;
    history->ops[put(history, 0, 0, 4 * SECOND_NS, 4 * SECOND_NS + 1, 3, 2)].bytes = 50;
    last_look(history, 0, 0, 11 * SECOND_NS, 1);
    last_look(history, 1, 0, 11 * SECOND_NS, 1);
    make_fault(&made, VERB_DISK_WIPE, 5, 8);
    made.outcome.lost_regions = 1;
    made.outcome.lost_ns = 5 * SECOND_NS;
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass: RPO 2 writes (2 s)");
    assert_true(actual(&made, 0) == 2 && actual(&made, 1) == 2e9 && actual(&made, 2) == 150);
    assert_true(actual(&made, 3) == 0); /* they are the RPO's, and no lost updates besides */
    free_run(&made);

    make_run(&made, "eventual", "{kind: exec, exec: [true]}", "{rpo_count: 5, exit_code: 3}");
    made.outcome.lost_regions = 1;
    made.outcome.region_rpo_count = 5;
    made.outcome.exited = true;
    made.outcome.exit_code = 3;
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass: RPO 5 writes");
    free_run(&made);
}

/* The Regions count the same, and what clients do not know of may be in it. */
static void test_recount(void **state)
{
    (void)state;
    static const struct {
        uint64_t own;
        enum verdict_kind kind;
    } cases[] = {{0, VERDICT_WRONG}, {1, VERDICT_OK}, {2, VERDICT_OK}, {3, VERDICT_WRONG}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct made made;
        make_run(&made, "eventual", LWW, "{rpo_count: 1}");
        put(&made.outcome.history, 0, 0, 1 * SECOND_NS, 1 * SECOND_NS + 1, 1, 0);
        put(&made.outcome.history, 0, 0, 5 * SECOND_NS - 1, NO_ANSWER, 2, 0);
        put(&made.outcome.history, 0, 0, 7 * SECOND_NS, NO_ANSWER, 3, 0);
        put(&made.outcome.history, 1, 0, 5 * SECOND_NS - 1, NO_ANSWER, 4, 0);
        put(&made.outcome.history, 1, 0, 8 * SECOND_NS, 8 * SECOND_NS + 1, 5, 0);
        last_look(&made.outcome.history, 0, 0, 11 * SECOND_NS, 5);
        last_look(&made.outcome.history, 1, 0, 11 * SECOND_NS, 5);
        make_fault(&made, VERB_DISK_WIPE, 5, 8);
        made.outcome.lost_regions = 1;
        made.outcome.lost_ns = 5 * SECOND_NS;
        made.outcome.region_rpo_count = cases[i].own;
        judge(&made);
        const struct outcome_check *found = measure_check(&made.outcome, "recount");
        assert_non_null(found);
        assert_int_equal(found->verdict.kind, cases[i].kind);
        free_run(&made);
    }
}

static void test_strong(void **state)
{
    (void)state;
    struct made made;
    make_run(&made, "strong", SWAP, "{linearizable: true, lost_other: 0, conflicts: 1}");
    make_clean(&made);
    struct history_op op = make_op(HISTORY_PUT, 2, 4 * SECOND_NS, 4 * SECOND_NS + 1);
    op.written = 50;
    op.outcome = HISTORY_FAILED;
    op.reason = HISTORY_REASON_CONFLICT;
    add(&made.outcome.history, &op);
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass: RPO 0 writes, linearizable");
    free_run(&made);

    make_run(&made, "strong", SWAP, "{linearizable: true}");
    make_clean(&made);
    get(&made.outcome.history, 0, 0, 4 * SECOND_NS, 4 * SECOND_NS + 1, 1); /* stale */
    judge(&made);
    expect_exit(&made, OUTCOME_WRONG, "wrong: chain: ");
    assert_true(actual(&made, 0) == 0);
    assert_int_equal(measure_check(&made.outcome, "staleness")->verdict.kind, VERDICT_WRONG);
    free_run(&made);

    /* No order is promised in eventual mode, but it can be asked for. */
    make_run(&made, "eventual", SWAP, "{linearizable: false}");
    make_clean(&made);
    get(&made.outcome.history, 0, 0, 4 * SECOND_NS, 4 * SECOND_NS + 1, 1);
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass");
    free_run(&made);
}

/* eu-west-1 answers all the time, us-east-1 not between 5 s and 6 s. */
static void test_service(void **state)
{
    (void)state;
    struct made made;
    make_run(
        &made, "eventual", LWW,
        "{rto: {us-east-1: '<=4s', eu-west-1: '<=2s'}, first_success: {us-east-1: '<=1500ms'}, "
        "unavailable: {us-east-1: '<=1s', eu-west-1: '<=0s'}, error_rate: {us-east-1: '<=11%', "
        "eu-west-1: 0}, latency_p50: '<=2ms', latency_p99: '>=2ms', throughput: ['>=150', "
        "'<=200'], "
        "unknown_rate: 0, catch_up: {us-east-1: '<=20ms'}}");
    for (uint64_t ms = 0; ms < 10000; ms += 10) {
        add_read(&made, 0, ms, false, ms < 5000 || ms >= 6000);
        add_read(&made, 1, ms, false, true);
    }
    make_fault(&made, VERB_CLIENT_BLOCK, 5, 6);
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass: no write was acknowledged, RTO ");
    for (uint32_t i = 0; i < made.outcome.expect_count; i++)
        assert_true(made.outcome.expects[i].holds);
    assert_true(actual(&made, 0) >= 2.9e9); /* a second without service, and a window of two */
    assert_true(actual(&made, 1) < 2.1e9);
    assert_true(actual(&made, 3) == 1e9);
    free_run(&made);
}

static void test_staleness_and_lag(void **state)
{
    (void)state;
    struct made made;
    make_run(&made, "eventual", LWW,
             "{staleness_max: {eu-west-1: '>=2s', us-east-1: '<=0s'}, staleness_p50: {us-east-1: "
             "'<=0s'}, "
             "staleness_p99: '<=2s', lag: ['>=3s', '<=3s'], zombies: 0}");
    struct history *history = &made.outcome.history;
    put(history, 0, 0, 1 * SECOND_NS, 2 * SECOND_NS, 1, 0);
    put(history, 0, 0, 2 * SECOND_NS, 3 * SECOND_NS, 2, 1);
    history->ops[get(history, 1, 0, 5 * SECOND_NS, 6 * SECOND_NS, 1)].strong = false;
    history->ops[get(history, 0, 0, 5 * SECOND_NS, 6 * SECOND_NS, 2)].strong = false;
    last_look(history, 0, 0, 11 * SECOND_NS, 2);
    for (uint64_t i = 0; i < 4; i++) {
        struct outcome_sample *sample = outcome_sample(&made.outcome, i * SECOND_NS);
        sample->region[0].up = true;
        sample->region[0].lag_ns = i * SECOND_NS;
    }
    made.outcome.scans = arena_array(&made.outcome.arena, struct converge_scan, 2);
    made.outcome.rescans = made.outcome.scans;
    made.outcome.scans[1].region = 1;
    made.outcome.scan_count = made.outcome.rescan_count = 2;
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass");
    free_run(&made);
}

static void test_sums_lists_and_sets(void **state)
{
    (void)state;
    struct made made;
    static const uint64_t both[] = {1, 2}, one[] = {1};
    make_run(&made, "strong", "{kind: append, keys: 1}", "{linearizable: true, lost_other: 1}");
    struct history *history = &made.outcome.history;
    for (uint64_t i = 1; i <= 2; i++) {
        struct history_op op = make_op(HISTORY_APPEND, 0, i * 100, i * 100 + 1);
        op.written = i;
        add(history, &op);
    }
    list(history, HISTORY_READ, 0, 300, 301, both, 2);
    uint32_t look = list(history, HISTORY_READ, 0, 400, 401, one, 1);
    history->ops[look].final = true;
    judge(&made);
    expect_exit(&made, OUTCOME_WRONG, "wrong: append: ");
    assert_true(actual(&made, 1) == 1);
    free_run(&made);

    make_run(&made, "strong", "{kind: counter, keys: 1}", "{linearizable: true, lost_other: 0}");
    for (uint64_t i = 1; i <= 2; i++) {
        struct history_op op = make_op(HISTORY_ADD, 0, i * 100, i * 100 + 1);
        op.written = 1;
        saw(&op, i);
        add(&made.outcome.history, &op);
    }
    last_look(&made.outcome.history, 0, 0, 500, 2);
    judge(&made);
    expect_exit(&made, OUTCOME_PASS, "pass: RPO 0 writes, linearizable");
    free_run(&made);

    make_run(&made, "strong", "{kind: set, keys: 1}", "{linearizable: true, phantoms: 1}");
    struct history_op op = make_op(HISTORY_INSERT, 0, 100, 101);
    op.written = 1;
    add(&made.outcome.history, &op);
    look = list(&made.outcome.history, HISTORY_SCAN, 0, 300, 301, both, 2);
    made.outcome.history.ops[look].final = true;
    judge(&made);
    expect_exit(&made, OUTCOME_WRONG, "wrong: set: ");
    assert_true(actual(&made, 1) == 1);
    free_run(&made);
}

/* stop_if sees the last second only. */
static void test_live(void **state)
{
    (void)state;
    struct made made;
    double value;
    make_run(&made, "eventual", LWW, "{lost_updates: 0}");
    for (uint64_t ms = 0; ms < 4000; ms += 10)
        add_read(&made, 0, ms, false, ms < 3000);
    const struct scenario_expect ask = {.metric = METRIC_ERROR_RATE, .region = SCENARIO_REGION_ALL};
    assert_true(measure_live(&made.outcome, &ask,
                             (struct measure_span){3 * SECOND_NS + 10 * MS_NS, 5 * SECOND_NS},
                             &value));
    assert_true(value == 1);
    assert_true(measure_live(&made.outcome, &ask, (struct measure_span){0, 3 * SECOND_NS}, &value));
    assert_true(value == 0);
    assert_false(measure_live(&made.outcome, &ask,
                              (struct measure_span){9 * SECOND_NS, 10 * SECOND_NS}, &value));
    assert_true(measure_is_live(METRIC_LAG));
    assert_false(measure_is_live(METRIC_RTO));
    free_run(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_harness),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_recount),
        cmocka_unit_test(test_strong),
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_staleness_and_lag),
        cmocka_unit_test(test_sums_lists_and_sets),
        cmocka_unit_test(test_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
