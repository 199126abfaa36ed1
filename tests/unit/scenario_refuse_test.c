/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario file that is refused: each kind of mistake is told with file, line and field, and no
 * file, however hostile, does more than be refused. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conflict/base/check.h"
#include "tests/lib/scenario/refused.h"

static void keys_and_values(void **state)
{
    (void)state;
    must_refuse(HEAD "sede: 1\n" PHASES,
                "x.yaml:2: sede: there is no such key: did you mean 'seed'?\n");
    must_refuse(HEAD "frobnicate: 1\n" PHASES,
                "x.yaml:2: frobnicate: there is no such key: expected name, about, seed, cluster, "
                "workload, phases, expect, stop_if, budgets\n");
    must_refuse("seed: 1\n" PHASES,
                "x.yaml:1: the key 'name' is missing: Letters, digits, - and _\n");
    must_refuse("name: ../x\n" PHASES,
                "x.yaml:1: name: '../x' may have letters, digits, - and _ only\n");
    must_refuse(HEAD, "x.yaml:1: the key 'phases' is missing: What happens, in order\n");
    must_refuse(HEAD "seed: -1\n" PHASES,
                "x.yaml:2: seed: expected a whole number, but this is '-1'\n");
    must_refuse(HEAD "seed:\n" PHASES, "x.yaml:2: seed: no value: expected a whole number\n");
    must_refuse(HEAD "seed: [1]\n" PHASES,
                "x.yaml:2: seed: expected a whole number, but this is a list\n");
    must_refuse(HEAD "phases: [{for: 10}]\n",
                "x.yaml:2: phases[0].for: expected a time such as 250ms, 2s, 1m30s or PT1M, above "
                "0 and at most 24h, but this is '10'\n");
    must_refuse(HEAD "workload: {clients_per_region: 1000}\n" PHASES,
                "x.yaml:2: workload.clients_per_region: expected a whole number, from 1 to 256, "
                "but this is '1000'\n");
    must_refuse(HEAD "cluster: {durability: disk}\n" PHASES,
                "x.yaml:2: cluster.durability: expected fsync or os, but this is 'disk': did "
                "you mean 'fsync'?\n");
    must_refuse(HEAD "workload: 3\n" PHASES,
                "x.yaml:2: workload: expected a mapping, but this is a single value\n");
    must_refuse("name: \"a\\nb\"\n" PHASES,
                "x.yaml:1: name: expected a text of 1 to 64 characters, but this is 'a?b'\n");
    must_refuse(HEAD "\"a\\nx.yaml:9: all is well\": 1\n" PHASES,
                "x.yaml:2: a?x.yaml:9: all is well: there is no such key: expected name, about, "
                "seed, cluster, workload, phases, expect, stop_if, budgets\n");
}

