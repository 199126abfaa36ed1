/* SPDX-License-Identifier: Apache-2.0 */
/* See draw.h. */

#include "chaos/drive/draw.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static bool gives_up(uint8_t kind)
{
    return kind == SCENARIO_CAS_REGISTER || kind == SCENARIO_APPEND || kind == SCENARIO_SET;
}

void draw_init(struct draw *draw, const struct scenario *scenario, uint64_t seed)
{
    const struct scenario_workload *workload = &scenario->workload;
    uint64_t keys = workload->keys > 0 ? workload->keys : 1;
    check(keys <= UINT32_MAX / 2);
    *draw = (struct draw){.kind = workload->kind,
                          .keys_chosen = workload->keys_chosen,
                          .eventual = scenario->cluster.mode == SCENARIO_EVENTUAL,
                          .mix = workload->mix,
                          .slot_count = keys,
                          .key_count = (uint32_t)keys,
                          .next_client = 1};
    rng_init(&draw->order, seed);
    rng_init(&draw->choice, rng_next(&draw->order));
    zipf_init(&draw->zipf, keys);
    if (gives_up(draw->kind)) {
        draw->slots = xcalloc(keys, sizeof(*draw->slots));
        for (uint64_t i = 0; i < keys; i++)
            draw->slots[i].key = (uint32_t)i;
    }
}

void draw_deinit(struct draw *draw)
{
    free(draw->slots);
    free(draw->used);
}

/* ---- Order ---- */

bool draw_class(struct draw *draw, bool writes, enum draw_class *ret)
{
    const double shares[] = {
        [DRAW_WRITE] = writes ? draw->mix.write : 0,
        [DRAW_READ_STRONG] = draw->mix.read_strong,
        [DRAW_READ_EVENTUAL] = draw->mix.read_eventual,
        [DRAW_ERASE] = writes ? draw->mix.erase : 0,
        [DRAW_SCAN] = draw->mix.scan,
    };
    double sum = 0;
    for (size_t i = 0; i < array_len(shares); i++)
        sum += shares[i];
    double place = rng_unit(&draw->order) * sum;
    bool found = false;
    for (size_t i = 0; i < array_len(shares); i++) {
        if (shares[i] <= 0)
            continue;
        found = true;
        *ret = (enum draw_class)i; /* rounding may leave place beyond the last: it is that one */
        if (place < shares[i])
            return true;
        place -= shares[i];
    }
    return found;
}

uint8_t draw_region(struct draw *draw, uint8_t regions)
{
    check(regions != 0);
    uint64_t nth = rng_below(&draw->order, (uint64_t)__builtin_popcount(regions));
    for (uint8_t place = 0;; place++)
        if (regions >> place & 1 && nth-- == 0)
            return place;
}

/* ---- Items and values ---- */

uint32_t draw_client(struct draw *draw)
{
    check(draw->next_client < INT32_MAX); /* values are signed numbers to some checkers */
    return draw->next_client++;
}

static void mark_used(struct draw *draw, uint32_t key)
{
    uint32_t at = key / 8;
    if (at >= draw->used_cap) {
        uint32_t cap = at < 2048 ? 4096 : 2 * at;
        draw->used = xrealloc(draw->used, cap);
        memset(draw->used + draw->used_cap, 0, cap - draw->used_cap);
        draw->used_cap = cap;
    }
    uint8_t bit = (uint8_t)(1u << key % 8);
    draw->used_count += (draw->used[at] & bit) == 0;
    draw->used[at] |= bit;
}

bool draw_used(const struct draw *draw, uint32_t key)
{
    return key / 8 < draw->used_cap && (draw->used[key / 8] >> key % 8 & 1) != 0;
}

static uint64_t choose_slot(struct draw *draw)
{
    uint64_t slot = draw->keys_chosen == SCENARIO_KEYS_ZIPFIAN
                        ? zipf_draw(&draw->zipf, &draw->choice)
                        : rng_below(&draw->choice, draw->slot_count);
    if (draw->kind != SCENARIO_CAS_REGISTER)
        return slot;
    uint64_t tries = draw->slot_count < 16 ? draw->slot_count : 16;
    for (uint64_t i = 0; i < tries; i++) {
        uint64_t other = (slot + i) % draw->slot_count;
        if (draw->slots[other].open < DRAW_OPEN_MAX)
            return other;
    }
    return slot;
}

