/* SPDX-License-Identifier: Apache-2.0 */
/* The model: operations take effect one after the other, in an order that is known. Under strong
 * consistency there is one item of each key; under eventual consistency each Region has its own,
 * and a write reaches the others a delay later, unless a split holds it or its Region is gone. It
 * has more than 500 lines, as the plans are of no use without the model that follows them. */

#include "outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define BEGAN (UINT64_C(123456) * SECOND)

enum { CLIENTS = 8 };

struct plan {
    const char *yaml;
    uint64_t operations, gap_ns; /* one operation each gap */
    uint64_t delay_ns;           /* of replication, or of a round to the leader */
    uint32_t keys;
    uint64_t split_from, split_to; /* since the beginning; Region 0 against the others */
    uint64_t lost_from, lost_to;   /* Region 0 is gone, with its data if eventual */
    bool stale_read;
};

static const char strong_yaml[] =
    "name: region-loss-strong\n"
    "about: A Region is lost under strong consistency; RPO is 0, RTO is about one election\n"
    "seed: 2\n"
    "cluster:\n"
    "  mode: strong\n"
    "  regions: [us-east-1, us-east-2]\n"
    "  witness: us-west-2\n"
    "workload: {kind: swap-register, keys: 64, rate: 200/s, open_loop: true}\n"
    "phases:\n"
    "  - {name: baseline, for: 5s}\n"
    "  - name: loss\n"
    "    for: 8s\n"
    "    faults:\n"
    "      - {at: 0s, do: process.kill, region: us-east-1, id: loss}\n"
    "  - {name: heal, do: heal-all, for: 1s}\n"
    "expect:\n"
    "  rpo_count: 0\n"
    "  linearizable: true\n"
    "  lost_other: 0\n";

static const char eventual_yaml[] =
    "name: split-and-loss\n"
    "about: Both sides of a split take writes; later a Region is lost with what it had not sent\n"
    "seed: 13\n"
    "cluster: {mode: eventual, regions: [us-east-1, eu-west-1, ap-northeast-1]}\n"
    "workload: {kind: lww-conflict, keys: 20, rate: 200/s, mix: {write: 0.8, read_eventual: 0.2}}\n"
    "phases:\n"
    "  - {name: baseline, for: 3s}\n"
    "  - name: split\n"
    "    for: 5s\n"
    "    faults:\n"
    "      - {at: 1s, for: 3s, do: partition, shape: one, region: us-east-1, id: split}\n"
    "  - name: loss\n"
    "    for: 4s\n"
    "    faults:\n"
    "      - {at: 0s, do: disk.wipe, region: us-east-1, id: loss}\n"
    "      - {at: 1s, for: 2s, do: clock.offset, region: eu-west-1, offset: 200ms, id: ahead}\n"
    "  - {name: heal, do: heal-all, for: 2s}\n"
    "expect:\n"
    "  rpo_count: [\">0\", \"<=300\"]\n"
    "  rpo_seconds: \"<=2\"\n"
    "  lost_updates: 0\n"
    "  lost_other: 0\n"
    "  staleness_p99: {eu-west-1: \"<=2s\"}\n"
    "  rto: {eu-west-1: \"<=4s\", ap-northeast-1: \"<=4s\"}\n";

static const char huge_yaml[] =
    "name: million\n"
    "about: As many operations as a report must bear\n"
    "cluster: {mode: eventual, regions: [us-east-1, eu-west-1, ap-northeast-1]}\n"
    "workload: {kind: lww-conflict, keys: 10000, rate: 3000/s}\n"
    "phases:\n"
    "  - {name: baseline, for: 100s}\n"
    "  - name: split\n"
    "    for: 100s\n"
    "    faults: [{at: 0s, for: 30s, do: partition, shape: one, region: us-east-1, id: split}]\n"
    "  - {name: heal, do: heal-all, for: 140s}\n"
    "expect: {lost_other: 0, throughput: \">=1000\"}\n";

static const char many_yaml[] =
    "name: many\n"
    "about: Eight Regions under hundreds of faults\n"
    "cluster: {mode: eventual, regions: [us-east-1, us-east-2, us-west-2, eu-west-1, eu-west-2, "
    "eu-west-3, ap-northeast-1, ap-northeast-2]}\n"
    "workload: {kind: lww-conflict, keys: 100, rate: 500/s}\n"
    "phases:\n"
    "  - {name: baseline, for: 5s}\n"
    "  - {name: storm, for: 20s}\n"
    "  - {name: heal, do: heal-all, for: 5s}\n"
    "expect: {lost_other: 0}\n";

