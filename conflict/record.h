/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFLICT_RECORD_H
#define CONFLICT_RECORD_H

/* A record is one write: the unit that is stored, logged, shipped and compared. It holds a whole
 * item or a tombstone, never a difference.
 *
 *   row value (under the item's key)    body
 *   log value (under partition and seq) crc32c be32 | key, length-prefixed | body
 *   body                                format u8 = 1 | kind u8 | version 18 | dep vv | item...
 *
 * Both share one body, so a write is encoded once. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/version.h"

enum record_kind { RECORD_PUT = 1, RECORD_DELETE = 2, RECORD_TTL_DELETE = 3 };

struct record {
    struct bytes key; /* within the table: hash | partition key | sort key; region/core/key.h */
    enum record_kind kind;
    struct version version;
    struct vv dep;     /* what the writer had seen: its Region's vector joined with the stored
                          record's own dep and version (DESIGN.md 5; else a late write that came
                          through a third Region is called concurrent) */
    struct bytes item; /* encoded item; empty unless RECORD_PUT */
};

enum { RECORD_FORMAT = 1 };

static inline bool record_is_tombstone(const struct record *record)
{
    return record->kind != RECORD_PUT;
}
/* Appends the body (all but the key). */
void record_encode_body(const struct record *record, struct buf *to);
/* Views into from; key is left empty. False for anything that record_encode_body does not write. */
bool record_decode_body(struct bytes from, struct record *ret);
/* Appends checksum, key and the body that was encoded before. */
void record_encode_log(struct bytes key, struct bytes body, struct buf *to);
/* Views into from. *ret_body may be NULL. False also for a wrong checksum. */
bool record_decode_log(struct bytes from, struct record *ret, struct bytes *ret_body);

#endif
