/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

/* Where a run keeps its files, and that no other run does so at the same time. While a run goes on,
 * the lock's file names its data directory and the mark of its processes, so that after a crash the
 * next one knows what to remove and whom to end. */

#include <stdbool.h>

#include "chaos/run/leftovers.h"
#include "conflict/base/bytes.h"

struct output {
    char *directory;               /* of the reports */
    char *data;                    /* of the Regions: directory/data */
    char *journal;                 /* home/.undo */
    char *lock;                    /* home/.lock */
    char mark[LEFTOVERS_MARK_MAX]; /* of the processes that we start from now on */
    int lock_fd;
};

/* Makes the directories, sees that they are ours and have room, takes the lock, and clears away
 * what a crashed run has left. False: error says why. output_close either way. */
bool output_open(struct output *output, const char *home, const char *directory, struct buf *error);
/* Directories for the data of these Regions. */
bool output_make_data(struct output *output, const char *region, struct buf *error);
/* The Regions' data is not needed any more, and its room may be. Ends what still bears the mark. */
void output_drop_data(struct output *output);
void output_close(struct output *output, bool keep_data);

#endif