static void clusters(void **state)
{
    (void)state;
    must_refuse(HEAD "cluster: {regions: [us-east-1, eu-wst-1]}\n" PHASES,
                "x.yaml:2: cluster.regions[1]: no AWS Region is named 'eu-wst-1': did you mean "
                "'eu-west-1'?\n");
    must_refuse(HEAD "cluster: {regions: [us-east-1, us-east-1]}\n" PHASES,
                "x.yaml:2: cluster.regions[1]: us-east-1 is listed twice: name each Region once\n");
    must_refuse(HEAD "cluster: {regions: []}\n" PHASES,
                "x.yaml:2: cluster.regions: expected 1 to 8 Regions, but these are 0\n");
    must_refuse(HEAD "cluster: {witness: us-west-2}\n" PHASES,
                "x.yaml:2: cluster.witness: only a cluster of `mode: strong` has a witness\n");
    must_refuse(HEAD "cluster: {mode: strong, regions: [us-east-1, us-east-2]}\n" PHASES,
                "x.yaml:2: cluster: a strong cluster has exactly three members: three Regions, or "
                "two and a witness; these are 2\n");
    must_refuse(HEAD "cluster: {mode: strong, regions: [us-east-1, us-east-2, sa-east-1]}\n" PHASES,
                "x.yaml:2: cluster: AWS offers no multi-Region strong consistency in sa-east-1\n");
    must_refuse(HEAD "cluster: {links: {us-east-1->eu-west-2: {delay: 1ms}}}\n" PHASES,
                "x.yaml:2: cluster.links.us-east-1->eu-west-2: 'eu-west-2' is no Region of this "
                "cluster\n");
    must_refuse(HEAD "cluster: {links: {us-east-1->eu-west-1: {rtt: 1ms}}}\n" PHASES,
                "x.yaml:2: cluster.links.us-east-1->eu-west-1: rtt is of both ways: give `delay` "
                "here, or name the pair a<->b\n");
    must_refuse(HEAD "cluster: {links: {default: {rtt: 1ms, delay: 1ms}}}\n" PHASES,
                "x.yaml:2: cluster.links.default: rtt and delay say the same: give one of them\n");
    must_refuse_with(HEAD "cluster: {links: {everywhere: {rtt: 1ms}}}\n" PHASES,
                     "x.yaml:2: cluster.links.everywhere: expected `default`, or a link such as ");
    must_refuse(HEAD "cluster: {links: {us-east-1<->us-east-1: {rtt: 1ms}}}\n" PHASES,
                "x.yaml:2: cluster.links.us-east-1<->us-east-1: a link joins two Regions\n");
    /* One mistake there is one message, though the faults below name that Region. */
    must_refuse(HEAD "cluster: {regions: [us-east-9]}\nphases: [{for: 1s, faults: [{do: "
                     "process.kill, region: us-east-9}]}]\n",
                "x.yaml:2: cluster.regions[0]: no AWS Region is named 'us-east-9': did you mean "
                "'us-east-1'?\n");
}

static void workloads(void **state)
{
    (void)state;
    must_refuse(HEAD "workload: {mix: {write: 0.5}}\n" PHASES,
                "x.yaml:2: workload.mix: the shares must add up to 1, but they add up to 0.5\n");
    must_refuse(HEAD "workload: {open_loop: true}\n" PHASES,
                "x.yaml:2: workload: an open loop needs the key 'rate', for answers do not pace "
                "it\n");
    must_refuse(HEAD "workload: {kind: exec}\n" PHASES,
                "x.yaml:2: workload: kind exec needs the key 'exec': the program to run\n");
    must_refuse(HEAD "workload: {kind: set, exec: ls}\n" PHASES,
                "x.yaml:2: workload: 'exec' is for `kind: exec`: leave out one of them\n");
    must_refuse(HEAD "workload: {kind: counter, mix: {write: 0.9, delete: 0.1}}\n" PHASES,
                "x.yaml:2: workload.mix: the workload counter has no deletes: only swap-register "
                "and lww-conflict have\n");
    must_refuse(HEAD "workload: {kind: counter, mix: {write: 0.9, scan: 10%}}\n" PHASES,
                "x.yaml:2: workload.mix: the workload counter has no scans: only set has\n");
    must_refuse(HEAD "workload: {writers: [mars-1]}\n" PHASES,
                "x.yaml:2: workload.writers[0]: expected a list of us-east-1, eu-west-1, "
                "ap-northeast-1, but this is 'mars-1'\n");
}

