/* SPDX-License-Identifier: Apache-2.0 */
/* A row is put against the trees of who wrote over whom: a loser that the winner was written over
 * is no loser. And against the other rows, as the Regions must agree on who won. Then each lost
 * update looks for a row that names it. */

#include "chaos/check/ledgers.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chaos/check/chain.h"
#include "chaos/check/lineage.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* Deletions that are tried for rows, in all: rows beyond that are not judged. */
#define DELETION_LOOKS_MAX UINT64_C(20000000)

enum { THROUGH_UNKNOWN, THROUGH_DEAD, THROUGH_LIVING };

struct judge {
    const struct ledgers_options *options;
    struct verdict *verdict;
    struct lineage lineage;
    bool *named;          /* by operation: some row has it as its loser */
    bool *deletion_named; /* by item: some row has a loser without a value */
    uint8_t *through;     /* by operation: see came_through_dead */
    uint64_t pairs, missing, excused, false_rows, unjudged, open;
    uint64_t deletion_looks;
};

static bool is_dead(const struct judge *judge, uint32_t op)
{
    uint8_t region = judge->lineage.history->ops[op].region;
    return judge->options->dead_regions >> region % HISTORY_REGIONS_MAX & 1;
}

static int row_order(const void *a, const void *b)
{
    const struct ledgers_row *x = a, *y = b;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->loser != y->loser)
        return x->loser < y->loser ? -1 : 1;
    return x->winner < y->winner ? -1 : x->winner > y->winner;
}

static void false_row(struct judge *judge, const struct ledgers_row *row, const char *text,
                      uint32_t winner, uint32_t loser)
{
    judge->false_rows++;
    if (!verdict_worsen(judge->verdict, VERDICT_WRONG,
                        "table %u, key %" PRIu32 ": a ledger has %" PRIu64 " lost to %" PRIu64
                        ", but %s",
                        row->table, row->key, row->loser, row->winner, text))
        return;
    if (winner < LINEAGE_ABSENT)
        verdict_add_op(judge->verdict, winner);
    if (loser < LINEAGE_ABSENT)
        verdict_add_op(judge->verdict, loser);
}

/* The write of a value in a row; UNKNOWN with *ret_false if nobody can have written it. */
static uint32_t find(const struct judge *judge, const struct ledgers_row *row, uint64_t value,
                     bool *ret_false)
{
    if (value == 0)
        return LINEAGE_UNKNOWN;
    uint32_t op = writers_find(&judge->lineage.writers, row->table, value);
    const struct history_op *at = op == ITEMS_NONE ? NULL : &judge->lineage.history->ops[op];
    if (at && at->key == row->key && at->outcome != HISTORY_FAILED)
        return op;
    *ret_false = true;
    return LINEAGE_UNKNOWN;
}

static bool placed(const struct judge *judge, uint32_t op)
{
    return op < LINEAGE_ABSENT && judge->lineage.nodes[op].role == LINEAGE_WRITE &&
           judge->lineage.nodes[op].enter != 0;
}

enum row_truth { ROW_WINNER_STANDS, ROW_LOSER_STANDS, ROW_OPEN, ROW_TRUE };

/* Of a row whose winner and loser are these writes. */
static enum row_truth truth_of(const struct judge *judge, const struct ledgers_row *row,
                               uint32_t winner, uint32_t loser)
{
    if (!placed(judge, winner) || !placed(judge, loser))
        return ROW_OPEN;
    enum lineage_answer over = lineage_stands_on(&judge->lineage, winner, loser);
    enum lineage_answer under =
        row->late ? LINEAGE_NO : lineage_stands_on(&judge->lineage, loser, winner);
    if (over == LINEAGE_YES)
        return ROW_WINNER_STANDS;
    if (under == LINEAGE_YES)
        return ROW_LOSER_STANDS;
    return over == LINEAGE_MAYBE || under == LINEAGE_MAYBE ? ROW_OPEN : ROW_TRUE;
}

