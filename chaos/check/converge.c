/* SPDX-License-Identifier: Apache-2.0 */
/* All scans in one sorted array, by item and region: then each item is a run of it. */

#include "chaos/check/converge.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/items.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct entry {
    const struct converge_item *item;
    uint8_t region;
    bool again; /* of a re-scan */
};

struct judge {
    const struct history *history;
    const struct converge_options *options;
    struct verdict *verdict;
    struct writers writers;
    uint64_t scanned, rescanned; /* regions, as bits */
    uint64_t items, different, zombies, vanished, changed, phantoms;
};

static int place_order(const struct converge_item *x, const struct converge_item *y)
{
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->element < y->element ? -1 : x->element > y->element;
}

static int entry_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int place = place_order(x->item, y->item);
    if (place)
        return place;
    if (x->again != y->again)
        return x->again ? 1 : -1;
    return x->region < y->region ? -1 : x->region > y->region;
}

static bool wrong(struct judge *judge, const struct converge_item *item, const char *text)
{
    if (item->element)
        return verdict_worsen(judge->verdict, VERDICT_WRONG,
                              "table %u, key %" PRIu32 ", element %" PRIu64 ": %s", item->table,
                              item->key, item->element, text);
    return verdict_worsen(judge->verdict, VERDICT_WRONG, "table %u, key %" PRIu32 ": %s",
                          item->table, item->key, text);
}

static void judge_value(struct judge *judge, const struct converge_item *item, uint64_t value,
                        bool element)
{
    if (value == 0)
        return;
    uint32_t writer = writers_find(&judge->writers, item->table, value);
    const struct history_op *op = writer == ITEMS_NONE ? NULL : &judge->history->ops[writer];
    bool right = op && op->key == item->key && op->outcome != HISTORY_FAILED &&
                 (op->kind == HISTORY_INSERT) == element;
    if (right)
        return;
    judge->phantoms++;
    if (wrong(judge, item,
              op ? "it holds what was refused or written elsewhere"
                 : "it holds what nobody wrote") &&
        op)
        verdict_add_op(judge->verdict, writer);
}

/* Who wrote what is held of the item, and who deleted it last: what came back, and why it should
 * not have. The history is read anew, for the few findings that are kept. */
static void show(struct judge *judge, const struct entry *entries, uint32_t count)
{
    const struct history *history = judge->history;
    const struct converge_item *item = entries[0].item;
    uint32_t deleted = ITEMS_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = item->element ? item->element : entries[i].item->value;
        uint32_t writer =
            value ? writers_find(&judge->writers, item->table, value) : (uint32_t)ITEMS_NONE;
        if (writer != ITEMS_NONE)
            verdict_add_op(judge->verdict, writer);
    }
    for (uint32_t i = 0; i < history->count && !item->element; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->kind == HISTORY_DELETE && op->table == item->table && op->key == item->key &&
            op->outcome != HISTORY_FAILED &&
            (deleted == ITEMS_NONE || op->invoke_ns > history->ops[deleted].invoke_ns))
            deleted = i;
    }
    if (deleted != ITEMS_NONE)
        verdict_add_op(judge->verdict, deleted);
}

/* The entries of one item: who holds it in the scans, who in the re-scans, and whether alike. */
static void judge_item(struct judge *judge, const struct entry *entries, uint32_t count)
{
    const struct converge_item *item = entries[0].item;
    uint64_t holders[2] = {0, 0}, digest[2] = {0, 0};
    bool differs = false, alike[2] = {true, true};
    for (uint32_t i = 0; i < count; i++) {
        const struct entry *at = &entries[i];
        uint64_t bit = 1ull << (at->region % HISTORY_REGIONS_MAX);
        if (holders[at->again] & bit) {
            if (wrong(judge, item, "one scan shows it twice"))
                show(judge, entries, count);
            differs = true;
        }
        if (!holders[at->again])
            digest[at->again] = at->item->digest;
        alike[at->again] = alike[at->again] && digest[at->again] == at->item->digest;
        holders[at->again] |= bit;
        judge_value(judge, at->item, at->item->value, at->item->element != 0);
        if (at->item->element && at->item->value != at->item->element)
            judge_value(judge, at->item, at->item->element, true);
    }
    judge->items++;
    differs = differs || (holders[0] && holders[0] != judge->scanned) || !alike[0];
    judge->different += differs;
    if (differs && wrong(judge, item, "the regions differ"))
        show(judge, entries, count);
    uint64_t back = holders[1] & judge->scanned & ~holders[0];
    uint64_t gone = holders[0] & judge->rescanned & ~holders[1];
    judge->zombies += back != 0;
    judge->vanished += gone != 0;
    bool changed =
        !back && !gone && holders[1] && (!alike[1] || (holders[0] && digest[0] != digest[1]));
    judge->changed += changed;
    const char *text = back      ? "it came back after its tombstone had gone"
                       : gone    ? "it vanished when tombstones went"
                       : changed ? "it changed when tombstones went"
                                 : NULL;
    if (text != NULL && wrong(judge, item, text))
        show(judge, entries, count);
}

static uint32_t fill(struct entry *entries, const struct converge_scan *scans, uint32_t scan_count,
                     bool again)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scan_count; i++)
        for (uint32_t j = 0; j < scans[i].count; j++)
            entries[count++] = (struct entry){&scans[i].items[j], scans[i].region, again};
    return count;
}

static uint64_t regions_of(const struct converge_scan *scans, uint32_t scan_count, uint64_t *size)
{
    uint64_t regions = 0;
    for (uint32_t i = 0; i < scan_count; i++) {
        regions |= 1ull << (scans[i].region % HISTORY_REGIONS_MAX);
        *size += scans[i].count;
    }
    return regions;
}

void check_converge(const struct history *history, const struct converge_options *options,
                    struct verdict *ret)
{
    verdict_init(ret);
    struct judge judge = {.history = history, .options = options, .verdict = ret};
    writers_init(&judge.writers, history);
    uint64_t size = 0;
    judge.scanned = regions_of(options->scans, options->scan_count, &size);
    judge.rescanned = regions_of(options->rescans, options->rescan_count, &size);
    check(size <= UINT32_MAX);
    struct entry *entries = xcalloc(size, sizeof(*entries));
    uint32_t count = fill(entries, options->scans, options->scan_count, false);
    count += fill(entries + count, options->rescans, options->rescan_count, true);
    qsort(entries, count, sizeof(*entries), entry_order);
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count; to++)
            if (place_order(entries[from].item, entries[to].item))
                break;
        judge_item(&judge, entries + from, to - from);
    }
    if (options->scan_count == 0)
        verdict_worsen(ret, VERDICT_UNKNOWN, "no region was scanned");
    verdict_figure(ret, "regions", options->scan_count);
    verdict_figure(ret, "items", judge.items);
    verdict_figure(ret, "different", judge.different);
    verdict_figure(ret, "zombies", judge.zombies);
    verdict_figure(ret, "vanished", judge.vanished);
    verdict_figure(ret, "changed", judge.changed);
    verdict_figure(ret, "phantoms", judge.phantoms);
    verdict_conclude(ret, history, "%" PRIu64 " item%s, alike in %" PRIu32 " region%s", judge.items,
                     plural(judge.items), options->scan_count, plural(options->scan_count));
    free(entries);
    writers_deinit(&judge.writers);
}