static const char empty_yaml[] = "name: empty\n"
                                 "cluster: {mode: eventual, regions: [us-east-1, eu-west-1]}\n"
                                 "phases: [{name: nothing, for: 1s}]\n";

static const char hostile_yaml[] =
    "name: hostile\n"
    "about: \"</p><script>alert('about')</script> \\\" onload=\\\"alert(1) &amp; \\u202Egnp.exe\"\n"
    "seed: 13\n"
    "cluster: {mode: eventual, regions: [us-east-1, eu-west-1, ap-northeast-1]}\n"
    "workload: {kind: lww-conflict, keys: 20, rate: 200/s}\n"
    "phases:\n"
    "  - {name: \"</text><script>alert('phase')</script>\", for: 3s}\n"
    "expect: {lost_updates: 0}\n";

static const struct plan plans[] = {
    [OUTCOMES_PASS] = {.yaml = strong_yaml,
                       .operations = 3700,
                       .gap_ns = 5 * MS,
                       .delay_ns = 6 * MS,
                       .keys = 64,
                       .lost_from = 5 * SECOND,
                       .lost_to = 13 * SECOND},
    [OUTCOMES_LOST] = {.yaml = eventual_yaml,
                       .operations = 2800,
                       .gap_ns = 5 * MS,
                       .delay_ns = 80 * MS,
                       .keys = 20,
                       .split_from = 4 * SECOND,
                       .split_to = 7 * SECOND,
                       .lost_from = 8 * SECOND,
                       .lost_to = 12 * SECOND},
    [OUTCOMES_HUGE] = {.yaml = huge_yaml,
                       .operations = 1000000,
                       .gap_ns = 340000,
                       .delay_ns = 10 * MS,
                       .keys = 10000,
                       .split_from = 100 * SECOND,
                       .split_to = 130 * SECOND},
    [OUTCOMES_MANY] = {.yaml = many_yaml,
                       .operations = 15000,
                       .gap_ns = 2 * MS,
                       .delay_ns = 50 * MS,
                       .keys = 100},
    [OUTCOMES_EMPTY] = {.yaml = empty_yaml},
};

/* ---- The model ---- */

struct copy { /* of an item in a Region */
    uint64_t value, version;
};

struct flight { /* a write under way to a Region */
    uint64_t at_ns;
    uint64_t value, version;
    uint32_t key;
};

struct queue {
    struct flight *at;
    uint32_t first, count, cap;
};

struct model {
    const struct plan *plan;
    struct outcome *outcome;
    struct rng rng;
    bool strong;
    uint8_t regions;
    struct copy *copies[SCENARIO_REGIONS_MAX];
    struct queue queues[SCENARIO_REGIONS_MAX][SCENARIO_REGIONS_MAX]; /* [to][from] */
    uint64_t busy[SCENARIO_REGIONS_MAX][CLIENTS];                    /* until */
    uint64_t next_value;
};

static bool is_lost(const struct model *model, uint8_t region, uint64_t at_ns)
{
    return region == 0 && model->plan->lost_to > 0 && at_ns >= BEGAN + model->plan->lost_from &&
           at_ns < BEGAN + model->plan->lost_to;
}

static void arrive(struct model *model, uint8_t region, const struct flight *flight)
{
    struct copy *copy = &model->copies[region][flight->key];
    if (flight->version > copy->version)
        *copy = (struct copy){flight->value, flight->version};
}

static void deliver(struct model *model, uint8_t region, uint64_t now_ns)
{
    for (uint8_t from = 0; from < model->regions; from++) {
        struct queue *queue = &model->queues[region][from];
        while (queue->count > 0 && queue->at[queue->first].at_ns <= now_ns) {
            arrive(model, region, &queue->at[queue->first]);
            queue->first++;
            queue->count--;
        }
    }
}