static enum history_kind kind_of(const struct draw *draw, enum draw_class class)
{
    switch (class) {
    case DRAW_WRITE:
        break;
    case DRAW_READ_STRONG:
    case DRAW_READ_EVENTUAL:
        return draw_is_set(draw) ? HISTORY_SCAN : HISTORY_READ;
    case DRAW_ERASE:
        return HISTORY_DELETE;
    case DRAW_SCAN:
        return HISTORY_SCAN;
    }
    switch (draw->kind) {
    case SCENARIO_CAS_REGISTER:
        return HISTORY_PUT_IF;
    case SCENARIO_COUNTER:
        return HISTORY_ADD;
    case SCENARIO_APPEND:
        return HISTORY_APPEND;
    case SCENARIO_SET:
        return HISTORY_INSERT;
    default:
        return HISTORY_PUT;
    }
}

void draw_op(struct draw *draw, enum draw_class class, uint64_t value, struct draw_op *ret)
{
    uint64_t at = choose_slot(draw);
    struct draw_slot *slot = draw->slots ? &draw->slots[at] : NULL;
    enum history_kind kind = kind_of(draw, class);
    *ret = (struct draw_op){.slot = at};
    if (draw->kind == SCENARIO_YCSB_F && kind == HISTORY_PUT) {
        kind = HISTORY_READ;
        class = draw->eventual ? DRAW_READ_EVENTUAL : DRAW_READ_STRONG;
        ret->modify = true;
    }
    ret->op.kind = (uint8_t)kind;
    ret->op.key = slot ? slot->key : (uint32_t)at;
    ret->op.strong = class == DRAW_READ_STRONG ||
                     (kind == HISTORY_SCAN && class == DRAW_SCAN && !draw->eventual);
    if (kind == HISTORY_ADD)
        ret->op.written = 1;
    else if (class == DRAW_WRITE)
        ret->op.written = value;
    if (kind == HISTORY_PUT_IF)
        ret->op.expected = slot->seen;
    if (slot)
        slot->open++;
    mark_used(draw, ret->op.key);
}

void draw_modify(struct draw *draw, const struct draw_op *read, uint64_t value, struct draw_op *ret)
{
    check(draw->slots == NULL);
    *ret = (struct draw_op){.slot = read->slot};
    ret->op.kind = HISTORY_PUT;
    ret->op.key = read->op.key;
    ret->op.written = value;
}

/* ---- Answers ---- */

static bool has_had_its_share(const struct draw *draw, const struct draw_slot *slot)
{
    if (draw->kind == SCENARIO_SET)
        return slot->ops >= DRAW_ELEMENTS_MAX;
    return slot->ops >= DRAW_OPS_MAX ||
           (draw->kind == SCENARIO_CAS_REGISTER && slot->infos >= DRAW_INFOS_MAX);
}

void draw_note(struct draw *draw, const struct draw_op *drawn, const struct history_op *op)
{
    struct draw_slot *slot = draw->slots ? &draw->slots[drawn->slot] : NULL;
    if (slot == NULL || slot->key != op->key)
        return;
    check(slot->open > 0);
    slot->open--;
    bool writes = history_kind_writes((enum history_kind)op->kind);
    /* Of lists and sets, only what makes them longer counts; refused writes never do. */
    slot->ops += draw->kind == SCENARIO_CAS_REGISTER || (writes && op->outcome != HISTORY_FAILED);
    slot->infos += writes && op->outcome == HISTORY_INFO;
    if (op->kind == HISTORY_PUT_IF && op->outcome == HISTORY_OK)
        slot->seen = op->written;
    else if (op->saw == HISTORY_SAW_VALUE)
        slot->seen = op->value;
    else if (op->saw == HISTORY_SAW_ABSENT)
        slot->seen = 0;
    if (has_had_its_share(draw, slot) && draw->key_count < UINT32_MAX)
        *slot = (struct draw_slot){.key = draw->key_count++};
}
