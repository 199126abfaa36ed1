/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_CHAIN_H
#define LIVE_CHAIN_H

/* What the toxics of one direction do to the bytes of one connection. A chain is a row of stages,
 * one per toxic, in the order in which the toxics were added; bytes come in at the front as
 * segments, each stage stamps a segment with the time at which it may leave, and what has passed
 * all stages waits in `out`. So a delay is a line that keeps order and bandwidth, not a pause.
 * Pure: time and luck come in as arguments; no socket and no timer.
 *
 *     push ─► [stage: due, due, due] ─► [stage: due] ─► out ─► take
 */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/live/toxic.h"
#include "conflict/base/bytes.h"
#include "conflict/base/list.h"
#include "conflict/base/rng.h"

enum segment_kind {
    SEGMENT_DATA,
    SEGMENT_EOF,   /* the sender will send no more: pass that on */
    SEGMENT_CLOSE, /* a toxic ends the connection, after what came before */
};

struct segment {
    struct list link;
    uint64_t arrived_ns; /* at the stage where it waits */
    uint64_t due_ns;     /* it may leave that stage */
    enum segment_kind kind;
    uint32_t len;
    uint8_t data[];
};

struct chain {
    struct list stages;
    struct list out;  /* segments that may be written now */
    uint64_t held;    /* memory of all segments that are neither written nor dropped */
    uint64_t data;    /* their payload bytes */
    uint64_t dropped; /* payload bytes that a toxic has thrown away */
    bool reset;       /* a toxic wants both ends reset, at once */
    struct rng *rng;  /* borrowed */
};

void chain_init(struct chain *chain, struct rng *rng);
void chain_deinit(struct chain *chain);

/* The toxic is borrowed until it is removed; whether it applies is drawn now. */
void chain_add(struct chain *chain, const struct toxic *toxic, uint64_t now_ns);
/* The toxic's values have changed: what waits in its stage is stamped anew. */
void chain_update(struct chain *chain, const struct toxic *toxic, uint64_t now_ns);
/* What waits in its stage moves on at once. A timeout that goes takes the connection with it. */
void chain_remove(struct chain *chain, const struct toxic *toxic, uint64_t now_ns);

/* Nothing waits and no toxic applies: bytes may pass without the chain seeing them. */
bool chain_clear(const struct chain *chain);
/* Copies. */
void chain_push(struct chain *chain, struct bytes data, uint64_t now_ns);
void chain_push_end(struct chain *chain, uint64_t now_ns);
/* Moves what is due. */
void chain_pump(struct chain *chain, uint64_t now_ns);
/* When to pump next; UINT64_MAX: not before the next push. */
uint64_t chain_deadline(const struct chain *chain);
/* The first segment of out, now the caller's to give back; NULL when there is none. */
struct segment *chain_take(struct chain *chain);
void chain_give_back(struct chain *chain, struct segment *segment);
/* Reading from the sender should stop: the chain holds as much as it may. */
bool chain_full(const struct chain *chain);

#endif
