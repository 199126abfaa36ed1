/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the groups on the streams between Regions. What one step says to a Region goes in one
 * message, a run of envelopes (relay.h), each with its length in front (be32). A frame whose direct
 * stream is closed goes by way of the third member at once. */

#include "conflict/region_id.h"
#include "region/core/strong_internal.h"

enum { MESSAGE_BYTES_MAX = 3 * 1024 * 1024 };

static void put(struct region *region, uint32_t peer, struct bytes envelope)
{
    struct buf *outbox = &region->strong->outbox[peer];
    buf_append_be32(outbox, (uint32_t)envelope.len);
    buf_append_bytes(outbox, envelope);
}

/* False: there is no stream to that member. */
static bool put_member(struct region *region, const struct strong *strong, uint8_t member,
                       struct bytes envelope)
{
    uint32_t peer = peer_index(region, strong_region_of(strong, member));
    if (peer == VV_MAX || !region->strong->stream_up[peer])
        return false;
    put(region, peer, envelope);
    return true;
}

void strong_send(struct region *region, struct strong *strong, uint8_t peer, struct bytes frame)
{
    struct relay_route route = relay_route(&strong->relay, peer, region->mono_ns);
    struct buf *envelope = &region->strong->scratch;
    buf_reset(envelope);
    relay_wrap(&strong->relay, peer, &route, frame, envelope);
    bool sent = false;
    for (uint8_t i = 0; i < route.count; i++)
        sent |= put_member(region, strong, route.via[i], buf_view(envelope));
    if (!sent && route.count == 1)
        put_member(region, strong, (uint8_t)(STRONG_MEMBERS - strong->self - peer),
                   buf_view(envelope));
}

void strong_net_flush(struct region *region)
{
    for (uint32_t i = 0; i < region->config.peer_count; i++) {
        struct bytes rest = buf_view(&region->strong->outbox[i]);
        while (rest.len > 0) {
            size_t len = 0;
            while (len < rest.len) {
                size_t next =
                    len + 4 +
                    (size_t)((uint32_t)rest.at[len] << 24 | (uint32_t)rest.at[len + 1] << 16 |
                             (uint32_t)rest.at[len + 2] << 8 | (uint32_t)rest.at[len + 3]);
                if (len > 0 && next > MESSAGE_BYTES_MAX)
                    break;
                len = next;
            }
            struct region_effect *effect = effect_add(region, REGION_SEND);
            effect->peer = region->config.peers[i];
            effect->channel = CHANNEL_GROUPS_OUT;
            effect->bytes = out_copy(region, bytes_make(rest.at, len));
            rest = bytes_make(rest.at + len, rest.len - len);
        }
        buf_reset(&region->strong->outbox[i]);
    }
}

/* ---- Receiving ---- */

static struct strong *find_group(const struct region *region, struct bytes frame)
{
    struct consensus_place place;
    if (!consensus_frame_place(frame, &place))
        return NULL;
    struct table_state *table;
    HASH_FIND(by_group, region->strong->tables, place.group_id, CONSENSUS_GROUP_ID_LEN, table);
    if (!table || place.partition >= table->d.table.partition_count)
        return NULL;
    struct strong *strong = table->partitions[place.partition].strong;
    return strong && strong->state == STRONG_RUNNING ? strong : NULL;
}

static void receive(struct region *region, uint16_t peer, struct bytes envelope)
{
    if (envelope.len < RELAY_HEADER_LEN)
        return;
    struct strong *strong = find_group(
        region, bytes_make(envelope.at + RELAY_HEADER_LEN, envelope.len - RELAY_HEADER_LEN));
    if (!strong)
        return; /* of a table that is not here, or not any more */
    uint8_t from = strong_member_of(&strong->table->d.strong, peer), source;
    struct bytes frame;
    struct buf *forward = &region->strong->scratch;
    buf_reset(forward);
    switch (
        relay_receive(&strong->relay, from, envelope, region->mono_ns, &source, &frame, forward)) {
    case RELAY_DELIVER:
        strong_input(
            region, strong,
            &(struct consensus_input){.kind = CONSENSUS_FRAME, .peer = source, .bytes = frame});
        return;
    case RELAY_FORWARD:
        put_member(region, strong, source, buf_view(forward));
        return;
    case RELAY_DROP:
        return;
    }
    unreachable();
}

static void receive_all(struct region *region, const struct region_input *in)
{
    struct bytes rest = in->bytes;
    while (rest.len > 0) {
        uint32_t len;
        struct bytes envelope;
        if (!bytes_take_be32(&rest, &len) || !bytes_take(&rest, len, &envelope)) {
            struct region_effect *effect = effect_add(region, REGION_CLOSE);
            effect->peer = in->peer;
            effect->channel = in->channel;
            effect->reason = "a message for the strong groups is malformed";
            return;
        }
        receive(region, in->peer, envelope);
    }
}

void strong_peer_down(struct region *region, uint16_t peer)
{
    struct strong_region *all = region->strong;
    for (uint32_t i = 0; i < all->all_count; i++) {
        struct strong *strong = all->all[i];
        uint8_t member = strong_member_of(&strong->table->d.strong, peer);
        if (member != CONSENSUS_NOBODY && member != strong->self)
            strong_input(region, strong,
                         &(struct consensus_input){.kind = CONSENSUS_PEER_DOWN, .peer = member});
    }
}

void strong_peer(struct region *region, const struct region_input *in)
{
    uint32_t index = peer_index(region, in->peer);
    if (index == VV_MAX)
        return;
    if (in->kind == REGION_PEER_FRAME) {
        if (region->ready && in->channel == CHANNEL_GROUPS_IN)
            receive_all(region, in);
        return;
    }
    if (in->channel != CHANNEL_GROUPS_OUT)
        return;
    region->strong->stream_up[index] = in->kind == REGION_PEER_UP;
    if (in->kind == REGION_PEER_DOWN)
        strong_peer_down(region, in->peer);
}
