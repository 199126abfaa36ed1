/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPLICATOR_LAG_H
#define REPLICATOR_LAG_H

/* How long writes take to reach a peer. A `lag_ring` remembers when which sequence was committed,
 * in bounded memory however far a peer is behind; a `lag_histogram` holds the lags of the last
 * minute and can be shared by what is to be read as one (all partitions of a table towards one
 * peer). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lag_entry {
    uint64_t seq;     /* everything up to it ... */
    uint64_t mono_ns; /* ... and after the entry before was committed at this time or later */
    uint64_t bytes;   /* log bytes up to it, ever */
};

enum { LAG_RING_MAX = 4096 };

struct lag_ring {
    struct lag_entry *at; /* power of two, grows up to LAG_RING_MAX, freed when drained */
    uint32_t cap, head, count;
    struct lag_entry base; /* the last one taken out */
};

void lag_ring_init(struct lag_ring *ring, uint64_t seq, uint64_t bytes);
void lag_ring_deinit(struct lag_ring *ring);
/* When full, the older three quarters are thinned by half: a peer that keeps up is measured in the
 * newest quarter, whatever another one is missing. */
void lag_ring_push(struct lag_ring *ring, struct lag_entry entry);
/* Drops the entries up to seq: every peer has them. */
void lag_ring_drop(struct lag_ring *ring, uint64_t seq);
/* Entry i from the oldest. */
const struct lag_entry *lag_ring_at(const struct lag_ring *ring, uint32_t i);
/* How many entries end at or before seq. */
uint32_t lag_ring_find(const struct lag_ring *ring, uint64_t seq);
/* How many writes lie between two sequences of one log, across an epoch's start too. */
uint64_t lag_distance(uint64_t from_seq, uint64_t to_seq);

enum { LAG_SLICES = 6 };

struct lag_histogram {
    struct lag_slice *slices[LAG_SLICES]; /* ten seconds each; NULL while empty */
};

void lag_histogram_deinit(struct lag_histogram *histogram);
void lag_histogram_record(struct lag_histogram *histogram, uint64_t mono_ns, uint64_t lag_ns,
                          uint64_t writes);
/* Frees what is older than a minute. */
void lag_histogram_expire(struct lag_histogram *histogram, uint64_t mono_ns);
/* Over the last minute, to about 2 %; 0 when nothing was recorded. */
double lag_histogram_quantile_ms(const struct lag_histogram *histogram, uint64_t mono_ns,
                                 double quantile);

#endif
