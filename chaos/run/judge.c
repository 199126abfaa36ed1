/* SPDX-License-Identifier: Apache-2.0 */
/* Which checker can say something of which workload, in which mode, is one table; whatever a
 * checker finds wrong fails a run, expected or not. Service times are measured and judged by
 * expectations alone, since how long is too long only the scenario knows. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/check/append.h"
#include "chaos/check/counter.h"
#include "chaos/check/register.h"
#include "chaos/check/set.h"
#include "chaos/run/judge.h"
#include "chaos/run/measure.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* A p99 up to here is good service, however good it was before. */
#define SLO_NS UINT64_C(250000000)
/* What the search of linear.c does in a second, about. */
#define STEPS_A_SECOND UINT64_C(10000000)

enum { CHECKS_MAX = 16 };

struct judge {
    struct outcome *outcome;
    bool strong;
    uint64_t (*now_ns)(void);
    uint64_t began_ns; /* of the check that is next */
};

/* ---- Checks ---- */

static uint64_t now(const struct judge *judge)
{
    return judge->now_ns == NULL ? 0 : judge->now_ns();
}

static struct verdict *begin(struct judge *judge, const char *name)
{
    struct outcome *outcome = judge->outcome;
    check(outcome->check_count < CHECKS_MAX);
    struct outcome_check *next = &outcome->checks[outcome->check_count++];
    *next = (struct outcome_check){.name = name};
    judge->began_ns = now(judge);
    return &next->verdict;
}

static void end(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    outcome->checks[outcome->check_count - 1].took_ns = now(judge) - judge->began_ns;
}

/* The verdict is of no use: as if it had never been asked for. */
static void drop(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    verdict_deinit(&outcome->checks[--outcome->check_count].verdict);
}

static void search(const struct outcome *outcome, bool weak_reads, struct verdict *ret)
{
    const struct scenario_budgets *budgets = &outcome->scenario->budgets;
    const struct register_options options = {
        .steps_max = budgets->checker_seconds * STEPS_A_SECOND,
        .memory_max = budgets->checker_bytes,
        .weak_reads = weak_reads,
    };
    check_register(&outcome->history, &options, ret);
}

static void judge_search(struct judge *judge)
{
    search(judge->outcome, false, begin(judge, "register"));
    end(judge);
}

/* Absences do not name their writer, so with deletes the chain is blind where the search is not. */
static void judge_chain(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    bool erases = outcome->scenario->workload.mix.erase > 0;
    const struct chain_options options = {.eventual = !judge->strong};
    struct verdict *verdict = begin(judge, "chain");
    check_chain(&outcome->history, &options, &outcome->forks, verdict);
    end(judge);
    if (verdict->kind == VERDICT_UNKNOWN && judge->strong && erases)
        drop(judge);
    if (judge->strong && erases)
        judge_search(judge);
}

static void judge_workload(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    const struct history *history = &outcome->history;
    switch ((enum scenario_workload_kind)outcome->scenario->workload.kind) {
    case SCENARIO_SWAP_REGISTER:
    case SCENARIO_LWW_CONFLICT:
        judge_chain(judge);
        return;
    case SCENARIO_CAS_REGISTER:
        if (judge->strong)
            judge_search(judge);
        else
            judge_chain(judge);
        return;
    case SCENARIO_COUNTER:
        check_counter(history, &(struct counter_options){.eventual = !judge->strong},
                      begin(judge, "counter"));
        end(judge);
        return;
    case SCENARIO_APPEND:
        check_append(history, &(struct append_options){.eventual = !judge->strong},
                     begin(judge, "append"));
        end(judge);
        return;
    case SCENARIO_SET:
        check_set(history,
                  &(struct set_options){.linearizable = judge->strong,
                                        .allow_lost = measure_lost(outcome) != 0},
                  begin(judge, "set"));
        end(judge);
        return;
    case SCENARIO_YCSB_A:
    case SCENARIO_YCSB_B:
    case SCENARIO_YCSB_F:
    case SCENARIO_EXEC:
    case SCENARIO_WORKLOAD_COUNT:
        return;
    }
    unreachable();
}

