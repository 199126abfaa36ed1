/* SPDX-License-Identifier: Apache-2.0 */
/* A register's writes and the reads of each are a group; groups that name each other as predecessor
 * form a chain in which nothing else can stand (lineage.h). So all that is left to judge is whether
 * real time agrees:
 *
 *  - inside a chain, no operation of a group may have ended before one of an earlier group began:
 *    one walk with the latest beginning so far;
 *  - chain X must come before Y if something in X ended before something in Y began, that is, if
 *    the first end of X is before the last beginning of Y. Then a cycle has a cycle of two: of its
 *    chains take the one with the least first end; the chain before it precedes it, and the other
 *    way round. So no graph is built: a sort by first end and a running maximum find such a pair,
 *    in O(k log k) for k chains.
 *
 * What remains is a total order, and the groups in it are the witness. */

#include "chaos/check/chain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/lineage.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct chain {
    uint32_t end_op;     /* of the chain, what ended first; ABSENT: it begins with absence */
    uint32_t start_op;   /* what began last; UNKNOWN: nothing */
    uint64_t end, start; /* end + 1 and beginning + 1, as absence ends at 0 */
};

struct judge {
    const struct lineage *lineage;
    const struct chain_options *options;
    struct verdict *verdict;
    uint32_t *end_op, *start_op; /* of each write's group: what ended first, what began last */
    struct chain *chains;        /* room for those of any item */
    uint32_t *latest;            /* of the chains so far, the one that began last */
    uint64_t segments, wrong_items;
};

static const struct history_op *op_at(const struct judge *judge, uint32_t op)
{
    return &judge->lineage->history->ops[op];
}

/* Whether this is the item's first reason and the verdict's: its operations are then to be added.
 */
static bool wrong(struct judge *judge, const struct lineage_item *item, const char *text)
{
    judge->wrong_items++;
    return verdict_worsen(judge->verdict, VERDICT_WRONG, "table %u, key %" PRIu32 ": %s",
                          item->range->table, item->range->key, text);
}

static void add_op(struct judge *judge, uint32_t op)
{
    if (op < LINEAGE_ABSENT)
        verdict_add_op(judge->verdict, op);
}

/* ---- Groups ---- */

static bool counts(const struct judge *judge, uint32_t index)
{
    const struct history_op *op = op_at(judge, index);
    return op->kind != HISTORY_READ || op->strong || judge->options->weak_reads;
}

static void group_add(struct judge *judge, uint32_t write, uint32_t op)
{
    uint32_t *end = &judge->end_op[write], *start = &judge->start_op[write];
    if (history_end(op_at(judge, op)) < history_end(op_at(judge, *end)))
        *end = op;
    if (op_at(judge, op)->invoke_ns > op_at(judge, *start)->invoke_ns)
        *start = op;
}

/* Gathers the groups; returns what began last of those that saw absence, or UNKNOWN. */
static uint32_t gather(struct judge *judge, const struct lineage_item *item)
{
    const struct lineage *lineage = judge->lineage;
    uint32_t absent_start = LINEAGE_UNKNOWN;
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        judge->end_op[op] = judge->start_op[op] = op;
    }
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        const struct lineage_node *node = &lineage->nodes[op];
        if (node->role != LINEAGE_READ || !counts(judge, op))
            continue;
        if (node->parent == LINEAGE_ABSENT)
            absent_start = op; /* by invoke_ns: the last one stays */
        else
            group_add(judge, node->parent, op);
    }
    return absent_start;
}

/* ---- Inside a chain ---- */

/* False when real time contradicts it: `later` ended before `earlier`, of a group before its own,
 * began. Follows the chain from `at`, and adds it up in *chain. */
