/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STRONG_ROWS_H
#define REGION_STRONG_ROWS_H

/* What a consensus group keeps in its Region's store, and how it is judged when the Region starts.
 *
 *   hard state    crc32c be32 | format | generation | term | vote | incarnation | boot | standing
 *     (two slots)   | recover_upto
 *   log base      crc32c be32 | format | index | term
 *   log entry     crc32c be32 | format | synced_upto | term | kind | origin | incarnation | seq
 *     (at its index)  | payload
 *   payload       format | kind | key, length-prefixed | item, or the dissolver
 *
 * The slots are written in turn, each with the next generation, the first with 0 or 1; the higher
 * counts. `synced_upto` is how far the log was durable before the write that this row came with: a
 * row that is missing at or below the largest one found, or before any other row, is damage; beyond
 * that the log just ends. A row that is there and unreadable is damage wherever it is: the store's
 * batches are all or none, so no crash tears a row, and this one may have been acknowledged.
 * Numbers are varints but where a width is given. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "region/core/store.h"
#include "witness/consensus.h"

void strong_hard_encode(const struct consensus_hard *hard, uint64_t generation, struct buf *to);
bool strong_hard_decode(struct bytes from, struct consensus_hard *ret, uint64_t *ret_generation);
void strong_base_encode(uint64_t index, uint64_t term, struct buf *to);
bool strong_base_decode(struct bytes from, uint64_t *ret_index, uint64_t *ret_term);
/* The index is in the row's key, and goes into the checksum. synced_upto is taken as less than it:
 * what the write cuts off does not count. */
void strong_log_encode(const struct consensus_entry *entry, uint64_t synced_upto, struct buf *to);
/* Views into from. */
bool strong_log_decode(uint64_t index, struct bytes from, struct consensus_entry *ret,
                       uint64_t *ret_synced_upto);

enum strong_payload_kind { STRONG_PUT = 1, STRONG_DELETE, STRONG_SEAL };
struct strong_payload {
    enum strong_payload_kind kind;
    struct bytes key;   /* row key; empty for SEAL */
    struct bytes item;  /* PUT: canonical (item.h) */
    uint16_t dissolver; /* SEAL: a Region */
};
void strong_payload_encode(const struct strong_payload *payload, struct buf *to);
/* Views into from. False for anything else, so that nobody's log can bring a Region down. */
bool strong_payload_decode(struct bytes from, struct strong_payload *ret);

/* Collects rows, then judges. */
struct strong_found {
    bool hard_found, hard_damaged; /* damaged: what was found may be an older vote */
    uint32_t hard_count;           /* slots read; one that was never written is no damage */
    struct consensus_hard hard;
    uint64_t generation;
    bool base_found, base_damaged;
    uint64_t base_index, base_term;
    struct consensus_entry *entries; /* payloads copied; owned */
    uint32_t entry_count, entry_cap;
    uint64_t synced_upto, log_bytes;
    uint64_t last_index; /* of any log row, readable or not */
    bool damaged;        /* a row was unreadable */
    bool unreadable;     /* a range could not be read: nobody knows what was in it */
    struct arena arena;  /* of the payloads */
};
void strong_found_init(struct strong_found *found);
void strong_found_deinit(struct strong_found *found);
void strong_found_hard(struct strong_found *found, struct bytes value);
void strong_found_base(struct strong_found *found, struct bytes value);
/* In the order of their indexes. */
void strong_found_log(struct strong_found *found, uint64_t index, struct bytes value);
/* Fills everything but incarnation and applied. Entries behind damage or a gap are not given. A
 * hard state that may be an older one (its slot or its neighbour is damaged or gone, or the log has
 * later terms) is not `found`: votes may be forgotten, the member rebuilds. A lost base is damage
 * without an end. Views into found. */
void strong_found_judge(struct strong_found *found, struct consensus_start *ret);

#endif
