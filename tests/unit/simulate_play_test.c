/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario in virtual time: every verb and workload that is not refused can be played, does what
 * it says and is undone; what cannot be is refused by name; and a replay is the same run. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "chaos/run/measure.h"
#include "chaos/scenario/fields.h"
#include "chaos/scenario/random.h"
#include "chaos/simulate/play.h"
#include "region/core/error.h"
#include "region/core/op.h"

struct played {
    struct scenario scenario;
    struct outcome outcome;
    struct play_figures figures;
};

/* `faults` is flow YAML of the second phase, which lasts from 1 to 3 s of the run. */
static void read_scenario(struct scenario *scenario, const char *mode, const char *workload,
                          const char *faults)
{
    char text[4000];
    struct buf error = {0};
    snprintf(text, sizeof(text),
             "name: played\nseed: 5\n"
             "cluster: {mode: %s, regions: [us-east-1, eu-west-1, ap-northeast-1], links: "
             "{default: {rtt: 20ms}}}\n"
             "workload: {kind: %s, keys: 10, rate: 60/s, clients_per_region: 3, timeout: 2s}\n"
             "phases:\n  - {name: before, for: 1s}\n"
             "  - name: faults\n    for: 2s\n    faults: [%s]\n"
             "  - {name: after, do: heal-all, for: 500ms, until: {%s: true, timeout: 60s}}\n"
             "expect: {phantoms: 0}\n",
             mode, workload, faults, strcmp(mode, "strong") == 0 ? "caught_up" : "converged");
    scenario_init(scenario);
    bool good = scenario_read(scenario, "test", bytes_text(text), &error);
    if (!good)
        print_message("%.*s", (int)error.len, (const char *)error.at);
    assert_true(good);
    random_expand(scenario, 5);
}

static void play_with(struct played *played, const char *mode, const char *workload,
                      const char *faults, uint64_t seed, uint64_t kept)
{
    struct sim_replay replay = sim_replay_whole(seed, false);
    struct buf error = {0};
    replay.faults = kept;
    read_scenario(&played->scenario, mode, workload, faults);
    assert_true(play_accepts(&played->scenario, &error));
    outcome_init(&played->outcome, &played->scenario);
    play_scenario(&played->scenario, &replay, &played->outcome, &played->figures);
}

static void play(struct played *played, const char *mode, const char *workload, const char *faults)
{
    play_with(played, mode, workload, faults, 5, UINT64_MAX);
}

static void drop(struct played *played)
{
    outcome_deinit(&played->outcome);
    scenario_deinit(&played->scenario);
}

/* Whatever was done to it, nothing that is promised was broken, and it came to rest. */
static void check_sound(const struct played *played, const char *what)
{
    const struct outcome *outcome = &played->outcome;
    bool sound = outcome->harness == NULL && outcome->converged_ns > 0 &&
                 outcome->history.count > 100 && outcome->exit == OUTCOME_PASS;
    if (!sound)
        print_message("%s: %s\n", what, outcome->verdict);
    assert_true(sound);
}

/* ---- All of them ---- */

/* A value for a parameter, such that a fault with it ends within the phase. */
static void write_param(enum scenario_param param, char *to, size_t size)
{
    static const char *const values[SCENARIO_PARAM_COUNT] = {
        [PARAM_REGION] = "region: eu-west-1",
        [PARAM_FROM] = "from: us-east-1",
        [PARAM_TO] = "to: eu-west-1",
        [PARAM_DELAY] = "delay: 50ms",
        [PARAM_JITTER] = "jitter: 10ms",
        [PARAM_RATE] = "rate: 50KB/s",
        [PARAM_PERIOD] = "period: 200ms",
        [PARAM_PERCENT] = "percent: 30",
        [PARAM_SHAPE] = "shape: one",
        [PARAM_OFFSET] = "offset: 100ms",
        [PARAM_PPM] = "ppm: 1000",
        [PARAM_FAULT] = "fault: first",
    };
    if (values[param])
        snprintf(to + strlen(to), size - strlen(to), ", %s", values[param]);
}

/* What a verb can end, if it only ends others. */
static const char *first_for(enum scenario_verb verb)
{
    if (verb == VERB_PROCESS_START)
        return "do: process.kill, region: eu-west-1";
    if (verb == VERB_PROCESS_RESUME)
        return "do: process.pause, region: eu-west-1";
    if (verb == VERB_CLOCK_RESET)
        return "do: clock.offset, region: eu-west-1, offset: 5ms";
    return "do: link.delay, from: us-east-1, to: eu-west-1, delay: 1ms";
}

