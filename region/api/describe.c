/* SPDX-License-Identifier: Apache-2.0 */
/* TableDescription. A regional table shows no member of a global table's at all; a member of a
 * global table lists the other Regions and never its own. */

#include <inttypes.h>

#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/api/api_internal.h"
#include "region/core/item_json.h"

enum { ON_DEMAND_READ_UNITS = 12000, ON_DEMAND_WRITE_UNITS = 4000 };

static const char *status_name(enum table_status status)
{
    switch (status) {
    case TABLE_CREATING:
        return "CREATING";
    case TABLE_ACTIVE:
        return "ACTIVE";
    case TABLE_UPDATING:
        return "UPDATING";
    case TABLE_DELETING:
        return "DELETING";
    }
    unreachable();
}

static const char *replica_status_name(enum replica_status status)
{
    switch (status) {
    case REPLICA_CREATING:
        return "CREATING";
    case REPLICA_ACTIVE:
        return "ACTIVE";
    case REPLICA_UPDATING:
        return "UPDATING";
    case REPLICA_DELETING:
        return "DELETING";
    case REPLICA_CREATION_FAILED:
        return "CREATION_FAILED";
    }
    unreachable();
}

static const char *stream_name(enum stream_view view)
{
    switch (view) {
    case STREAM_KEYS_ONLY:
        return "KEYS_ONLY";
    case STREAM_NEW_IMAGE:
        return "NEW_IMAGE";
    case STREAM_OLD_IMAGE:
        return "OLD_IMAGE";
    case STREAM_BOTH:
        return "NEW_AND_OLD_IMAGES";
    case STREAM_NONE:
        break;
    }
    unreachable();
}

static void write_text(struct buf *to, const char *before, const char *text)
{
    buf_append_text(to, before);
    json_write_string(to, bytes_text(text));
}

static void write_definition(struct buf *to, const char *name, enum value_type type)
{
    write_text(to, "{\"AttributeName\":", name);
    buf_printf(to, ",\"AttributeType\":\"%s\"}", value_type_name(type));
}

static void write_key(struct buf *to, const struct key_schema *key)
{
    bool range_first = key->has_range && strcmp(key->range_name, key->hash_name) < 0;
    buf_append_text(to, "\"AttributeDefinitions\":[");
    if (range_first) {
        write_definition(to, key->range_name, key->range_type);
        buf_append_text(to, ",");
    }
    write_definition(to, key->hash_name, key->hash_type);
    if (key->has_range && !range_first) {
        buf_append_text(to, ",");
        write_definition(to, key->range_name, key->range_type);
    }
    write_text(to, "],\"KeySchema\":[{\"AttributeName\":", key->hash_name);
    buf_append_text(to, ",\"KeyType\":\"HASH\"}");
    if (key->has_range) {
        write_text(to, ",{\"AttributeName\":", key->range_name);
        buf_append_text(to, ",\"KeyType\":\"RANGE\"}");
    }
    buf_append_text(to, "]");
}

static void write_seconds(struct buf *to, uint64_t wall_ms)
{
    buf_printf(to, "%" PRIu64 ".%03u", wall_ms / 1000, (unsigned)(wall_ms % 1000));
}

static void write_billing(struct buf *to, const struct table *table)
{
    buf_printf(to,
               ",\"ProvisionedThroughput\":{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":"
               "%" PRIu64 ",\"WriteCapacityUnits\":%" PRIu64 "}",
               table->read_units, table->write_units);
    if (table->billing == BILLING_PAY_PER_REQUEST) {
        buf_append_text(to, ",\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\","
                            "\"LastUpdateToPayPerRequestDateTime\":");
        write_seconds(to, table->created_wall_ms);
        buf_append_text(to, "}");
    }
}

static void write_warm(struct buf *to, const struct table *table)
{
    bool on_demand = table->billing == BILLING_PAY_PER_REQUEST;
    buf_printf(to,
               ",\"WarmThroughput\":{\"ReadUnitsPerSecond\":%" PRIu64
               ",\"WriteUnitsPerSecond\":%" PRIu64 ",\"Status\":\"ACTIVE\"}",
               on_demand ? (uint64_t)ON_DEMAND_READ_UNITS : table->read_units,
               on_demand ? (uint64_t)ON_DEMAND_WRITE_UNITS : table->write_units);
}

/* Year, month and day of a count of days since 1970 (Hinnant's civil_from_days, for days >= 0). */
static void civil_date(uint64_t days, unsigned *year, unsigned *month, unsigned *day)
{
    uint64_t shifted = days + 719468; /* days since 1 March of year 0 */
    uint64_t era = shifted / 146097;
    uint64_t of_era = shifted % 146097;
    uint64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t month_from_march = (5 * of_year + 2) / 153;
    *day = (unsigned)(of_year - (153 * month_from_march + 2) / 5 + 1);
    *month = (unsigned)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    *year = (unsigned)(year_of_era + era * 400 + (*month <= 2));
}

