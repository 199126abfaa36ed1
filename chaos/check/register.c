/* SPDX-License-Identifier: Apache-2.0 */
/* Each item's operations are put in the terms of linear.h: a PUT that was told what it replaced is
 * a condition that held, and a condition that failed and was told what is there is a read. Times
 * become ranks, beginnings before ends at one moment, as that search wants them distinct. */

#include "chaos/check/register.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/items.h"
#include "chaos/check/linear.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    KINDS = 1 << HISTORY_PUT | 1 << HISTORY_PUT_IF | 1 << HISTORY_ADD | 1 << HISTORY_READ |
            1 << HISTORY_DELETE
};

struct moment {
    uint64_t time;
    uint32_t op; /* of the item's linear_ops */
    bool end;
};

struct judge {
    const struct history *history;
    const struct register_options *options;
    struct verdict *verdict;
    struct linear_op *ops; /* of the item at hand */
    struct moment *moments;
    uint32_t count;
    uint64_t operations, wrong_items, unknown_items, window_from_ns, window_to_ns;
};

/* What it was told was there; false if it was not told. */
static bool told(const struct history_op *op, bool *ret_present, int64_t *ret_value)
{
    if (op->saw != HISTORY_SAW_VALUE && op->saw != HISTORY_SAW_ABSENT)
        return false;
    *ret_present = op->saw == HISTORY_SAW_VALUE;
    *ret_value = *ret_present ? (int64_t)op->value : 0;
    return true;
}

static bool translate_if(const struct history_op *from, struct linear_op *to)
{
    to->kind = LINEAR_IF;
    to->expected_present = from->expected != 0;
    to->expected = (int64_t)from->expected;
    to->ok = from->outcome == HISTORY_OK;
    bool contradicts = false;
    if (told(from, &to->present, &to->value)) {
        bool same = to->present == to->expected_present && to->value == to->expected;
        contradicts = same != to->ok;
        if (!to->ok)
            to->kind = LINEAR_READ;
    }
    return !contradicts;
}

/* False: it says nothing. *ret_fault: it contradicts itself. */
static bool translate(const struct history_op *from, struct linear_op *to, bool *ret_fault)
{
    bool refused = from->kind == HISTORY_PUT_IF && from->reason == HISTORY_REASON_CONDITION;
    if (from->outcome == HISTORY_FAILED && !refused)
        return false;
    to->argument = (int64_t)from->written;
    switch ((enum history_kind)from->kind) {
    case HISTORY_READ:
        to->kind = LINEAR_READ;
        return from->outcome == HISTORY_OK && told(from, &to->present, &to->value);
    case HISTORY_PUT:
        to->ok = told(from, &to->expected_present, &to->expected);
        to->kind = to->ok ? LINEAR_IF : LINEAR_PUT;
        return true;
    case HISTORY_PUT_IF:
        *ret_fault = !translate_if(from, to);
        return true;
    case HISTORY_ADD:
        to->kind = LINEAR_ADD;
        to->observed = from->saw == HISTORY_SAW_VALUE;
        to->value = (int64_t)from->value;
        return true;
    case HISTORY_DELETE:
        to->kind = LINEAR_DELETE;
        to->observed = told(from, &to->expected_present, &to->expected);
        return true;
    case HISTORY_APPEND:
    case HISTORY_INSERT:
    case HISTORY_SCAN:
    case HISTORY_KIND_COUNT:
        break;
    }
    unreachable();
}

static int moment_order(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->end != y->end)
        return x->end ? 1 : -1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* Ranks from 1 on; moments[rank - 1] is what it was. */
static void rank_times(struct judge *judge)
{
    uint32_t moment_count = 0;
    for (uint32_t i = 0; i < judge->count; i++) {
        struct linear_op *op = &judge->ops[i];
        judge->moments[moment_count++] = (struct moment){op->call, i, false};
        if (op->ret != UINT64_MAX)
            judge->moments[moment_count++] = (struct moment){op->ret, i, true};
    }
    qsort(judge->moments, moment_count, sizeof(*judge->moments), moment_order);
    for (uint32_t i = 0; i < moment_count; i++) {
        struct linear_op *op = &judge->ops[judge->moments[i].op];
        *(judge->moments[i].end ? &op->ret : &op->call) = i + 1;
    }
}

