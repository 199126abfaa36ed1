/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

/* One run of a scenario on a cluster of its own, from the first process to the report. Whatever
 * happens, processes end, faults are undone and what is known is written; a run that was killed
 * leaves a journal, from which the next one in that place cleans up.
 *
 *     start --all serve--> prepare --tables--> phases --over, stopped--> drain --answered--> heal
 *       --> settle --all equal, or time is over--> look, ledgers, scan (, age, scan again),
 *       recount --> end
 */

#include <stdbool.h>

#include "chaos/run/outcome.h"

struct run_options {
    struct scenario *scenario; /* as read; faults are drawn into it */
    const char *file;          /* its name, for reports */
    struct bytes text;
    uint64_t seed;
    const char *home;      /* directory of the lock and the journal; made */
    const char *directory; /* of the reports, in home or the same; made */
    bool keep_data;        /* of the Regions, in directory/data */
    bool quiet;            /* nothing but the verdict */
};

/* Returns the exit code. The verdict and the report's path go to standard output, progress too
 * unless quiet, trouble to standard error. */
enum outcome_exit run_scenario(const struct run_options *options);

#endif
