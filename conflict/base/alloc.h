/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

/* Allocation that aborts when memory runs out: every queue and size is bounded, so running out is
 * a crash like any other, and crashes are recovered from. Never returns NULL, also for size 0. */

#include <stddef.h>
#include <stdlib.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *at, size_t size);
char *xstrdup(const char *text);
/* Copies len bytes and adds a terminating NUL. */
char *xstrndup(const char *text, size_t len);

/* Runs fn(&variable) when the variable leaves its scope. */
#define cleanup(fn) __attribute__((cleanup(fn)))

/* Hands over what *slot owns: returns it and leaves NULL behind. */
static inline void *steal_pointer(void *slot)
{
    void **at = slot;
    void *value = *at;
    *at = NULL;
    return value;
}
#define steal(slot) ((__typeof__(*(slot)))steal_pointer(slot))

#endif
