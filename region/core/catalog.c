/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of this Region and how their descriptions change: one change of a table at a time,
 * first written, then seen. A dropped table gives its name back at once; what becomes of its rows
 * is told in erase.c.
 *
 *      create    hidden, durable -> visible
 *      update    changing, durable -> the new description
 *      drop      changing, durable -> unnamed; users and batches gone -> items, log, meta -> freed
 *
 * Behind the tables that clients see stand those of which only a witness is held here: by group,
 * for their names mean nothing in this Region. */

#include "region/core/region_internal.h"
#include "region/core/strong.h"

static const uint64_t CHANGE_RETRY_NS = (uint64_t)200 * NS_PER_MS;

/* ---- The set ---- */

/* Where a name is or would be. */
static uint32_t position(const struct region *region, struct bytes name)
{
    uint32_t low = 0, high = region->named_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (bytes_compare(bytes_text(region->tables[middle]->d.table.name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t witness_position(const struct region *region, const uint8_t group_id[16])
{
    uint32_t at = region->named_count;
    while (at < region->table_count &&
           memcmp(region->tables[at]->d.table.group_id, group_id, TABLE_ID_LEN) < 0)
        at++;
    return at;
}

struct table_state *catalog_find(const struct region *region, struct bytes name)
{
    uint32_t at = position(region, name);
    if (at == region->named_count || !bytes_is(name, region->tables[at]->d.table.name))
        return NULL;
    return region->tables[at];
}

struct table_state *catalog_find_group(const struct region *region, const uint8_t group_id[16])
{
    for (uint32_t i = 0; i < region->table_count; i++) {
        if (memcmp(region->tables[i]->d.table.group_id, group_id, TABLE_ID_LEN) == 0)
            return region->tables[i];
    }
    return NULL;
}

const struct table *catalog_find_usable(void *region, struct bytes name)
{
    struct table_state *table = catalog_find(region, name);
    if (!table || table->hidden)
        return NULL;
    enum table_status status = table->d.table.status;
    return status == TABLE_ACTIVE || status == TABLE_UPDATING ? &table->d.table : NULL;
}

static uint32_t place(const struct region *region, const struct table_state *table)
{
    return table->witness ? witness_position(region, table->d.table.group_id)
                          : position(region, bytes_text(table->d.table.name));
}

struct table_state *catalog_add(struct region *region, const struct description *description)
{
    struct table_state *table = xcalloc(1, sizeof(*table));
    table->d = *description;
    table->d.table.item_count = table->d.table.size_bytes = 0;
    list_init(&table->link);
    list_init(&table->parked);
    table->partitions = xcalloc(description->table.partition_count, sizeof(*table->partitions));
    for (uint32_t i = 0; i < description->table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        partition->table = table;
        partition->index = i;
        partition->meta.seq = version_epoch_base(description->epoch);
        partition->seq_durable = partition->seq_reported = partition->meta.seq;
        list_init(&partition->dirty);
        list_init(&partition->applies);
    }
    if (description->dropped) {
        list_append(&region->erasing, &table->link);
        return table;
    }
    if (region->table_count == region->table_cap) {
        region->table_cap = region->table_cap ? region->table_cap * 2 : 16;
        region->tables = xrealloc(region->tables, sizeof(struct table_state *) * region->table_cap);
    }
    table->witness = strong_setup_has_witness(&description->strong, region->config.region);
    uint32_t at = place(region, table);
    memmove(region->tables + at + 1, region->tables + at,
            sizeof(struct table_state *) * (region->table_count - at));
    region->tables[at] = table;
    region->table_count++;
    region->named_count += !table->witness;
    return table;
}

static void remove_name(struct region *region, struct table_state *table)
{
    uint32_t at = place(region, table);
    check(at < region->table_count);
    check(region->tables[at] == table);
    region->table_count--;
    region->named_count -= !table->witness;
    memmove(region->tables + at, region->tables + at + 1,
            sizeof(struct table_state *) * (region->table_count - at));
}

struct grave *catalog_grave(const struct region *region, const uint8_t group_id[16])
{
    for (const struct list *link = region->graves.next; link != &region->graves;
         link = link->next) {
        struct grave *grave = container_of(link, struct grave, link);
        if (memcmp(grave->d.table.group_id, group_id, TABLE_ID_LEN) == 0)
            return grave;
    }
    return NULL;
}

static void remove_grave(struct region *region, struct grave *grave)
{
    list_remove(&grave->link);
    region->grave_count--;
    free(grave);
}

void catalog_add_grave(struct region *region, const struct description *description)
{
    struct grave *grave = catalog_grave(region, description->table.group_id);
    if (grave)
        remove_grave(region, grave);
    grave = xcalloc(1, sizeof(*grave));
    grave->d = *description;
    grave->d.grave = true;
    list_append(&region->graves, &grave->link);
    region->grave_count++;
    region->tables_changed = true;
}

void table_free(struct table_state *table)
{
    check(table->lanes == 0);
    list_each(link, spare, &table->parked)
    {
        free(container_of(link, struct parked, link));
    }
    free(table->partitions);
    free(table);
}

void table_release(struct region *region, struct table_state *table)
{
    check(table->users > 0);
    table->users--;
    table_erase(region, table);
}

/* ---- Changes ---- */

struct change_op *change_new(struct table_state *table)
{
    check(!table->changing);
    struct change_op *change = xcalloc(1, sizeof(*change));
    change->table = table;
    change->next = table->d;
    change->kind = CHANGE_UPDATE;
    change->answer_status = TABLE_UPDATING;
    table->changing = true;
    table->change = change;
    table->users++;
    return change;
}

static void put_description(struct region *region, struct batch *batch,
                            const struct description *description)
{
    struct buf *value = &region->log_scratch;
    buf_reset(value);
    description_encode(description, true, value);
    store_batch_put(&batch->bytes, keyspace_table(&region->key_scratch, description->table.number),
                    buf_view(value));
}

static void put_partitions(struct region *region, struct batch *batch, struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct buf *value = &region->log_scratch;
        buf_reset(value);
        partition_meta_encode(&table->partitions[i].meta, value);
        store_batch_put(&batch->bytes,
                        keyspace_partition(&region->key_scratch, table->d.table.number, i),
                        buf_view(value));
    }
}

static void put_grave(struct region *region, struct batch *batch,
                      const struct description *description)
{
    if (region->grave_count >= GRAVES_MAX) {
        const struct grave *oldest = container_of(region->graves.next, struct grave, link);
        store_batch_delete(&batch->bytes,
                           keyspace_grave(&region->key_scratch, oldest->d.table.group_id));
    }
    struct description grave = *description;
    grave.grave = true;
    struct buf *value = &region->log_scratch;
    buf_reset(value);
    description_encode(&grave, false, value);
    store_batch_put(&batch->bytes, keyspace_grave(&region->key_scratch, grave.table.group_id),
                    buf_view(value));
}

void grave_write(struct region *region, const struct description *description)
{
    struct batch *batch = batch_begin(region, NULL, OWNER_NONE, NULL);
    put_grave(region, batch, description);
    batch_emit(region, batch);
    catalog_add_grave(region, description);
}

void table_prepare(struct region *region, struct description *description)
{
    struct table *table = &description->table;
    table->number = region->meta.table_next++;
    for (int i = 0; i < TABLE_ID_LEN; i++)
        table->id[i] = (uint8_t)rng_next(&region->rng);
    /* A random UUID: version 4, variant 1 (RFC 9562). */
    table->id[6] = (uint8_t)((table->id[6] & 0x0f) | 0x40);
    table->id[8] = (uint8_t)((table->id[8] & 0x3f) | 0x80);
    table->created_wall_ms = region->wall_ms;
    table->stream_wall_ms = table->stream == STREAM_NONE ? 0 : region->wall_ms;
    table->deletion_protection = false;
    table->table_class_infrequent = false;
    description->epoch = epoch_take(region);
    description->dropped = false;
}

void change_write(struct region *region, struct change_op *change)
{
    struct batch *batch = batch_begin(region, NULL, OWNER_CATALOG, change);
    put_description(region, batch, &change->next);
    if (change->strong_first)
        strong_put_first(region, batch, &change->next);
    switch (change->kind) {
    case CHANGE_CREATE:
        region_meta_put(region, batch);
        put_partitions(region, batch, change->table);
        /* The group is being joined again: what was left of the last time is void. */
        if (catalog_grave(region, change->next.table.group_id))
            store_batch_delete(&batch->bytes,
                               keyspace_grave(&region->key_scratch, change->next.table.group_id));
        break;
    case CHANGE_UPDATE:
        if (change->strong_first || change->strong_last)
            put_partitions(region, batch, change->table);
        break;
    case CHANGE_DROP:
        check(change->next.dropped);
        if (change->next.member_count > 0)
            put_grave(region, batch, &change->next);
        break;
    }
    batch_emit(region, batch);
}

static void drop(struct region *region, struct table_state *table)
{
    group_close(region, table);
    remove_name(region, table);
    list_append(&region->erasing, &table->link);
    table->d.dropped = true;
    lanes_forget(region, table);
    table->d.table.status = TABLE_DELETING;
    if (table->d.member_count == 0)
        return;
    catalog_add_grave(region, &table->d);
    if (region->grave_count > GRAVES_MAX)
        remove_grave(region, container_of(region->graves.next, struct grave, link));
}

/* The new description takes the place of the old one; figures and derived parts stay. */
static void adopt(struct table_state *table, const struct description *next)
{
    uint64_t items = table->d.table.item_count, bytes = table->d.table.size_bytes;
    table->d = *next;
    table->d.table.item_count = items;
    table->d.table.size_bytes = bytes;
}

static void change_end(struct region *region, struct change_op *change, bool written)
{
    struct table_state *table = change->table;
    table->changing = false;
    table->change = NULL;
    free(change);
    if (!table->d.dropped && !table->hidden) {
        group_settle(region, table);
        stash_merge(region, table);
        /* A step that the disk had no room for is not tried again at once. */
        if (written)
            group_advance(region, table);
        else
            retry_at(region, region->mono_ns + CHANGE_RETRY_NS);
    }
    control_resume(region, table);
    table_release(region, table);
}

void change_durable(struct region *region, struct change_op *change, bool durable)
{
    struct table_state *table = change->table;
    if (!durable) {
        change_abort(region, change);
        return;
    }
    uint32_t charges = group_charges(region, table);
    adopt(table, &change->next);
    region->tables_changed = true;
    switch (change->kind) {
    case CHANGE_CREATE: {
        table->hidden = false;
        struct grave *grave = catalog_grave(region, table->d.table.group_id);
        if (grave)
            remove_grave(region, grave);
        break;
    }
    case CHANGE_UPDATE:
        if (change->strong_last)
            strong_take_over(table);
        break;
    case CHANGE_DROP:
        drop(region, table);
        break;
    }
    if (!table->d.dropped) {
        group_settle(region, table);
        /* A table that is new here because our store was lost may be new to others for the same
         * reason, and they may have said so before we knew of it. And of a change that we began
         * before, and are still to see through, it is not known any more whom we have told. */
        bool begun = (group_charges(region, table) & ~charges) != 0;
        if (!change->told || change->kind == CHANGE_CREATE || begun)
            group_mark_dirty(region, table);
    }
    control_answer_change(region, change);
    change_end(region, change, true);
}

void change_abort(struct region *region, struct change_op *change)
{
    struct table_state *table = change->table;
    if (change->request) {
        request_fail(change->request, API_INTERNAL,
                     "The disk of this Region is full: nothing was changed.");
        request_settle(region, change->request);
    }
    if (change->call)
        call_answer(region, change->call_token, CALL_BUSY, NULL);
    if (change->kind == CHANGE_CREATE) {
        /* Nothing of it was written, so there is nothing to erase. */
        remove_name(region, table);
        table->free_next = region->freed;
        region->freed = table;
        free(change);
        return;
    }
    /* What another Region said in an answer or in its Hello, it does not say again unasked. */
    if (!change->request && !change->call)
        group_mark_dirty(region, table);
    change_end(region, change, false);
}

void change_free_all(struct region *region)
{
    for (uint32_t i = 0; i < region->table_count; i++) {
        free(region->tables[i]->change);
        region->tables[i]->change = NULL;
    }
}
