/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_LOG_H
#define REGION_LOG_H

/* The process's log: one line an event on standard error, key=value, so that it reads well and
 * greps well: time=2026-11-30T12:00:00.000Z level=info region=us-east-1 msg="serving on
 * 127.0.0.1:8001" The cores never log; they trace into log_trace. Safe from any thread: a line is
 * one write(2). */

#include <stdbool.h>

#include "conflict/base/bytes.h"
#include "conflict/base/trace.h"

struct log {
    int file;
    enum trace_level level_min;
    const char *region; /* static */
};

void log_line(const struct log *log, enum trace_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A sink for cores; log must outlive it. */
struct trace log_trace(const struct log *log);

const char *log_level_name(enum trace_level level);
bool log_level_find(struct bytes name, enum trace_level *ret);

#endif
