/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured, against what was asked: first the lines of `expect`, then RPO, RTO and
 * staleness in full, each row with the limits that are set for it. */

#include <inttypes.h>
#include <math.h>

#include "chaos/report/facts.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"
#include "chaos/run/measure.h"
#include "conflict/base/check.h"

enum result { RESULT_NONE, RESULT_KEPT, RESULT_BROKEN, RESULT_UNKNOWN };

static void put_result(struct page *page, enum result result)
{
    static const char *const cells[] = {
        [RESULT_NONE] = "<td class=\"nowrap muted\">no limit</td>",
        [RESULT_KEPT] = "<td class=\"nowrap good\">✓ kept</td>",
        [RESULT_BROKEN] = "<td class=\"nowrap bad\">✗ broken</td>",
        [RESULT_UNKNOWN] = "<td class=\"nowrap doubt\">? unknown</td>",
    };
    page_put(page, cells[result]);
}

/* ---- Expectations ---- */

static enum result result_of(const struct outcome_expect *expect)
{
    return !expect->known ? RESULT_UNKNOWN : expect->holds ? RESULT_KEPT : RESULT_BROKEN;
}

static void put_measured(struct page *page, enum scenario_metric metric, bool known, double value)
{
    page_put(page, "<td class=\"n\">");
    if (known)
        measure_print(metric, value, &page->to);
    else
        page_put(page, "–");
    page_put(page, "</td>");
}

static void put_expects(struct page *page)
{
    static const char *const columns[] = {"Expected", "#Measured", "Result", NULL};
    const struct outcome *outcome = page->outcome;
    if (outcome->expect_count == 0) {
        page_put(page, "<p>The scenario expects nothing; only the checkers judge it.</p>\n");
        return;
    }
    page_table(page, "What the scenario expects", columns);
    for (uint32_t i = 0; i < outcome->expect_count; i++) {
        const struct outcome_expect *expect = &outcome->expects[i];
        page_put(page, "<tr><th scope=\"row\">");
        page_text(page, expect->expect->text);
        page_put(page, "</th>");
        put_measured(page, (enum scenario_metric)expect->expect->metric, expect->known,
                     expect->actual);
        put_result(page, result_of(expect));
        page_put(page, "</tr>\n");
    }
    page_table_end(page);
}

/* ---- Limits of one row ---- */

/* Whether an expectation of the scenario is about this Region and class of operations. */
static bool is_about(const struct scenario_expect *expect, enum scenario_metric metric,
                     uint8_t region, enum scenario_class class)
{
    return expect->metric == metric &&
           (expect->region == region || expect->region == SCENARIO_REGION_ALL) &&
           (expect->class == class || expect->class == SCENARIO_CLASS_ANY);
}

/* The cells "Limit" and "Result" of a row with one figure. */
static void put_limits(struct page *page, enum scenario_metric metric, uint8_t region,
                       enum scenario_class class, bool known, double actual)
{
    const struct scenario_expects *expects = &page->outcome->scenario->expect;
    enum result result = RESULT_NONE;
    page_put(page, "<td>");
    for (uint32_t i = 0; i < expects->count; i++) {
        const struct scenario_expect *expect = &expects->at[i];
        if (!is_about(expect, metric, region, class))
            continue;
        enum result one = !known                                  ? RESULT_UNKNOWN
                          : scenario_expect_holds(expect, actual) ? RESULT_KEPT
                                                                  : RESULT_BROKEN;
        page_put(page, result == RESULT_NONE ? "" : "<br/>");
        page_text(page, expect->text);
        result = one == RESULT_BROKEN || result == RESULT_NONE ? one : result;
    }
    page_put(page, result == RESULT_NONE ? "–</td>" : "</td>");
    put_result(page, result);
}

static double time_of(uint64_t ns)
{
    return ns == UINT64_MAX ? INFINITY : (double)ns;
}

static void put_time(struct page *page, uint64_t ns)
{
    page_put(page, "<td class=\"n\">");
    page_duration(page, ns);
    page_put(page, "</td>");
}

static void put_number(struct page *page, uint64_t count)
{
    page_put(page, "<td class=\"n\">");
    page_count(page, count);
    page_put(page, "</td>");
}

/* ---- RPO and lost updates ---- */

static void put_loss(struct page *page, enum scenario_metric metric, const char *name,
                     const char *help)
{
    const struct scenario_expect ask = {.metric = (uint8_t)metric, .region = SCENARIO_REGION_ALL};
    double value = 0;
    bool known = measure_expect(page->outcome, &ask, &value);
    page_put(page, "<tr><th scope=\"row\">");
    page_put(page, name);
    page_put(page, "<br/><span class=\"muted\" style=\"font-weight:400\">");
    page_put(page, help);
    page_put(page, "</span></th>");
    /* Of lost updates, what is not judged is told beside them. */
    bool told = metric == METRIC_LOST_UPDATES || measure_doubt(page->outcome, metric) <= 0;
    put_measured(page, metric, known && told, value);
    put_limits(page, metric, SCENARIO_REGION_ALL, SCENARIO_CLASS_ANY, known, value);
    page_put(page, "</tr>\n");
}

