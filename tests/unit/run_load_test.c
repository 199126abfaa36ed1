/* SPDX-License-Identifier: Apache-2.0 */
/* Which time the rate is measured in, and when it is said to be missed. */

#include "tests/lib/outcome_make.h"

#include "chaos/report/report.h"
#include "chaos/report/saved.h"
#include "chaos/run/run_internal.h"

static void test_measured_while_calm(void **state)
{
    struct scenario scenario = {.workload = {.rate = 1010}};
    struct outcome outcome = {.scenario = &scenario};
    (void)state;
    struct load load = {.all = {6000, 3000, 6 * SECOND_NS}, .calm = {2000, 1990, 2 * SECOND_NS}};
    load_conclude(&load, &outcome);
    assert_int_equal(outcome.asked_per_s, 1010);
    assert_int_equal(outcome.begun_per_s, 995);
    assert_false(outcome_fell_short(&outcome));
    load.calm = (struct load_part){40, 1, 40 * MS_NS}; /* too short to mean anything */
    load_conclude(&load, &outcome);
    assert_int_equal(outcome.begun_per_s, 500);
    assert_true(outcome_fell_short(&outcome));
    scenario.workload.rate = 3000; /* what the file says, though not all may write */
    load_conclude(&load, &outcome);
    assert_int_equal(outcome.asked_per_s, 3000);
    assert_int_equal(outcome.begun_per_s, 500);
}

/* From one tick to the next is calm if it was so at both. */
static void test_ticks(void **state)
{
    struct load load = {0};
    (void)state;
    load_tick(&load, (struct drive_load){.due = 10, .begun = 10, .running_ns = SECOND_NS}, true);
    load_tick(&load, (struct drive_load){.due = 20, .begun = 19, .running_ns = 2 * SECOND_NS},
              true);
    load_tick(&load, (struct drive_load){.due = 30, .begun = 21, .running_ns = 3 * SECOND_NS},
              false);
    load_tick(&load, (struct drive_load){.due = 40, .begun = 22, .running_ns = 4 * SECOND_NS},
              true);
    load_tick(&load, (struct drive_load){.due = 50, .begun = 32, .running_ns = 5 * SECOND_NS},
              true);
    assert_int_equal(load.all.due, 50);
    assert_int_equal(load.all.begun, 32);
    assert_int_equal(load.calm.due, 20);
    assert_int_equal(load.calm.begun, 19);
    assert_int_equal(load.calm.running_ns, 2 * SECOND_NS);
}

static void test_nothing_to_measure(void **state)
{
    struct scenario scenario = {.workload = {.rate = 100}};
    struct outcome outcome = {.scenario = &scenario};
    (void)state;
    load_conclude(&(struct load){.all = {50, 10, 50 * MS_NS}}, &outcome);
    load_conclude(&(struct load){.all = {0, 0, 9 * SECOND_NS}}, &outcome);
    scenario.workload.rate = 0; /* as fast as may be */
    load_conclude(&(struct load){.all = {900, 800, 9 * SECOND_NS}}, &outcome);
    assert_int_equal(outcome.asked_per_s, 0);
    assert_false(outcome_fell_short(&outcome));
}

/* Beside the verdict, and never a part of it. */
static void test_sentence(void **state)
{
    struct made made;
    (void)state;
    for (int short_of = 0; short_of < 2; short_of++) {
        make_run(&made, "eventual", "{kind: lww-conflict, keys: 4, rate: 100000}",
                 "{lost_updates: 0}");
        put(&made.outcome.history, 0, 1, SECOND_NS, 2 * SECOND_NS, 1, 0);
        last_look(&made.outcome.history, 0, 1, 20 * SECOND_NS, 1);
        made.outcome.asked_per_s = 100000;
        made.outcome.begun_per_s = short_of ? 20300 : 99000;
        outcome_judge(&made.outcome, NULL);
        assert_int_equal(made.outcome.exit, OUTCOME_PASS);
        const char *said = strstr(made.outcome.verdict,
                                  "; asked 100000/s, 20300/s were begun, writes in 1 of 2 Regions");
        assert_int_equal(said != NULL, short_of);
        free_run(&made);
    }
}

/* In result.json, and in what a run is judged by again. */
static void test_kept(void **state)
{
    struct made made;
    struct outcome again;
    struct saved_reader reader;
    struct saved_sink events = {0};
    struct buf result = {0}, why = {0};
    (void)state;
    make_run(&made, "eventual", "{kind: lww-conflict, keys: 4, rate: 100000}", "{lost_updates: 0}");
    made.outcome.version = made.outcome.scenario_file = made.outcome.scenario_text = "";
    made.outcome.asked_per_s = 100000;
    made.outcome.begun_per_s = 20300;
    saved_events_write(&made.outcome, &events);
    outcome_init(&again, &made.scenario);
    saved_reader_init(&reader, &again);
    size_t len = (size_t)((uint8_t *)memchr(events.to.at, '\n', events.to.len) - events.to.at);
    if (!saved_event_read(&reader, bytes_make(events.to.at, len), &why))
        fail_msg("%.*s", (int)why.len, (const char *)why.at);
    assert_int_equal(again.asked_per_s, 100000);
    assert_int_equal(again.begun_per_s, 20300);
    outcome_judge(&made.outcome, NULL);
    report_result(&made.outcome, &result);
    buf_append_u8(&result, 0);
    assert_non_null(strstr((const char *)result.at, "\"asked_per_s\": 100000"));
    assert_non_null(strstr((const char *)result.at, "\"begun_per_s\": 20300"));
    outcome_deinit(&again);
    buf_deinit(&events.to);
    buf_deinit(&result);
    free_run(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_while_calm), cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_nothing_to_measure), cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
