/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of tables that are gone, and what consensus groups leave behind in a table that was
 * strong and is not any more. Both go in bounded steps: a page is read, a batch deletes it. Of a
 * dropped table the row that says so goes last, so a crash only means that erasing begins again; a
 * table that lives on looks for leavings once in each life of the Region.
 *
 *      dropped   users and batches gone -> items, log, groups' rows -> metas, description -> freed
 *      shedding  the groups' last batches done -> their rows, partition by partition */

#include "region/core/region_internal.h"

enum { ERASE_ROWS_MAX = 512, ERASE_BYTES_MAX = 256 * 1024 };
static const uint64_t ERASE_RETRY_NS = (uint64_t)1000 * NS_PER_MS;

/* What a dropped table has in the store, in the order in which it goes; its description and its
 * partitions' metas follow in one last batch. A table that sheds has only the rows of its groups to
 * give up. */
static const enum keyspace_tag erase_order[] = {KEYSPACE_ITEM, KEYSPACE_LOG, KEYSPACE_STRONG_LOG,
                                                KEYSPACE_STRONG_HARD, KEYSPACE_STRONG_BASE};
enum { ERASE_SHED_FROM = 2 };

/* The begin of a table's rows of one kind. */
static struct bytes erase_begin(struct buf *to, enum keyspace_tag tag, uint32_t number)
{
    switch ((int)tag) {
    case KEYSPACE_ITEM:
        return keyspace_item(to, number, BYTES_NONE);
    case KEYSPACE_LOG:
        return keyspace_log(to, number, 0, 0);
    case KEYSPACE_STRONG_LOG:
        return keyspace_strong_log(to, number, 0, 0, 0);
    case KEYSPACE_STRONG_HARD:
        return keyspace_strong_hard(to, number, 0, 0, 0);
    case KEYSPACE_STRONG_BASE:
        return keyspace_strong_base(to, number, 0, 0);
    default:
        unreachable();
    }
}

/* The begin of a partition's strong rows from an epoch on. */
static struct bytes shed_begin(struct buf *to, enum keyspace_tag tag, uint32_t number,
                               uint32_t partition, uint32_t epoch)
{
    switch ((int)tag) {
    case KEYSPACE_STRONG_LOG:
        return keyspace_strong_log(to, number, partition, epoch, 0);
    case KEYSPACE_STRONG_HARD:
        return keyspace_strong_hard(to, number, partition, epoch, 0);
    case KEYSPACE_STRONG_BASE:
        return keyspace_strong_base(to, number, partition, epoch);
    default:
        unreachable();
    }
}

static void erase_read(struct region *region, struct table_state *table)
{
    uint32_t number = table->d.table.number;
    enum keyspace_tag tag = erase_order[table->erase_step];
    struct buf *begin = &region->key_scratch, *end = &region->end_scratch;
    struct bytes from, to;
    if (table->d.dropped) {
        from = erase_begin(begin, tag, number);
        to = erase_begin(end, tag, number + 1);
    } else {
        from = shed_begin(begin, tag, number, table->shed_partition, 0);
        to = shed_begin(end, tag, number, table->shed_partition, table->shed_epoch + 1);
    }
    uint64_t id;
    read_new(region, READ_ERASE, table, NULL, &id);
    read_emit_range(region, id, from, to, false, ERASE_ROWS_MAX, ERASE_BYTES_MAX);
}

/* Every batch that the groups have sent on its way is done. */
static bool groups_written(const struct region *region, const struct table_state *table)
{
    return list_empty(&region->batches) ||
           container_of(region->batches.next, struct batch, link)->id > table->shed_after;
}

static void shed(struct region *region, struct table_state *table)
{
    if (!groups_written(region, table))
        return;
    check(!strong_setup_runs(&table->d.strong));
    table->shed_wanted = false;
    table->shedding = true;
    table->shed_epoch = table->d.strong.epoch;
    table->shed_partition = 0;
    table->erasing = true;
    table->erase_after_ns = 0;
    table->erase_step = ERASE_SHED_FROM;
    erase_read(region, table);
}

void table_shed(struct region *region, struct table_state *table)
{
    if (table->d.strong.epoch == 0 || table->shed_epoch == table->d.strong.epoch)
        return;
    if (!table->shed_wanted)
        table->shed_after = region->batch_last;
    table->shed_wanted = true;
    table_erase(region, table);
}

void table_erase(struct region *region, struct table_state *table)
{
    if (!table->d.dropped && !table->shed_wanted)
        return;
    if (table->erasing || !region->ready)
        return;
    if (region->mono_ns < table->erase_after_ns) {
        retry_at(region,
                 table->erase_after_ns); /* somebody else's came before and took its place */
        return;
    }
    if (!table->d.dropped) {
        shed(region, table);
        return;
    }
    if (table->users > 0 || table->batches > 0)
        return;
    table->erasing = true;
    table->erase_after_ns = 0;
    table->erase_step = 0;
    erase_read(region, table);
}

/* The last batch: what describes the table. */
static void erase_description(struct region *region, struct table_state *table)
{
    struct batch *batch = batch_begin(region, NULL, OWNER_ERASE, table);
    uint32_t number = table->d.table.number;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++)
        store_batch_delete(&batch->bytes, keyspace_partition(&region->key_scratch, number, i));
    store_batch_delete(&batch->bytes, keyspace_table(&region->key_scratch, number));
    table->erase_step = array_len(erase_order);
    batch_emit(region, batch);
}

static void erase_later(struct region *region, struct table_state *table)
{
    table->erasing = false;
    table->shed_wanted = table->shedding;
    table->shedding = false;
    table->erase_after_ns = region->mono_ns + ERASE_RETRY_NS;
    retry_at(region, table->erase_after_ns);
}

/* No more rows of this kind. */
static void erase_next(struct region *region, struct table_state *table)
{
    if (++table->erase_step < array_len(erase_order)) {
        erase_read(region, table);
    } else if (table->d.dropped) {
        erase_description(region, table);
    } else if (++table->shed_partition < table->d.table.partition_count) {
        table->erase_step = ERASE_SHED_FROM;
        erase_read(region, table);
    } else {
        table->erasing = table->shedding = false;
    }
}

/* A table that was dropped while it shed begins to be erased, once nobody needs it. */
static bool erase_begins_anew(struct region *region, struct table_state *table)
{
    if (!table->d.dropped || !table->shedding)
        return false;
    table->erasing = table->shedding = false;
    table_erase(region, table);
    return true;
}

void table_erase_rows(struct region *region, struct table_state *table,
                      const struct region_input *in)
{
    if (erase_begins_anew(region, table))
        return;
    if (in->outcome != STORE_OK) {
        erase_later(region, table);
        return;
    }
    if (in->rows->count == 0) {
        erase_next(region, table);
        return;
    }
    struct batch *batch = batch_begin(region, NULL, OWNER_ERASE, table);
    for (uint32_t i = 0; i < in->rows->count; i++)
        store_batch_delete(&batch->bytes, in->rows->at[i].key);
    batch_emit(region, batch);
}

void table_erased(struct region *region, struct table_state *table, bool durable)
{
    check(table->erasing);
    if (erase_begins_anew(region, table))
        return;
    if (!durable) {
        erase_later(region, table);
    } else if (table->erase_step == array_len(erase_order)) {
        list_remove(&table->link);
        table->free_next = region->freed;
        region->freed = table;
    } else {
        erase_read(region, table);
    }
}
