/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of records. The decoder accepts exactly what the encoder writes, so a record has one
 * encoding, and two Regions that hold the same write hold the same bytes. */

#include "conflict/record.h"

#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"

enum { CHECKSUM_LEN = 4 };

void record_encode_body(const struct record *record, struct buf *to)
{
    check(!version_is_none(record->version));
    check(!record_is_tombstone(record) || record->item.len == 0);
    buf_append_u8(to, RECORD_FORMAT);
    buf_append_u8(to, (uint8_t)record->kind);
    version_encode(record->version, to);
    vv_encode(&record->dep, to);
    buf_append_bytes(to, record->item);
}

bool record_decode_body(struct bytes from, struct record *ret)
{
    struct record record = {0};
    uint8_t format, kind;
    if (!bytes_take_u8(&from, &format) || format != RECORD_FORMAT || !bytes_take_u8(&from, &kind))
        return false;
    if (kind < RECORD_PUT || kind > RECORD_TTL_DELETE)
        return false;
    if (!version_decode(&from, &record.version) || version_is_none(record.version) ||
        !vv_decode(&from, &record.dep))
        return false;
    record.kind = (enum record_kind)kind;
    if (record_is_tombstone(&record) && from.len)
        return false;
    record.item = from;
    *ret = record;
    return true;
}

void record_encode_log(struct bytes key, struct bytes body, struct buf *to)
{
    buf_reserve(to, CHECKSUM_LEN + VARINT_LEN_MAX + key.len + body.len);
    size_t start = to->len;
    buf_append_be32(to, 0);
    buf_append_prefixed(to, key);
    buf_append_bytes(to, body);
    struct bytes summed = bytes_make(to->at + start + CHECKSUM_LEN, to->len - start - CHECKSUM_LEN);
    uint32_t sum = crc32c(0, summed);
    for (int i = 0; i < CHECKSUM_LEN; i++)
        to->at[start + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
}

bool record_decode_log(struct bytes from, struct record *ret, struct bytes *ret_body)
{
    uint32_t sum;
    struct bytes key;
    struct record record;
    if (!bytes_take_be32(&from, &sum) || crc32c(0, from) != sum ||
        !bytes_take_prefixed(&from, &key))
        return false;
    if (!record_decode_body(from, &record))
        return false;
    record.key = key;
    *ret = record;
    if (ret_body)
        *ret_body = from;
    return true;
}
