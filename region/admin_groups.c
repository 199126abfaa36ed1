/* SPDX-License-Identifier: Apache-2.0 */
/* The consensus groups of strong tables, as status and metrics tell of them. A group is one
 * partition of one table; the figures are this member's own, so where it lags they are old. */

#include <inttypes.h>

#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/admin.h"
#include "region/core/item_json.h"

/* Beyond it, metrics count groups and do not list them: a collector keeps each series for good. */
enum { GROUPS_LISTED_MAX = 1000 };

static const char *const standing_names[] = {
    [CONSENSUS_FULL] = "full",
    [CONSENSUS_RECOVERING] = "recovering",
    [CONSENSUS_REBUILDING] = "rebuilding",
};

static const char *true_or_false(bool value)
{
    return value ? "true" : "false";
}

static void write_group(const struct region_group *group, struct buf *to)
{
    buf_append_text(to, "{\"table\":");
    json_write_string(to, bytes_text(group->table->name));
    buf_printf(to,
               ",\"partition\":%u,\"members\":[\"%s\",\"%s\",\"%s\"],\"leader\":", group->partition,
               region_id_name(group->members[0]), region_id_name(group->members[1]),
               region_id_name(group->members[2]));
    if (group->leader == REGION_ID_NONE)
        buf_append_text(to, "null");
    else
        buf_printf(to, "\"%s\"", region_id_name(group->leader));
    buf_printf(
        to,
        ",\"leads\":%s,\"serving\":%s,\"witness\":%s,\"standing\":\"%s\",\"quiet\":%s,"
        "\"term\":%" PRIu64 ",\"commit\":%" PRIu64 ",\"applied\":%" PRIu64 ",\"durable\":%" PRIu64
        ",\"last\":%" PRIu64 ",\"log_bytes\":%" PRIu64 ",\"log_full\":%s,\"pending\":%" PRIu64 "}",
        true_or_false(group->leads), true_or_false(group->serving), true_or_false(group->witness),
        standing_names[group->standing], true_or_false(group->quiet), group->term, group->commit,
        group->applied, group->durable, group->last, group->log_bytes,
        true_or_false(group->log_full), group->pending);
}

void admin_write_groups(const struct region *core, struct buf *to)
{
    buf_append_u8(to, '[');
    for (uint32_t i = 0; i < region_group_count(core); i++) {
        struct region_group group = region_group_at(core, i);
        if (i > 0)
            buf_append_u8(to, ',');
        write_group(&group, to);
    }
    buf_append_u8(to, ']');
}

/* ---- Metrics ---- */

enum group_figure {
    GROUP_LEADS,
    GROUP_LEADER_KNOWN,
    GROUP_TERM,
    GROUP_COMMIT,
    GROUP_APPLIED,
    GROUP_LAST,
    GROUP_STANDING,
    GROUP_PENDING,
    GROUP_LOG_BYTES
};

static const struct {
    const char *name, *help;
} group_families[] = {
    [GROUP_LEADS] = {"tidemark_strong_leads", "1 when this Region leads the partition."},
    [GROUP_LEADER_KNOWN] = {"tidemark_strong_leader_known",
                            "1 when this Region knows who leads the partition."},
    [GROUP_TERM] = {"tidemark_strong_term", "The partition's term: counts elections."},
    [GROUP_COMMIT] = {"tidemark_strong_commit", "Last entry known to be committed."},
    [GROUP_APPLIED] = {"tidemark_strong_applied", "Last entry that the items here hold."},
    [GROUP_LAST] = {"tidemark_strong_last", "Last entry of the log here."},
    [GROUP_STANDING] = {"tidemark_strong_standing",
                        "0 full, 1 recovering a damaged log, 2 rebuilding after a lost disk."},
    [GROUP_PENDING] = {"tidemark_strong_pending", "Writes and strong reads under way here."},
    [GROUP_LOG_BYTES] = {"tidemark_strong_log_bytes", "Bytes of the log here."},
};

static uint64_t figure_of(const struct region_group *group, enum group_figure figure)
{
    switch (figure) {
    case GROUP_LEADS:
        return group->leads;
    case GROUP_LEADER_KNOWN:
        return group->leader != REGION_ID_NONE;
    case GROUP_TERM:
        return group->term;
    case GROUP_COMMIT:
        return group->commit;
    case GROUP_APPLIED:
        return group->applied;
    case GROUP_LAST:
        return group->last;
    case GROUP_STANDING:
        return (uint64_t)group->standing;
    case GROUP_PENDING:
        return group->pending;
    case GROUP_LOG_BYTES:
        return group->log_bytes;
    }
    unreachable();
}

static void write_family(const struct region *core, enum group_figure figure, struct buf *to)
{
    const char *name = group_families[figure].name;
    uint32_t count = region_group_count(core);
    metrics_head(to, name, "gauge", group_families[figure].help);
    for (uint32_t i = 0; i < count && i < GROUPS_LISTED_MAX; i++) {
        struct region_group group = region_group_at(core, i);
        buf_printf(to, "%s{TableName=", name);
        metrics_label(to, bytes_text(group.table->name));
        buf_printf(to, ",Partition=\"%u\"} %" PRIu64 "\n", group.partition,
                   figure_of(&group, figure));
    }
}

static void write_outcomes(const struct region *core, struct buf *to)
{
    struct region_counters counters = region_counters(core);
    const struct {
        const char *outcome;
        uint64_t count;
    } outcomes[] = {
        {"committed", counters.strong_committed},
        {"conflict", counters.strong_conflicts},
        {"unknown", counters.strong_unknown},
        {"refused", counters.strong_refused},
    };
    metrics_head(to, "tidemark_strong_requests_total", "counter",
                 "Writes and strong reads of strong tables that began here, by outcome.");
    for (size_t i = 0; i < array_len(outcomes); i++)
        buf_printf(to, "tidemark_strong_requests_total{outcome=\"%s\"} %" PRIu64 "\n",
                   outcomes[i].outcome, outcomes[i].count);
}

void admin_write_group_metrics(const struct admin *admin, struct buf *to)
{
    const struct region *core = driver_core(admin->driver);
    metrics_head(to, "tidemark_strong_groups", "gauge",
                 "Partitions of strong tables held here, witnesses included. Only the first 1000 "
                 "have figures of their own.");
    buf_printf(to, "tidemark_strong_groups %u\n", region_group_count(core));
    for (unsigned figure = 0; figure < array_len(group_families); figure++)
        write_family(core, (enum group_figure)figure, to);
    write_outcomes(core, to);
    metrics_head(to, "tidemark_strong_dropped_total", "counter",
                 "Messages to a peer's strong groups that were dropped because too many wait.");
    for (uint32_t i = 0; i < admin->config->peer_count; i++) {
        uint16_t peer = admin->config->peers[i].region;
        buf_printf(to, "tidemark_strong_dropped_total{ReceivingRegion=\"%s\"} %" PRIu64 "\n",
                   region_id_name(peer), peers_groups_dropped(admin->peers, peer));
    }
}
