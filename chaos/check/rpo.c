/* SPDX-License-Identifier: Apache-2.0 */
/* Registers are judged by who was written over whom (lineage.h): lost is what is not on the way to
 * the last value, and what was only sent after that value's own write had ended. Sets and lists are
 * judged by what the last look holds. */

#include "chaos/check/rpo.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/lineage.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    KINDS_SET = 1 << HISTORY_INSERT | 1 << HISTORY_SCAN,
    KINDS_LIST = 1 << HISTORY_APPEND | 1 << HISTORY_READ,
    KINDS_SUM = 1 << HISTORY_ADD | 1 << HISTORY_READ,
};

struct judge {
    const struct history *history;
    const struct rpo_options *options;
    struct verdict *verdict;
    struct lineage lineage;
    bool *shipped; /* by operation: a region that lives names it, or what it led to, a loser */
    bool *named;   /* by operation: some ledger has it as a loser */
    bool *deletion_named; /* by item: some ledger has a deletion as the loser */
    uint64_t *showing;    /* by element: the regions, as bits, whose lists showed it */
    bool *held;           /* by element: a last look has it */
    struct rpo_losses losses;
    uint64_t acked, info, unjudged;
};

void rpo_losses_deinit(struct rpo_losses *losses)
{
    free(losses->at);
    *losses = (struct rpo_losses){0};
}

static const struct history_op *op_at(const struct judge *judge, uint32_t op)
{
    return &judge->history->ops[op];
}

/* ---- Losses of Regions ---- */

bool rpo_was_lost_since(const struct rpo_options *options, uint8_t region, uint64_t ns)
{
    for (uint32_t i = 0; i < options->death_count; i++)
        if (options->deaths[i].region == region && options->deaths[i].at_ns >= ns)
            return true;
    return false;
}

/* Of these Regions, those that have kept what they had. */
static uint64_t keepers(const struct rpo_options *options, uint64_t regions, uint64_t since_ns)
{
    for (uint32_t i = 0; i < options->death_count; i++)
        if (options->deaths[i].at_ns >= since_ns)
            regions &= ~(UINT64_C(1) << options->deaths[i].region % HISTORY_REGIONS_MAX);
    return regions;
}

uint64_t rpo_age_ns(const struct rpo_options *options, const struct history_op *write)
{
    uint64_t taken_ns = UINT64_MAX;
    for (uint32_t i = 0; i < options->death_count; i++) {
        const struct rpo_death *death = &options->deaths[i];
        if (death->region == write->region && death->at_ns >= write->return_ns &&
            death->at_ns < taken_ns)
            taken_ns = death->at_ns;
    }
    return taken_ns == UINT64_MAX ? 0 : taken_ns - write->return_ns;
}

/* ---- Before the items ---- */

static void read_deletion(struct judge *judge, const struct ledgers_row *row)
{
    const struct lineage_item *item = lineage_find(&judge->lineage, row->table, row->key);
    if (item && row->winner)
        judge->deletion_named[item - judge->lineage.item_array] = true;
}

/* Regions ship in order, so one that had a write had those that it was written over. */
static void read_rows(struct judge *judge)
{
    for (uint32_t i = 0; i < judge->options->row_count; i++) {
        const struct ledgers_row *row = &judge->options->rows[i];
        if (row->loser == 0)
            read_deletion(judge, row);
        uint32_t op =
            row->loser ? writers_find(&judge->lineage.writers, row->table, row->loser) : ITEMS_NONE;
        if (op == ITEMS_NONE)
            continue;
        judge->named[op] = true;
        if (row->regions && keepers(judge->options, row->regions, op_at(judge, op)->invoke_ns) == 0)
            continue;
        for (; op < LINEAGE_ABSENT && !judge->shipped[op]; op = judge->lineage.nodes[op].parent)
            judge->shipped[op] = true;
    }
}