/* Of a row with a deletion, which may be any of the item's: true or false if it is for all. */
static enum row_truth truth_of_deletion(struct judge *judge, const struct lineage_item *item,
                                        const struct ledgers_row *row, uint32_t winner,
                                        uint32_t loser)
{
    enum row_truth all = ROW_OPEN;
    bool any = false;
    if (winner == loser) /* two deletions */
        return ROW_OPEN;
    for (uint32_t i = item->range->from; i < item->range->to; i++) {
        uint32_t op = judge->lineage.items.order[i];
        const struct history_op *at = &judge->lineage.history->ops[op];
        if (at->kind != HISTORY_DELETE || at->outcome == HISTORY_FAILED)
            continue;
        if (judge->deletion_looks++ >= DELETION_LOOKS_MAX)
            return ROW_OPEN;
        enum row_truth truth =
            row->winner ? truth_of(judge, row, winner, op) : truth_of(judge, row, op, loser);
        if (truth == ROW_OPEN || (any && truth != all))
            return ROW_OPEN;
        any = true;
        all = truth;
    }
    return all;
}

/* Another row has the two the other way round. */
static bool contradicted(const struct ledgers_row *rows, uint32_t count,
                         const struct ledgers_row *row)
{
    struct ledgers_row swapped = *row;
    swapped.winner = row->loser;
    swapped.loser = row->winner;
    return row->winner != 0 && row->loser != 0 && row->winner != row->loser &&
           bsearch(&swapped, rows, count, sizeof(*rows), row_order) != NULL;
}

static void judge_row(struct judge *judge, const struct ledgers_row *row, bool disputed)
{
    bool nobody = false;
    uint32_t winner = find(judge, row, row->winner, &nobody);
    uint32_t loser = find(judge, row, row->loser, &nobody);
    const struct lineage_item *item = lineage_find(&judge->lineage, row->table, row->key);
    if (nobody || !item || (row->winner && row->winner == row->loser)) {
        false_row(judge, row, nobody || !item ? "nobody wrote that" : "they are one", winner,
                  loser);
        return;
    }
    if (loser != LINEAGE_UNKNOWN)
        judge->named[loser] = true;
    else
        judge->deletion_named[item - judge->lineage.item_array] = true;
    if (disputed) {
        false_row(judge, row, "by another row it won, so Regions disagree", winner, loser);
        return;
    }
    switch (row->winner && row->loser ? truth_of(judge, row, winner, loser)
                                      : truth_of_deletion(judge, item, row, winner, loser)) {
    case ROW_WINNER_STANDS:
        false_row(judge, row, "the winner was written over the loser", winner, loser);
        return;
    case ROW_LOSER_STANDS:
        false_row(judge, row, "the loser had seen the winner, so they were not concurrent", winner,
                  loser);
        return;
    case ROW_OPEN:
        judge->unjudged++;
        return;
    case ROW_TRUE:
        return;
    }
    unreachable();
}

static void judge_rows(struct judge *judge)
{
    uint32_t count = judge->options->row_count;
    struct ledgers_row *rows = xcalloc(count, sizeof(*rows));
    if (count)
        memcpy(rows, judge->options->rows, count * sizeof(*rows));
    qsort(rows, count, sizeof(*rows), row_order);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && row_order(&rows[i - 1], &rows[i]) == 0)
            continue;
        judge->pairs++;
        judge_row(judge, &rows[i], contradicted(rows, count, &rows[i]));
    }
    free(rows);
}

/* Whether a dead region wrote any of what prevails from op on. */
static bool came_through_dead(struct judge *judge, uint32_t op)
{
    const struct lineage_node *nodes = judge->lineage.nodes;
    uint32_t last = LINEAGE_UNKNOWN, at = op;
    for (; at != LINEAGE_UNKNOWN && judge->through[at] == THROUGH_UNKNOWN; at = nodes[at].heir)
        if (is_dead(judge, at))
            last = at;
    bool further = at != LINEAGE_UNKNOWN && judge->through[at] == THROUGH_DEAD;
    bool passed = last == LINEAGE_UNKNOWN;
    for (uint32_t to = at, each = op; each != to; each = nodes[each].heir) {
        judge->through[each] = further || !passed ? THROUGH_DEAD : THROUGH_LIVING;
        passed = passed || each == last;
    }
    return judge->through[op] == THROUGH_DEAD;
}