/* A table that is nowhere any more is no error of the harness, but the worst that can be lost. */
static void judge_tables(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    struct buf names = {0};
    if (outcome->gone_regions == 0)
        return;
    for (uint8_t i = 0; i < outcome->scenario->cluster.data_count; i++)
        if (outcome->gone_regions >> i & 1)
            buf_printf(&names, "%s%s", names.len == 0 ? "" : ", ",
                       outcome->scenario->cluster.region[i].name);
    struct verdict *verdict = begin(judge, "tables");
    verdict_init(verdict);
    verdict_figure(verdict, "gone_regions", (uint64_t)__builtin_popcountll(outcome->gone_regions));
    verdict_worsen(verdict, VERDICT_WRONG, "the table itself is gone in %.*s%s", (int)names.len,
                   names.len == 0 ? "" : (const char *)names.at,
                   measure_all_gone(outcome) ? ": everything that was acknowledged is lost" : "");
    buf_deinit(&names);
    end(judge);
}

static bool has_values(const struct outcome *outcome) /* that are unique and name their writer */
{
    uint8_t kind = outcome->scenario->workload.kind;
    return kind == SCENARIO_SWAP_REGISTER || kind == SCENARIO_CAS_REGISTER ||
           kind == SCENARIO_LWW_CONFLICT;
}

/* Clients and Regions count alike, but for what was durable in the Region that died before it could
 * acknowledge it: of that, clients know that they do not know. */
static void judge_recount(struct judge *judge, const struct rpo_options *options)
{
    const struct outcome *outcome = judge->outcome;
    const struct outcome_check *rpo = measure_check(outcome, "rpo");
    uint64_t own = outcome->region_rpo_count, open = 0;
    if (own == UINT64_MAX || rpo == NULL || rpo->verdict.kind != VERDICT_OK)
        return;
    uint64_t count = verdict_get(&rpo->verdict, "rpo_count");
    for (uint32_t i = 0; i < outcome->history.count; i++) {
        const struct history_op *op = &outcome->history.ops[i];
        open +=
            op->outcome == HISTORY_INFO && rpo_was_lost_since(options, op->region, op->invoke_ns);
    }
    struct verdict *verdict = begin(judge, "recount");
    verdict_init(verdict);
    verdict_figure(verdict, "regions_count", own);
    verdict_figure(verdict, "clients_count", count);
    verdict_figure(verdict, "clients_unknown", open);
    if (own < count || own > count + open)
        verdict_worsen(verdict, VERDICT_WRONG,
                       "the Regions' own logs tell of %" PRIu64
                       " lost writes, the clients of %" PRIu64 " and of %" PRIu64
                       " that they do not know",
                       own, count, open);
    verdict_conclude(verdict, &outcome->history,
                     "the Regions' own logs tell of %" PRIu64 " lost writes", own);
    end(judge);
}

/* What went down with a Region is the RPO's, and no lost update besides. */
static void part_forks(struct outcome *outcome)
{
    struct chain_forks *forks = &outcome->forks;
    bool *gone = xcalloc(outcome->history.count + 1, sizeof(*gone));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < outcome->losses.count; i++)
        gone[outcome->losses.at[i].op] = outcome->losses.at[i].class == RPO_UNREPLICATED;
    for (uint32_t i = 0; i < forks->count; i++)
        if (!gone[forks->at[i].loser])
            forks->at[kept++] = forks->at[i];
    forks->count = kept;
    free(gone);
}

