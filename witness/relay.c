/* SPDX-License-Identifier: Apache-2.0 */
/* Direct always, and by the third as well while the direct way may be cut: a frame that comes twice
 * costs less than one that does not come, and the direct one is also how a healed link is noticed.
 */

#include "witness/relay.h"

#include "conflict/base/check.h"
#include "conflict/base/plant.h"

enum {
    FLAG_DEAF = 1,   /* I have not heard you directly for a while */
    FLAG_HOPPED = 2, /* through the third member */
    FLAGS_KNOWN = FLAG_DEAF | FLAG_HOPPED
};

void relay_init(struct relay *relay, uint8_t self, uint64_t silence_ns, uint64_t now_ns)
{
    *relay = (struct relay){.self = self, .silence_ns = silence_ns};
    for (int i = 0; i < CONSENSUS_MEMBERS; i++)
        relay->heard_ns[i] = now_ns;
}

static bool silent(const struct relay *relay, uint8_t peer, uint64_t now_ns)
{
    return now_ns >= relay->heard_ns[peer] && now_ns - relay->heard_ns[peer] >= relay->silence_ns;
}

struct relay_route relay_route(const struct relay *relay, uint8_t peer, uint64_t now_ns)
{
    check(peer < CONSENSUS_MEMBERS);
    check(peer != relay->self);
    struct relay_route route = {.via = {peer}, .count = 1};
    bool cut = silent(relay, peer, now_ns);
    if (cut)
        route.flags = FLAG_DEAF;
    if ((cut || now_ns < relay->deaf_until[peer]) && !planted(PLANT_NO_RELAY))
        route.via[route.count++] = (uint8_t)(CONSENSUS_MEMBERS - relay->self - peer);
    return route;
}

void relay_wrap(const struct relay *relay, uint8_t peer, const struct relay_route *route,
                struct bytes frame, struct buf *to)
{
    buf_append_u8(to, relay->self);
    buf_append_u8(to, peer);
    buf_append_u8(to, route->flags);
    buf_append_bytes(to, frame);
}

enum relay_action relay_receive(struct relay *relay, uint8_t from, struct bytes envelope,
                                uint64_t now_ns, uint8_t *ret_peer, struct bytes *ret_frame,
                                struct buf *ret_envelope)
{
    uint8_t source, destination, flags;
    struct bytes frame = envelope;
    if (from >= CONSENSUS_MEMBERS || from == relay->self || !bytes_take_u8(&frame, &source) ||
        !bytes_take_u8(&frame, &destination) || !bytes_take_u8(&frame, &flags) ||
        source >= CONSENSUS_MEMBERS || destination >= CONSENSUS_MEMBERS || source == destination ||
        source == relay->self || (flags & ~FLAGS_KNOWN))
        return RELAY_DROP;
    bool hopped = flags & FLAG_HOPPED;
    /* A first hop is the source's own; a second one is by the member that is neither end. */
    if (hopped ? source == from : source != from)
        return RELAY_DROP;
    relay->heard_ns[from] = now_ns;
    if (destination != relay->self) {
        if (hopped)
            return RELAY_DROP;
        buf_append_u8(ret_envelope, source);
        buf_append_u8(ret_envelope, destination);
        buf_append_u8(ret_envelope, flags | FLAG_HOPPED);
        buf_append_bytes(ret_envelope, frame);
        *ret_peer = destination;
        return RELAY_FORWARD;
    }
    relay->deaf_until[source] = flags & FLAG_DEAF ? now_ns + relay->silence_ns : 0;
    *ret_peer = source;
    *ret_frame = frame;
    return RELAY_DELIVER;
}
