/* SPDX-License-Identifier: Apache-2.0 */
/* What the routes of admin.c show, written from the core's figures. README.md holds the shape of
 * each. */

#include "region/admin.h"

#include <inttypes.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/core/item_json.h"

/* A page of the ledger holds whole items, so it is bounded in bytes too. */
enum { CONFLICTS_BYTES_MAX = 4 * 1024 * 1024, TOKEN_LEN_MAX = 512 };

/* ---- Status ---- */

static const char *const table_status_names[] = {"CREATING", "ACTIVE", "UPDATING", "DELETING"};
static const char *const replica_status_names[] = {"CREATING", "ACTIVE", "UPDATING", "DELETING",
                                                   "CREATION_FAILED"};

static const char *true_or_false(bool value)
{
    return value ? "true" : "false";
}

static void write_lag(struct buf *to, const char *region, const struct replication_lag *lag)
{
    buf_printf(to,
               "{\"to\":\"%s\",\"pending\":%" PRIu64 ",\"pending_bytes\":%" PRIu64
               ",\"oldest_ms\":%" PRIu64
               ",\"lag_p50_ms\":%.3f,\"lag_p99_ms\":%.3f,\"count\":%" PRIu64
               ",\"connected\":%s,\"stalled\":%s}",
               region, lag->pending, lag->pending_bytes, lag->oldest_ms, lag->p50_ms, lag->p99_ms,
               lag->count, true_or_false(lag->connected), true_or_false(lag->stalled));
}

/* Places in logs, for whoever counts what a Region had that others have not. */
static void write_logs(const struct admin *admin, const struct table *table, struct buf *to)
{
    const struct region *core = driver_core(admin->driver);
    struct region_log log;
    uint64_t tombstones = 0;
    const char *comma = "";
    buf_append_text(to, ",\"logs\":[");
    for (uint32_t i = 0; i < table->partition_count; i++) {
        if (!region_log_at(core, table, i, &log))
            continue;
        buf_printf(to, "%s{\"partition\":%u,\"last\":%" PRIu64 ",\"of\":{", comma, i, log.last);
        const char *between = "";
        for (uint32_t j = 0; j < log.vv->count; j++) {
            uint16_t origin = log.vv->at[j].origin;
            if (j + 1 < log.vv->count && log.vv->at[j + 1].origin == origin)
                continue; /* an earlier epoch */
            buf_printf(to, "%s\"%s\":%" PRIu64, between, region_id_name(origin), log.vv->at[j].seq);
            between = ",";
        }
        buf_append_text(to, "}}");
        tombstones += log.tombstones;
        comma = ",";
    }
    buf_printf(to, "],\"tombstones\":%" PRIu64, tombstones);
}

static void write_table(const struct admin *admin, const struct table *table, struct buf *to)
{
    const struct region *core = driver_core(admin->driver);
    buf_append_text(to, "{\"name\":");
    json_write_string(to, bytes_text(table->name));
    buf_printf(to, ",\"status\":\"%s\",\"items\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"replicas\":[",
               table_status_names[table->status], table->item_count, table->size_bytes);
    for (uint32_t i = 0; i < table->replica_count; i++)
        buf_printf(to, "%s{\"region\":\"%s\",\"status\":\"%s\"}", i ? "," : "",
                   region_id_name(table->replicas[i].region),
                   replica_status_names[table->replicas[i].status]);
    buf_append_text(to, "],\"replication\":[");
    const char *comma = "";
    for (uint32_t i = 0; i < table->replica_count; i++) {
        uint16_t peer = table->replicas[i].region;
        struct replication_lag lag = {0};
        if (!region_lag(core, table, peer, admin->loop->mono_ns, &lag))
            continue;
        buf_append_text(to, comma);
        write_lag(to, region_id_name(peer), &lag);
        comma = ",";
    }
    buf_append_u8(to, ']');
    write_logs(admin, table, to);
    buf_append_u8(to, '}');
}

