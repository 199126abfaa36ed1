/* SPDX-License-Identifier: Apache-2.0 */
/* The page is well-formed, fetches nothing, runs nothing but its own script, keeps to its size, and
 * says what each kind of run is about. How it looks, tests/live/live_report.py sees. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "chaos/report/page.h"
#include "chaos/report/report.h"
#include "conflict/base/check.h"
#include "tests/lib/report/markup.h"
#include "tests/lib/report/outcomes.h"

static uint32_t count_of(const struct buf *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = (const char *)text->at; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* The page, which is well-formed, with a NUL that does not count. */
static void page_of(const struct outcome *outcome, struct buf *to)
{
    size_t at;
    buf_reset(to);
    report_html(outcome, to);
    const char *fault = markup_fault(buf_view(to), &at);
    if (fault != NULL)
        fail_msg("%s at %zu: %.60s", fault, at, (const char *)to->at + (at < 40 ? 0 : at - 40));
    buf_append_u8(to, 0);
    to->len--;
}

static void expect(const struct buf *page, const char *part)
{
    if (count_of(page, part) == 0)
        fail_msg("the page does not say %s", part);
}

/* No id twice, and every reference has its id. */
static void check_ids(const struct buf *page)
{
    static const char *const references[] = {" href=\"#", "url(#", "aria-labelledby=\""};
    const char *all = (const char *)page->at;
    for (const char *at = all; (at = strstr(at, " id=\"")) != NULL; at++) {
        char mark[64];
        snprintf(mark, sizeof(mark), " id=\"%.*s\"", (int)strcspn(at + 5, "\""), at + 5);
        if (count_of(page, mark) != 1)
            fail_msg("%s is there more than once", mark);
    }
    for (size_t i = 0; i < array_len(references); i++)
        for (const char *at = all; (at = strstr(at, references[i])) != NULL; at++) {
            const char *name = at + strlen(references[i]);
            char mark[64];
            snprintf(mark, sizeof(mark), " id=\"%.*s\"", (int)strcspn(name, "\") "), name);
            if (count_of(page, mark) != 1)
                fail_msg("nothing has%s", mark);
        }
}

static void pages_stand_alone(void **state)
{
    (void)state;
    struct buf page = {0};
    for (enum outcomes_kind kind = 0; kind < OUTCOMES_HUGE; kind++) {
        struct sample_run run;
        outcomes_make(kind, &run);
        page_of(&run.outcome, &page);
        assert_int_equal(count_of(&page, "http://"), 0);
        assert_int_equal(count_of(&page, "https://"), 0);
        assert_int_equal(count_of(&page, "@import"), 0);
        assert_int_equal(count_of(&page, "<link"), 0);
        assert_int_equal(count_of(&page, "<img"), 0);
        assert_int_equal(count_of(&page, "<script"), 1);
        assert_int_equal(count_of(&page, "<h1>"), 1);
        assert_true(page.len <= run.scenario.budgets.report_bytes);
        if (kind != OUTCOMES_HOSTILE)
            assert_int_equal(count_of(&page, " onload="), 0);
        if (kind != OUTCOMES_MANY) /* the check is quadratic, and the markup the same */
            check_ids(&page);
        outcomes_free(&run);
    }
    buf_deinit(&page);
}

static void pages_say_what_it_is_about(void **state)
{
    (void)state;
    static const struct {
        enum outcomes_kind kind;
        const char *has[8];
    } cases[] = {
        {OUTCOMES_PASS,
         {"✓ Pass", "process.kill</td>", "12 connections reset", "▲<title>leader leads 4 of 4",
          "class=\"leads\"", "tidemark chaos run chaos/scenarios/made.yaml --seed 2"}},
        {OUTCOMES_LOST,
         {"✗ Wrong", "overwritten by <code>write", "before the Region was lost", "F1 partition",
          "data-name=\"lag\"", "data-name=\"clock\"", "Staleness curve", "more</summary>"}},
        {OUTCOMES_ILLEGAL,
         {"What is wrong", "<li class=\"culprit\">", "class=\"ring\"", "class=\"bar ok\""}},
        {OUTCOMES_SLOW, {"Too slow", "did not reach what it waits for", "✗ broken"}},
        {OUTCOMES_DUD, {"! Harness", "! hit nothing", "no process ended"}},
        {OUTCOMES_UNKNOWN, {"? Unknown", "? unknown"}},
        {OUTCOMES_EMPTY, {"No operation was sent.", "None was injected.", "Nothing was written"}},
        {OUTCOMES_MANY,
         {"more, in the table below", "Of 600 faults, 200 are shown.", "What is not on this page"}},
        {OUTCOMES_HOSTILE,
         {"&lt;script&gt;alert(&#39;x&#39;)", "&#39;./--out &#39;\\&#39;&#39;; rm"}},
    };
    struct buf page = {0};
    for (size_t i = 0; i < array_len(cases); i++) {
        struct sample_run run;
        outcomes_make(cases[i].kind, &run);
        page_of(&run.outcome, &page);
        for (size_t j = 0; j < array_len(cases[i].has) && cases[i].has[j] != NULL; j++)
            expect(&page, cases[i].has[j]);
        outcomes_free(&run);
    }
    buf_deinit(&page);
}

