/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_SCENARIO_REFUSED_H
#define TESTS_LIB_SCENARIO_REFUSED_H

/* A scenario file, as text, and what `tidemark chaos check` must say of it. */

#include "chaos/scenario/scenario.h"

/* error ends with a NUL; both are to be deinited. */
bool read_text(const char *yaml, struct scenario *scenario, struct buf *error);
void must_take(const char *yaml);
/* The whole of the error must be this. */
void must_refuse(const char *yaml, const char *wanted);
/* This must be in it. */
void must_refuse_with(const char *yaml, const char *part);

#define HEAD "name: x\n"
#define PHASES "phases: [{for: 1s}]\n"
#define FAULT(text) HEAD "phases:\n  - for: 9s\n    faults:\n      - {" text "}\n"
#define STRONG_FAULT(text)                                                                         \
    HEAD "cluster: {mode: strong, regions: [us-east-1, us-east-2], witness: us-west-2}\n"          \
         "phases: [{for: 9s, faults: [{" text "}]}]\n"

#endif