static void read_lists(struct judge *judge)
{
    for (uint32_t i = 0; i < judge->history->count; i++) {
        const struct history_op *op = op_at(judge, i);
        const uint64_t *list = history_list(judge->history, op);
        for (uint32_t j = 0; j < op->list_count; j++) {
            uint32_t writer = writers_find(&judge->lineage.writers, op->table, list[j]);
            if (writer == ITEMS_NONE || op_at(judge, writer)->key != op->key)
                continue;
            judge->showing[writer] |= 1ull << op->region % HISTORY_REGIONS_MAX;
            judge->held[writer] = judge->held[writer] || op->final;
        }
    }
}

/* ---- What was lost, and why ---- */

/* Another Region had it, and has lost nothing since: all of these that did may have had it only
 * before, and so count for nothing. */
static bool had_elsewhere(const struct judge *judge, uint32_t op)
{
    const struct history_op *write = op_at(judge, op);
    uint64_t own = UINT64_C(1) << write->region % HISTORY_REGIONS_MAX;
    uint64_t others = (judge->showing[op] | judge->lineage.nodes[op].seen_by) & ~own;
    return judge->shipped[op] || keepers(judge->options, others, write->invoke_ns) != 0;
}

static bool died_with_it(const struct judge *judge, uint32_t op)
{
    const struct history_op *write = op_at(judge, op);
    return rpo_was_lost_since(judge->options, write->region, write->invoke_ns) &&
           !had_elsewhere(judge, op);
}

/* Of a deletion a row tells the item alone. */
static bool is_named(const struct judge *judge, uint32_t op)
{
    const struct history_op *write = op_at(judge, op);
    if (write->kind != HISTORY_DELETE)
        return judge->named[op];
    const struct lineage_item *item = lineage_find(&judge->lineage, write->table, write->key);
    return judge->deletion_named[item - judge->lineage.item_array];
}

static void lose(struct judge *judge, uint32_t op, bool rival)
{
    struct rpo_losses *losses = &judge->losses;
    if (losses->count == losses->cap) {
        losses->cap = losses->cap ? losses->cap * 2 : 16;
        losses->at = xrealloc(losses->at, losses->cap * sizeof(*losses->at));
    }
    enum rpo_class class = judge->options->all_gone || died_with_it(judge, op) ? RPO_UNREPLICATED
                           : rival || is_named(judge, op)                      ? RPO_LWW
                                                                               : RPO_OTHER;
    uint64_t age_ns = class == RPO_UNREPLICATED ? rpo_age_ns(judge->options, op_at(judge, op)) : 0;
    losses->at[losses->count++] = (struct rpo_loss){op, class, age_ns};
}

/* ---- Registers ---- */

/* What is left of a lost write in the end was written over by another. */
static bool has_rival(const struct judge *judge, const struct lineage_item *item, uint32_t op)
{
    uint32_t anchor = judge->lineage.nodes[op].anchor;
    bool other = item->final < LINEAGE_ABSENT &&
                 judge->lineage.nodes[item->final].tree != judge->lineage.nodes[op].tree;
    bool erases = op_at(judge, op)->kind == HISTORY_DELETE;
    if (anchor == LINEAGE_UNKNOWN || (other && erases)) /* lost with its tree, or an absence is */
        return item->gone || erases ||
               (other && op_at(judge, op)->invoke_ns <= history_end(op_at(judge, item->final)));
    if (anchor == LINEAGE_ABSENT)
        return item->root_heir != LINEAGE_UNKNOWN && item->final != LINEAGE_ABSENT;
    return anchor < LINEAGE_ABSENT && judge->lineage.nodes[anchor].heir != LINEAGE_UNKNOWN &&
           item->final != LINEAGE_ABSENT;
}

static bool is_lost(const struct judge *judge, const struct lineage_item *item, uint32_t op)
{
    const struct lineage_node *node = &judge->lineage.nodes[op];
    if (item->final == LINEAGE_ABSENT || !node->prevails)
        return true;
    return item->final < LINEAGE_ABSENT && node->tree != judge->lineage.nodes[item->final].tree &&
           op_at(judge, op)->invoke_ns > history_end(op_at(judge, item->final));
}