static void judge_losses(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    uint8_t kind = outcome->scenario->workload.kind;
    if (has_values(outcome) || kind == SCENARIO_SET || kind == SCENARIO_APPEND) {
        struct rpo_options options = {.rows = outcome->ledger,
                                      .row_count = outcome->ledger_count,
                                      .strong = judge->strong,
                                      .all_gone = measure_all_gone(outcome)};
        struct rpo_death *deaths = measure_deaths(outcome, &options.death_count);
        options.deaths = deaths;
        check_rpo(&outcome->history, &options, &outcome->losses, begin(judge, "rpo"));
        end(judge);
        judge_recount(judge, &options);
        part_forks(outcome);
        free(deaths);
    }
    if (!judge->strong && has_values(outcome) && !measure_all_gone(outcome)) {
        const struct ledgers_options options = {.rows = outcome->ledger,
                                                .row_count = outcome->ledger_count,
                                                .dead_regions = measure_lost(outcome)};
        check_ledgers(&outcome->history, &options, begin(judge, "ledgers"));
        end(judge);
    }
}

static void judge_copies(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    if (outcome->scan_count < 2)
        return;
    const struct converge_options options = {.scans = outcome->scans,
                                             .scan_count = outcome->scan_count,
                                             .rescans = outcome->rescans,
                                             .rescan_count = outcome->rescan_count};
    check_converge(&outcome->history, &options, begin(judge, "converge"));
    end(judge);
}

static void judge_reads(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    const struct staleness_options options = {.strong_fresh = judge->strong};
    if (!has_values(outcome))
        return;
    check_staleness(&outcome->history, &options, &outcome->staleness, begin(judge, "staleness"));
    end(judge);
}

/* ---- Measured, and not judged but by expectations ---- */

static uint64_t first_fault_ns(const struct outcome *outcome)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        bool hurts = fault->verb != VERB_UNDO && fault->verb != VERB_HEAL_ALL && !fault->refused;
        if (hurts && fault->from_ns < first)
            first = fault->from_ns;
    }
    return first;
}

static void measure_service(struct judge *judge)
{
    struct outcome *outcome = judge->outcome;
    uint64_t fault = first_fault_ns(outcome);
    uint64_t to = outcome->phase_count == 0 ? 0 : outcome->phases[outcome->phase_count - 1].to_ns;
    if (outcome->phase_count == 0 || fault < outcome->phases[0].from_ns || fault > to)
        return;
    const struct rto_options options = {.from_ns = outcome->phases[0].from_ns,
                                        .fault_ns = fault,
                                        .to_ns = to,
                                        .slo_ns = SLO_NS,
                                        .down_regions = outcome->down_regions};
    struct verdict verdict;
    check_rto(&outcome->history, &options, &outcome->rto, &verdict);
    verdict_deinit(&verdict);
}

/* In eventual mode no order is promised, so none is judged; whoever expects one, or none, is told.
 * UNKNOWN: nobody can tell. */
static enum verdict_kind order_of(const struct outcome *outcome)
{
    const char *name = measure_order_check(outcome->scenario);
    const struct history *history = &outcome->history;
    struct verdict verdict;
    if (name == NULL)
        return VERDICT_UNKNOWN;
    if (strcmp(name, "register") == 0)
        search(outcome, true, &verdict);
    else if (strcmp(name, "chain") == 0)
        check_chain(history, &(struct chain_options){.weak_reads = true}, NULL, &verdict);
    else if (strcmp(name, "counter") == 0)
        check_counter(history, &(struct counter_options){0}, &verdict);
    else if (strcmp(name, "append") == 0)
        check_append(history, &(struct append_options){.weak_reads = true}, &verdict);
    else
        check_set(history, &(struct set_options){.linearizable = true}, &verdict);
    enum verdict_kind kind = verdict.kind;
    verdict_deinit(&verdict);
    return kind;
}

/* Whether the limit holds, or not, whatever the number is in truth. */
static bool is_decided(const struct outcome *outcome, const struct outcome_expect *found)
{
    const struct scenario_expect *expect = found->expect;
    double doubt = measure_doubt(outcome, (enum scenario_metric)expect->metric);
    if (doubt <= 0)
        return true;
    double low = found->actual, high = low + doubt;
    bool holds = scenario_expect_holds(expect, low);
    bool within = expect->limit >= low && expect->limit <= high;
    return scenario_expect_holds(expect, high) == holds &&
           (!within || scenario_expect_holds(expect, expect->limit) == holds);
}

