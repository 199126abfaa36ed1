/* SPDX-License-Identifier: Apache-2.0 */
/* The table of names: what each means, its default and its bounds, and the function that reads its
 * value. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/clock.h"
#include "region/config_internal.h"
#include "region/log.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define HOUR_MS UINT64_C(3600000)

/* ---- Limits ---- */

struct limit {
    const char *name;
    size_t offset, size;
    uint64_t low, high, standard; /* standard 0: what the part itself says */
};

#define LIMIT(name, member, low, high, standard)                                                   \
    {                                                                                              \
        name, offsetof(struct config, member), sizeof(((struct config *)0)->member), low, high,    \
            standard                                                                               \
    }

static const struct limit limits[] = {
    LIMIT("partitions", core.partitions_per_table, 1, TABLE_PARTITIONS_MAX, 4),
    LIMIT("tables-max", core.tables_max, 1, 100000, 2500),
    LIMIT("operations-in-flight-max", core.operations_in_flight_max, 1, 1000000, 10000),
    LIMIT("persist-bytes-max", core.persist_bytes_max, MIB, 16 * GIB, 64 * MIB),
    LIMIT("item-cache-bytes-max", core.item_cache_bytes_max, 0, 64 * GIB, 8 * MIB),
    LIMIT("call-timeout-ms", core.call_timeout_ms, 10, HOUR_MS, 2000),
    LIMIT("ledger-rows-max", core.ledger_rows_max, 1, 1000000000, 100000),
    LIMIT("clock-ahead-ms-max", core.clock_ahead_ms_max, 1, 24 * HOUR_MS, 500),

    LIMIT("window-bytes-max", core.replication.window_bytes_max, 64 * KIB, GIB, 4 * MIB),
    LIMIT("batch-bytes-max", core.replication.batch_bytes_max, KIB, 16 * MIB, 256 * KIB),
    LIMIT("batch-records-max", core.replication.batch_records_max, 1, 100000, 500),
    LIMIT("frame-bytes-max", core.replication.frame_bytes_max, MIB, 64 * MIB, MIB),
    LIMIT("heartbeat-ms", core.replication.heartbeat_ms, 10, HOUR_MS, 200),
    LIMIT("silence-ms-max", core.replication.silence_ms_max, 100, 24 * HOUR_MS, 10000),
    LIMIT("log-bytes-max", core.replication.log_bytes_max, MIB, 1024 * GIB, 256 * MIB),
    LIMIT("tombstone-grace-ms", core.replication.tombstone_grace_ms, 0, 8760 * HOUR_MS, HOUR_MS),
    LIMIT("apply-bytes-max", core.replication.apply_bytes_max, 64 * KIB, GIB, 4 * MIB),

    LIMIT("connections-max", server.connections_max, 1, 1000000, 0),
    LIMIT("head-bytes-max", server.head_bytes_max, KIB, 16 * MIB, 0),
    LIMIT("body-bytes-max", server.body_bytes_max, KIB, GIB, 0),
    LIMIT("body-bytes-total-max", server.body_bytes_total_max, MIB, 64 * GIB, 0),
    LIMIT("answer-bytes-total-max", server.answer_bytes_total_max, MIB, 64 * GIB, 0),
    LIMIT("streams-max", server.streams_max, 1, 100000, 0),
    LIMIT("pipeline-max", server.pipeline_max, 1, 100000, 0),
    LIMIT("output-bytes-max", server.output_bytes_max, KIB, GIB, 0),
    LIMIT("idle-ms-max", server.idle_ms_max, 10, 24 * HOUR_MS, 0),
    LIMIT("request-ms-max", server.request_ms_max, 10, 24 * HOUR_MS, 0),
    LIMIT("message-bytes-max", server.message_bytes_max, MIB, 64 * MIB, 0),

    LIMIT("cache-bytes", cache_bytes, 64 * KIB, 64 * GIB, 8 * MIB),
    LIMIT("write-buffer-bytes", write_buffer_bytes, 64 * KIB, GIB, 4 * MIB),
    LIMIT("group-bytes-max", group_bytes_max, KIB, GIB, MIB),
    LIMIT("connect-ms-max", connect_ms_max, 10, HOUR_MS, 2000),
    LIMIT("backoff-ms-min", backoff_ms_min, 1, HOUR_MS, 20),
    LIMIT("backoff-ms-max", backoff_ms_max, 1, HOUR_MS, 200),
    LIMIT("drain-ms", drain_ms, 0, HOUR_MS, 5000),

#define STRONG_LIMIT(name, member, low, high, standard)                                            \
    LIMIT(CONFIG_SECTION "." name, core.strong.member, low, high, standard),
    STRONG_LIMIT_MAP(STRONG_LIMIT)
#undef STRONG_LIMIT
};

