/* SPDX-License-Identifier: Apache-2.0 */
/* See minimise.h. */

#include "chaos/simulate/minimise.h"

#include <string.h>

#include "chaos/sim/ddmin.h"

enum { LUCKS = 4, TRIES_MAX = 150, SHORTER_MAX = 16 };

struct search {
    const struct subject *subject;
    struct sim_replay best;
    struct trial *found; /* the run of best */
    struct trial *tried;
    char key[TRIAL_TEXT_MAX];
};

/* True: it fails in the same way, and is the best so far. */
static bool fails(struct search *search, struct sim_replay replay)
{
    trial_run(search->subject, &replay, false, 0, search->tried);
    if (!search->tried->violated || strcmp(search->tried->key, search->key) != 0)
        return false;
    struct trial *found = search->tried;
    search->tried = search->found;
    search->found = found;
    search->best = replay;
    return true;
}

static bool fails_with(void *context, uint64_t faults)
{
    struct search *search = context;
    struct sim_replay replay = search->best;
    replay.faults = faults;
    if (fails(search, replay))
        return true;
    for (uint64_t luck = 0; luck < LUCKS; luck++) {
        replay.luck = luck;
        if (luck != search->best.luck && fails(search, replay))
            return true;
    }
    return false;
}

/* Not every shorter run fails where a longer one does, so this is no binary search in earnest; it
 * ends where it no longer helps. */
static void shorten(struct search *search)
{
    uint64_t passes = 0, sufficient = search->found->told.operations;
    for (int i = 0; i < SHORTER_MAX && sufficient > passes + 1; i++) {
        struct sim_replay replay = search->best;
        replay.operations_max = passes + (sufficient - passes) / 2;
        if (fails(search, replay))
            sufficient = replay.operations_max;
        else
            passes = replay.operations_max;
    }
}

static uint64_t drawn_faults(const struct sim_told *told)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < told->fault_count; i++)
        set |= UINT64_C(1) << told->faults[i].number;
    return set;
}

void minimise(const struct subject *subject, struct sim_replay *replay, struct trial *failed)
{
    struct trial *spare[2] = {trial_new(), trial_new()};
    struct search search = {
        .subject = subject, .best = *replay, .found = spare[0], .tried = spare[1]};
    memcpy(search.key, failed->key, sizeof(search.key));
    if (fails(&search,
              *replay)) { /* else it is not the same run twice, and there is no sense in it */
        ddmin(drawn_faults(&search.found->told), TRIES_MAX, fails_with, &search);
        shorten(&search);
        *replay = search.best;
        memcpy(failed, search.found, sizeof(*failed));
        failed->log.at = failed->entries;
    }
    trial_free(spare[0]);
    trial_free(spare[1]);
}

void minimise_log(const struct subject *subject, const struct sim_replay *replay,
                  struct trial *failed)
{
    uint64_t until = failed->violated && !failed->aborted ? failed->told.violated_ns : UINT64_MAX;
    trial_run(subject, replay, true, until, failed);
}
