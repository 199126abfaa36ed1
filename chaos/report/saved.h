/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_SAVED_H
#define REPORT_SAVED_H

/* What a run is judged by, line by line: operations for history.ndjson.gz, and all else that an
 * outcome holds up to its checks for events.ndjson, of which the first line is "run". Reading what
 * was written and writing it again gives the same bytes. */

#include <jansson.h>
#include <stdbool.h>

#include "chaos/report/lines.h"
#include "chaos/run/outcome.h"

enum { SAVED_FORMAT = 1, SAVED_LINE_MAX = 32 << 20 };

struct saved_sink {
    struct buf to;                          /* whole lines */
    void (*drain)(struct saved_sink *sink); /* called when much has gathered; empties `to` */
};

void saved_history_write(const struct outcome *outcome, struct saved_sink *sink);
void saved_events_write(const struct outcome *outcome, struct saved_sink *sink);

struct saved_reader {
    struct lines lines;
    struct outcome *outcome;
    uint32_t ledger_cap, item_cap;
    struct converge_item *items; /* of the scan that is being read */
    struct converge_scan *scan;  /* NULL: none is */
    uint32_t items_left;
    bool begun; /* the first line was read */
};

/* outcome was initialised for the scenario. */
void saved_reader_init(struct saved_reader *reader, struct outcome *outcome);
/* One line of events.ndjson, of history.ndjson.gz; events come first. False: `why` says what no run
 * could have written. */
bool saved_event_read(struct saved_reader *reader, struct bytes line, struct buf *why);
bool saved_history_read(struct saved_reader *reader, struct bytes line, struct buf *why);
/* After the last line of events.ndjson: whether it was all. */
bool saved_events_end(const struct saved_reader *reader, struct buf *why);

#endif
