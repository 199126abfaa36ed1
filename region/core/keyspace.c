/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and small rows of the store; the picture is in keyspace.h. */

#include "region/core/keyspace.h"

#include "conflict/base/check.h"

enum { ROW_FORMAT = 1 };

static struct buf *start(struct buf *to, enum keyspace_tag tag)
{
    buf_reset(to);
    buf_append_u8(to, (uint8_t)tag);
    return to;
}

struct bytes keyspace_tag(struct buf *to, enum keyspace_tag tag)
{
    return buf_view(start(to, tag));
}

struct bytes keyspace_grave(struct buf *to, const uint8_t group_id[16])
{
    buf_append(start(to, KEYSPACE_GRAVE), group_id, 16);
    return buf_view(to);
}

struct bytes keyspace_table(struct buf *to, uint32_t table)
{
    buf_append_be32(start(to, KEYSPACE_TABLE), table);
    return buf_view(to);
}

struct bytes keyspace_partition(struct buf *to, uint32_t table, uint32_t partition)
{
    buf_append_be32(start(to, KEYSPACE_PARTITION), table);
    buf_append_be16(to, (uint16_t)partition);
    return buf_view(to);
}

struct bytes keyspace_item(struct buf *to, uint32_t table, struct bytes key)
{
    buf_append_be32(start(to, KEYSPACE_ITEM), table);
    buf_append_bytes(to, key);
    return buf_view(to);
}

struct bytes keyspace_item_hash(struct buf *to, uint32_t table, uint64_t hash)
{
    buf_append_be32(start(to, KEYSPACE_ITEM), table);
    buf_append_be64(to, hash);
    return buf_view(to);
}

struct bytes keyspace_log(struct buf *to, uint32_t table, uint32_t partition, uint64_t seq)
{
    buf_append_be32(start(to, KEYSPACE_LOG), table);
    buf_append_be16(to, (uint16_t)partition);
    buf_append_be64(to, seq);
    return buf_view(to);
}

static void start_strong(struct buf *to, enum keyspace_tag tag, uint32_t table, uint32_t partition,
                         uint32_t epoch)
{
    start(to, tag);
    buf_append_be32(to, table);
    buf_append_be16(to, (uint16_t)partition);
    buf_append_be32(to, epoch);
}

struct bytes keyspace_strong_hard(struct buf *to, uint32_t table, uint32_t partition,
                                  uint32_t epoch, uint8_t slot)
{
    start_strong(to, KEYSPACE_STRONG_HARD, table, partition, epoch);
    buf_append_u8(to, slot);
    return buf_view(to);
}

struct bytes keyspace_strong_base(struct buf *to, uint32_t table, uint32_t partition,
                                  uint32_t epoch)
{
    start_strong(to, KEYSPACE_STRONG_BASE, table, partition, epoch);
    return buf_view(to);
}

struct bytes keyspace_strong_log(struct buf *to, uint32_t table, uint32_t partition, uint32_t epoch,
                                 uint64_t index)
{
    start_strong(to, KEYSPACE_STRONG_LOG, table, partition, epoch);
    buf_append_be64(to, index);
    return buf_view(to);
}

bool keyspace_strong_index(struct bytes key, uint64_t *ret)
{
    enum { INDEX_AT = 1 + 4 + 2 + 4 };
    if (key.len != INDEX_AT + 8 || key.at[0] != KEYSPACE_STRONG_LOG)
        return false;
    *ret = be64_decode(key.at + INDEX_AT);
    return true;
}

struct bytes keyspace_ledger(struct buf *to, struct version winner, struct version loser,
                             uint32_t table)
{
    start(to, KEYSPACE_LEDGER);
    version_encode(winner, to);
    version_encode(loser, to);
    buf_append_be32(to, table);
    return buf_view(to);
}

