/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a log line. Whatever a client or a peer sent may end up in a message, so quotes
 * and all but printable ASCII are escaped: no input can forge a second line, or speak to a
 * terminal. */

#include "region/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "conflict/base/check.h"

static const char *const level_names[] = {
    [TRACE_DEBUG] = "debug",
    [TRACE_INFO] = "info",
    [TRACE_WARN] = "warn",
    [TRACE_ERROR] = "error",
};

enum { MESSAGE_MAX = 1024, LINE_MAX_LEN = 4 * MESSAGE_MAX + 256 };

const char *log_level_name(enum trace_level level)
{
    check(level <= TRACE_ERROR);
    return level_names[level];
}

bool log_level_find(struct bytes name, enum trace_level *ret)
{
    for (unsigned i = 0; i < array_len(level_names); i++) {
        if (bytes_is(name, level_names[i])) {
            *ret = (enum trace_level)i;
            return true;
        }
    }
    return false;
}

/* Writes at most four bytes for one. */
static char *escape(char *to, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    if (c == '"' || c == '\\') {
        *to++ = '\\';
        *to++ = (char)c;
    } else if (c < 0x20 || c >= 0x7f) {
        *to++ = '\\';
        *to++ = 'x';
        *to++ = hex[c >> 4];
        *to++ = hex[c & 15];
    } else {
        *to++ = (char)c;
    }
    return to;
}

static void log_message(const struct log *log, enum trace_level level, const char *message)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm day;
    gmtime_r(&now.tv_sec, &day);
    char line[LINE_MAX_LEN];
    char *at = line + strftime(line, 32, "time=%Y-%m-%dT%H:%M:%S", &day);
    at += snprintf(at, 128, ".%03dZ level=%s region=%.32s msg=\"", (int)(now.tv_nsec / 1000000),
                   level_names[level], log->region);
    for (const char *from = message; *from; from++)
        at = escape(at, (unsigned char)*from);
    *at++ = '"';
    *at++ = '\n';
    /* A log that cannot be written must not stop the Region. */
    ssize_t written = write(log->file, line, (size_t)(at - line));
    (void)written;
}

void log_line(const struct log *log, enum trace_level level, const char *format, ...)
{
    if (level < log->level_min)
        return;
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    log_message(log, level, message);
}

static void trace_line(void *context, enum trace_level level, const char *line)
{
    log_message(context, level, line);
}

struct trace log_trace(const struct log *log)
{
    return (struct trace){trace_line, (void *)log, log->level_min};
}
