/* SPDX-License-Identifier: Apache-2.0 */
/* An acknowledged ADD names its place in the order, so the order is known but for the INFO ones,
 * which fill the sums that nobody was told. An INFO fits any gap that had not been passed for
 * certain when it was sent: gap p has the deadline D(p), the first end among the operations that
 * saw p or more. Deadlines rise with p, so by Hall's theorem all gaps can be filled if, for each,
 * as many INFOs were sent by its deadline as there are gaps up to it. That and real time among what
 * was told is all there is, so the judgement is exact. */

#include "chaos/check/counter.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/items.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { KINDS = 1 << HISTORY_ADD | 1 << HISTORY_READ };

struct told {
    uint64_t sum;
    uint32_t op;
    bool read; /* after the ADD of the same sum */
};

struct judge {
    const struct history *history;
    struct verdict *verdict;
    struct told *told; /* of the item at hand, by sum */
    uint64_t *infos;   /* when each INFO was sent, rising */
    uint64_t *ends;    /* by place in told: the first end from there on */
    uint32_t told_count, info_count, untold;
    uint64_t items, acked, info, duplicates, final_min, final_max, lost;
};

static const struct history_op *op_at(const struct judge *judge, uint32_t op)
{
    return &judge->history->ops[op];
}

static int told_order(const void *a, const void *b)
{
    const struct told *x = a, *y = b;
    if (x->sum != y->sum)
        return x->sum < y->sum ? -1 : 1;
    if (x->read != y->read)
        return x->read ? 1 : -1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static void wrong(struct judge *judge, const struct item_range *item, const char *text, uint32_t a,
                  uint32_t b)
{
    if (!verdict_worsen(judge->verdict, VERDICT_WRONG, "table %u, key %" PRIu32 ": %s", item->table,
                        item->key, text))
        return;
    verdict_add_op(judge->verdict, a);
    if (b != ITEMS_NONE)
        verdict_add_op(judge->verdict, b);
}

static bool adds_one(const struct judge *judge, const struct items *items,
                     const struct item_range *item)
{
    if ((item->kinds & ~KINDS) != 0)
        return false;
    for (uint32_t i = item->from; i < item->to; i++) {
        const struct history_op *op = op_at(judge, items->order[i]);
        if (op->kind == HISTORY_ADD && op->outcome != HISTORY_FAILED && op->written != 1)
            return false;
    }
    return (item->kinds >> HISTORY_ADD & 1) != 0;
}

/* Sorts out who was told what. Weak reads are out: in eventual mode all reads are in. */
static void gather(struct judge *judge, const struct items *items, const struct item_range *item,
                   bool weak)
{
    judge->told_count = judge->info_count = judge->untold = 0;
    for (uint32_t i = item->from; i < item->to; i++) {
        uint32_t index = items->order[i];
        const struct history_op *op = op_at(judge, index);
        bool read = op->kind == HISTORY_READ;
        if (op->outcome == HISTORY_INFO && !read)
            judge->infos[judge->info_count++] = op->invoke_ns;
        if (op->outcome != HISTORY_OK || (read && !op->strong && !weak))
            continue;
        if (op->saw == HISTORY_SAW_VALUE || (read && op->saw == HISTORY_SAW_ABSENT))
            judge->told[judge->told_count++] =
                (struct told){op->saw == HISTORY_SAW_VALUE ? op->value : 0, index, read};
        else
            judge->untold += !read;
    }
    qsort(judge->told, judge->told_count, sizeof(*judge->told), told_order);
}

/* ---- In any mode: more than were sent by then, or less than one. ---- */

static int end_order(const void *a, const void *b)
{
    const struct told *x = a, *y = b; /* sum holds an end here */
    return x->sum < y->sum ? -1 : x->sum > y->sum;
}

static void judge_sums(struct judge *judge, const struct items *items,
                       const struct item_range *item)
{
    struct told *by_end = xcalloc(judge->told_count, sizeof(*by_end));
    for (uint32_t i = 0; i < judge->told_count; i++) {
        by_end[i] = judge->told[i];
        by_end[i].sum = history_end(op_at(judge, judge->told[i].op));
    }
    qsort(by_end, judge->told_count, sizeof(*by_end), end_order);
    uint64_t sent = 0;
    uint32_t at = item->from;
    for (uint32_t i = 0; i < judge->told_count; i++) { /* one walk through both, by time */
        for (; at < item->to && op_at(judge, items->order[at])->invoke_ns <= by_end[i].sum; at++) {
            const struct history_op *op = op_at(judge, items->order[at]);
            sent += op->kind == HISTORY_ADD && op->outcome != HISTORY_FAILED;
        }
        const struct history_op *op = op_at(judge, by_end[i].op);
        uint64_t sum = op->saw == HISTORY_SAW_VALUE ? op->value : 0;
        if (sum > sent)
            wrong(judge, item, "a sum of more than was sent", by_end[i].op, ITEMS_NONE);
        if (op->kind == HISTORY_ADD && sum == 0)
            wrong(judge, item, "an addition that gave nothing", by_end[i].op, ITEMS_NONE);
    }
    free(by_end);
}

/* ---- Strong mode ---- */

static bool judge_order(struct judge *judge, const struct item_range *item)
{
    uint32_t latest = ITEMS_NONE,
             pending = ITEMS_NONE; /* what began last: before this sum, in it */
    for (uint32_t i = 0; i < judge->told_count; i++) {
        const struct told *at = &judge->told[i];
        const struct history_op *op = op_at(judge, at->op);
        bool next = i == 0 || at->sum != at[-1].sum;
        if (!next && !at->read) {
            wrong(judge, item, "two additions gave one sum: an update was lost", at[-1].op, at->op);
            return false;
        }
        if (next || !at[-1].read) { /* an ADD comes before the reads of its sum */
            if (pending != ITEMS_NONE &&
                (latest == ITEMS_NONE ||
                 op_at(judge, pending)->invoke_ns > op_at(judge, latest)->invoke_ns))
                latest = pending;
            pending = ITEMS_NONE;
        }
        if (latest != ITEMS_NONE && history_end(op) < op_at(judge, latest)->invoke_ns) {
            wrong(judge, item, "a sum was told before one began that is less", at->op, latest);
            return false;
        }
        if (pending == ITEMS_NONE || op->invoke_ns > op_at(judge, pending)->invoke_ns)
            pending = at->op;
    }
    return true;
}

static void judge_gaps(struct judge *judge, const struct item_range *item)
{
    uint32_t count = judge->told_count;
    uint64_t end = UINT64_MAX;
    for (uint32_t i = count; i-- > 0;) {
        uint64_t own = history_end(op_at(judge, judge->told[i].op));
        judge->ends[i] = end = own < end ? own : end;
    }
    uint64_t named = 0; /* sums up to here that an ADD was told */
    uint32_t sent = 0;
    for (uint32_t i = 0; i < count; i++) {
        named += !judge->told[i].read;
        while (sent < judge->info_count && judge->infos[sent] <= judge->ends[i])
            sent++;
        if (judge->told[i].sum - named > sent) {
            wrong(judge, item, "a sum of more than can have been added by then", judge->told[i].op,
                  ITEMS_NONE);
            return;
        }
    }
}

/* ---- All ---- */

static void judge_final(struct judge *judge, const struct items *items,
                        const struct item_range *item)
{
    uint64_t acked = 0, final = UINT64_MAX;
    for (uint32_t i = item->from; i < item->to; i++) {
        const struct history_op *op = op_at(judge, items->order[i]);
        acked += op->kind == HISTORY_ADD && op->outcome == HISTORY_OK;
        if (op->final && op->kind == HISTORY_READ && op->outcome == HISTORY_OK)
            final = op->saw == HISTORY_SAW_VALUE ? op->value : 0;
    }
    judge->acked += acked;
    judge->info += judge->info_count;
    if (final == UINT64_MAX)
        return;
    judge->final_min += acked;
    judge->final_max += acked + judge->info_count;
    judge->lost += final < acked ? acked - final : 0;
}

static void judge_item(struct judge *judge, const struct items *items,
                       const struct item_range *item, bool eventual)
{
    judge->items++;
    gather(judge, items, item, eventual);
    for (uint32_t i = 1; i < judge->told_count; i++)
        judge->duplicates += !judge->told[i].read && judge->told[i].sum == judge->told[i - 1].sum;
    judge_final(judge, items, item);
    if (eventual) {
        judge_sums(judge, items, item);
        return;
    }
    if (!judge_order(judge, item))
        return;
    if (judge->told_count && judge->told[0].sum == 0 && !judge->told[0].read) {
        wrong(judge, item, "an addition that gave nothing", judge->told[0].op, ITEMS_NONE);
        return;
    }
    if (judge->untold) {
        judge_sums(judge, items, item);
        verdict_worsen(judge->verdict, VERDICT_UNKNOWN,
                       "table %u, key %" PRIu32 ": additions that did not ask for the sum",
                       item->table, item->key);
        return;
    }
    judge_gaps(judge, item);
}

void check_counter(const struct history *history, const struct counter_options *options,
                   struct verdict *ret)
{
    verdict_init(ret);
    struct items items;
    items_init(&items, history);
    struct judge judge = {.history = history, .verdict = ret};
    judge.told = xcalloc(history->count, sizeof(*judge.told));
    judge.infos = xcalloc(history->count, sizeof(*judge.infos));
    judge.ends = xcalloc(history->count, sizeof(*judge.ends));
    for (uint32_t i = 0; i < items.count; i++)
        if (adds_one(&judge, &items, &items.at[i]))
            judge_item(&judge, &items, &items.at[i], options->eventual);
    verdict_figure(ret, "items", judge.items);
    verdict_figure(ret, "acked", judge.acked);
    verdict_figure(ret, "info", judge.info);
    verdict_figure(ret, "duplicates", judge.duplicates);
    verdict_figure(ret, "final_min", judge.final_min);
    verdict_figure(ret, "final_max", judge.final_max);
    verdict_figure(ret, "lost", judge.lost);
    verdict_conclude(
        ret, history, "%" PRIu64 " addition%s to %" PRIu64 " counter%s, %" PRIu64 " lost",
        judge.acked, plural(judge.acked), judge.items, plural(judge.items), judge.lost);
    free(judge.told);
    free(judge.infos);
    free(judge.ends);
    items_deinit(&items);
}