static void send(struct model *model, uint8_t from, uint32_t key, uint64_t now_ns)
{
    const struct plan *plan = model->plan;
    for (uint8_t to = 0; to < model->regions; to++) {
        struct queue *queue = &model->queues[to][from];
        uint64_t at = now_ns + plan->delay_ns;
        bool split = (from == 0) != (to == 0) && at >= BEGAN + plan->split_from &&
                     at < BEGAN + plan->split_to;
        if (to == from)
            continue;
        if (queue->first + queue->count == queue->cap) {
            queue->cap = queue->cap == 0 ? 256 : queue->cap * 2;
            queue->at = xrealloc(queue->at, queue->cap * sizeof(*queue->at));
        }
        queue->at[queue->first + queue->count++] =
            (struct flight){.at_ns = split ? BEGAN + plan->split_to : at,
                            .value = model->copies[from][key].value,
                            .version = model->copies[from][key].version,
                            .key = key};
    }
}

/* What had not arrived goes with the Region, and so does all that it held. */
static void lose(struct model *model, uint64_t now_ns)
{
    for (uint8_t to = 1; to < model->regions; to++) {
        deliver(model, to, now_ns);
        model->queues[to][0].count = 0;
    }
    memset(model->copies[0], 0, model->plan->keys * sizeof(struct copy));
    outcome_lost(model->outcome, now_ns, 0, OUTCOME_LOSS_WIPED, true);
}

static void refill(struct model *model, uint64_t now_ns)
{
    deliver(model, 1, now_ns);
    memcpy(model->copies[0], model->copies[1], model->plan->keys * sizeof(struct copy));
    model->queues[0][1].count = model->queues[0][2].count = 0;
}

/* ---- Operations ---- */

static void apply(struct model *model, struct history_op *op, uint64_t now_ns)
{
    uint8_t at = model->strong ? 0 : op->region;
    struct copy *copy = &model->copies[at][op->key];
    uint64_t base = copy->value;
    op->saw = base == 0 ? HISTORY_SAW_ABSENT : HISTORY_SAW_VALUE;
    op->value = base;
    if (op->kind != HISTORY_PUT)
        return;
    op->written = ++model->next_value;
    uint64_t version = now_ns << 3 | op->region;
    *copy = (struct copy){op->written, version > copy->version ? version : copy->version + 8};
    if (!model->strong)
        send(model, op->region, op->key, now_ns);
}

static void fail_op(struct history_op *op, enum history_reason reason, uint64_t return_ns)
{
    bool certain = reason == HISTORY_REASON_REFUSED || op->kind != HISTORY_PUT;
    op->outcome = certain ? HISTORY_FAILED : HISTORY_INFO;
    op->reason = (uint8_t)reason;
    op->saw = HISTORY_SAW_NOTHING;
    op->value = 0;
    op->return_ns = return_ns;
}

/* One operation whose moment is now. */
static void operate(struct model *model, uint64_t now_ns)
{
    const struct plan *plan = model->plan;
    struct outcome *outcome = model->outcome;
    uint8_t data = outcome->scenario->cluster.data_count;
    uint8_t region = (uint8_t)rng_below(&model->rng, data);
    uint64_t latency = plan->delay_ns / 4 + rng_below(&model->rng, plan->delay_ns / 8 + 1) +
                       (rng_one_in(&model->rng, 50) ? plan->delay_ns : 0);
    uint32_t client = (uint32_t)rng_below(&model->rng, CLIENTS);
    for (uint32_t i = 0; i < CLIENTS && model->busy[region][client] + latency / 2 >= now_ns; i++)
        client = (client + 1) % CLIENTS; /* one that is free, if there is one */
    struct history_op op = {
        .kind = rng_one_in(&model->rng, 3) ? HISTORY_READ : HISTORY_PUT,
        .key = (uint32_t)rng_below(&model->rng, plan->keys),
        .region = region,
        .client = region * (uint32_t)CLIENTS + client,
        .bytes = 100,
        .strong = model->strong,
        .invoke_ns = now_ns - latency / 2,
        .return_ns = now_ns + latency / 2,
    };
    if (op.invoke_ns <= model->busy[region][client])
        op.invoke_ns = model->busy[region][client] + 1;
    if (op.invoke_ns >= now_ns)
        return;
    op.intended_ns = op.invoke_ns;
    if (!model->strong)
        deliver(model, region, now_ns);
    uint64_t lost = BEGAN + plan->lost_from;
    bool election =
        model->strong && plan->lost_to > 0 && now_ns >= lost && now_ns < lost + 1500 * MS;
    if (is_lost(model, region, now_ns)) {
        if (op.kind == HISTORY_PUT)
            op.written = ++model->next_value;
        fail_op(&op, HISTORY_REASON_REFUSED, op.invoke_ns + 200000);
    } else if (election) {
        apply(model, &op, now_ns);
        fail_op(&op, HISTORY_REASON_TIMEOUT, op.invoke_ns + 300 * MS);
    } else {
        apply(model, &op, now_ns);
    }
    model->busy[region][client] = op.return_ns;
    check(history_op_fault(&op) == NULL);
    check(history_append(&outcome->history, &op, NULL) != HISTORY_FULL);
}