void admin_write_status(const struct admin *admin, struct buf *to)
{
    const struct region *core = driver_core(admin->driver);
    const struct config *config = admin->config;
    buf_printf(to,
               "{\"region\":\"%s\",\"kind\":\"%s\",\"ready\":%s,\"durability\":\"%s\","
               "\"clock\":{\"mode\":\"%s\",\"offset_ms\":%" PRId64 ",\"rate_ppm\":%" PRId64
               "},\"tables\":[",
               region_id_name(config->core.region),
               config->core.witness_only ? "witness" : "region", true_or_false(admin->ready),
               config->sync ? "fsync" : "os",
               config->core.clock_mode == HLC_HYBRID ? "hybrid" : "wall",
               clock_ahead_ms(admin->clock, admin->loop->mono_ns), admin->clock->rate_ppm);
    for (uint32_t i = 0; i < region_table_count(core); i++) {
        if (i > 0)
            buf_append_u8(to, ',');
        write_table(admin, region_table_at(core, i), to);
    }
    buf_append_text(to, "],\"groups\":");
    admin_write_groups(core, to);
    struct region_counters counters = region_counters(core);
    buf_printf(to,
               ",\"conflicts\":{\"concurrent\":%" PRIu64 ",\"late\":%" PRIu64 ",\"rows\":%" PRIu64
               "}}\n",
               counters.conflicts_concurrent, counters.conflicts_late, counters.ledger_rows);
}

/* ---- Metrics ---- */

static void write_number(struct buf *to, const char *name, const char *type, const char *help,
                         uint64_t value)
{
    metrics_head(to, name, type, help);
    buf_printf(to, "%s %" PRIu64 "\n", name, value);
}

/* One figure of every pair of a table and a Region that it is replicated to. */
enum lag_figure {
    LAG_LATENCY,
    LAG_PENDING,
    LAG_PENDING_BYTES,
    LAG_OLDEST,
    LAG_CONNECTED,
    LAG_STALLED
};

static const struct {
    const char *name, *type, *help;
} lag_families[] = {
    [LAG_LATENCY] =
        {"ReplicationLatency", "summary",
         "Milliseconds from a write here to its durable arrival in the receiving Region."},
    [LAG_PENDING] = {"PendingReplicationCount", "gauge",
                     "Local writes that are not durable in the receiving Region."},
    [LAG_PENDING_BYTES] = {"tidemark_replication_pending_bytes", "gauge", "Their bytes."},
    [LAG_OLDEST] = {"tidemark_replication_oldest_milliseconds", "gauge",
                    "Age of the oldest of them: what would be lost if this Region died now."},
    [LAG_CONNECTED] = {"tidemark_replication_connected", "gauge", "1 when the stream is open."},
    [LAG_STALLED] = {"tidemark_replication_stalled", "gauge",
                     "1 when writes are pending and none has been acknowledged for 5 seconds."},
};

static void write_lag_samples(struct buf *to, enum lag_figure figure, const char *labels,
                              const struct replication_lag *lag)
{
    const char *name = lag_families[figure].name;
    switch (figure) {
    case LAG_LATENCY:
        buf_printf(to, "%s{%s,quantile=\"0.5\"} %.3f\n", name, labels, lag->p50_ms);
        buf_printf(to, "%s{%s,quantile=\"0.99\"} %.3f\n", name, labels, lag->p99_ms);
        buf_printf(to, "%s_sum{%s} %.3f\n", name, labels, lag->sum_ms);
        buf_printf(to, "%s_count{%s} %" PRIu64 "\n", name, labels, lag->count);
        return;
    case LAG_PENDING:
        buf_printf(to, "%s{%s} %" PRIu64 "\n", name, labels, lag->pending);
        return;
    case LAG_PENDING_BYTES:
        buf_printf(to, "%s{%s} %" PRIu64 "\n", name, labels, lag->pending_bytes);
        return;
    case LAG_OLDEST:
        buf_printf(to, "%s{%s} %" PRIu64 "\n", name, labels, lag->oldest_ms);
        return;
    case LAG_CONNECTED:
        buf_printf(to, "%s{%s} %d\n", name, labels, lag->connected);
        return;
    case LAG_STALLED:
        buf_printf(to, "%s{%s} %d\n", name, labels, lag->stalled);
        return;
    }
    unreachable();
}

