/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of events and the hash of a run. */

#include "chaos/sim/sim.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

void sim_init(struct sim *sim, uint64_t seed)
{
    *sim = (struct sim){0};
    rng_init(&sim->rng, seed);
    sim->hash = seed;
}

void sim_deinit(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->heap_len; i++)
        sim_event_free(&sim->heap[i]);
    free(sim->heap);
    *sim = (struct sim){0};
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

static void sift_up(struct sim *sim, uint32_t index)
{
    struct sim_event moved = sim->heap[index];
    while (index > 0) {
        uint32_t parent = (index - 1) / 2;
        if (!before(&moved, &sim->heap[parent]))
            break;
        sim->heap[index] = sim->heap[parent];
        index = parent;
    }
    sim->heap[index] = moved;
}

static void sift_down(struct sim *sim, uint32_t index)
{
    struct sim_event moved = sim->heap[index];
    for (;;) {
        uint32_t child = 2 * index + 1;
        if (child >= sim->heap_len)
            break;
        if (child + 1 < sim->heap_len && before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!before(&sim->heap[child], &moved))
            break;
        sim->heap[index] = sim->heap[child];
        index = child;
    }
    sim->heap[index] = moved;
}

void sim_schedule(struct sim *sim, uint64_t at_ns, const struct sim_event *event)
{
    check(at_ns >= sim->now_ns);
    if (sim->heap_len == sim->heap_cap) {
        sim->heap_cap = sim->heap_cap ? sim->heap_cap * 2 : 256;
        sim->heap = xrealloc(sim->heap, sim->heap_cap * sizeof(*sim->heap));
    }
    struct sim_event *slot = &sim->heap[sim->heap_len++];
    *slot = *event;
    slot->at_ns = at_ns;
    slot->sequence = sim->next_sequence++;
    if (event->bytes.len) {
        uint8_t *copy = xmalloc(event->bytes.len);
        memcpy(copy, event->bytes.at, event->bytes.len);
        slot->bytes.at = copy;
    } else {
        slot->bytes = BYTES_NONE;
    }
    sift_up(sim, sim->heap_len - 1);
}

bool sim_next(struct sim *sim, uint64_t until_ns, struct sim_event *ret)
{
    if (sim->heap_len == 0 || sim->heap[0].at_ns > until_ns) {
        if (until_ns > sim->now_ns)
            sim->now_ns = until_ns;
        return false;
    }
    *ret = sim->heap[0];
    sim->heap[0] = sim->heap[--sim->heap_len];
    if (sim->heap_len)
        sift_down(sim, 0);
    check(ret->at_ns >= sim->now_ns);
    sim->now_ns = ret->at_ns;
    sim->event_count++;
    return true;
}

void sim_event_free(struct sim_event *event)
{
    free((void *)event->bytes.at);
    event->bytes = BYTES_NONE;
}

void sim_note(struct sim *sim, const void *at, size_t len)
{
    sim->hash = XXH3_64bits_withSeed(at, len, sim->hash);
}

void sim_note_u64(struct sim *sim, uint64_t value)
{
    sim_note(sim, &value, sizeof(value));
}