static void sample(struct model *model, uint64_t now_ns)
{
    struct outcome *outcome = model->outcome;
    struct outcome_sample *at = outcome_sample(outcome, now_ns);
    for (uint8_t i = 0; i < model->regions; i++) {
        bool down = is_lost(model, i, now_ns);
        bool moved =
            model->plan->lost_to > 0 && now_ns > BEGAN + model->plan->lost_from + 1500 * MS;
        at->region[i].up = !down;
        at->region[i].leads = model->strong && !down && i == (moved ? 1 : 0) ? 4 : 0;
        at->region[i].resident_bytes = 40000000 + rng_below(&model->rng, 1000000);
        at->region[i].descriptors = 60;
        uint64_t since = now_ns - BEGAN;
        bool ahead = i == 1 && since > 9 * SECOND && since < 11 * SECOND && !model->strong;
        at->region[i].clock_offset_ns = ahead ? (int64_t)(200 * MS) : 0;
        for (uint8_t to = 0; to < model->regions && !model->strong; to++) {
            const struct queue *queue = &model->queues[to][i];
            uint64_t sent = queue->count == 0
                                ? now_ns
                                : now_ns - (model->copies[i] ? model->plan->delay_ns : 0);
            uint64_t held = since > model->plan->split_from && since < model->plan->split_to &&
                                    (i == 0) != (to == 0)
                                ? since - model->plan->split_from
                                : 0;
            uint64_t lag = now_ns - sent + held;
            at->region[i].pending += queue->count;
            at->region[i].lag_ns = lag > at->region[i].lag_ns ? lag : at->region[i].lag_ns;
        }
    }
}

static void last_look(struct model *model, uint64_t now_ns)
{
    struct outcome *outcome = model->outcome;
    uint8_t data = outcome->scenario->cluster.data_count;
    for (uint8_t i = 0; i < model->regions && !model->strong; i++)
        deliver(model, i, UINT64_MAX);
    outcome->scans = arena_array(&outcome->arena, struct converge_scan, SCENARIO_REGIONS_MAX);
    for (uint8_t i = 0; i < data; i++) {
        struct converge_item *items =
            arena_array(&outcome->arena, struct converge_item, model->plan->keys + 1);
        uint32_t count = 0;
        for (uint32_t key = 0; key < model->plan->keys; key++) {
            const struct copy *copy = &model->copies[model->strong ? 0 : i][key];
            struct history_op op = {.kind = HISTORY_READ,
                                    .key = key,
                                    .region = i,
                                    .client = 1000u + i,
                                    .strong = model->strong,
                                    .final = true,
                                    .saw = copy->value ? HISTORY_SAW_VALUE : HISTORY_SAW_ABSENT,
                                    .value = copy->value,
                                    .intended_ns = now_ns + key * 1000,
                                    .invoke_ns = now_ns + key * 1000,
                                    .return_ns = now_ns + key * 1000 + 900};
            check(history_append(&outcome->history, &op, NULL) != HISTORY_FULL);
            if (copy->value != 0)
                items[count++] = (struct converge_item){
                    .key = key, .value = copy->value, .digest = copy->value * 0x9e3779b97f4a7c15u};
        }
        outcome->scans[outcome->scan_count++] = (struct converge_scan){items, count, i};
    }
}

