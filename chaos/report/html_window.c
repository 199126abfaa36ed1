/* SPDX-License-Identifier: Apache-2.0 */
/* The fewest operations that show what is wrong, drawn as bars from call to return, in the order of
 * their calls, so that the contradiction can be followed with a finger:
 *
 *     us-east-1 c3 put 41            ████████
 *     us-west-2 c9 read saw 41               ██████
 *     us-east-1 c4 read saw 40                       ██████     <- does not fit
 *
 * Each has its line of text; the bars only show what the times say. */

#include <inttypes.h>

#include "chaos/report/facts.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"
#include "conflict/base/check.h"

enum { WINDOWS_MAX = 8 };

struct window {
    uint64_t from_ns, to_ns;
};

static struct window window_of(const struct outcome *outcome, const struct verdict *verdict)
{
    struct window window = {UINT64_MAX, 0};
    for (uint32_t i = 0; i < verdict->op_count; i++) {
        const struct history_op *op = &outcome->history.ops[verdict->ops[i]];
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

static void put_window(struct page *page, const struct outcome_check *check)
{
    const struct verdict *verdict = &check->verdict;
    struct window window = window_of(page->outcome, verdict);
    uint32_t shown = verdict->op_count < page->rows_max ? verdict->op_count : page->rows_max;
    page_put(page, "<h3>");
    page_text(page, check->name);
    page_put(page, "</h3>\n<p>");
    page_bytes(page, facts_verdict(check));
    page_put(page, "</p>\n<figure><figcaption><b>The fewest operations that show it</b> ");
    page_legend(page, "bar ok", "ok");
    page_legend(page, "bar info", "info: nobody knows whether or when");
    page_legend(page, "bar failed", "failed: not done");
    page_put(page, "</figcaption>\n<ol class=\"ops\">\n");
    /* The last are kept: they are what contradicts the others. */
    for (uint32_t i = verdict->op_count - shown; i < verdict->op_count; i++)
        put_operation(page, window, verdict->ops[i], i + 1 == verdict->op_count);
    page_put(page, "</ol>\n<div class=\"axis muted\"><span>");
    page_moment(page, window.from_ns);
    page_put(page, "</span><span>");
    page_duration(page, window.to_ns - window.from_ns);
    page_put(page, " in all</span><span>");
    page_moment(page, window.to_ns);
    page_put(page, "</span></div></figure>\n");
    page_cut(page, "operations of a counterexample", shown, verdict->op_count);
}

void page_windows(struct page *page)
{
    const struct outcome *outcome = page->outcome;
    uint32_t shown = 0, count = 0;
    for (uint32_t i = 0; i < outcome->check_count; i++) {
        const struct outcome_check *check = &outcome->checks[i];
        if (check->verdict.kind != VERDICT_WRONG || check->verdict.op_count == 0)
            continue;
        if (count++ == 0)
            page_put(page, "<h2 id=\"wrong\">What is wrong</h2>\n");
        if (shown == WINDOWS_MAX)
            continue;
        put_window(page, check);
        shown++;
    }
    page_cut(page, "counterexamples", shown, count);
}