bool keyspace_log_seq(struct bytes key, uint64_t *ret)
{
    enum { SEQ_AT = 1 + 4 + 2 };
    if (key.len != SEQ_AT + 8 || key.at[0] != KEYSPACE_LOG)
        return false;
    *ret = be64_decode(key.at + SEQ_AT);
    return true;
}

static bool take_format(struct bytes *from)
{
    uint8_t format;
    return bytes_take_u8(from, &format) && format == ROW_FORMAT;
}

void region_meta_encode(const struct region_meta *meta, struct buf *to)
{
    buf_append_u8(to, ROW_FORMAT);
    buf_append_be16(to, meta->region);
    buf_append_varint(to, meta->table_next);
    buf_append_varint(to, meta->epoch);
}

bool region_meta_decode(struct bytes from, struct region_meta *ret)
{
    struct region_meta meta;
    uint64_t next;
    if (!take_format(&from) || !bytes_take_be16(&from, &meta.region) ||
        !bytes_take_varint(&from, &next) || !bytes_take_varint(&from, &meta.epoch) ||
        from.len != 0 || next > UINT32_MAX)
        return false;
    meta.table_next = (uint32_t)next;
    *ret = meta;
    return true;
}

void clock_encode(uint64_t reserved, struct buf *to)
{
    buf_append_u8(to, ROW_FORMAT);
    buf_append_be64(to, reserved);
}

bool clock_decode(struct bytes from, uint64_t *ret)
{
    uint64_t reserved;
    if (!take_format(&from) || !bytes_take_be64(&from, &reserved) || from.len != 0)
        return false;
    *ret = reserved;
    return true;
}

void ledger_counts_encode(const struct ledger_counts *counts, struct buf *to)
{
    buf_append_u8(to, ROW_FORMAT);
    buf_append_varint(to, counts->rows);
    buf_append_varint(to, counts->concurrent);
    buf_append_varint(to, counts->late);
}

bool ledger_counts_decode(struct bytes from, struct ledger_counts *ret)
{
    struct ledger_counts counts;
    if (!take_format(&from) || !bytes_take_varint(&from, &counts.rows) ||
        !bytes_take_varint(&from, &counts.concurrent) || !bytes_take_varint(&from, &counts.late) ||
        from.len != 0)
        return false;
    *ret = counts;
    return true;
}

void partition_meta_encode(const struct partition_meta *meta, struct buf *to)
{
    buf_append_u8(to, ROW_FORMAT);
    buf_append_varint(to, meta->seq);
    buf_append_varint(to, meta->log_first);
    buf_append_varint(to, meta->log_bytes);
    buf_append_varint(to, meta->items);
    buf_append_varint(to, meta->bytes);
    buf_append_varint(to, meta->tombstones);
    vv_encode(&meta->vv, to);
    if (meta->applied_index > 0 || meta->partial.count > 0) {
        buf_append_varint(to, meta->applied_index);
        buf_append_varint(to, meta->applied_term);
        buf_append_be16(to, meta->sealed);
    }
    if (meta->partial.count > 0)
        vv_encode(&meta->partial, to);
}

bool partition_meta_decode(struct bytes from, struct partition_meta *ret)
{
    struct partition_meta meta = {0};
    if (!take_format(&from) || !bytes_take_varint(&from, &meta.seq) ||
        !bytes_take_varint(&from, &meta.log_first) || !bytes_take_varint(&from, &meta.log_bytes) ||
        !bytes_take_varint(&from, &meta.items) || !bytes_take_varint(&from, &meta.bytes) ||
        !bytes_take_varint(&from, &meta.tombstones) || !vv_decode(&from, &meta.vv))
        return false;
    if (from.len != 0 &&
        (!bytes_take_varint(&from, &meta.applied_index) ||
         !bytes_take_varint(&from, &meta.applied_term) || !bytes_take_be16(&from, &meta.sealed) ||
         (from.len != 0 && !vv_decode(&from, &meta.partial)) || from.len != 0 ||
         (meta.applied_index == 0 && meta.partial.count == 0)))
        return false;
    *ret = meta;
    return true;
}
