/* SPDX-License-Identifier: Apache-2.0 */
/* One block for each thread, bumped from the front and empty again when as much was given back as
 * was taken; a tree of JSON is released whole, so that comes soon. What does not fit is malloc's.
 */

#include "region/json_memory.h"

#include <jansson.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "conflict/base/alloc.h"

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

static _Thread_local struct {
    alignas(ALIGNMENT) unsigned char bytes[BLOCK_BYTES];
    size_t used;
    size_t live; /* pieces not yet given back */
} block;

static void *take(size_t size)
{
    if (size > BLOCK_BYTES - block.used)
        return xmalloc(size);
    void *at = block.bytes + block.used;
    block.used += (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    block.live++;
    return at;
}

static void give_back(void *at)
{
    if ((uintptr_t)at - (uintptr_t)block.bytes >= BLOCK_BYTES) {
        free(at);
        return;
    }
    if (--block.live == 0)
        block.used = 0;
}

void json_memory_install(void)
{
    json_set_alloc_funcs(take, give_back);
}