static void drive(struct model *model)
{
    const struct plan *plan = model->plan;
    bool lost = false, back = false;
    uint64_t next_sample = 0;
    for (uint64_t i = 1; i <= plan->operations; i++) {
        uint64_t since = i * plan->gap_ns + 50 * MS;
        for (; next_sample <= since; next_sample += 100 * MS)
            sample(model, BEGAN + next_sample);
        if (plan->lost_to > 0 && !lost && since >= plan->lost_from) {
            lost = true;
            if (!model->strong)
                lose(model, BEGAN + since);
        }
        if (plan->lost_to > 0 && !back && since >= plan->lost_to) {
            back = true;
            if (!model->strong)
                refill(model, BEGAN + since);
        }
        operate(model, BEGAN + since);
    }
}

/* The ledgers name just what the chains show, but for what nobody else had when Region 0 was lost.
 */
static void fill_ledger(struct outcome *outcome, uint64_t delay_ns)
{
    struct chain_forks forks;
    struct verdict verdict;
    check_chain(&outcome->history, &(struct chain_options){.eventual = true}, &forks, &verdict);
    outcome->ledger = arena_array(&outcome->arena, struct ledgers_row, forks.count + 1);
    for (uint32_t i = 0; i < forks.count; i++) {
        const struct history_op *loser = &outcome->history.ops[forks.at[i].loser];
        if (loser->region == 0 && outcome->lost_ns != RPO_NEVER &&
            loser->return_ns + delay_ns > outcome->lost_ns && loser->invoke_ns < outcome->lost_ns)
            continue;
        outcome->ledger[outcome->ledger_count++] =
            (struct ledgers_row){.key = loser->key,
                                 .winner = outcome->history.ops[forks.at[i].rival].written,
                                 .loser = loser->written,
                                 .regions = 2,
                                 .late = forks.at[i].late};
    }
    verdict_deinit(&verdict);
    chain_forks_deinit(&forks);
}

/* A read that shows what had been overwritten before the read began. */
static void plant_stale_read(struct outcome *outcome)
{
    struct history *history = &outcome->history;
    for (uint32_t i = history->count / 2; i < history->count; i++) {
        struct history_op *read = &history->ops[i];
        if (read->kind != HISTORY_READ || read->final || read->saw != HISTORY_SAW_VALUE)
            continue;
        for (uint32_t j = 0; j < i; j++) {
            const struct history_op *put = &history->ops[j];
            if (put->kind == HISTORY_PUT && put->outcome == HISTORY_OK && put->key == read->key &&
                put->written == read->value && put->saw == HISTORY_SAW_VALUE &&
                put->return_ns < read->invoke_ns) {
                read->value = put->value;
                return;
            }
        }
    }
    check(!"there is always one");
}

/* ---- What was done to it ---- */

static void add_phase(struct outcome *outcome, const char *name, uint64_t from, uint64_t to)
{
    struct outcome_phase *phase = &outcome->phases[outcome->phase_count++];
    *phase = (struct outcome_phase){name, BEGAN + from, BEGAN + to, false};
    outcome->ended_ns = BEGAN + to;
}

static struct outcome_fault *add_fault(struct outcome *outcome, const char *id,
                                       enum scenario_verb verb, uint64_t from, uint64_t to)
{
    struct outcome_fault *fault = outcome_fault(outcome);
    *fault = (struct outcome_fault){.id = id,
                                    .verb = (uint8_t)verb,
                                    .target = "us-east-1",
                                    .regions = 1,
                                    .from_ns = BEGAN + from,
                                    .to_ns = to == 0 ? 0 : BEGAN + to,
                                    .evidence = "",
                                    .effective = true};
    return fault;
}

static void tell_strong(struct outcome *outcome)
{
    add_phase(outcome, "baseline", 0, 5 * SECOND);
    add_phase(outcome, "loss", 5 * SECOND, 13 * SECOND);
    add_phase(outcome, "heal", 13 * SECOND, 18700 * MS);
    add_fault(outcome, "loss", VERB_PROCESS_KILL, 5 * SECOND, 13 * SECOND)->evidence =
        "pid 4711 ended by SIGKILL; 12 connections reset";
    outcome_event(outcome, BEGAN + 100 * MS, 0, "leader", "leads 4 of 4 groups");
    outcome_event(outcome, BEGAN + 5 * SECOND, 0, "down", "ended by SIGKILL");
    outcome_event(outcome, BEGAN + 6500 * MS, 1, "leader", "leads 4 of 4 groups, term 2");
    outcome_event(outcome, BEGAN + 13100 * MS, 0, "up", "pid 4790");
    outcome_event(outcome, BEGAN + 13900 * MS, 0, "ready", "serves again");
    outcome_event(outcome, BEGAN + 13 * SECOND, SCENARIO_REGION_NONE, "heal", "all faults undone");
    outcome->healed_ns = BEGAN + 13 * SECOND;
    outcome->converged_ns = BEGAN + 13900 * MS;
}