static void phases(void **state)
{
    (void)state;
    must_refuse(HEAD "phases: [{name: a}]\n",
                "x.yaml:2: phases[0]: how long? give it `for` or `until`\n");
    must_refuse(HEAD "phases: []\n",
                "x.yaml:2: phases: expected 1 to 64 phases, but these are 0\n");
    must_refuse(HEAD "phases: [{name: a, for: 1s}, {name: a, for: 1s}]\n",
                "x.yaml:2: phases[1]: a phase before is named 'a', too\n");
    must_refuse(HEAD "phases: [3, {for: 1s}]\n",
                "x.yaml:2: phases[0]: expected a phase, which is a mapping, but this is a single "
                "value\n");
    must_refuse(HEAD "phases: [{for: 1s, do: link.cut}]\n",
                "x.yaml:2: phases[0].do: a phase itself does heal-all or nothing: list other verbs "
                "under `faults`\n");
    must_refuse(HEAD "phases: [{until: {timeout: 1s}}]\n",
                "x.yaml:2: phases[0].until: nothing to wait for: expected converged, caught_up or "
                "leaders\n");
    must_refuse(HEAD "phases: [{until: {leaders: true}}]\n",
                "x.yaml:2: phases[0].until: caught_up and leaders are of `mode: strong`: wait for "
                "converged here\n");
    must_refuse(HEAD "phases: [{for: 1s, random: {count: 1, weights: {process.start: 1}}}]\n",
                "x.yaml:2: phases[0].random.weights.process.start: process.start cannot be drawn: "
                "it only ends what others began\n");
    must_refuse(HEAD "phases: [{for: 1s, random: {count: 1, weights: {link.cut: 0}}}]\n",
                "x.yaml:2: phases[0].random.weights: nothing can be drawn: give some verb a weight "
                "above 0\n");
    must_refuse(HEAD "phases: [{for: 9s, random: {count: 1, weights: {leader.kill: 1, link.cut: "
                     "1}}}]\n",
                "x.yaml:2: phases[0].random.weights.leader.kill: leader.kill cannot be drawn in an "
                "eventual cluster\n");
    must_refuse(HEAD "phases: [{for: 1s, random: {count: 1, weights: {link.cut: 1}}}]\n",
                "x.yaml:2: phases[0].random: the phase must last (`for`) at least as long as "
                "hold_max, so that what is drawn ends in it\n");
    must_refuse_with(HEAD "phases: [{for: 4s, random: {count: 9, weights: {link.cut: 1}}}]\n",
                     "phases[0].random: there is no room");
}

static void faults(void **state)
{
    (void)state;
    must_refuse(FAULT("do: link.cutt, from: us-east-1, to: eu-west-1"),
                "x.yaml:5: phases[0].faults[0].do: there is no verb 'link.cutt': did you mean "
                "'link.cut'?\n");
    must_refuse(
        FAULT("from: us-east-1"),
        "x.yaml:5: phases[0].faults[0]: the key 'do' is missing: a verb such as link.cut\n");
    must_refuse(FAULT("do: link.cut, from: us-east-1"),
                "x.yaml:5: phases[0].faults[0]: link.cut needs the key 'to': The Region that "
                "receives, or `all`\n");
    must_refuse(FAULT("do: link.cut, from: us-east-1, to: eu-west-1, percent: 4"),
                "x.yaml:5: phases[0].faults[0].percent: link.cut has no such key\n");
    must_refuse(FAULT("do: link.cut, from: us-east-1, to: eu-west-1, directon: both"),
                "x.yaml:5: phases[0].faults[0].directon: there is no such key: did you mean "
                "'direction'?\n");
    must_refuse(FAULT("do: process.pause, region: mars-1"),
                "x.yaml:5: phases[0].faults[0].region: expected us-east-1, eu-west-1, "
                "ap-northeast-1 or all, but this is 'mars-1'\n");
    must_refuse(
        FAULT("do: process.pause, region: us-east-1, at: 10s"),
        "x.yaml:5: phases[0].faults[0].at: it begins after the phase has ended: `at` counts "
        "from the phase's beginning\n");
    must_refuse(FAULT("do: process.start, region: us-east-1, for: 1s"),
                "x.yaml:5: phases[0].faults[0]: process.start: it is over at once: leave 'for' "
                "out\n");
    must_refuse(FAULT("do: link.cut, from: us-east-1, to: us-east-1"),
                "x.yaml:5: phases[0].faults[0]: link.cut: a link joins two Regions: `from` and "
                "`to` are the same\n");
    must_refuse(FAULT("do: link.flap, from: us-east-1, to: eu-west-1, period: 1s, down: 1s"),
                "x.yaml:5: phases[0].faults[0]: link.flap: 'down' must be shorter than the period, "
                "or the link never comes up\n");
    must_refuse(FAULT("do: link.reset, from: us-east-1, to: eu-west-1, period: 1s"),
                "x.yaml:5: phases[0].faults[0]: link.reset: with a period it needs 'for': how long "
                "it goes on\n");
    must_refuse(FAULT("do: link.loss, from: us-east-1, to: eu-west-1, percent: 0"),
                "x.yaml:5: phases[0].faults[0]: link.loss: of 0 percent nothing happens\n");
    must_refuse(
        FAULT("do: clock.step, region: us-east-1, offset: 0s"),
        "x.yaml:5: phases[0].faults[0]: clock.step: an offset of nothing changes nothing\n");
    must_refuse(FAULT("do: leader.kill"),
                "x.yaml:5: phases[0].faults[0]: leader.kill: there are leaders only in a cluster "
                "of `mode: strong`\n");
    must_refuse(FAULT("do: partition, shape: primaries"),
                "x.yaml:5: phases[0].faults[0]: partition: the shape primaries is of leaders, and "
                "so of `mode: strong`\n");
    must_refuse(FAULT("do: partition, shape: one, how: refuse"),
                "x.yaml:5: phases[0].faults[0]: partition: a partition cuts or swallows: expected "
                "`how: cut` or `how: blackhole`\n");
    must_refuse(FAULT("do: undo, fault: nobody"),
                "x.yaml:5: phases[0].faults[0].fault: no fault before it has this id\n");
    must_refuse(
        FAULT("do: process.restart, region: us-east-1, id: a}\n      - {do: undo, fault: a"),
        "x.yaml:6: phases[0].faults[1].fault: what it names is over at once\n");
    must_refuse(FAULT("do: heal-all, id: a}\n      - {do: heal-all, id: a"),
                "x.yaml:6: phases[0].faults[1].id: another fault has the same id\n");
    must_refuse(STRONG_FAULT("do: client.block, region: us-west-2"),
                "x.yaml:3: phases[0].faults[0]: client.block: a witness has no clients\n");
    must_refuse(STRONG_FAULT("do: leader.transfer, to: all"),
                "x.yaml:3: phases[0].faults[0]: leader.transfer: leadership goes to one Region: "
                "name it, or leave 'to' out\n");
    must_refuse(HEAD "cluster: {regions: [us-east-1]}\nphases: [{for: 1s, faults: [{do: "
                     "replication.pause, region: us-east-1}]}]\n",
                "x.yaml:3: phases[0].faults[0]: replication.pause: one Region alone replicates to "
                "nobody\n");
}

