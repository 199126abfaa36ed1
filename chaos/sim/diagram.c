/* SPDX-License-Identifier: Apache-2.0 */
/* The last entries of the log before the violation are chosen, what is mere routine left out; their
 * sendings, arrivals and marks are put in order, a row each; then all is written from back to
 * front, so that no line crosses a text. */

#include "chaos/sim/diagram.h"

#include <inttypes.h>
#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    ROW = 17,
    LEFT = 96,       /* times */
    LANE = 300,      /* from one to the next */
    LANE_FIRST = 60, /* behind LEFT */
    TOP = 96,
    BAND = 12,
    POINTS_MAX = 2 * SIM_DIAGRAM_ENTRIES_MAX
};

struct point { /* a row */
    uint64_t at_ns;
    uint32_t entry;
    bool arrives;
};

struct drawing {
    const struct sim_diagram *of;
    struct buf *to;
    struct sim_log_entry entries[SIM_DIAGRAM_ENTRIES_MAX];
    uint32_t entry_count;
    struct point points[POINTS_MAX];
    uint32_t point_count;
    uint32_t sent_row[SIM_DIAGRAM_ENTRIES_MAX], arrived_row[SIM_DIAGRAM_ENTRIES_MAX];
    uint64_t end_ns;
};

static void text(struct buf *to, const char *from)
{
    for (; *from; from++) {
        switch (*from) {
        case '<':
            buf_append_text(to, "&lt;");
            break;
        case '>':
            buf_append_text(to, "&gt;");
            break;
        case '&':
            buf_append_text(to, "&amp;");
            break;
        case '"':
            buf_append_text(to, "&quot;");
            break;
        default: /* XML knows no control characters, and what we write is ASCII */
            buf_append_u8(to, *from < ' ' || *from > '~' ? '?' : (uint8_t)*from);
        }
    }
}

/* ---- What is shown ---- */

static bool is_shown(const struct drawing *drawing, const struct sim_log_entry *entry)
{
    return entry->at_ns <= drawing->end_ns && strcmp(entry->text, "Heartbeat") != 0 &&
           entry->from < drawing->of->lane_count && entry->to < drawing->of->lane_count;
}

/* A leader's heartbeats are Appends, too: one that says what the last one from there said, and its
 * answer, is left out. */
static bool is_new(const struct sim_log_entry *entry,
                   const struct sim_log_entry *last[SIM_DIAGRAM_LANES_MAX][SIM_DIAGRAM_LANES_MAX])
{
    const struct sim_log_entry *before = last[entry->from][entry->to];
    if (entry->kind == SIM_LOG_MARK || strncmp(entry->text, "Append", 6) != 0)
        return true;
    last[entry->from][entry->to] = entry;
    return !before || before->kind != entry->kind || strcmp(before->text, entry->text) != 0;
}

/* The last of all that are shown. */
static void choose(struct drawing *drawing)
{
    const struct sim_log *log = drawing->of->log;
    const struct sim_log_entry *last[SIM_DIAGRAM_LANES_MAX][SIM_DIAGRAM_LANES_MAX] = {0};
    uint64_t chosen[SIM_DIAGRAM_ENTRIES_MAX], count = 0;
    for (uint64_t i = log->count > SIM_LOG_MAX ? log->count - SIM_LOG_MAX : 0; i < log->count; i++)
        if (is_shown(drawing, &log->at[i % SIM_LOG_MAX]) && is_new(&log->at[i % SIM_LOG_MAX], last))
            chosen[count++ % SIM_DIAGRAM_ENTRIES_MAX] = i;
    uint64_t first = count > SIM_DIAGRAM_ENTRIES_MAX ? count - SIM_DIAGRAM_ENTRIES_MAX : 0;
    for (uint64_t i = first; i < count; i++)
        drawing->entries[drawing->entry_count++] =
            log->at[chosen[i % SIM_DIAGRAM_ENTRIES_MAX] % SIM_LOG_MAX];
}

/* By time; of one instant, as they were noted. */
static void add_point(struct drawing *drawing, struct point point)
{
    check(drawing->point_count < POINTS_MAX);
    uint32_t at = drawing->point_count++;
    for (; at > 0 && drawing->points[at - 1].at_ns > point.at_ns; at--)
        drawing->points[at] = drawing->points[at - 1];
    drawing->points[at] = point;
}

static bool arrives(const struct drawing *drawing, const struct sim_log_entry *entry)
{
    return entry->kind == SIM_LOG_SENT && entry->to_ns <= drawing->end_ns;
}