static void tell_eventual(struct outcome *outcome)
{
    add_phase(outcome, "baseline", 0, 3 * SECOND);
    add_phase(outcome, "split", 3 * SECOND, 8 * SECOND);
    add_phase(outcome, "loss", 8 * SECOND, 12 * SECOND);
    add_phase(outcome, "heal", 12 * SECOND, 14500 * MS);
    struct outcome_fault *split =
        add_fault(outcome, "split", VERB_PARTITION, 4 * SECOND, 7 * SECOND);
    split->target = "us-east-1 | eu-west-1, ap-northeast-1";
    split->regions = 7;
    split->evidence = "4 links; 14 connections reset, 212 refused";
    add_fault(outcome, "loss", VERB_DISK_WIPE, 8 * SECOND, 12 * SECOND)->evidence =
        "pid 4711 ended; 31 files, 4.2 MB removed";
    struct outcome_fault *ahead =
        add_fault(outcome, "ahead", VERB_CLOCK_OFFSET, 9 * SECOND, 11 * SECOND);
    ahead->target = "eu-west-1";
    ahead->regions = 2;
    ahead->evidence = "offset read back: 200 ms";
    add_fault(outcome, "heal-all", VERB_HEAL_ALL, 12 * SECOND, 12 * SECOND)->regions = 0;
    outcome_event(outcome, BEGAN + 8 * SECOND, 0, "down", "its disk was wiped");
    outcome_event(outcome, BEGAN + 12050 * MS, 0, "up", "pid 4790, empty");
    outcome_event(outcome, BEGAN + 12400 * MS, 0, "ready", "has all tables again");
    outcome->healed_ns = BEGAN + 12 * SECOND;
    outcome->converged_ns = BEGAN + 13600 * MS;
}

static void tell_many(struct outcome *outcome)
{
    struct rng rng;
    rng_init(&rng, 5);
    add_phase(outcome, "baseline", 0, 5 * SECOND);
    add_phase(outcome, "storm", 5 * SECOND, 25 * SECOND);
    add_phase(outcome, "heal", 25 * SECOND, 30500 * MS);
    for (uint32_t i = 0; i < 600; i++) {
        uint64_t from = 5 * SECOND + rng_below(&rng, 19 * SECOND);
        struct outcome_fault *fault =
            add_fault(outcome, outcome_text(outcome, "drawn-%u", i), VERB_LINK_DELAY, from,
                      from + rng_below(&rng, SECOND));
        fault->regions = UINT64_C(3) << rng_below(&rng, 7);
        fault->evidence = "3120 bytes held";
    }
}

static void tell_hostile(struct outcome *outcome)
{
    static const char worst[] =
        "</title></svg><script>alert('x')</script>\"'><img src=x "
        "onerror=alert(1)>&lt;\xff\xfe \xc0\xaf\x01\x1b[31m ]]> --> {{7*7}}";
    tell_eventual(outcome);
    for (uint32_t i = 0; i < outcome->phase_count; i++)
        outcome->phases[i].name = worst;
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        outcome->faults[i].id = worst;
        outcome->faults[i].target = worst;
        outcome->faults[i].evidence = worst;
    }
    for (uint32_t i = 0; i < outcome->event_count; i++) {
        outcome->events[i].text = worst;
        outcome->events[i].kind = "<b>kind</b>";
    }
    outcome->stopped = worst;
    outcome->harness = worst;
    outcome->version = worst;
    outcome->scenario_file = "--out '; rm -rf / #<script>.yaml";
}

