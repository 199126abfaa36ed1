/* SPDX-License-Identifier: Apache-2.0 */
/* The longest list that anyone saw is the order of the appends in it. Whatever else was appended
 * and acknowledged comes after, in any order that time allows. Group p is the p-th append with all
 * that saw a list of length p; real time is judged over the groups as in chain.c. */

#include "chaos/check/append.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/items.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { KINDS = 1 << HISTORY_APPEND | 1 << HISTORY_READ };

struct seen { /* an operation that saw a list */
    uint32_t op, count;
};

struct judge {
    const struct history *history;
    const struct append_options *options;
    struct verdict *verdict;
    struct writers writers;
    const struct items *items;
    const struct item_range *item; /* at hand */
    struct seen *seen;             /* by length */
    uint32_t seen_count;
    uint32_t *stamp; /* by append: the last list that it was found in, as an index + 1 */
    uint64_t judged, appended, lost, forked, duplicated, phantoms;
};

static const struct history_op *op_at(const struct judge *judge, uint32_t op)
{
    return &judge->history->ops[op];
}

static bool wrong(struct judge *judge, const char *text, uint32_t a, uint32_t b)
{
    if (!verdict_worsen(judge->verdict, VERDICT_WRONG, "table %u, key %" PRIu32 ": %s",
                        judge->item->table, judge->item->key, text))
        return false;
    verdict_add_op(judge->verdict, a);
    if (b != ITEMS_NONE)
        verdict_add_op(judge->verdict, b);
    return true;
}

/* ---- Each list by itself ---- */

/* NULL, or what is wrong with seeing that element. */
static const char *element_fault(struct judge *judge, uint32_t reader, uint64_t value,
                                 uint32_t *ret_writer)
{
    uint32_t writer = writers_find(&judge->writers, judge->item->table, value);
    *ret_writer = writer;
    if (writer == ITEMS_NONE)
        return "a list holds what nobody appended";
    const struct history_op *op = op_at(judge, writer);
    if (op->key != judge->item->key || op->kind != HISTORY_APPEND)
        return "a list holds what was written elsewhere";
    if (op->outcome == HISTORY_FAILED)
        return "a list holds what failed to be appended";
    if (op->invoke_ns > history_end(op_at(judge, reader)))
        return "a list holds what had not been sent";
    return NULL;
}

static bool judge_list(struct judge *judge, uint32_t reader)
{
    const struct history_op *op = op_at(judge, reader);
    const uint64_t *list = history_list(judge->history, op);
    bool right = true;
    for (uint32_t i = 0; i < op->list_count; i++) {
        uint32_t writer;
        const char *fault = element_fault(judge, reader, list[i], &writer);
        if (fault) {
            judge->phantoms++;
            wrong(judge, fault, reader, writer);
            right = false;
        } else if (judge->stamp[writer] == reader + 1) {
            judge->duplicated++;
            wrong(judge, "a list holds one element twice", reader, writer);
            right = false;
        } else {
            judge->stamp[writer] = reader + 1;
        }
    }
    bool own =
        op->kind != HISTORY_APPEND || (op->list_count && list[op->list_count - 1] == op->written);
    if (!own)
        wrong(judge, "an append was told a list that does not end with it", reader, ITEMS_NONE);
    return right && own;
}

