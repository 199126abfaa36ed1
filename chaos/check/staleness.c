/* SPDX-License-Identifier: Apache-2.0 */
/* The writes of an item that prevail are put in one line. A read reflects the line up to a place;
 * what it misses is what was acknowledged before it began and stands behind that place. Reads are
 * taken by when they began and writes by when they were acknowledged, so that the writes to count
 * are those already in a tree of sums by place (Fenwick, 1994).
 *
 * Where strong reads have to be fresh, runs of writes are lined up by what is certain, as chain.c
 * does: a run has to stand before another if something in it, a strong read of it included, ended
 * before something in the other began. A write that was never answered may take effect at any later
 * time, so the place of its run is told by who saw it and not by when it was sent. If some order of
 * all operations is right, the line is such an order of the writes, and no strong read is stale:
 * what it is said to miss had ended before it began, and would have to stand before what it saw. */

#include "chaos/check/staleness.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/items.h"
#include "chaos/check/lineage.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct sample {
    uint64_t stale_ns, age_ns;
    uint32_t op, missed;
    uint8_t row; /* 2 * region + strong */
};

struct tree {
    uint32_t top;
    uint64_t low_ns, start_ns;
    bool last;
};

struct span { /* of a write and who saw it: the first end, the last beginning */
    uint64_t end_ns, start_ns;
};

struct write {
    uint64_t ack_ns;
    uint32_t place;
};

struct judge {
    const struct staleness_options *options;
    struct verdict *verdict;
    struct lineage lineage;
    uint32_t *place;      /* by operation that prevails: its place in the line, from 1 */
    struct span *spans;   /* by operation: of a write */
    struct tree *trees;   /* of the item at hand, as are these: */
    uint32_t *line;       /* by place, from 1: the write */
    struct write *by_ack; /* those that were acknowledged */
    uint64_t *oldest_ns;  /* by place: the first acknowledgement from there on */
    uint32_t *sums;
    uint32_t length, ack_count;
    struct sample *samples;
    uint64_t sample_count, unjudged;
};

static const struct history_op *op_at(const struct judge *judge, uint32_t op)
{
    return &judge->lineage.history->ops[op];
}

void staleness_table_deinit(struct staleness_table *table)
{
    free(table->rows);
    *table = (struct staleness_table){0};
}

/* ---- The line ---- */

static int tree_order(const void *a, const void *b)
{
    const struct tree *x = a, *y = b;
    if (x->last != y->last)
        return x->last ? 1 : -1;
    if (x->low_ns != y->low_ns)
        return x->low_ns < y->low_ns ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->top < y->top ? -1 : x->top > y->top;
}

/* Whether what saw a write tells by when it stood there. */
static bool is_certain(const struct judge *judge, const struct history_op *op)
{
    return judge->options->strong_fresh && (op->kind != HISTORY_READ || op->strong);
}

static void span_writes(struct judge *judge, const struct lineage_item *item)
{
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage.items.order[i];
        const struct history_op *at = op_at(judge, op);
        judge->spans[op] = (struct span){history_end(at), at->invoke_ns};
    }
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage.items.order[i];
        const struct lineage_node *node = &judge->lineage.nodes[op];
        const struct history_op *at = op_at(judge, op);
        if (node->role != LINEAGE_READ || node->parent >= LINEAGE_ABSENT || !is_certain(judge, at))
            continue;
        struct span *span = &judge->spans[node->parent];
        span->end_ns = history_end(at) < span->end_ns ? history_end(at) : span->end_ns;
        span->start_ns = at->invoke_ns > span->start_ns ? at->invoke_ns : span->start_ns;
    }
}

/* chain.c's order of chains that do not cross: by the lesser of first end and last beginning. Of
 * two with the same, the one that began last has the other one's end for it, and comes later. */
static struct tree tree_from(const struct judge *judge, uint32_t top, bool last)
{
    struct span all = {UINT64_MAX, 0};
    for (uint32_t op = top; op != LINEAGE_UNKNOWN; op = judge->lineage.nodes[op].heir) {
        const struct span *span = &judge->spans[op];
        all.end_ns = span->end_ns < all.end_ns ? span->end_ns : all.end_ns;
        all.start_ns = span->start_ns > all.start_ns ? span->start_ns : all.start_ns;
    }
    uint64_t low_ns = all.end_ns < all.start_ns ? all.end_ns : all.start_ns;
    return (struct tree){top, low_ns, all.start_ns, last && !judge->options->strong_fresh};
}

static void line_up(struct judge *judge, const struct lineage_item *item)
{
    const struct lineage_node *nodes = judge->lineage.nodes;
    uint32_t final_tree = item->final < LINEAGE_ABSENT ? nodes[item->final].tree : LINEAGE_UNKNOWN;
    uint32_t count = 0;
    span_writes(judge, item);
    if (item->root_heir != LINEAGE_UNKNOWN) {
        bool last = final_tree == LINEAGE_ABSENT && !judge->options->strong_fresh;
        judge->trees[count++] = (struct tree){.top = item->root_heir, .last = last};
    }
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage.items.order[i];
        if (nodes[op].role == LINEAGE_WRITE && nodes[op].parent == LINEAGE_UNKNOWN)
            judge->trees[count++] = tree_from(judge, op, final_tree == op);
    }
    qsort(judge->trees, count, sizeof(*judge->trees), tree_order);
    judge->length = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t op = judge->trees[i].top; op != LINEAGE_UNKNOWN; op = nodes[op].heir) {
            judge->line[++judge->length] = op;
            judge->place[op] = judge->length;
        }
}

