/* SPDX-License-Identifier: Apache-2.0 */
/* The curves of a lane: rates, latencies, replication lag and clock. They are drawn in steps, one
 * for each bin, so that a lonely bin between two gaps is seen as well. */

#include <inttypes.h>
#include <math.h>

#include "chaos/report/lane.h"
#include "conflict/base/check.h"

/* A clock that is nearer than this is right. */
enum { OFFSET_SHOWN_NS = 2000000 };

/* So that a peak is seen below the edge. */
#define ROOM_ABOVE 1.1

/* ---- Steps ---- */

struct steps { /* one curve, as it is written */
    struct page *page;
    bool down; /* the pen is */
    long x, y;
};

static long x_at(const struct page *page, uint64_t at_ns)
{
    return lround(page_percent(page, at_ns) / 100 * PAGE_X_MAX);
}

static long y_at(double part) /* of the height; 0 is at the bottom */
{
    return lround((1 - fmin(fmax(part, 0), 1)) * PAGE_Y_MAX);
}

static void step(struct steps *steps, long x0, long x1, long y)
{
    if (!steps->down || steps->x != x0)
        page_printf(steps->page, "M%ld %ld", x0, y);
    else if (steps->y != y)
        page_printf(steps->page, "V%ld", y);
    page_printf(steps->page, "H%ld", x1);
    *steps = (struct steps){steps->page, true, x1, y};
}

static void lift(struct steps *steps)
{
    steps->down = false;
}

static long bin_x(const struct page *page, uint32_t bin)
{
    return x_at(page, page->measures->from_ns + bin * page->measures->bin_ns);
}

static void path_open(struct page *page, const char *class, const char *name, double low,
                      double high, bool log, const char *unit)
{
    page_printf(page,
                "<path class=\"%s\" data-name=\"%s\" data-low=\"%.6g\" data-high=\"%.6g\" %s"
                "data-unit=\"%s\" d=\"",
                class, name, low, high, log ? "data-log=\"1\" " : "", unit);
}

/* ---- Rates ---- */

enum pile { PILE_ANSWERED, PILE_INFO, PILE_FAILED, PILE_COUNT }; /* from the ground up */

static void put_rate(struct page *page, uint8_t region, const struct scales *scales, enum pile pile)
{
    static const char *const classes[] = {"answered", "info-edge", "failed-edge"};
    static const char *const names[] = {"answered", "and unknown", "and failed"};
    const struct measures *measures = page->measures;
    double seconds = (double)measures->bin_ns / 1e9;
    struct steps steps = {page, true, 0, PAGE_Y_MAX}; /* from the corner, for the area */
    path_open(page, classes[pile], names[pile], 0, scales->rate, false, "/s");
    page_printf(page, "M0 %d", PAGE_Y_MAX);
    for (uint32_t i = 0; i < measures->bin_count; i++) {
        const struct measures_bin *bin = &measures->bins[region][i];
        double count = (double)bin->answered + (pile >= PILE_INFO ? bin->info : 0) +
                       (pile >= PILE_FAILED ? bin->failed : 0);
        step(&steps, bin_x(page, i), bin_x(page, i + 1), y_at(count / seconds / scales->rate));
    }
    page_printf(page, "V%d\" id=\"pile-%u-%u\"/>\n", PAGE_Y_MAX, region, pile);
}

/* A pattern within a curve would be stretched with it, so it fills the outer drawing, cut out by
 * the curve. */
static void put_fill(struct page *page, uint8_t region, enum pile pile, const char *class)
{
    page_printf(
        page,
        "<clipPath id=\"cut-%u-%u\" clipPathUnits=\"objectBoundingBox\"><use "
        "href=\"#pile-%u-%u\" transform=\"scale(.0001 .001)\"/></clipPath><rect class=\"%s\" "
        "width=\"100%%\" height=\"100%%\" clip-path=\"url(#cut-%u-%u)\"/>\n",
        region, pile, region, pile, class, region, pile);
}