static void arrange(struct drawing *drawing)
{
    for (uint32_t i = 0; i < drawing->entry_count; i++) {
        const struct sim_log_entry *entry = &drawing->entries[i];
        add_point(drawing, (struct point){entry->at_ns, i, false});
        if (arrives(drawing, entry))
            add_point(drawing, (struct point){entry->to_ns, i, true});
    }
    for (uint32_t row = 0; row < drawing->point_count; row++) {
        const struct point *point = &drawing->points[row];
        if (point->arrives)
            drawing->arrived_row[point->entry] = row;
        else
            drawing->sent_row[point->entry] = row;
    }
}

static uint32_t y_of(uint32_t row)
{
    return TOP + row * ROW;
}

static uint32_t x_of(uint32_t lane)
{
    return LEFT + LANE_FIRST + lane * LANE;
}

/* The first row at or after a time. */
static uint32_t row_at(const struct drawing *drawing, uint64_t at_ns)
{
    uint32_t row = 0;
    while (row < drawing->point_count && drawing->points[row].at_ns < at_ns)
        row++;
    return row;
}

/* ---- Drawing ---- */

static void draw_head(struct drawing *drawing, uint32_t width, uint32_t height)
{
    struct buf *to = drawing->to;
    const struct sim_diagram *of = drawing->of;
    buf_printf(to,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
               "viewBox=\"0 0 %u %u\" font-family=\"ui-monospace, monospace\" font-size=\"11\" "
               "role=\"img\">\n<title>",
               width, height, width, height);
    text(to, of->title);
    buf_append_text(to, "</title>\n<defs>\n"
                        "<marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" "
                        "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">"
                        "<path d=\"M0,0L8,4L0,8z\"/></marker>\n"
                        "<pattern id=\"fault\" width=\"5\" height=\"5\" "
                        "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
                        "<rect width=\"5\" height=\"5\" fill=\"#fff\"/>"
                        "<rect width=\"2\" height=\"5\" fill=\"#555\"/></pattern>\n</defs>\n");
    buf_printf(to, "<rect width=\"%u\" height=\"%u\" fill=\"#fff\"/>\n", width, height);
    buf_append_text(to, "<text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"bold\">");
    text(to, of->title);
    buf_append_text(to, "</text>\n<text x=\"12\" y=\"44\">");
    text(to, of->violation ? of->violation : "no violation");
    buf_append_text(to, "</text>\n");
}

static void draw_lanes(struct drawing *drawing, uint32_t bottom)
{
    struct buf *to = drawing->to;
    for (uint32_t i = 0; i < drawing->of->lane_count; i++) {
        buf_printf(to,
                   "<path d=\"M%u,%uV%u\" stroke=\"#000\"/>\n"
                   "<text x=\"%u\" y=\"%u\" text-anchor=\"middle\" font-weight=\"bold\">",
                   x_of(i), TOP - 16, bottom, x_of(i), TOP - 22);
        text(to, drawing->of->lanes[i]);
        buf_append_text(to, "</text>\n");
    }
}