static bool follow(struct judge *judge, const struct lineage_item *item, uint32_t at,
                   struct chain *chain)
{
    for (; at != LINEAGE_UNKNOWN; at = judge->lineage->nodes[at].child) {
        uint32_t end_op = judge->end_op[at], start_op = judge->start_op[at];
        uint64_t end = history_end(op_at(judge, end_op));
        end += end != UINT64_MAX;
        uint64_t start = op_at(judge, start_op)->invoke_ns + 1;
        if (end < chain->start) {
            if (wrong(judge, item, "an operation ended before one began that must precede it")) {
                add_op(judge, chain->start_op);
                add_op(judge, judge->lineage->nodes[chain->start_op].role == LINEAGE_READ
                                  ? judge->lineage->nodes[chain->start_op].parent
                                  : LINEAGE_UNKNOWN);
                add_op(judge, end_op);
                add_op(judge, at);
            }
            return false;
        }
        if (end < chain->end || (chain->end_op == LINEAGE_UNKNOWN)) {
            chain->end = end;
            chain->end_op = end_op;
        }
        if (start > chain->start) {
            chain->start = start;
            chain->start_op = start_op;
        }
    }
    return true;
}

/* ---- Between chains ---- */

static int end_order(const void *a, const void *b)
{
    const struct chain *x = a, *y = b;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* How many of the sorted chains end before `start`. */
static uint32_t ending_before(const struct chain *chains, uint32_t count, uint64_t start)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (chains[middle].end < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool order_chains(struct judge *judge, const struct lineage_item *item, uint32_t count)
{
    struct chain *chains = judge->chains;
    qsort(chains, count, sizeof(*chains), end_order);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = ending_before(chains, i, chains[i].start);
        if (before > 0) {
            const struct chain *other = &chains[judge->latest[before - 1]];
            if (other->start > chains[i].end) {
                if (wrong(judge, item, "two runs of writes each ended before the other began")) {
                    add_op(judge, other->end_op);
                    add_op(judge, other->start_op);
                    add_op(judge, chains[i].end_op);
                    add_op(judge, chains[i].start_op);
                }
                return false;
            }
        }
        bool later = i == 0 || chains[i].start > chains[judge->latest[i - 1]].start;
        judge->latest[i] = later ? i : judge->latest[i - 1];
    }
    return true;
}

/* ---- An item ---- */

static bool has_fork(struct judge *judge, const struct lineage_item *item)
{
    const struct lineage_node *nodes = judge->lineage->nodes;
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage->items.order[i];
        if (nodes[op].role != LINEAGE_WRITE || nodes[op].sibling == LINEAGE_UNKNOWN)
            continue;
        if (wrong(judge, item,
                  nodes[op].parent == LINEAGE_ABSENT ? "two writes over no item: an update was lost"
                                                     : "two writes over one value: an update was "
                                                       "lost")) {
            add_op(judge, nodes[op].parent);
            add_op(judge, op);
            add_op(judge, nodes[op].sibling);
        }
        return true;
    }
    return false;
}

static void judge_strong(struct judge *judge, const struct lineage_item *item)
{
    if (has_fork(judge, item))
        return;
    struct chain *chains = judge->chains;
    uint32_t absent_start = gather(judge, item), count = 0;
    chains[count++] = (struct chain){
        .end_op = LINEAGE_ABSENT,
        .start_op = absent_start,
        .start = absent_start == LINEAGE_UNKNOWN ? 0 : op_at(judge, absent_start)->invoke_ns + 1};
    if (!follow(judge, item, item->root_child, &chains[0]))
        return;
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage->items.order[i];
        const struct lineage_node *node = &judge->lineage->nodes[op];
        if (node->role != LINEAGE_WRITE || node->parent != LINEAGE_UNKNOWN)
            continue;
        struct chain *chain = &chains[count++];
        *chain = (struct chain){.end_op = LINEAGE_UNKNOWN, .start_op = LINEAGE_UNKNOWN};
        if (!follow(judge, item, op, chain))
            return;
    }
    judge->segments += count;
    if (order_chains(judge, item, count) && item->blind)
        verdict_worsen(judge->verdict, VERDICT_UNKNOWN, "table %u, key %" PRIu32 ": %s",
                       item->range->table, item->range->key, item->why);
}

/* ---- Lost updates ---- */

static void add_fork(struct chain_forks *forks, const struct chain_fork *fork)
{
    if (forks->count == forks->cap) {
        forks->cap = forks->cap ? forks->cap * 2 : 16;
        forks->at = xrealloc(forks->at, forks->cap * sizeof(*forks->at));
    }
    forks->at[forks->count++] = *fork;
    forks->at[forks->count - 1].base = fork->base == LINEAGE_ABSENT ? CHAIN_ABSENT : fork->base;
}

