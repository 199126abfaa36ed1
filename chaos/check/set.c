/* SPDX-License-Identifier: Apache-2.0 */
/* Scans are taken in the order in which they began. Each becomes a bitmap of elements, and only
 * where it differs from the one before does an element's story go on: so a scan costs its own
 * length and a word for 64 elements, not a step for each element that ever was. */

#include "chaos/check/set.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/items.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { KINDS = 1 << HISTORY_INSERT | 1 << HISTORY_SCAN };

struct element {
    uint32_t insert;          /* its operation */
    uint32_t present, absent; /* the last scan that saw it, that missed it; or NONE */
    uint64_t seen_first_ns;   /* the first end of a scan that saw it */
    uint64_t seen_last_ns;    /* the last end of one */
};

struct judge {
    const struct history *history;
    const struct set_options *options;
    struct verdict *verdict;
    struct writers writers;
    const struct items *items;
    const struct item_range *item; /* at hand, and its: */
    struct element *elements;
    uint32_t element_count;
    uint32_t *element_of; /* by operation */
    uint64_t *bits, *bits_before;
    uint64_t *stable_ns, *lost_ns; /* of all items */
    uint64_t stable, lost;
    uint64_t inserted, scans, lost_info, never_read, unsettled, stale, duplicated, phantoms;
};

static const struct history_op *op_at(const struct judge *judge, uint32_t op)
{
    return &judge->history->ops[op];
}

static bool wrong(struct judge *judge, uint64_t element, const char *text, uint32_t a, uint32_t b)
{
    if (!verdict_worsen(judge->verdict, VERDICT_WRONG,
                        "table %u, set %" PRIu32 ", element %" PRIu64 ": %s", judge->item->table,
                        judge->item->key, element, text))
        return false;
    if (a != ITEMS_NONE)
        verdict_add_op(judge->verdict, a);
    if (b != ITEMS_NONE)
        verdict_add_op(judge->verdict, b);
    return true;
}

/* ---- Scans ---- */

static const char *phantom(const struct judge *judge, const struct history_op *scan,
                           uint32_t insert)
{
    if (insert == ITEMS_NONE)
        return "seen, and nobody inserted it";
    const struct history_op *op = op_at(judge, insert);
    if (op->kind != HISTORY_INSERT || op->key != judge->item->key)
        return "seen, and written elsewhere";
    if (op->outcome == HISTORY_FAILED)
        return "seen, and its insertion had failed";
    if (op->invoke_ns > scan->return_ns)
        return "seen before it was sent";
    return NULL;
}

/* Fills bits; strange elements are told and left out. */
static void read_scan(struct judge *judge, uint32_t index)
{
    const struct history_op *scan = op_at(judge, index);
    const uint64_t *list = history_list(judge->history, scan);
    for (uint32_t i = 0; i < scan->list_count; i++) {
        uint32_t insert = writers_find(&judge->writers, judge->item->table, list[i]);
        const char *fault = phantom(judge, scan, insert);
        if (fault) {
            judge->phantoms++;
            wrong(judge, list[i], fault, index, insert);
            continue;
        }
        uint32_t at = judge->element_of[insert];
        struct element *element = &judge->elements[at];
        if (judge->bits[at / 64] >> at % 64 & 1) {
            judge->duplicated++;
            wrong(judge, list[i], "twice in one scan", index, insert);
        }
        judge->bits[at / 64] |= 1ull << at % 64;
        if (scan->return_ns < element->seen_first_ns)
            element->seen_first_ns = scan->return_ns;
        if (scan->return_ns > element->seen_last_ns)
            element->seen_last_ns = scan->return_ns;
    }
}

static bool is_scan(const struct judge *judge, uint32_t index, bool strong)
{
    const struct history_op *op = op_at(judge, index);
    return op->kind == HISTORY_SCAN && op->outcome == HISTORY_OK &&
           (op->saw == HISTORY_SAW_LIST || op->saw == HISTORY_SAW_ABSENT) &&
           (op->strong || !strong);
}

static void swap_bits(struct judge *judge)
{
    uint64_t *kept = judge->bits_before;
    judge->bits_before = judge->bits;
    judge->bits = kept;
}

