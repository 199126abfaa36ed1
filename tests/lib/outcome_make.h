/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OUTCOME_MAKE_H
#define TESTS_OUTCOME_MAKE_H

/* Outcomes made by hand: a scenario from a line of YAML, and a run of ten seconds with a fault in
 * the middle, to which a test adds what its clients saw. */

#include "tests/lib/check/history_make.h"

#include <stdio.h>

#include "chaos/run/outcome.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

struct made {
    struct scenario scenario;
    struct outcome outcome;
};

/* Two Regions, a and b of these comments: us-east-1 and eu-west-1. `expect` is flow YAML. */
static inline void make_run(struct made *made, const char *mode, const char *workload,
                            const char *expect)
{
    char text[2000];
    struct buf error = {0};
    bool strong = strcmp(mode, "strong") == 0;
    snprintf(text, sizeof(text),
             "name: made\n"
             "cluster: {mode: %s, regions: [us-east-1, %s]%s}\n"
             "workload: %s\n"
             "phases: [{name: only, for: 10s, faults: [{at: 5s, do: disk.wipe, region: us-east-1, "
             "id: loss}]}]\n"
             "expect: %s\n",
             mode, strong ? "us-east-2" : "eu-west-1", strong ? ", witness: us-west-2" : "",
             workload, expect);
    scenario_init(&made->scenario);
    if (!scenario_read(&made->scenario, "made.yaml", bytes_text(text), &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    buf_deinit(&error);
    outcome_init(&made->outcome, &made->scenario);
    struct outcome *outcome = &made->outcome;
    outcome->began_ns = 0;
    outcome->ended_ns = 12 * SECOND_NS;
    outcome->phases = arena_array(&outcome->arena, struct outcome_phase, 1);
    outcome->phases[0] = (struct outcome_phase){.name = "only", .to_ns = 10 * SECOND_NS};
    outcome->phase_count = 1;
}

static inline struct outcome_fault *make_fault(struct made *made, enum scenario_verb verb,
                                               uint64_t from_s, uint64_t to_s)
{
    struct outcome_fault *fault = outcome_fault(&made->outcome);
    *fault = (struct outcome_fault){.id = "loss",
                                    .verb = (uint8_t)verb,
                                    .target = "us-east-1",
                                    .regions = 1,
                                    .from_ns = from_s * SECOND_NS,
                                    .to_ns = to_s * SECOND_NS,
                                    .evidence = "seen",
                                    .effective = true};
    return fault;
}

static inline void free_run(struct made *made)
{
    outcome_deinit(&made->outcome);
    scenario_deinit(&made->scenario);
}

#define LWW "{kind: lww-conflict, keys: 4, mix: {write: 0.5, read_eventual: 0.5}}"
#define SWAP "{kind: swap-register, keys: 4}"

static inline void judge(struct made *made)
{
    outcome_judge(&made->outcome, NULL);
}

static inline void expect_exit(struct made *made, enum outcome_exit exit, const char *part)
{
    if (made->outcome.exit != exit || strstr(made->outcome.verdict, part) == NULL)
        fail_msg("expected exit %d \"%s\", got %d \"%s\"", exit, part, made->outcome.exit,
                 made->outcome.verdict);
}

static inline double actual(const struct made *made, uint32_t index)
{
    const struct outcome_expect *expect = &made->outcome.expects[index];
    if (!expect->known)
        fail_msg("%s is not known", expect->expect->text);
    return expect->actual;
}

#endif
