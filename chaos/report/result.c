/* SPDX-License-Identifier: Apache-2.0 */
/* result.json: all figures of a run, for machines. Its shape is result_schema.c; a test holds the
 * two together. Times are whole ns, moments are since the run began, and null is "never" or
 * "nothing to measure". Lists that grow with the run are cut, and their counts are not. */

#include "chaos/report/report.h"

#include <jansson.h>
#include <math.h>

#include "chaos/report/facts.h"
#include "chaos/report/lines.h"
#include "chaos/report/measures.h"
#include "chaos/report/text.h"
#include "chaos/run/measure.h"
#include "conflict/base/check.h"

enum { RESULT_VERSION = 1, LIST_MAX = 1000 };

static void set(json_t *object, const char *key, json_t *value)
{
    check(json_object_set_new(object, key, value) == 0);
}

static void set_text(json_t *object, const char *key, const char *text)
{
    set(object, key, text_json_new(text));
}

/* UINT64_MAX is null; beyond 2^53 a text, as in the other files. */
static json_t *number(uint64_t value)
{
    if (value == UINT64_MAX)
        return json_null();
    if (value <= UINT64_C(1) << 53)
        return json_integer((json_int_t)value);
    char digits[DECIMAL_LEN_MAX];
    return json_stringn(digits, decimal_encode(digits, value));
}

static void set_number(json_t *object, const char *key, uint64_t value)
{
    set(object, key, number(value));
}

static void set_moment(json_t *object, const char *key, const struct outcome *outcome,
                       uint64_t at_ns, uint64_t none)
{
    set(object, key,
        at_ns == none ? json_null() : json_integer((json_int_t)(at_ns - outcome->began_ns)));
}

static void set_region(json_t *object, const char *key, const struct outcome *outcome,
                       uint8_t region)
{
    const char *name = facts_region(outcome, region);
    set_text(object, key, *name == 0 ? NULL : name);
}

static json_t *regions(const struct outcome *outcome, uint64_t bits)
{
    json_t *list = json_array();
    for (uint8_t i = 0; i < outcome->scenario->cluster.region_count; i++)
        if (bits >> i & 1)
            json_array_append_new(list, text_json_new(facts_region(outcome, i)));
    return list;
}

static uint64_t figure(const struct outcome *outcome, const char *name, const char *key)
{
    const struct outcome_check *found = measure_check(outcome, name);
    return found == NULL ? UINT64_MAX : verdict_get(&found->verdict, key);
}

/* ---- What was done ---- */

static json_t *run_of(const struct outcome *outcome)
{
    struct buf text = {0};
    json_t *run = json_object();
    set_text(run, "scenario", outcome->scenario->name);
    set_text(run, "file", outcome->scenario_file);
    set_text(run, "tidemark", outcome->version);
    set_number(run, "seed", outcome->seed);
    text_date(outcome->began_wall_ms, &text);
    set(run, "started", json_stringn((const char *)text.at, text.len));
    set_number(run, "duration_ns", outcome->ended_ns - outcome->began_ns);
    set_number(run, "asked_per_s", outcome->asked_per_s == 0 ? UINT64_MAX : outcome->asked_per_s);
    set_number(run, "begun_per_s", outcome->asked_per_s == 0 ? UINT64_MAX : outcome->begun_per_s);
    set_text(run, "stopped", outcome->stopped);
    set_text(run, "harness", outcome->harness);
    buf_reset(&text);
    facts_command(outcome, &text);
    buf_append_u8(&text, 0);
    set_text(run, "reproduce", (const char *)text.at);
    buf_deinit(&text);
    return run;
}

static json_t *cluster_of(const struct outcome *outcome)
{
    const struct scenario_cluster *cluster = &outcome->scenario->cluster;
    json_t *json = json_object(), *list = json_array();
    set_text(json, "mode", cluster->mode == SCENARIO_STRONG ? "strong" : "eventual");
    set_text(json, "durability", cluster->durability == SCENARIO_FSYNC ? "fsync" : "os");
    set_text(json, "clock", cluster->clock == SCENARIO_HYBRID ? "hybrid" : "wall");
    for (uint8_t i = 0; i < cluster->region_count; i++) {
        json_t *region = json_object();
        set_text(region, "name", cluster->region[i].name);
        set(region, "witness", json_boolean(i >= cluster->data_count));
        json_array_append_new(list, region);
    }
    set(json, "regions", list);
    set_text(json, "workload",
             scenario_workload_name((enum scenario_workload_kind)outcome->scenario->workload.kind));
    return json;
}