/* Tells each element its last sighting and its last miss, of all scans or of strong ones. */
static uint32_t run_scans(struct judge *judge, bool strong)
{
    uint32_t words = (judge->element_count + 63) / 64, last = ITEMS_NONE, scans = 0;
    memset(judge->bits_before, 0, words * sizeof(uint64_t));
    for (uint32_t i = judge->item->from; i < judge->item->to; i++) {
        uint32_t index = judge->items->order[i];
        if (!is_scan(judge, index, strong))
            continue;
        memset(judge->bits, 0, words * sizeof(uint64_t));
        read_scan(judge, index);
        scans++;
        for (uint32_t word = 0; word < words && last != ITEMS_NONE; word++)
            for (uint64_t left = judge->bits[word] ^ judge->bits_before[word]; left;
                 left &= left - 1) {
                uint32_t bit = (uint32_t)__builtin_ctzll(left);
                struct element *element = &judge->elements[word * 64 + bit];
                *(judge->bits[word] >> bit & 1 ? &element->absent : &element->present) = last;
            }
        last = index;
        swap_bits(judge);
    }
    for (uint32_t i = 0; i < judge->element_count && last != ITEMS_NONE; i++) {
        struct element *element = &judge->elements[i];
        *(judge->bits_before[i / 64] >> i % 64 & 1 ? &element->present : &element->absent) = last;
    }
    return scans;
}

/* ---- Elements ---- */

static uint64_t known_ns(const struct judge *judge, const struct element *element)
{
    uint64_t end = history_end(op_at(judge, element->insert));
    return end < element->seen_first_ns ? end : element->seen_first_ns;
}

static uint64_t since(uint64_t known, uint64_t at)
{
    return at > known ? at - known : 0;
}

static void judge_lost(struct judge *judge, const struct element *element, uint64_t known)
{
    const struct history_op *insert = op_at(judge, element->insert);
    uint64_t until =
        element->present == ITEMS_NONE ? 0 : op_at(judge, element->present)->invoke_ns + 1;
    judge->lost_ns[judge->lost++] = since(known, until);
    judge->lost_info += insert->outcome == HISTORY_INFO;
    if (!judge->options->allow_lost &&
        wrong(judge, insert->written, "known, and lost", element->insert, element->absent) &&
        element->present != ITEMS_NONE)
        verdict_add_op(judge->verdict, element->present);
}

static void judge_element(struct judge *judge, const struct element *element)
{
    uint64_t known = known_ns(judge, element);
    const struct history_op *present =
        element->present == ITEMS_NONE ? NULL : op_at(judge, element->present);
    const struct history_op *absent =
        element->absent == ITEMS_NONE ? NULL : op_at(judge, element->absent);
    if (present && (!absent || present->invoke_ns >= absent->invoke_ns)) {
        judge->stable_ns[judge->stable++] = absent ? since(known, absent->invoke_ns + 1) : 0;
        judge->stale += absent && absent->invoke_ns > known;
    } else if (absent && known < absent->invoke_ns && element->seen_last_ns < absent->invoke_ns) {
        judge_lost(judge, element, known);
    } else if (!present) {
        judge->never_read++;
    } else {
        judge->unsettled++;
    }
}

/* Of strong scans: none may miss what was known when it began. */
static void judge_fresh(struct judge *judge, const struct element *element)
{
    uint64_t known = known_ns(judge, element);
    if (element->absent != ITEMS_NONE && op_at(judge, element->absent)->invoke_ns > known)
        wrong(judge, op_at(judge, element->insert)->written, "known, and missed by a strong scan",
              element->insert, element->absent);
}

static bool gather(struct judge *judge)
{
    judge->element_count = 0;
    for (uint32_t i = judge->item->from; i < judge->item->to; i++) {
        uint32_t index = judge->items->order[i];
        const struct history_op *op = op_at(judge, index);
        if (judge->writers.repeated[index])
            return false;
        if (op->kind != HISTORY_INSERT || op->outcome == HISTORY_FAILED)
            continue;
        judge->element_of[index] = judge->element_count;
        judge->elements[judge->element_count++] = (struct element){.insert = index,
                                                                   .present = ITEMS_NONE,
                                                                   .absent = ITEMS_NONE,
                                                                   .seen_first_ns = UINT64_MAX};
    }
    return true;
}

