/* SPDX-License-Identifier: Apache-2.0 */
/* Which writes were lost, one sentence each: what was acknowledged where and when, and by what it
 * was overwritten or with which Region it went. */

#include <inttypes.h>

#include "chaos/report/facts.h"
#include "chaos/report/page.h"
#include "chaos/report/text.h"
#include "chaos/run/measure.h"
#include "conflict/base/check.h"

/* "W 4012 (us-east-1 client 3, +1.204 s)" */
static void put_write(struct page *page, const struct history_op *op, bool moment)
{
    page_printf(page, "<code>%s", op->kind == HISTORY_DELETE ? "delete" : "write");
    if (op->kind != HISTORY_DELETE)
        page_printf(page, " %" PRIu64, op->written);
    page_put(page, "</code> (");
    page_region(page, op->region);
    if (moment) {
        page_put(page, ", ");
        page_moment(page, op->invoke_ns);
    }
    page_put(page, ")");
}

static void put_fork(struct page *page, const struct chain_fork *fork)
{
    const struct history_op *ops = page->outcome->history.ops;
    const struct history_op *loser = &ops[fork->loser], *rival = &ops[fork->rival];
    bool later = rival->invoke_ns >= loser->invoke_ns;
    page_printf(page, "<li>Item %" PRIu32 ": ", loser->key);
    put_write(page, loser, true);
    page_put(page, fork->late ? " came too late for <code>" : " overwritten by <code>");
    page_put(page, rival->kind == HISTORY_DELETE ? "delete" : "write");
    if (rival->kind != HISTORY_DELETE)
        page_printf(page, " %" PRIu64, rival->written);
    page_put(page, "</code> (");
    page_region(page, rival->region);
    page_put(page, ", ");
    page_duration(page, later ? rival->invoke_ns - loser->invoke_ns
                              : loser->invoke_ns - rival->invoke_ns);
    page_put(page, later ? " later)" : " earlier)");
    if (fork->late)
        page_put(page, ", which it builds upon");
    else if (fork->base == CHAIN_ABSENT)
        page_put(page, "; both go back to an absent item");
    else
        page_printf(page, "; both go back to %" PRIu64, ops[fork->base].written);
    if (fork->open)
        page_put(page, "; so many are lost, but perhaps another than this");
    page_put(page, "</li>\n");
}

/* The first few are in sight, the others a click away. */
enum { IN_SIGHT = 20 };

static void list_open(struct page *page)
{
    page_put(page, "<ol class=\"losses\">\n");
}

static void list_item(struct page *page, uint32_t index, uint32_t shown)
{
    if (index == IN_SIGHT)
        page_printf(page,
                    "</ol>\n<details><summary>%" PRIu32 " more</summary><ol class=\"losses\" "
                    "start=\"%d\">\n",
                    shown - IN_SIGHT, IN_SIGHT + 1);
}

static void list_close(struct page *page, uint32_t shown)
{
    page_put(page, shown > IN_SIGHT ? "</ol></details>\n" : "</ol>\n");
}

/* What is neither in the list nor known to be safe. */
static void put_unjudged(struct page *page)
{
    const struct outcome_check *chain = measure_check(page->outcome, "chain");
    uint64_t count = chain == NULL ? UINT64_MAX : verdict_get(&chain->verdict, "unjudged");
    if (count != UINT64_MAX && count > 0)
        page_printf(page,
                    "<p>Of %" PRIu64 " more write%s nobody can tell whether %s lost: a write that "
                    "was never answered may have been made upon %s.</p>\n",
                    count, count == 1 ? "" : "s", count == 1 ? "it is" : "they are",
                    count == 1 ? "it" : "them");
}

static void put_forks(struct page *page)
{
    const struct chain_forks *forks = &page->outcome->forks;
    uint32_t shown = forks->count < page->rows_max ? forks->count : page->rows_max;
    page_put(page, "<h3>Lost updates</h3>\n");
    put_unjudged(page);
    if (forks->count == 0) {
        page_put(page,
                 "<p>None was seen: no acknowledged write was overwritten by one that had not "
                 "seen it.</p>\n");
        return;
    }
    page_put(page, "<p>Each was acknowledged to its client. The one that overwrote it had not seen "
                   "it, and prevailed.</p>\n");
    list_open(page);
    for (uint32_t i = 0; i < shown; i++) {
        list_item(page, i, shown);
        put_fork(page, &forks->at[i]);
    }
    list_close(page, shown);
    page_cut(page, "lost updates and late writes", shown, forks->count);
}

static void put_loss(struct page *page, const struct rpo_loss *loss)
{
    const struct history_op *op = &page->outcome->history.ops[loss->op];
    page_printf(page, "<li>Item %" PRIu32 ": ", op->key);
    put_write(page, op, false);
    page_put(page, ", acknowledged at ");
    page_moment(page, op->return_ns);
    if (loss->age_ns > 0) {
        page_put(page, ", ");
        page_duration(page, loss->age_ns);
        page_put(page, " before the Region was lost");
    }
    page_put(page, "</li>\n");
}

static void put_losses(struct page *page, enum rpo_class class, const char *heading,
                       const char *what, const char *help)
{
    const struct rpo_losses *losses = &page->outcome->losses;
    uint32_t shown = 0, count = 0;
    for (uint32_t i = 0; i < losses->count; i++)
        count += losses->at[i].class == class;
    if (count == 0)
        return;
    uint32_t most = count < page->rows_max ? count : page->rows_max;
    page_printf(page, "<h3>%s</h3>\n<p>%s</p>\n", heading, help);
    list_open(page);
    for (uint32_t i = 0; i < losses->count && shown < most; i++)
        if (losses->at[i].class == class) {
            list_item(page, shown++, most);
            put_loss(page, &losses->at[i]);
        }
    list_close(page, most);
    page_cut(page, what, most, count);
}

void page_losses(struct page *page)
{
    page_put(page, "<h2 id=\"losses\">Losses</h2>\n");
    if (page->outcome->history.count == 0) {
        page_put(page, "<p>Nothing was written, so nothing was lost.</p>\n");
        return;
    }
    put_losses(page, RPO_OTHER, "Lost without a reason", "writes that are lost without a reason",
               "Acknowledged, and missing although no Region was lost with them and no write "
               "overwrote them. This is always a bug.");
    put_losses(page, RPO_UNREPLICATED, "Lost with a Region", "writes that were lost with a Region",
               "Acknowledged, and not yet sent to any other Region when theirs was lost. Their "
               "number is the RPO.");
    put_forks(page);
}