static void limit_store(struct config *config, const struct limit *limit, uint64_t value)
{
    void *at = (char *)config + limit->offset;
    if (limit->size == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)value;
    else
        *(uint64_t *)at = value;
}

/* ---- Values: each reads a text into the config, or says what it expected ---- */

typedef bool set_function(struct config *config, const char *text, struct buf *expected);

static bool parse_signed(const char *text, int64_t low, int64_t high, int64_t *ret)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return false;
    *ret = value;
    return true;
}

static bool set_limit(struct config *config, const struct limit *limit, const char *text,
                      struct buf *expected)
{
    int64_t value;
    if (parse_signed(text, (int64_t)limit->low, (int64_t)limit->high, &value)) {
        limit_store(config, limit, (uint64_t)value);
        return true;
    }
    buf_printf(expected, "a number from %" PRIu64 " to %" PRIu64, limit->low, limit->high);
    return false;
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = xstrdup(text);
}

static bool set_path(char **to, const char *text, struct buf *expected)
{
    if (*text == '\0') {
        buf_append_text(expected, "a path");
        return false;
    }
    set_text(to, text);
    return true;
}

/* HOST:PORT, with something before the last colon and a port after it. */
static bool address_valid(const char *text)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    return colon && colon != text && parse_signed(colon + 1, 0, 65535, &port);
}

static bool set_address(char **to, const char *text, struct buf *expected)
{
    if (!address_valid(text)) {
        buf_append_text(expected, "HOST:PORT");
        return false;
    }
    set_text(to, text);
    return true;
}

static bool set_region(struct config *config, const char *text, struct buf *expected)
{
    config->core.region = region_id_find(bytes_text(text));
    buf_append_text(expected, "the name of an AWS Region, such as eu-west-1");
    return config->core.region != REGION_ID_NONE;
}

static bool set_listen(struct config *config, const char *text, struct buf *expected)
{
    return set_address(&config->listen, text, expected);
}

static bool set_peer_listen(struct config *config, const char *text, struct buf *expected)
{
    return set_address(&config->peer_listen, text, expected);
}

static bool set_data(struct config *config, const char *text, struct buf *expected)
{
    return set_path(&config->data, text, expected);
}

/* Adds one; the file's list and repeated flags come here one by one. */
static bool set_peer(struct config *config, const char *text, struct buf *expected)
{
    const char *equals = strchr(text, '=');
    uint16_t region =
        equals ? region_id_find(bytes_make(text, (size_t)(equals - text))) : REGION_ID_NONE;
    if (region == REGION_ID_NONE || !address_valid(equals + 1)) {
        buf_append_text(expected, "REGION=HOST:PORT");
        return false;
    }
    for (uint32_t i = 0; i < config->peer_count; i++) {
        if (config->peers[i].region == region) {
            set_text(&config->peers[i].address, equals + 1);
            return true;
        }
    }
    if (config->peer_count == VV_MAX - 1) {
        buf_printf(expected, "at most %d peers", VV_MAX - 1);
        return false;
    }
    config->peers[config->peer_count++] = (struct config_peer){region, xstrdup(equals + 1)};
    return true;
}

/* One of two words. */
static bool set_word(bool *to, const char *text, const char *yes, const char *no,
                     struct buf *expected)
{
    buf_printf(expected, "%s or %s", yes, no);
    *to = strcmp(text, yes) == 0;
    return *to || strcmp(text, no) == 0;
}

static bool set_durability(struct config *config, const char *text, struct buf *expected)
{
    return set_word(&config->sync, text, "fsync", "os", expected);
}

static bool set_clock(struct config *config, const char *text, struct buf *expected)
{
    bool hybrid;
    bool good = set_word(&hybrid, text, "hybrid", "wall", expected);
    config->core.clock_mode = hybrid ? HLC_HYBRID : HLC_WALL;
    return good;
}

static bool set_clock_offset(struct config *config, const char *text, struct buf *expected)
{
    buf_append_text(expected, "milliseconds, at most a hundred years either way");
    return parse_signed(text, -CLOCK_OFFSET_MS_MAX, CLOCK_OFFSET_MS_MAX, &config->clock_offset_ms);
}

