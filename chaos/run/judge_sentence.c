/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict in one sentence: the word, the first reason if it is not a pass, and the numbers that
 * people ask for first. It must be understood without the report. */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "chaos/run/judge.h"
#include "chaos/run/measure.h"
#include "conflict/base/check.h"

/* ---- Why ---- */

static void say_fault(const struct outcome *outcome, struct buf *to)
{
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        if ((!fault->refused && fault->effective) || judge_excuses(outcome, fault))
            continue;
        buf_printf(to, "fault %s (%s %s) %s: %s", fault->id,
                   scenario_verb_info((enum scenario_verb)fault->verb)->name,
                   fault->target == NULL ? "" : fault->target,
                   fault->refused ? "could not be begun" : "hit nothing",
                   fault->evidence == NULL ? "nothing was seen of it" : fault->evidence);
        return;
    }
}

static bool say_check(const struct outcome *outcome, enum verdict_kind kind, struct buf *to)
{
    for (uint32_t i = 0; i < outcome->check_count; i++) {
        const struct outcome_check *found = &outcome->checks[i];
        if (found->verdict.kind != kind)
            continue;
        buf_printf(to, "%s: %.*s", found->name, (int)found->verdict.text.len,
                   (const char *)found->verdict.text.at);
        return true;
    }
    return false;
}

static void say_unknown(const struct outcome *outcome, enum scenario_metric metric, struct buf *to)
{
    double doubt = measure_doubt(outcome, metric);
    if (!measure_any_write(outcome))
        buf_append_text(to, "and no write was acknowledged to measure it by");
    else if (metric == METRIC_LEDGER_COMPLETE && measure_check(outcome, "ledgers") != NULL)
        buf_append_text(to, "and not all of what the ledgers tell can be judged");
    else if (metric == METRIC_RPO_COUNT && outcome->region_rpo_why != NULL)
        buf_printf(to, "and it is not known: %s", outcome->region_rpo_why);
    else if (isinf(doubt))
        buf_append_text(to, "and some of it cannot be judged");
    else if (doubt > 0)
        buf_printf(to, "and of %.0f nobody can tell", doubt);
    else
        buf_append_text(to, "and there was nothing to measure it by");
}

static bool say_expect(const struct outcome *outcome, bool known, bool timing, struct buf *to)
{
    for (uint32_t i = 0; i < outcome->expect_count; i++) {
        const struct outcome_expect *expect = &outcome->expects[i];
        enum scenario_metric metric = (enum scenario_metric)expect->expect->metric;
        if (expect->holds || expect->known != known ||
            (known && scenario_metric_is_timing(metric) != timing))
            continue;
        buf_printf(to, "expected %s, ", expect->expect->text);
        if (known)
            measure_print(metric, expect->actual, to);
        else
            say_unknown(outcome, metric, to);
        return true;
    }
    return false;
}

static void say_slow(const struct outcome *outcome, struct buf *to)
{
    if (say_expect(outcome, true, true, to))
        return;
    if (outcome->stopped != NULL) {
        buf_printf(to, "stopped early: %s", outcome->stopped);
        return;
    }
    for (uint32_t i = 0; i < outcome->phase_count; i++)
        if (outcome->phases[i].timed_out) {
            buf_printf(to, "phase %s did not reach what it waits for in time",
                       outcome->phases[i].name);
            return;
        }
}

static void say_reason(const struct outcome *outcome, struct buf *to)
{
    switch (outcome->exit) {
    case OUTCOME_PASS:
        return;
    case OUTCOME_HARNESS:
        if (outcome->harness != NULL)
            buf_append_text(to, outcome->harness);
        else
            say_fault(outcome, to);
        return;
    case OUTCOME_WRONG:
        if (!say_check(outcome, VERDICT_WRONG, to))
            say_expect(outcome, true, false, to);
        return;
    case OUTCOME_UNKNOWN:
        if (!say_check(outcome, VERDICT_UNKNOWN, to))
            say_expect(outcome, false, false, to);
        return;
    case OUTCOME_SLOW:
        say_slow(outcome, to);
        return;
    }
    unreachable();
}

/* ---- What is known ---- */

static bool number(const struct outcome *outcome, enum scenario_metric metric, double *ret)
{
    const struct scenario_expect ask = {.metric = (uint8_t)metric, .region = SCENARIO_REGION_ALL};
    return measure_expect(outcome, &ask, ret);
}

