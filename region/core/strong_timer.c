/* SPDX-License-Identifier: Apache-2.0 */
/* When each group wants to be looked at: a binary heap by deadline, as there may be thousands of
 * groups, nearly all of them idle. */

#include "region/core/strong_internal.h"

static void heap_put(struct strong_region *all, uint32_t at, struct strong *strong)
{
    all->heap[at] = strong;
    strong->heap_at = at;
}

static void heap_up(struct strong_region *all, uint32_t at)
{
    struct strong *strong = all->heap[at];
    while (at > 0 && all->heap[(at - 1) / 2]->deadline > strong->deadline) {
        heap_put(all, at, all->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(all, at, strong);
}

static void heap_down(struct strong_region *all, uint32_t at)
{
    struct strong *strong = all->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= all->heap_count)
            break;
        if (child + 1 < all->heap_count &&
            all->heap[child + 1]->deadline < all->heap[child]->deadline)
            child++;
        if (all->heap[child]->deadline >= strong->deadline)
            break;
        heap_put(all, at, all->heap[child]);
        at = child;
    }
    heap_put(all, at, strong);
}

void strong_timer_remove(struct strong_region *all, struct strong *strong)
{
    uint32_t at = strong->heap_at;
    if (at == UINT32_MAX)
        return;
    strong->heap_at = UINT32_MAX;
    struct strong *last = all->heap[--all->heap_count];
    if (last == strong)
        return;
    heap_put(all, at, last);
    heap_up(all, at);
    heap_down(all, last->heap_at);
}

void strong_timer_set(struct strong_region *all, struct strong *strong, uint64_t deadline)
{
    if (strong->heap_at == UINT32_MAX) {
        if (all->heap_count == all->heap_cap) {
            all->heap_cap = all->heap_cap ? all->heap_cap * 2 : 16;
            all->heap = xrealloc(all->heap, all->heap_cap * sizeof(struct strong *));
        }
        strong->deadline = deadline;
        heap_put(all, all->heap_count, strong);
        heap_up(all, all->heap_count++);
        return;
    }
    uint64_t before = strong->deadline;
    strong->deadline = deadline;
    if (deadline < before)
        heap_up(all, strong->heap_at);
    else if (deadline > before)
        heap_down(all, strong->heap_at);
}
