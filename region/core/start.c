/* SPDX-License-Identifier: Apache-2.0 */
/* From a store to a serving Region. All small rows lie in one range and are read in pages: whose
 * store it is, the clock's reservation, tables, their partitions. A new store first writes its own
 * meta row. What a crash interrupted needs no list of its own: a dropped table is erased on, a
 * member that is joining or leaving is told again (group_advance). */

#include "conflict/base/plant.h"
#include "conflict/region_id.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

enum { START_ROWS_MAX = 1024, START_BYTES_MAX = 1024 * 1024 };

/* 2025-01-01; epochs are seconds since then and fit 30 bits until 2059. */
static const uint64_t EPOCH_ORIGIN_S = 1735689600;
static const uint64_t EPOCH_MAX = ((uint64_t)1 << (64 - VERSION_EPOCH_SHIFT)) - 1;

uint64_t epoch_take(struct region *region)
{
    uint64_t wall_s = region->wall_ms / 1000;
    uint64_t epoch = wall_s > EPOCH_ORIGIN_S ? wall_s - EPOCH_ORIGIN_S : 1;
    if (planted(PLANT_EPOCH_REUSED))
        epoch = 1;
    if (epoch <= region->meta.epoch)
        epoch = region->meta.epoch + 1;
    check(epoch <= EPOCH_MAX);
    region->meta.epoch = epoch;
    return epoch;
}

void region_meta_put(struct region *region, struct batch *batch)
{
    struct buf *value = &region->log_scratch;
    buf_reset(value);
    region_meta_encode(&region->meta, value);
    store_batch_put(&batch->bytes, keyspace_tag(&region->key_scratch, KEYSPACE_META),
                    buf_view(value));
}

static void read_from(struct region *region, struct bytes begin)
{
    uint64_t id;
    read_new(region, READ_START, NULL, NULL, &id);
    read_emit_range(region, id, begin, keyspace_tag(&region->end_scratch, KEYSPACE_START_END),
                    false, START_ROWS_MAX, START_BYTES_MAX);
}

void start_begin(struct region *region)
{
    hlc_init(&region->hlc, region->config.clock_mode, region->config.clock_ahead_ms_max, 0);
    read_from(region, keyspace_tag(&region->key_scratch, KEYSPACE_META));
}

static struct table_state *find_number(const struct region *region, uint32_t number)
{
    for (uint32_t i = 0; i < region->table_count; i++) {
        if (region->tables[i]->d.table.number == number)
            return region->tables[i];
    }
    for (const struct list *link = region->erasing.next; link != &region->erasing;
         link = link->next) {
        struct table_state *table = container_of(link, struct table_state, link);
        if (table->d.table.number == number)
            return table;
    }
    return NULL;
}

static bool take_table(struct region *region, struct bytes key, struct bytes value)
{
    struct description description;
    uint32_t number;
    if (!description_decode(value, true, &description) || !bytes_take_be32(&key, &number) ||
        number != description.table.number || number >= region->meta.table_next)
        return false;
    catalog_add(region, &description);
    return true;
}

static bool take_partition(struct region *region, struct bytes key, struct bytes value)
{
    uint32_t number;
    uint16_t index;
    if (!bytes_take_be32(&key, &number) || !bytes_take_be16(&key, &index))
        return false;
    struct table_state *table = find_number(region, number);
    if (!table || index >= table->d.table.partition_count)
        return false;
    struct partition *partition = &table->partitions[index];
    if (!partition_meta_decode(value, &partition->meta))
        return false;
    partition->seq_durable = partition->seq_reported = partition->meta.seq;
    table->d.table.item_count += partition->meta.items;
    table->d.table.size_bytes += partition->meta.bytes;
    return true;
}