static void say_number(const struct outcome *outcome, enum scenario_metric metric,
                       const char *before, const char *after, struct buf *to)
{
    double value;
    if (!number(outcome, metric, &value))
        return;
    buf_append_text(to, to->len == 0 ? "" : ", ");
    buf_append_text(to, before);
    measure_print(metric, value, to);
    buf_append_text(to, after);
}

/* No number that was not measured: of writes that nobody looked for, none is known to be there. */
static void say_loss(const struct outcome *outcome, struct buf *to)
{
    double count, ns;
    if (!measure_any_write(outcome)) {
        buf_append_text(to, "no write was acknowledged");
        return;
    }
    if (!measure_known(outcome, METRIC_RPO_COUNT, &count)) {
        buf_append_text(to, "RPO unknown");
        if (outcome->region_rpo_why != NULL)
            buf_printf(to, " (%s)", outcome->region_rpo_why);
        return;
    }
    buf_printf(to, "RPO %.0f write%s", count, count == 1 ? "" : "s");
    if (count > 0 && measure_known(outcome, METRIC_RPO_TIME, &ns)) {
        buf_append_text(to, " (");
        measure_print(METRIC_RPO_TIME, ns, to);
        buf_append_u8(to, ')');
    }
}

/* Regions that came back with less than they had, or did not. Of a wiped disk the scenario tells by
 * itself. */
static void say_disks(const struct outcome *outcome, struct buf *to)
{
    static const char *const texts[OUTCOME_LOSS_WHY_COUNT] = {
        [OUTCOME_LOSS_DISCARDED] = "the damaged store of %s was set aside",
        [OUTCOME_LOSS_DAMAGED] = "%s went on with a damaged store",
        [OUTCOME_LOSS_DOWN] = "%s did not come back",
    };
    uint64_t told[OUTCOME_LOSS_WHY_COUNT] = {0};
    for (uint32_t i = 0; i < outcome->disk_loss_count; i++) {
        const struct outcome_loss *loss = &outcome->disk_losses[i];
        uint64_t bit = UINT64_C(1) << loss->region;
        if (texts[loss->why] == NULL || told[loss->why] & bit)
            continue;
        told[loss->why] |= bit;
        const char *name = outcome->scenario->cluster.region[loss->region].name;
        const char *rest = strstr(texts[loss->why], "%s");
        buf_printf(to, ", %.*s%s%s", (int)(rest - texts[loss->why]), texts[loss->why], name,
                   rest + 2);
    }
}

static void say_lost_updates(const struct outcome *outcome, struct buf *to)
{
    double lost, doubt = measure_doubt(outcome, METRIC_LOST_UPDATES), pairs = 0;
    const struct outcome_check *ledgers = measure_check(outcome, "ledgers");
    if (!number(outcome, METRIC_LOST_UPDATES, &lost))
        return;
    if (lost > 0 || doubt > 0)
        buf_printf(to, ", %.0f lost update%s", lost, lost == 1 ? "" : "s");
    if (doubt > 0)
        buf_printf(to, ", %.0f not judged", doubt);
    if (ledgers != NULL && ledgers->verdict.kind == VERDICT_OK)
        pairs = (double)verdict_get(&ledgers->verdict, "unjudged");
    uint64_t all = ledgers == NULL ? 0 : verdict_get(&ledgers->verdict, "pairs");
    if (pairs > 0)
        buf_printf(to, ", %.0f of %" PRIu64 " pair%s of the ledgers not judged", pairs, all,
                   plural(all));
}

/* Beside a graver reason, which has the first word. */
static void say_phases(const struct outcome *outcome, struct buf *to)
{
    for (uint32_t i = 0; i < outcome->phase_count && outcome->exit != OUTCOME_SLOW; i++)
        if (outcome->phases[i].timed_out)
            buf_printf(to, ", phase %s waited in vain", outcome->phases[i].name);
}

static void say_facts(const struct outcome *outcome, struct buf *to)
{
    double value;
    say_loss(outcome, to);
    say_disks(outcome, to);
    if (number(outcome, METRIC_RTO, &value) && isinf(value))
        buf_append_text(to, ", RTO not seen");
    else if (outcome->rto.count > 0)
        say_number(outcome, METRIC_RTO, "RTO ", "", to);
    if (outcome->scenario->cluster.mode == SCENARIO_STRONG &&
        number(outcome, METRIC_LINEARIZABLE, &value))
        buf_printf(to, ", %slinearizable", value != 0 ? "" : "not ");
    say_lost_updates(outcome, to);
    say_phases(outcome, to);
    if (!number(outcome, METRIC_CONVERGED, &value))
        return;
    if (value == 0)
        buf_append_text(to, ", Regions differ in the end");
    else if (outcome->converged_ns == 0 || outcome->healed_ns == 0)
        buf_append_text(to, ", all Regions equal");
    else
        say_number(outcome, METRIC_CONVERGE, "all Regions equal ", " after healing", to);
}

