/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of an eventual run. It reads what is durable at each node straight from its store, so
 * that it does not depend on what the region core believes. */

#include "chaos/sim/eventual_internal.h"

#include <inttypes.h>

#include "conflict/base/check.h"
#include "conflict/ledger.h"
#include "conflict/region_id.h"
#include "region/core/key.h"
#include "region/core/keyspace.h"

void eventual_violate(struct run *run, const char *violation)
{
    if (run->verdict->violation)
        return;
    run->verdict->violation = violation;
    run->verdict->told.violated_ns = run->cluster.sim.now_ns;
}

/* ---- What became durable ---- */

/* The number that workload.c writes into every item as attribute "w". */
static void ghost_learn(struct run *run, const struct record *record, uint32_t node)
{
    ghost_hold(run->ghost, record, workload_writer(record->item), node);
}

/* A row's key within its table; there is one table. */
static struct bytes item_key(struct bytes row_key)
{
    return bytes_make(row_key.at + KEYSPACE_ITEM_PREFIX, row_key.len - KEYSPACE_ITEM_PREFIX);
}

/* What a node's disk says of one partition; all zero when it has none. There is one table. */
static struct partition_meta node_partition(struct run *run, uint32_t node, uint32_t partition)
{
    static const uint8_t begin = KEYSPACE_PARTITION, end = KEYSPACE_PARTITION + 1;
    struct store_read read = {.range = true,
                              .begin = bytes_make(&begin, 1),
                              .end = bytes_make(&end, 1),
                              .rows_max = UINT32_MAX,
                              .bytes_max = UINT64_MAX};
    struct store *store = run->cluster.nodes[node].store;
    struct store_rows rows;
    check(store->ops->read(store, &read, &rows) == STORE_OK);
    struct partition_meta meta = {0};
    for (uint32_t i = 0; i < rows.count; i++)
        if (rows.at[i].key.at[5] == partition >> 8 && rows.at[i].key.at[6] == (partition & 0xff))
            check(partition_meta_decode(rows.at[i].value, &meta));
    return meta;
}

/* Whether every other replica has durably applied `origin`'s log up to seq. */
static bool applied_everywhere(struct run *run, uint32_t origin, uint32_t partition, uint64_t seq)
{
    for (uint32_t i = 0; i < run->joined; i++) {
        struct partition_meta meta = node_partition(run, i, partition);
        if (i != origin && vv_get(&meta.vv, run->cluster.nodes[origin].region) < seq)
            return false;
    }
    return true;
}

static void check_trim(struct run *run, uint32_t node, struct bytes log_key)
{
    uint64_t seq;
    /* Who begins on an empty disk has less than it had acknowledged, and may hand that on. */
    if (!run->logs_uncut || run->verdict->disks_lost > 0 || !keyspace_log_seq(log_key, &seq))
        return;
    uint16_t partition = (uint16_t)(log_key.at[5] << 8 | log_key.at[6]);
    bool needed = false;
    for (uint32_t i = 0; i < run->joined; i++) {
        struct partition_meta meta = node_partition(run, i, partition);
        uint64_t has = vv_get(&meta.vv, run->cluster.nodes[node].region);
        /* One that has nothing of this log is sent all rows, and the log only from there. */
        needed |= i != node && has != 0 && has < seq;
    }
    if (!needed)
        return;
    buf_printf(&run->verdict->detail, "node %u cut partition %u up to %" PRIu64 " of its epoch\n",
               node, partition, seq - version_epoch_base(version_epoch(seq)));
    for (uint32_t i = 0; i < run->joined; i++) {
        struct partition_meta meta = node_partition(run, i, partition);
        uint64_t has = vv_get(&meta.vv, run->cluster.nodes[node].region);
        buf_printf(&run->verdict->detail, "  node %u has %" PRIu64 "\n", i,
                   has - version_epoch_base(version_epoch(has)));
    }
    eventual_violate(run, "a log was cut below what a member still needs");
}

/* A delete leaves no tombstone while the table is regional; what is then on its way to the disk
 * becomes durable a little later. */
static void note_regional(struct run *run)
{
    struct region *core = run->cluster.nodes[0].core;
    const struct table *table = core ? region_table_find(core, bytes_text(WORKLOAD_TABLE)) : NULL;
    if (table && table->mode == TABLE_REGIONAL)
        run->shared_ns = run->cluster.sim.now_ns + 2 * run->cluster.conditions.sync_ns_max;
}

