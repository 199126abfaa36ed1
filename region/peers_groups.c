/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the strong groups. Consensus repeats what matters and has no use for what is old, so
 * a peer that takes nothing costs a bounded queue, and what does not fit is dropped and counted: it
 * must neither grow our memory nor hold anybody up. */

#include "conflict/region_id.h"
#include "region/peers_internal.h"
#include "replicator/replicator.pb-c.h"

/* A GroupsMessage is its one field: a tag, a length and the bytes. It is taken in place, since
 * every strong write is several of them, and it is nothing else: like all that peers say, what does
 * not fit ends the call. */
enum { TAG_BODY = 1 << 3 | 2 };

void peers_wrap_groups(struct bytes body, struct buf *to)
{
    buf_append_u8(to, TAG_BODY);
    buf_append_varint(to, body.len);
    buf_append_bytes(to, body);
}

bool peers_take_groups(struct bytes message, struct bytes *ret)
{
    struct bytes rest = message;
    uint8_t tag;
    uint64_t len;
    if (!bytes_take_u8(&rest, &tag) || tag != TAG_BODY || !bytes_take_varint(&rest, &len) ||
        len != rest.len || len == 0)
        return false;
    *ret = rest;
    return true;
}

void peers_send_groups(struct stream *stream, struct bytes wire)
{
    struct peer *peer = stream->peer;
    struct peers *peers = peer->peers;
    bool fits = wire.len <= peers->config->server.message_bytes_max &&
                grpc_call_queued(stream->call) + wire.len <= GROUPS_QUEUED_BYTES_MAX;
    if (fits) {
        grpc_call_send(stream->call, wire);
    } else {
        peer->groups_dropped++;
        if (!stream->dropping)
            log_line(peers->log, TRACE_WARN,
                     "strong groups to %s: it does not take what it is sent: messages are dropped",
                     region_id_name(peer->region));
    }
    stream->dropping = !fits;
}
