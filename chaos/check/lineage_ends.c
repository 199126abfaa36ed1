/* SPDX-License-Identifier: Apache-2.0 */
/* How trees end, and what may lead from one to the next. A write that names nothing it stands on is
 * the beginning of a tree, and stands on one of these:
 *
 *  - an absence, if that is what it found: the first one, or that of a deletion;
 *  - anything, if its answer did not come, which makes it a link.
 *
 * So from a tree that ends in a deletion the way to the last value is open to all, and from one
 * that ends in a value only over a link: a write that was never answered, but was seen; or a
 * deletion that was never answered, as nobody can see of an absence whose it is. Real time shuts
 * most of these ways: what stands on a write was done after the write had been sent. */

#include "chaos/check/lineage.h"

static const struct history_op *op_at(const struct lineage *lineage, uint32_t op)
{
    return &lineage->history->ops[op];
}

static bool begins_loose(const struct lineage *lineage, uint32_t op)
{
    const struct lineage_node *node = &lineage->nodes[op];
    return node->role == LINEAGE_WRITE && node->parent == LINEAGE_UNKNOWN;
}

static bool found_absence(const struct history_op *op)
{
    return op->kind == HISTORY_PUT_IF ? op->expected == 0 : op->saw == HISTORY_SAW_ABSENT;
}

static bool is_link(const struct lineage *lineage, uint32_t op)
{
    const struct history_op *at = op_at(lineage, op);
    if (begins_loose(lineage, op))
        return !found_absence(at);
    return at->kind == HISTORY_DELETE && at->outcome == HISTORY_INFO;
}

uint32_t lineage_end(const struct lineage *lineage, uint32_t op)
{
    while (lineage->nodes[op].heir != LINEAGE_UNKNOWN)
        op = lineage->nodes[op].heir;
    return op;
}

uint32_t lineage_top(const struct lineage *lineage, const struct lineage_item *item, uint32_t op)
{
    uint32_t tree = lineage->nodes[op].tree;
    return tree == LINEAGE_ABSENT ? item->root_heir : tree;
}

/* ---- Whether the last value may stand on an end ---- */

/* Until when a write must have been sent for the last value to stand on it. */
static uint64_t last_ns(const struct lineage *lineage, const struct lineage_item *item)
{
    if (item->final >= LINEAGE_ABSENT || item->gone)
        return UINT64_MAX;
    uint32_t top = lineage->nodes[item->final].tree;
    return top == LINEAGE_ABSENT ? 0 : lineage->nodes[top].by_ns;
}

static void find_links(const struct lineage *lineage, struct lineage_item *item)
{
    uint64_t until_ns = last_ns(lineage, item);
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        const struct history_op *at = op_at(lineage, op);
        bool erases_none = at->kind == HISTORY_DELETE && at->outcome == HISTORY_OK &&
                           at->saw == HISTORY_SAW_ABSENT;
        if ((begins_loose(lineage, op) || is_link(lineage, op) || erases_none) &&
            lineage->nodes[op].by_ns > item->loose_by_ns)
            item->loose_by_ns = lineage->nodes[op].by_ns;
        if (!is_link(lineage, op))
            continue;
        uint64_t from_ns = op_at(lineage, op)->invoke_ns, to_ns = lineage->nodes[op].by_ns;
        item->link_from_ns = from_ns < item->link_from_ns ? from_ns : item->link_from_ns;
        item->link_to_ns = to_ns > item->link_to_ns ? to_ns : item->link_to_ns;
        item->links += from_ns <= until_ns;
    }
}

/* Whether the last value, which is not in the tree of `top`, may stand over a link on something of
 * it that was sent then. */
static bool may_go_on(const struct lineage *lineage, const struct lineage_item *item, uint32_t top,
                      uint64_t sent_ns)
{
    uint64_t until_ns = last_ns(lineage, item);
    bool own =
        top < LINEAGE_ABSENT && is_link(lineage, top) && op_at(lineage, top)->invoke_ns <= until_ns;
    return item->links > own && sent_ns <= until_ns && sent_ns <= item->link_to_ns;
}

/* When the first value was sent that ends a branch of the tree. */
static uint64_t first_end_ns(const struct lineage *lineage, const struct lineage_item *item,
                             uint32_t first)
{
    uint64_t ns = lineage->nodes[first].ended_ns;
    if (lineage->nodes[first].tree != LINEAGE_ABSENT)
        return ns;
    for (uint32_t op = item->root_child; op != LINEAGE_UNKNOWN; op = lineage->nodes[op].sibling)
        ns = lineage->nodes[op].ended_ns < ns ? lineage->nodes[op].ended_ns : ns;
    return ns;
}

/* first: a beginning of the tree, from which the branch that prevails in it goes. */
static void settle_tree(struct lineage *lineage, struct lineage_item *item, uint32_t first)
{
    uint32_t end = lineage_end(lineage, first), tree = lineage->nodes[first].tree;
    bool known = item->gone || item->final < LINEAGE_ABSENT;
    bool last =
        item->final < LINEAGE_ABSENT && !item->gone && lineage->nodes[item->final].tree == tree;
    if (last)
        return;
    if (op_at(lineage, end)->kind == HISTORY_DELETE) { /* open if the way goes on before it */
        uint32_t begin = tree == LINEAGE_ABSENT ? item->root_child : first;
        uint64_t sent_ns = op_at(lineage, begin)->invoke_ns;
        lineage->nodes[end].open = begin != end && known && may_go_on(lineage, item, tree, sent_ns);
        return;
    }
    if (!known || may_go_on(lineage, item, tree, first_end_ns(lineage, item, first))) {
        lineage->nodes[end].open = true;
        return;
    }
    for (uint32_t op = first; op != LINEAGE_UNKNOWN; op = lineage->nodes[op].heir)
        lineage->nodes[op].prevails = false;
}

void lineage_settle_ends(struct lineage *lineage, struct lineage_item *item)
{
    find_links(lineage, item);
    if (item->final == LINEAGE_ABSENT)
        return; /* nothing is left, and no deletion did that: nothing prevails */
    if (item->root_heir != LINEAGE_UNKNOWN)
        settle_tree(lineage, item, item->root_heir);
    for (uint32_t i = item->range->from; i < item->range->to; i++)
        if (begins_loose(lineage, lineage->items.order[i]))
            settle_tree(lineage, item, lineage->items.order[i]);
}

/* ---- Who stands on whom ---- */

enum lineage_answer lineage_stands_on(const struct lineage *lineage, uint32_t b, uint32_t a)
{
    if (lineage_descends(lineage, a, b))
        return LINEAGE_YES;
    const struct lineage_node *under = &lineage->nodes[a], *over = &lineage->nodes[b];
    const struct history_op *at = op_at(lineage, a);
    const struct lineage_item *item = lineage_find(lineage, at->table, at->key);
    if (op_at(lineage, b)->key != at->key || op_at(lineage, b)->table != at->table ||
        over->tree == LINEAGE_ABSENT || over->tree == under->tree)
        return LINEAGE_NO;
    uint64_t by_ns = lineage->nodes[over->tree].by_ns;
    if (at->invoke_ns > by_ns)
        return LINEAGE_NO;
    bool link = item->link_from_ns <= by_ns && at->invoke_ns <= item->link_to_ns;
    return is_link(lineage, over->tree) || under->erased_ns <= by_ns || link ? LINEAGE_MAYBE
                                                                             : LINEAGE_NO;
}
