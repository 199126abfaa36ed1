/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_DISK_INTERNAL_H
#define SHIM_DISK_INTERNAL_H

/* Between disk.c, which stands in for the calls and keeps account of files, and disk_rules.c, which
 * says what becomes of them. */

#include <stdbool.h>
#include <stddef.h>

#include "chaos/shim/disk.h"

extern struct disk_control *control; /* NULL: the library is loaded and has nothing to do */

/* What becomes of a call: 0 or an errno. *len may be cut; *torn: the process ends after it. */
int disk_strike(uint32_t files, uint32_t calls, size_t *len, bool *torn);
/* Called on the way of every call, as nobody tells us that rules have changed. */
void disk_look_at_rules(void);
/* A table has been mapped; the mapping goes. */
void disk_keep_map(void *at, size_t len);
void disk_drop_map(const void *at);

#endif