static void measure(struct outcome *outcome, struct outcome_expect *expect)
{
    bool strong = outcome->scenario->cluster.mode == SCENARIO_STRONG;
    if (expect->expect->metric == METRIC_LINEARIZABLE && !strong) {
        enum verdict_kind order = order_of(outcome);
        expect->known = order != VERDICT_UNKNOWN;
        expect->actual = order == VERDICT_OK;
    } else {
        expect->known =
            measure_expect(outcome, expect->expect, &expect->actual) && is_decided(outcome, expect);
    }
    expect->holds = expect->known && scenario_expect_holds(expect->expect, expect->actual);
}

static void measure_expects(struct outcome *outcome)
{
    const struct scenario_expects *expects = &outcome->scenario->expect;
    outcome->expects = arena_array(&outcome->arena, struct outcome_expect, expects->count + 1);
    for (uint32_t i = 0; i < expects->count; i++) {
        struct outcome_expect *expect = &outcome->expects[outcome->expect_count++];
        expect->expect = &expects->at[i];
        measure(outcome, expect);
    }
}

/* ---- What it comes to ---- */

bool judge_excuses(const struct outcome *outcome, const struct outcome_fault *fault)
{
    const struct scenario *scenario = outcome->scenario;
    for (uint32_t i = 0; i < scenario->phase_count; i++)
        for (uint32_t j = 0; j < scenario->phases[i].fault_count; j++) {
            const struct scenario_fault *asked = &scenario->phases[i].faults[j];
            if (asked->drawn && strcmp(asked->id, fault->id) == 0)
                return true;
        }
    return false;
}

static enum outcome_exit exit_of(const struct outcome *outcome)
{
    bool wrong = false, unknown = false, slow = outcome->stopped != NULL;
    if (outcome->harness != NULL)
        return OUTCOME_HARNESS;
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        if ((fault->refused || !fault->effective) && !judge_excuses(outcome, fault))
            return OUTCOME_HARNESS;
    }
    for (uint32_t i = 0; i < outcome->check_count; i++) {
        const struct outcome_check *found = &outcome->checks[i];
        wrong = wrong || found->verdict.kind == VERDICT_WRONG;
        unknown = unknown || found->verdict.kind == VERDICT_UNKNOWN;
    }
    for (uint32_t i = 0; i < outcome->expect_count; i++) {
        const struct outcome_expect *expect = &outcome->expects[i];
        bool timing = scenario_metric_is_timing((enum scenario_metric)expect->expect->metric);
        wrong = wrong || (expect->known && !expect->holds && !timing);
        unknown = unknown || !expect->known;
        slow = slow || (expect->known && !expect->holds && timing);
    }
    for (uint32_t i = 0; i < outcome->phase_count; i++)
        slow = slow || outcome->phases[i].timed_out;
    return wrong ? OUTCOME_WRONG : unknown ? OUTCOME_UNKNOWN : slow ? OUTCOME_SLOW : OUTCOME_PASS;
}

void outcome_judge(struct outcome *outcome, uint64_t (*now_ns)(void))
{
    check(outcome->checks == NULL);
    struct judge judge = {.outcome = outcome,
                          .strong = outcome->scenario->cluster.mode == SCENARIO_STRONG,
                          .now_ns = now_ns};
    outcome->checks = arena_array(&outcome->arena, struct outcome_check, CHECKS_MAX);
    judge_tables(&judge);
    judge_workload(&judge);
    judge_losses(&judge);
    judge_copies(&judge);
    judge_reads(&judge);
    measure_service(&judge);
    measure_expects(outcome);
    outcome->exit = exit_of(outcome);
    outcome->verdict = judge_sentence(outcome);
}
