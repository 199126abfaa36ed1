/* SPDX-License-Identifier: Apache-2.0 */
/* What one Region says to another carries a checksum of its own. TCP's is sixteen bits and ends at
 * each box that takes a connection apart, TLS is not everywhere, and a turned bit in an
 * acknowledgement would let a log be cut before its records are anywhere else. So the last five
 * bytes of every message are its field 15, the CRC-32C of all before them: to protobuf a field like
 * any other, to us a seal that is taken off before anybody looks at what is in the message.
 *
 *     PeerMessage, GroupsMessage or ControlMessage | 0x7d | CRC-32C, lowest byte first */

#include "conflict/base/crc32c.h"
#include "region/peers_internal.h"

enum { TAG_SEAL = 15 << 3 | 5 }; /* fixed32 */

void peers_seal(struct buf *message)
{
    uint32_t crc = crc32c(0, buf_view(message));
    buf_append_u8(message, TAG_SEAL);
    for (int i = 0; i < 4; i++)
        buf_append_u8(message, (uint8_t)(crc >> 8 * i));
}

bool peers_unseal(struct bytes wire, struct bytes *ret)
{
    if (wire.len < PEERS_SEAL_LEN)
        return false;
    struct bytes message = bytes_make(wire.at, wire.len - PEERS_SEAL_LEN);
    const uint8_t *seal = wire.at + message.len;
    uint32_t crc =
        seal[1] | (uint32_t)seal[2] << 8 | (uint32_t)seal[3] << 16 | (uint32_t)seal[4] << 24;
    if (seal[0] != TAG_SEAL || crc != crc32c(0, message))
        return false;
    *ret = message;
    return true;
}

void peers_damage(struct buf *wire, uint64_t luck)
{
    uint64_t bit = luck % (wire->len * UINT64_C(8));
    wire->at[bit / 8] ^= (uint8_t)(1u << bit % 8);
}