static void judge_fork(struct judge *judge, const struct chain_fork *fork)
{
    const struct history_op *loser = &judge->lineage.history->ops[fork->loser];
    const struct lineage_item *item = lineage_find(&judge->lineage, loser->table, loser->key);
    bool named = loser->kind == HISTORY_DELETE
                     ? judge->deletion_named[item - judge->lineage.item_array]
                     : judge->named[fork->loser];
    if (named)
        return;
    if ((is_dead(judge, fork->loser) && !lineage_seen_elsewhere(&judge->lineage, fork->loser)) ||
        (judge->options->dead_regions && came_through_dead(judge, fork->rival))) {
        judge->excused++;
        return;
    }
    /* A deletion that something was written over needs no row: the end of that run has it. */
    if (fork->open || (loser->kind == HISTORY_DELETE && loser->invoke_ns <= item->loose_by_ns)) {
        judge->open++;
        return;
    }
    judge->missing++;
    if (!verdict_worsen(judge->verdict, VERDICT_WRONG,
                        "table %u, key %" PRIu32 ": %" PRIu64 " was lost, and no ledger says so",
                        loser->table, loser->key, loser->written))
        return;
    if (fork->base != CHAIN_ABSENT)
        verdict_add_op(judge->verdict, fork->base);
    verdict_add_op(judge->verdict, fork->rival);
    verdict_add_op(judge->verdict, fork->loser);
}

static void conclude(const struct judge *judge, const struct history *history, uint64_t forks,
                     uint64_t open)
{
    struct buf text cleanup(buf_deinit) = {0};
    uint64_t named = forks - judge->excused - judge->open;
    buf_printf(&text,
               "%" PRIu64 " write%s overwritten unseen, each in a ledger; %" PRIu64 " pair%s",
               named, named == 1 ? " was" : "s were", judge->pairs, plural(judge->pairs));
    if (judge->unjudged > 0)
        buf_printf(&text, ", of which %" PRIu64 " cannot be judged", judge->unjudged);
    if (open > 0)
        buf_printf(&text, "; %" PRIu64 " write%s without a row, and may need none", open,
                   open == 1 ? " is" : "s are");
    buf_append_u8(&text, 0);
    verdict_conclude(judge->verdict, history, "%s", (const char *)text.at);
}

void check_ledgers(const struct history *history, const struct ledgers_options *options,
                   struct verdict *ret)
{
    struct chain_options chain_options = {.eventual = true};
    struct chain_forks forks;
    struct verdict chain;
    check_chain(history, &chain_options, &forks, &chain);
    uint64_t unjudged = verdict_get(&chain, "unjudged");
    verdict_init(ret);
    if (chain.kind != VERDICT_OK)
        verdict_worsen(ret, VERDICT_UNKNOWN, "the chains are wrong, so the ledgers prove nothing");
    verdict_deinit(&chain);
    struct judge judge = {.options = options, .verdict = ret};
    lineage_init(&judge.lineage, history);
    judge.named = xcalloc(history->count, sizeof(bool));
    judge.deletion_named = xcalloc(judge.lineage.items.count, sizeof(bool));
    judge.through = xcalloc(history->count, sizeof(uint8_t));
    judge_rows(&judge);
    for (uint32_t i = 0; i < forks.count; i++)
        judge_fork(&judge, &forks.at[i]);
    verdict_figure(ret, "rows", options->row_count);
    verdict_figure(ret, "pairs", judge.pairs);
    verdict_figure(ret, "forks", forks.count);
    verdict_figure(ret, "missing", judge.missing);
    verdict_figure(ret, "excused", judge.excused);
    verdict_figure(ret, "false_rows", judge.false_rows);
    verdict_figure(ret, "unjudged", judge.unjudged);
    verdict_figure(ret, "open", judge.open + unjudged);
    conclude(&judge, history, forks.count, judge.open + unjudged);
    free(judge.named);
    free(judge.deletion_named);
    free(judge.through);
    chain_forks_deinit(&forks);
    lineage_deinit(&judge.lineage);
}
