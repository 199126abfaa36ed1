/* SPDX-License-Identifier: Apache-2.0 */
/* The staleness curve: with which probability a read sees every write that was acknowledged a given
 * time before. Time runs on a logarithmic scale that begins at nought. */

#include <inttypes.h>
#include <math.h>

#include "chaos/report/facts.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"

#define MS_NS 1e6

struct curve {
    double decades; /* on the time axis; log10(1 + ms) */
    double low;     /* where the share axis begins */
};

static double x_of(const struct curve *curve, double ns)
{
    return log10(1 + ns / MS_NS) / curve->decades * PAGE_X_MAX;
}

static double y_of(const struct curve *curve, double share)
{
    return (1 - (share - curve->low) / (1 - curve->low)) * PAGE_Y_MAX;
}

static struct curve curve_of(const struct staleness_table *table)
{
    uint64_t longest = 100000000;
    double least = 0.9;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct staleness_row *row = &table->rows[i];
        for (uint32_t j = 0; j < row->point_count; j++) {
            longest = row->point_ns[j] > longest ? row->point_ns[j] : longest;
            least = fmin(least, row->point_millionths[j] / 1e6);
        }
    }
    return (struct curve){.decades = log10(1 + (double)longest * 1.05 / MS_NS),
                          .low = floor(least * 10) / 10};
}

static void put_row(struct page *page, const struct curve *curve, const struct staleness_row *row)
{
    page_printf(page, "<path class=\"line c%u%s\" d=\"", row->region % 8u,
                row->strong ? " strong" : "");
    for (uint32_t i = 0; i < row->point_count; i++) {
        double x = x_of(curve, (double)row->point_ns[i]);
        double y = y_of(curve, row->point_millionths[i] / 1e6);
        if (i == 0)
            page_printf(page, "M%.0f %.0f", x, y);
        else
            page_printf(page, "H%.0fV%.0f", x, y);
    }
    page_printf(page, "H%d\"/>\n", PAGE_X_MAX);
}

static void put_axes(struct page *page, const struct curve *curve)
{
    static const double ticks_ms[] = {0, 1, 10, 100, 1000, 10000, 100000, 1000000};
    for (uint32_t i = 0; i <= 2; i++) {
        double share = curve->low + (1 - curve->low) * i / 2;
        double y = y_of(curve, share) / PAGE_Y_MAX * 100;
        page_printf(
            page, "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.1f%%\" y2=\"%.1f%%\"/>", y, y);
        page_printf(page,
                    "<text class=\"quiet halo\" x=\"4\" y=\"%.1f%%\" dy=\"%s\">%.0f %%</text>", y,
                    i == 2 ? "13" : "-4", share * 100);
    }
    for (size_t i = 1; i < sizeof(ticks_ms) / sizeof(*ticks_ms); i++) {
        double x = x_of(curve, ticks_ms[i] * MS_NS) / PAGE_X_MAX * 100;
        if (x < 100)
            page_printf(page,
                        "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>",
                        x, x);
    }
}

static void put_ticks(struct page *page, const struct curve *curve)
{
    static const struct {
        double ms;
        const char *name;
    } ticks[] = {{0, "0"},      {1, "1 ms"},     {10, "10 ms"},     {100, "100 ms"},
                 {1000, "1 s"}, {10000, "10 s"}, {100000, "100 s"}, {1000000, "1000 s"}};
    page_put(page, "<svg class=\"bare\" height=\"18\" aria-hidden=\"true\">");
    for (size_t i = 0; i < sizeof(ticks) / sizeof(*ticks); i++) {
        double x = x_of(curve, ticks[i].ms * MS_NS) / PAGE_X_MAX * 100;
        if (x <= 97)
            page_printf(page,
                        "<text class=\"quiet\" x=\"%.2f%%\" y=\"13\" text-anchor=\"%s\">%s</text>",
                        x, i == 0 ? "start" : "middle", ticks[i].name);
    }
    page_put(page, "</svg>\n");
}

void page_staleness(struct page *page)
{
    const struct staleness_table *table = &page->outcome->staleness;
    page_put(page, "<h2 id=\"staleness\">Staleness</h2>\n");
    if (table->count == 0) {
        page_put(page, "<p>No read to judge: the workload does not read, or its values do not name "
                       "their writers.</p>\n");
        return;
    }
    struct curve curve = curve_of(table);
    page_put(page,
             "<figure><figcaption><b>Share of reads that see every write acknowledged so long "
             "before</b> ");
    for (uint32_t i = 0; i < table->count; i++) {
        const struct staleness_row *row = &table->rows[i];
        char class[32];
        snprintf(class, sizeof(class), "line c%u%s", row->region % 8u,
                 row->strong ? " strong" : "");
        struct buf name = {0};
        buf_printf(&name, "%s %s", facts_region(page->outcome, row->region),
                   row->strong ? "strong" : "eventual");
        buf_append_u8(&name, 0);
        page_legend(page, class, (const char *)name.at);
        buf_deinit(&name);
    }
    page_put(page, "</figcaption>\n");
    page_svg(page, "plot", 200, "Staleness curve",
             "The share of reads, for each Region, over the age of the writes that they must see; "
             "the table under Figures has its numbers.");
    put_axes(page, &curve);
    page_curves(page);
    for (uint32_t i = 0; i < table->count; i++)
        put_row(page, &curve, &table->rows[i]);
    page_put(page, "</svg></svg>\n");
    put_ticks(page, &curve);
    page_put(page,
             "<p class=\"muted\">Age of the write when the read began, on a logarithmic scale. "
             "The higher on the left, the fresher the reads.</p></figure>\n");
}
