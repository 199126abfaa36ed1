/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TEXT_H
#define LIVE_TEXT_H

/* Formatted text of any length, in memory that the caller frees. */

#include <stdarg.h>

char *text_new(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *text_new_list(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

#endif
