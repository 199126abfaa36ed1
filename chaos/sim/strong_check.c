/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of what is on the disks. It decodes the rows of every batch as it is handed over and as
 * it becomes durable, so it does not depend on what a region core believes. */

#include <inttypes.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "chaos/sim/strong_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/record.h"
#include "region/core/key.h"
#include "region/core/keyspace.h"
#include "region/core/strong_rows.h"

/* ---- Books ---- */

struct strong_writer *strong_writer_at(struct strong_run *run, uint64_t writer)
{
    while (writer >= run->writer_cap) {
        uint64_t cap = run->writer_cap ? run->writer_cap * 2 : 256;
        run->writers = xrealloc(run->writers, cap * sizeof(*run->writers));
        memset(run->writers + run->writer_cap, 0, (cap - run->writer_cap) * sizeof(*run->writers));
        run->writer_cap = cap;
    }
    return &run->writers[writer];
}

static struct strong_slot *slot_at(struct strong_run *run, uint32_t partition, uint64_t index)
{
    struct strong_log *log = &run->logs[partition];
    check(index > 0 && index < 1000000);
    if (index > log->cap) {
        uint64_t cap = log->cap ? log->cap : 64;
        while (cap < index)
            cap *= 2;
        log->slots = xrealloc(log->slots, cap * sizeof(*log->slots));
        log->cap = cap;
    }
    if (index > log->count) {
        memset(log->slots + log->count, 0, (index - log->count) * sizeof(*log->slots));
        log->count = index;
    }
    return &log->slots[index - 1];
}

static uint64_t hash_of(struct bytes key, struct bytes item)
{
    uint64_t hash = XXH3_64bits_withSeed(item.at, item.len, XXH3_64bits(key.at, key.len));
    return hash ? hash : 1;
}

static uint32_t count_nodes(uint32_t nodes)
{
    return (uint32_t)__builtin_popcount(nodes);
}

/* ---- Log rows ---- */

static struct strong_seen *seen_at(struct strong_slot *slot, uint64_t term)
{
    for (uint32_t i = 0; i < slot->count; i++) {
        if (slot->seen[i].term == term)
            return &slot->seen[i];
    }
    /* The oldest term is the least likely to be asked for. */
    if (slot->count == TERMS_MAX) {
        memmove(slot->seen, slot->seen + 1, (TERMS_MAX - 1) * sizeof(*slot->seen));
        slot->count--;
    }
    struct strong_seen *seen = &slot->seen[slot->count++];
    *seen = (struct strong_seen){.term = term};
    return seen;
}

static void note_index(struct strong_writer *writer, uint32_t partition, uint64_t index)
{
    writer->partition = partition;
    for (uint32_t i = 0; i < writer->index_count; i++) {
        if (writer->indexes[i] == index)
            return;
    }
    if (writer->index_count == TERMS_MAX)
        memmove(writer->indexes, writer->indexes + 1, (TERMS_MAX - 1) * sizeof(*writer->indexes));
    else
        writer->index_count++;
    writer->indexes[writer->index_count - 1] = index;
}

struct log_key {
    uint32_t table, epoch;
    uint16_t partition;
    uint64_t index;
};

static struct log_key log_key_of(struct bytes key)
{
    struct log_key ret;
    uint8_t tag;
    bool whole = bytes_take_u8(&key, &tag) && bytes_take_be32(&key, &ret.table) &&
                 bytes_take_be16(&key, &ret.partition) && bytes_take_be32(&key, &ret.epoch) &&
                 bytes_take_be64(&key, &ret.index);
    check(whole);
    check(ret.partition < PARTITIONS_MAX);
    return ret;
}

/* An entry is on a disk. That it has been on two is what counts: what two members have lost since,
 * the run allows no more than one to lose. */
static void note_entry(struct strong_run *run, uint32_t node, struct bytes row_key,
                       struct bytes value)
{
    struct log_key key = log_key_of(row_key);
    struct strong_log *log = &run->logs[key.partition];
    struct consensus_entry entry;
    uint64_t synced;
    if (key.epoch < log->epoch)
        return;
    if (key.epoch > log->epoch) {
        log->epoch = key.epoch;
        log->count = 0;
    }
    if (!strong_log_decode(key.index, value, &entry, &synced)) {
        strong_violate(run, "a row of the log cannot be read", "node %u", node);
        return;
    }
    struct strong_seen *seen = seen_at(slot_at(run, key.partition, key.index), entry.term);
    seen->nodes |= (uint32_t)1 << node;
    struct strong_payload payload;
    /* A witness keeps the entry without its payload once both data members have it. */
    if (entry.kind != CONSENSUS_WRITE || entry.payload.len == 0 ||
        !strong_payload_decode(entry.payload, &payload) || payload.kind == STRONG_SEAL)
        return;
    seen->item_hash = hash_of(payload.key, payload.item);
    seen->removes = payload.kind == STRONG_DELETE;
    if (sim_strong_item(payload.item, NULL, &seen->writer))
        note_index(strong_writer_at(run, seen->writer), key.partition, key.index);
}

