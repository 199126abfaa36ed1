/* SPDX-License-Identifier: Apache-2.0 */
/* Row keys. The partition key is escaped so that its end can be told from its content; every other
 * byte order is that of the encodings themselves. */

#include "region/core/key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "conflict/base/check.h"

enum { ESCAPE = 0x00, ESCAPED_ZERO = 0xff, TERMINATOR = 0x01, HASH_LEN = 8 };

void key_write_hash(struct buf *to, struct value hash)
{
    struct bytes from = hash.payload;
    buf_append_be64(to, XXH3_64bits(from.at, from.len));
    size_t i = 0;
    while (i < from.len) {
        const uint8_t *zero = memchr(from.at + i, 0, from.len - i);
        size_t end = zero ? (size_t)(zero - from.at) : from.len;
        buf_append(to, from.at + i, end - i);
        if (zero)
            buf_append(to, (const uint8_t[]){ESCAPE, ESCAPED_ZERO}, 2);
        i = end + (zero != NULL);
    }
    buf_append(to, (const uint8_t[]){ESCAPE, TERMINATOR}, 2);
}

void key_write_range(struct buf *to, struct value range)
{
    buf_append_bytes(to, range.payload);
}

bool key_prefix_end(struct bytes prefix, struct buf *to)
{
    while (prefix.len && prefix.at[prefix.len - 1] == 0xff)
        prefix.len--;
    if (!prefix.len)
        return false;
    buf_append_bytes(to, prefix);
    to->at[to->len - 1]++;
    return true;
}

uint64_t key_hash64(struct bytes key)
{
    check(key.len >= HASH_LEN);
    return be64_decode(key.at);
}

uint32_t key_partition(struct bytes key, uint32_t count)
{
    check(count > 0);
    /* The high half of hash * count, in two steps of 32 bits. */
    uint64_t hash = key_hash64(key);
    uint64_t low = (hash & UINT32_MAX) * count >> 32;
    return (uint32_t)(((hash >> 32) * count + low) >> 32);
}

uint64_t key_partition_start(uint32_t index, uint32_t count)
{
    check(index < count);
    /* index * 2^64 / count, rounded up: the smallest hash of that partition. 2^64 itself is
     * whole * count + rest. */
    uint64_t whole = UINT64_MAX / count;
    uint64_t rest = UINT64_MAX % count + 1;
    return index * whole + (index * rest + count - 1) / count;
}