/* A tree that the last value neither is in nor stands on for certain may go on from any of its
 * ends, so which of them is lost is a guess. */
static bool is_guess(const struct lineage *lineage, const struct lineage_item *item, uint32_t op)
{
    return item->links > 0 && (item->final >= LINEAGE_ABSENT || item->gone ||
                               lineage->nodes[item->final].tree != lineage->nodes[op].tree);
}

/* Of the writes over one value, all but the one that prevails. */
static void find_branches(const struct lineage *lineage, const struct lineage_item *item,
                          struct chain_forks *forks)
{
    const struct lineage_node *nodes = lineage->nodes;
    for (uint32_t op = item->root_child; op != LINEAGE_UNKNOWN; op = nodes[op].sibling)
        if (op != item->root_heir)
            add_fork(forks, &(struct chain_fork){.loser = lineage_end(lineage, op),
                                                 .rival = item->root_heir,
                                                 .base = LINEAGE_ABSENT,
                                                 .open = is_guess(lineage, item, op)});
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t parent = lineage->items.order[i];
        if (nodes[parent].role != LINEAGE_WRITE)
            continue;
        bool late = nodes[parent].heir == LINEAGE_UNKNOWN;
        for (uint32_t op = nodes[parent].child; op != LINEAGE_UNKNOWN; op = nodes[op].sibling)
            if (op != nodes[parent].heir)
                add_fork(forks, &(struct chain_fork){.loser = lineage_end(lineage, op),
                                                     .rival = late ? parent : nodes[parent].heir,
                                                     .base = parent,
                                                     .late = late,
                                                     .open = is_guess(lineage, item, op)});
    }
}

/* What took the place of trees that are lost as a whole: the beginning of the last value's. */
static uint32_t find_rival(const struct lineage *lineage, const struct lineage_item *item)
{
    if (item->final < LINEAGE_ABSENT)
        return lineage_top(lineage, item, item->final);
    for (uint32_t i = item->range->to; i-- > item->range->from;) { /* some deletion: the last */
        const struct history_op *op = &lineage->history->ops[lineage->items.order[i]];
        if (op->kind == HISTORY_DELETE && op->outcome != HISTORY_FAILED)
            return lineage->items.order[i];
    }
    return LINEAGE_UNKNOWN;
}

/* How many of the item's open ends are lost for certain; the others are *unjudged. A link leads on
 * from one at most, and nobody knows from where. If nobody has looked, one may be the last value.
 */
static uint32_t count_open(const struct lineage *lineage, const struct lineage_item *item,
                           uint64_t *unjudged)
{
    uint32_t values = 0, deletions = 0;
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = lineage->items.order[i];
        const struct history_op *at = &lineage->history->ops[op];
        bool erased = at->kind == HISTORY_DELETE;
        *unjudged += !erased && history_kind_writes((enum history_kind)at->kind) &&
                     at->outcome == HISTORY_OK && lineage->nodes[op].role == LINEAGE_OUT;
        values += lineage->nodes[op].open && !erased;
        deletions += lineage->nodes[op].open && erased;
    }
    if (item->final >= LINEAGE_ABSENT && !item->gone) {
        *unjudged += values > 0 ? values - 1 : 0;
        return 0;
    }
    uint32_t spared = values < item->links ? values : item->links;
    *unjudged += spared + (deletions < item->links ? deletions : item->links);
    return values - spared;
}

