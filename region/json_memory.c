/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks, bumped from the front. A chunk is empty again when as much was given back to it as was
 * taken: a tree of JSON is released whole and mostly soon, and one that is kept (region/api/json.c)
 * keeps its chunk. Chunks are aligned to their size, so that a piece tells where its own begins;
 * what is large has one to itself. */

#include "region/json_memory.h"

#include <jansson.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { CHUNK_BYTES = 16 * 1024, ALIGNMENT = 16, LARGE_BYTES_MIN = CHUNK_BYTES / 2 };

struct chunk {
    size_t used;
    size_t live; /* pieces not yet given back */
    alignas(ALIGNMENT) unsigned char bytes[];
};

/* What is not current is not taken from; a spare is empty. Either may be NULL. */
static _Thread_local struct chunk *current, *spare;

static size_t round_up(size_t size, size_t to)
{
    check(size <= SIZE_MAX - to);
    return (size + to - 1) & ~(to - 1);
}

static struct chunk *chunk_new(size_t size)
{
    struct chunk *chunk = aligned_alloc(CHUNK_BYTES, round_up(sizeof(*chunk) + size, CHUNK_BYTES));
    check(chunk != NULL);
    chunk->used = chunk->live = 0;
    return chunk;
}

static void *take_large(size_t size)
{
    struct chunk *chunk = chunk_new(size);
    chunk->live = 1;
    return chunk->bytes;
}

static void next_chunk(void)
{
    current = spare ? steal(&spare) : chunk_new(CHUNK_BYTES - sizeof(struct chunk));
}

static void *take(size_t size)
{
    if (size >= LARGE_BYTES_MIN)
        return take_large(size);
    size_t rounded = round_up(size, ALIGNMENT);
    if (!current || rounded > CHUNK_BYTES - sizeof(struct chunk) - current->used)
        next_chunk();
    void *at = current->bytes + current->used;
    current->used += rounded;
    current->live++;
    return at;
}

static void give_back(void *at)
{
    struct chunk *chunk = (struct chunk *)((uintptr_t)at & ~(uintptr_t)(CHUNK_BYTES - 1));
    check(chunk->live > 0);
    if (--chunk->live > 0)
        return;
    if (chunk == current) {
        chunk->used = 0;
    } else if (chunk->used > 0 && !spare) {
        chunk->used = 0;
        spare = chunk;
    } else {
        free(chunk);
    }
}

void json_memory_install(void)
{
    json_set_alloc_funcs(take, give_back);
}
