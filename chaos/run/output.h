/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

/* Where a run keeps its files, and that no other run does so at the same time. The lock's file
 * names the data directory while a run goes on, so that after a crash the next one knows what to
 * remove.
 */

#include <stdbool.h>

#include "conflict/base/bytes.h"

struct output {
    char *directory; /* of the reports */
    char *data;      /* of the Regions: directory/data */
    char *journal;   /* home/.undo */
    char *lock;      /* home/.lock */
    int lock_fd;
};

/* Makes the directories, takes the lock, and clears away what a crashed run has left. False: error
 * says why. output_close either way. */
bool output_open(struct output *output, const char *home, const char *directory, struct buf *error);
/* Directories for the data of these Regions. */
bool output_make_data(struct output *output, const char *region, struct buf *error);
void output_close(struct output *output, bool keep_data);

#endif
