/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_SEEDS_H
#define TESTS_SIM_SEEDS_H

/* What the simulators' programs share: a range of seeds or a file of them is run, each seed twice,
 * which must end in the same hash. On a violation the seed is printed, what was wrong, the details
 * and the command that replays it.
 *
 *   PROGRAM [--first N] [--seeds N] [--file FILE] [--once] [--trace] [--plant NAME]
 *
 * --file runs the seeds that a file names, one a line, with what each once found behind it. --once
 * leaves out the second run. With --plant (in a build that has the bugs) the run must find a
 * violation, or be stopped by a core's own check, and prints after how many seeds. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

struct seed_result {
    const char *violation; /* NULL: ok */
    struct buf detail;     /* the caller's of run() */
    uint64_t hash, events;
};

struct seed_suite {
    const char *program;
    /* `count`: what happened is added to the suite's totals. */
    void (*run)(uint64_t seed, bool trace, bool count, struct seed_result *ret);
    void (*print_totals)(void);
};

/* The program's exit status. */
int seeds_main(int argc, char **argv, const struct seed_suite *suite);

#endif
