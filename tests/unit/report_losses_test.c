/* SPDX-License-Identifier: Apache-2.0 */
/* result.json says of losses what the sentence says, and null where that says that nobody knows;
 * and what is kept of a run makes both again. */

#include "tests/lib/outcome_make.h"

#include <jansson.h>

#include "chaos/report/report.h"
#include "chaos/report/saved.h"

static json_t *result_of(struct made *made)
{
    struct buf text = {0};
    made->outcome.version = made->outcome.scenario_file = made->outcome.scenario_text = "";
    outcome_judge(&made->outcome, NULL);
    report_result(&made->outcome, &text);
    json_t *result = json_loadb((const char *)text.at, text.len, 0, NULL);
    assert_non_null(result);
    buf_deinit(&text);
    return result;
}

static const json_t *place(const json_t *result, const char *object, const char *key)
{
    const json_t *found = json_object_get(json_object_get(result, object), key);
    assert_non_null(found);
    return found;
}

/* Of a history that nobody has looked at in the end, and of one without any. */
static void test_unknown_is_null(void **state)
{
    (void)state;
    static const char *const workloads[] = {"{kind: lww-conflict, keys: 4}",
                                            "{kind: exec, exec: [x]}"};
    for (int i = 0; i < 2; i++) {
        struct made made;
        make_run(&made, "eventual", workloads[i], "{rpo_count: 0}");
        if (i == 0)
            put(&made.outcome.history, 0, 0, SECOND_NS, 2 * SECOND_NS, 1, 0);
        outcome_lost(&made.outcome, 5 * SECOND_NS, 0, OUTCOME_LOSS_DISCARDED, false);
        json_t *result = result_of(&made);
        assert_non_null(strstr(made.outcome.verdict, "RPO unknown"));
        assert_true(json_is_null(place(result, "rpo", "count")));
        assert_true(json_is_null(place(result, "rpo", "ns")));
        assert_true(json_is_null(place(result, "rpo", "bytes")));
        assert_true(json_is_null(place(result, "rpo", "lost_other")));
        json_decref(result);
        free_run(&made);
    }
}

/* Three are lost: one with a Region, one to another, and one as it came too late. */
static void make_losses(struct made *made)
{
    struct history *history = &made->outcome.history;
    make_run(made, "eventual", "{kind: lww-conflict, keys: 4}", "{lost_updates: 2}");
    put(history, 1, 0, 1 * SECOND_NS, 1 * SECOND_NS + 1, 1, 0);
    put(history, 1, 0, 2 * SECOND_NS, 2 * SECOND_NS + 1, 2, 1);
    put(history, 1, 0, 2 * SECOND_NS, 2 * SECOND_NS + 2, 3, 1);
    put(history, 1, 0, 3 * SECOND_NS, 3 * SECOND_NS + 1, 4, 3);
    put(history, 0, 0, 3 * SECOND_NS, 3 * SECOND_NS + 2, 5, 3);
    last_look(history, 1, 0, 11 * SECOND_NS, 3);
    struct ledgers_row rows[] = {{.winner = 3, .loser = 2, .regions = 2},
                                 {.winner = 3, .loser = 4, .regions = 2, .late = true}};
    made->outcome.ledger = arena_copy(&made->outcome.arena, rows, sizeof(rows));
    made->outcome.ledger_count = 2;
    outcome_lost(&made->outcome, 5 * SECOND_NS, 0, OUTCOME_LOSS_WIPED, true);
    made->outcome.region_rpo_count = 1;
}

static void expect_losses(struct made *made)
{
    json_t *result = result_of(made);
    if (strstr(made->outcome.verdict, "pass: RPO 1 write (2 s), 2 lost updates") == NULL)
        fail_msg("%s", made->outcome.verdict);
    assert_int_equal(json_integer_value(place(result, "rpo", "count")), 1);
    assert_int_equal(json_integer_value(place(result, "lost_updates", "count")), 2);
    assert_int_equal(json_integer_value(place(result, "lost_updates", "late")), 1);
    assert_int_equal(json_array_size(place(result, "lost_updates", "pairs")), 2);
    const json_t *loss = json_array_get(place(result, "rpo", "disk_losses"), 0);
    assert_string_equal(json_string_value(json_object_get(loss, "why")), "wiped");
    json_decref(result);
}

static void read_all(struct saved_reader *reader, struct buf *from,
                     bool (*read)(struct saved_reader *reader, struct bytes line, struct buf *why))
{
    struct buf why = {0};
    const uint8_t *at = from->at, *end = from->at + from->len, *next;
    for (; at < end; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        if (!read(reader, bytes_make(at, (size_t)(next - at)), &why))
            fail_msg("%.*s", (int)why.len, (const char *)why.at);
    }
    buf_deinit(from);
}

static void test_one_figure(void **state)
{
    (void)state;
    struct made made;
    struct saved_sink events = {0}, history = {0};
    struct saved_reader reader;
    make_losses(&made);
    made.outcome.version = made.outcome.scenario_file = made.outcome.scenario_text = "";
    saved_events_write(&made.outcome, &events);
    saved_history_write(&made.outcome, &history);
    expect_losses(&made);
    outcome_deinit(&made.outcome);
    outcome_init(&made.outcome, &made.scenario);
    saved_reader_init(&reader, &made.outcome);
    read_all(&reader, &events.to, saved_event_read);
    read_all(&reader, &history.to, saved_history_read);
    assert_int_equal(made.outcome.disk_loss_count, 1);
    assert_true(made.outcome.disk_losses[0].kept);
    expect_losses(&made);
    free_run(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unknown_is_null),
                                       cmocka_unit_test(test_one_figure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
