/* SPDX-License-Identifier: Apache-2.0 */
/* Drawn faults: the same from the same seed, different from others, inside their phase, not more at
 * a time than asked for, and such as a file could have had. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "chaos/scenario/random.h"
#include "conflict/base/check.h"

#define WEIGHTS_EVENTUAL                                                                           \
    "link.cut: 1, link.blackhole: 1, link.reset: 1, link.delay: 1, link.jitter: 1, "               \
    "link.bandwidth: 1, link.flap: 1, link.loss: 1, link.duplicate: 1, link.corrupt: 1, "          \
    "link.reorder: 1, "                                                                            \
    "partition: 1, replication.pause: 1, client.block: 1, process.kill: 1, process.restart: 1, "   \
    "process.restart-loop: 1, process.hiccup: 1, disk.truncate: 1, "                               \
    "process.pause: 1, clock.offset: 1, clock.rate: 1, clock.step: 1, clock.strobe: 1, "           \
    "disk.full: 1, disk.slow: 1, disk.fsync_error: 1, disk.io_error: 1, disk.bitflip: 1, "         \
    "disk.torn_write: 1, disk.wipe: 1, api.error: 1, api.throttle: 1"

static void read_scenario(const char *yaml, struct scenario *scenario)
{
    struct buf error = {0};
    scenario_init(scenario);
    if (!scenario_read(scenario, "x.yaml", bytes_text(yaml), &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    buf_deinit(&error);
}

/* All that is drawn, as text. */
static void print_all(const struct scenario *scenario, struct buf *to)
{
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        for (uint32_t j = 0; j < scenario->phases[i].fault_count; j++) {
            const struct scenario_fault *fault = &scenario->phases[i].faults[j];
            buf_printf(to, "%u %llu %s ", i, (unsigned long long)fault->at_ns, fault->id);
            scenario_fault_print(&scenario->cluster, fault, to);
            buf_append_text(to, "\n");
        }
    }
}

static const char two_phases[] = "name: x\n"
                                 "phases:\n"
                                 "  - {for: 10s, random: {count: 8, weights: {" WEIGHTS_EVENTUAL
                                 "}}, faults: [{at: 1s, do: process.pause, region: all, for: 1s, "
                                 "id: r1}]}\n"
                                 "  - {for: 20s, random: {count: 20, at_once: 3, swarm: true, "
                                 "weights: {" WEIGHTS_EVENTUAL "}}}\n";

static void the_seed_decides_everything(void **state)
{
    (void)state;
    struct scenario a, b;
    struct buf first = {0}, second = {0}, other = {0};
    read_scenario(two_phases, &a);
    read_scenario(two_phases, &b);
    random_expand(&a, 5);
    print_all(&a, &first);
    /* Drawing anew replaces what was drawn. */
    random_expand(&b, 6);
    print_all(&b, &other);
    random_expand(&b, 5);
    print_all(&b, &second);
    assert_true(bytes_equal(buf_view(&first), buf_view(&second)));
    assert_false(bytes_equal(buf_view(&first), buf_view(&other)));
    assert_int_equal(a.phases[0].fault_count, 9);
    assert_int_equal(a.phases[1].fault_count, 20);
    buf_deinit(&first);
    buf_deinit(&second);
    buf_deinit(&other);
    scenario_deinit(&a);
    scenario_deinit(&b);
}

static void one_phase_does_not_disturb_another(void **state)
{
    (void)state;
    static const char longer[] = "name: x\n"
                                 "phases:\n"
                                 "  - {for: 11s, random: {count: 3, weights: {link.cut: 1}}}\n"
                                 "  - {for: 20s, random: {count: 20, at_once: 3, swarm: true, "
                                 "weights: {" WEIGHTS_EVENTUAL "}}}\n";
    struct scenario a, b;
    read_scenario(two_phases, &a);
    read_scenario(longer, &b);
    random_expand(&a, 9);
    random_expand(&b, 9);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(a.phases[1].faults[i].verb, b.phases[1].faults[i].verb);
        assert_int_equal(a.phases[1].faults[i].at_ns, b.phases[1].faults[i].at_ns);
    }
    scenario_deinit(&a);
    scenario_deinit(&b);
}

static void equal_phases_draw_different_faults(void **state)
{
    (void)state;
    struct scenario scenario;
    uint32_t same = 0;
    read_scenario("name: x\n"
                  "phases:\n"
                  "  - {for: 60s, random: {count: 9, weights: {link.cut: 1}}}\n"
                  "  - {for: 60s, random: {count: 9, weights: {link.cut: 1}}}\n",
                  &scenario);
    random_expand(&scenario, 3);
    for (uint32_t i = 0; i < 9; i++)
        same += scenario.phases[0].faults[i].at_ns == scenario.phases[1].faults[i].at_ns;
    assert_true(same < 9);
    scenario_deinit(&scenario);
}

static uint64_t end_of(const struct scenario_fault *fault)
{
    return fault->at_ns + (fault->verb == VERB_PROCESS_RESTART ? fault->down_ns : fault->for_ns);
}

static uint32_t most_at_once(const struct scenario_phase *phase)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < phase->fault_count; i++) {
        uint32_t holding = 0;
        for (uint32_t j = 0; j < phase->fault_count; j++)
            holding += phase->faults[j].drawn && phase->faults[j].at_ns <= phase->faults[i].at_ns &&
                       end_of(&phase->faults[j]) > phase->faults[i].at_ns;
        most = holding > most ? holding : most;
    }
    return most;
}

