/* SPDX-License-Identifier: Apache-2.0 */
/* Three passes over each item: what every operation saw and so which uncertain writes happened,
 * then the trees, then who prevails in them. Trees are walked by their own links, without a stack,
 * as one may be a million deep. */

#include "chaos/check/lineage.h"

#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    KINDS_REGISTER =
        1 << HISTORY_PUT | 1 << HISTORY_PUT_IF | 1 << HISTORY_READ | 1 << HISTORY_DELETE
};

static const struct history_op *op_at(const struct lineage *lineage, uint32_t op)
{
    return &lineage->history->ops[op];
}

static void fault(struct lineage_item *item, const char *text, uint32_t a, uint32_t b)
{
    if (item->fault)
        return;
    item->fault = text;
    item->fault_ops[0] = a;
    item->fault_ops[1] = b;
    item->fault_count = b == LINEAGE_UNKNOWN ? 1 : 2;
}

static void blind(struct lineage_item *item, const char *why)
{
    if (!item->blind)
        item->why = why;
    item->blind = true;
}

/* ---- What an operation saw ---- */

/* The write of `value`, as seen by op; UNKNOWN with a fault if nobody can have written it. */
static uint32_t resolve(struct lineage *lineage, struct lineage_item *item, uint32_t op,
                        uint64_t value)
{
    uint32_t writer = writers_find(&lineage->writers, item->range->table, value);
    if (writer == ITEMS_NONE) {
        fault(item, "an operation saw a value that nobody wrote", op, LINEAGE_UNKNOWN);
        return LINEAGE_UNKNOWN;
    }
    if (op_at(lineage, writer)->key != item->range->key) {
        fault(item, "an operation saw a value of another item", op, writer);
        return LINEAGE_UNKNOWN;
    }
    if (op_at(lineage, writer)->outcome == HISTORY_FAILED) {
        fault(item, "an operation saw a value whose write had failed", op, writer);
        return LINEAGE_UNKNOWN;
    }
    if (history_end(op_at(lineage, op)) < op_at(lineage, writer)->invoke_ns)
        fault(item, "an operation saw a value before it was sent", op, writer);
    if (writer == op) {
        fault(item, "a write replaced its own value", op, LINEAGE_UNKNOWN);
        return LINEAGE_UNKNOWN;
    }
    uint64_t by_ns = history_end(op_at(lineage, op));
    if (by_ns < lineage->nodes[writer].by_ns)
        lineage->nodes[writer].by_ns = by_ns;
    lineage->nodes[writer].seen_by |= 1ull << (op_at(lineage, op)->region % HISTORY_REGIONS_MAX);
    return writer;
}

/* What an operation that found no item stands on. */
static uint32_t resolve_absent(struct lineage_item *item, const struct history_op *op)
{
    if (item->erased_ns == UINT64_MAX || history_end(op) < item->erased_ns)
        return LINEAGE_ABSENT;
    blind(item, "an absence among deletions does not tell which of them it is of");
    return LINEAGE_UNKNOWN;
}

/* What a condition that held, held over. */
static uint32_t resolve_expected(struct lineage *lineage, struct lineage_item *item, uint32_t op)
{
    uint64_t expected = op_at(lineage, op)->expected;
    return expected ? resolve(lineage, item, op, expected)
                    : resolve_absent(item, op_at(lineage, op));
}

/* A write of unknown outcome was seen, so it happened, and so did what its condition held over. */
static void happened(struct lineage *lineage, struct lineage_item *item, uint32_t op)
{
    while (op < LINEAGE_ABSENT && op_at(lineage, op)->outcome == HISTORY_INFO &&
           lineage->nodes[op].role == LINEAGE_OUT) {
        struct lineage_node *node = &lineage->nodes[op];
        node->role = LINEAGE_WRITE;
        node->parent = op_at(lineage, op)->kind == HISTORY_PUT_IF
                           ? resolve_expected(lineage, item, op)
                           : LINEAGE_UNKNOWN;
        op = node->parent;
    }
}

static void join(struct lineage *lineage, struct lineage_item *item, uint32_t op,
                 enum lineage_role role, uint32_t parent)
{
    lineage->nodes[op].role = (uint8_t)role;
    lineage->nodes[op].parent = parent;
    happened(lineage, item, parent);
}

