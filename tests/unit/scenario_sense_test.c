/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever writes a scenario gets told: all mistakes of a file at once, each with its place; a
 * word of other tools by its name here; and what no run could ever show. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/check.h"
#include "tests/lib/scenario/refused.h"

#define STRONG HEAD "cluster: {mode: strong, regions: [us-east-1, us-east-2, us-west-2]}\n"

/* Every part has a mistake of type or meaning, and none hides that of another. */
static void all_mistakes_at_once(void **state)
{
    (void)state;
    must_refuse("name: [x]\n"
                "seed: {a: 1}\n"
                "seed: 4\n"
                "cluster:\n"
                "  durability: [fsync]\n"
                "  regions: [us-east-1, 7, eu-west-1]\n"
                "workload: {kind: counter, rate: fast, open_loop: true, writers: us-east-1}\n"
                "phases:\n"
                "  - 5\n"
                "  - {name: a, for: long}\n"
                "  - for: 2s\n"
                "    faults:\n"
                "      - {at: 3s, do: link.cut, from: [a], to: nowhere, id: 4}\n"
                "      - {do: nothing, id: n}\n"
                "      - {do: undo, fault: n, id: 4}\n"
                "      - kill\n"
                "expect: {rto: {mars: 1s}, rpo_count: [none, {}]}\n"
                "stop_if: 3\n"
                "budgets: {wall: 1}\n",
                "x.yaml:3: seed: the key is here twice\n"
                "x.yaml:1: name: expected a text of 1 to 64 characters, but this is a list\n"
                "x.yaml:2: seed: expected a whole number, but this is a mapping\n"
                "x.yaml:6: cluster.regions[1]: no AWS Region is named '7': expected one such as "
                "us-east-1\n"
                "x.yaml:5: cluster.durability: expected fsync or os, but this is a list\n"
                "x.yaml:7: workload.rate: expected how often, such as 400/s, from 1 to 1000000, "
                "but this is 'fast'\n"
                "x.yaml:7: workload.writers: expected a list of us-east-1, eu-west-1, but this is "
                "'us-east-1'\n"
                "x.yaml:9: phases[0]: expected a phase, which is a mapping, but this is a single "
                "value\n"
                "x.yaml:10: phases[1].for: expected a time such as 250ms, 2s, 1m30s or PT1M, above "
                "0 and at most 24h, but this is 'long'\n"
                "x.yaml:13: phases[2].faults[0].from: expected us-east-1, eu-west-1 or all, but "
                "this is a list\n"
                "x.yaml:13: phases[2].faults[0].at: it begins after the phase has ended: `at` "
                "counts from the phase's beginning\n"
                "x.yaml:14: phases[2].faults[1].do: there is no verb 'nothing': expected one such "
                "as link.cut or process.kill\n"
                "x.yaml:16: phases[2].faults[3]: expected a fault such as {at: 2s, do: link.cut, "
                "...}, but this is a single value\n"
                "x.yaml:13: phases[2].faults[0].id: another fault has the same id\n"
                "x.yaml:17: expect.rto.mars: no time is ever exactly that: write \"<=1s\"\n"
                "x.yaml:17: expect.rpo_count[0]: 'none' is no limit of rpo_count: expected such as "
                "0, \"<=10\" or \">0\"\n"
                "x.yaml:17: expect.rpo_count[1]: '' is no limit of rpo_count: expected such as 0, "
                "\"<=10\" or \">0\"\n"
                "x.yaml:18: stop_if: expected a mapping such as {rpo_count: 0}, but this is a "
                "single value\n"
                "x.yaml:19: budgets.wall: expected a time such as 250ms, 2s, 1m30s or PT1M, from "
                "1s to 24h, but this is '1'\n");
    /* Of a cluster that is not understood, one message and not one for each that hangs on it. */
    must_refuse(HEAD "cluster: {mode: stronk, witness: us-west-2, durability: x}\n"
                     "workload: {mix: 5}\n"
                     "phases:\n"
                     "  - {until: {leaders: true, timeout: 0}}\n"
                     "  - {for: 1s, faults: [{do: leader.kill}, {do: process.kill, region: "
                     "leader}]}\n"
                     "expect: {linearizable: true, rto: {us-west-9 write: <1s}}\n",
                "x.yaml:2: cluster.mode: expected eventual, strong, MREC or MRSC, but this is "
                "'stronk': did you mean 'strong'?\n"
                "x.yaml:2: cluster.durability: expected fsync or os, but this is 'x'\n"
                "x.yaml:3: workload.mix: expected a mapping, but this is a single value\n"
                "x.yaml:5: phases[0].until.timeout: expected a time such as 250ms, 2s, 1m30s or "
                "PT1M, from 100ms to 1h, but this is '0'\n");
}

