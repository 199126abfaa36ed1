/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_SAVED_H
#define REPORT_SAVED_H

/* What a run is judged by, line by line: operations for history.ndjson.gz, and all else that an
 * outcome holds up to its checks for events.ndjson, of which the first line is "run". The last line
 * of either is its end record: how many lines are above it, and their CRC-32C, so that a file that
 * was cut is not taken for a run that lost something. Reading what was written and writing it again
 * gives the same bytes. */

#include <jansson.h>
#include <stdbool.h>

#include "chaos/report/lines.h"
#include "chaos/run/outcome.h"

enum { SAVED_FORMAT = 2, SAVED_LINE_MAX = 32 << 20 };

struct saved_sum { /* of the lines so far */
    uint64_t lines;
    uint32_t crc;
    bool ended; /* its end record was read */
};

struct saved_sink {
    struct buf to;                          /* whole lines */
    size_t summed;                          /* bytes of `to` that are in sum */
    struct saved_sum sum;                   /* of the file that is being written */
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
    struct saved_sum events, history;
};

/* outcome was initialised for the scenario. */
void saved_reader_init(struct saved_reader *reader, struct outcome *outcome);
/* One line of events.ndjson, of history.ndjson.gz; events come first. False: `why` says what no run
 * could have written. */
bool saved_event_read(struct saved_reader *reader, struct bytes line, struct buf *why);
bool saved_history_read(struct saved_reader *reader, struct bytes line, struct buf *why);
/* After the last line of the file: whether it was all. */
bool saved_events_end(const struct saved_reader *reader, struct buf *why);
bool saved_history_end(const struct saved_reader *reader, struct buf *why);

#endif