static void every_verb(const char *mode)
{
    bool strong = strcmp(mode, "strong") == 0;
    for (enum scenario_verb verb = 0; verb < SCENARIO_VERB_COUNT; verb++) {
        const struct scenario_verb_info *info = scenario_verb_info(verb);
        char fault[400];
        snprintf(fault, sizeof(fault), "{at: 0s, for: 300ms, id: first, %s}, ", first_for(verb));
        bool leads = verb == VERB_LEADER_KILL || verb == VERB_LEADER_TRANSFER;
        if (verb == VERB_DISK_IO_ERROR || verb == VERB_DISK_BITFLIP || verb == VERB_DISK_TRUNCATE ||
            verb == VERB_DISK_TORN_WRITE || (leads && !strong))
            continue;
        snprintf(fault + strlen(fault), sizeof(fault) - strlen(fault), "{at: 100ms, do: %s",
                 info->name);
        if (info->lasting != VERB_ONCE)
            snprintf(fault + strlen(fault), sizeof(fault) - strlen(fault), ", for: 1s");
        for (enum scenario_param param = 0; param < SCENARIO_PARAM_COUNT; param++)
            if (info->required >> param & 1)
                write_param(param, fault, sizeof(fault));
        snprintf(fault + strlen(fault), sizeof(fault) - strlen(fault), "}");
        struct played played;
        play(&played, mode, strong ? "swap-register" : "lww-conflict", fault);
        assert_int_equal(played.outcome.fault_count, 2);
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(played.outcome.faults[i].effective);
            assert_true(played.outcome.faults[i].to_ns > 0);
        }
        check_sound(&played, info->name);
        drop(&played);
    }
}

static void every_verb_in_eventual_mode(void **state)
{
    (void)state;
    every_verb("eventual");
}

static void every_verb_in_strong_mode(void **state)
{
    (void)state;
    every_verb("strong");
}

/* The one table of what can be measured at all, against what was. */
static void check_measures(const struct played *played)
{
    static const enum scenario_metric always[] = {METRIC_LOST_UPDATES, METRIC_LOST_OTHER,
                                                  METRIC_PHANTOMS,     METRIC_CONVERGED,
                                                  METRIC_RPO_COUNT,    METRIC_STALENESS_MAX};
    for (enum scenario_metric metric = 0; metric < SCENARIO_METRIC_COUNT; metric++) {
        const struct scenario_expect expect = {.metric = (uint8_t)metric,
                                               .region = SCENARIO_REGION_ALL};
        const char *never = scenario_never_measured(&played->scenario, metric);
        double actual;
        bool known = measure_expect(&played->outcome, &expect, &actual);
        if (known && never && metric != METRIC_LAG) /* which a strong table's samples tell as 0 */
            fail_msg("%s was measured, and the table says: %s", scenario_metric_name(metric),
                     never);
        for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
            if (always[i] == metric && !never && !known)
                fail_msg("%s of %s was not measured, and the table says it can be",
                         scenario_metric_name(metric),
                         scenario_workload_name(played->scenario.workload.kind));
    }
}

static void every_workload(void **state)
{
    (void)state;
    static const char *const kinds[] = {"swap-register", "cas-register", "counter", "lww-conflict",
                                        "ycsb-a",        "ycsb-b",       "ycsb-f"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (int strong = 0; strong < 2; strong++) {
            struct played played;
            char workload[100];
            bool ycsb = strncmp(kinds[i], "ycsb", 4) == 0;
            snprintf(workload, sizeof(workload), "%s, open_loop: %s", kinds[i],
                     i % 2 ? "true" : "false");
            play(&played, strong ? "strong" : "eventual", workload,
                 "{at: 0s, for: 1s, do: link.cut, from: all, to: eu-west-1}");
            if (!ycsb) /* whose values nobody judges */
                check_sound(&played, kinds[i]);
            assert_null(played.outcome.harness);
            check_measures(&played);
            drop(&played);
        }
    }
}

/* ---- What they do ---- */

static const struct outcome_sample *sample_at(const struct played *played, uint64_t into_ns)
{
    const struct outcome *outcome = &played->outcome;
    for (uint32_t i = 0; i < outcome->sample_count; i++)
        if (outcome->samples[i].at_ns >= outcome->began_ns + into_ns)
            return &outcome->samples[i];
    fail_msg("no sample at %llu", (unsigned long long)into_ns);
    return NULL;
}