static void limits(void **state)
{
    (void)state;
    must_refuse(HEAD PHASES "expect: {rpo: 0}\n",
                "x.yaml:3: expect.rpo: there is no such key: did you mean 'rpo_count'?\n");
    must_refuse(HEAD PHASES "expect: {rpo_count: none}\n",
                "x.yaml:3: expect.rpo_count: 'none' is no limit of rpo_count: expected such as 0, "
                "\"<=10\" or \">0\"\n");
    must_refuse(HEAD PHASES "expect: {rto: {us-west-1: <=3s}}\n",
                "x.yaml:3: expect.rto.us-west-1: expected a class (write, read_strong, "
                "read_eventual), a Region with data such as us-east-1, or both\n");
    must_refuse(HEAD PHASES "expect: {rto: 3s}\n",
                "x.yaml:3: expect.rto: no time is ever exactly that: write \"<=3s\"\n");
    must_refuse(HEAD PHASES "expect: {linearizable: '>=true'}\n",
                "x.yaml:3: expect.linearizable: linearizable is true or false, not more or less\n");
    must_refuse(HEAD PHASES "expect: {lost_updates: {write: 0}}\n",
                "x.yaml:3: expect.lost_updates: lost_updates is one figure of the whole run: give "
                "it one limit\n");
    must_refuse(HEAD PHASES "expect: {error_rate: '<1 for 3s'}\n",
                "x.yaml:3: expect.error_rate: only stop_if looks at how long something holds\n");
    must_refuse(HEAD PHASES "stop_if: {lost_updates: 0}\n",
                "x.yaml:3: stop_if.lost_updates: it is known only after the run: put it under "
                "`expect`\n");
}