/* Regions whose clients have written. */
static uint32_t count_writers(const struct outcome *outcome)
{
    uint64_t regions = 0;
    for (uint32_t i = 0; i < outcome->history.count; i++) {
        const struct history_op *op = &outcome->history.ops[i];
        if (!op->final && history_kind_writes((enum history_kind)op->kind))
            regions |= UINT64_C(1) << op->region;
    }
    return (uint32_t)__builtin_popcountll(regions);
}

/* Never a reason to fail: the scenario says what it asks for, and the machine what it can do. */
static void say_load(const struct outcome *outcome, struct buf *to)
{
    uint32_t writers = count_writers(outcome), all = outcome->scenario->cluster.data_count;
    if (!outcome_fell_short(outcome))
        return;
    buf_printf(to, "; asked %" PRIu64 "/s, %" PRIu64 "/s were begun", outcome->asked_per_s,
               outcome->begun_per_s);
    if (writers > 0 && writers < all)
        buf_printf(to, ", writes in %u of %u Regions", writers, all);
}

static bool is_struck(const struct outcome *outcome, uint64_t at_ns, uint32_t *last)
{
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        uint32_t at = (*last + i) % outcome->fault_count; /* it is mostly the one of before */
        const struct outcome_fault *fault = &outcome->faults[at];
        bool hurts = fault->verb != VERB_UNDO && fault->verb != VERB_HEAL_ALL && !fault->refused;
        if (!hurts || at_ns < fault->from_ns || (fault->to_ns != 0 && at_ns > fault->to_ns))
            continue;
        *last = at;
        return true;
    }
    return false;
}

struct served {
    uint64_t begun, answered;
};

/* Where nothing was done, that nothing went wrong says little. */
static void say_served(const struct outcome *outcome, struct buf *to)
{
    enum { ENOUGH = 20 };
    struct served all = {0}, calm = {0};
    uint32_t last = 0;
    if (outcome->scenario->workload.kind == SCENARIO_EXEC)
        return;
    for (uint32_t i = 0; i < outcome->history.count; i++) {
        const struct history_op *op = &outcome->history.ops[i];
        bool answered = history_answered(op) || op->reason == HISTORY_REASON_CONFLICT;
        if (op->final)
            continue;
        all.begun++;
        all.answered += answered;
        if (is_struck(outcome, op->intended_ns, &last))
            continue;
        calm.begun++;
        calm.answered += answered;
    }
    bool is_calm = calm.begun >= ENOUGH;
    const struct served *told = is_calm ? &calm : &all;
    if (all.begun == 0)
        buf_append_text(to, "; no operation was begun");
    else if (all.answered == 0)
        buf_append_text(to, "; no operation succeeded");
    else if (2 * told->answered < told->begun)
        buf_printf(to, "; of %" PRIu64 " operations%s %" PRIu64 " succeeded", told->begun,
                   is_calm ? " outside of faults" : "", told->answered);
}

const char *judge_sentence(struct outcome *outcome)
{
    static const char *const words[] = {[OUTCOME_PASS] = "pass",
                                        [OUTCOME_WRONG] = "wrong",
                                        [OUTCOME_HARNESS] = "harness error",
                                        [OUTCOME_UNKNOWN] = "unknown",
                                        [OUTCOME_SLOW] = "too slow"};
    struct buf reason = {0}, facts = {0}, all = {0};
    say_reason(outcome, &reason);
    say_facts(outcome, &facts);
    buf_printf(&all, "%s: %.*s%s%.*s", words[outcome->exit], (int)reason.len,
               reason.len == 0 ? "" : (const char *)reason.at,
               reason.len > 0 && facts.len > 0 ? " (" : "", (int)facts.len,
               facts.len == 0 ? "" : (const char *)facts.at);
    if (reason.len > 0 && facts.len > 0)
        buf_append_u8(&all, ')');
    say_load(outcome, &all);
    say_served(outcome, &all);
    const char *text = bytes_copy_text(&outcome->arena, buf_view(&all));
    buf_deinit(&reason);
    buf_deinit(&facts);
    buf_deinit(&all);
    return text;
}