static void words_of_other_tools(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *meant;
    } words[] = {
        {HEAD "workload: {command: ls}\n" PHASES, "command: there is no such key: did you mean "
                                                  "'exec'?"},
        {HEAD "nodes: 3\n" PHASES, "did you mean 'cluster: {regions: [...]}'?"},
        {HEAD "cluster: {nodes: 3}\n" PHASES, "did you mean 'regions'?"},
        {HEAD "cluster: {mode: sync}\n" PHASES, "did you mean 'strong'?"},
        {HEAD "workload: {concurrency: 3}\n" PHASES, "did you mean 'clients_per_region'?"},
        {HEAD "workload: {kind: register}\n" PHASES, "did you mean 'swap-register'?"},
        {HEAD "phases: [{duration: 1s}]\n", "did you mean 'for'?"},
        {FAULT("action: link.cut"), "did you mean 'do'?"},
        {FAULT("do: kill, region: all"), "did you mean 'process.kill'?"},
        {FAULT("do: latency"), "did you mean 'link.delay'?"},
        {FAULT("do: Pod_Kill"), "did you mean 'process.kill'?"},
        {FAULT("do: network-partition"), "did you mean 'partition'?"},
        {FAULT("do: link.delay, from: all, to: all, latency: 3ms"), "did you mean 'delay'?"},
        {FAULT("do: link.loss, from: all, to: all, toxicity: 0.5"), "did you mean 'percent'?"},
        {FAULT("do: process.kill, node: us-east-1"), "did you mean 'region'?"},
        {FAULT("do: link.cut, target: us-east-1"), "did you mean 'from and to'?"},
        {FAULT("do: link.cut, from: all, to: all, duration: 1s"), "did you mean 'for'?"},
        {FAULT("do: process.kill, region: us-east1"), "did you mean 'us-east-1'?"},
        {FAULT("do: process.kill, region: all, signal: SIGTERM"), "did you mean 'TERM'?"},
        {FAULT("do: aws:fis:inject-api-throttle-error"), "did you mean 'api.throttle'?"},
        {HEAD PHASES "expect: {availability: 1s}\n", "did you mean 'unavailable'?"},
    };
    for (size_t i = 0; i < array_len(words); i++)
        must_refuse_with(words[i].yaml, words[i].meant);
}

static void an_equals_sign_is_a_comparison(void **state)
{
    (void)state;
    static const char *const limits[] = {"'=0'",  "'==0'", "'= 0'", "0",    "'<=0'",
                                         "'>=0'", "'<1'",  "'>1'",  "'!=3'"};
    for (size_t i = 0; i < array_len(limits); i++) {
        char yaml[128];
        snprintf(yaml, sizeof(yaml), HEAD PHASES "expect: {rpo_count: %s}\n", limits[i]);
        must_take(yaml);
    }
    struct scenario scenario;
    struct buf error;
    assert_true(read_text(HEAD PHASES "expect: {rpo_count: '=2'}\n", &scenario, &error));
    assert_false(scenario_expect_holds(&scenario.expect.at[0], 1));
    assert_true(scenario_expect_holds(&scenario.expect.at[0], 2));
    scenario_deinit(&scenario);
    buf_deinit(&error);
    must_refuse(HEAD PHASES "expect: {rto: '=3s'}\n",
                "x.yaml:3: expect.rto: no time is ever exactly that: write \"<=3s\"\n");
}

