/* SPDX-License-Identifier: Apache-2.0 */
/* The lost-write ledger's rows: when one is written, how the oldest go, how they are read.
 *
 *   value    format u8 = 1 | table number be32 | table name, prefixed | entry (ledger.h,
 * checksummed)
 *
 * The name is in the row because the table may be gone when somebody asks what it lost. An entry
 * that is written again (a snapshot shows once more what the log had shown) replaces itself; the
 * count of rows then is too high until the oldest are dropped. */

#include "conflict/ledger.h"

#include "conflict/record.h"
#include "region/core/region_internal.h"

enum { LEDGER_ROW_FORMAT = 1, TRIM_ROWS_MAX = 256, TRIM_BYTES_MAX = 1024 * 1024 };

void ledger_write(struct region *region, struct batch *batch, struct partition *partition,
                  struct bytes key, enum resolve_relation relation, const struct record *winner,
                  const struct record *loser)
{
    const struct table *table = &partition->table->d.table;
    uint64_t ahead_ms = region->wall_ms + region->config.clock_ahead_ms_max;
    struct ledger_entry entry = {
        .detected_wall_ms = region->wall_ms,
        .relation = relation,
        .clock_suspect = hlc_ms(winner->version.hlc) > ahead_ms,
        .key = key,
        .winner = *winner,
        .loser = *loser,
    };
    struct buf *value = &region->log_scratch;
    buf_reset(value);
    buf_append_u8(value, LEDGER_ROW_FORMAT);
    buf_append_be32(value, table->number);
    buf_append_prefixed(value, bytes_text(table->name));
    ledger_encode(&entry, value);
    struct bytes row_key =
        keyspace_ledger(&region->key_scratch, winner->version, loser->version, table->number);
    store_batch_put(&batch->bytes, row_key, buf_view(value));
    batch->ledger_writes++;
    region->ledger.rows++;
    if (relation == RESOLVE_CONCURRENT)
        region->ledger.concurrent++;
    else
        region->ledger.late++;
    trace_emit(&region->config.trace, TRACE_DEBUG, "lost write table=%s relation=%s", table->name,
               relation == RESOLVE_CONCURRENT ? "concurrent" : "late");
}

void ledger_trim(struct region *region)
{
    if (region->ledger_trimming || region->ledger.rows <= region->config.ledger_rows_max)
        return;
    region->ledger_trimming = true;
    uint64_t over = region->ledger.rows - region->config.ledger_rows_max;
    uint64_t id;
    read_new(region, READ_LEDGER, NULL, NULL, &id);
    read_emit_range(region, id, keyspace_tag(&region->key_scratch, KEYSPACE_LEDGER),
                    keyspace_tag(&region->end_scratch, KEYSPACE_END), false,
                    over < TRIM_ROWS_MAX ? (uint32_t)over : TRIM_ROWS_MAX, TRIM_BYTES_MAX);
}

void ledger_trim_rows(struct region *region, const struct region_input *in)
{
    if (in->outcome != STORE_OK) {
        region->ledger_trimming = false;
        return;
    }
    struct batch *batch = batch_begin(region, NULL, OWNER_LEDGER, NULL);
    for (uint32_t i = 0; i < in->rows->count; i++)
        store_batch_delete(&batch->bytes, in->rows->at[i].key);
    uint64_t gone = in->rows->count;
    region->ledger.rows -= gone > 0 && gone < region->ledger.rows ? gone : region->ledger.rows;
    batch->ledger_writes = 1; /* the counts go with it */
    batch_emit(region, batch);
}

void ledger_trimmed(struct region *region, bool durable)
{
    region->ledger_trimming = false;
    if (durable)
        ledger_trim(region);
}

void region_ledger_read(const struct region *region, struct bytes after, uint32_t rows_max,
                        struct buf *scratch, struct store_read *ret)
{
    (void)region;
    check(rows_max > 0);
    buf_reset(scratch);
    size_t begin_len = after.len + 1;
    if (after.len > 0) {
        buf_append_bytes(scratch, after);
        buf_append_u8(scratch, 0); /* the next key there can be */
    } else {
        buf_append_u8(scratch, KEYSPACE_LEDGER);
    }
    buf_append_u8(scratch, KEYSPACE_END);
    *ret = (struct store_read){
        .range = true,
        .begin = bytes_make(scratch->at, begin_len),
        .end = bytes_make(scratch->at + begin_len, 1),
        .rows_max = rows_max,
        .bytes_max = 4 * 1024 * 1024,
    };
}

bool region_ledger_row(const struct region *region, const struct store_row *row,
                       const struct table **ret_table, struct bytes *ret_table_name,
                       struct ledger_entry *ret)
{
    struct bytes value = row->value, name;
    uint8_t format;
    uint32_t number;
    struct ledger_entry entry;
    if (row->key.len == 0 || row->key.at[0] != KEYSPACE_LEDGER || !bytes_take_u8(&value, &format) ||
        format != LEDGER_ROW_FORMAT || !bytes_take_be32(&value, &number) ||
        !bytes_take_prefixed(&value, &name) || !ledger_decode(value, &entry))
        return false;
    const struct table *table = region_table_find(region, name);
    *ret_table = table && table->number == number ? table : NULL;
    *ret_table_name = name;
    *ret = entry;
    return true;
}