/* ---- Item rows ---- */

static void note_item(struct strong_run *run, uint32_t node, struct bytes row_key,
                      struct bytes value, bool durable)
{
    struct bytes key =
        bytes_make(row_key.at + KEYSPACE_ITEM_PREFIX, row_key.len - KEYSPACE_ITEM_PREFIX);
    struct record record;
    int64_t number;
    uint64_t writer;
    if (!record_decode_body(value, &record)) {
        strong_violate(run, "a row of an item cannot be read", "node %u", node);
        return;
    }
    if (record.kind != RECORD_PUT)
        return;
    if (!sim_strong_item(record.item, &number, &writer)) {
        strong_violate(run, "a stored item is none of the workload", "node %u", node);
        return;
    }
    if (record.version.hlc == record.version.seq) {
        uint32_t partition = key_partition(key, run->cluster.config.partitions_per_table);
        struct strong_slot *slot = slot_at(run, partition, record.version.seq);
        uint64_t hash = hash_of(key, record.item);
        bool on_two = false;
        for (uint32_t i = 0; i < slot->count; i++)
            on_two |= slot->seen[i].item_hash == hash && count_nodes(slot->seen[i].nodes) >= 2;
        if (!on_two)
            strong_violate(run, "an item was written before its entry was on two disks",
                           "node %u, partition %u, index %" PRIu64, node, partition,
                           record.version.seq);
        if (slot->item_hash && slot->item_hash != hash)
            strong_violate(run, "two members wrote different items for one index",
                           "node %u, partition %u, index %" PRIu64, node, partition,
                           record.version.seq);
        slot->item_hash = hash;
    }
    if (!durable)
        return;
    struct strong_writer *by = strong_writer_at(run, writer);
    if (by->refused)
        strong_violate(run, "a refused write is done all the same", "writer %" PRIu64, writer);
    if (by->applied && by->number != number)
        strong_violate(run, "two members hold different items of one writer", "writer %" PRIu64,
                       writer);
    by->applied = true;
    by->number = number;
}

static void note_partition(struct strong_run *run, uint32_t node, struct bytes row_key,
                           struct bytes value)
{
    uint8_t tag;
    uint32_t table;
    uint16_t partition;
    struct partition_meta meta;
    bool whole = bytes_take_u8(&row_key, &tag) && bytes_take_be32(&row_key, &table) &&
                 bytes_take_be16(&row_key, &partition) && partition_meta_decode(value, &meta);
    check(whole);
    check(partition < PARTITIONS_MAX);
    if (table != run->numbers[node]) { /* made anew */
        run->numbers[node] = table;
        memset(run->applied[node], 0, sizeof(run->applied[node]));
    }
    uint64_t *applied = &run->applied[node][partition];
    if (meta.applied_index < *applied && meta.applied_index != 0)
        strong_violate(run, "an applied index moved back",
                       "node %u, partition %u, from %" PRIu64 " to %" PRIu64, node, partition,
                       *applied, meta.applied_index);
    *applied = meta.applied_index;
}

void strong_persisted(void *context, uint32_t node, struct bytes batch, bool durable)
{
    struct strong_run *run = context;
    enum store_operation operation;
    struct bytes key, value;
    while (store_batch_take(&batch, &operation, &key, &value)) {
        if (operation == STORE_DELETE)
            continue;
        if (key.at[0] == KEYSPACE_STRONG_LOG && durable)
            note_entry(run, node, key, value);
        else if (key.at[0] == KEYSPACE_ITEM)
            note_item(run, node, key, value, durable);
        else if (key.at[0] == KEYSPACE_PARTITION && durable)
            note_partition(run, node, key, value);
    }
}

void strong_disk_lost(struct strong_run *run, uint32_t node)
{
    memset(run->applied[node], 0, sizeof(run->applied[node]));
}

void strong_check_done(struct strong_run *run, const struct sim_strong_part *part)
{
    if (part->linear.kind == LINEAR_DELETE)
        return; /* a deletion's entry does not name its writer */
    const struct strong_writer *writer = strong_writer_at(run, part->writer);
    for (uint32_t i = 0; i < writer->index_count; i++) {
        const struct strong_slot *slot = slot_at(run, writer->partition, writer->indexes[i]);
        for (uint32_t j = 0; j < slot->count; j++) {
            if (slot->seen[j].writer == part->writer && count_nodes(slot->seen[j].nodes) >= 2)
                return;
        }
    }
    strong_violate(run, "a client was answered before its write was on two disks",
                   "writer %" PRIu64, part->writer);
}

