/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_KEY_H
#define REGION_KEY_H

/* An item's place in its table, as bytes whose order is the order of Query and Scan:
 *
 *   key = hash64 be64 | partition key, escaped and terminated | sort key, raw
 *
 * hash64 spreads items over partitions and orders a Scan; the partition key stands whole behind it,
 * so unlike keys with one hash stay apart; the sort key comes last and needs no terminator. In an
 * escaped run 0x00 is written 0x00 0xff, the terminator is 0x00 0x01. N keys hold number.h's
 * encoding, S UTF-8, B raw bytes: all order-preserving. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "region/core/item.h"
#include "region/core/table.h"

/* Appends hash64 and the partition key: the prefix that an item collection shares. */
void key_write_hash(struct buf *to, struct value hash);
/* Appends the sort key. */
void key_write_range(struct buf *to, struct value range);
/* The smallest key that is greater than every key with this prefix. False if there is none (all
 * bytes 0xff). */
bool key_prefix_end(struct bytes prefix, struct buf *to);
uint64_t key_hash64(struct bytes key);
/* Which of `count` equal hash ranges a key is in. */
uint32_t key_partition(struct bytes key, uint32_t count);
/* Where partition `index` of `count` starts, as hash64. */
uint64_t key_partition_start(uint32_t index, uint32_t count);

#endif
