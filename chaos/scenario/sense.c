/* SPDX-License-Identifier: Apache-2.0 */
/* What each part of a file allows and the whole cannot mean: limits that no figure keeps, figures
 * that such a run has not, an `until` that waits for a Region which nobody starts again. Only what
 * is certain is refused: whoever plans a fault knows better than we what may come of it. */

#include "chaos/scenario/fields.h"

#include <math.h>

#include "conflict/base/check.h"

enum { DOWN_MAX = 64 };

/* ---- Limits ---- */

/* What a figure can be, and what is left of it by limits. */
struct range {
    double low, high;
    bool low_out, high_out; /* the bound itself is not in it */
};

static bool is_count(enum scenario_metric metric)
{
    return metric == METRIC_RPO_COUNT || metric == METRIC_RPO_BYTES ||
           metric == METRIC_LOST_UPDATES || metric == METRIC_LOST_OTHER ||
           metric == METRIC_PHANTOMS || metric == METRIC_ZOMBIES || metric == METRIC_CONFLICTS;
}

static struct range range_of(enum scenario_metric metric)
{
    bool share = metric == METRIC_ERROR_RATE || metric == METRIC_UNKNOWN_RATE;
    bool truth = metric == METRIC_LINEARIZABLE || metric == METRIC_CONVERGED ||
                 metric == METRIC_LEDGER_COMPLETE;
    double high = share || truth ? 1 : metric == METRIC_EXIT_CODE ? 255 : INFINITY;
    return (struct range){.low = 0, .high = high};
}

static void raise(struct range *range, double low, bool out)
{
    if (low > range->low || (low >= range->low && out)) {
        range->low = low;
        range->low_out = out;
    }
}

static void lower(struct range *range, double high, bool out)
{
    if (high < range->high || (high <= range->high && out)) {
        range->high = high;
        range->high_out = out;
    }
}

/* Of counts, what lies between two whole numbers is nothing. */
static void narrow(struct range *range, const struct scenario_expect *expect)
{
    bool whole = is_count((enum scenario_metric)expect->metric);
    double limit = expect->limit;
    switch ((enum scenario_comparison)expect->comparison) {
    case SCENARIO_EQUAL:
        raise(range, limit, whole && limit > floor(limit));
        lower(range, limit, whole && limit > floor(limit));
        return;
    case SCENARIO_LESS:
        lower(range, whole ? ceil(limit) - 1 : limit, !whole);
        return;
    case SCENARIO_AT_MOST:
        lower(range, whole ? floor(limit) : limit, false);
        return;
    case SCENARIO_MORE:
        raise(range, whole ? floor(limit) + 1 : limit, !whole);
        return;
    case SCENARIO_AT_LEAST:
        raise(range, whole ? ceil(limit) : limit, false);
        return;
    case SCENARIO_NOT_EQUAL: /* leaves holes; one in a single value is the only that matters */
        if (range->low >= range->high && limit >= range->low && limit <= range->high)
            range->low_out = true;
        return;
    }
    unreachable();
}

static bool is_empty(const struct range *range)
{
    return range->low > range->high ||
           (range->low >= range->high && (range->low_out || range->high_out));
}

static bool same_figure(const struct scenario_expect *a, const struct scenario_expect *b)
{
    return a->metric == b->metric && a->class == b->class && a->region == b->region;
}

/* All that is asked of the figure of the last-th, with the holes last, as they know no order. */
static struct range range_until(const struct scenario_expects *list, uint32_t last)
{
    struct range range = range_of((enum scenario_metric)list->at[last].metric);
    for (int holes = 0; holes < 2; holes++)
        for (uint32_t i = 0; i <= last; i++)
            if (same_figure(&list->at[i], &list->at[last]) &&
                (list->at[i].comparison == SCENARIO_NOT_EQUAL) == holes)
                narrow(&range, &list->at[i]);
    return range;
}

