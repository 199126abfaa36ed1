/* SPDX-License-Identifier: Apache-2.0 */
/* The run over time: a lane for each Region, all on one scale, with its faults as labelled bands,
 * its state and leadership, and the curves of html_curves.c. */

#include <inttypes.h>
#include <math.h>

#include "chaos/report/facts.h"
#include "chaos/report/lane.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { FAULT_ROWS_MAX = 12, ROW_HEIGHT = 20, MARKS_MAX = 200, NAMED_FAULTS_MAX = 16 };
/* Of a run's length, in percent: what a fault's label takes on a phone, with its name or with its
 * number alone, and the least between two marks. */
static const double name_percent = 34, number_percent = 11, mark_percent = 0.6;
/* ---- What is behind every drawing ---- */

static uint64_t fault_end(const struct page *page, const struct outcome_fault *fault)
{
    return fault->to_ns == 0 ? page->measures->from_ns + page->measures->span_ns : fault->to_ns;
}

static bool concerns(const struct outcome_fault *fault, uint8_t region)
{
    return (fault->regions >> region & 1) != 0 && !fault->refused;
}

static int by_from(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Shades the time in which some fault was on: bands that touch are one. */
static void put_bands(struct page *page, uint8_t region)
{
    const struct outcome *outcome = page->outcome;
    double(*bands)[2] = xmalloc((outcome->fault_count + 1) * sizeof(*bands));
    uint32_t count = 0;
    for (uint32_t i = 0; i < outcome->fault_count; i++)
        if (concerns(&outcome->faults[i], region)) {
            bands[count][0] = page_percent(page, outcome->faults[i].from_ns);
            bands[count++][1] = page_percent(page, fault_end(page, &outcome->faults[i]));
        }
    qsort(bands, count, sizeof(*bands), by_from);
    page_printf(page, "<defs><g id=\"bands-%u\">", region);
    for (uint32_t i = 0; i < count;) {
        double from = bands[i][0], to = bands[i][1];
        for (i++; i < count && bands[i][0] <= to + 0.1; i++)
            to = fmax(to, bands[i][1]);
        if (to > from)
            page_printf(page,
                        "<rect class=\"band\" x=\"%.2f%%\" y=\"0\" width=\"%.2f%%\" "
                        "height=\"100%%\"/>",
                        from, to - from);
    }
    for (uint32_t i = 1; i < outcome->phase_count; i++)
        page_printf(page,
                    "<line class=\"phase\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>",
                    page_percent(page, outcome->phases[i].from_ns),
                    page_percent(page, outcome->phases[i].from_ns));
    page_put(page, "</g></defs>");
    free(bands);
}

void lane_bands(struct page *page, uint8_t region)
{
    page_printf(page, "<use href=\"#bands-%u\"/>", region);
}

void lane_figure(struct page *page, const char *name)
{
    page_printf(page, "<figure><figcaption><b>%s</b> ", name);
}

/* Opens the drawing under a caption: "<Region>: <name>" is its title. */
void lane_plot(struct page *page, uint8_t region, uint32_t height, const char *name,
               const char *description)
{
    struct buf title = {0};
    buf_printf(&title, "%s: %s", facts_region(page->outcome, region), name);
    buf_append_u8(&title, 0);
    page_put(page, "</figcaption>\n");
    page_svg(page, "plot", height, (const char *)title.at, description);
    buf_deinit(&title);
}

void lane_end(struct page *page)
{
    page_put(page, "</svg></figure>\n");
}

/* ---- Phases ---- */

struct rows { /* how far each is taken, in percent */
    double to[FAULT_ROWS_MAX];
    uint32_t count;
};

/* The first row with room; FAULT_ROWS_MAX: there is none. */
static uint32_t find_row(struct rows *rows, double from, double to)
{
    for (uint32_t i = 0; i < FAULT_ROWS_MAX; i++)
        if (i >= rows->count || rows->to[i] <= from) {
            rows->count = i >= rows->count ? i + 1 : rows->count;
            rows->to[i] = to;
            return i;
        }
    return FAULT_ROWS_MAX;
}

static void put_time_axis(struct page *page)
{
    static const double steps[] = {0.1, 0.2, 0.5, 1,    2,    5,    10,    20,   60,
                                   120, 300, 600, 1800, 3600, 7200, 14400, 43200};
    double seconds = (double)page->measures->span_ns / 1e9, step = steps[0];
    for (size_t i = 0; i < array_len(steps) && seconds / step > 6; i++)
        step = steps[i];
    if (seconds / step > 60) /* longer than any run is meant to be */
        step = seconds / 6;
    page_put(page, "<svg class=\"bare\" height=\"16\" aria-hidden=\"true\">");
    for (double at = 0; at / seconds <= 0.96; at += step)
        page_printf(page,
                    "<text class=\"quiet\" x=\"%.2f%%\" y=\"12\" text-anchor=\"%s\">%.*f s</text>",
                    at / seconds * 100, at > 0 ? "middle" : "start", step < 1 ? 1 : 0, at);
    page_put(page, "</svg>\n");
}

static void put_phases(struct page *page)
{
    const struct outcome *outcome = page->outcome;
    struct rows rows = {0};
    uint32_t row[SCENARIO_PHASES_MAX];
    if (outcome->phase_count == 0)
        return;
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        double from = page_percent(page, outcome->phases[i].from_ns);
        from = from > 75 ? from - 18 : from;
        row[i] = find_row(&rows, from, from + 18);
    }
    page_put(page, "<figure><figcaption><b>Phases</b></figcaption>\n");
    page_svg(page, "plot", rows.count * ROW_HEIGHT, "Phases",
             "Where each phase begins; the table under Faults has the times.");
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        double from = page_percent(page, outcome->phases[i].from_ns);
        page_printf(page,
                    "<line class=\"phase\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>",
                    from, from);
        if (row[i] == FAULT_ROWS_MAX)
            continue;
        page_printf(
            page, "<text class=\"halo\" x=\"%.2f%%\" y=\"%u\" dx=\"%d\" text-anchor=\"%s\">", from,
            row[i] * ROW_HEIGHT + 14, from > 75 ? -4 : 4, from > 75 ? "end" : "start");
        page_text(page, outcome->phases[i].name);
        page_put(page, "</text>");
    }
    lane_end(page);
    put_time_axis(page);
}