/* Bands of one lane stand side by side, to the left of it. */
static void draw_faults(struct drawing *drawing)
{
    struct buf *to = drawing->to;
    const struct sim_told *told = drawing->of->told;
    uint32_t beside[SIM_DIAGRAM_LANES_MAX] = {0};
    uint64_t begin_ns = drawing->point_count ? drawing->points[0].at_ns : 0;
    for (uint32_t i = 0; i < told->fault_count; i++) {
        const struct sim_told_fault *fault = &told->faults[i];
        if (fault->node >= drawing->of->lane_count || fault->to_ns < begin_ns ||
            fault->from_ns > drawing->end_ns || beside[fault->node] == 3)
            continue;
        uint32_t top = y_of(row_at(drawing, fault->from_ns)) - ROW / 2;
        uint32_t bottom = y_of(row_at(drawing, fault->to_ns)) + ROW / 2;
        uint32_t x = x_of(fault->node) - (BAND + 2) * (++beside[fault->node]);
        buf_printf(to,
                   "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"url(#fault)\" "
                   "stroke=\"#000\"><title>",
                   x, top, BAND, bottom - top);
        text(to, fault->text);
        buf_append_text(to, "</title></rect>\n");
        buf_printf(to,
                   "<text class=\"fault\" transform=\"translate(%u,%u) rotate(-90)\" "
                   "text-anchor=\"end\" font-size=\"9\" stroke=\"#fff\" stroke-width=\"3\" "
                   "paint-order=\"stroke\">",
                   x + BAND - 3, top + 2);
        text(to, fault->text);
        buf_append_text(to, "</text>\n");
    }
}

static void draw_message(struct drawing *drawing, uint32_t index)
{
    struct buf *to = drawing->to;
    const struct sim_log_entry *entry = &drawing->entries[index];
    uint32_t from = x_of(entry->from), goal = x_of(entry->to);
    uint32_t y = y_of(drawing->sent_row[index]);
    if (arrives(drawing, entry)) {
        buf_printf(to, "<path d=\"M%u,%uL%u,%u\" stroke=\"#000\" marker-end=\"url(#head)\"/>\n",
                   from, y, goal, y_of(drawing->arrived_row[index]));
        return;
    }
    /* Lost: it ends in a cross halfway. On its way when all ended: it just fades out. */
    uint32_t half = (from + goal) / 2;
    buf_printf(to, "<path d=\"M%u,%uL%u,%u\" stroke=\"#000\" stroke-dasharray=\"4 3\"/>\n", from, y,
               half, y + ROW / 2);
    if (entry->kind == SIM_LOG_LOST)
        buf_printf(to, "<path d=\"M%u,%ul8,8m0,-8l-8,8\" stroke=\"#000\" stroke-width=\"2\"/>\n",
                   half - 4, y + ROW / 2 - 4);
}

static void draw_label(struct drawing *drawing, uint32_t index)
{
    struct buf *to = drawing->to;
    const struct sim_log_entry *entry = &drawing->entries[index];
    bool mark = entry->kind == SIM_LOG_MARK, right = mark || entry->to > entry->from;
    uint32_t x = x_of(entry->from), y = y_of(drawing->sent_row[index]);
    if (mark)
        buf_printf(to, "<rect x=\"%u\" y=\"%u\" width=\"8\" height=\"8\"/>\n", x - 4, y - 4);
    buf_printf(to,
               "<text x=\"%u\" y=\"%u\" text-anchor=\"%s\"%s stroke=\"#fff\" stroke-width=\"3\" "
               "paint-order=\"stroke\">",
               right ? x + 9 : x - 9, mark ? y + 4 : y - 2, right ? "start" : "end",
               mark ? " font-weight=\"bold\"" : "");
    text(to, entry->text);
    buf_append_text(to, "</text>\n");
}

static void draw_times(struct drawing *drawing)
{
    for (uint32_t row = 0; row < drawing->point_count; row++) {
        bool again = row > 0 && drawing->points[row].at_ns == drawing->points[row - 1].at_ns;
        if (!again)
            buf_printf(drawing->to,
                       "<text x=\"%u\" y=\"%u\" text-anchor=\"end\" fill=\"#333\">%.4f s</text>\n",
                       LEFT - 14, y_of(row) + 4, (double)drawing->points[row].at_ns / 1e9);
    }
}

static void draw_end(struct drawing *drawing, uint32_t y, uint32_t width)
{
    struct buf *to = drawing->to;
    if (drawing->of->violation) {
        buf_printf(to,
                   "<path d=\"M12,%uH%u\" stroke=\"#000\" stroke-width=\"3\"/>\n"
                   "<text x=\"12\" y=\"%u\" font-weight=\"bold\">%.4f s: ",
                   y, width - 12, y + 16, (double)drawing->end_ns / 1e9);
        text(to, drawing->of->violation);
        buf_append_text(to, "</text>\n");
    }
    buf_append_text(to, "</svg>\n");
}

void sim_diagram_write(const struct sim_diagram *diagram, struct buf *to)
{
    check(diagram->lane_count > 0);
    check(diagram->lane_count <= SIM_DIAGRAM_LANES_MAX);
    struct drawing *drawing = xcalloc(1, sizeof(*drawing));
    drawing->of = diagram;
    drawing->to = to;
    drawing->end_ns = diagram->violation ? diagram->told->violated_ns : UINT64_MAX;
    choose(drawing);
    arrange(drawing);
    uint32_t bottom = y_of(drawing->point_count) + ROW / 2;
    uint32_t width = x_of(diagram->lane_count - 1) + LANE_FIRST + LANE / 2;
    draw_head(drawing, width, bottom + 40);
    draw_lanes(drawing, bottom);
    draw_faults(drawing);
    for (uint32_t i = 0; i < drawing->entry_count; i++)
        if (drawing->entries[i].kind != SIM_LOG_MARK)
            draw_message(drawing, i);
    for (uint32_t i = 0; i < drawing->entry_count; i++)
        draw_label(drawing, i);
    draw_times(drawing);
    draw_end(drawing, bottom + 8, width);
    free(drawing);
}
