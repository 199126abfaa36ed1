/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the data, by what the checkers said of it. A number that was not measured is not
 * told as 0: where nobody has looked, or some cannot be judged, it is unknown or in doubt. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/check/lineage.h"
#include "chaos/run/measure.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static bool figure(const struct outcome *outcome, const char *check, const char *name, double *ret)
{
    const struct outcome_check *found = measure_check(outcome, check);
    uint64_t value = found == NULL ? UINT64_MAX : verdict_get(&found->verdict, name);
    if (value == UINT64_MAX)
        return false;
    *ret = (double)value;
    return true;
}

const char *measure_order_check(const struct scenario *scenario)
{
    switch ((enum scenario_workload_kind)scenario->workload.kind) {
    case SCENARIO_SWAP_REGISTER:
    case SCENARIO_LWW_CONFLICT:
        return scenario->workload.mix.erase > 0 ? "register" : "chain";
    case SCENARIO_CAS_REGISTER:
        return "register";
    case SCENARIO_COUNTER:
        return "counter";
    case SCENARIO_APPEND:
        return "append";
    case SCENARIO_SET:
        return "set";
    case SCENARIO_YCSB_A:
    case SCENARIO_YCSB_B:
    case SCENARIO_YCSB_F:
    case SCENARIO_EXEC:
    case SCENARIO_WORKLOAD_COUNT:
        return NULL;
    }
    unreachable();
}

/* ---- Whether there is anything to measure by ---- */

static bool any_op(const struct outcome *outcome, bool writes)
{
    if (outcome->scenario->workload.kind == SCENARIO_EXEC)
        return true; /* of which there is no history */
    for (uint32_t i = 0; i < outcome->history.count; i++) {
        const struct history_op *op = &outcome->history.ops[i];
        bool done =
            writes ? op->outcome == HISTORY_OK && history_kind_writes((enum history_kind)op->kind)
                   : history_answered(op) && !op->final;
        if (done)
            return true;
    }
    return false;
}

bool measure_any_write(const struct outcome *outcome)
{
    return any_op(outcome, true);
}

/* ---- Lost Regions ---- */

uint64_t measure_lost(const struct outcome *outcome)
{
    uint64_t all = (UINT64_C(1) << outcome->scenario->cluster.data_count) - 1;
    return (outcome->lost_regions | outcome->down_regions | outcome->gone_regions) & all;
}

struct rpo_death *measure_deaths(const struct outcome *outcome, uint32_t *ret_count)
{
    uint32_t count = 0;
    uint64_t left = measure_lost(outcome);
    struct rpo_death *deaths =
        xcalloc(outcome->disk_loss_count + SCENARIO_REGIONS_MAX, sizeof(*deaths));
    for (uint32_t i = 0; i < outcome->disk_loss_count; i++) {
        const struct outcome_loss *loss = &outcome->disk_losses[i];
        deaths[count++] = (struct rpo_death){loss->at_ns, loss->region};
        left &= ~(UINT64_C(1) << loss->region);
    }
    /* Of these nobody noted when, only that what they had is not there in the end. */
    uint64_t at_ns = outcome->lost_ns != RPO_NEVER ? outcome->lost_ns : outcome->ended_ns;
    for (uint8_t i = 0; i < SCENARIO_REGIONS_MAX; i++)
        if (left >> i & 1)
            deaths[count++] = (struct rpo_death){at_ns, i};
    *ret_count = count;
    return deaths;
}

/* ---- Order ---- */

static bool linearizable(const struct outcome *outcome, double *ret)
{
    const char *name = measure_order_check(outcome->scenario);
    const struct outcome_check *found = name == NULL ? NULL : measure_check(outcome, name);
    if (found == NULL || found->verdict.kind == VERDICT_UNKNOWN || measure_all_gone(outcome))
        return false; /* what is gone altogether would be read as absent, and nobody reads it */
    *ret = found->verdict.kind == VERDICT_OK;
    return any_op(outcome, false);
}

