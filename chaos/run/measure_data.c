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

static bool linearizable(const struct outcome *outcome, double *ret)
{
    const char *name = measure_order_check(outcome->scenario);
    const struct outcome_check *found = name == NULL ? NULL : measure_check(outcome, name);
    if (found == NULL || found->verdict.kind == VERDICT_UNKNOWN)
        return false;
    *ret = found->verdict.kind == VERDICT_OK;
    return true;
}

/* Chains show them; of sums and lists, the last look tells how many are missing. What went down
 * with a Region is the RPO's. Where deletions keep chains from telling in strong mode, the search
 * does: in an order in which all is right, nothing is lost. */
static bool lost_updates(const struct outcome *outcome, double *ret)
{
    if (measure_check(outcome, "chain") == NULL && outcome->forks.count == 0) {
        double right;
        if (outcome->scenario->cluster.mode == SCENARIO_STRONG && linearizable(outcome, &right) &&
            right != 0) {
            *ret = 0;
            return true;
        }
        return figure(outcome, "counter", "lost", ret) || figure(outcome, "append", "lost", ret) ||
               figure(outcome, "set", "lost", ret);
    }
    bool *gone = xcalloc(outcome->history.count + 1, sizeof(*gone));
    for (uint32_t i = 0; i < outcome->losses.count; i++)
        if (outcome->losses.at[i].class == RPO_UNREPLICATED)
            gone[outcome->losses.at[i].op] = true;
    uint32_t count = 0;
    for (uint32_t i = 0; i < outcome->forks.count; i++)
        count += !gone[outcome->forks.at[i].loser];
    free(gone);
    *ret = count;
    return true;
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
    return known;
}

bool measure_all_gone(const struct outcome *outcome)
{
    uint64_t all = (UINT64_C(1) << outcome->scenario->cluster.data_count) - 1;
    return (outcome->gone_regions & all) == all;
}

/* Everything that was acknowledged, where no checker knows the items. */
static bool rpo_of_all(const struct outcome *outcome, enum scenario_metric metric, double *ret)
{
    uint64_t count = 0, bytes = 0, first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < outcome->history.count; i++) {
        const struct history_op *op = &outcome->history.ops[i];
        if (!history_kind_writes((enum history_kind)op->kind) || op->outcome != HISTORY_OK)
            continue;
        count++;
        bytes += op->bytes;
        first_ns = op->return_ns < first_ns ? op->return_ns : first_ns;
    }
    bool timed = outcome->lost_ns != RPO_NEVER && first_ns < outcome->lost_ns;
    *ret = metric == METRIC_RPO_COUNT   ? (double)count
           : metric == METRIC_RPO_BYTES ? (double)bytes
           : timed                      ? (double)(outcome->lost_ns - first_ns)
                                        : 0;
    return outcome->scenario->workload.kind != SCENARIO_EXEC; /* of which there is no history */
}

static bool rpo(const struct outcome *outcome, enum scenario_metric metric, const char *name,
                double *ret)
{
    if (figure(outcome, "rpo", name, ret))
        return true;
    if (measure_all_gone(outcome))
        return rpo_of_all(outcome, metric, ret);
    *ret = 0;
    if (outcome->lost_regions == 0 && outcome->down_regions == 0 && outcome->gone_regions == 0)
        return outcome->harness == NULL; /* no Region was lost, so nothing was lost with one */
    if (outcome->region_rpo_count == UINT64_MAX || metric != METRIC_RPO_COUNT)
        return false;
    *ret = (double)outcome->region_rpo_count;
    return true;
}

double measure_doubt(const struct outcome *outcome, enum scenario_metric metric)
{
    double doubt;
    bool updates = metric == METRIC_LOST_UPDATES;
    bool writes = metric == METRIC_RPO_COUNT || metric == METRIC_LOST_OTHER;
    bool sizes = metric == METRIC_RPO_TIME || metric == METRIC_RPO_BYTES;
    if ((!updates && !writes && !sizes) ||
        !figure(outcome, updates ? "chain" : "rpo", "unjudged", &doubt))
        return 0;
    return sizes && doubt > 0 ? INFINITY : doubt; /* any of them may be the oldest, or large */
}

static bool lost_other(const struct outcome *outcome, double *ret)
{
    bool strong = outcome->scenario->cluster.mode == SCENARIO_STRONG;
    return figure(outcome, "rpo", "lost_other", ret) ||
           (strong && figure(outcome, "counter", "lost", ret));
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
    return outcome->rescan_count > 0 && figure(outcome, "converge", "zombies", ret);
}

/* Whether the ledgers have every lost update and nothing else. Where most of it cannot be judged,
 * that nothing wrong was found says nothing. */
static bool ledger_complete(const struct outcome *outcome, double *ret)
{
    const struct outcome_check *found = measure_check(outcome, "ledgers");
    bool wrong = found != NULL && found->verdict.kind == VERDICT_WRONG;
    *ret = !wrong;
    if (found == NULL || found->verdict.kind == VERDICT_UNKNOWN)
        return false;
    uint64_t judged = verdict_get(&found->verdict, "pairs") + verdict_get(&found->verdict, "forks");
    uint64_t open = verdict_get(&found->verdict, "unjudged") + verdict_get(&found->verdict, "open");
    return wrong || 2 * open <= judged;
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