static int ack_order(const void *a, const void *b)
{
    const struct write *x = a, *y = b;
    if (x->ack_ns != y->ack_ns)
        return x->ack_ns < y->ack_ns ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void prepare(struct judge *judge)
{
    judge->ack_count = 0;
    judge->oldest_ns[judge->length + 1] = UINT64_MAX;
    for (uint32_t place = judge->length; place > 0; place--) {
        uint64_t ack = history_end(op_at(judge, judge->line[place]));
        uint64_t after = judge->oldest_ns[place + 1];
        judge->oldest_ns[place] = ack < after ? ack : after;
        judge->sums[place] = 0;
        if (ack != UINT64_MAX)
            judge->by_ack[judge->ack_count++] = (struct write){ack, place};
    }
    qsort(judge->by_ack, judge->ack_count, sizeof(*judge->by_ack), ack_order);
}

static void count_in(struct judge *judge, uint32_t place)
{
    for (; place <= judge->length; place += place & -place)
        judge->sums[place]++;
}

static uint32_t count_up_to(const struct judge *judge, uint32_t place)
{
    uint32_t sum = 0;
    for (; place > 0; place -= place & -place)
        sum += judge->sums[place];
    return sum;
}

/* ---- Reads ---- */

static uint32_t place_of(const struct judge *judge, uint32_t seen)
{
    if (seen == LINEAGE_ABSENT)
        return 0;
    if (judge->options->strong_fresh && judge->place[seen] != 0)
        return judge->place[seen];
    uint32_t anchor = judge->lineage.nodes[seen].anchor;
    return anchor < LINEAGE_ABSENT ? judge->place[anchor] : 0;
}

static void sample(struct judge *judge, uint32_t index, uint32_t acked, uint32_t newest)
{
    const struct history_op *read = op_at(judge, index);
    uint32_t place = place_of(judge, judge->lineage.nodes[index].parent);
    struct sample *to = &judge->samples[judge->sample_count++];
    *to = (struct sample){
        .op = index, .row = (uint8_t)(2 * (read->region % HISTORY_REGIONS_MAX) + read->strong)};
    to->missed = acked - count_up_to(judge, place);
    if (to->missed == 0)
        return;
    to->stale_ns = read->invoke_ns - history_end(op_at(judge, judge->line[newest]));
    to->age_ns = read->invoke_ns - judge->oldest_ns[place + 1];
}

static bool is_read(const struct history_op *op)
{
    return op->kind == HISTORY_READ && op->outcome == HISTORY_OK &&
           (op->saw == HISTORY_SAW_VALUE || op->saw == HISTORY_SAW_ABSENT);
}

static void judge_item(struct judge *judge, const struct lineage_item *item)
{
    if (!item->judged)
        return;
    bool usable = !item->fault;
    if (usable) {
        line_up(judge, item);
        prepare(judge);
    }
    uint32_t acked = 0, newest = 0;
    for (uint32_t i = item->range->from; i < item->range->to; i++) { /* by when they began */
        uint32_t index = judge->lineage.items.order[i];
        const struct history_op *op = op_at(judge, index);
        if (!is_read(op))
            continue;
        if (!usable || judge->lineage.nodes[index].role != LINEAGE_READ) {
            judge->unjudged++;
            continue;
        }
        for (; acked < judge->ack_count && judge->by_ack[acked].ack_ns < op->invoke_ns; acked++) {
            uint32_t place = judge->by_ack[acked].place;
            count_in(judge, place);
            newest = place > newest ? place : newest;
        }
        sample(judge, index, acked, newest);
    }
}

/* ---- The table ---- */

static int row_order(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->age_ns != y->age_ns)
        return x->age_ns < y->age_ns ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* The curve of rising ages. */
static void fill_points(struct staleness_row *row, const struct sample *samples, uint64_t count)
{
    uint64_t fresh = 0;
    while (fresh < count && samples[fresh].age_ns == 0)
        fresh++;
    row->point_millionths[row->point_count++] = (uint32_t)(fresh * 1000000 / count);
    uint64_t steps = STALENESS_POINTS - 1, late = count - fresh;
    for (uint64_t step = 1; step <= steps && late > 0; step++) {
        uint64_t at = fresh + (late * step + steps - 1) / steps - 1;
        uint64_t age = samples[at].age_ns;
        while (at + 1 < count && samples[at + 1].age_ns == age)
            at++;
        if (age == row->point_ns[row->point_count - 1])
            continue;
        row->point_ns[row->point_count] = age;
        row->point_millionths[row->point_count++] = (uint32_t)((at + 1) * 1000000 / count);
    }
}

static void fill_row(struct staleness_row *row, const struct sample *samples, uint64_t count,
                     uint64_t *scratch)
{
    row->region = samples[0].row / 2;
    row->strong = samples[0].row % 2;
    row->reads = (uint32_t)count;
    row->worst = samples[count - 1].op;
    row->age_max_ns = samples[count - 1].age_ns;
    for (uint64_t i = 0; i < count; i++) {
        row->stale += samples[i].missed > 0;
        scratch[i] = samples[i].age_ns;
    }
    row->age_p50_ns = numbers_quantile(scratch, count, 500000);
    row->age_p99_ns = numbers_quantile(scratch, count, 990000);
    for (uint64_t i = 0; i < count; i++)
        scratch[i] = samples[i].stale_ns;
    numbers_sort(scratch, count);
    row->p50_ns = numbers_quantile(scratch, count, 500000);
    row->p99_ns = numbers_quantile(scratch, count, 990000);
    row->max_ns = scratch[count - 1];
    for (uint64_t i = 0; i < count; i++)
        scratch[i] = samples[i].missed;
    numbers_sort(scratch, count);
    row->p50_k = (uint32_t)numbers_quantile(scratch, count, 500000);
    row->p99_k = (uint32_t)numbers_quantile(scratch, count, 990000);
    row->max_k = (uint32_t)scratch[count - 1];
    fill_points(row, samples, count);
}

static void fill_table(struct judge *judge, struct staleness_table *table)
{
    uint64_t count = judge->sample_count;
    qsort(judge->samples, count, sizeof(*judge->samples), row_order);
    table->rows = xcalloc(2 * HISTORY_REGIONS_MAX, sizeof(*table->rows));
    uint64_t *scratch = xcalloc(count, sizeof(*scratch));
    for (uint64_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && judge->samples[to].row == judge->samples[from].row;)
            to++;
        fill_row(&table->rows[table->count++], judge->samples + from, to - from, scratch);
    }
    free(scratch);
}