static void limits_that_nothing_keeps(void **state)
{
    (void)state;
    must_refuse(HEAD PHASES "expect:\n  lost_updates:\n    - '>=5'\n    - '<5'\n",
                "x.yaml:6: expect.lost_updates[1]: it cannot be so together with what is asked of "
                "it before\n");
    must_refuse(HEAD PHASES "expect: {lost_updates: ['>0', '<1']}\n",
                "x.yaml:3: expect.lost_updates[1]: it cannot be so together with what is asked of "
                "it before\n");
    must_refuse(HEAD PHASES "expect: {lost_updates: '<0'}\n",
                "x.yaml:3: expect.lost_updates: it can never be so\n");
    must_refuse(HEAD PHASES "expect: {phantoms: 0.5}\n",
                "x.yaml:3: expect.phantoms: it can never be so\n");
    must_refuse(HEAD PHASES "expect: {error_rate: '>1'}\n",
                "x.yaml:3: expect.error_rate: it can never be so\n");
    must_refuse(HEAD PHASES "stop_if: {error_rate: '>150%'}\n",
                "x.yaml:3: stop_if.error_rate: '>150%' is no limit of error_rate: expected such as "
                "0, \"<=10\" or \">0\"\n");
    must_refuse(HEAD PHASES "stop_if: {latency_p99: '<0'}\n",
                "x.yaml:3: stop_if.latency_p99: it can never be so\n");
    must_refuse(HEAD PHASES "expect: {rto: {write: ['<2s', '>3s']}}\n",
                "x.yaml:3: expect.rto.write[1]: it cannot be so together with what is asked of it "
                "before\n");
    must_refuse(HEAD PHASES "expect: {linearizable: true}\n",
                "x.yaml:3: expect.linearizable: an eventual cluster promises no order: expect it "
                "of `mode: strong`, or expect `converged: true`\n");
    must_refuse(HEAD PHASES "expect: {rpo_count: 0, rpo_seconds: '>0'}\n",
                "x.yaml:3: expect.rpo_seconds: with rpo_count 0 there is nothing that could have "
                "it\n");
    must_refuse(HEAD PHASES "expect: {converged: false, converge: '<3s'}\n",
                "x.yaml:3: expect.converge: with `converged: false` no time is short enough\n");
    must_refuse(HEAD PHASES "expect: {rto: {read_strong: '<1s'}}\n",
                "x.yaml:3: expect.rto.read_strong: the workload has no such reads: its mix says "
                "read_strong 0\n");
    must_refuse(HEAD PHASES "expect: {exit_code: 0}\n",
                "x.yaml:3: expect.exit_code: only a workload of `kind: exec` has a program that "
                "exits\n");
    must_take(HEAD PHASES "expect: {lost_updates: ['>0', '<2'], rpo_count: '>=0', linearizable: "
                          "false, error_rate: ['<=1', '!=0.5'], rto: {write: <2s, us-east-1: "
                          "'>3s'}}\n");
    must_take(STRONG PHASES "expect: {linearizable: true, rto: {read_strong: <1s}}\n");
    must_take(HEAD PHASES "stop_if: {error_rate: ['>0.9', '<0.1']}\n"); /* either is a reason */
}

#define UNTIL(faults, until)                                                                       \
    HEAD "phases:\n  - for: 2s\n    faults: [" faults "]\n  - for: 1s\n    until: {" until "}\n"