void eventual_persisted(void *context, uint32_t node, struct bytes batch, bool durable)
{
    struct run *run = context;
    note_regional(run);
    if (!durable)
        return;
    enum store_operation operation;
    struct bytes key, value;
    while (store_batch_take(&batch, &operation, &key, &value)) {
        if (operation == STORE_DELETE) {
            check_trim(run, node, key);
            if (key.at[0] == KEYSPACE_ITEM && run->cluster.sim.now_ns <= run->shared_ns)
                ghost_forget(run->ghost, item_key(key));
            else if (key.at[0] == KEYSPACE_ITEM)
                ghost_settle(run->ghost, item_key(key), node);
            SOMETIMES_IF(&run->cluster.sim, TOMBSTONE_PURGED, key.at[0] == KEYSPACE_ITEM);
            continue;
        }
        struct record record;
        if (key.at[0] == KEYSPACE_ITEM && record_decode_body(value, &record)) {
            record.key = item_key(key);
            ghost_learn(run, &record, node);
        } else if (key.at[0] == KEYSPACE_LOG && record_decode_log(value, &record, NULL)) {
            ghost_learn(run, &record, node);
        }
    }
}

/* What a region says it would lose if it died now must not be less than what it would lose. */
static void check_pending(struct run *run, uint32_t node, uint32_t peer)
{
    /* Of a peer that it has not heard of yet a region knows only what its log still holds; and of
     * one whose disk is new, not yet that it is. */
    if (!run->logs_uncut || run->lost[node] || run->lost[peer])
        return;
    struct region *core = run->cluster.nodes[node].core;
    const struct table *table = region_table_find(core, bytes_text(WORKLOAD_TABLE));
    struct replication_lag lag = {0};
    if (!table ||
        !region_lag(core, table, run->cluster.nodes[peer].region, run->cluster.sim.now_ns, &lag))
        return;
    uint64_t lacking = 0;
    for (uint32_t i = 0; i < table->partition_count; i++) {
        struct partition_meta own = node_partition(run, node, i);
        struct partition_meta theirs = node_partition(run, peer, i);
        uint64_t applied = vv_get(&theirs.vv, run->cluster.nodes[node].region);
        if (own.seq > applied && version_epoch(own.seq) == version_epoch(applied))
            lacking += own.seq - applied;
    }
    if (lag.pending < lacking) {
        buf_printf(&run->verdict->detail,
                   "at %.3fs node %u tells of %" PRIu64 " pending to node %u, which lacks %" PRIu64
                   "\n",
                   (double)run->cluster.sim.now_ns / 1e9, node, lag.pending, peer, lacking);
        eventual_violate(run, "a region reports fewer pending writes than its peer lacks");
    }
}

void eventual_check_pending(struct run *run)
{
    for (uint32_t i = 0; i < run->joined; i++)
        for (uint32_t j = 0; j < run->joined; j++)
            if (i != j && run->cluster.nodes[i].core && run->cluster.nodes[i].ready)
                check_pending(run, i, j);
}

/* ---- The end ---- */

/* All item rows of one node's table, in key order; the store's rows are valid until its next read.
 */
static struct store_rows node_items(struct run *run, uint32_t node)
{
    static const uint8_t begin = KEYSPACE_ITEM, end = KEYSPACE_LOG;
    struct store_read read = {.range = true,
                              .begin = bytes_make(&begin, 1),
                              .end = bytes_make(&end, 1),
                              .rows_max = UINT32_MAX,
                              .bytes_max = UINT64_MAX};
    struct store *store = run->cluster.nodes[node].store;
    struct store_rows rows;
    check(store->ops->read(store, &read, &rows) == STORE_OK);
    return rows;
}

/* Whether a node holds for each key exactly the greatest version; a tombstone may have gone. */
/* Rows of a snapshot that ended with its sender's disk are in no vector, so that nobody can ever
 * say that a deletion among them is everywhere. */
static bool is_orphan(struct run *run, uint32_t node, struct bytes key, struct version version)
{
    if (run->verdict->disks_lost == 0)
        return false;
    uint32_t partition = key_partition(key, run->cluster.config.partitions_per_table);
    struct partition_meta meta = node_partition(run, node, partition);
    bool own = version.origin == run->cluster.nodes[node].region &&
               version_epoch(version.seq) == version_epoch(meta.seq);
    return !own && !vv_knows(&meta.vv, version.origin, version.seq);
}

static const char *node_differs(struct run *run, uint32_t node, bool tombstones_gone)
{
    struct store_rows rows = node_items(run, node);
    uint32_t live = 0;
    for (uint32_t i = 0; i < rows.count; i++) {
        struct record record;
        if (!record_decode_body(rows.at[i].value, &record))
            return "a row cannot be read";
        const struct ghost_record *last = ghost_last(run->ghost, item_key(rows.at[i].key));
        if (!last)
            return "a replica holds a key that nobody wrote";
        if (version_compare(last->record.version, record.version) != 0)
            return "a replica holds another version than the greatest";
        if (record.kind != last->record.kind || !bytes_equal(record.item, last->record.item))
            return "a replica holds another image than was written";
        if (record_is_tombstone(&record)) {
            if (tombstones_gone && hlc_ms(record.version.hlc) < run->collectable_ms &&
                !is_orphan(run, node, item_key(rows.at[i].key), record.version))
                return "a tombstone is never collected";
        } else {
            live++;
        }
    }
    uint32_t expected = 0;
    for (uint32_t i = 0; i < ghost_key_count(run->ghost); i++) {
        const struct ghost_record *last = ghost_last(run->ghost, ghost_key_at(run->ghost, i));
        expected += last && !record_is_tombstone(&last->record);
    }
    return live == expected ? NULL : "a replica lacks an item";
}