static void put_rates(struct page *page, uint8_t region, const struct scales *scales)
{
    lane_figure(page, "Operations a second");
    page_legend(page, "answered", "answered");
    page_legend(page, "info", "nobody knows");
    page_legend(page, "failed", "failed");
    lane_plot(
        page, region, 72, "operations a second",
        "Answered, unknown and failed operations, one upon the other, by the moment when they "
        "were due.");
    lane_bands(page, region);
    /* From the back to the front: what is higher in the pile is painted first. */
    put_fill(page, region, PILE_FAILED, "failed");
    put_fill(page, region, PILE_INFO, "info");
    page_curves(page);
    for (int pile = PILE_COUNT - 1; pile >= PILE_ANSWERED; pile--)
        put_rate(page, region, scales, (enum pile)pile);
    page_printf(page, "</svg><text class=\"quiet halo\" x=\"4\" y=\"12\">%.0f/s</text>",
                scales->rate);
    lane_end(page);
}

/* ---- Latencies ---- */

static void put_latency(struct page *page, uint8_t region, const struct scales *scales, bool tail)
{
    const struct measures *measures = page->measures;
    double decades = log10(scales->slowest / scales->fastest);
    struct steps steps = {.page = page};
    path_open(page, tail ? "line second" : "line first", tail ? "p99" : "p50", scales->fastest,
              scales->slowest, true, "ms");
    for (uint32_t i = 0; i < measures->bin_count; i++) {
        const struct measures_bin *bin = &measures->bins[region][i];
        if (bin->answered == 0) {
            lift(&steps);
            continue;
        }
        double ms = (double)(tail ? bin->p99_ns : bin->p50_ns) / 1e6;
        double part = log10(fmax(ms, scales->fastest) / scales->fastest) / decades;
        step(&steps, bin_x(page, i), bin_x(page, i + 1), y_at(part));
    }
    page_put(page, "\"/>\n");
}

static void put_latencies(struct page *page, uint8_t region, const struct scales *scales)
{
    enum { HEIGHT = 96 };
    double decades = log10(scales->slowest / scales->fastest);
    lane_figure(page, "Latency of answers");
    page_legend(page, "line first", "p50");
    page_legend(page, "line second", "p99");
    lane_plot(
        page, region, HEIGHT, "latency of answers",
        "Median and 99th percentile of each moment, on a logarithmic scale; none where nothing "
        "was answered.");
    lane_bands(page, region);
    for (double ms = scales->fastest; ms < scales->slowest * 1.5; ms *= 10) {
        double y = (1 - log10(ms / scales->fastest) / decades) * HEIGHT;
        page_printf(page, "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>", y,
                    y);
    }
    page_curves(page);
    put_latency(page, region, scales, false);
    put_latency(page, region, scales, true);
    page_put(page, "</svg>");
    for (double ms = scales->fastest; ms < scales->slowest * 1.5; ms *= 10) {
        double y = (1 - log10(ms / scales->fastest) / decades) * HEIGHT;
        page_printf(page, "<text class=\"quiet halo\" x=\"4\" y=\"%.1f\">%g %s</text>",
                    y < 6 ? 11 : y - 2, ms < 1000 ? ms : ms / 1000, ms < 1000 ? "ms" : "s");
    }
    lane_end(page);
}

/* ---- Samples ---- */

/* The greatest of the samples that go into a step, by size. */
static double sample_peak(const struct page *page, uint8_t region, uint32_t from, uint32_t count,
                          bool clock)
{
    const struct outcome *outcome = page->outcome;
    double peak = 0;
    for (uint32_t i = from; i < from + count && i < outcome->sample_count; i++) {
        const struct outcome_sample *sample = &outcome->samples[i];
        double value = clock ? (double)sample->region[region].clock_offset_ns / 1e6
                             : (double)sample->region[region].lag_ns / 1e6;
        if (sample->region[region].up && fabs(value) > fabs(peak))
            peak = value;
    }
    return peak;
}

static bool any_up(const struct page *page, uint8_t region, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < from + count && i < page->outcome->sample_count; i++)
        if (page->outcome->samples[i].region[region].up)
            return true;
    return false;
}

static void put_samples(struct page *page, uint8_t region, const struct scales *scales, bool clock)
{
    const struct outcome *outcome = page->outcome;
    struct steps steps = {.page = page};
    double top = clock ? scales->offset_ms : scales->lag_ms;
    path_open(page, clock ? "line second" : "line first", clock ? "clock" : "lag", clock ? -top : 0,
              top, false, "ms");
    for (uint32_t i = 0; i < outcome->sample_count; i += scales->groups) {
        uint32_t next = i + scales->groups;
        long to =
            next < outcome->sample_count ? x_at(page, outcome->samples[next].at_ns) : PAGE_X_MAX;
        double value = sample_peak(page, region, i, scales->groups, clock);
        if (!any_up(page, region, i, scales->groups))
            lift(&steps);
        else
            step(&steps, x_at(page, outcome->samples[i].at_ns), to,
                 y_at(clock ? 0.5 + value / top / 2 : value / top));
    }
    page_put(page, "\"/>\n");
}