/* Trees that end in a value that nobody was told to have replaced, and is not the last. */
static void find_ends(const struct lineage *lineage, const struct lineage_item *item,
                      struct chain_forks *forks, uint64_t *unjudged)
{
    const struct lineage_node *nodes = lineage->nodes;
    uint32_t rival = find_rival(lineage, item), lost = count_open(lineage, item, unjudged);
    for (uint32_t i = item->range->to; i-- > item->range->from;) { /* the last were led on least */
        uint32_t top = lineage->items.order[i];
        if (nodes[top].role != LINEAGE_WRITE ||
            (nodes[top].parent != LINEAGE_UNKNOWN && top != item->root_heir))
            continue;
        uint32_t end = lineage_end(lineage, top);
        if (nodes[end].open ? lost == 0 || lineage->history->ops[end].kind == HISTORY_DELETE
                            : nodes[end].prevails)
            continue;
        lost -= nodes[end].open;
        add_fork(forks, &(struct chain_fork){.loser = end,
                                             .rival = rival,
                                             .base = LINEAGE_ABSENT,
                                             .open = nodes[end].open});
    }
}

static void find_forks(const struct lineage *lineage, const struct lineage_item *item,
                       struct chain_forks *forks, uint64_t *unjudged)
{
    find_branches(lineage, item, forks);
    if (item->final != LINEAGE_ABSENT)
        find_ends(lineage, item, forks, unjudged);
}

void chain_forks_deinit(struct chain_forks *forks)
{
    free(forks->at);
    *forks = (struct chain_forks){0};
}

/* ---- All ---- */

static void judge_all(struct judge *judge, struct chain_forks *forks, uint64_t *operations,
                      uint64_t *unjudged)
{
    const struct lineage *lineage = judge->lineage;
    uint64_t items = 0;
    for (uint32_t i = 0; i < lineage->items.count; i++) {
        const struct lineage_item *item = &lineage->item_array[i];
        if (!item->judged)
            continue;
        items++;
        *operations += item->range->to - item->range->from;
        if (item->fault) {
            if (wrong(judge, item, item->fault))
                for (uint32_t j = 0; j < item->fault_count; j++)
                    add_op(judge, item->fault_ops[j]);
            continue;
        }
        find_forks(lineage, item, forks, unjudged);
        if (!judge->options->eventual)
            judge_strong(judge, item);
    }
    verdict_figure(judge->verdict, "items", items);
}

void check_chain(const struct history *history, const struct chain_options *options,
                 struct chain_forks *ret_forks, struct verdict *ret)
{
    verdict_init(ret);
    struct lineage lineage;
    lineage_init(&lineage, history);
    struct judge judge = {.lineage = &lineage, .options = options, .verdict = ret};
    judge.end_op = xcalloc(history->count, sizeof(*judge.end_op));
    judge.start_op = xcalloc(history->count, sizeof(*judge.start_op));
    judge.chains = xcalloc((size_t)history->count + 1, sizeof(*judge.chains));
    judge.latest = xcalloc((size_t)history->count + 1, sizeof(*judge.latest));
    struct chain_forks forks = {0};
    uint64_t operations = 0, late = 0, unjudged = 0;
    judge_all(&judge, &forks, &operations, &unjudged);
    for (uint32_t i = 0; i < forks.count; i++)
        late += forks.at[i].late;
    verdict_figure(ret, "operations", operations);
    verdict_figure(ret, "segments", judge.segments);
    verdict_figure(ret, "forks", forks.count - late);
    verdict_figure(ret, "late", late);
    verdict_figure(ret, "unjudged", options->eventual ? unjudged : 0);
    verdict_figure(ret, "wrong_items", judge.wrong_items);
    if (!options->eventual)
        verdict_conclude(ret, history, "%" PRIu64 " operation%s, linearizable", operations,
                         plural(operations));
    else if (unjudged == 0)
        verdict_conclude(ret, history,
                         "%" PRIu64 " operation%s; %" PRIu64 " write%s overwritten unseen",
                         operations, plural(operations), (uint64_t)forks.count,
                         forks.count == 1 ? " was" : "s were");
    else
        verdict_conclude(ret, history,
                         "%" PRIu64 " operation%s; %" PRIu64
                         " write%s overwritten unseen, and %" PRIu64 " of which nobody can tell",
                         operations, plural(operations), (uint64_t)forks.count,
                         forks.count == 1 ? " was" : "s were", unjudged);
    free(judge.end_op);
    free(judge.start_op);
    free(judge.chains);
    free(judge.latest);
    lineage_deinit(&lineage);
    if (ret_forks)
        *ret_forks = forks;
    else
        chain_forks_deinit(&forks);
}
