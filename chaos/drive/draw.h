/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_DRAW_H
#define DRIVE_DRAW_H

/* What the clients do next: which operation, in which Region, on which item, with which value. All
 * chance of a workload is here and comes from one seed; the order of operations and Regions has a
 * generator of its own, so that it is the same in every run, however the answers came.
 *
 * An item of a search-judged, growing or listed kind is given up for a fresh one once it has had
 * its share of operations (a checker's search is exponential in what is open on one item, and a
 * list is read whole each time). So `keys` is how many are in use at a time, and the names of items
 * are numbers that count on. Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/check/history.h"
#include "chaos/drive/zipf.h"
#include "chaos/scenario/scenario.h"

enum {
    DRAW_OPS_MAX = 200,      /* on one item of cas-register, and elements of one list */
    DRAW_INFOS_MAX = 3,      /* open for ever on one item of cas-register */
    DRAW_OPEN_MAX = 8,       /* under way on one item of cas-register, while others are free */
    DRAW_ELEMENTS_MAX = 1000 /* of one set */
};

enum draw_class { DRAW_WRITE, DRAW_READ_STRONG, DRAW_READ_EVENTUAL, DRAW_ERASE, DRAW_SCAN };

struct draw_slot { /* one of `keys` places, and the item that is there now */
    uint32_t key;
    uint32_t ops, infos, open;
    uint64_t seen; /* cas-register: the value that was there last; 0: none */
};

struct draw {
    uint8_t kind; /* enum scenario_workload_kind */
    uint8_t keys_chosen;
    bool eventual;
    struct scenario_mix mix;
    struct rng order, choice;
    struct zipf zipf;
    struct draw_slot *slots; /* NULL where no item is ever given up */
    uint64_t slot_count;
    uint32_t key_count;   /* items are [0, key_count) */
    uint8_t *used;        /* a bit for each: an operation was drawn for it */
    uint32_t used_cap;    /* bytes */
    uint32_t used_count;  /* bits that are set */
    uint32_t next_client; /* from 1, so that no value is 0 */
};

/* An operation before it is sent. */
struct draw_op {
    struct history_op op; /* kind, key, written, expected, strong; the rest is 0 */
    uint64_t slot;
    bool modify; /* a read whose answer is to be written back changed: draw_modify */
};

void draw_init(struct draw *draw, const struct scenario *scenario, uint64_t seed);
void draw_deinit(struct draw *draw);

/* The class of the next operation, in the order of the seed. `writes`: it may be one that writes.
 * False: the mix has none that may be. */
bool draw_class(struct draw *draw, bool writes, enum draw_class *ret);
static inline bool draw_class_writes(enum draw_class class)
{
    return class == DRAW_WRITE || class == DRAW_ERASE;
}
/* One of a set of Regions, which is not empty. */
uint8_t draw_region(struct draw *draw, uint8_t regions);

/* The number of a new client. */
uint32_t draw_client(struct draw *draw);
/* The client's n-th value, n > 0: unique among all clients and never 0. */
static inline uint64_t draw_value(uint32_t client, uint32_t n)
{
    return (uint64_t)client << 32 | n;
}
/* An operation of the class; `value` is used if it writes one (*ret has it in `written` then). */
void draw_op(struct draw *draw, enum draw_class class, uint64_t value, struct draw_op *ret);
/* The second half of a read-modify-write: writes what `read` has read. */
void draw_modify(struct draw *draw, const struct draw_op *read, uint64_t value,
                 struct draw_op *ret);
/* The operation is over: op has its outcome. Once for each. */
void draw_note(struct draw *draw, const struct draw_op *drawn, const struct history_op *op);

bool draw_used(const struct draw *draw, uint32_t key);
/* Sets, which are read as a whole. */
static inline bool draw_is_set(const struct draw *draw)
{
    return draw->kind == SCENARIO_SET;
}

#endif
