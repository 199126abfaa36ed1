/* SPDX-License-Identifier: Apache-2.0 */
/* report.html: the verdict first, then the figures behind it, then what shows why, then all that
 * happened. A page that is larger than the budget is made again with fewer points and rows, and
 * says what it left out. */

#include "chaos/report/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chaos/report/facts.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* ---- What all sections use ---- */

void page_put(struct page *page, const char *markup)
{
    buf_append_text(&page->to, markup);
}

void page_printf(struct page *page, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    check(len >= 0 && (size_t)len < sizeof(text)); /* markup is short; texts go another way */
    buf_append(&page->to, text, (size_t)len);
}

void page_text(struct page *page, const char *text)
{
    text_xml(bytes_text(text), &page->to);
}

void page_bytes(struct page *page, struct bytes text)
{
    text_xml(text, &page->to);
}

void page_region(struct page *page, uint8_t region)
{
    page_text(page, facts_region(page->outcome, region));
}

void page_duration(struct page *page, uint64_t ns)
{
    text_duration(ns, &page->to);
}

void page_moment(struct page *page, uint64_t at_ns)
{
    text_moment(at_ns, page->outcome->began_ns, &page->to);
}

void page_count(struct page *page, uint64_t count)
{
    text_count(count, &page->to);
}

void page_table(struct page *page, const char *caption, const char *const *columns)
{
    page_put(page, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
    page_text(page, caption);
    page_put(page, "\"><table><caption>");
    page_text(page, caption);
    page_put(page, "</caption><thead><tr>");
    for (; *columns != NULL; columns++) {
        bool numbers = **columns == '#';
        page_put(page, numbers ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        page_text(page, *columns + numbers);
        page_put(page, "</th>");
    }
    page_put(page, "</tr></thead><tbody>\n");
}

void page_table_end(struct page *page)
{
    page_put(page, "</tbody></table></div>\n");
}

void page_cut(struct page *page, const char *what, uint64_t shown, uint64_t count)
{
    if (shown >= count)
        return;
    struct buf note = {0};
    buf_append_text(&note, "Of ");
    text_count(count, &note);
    buf_printf(&note, " %s, ", what);
    text_count(shown, &note);
    buf_append_text(&note, " are shown.");
    page_put(page, "<p class=\"muted\">");
    page_bytes(page, buf_view(&note));
    page_put(page, "</p>\n");
    buf_append_text(&page->left_out, "<li>");
    text_xml(buf_view(&note), &page->left_out);
    buf_append_text(&page->left_out, "</li>\n");
    buf_deinit(&note);
}

void page_svg(struct page *page, const char *class, uint32_t height, const char *title,
              const char *description)
{
    uint32_t id = page->ids++;
    page_printf(page,
                "<svg class=\"%s\" height=\"%" PRIu32 "\" role=\"img\" aria-labelledby=\"t%" PRIu32
                " d%" PRIu32 "\"><title id=\"t%" PRIu32 "\">",
                class, height, id, id, id);
    page_text(page, title);
    page_printf(page, "</title><desc id=\"d%" PRIu32 "\">", id);
    page_text(page, description);
    page_put(page, "</desc>");
}

void page_curves(struct page *page)
{
    page_printf(page,
                "<svg x=\"0\" y=\"0\" width=\"100%%\" height=\"100%%\" viewBox=\"0 0 %d %d\" "
                "preserveAspectRatio=\"none\">",
                PAGE_X_MAX, PAGE_Y_MAX);
}

void page_legend(struct page *page, const char *class, const char *name)
{
    bool line = strstr(class, "line") != NULL;
    page_put(page, "<span class=\"key\"><svg class=\"swatch\" width=\"22\" height=\"10\" "
                   "aria-hidden=\"true\">");
    page_printf(page,
                line ? "<path class=\"%s\" d=\"M0 5H22\"/>"
                     : "<rect class=\"%s\" x=\"1\" y=\"1\" width=\"20\" height=\"8\"/>",
                class);
    page_put(page, "</svg>");
    page_text(page, name);
    page_put(page, "</span> ");
}

double page_percent(const struct page *page, uint64_t at_ns)
{
    const struct measures *measures = page->measures;
    if (at_ns <= measures->from_ns)
        return 0;
    double part = (double)(at_ns - measures->from_ns) / (double)measures->span_ns;
    return part > 1 ? 100 : part * 100;
}

/* ---- Head ---- */

/* Patterns that stand for a meaning where there is no colour. */
static const char patterns[] =
    "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>"
    "<pattern id=\"lines\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><path d=\"M0 0V7\" stroke=\"var(--band)\" "
    "stroke-width=\"2\"/></pattern>"
    "<pattern id=\"cross\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"6\" height=\"6\" fill=\"var(--bad-fill)\"/><path d=\"M0 0L6 6M6 0L0 6\" "
    "stroke=\"var(--bad)\"/></pattern>"
    "<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"5\" height=\"5\" fill=\"var(--bg)\"/><circle cx=\"2\" cy=\"2\" r=\"1.2\" "
    "fill=\"var(--info)\"/></pattern></defs></svg>\n";

static void put_all(struct page *page, const char *const *parts)
{
    for (; *parts != NULL; parts++)
        page_put(page, *parts);
}

static void put_head(struct page *page)
{
    page_put(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
                   "script-src 'sha256-");
    page_put(page, page_script_hash);
    page_put(page, "'\"/>\n<title>");
    page_printf(page, "%s: ", facts_exit(page->outcome->exit));
    page_text(page, page->outcome->scenario->name);
    page_put(page, "</title>\n<style>\n");
    put_all(page, page_style);
    page_put(page, "</style>\n</head>\n<body>\n");
    page_put(page, patterns);
}

static void put_fact(struct page *page, const char *name, const char *text)
{
    page_put(page, "<div><dt>");
    page_put(page, name);
    page_put(page, "</dt><dd>");
    page_text(page, text);
    page_put(page, "</dd></div>\n");
}

static void put_facts(struct page *page)
{
    const struct outcome *outcome = page->outcome;
    const struct scenario *scenario = outcome->scenario;
    const struct scenario_cluster *cluster = &scenario->cluster;
    struct buf text = {0};
    page_put(page, "<dl class=\"facts\">\n");
    put_fact(page, "Consistency", cluster->mode == SCENARIO_STRONG ? "strong" : "eventual");
    for (uint8_t i = 0; i < cluster->region_count; i++)
        buf_printf(&text, "%s%s%s", i == 0 ? "" : ", ", cluster->region[i].name,
                   i < cluster->data_count ? "" : " (witness)");
    buf_append_u8(&text, 0);
    put_fact(page, "Regions", (const char *)text.at);
    put_fact(page, "Workload",
             scenario_workload_name((enum scenario_workload_kind)scenario->workload.kind));
    buf_reset(&text);
    text_count(outcome->history.count, &text);
    buf_append_u8(&text, 0);
    put_fact(page, "Operations", (const char *)text.at);
    buf_reset(&text);
    text_duration(outcome->ended_ns - outcome->began_ns, &text);
    buf_append_u8(&text, 0);
    put_fact(page, "Duration", (const char *)text.at);
    buf_reset(&text);
    buf_printf(&text, "%" PRIu64, outcome->seed);
    buf_append_u8(&text, 0);
    put_fact(page, "Seed", (const char *)text.at);
    buf_reset(&text);
    text_date(outcome->began_wall_ms, &text); /* without its fraction, and so that it can break */
    text.at[10] = ' ';
    text.len = 19;
    buf_append_text(&text, " UTC");
    buf_append_u8(&text, 0);
    put_fact(page, "Started", outcome->simulated ? "in virtual time" : (const char *)text.at);
    put_fact(page, "Tidemark", outcome->version);
    page_put(page, "</dl>\n");
    buf_deinit(&text);
}

/* Without the word that it begins with, which the banner says larger. */
static const char *sentence_of(const struct outcome *outcome)
{
    const char *word = facts_exit(outcome->exit);
    size_t len = strlen(word);
    bool told =
        strncmp(outcome->verdict, word, len) == 0 && strncmp(outcome->verdict + len, ": ", 2) == 0;
    return outcome->verdict + (told ? len + 2 : 0);
}

static void put_verdict(struct page *page)
{
    static const struct {
        const char *class, *words;
    } banners[] = {
        [OUTCOME_PASS] = {"good", "✓ Pass"},
        [OUTCOME_WRONG] = {"bad", "✗ Wrong: the data is not as it was promised"},
        [OUTCOME_HARNESS] = {"doubt", "! Harness: this run shows nothing"},
        [OUTCOME_UNKNOWN] = {"doubt", "? Unknown: nobody can tell"},
        [OUTCOME_SLOW] = {"doubt", "◷ Too slow: the data is right, the time is not"},
    };
    const struct outcome *outcome = page->outcome;
    page_put(page, "<header>\n<p class=\"muted\">");
    page_put(page, outcome->simulated ? "Tidemark, simulated run" : "Tidemark chaos run");
    page_put(page, "</p>\n<h1>");
    page_text(page, outcome->scenario->name);
    page_put(page, "</h1>\n<p>");
    page_text(page, outcome->scenario->about);
    page_printf(page, "</p>\n<p class=\"verdict %s\" role=\"status\"><strong>%s</strong><span>",
                banners[outcome->exit].class, banners[outcome->exit].words);
    page_text(page, sentence_of(outcome));
    page_put(page, "</span></p>\n");
    if (outcome->stopped != NULL) {
        page_put(page, "<p>The run ended early: ");
        page_text(page, outcome->stopped);
        page_put(page, "</p>\n");
    }
    if (outcome->harness != NULL) {
        page_put(page, "<p>The run itself failed: ");
        page_text(page, outcome->harness);
        page_put(page, "</p>\n");
    }
    put_facts(page);
    page_put(page, "</header>\n<nav aria-label=\"Contents\"><ul>"
                   "<li><a href=\"#figures\">Figures</a></li>");
    if (page_has_windows(page))
        page_put(page, "<li><a href=\"#wrong\">What is wrong</a></li>");
    page_put(page, "<li><a href=\"#timeline\">Timeline</a></li>"
                   "<li><a href=\"#losses\">Losses</a></li>"
                   "<li><a href=\"#staleness\">Staleness</a></li>"
                   "<li><a href=\"#faults\">Faults</a></li>"
                   "<li><a href=\"#checkers\">Checkers</a></li>"
                   "<li><a href=\"#again\">Run it again</a></li></ul></nav>\n<main>\n");
}

/* ---- Foot ---- */

static void put_command(struct page *page, struct bytes command)
{
    page_put(page, "<pre><code>");
    page_bytes(page, command);
    page_put(page, "</code></pre>\n");
}

static void put_again(struct page *page, bool whole)
{
    const struct outcome *outcome = page->outcome;
    struct buf command = {0};
    facts_command(outcome, &command);
    page_put(page, "<h2 id=\"again\">Run it again</h2>\n");
    if (outcome->simulated != NULL) {
        page_put(page, "<p>The same run, to the last event:</p>\n");
        put_command(page, bytes_text(outcome->simulated));
        page_put(page, "<p>The same scenario on processes:</p>\n");
        put_command(page, buf_view(&command));
    } else {
        page_put(page, "<p>The same faults on the same load, drawn from the same seed. Processes "
                       "and disks keep their own time, so the numbers will differ a little.</p>\n");
        put_command(page, buf_view(&command));
        page_put(page,
                 "<p>Judge this run again, from the directory in which this page lies:</p>\n");
        put_command(page, bytes_literal("tidemark chaos recheck ."));
    }
    buf_deinit(&command);
    if (*outcome->scenario_text == 0)
        return;
    if (!whole) {
        buf_append_text(&page->left_out, outcome->simulated
                                             ? "<li>The scenario.</li>\n"
                                             : "<li>The scenario; it is in scenario.yaml.</li>\n");
        return;
    }
    page_put(page, "<details><summary>The scenario</summary>\n<pre><code>");
    page_text(page, outcome->scenario_text);
    page_put(page, "</code></pre></details>\n");
}

static void put_foot(struct page *page)
{
    const struct measures *measures = page->measures;
    if (page->points_max > 0 && measures->bin_ns > 100000000) {
        buf_append_text(&page->left_out, "<li>Rates and latencies are of ");
        text_duration(measures->bin_ns, &page->left_out);
        buf_append_text(&page->left_out, " at a time, not of 100 ms.</li>\n");
    }
    if (page->left_out.len > 0) {
        page_put(page, "<h2>What is not on this page</h2>\n");
        if (page->outcome->simulated == NULL)
            page_put(page, "<p>All of it is in the files beside it.</p>\n");
        page_put(page, "<ul class=\"plain\">\n");
        buf_append_bytes(&page->to, buf_view(&page->left_out));
        page_put(page, "</ul>\n");
    }
    page_put(page, "</main>\n<p id=\"readout\" aria-hidden=\"true\"></p>\n<script>");
    put_all(page, page_script);
    page_put(page, "</script>\n</body>\n</html>\n");
}

/* Each level halves what the one before shows; the last draws nothing. */
enum { POINTS = 2000, ROWS = 200, LEVELS = 7, SCENARIO_SHOWN_MAX = 65536 };

static void make(const struct outcome *outcome, uint32_t level, struct page *page)
{
    struct measures measures;
    measures_init(&measures, outcome, POINTS >> level);
    *page = (struct page){.outcome = outcome,
                          .measures = &measures,
                          .points_max = level + 1 < LEVELS ? POINTS >> level : 0,
                          .rows_max = ROWS >> level};
    put_head(page);
    put_verdict(page);
    page_figures(page);
    page_windows(page);
    page_timeline(page);
    page_losses(page);
    page_staleness(page);
    page_causes(page);
    put_again(page, level < 2 && strlen(outcome->scenario_text) <= SCENARIO_SHOWN_MAX);
    put_foot(page);
    page->measures = NULL;
    measures_deinit(&measures);
}

void report_html(const struct outcome *outcome, struct buf *to)
{
    struct page page = {0};
    for (uint32_t level = 0; level < LEVELS; level++) {
        buf_deinit(&page.to);
        buf_deinit(&page.left_out);
        make(outcome, level, &page);
        if (page.to.len <= outcome->scenario->budgets.report_bytes)
            break;
    }
    buf_append_bytes(to, buf_view(&page.to));
    buf_deinit(&page.to);
    buf_deinit(&page.left_out);
}