/* ---- Faults ---- */

static void put_fault(struct page *page, uint32_t index, uint32_t row, double label_percent)
{
    const struct outcome_fault *fault = &page->outcome->faults[index];
    double from = page_percent(page, fault->from_ns);
    double to = page_percent(page, fault_end(page, fault));
    uint32_t y = row * ROW_HEIGHT;
    bool left = from > 100 - label_percent;
    page_put(page, "<g><title>");
    page_text(page, fault->id);
    page_printf(page, ": %s ", scenario_verb_info((enum scenario_verb)fault->verb)->name);
    page_text(page, fault->target == NULL ? "" : fault->target);
    page_put(page, "</title>");
    if (to > from)
        page_printf(page,
                    "<rect class=\"fault\" x=\"%.2f%%\" y=\"%u\" width=\"%.2f%%\" height=\"%d\"/>",
                    from, y + 2, to - from, ROW_HEIGHT - 4);
    page_printf(page, "<line class=\"point\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%u\" y2=\"%u\"/>",
                from, from, y + 2, y + ROW_HEIGHT - 2);
    page_printf(page, "<text class=\"halo\" x=\"%.2f%%\" y=\"%u\" dx=\"%d\" text-anchor=\"%s\">F%u",
                from, y + 14, left ? -6 : 6, left ? "end" : "start", index + 1);
    if (label_percent > number_percent)
        page_printf(page, " %s", scenario_verb_info((enum scenario_verb)fault->verb)->name);
    page_put(page, "</text></g>\n");
}