static void check_drawn(const struct scenario *scenario, const struct scenario_phase *phase,
                        const struct scenario_fault *fault)
{
    const struct scenario_verb_info *info = scenario_verb_info(fault->verb);
    uint8_t count = scenario->cluster.region_count;
    assert_true(fault->id != NULL);
    assert_true(phase->random.weight[fault->verb] > 0);
    assert_true(end_of(fault) <= phase->for_ns);
    assert_int_equal(fault->given & info->required, info->required & ~PARAM_BIT(FILES));
    if (info->lasting == VERB_ONCE) {
        assert_int_equal(fault->for_ns, 0);
    } else {
        assert_in_range(fault->for_ns, phase->random.hold_min_ns, phase->random.hold_max_ns);
    }
    if ((fault->given & LINK_ENDS) == LINK_ENDS) {
        assert_true(fault->from < count && fault->to < count);
        assert_int_not_equal(fault->from, fault->to);
    }
    if (fault->verb == VERB_LINK_FLAP)
        assert_true(fault->down_ns > 0 && fault->down_ns < fault->period_ns);
    if (fault->verb == VERB_CLIENT_BLOCK)
        assert_true(fault->region < scenario->cluster.data_count);
    if ((fault->given & PARAM_BIT(PERCENT)) != 0)
        assert_true(fault->share > 0 && fault->share <= 0.5);
}

/* Every fault of many seeds, in both modes and in a phase so short that holds must shrink. */
static void drawn_faults_are_such_as_a_file_could_have(void **state)
{
    (void)state;
    static const char strong[] =
        "name: x\n"
        "cluster: {mode: strong, regions: [us-east-1, us-east-2], witness: us-west-2}\n"
        "phases:\n"
        "  - {for: 6s, random: {count: 10, hold_min: 500ms, hold_max: 5s, weights: "
        "{" WEIGHTS_EVENTUAL ", leader.kill: 1, leader.transfer: 1}}}\n"
        "  - {for: 9s, random: {count: 20, at_once: 3, swarm: true, weights: {" WEIGHTS_EVENTUAL
        "}}}\n";
    static const char *const texts[] = {two_phases, strong};
    bool seen[SCENARIO_VERB_COUNT] = {false};
    for (size_t t = 0; t < array_len(texts); t++) {
        struct scenario scenario;
        read_scenario(texts[t], &scenario);
        for (uint64_t seed = 0; seed < 200; seed++) {
            random_expand(&scenario, seed);
            for (uint32_t i = 0; i < scenario.phase_count; i++) {
                const struct scenario_phase *phase = &scenario.phases[i];
                assert_true(most_at_once(phase) <= phase->random.at_once);
                for (uint32_t j = 0; j < phase->fault_count; j++) {
                    assert_true(j == 0 || phase->faults[j - 1].at_ns <= phase->faults[j].at_ns);
                    if (!phase->faults[j].drawn)
                        continue;
                    seen[phase->faults[j].verb] = true;
                    check_drawn(&scenario, phase, &phase->faults[j]);
                }
            }
        }
        scenario_deinit(&scenario);
    }
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++)
        assert_int_equal(seen[i], random_can_draw(i, true));
}

static void weights_are_kept_and_zero_means_never(void **state)
{
    (void)state;
    struct scenario scenario;
    uint32_t cuts = 0, others = 0;
    read_scenario("name: x\nphases: [{for: 600s, random: {count: 200, weights: {link.cut: 3, "
                  "process.pause: 1, process.kill: 0}}}]\n",
                  &scenario);
    for (uint64_t seed = 0; seed < 50; seed++) {
        random_expand(&scenario, seed);
        for (uint32_t i = 0; i < 200; i++) {
            assert_int_not_equal(scenario.phases[0].faults[i].verb, VERB_PROCESS_KILL);
            if (scenario.phases[0].faults[i].verb == VERB_LINK_CUT)
                cuts++;
            else
                others++;
        }
    }
    assert_in_range(cuts, 7300, 7700); /* 7500 of 10000; six sigma are 260 */
    assert_int_equal(cuts + others, 10000);
    scenario_deinit(&scenario);
}

static void a_swarm_leaves_verbs_out(void **state)
{
    (void)state;
    struct scenario scenario;
    uint32_t least = SCENARIO_VERB_COUNT, most = 0;
    read_scenario("name: x\nphases: [{for: 600s, random: {count: 200, swarm: true, weights: "
                  "{" WEIGHTS_EVENTUAL "}}}]\n",
                  &scenario);
    for (uint64_t seed = 0; seed < 50; seed++) {
        bool seen[SCENARIO_VERB_COUNT] = {false};
        uint32_t kinds = 0;
        random_expand(&scenario, seed);
        for (uint32_t i = 0; i < 200; i++)
            seen[scenario.phases[0].faults[i].verb] = true;
        for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++)
            kinds += seen[i];
        least = kinds < least ? kinds : least;
        most = kinds > most ? kinds : most;
    }
    assert_in_range(least, 1, 13);
    assert_in_range(most, 15, 27);
    scenario_deinit(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed_decides_everything),
        cmocka_unit_test(one_phase_does_not_disturb_another),
        cmocka_unit_test(equal_phases_draw_different_faults),
        cmocka_unit_test(drawn_faults_are_such_as_a_file_could_have),
        cmocka_unit_test(weights_are_kept_and_zero_means_never),
        cmocka_unit_test(a_swarm_leaves_verbs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