static void join_put_if(struct lineage *lineage, struct lineage_item *item, uint32_t index)
{
    const struct history_op *op = op_at(lineage, index);
    bool told = op->saw == HISTORY_SAW_VALUE || op->saw == HISTORY_SAW_ABSENT;
    uint64_t found = op->saw == HISTORY_SAW_VALUE ? op->value : 0;
    if (op->outcome == HISTORY_OK) {
        if (told && found != op->expected)
            fault(item, "a condition held over a value that it excludes", index, LINEAGE_UNKNOWN);
        join(lineage, item, index, LINEAGE_WRITE, resolve_expected(lineage, item, index));
    } else if (!told) {
        blind(item, "a condition failed without telling what it found");
    } else if (found == op->expected) {
        fault(item, "a condition failed over the value that it asks for", index, LINEAGE_UNKNOWN);
    } else if (found) {
        join(lineage, item, index, LINEAGE_READ, resolve(lineage, item, index, found));
    } else if (resolve_absent(item, op) == LINEAGE_ABSENT) {
        join(lineage, item, index, LINEAGE_READ, LINEAGE_ABSENT);
    }
}

static void join_op(struct lineage *lineage, struct lineage_item *item, uint32_t index)
{
    const struct history_op *op = op_at(lineage, index);
    bool refused = op->kind == HISTORY_PUT_IF && op->reason == HISTORY_REASON_CONDITION;
    if (op->outcome == HISTORY_INFO || (op->outcome == HISTORY_FAILED && !refused))
        return;
    if (op->kind == HISTORY_PUT_IF) {
        join_put_if(lineage, item, index);
        return;
    }
    bool reads = op->kind == HISTORY_READ;
    enum lineage_role role = reads ? LINEAGE_READ : LINEAGE_WRITE;
    if (op->saw == HISTORY_SAW_VALUE) {
        uint32_t parent = resolve(lineage, item, index, op->value);
        if (!reads || parent != LINEAGE_UNKNOWN)
            join(lineage, item, index, role, parent);
    } else if (op->saw == HISTORY_SAW_ABSENT) {
        uint32_t parent = resolve_absent(item, op);
        if (op->kind == HISTORY_PUT || (reads && parent == LINEAGE_ABSENT))
            join(lineage, item, index, role, parent);
    } else if (!reads) {
        join(lineage, item, index, role, LINEAGE_UNKNOWN);
    }
}

/* ---- Trees ---- */

static void plant(struct lineage *lineage, struct lineage_item *item)
{
    for (uint32_t i = item->range->to; i-- > item->range->from;) {
        uint32_t op = lineage->items.order[i];
        struct lineage_node *node = &lineage->nodes[op];
        if (node->role != LINEAGE_WRITE || node->parent == LINEAGE_UNKNOWN)
            continue;
        uint32_t *first = node->parent == LINEAGE_ABSENT ? &item->root_child
                                                         : &lineage->nodes[node->parent].child;
        node->sibling = *first;
        *first = op;
    }
}

static bool sent_later(const struct lineage *lineage, uint32_t a, uint32_t b)
{
    return op_at(lineage, a)->invoke_ns > op_at(lineage, b)->invoke_ns;
}

/* Whether the branch that begins with a goes before that of b, which may be UNKNOWN. */
static bool outlasts(const struct lineage *lineage, uint32_t a, uint32_t b)
{
    if (b == LINEAGE_UNKNOWN)
        return true;
    const struct lineage_node *x = &lineage->nodes[a], *y = &lineage->nodes[b];
    bool erased = x->erased_ns != UINT64_MAX;
    if (erased != (y->erased_ns != UINT64_MAX))
        return erased;
    return sent_later(lineage, x->latest, y->latest);
}

static void leave(struct lineage *lineage, uint32_t op, uint32_t clock, bool top)
{
    struct lineage_node *node = &lineage->nodes[op];
    node->leave = clock;
    if (op_at(lineage, op)->kind == HISTORY_DELETE)
        node->erased_ns = op_at(lineage, op)->invoke_ns; /* nothing names it, so it is an end */
    else if (node->child == LINEAGE_UNKNOWN)
        node->ended_ns = op_at(lineage, op)->invoke_ns;
    if (top)
        return;
    struct lineage_node *parent = &lineage->nodes[node->parent];
    parent->seen_by |= node->seen_by;
    if (node->erased_ns < parent->erased_ns)
        parent->erased_ns = node->erased_ns;
    if (node->ended_ns < parent->ended_ns)
        parent->ended_ns = node->ended_ns;
    if (outlasts(lineage, op, parent->heir))
        parent->heir = op;
    if (sent_later(lineage, node->latest, parent->latest))
        parent->latest = node->latest;
}

