/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WITNESS_RELAY_H
#define WITNESS_RELAY_H

/* One hop through the third member, below the protocol: when two of the three cannot hear each
 * other, frames between them also go by way of the one that both hear, so that any single cut link,
 * even cut one way only, leaves all three serving. Frames pass unread and unchanged; that they may
 * so be delayed, repeated or reordered is allowed already.
 *
 *     envelope: source u8 | destination u8 | flags u8 | frame
 *
 * A link's receiver knows first that it is cut, so it tells the sender: DEAF in everything that it
 * sends, while it has not heard the other end directly for a while. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "witness/consensus.h"

enum { RELAY_HEADER_LEN = 3 };

struct relay {
    uint8_t self;
    uint64_t silence_ns;                    /* without a direct frame for so long, it is cut */
    uint64_t heard_ns[CONSENSUS_MEMBERS];   /* directly */
    uint64_t deaf_until[CONSENSUS_MEMBERS]; /* it says that it does not hear us directly */
};

/* One or two envelopes for a frame to `peer`. */
struct relay_route {
    uint8_t via[2]; /* whom to hand it to */
    uint8_t count;
    uint8_t flags;
};

enum relay_action {
    RELAY_DELIVER, /* *ret_frame came from *ret_peer */
    RELAY_FORWARD, /* hand the envelope as it is in *ret_envelope to *ret_peer */
    RELAY_DROP     /* malformed, or has hopped before */
};

void relay_init(struct relay *relay, uint8_t self, uint64_t silence_ns, uint64_t now_ns);
struct relay_route relay_route(const struct relay *relay, uint8_t peer, uint64_t now_ns);
void relay_wrap(const struct relay *relay, uint8_t peer, const struct relay_route *route,
                struct bytes frame, struct buf *to);
/* An envelope has come from the neighbour `from`. ret_envelope is written for FORWARD only. */
enum relay_action relay_receive(struct relay *relay, uint8_t from, struct bytes envelope,
                                uint64_t now_ns, uint8_t *ret_peer, struct bytes *ret_frame,
                                struct buf *ret_envelope);

#endif