/* Each thing that a checker found wrong has its own diagram; a small page says what it leaves out.
 */
static void every_finding_is_drawn(void **state)
{
    (void)state;
    struct sample_run run;
    struct buf page = {0};
    outcomes_make(OUTCOMES_ILLEGAL, &run);
    struct verdict *verdict = &run.outcome.checks[0].verdict;
    assert_int_equal(verdict->kind, VERDICT_WRONG);
    page_of(&run.outcome, &page);
    uint32_t drawn = count_of(&page, "<ol class=\"ops\">");
    assert_true(drawn > 0);
    for (uint32_t i = 0; i < 3 * VERDICT_MORE_MAX; i++)
        if (verdict_worsen(verdict, VERDICT_WRONG, "table 0, key %u: made up", 1000 + i % 12)) {
            verdict_add_op(verdict, i);
            verdict_add_op(verdict, i + 1);
        }
    page_of(&run.outcome, &page);
    assert_int_equal(count_of(&page, "<ol class=\"ops\">"), drawn + VERDICT_MORE_MAX);
    expect(&page, "key 1008: made up");
    expect(&page, "18 more findings say one of these again");
    assert_int_equal(count_of(&page, "key 1009"), 0);
    check_ids(&page);
    run.scenario.budgets.report_bytes = page.len / 2;
    page_of(&run.outcome, &page);
    assert_true(page.len <= run.scenario.budgets.report_bytes);
    expect(&page, "findings of a checker, ");
    outcomes_free(&run);
    buf_deinit(&page);
}

static void pages_keep_to_their_size(void **state)
{
    (void)state;
    static const enum outcomes_kind kinds[] = {OUTCOMES_LOST, OUTCOMES_HOSTILE, OUTCOMES_MANY};
    struct buf page = {0};
    for (size_t i = 0; i < array_len(kinds); i++) {
        struct sample_run run;
        outcomes_make(kinds[i], &run);
        run.scenario.budgets.report_bytes = 64 * 1024; /* the least that a scenario may ask for */
        page_of(&run.outcome, &page);
        if (page.len > 64 * 1024)
            fail_msg("%s has %zu bytes", outcomes_name(kinds[i]), page.len);
        expect(&page, "What is not on this page");
        outcomes_free(&run);
    }
    buf_deinit(&page);
}

/* A curve has at most 2,000 steps, however long the run. */
static void a_million_operations_are_drawn(void **state)
{
    (void)state;
    struct sample_run run;
    struct buf page = {0};
    outcomes_make(OUTCOMES_HUGE, &run);
    assert_true(run.outcome.history.count > 900000);
    page_of(&run.outcome, &page);
    assert_true(page.len < 2000000);
    uint32_t curves = 0;
    for (const char *at = (const char *)page.at; (at = strstr(at, " d=\"M")) != NULL; at++) {
        uint32_t steps = 0;
        for (const char *in = at + 4; *in != '"'; in++)
            steps += *in == 'H';
        assert_true(steps <= 2001);
        curves += steps > 1000;
    }
    assert_true(curves >= 15); /* five in each of three lanes */
    expect(&page, "not of 100 ms");
    outcomes_free(&run);
    buf_deinit(&page);
}

static void the_script_is_xml_as_well(void **state)
{
    (void)state;
    for (const char *const *part = page_script; *part != NULL; part++)
        assert_null(strpbrk(*part, "<&"));
    for (const char *const *part = page_style; *part != NULL; part++)
        assert_null(strpbrk(*part, "<&"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_stand_alone),
        cmocka_unit_test(pages_say_what_it_is_about),
        cmocka_unit_test(every_finding_is_drawn),
        cmocka_unit_test(pages_keep_to_their_size),
        cmocka_unit_test(a_million_operations_are_drawn),
        cmocka_unit_test(the_script_is_xml_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
