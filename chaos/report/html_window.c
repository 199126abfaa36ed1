/* SPDX-License-Identifier: Apache-2.0 */
/* The fewest operations that show what is wrong, drawn as bars from call to return, in the order of
 * their calls, so that the contradiction can be followed with a finger:
 *
 *     us-east-1 c3 put 41            ████████
 *     us-west-2 c9 read saw 41               ██████
 *     us-east-1 c4 read saw 40                       ██████     <- does not fit
 *
 * Each has its line of text; the bars only show what the times say. A checker that found more than
 * one thing wrong gets a diagram for each that it has kept. */

#include <inttypes.h>
#include <string.h>

#include "chaos/report/facts.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"
#include "conflict/base/check.h"

enum { ROWS_A_FINDING = 20 }; /* of the page's: a page that must be small shows fewer findings */

struct finding {
    struct bytes text;
    const uint32_t *ops;
    uint32_t op_count;
    bool culprit; /* the last of them is what contradicts the others */
};

struct window {
    uint64_t from_ns, to_ns;
};

static struct window window_of(const struct outcome *outcome, const struct finding *finding)
{
    struct window window = {UINT64_MAX, 0};
    for (uint32_t i = 0; i < finding->op_count; i++) {
        const struct history_op *op = &outcome->history.ops[finding->ops[i]];
        window.from_ns = op->invoke_ns < window.from_ns ? op->invoke_ns : window.from_ns;
        window.to_ns = op->return_ns > window.to_ns ? op->return_ns : window.to_ns;
    }
    return window;
}

/* One to 99 percent, so that nothing stands half outside. */
static double place(struct window window, uint64_t at_ns)
{
    uint64_t span = window.to_ns - window.from_ns;
    double part = span == 0 ? 0.5 : (double)(at_ns - window.from_ns) / (double)span;
    return 1 + part * 98;
}

static void put_bar(struct page *page, struct window window, const struct history_op *op,
                    bool culprit)
{
    const char *outcome = history_outcome_text((enum history_outcome)op->outcome);
    bool open = op->outcome == HISTORY_INFO;
    double from = place(window, op->invoke_ns);
    double to = open ? 100 : place(window, op->return_ns);
    double width = to - from < 0.5 ? 0.5 : to - from;
    page_put(page, "<svg class=\"bare\" height=\"18\" aria-hidden=\"true\">"
                   "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"9\" y2=\"9\"/>");
    page_printf(page,
                "<rect class=\"bar %s\" x=\"%.2f%%\" y=\"4\" width=\"%.2f%%\" height=\"10\"/>",
                outcome, from, width);
    if (culprit)
        page_printf(page,
                    "<rect class=\"ring\" x=\"%.2f%%\" y=\"2\" width=\"%.2f%%\" height=\"14\"/>",
                    from, width);
    page_put(page, "</svg>");
}

static void put_operation(struct page *page, struct window window, uint32_t index, bool culprit)
{
    const struct history_op *op = &page->outcome->history.ops[index];
    struct buf line = {0};
    facts_operation(page->outcome, index, &line);
    page_put(page, culprit ? "<li class=\"culprit\"><span class=\"badge bad\">does not fit</span>"
                           : "<li>");
    page_printf(page, "<span class=\"op\">item %" PRIu32 ": ", op->key);
    page_bytes(page, buf_view(&line));
    page_put(page, "</span>");
    put_bar(page, window, op, culprit);
    page_put(page, "</li>\n");
    buf_deinit(&line);
}

/* Of what Regions held in the end and of ledgers, no operation is the one that does not fit. */
static bool has_culprit(const struct outcome_check *check)
{
    return strcmp(check->name, "converge") != 0 && strcmp(check->name, "ledgers") != 0;
}

static void put_diagram(struct page *page, const struct finding *finding)
{
    struct window window = window_of(page->outcome, finding);
    uint32_t count = finding->op_count;
    uint32_t shown = count < page->rows_max ? count : page->rows_max;
    page_put(page, "<figure><figcaption>The fewest operations that show it</figcaption>\n"
                   "<ol class=\"ops\">\n");
    /* The last are kept: they are what contradicts the others. */
    for (uint32_t i = count - shown; i < count; i++)
        put_operation(page, window, finding->ops[i], finding->culprit && i + 1 == count);
    page_put(page, "</ol>\n<div class=\"axis muted\"><span>");
    page_moment(page, window.from_ns);
    page_put(page, "</span><span>");
    page_duration(page, window.to_ns - window.from_ns);
    page_put(page, " in all</span><span>");
    page_moment(page, window.to_ns);
    page_put(page, "</span></div></figure>\n");
    page_cut(page, "operations of a counterexample", shown, count);
}

static void put_finding(struct page *page, const struct finding *finding)
{
    page_put(page, "<p>");
    page_bytes(page, finding->text);
    page_put(page, "</p>\n");
    if (finding->op_count > 0)
        put_diagram(page, finding);
}

static void put_untold(struct page *page, uint64_t count)
{
    if (count == 0)
        return;
    page_put(page, "<p class=\"muted\">");
    page_count(page, count);
    page_put(page, count == 1 ? " more finding says one of these again, or came after them.</p>\n"
                              : " more findings say one of these again, or came after them.</p>\n");
}

static void put_check(struct page *page, const struct outcome_check *check)
{
    const struct verdict *verdict = &check->verdict;
    uint32_t most = page->rows_max / ROWS_A_FINDING, count = verdict->more_count;
    uint32_t shown = count < most ? count : most;
    bool culprit = has_culprit(check);
    page_put(page, "<h3>");
    page_text(page, check->name);
    page_put(page, "</h3>\n");
    put_finding(page,
                &(struct finding){facts_verdict(check), verdict->ops, verdict->op_count, culprit});
    for (uint32_t i = 0; i < shown; i++) {
        const struct verdict_finding *more = &verdict->more[i];
        put_finding(page,
                    &(struct finding){buf_view(&more->text), more->ops, more->op_count, culprit});
    }
    put_untold(page, verdict->untold);
    page_cut(page, "findings of a checker", shown + 1, count + 1);
}

bool page_has_windows(const struct page *page)
{
    for (uint32_t i = 0; i < page->outcome->check_count; i++)
        if (page->outcome->checks[i].verdict.kind == VERDICT_WRONG)
            return true;
    return false;
}

void page_windows(struct page *page)
{
    const struct outcome *outcome = page->outcome;
    if (!page_has_windows(page))
        return;
    page_put(page,
             "<h2 id=\"wrong\">What is wrong</h2>\n<p class=\"muted\">Operations from call to "
             "return: ");
    page_legend(page, "bar ok", "ok");
    page_legend(page, "bar info", "info: nobody knows whether or when");
    page_legend(page, "bar failed", "failed: not done");
    page_put(page, "</p>\n");
    for (uint32_t i = 0; i < outcome->check_count; i++)
        if (outcome->checks[i].verdict.kind == VERDICT_WRONG)
            put_check(page, &outcome->checks[i]);
}
