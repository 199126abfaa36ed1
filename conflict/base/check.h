/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/* An assertion that stays on in release builds: a wrong replica is worse than a dead one. One
 * condition each, so that the message names the broken one. */

#include <stddef.h>

_Noreturn void check_failed(const char *expression, const char *file, int line);

#define check(x) ((x) ? (void)0 : check_failed(#x, __FILE__, __LINE__))

/* For a place that no input can reach, such as the end of an exhaustive switch. */
#define unreachable() check_failed("unreachable", __FILE__, __LINE__)

#define array_len(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