static json_t *phases_of(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        const struct outcome_phase *phase = &outcome->phases[i];
        json_t *json = json_object();
        set_text(json, "name", phase->name);
        set_moment(json, "from_ns", outcome, phase->from_ns, UINT64_MAX);
        set_moment(json, "to_ns", outcome, phase->to_ns, UINT64_MAX);
        set(json, "timed_out", json_boolean(phase->timed_out));
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *faults_of(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        json_t *json = json_object();
        set_text(json, "id", fault->id);
        set_text(json, "verb", scenario_verb_info((enum scenario_verb)fault->verb)->name);
        set_text(json, "target", fault->target);
        set(json, "regions", regions(outcome, fault->regions));
        set_moment(json, "from_ns", outcome, fault->from_ns, UINT64_MAX);
        set_moment(json, "to_ns", outcome, fault->to_ns, 0);
        set_text(json, "evidence", fault->evidence);
        set(json, "effective", json_boolean(fault->effective));
        set(json, "refused", json_boolean(fault->refused));
        json_array_append_new(list, json);
    }
    return list;
}

/* ---- What the clients saw ---- */

static json_t *operations_of(const struct outcome *outcome, const struct measures *measures)
{
    json_t *list = json_array();
    for (uint8_t i = 0; i < outcome->scenario->cluster.region_count; i++)
        for (uint32_t kind = 0; kind < HISTORY_KIND_COUNT; kind++) {
            const uint64_t *count = measures->count[i][kind];
            if (count[HISTORY_OK] + count[HISTORY_FAILED] + count[HISTORY_INFO] == 0)
                continue;
            json_t *json = json_object();
            set_region(json, "region", outcome, i);
            set_text(json, "kind", history_kind_text((enum history_kind)kind));
            for (uint32_t j = 0; j < HISTORY_OUTCOME_COUNT; j++)
                set_number(json, history_outcome_text((enum history_outcome)j), count[j]);
            json_array_append_new(list, json);
        }
    return list;
}

static json_t *reasons_of(const struct outcome *outcome, const struct measures *measures)
{
    json_t *list = json_array();
    for (uint8_t i = 0; i < outcome->scenario->cluster.region_count; i++)
        for (uint32_t j = HISTORY_REASON_NONE + 1; j < HISTORY_REASON_COUNT; j++) {
            if (measures->reason[i][j] == 0)
                continue;
            json_t *json = json_object();
            set_region(json, "region", outcome, i);
            set_text(json, "reason", history_reason_text((enum history_reason)j));
            set_number(json, "count", measures->reason[i][j]);
            json_array_append_new(list, json);
        }
    return list;
}

static json_t *latency_row(const struct measures_class *class)
{
    json_t *json = json_object(), *buckets = json_array();
    set_number(json, "answered", class->answered);
    set_number(json, "failed", class->failed);
    set_number(json, "info", class->info);
    bool any = class->answered > 0;
    set_number(json, "p50_ns", any ? class->p50_ns : UINT64_MAX);
    set_number(json, "p90_ns", any ? class->p90_ns : UINT64_MAX);
    set_number(json, "p99_ns", any ? class->p99_ns : UINT64_MAX);
    set_number(json, "p999_ns", any ? class->p999_ns : UINT64_MAX);
    set_number(json, "max_ns", any ? class->max_ns : UINT64_MAX);
    for (uint32_t i = 0; i < MEASURES_BUCKETS; i++)
        if (class->bucket[i] > 0) {
            json_t *bucket = json_array();
            json_array_append_new(bucket, number(measures_bucket_ns(i)));
            json_array_append_new(bucket, number(class->bucket[i]));
            json_array_append_new(buckets, bucket);
        }
    set(json, "buckets", buckets);
    return json;
}

static json_t *latency_of(const struct outcome *outcome, const struct measures *measures)
{
    json_t *list = json_array();
    for (uint8_t i = 0; i < outcome->scenario->cluster.region_count; i++)
        for (uint32_t j = 0; j < RTO_CLASS_COUNT; j++) {
            const struct measures_class *class = &measures->class[i][j];
            if (class->answered + class->failed + class->info == 0)
                continue;
            json_t *json = latency_row(class);
            set_region(json, "region", outcome, i);
            set_text(json, "class", rto_class_text((enum rto_class)j));
            json_array_append_new(list, json);
        }
    return list;
}

/* ---- What it means ---- */

static json_t *operation_of(const struct outcome *outcome, uint32_t op)
{
    json_t *json = json_object();
    const struct history_op *at = &outcome->history.ops[op];
    set_number(json, "operation", op);
    set_region(json, "region", outcome, at->region);
    set_number(json, "table", at->table);
    set_number(json, "key", at->key);
    set_number(json, "value", at->written);
    set_moment(json, "invoke_ns", outcome, at->invoke_ns, UINT64_MAX);
    set_moment(json, "return_ns", outcome, at->return_ns, UINT64_MAX);
    return json;
}

