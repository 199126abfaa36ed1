/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_LANE_H
#define REPORT_LANE_H

/* What html_timeline.c and html_curves.c share: how a drawing of a lane is opened, and what all
 * lanes have in common. */

#include "chaos/report/page.h"

/* What all lanes have in common, so that they can be compared. */
struct scales {
    double rate;              /* operations a second */
    double fastest, slowest;  /* ms; powers of ten */
    double lag_ms, offset_ms; /* the greatest; 0: not drawn */
    uint32_t groups;          /* samples that go into one step */
};

/* ---- html_timeline.c ---- */

/* Opens a figure and its caption; lane_plot closes the caption and opens the drawing, and
 * lane_end closes both. */
void lane_figure(struct page *page, const char *name);
void lane_plot(struct page *page, uint8_t region, uint32_t height, const char *name,
               const char *description);
void lane_end(struct page *page);
/* Shades the time in which some fault concerns the Region. */
void lane_bands(struct page *page, uint8_t region);

/* ---- html_curves.c ---- */

void curves_scale(const struct page *page, struct scales *ret);
void curves_put(struct page *page, uint8_t region, const struct scales *scales);

#endif
