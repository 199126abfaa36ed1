/* SPDX-License-Identifier: Apache-2.0 */
/* Measured, then written. */

#include "chaos/live/text.h"

#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

char *text_new_list(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    check(len >= 0);
    char *made = xmalloc((size_t)len + 1);
    vsnprintf(made, (size_t)len + 1, format, again);
    va_end(again);
    return made;
}

char *text_new(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *made = text_new_list(format, args);
    va_end(args);
    return made;
}