static int seen_order(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static bool gather(struct judge *judge)
{
    bool right = true;
    judge->seen_count = 0;
    for (uint32_t i = judge->item->from; i < judge->item->to; i++) {
        uint32_t index = judge->items->order[i];
        const struct history_op *op = op_at(judge, index);
        judge->stamp[index] = 0;
        judge->appended += op->kind == HISTORY_APPEND && op->outcome == HISTORY_OK;
        if (op->outcome != HISTORY_OK ||
            (op->saw != HISTORY_SAW_LIST && op->saw != HISTORY_SAW_ABSENT))
            continue;
        judge->seen[judge->seen_count++] = (struct seen){index, op->list_count};
    }
    for (uint32_t i = 0; i < judge->seen_count; i++)
        right = judge_list(judge, judge->seen[i].op) && right;
    qsort(judge->seen, judge->seen_count, sizeof(*judge->seen), seen_order);
    return right;
}

/* ---- All lists together ---- */

static bool judge_prefixes(struct judge *judge)
{
    if (judge->seen_count == 0)
        return true;
    uint32_t longest = judge->seen[judge->seen_count - 1].op;
    const uint64_t *order = history_list(judge->history, op_at(judge, longest));
    bool right = true;
    for (uint32_t i = 0; i < judge->seen_count; i++) {
        const struct seen *at = &judge->seen[i];
        const uint64_t *list = history_list(judge->history, op_at(judge, at->op));
        if (at->count == 0 || memcmp(list, order, at->count * sizeof(*list)) == 0)
            continue;
        judge->forked++;
        if (!judge->options->eventual)
            wrong(judge, "two lists, and neither is a prefix of the other", at->op, longest);
        right = false;
    }
    return right;
}

/* Keeps the later beginning of the two. */
static void later(const struct judge *judge, uint32_t *latest, uint32_t op)
{
    if (*latest == ITEMS_NONE || op_at(judge, op)->invoke_ns > op_at(judge, *latest)->invoke_ns)
        *latest = op;
}

static bool in_time(struct judge *judge, uint32_t op, uint32_t latest)
{
    if (latest == ITEMS_NONE || history_end(op_at(judge, op)) >= op_at(judge, latest)->invoke_ns)
        return true;
    wrong(judge, "an operation ended before one began that must precede it", op, latest);
    return false;
}

static bool counts(const struct judge *judge, uint32_t op)
{
    const struct history_op *read = op_at(judge, op);
    return read->kind == HISTORY_READ && (read->strong || judge->options->weak_reads);
}

static void judge_time(struct judge *judge)
{
    uint32_t longest = judge->seen_count ? judge->seen[judge->seen_count - 1].op : ITEMS_NONE;
    uint32_t length = judge->seen_count ? judge->seen[judge->seen_count - 1].count : 0, at = 0;
    uint32_t latest = ITEMS_NONE;
    for (uint32_t place = 0; place <= length; place++) {
        if (place > 0) {
            uint64_t value = history_list(judge->history, op_at(judge, longest))[place - 1];
            uint32_t append = writers_find(&judge->writers, judge->item->table, value);
            if (!in_time(judge, append, latest))
                return;
            later(judge, &latest, append);
            judge->stamp[append] = UINT32_MAX; /* it has its place */
        }
        uint32_t from = at;
        for (; at < judge->seen_count && judge->seen[at].count == place; at++)
            if (counts(judge, judge->seen[at].op) && !in_time(judge, judge->seen[at].op, latest))
                return;
        for (uint32_t i = from; i < at; i++)
            if (counts(judge, judge->seen[i].op))
                later(judge, &latest, judge->seen[i].op);
    }
    for (uint32_t i = judge->item->from; i < judge->item->to; i++) {
        uint32_t index = judge->items->order[i];
        const struct history_op *op = op_at(judge, index);
        if (op->kind == HISTORY_APPEND && op->outcome == HISTORY_OK &&
            judge->stamp[index] != UINT32_MAX && !in_time(judge, index, latest))
            return;
    }
}

/* Appends that ended before the last look began, and that it misses. */
static void judge_final(struct judge *judge)
{
    uint32_t final = ITEMS_NONE;
    for (uint32_t i = 0; i < judge->seen_count; i++)
        if (op_at(judge, judge->seen[i].op)->final)
            final = judge->seen[i].op;
    if (final == ITEMS_NONE)
        return;
    const struct history_op *look = op_at(judge, final);
    const uint64_t *list = history_list(judge->history, look);
    for (uint32_t i = 0; i < look->list_count; i++) {
        uint32_t writer = writers_find(&judge->writers, judge->item->table, list[i]);
        if (writer != ITEMS_NONE)
            judge->stamp[writer] = UINT32_MAX - 1;
    }
    for (uint32_t i = judge->item->from; i < judge->item->to; i++) {
        uint32_t index = judge->items->order[i];
        const struct history_op *op = op_at(judge, index);
        judge->lost += op->kind == HISTORY_APPEND && op->outcome == HISTORY_OK &&
                       op->return_ns < look->invoke_ns && judge->stamp[index] != UINT32_MAX - 1;
    }
}

static bool repeats(const struct judge *judge)
{
    for (uint32_t i = judge->item->from; i < judge->item->to; i++)
        if (judge->writers.repeated[judge->items->order[i]])
            return true;
    return false;
}

static void judge_item(struct judge *judge)
{
    judge->judged++;
    if (repeats(judge)) {
        verdict_worsen(judge->verdict, VERDICT_UNKNOWN,
                       "table %u, key %" PRIu32 ": two appends of one value", judge->item->table,
                       judge->item->key);
        return;
    }
    bool right = gather(judge);
    right = judge_prefixes(judge) && right;
    if (right && !judge->options->eventual)
        judge_time(judge);
    judge_final(judge);
}

void check_append(const struct history *history, const struct append_options *options,
                  struct verdict *ret)
{
    verdict_init(ret);
    struct items items;
    items_init(&items, history);
    struct judge judge = {.history = history, .options = options, .verdict = ret, .items = &items};
    writers_init(&judge.writers, history);
    judge.seen = xcalloc(history->count, sizeof(*judge.seen));
    judge.stamp = xcalloc(history->count, sizeof(*judge.stamp));
    for (uint32_t i = 0; i < items.count; i++) {
        judge.item = &items.at[i];
        if ((judge.item->kinds & ~KINDS) == 0 && judge.item->kinds >> HISTORY_APPEND & 1)
            judge_item(&judge);
    }
    verdict_figure(ret, "items", judge.judged);
    verdict_figure(ret, "appended", judge.appended);
    verdict_figure(ret, "lost", judge.lost);
    verdict_figure(ret, "forked", judge.forked);
    verdict_figure(ret, "duplicated", judge.duplicated);
    verdict_figure(ret, "phantoms", judge.phantoms);
    verdict_conclude(ret, history, "%" PRIu64 " append%s to %" PRIu64 " list%s, %" PRIu64 " lost",
                     judge.appended, plural(judge.appended), judge.judged, plural(judge.judged),
                     judge.lost);
    free(judge.seen);
    free(judge.stamp);
    writers_deinit(&judge.writers);
    items_deinit(&items);
}