static void judge_register(struct judge *judge, const struct lineage_item *item)
{
    bool known = item->judged && !item->fault && (item->final != LINEAGE_UNKNOWN || item->gone);
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage.items.order[i];
        const struct history_op *write = op_at(judge, op);
        if (write->outcome != HISTORY_OK || !history_kind_writes((enum history_kind)write->kind))
            continue;
        if (!known)
            judge->unjudged++;
        else if (judge->lineage.nodes[op].role == LINEAGE_WRITE && is_lost(judge, item, op))
            lose(judge, op, has_rival(judge, item, op));
    }
}

/* ---- Sets and lists ---- */

static bool is_looked_at(const struct judge *judge, const struct lineage_item *item)
{
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        const struct history_op *op = op_at(judge, judge->lineage.items.order[i]);
        if (op->final && op->outcome == HISTORY_OK &&
            !history_kind_writes((enum history_kind)op->kind) &&
            (op->saw == HISTORY_SAW_LIST || op->saw == HISTORY_SAW_ABSENT))
            return true;
    }
    return false;
}

static void judge_elements(struct judge *judge, const struct lineage_item *item, bool rival)
{
    bool known = is_looked_at(judge, item);
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage.items.order[i];
        const struct history_op *write = op_at(judge, op);
        if (write->outcome != HISTORY_OK || !history_kind_writes((enum history_kind)write->kind))
            continue;
        if (!known || judge->lineage.writers.repeated[op])
            judge->unjudged++;
        else if (!judge->held[op])
            lose(judge, op, rival);
    }
}

static void lose_all(struct judge *judge, const struct lineage_item *item)
{
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t index = judge->lineage.items.order[i];
        const struct history_op *op = op_at(judge, index);
        if (!history_kind_writes((enum history_kind)op->kind))
            continue;
        judge->acked += op->outcome == HISTORY_OK;
        judge->info += op->outcome == HISTORY_INFO;
        if (op->outcome == HISTORY_OK)
            lose(judge, index, false);
    }
}

static void judge_item(struct judge *judge, const struct lineage_item *item)
{
    uint16_t kinds = item->range->kinds;
    if (judge->options->all_gone) {
        lose_all(judge, item);
        return;
    }
    if (kinds >> HISTORY_ADD & 1 && (kinds & ~KINDS_SUM) == 0)
        return;
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        const struct history_op *op = op_at(judge, judge->lineage.items.order[i]);
        bool writes = history_kind_writes((enum history_kind)op->kind);
        judge->acked += writes && op->outcome == HISTORY_OK;
        judge->info += writes && op->outcome == HISTORY_INFO;
    }
    if (kinds >> HISTORY_INSERT & 1 && (kinds & ~KINDS_SET) == 0)
        judge_elements(judge, item, false);
    else if (kinds >> HISTORY_APPEND & 1 && (kinds & ~KINDS_LIST) == 0)
        judge_elements(judge, item, !judge->options->strong);
    else
        judge_register(judge, item);
}

/* ---- All ---- */

struct sortable {
    uint64_t return_ns;
    struct rpo_loss loss;
};

static int sortable_order(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    if (x->return_ns != y->return_ns)
        return x->return_ns < y->return_ns ? -1 : 1;
    return x->loss.op < y->loss.op ? -1 : x->loss.op > y->loss.op;
}

static void sort_losses(struct judge *judge)
{
    struct rpo_losses *losses = &judge->losses;
    struct sortable *sortables = xcalloc(losses->count, sizeof(*sortables));
    for (uint32_t i = 0; i < losses->count; i++)
        sortables[i] = (struct sortable){op_at(judge, losses->at[i].op)->return_ns, losses->at[i]};
    qsort(sortables, losses->count, sizeof(*sortables), sortable_order);
    for (uint32_t i = 0; i < losses->count; i++)
        losses->at[i] = sortables[i].loss;
    free(sortables);
}