static void conclude(struct judge *judge, const struct staleness_table *table)
{
    uint64_t reads = 0, stale = 0, max_ns = 0, age_ns = 0, max_k = 0;
    struct verdict *verdict = judge->verdict;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct staleness_row *row = &table->rows[i];
        reads += row->reads;
        stale += row->stale;
        max_ns = row->max_ns > max_ns ? row->max_ns : max_ns;
        age_ns = row->age_max_ns > age_ns ? row->age_max_ns : age_ns;
        max_k = row->max_k > max_k ? row->max_k : max_k;
        if (row->strong && row->stale && judge->options->strong_fresh &&
            verdict_worsen(verdict, VERDICT_WRONG,
                           "region %u: a strong read missed what had been acknowledged",
                           row->region)) {
            uint32_t seen = judge->lineage.nodes[row->worst].parent;
            verdict_add_op(verdict, row->worst);
            if (seen < LINEAGE_ABSENT)
                verdict_add_op(verdict, seen);
        }
    }
    verdict_figure(verdict, "reads", reads);
    verdict_figure(verdict, "stale", stale);
    verdict_figure(verdict, "max_ns", max_ns);
    verdict_figure(verdict, "age_max_ns", age_ns);
    verdict_figure(verdict, "max_k", max_k);
    verdict_figure(verdict, "unjudged", judge->unjudged);
    verdict_conclude(verdict, judge->lineage.history,
                     "%" PRIu64 " read%s, %" PRIu64 " stale, by %" PRIu64 " ms at most", reads,
                     plural(reads), stale, max_ns / 1000000);
}

void check_staleness(const struct history *history, const struct staleness_options *options,
                     struct staleness_table *ret_table, struct verdict *ret)
{
    verdict_init(ret);
    struct judge judge = {.options = options, .verdict = ret};
    lineage_init(&judge.lineage, history);
    size_t room = (size_t)history->count + 2;
    judge.place = xcalloc(room, sizeof(*judge.place));
    judge.spans = xcalloc(room, sizeof(*judge.spans));
    judge.trees = xcalloc(room, sizeof(*judge.trees));
    judge.line = xcalloc(room, sizeof(*judge.line));
    judge.by_ack = xcalloc(room, sizeof(*judge.by_ack));
    judge.oldest_ns = xcalloc(room, sizeof(*judge.oldest_ns));
    judge.sums = xcalloc(room, sizeof(*judge.sums));
    judge.samples = xcalloc(room, sizeof(*judge.samples));
    for (uint32_t i = 0; i < judge.lineage.items.count; i++)
        judge_item(&judge, &judge.lineage.item_array[i]);
    struct staleness_table table = {0};
    fill_table(&judge, &table);
    conclude(&judge, &table);
    free(judge.place);
    free(judge.spans);
    free(judge.trees);
    free(judge.line);
    free(judge.by_ack);
    free(judge.oldest_ns);
    free(judge.sums);
    free(judge.samples);
    lineage_deinit(&judge.lineage);
    if (ret_table)
        *ret_table = table;
    else
        staleness_table_deinit(&table);
}