static void hostile_files(void **state)
{
    (void)state;
    must_refuse("", "x.yaml:1: the file is empty\n");
    must_refuse("[]", "x.yaml:1: expected a scenario, which is a mapping, but this is a list\n");
    must_refuse(HEAD PHASES "---\nname: y\n",
                "x.yaml:4: a second document: a file holds one scenario\n");
    must_refuse(HEAD "name: y\n" PHASES, "x.yaml:2: name: the key is here twice\n");
    must_refuse(HEAD "a: &a [1]\nb: *a\n",
                "x.yaml:2: anchors and aliases (& and *) are not taken: write the value out\n"
                "x.yaml:3: anchors and aliases (& and *) are not taken: write the value out\n");
    must_refuse(HEAD "a: *b\n",
                "x.yaml:2: anchors and aliases (& and *) are not taken: write the value out\n");
    must_refuse(HEAD PHASES "seed: !!int 3\n", "x.yaml:3: tags (!) are not taken: leave it out\n");
    must_refuse(HEAD "? [a]\n: 3\n", "x.yaml:2: a key must be a word, not a list or a mapping\n");
    must_refuse(HEAD PHASES "about: \"a\\0b\"\n", "x.yaml:3: the text holds a NUL\n");
    must_refuse_with(HEAD "phases: [\n", "x.yaml:3: not YAML: ");
    must_refuse_with("name: \xff\n", "not YAML: ");
    must_refuse_with(HEAD
                     "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
                     "x.yaml:2: nested too deeply");
    struct buf many = {0};
    buf_append_text(&many, HEAD "seed: [");
    for (int i = 0; i < 70000; i++)
        buf_append_text(&many, "1,");
    buf_append_text(&many, "1]\n");
    buf_append_u8(&many, 0);
    must_refuse_with((const char *)many.at, "x.yaml:2: the file has too many values");
    buf_reset(&many);
    buf_append_text(&many, HEAD);
    for (int i = 0; i < 600; i++)
        buf_printf(&many, "k%d: 1\n", i);
    buf_append_u8(&many, 0);
    must_refuse_with((const char *)many.at, "the mapping has too many keys");
    buf_reset(&many);
    buf_append_text(&many, HEAD "phases:\n  - for: 1s\n    faults:\n");
    for (int i = 0; i < 1100; i++)
        buf_append_text(&many, "      - {do: heal-all}\n");
    buf_append_u8(&many, 0);
    must_refuse_with((const char *)many.at, "too many faults: 1100, and at most 1024");
    buf_reset(&many);
    while (many.len <= SCENARIO_FILE_MAX)
        buf_append_text(&many, "# nothing but comments\n");
    buf_append_u8(&many, 0);
    must_refuse((const char *)many.at, "x.yaml: too large: a scenario has at most 1048576 bytes\n");
    buf_deinit(&many);
}

static void all_mistakes_at_once_but_not_without_end(void **state)
{
    (void)state;
    must_refuse(HEAD "seed: a\nworkload: {keys: b}\n" PHASES,
                "x.yaml:2: seed: expected a whole number, but this is 'a'\n"
                "x.yaml:3: workload.keys: expected a whole number, from 1 to 1000000, but this is "
                "'b'\n");
    struct buf many = {0};
    buf_append_text(&many, HEAD PHASES);
    for (int i = 0; i < 400; i++)
        buf_printf(&many, "zzzzzzzz%d: 1\n", i);
    buf_append_u8(&many, 0);
    struct scenario scenario;
    struct buf error;
    assert_false(read_text((const char *)many.at, &scenario, &error));
    int lines = 0;
    for (size_t i = 0; i < error.len; i++)
        lines += error.at[i] == '\n';
    assert_int_equal(lines, 21);
    assert_non_null(strstr((const char *)error.at, "x.yaml: and more\n"));
    scenario_deinit(&scenario);
    buf_deinit(&error);
    buf_deinit(&many);
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    static const char *const paths[] = {"/nonexistent/scenario.yaml", "/tmp"};
    for (size_t i = 0; i < array_len(paths); i++) {
        struct scenario scenario;
        struct buf error = {0};
        scenario_init(&scenario);
        assert_false(scenario_load(&scenario, paths[i], &error));
        buf_append_u8(&error, 0);
        assert_non_null(strstr((const char *)error.at, "cannot be read: "));
        scenario_deinit(&scenario);
        buf_deinit(&error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_values),
        cmocka_unit_test(clusters),
        cmocka_unit_test(workloads),
        cmocka_unit_test(phases),
        cmocka_unit_test(faults),
        cmocka_unit_test(limits),
        cmocka_unit_test(hostile_files),
        cmocka_unit_test(all_mistakes_at_once_but_not_without_end),
        cmocka_unit_test(files_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
