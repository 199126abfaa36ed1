/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

/* An outcome as files: result.json for machines (result.schema.json), junit.xml for CI, report.html
 * for people, and the history and events, from which a run can be judged again. */

#include <stdbool.h>

#include "chaos/run/outcome.h"
#include "conflict/base/bytes.h"

void report_result(const struct outcome *outcome, struct buf *to);
void report_result_schema(struct buf *to);
void report_junit(const struct outcome *outcome, struct buf *to);
/* One page: no script is needed, nothing is fetched; at most budgets.report_bytes. */
void report_html(const struct outcome *outcome, struct buf *to);

/* Writes result.json, junit.xml, report.html, history.ndjson.gz, events.ndjson, scenario.yaml and
 * seed into the directory, each whole or not at all. */
bool report_write(const struct outcome *outcome, const char *directory, struct buf *error);
/* Fills what the runner would have filled (up to the checks) from such a directory, and its
 * scenario, the drawn faults included. Nothing is believed: a file that no run could have written
 * is refused by file and line. Either way the caller deinits both. */
bool report_read(const char *directory, struct scenario *ret_scenario, struct outcome *ret,
                 struct buf *error);

#endif