static void put_top(struct page *page, const char *sign, double ms, const char *y)
{
    page_printf(page, "<text class=\"quiet halo\" x=\"4\" y=\"%s\">%s", y, sign);
    page_duration(page, (uint64_t)fmin(ms * 1e6, 9e18));
    page_put(page, "</text>");
}

static void put_lag(struct page *page, uint8_t region, const struct scales *scales)
{
    lane_figure(page, "Replication lag");
    page_put(page, "age of the oldest write that some other Region lacks");
    lane_plot(page, region, 56, "replication lag",
              "The age of the oldest write that some other Region lacks.");
    lane_bands(page, region);
    page_curves(page);
    put_samples(page, region, scales, false);
    page_put(page, "</svg>");
    put_top(page, "", scales->lag_ms, "12");
    lane_end(page);
}

static void put_clock(struct page *page, uint8_t region, const struct scales *scales)
{
    lane_figure(page, "Clock");
    page_put(page, "how far ahead of the harness, or behind");
    lane_plot(page, region, 56, "clock", "How far the Region's clock was off.");
    lane_bands(page, region);
    page_put(page, "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/>");
    page_curves(page);
    put_samples(page, region, scales, true);
    page_put(page, "</svg>");
    put_top(page, "+", scales->offset_ms, "12");
    put_top(page, "−", scales->offset_ms, "52");
    lane_end(page);
}

/* ---- All ---- */

static void scale_bins(const struct page *page, struct scales *scales)
{
    const struct measures *measures = page->measures;
    double least = INFINITY, most = 0, peak = 1;
    for (uint8_t region = 0; region < page->outcome->scenario->cluster.region_count; region++)
        for (uint32_t i = 0; i < measures->bin_count; i++) {
            const struct measures_bin *bin = &measures->bins[region][i];
            peak = fmax(peak, (double)bin->answered + bin->failed + bin->info);
            if (bin->answered == 0)
                continue;
            least = fmin(least, (double)bin->p50_ns / 1e6);
            most = fmax(most, (double)bin->p99_ns / 1e6);
        }
    scales->rate = ceil(peak / ((double)measures->bin_ns / 1e9));
    scales->fastest = pow(10, floor(log10(fmin(fmax(least, 0.01), 100))));
    scales->slowest = pow(10, ceil(log10(fmax(most, scales->fastest * 10))));
}

static void scale_samples(const struct page *page, struct scales *scales)
{
    const struct outcome *outcome = page->outcome;
    uint32_t count = outcome->sample_count;
    double offset = 0;
    scales->groups = 1 + count / (page->points_max + 1);
    for (uint8_t i = 0; i < outcome->scenario->cluster.region_count; i++) {
        scales->lag_ms = fmax(scales->lag_ms, sample_peak(page, i, 0, count, false));
        offset = fmax(offset, fabs(sample_peak(page, i, 0, count, true)));
    }
    if (offset * 1e6 > OFFSET_SHOWN_NS)
        scales->offset_ms = offset * ROOM_ABOVE;
    scales->lag_ms *= ROOM_ABOVE;
    if (outcome->scenario->cluster.mode == SCENARIO_EVENTUAL && count > 0)
        scales->lag_ms = fmax(scales->lag_ms, 1);
}

void curves_scale(const struct page *page, struct scales *ret)
{
    *ret = (struct scales){0};
    scale_bins(page, ret);
    scale_samples(page, ret);
}

void curves_put(struct page *page, uint8_t region, const struct scales *scales)
{
    bool data = region < page->outcome->scenario->cluster.data_count;
    double off_ms = fabs(sample_peak(page, region, 0, page->outcome->sample_count, true));
    if (data) {
        put_rates(page, region, scales);
        put_latencies(page, region, scales);
    }
    if (data && scales->lag_ms > 0)
        put_lag(page, region, scales);
    if (off_ms * 1e6 > OFFSET_SHOWN_NS)
        put_clock(page, region, scales);
}