static const uint64_t ms = 1000000;

static void a_cut_makes_one_lag_behind(void **state)
{
    (void)state;
    struct played played;
    play(&played, "eventual", "lww-conflict",
         "{at: 0s, for: 1900ms, do: link.cut, from: us-east-1, to: eu-west-1}");
    assert_true(sample_at(&played, 2800 * ms)->region[0].lag_ns > 1000 * ms);
    assert_true(sample_at(&played, 2800 * ms)->region[1].lag_ns < 500 * ms);
    drop(&played);
}

static void a_clock_is_off_and_right_again(void **state)
{
    (void)state;
    struct played played;
    play(&played, "eventual", "lww-conflict",
         "{at: 0s, for: 1s, do: clock.offset, region: us-east-1, offset: 200ms}");
    assert_int_equal(sample_at(&played, 1500 * ms)->region[0].clock_offset_ns, 200 * ms);
    assert_int_equal(sample_at(&played, 2500 * ms)->region[0].clock_offset_ns, 0);
    assert_int_equal(sample_at(&played, 1500 * ms)->region[1].clock_offset_ns, 0);
    drop(&played);
}

/* As in a Region process: what ends leaves the others as they are. */
static void clocks_add_up(void **state)
{
    (void)state;
    struct played played;
    play(&played, "eventual", "lww-conflict",
         "{at: 0s, for: 1s, do: clock.offset, region: us-east-1, offset: 200ms}, "
         "{at: 500ms, for: 1s, do: clock.step, region: us-east-1, offset: -200ms}");
    assert_int_equal(sample_at(&played, 1300 * ms)->region[0].clock_offset_ns, 200 * ms);
    assert_int_equal(sample_at(&played, 1800 * ms)->region[0].clock_offset_ns, 0);
    assert_int_equal(sample_at(&played, 2300 * ms)->region[0].clock_offset_ns, -200 * (int64_t)ms);
    assert_int_equal(sample_at(&played, 2800 * ms)->region[0].clock_offset_ns, 0);
    assert_true(played.outcome.faults[1].effective); /* though it made the clock right */
    drop(&played);
}

/* What ends nothing, or strikes what is down already, has tried nothing: the run fails, and says
 * which. */
static void an_end_of_nothing_is_ineffective(void **state)
{
    (void)state;
    static const char *const idle[] = {
        "{at: 1s, id: x, do: process.start, region: all}",
        "{at: 1s, id: x, do: process.resume, region: us-east-1}",
        "{at: 1s, id: x, do: clock.reset, region: us-east-1}",
        "{at: 0s, id: a, for: 500ms, do: clock.offset, region: us-east-1, offset: 1s}, "
        "{at: 1s, id: x, do: undo, fault: a}",
        "{at: 1s, id: a, do: process.restart, region: us-east-1}, "
        "{at: 1s, id: x, do: process.restart, region: us-east-1}",
        "{at: 1s, id: a, for: 500ms, do: process.kill, region: us-east-1}, "
        "{at: 1s, id: x, do: process.pause, region: us-east-1}",
        /* What holds, and meets nothing while it does. */
        "{at: 0s, for: 1s, id: x, do: api.error, region: all, operations: [DescribeLimits]}",
        "{at: 0s, for: 1s, id: a, do: process.kill, region: eu-west-1}, "
        "{at: 100ms, for: 500ms, id: x, do: link.blackhole, from: eu-west-1, to: us-east-1}",
        "{at: 0s, for: 1s, id: a, do: process.kill, region: eu-west-1}, "
        "{at: 100ms, for: 500ms, id: x, do: link.cut, from: eu-west-1, to: us-east-1}",
        "{at: 0s, for: 1s, id: a, do: process.kill, region: eu-west-1}, "
        "{at: 100ms, for: 500ms, id: x, do: disk.slow, region: eu-west-1, delay: 5ms}",
        "{at: 0s, for: 1s, id: a, do: process.kill, region: eu-west-1}, "
        "{at: 100ms, for: 500ms, id: x, do: clock.step, region: eu-west-1, offset: 5ms}",
    };
    for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++) {
        struct played played;
        play(&played, "eventual", "lww-conflict", idle[i]);
        const struct outcome_fault *last = &played.outcome.faults[played.outcome.fault_count - 1];
        assert_string_equal(last->id, "x");
        assert_false(last->effective);
        assert_int_equal(played.outcome.exit, OUTCOME_HARNESS);
        drop(&played);
    }
}