/* 2026-01-31T23:59:59.999, as in a stream's label and ARN. */
static void write_label(struct buf *to, uint64_t wall_ms)
{
    unsigned year, month, day;
    civil_date(wall_ms / 86400000, &year, &month, &day);
    unsigned ms = (unsigned)(wall_ms % 86400000);
    buf_printf(to, "%04u-%02u-%02uT%02u:%02u:%02u.%03u", year, month, day, ms / 3600000,
               ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

/* The name is of a table, so it needs no escaping. */
static void write_arn(struct buf *to, const struct table *table, uint16_t region)
{
    buf_printf(to, "arn:aws:dynamodb:%s:" API_ACCOUNT_ID ":table/%s", region_id_name(region),
               table->name);
}

static void write_stream(struct buf *to, const struct table *table, uint16_t region)
{
    if (table->stream != STREAM_NONE)
        buf_printf(to,
                   ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"%s\"}",
                   stream_name(table->stream));
    if (table->stream_wall_ms == 0)
        return; /* never had one */
    buf_append_text(to, ",\"LatestStreamLabel\":\"");
    write_label(to, table->stream_wall_ms);
    buf_append_text(to, "\",\"LatestStreamArn\":\"");
    write_arn(to, table, region);
    buf_append_text(to, "/stream/");
    write_label(to, table->stream_wall_ms);
    buf_append_text(to, "\"");
}

/* Under STRONG alone: EVENTUAL is never said. The witness's Region is no replica. */
static void write_strong(struct buf *to, const struct table *table)
{
    if (table->mode != TABLE_STRONG)
        return;
    buf_append_text(to, ",\"MultiRegionConsistency\":\"STRONG\"");
    if (table->witness == REGION_ID_NONE)
        return;
    buf_printf(to, ",\"GlobalTableWitnesses\":[{\"RegionName\":\"%s\",\"WitnessStatus\":\"%s\"}]",
               region_id_name(table->witness), replica_status_name(table->witness_status));
}

static void write_replicas(struct buf *to, const struct table *table)
{
    if (table->mode == TABLE_REGIONAL)
        return;
    buf_append_text(to, ",\"GlobalTableVersion\":\"2019.11.21\",\"Replicas\":[");
    for (uint32_t i = 0; i < table->replica_count; i++) {
        const struct table_replica *replica = &table->replicas[i];
        buf_printf(to, "%s{\"RegionName\":\"%s\",\"ReplicaStatus\":\"%s\"", i > 0 ? "," : "",
                   region_id_name(replica->region), replica_status_name(replica->status));
        write_warm(to, table);
        buf_append_text(to, ",\"GlobalTableSettingsReplicationMode\":\"ENABLED_WITH_OVERRIDES\"}");
    }
    buf_append_text(to, "],\"GlobalTableSettingsReplicationMode\":\"ENABLED_WITH_OVERRIDES\"");
    write_strong(to, table);
}

static void write_id(struct buf *to, const uint8_t id[TABLE_ID_LEN])
{
    static const char digits[] = "0123456789abcdef";
    char text[37];
    size_t len = 0;
    for (size_t i = 0; i < TABLE_ID_LEN; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[len++] = '-';
        text[len++] = digits[id[i] >> 4];
        text[len++] = digits[id[i] & 15];
    }
    buf_append(to, text, len);
}

void table_write_json(struct buf *to, const struct table *table, uint16_t region)
{
    check(table != NULL);
    buf_append_text(to, "{");
    write_key(to, &table->key);
    buf_printf(to,
               ",\"TableName\":\"%s\",\"TableStatus\":\"%s\",\"CreationDateTime\":", table->name,
               status_name(table->status));
    write_seconds(to, table->created_wall_ms);
    write_billing(to, table);
    buf_printf(to, ",\"TableSizeBytes\":%" PRIu64 ",\"ItemCount\":%" PRIu64 ",\"TableArn\":\"",
               table->size_bytes, table->item_count);
    write_arn(to, table, region);
    buf_append_text(to, "\",\"TableId\":\"");
    write_id(to, table->id);
    buf_append_text(to, "\"");
    write_stream(to, table, region);
    write_replicas(to, table);
    if (table->sse_enabled)
        buf_append_text(to, ",\"SSEDescription\":{\"Status\":\"ENABLED\",\"SSEType\":\"KMS\"}");
    if (table->table_class_infrequent)
        buf_append_text(to, ",\"TableClassSummary\":{\"TableClass\":"
                            "\"STANDARD_INFREQUENT_ACCESS\"}");
    buf_printf(to, ",\"DeletionProtectionEnabled\":%s",
               table->deletion_protection ? "true" : "false");
    write_warm(to, table);
    buf_append_text(to, "}");
}