static void write_lag_family(const struct admin *admin, enum lag_figure figure, struct buf *to)
{
    const struct region *core = driver_core(admin->driver);
    metrics_head(to, lag_families[figure].name, lag_families[figure].type,
                 lag_families[figure].help);
    struct buf labels cleanup(buf_deinit);
    buf_init(&labels);
    for (uint32_t i = 0; i < region_table_count(core); i++) {
        const struct table *table = region_table_at(core, i);
        for (uint32_t j = 0; j < table->replica_count; j++) {
            uint16_t peer = table->replicas[j].region;
            struct replication_lag lag = {0};
            if (!region_lag(core, table, peer, admin->loop->mono_ns, &lag))
                continue;
            buf_reset(&labels);
            buf_append_text(&labels, "TableName=");
            metrics_label(&labels, bytes_text(table->name));
            buf_printf(&labels, ",ReceivingRegion=\"%s\"", region_id_name(peer));
            buf_append_u8(&labels, 0);
            write_lag_samples(to, figure, (const char *)labels.at, &lag);
        }
    }
}

static void write_core_counters(const struct region_counters *counters, struct buf *to)
{
    metrics_head(to, "tidemark_conflicts_total", "counter",
                 "Lost writes that this Region found, by kind.");
    buf_printf(to, "tidemark_conflicts_total{kind=\"concurrent\"} %" PRIu64 "\n",
               counters->conflicts_concurrent);
    buf_printf(to, "tidemark_conflicts_total{kind=\"late\"} %" PRIu64 "\n",
               counters->conflicts_late);
    write_number(to, "tidemark_ledger_rows", "gauge", "Rows of the lost-write ledger.",
                 counters->ledger_rows);
    write_number(to, "tidemark_clock_ahead_total", "counter",
                 "Times of peers that were too far ahead of this Region's clock.",
                 counters->clock_ahead);
    write_number(to, "tidemark_storage_batches_total", "counter", "Batches handed to storage.",
                 counters->batches);
    write_number(to, "tidemark_storage_batch_bytes_total", "counter", "Their bytes.",
                 counters->batch_bytes);
    write_number(to, "tidemark_storage_batches_in_flight", "gauge", "Of these, not yet durable.",
                 counters->batches_in_flight);
    write_number(to, "tidemark_operations_in_flight", "gauge", "Requests in the core.",
                 counters->operations_in_flight);
    write_number(to, "ThrottledRequests", "counter", "Requests refused for want of room.",
                 counters->throttled);
    write_number(to, "tidemark_replication_applied_total", "counter",
                 "Records from peers that won and were applied.", counters->applied_records);
    write_number(to, "tidemark_replication_duplicate_total", "counter",
                 "Records from peers that were here already.", counters->duplicate_records);
    write_number(to, "tidemark_replication_dropped_total", "counter",
                 "Records from peers that lost to a later version.", counters->dropped_records);
}

