/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_LEFTOVERS_H
#define RUN_LEFTOVERS_H

/* Processes that a run has started, found by a mark that they have inherited in their environment.
 * Regions and a workload's program die with the harness by themselves; this is for what the program
 * had started, if its keeper was killed as well. */

#include <stddef.h>

enum { LEFTOVERS_MARK_MAX = 64 };

/* Marks all that we start from here on. */
void leftovers_begin(char ret_mark[LEFTOVERS_MARK_MAX]);
/* Kills all that bear it, but ourselves. Returns how many; a mark that is none of ours has none. */
int leftovers_kill(const char *mark);

#endif