static void untils_that_wait_in_vain(void **state)
{
    (void)state;
    must_refuse(UNTIL("{do: process.kill, region: us-east-1}", "converged: true"),
                "x.yaml:6: phases[1].until: it waits in vain: process.kill of line 4 still holds "
                "then\n");
    must_refuse(UNTIL("{do: disk.wipe, region: all}, {at: 1s, do: process.start, region: "
                      "eu-west-1}, {at: 1s, do: process.pause, region: eu-west-1}",
                      "converged: true"),
                "x.yaml:6: phases[1].until: it waits in vain: process.pause of line 4 still holds "
                "then\n");
    must_refuse_with(HEAD "phases:\n  - {until: {converged: true, timeout: 5s}, faults: [{do: "
                          "process.kill, region: us-east-1, for: 9s}]}\n",
                     "phases[0].until: it waits in vain");
    must_take(UNTIL("{do: process.kill, region: us-east-1, for: 9s}", "converged: true"));
    must_take(UNTIL("{do: process.kill, region: us-east-1, id: k}, {at: 1s, do: undo, fault: k}",
                    "converged: true"));
    must_take(
        UNTIL("{do: process.kill, region: us-east-1}, {at: 1s, do: heal-all}", "converged: true"));
    must_take(UNTIL("{do: process.pause, region: us-east-1}, {at: 1s, do: process.resume, region: "
                    "all}",
                    "converged: true"));
    must_take(HEAD "phases:\n  - {for: 1s, faults: [{do: process.kill, region: us-east-1}]}\n"
                   "  - {do: heal-all, until: {converged: true}}\n");
    /* Two of three have a leader; a cut link may have nothing to carry. */
    must_take(STRONG "phases:\n  - {for: 1s, faults: [{do: process.kill, region: us-east-1}]}\n"
                     "  - {until: {leaders: true}}\n");
    must_take(UNTIL("{do: link.cut, from: us-east-1, to: all}", "converged: true"));
}

static void values_that_mean_nothing(void **state)
{
    (void)state;
    must_refuse(FAULT("do: link.loss, from: all, to: all, percent: 5, correlation: 100"),
                "x.yaml:5: phases[0].faults[0]: link.loss: with a correlation of 100 percent the "
                "first would decide for all\n");
    must_refuse(
        FAULT("do: link.reorder, from: all, to: all, percent: 5, delay: 500us"),
        "x.yaml:5: phases[0].faults[0].delay: link.reorder takes whole milliseconds here\n");
    must_refuse(FAULT("do: clock.step, region: all, offset: -1500us"),
                "x.yaml:5: phases[0].faults[0].offset: clock.step takes whole milliseconds here\n");
    must_refuse(FAULT("do: process.hiccup, region: all, period: 20ms, down: 2.5ms"),
                "x.yaml:5: phases[0].faults[0].down: process.hiccup takes whole milliseconds "
                "here\n");
    must_refuse(FAULT("do: process.restart-loop, region: all, period: 2s, down: 2s"),
                "x.yaml:5: phases[0].faults[0]: process.restart-loop: 'down' must be shorter than "
                "the period, or it never runs\n");
    must_refuse(FAULT("do: partition, shape: swizzle"),
                "x.yaml:5: phases[0].faults[0]: partition: a swizzle needs 'for': its steps are "
                "parts of it\n");
    must_refuse(FAULT("do: partition, shape: swizzle, for: 1s, how: blackhole"),
                "x.yaml:5: phases[0].faults[0]: partition: a swizzle cuts: expected `how: cut`\n");
    must_refuse(STRONG_FAULT("do: leader.transfer, to: us-west-2"),
                "x.yaml:3: phases[0].faults[0]: leader.transfer: a witness leads nothing: name a "
                "Region that has data\n");
    must_take(FAULT("do: link.delay, from: all, to: all, delay: 500us, jitter: 1.25ms"));
    must_take(FAULT("do: disk.slow, region: all, delay: 250us, percent: 10"));
    must_take(FAULT("do: link.corrupt, from: all, to: all, percent: 1, correlation: 25%"));
}