void admin_write_metrics(const struct admin *admin, struct buf *to)
{
    metrics_write(to, admin->metrics);
    for (unsigned figure = 0; figure < array_len(lag_families); figure++)
        write_lag_family(admin, (enum lag_figure)figure, to);
    struct region_counters counters = region_counters(driver_core(admin->driver));
    write_core_counters(&counters, to);
    admin_write_group_metrics(admin, to);
    metrics_head(to, "tidemark_replication_queued_bytes", "gauge",
                 "Bytes that wait to be sent to a peer.");
    for (uint32_t i = 0; i < admin->config->peer_count; i++) {
        uint16_t peer = admin->config->peers[i].region;
        buf_printf(to, "tidemark_replication_queued_bytes{ReceivingRegion=\"%s\"} %" PRIu64 "\n",
                   region_id_name(peer), peers_queued(admin->peers, peer));
    }
    struct server_stats stats = server_stats(admin->server);
    write_number(to, "tidemark_connections", "gauge", "Open connections.", stats.connections);
    write_number(to, "tidemark_connections_accepted_total", "counter", "Connections accepted.",
                 stats.accepted);
    write_number(to, "tidemark_connections_refused_total", "counter",
                 "Connections closed at once, there being too many.", stats.refused);
    write_number(to, "tidemark_http_requests_total", "counter", "HTTP requests, these included.",
                 stats.requests);
    write_number(to, "tidemark_http_timeouts_total", "counter",
                 "Requests and connections closed for being slow.", stats.timeouts);
}

/* ---- Conflicts ---- */

static void write_hex(struct buf *to, struct bytes from)
{
    for (size_t i = 0; i < from.len; i++)
        buf_printf(to, "%02x", from.at[i]);
}

static bool read_hex(struct bytes from, struct buf *to)
{
    if (from.len % 2 != 0 || from.len > TOKEN_LEN_MAX)
        return false;
    for (size_t i = 0; i < from.len; i += 2) {
        int byte = 0;
        for (size_t j = i; j < i + 2; j++) {
            int c = from.at[j];
            int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
            if (digit < 0)
                return false;
            byte = byte * 16 + digit;
        }
        buf_append_u8(to, (uint8_t)byte);
    }
    return true;
}

/* Milliseconds, counter, Region, place in that Region's log. `order` holds the whole version, the
 * log's epoch included, and sorts as versions do. */
static void write_version(struct buf *to, struct version version)
{
    uint64_t place = version.seq - version_epoch_base(version_epoch(version.seq));
    buf_printf(to, "\"version\":\"%" PRIu64 ".%u-%s-%" PRIu64 "\",\"order\":\"",
               hlc_ms(version.hlc), (unsigned)(version.hlc & 0xffff),
               region_id_name(version.origin), place);
    struct buf order cleanup(buf_deinit);
    buf_init(&order);
    version_encode(version, &order);
    write_hex(to, buf_view(&order));
    buf_append_u8(to, '"');
}

static void write_side(struct buf *to, const struct record *record)
{
    buf_printf(to, "{\"region\":\"%s\",", region_id_name(record->version.origin));
    write_version(to, record->version);
    buf_append_text(to, ",\"item\":");
    if (record_is_tombstone(record))
        buf_append_text(to, "null");
    else
        item_write_json(to, record->item);
    buf_append_u8(to, '}');
}

/* Undoes key.h's escape: the partition key, up to its terminator. */
static bool take_escaped(struct bytes *from, struct buf *to)
{
    uint8_t byte, mark;
    while (bytes_take_u8(from, &byte)) {
        if (byte == 0) {
            if (!bytes_take_u8(from, &mark))
                return false;
            if (mark == 1)
                return true;
        }
        buf_append_u8(to, byte);
    }
    return false;
}

static void write_key_attribute(struct buf *to, const char *name, enum value_type type,
                                struct bytes payload)
{
    struct buf bytes cleanup(buf_deinit);
    buf_init(&bytes);
    value_write(&bytes, type, payload);
    struct bytes rest = buf_view(&bytes);
    struct value value;
    json_write_string(to, bytes_text(name));
    buf_append_u8(to, ':');
    if (value_take(&rest, &value))
        value_write_json(to, value);
}

