/* SPDX-License-Identifier: Apache-2.0 */
/* A tombstone is kept until every Region has it and for a grace after that. Zombies, deletes that
 * come undone, would show only then; so once all is quiet, all clocks are moved on past the grace,
 * and the tables are scanned again when no Region has a tombstone left. */

#include "chaos/run/run_internal.h"
#include "conflict/base/check.h"

#define AGE_NS (30 * RUN_SECOND_NS) /* tombstones are looked at every ten seconds */
#define AGE_OFFSET_MS "7200000"     /* twice the grace */

bool age_is_wanted(const struct run *run)
{
    bool asked = run->scenario->workload.mix.erase > 0;
    for (uint32_t i = 0; i < run->scenario->expect.count; i++)
        asked = asked || run->scenario->expect.at[i].metric == METRIC_ZOMBIES;
    return asked && run->scenario->cluster.mode == SCENARIO_EVENTUAL;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct client_request **slot = context;
    (void)answer; /* a Region whose clock was not moved keeps its tombstones, and that shows */
    *slot = NULL;
}

void age_begin(struct run *run)
{
    for (uint32_t i = 0; i < run->cluster.site_count; i++) {
        struct site *site = &run->cluster.sites[i];
        if (site->witness || site->state != SITE_RUNNING)
            continue;
        const struct http_header headers[] = {
            {bytes_literal("host"), bytes_text(site->dial)},
            {bytes_literal("content-type"), bytes_literal("application/json")},
        };
        const struct client_call call = {
            .method = bytes_literal("PUT"),
            .path = bytes_literal("/tidemark/clock"),
            .headers = headers,
            .header_count = array_len(headers),
            .body = bytes_literal("{\"offset_ms\": " AGE_OFFSET_MS ", \"rate_ppm\": 0}"),
            .timeout_ms = 5000};
        run->aging[i] = client_send(site->admin, &call, on_answer, &run->aging[i]);
    }
}

void age_tick(struct run *run)
{
    for (uint32_t i = 0; i < run->cluster.site_count; i++)
        if (run->aging[i] != NULL)
            return;
    uint64_t waited_ns = run->loop.mono_ns - run->stage_ns;
    if (watch_tombstones(run->watch, run->stage_ns) == 0) {
        stage_enter(run, STAGE_RESCAN);
    } else if (waited_ns > AGE_NS) {
        outcome_event(&run->outcome, run->loop.mono_ns, SCENARIO_REGION_NONE, "note",
                      "some tombstones have not gone, so zombies were not looked for");
        stage_enter(run, STAGE_RECOUNT);
    }
}

void age_end(struct run *run)
{
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++)
        if (run->aging[i] != NULL)
            client_cancel(run->aging[i]);
}