/* Whether every node has taken in all that every other has written: replicas may be equal before,
 * when what is on its way would lose anyway, but then the ledgers are not complete. */
static bool all_applied(struct run *run)
{
    for (uint32_t i = 0; i < run->cluster.node_count; i++) {
        for (uint32_t p = 0; p < run->cluster.config.partitions_per_table; p++) {
            uint64_t seq = node_partition(run, i, p).seq;
            bool none = seq == version_epoch_base(version_epoch(seq));
            if (!none && !applied_everywhere(run, i, p, seq))
                return false;
        }
    }
    return true;
}

void eventual_tell_vectors(struct run *run)
{
    for (uint32_t p = 0; p < run->cluster.config.partitions_per_table; p++) {
        for (uint32_t i = 0; i < run->cluster.node_count; i++) {
            struct partition_meta meta = node_partition(run, i, p);
            buf_printf(&run->verdict->detail,
                       "partition %u, node %u (%s): wrote %" PRIu64 "+%" PRIu64, p, i,
                       region_id_name(run->cluster.nodes[i].region), version_epoch(meta.seq),
                       meta.seq - version_epoch_base(version_epoch(meta.seq)));
            for (uint32_t j = 0; j < meta.vv.count; j++) {
                uint64_t seq = meta.vv.at[j].seq, epoch = version_epoch(seq);
                buf_printf(&run->verdict->detail, ", %s %" PRIu64 "+%" PRIu64,
                           region_id_name(meta.vv.at[j].origin), epoch,
                           seq - version_epoch_base(epoch));
            }
            buf_append_text(&run->verdict->detail, "\n");
        }
    }
}

const char *eventual_difference(struct run *run, bool tombstones_gone)
{
    for (uint32_t i = 0; i < run->cluster.node_count; i++)
        if (!eventual_disk_has_table(&run->cluster.nodes[i]))
            return "a replica never gets back its table";
    if (!all_applied(run))
        return "a replica never takes in all that another has written";
    for (uint32_t i = 0; i < run->cluster.node_count; i++) {
        const char *difference = node_differs(run, i, tombstones_gone);
        if (difference)
            return difference;
    }
    return NULL;
}

/* A ledger's row (region/core/ledger_rows.c): a format and the table's number and name come first.
 */
static const char *check_row(struct run *run, struct bytes value)
{
    struct bytes name;
    uint8_t format;
    uint32_t number;
    struct ledger_entry entry;
    if (!bytes_take_u8(&value, &format) || !bytes_take_be32(&value, &number) ||
        !bytes_take_prefixed(&value, &name) || !ledger_decode(value, &entry))
        return "it cannot be read";
    return ghost_ledger(run->ghost, entry.key, &entry.winner, &entry.loser);
}

void eventual_check_ledger(struct run *run, uint32_t node)
{
    struct store *store = run->cluster.nodes[node].store;
    struct buf scratch = {0};
    struct store_read read;
    struct store_rows rows;
    region_ledger_read(NULL, BYTES_NONE, UINT32_MAX, &scratch, &read);
    read.bytes_max = UINT64_MAX;
    check(store->ops->read(store, &read, &rows) == STORE_OK);
    for (uint32_t i = 0; i < rows.count; i++) {
        const char *wrong = check_row(run, rows.at[i].value);
        run->verdict->conflicts++;
        SOMETIMES(&run->cluster.sim, LOST_WRITE);
        if (wrong) {
            buf_printf(&run->verdict->detail, "ledger of node %u: %s\n", node, wrong);
            eventual_violate(run, "a ledger row is not true");
        }
    }
    buf_deinit(&scratch);
}

void eventual_check_ledgers(struct run *run)
{
    for (uint32_t i = 0; i < run->cluster.node_count; i++)
        eventual_check_ledger(run, i);
    const struct ghost_record *missing = ghost_unaccounted(run->ghost, run->exact);
    if (missing) {
        const struct ghost_record *last = ghost_last(run->ghost, missing->record.key);
        buf_printf(&run->verdict->detail,
                   "missing: writer %" PRIu64 ", %s, seq %" PRIu64 ", on disks 0x%x; "
                   "greatest: writer %" PRIu64 ", %s, seq %" PRIu64 "\n",
                   missing->writer, region_id_name(missing->record.version.origin),
                   missing->record.version.seq & 0xffff, missing->holders, last->writer,
                   region_id_name(last->record.version.origin), last->record.version.seq & 0xffff);
        eventual_violate(run, "a lost write is in no ledger");
    }
}
