/* SPDX-License-Identifier: Apache-2.0 */
/* junit.xml: a scenario is a suite; its cases are the run itself, each checker and each
 * expectation. What is wrong is a failure, with the smallest counterexample in full; what kept the
 * run from being one is an error; what nobody can tell is skipped, as it is neither. */

#include "chaos/report/report.h"

#include <inttypes.h>

#include "chaos/report/facts.h"
#include "chaos/report/text.h"
#include "conflict/base/check.h"

struct suite {
    const struct outcome *outcome;
    struct buf cases;
    uint32_t tests, failures, errors, skipped;
};

static void put_text(const char *text, struct buf *to)
{
    text_xml(bytes_text(text), to);
}

static void put_seconds(uint64_t ns, struct buf *to)
{
    buf_printf(to, "%" PRIu64 ".%03" PRIu64, ns / 1000000000, ns / 1000000 % 1000);
}

static void open_case(struct suite *suite, const char *kind, struct bytes name, uint64_t ns)
{
    struct buf *to = &suite->cases;
    suite->tests++;
    buf_append_text(to, "    <testcase classname=\"tidemark.");
    put_text(suite->outcome->scenario->name, to);
    buf_printf(to, ".%s\" name=\"", kind);
    text_xml(name, to);
    buf_append_text(to, "\" time=\"");
    put_seconds(ns, to);
    buf_append_text(to, "\">\n");
}

/* <element message="...">, left open. */
static void open_element(struct suite *suite, const char *element, const char *type,
                         struct bytes message)
{
    struct buf *to = &suite->cases;
    buf_printf(to, "      <%s ", element);
    if (type != NULL)
        buf_printf(to, "type=\"%s\" ", type);
    buf_append_text(to, "message=\"");
    text_xml(message, to);
    buf_append_text(to, "\">");
}

static void close_case(struct suite *suite)
{
    buf_append_text(&suite->cases, "    </testcase>\n");
}

static void add_run(struct suite *suite)
{
    const struct outcome *outcome = suite->outcome;
    const struct outcome_fault *dud = facts_dud(outcome);
    struct buf *to = &suite->cases;
    open_case(suite, "run", bytes_literal("run"), outcome->ended_ns - outcome->began_ns);
    if (outcome->harness != NULL || dud != NULL) {
        struct buf message = {0};
        suite->errors++;
        if (outcome->harness != NULL)
            buf_append_text(&message, outcome->harness);
        else
            buf_printf(&message, "fault %s (%s) %s", dud->id,
                       scenario_verb_info((enum scenario_verb)dud->verb)->name,
                       dud->refused ? "could not be begun" : "did not take effect");
        open_element(suite, "error", "harness", buf_view(&message));
        if (outcome->harness == NULL && dud->evidence != NULL)
            put_text(dud->evidence, to);
        buf_append_text(to, "</error>\n");
        buf_deinit(&message);
    } else if (outcome->exit == OUTCOME_SLOW && outcome->stopped != NULL) {
        suite->failures++;
        open_element(suite, "failure", "slow", bytes_text(outcome->stopped));
        buf_append_text(to, "</failure>\n");
    }
    buf_append_text(to, "      <system-out>");
    put_text(outcome->verdict, to);
    buf_append_text(to, "\nagain: ");
    struct buf command = {0};
    facts_command(outcome, &command);
    text_xml(buf_view(&command), to);
    buf_deinit(&command);
    buf_append_text(to, "</system-out>\n");
    close_case(suite);
}

/* A phase that did not reach what it waits for is judged as slow. */
static void add_phases(struct suite *suite)
{
    const struct outcome *outcome = suite->outcome;
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        const struct outcome_phase *phase = &outcome->phases[i];
        if (!phase->timed_out)
            continue;
        suite->failures++;
        open_case(suite, "phase", bytes_text(phase->name), phase->to_ns - phase->from_ns);
        open_element(suite, "failure", "slow",
                     bytes_literal("it did not reach what it waits for in time"));
        buf_append_text(&suite->cases, "</failure>\n");
        close_case(suite);
    }
}

static void put_counterexample(const struct outcome *outcome, const struct verdict *verdict,
                               struct buf *to)
{
    for (uint32_t i = 0; i < verdict->op_count; i++) {
        struct buf line = {0};
        facts_operation(outcome, verdict->ops[i], &line);
        buf_append_u8(to, '\n');
        text_xml(buf_view(&line), to);
        buf_deinit(&line);
    }
}

