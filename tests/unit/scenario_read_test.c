/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario file that is taken: what every part becomes, and what is filled in. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>

#include "chaos/scenario/scenario.h"
#include "conflict/base/check.h"

static bool read_text(const char *yaml, struct scenario *scenario, struct buf *error)
{
    buf_init(error);
    scenario_init(scenario);
    bool good = scenario_read(scenario, "x.yaml", bytes_text(yaml), error);
    if (good && error->len > 0)
        fail_msg("it was taken, and yet: %.*s", (int)error->len, (const char *)error->at);
    buf_append_u8(error, 0);
    return good;
}

static void must_read(const char *yaml, struct scenario *scenario)
{
    struct buf error;
    if (!read_text(yaml, scenario, &error))
        fail_msg("refused: %s", (const char *)error.at);
    buf_deinit(&error);
}

static void the_specification_s_example(void **state)
{
    (void)state;
    struct scenario s;
    must_read(
        "name: mrsc-lose-leader-region\n"
        "seed: 42\n"
        "cluster: {mode: MRSC, regions: [us-east-1, us-east-2, us-west-2], witness: us-west-2,\n"
        "          links: {default: {rtt: 40ms, jitter: 2ms}, \"us-east-1<->us-west-2\": {rtt: "
        "65ms}}}\n"
        "workload: {kind: swap-register, keys: 64, rate: 400/s, open_loop: true, "
        "clients_per_region: 8, mix: {write: 0.5, read_strong: 0.4, read_eventual: 0.1}, timeout: "
        "2s}\n"
        "phases:\n"
        "  - {name: baseline, for: 15s}\n"
        "  - name: lose-east\n"
        "    for: 40s\n"
        "    faults:\n"
        "      - {at: 0s,  do: process.kill,  region: us-east-1, signal: KILL, lose_unsynced: "
        "true, id: k1}\n"
        "      - {at: 10s, do: link.cut, from: us-east-2, to: us-west-2, direction: both, for: "
        "3s}\n"
        "      - {at: 20s, do: process.start, region: us-east-1}\n"
        "  - {name: heal, do: heal-all, until: {converged: true, timeout: 60s}}\n"
        "expect: {rpo_count: 0, linearizable: true, rto: {strong_write: \"<=5s\"}, lost_updates: "
        "0, converge: \"<=30s\"}\n"
        "stop_if: {error_rate: \">0.99 for 60s\"}\n"
        "budgets: {checker_seconds: 120, checker_memory: 4GiB}\n",
        &s);
    assert_int_equal(s.seed, 42);
    assert_int_equal(s.cluster.mode, SCENARIO_STRONG);
    assert_int_equal(s.cluster.region_count, 3);
    assert_int_equal(s.cluster.data_count, 2);
    assert_string_equal(s.cluster.region[2].name, "us-west-2");
    assert_true(scenario_has_witness(&s.cluster));
    assert_int_equal(s.cluster.link[0][1].delay_ns, 20000000);
    assert_int_equal(s.cluster.link[0][1].jitter_ns, 2000000);
    assert_int_equal(s.cluster.link[0][2].delay_ns, 32500000);
    assert_int_equal(s.cluster.link[2][0].delay_ns, 32500000);
    assert_int_equal(s.cluster.link[2][0].jitter_ns, 2000000);
    assert_int_equal(s.workload.kind, SCENARIO_SWAP_REGISTER);
    assert_true(s.workload.open_loop && s.workload.rate > 399 && s.workload.rate < 401);
    assert_int_equal(s.workload.writers, 3);
    assert_int_equal(s.phase_count, 3);
    const struct scenario_phase *lose = &s.phases[1];
    assert_int_equal(lose->fault_count, 3);
    assert_int_equal(lose->faults[0].verb, VERB_PROCESS_KILL);
    assert_int_equal(lose->faults[0].signal, SIGKILL);
    assert_true(lose->faults[0].lose_unsynced);
    assert_int_equal(lose->faults[0].line, 11);
    assert_string_equal(lose->faults[0].id, "k1");
    assert_int_equal(lose->faults[1].direction, SCENARIO_BOTH_WAYS);
    assert_int_equal(lose->faults[1].from, 1);
    assert_int_equal(lose->faults[1].to, 2);
    assert_int_equal(lose->faults[1].for_ns, 3000000000);
    assert_true(s.phases[2].heal && s.phases[2].has_until && s.phases[2].until.converged);
    assert_int_equal(s.expect.count, 5);
    assert_int_equal(s.expect.at[2].metric, METRIC_RTO);
    assert_int_equal(s.expect.at[2].class, SCENARIO_CLASS_WRITE);
    assert_int_equal(s.expect.at[2].comparison, SCENARIO_AT_MOST);
    assert_true(scenario_expect_holds(&s.expect.at[2], 5e9));
    assert_false(scenario_expect_holds(&s.expect.at[2], 5.1e9));
    assert_string_equal(s.expect.at[2].text, "rto write <=5s");
    assert_int_equal(s.stop_if.at[0].for_ns, UINT64_C(60000000000));
    assert_int_equal(s.budgets.checker_bytes, UINT64_C(4) << 30);
    scenario_deinit(&s);
}

