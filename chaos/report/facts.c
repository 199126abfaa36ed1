/* SPDX-License-Identifier: Apache-2.0 */
/* Words for what an outcome holds. */

#include "chaos/report/facts.h"

#include <inttypes.h>

#include "chaos/run/judge.h"
#include "chaos/run/measure.h"
#include "conflict/base/check.h"

const char *facts_exit(enum outcome_exit exit)
{
    switch (exit) {
    case OUTCOME_PASS:
        return "pass";
    case OUTCOME_WRONG:
        return "wrong";
    case OUTCOME_HARNESS:
        return "harness";
    case OUTCOME_UNKNOWN:
        return "unknown";
    case OUTCOME_SLOW:
        return "slow";
    }
    unreachable();
}

const char *facts_region(const struct outcome *outcome, uint8_t region)
{
    const struct scenario_cluster *cluster = &outcome->scenario->cluster;
    return region < cluster->region_count ? cluster->region[region].name : "";
}

const struct outcome_fault *facts_dud(const struct outcome *outcome)
{
    for (uint32_t i = 0; i < outcome->fault_count; i++) {
        const struct outcome_fault *fault = &outcome->faults[i];
        if ((fault->refused || !fault->effective) && !judge_excuses(outcome, fault))
            return fault;
    }
    return NULL;
}

void facts_command(const struct outcome *outcome, struct buf *to)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
    const char *file =
        *outcome->scenario_file != 0 ? outcome->scenario_file : outcome->scenario->name;
    buf_append_text(to, "tidemark chaos run ");
    if (file[strspn(file, plain)] == 0 && *file != '-') {
        buf_append_text(to, file);
    } else { /* for a shell */
        buf_append_text(to, *file == '-' ? "'./" : "'");
        for (; *file != 0; file++)
            if (*file == '\'')
                buf_append_text(to, "'\\''");
            else
                buf_append_u8(to, (uint8_t)*file);
        buf_append_u8(to, '\'');
    }
    buf_printf(to, " --seed %" PRIu64, outcome->seed);
}

void facts_operation(const struct outcome *outcome, uint32_t op, struct buf *to)
{
    const char *names[HISTORY_REGIONS_MAX];
    for (uint32_t i = 0; i < HISTORY_REGIONS_MAX; i++)
        names[i] = facts_region(outcome, (uint8_t)i);
    history_print(&outcome->history, op, names, outcome->began_ns, to);
}

void facts_expect(const struct outcome_expect *expect, struct buf *to)
{
    buf_append_text(to, expect->expect->text);
    buf_append_text(to, ": ");
    if (expect->known)
        measure_print((enum scenario_metric)expect->expect->metric, expect->actual, to);
    else
        buf_append_text(to, "there was nothing to measure");
}

const char *facts_loss(enum rpo_class class)
{
    switch (class) {
    case RPO_UNREPLICATED:
        return "unreplicated";
    case RPO_LWW:
        return "lww";
    case RPO_OTHER:
        return "other";
    }
    unreachable();
}

const char *const facts_disk_losses[] = {
    [OUTCOME_LOSS_WIPED] = "wiped",     [OUTCOME_LOSS_DISCARDED] = "discarded",
    [OUTCOME_LOSS_DAMAGED] = "damaged", [OUTCOME_LOSS_UNSYNCED] = "unsynced",
    [OUTCOME_LOSS_DOWN] = "down",       [OUTCOME_LOSS_WHY_COUNT] = NULL,
};

struct bytes facts_verdict(const struct outcome_check *check)
{
    return buf_view(&check->verdict.text);
}