/* Depth first from `top`, which is its tree's beginning. */
static void walk(struct lineage *lineage, uint32_t top, uint32_t *clock)
{
    uint32_t at = top;
    for (;;) {
        struct lineage_node *node = &lineage->nodes[at];
        node->enter = (*clock)++;
        node->latest = at;
        node->tree = lineage->nodes[top].parent == LINEAGE_ABSENT ? LINEAGE_ABSENT : top;
        if (node->child != LINEAGE_UNKNOWN) {
            at = node->child;
            continue;
        }
        for (;;) {
            leave(lineage, at, *clock, at == top);
            if (at == top)
                return;
            node = &lineage->nodes[at];
            if (node->sibling != LINEAGE_UNKNOWN)
                break;
            at = node->parent;
        }
        at = node->sibling;
    }
}

static void walk_all(struct lineage *lineage, struct lineage_item *item)
{
    uint32_t clock = 1; /* an enter of 0: never reached */
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        const struct lineage_node *node = &lineage->nodes[op];
        if (node->role == LINEAGE_WRITE && node->parent >= LINEAGE_ABSENT)
            walk(lineage, op, &clock);
    }
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        struct lineage_node *node = &lineage->nodes[op];
        if (node->role == LINEAGE_WRITE && node->enter == 0)
            fault(item, "writes that were each written over the other", op, node->parent);
    }
}

/* ---- Who prevails ---- */

/* The item's last value: that of most final reads, should they differ (Boyer and Moore's vote). */
static uint32_t find_final(const struct lineage *lineage, struct lineage_item *item)
{
    uint32_t final = LINEAGE_UNKNOWN, votes = 0;
    bool absent = false;
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        const struct history_op *read = op_at(lineage, op);
        if (!read->final || read->kind != HISTORY_READ || read->outcome != HISTORY_OK)
            continue;
        absent = absent || read->saw == HISTORY_SAW_ABSENT;
        uint32_t seen = lineage->nodes[op].parent;
        if (lineage->nodes[op].role != LINEAGE_READ || seen == LINEAGE_UNKNOWN)
            continue;
        if (votes == 0)
            final = seen;
        votes = seen == final ? votes + 1 : votes - 1;
    }
    if (final != LINEAGE_UNKNOWN || !absent)
        return final;
    item->gone = true;
    for (uint32_t i = item->range->from; i < item->range->to; i++) { /* some deletion: the last */
        uint32_t op = lineage->items.order[i];
        const struct lineage_node *node = &lineage->nodes[op];
        if (op_at(lineage, op)->kind == HISTORY_DELETE && node->role == LINEAGE_WRITE)
            final = op;
    }
    return final;
}

static void mark_heirs(struct lineage *lineage, uint32_t op)
{
    for (; op != LINEAGE_UNKNOWN; op = lineage->nodes[op].heir)
        lineage->nodes[op].prevails = true;
}

static void crown(struct lineage *lineage, struct lineage_item *item)
{
    for (uint32_t op = item->root_child; op != LINEAGE_UNKNOWN; op = lineage->nodes[op].sibling)
        if (outlasts(lineage, op, item->root_heir))
            item->root_heir = op;
    item->final = find_final(lineage, item);
    if (item->final < LINEAGE_ABSENT) {
        uint32_t op = item->final;
        lineage->nodes[op].heir = LINEAGE_UNKNOWN;
        for (; lineage->nodes[op].parent < LINEAGE_ABSENT; op = lineage->nodes[op].parent)
            lineage->nodes[lineage->nodes[op].parent].heir = op;
        if (lineage->nodes[op].parent == LINEAGE_ABSENT)
            item->root_heir = op;
    }
    mark_heirs(lineage, item->root_heir);
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        const struct lineage_node *node = &lineage->nodes[op];
        if (node->role == LINEAGE_WRITE && node->parent == LINEAGE_UNKNOWN)
            mark_heirs(lineage, op);
    }
}

/* Depth first, so that a parent's anchor is known before its children's. */
static void anchor(struct lineage *lineage, uint32_t top)
{
    uint32_t at = top;
    for (;;) {
        struct lineage_node *node = &lineage->nodes[at];
        node->anchor = node->prevails                   ? at
                       : node->parent >= LINEAGE_ABSENT ? node->parent
                                                        : lineage->nodes[node->parent].anchor;
        if (node->child != LINEAGE_UNKNOWN) {
            at = node->child;
            continue;
        }
        while (at != top && lineage->nodes[at].sibling == LINEAGE_UNKNOWN)
            at = lineage->nodes[at].parent;
        if (at == top)
            return;
        at = lineage->nodes[at].sibling;
    }
}