static void add_checks(struct suite *suite)
{
    struct buf *to = &suite->cases;
    for (uint32_t i = 0; i < suite->outcome->check_count; i++) {
        const struct outcome_check *check = &suite->outcome->checks[i];
        struct bytes text = facts_verdict(check);
        open_case(suite, "check", bytes_text(check->name), check->took_ns);
        switch (check->verdict.kind) {
        case VERDICT_OK:
            break;
        case VERDICT_UNKNOWN:
            suite->skipped++;
            open_element(suite, "skipped", NULL, text);
            buf_append_text(to, "</skipped>\n");
            break;
        case VERDICT_WRONG:
            suite->failures++;
            open_element(suite, "failure", "wrong", text);
            text_xml(text, to);
            put_counterexample(suite->outcome, &check->verdict, to);
            buf_append_text(to, "</failure>\n");
            break;
        }
        buf_append_text(to, "      <system-out>");
        text_xml(text, to);
        for (uint32_t j = 0; j < check->verdict.figure_count; j++) {
            const struct verdict_figure *figure = &check->verdict.figures[j];
            if (figure->value == UINT64_MAX)
                buf_printf(to, "\n%s never", figure->name);
            else
                buf_printf(to, "\n%s %" PRIu64, figure->name, figure->value);
        }
        buf_append_text(to, "</system-out>\n");
        close_case(suite);
    }
}

static void add_expects(struct suite *suite)
{
    for (uint32_t i = 0; i < suite->outcome->expect_count; i++) {
        const struct outcome_expect *expect = &suite->outcome->expects[i];
        bool timing = scenario_metric_is_timing((enum scenario_metric)expect->expect->metric);
        struct buf text = {0};
        facts_expect(expect, &text);
        open_case(suite, "expect", bytes_text(expect->expect->text), 0);
        if (!expect->known) {
            suite->skipped++;
            open_element(suite, "skipped", NULL, buf_view(&text));
            buf_append_text(&suite->cases, "</skipped>\n");
        } else if (!expect->holds) {
            suite->failures++;
            open_element(suite, "failure", timing ? "slow" : "wrong", buf_view(&text));
            buf_append_text(&suite->cases, "</failure>\n");
        }
        buf_append_text(&suite->cases, "      <system-out>");
        text_xml(buf_view(&text), &suite->cases);
        buf_append_text(&suite->cases, "</system-out>\n");
        close_case(suite);
        buf_deinit(&text);
    }
}

static void put_property(const char *name, const char *value, struct buf *to)
{
    buf_printf(to, "      <property name=\"%s\" value=\"", name);
    put_text(value, to);
    buf_append_text(to, "\"/>\n");
}

static void put_totals(const struct suite *suite, struct buf *to)
{
    buf_printf(to,
               " tests=\"%" PRIu32 "\" failures=\"%" PRIu32 "\" errors=\"%" PRIu32
               "\" skipped=\"%" PRIu32 "\" time=\"",
               suite->tests, suite->failures, suite->errors, suite->skipped);
    put_seconds(suite->outcome->ended_ns - suite->outcome->began_ns, to);
    buf_append_u8(to, '"');
}

void report_junit(const struct outcome *outcome, struct buf *to)
{
    struct suite suite = {.outcome = outcome};
    char seed[DECIMAL_LEN_MAX + 1] = {0};
    decimal_encode(seed, outcome->seed);
    add_run(&suite);
    add_phases(&suite);
    add_checks(&suite);
    add_expects(&suite);
    buf_append_text(to,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tidemark\"");
    put_totals(&suite, to);
    buf_append_text(to, ">\n  <testsuite name=\"");
    put_text(outcome->scenario->name, to);
    buf_append_u8(to, '"');
    put_totals(&suite, to);
    struct buf date = {0};
    text_date(outcome->began_wall_ms, &date); /* JUnit knows no fractions and no zone */
    buf_printf(to, " timestamp=\"%.19s\">\n    <properties>\n", (const char *)date.at);
    buf_deinit(&date);
    put_property("seed", seed, to);
    put_property("file", outcome->scenario_file, to);
    put_property("tidemark", outcome->version, to);
    put_property("result", facts_exit(outcome->exit), to);
    put_property("verdict", outcome->verdict, to);
    buf_append_text(to, "    </properties>\n");
    buf_append_bytes(to, buf_view(&suite.cases));
    buf_append_text(to, "  </testsuite>\n</testsuites>\n");
    buf_deinit(&suite.cases);
}