static const char *class_text(enum rpo_class class)
{
    switch (class) {
    case RPO_UNREPLICATED:
        return "it had not left the region that died";
    case RPO_LWW:
        return "a concurrent write prevailed";
    case RPO_OTHER:
        return "nothing explains it";
    }
    unreachable();
}

static bool worsen(struct verdict *verdict, const struct history_op *op, enum rpo_class class)
{
    if (op->kind == HISTORY_DELETE)
        return verdict_worsen(verdict, VERDICT_WRONG,
                              "table %u, key %" PRIu32
                              ": a delete was acknowledged and is lost: %s",
                              op->table, op->key, class_text(class));
    return verdict_worsen(verdict, VERDICT_WRONG,
                          "table %u, key %" PRIu32 ": %" PRIu64 " was acknowledged and is lost: %s",
                          op->table, op->key, op->written, class_text(class));
}

static void conclude(struct judge *judge)
{
    uint64_t count[3] = {0}, bytes = 0, rpo_ns = 0;
    struct verdict *verdict = judge->verdict;
    for (uint32_t i = 0; i < judge->losses.count; i++) {
        const struct rpo_loss *loss = &judge->losses.at[i];
        const struct history_op *op = op_at(judge, loss->op);
        count[loss->class]++;
        if (loss->class == RPO_UNREPLICATED) {
            bytes += op->bytes;
            rpo_ns = loss->age_ns > rpo_ns ? loss->age_ns : rpo_ns;
        }
        if ((loss->class == RPO_OTHER || judge->options->strong) &&
            worsen(verdict, op, loss->class)) {
            const struct lineage_item *item = lineage_find(&judge->lineage, op->table, op->key);
            verdict_add_op(verdict, loss->op);
            if (item->final < LINEAGE_ABSENT)
                verdict_add_op(verdict, item->final);
        }
    }
    if (judge->unjudged)
        verdict_worsen(verdict, VERDICT_UNKNOWN,
                       "%" PRIu64 " acknowledged write%s on items that no last look shows",
                       judge->unjudged, judge->unjudged == 1 ? " is" : "s are");
    verdict_figure(verdict, "acked", judge->acked);
    verdict_figure(verdict, "info", judge->info);
    verdict_figure(verdict, "rpo_count", count[RPO_UNREPLICATED]);
    verdict_figure(verdict, "rpo_ns", rpo_ns);
    verdict_figure(verdict, "rpo_bytes", bytes);
    verdict_figure(verdict, "lost_lww", count[RPO_LWW]);
    verdict_figure(verdict, "lost_other", count[RPO_OTHER]);
    verdict_figure(verdict, "unjudged", judge->unjudged);
    verdict_conclude(verdict, judge->history,
                     "%" PRIu64 " acknowledged write%s; lost: %" PRIu64 " unreplicated, %" PRIu64
                     " to a concurrent write",
                     judge->acked, plural(judge->acked), count[RPO_UNREPLICATED], count[RPO_LWW]);
}

void check_rpo(const struct history *history, const struct rpo_options *options,
               struct rpo_losses *ret_losses, struct verdict *ret)
{
    verdict_init(ret);
    struct judge judge = {.history = history, .options = options, .verdict = ret};
    lineage_init(&judge.lineage, history);
    judge.shipped = xcalloc(history->count, sizeof(bool));
    judge.named = xcalloc(history->count, sizeof(bool));
    judge.deletion_named = xcalloc(judge.lineage.items.count, sizeof(bool));
    judge.showing = xcalloc(history->count, sizeof(uint64_t));
    judge.held = xcalloc(history->count, sizeof(bool));
    read_rows(&judge);
    read_lists(&judge);
    for (uint32_t i = 0; i < judge.lineage.items.count; i++)
        judge_item(&judge, &judge.lineage.item_array[i]);
    sort_losses(&judge);
    conclude(&judge);
    free(judge.shipped);
    free(judge.named);
    free(judge.deletion_named);
    free(judge.showing);
    free(judge.held);
    lineage_deinit(&judge.lineage);
    if (ret_losses)
        *ret_losses = judge.losses;
    else
        rpo_losses_deinit(&judge.losses);
}