static void judge_item(struct judge *judge)
{
    if (!gather(judge)) {
        verdict_worsen(judge->verdict, VERDICT_UNKNOWN,
                       "table %u, set %" PRIu32 ": two insertions of one element",
                       judge->item->table, judge->item->key);
        return;
    }
    judge->inserted += judge->element_count;
    judge->scans += run_scans(judge, false);
    for (uint32_t i = 0; i < judge->element_count; i++)
        judge_element(judge, &judge->elements[i]);
    if (!judge->options->linearizable || judge->verdict->kind == VERDICT_WRONG)
        return;
    for (uint32_t i = 0; i < judge->element_count; i++)
        judge->elements[i].present = judge->elements[i].absent = ITEMS_NONE;
    run_scans(judge, true);
    for (uint32_t i = 0; i < judge->element_count; i++)
        judge_fresh(judge, &judge->elements[i]);
}

/* ---- All ---- */

static void figures(struct judge *judge)
{
    static const char *const names[2][5] = {
        {"stable_p0_ns", "stable_p50_ns", "stable_p95_ns", "stable_p99_ns", "stable_max_ns"},
        {"lost_p0_ns", "lost_p50_ns", "lost_p95_ns", "lost_p99_ns", "lost_max_ns"}};
    static const uint32_t quantiles[5] = {0, 500000, 950000, 990000, 1000000};
    struct verdict *verdict = judge->verdict;
    verdict_figure(verdict, "elements", judge->inserted);
    verdict_figure(verdict, "scans", judge->scans);
    verdict_figure(verdict, "stable", judge->stable);
    verdict_figure(verdict, "lost", judge->lost);
    verdict_figure(verdict, "lost_info", judge->lost_info);
    verdict_figure(verdict, "never_read", judge->never_read);
    verdict_figure(verdict, "unsettled", judge->unsettled);
    verdict_figure(verdict, "stale", judge->stale);
    verdict_figure(verdict, "duplicated", judge->duplicated);
    verdict_figure(verdict, "phantoms", judge->phantoms);
    numbers_sort(judge->stable_ns, judge->stable);
    numbers_sort(judge->lost_ns, judge->lost);
    for (int i = 0; i < 5; i++)
        verdict_figure(verdict, names[0][i],
                       numbers_quantile(judge->stable_ns, judge->stable, quantiles[i]));
    for (int i = 0; i < 5; i++)
        verdict_figure(verdict, names[1][i],
                       numbers_quantile(judge->lost_ns, judge->lost, quantiles[i]));
}

void check_set(const struct history *history, const struct set_options *options,
               struct verdict *ret)
{
    verdict_init(ret);
    struct items items;
    items_init(&items, history);
    struct judge judge = {.history = history, .options = options, .verdict = ret, .items = &items};
    writers_init(&judge.writers, history);
    uint32_t words = history->count / 64 + 1;
    judge.elements = xcalloc(history->count, sizeof(*judge.elements));
    judge.element_of = xcalloc(history->count, sizeof(*judge.element_of));
    judge.bits = xcalloc(words, sizeof(uint64_t));
    judge.bits_before = xcalloc(words, sizeof(uint64_t));
    judge.stable_ns = xcalloc(history->count, sizeof(uint64_t));
    judge.lost_ns = xcalloc(history->count, sizeof(uint64_t));
    for (uint32_t i = 0; i < items.count; i++) {
        judge.item = &items.at[i];
        if (judge.item->kinds && (judge.item->kinds & ~KINDS) == 0)
            judge_item(&judge);
    }
    figures(&judge);
    verdict_conclude(ret, history, "%" PRIu64 " element%s, %" PRIu64 " lost, %" PRIu64 " stale",
                     judge.inserted, plural(judge.inserted), judge.lost, judge.stale);
    free(judge.elements);
    free(judge.element_of);
    free(judge.bits);
    free(judge.bits_before);
    free(judge.stable_ns);
    free(judge.lost_ns);
    writers_deinit(&judge.writers);
    items_deinit(&items);
}
