/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of blocks, bumped from the front. A request larger than a block gets a block of its own
 * size, so the only bound is the one the caller puts on its input. */

#include "conflict/base/arena.h"

#include <stdalign.h>
#include <string.h>

#include "conflict/base/alloc.h"

enum { BLOCK_SIZE = 4096 - 64, ALIGNMENT = 16 };

struct arena_block {
    struct arena_block *next;
    size_t size; /* of data */
    size_t used; /* of data, always a multiple of ALIGNMENT */
    alignas(ALIGNMENT) unsigned char data[];
};

static struct arena_block *block_new(size_t size)
{
    struct arena_block *block = xmalloc(sizeof(*block) + size);
    block->next = NULL;
    block->size = size;
    block->used = 0;
    return block;
}

static void blocks_free(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

void arena_deinit(struct arena *arena)
{
    blocks_free(arena->first);
    *arena = (struct arena){0};
}

void arena_reset(struct arena *arena)
{
    if (!arena->first)
        return;
    blocks_free(arena->first->next);
    arena->first->next = NULL;
    arena->first->used = 0;
    arena->last = arena->first;
    arena->used = 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct arena_block *last = arena->last;
    if (!last || last->size - last->used < rounded) {
        struct arena_block *block = block_new(rounded > BLOCK_SIZE ? rounded : BLOCK_SIZE);
        if (last)
            last->next = block;
        else
            arena->first = block;
        arena->last = last = block;
    }
    void *at = last->data + last->used;
    last->used += rounded;
    arena->used += rounded;
    return at;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

void *arena_copy(struct arena *arena, const void *at, size_t len)
{
    void *copy = arena_alloc(arena, len);
    if (len)
        memcpy(copy, at, len);
    return copy;
}

void *arena_grow(struct arena *arena, void *at, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap)
        return at;
    *cap = *cap == 0 ? 64 : *cap * 2;
    void *grown = arena_zalloc(arena, *cap * size);
    if (count > 0)
        memcpy(grown, at, count * size);
    return grown;
}