static void the_least_is_filled_up(void **state)
{
    (void)state;
    struct scenario s;
    must_read("name: least\nphases: [{for: 1s}]\n", &s);
    assert_int_equal(s.cluster.mode, SCENARIO_EVENTUAL);
    assert_int_equal(s.cluster.region_count, 3);
    assert_int_equal(s.cluster.data_count, 3);
    assert_int_equal(s.cluster.durability, SCENARIO_FSYNC);
    assert_int_equal(s.workload.kind, SCENARIO_LWW_CONFLICT);
    assert_int_equal(s.workload.clients_per_region, 4);
    assert_int_equal(s.workload.writers, 7);
    assert_int_equal(s.workload.timeout_ns, 2000000000);
    assert_true(s.workload.mix.write > 0.7);
    assert_string_equal(s.phases[0].name, "phase-1");
    assert_int_equal(s.phases[0].writers, 7);
    assert_int_equal(s.seed, 1);
    assert_int_equal(s.expect.count, 0);
    scenario_deinit(&s);
    must_read("name: least\ncluster: {mode: strong}\nphases: [{for: 1s}]\n", &s);
    assert_int_equal(s.workload.kind, SCENARIO_SWAP_REGISTER);
    scenario_deinit(&s);
}

static void a_program_of_one_s_own(void **state)
{
    (void)state;
    struct scenario s;
    must_read("name: own\nworkload: {exec: npm test}\nphases: [{for: 1s}]\n", &s);
    assert_int_equal(s.workload.kind, SCENARIO_EXEC);
    assert_string_equal(s.workload.exec[0], "/bin/sh");
    assert_string_equal(s.workload.exec[2], "npm test");
    assert_null(s.workload.exec[3]);
    scenario_deinit(&s);
    must_read("name: own\nworkload: {kind: exec, exec: [pytest, -x]}\nphases: [{for: 1s}]\n", &s);
    assert_string_equal(s.workload.exec[1], "-x");
    assert_null(s.workload.exec[2]);
    scenario_deinit(&s);
}

static void limits_of_every_form(void **state)
{
    (void)state;
    struct scenario s;
    must_read(
        "name: limits\nphases: [{for: 1s}]\n"
        "expect:\n"
        "  lost_updates: ['>0', '<500']\n"
        "  rto: {us-east-1: '<=3s', 'eu-west-1 read_eventual': '<2s', write: ['>=1ms', '<1s']}\n"
        "  rpo_seconds: '<=2'\n"
        "  rpo_bytes: <=64KiB\n"
        "  error_rate: '<=1%'\n"
        "  converged: false\n",
        &s);
    assert_int_equal(s.expect.count, 10);
    assert_true(scenario_expect_holds(&s.expect.at[0], 1) &&
                !scenario_expect_holds(&s.expect.at[0], 0));
    assert_int_equal(s.expect.at[2].region, 0);
    assert_int_equal(s.expect.at[2].class, SCENARIO_CLASS_ANY);
    assert_int_equal(s.expect.at[3].region, 1);
    assert_int_equal(s.expect.at[3].class, SCENARIO_CLASS_READ_EVENTUAL);
    assert_string_equal(s.expect.at[3].text, "rto eu-west-1 read_eventual <2s");
    assert_true(scenario_expect_holds(&s.expect.at[6], 2e9));
    assert_false(scenario_expect_holds(&s.expect.at[6], 2.1e9));
    assert_true(scenario_expect_holds(&s.expect.at[7], 65536));
    assert_true(scenario_expect_holds(&s.expect.at[8], 0.01));
    assert_false(scenario_expect_holds(&s.expect.at[8], 0.02));
    assert_true(scenario_expect_holds(&s.expect.at[9], 0));
    assert_false(scenario_metric_is_timing(METRIC_RPO_COUNT));
    assert_true(scenario_metric_is_timing(METRIC_RTO));
    scenario_deinit(&s);
}

static void faults_are_in_order_and_named(void **state)
{
    (void)state;
    struct scenario s;
    must_read("name: order\n"
              "phases:\n"
              "  - for: 9s\n"
              "    faults:\n"
              "      - {at: 5s, do: link.flap, from: us-east-1, to: all, period: 1s, id: f1}\n"
              "      - {at: 1s, do: process.pause, region: all}\n"
              "      - {at: 5s, do: undo, fault: f1}\n"
              "      - {at: 1s, do: clock.rate, region: us-east-1, ppm: -200}\n",
              &s);
    const struct scenario_fault *faults = s.phases[0].faults;
    assert_int_equal(faults[0].verb, VERB_PROCESS_PAUSE);
    assert_int_equal(faults[0].region, SCENARIO_REGION_ALL);
    assert_int_equal(faults[1].ppm, -200);
    assert_int_equal(faults[2].verb, VERB_LINK_FLAP);
    assert_int_equal(faults[2].down_ns, 500000000);
    assert_int_equal(faults[2].to, SCENARIO_REGION_ALL);
    assert_int_equal(faults[3].verb, VERB_UNDO);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(faults[i].id, faults[j].id);
    struct buf text = {0};
    scenario_fault_print(&s.cluster, &faults[2], &text);
    assert_memory_equal(text.at, "link.flap us-east-1 -> all period=1s", text.len);
    buf_deinit(&text);
    scenario_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_specification_s_example),   cmocka_unit_test(the_least_is_filled_up),
        cmocka_unit_test(a_program_of_one_s_own),        cmocka_unit_test(limits_of_every_form),
        cmocka_unit_test(faults_are_in_order_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
