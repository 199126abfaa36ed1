/* SPDX-License-Identifier: Apache-2.0 */
/* The ring is in order of sequence, so a peer's place in it is found by bisection and costs the
 * peer nothing to keep. The histogram is log-linear: 32 buckets to every doubling of microseconds,
 * so a bucket is about 3 % wide and its middle at most 1.6 % off; a slice of ten seconds is
 * allocated by the first lag that falls into it. */

#include "replicator/lag.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/version.h"

/* ---- When was what committed ---- */

enum { RING_FIRST_CAP = 16 };

void lag_ring_init(struct lag_ring *ring, uint64_t seq, uint64_t bytes)
{
    *ring = (struct lag_ring){.base = {.seq = seq, .bytes = bytes}};
}

void lag_ring_deinit(struct lag_ring *ring)
{
    free(ring->at);
    *ring = (struct lag_ring){0};
}

static struct lag_entry *slot(const struct lag_ring *ring, uint32_t i)
{
    return &ring->at[(ring->head + i) & (ring->cap - 1)];
}

const struct lag_entry *lag_ring_at(const struct lag_ring *ring, uint32_t i)
{
    check(i < ring->count);
    return slot(ring, i);
}

static void ring_grow(struct lag_ring *ring)
{
    uint32_t cap = ring->cap ? ring->cap * 2 : RING_FIRST_CAP;
    struct lag_entry *at = xcalloc(cap, sizeof(at[0]));
    for (uint32_t i = 0; i < ring->count; i++)
        at[i] = *slot(ring, i);
    free(ring->at);
    ring->at = at;
    ring->cap = cap;
    ring->head = 0;
}

/* Of two neighbours the later sequence and the earlier time stay: a lag is never shown too small.
 */
static void ring_thin(struct lag_ring *ring)
{
    uint32_t old = ring->count / 4 * 3 & ~1u;
    uint32_t to = 0;
    for (uint32_t i = 0; i < old; i += 2) {
        struct lag_entry merged = *slot(ring, i + 1);
        merged.mono_ns = slot(ring, i)->mono_ns;
        *slot(ring, to++) = merged;
    }
    for (uint32_t i = old; i < ring->count; i++)
        *slot(ring, to++) = *slot(ring, i);
    ring->count = to;
}

void lag_ring_push(struct lag_ring *ring, struct lag_entry entry)
{
    if (ring->count == ring->cap) {
        if (ring->cap < LAG_RING_MAX)
            ring_grow(ring);
        else
            ring_thin(ring);
    }
    *slot(ring, ring->count++) = entry;
}

void lag_ring_drop(struct lag_ring *ring, uint64_t seq)
{
    while (ring->count && slot(ring, 0)->seq <= seq) {
        ring->base = *slot(ring, 0);
        ring->head = (ring->head + 1) & (ring->cap - 1);
        ring->count--;
    }
    if (ring->count == 0 && ring->cap > RING_FIRST_CAP) {
        free(ring->at);
        ring->at = NULL;
        ring->cap = ring->head = 0;
    }
}

uint32_t lag_ring_find(const struct lag_ring *ring, uint64_t seq)
{
    uint32_t low = 0, high = ring->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (slot(ring, middle)->seq <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t lag_distance(uint64_t from_seq, uint64_t to_seq)
{
    if (to_seq <= from_seq)
        return 0;
    uint64_t epoch = version_epoch(to_seq);
    return to_seq - (epoch == version_epoch(from_seq) ? from_seq : version_epoch_base(epoch));
}

/* ---- The last minute's lags ---- */

enum { SUB_BITS = 5, OCTAVES = 28, BUCKETS = (OCTAVES + 1) << SUB_BITS };
static const uint64_t SLICE_NS = 10000000000;

struct lag_slice {
    uint64_t number; /* mono_ns / SLICE_NS */
    uint64_t total;
    uint64_t buckets[BUCKETS];
};

/* Bucket b below 32 holds b microseconds; above, 32 buckets a doubling: the leading bit says which
 * doubling and the five bits behind it which bucket. */
static uint32_t bucket_of(uint64_t us)
{
    if (us < 1u << SUB_BITS)
        return (uint32_t)us;
    uint32_t octave = 63 - (uint32_t)__builtin_clzll(us) - SUB_BITS;
    if (octave >= OCTAVES)
        return BUCKETS - 1;
    return ((octave + 1) << SUB_BITS) + (uint32_t)((us >> octave) & ((1u << SUB_BITS) - 1));
}

/* The middle of a bucket. */
static double bucket_ms(uint32_t bucket)
{
    if (bucket < 1u << SUB_BITS)
        return ((double)bucket + 0.5) / 1000;
    uint32_t octave = (bucket >> SUB_BITS) - 1;
    uint64_t low = (uint64_t)((1u << SUB_BITS) + (bucket & ((1u << SUB_BITS) - 1))) << octave;
    return ((double)low + (double)((uint64_t)1 << octave) / 2) / 1000;
}

void lag_histogram_deinit(struct lag_histogram *histogram)
{
    for (uint32_t i = 0; i < LAG_SLICES; i++)
        free(steal(&histogram->slices[i]));
}

void lag_histogram_record(struct lag_histogram *histogram, uint64_t mono_ns, uint64_t lag_ns,
                          uint64_t writes)
{
    uint64_t number = mono_ns / SLICE_NS;
    struct lag_slice **at = &histogram->slices[number % LAG_SLICES];
    if (!*at || (*at)->number != number) {
        if (!*at)
            *at = xmalloc(sizeof(**at));
        memset(*at, 0, sizeof(**at));
        (*at)->number = number;
    }
    (*at)->total += writes;
    (*at)->buckets[bucket_of(lag_ns / 1000)] += writes;
}

static bool slice_counts(const struct lag_slice *slice, uint64_t mono_ns)
{
    return slice && slice->number + LAG_SLICES > mono_ns / SLICE_NS;
}

void lag_histogram_expire(struct lag_histogram *histogram, uint64_t mono_ns)
{
    for (uint32_t i = 0; i < LAG_SLICES; i++)
        if (!slice_counts(histogram->slices[i], mono_ns))
            free(steal(&histogram->slices[i]));
}

double lag_histogram_quantile_ms(const struct lag_histogram *histogram, uint64_t mono_ns,
                                 double quantile)
{
    const struct lag_slice *slices[LAG_SLICES];
    uint32_t count = 0;
    uint64_t total = 0;
    for (uint32_t i = 0; i < LAG_SLICES; i++) {
        if (!slice_counts(histogram->slices[i], mono_ns))
            continue;
        slices[count++] = histogram->slices[i];
        total += histogram->slices[i]->total;
    }
    if (total == 0)
        return 0;
    uint64_t rank = (uint64_t)(quantile * (double)(total - 1));
    uint64_t seen = 0;
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (uint32_t i = 0; i < count; i++)
            seen += slices[i]->buckets[bucket];
        if (seen > rank)
            return bucket_ms(bucket);
    }
    unreachable();
}