/* The value in the file that the limit was read from: the deepest one on its line that says it. */
static const struct node *limit_node(const struct node *node, const struct scenario_expect *expect)
{
    size_t len = node->kind == NODE_SCALAR ? strlen(node->text) : 0, whole = strlen(expect->text);
    if (node->kind == NODE_SCALAR)
        return node->line == expect->line && len <= whole &&
                       strcmp(expect->text + whole - len, node->text) == 0
                   ? node
                   : NULL;
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        const struct node *found = limit_node(at, expect);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static void refuse(struct reader *reader, const struct node *part,
                   const struct scenario_expect *expect, const char *reason)
{
    const struct node *metric =
        node_find(part, scenario_metric_name((enum scenario_metric)expect->metric));
    const struct node *node = metric == NULL ? NULL : limit_node(metric, expect);
    reader_fail(reader, node != NULL ? node : part, "%s", reason);
}

/* NULL, or why no run of this scenario has the figure. */
static const char *never_known(const struct reader *reader, const struct scenario_expect *expect)
{
    const struct scenario_workload *workload = &reader->scenario->workload;
    const struct scenario_mix *mix = &workload->mix;
    const char *never =
        scenario_never_measured(reader->scenario, (enum scenario_metric)expect->metric);
    if (never != NULL || workload->kind == SCENARIO_EXEC)
        return never;
    switch ((enum scenario_class)expect->class) {
    case SCENARIO_CLASS_WRITE:
        return mix->write + mix->erase > 0 ? NULL : "the workload never writes";
    case SCENARIO_CLASS_READ_STRONG:
        return mix->read_strong > 0 || workload->kind == SCENARIO_SET
                   ? NULL
                   : "the workload has no such reads: its mix says read_strong 0";
    case SCENARIO_CLASS_READ_EVENTUAL:
        return mix->read_eventual > 0 || workload->kind == SCENARIO_SET
                   ? NULL
                   : "the workload has no such reads: its mix says read_eventual 0";
    case SCENARIO_CLASS_ANY:
    case SCENARIO_CLASS_COUNT:
        return NULL;
    }
    unreachable();
}

static const char *never_true(const struct reader *reader, const struct scenario_expect *expect)
{
    bool eventual = reader->scenario->cluster.mode == SCENARIO_EVENTUAL;
    if (expect->metric == METRIC_LINEARIZABLE && eventual && expect->limit > 0)
        return "an eventual cluster promises no order: expect it of `mode: strong`, or expect "
               "`converged: true`";
    return NULL;
}

/* all_must_hold: of `expect`; of `stop_if` each is a reason of its own. */
static void check_limits(struct reader *reader, const struct node *part,
                         const struct scenario_expects *list, bool all_must_hold)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct scenario_expect *expect = &list->at[i];
        struct range range = range_of((enum scenario_metric)expect->metric);
        const char *wrong = reader->lost ? NULL : never_known(reader, expect);
        narrow(&range, expect);
        if (wrong == NULL && !reader->lost)
            wrong = never_true(reader, expect);
        if (wrong == NULL && is_empty(&range))
            wrong = "it can never be so";
        range = range_until(list, i);
        if (wrong == NULL && all_must_hold && is_empty(&range))
            wrong = "it cannot be so together with what is asked of it before";
        if (wrong != NULL)
            refuse(reader, part, expect, wrong);
    }
}

/* The figure's whole range after all limits. */
static struct range asked_of(const struct scenario_expects *list, enum scenario_metric metric)
{
    struct range range = range_of(metric);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i].metric == metric)
            narrow(&range, &list->at[i]);
    return range;
}

static bool asks_above_zero(const struct scenario_expects *list, enum scenario_metric metric)
{
    struct range range = asked_of(list, metric);
    return range.low > 0 || range.low_out;
}

