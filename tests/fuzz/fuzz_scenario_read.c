/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario files: any text is refused with a message or becomes a scenario in which everything is
 * within its bounds, so that whoever runs it need not look again. */

#include "chaos/scenario/random.h"
#include "conflict/base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_region(const struct scenario *scenario, uint8_t region)
{
    check(region < scenario->cluster.region_count || region >= SCENARIO_REGION_LEADER);
    check(region != SCENARIO_REGION_LEADER || scenario->cluster.mode == SCENARIO_STRONG);
}

static void check_fault(const struct scenario *scenario, const struct scenario_fault *fault)
{
    const struct scenario_verb_info *info = scenario_verb_info(fault->verb);
    struct buf text;
    uint8_t cuts[SCENARIO_REGIONS_MAX];
    check((fault->given & ~(info->required | info->optional)) == 0);
    check((fault->given & info->required) == info->required);
    check(info->lasting != VERB_ONCE || fault->for_ns == 0);
    check(fault->id != NULL && *fault->id != 0);
    check(fault->share >= 0 && fault->share <= 1);
    check_region(scenario, fault->region);
    check_region(scenario, fault->from);
    check_region(scenario, fault->to);
    if (fault->verb == VERB_PARTITION)
        scenario_partition(&scenario->cluster, fault, 1, cuts);
    buf_init(&text);
    scenario_fault_print(&scenario->cluster, fault, &text);
    buf_deinit(&text);
}

static void check_scenario(const struct scenario *scenario)
{
    const struct scenario_cluster *cluster = &scenario->cluster;
    check(cluster->region_count >= 1 && cluster->region_count <= SCENARIO_REGIONS_MAX);
    check(cluster->region_count - cluster->data_count <= 1);
    check(cluster->mode != SCENARIO_STRONG || cluster->region_count == 3);
    check(scenario->workload.kind < SCENARIO_WORKLOAD_COUNT);
    check((scenario->workload.kind == SCENARIO_EXEC) == (scenario->workload.exec != NULL));
    check(scenario->phase_count >= 1 && scenario->phase_count <= SCENARIO_PHASES_MAX);
    uint32_t faults = 0;
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        const struct scenario_phase *phase = &scenario->phases[i];
        check(phase->for_ns > 0 || phase->has_until);
        check(phase->writers >> cluster->data_count == 0);
        for (uint32_t j = 0; j < phase->fault_count; j++)
            check_fault(scenario, &phase->faults[j]);
        faults += phase->fault_count;
    }
    check(faults <= SCENARIO_FAULTS_MAX);
    for (uint32_t i = 0; i < scenario->expect.count; i++) {
        check(scenario->expect.at[i].metric < SCENARIO_METRIC_COUNT);
        (void)scenario_expect_holds(&scenario->expect.at[i], 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scenario scenario;
    struct buf error;
    buf_init(&error);
    scenario_init(&scenario);
    bool good = scenario_read(&scenario, "fuzz.yaml", bytes_make(data, size), &error);
    check(good == (error.len == 0));
    if (good) {
        random_expand(&scenario, scenario.seed);
        check_scenario(&scenario);
    }
    scenario_deinit(&scenario);
    buf_deinit(&error);
    return 0;
}
