/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

/* Memory with one lifetime, such as that of a request: many small allocations, one release. The
 * first block is kept across arena_reset, so a steady stream of requests allocates nothing. */

#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
    struct arena_block *first; /* kept across resets; NULL before the first allocation */
    struct arena_block *last;  /* allocations come from here */
    size_t used;               /* bytes handed out since the last reset */
};

void arena_init(struct arena *arena);
void arena_deinit(struct arena *arena);
/* Frees all blocks but the first. Everything allocated before is gone. */
void arena_reset(struct arena *arena);
/* 16-byte aligned, uninitialised. Never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
/* Zeroed. */
void *arena_zalloc(struct arena *arena, size_t size);
void *arena_copy(struct arena *arena, const void *at, size_t len);
/* Room for one more element of `size` bytes in an array that has `count`: the same array while they
 * are fewer than *cap, else a copy of twice the room (64 at first), the rest zeroed. */
void *arena_grow(struct arena *arena, void *at, uint32_t count, uint32_t *cap, size_t size);

#define arena_new(arena, type) ((type *)arena_zalloc((arena), sizeof(type)))
#define arena_array(arena, type, count) ((type *)arena_zalloc((arena), sizeof(type) * (count)))

#endif