/* Figures that go together: with nothing lost there is no age and no size of it. */
static void check_together(struct reader *reader, const struct node *part,
                           const struct scenario_expects *list)
{
    static const enum scenario_metric of_losses[] = {METRIC_RPO_TIME, METRIC_RPO_BYTES};
    for (size_t i = 0; i < array_len(of_losses); i++) {
        const struct node *node = node_find(part, scenario_metric_name(of_losses[i]));
        if (node != NULL && asked_of(list, METRIC_RPO_COUNT).high < 1 &&
            asks_above_zero(list, of_losses[i]))
            reader_fail(reader, node, "with rpo_count 0 there is nothing that could have it");
    }
    const struct node *time = node_find(part, scenario_metric_name(METRIC_CONVERGE));
    if (time != NULL && asked_of(list, METRIC_CONVERGED).high < 1)
        reader_fail(reader, time, "with `converged: false` no time is short enough");
}

/* ---- Until ---- */

/* Takes away what the process is kept from running by; of `leader` nobody knows who it will be. */
static bool keeps_down(const struct scenario_fault *fault)
{
    return fault->verb == VERB_PROCESS_KILL || fault->verb == VERB_PROCESS_PAUSE ||
           fault->verb == VERB_DISK_WIPE || fault->verb == VERB_LEADER_KILL;
}

static bool ends(const struct scenario_fault *fault, const struct scenario_fault *other)
{
    if (fault->verb == VERB_HEAL_ALL)
        return true;
    if (fault->verb == VERB_UNDO)
        return fault->fault != NULL && other->id != NULL && strcmp(fault->fault, other->id) == 0;
    return scenario_verb_info(other->verb)->undo == fault->verb &&
           (fault->region == other->region || fault->region >= SCENARIO_REGION_LEADER ||
            other->region >= SCENARIO_REGION_LEADER);
}

/* Goes through the faults in their time; what still keeps a Region down when a phase waits for all
 * Regions, and will not end before the phase does, it waits for in vain. */
static void check_untils(struct reader *reader, const struct node *phases)
{
    const struct scenario *scenario = reader->scenario;
    const struct scenario_fault *down[DOWN_MAX];
    uint32_t count = 0;
    const struct node *node = phases->first;
    for (uint32_t i = 0; i < scenario->phase_count; i++, node = node->next) {
        const struct scenario_phase *phase = &scenario->phases[i];
        uint64_t over_ns = phase->for_ns + phase->until.timeout_ns;
        uint32_t kept = 0;
        count = phase->heal ? 0 : count;
        for (uint32_t j = 0; j < phase->fault_count; j++) {
            const struct scenario_fault *fault = &phase->faults[j];
            bool stays = fault->for_ns == 0 || fault->at_ns + fault->for_ns > over_ns;
            for (uint32_t k = kept = 0; k < count; k++)
                if (!ends(fault, down[k]))
                    down[kept++] = down[k];
            count = kept;
            if (keeps_down(fault) && stays && phase->has_until + (fault->for_ns == 0) > 0 &&
                count < array_len(down))
                down[count++] = fault;
        }
        if (count > 0 && phase->has_until && (phase->until.converged || phase->until.caught_up))
            reader_fail(reader, node_find(node, "until"),
                        "it waits in vain: %s of line %u still holds then",
                        scenario_verb_info(down[0]->verb)->name, down[0]->line);
        kept = 0;
        for (uint32_t k = 0; k < count; k++) /* by the next phase, what has a time is over */
            if (down[k]->for_ns == 0)
                down[kept++] = down[k];
        count = kept;
    }
}

void scenario_check_sense(struct reader *reader, const struct node *root)
{
    const struct scenario *scenario = reader->scenario;
    const struct node *expect = node_find(root, "expect"), *stop_if = node_find(root, "stop_if");
    if (expect != NULL && scenario->expect.at != NULL) {
        check_limits(reader, expect, &scenario->expect, true);
        check_together(reader, expect, &scenario->expect);
    }
    if (stop_if != NULL && scenario->stop_if.at != NULL)
        check_limits(reader, stop_if, &scenario->stop_if, false);
    if (reader->errors == 0)
        check_untils(reader, node_find(root, "phases"));
}