/* No run of such a workload in such a mode has the figure. */
static void what_is_never_measured(void **state)
{
    (void)state;
    static const char age[] = "the age of a read is known only where each value names its writer";
    static const struct {
        const char *yaml, *why;
    } cases[] = {
        {HEAD "workload: {kind: counter}\n" PHASES "expect: {lost_other: 0}\n",
         "x.yaml:4: expect.lost_other: no checker can tell why one of its writes is missing"},
        {HEAD "workload: {kind: ycsb-a}\n" PHASES "expect: {lost_other: 0}\n", "lost_other"},
        {HEAD "workload: {kind: ycsb-a}\n" PHASES "expect: {lost_updates: 0}\n", "lost_updates"},
        {HEAD "workload: {kind: ycsb-b}\n" PHASES "expect: {staleness_p99: \"<=1s\"}\n", age},
        {HEAD "workload: {kind: set}\n" PHASES "expect: {staleness_max: {us-east-1: \"<=1s\"}}\n",
         age},
        {HEAD "workload: {kind: append}\n" PHASES "expect: {ledger_complete: true}\n", "ledgers"},
        {STRONG PHASES "expect: {ledger_complete: true}\n", "ledgers are of eventual tables"},
        {STRONG PHASES "expect: {zombies: 0}\n", "expect.zombies: "},
        {STRONG PHASES "stop_if: {lag: \">1s\"}\n", "stop_if.lag: "},
        {STRONG "workload: {kind: ycsb-f}\n" PHASES "expect: {linearizable: true}\n",
         "no checker judges the order"},
        {HEAD "workload: {kind: exec, exec: [a]}\n" PHASES "expect: {rto: \"<=1s\"}\n",
         "of what a program of your own does there is no history"},
        {HEAD "workload: {kind: exec, exec: [a]}\n" PHASES "expect: {lost_other: 0}\n",
         "of what a program of your own does there is no history"},
        {HEAD PHASES "expect: {rto: {}}\n", "expect.rto: there is no limit in it"},
        {HEAD PHASES "stop_if: {error_rate: {}}\n", "stop_if.error_rate: there is no limit in it"},
    };
    for (size_t i = 0; i < array_len(cases); i++)
        must_refuse_with(cases[i].yaml, cases[i].why);
    must_take(STRONG "workload: {kind: counter}\n" PHASES "expect: {lost_other: 0}\n");
    must_take(HEAD "workload: {kind: exec, exec: [a]}\n" PHASES
                   "expect: {rpo_count: 0, converged: true, exit_code: 0, lag: \"<=9s\"}\n");
}

/* A Region would refuse them, again and again, when the fault begins. */
static void names_that_no_region_knows(void **state)
{
    (void)state;
    must_refuse_with(FAULT("do: api.error, region: us-east-1, for: 1s, error: ServiceUnavailable"),
                     "faults[0].error: there is no error 'ServiceUnavailable': did you mean "
                     "ServiceUnavailableException?\n");
    must_refuse_with(FAULT("do: api.error, region: us-east-1, for: 1s, error: q"),
                     "there is no error 'q': expected one such as InternalServerError\n");
    must_refuse_with(
        FAULT("do: api.throttle, region: us-east-1, for: 1s, operations: [PutItem, put]"),
        "faults[0].operations[1]: there is no operation 'put'");
    must_take(FAULT("do: api.error, region: us-east-1, for: 1s, error: ThrottlingException, "
                    "operations: [PutItem, Query]"));
    must_refuse_with("name: x\nabout: \"\xff\"\n" PHASES, "x.yaml:2: not YAML: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_mistakes_at_once),
        cmocka_unit_test(words_of_other_tools),
        cmocka_unit_test(an_equals_sign_is_a_comparison),
        cmocka_unit_test(limits_that_nothing_keeps),
        cmocka_unit_test(untils_that_wait_in_vain),
        cmocka_unit_test(values_that_mean_nothing),
        cmocka_unit_test(what_is_never_measured),
        cmocka_unit_test(names_that_no_region_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
