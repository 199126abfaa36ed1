/* SPDX-License-Identifier: Apache-2.0 */
/* See alloc.h for why running out of memory aborts. */

#include "conflict/base/alloc.h"

#include <string.h>

#include "conflict/base/check.h"

void *xmalloc(size_t size)
{
    void *at = malloc(size ? size : 1);
    check(at != NULL);
    return at;
}

void *xcalloc(size_t count, size_t size)
{
    void *at = calloc(count ? count : 1, size ? size : 1);
    check(at != NULL);
    return at;
}

void *xrealloc(void *at, size_t size)
{
    void *moved = realloc(at, size ? size : 1);
    check(moved != NULL);
    return moved;
}

char *xstrdup(const char *text)
{
    return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t len)
{
    char *copy = xmalloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}
