/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_RUNS_H
#define LIVE_RUNS_H

/* The runs that `tidemark chaos run` has left in a directory of its own layout,
 * DIRECTORY/NAME/TIME/{result.json,report.html}, for the console to show. The directory is the
 * user's and may hold anything: names are taken only if `chaos run` could have given them, no link
 * is followed, no more than a bounded part of anything is read. */

#include <stdbool.h>

#include <jansson.h>

#include "conflict/base/bytes.h"

/* Where `tidemark chaos run` writes, if not told otherwise, as seen from where it was started. */
#define RUNS_DIRECTORY "runs"

/* Those that have ended, newest first, RUNS_MAX at most: [{name, time, result, verdict, at_ms,
 * report}]; report is the path of its page in the control API. Empty if there is no directory. */
enum { RUNS_MAX = 20 };
json_t *runs_list(const char *directory);

/* Appends the report of one run. False: there is none, or it is none of ours. */
bool runs_read_report(const char *directory, const char *name, const char *time, struct buf *to);

#endif