static void put_losses(struct page *page)
{
    static const char *const columns[] = {"Figure", "#Measured", "Limit", "Result", NULL};
    const struct outcome *outcome = page->outcome;
    page_table(page, "What was lost", columns);
    put_loss(page, METRIC_RPO_COUNT, "RPO, writes",
             "acknowledged, and only the lost Region had them");
    put_loss(page, METRIC_RPO_TIME, "RPO, time", "age of the oldest of them when it was lost");
    put_loss(page, METRIC_RPO_BYTES, "RPO, size", "of these writes");
    put_loss(page, METRIC_LOST_UPDATES, "Lost updates",
             "acknowledged, and overwritten by a write that had not seen them");
    put_loss(page, METRIC_LOST_OTHER, "Lost without a reason", "always a bug");
    put_loss(page, METRIC_PHANTOMS, "Phantoms", "values that nobody wrote");
    put_loss(page, METRIC_ZOMBIES, "Zombies", "deleted items that came back");
    put_loss(page, METRIC_CONVERGE, "Convergence", "from healing until all Regions hold the same");
    page_table_end(page);
    if (outcome->region_rpo_count != UINT64_MAX) {
        page_put(page, "<p>The Regions themselves count ");
        page_count(page, outcome->region_rpo_count);
        page_put(page, " acknowledged writes as lost.</p>\n");
    }
}

/* ---- RTO ---- */

static enum scenario_class class_of(enum rto_class class)
{
    switch (class) {
    case RTO_WRITE:
        return SCENARIO_CLASS_WRITE;
    case RTO_READ_STRONG:
        return SCENARIO_CLASS_READ_STRONG;
    case RTO_READ_WEAK:
        return SCENARIO_CLASS_READ_EVENTUAL;
    case RTO_CLASS_COUNT:
        break;
    }
    unreachable();
}

static const char *class_name(enum rto_class class)
{
    static const char *const names[] = {"writes", "strong reads", "eventual reads"};
    check(class < RTO_CLASS_COUNT);
    return names[class];
}

static void put_rto(struct page *page)
{
    static const char *const columns[] = {"Region and operations",
                                          "#p50 before",
                                          "#p99 before",
                                          "#First success",
                                          "#RTO",
                                          "#Unavailable",
                                          "Limit",
                                          "Result",
                                          NULL};
    const struct rto_table *table = &page->outcome->rto;
    page_put(page, "<h3>RTO: until service again</h3>\n");
    if (table->count == 0) {
        page_put(page,
                 "<p>No fault, or no operation after one: there is nothing to measure.</p>\n");
        return;
    }
    page_table(page, "Per Region and kind of operation, from the first fault", columns);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct rto_row *row = &table->rows[i];
        page_put(page, "<tr><th scope=\"row\">");
        page_region(page, row->region);
        page_printf(page, " %s</th>", class_name(row->class));
        put_time(page, row->baseline_p50_ns);
        put_time(page, row->baseline_p99_ns);
        put_time(page, row->first_success_ns);
        put_time(page, row->rto_ns);
        put_time(page, row->unavailable_ns);
        put_limits(page, METRIC_RTO, row->region, class_of(row->class), true, time_of(row->rto_ns));
        page_put(page, "</tr>\n");
    }
    page_table_end(page);
    page_put(page, "<p class=\"muted\">RTO ends with the first two seconds in which 99 % were "
                   "answered about as fast as before, so it is never below two seconds. A Region "
                   "that is meant to stay down has no row.</p>\n");
}

/* ---- Staleness and latency ---- */

static void put_staleness(struct page *page)
{
    static const char *const columns[] = {
        "Region and reads",    "#Reads",       "#Stale", "#p50", "#p99", "#Max",
        "#Most writes behind", "Limit of p99", "Result", NULL};
    const struct staleness_table *table = &page->outcome->staleness;
    if (table->count == 0)
        return;
    page_put(page, "<h3>Staleness: how old is what was read</h3>\n");
    page_table(page, "Time since the newest write that the read should have seen", columns);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct staleness_row *row = &table->rows[i];
        page_put(page, "<tr><th scope=\"row\">");
        page_region(page, row->region);
        page_put(page, row->strong ? " strong</th>" : " eventual</th>");
        put_number(page, row->reads);
        put_number(page, row->stale);
        put_time(page, row->p50_ns);
        put_time(page, row->p99_ns);
        put_time(page, row->max_ns);
        put_number(page, row->max_k);
        put_limits(page, METRIC_STALENESS_P99, row->region,
                   row->strong ? SCENARIO_CLASS_READ_STRONG : SCENARIO_CLASS_READ_EVENTUAL, true,
                   time_of(row->p99_ns));
        page_put(page, "</tr>\n");
    }
    page_table_end(page);
}

static void put_latency(struct page *page)
{
    static const char *const columns[] = {
        "Region and operations", "#Answered", "#Failed", "#Unknown", "#p50", "#p99", "#Max", NULL};
    const struct outcome *outcome = page->outcome;
    page_put(page, "<h3>Operations of the whole run</h3>\n");
    if (outcome->history.count == 0) {
        page_put(page, "<p>No operation was sent.</p>\n");
        return;
    }
    page_table(page, "Latency counts from the moment an operation was due", columns);
    for (uint8_t i = 0; i < outcome->scenario->cluster.region_count; i++)
        for (uint32_t j = 0; j < RTO_CLASS_COUNT; j++) {
            const struct measures_class *class = &page->measures->class[i][j];
            if (class->answered + class->failed + class->info == 0)
                continue;
            page_put(page, "<tr><th scope=\"row\">");
            page_region(page, i);
            page_printf(page, " %s</th>", class_name((enum rto_class)j));
            put_number(page, class->answered);
            put_number(page, class->failed);
            put_number(page, class->info);
            put_time(page, class->p50_ns);
            put_time(page, class->p99_ns);
            put_time(page, class->max_ns);
            page_put(page, "</tr>\n");
        }
    page_table_end(page);
}

void page_figures(struct page *page)
{
    page_put(page, "<h2 id=\"figures\">Figures</h2>\n");
    put_expects(page);
    page_put(page, "<h3>RPO and lost updates</h3>\n");
    put_losses(page);
    put_rto(page);
    put_staleness(page);
    put_latency(page);
}