/* Returns how many there were no rows for. */
static uint32_t place_faults(struct page *page, uint8_t region, double label_percent, uint32_t *row,
                             struct rows *rows)
{
    const struct outcome *outcome = page->outcome;
    uint32_t missed = 0;
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        row[i] = FAULT_ROWS_MAX;
        if (!concerns(fault, region))
            continue;
        double from = page_percent(page, fault->from_ns);
        double to = page_percent(page, fault_end(page, fault));
        bool left = from > 100 - label_percent;
        row[i] = find_row(rows, left ? from - label_percent : from,
                          fmax(to, left ? to : from + label_percent));
        missed += row[i] == FAULT_ROWS_MAX;
    }
    return missed;
}

static void put_faults(struct page *page, uint8_t region)
{
    const struct outcome *outcome = page->outcome;
    uint32_t *row = xcalloc(outcome->fault_count + 1, sizeof(*row));
    struct rows rows = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < outcome->fault_count; i++)
        count += concerns(&outcome->faults[i], region);
    double label_percent = count <= NAMED_FAULTS_MAX ? name_percent : number_percent;
    uint32_t missed = place_faults(page, region, label_percent, row, &rows);
    lane_figure(page, "Faults");
    if (rows.count == 0)
        page_put(page, "none here");
    if (missed > 0)
        page_printf(page, "and %u more, in the table below", missed);
    lane_plot(
        page, region, rows.count == 0 ? 6 : rows.count * ROW_HEIGHT, "faults",
        "A band for each fault that concerns the Region; the table under Faults has them all.");
    put_bands(page, region);
    for (uint32_t i = 0; i < outcome->fault_count; i++)
        if (row[i] < FAULT_ROWS_MAX)
            put_fault(page, i, row[i], label_percent);
    lane_end(page);
    free(row);
}

/* ---- State ---- */

enum state { STATE_DOWN, STATE_PAUSED, STATE_UP, STATE_LEADS };

static enum state state_of(const struct outcome_sample *sample, uint8_t region)
{
    if (!sample->region[region].up)
        return STATE_DOWN;
    if (sample->region[region].paused)
        return STATE_PAUSED;
    return sample->region[region].leads > 0 ? STATE_LEADS : STATE_UP;
}

static void put_state(struct page *page, enum state state, double from, double to)
{
    static const struct {
        const char *class, *name;
    } states[] = {[STATE_DOWN] = {"down", "down"},
                  [STATE_PAUSED] = {"paused", "paused"},
                  [STATE_UP] = {"up", "up"},
                  [STATE_LEADS] = {"leads", "leads"}};
    if (to <= from)
        return;
    page_printf(page, "<rect class=\"%s\" x=\"%.2f%%\" y=\"15\" width=\"%.2f%%\" height=\"16\"/>",
                states[state].class, from, to - from);
    if (to - from >= 13)
        page_printf(page, "<text class=\"%s\" x=\"%.2f%%\" y=\"27\" dx=\"4\">%s</text>",
                    state == STATE_LEADS ? "on" : "halo", from, states[state].name);
}

static void put_states(struct page *page, uint8_t region)
{
    const struct outcome *outcome = page->outcome;
    for (uint32_t i = 0; i < outcome->sample_count;) {
        enum state state = state_of(&outcome->samples[i], region);
        double from = page_percent(page, outcome->samples[i].at_ns);
        while (i < outcome->sample_count && state_of(&outcome->samples[i], region) == state)
            i++;
        put_state(page, state, from,
                  i == outcome->sample_count ? 100 : page_percent(page, outcome->samples[i].at_ns));
    }
}