static void anchor_all(struct lineage *lineage, const struct lineage_item *item)
{
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        const struct lineage_node *node = &lineage->nodes[op];
        if (node->role == LINEAGE_WRITE && node->parent >= LINEAGE_ABSENT)
            anchor(lineage, op);
    }
}

static void find_erased(const struct lineage *lineage, struct lineage_item *item)
{
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        const struct history_op *op = op_at(lineage, lineage->items.order[i]);
        if (op->kind != HISTORY_DELETE || op->outcome == HISTORY_FAILED)
            continue;
        item->erased_ns = op->invoke_ns; /* they are in this order */
        return;
    }
}

static void judge_item(struct lineage *lineage, struct lineage_item *item)
{
    item->judged = (item->range->kinds & ~KINDS_REGISTER) == 0;
    if (!item->judged)
        return;
    find_erased(lineage, item);
    for (uint32_t i = item->range->from; i < item->range->to; i++)
        if (lineage->writers.repeated[lineage->items.order[i]]) {
            blind(item, "two writes of one value");
            return;
        }
    for (uint32_t i = item->range->from; i < item->range->to; i++)
        join_op(lineage, item, lineage->items.order[i]);
    plant(lineage, item);
    walk_all(lineage, item);
    if (item->fault)
        return;
    crown(lineage, item);
    lineage_settle_ends(lineage, item);
    anchor_all(lineage, item);
}

void lineage_init(struct lineage *lineage, const struct history *history)
{
    *lineage = (struct lineage){.history = history};
    items_init(&lineage->items, history);
    writers_init(&lineage->writers, history);
    lineage->nodes = xmalloc(history->count * sizeof(*lineage->nodes));
    for (uint32_t i = 0; i < history->count; i++)
        lineage->nodes[i] = (struct lineage_node){.parent = LINEAGE_UNKNOWN,
                                                  .child = LINEAGE_UNKNOWN,
                                                  .sibling = LINEAGE_UNKNOWN,
                                                  .heir = LINEAGE_UNKNOWN,
                                                  .latest = i,
                                                  .by_ns = history_end(&history->ops[i]),
                                                  .erased_ns = UINT64_MAX,
                                                  .ended_ns = UINT64_MAX,
                                                  .anchor = LINEAGE_UNKNOWN,
                                                  .role = LINEAGE_OUT};
    lineage->item_array = xcalloc(lineage->items.count, sizeof(*lineage->item_array));
    for (uint32_t i = 0; i < lineage->items.count; i++) {
        lineage->item_array[i] = (struct lineage_item){.range = &lineage->items.at[i],
                                                       .erased_ns = UINT64_MAX,
                                                       .link_from_ns = UINT64_MAX,
                                                       .root_child = LINEAGE_UNKNOWN,
                                                       .root_heir = LINEAGE_UNKNOWN,
                                                       .final = LINEAGE_UNKNOWN};
        judge_item(lineage, &lineage->item_array[i]);
    }
}

void lineage_deinit(struct lineage *lineage)
{
    items_deinit(&lineage->items);
    writers_deinit(&lineage->writers);
    free(lineage->nodes);
    free(lineage->item_array);
    *lineage = (struct lineage){0};
}

const struct lineage_item *lineage_find(const struct lineage *lineage, uint16_t table, uint32_t key)
{
    const struct item_range *range = items_find(&lineage->items, table, key);
    return range ? &lineage->item_array[range - lineage->items.at] : NULL;
}

bool lineage_descends(const struct lineage *lineage, uint32_t a, uint32_t b)
{
    const struct lineage_node *x = &lineage->nodes[a], *y = &lineage->nodes[b];
    bool same = op_at(lineage, a)->key == op_at(lineage, b)->key &&
                op_at(lineage, a)->table == op_at(lineage, b)->table;
    return same && x->enter && y->enter && x->enter <= y->enter && y->enter < x->leave;
}

bool lineage_seen_elsewhere(const struct lineage *lineage, uint32_t op)
{
    uint64_t own = 1ull << (op_at(lineage, op)->region % HISTORY_REGIONS_MAX);
    return (lineage->nodes[op].seen_by & ~own) != 0;
}
