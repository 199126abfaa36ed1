/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

/* The parts of report.html that its files share. Markup goes in through page_put and page_printf,
 * which write what this program says; whatever was read or measured as a text goes in through
 * page_text. All tags are closed and all values quoted, so the page is XML as well.
 *
 * A drawing has no width of its own: places along the time are in percent, so that it fills a phone
 * as well as a desk without its letters growing or shrinking. Curves, which SVG has no percent for,
 * lie in an inner drawing that is stretched (page_curves). */

#include "chaos/report/measures.h"
#include "chaos/run/outcome.h"
#include "conflict/base/bytes.h"

struct page {
    const struct outcome *outcome;
    const struct measures *measures;
    struct buf to;
    struct buf left_out; /* sentences: what is not on the page, in markup */
    uint32_t points_max; /* of a curve; 0: no drawings of the whole run */
    uint32_t rows_max;   /* of a list that grows with the run */
    uint32_t ids;        /* given to titles so far */
};

enum { PAGE_X_MAX = 10000, PAGE_Y_MAX = 1000 }; /* of the inner drawing */

void page_put(struct page *page, const char *markup);
void page_printf(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_text(struct page *page, const char *text);
void page_bytes(struct page *page, struct bytes text);
void page_region(struct page *page, uint8_t region);
void page_duration(struct page *page, uint64_t ns);
/* Seconds since the beginning. */
void page_moment(struct page *page, uint64_t at_ns);
void page_count(struct page *page, uint64_t count);
/* A table that may be wider than a phone: it scrolls within itself. Opens head and body; columns
 * end with NULL, one that begins with # is of numbers. */
void page_table(struct page *page, const char *caption, const char *const *columns);
void page_table_end(struct page *page);
/* Notes that of so many things only some are shown; nothing if all are. */
void page_cut(struct page *page, const char *what, uint64_t shown, uint64_t count);
/* Opens a drawing with its title and description for those who do not see it. */
void page_svg(struct page *page, const char *class, uint32_t height, const char *title,
              const char *description);
/* Opens the inner drawing; close it with </svg>. */
void page_curves(struct page *page);
/* A sample of how something is drawn, and its name. */
void page_legend(struct page *page, const char *class, const char *name);

/* The place of a moment, in percent of the run and in units of PAGE_X_MAX. */
double page_percent(const struct page *page, uint64_t at_ns);

/* ---- Sections, in their order ---- */

void page_figures(struct page *page); /* html_figures.c: expectations, RPO, RTO, staleness */
void page_windows(struct page *page); /* html_window.c: what shows a violation */
bool page_has_windows(const struct page *page);
void page_timeline(struct page *page);  /* html_timeline.c */
void page_losses(struct page *page);    /* html_losses.c: lost updates and lost writes */
void page_staleness(struct page *page); /* html_staleness.c */
void page_causes(struct page *page);    /* html_causes.c: phases, faults, events, checkers */

extern const char *const page_style[]; /* html_style.c; ends with NULL, as does: */
extern const char *const page_script[];
extern const char page_script_hash[]; /* SHA-256 of all of it, base64: no other script may run */

#endif
