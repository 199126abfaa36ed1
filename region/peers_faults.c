/* SPDX-License-Identifier: Apache-2.0 */
/* Faults at the boundaries of messages, where a proxy cannot see them. Those of the strong groups
 * may be lost, doubled and overtaken, as consensus promises to bear. On a stream that carries a
 * log, a gap that nobody noticed would not be a fault of the network but a lie of TCP: there a lost
 * message takes the stream with it, and the next begins where the receiver says; so does a damaged
 * one, once the receiver has found it out. The first message of a stream, which says who speaks, is
 * spared the rest. */

#include "conflict/base/alloc.h"
#include "region/peers_internal.h"

enum { HELD_BYTES_MAX = 16 << 20 };

struct held {
    struct list link;
    uint64_t due_ns;
    bool corrupt;
    uint64_t luck;
    size_t len;
    uint8_t at[];
};

static bool carries_log(const struct stream *stream)
{
    return stream->channel == CHANNEL_OUTBOUND || stream->channel == CHANNEL_INBOUND;
}

/* Before the first that is due later: rules may differ in how long they hold. */
static void hold(struct stream *stream, struct bytes message, const struct faults_message *fault)
{
    struct held *held = xmalloc(sizeof(*held) + message.len);
    uint64_t due_ns = stream->peer->peers->loop->mono_ns + fault->delay_ms * UINT64_C(1000000);
    list_init(&held->link);
    held->due_ns = due_ns;
    held->corrupt = fault->corrupt;
    held->luck = fault->luck;
    held->len = message.len;
    if (message.len > 0)
        memcpy(held->at, message.at, message.len);
    struct list *before = stream->held.next;
    while (before != &stream->held && container_of(before, struct held, link)->due_ns <= due_ns)
        before = before->next;
    list_append(before, &held->link);
    stream->held_bytes += message.len;
}

static void release(struct stream *stream, struct held *held)
{
    stream->held_bytes -= held->len;
    list_remove(&held->link);
    free(held);
}

static void send_struck(struct stream *stream, struct bytes message, bool corrupt, uint64_t luck)
{
    if (corrupt)
        peers_send_damaged(stream, message, luck);
    else
        peers_send_now(stream, message);
}

void peers_send_faulty(struct stream *stream, struct bytes message)
{
    struct peers *peers = stream->peer->peers;
    struct faults_message fault = faults_message(peers->faults, stream->peer->region);
    if (fault.lost) {
        if (carries_log(stream))
            grpc_call_cancel(stream->call, "a fault has lost a message");
        return;
    }
    bool first = !stream->begun && carries_log(stream);
    bool fits = stream->held_bytes + message.len <= HELD_BYTES_MAX;
    if (fault.delay_ms > 0 && !first && fits)
        hold(stream, message, &fault);
    else
        send_struck(stream, message, fault.corrupt, fault.luck);
    if (fault.twice && !first)
        peers_send_now(stream, message);
}

void peers_send_held(struct stream *stream)
{
    while (stream->call && peers_held_deadline(stream) <= stream->peer->peers->loop->mono_ns) {
        struct held *held = container_of(stream->held.next, struct held, link);
        send_struck(stream, bytes_make(held->at, held->len), held->corrupt, held->luck);
        release(stream, held);
    }
}

uint64_t peers_held_deadline(const struct stream *stream)
{
    return list_empty(&stream->held) ? UINT64_MAX
                                     : container_of(stream->held.next, struct held, link)->due_ns;
}

void peers_drop_held(struct stream *stream)
{
    while (!list_empty(&stream->held))
        release(stream, container_of(stream->held.next, struct held, link));
}
