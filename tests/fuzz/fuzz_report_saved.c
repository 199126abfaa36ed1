/* SPDX-License-Identifier: Apache-2.0 */
/* Saved runs: any lines are refused with a reason or become an outcome that can be judged, drawn
 * and saved again to the same lines. Lines that begin with {"kind" are operations, others events.
 */

#include "chaos/report/report.h"
#include "chaos/report/saved.h"
#include "conflict/base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char yaml[] = "name: fuzz\n"
                           "cluster: {mode: eventual, regions: [us-east-1, eu-west-1]}\n"
                           "workload: {kind: lww-conflict}\n"
                           "phases: [{name: a, for: 1s}]\n"
                           "expect: {rpo_count: 0, lost_updates: 0, rto: \"<=5s\"}\n"
                           "budgets: {operations: 1000, report_size: 64KiB}\n";

/* Reads what it can; false if some line was refused. */
static bool read_all(struct saved_reader *reader, struct bytes left)
{
    struct buf why = {0};
    bool good = true;
    while (left.len > 0) {
        const uint8_t *end = memchr(left.at, '\n', left.len);
        size_t len = end == NULL ? left.len : (size_t)(end - left.at);
        struct bytes line = bytes_make(left.at, len);
        bool operation = bytes_starts_with(line, bytes_literal("{\"kind\""));
        bool fits = operation && !reader->begun ? false
                    : operation                 ? saved_history_read(reader, line, &why)
                                                : saved_event_read(reader, line, &why);
        check(fits == (why.len == 0) || (operation && !reader->begun));
        buf_reset(&why);
        good = good && fits;
        len += end != NULL;
        left = bytes_make(left.at + len, left.len - len);
        if (!fits)
            break; /* as report_read does */
    }
    good = good && reader->begun && reader->items_left == 0; /* end records are hard to guess */
    buf_deinit(&why);
    return good;
}

static void write_all(const struct outcome *outcome, struct saved_sink *to)
{
    saved_events_write(outcome, to);
    saved_history_write(outcome, to);
}

static void use(const struct outcome *outcome)
{
    struct buf text = {0};
    report_result(outcome, &text);
    report_junit(outcome, &text);
    report_html(outcome, &text);
    buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scenario scenario;
    struct outcome outcome, again;
    struct saved_reader reader;
    struct saved_sink first = {0}, second = {0};
    struct buf error = {0};
    scenario_init(&scenario);
    check(scenario_read(&scenario, "fuzz.yaml", bytes_text(yaml), &error));
    outcome_init(&outcome, &scenario);
    saved_reader_init(&reader, &outcome);
    if (read_all(&reader, bytes_make(data, size))) {
        write_all(&outcome, &first);
        outcome_init(&again, &scenario);
        saved_reader_init(&reader, &again);
        check(read_all(&reader, buf_view(&first.to)));
        write_all(&again, &second);
        check(bytes_equal(buf_view(&first.to), buf_view(&second.to)));
        outcome_deinit(&again);
        outcome_judge(&outcome, NULL);
        use(&outcome);
    }
    buf_deinit(&first.to);
    buf_deinit(&second.to);
    outcome_deinit(&outcome);
    scenario_deinit(&scenario);
    buf_deinit(&error);
    return 0;
}