static void what_comes_and_goes_does_so(void **state)
{
    (void)state;
    struct played played;
    play(&played, "strong", "swap-register",
         "{at: 0s, for: 1900ms, do: process.restart-loop, region: eu-west-1, period: 600ms, down: "
         "200ms}, {at: 0s, for: 1s, do: partition, shape: swizzle}, "
         "{at: 0s, for: 1s, do: process.hiccup, region: us-east-1, period: 600ms, down: 300ms}");
    uint32_t ends = 0;
    for (uint32_t i = 0; i < played.outcome.event_count; i++)
        ends += strcmp(played.outcome.events[i].kind, "down") == 0;
    assert_int_equal(ends, 4); /* at 0, 600, 1200 and 1800 ms */
    assert_true(sample_at(&played, 1200 * ms)->region[0].paused);
    assert_false(sample_at(&played, 1350 * ms)->region[0].paused);
    check_sound(&played, "what comes and goes");
    drop(&played);
}

static void a_region_is_down_and_up_again(void **state)
{
    (void)state;
    struct played played;
    play(&played, "strong", "swap-register",
         "{at: 0s, for: 1s, do: process.kill, region: eu-west-1, lose_unsynced: true}, "
         "{at: 1500ms, for: 400ms, do: process.pause, region: us-east-1}");
    assert_false(sample_at(&played, 1500 * ms)->region[1].up);
    assert_true(sample_at(&played, 2500 * ms)->region[1].up);
    assert_true(sample_at(&played, 2700 * ms)->region[0].paused);
    assert_false(sample_at(&played, 3000 * ms)->region[0].paused);
    check_sound(&played, "kill and pause");
    drop(&played);
}

static void a_wiped_disk_is_a_loss(void **state)
{
    (void)state;
    struct played played;
    play(&played, "eventual", "lww-conflict", "{at: 500ms, do: disk.wipe, region: eu-west-1}");
    assert_int_equal(played.outcome.lost_regions, 2);
    assert_int_equal(played.outcome.down_regions, 0);
    check_sound(&played, "wipe");
    drop(&played);
}

/* Nothing brings the table back, so nobody waits for it, and the verdict is that of processes. */
static void all_disks_wiped_is_wrong(void **state)
{
    (void)state;
    struct played played;
    play(&played, "eventual", "lww-conflict",
         "{at: 500ms, for: 500ms, do: disk.wipe, region: all}");
    assert_int_equal(played.outcome.gone_regions, 7);
    assert_int_equal(played.outcome.disk_loss_count, 3);
    assert_int_equal(played.outcome.exit, OUTCOME_WRONG);
    assert_non_null(strstr(played.outcome.verdict, "the table itself is gone"));
    assert_int_equal(played.outcome.converged_ns, 0);
    drop(&played);
}

static uint32_t errors_of(const struct played *played, uint8_t region)
{
    uint32_t errors = 0;
    for (uint32_t i = 0; i < played->outcome.history.count; i++) {
        const struct history_op *op = &played->outcome.history.ops[i];
        errors += op->region == region && !history_answered(op);
    }
    return errors;
}

static void a_full_disk_and_the_api_refuse_in_one_region(void **state)
{
    (void)state;
    static const char *const faults[] = {
        "{at: 0s, for: 1900ms, do: disk.full, region: eu-west-1}",
        "{at: 0s, for: 1900ms, do: api.throttle, region: eu-west-1, percent: 50}",
        "{at: 0s, for: 1900ms, do: client.block, region: eu-west-1, how: blackhole}"};
    for (int i = 0; i < 3; i++) {
        struct played played;
        play(&played, "eventual", "lww-conflict", faults[i]);
        assert_true(errors_of(&played, 1) > 0);
        assert_int_equal(errors_of(&played, 0), 0);
        check_sound(&played, faults[i]);
        drop(&played);
    }
}

/* What a file may name is what a Region knows: chaos/scenario has a table of its own. */
static void names_are_those_of_a_region(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++)
        assert_string_equal(scenario_operations[kind], op_name(kind));
    assert_null(scenario_operations[OP_KIND_COUNT]);
    for (enum api_error error = API_OK + 1; error < API_ERROR_COUNT; error++) {
        if (error == API_UNKNOWN_RESOURCE) /* has the name of the one before */
            continue;
        assert_string_equal(scenario_errors[count++], api_error_name(error));
    }
    assert_null(scenario_errors[count]);
}

