/* SPDX-License-Identifier: Apache-2.0 */
/* Where an outcome is kept while it grows. Whatever it holds is in its arena, but for what a
 * checker owns; arrays that grow are copied to twice their size there. */

#include "chaos/run/outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    EVENTS_MAX = 65536,           /* beyond it nothing is noted any more */
    VALUES_MAX = 32 * 1024 * 1024 /* of all lists that were read */
};

void outcome_init(struct outcome *outcome, const struct scenario *scenario)
{
    *outcome = (struct outcome){.scenario = scenario,
                                .scenario_text = "",
                                .scenario_file = "",
                                .version = TIDEMARK_VERSION,
                                .seed = scenario->seed,
                                .lost_ns = RPO_NEVER,
                                .region_rpo_count = UINT64_MAX,
                                .verdict = ""};
    uint64_t operations = scenario->budgets.operations;
    arena_init(&outcome->arena);
    history_init(&outcome->history,
                 operations < HISTORY_FULL ? (uint32_t)operations : HISTORY_FULL - 1, VALUES_MAX);
    outcome->faults = arena_array(&outcome->arena, struct outcome_fault, SCENARIO_FAULTS_MAX);
}

void outcome_deinit(struct outcome *outcome)
{
    for (uint32_t i = 0; i < outcome->check_count; i++)
        verdict_deinit(&outcome->checks[i].verdict);
    rpo_losses_deinit(&outcome->losses);
    rto_table_deinit(&outcome->rto);
    staleness_table_deinit(&outcome->staleness);
    chain_forks_deinit(&outcome->forks);
    history_deinit(&outcome->history);
    arena_deinit(&outcome->arena);
    *outcome = (struct outcome){0};
}

static const char *text_of(struct outcome *outcome, const char *format, va_list arguments)
{
    char text[1024];
    int len = vsnprintf(text, sizeof(text), format, arguments);
    check(len >= 0);
    return bytes_copy_text(&outcome->arena, bytes_text(text));
}

const char *outcome_text(struct outcome *outcome, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = text_of(outcome, format, arguments);
    va_end(arguments);
    return text;
}

void outcome_event(struct outcome *outcome, uint64_t at_ns, uint8_t region, const char *kind,
                   const char *format, ...)
{
    if (outcome->event_count == EVENTS_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    const char *text = text_of(outcome, format, arguments);
    va_end(arguments);
    outcome->events = arena_grow(&outcome->arena, outcome->events, outcome->event_count,
                                 &outcome->event_cap, sizeof(*outcome->events));
    outcome->events[outcome->event_count++] = (struct outcome_event){at_ns, region, kind, text};
}

struct outcome_fault *outcome_fault(struct outcome *outcome)
{
    return outcome->fault_count == SCENARIO_FAULTS_MAX ? NULL
                                                       : &outcome->faults[outcome->fault_count++];
}

struct outcome_sample *outcome_sample(struct outcome *outcome, uint64_t at_ns)
{
    outcome->samples = arena_grow(&outcome->arena, outcome->samples, outcome->sample_count,
                                  &outcome->sample_cap, sizeof(*outcome->samples));
    struct outcome_sample *sample = &outcome->samples[outcome->sample_count++];
    sample->at_ns = at_ns;
    return sample;
}

bool outcome_fell_short(const struct outcome *outcome)
{
    return (double)outcome->begun_per_s < 0.9 * (double)outcome->asked_per_s;
}

/* ---- Losses of disks ---- */

void outcome_lost(struct outcome *outcome, uint64_t at_ns, uint8_t region,
                  enum outcome_loss_why why, bool kept)
{
    for (uint32_t i = 0; i < outcome->disk_loss_count; i++) {
        struct outcome_loss *other = &outcome->disk_losses[i];
        if (other->region == region && other->at_ns == at_ns && other->why == why)
            return;
        if (other->region == region && kept)
            other->kept = false; /* the later one is kept in its place */
    }
    outcome->disk_losses =
        arena_grow(&outcome->arena, outcome->disk_losses, outcome->disk_loss_count,
                   &outcome->disk_loss_cap, sizeof(*outcome->disk_losses));
    outcome->disk_losses[outcome->disk_loss_count++] =
        (struct outcome_loss){at_ns, region, (uint8_t)why, kept};
    outcome->lost_regions |= UINT64_C(1) << region;
    if (outcome->lost_ns == RPO_NEVER || at_ns > outcome->lost_ns)
        outcome->lost_ns = at_ns;
}

const char *outcome_loss_text(enum outcome_loss_why why)
{
    switch (why) {
    case OUTCOME_LOSS_WIPED:
        return "its disk was wiped";
    case OUTCOME_LOSS_DISCARDED:
        return "its damaged store was set aside: it begins empty";
    case OUTCOME_LOSS_DAMAGED:
        return "it serves what the damage has left of its store";
    case OUTCOME_LOSS_UNSYNCED:
        return "it lost what was not synced";
    case OUTCOME_LOSS_DOWN:
        return "it did not come back";
    case OUTCOME_LOSS_WHY_COUNT:
        break;
    }
    unreachable();
}

uint64_t outcome_death_ns(const struct outcome *outcome, uint8_t region, uint64_t now_ns)
{
    uint64_t death_ns = now_ns;
    for (uint32_t i = outcome->event_count; i > 0; i--) {
        const struct outcome_event *event = &outcome->events[i - 1];
        if (event->region != region)
            continue;
        if (strcmp(event->kind, "down") == 0)
            death_ns = event->at_ns;
        else if (strcmp(event->kind, "up") == 0)
            break;
    }
    return death_ns;
}