static bool take_row(struct region *region, const struct store_row *row)
{
    struct bytes key = row->key;
    uint8_t tag;
    uint64_t reserved;
    struct description description;
    if (!bytes_take_u8(&key, &tag))
        return false;
    switch ((enum keyspace_tag)tag) {
    case KEYSPACE_META:
        return region_meta_decode(row->value, &region->meta);
    case KEYSPACE_CLOCK:
        if (!clock_decode(row->value, &reserved))
            return false;
        hlc_init(&region->hlc, region->config.clock_mode, region->config.clock_ahead_ms_max,
                 reserved);
        return true;
    case KEYSPACE_LEDGER_COUNTS:
        return ledger_counts_decode(row->value, &region->ledger);
    case KEYSPACE_GRAVE:
        if (!description_decode(row->value, false, &description))
            return false;
        catalog_add_grave(region, &description);
        return true;
    case KEYSPACE_TABLE:
        return take_table(region, key, row->value);
    case KEYSPACE_PARTITION:
        return take_partition(region, key, row->value);
    case KEYSPACE_STRONG_HARD:
    case KEYSPACE_STRONG_BASE:
        return true; /* each group reads its own */
    case KEYSPACE_START_END:
    case KEYSPACE_ITEM:
    case KEYSPACE_LOG:
    case KEYSPACE_STRONG_LOG:
    case KEYSPACE_LEDGER:
    case KEYSPACE_END:
        break;
    }
    return false;
}

/* Somebody was joining or leaving. (Anything else that a peer has missed, it hears in our Hello.)
 */
static bool unsettled(const struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        enum member_state state = table->d.members[i].state;
        if (state == MEMBER_CREATING || state == MEMBER_DELETING)
            return true;
    }
    return false;
}

static void serve(struct region *region)
{
    region->ready = true;
    region->tables_changed = true;
    /* Identifiers must not repeat those drawn before a restart: every table takes an epoch of its
     * own, so a store that has one table more brings another seed. */
    rng_init(&region->rng, region->config.seed ^ (uint64_t)region->config.region << 48 ^
                               region->meta.epoch * 0x9e3779b97f4a7c15U);
    effect_add(region, REGION_READY);
    for (uint32_t i = 0; i < region->table_count; i++)
        group_settle(region, region->tables[i]);
    strong_start_all(region);
    group_tell_peers(region);
    for (uint32_t i = 0; i < region->config.peer_count; i++) {
        for (uint32_t outbound = 0; outbound < 2; outbound++) {
            if (!region->peer_up[i][outbound])
                continue;
            struct replicator_input up = {.kind = REPLICATOR_PEER_UP,
                                          .peer = region->config.peers[i],
                                          .outbound = outbound != 0};
            replicate(region, &up);
        }
    }
    for (uint32_t i = 0; i < region->table_count; i++) {
        if (unsettled(region->tables[i]))
            group_mark_dirty(region, region->tables[i]);
    }
    group_advance_all(region);
    list_each(link, spare, &region->erasing)
    {
        table_erase(region, container_of(link, struct table_state, link));
    }
    ledger_trim(region);
    trace_emit(&region->config.trace, TRACE_INFO, "ready tables=%u epoch=%llu", region->table_count,
               (unsigned long long)region->meta.epoch);
}

static void write_meta(struct region *region)
{
    struct batch *batch = batch_begin(region, NULL, OWNER_START, NULL);
    region_meta_put(region, batch);
    batch_emit(region, batch);
}

void start_retry(struct region *region)
{
    if (region->mono_ns < region->retry_at_ns)
        return;
    region->retry_at_ns = UINT64_MAX;
    write_meta(region);
}

void start_durable(struct region *region, bool durable)
{
    if (durable)
        serve(region);
    else
        retry_at(region, region->mono_ns + (uint64_t)1000 * NS_PER_MS);
}

/* Nothing may be built on a store that cannot be read: the process ends here, the data stays. */
static void refuse(const struct region *region, const char *why)
{
    trace_emit(&region->config.trace, TRACE_ERROR, "cannot start: %s", why);
    check_failed("the store cannot be used; see the line before", __FILE__, __LINE__);
}

void start_rows(struct region *region, const struct region_input *in)
{
    if (in->outcome != STORE_OK)
        refuse(region, read_failure(in->outcome));
    for (uint32_t i = 0; i < in->rows->count; i++) {
        if (!take_row(region, &in->rows->at[i]))
            refuse(region, "a row that describes the store or its tables is damaged");
    }
    if (in->rows->more) {
        struct buf *next = &region->key_scratch;
        buf_reset(next);
        buf_append_bytes(next, in->rows->at[in->rows->count - 1].key);
        buf_append_u8(next, 0);
        read_from(region, buf_view(next));
        return;
    }
    if (region->meta.region == REGION_ID_NONE) {
        region->meta.region = region->config.region;
        region->meta.table_next = 1;
        epoch_take(region);
        write_meta(region);
        return;
    }
    if (region->meta.region != region->config.region)
        refuse(region, "this data directory belongs to another Region");
    serve(region);
}