/* ---- Replays ---- */

static const char storm[] =
    "{at: 0s, for: 1s, do: process.kill, region: us-east-1, id: a}, "
    "{at: 0s, for: 1s, do: link.cut, from: eu-west-1, to: ap-northeast-1, id: b}, "
    "{at: 1s, do: undo, fault: b}";

static void a_replay_is_the_same_run(void **state)
{
    (void)state;
    struct played first, again, other;
    play_with(&first, "strong", "cas-register", storm, 5, UINT64_MAX);
    play_with(&again, "strong", "cas-register", storm, 5, UINT64_MAX);
    play_with(&other, "strong", "cas-register", storm, 6, UINT64_MAX);
    assert_int_equal(first.figures.hash, again.figures.hash);
    assert_int_equal(first.figures.events, again.figures.events);
    assert_int_equal(first.outcome.history.count, again.outcome.history.count);
    assert_int_not_equal(first.figures.hash, other.figures.hash);
    drop(&first);
    drop(&again);
    drop(&other);
}

static void faults_can_be_left_out(void **state)
{
    (void)state;
    struct played all, one, none;
    play_with(&all, "eventual", "lww-conflict", storm, 5, UINT64_MAX);
    play_with(&one, "eventual", "lww-conflict", storm, 5, 2);
    play_with(&none, "eventual", "lww-conflict", storm, 5, 0);
    assert_int_equal(all.figures.told.fault_count, 2); /* undo has no number */
    assert_int_equal(one.figures.told.fault_count, 1);
    assert_int_equal(one.figures.told.faults[0].number, 1);
    assert_int_equal(none.figures.told.fault_count, 0);
    assert_true(sample_at(&one, 1500 * ms)->region[0].up);
    assert_false(sample_at(&all, 1500 * ms)->region[0].up);
    drop(&all);
    drop(&one);
    drop(&none);
}

/* ---- Refusals ---- */

static void what_cannot_be_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *workload, *fault, *says;
    } cases[] = {
        {"set", "", "set can't be simulated"},
        {"append", "", "append can't be simulated"},
        {"lww-conflict", "{at: 0s, do: disk.bitflip, region: us-east-1}",
         "disk.bitflip can't be simulated"},
        {"lww-conflict", "{at: 0s, for: 1s, do: disk.io_error, region: us-east-1}",
         "disk.io_error can't be simulated"},
        {"lww-conflict", "{at: 0s, do: disk.truncate, region: us-east-1}",
         "disk.truncate can't be simulated"},
        {"lww-conflict", "{at: 0s, do: disk.slow, region: us-east-1, delay: 1ms, percent: 5}",
         "slow at every sync"},
        {"lww-conflict", "{at: 0s, for: 1s, do: disk.torn_write, region: us-east-1}",
         "disk.torn_write can't be simulated"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scenario scenario;
        struct buf error = {0};
        read_scenario(&scenario, "eventual", cases[i].workload, cases[i].fault);
        assert_false(play_accepts(&scenario, &error));
        buf_append_u8(&error, 0);
        assert_non_null(strstr((const char *)error.at, cases[i].says));
        buf_deinit(&error);
        scenario_deinit(&scenario);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_in_eventual_mode),
        cmocka_unit_test(every_verb_in_strong_mode),
        cmocka_unit_test(every_workload),
        cmocka_unit_test(a_cut_makes_one_lag_behind),
        cmocka_unit_test(a_clock_is_off_and_right_again),
        cmocka_unit_test(clocks_add_up),
        cmocka_unit_test(an_end_of_nothing_is_ineffective),
        cmocka_unit_test(what_comes_and_goes_does_so),
        cmocka_unit_test(a_region_is_down_and_up_again),
        cmocka_unit_test(a_wiped_disk_is_a_loss),
        cmocka_unit_test(all_disks_wiped_is_wrong),
        cmocka_unit_test(names_are_those_of_a_region),
        cmocka_unit_test(a_full_disk_and_the_api_refuse_in_one_region),
        cmocka_unit_test(a_replay_is_the_same_run),
        cmocka_unit_test(faults_can_be_left_out),
        cmocka_unit_test(what_cannot_be_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