static void tell(enum outcomes_kind kind, struct outcome *outcome)
{
    outcome->phases = arena_array(&outcome->arena, struct outcome_phase, SCENARIO_PHASES_MAX);
    outcome->began_ns = BEGAN;
    outcome->began_wall_ms = UINT64_C(1767182400250);
    switch (kind) {
    case OUTCOMES_EMPTY:
        add_phase(outcome, "nothing", 0, SECOND);
        return;
    case OUTCOMES_HUGE:
        add_phase(outcome, "baseline", 0, 100 * SECOND);
        add_phase(outcome, "split", 100 * SECOND, 200 * SECOND);
        add_phase(outcome, "heal", 200 * SECOND, 341 * SECOND);
        add_fault(outcome, "split", VERB_PARTITION, 100 * SECOND, 130 * SECOND)->regions = 7;
        return;
    case OUTCOMES_MANY:
        tell_many(outcome);
        return;
    case OUTCOMES_LOST:
        tell_eventual(outcome);
        return;
    case OUTCOMES_HOSTILE:
        tell_hostile(outcome);
        return;
    case OUTCOMES_DUD:
        tell_strong(outcome);
        outcome->faults[0].effective = false;
        outcome->faults[0].evidence = "no process ended";
        return;
    case OUTCOMES_SLOW:
        tell_strong(outcome);
        outcome->phases[2].timed_out = true;
        return;
    case OUTCOMES_PASS:
    case OUTCOMES_ILLEGAL:
    case OUTCOMES_UNKNOWN:
        tell_strong(outcome);
        return;
    case OUTCOMES_COUNT:
        break;
    }
    unreachable();
}

static struct plan plan_of(enum outcomes_kind kind)
{
    struct plan plan = plans[OUTCOMES_PASS];
    if (kind < array_len(plans) && plans[kind].yaml != NULL)
        return plans[kind];
    if (kind == OUTCOMES_HOSTILE) {
        plan = plans[OUTCOMES_LOST];
        plan.yaml = hostile_yaml;
    }
    plan.stale_read = kind == OUTCOMES_ILLEGAL;
    return plan;
}

const char *outcomes_name(enum outcomes_kind kind)
{
#define SAMPLE_NAME(name, text) text,
    static const char *const names[] = {SAMPLES(SAMPLE_NAME)};
    check(kind < OUTCOMES_COUNT);
    return names[kind];
}

static void model_free(struct model *model)
{
    for (uint8_t i = 0; i < SCENARIO_REGIONS_MAX; i++) {
        free(model->copies[i]);
        for (uint8_t j = 0; j < SCENARIO_REGIONS_MAX; j++)
            free(model->queues[i][j].at);
    }
}

void outcomes_make(enum outcomes_kind kind, struct sample_run *run)
{
    const struct plan plan = plan_of(kind);
    struct buf error = {0}, yaml = {0};
    buf_append_text(&yaml, plan.yaml);
    if (kind == OUTCOMES_SLOW)
        buf_append_text(&yaml, "  rto: {us-east-2 write: \"<=1ms\"}\n");
    if (kind == OUTCOMES_UNKNOWN)
        buf_append_text(&yaml, "  catch_up: {us-east-2: \"<=1s\"}\n"); /* no fault is on it */
    scenario_init(&run->scenario);
    if (!scenario_read(&run->scenario, "made.yaml", buf_view(&yaml), &error)) {
        fprintf(stderr, "%.*s", (int)error.len, (const char *)error.at);
        abort();
    }
    outcome_init(&run->outcome, &run->scenario);
    run->outcome.scenario_text = bytes_copy_text(&run->outcome.arena, buf_view(&yaml));
    run->outcome.scenario_file = "chaos/scenarios/made.yaml";
    buf_deinit(&yaml);
    tell(kind, &run->outcome);
    struct model model = {.plan = &plan,
                          .outcome = &run->outcome,
                          .strong = run->scenario.cluster.mode == SCENARIO_STRONG,
                          .regions = run->scenario.cluster.region_count};
    rng_init(&model.rng, 7);
    for (uint8_t i = 0; i < model.regions; i++)
        model.copies[i] = xcalloc(plan.keys + 1, sizeof(struct copy));
    drive(&model);
    if (plan.operations > 0)
        last_look(&model, BEGAN + plan.operations * plan.gap_ns + 100 * MS);
    model_free(&model);
    if (plan.stale_read)
        plant_stale_read(&run->outcome);
    if (!model.strong)
        fill_ledger(&run->outcome, plan.delay_ns);
    outcome_judge(&run->outcome, NULL);
}

void outcomes_free(struct sample_run *run)
{
    outcome_deinit(&run->outcome);
    scenario_deinit(&run->scenario);
}
