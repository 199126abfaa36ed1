/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

/* Where a core tells what it did, one line an event, in fixed words: transcripts in tests, the log
 * in a process. A core never prints by itself. */

enum trace_level { TRACE_DEBUG, TRACE_INFO, TRACE_WARN, TRACE_ERROR };

struct trace {
    /* May be NULL: then nothing is traced. line has no newline and is borrowed for the call. */
    void (*line)(void *context, enum trace_level level, const char *line);
    void *context;
    enum trace_level level_min;
};

/* Formats at most 511 characters. Costs one comparison when the level is off. */
void trace_emit(const struct trace *trace, enum trace_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
