/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMULATE_TRIAL_H
#define SIMULATE_TRIAL_H

/* One run in a process of its own: a core that finds itself in an impossible state aborts, and that
 * is a finding like any other, to be replayed and made smaller. What the run tells lies in memory
 * that both processes share, so it is there whatever the end was. */

#include <stdbool.h>

#include "chaos/scenario/scenario.h"
#include "chaos/sim/world.h"

enum { TRIAL_TEXT_MAX = 512, TRIAL_DETAIL_MAX = 1 << 16 };

/* What is run: a world by its seeds, or a scenario. */
struct subject {
    const struct sim_world *world;   /* or NULL: */
    const struct scenario *scenario; /* its faults drawn */
    const char *scenario_file;
    const char *report; /* of a scenario: where its page goes, and the command that it names */
    const char *again;
    const char *lanes[SCENARIO_REGIONS_MAX];
};
const char *subject_name(const struct subject *subject);

struct trial {
    bool aborted, violated;
    bool unwritten;                 /* its page could not be */
    int exit_code;                  /* of a scenario: enum outcome_exit */
    char violation[TRIAL_TEXT_MAX]; /* what is wrong, for people; of a scenario its verdict */
    char key[TRIAL_TEXT_MAX];       /* the same for two runs that fail in the same way */
    char detail[TRIAL_DETAIL_MAX];
    uint64_t hash, events, virtual_ns;
    uint64_t figures[SIM_FIGURES_MAX];
    struct sim_told told;
    struct sim_log log; /* its entries: */
    struct sim_log_entry entries[SIM_LOG_MAX];
};

/* Shared with the processes of its runs. */
struct trial *trial_new(void);
struct trial *trial_free(struct trial *trial);
/* replay's log and told are set here. logged: messages up to until_ns are kept. */
void trial_run(const struct subject *subject, const struct sim_replay *replay, bool logged,
               uint64_t until_ns, struct trial *ret);

#endif
