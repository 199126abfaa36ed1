/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_KEYSPACE_H
#define REGION_KEYSPACE_H

/* Where everything lies in a Region's one ordered store. A tag byte comes first; numbers are
 * big-endian, so that the store's byte order is theirs.
 *
 *   01                                          region meta: whose store, epoch, next table number
 *   02                                          clock: what may have been issued (hlc.h)
 *   03                                          ledger counts
 *   04 | group id 16                            grave: a global table this Region has left
 *   05 | table 4                                table descriptor (control_wire.h)
 *   06 | table 4 | partition 2                  partition meta
 *   07 | table 4 | partition 2 | epoch 4 | slot 1   strong: hard state (strong_rows.h)
 *   08 | table 4 | partition 2 | epoch 4        strong: where the log begins
 *   ---- all of the above is read at the start, in one range ----
 *   20 | table 4 | row key                      item or tombstone: record.h's body
 *   30 | table 4 | partition 2 | seq 8          change log: record.h's checksummed log row
 *   31 | table 4 | partition 2 | epoch 4 | index 8  strong: log entry
 *   40 | winner 18 | loser 18 | table 4         lost-write ledger (ledger_rows.c)
 *
 * A table's items are contiguous, and so is each partition's share of them, since row keys begin
 * with the hash that partitions are ranges of. The ledger is ordered by the winner's time, the same
 * in every Region; the pair of versions is its whole identity, so writing an entry twice changes
 * nothing. Every value starts with a format byte. Values without a checksum of their own are under
 * the store's. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/version.h"

enum keyspace_tag {
    KEYSPACE_META = 0x01,
    KEYSPACE_CLOCK = 0x02,
    KEYSPACE_LEDGER_COUNTS = 0x03,
    KEYSPACE_GRAVE = 0x04,
    KEYSPACE_TABLE = 0x05,
    KEYSPACE_PARTITION = 0x06,
    KEYSPACE_STRONG_HARD = 0x07,
    KEYSPACE_STRONG_BASE = 0x08,
    KEYSPACE_START_END = 0x10, /* end of what is read at the start */
    KEYSPACE_ITEM = 0x20,
    KEYSPACE_LOG = 0x30,
    KEYSPACE_STRONG_LOG = 0x31,
    KEYSPACE_LEDGER = 0x40,
    KEYSPACE_END = 0x50
};

enum { KEYSPACE_ITEM_PREFIX = 5, KEYSPACE_ROW_KEY_MIN = 8, KEYSPACE_ROW_KEY_MAX = 8192 };

/* Each replaces what `to` holds. */
struct bytes keyspace_tag(struct buf *to, enum keyspace_tag tag);
struct bytes keyspace_grave(struct buf *to, const uint8_t group_id[16]);
struct bytes keyspace_table(struct buf *to, uint32_t table);
struct bytes keyspace_partition(struct buf *to, uint32_t table, uint32_t partition);
struct bytes keyspace_item(struct buf *to, uint32_t table, struct bytes key);
/* Where the items whose hash is at least `hash` begin; for hash ranges. */
struct bytes keyspace_item_hash(struct buf *to, uint32_t table, uint64_t hash);
struct bytes keyspace_log(struct buf *to, uint32_t table, uint32_t partition, uint64_t seq);
/* epoch: of the strong_setup (control_wire.h). */
struct bytes keyspace_strong_hard(struct buf *to, uint32_t table, uint32_t partition,
                                  uint32_t epoch, uint8_t slot);
struct bytes keyspace_strong_base(struct buf *to, uint32_t table, uint32_t partition,
                                  uint32_t epoch);
struct bytes keyspace_strong_log(struct buf *to, uint32_t table, uint32_t partition, uint32_t epoch,
                                 uint64_t index);
/* The index that ends a strong log row's key; false if it is no such key. */
bool keyspace_strong_index(struct bytes key, uint64_t *ret);
struct bytes keyspace_ledger(struct buf *to, struct version winner, struct version loser,
                             uint32_t table);

/* The seq that ends a log row's key; false if it is no such key. */
bool keyspace_log_seq(struct bytes key, uint64_t *ret);

struct region_meta {
    uint16_t region;
    uint32_t table_next; /* number of the next table */
    uint64_t epoch;      /* the newest that any table's log was started in */
};
void region_meta_encode(const struct region_meta *meta, struct buf *to);
bool region_meta_decode(struct bytes from, struct region_meta *ret);

void clock_encode(uint64_t reserved, struct buf *to);
bool clock_decode(struct bytes from, uint64_t *ret);

struct ledger_counts {
    uint64_t rows;             /* in the store */
    uint64_t concurrent, late; /* ever written */
};
void ledger_counts_encode(const struct ledger_counts *counts, struct buf *to);
bool ledger_counts_decode(struct bytes from, struct ledger_counts *ret);

struct partition_meta {
    uint64_t seq;       /* last of our own; the epoch's base before the first */
    uint64_t log_first; /* first of our own still logged; 0: none is */
    uint64_t log_bytes;
    uint64_t items, bytes, tombstones;
    struct vv vv;      /* of the other Regions' logs, and of our own of earlier epochs */
    struct vv partial; /* replicator.h's replica_state */
    uint64_t applied_index, applied_term; /* strong: the last entry that the items hold */
    uint16_t sealed; /* strong: nothing comes behind that entry; the Region it was sealed for */
};
void partition_meta_encode(const struct partition_meta *meta, struct buf *to);
bool partition_meta_decode(struct bytes from, struct partition_meta *ret);

#endif
