/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_RENDER_H
#define LIVE_RENDER_H

/* The control API's answers as a person reads them: aligned columns, words before numbers, no
 * colour. */

#include <jansson.h>

#include "conflict/base/bytes.h"

void render_status(json_t *status, struct buf *to);
void render_conflicts(json_t *conflicts, struct buf *to);
/* One line each. */
void render_link(json_t *link, struct buf *to);
void render_region(json_t *region, struct buf *to);

#endif