static void show(struct judge *judge, const struct item_range *item, struct linear_window window)
{
    bool first = judge->verdict->kind != VERDICT_WRONG;
    judge->wrong_items++;
    if (!verdict_worsen(judge->verdict, VERDICT_WRONG,
                        "table %u, key %" PRIu32 ": no order of its operations is right",
                        item->table, item->key))
        return;
    if (first) {
        judge->window_from_ns = window.from ? judge->moments[window.from - 1].time : 0;
        judge->window_to_ns = window.to ? judge->moments[window.to - 1].time : 0;
    }
    for (uint32_t i = 0; i < judge->count; i++)
        if (judge->ops[i].ret >= window.from && judge->ops[i].call <= window.to)
            verdict_add_op(judge->verdict, (uint32_t)judge->ops[i].name);
}

static void judge_item(struct judge *judge, const struct items *items,
                       const struct item_range *item, const struct linear_budget *budget)
{
    judge->count = 0;
    for (uint32_t i = item->from; i < item->to; i++) {
        const struct history_op *op = &judge->history->ops[items->order[i]];
        if (op->kind == HISTORY_READ && !op->strong && !judge->options->weak_reads)
            continue;
        struct linear_op translated = {
            .call = op->invoke_ns, .ret = history_end(op), .name = items->order[i]};
        bool fault = false;
        if (!translate(op, &translated, &fault))
            continue;
        if (fault) {
            judge->wrong_items++;
            if (verdict_worsen(judge->verdict, VERDICT_WRONG,
                               "table %u, key %" PRIu32 ": a condition contradicts what it found",
                               item->table, item->key))
                verdict_add_op(judge->verdict, items->order[i]);
            return;
        }
        judge->ops[judge->count++] = translated;
    }
    judge->operations += judge->count;
    rank_times(judge);
    struct linear_window window;
    switch (linear_check_within(judge->ops, judge->count, budget, &window)) {
    case LINEAR_OK:
        break;
    case LINEAR_VIOLATED:
        show(judge, item, window);
        break;
    case LINEAR_UNKNOWN:
        judge->unknown_items++;
        verdict_worsen(judge->verdict, VERDICT_UNKNOWN,
                       "table %u, key %" PRIu32 ": the search went over its budget", item->table,
                       item->key);
        break;
    }
}

void check_register(const struct history *history, const struct register_options *options,
                    struct verdict *ret)
{
    verdict_init(ret);
    struct items items;
    items_init(&items, history);
    uint32_t longest = 0;
    for (uint32_t i = 0; i < items.count; i++)
        if (items.at[i].to - items.at[i].from > longest)
            longest = items.at[i].to - items.at[i].from;
    struct judge judge = {.history = history, .options = options, .verdict = ret};
    judge.ops = xcalloc(longest, sizeof(*judge.ops));
    judge.moments = xcalloc(2 * (size_t)longest, sizeof(*judge.moments));
    size_t own = longest * (sizeof(*judge.ops) + 2 * sizeof(*judge.moments)) +
                 history->count * sizeof(*items.order);
    size_t memory_max = options->memory_max ? options->memory_max : (size_t)1 << 30;
    struct linear_budget budget = {.steps_max = options->steps_max ? options->steps_max : 50000000,
                                   .memory_max = memory_max > own ? memory_max - own : 0};
    uint64_t judged = 0;
    for (uint32_t i = 0; i < items.count; i++) {
        if (items.at[i].kinds & ~KINDS)
            continue;
        judged++;
        judge_item(&judge, &items, &items.at[i], &budget);
    }
    verdict_figure(ret, "items", judged);
    verdict_figure(ret, "operations", judge.operations);
    verdict_figure(ret, "wrong_items", judge.wrong_items);
    verdict_figure(ret, "unknown_items", judge.unknown_items);
    verdict_figure(ret, "window_from_ns", judge.window_from_ns);
    verdict_figure(ret, "window_to_ns", judge.window_to_ns);
    verdict_conclude(ret, history, "%" PRIu64 " operation%s, linearizable", judge.operations,
                     plural(judge.operations));
    free(judge.ops);
    free(judge.moments);
    items_deinit(&items);
}
