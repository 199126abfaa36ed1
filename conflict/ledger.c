/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of ledger rows:
 *
 *     crc32c be32 | format u8 = 1 | relation u8 | clock_suspect u8 | detected varint
 *     | key, prefixed | winner's body, prefixed | loser's body
 */

#include "conflict/ledger.h"

#include <stddef.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"

enum { LEDGER_FORMAT = 1, CHECKSUM_LEN = 4 };

static bool relation_is_loss(uint8_t relation)
{
    return relation == RESOLVE_CONCURRENT || relation == RESOLVE_LATE;
}

void ledger_encode(const struct ledger_entry *entry, struct buf *to)
{
    check(relation_is_loss((uint8_t)entry->relation));
    cleanup(buf_deinit) struct buf winner;
    buf_init(&winner);
    record_encode_body(&entry->winner, &winner);

    size_t start = to->len;
    buf_append_be32(to, 0);
    buf_append_u8(to, LEDGER_FORMAT);
    buf_append_u8(to, (uint8_t)entry->relation);
    buf_append_u8(to, entry->clock_suspect);
    buf_append_varint(to, entry->detected_wall_ms);
    buf_append_prefixed(to, entry->key);
    buf_append_prefixed(to, buf_view(&winner));
    record_encode_body(&entry->loser, to);
    struct bytes summed = bytes_make(to->at + start + CHECKSUM_LEN, to->len - start - CHECKSUM_LEN);
    uint32_t sum = crc32c(0, summed);
    for (int i = 0; i < CHECKSUM_LEN; i++)
        to->at[start + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
}

bool ledger_decode(struct bytes from, struct ledger_entry *ret)
{
    struct ledger_entry entry = {0};
    uint32_t sum;
    uint8_t format, relation, suspect;
    struct bytes winner;
    if (!bytes_take_be32(&from, &sum) || crc32c(0, from) != sum)
        return false;
    if (!bytes_take_u8(&from, &format) || format != LEDGER_FORMAT ||
        !bytes_take_u8(&from, &relation) || !relation_is_loss(relation) ||
        !bytes_take_u8(&from, &suspect) || suspect > 1)
        return false;
    if (!bytes_take_varint(&from, &entry.detected_wall_ms) ||
        !bytes_take_prefixed(&from, &entry.key) || !bytes_take_prefixed(&from, &winner))
        return false;
    if (!record_decode_body(winner, &entry.winner) || !record_decode_body(from, &entry.loser))
        return false;
    entry.relation = (enum resolve_relation)relation;
    entry.clock_suspect = suspect;
    *ret = entry;
    return true;
}
