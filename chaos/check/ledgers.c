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

enum { THROUGH_UNKNOWN, THROUGH_DEAD, THROUGH_LIVING };

struct judge {
    const struct ledgers_options *options;
    struct verdict *verdict;
    struct lineage lineage;
    bool *named;          /* by operation: some row has it as its loser */
    bool *deletion_named; /* by item: some row has a loser without a value */
    uint8_t *through;     /* by operation: see came_through_dead */
    uint64_t pairs, missing, excused, false_rows, unjudged;
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
    if (disputed)
        false_row(judge, row, "by another row it won, so Regions disagree", winner, loser);
    else if (!placed(judge, winner) || !placed(judge, loser))
        judge->unjudged++;
    else if (lineage_descends(&judge->lineage, loser, winner))
        false_row(judge, row, "the winner was written over the loser", winner, loser);
    else if (lineage_descends(&judge->lineage, winner, loser) && !row->late)
        false_row(judge, row, "the loser had seen the winner, so they were not concurrent", winner,
                  loser);
    else if (judge->lineage.nodes[winner].tree != judge->lineage.nodes[loser].tree)
        judge->unjudged++;
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

void check_ledgers(const struct history *history, const struct ledgers_options *options,
                   struct verdict *ret)
{
    struct chain_options chain_options = {.eventual = true};
    struct chain_forks forks;
    struct verdict chain;
    check_chain(history, &chain_options, &forks, &chain);
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
    verdict_conclude(ret, history, "%" PRIu64 " lost updates, each in a ledger; %" PRIu64 " pairs",
                     forks.count - judge.excused, judge.pairs);
    free(judge.named);
    free(judge.deletion_named);
    free(judge.through);
    chain_forks_deinit(&forks);
    lineage_deinit(&judge.lineage);
}