static bool phantoms(const struct outcome *outcome, double *ret)
{
    double of_items, all = 0;
    bool known = false;
    static const char *const names[] = {"converge", "set", "append"};
    for (size_t i = 0; i < array_len(names); i++)
        if (figure(outcome, names[i], "phantoms", &of_items)) {
            all += of_items;
            known = true;
        }
    if (measure_check(outcome, "chain") != NULL) {
        struct lineage lineage;
        lineage_init(&lineage, &outcome->history);
        for (uint32_t i = 0; i < lineage.items.count; i++)
            all += lineage.item_array[i].fault != NULL;
        lineage_deinit(&lineage);
        known = true;
    }
    *ret = all;
    return known && any_op(outcome, false);
}

bool measure_all_gone(const struct outcome *outcome)
{
    uint64_t all = (UINT64_C(1) << outcome->scenario->cluster.data_count) - 1;
    return (outcome->gone_regions & all) == all;
}

/* Everything that was acknowledged, where no checker knows the items. */
static bool rpo_of_all(const struct outcome *outcome, enum scenario_metric metric, double *ret)
{
    uint64_t count = 0, bytes = 0, oldest_ns = 0;
    struct rpo_options options = {0};
    struct rpo_death *deaths = measure_deaths(outcome, &options.death_count);
    options.deaths = deaths;
    for (uint32_t i = 0; i < outcome->history.count; i++) {
        const struct history_op *op = &outcome->history.ops[i];
        if (!history_kind_writes((enum history_kind)op->kind) || op->outcome != HISTORY_OK)
            continue;
        uint64_t age_ns = rpo_age_ns(&options, op);
        count++;
        bytes += op->bytes;
        oldest_ns = age_ns > oldest_ns ? age_ns : oldest_ns;
    }
    free(deaths);
    *ret = (double)(metric == METRIC_RPO_COUNT   ? count
                    : metric == METRIC_RPO_BYTES ? bytes
                                                 : oldest_ns);
    return outcome->scenario->workload.kind != SCENARIO_EXEC; /* of which there is no history */
}

static bool rpo(const struct outcome *outcome, enum scenario_metric metric, const char *name,
                double *ret)
{
    if (!measure_any_write(outcome))
        return false;
    if (figure(outcome, "rpo", name, ret))
        return true;
    if (measure_all_gone(outcome))
        return rpo_of_all(outcome, metric, ret);
    *ret = 0;
    if (measure_lost(outcome) == 0)
        return outcome->harness == NULL; /* no Region was lost, so nothing was lost with one */
    if (outcome->region_rpo_count == UINT64_MAX || metric != METRIC_RPO_COUNT)
        return false;
    *ret = (double)outcome->region_rpo_count;
    return true;
}

/* ---- Lost updates ---- */

/* Of sums the last look tells how many are missing, and the Regions how many went down with one. */
static bool lost_additions(const struct outcome *outcome, double *ret)
{
    double gone;
    if (!figure(outcome, "counter", "lost", ret))
        return false;
    if (measure_lost(outcome) == 0 || outcome->scenario->cluster.mode == SCENARIO_STRONG)
        return true;
    if (!rpo(outcome, METRIC_RPO_COUNT, "rpo_count", &gone))
        return false;
    *ret = fmax(0, *ret - gone);
    return true;
}

/* Chains show them (of which the judge has left out what went down with a Region, as that is the
 * RPO's); of sums, lists and sets, the last look tells how many are missing. Where deletions keep
 * chains from telling in strong mode, the search does: in an order in which all is right, nothing
 * is lost. */
static bool lost_updates(const struct outcome *outcome, double *ret)
{
    double right, other;
    if (!measure_any_write(outcome))
        return false;
    if (measure_check(outcome, "chain") != NULL || outcome->forks.count > 0) {
        *ret = outcome->forks.count;
        return true;
    }
    if (outcome->scenario->cluster.mode == SCENARIO_STRONG && linearizable(outcome, &right) &&
        right != 0) {
        *ret = 0;
        return true;
    }
    if (lost_additions(outcome, ret))
        return true;
    if ((measure_check(outcome, "append") == NULL && measure_check(outcome, "set") == NULL) ||
        !figure(outcome, "rpo", "lost_lww", ret) || !figure(outcome, "rpo", "lost_other", &other))
        return false;
    *ret += other;
    return true;
}