/* What the sentence says, or UINT64_MAX where it says that nobody knows. */
static uint64_t known(const struct outcome *outcome, enum scenario_metric metric)
{
    double value;
    return measure_known(outcome, metric, &value) && isfinite(value) ? (uint64_t)value : UINT64_MAX;
}

static json_t *disk_losses_of(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < outcome->disk_loss_count && i < LIST_MAX; i++) {
        const struct outcome_loss *loss = &outcome->disk_losses[i];
        json_t *json = json_object();
        set_region(json, "region", outcome, loss->region);
        set_moment(json, "at_ns", outcome, loss->at_ns, UINT64_MAX);
        set_text(json, "why", facts_disk_losses[loss->why]);
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *rpo_of(const struct outcome *outcome)
{
    json_t *json = json_object(), *list = json_array();
    set_number(json, "count", known(outcome, METRIC_RPO_COUNT));
    set_number(json, "ns", known(outcome, METRIC_RPO_TIME));
    set_number(json, "bytes", known(outcome, METRIC_RPO_BYTES));
    set_number(json, "lost_lww", figure(outcome, "rpo", "lost_lww"));
    set_number(json, "lost_other", known(outcome, METRIC_LOST_OTHER));
    set_number(json, "unjudged", figure(outcome, "rpo", "unjudged"));
    set_number(json, "count_by_regions", outcome->region_rpo_count);
    set_text(json, "count_by_regions_why", outcome->region_rpo_why);
    set_moment(json, "lost_ns", outcome, outcome->lost_ns, RPO_NEVER);
    set(json, "lost_regions", regions(outcome, outcome->lost_regions));
    set(json, "disk_losses", disk_losses_of(outcome));
    set(json, "gone_regions", regions(outcome, outcome->gone_regions));
    for (uint32_t i = 0; i < outcome->losses.count && i < LIST_MAX; i++) {
        json_t *loss = operation_of(outcome, outcome->losses.at[i].op);
        bool gone = outcome->losses.at[i].class == RPO_UNREPLICATED;
        set_text(loss, "class", facts_loss(outcome->losses.at[i].class));
        set_number(loss, "age_ns", gone ? outcome->losses.at[i].age_ns : UINT64_MAX);
        json_array_append_new(list, loss);
    }
    set(json, "losses", list);
    return json;
}

static json_t *rto_of(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < outcome->rto.count; i++) {
        const struct rto_row *row = &outcome->rto.rows[i];
        json_t *json = json_object();
        set_region(json, "region", outcome, row->region);
        set_text(json, "class", rto_class_text(row->class));
        set_number(json, "baseline_count", row->baseline_count);
        set_number(json, "baseline_p50_ns", row->baseline_p50_ns);
        set_number(json, "baseline_p99_ns", row->baseline_p99_ns);
        set_number(json, "count", row->count);
        set_number(json, "first_success_ns", row->first_success_ns);
        set_number(json, "rto_ns", row->rto_ns);
        set_number(json, "unavailable_ns", row->unavailable_ns);
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *staleness_of(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < outcome->staleness.count; i++) {
        const struct staleness_row *row = &outcome->staleness.rows[i];
        json_t *json = json_object(), *curve = json_array();
        set_region(json, "region", outcome, row->region);
        set(json, "strong", json_boolean(row->strong));
        set_number(json, "reads", row->reads);
        set_number(json, "stale", row->stale);
        set_number(json, "p50_ns", row->p50_ns);
        set_number(json, "p99_ns", row->p99_ns);
        set_number(json, "max_ns", row->max_ns);
        set_number(json, "age_p50_ns", row->age_p50_ns);
        set_number(json, "age_p99_ns", row->age_p99_ns);
        set_number(json, "age_max_ns", row->age_max_ns);
        set_number(json, "max_k", row->max_k);
        for (uint32_t j = 0; j < row->point_count; j++) {
            json_t *point = json_array();
            json_array_append_new(point, number(row->point_ns[j]));
            json_array_append_new(point, json_real(row->point_millionths[j] / 1e6));
            json_array_append_new(curve, point);
        }
        set(json, "curve", curve);
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *lost_updates_of(const struct outcome *outcome)
{
    json_t *json = json_object(), *list = json_array();
    double count;
    bool measured = measure_data(outcome, METRIC_LOST_UPDATES, &count);
    uint64_t late = 0;
    for (uint32_t i = 0; i < outcome->forks.count; i++)
        late += outcome->forks.at[i].late;
    set_number(json, "count", measured ? (uint64_t)count : UINT64_MAX);
    set_number(json, "late",
               measured && measure_check(outcome, "chain") != NULL ? late : UINT64_MAX);
    set_number(json, "unjudged", figure(outcome, "chain", "unjudged"));
    for (uint32_t i = 0; i < outcome->forks.count && i < LIST_MAX; i++) {
        const struct chain_fork *fork = &outcome->forks.at[i];
        json_t *pair = json_object();
        set(pair, "lost", operation_of(outcome, fork->loser));
        set(pair, "kept", operation_of(outcome, fork->rival));
        set_number(pair, "base", fork->base == CHAIN_ABSENT ? UINT64_MAX : fork->base);
        set(pair, "late", json_boolean(fork->late));
        set(pair, "open", json_boolean(fork->open));
        json_array_append_new(list, pair);
    }
    set(json, "pairs", list);
    return json;
}

static json_t *convergence_of(const struct outcome *outcome)
{
    json_t *json = json_object();
    set_moment(json, "healed_ns", outcome, outcome->healed_ns, 0);
    set_moment(json, "converged_ns", outcome, outcome->converged_ns, 0);
    set_number(json, "different", figure(outcome, "converge", "different"));
    set_number(json, "zombies", figure(outcome, "converge", "zombies"));
    return json;
}

static json_t *checkers_of(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < outcome->check_count; i++) {
        const struct outcome_check *check = &outcome->checks[i];
        json_t *json = json_object(), *figures = json_object(), *ops = json_array();
        struct buf text = {0};
        text_clean(facts_verdict(check), &text);
        set_text(json, "name", check->name);
        set_text(json, "verdict", verdict_text(check->verdict.kind));
        set(json, "text", json_stringn(text.len == 0 ? "" : (const char *)text.at, text.len));
        set_number(json, "took_ns", check->took_ns);
        for (uint32_t j = 0; j < check->verdict.figure_count; j++)
            set_number(figures, check->verdict.figures[j].name, check->verdict.figures[j].value);
        set(json, "figures", figures);
        for (uint32_t j = 0; j < check->verdict.op_count; j++) {
            buf_reset(&text);
            facts_operation(outcome, check->verdict.ops[j], &text);
            json_t *op = operation_of(outcome, check->verdict.ops[j]);
            set(op, "text", json_stringn((const char *)text.at, text.len));
            json_array_append_new(ops, op);
        }
        set(json, "counterexample", ops);
        json_array_append_new(list, json);
        buf_deinit(&text);
    }
    return list;
}

static json_t *expectations_of(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < outcome->expect_count; i++) {
        const struct outcome_expect *expect = &outcome->expects[i];
        enum scenario_metric metric = (enum scenario_metric)expect->expect->metric;
        json_t *json = json_object();
        set_text(json, "expect", expect->expect->text);
        set_text(json, "metric", scenario_metric_name(metric));
        /* JSON has no infinity: an actual that is known and null is never. */
        set(json, "actual",
            expect->known && isfinite(expect->actual) ? json_real(expect->actual) : json_null());
        set(json, "known", json_boolean(expect->known));
        set(json, "holds", json_boolean(expect->holds));
        set(json, "timing", json_boolean(scenario_metric_is_timing(metric)));
        json_array_append_new(list, json);
    }
    return list;
}

void report_result(const struct outcome *outcome, struct buf *to)
{
    struct measures measures;
    json_t *result = json_object();
    measures_init(&measures, outcome, 1);
    set_number(result, "version", RESULT_VERSION);
    set_text(result, "result", facts_exit(outcome->exit));
    set_number(result, "exit", outcome->exit);
    set_text(result, "verdict", outcome->verdict);
    set(result, "run", run_of(outcome));
    set(result, "cluster", cluster_of(outcome));
    set(result, "phases", phases_of(outcome));
    set(result, "faults", faults_of(outcome));
    set(result, "operations", operations_of(outcome, &measures));
    set(result, "reasons", reasons_of(outcome, &measures));
    set(result, "latency", latency_of(outcome, &measures));
    set(result, "rpo", rpo_of(outcome));
    set(result, "rto", rto_of(outcome));
    set(result, "staleness", staleness_of(outcome));
    set(result, "lost_updates", lost_updates_of(outcome));
    set(result, "convergence", convergence_of(outcome));
    set(result, "checkers", checkers_of(outcome));
    set(result, "expectations", expectations_of(outcome));
    char *text = json_dumps(result, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    check(text != NULL);
    buf_append_text(to, text);
    buf_append_u8(to, '\n');
    free(text);
    json_decref(result);
    measures_deinit(&measures);
}