static const char *mark_of(const char *kind)
{
    static const struct {
        const char *kind, *mark;
    } marks[] = {{"leader", "▲"}, {"down", "✕"}, {"up", "○"},  {"ready", "●"},
                 {"heal", "+"},   {"stop", "■"}, {"lost", "∅"}};
    for (size_t i = 0; i < array_len(marks); i++)
        if (strcmp(marks[i].kind, kind) == 0)
            return marks[i].mark;
    return "·";
}

static void put_marks(struct page *page, uint8_t region)
{
    const struct outcome *outcome = page->outcome;
    double last = -mark_percent;
    uint32_t shown = 0, count = 0;
    for (uint32_t i = 0; i < outcome->event_count; i++) {
        const struct outcome_event *event = &outcome->events[i];
        if (event->region != region)
            continue;
        double at = page_percent(page, event->at_ns);
        count++;
        if (shown == MARKS_MAX || fabs(at - last) < mark_percent)
            continue;
        page_printf(page, "<text class=\"halo\" x=\"%.2f%%\" y=\"11\" text-anchor=\"%s\">%s<title>",
                    at,
                    at < 1    ? "start"
                    : at > 99 ? "end"
                              : "middle",
                    mark_of(event->kind));
        page_text(page, event->kind);
        page_put(page, " ");
        page_text(page, event->text);
        page_put(page, "</title></text>");
        last = at;
        shown++;
    }
}

static void put_life(struct page *page, uint8_t region)
{
    lane_figure(page, "State");
    lane_plot(page, region, 34, "state",
              "Whether its process was up, paused or down, and whether it led; the table of what "
              "happened besides has the times.");
    lane_bands(page, region);
    put_states(page, region);
    put_marks(page, region);
    lane_end(page);
}

/* ---- All ---- */

static void put_lane(struct page *page, uint8_t region, const struct scales *scales)
{
    const struct scenario_cluster *cluster = &page->outcome->scenario->cluster;
    bool data = region < cluster->data_count;
    page_printf(page,
                "<section class=\"lane\" aria-labelledby=\"lane-%u\" data-seconds=\"%.9f\" "
                "data-name=\"",
                region, (double)page->measures->span_ns / 1e9);
    page_region(page, region);
    page_printf(page, "\">\n<h3 id=\"lane-%u\">", region);
    page_region(page, region);
    page_put(page, data ? "</h3>\n" : " (witness)</h3>\n");
    put_faults(page, region);
    if (page->outcome->sample_count > 0)
        put_life(page, region);
    curves_put(page, region, scales);
    put_time_axis(page);
    page_put(page, "</section>\n");
}

void page_timeline(struct page *page)
{
    const struct outcome *outcome = page->outcome;
    struct scales scales = {0};
    page_put(page, "<h2 id=\"timeline\">Timeline</h2>\n");
    if (page->points_max == 0) {
        page_put(page, "<p>It is left out, as the report may not be so large.</p>\n");
        buf_append_text(&page->left_out, "<li>The timeline.</li>\n");
        return;
    }
    curves_scale(page, &scales);
    page_put(page,
             "<p class=\"muted\">All lanes are on one scale. Hatched: some fault concerns the "
             "Region. Dotted lines: a phase begins. Operations are shown when they were due, "
             "in steps of ");
    page_duration(page, page->measures->bin_ns);
    page_put(page, ".");
    if (outcome->sample_count > 0)
        page_put(page, " A clock that has no drawing was never off by more than 2 ms.");
    page_put(page, "</p>\n");
    if (scales.groups > 1)
        buf_append_text(&page->left_out, "<li>Of lag and clocks, only the peaks are drawn.</li>\n");
    if (outcome->event_count > 0)
        page_put(page, "<p class=\"muted\">Marks: ▲ leads · ✕ down · ○ up · ● ready · "
                       "+ healed · ■ stopped · ∅ lost data.</p>\n");
    put_phases(page);
    for (uint8_t i = 0; i < outcome->scenario->cluster.region_count; i++)
        put_lane(page, i, &scales);
}