/* ---- The end ---- */

static struct store_rows rows_of(struct strong_run *run, uint32_t node, enum keyspace_tag tag)
{
    cleanup(buf_deinit) struct buf begin;
    cleanup(buf_deinit) struct buf end;
    buf_init(&begin);
    buf_init(&end);
    buf_append_u8(&begin, (uint8_t)tag);
    buf_append_u8(&end, (uint8_t)tag);
    buf_append_be32(&begin, strong_table(run, node)->number);
    buf_append_be32(&end, strong_table(run, node)->number + 1);
    struct store_read read = {.range = true,
                              .begin = buf_view(&begin),
                              .end = buf_view(&end),
                              .rows_max = UINT32_MAX,
                              .bytes_max = UINT64_MAX};
    struct store *store = run->cluster.nodes[node].store;
    struct store_rows rows;
    check(store->ops->read(store, &read, &rows) == STORE_OK);
    return rows;
}

static bool same_rows(const struct store_rows *a, const struct store_rows *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct store_row *x = &a->at[i], *y = &b->at[i];
        /* Behind the table's number, which is each Region's own. */
        if (x->key.len != y->key.len ||
            memcmp(x->key.at + KEYSPACE_ITEM_PREFIX, y->key.at + KEYSPACE_ITEM_PREFIX,
                   x->key.len - KEYSPACE_ITEM_PREFIX) != 0 ||
            !bytes_equal(x->value, y->value))
            return false;
    }
    return true;
}

static const char *behind(const struct strong_run *run, uint32_t node)
{
    const struct region *core = run->cluster.nodes[node].core;
    for (uint32_t i = 0; i < region_group_count(core); i++) {
        struct region_group group = region_group_at(core, i);
        if (group.commit != group.last || group.applied != group.last || group.pending > 0)
            return "a member does not come to the end of its log";
        if (run->applied[node][group.partition] != group.applied)
            return "an applied index does not become durable";
    }
    return NULL;
}

const char *strong_miscount(struct strong_run *run, uint32_t node)
{
    uint64_t items[PARTITIONS_MAX] = {0}, sizes[PARTITIONS_MAX] = {0}, all = 0;
    struct store_rows rows = rows_of(run, node, KEYSPACE_ITEM);
    for (uint32_t i = 0; i < rows.count; i++) {
        struct bytes key = bytes_make(rows.at[i].key.at + KEYSPACE_ITEM_PREFIX,
                                      rows.at[i].key.len - KEYSPACE_ITEM_PREFIX);
        uint32_t partition = key_partition(key, run->cluster.config.partitions_per_table);
        struct record record;
        if (!record_decode_body(rows.at[i].value, &record) || record.kind != RECORD_PUT)
            return "a row is no item";
        items[partition]++;
        sizes[partition] += item_size(record.item);
        all++;
    }
    rows = rows_of(run, node, KEYSPACE_PARTITION);
    for (uint32_t i = 0; i < rows.count; i++) {
        struct partition_meta meta;
        uint32_t partition = (uint32_t)rows.at[i].key.at[5] << 8 | rows.at[i].key.at[6];
        check(partition_meta_decode(rows.at[i].value, &meta));
        if (meta.items != items[partition] || meta.bytes != sizes[partition]) {
            trace_emit(&run->cluster.config.trace, TRACE_DEBUG,
                       "node %u counts %llu items of partition %u, and has %llu", node,
                       (unsigned long long)meta.items, partition,
                       (unsigned long long)items[partition]);
            return "a partition's counts are not those of its rows";
        }
    }
    return strong_table(run, node)->item_count == all ? NULL : "a table's count is wrong";
}

const char *strong_difference(struct strong_run *run)
{
    uint32_t first = run->data[0];
    for (uint32_t i = 0; i < run->data_count; i++) {
        uint32_t node = run->data[i];
        const char *wrong = behind(run, node);
        if (!wrong)
            wrong = strong_miscount(run, node);
        if (wrong)
            return wrong;
        for (uint32_t p = 0; p < run->cluster.config.partitions_per_table; p++) {
            if (run->applied[node][p] != run->applied[first][p])
                return "members do not come to the same index";
        }
        struct store_rows theirs = rows_of(run, first, KEYSPACE_ITEM);
        struct store_rows own = rows_of(run, node, KEYSPACE_ITEM);
        if (node != first && !same_rows(&own, &theirs))
            return "members hold different items at the same index";
    }
    return NULL;
}

void strong_check_deinit(struct strong_run *run)
{
    for (uint32_t i = 0; i < PARTITIONS_MAX; i++)
        free(run->logs[i].slots);
    free(run->writers);
    free(run->records);
}