double measure_doubt(const struct outcome *outcome, enum scenario_metric metric)
{
    double doubt;
    bool updates = metric == METRIC_LOST_UPDATES;
    bool writes = metric == METRIC_RPO_COUNT || metric == METRIC_LOST_OTHER;
    bool sizes = metric == METRIC_RPO_TIME || metric == METRIC_RPO_BYTES;
    bool chained = measure_check(outcome, "chain") != NULL || outcome->forks.count > 0;
    bool looked = measure_check(outcome, "append") != NULL || measure_check(outcome, "set") != NULL;
    if ((!updates && !writes && !sizes) || (updates && !chained && !looked) ||
        !figure(outcome, updates && chained ? "chain" : "rpo", "unjudged", &doubt))
        return 0;
    return sizes && doubt > 0 ? INFINITY : doubt; /* any of them may be the oldest, or large */
}

static bool lost_other(const struct outcome *outcome, double *ret)
{
    bool strong = outcome->scenario->cluster.mode == SCENARIO_STRONG;
    return measure_any_write(outcome) && (figure(outcome, "rpo", "lost_other", ret) ||
                                          (strong && figure(outcome, "counter", "lost", ret)));
}

static bool converged(const struct outcome *outcome, double *ret)
{
    const struct outcome_check *found = measure_check(outcome, "converge");
    if (found == NULL)
        return false;
    *ret = verdict_get(&found->verdict, "different") == 0;
    return true;
}

static bool converge_time(const struct outcome *outcome, double *ret)
{
    uint64_t from = outcome->healed_ns != 0 ? outcome->healed_ns : outcome->began_ns;
    if (outcome->converged_ns == 0)
        *ret = INFINITY;
    else
        *ret = outcome->converged_ns > from ? (double)(outcome->converged_ns - from) : 0;
    return true;
}

static bool zombies(const struct outcome *outcome, double *ret)
{
    return outcome->rescan_count > 0 && measure_any_write(outcome) &&
           figure(outcome, "converge", "zombies", ret);
}

/* Whether the ledgers have every lost update and nothing else. Where most of it cannot be judged,
 * that nothing wrong was found says nothing. */
static bool ledger_complete(const struct outcome *outcome, double *ret)
{
    const struct outcome_check *found = measure_check(outcome, "ledgers");
    bool wrong = found != NULL && found->verdict.kind == VERDICT_WRONG;
    *ret = !wrong;
    if (found == NULL || found->verdict.kind == VERDICT_UNKNOWN || !measure_any_write(outcome))
        return false;
    uint64_t judged = verdict_get(&found->verdict, "pairs") + verdict_get(&found->verdict, "forks");
    uint64_t open = verdict_get(&found->verdict, "unjudged") + verdict_get(&found->verdict, "open");
    return wrong || 2 * open <= judged;
}

bool measure_known(const struct outcome *outcome, enum scenario_metric metric, double *ret)
{
    return measure_data(outcome, metric, ret) && measure_doubt(outcome, metric) <= 0;
}

bool measure_data(const struct outcome *outcome, enum scenario_metric metric, double *ret)
{
    static const struct {
        enum scenario_metric metric;
        bool (*measure)(const struct outcome *outcome, double *ret);
    } rows[] = {
        {METRIC_LINEARIZABLE, linearizable}, {METRIC_LOST_UPDATES, lost_updates},
        {METRIC_LOST_OTHER, lost_other},     {METRIC_PHANTOMS, phantoms},
        {METRIC_ZOMBIES, zombies},           {METRIC_CONVERGED, converged},
        {METRIC_CONVERGE, converge_time},    {METRIC_LEDGER_COMPLETE, ledger_complete},
    };
    for (size_t i = 0; i < array_len(rows); i++)
        if (rows[i].metric == metric)
            return rows[i].measure(outcome, ret);
    if (metric == METRIC_RPO_COUNT)
        return rpo(outcome, metric, "rpo_count", ret);
    if (metric == METRIC_RPO_TIME)
        return rpo(outcome, metric, "rpo_ns", ret);
    check(metric == METRIC_RPO_BYTES);
    return rpo(outcome, metric, "rpo_bytes", ret);
}
