/* SPDX-License-Identifier: Apache-2.0 */
/* All that was done to the cluster and what it is judged by: phases, faults with the evidence that
 * they took effect, what happened besides, and each checker's word with its figures. */

#include <inttypes.h>

#include "chaos/report/facts.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"
#include "conflict/base/check.h"

static void put_phases(struct page *page)
{
    static const char *const columns[] = {"Phase", "#From", "#Lasted", "Result", NULL};
    const struct outcome *outcome = page->outcome;
    if (outcome->phase_count == 0)
        return;
    page_table(page, "Phases", columns);
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        const struct outcome_phase *phase = &outcome->phases[i];
        page_put(page, "<tr><th scope=\"row\">");
        page_text(page, phase->name);
        page_put(page, "</th><td class=\"n\">");
        page_moment(page, phase->from_ns);
        page_put(page, "</td><td class=\"n\">");
        page_duration(page, phase->to_ns - phase->from_ns);
        page_put(page, phase->timed_out
                           ? "</td><td class=\"doubt\">did not reach what it waits for</td></tr>\n"
                           : "</td><td>done</td></tr>\n");
    }
    page_table_end(page);
}

static void put_fault(struct page *page, uint32_t number, const struct outcome_fault *fault)
{
    page_printf(page, "<tr><th scope=\"row\" class=\"nowrap\">F%" PRIu32 " ", number);
    page_text(page, fault->id);
    page_put(page, "</th><td class=\"nowrap\">");
    page_text(page, scenario_verb_info((enum scenario_verb)fault->verb)->name);
    page_put(page, "</td><td>");
    page_text(page, fault->target == NULL ? "" : fault->target);
    page_put(page, "</td><td class=\"n\">");
    page_moment(page, fault->from_ns);
    page_put(page, "</td><td class=\"n\">");
    if (fault->to_ns == 0)
        page_put(page, "to the end");
    else if (fault->to_ns == fault->from_ns)
        page_put(page, "once");
    else
        page_duration(page, fault->to_ns - fault->from_ns);
    page_put(page, fault->refused     ? "</td><td class=\"nowrap doubt\">! refused"
                   : fault->effective ? "</td><td class=\"nowrap good\">✓ took effect"
                                      : "</td><td class=\"nowrap doubt\">! hit nothing");
    page_put(page, "</td><td class=\"long\">");
    page_text(page, fault->evidence == NULL ? "" : fault->evidence);
    page_put(page, "</td></tr>\n");
}

static void put_faults(struct page *page)
{
    static const char *const columns[] = {"Fault",   "What",   "Whom",     "#From",
                                          "#Lasted", "Effect", "Evidence", NULL};
    const struct outcome *outcome = page->outcome;
    uint32_t shown = outcome->fault_count < page->rows_max ? outcome->fault_count : page->rows_max;
    page_put(page, "<h2 id=\"faults\">Faults</h2>\n");
    if (outcome->fault_count == 0)
        page_put(page, "<p>None was injected.</p>\n");
    else {
        page_table(page, "Faults, and how it is known that they took effect", columns);
        for (uint32_t i = 0; i < shown; i++)
            put_fault(page, i + 1, &outcome->faults[i]);
        page_table_end(page);
        page_cut(page, "faults", shown, outcome->fault_count);
    }
    put_phases(page);
}

static void put_events(struct page *page)
{
    static const char *const columns[] = {"#When", "Region", "What", "", NULL};
    const struct outcome *outcome = page->outcome;
    uint32_t shown = outcome->event_count < page->rows_max ? outcome->event_count : page->rows_max;
    if (outcome->event_count == 0)
        return;
    page_table(page, "What happened besides", columns);
    for (uint32_t i = 0; i < shown; i++) {
        const struct outcome_event *event = &outcome->events[i];
        page_put(page, "<tr><td class=\"n\">");
        page_moment(page, event->at_ns);
        page_put(page, "</td><td class=\"nowrap\">");
        page_text(page, event->region < outcome->scenario->cluster.region_count
                            ? facts_region(outcome, event->region)
                            : "cluster");
        page_put(page, "</td><td>");
        page_text(page, event->kind);
        page_put(page, "</td><td class=\"long\">");
        page_text(page, event->text);
        page_put(page, "</td></tr>\n");
    }
    page_table_end(page);
    page_cut(page, "events", shown, outcome->event_count);
}

/* "rpo_ns 35000000" becomes "rpo 35 ms". */
static void put_figure(struct page *page, const struct verdict_figure *figure)
{
    size_t len = strlen(figure->name);
    bool time = len > 3 && strcmp(figure->name + len - 3, "_ns") == 0;
    page_put(page, "<span class=\"nowrap\">");
    page_bytes(page, bytes_make(figure->name, time ? len - 3 : len));
    page_put(page, " ");
    if (time || figure->value == UINT64_MAX)
        page_duration(page, figure->value);
    else
        page_count(page, figure->value);
    page_put(page, "</span>");
}

static void put_check(struct page *page, const struct outcome_check *check)
{
    static const char *const words[] = {
        [VERDICT_OK] = "<td class=\"nowrap good\">✓ ok</td>",
        [VERDICT_UNKNOWN] = "<td class=\"nowrap doubt\">? unknown</td>",
        [VERDICT_WRONG] = "<td class=\"nowrap bad\">✗ wrong</td>",
    };
    page_put(page, "<tr><th scope=\"row\">");
    page_text(page, check->name);
    page_put(page, "</th>");
    page_put(page, words[check->verdict.kind]);
    page_put(page, "<td class=\"long\">");
    page_bytes(page, facts_verdict(check));
    page_put(page, "<br/><span class=\"muted\">");
    for (uint32_t i = 0; i < check->verdict.figure_count; i++) {
        page_put(page, i == 0 ? "" : " · ");
        put_figure(page, &check->verdict.figures[i]);
    }
    page_put(page, "</span></td><td class=\"n\">");
    if (check->took_ns > 0)
        page_duration(page, check->took_ns);
    else
        page_put(page, "–");
    page_put(page, "</td></tr>\n");
}

void page_causes(struct page *page)
{
    static const char *const columns[] = {"Checker", "Verdict", "What it says", "#Took", NULL};
    const struct outcome *outcome = page->outcome;
    put_faults(page);
    put_events(page);
    page_put(page, "<h2 id=\"checkers\">Checkers</h2>\n");
    if (outcome->check_count == 0) {
        page_put(page, "<p>No checker knows this workload.</p>\n");
        return;
    }
    page_table(page, "What each checker says of what the clients saw", columns);
    for (uint32_t i = 0; i < outcome->check_count; i++)
        put_check(page, &outcome->checks[i]);
    page_table_end(page);
}
