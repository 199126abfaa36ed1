/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a trace line for whoever listens. */

#include "conflict/base/trace.h"

#include <stdarg.h>
#include <stdio.h>

void trace_emit(const struct trace *trace, enum trace_level level, const char *format, ...)
{
    if (!trace || !trace->line || level < trace->level_min)
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    trace->line(trace->context, level, line);
}