/* The key's attributes; null when the table, and with it their names, is gone. */
static void write_key(struct buf *to, const struct table *table, struct bytes key)
{
    struct buf hash cleanup(buf_deinit);
    buf_init(&hash);
    struct bytes skipped;
    if (!table || !bytes_take(&key, sizeof(uint64_t), &skipped) || !take_escaped(&key, &hash)) {
        buf_append_text(to, "null");
        return;
    }
    buf_append_u8(to, '{');
    write_key_attribute(to, table->key.hash_name, table->key.hash_type, buf_view(&hash));
    if (table->key.has_range) {
        buf_append_u8(to, ',');
        write_key_attribute(to, table->key.range_name, table->key.range_type, key);
    }
    buf_append_u8(to, '}');
}

static void write_conflict(const struct admin *admin, const struct table *table,
                           struct bytes table_name, const struct ledger_entry *entry,
                           struct buf *to)
{
    buf_append_text(to, "{\"table\":");
    json_write_string(to, table_name);
    buf_append_text(to, ",\"key\":");
    write_key(to, table, entry->key);
    buf_printf(to,
               ",\"kind\":\"%s\",\"detected_in\":\"%s\",\"detected_at_ms\":%" PRIu64
               ",\"clock_suspect\":%s,\"winner\":",
               entry->relation == RESOLVE_LATE ? "late" : "concurrent",
               region_id_name(admin->config->core.region), entry->detected_wall_ms,
               true_or_false(entry->clock_suspect));
    write_side(to, &entry->winner);
    buf_append_text(to, ",\"loser\":");
    write_side(to, &entry->loser);
    buf_append_u8(to, '}');
}

static bool read_conflicts(const struct admin *admin, struct bytes after, uint32_t limit,
                           bool newest, struct buf *scratch, struct store_rows *ret)
{
    struct store_read read = {0};
    region_ledger_read(driver_core(admin->driver), after, limit, scratch, &read);
    read.reverse = newest;
    if (read.bytes_max > CONFLICTS_BYTES_MAX)
        read.bytes_max = CONFLICTS_BYTES_MAX;
    return admin->store->ops->read(admin->store, &read, ret) == STORE_OK;
}

static void write_conflict_rows(const struct admin *admin, const struct store_rows *rows,
                                struct buf *to)
{
    const struct region *core = driver_core(admin->driver);
    buf_append_text(to, "{\"conflicts\":[");
    const char *comma = "";
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct table *table = NULL;
        struct bytes name = BYTES_NONE;
        struct ledger_entry entry;
        if (!region_ledger_row(core, &rows->at[i], &table, &name, &entry)) {
            log_line(admin->log, TRACE_WARN, "a row of the ledger cannot be read and is left out");
            continue;
        }
        buf_append_text(to, comma);
        write_conflict(admin, table, name, &entry, to);
        comma = ",";
    }
}

bool admin_write_conflicts(const struct admin *admin, struct bytes after, uint32_t limit,
                           struct buf *to)
{
    struct buf token cleanup(buf_deinit);
    struct buf scratch cleanup(buf_deinit);
    struct store_rows rows = {0};
    buf_init(&token);
    buf_init(&scratch);
    if (!read_hex(after, &token) ||
        !read_conflicts(admin, buf_view(&token), limit, false, &scratch, &rows))
        return false;
    write_conflict_rows(admin, &rows, to);
    buf_append_text(to, "],\"next\":");
    if (rows.more && rows.count > 0) {
        buf_append_u8(to, '"');
        write_hex(to, rows.at[rows.count - 1].key);
        buf_append_text(to, "\"}\n");
    } else {
        buf_append_text(to, "null}\n");
    }
    return true;
}

bool admin_write_newest_conflicts(const struct admin *admin, uint32_t limit, struct buf *to)
{
    struct buf scratch cleanup(buf_deinit);
    struct store_rows rows = {0};
    buf_init(&scratch);
    if (!read_conflicts(admin, BYTES_NONE, limit, true, &scratch, &rows))
        return false;
    write_conflict_rows(admin, &rows, to);
    buf_append_text(to, "],\"next\":null}\n");
    return true;
}
