/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REPORT_OUTCOMES_H
#define TESTS_REPORT_OUTCOMES_H

/* Outcomes of runs that never were: a small model of a cluster answers operations, a checker judges
 * what its clients saw. The same kind gives the same outcome each time. */

#include "chaos/run/outcome.h"

#define SAMPLES(X)                                                                                 \
    X(PASS, "pass")       /* strong; the leader's Region is killed, and nothing is lost */         \
    X(LOST, "lost")       /* eventual; a split, a lost Region, lost updates */                     \
    X(ILLEGAL, "illegal") /* strong; one read is stale */                                          \
    X(SLOW, "slow")       /* as PASS, and a limit on time is broken */                             \
    X(DUD, "dud")         /* as PASS, and a fault hit nothing */                                   \
    X(UNKNOWN, "unknown") /* as PASS, and an expectation has nothing to measure */                 \
    X(EMPTY, "empty")     /* nothing was sent */                                                   \
    X(HOSTILE, "hostile") /* as LOST, with texts that mean harm */                                 \
    X(MANY, "many")       /* eight Regions, hundreds of faults */                                  \
    X(HUGE, "huge")       /* a million operations */

#define SAMPLE_ENUMERATOR(name, text) OUTCOMES_##name,
enum outcomes_kind { SAMPLES(SAMPLE_ENUMERATOR) OUTCOMES_COUNT };

struct sample_run {
    struct scenario scenario;
    struct outcome outcome;
};

const char *outcomes_name(enum outcomes_kind kind);
void outcomes_make(enum outcomes_kind kind, struct sample_run *run);
void outcomes_free(struct sample_run *run);

#endif
