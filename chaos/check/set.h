/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_SET_H
#define CHECK_SET_H

/* What became of the elements of a set (INSERT, SCAN), in the manner of Jepsen's set-full. An
 * element is known from when its INSERT returned or, if earlier, the first scan that saw it did.
 *
 *   lost        known, and missed by a scan that began after it was known and last seen
 *   never read  seen by no scan, and none began late enough to have to
 *   unsettled   missed by the last scan, which began before it was known or last seen
 *   stale       missed by a scan that began after it was known, and seen later
 *   duplicated  twice in one scan
 *   phantom     seen, and never inserted, refused, or before its INSERT was sent
 *
 * In a set no element may be lost, duplicated or phantom; stale ones are wrong if `linearizable`.
 */

#include <stdbool.h>

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

struct set_options {
    bool linearizable; /* strong scans must not be stale either */
    bool allow_lost;   /* count them and leave the judgement to the RPO (rpo.h) */
};

/* Figures: elements, scans, stable, lost, lost_info (lost though never acknowledged), never_read,
 * unsettled, stale, duplicated, phantoms; stable_{p0,p50,p95,p99,max}_ns: from known to seen for
 * good, lost_{...}_ns: from known to missed for good. */
void check_set(const struct history *history, const struct set_options *options,
               struct verdict *ret);

#endif