static bool set_clock_rate(struct config *config, const char *text, struct buf *expected)
{
    buf_printf(expected, "a number from %d to %d", -CLOCK_RATE_PPM_MAX, CLOCK_RATE_PPM_MAX);
    return parse_signed(text, -CLOCK_RATE_PPM_MAX, CLOCK_RATE_PPM_MAX, &config->clock_rate_ppm);
}

static bool set_strong_conflict(struct config *config, const char *text, struct buf *expected)
{
    bool serialize;
    bool good = set_word(&serialize, text, "serialize", "aws", expected);
    config->core.strong.conflict = serialize ? STRONG_CONFLICT_SERIALIZE : STRONG_CONFLICT_AWS;
    return good;
}

static bool set_discard(struct config *config, const char *text, struct buf *expected)
{
    return set_word(&config->discard_damaged_store, text, "true", "false", expected);
}

static bool set_strict(struct config *config, const char *text, struct buf *expected)
{
    return set_word(&config->strict_credentials, text, "true", "false", expected);
}

static bool set_certificate(struct config *config, const char *text, struct buf *expected)
{
    return set_path(&config->tls_certificate, text, expected);
}

static bool set_key(struct config *config, const char *text, struct buf *expected)
{
    return set_path(&config->tls_key, text, expected);
}

static bool set_log_level(struct config *config, const char *text, struct buf *expected)
{
    buf_append_text(expected, "debug, info, warn or error");
    return log_level_find(bytes_text(text), &config->log_level);
}

/* ---- Options ---- */

static const struct {
    const char *name, *argument, *help;
    set_function *set;
} options[] = {
    {"region", "NAME", "The AWS Region that this process is (required)", set_region},
    {"listen", "HOST:PORT",
     "Where clients and peers connect; port 0 takes a free one (127.0.0.1:8000)", set_listen},
    {"peer-listen", "HOST:PORT",
     "A second port, always in plain text: for peers when --listen has TLS", set_peer_listen},
    {"data", "DIR", "Data directory; made if missing (required)", set_data},
    {"peer", "NAME=HOST:PORT", "Another Region of the cluster, and where it listens (repeatable)",
     set_peer},
    {"durability", "fsync|os",
     "What a write survives: power loss, or only the death of the process", set_durability},
    {"clock", "hybrid|wall", "The clock of versions: hybrid, or the plain wall clock", set_clock},
    {"clock-offset-ms", "N", "Moves this Region's wall clock", set_clock_offset},
    {"clock-rate-ppm", "N", "Makes it run fast, or slow", set_clock_rate},
    {"strict-credentials", NULL, "Refuse unsigned requests", set_strict},
    {"tls-certificate", "FILE", "PEM; with --tls-key, the port speaks TLS", set_certificate},
    {"tls-key", "FILE", "PEM", set_key},
    {"log-level", "LEVEL", "debug, info (the default), warn or error", set_log_level},
    {"discard-damaged-store", NULL,
     "Read all of the store first, and if it is damaged set it aside and start empty", set_discard},
    {CONFIG_SECTION ".conflict", "aws|serialize",
     "Strong tables: refuse a write of an item that another Region is modifying, as AWS does (aws, "
     "the default), or let it wait its turn",
     set_strong_conflict},
};

_Static_assert(array_len(options) == CONFIG_OPTIONS, "config_internal.h counts the options");
_Static_assert(array_len(limits) == CONFIG_LIMITS, "config_internal.h counts the limits");

struct config_name config_name_at(unsigned index)
{
    check(index < CONFIG_NAMES);
    if (index < CONFIG_OPTIONS)
        return (struct config_name){options[index].name, options[index].argument,
                                    options[index].help};
    return (struct config_name){limits[index - CONFIG_OPTIONS].name, "N", NULL};
}

void config_set_limits(struct config *config)
{
    config->server = server_limits_default();
    for (unsigned i = 0; i < CONFIG_LIMITS; i++) {
        if (limits[i].standard > 0)
            limit_store(config, &limits[i], limits[i].standard);
    }
}

bool config_set(struct config *config, unsigned index, const char *text, const char *where,
                char *error, size_t error_len)
{
    struct buf expected cleanup(buf_deinit);
    buf_init(&expected);
    if (index < CONFIG_OPTIONS
            ? options[index].set(config, text, &expected)
            : set_limit(config, &limits[index - CONFIG_OPTIONS], text, &expected))
        return true;
    snprintf(error, error_len, "%s: expected %.*s, got \"%s\"", where, (int)expected.len,
             (const char *)expected.at, text);
    return false;
}
