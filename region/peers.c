/* SPDX-License-Identifier: Apache-2.0 */
/* A stream has a generation. The core learns of streams through a queue, so between the end of one
 * and the moment at which the core has heard of the next, it may still send to the first: such
 * messages are dropped here, since a new stream must begin with what the core sends on it. */

#include "region/peers.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/peers_internal.h"

struct peer *peers_find(struct peers *peers, uint16_t region)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->at[i].region == region)
            return &peers->at[i];
    }
    return NULL;
}

static struct stream *find_stream(struct peers *peers, uint16_t region, enum region_channel channel)
{
    struct peer *peer = peers_find(peers, region);
    check(peer != NULL);
    return channel == CHANNEL_OUTBOUND ? &peer->outbound : &peer->inbound;
}

static const char *channel_name(enum region_channel channel)
{
    return channel == CHANNEL_OUTBOUND ? "to" : "from";
}

/* ---- Streams ---- */

static void push_stream(const struct stream *stream, enum region_input_kind kind,
                        struct bytes bytes)
{
    struct region_input in = {
        .kind = kind, .peer = stream->peer->region, .channel = stream->channel, .bytes = bytes};
    if (stream->peer->peers->driver)
        driver_push(stream->peer->peers->driver, &in, stream->generation);
}

static void stream_begin(struct stream *stream, struct grpc_call *call)
{
    stream->call = call;
    stream->known = false;
    stream->generation = ++stream->peer->peers->generation;
    push_stream(stream, REGION_PEER_UP, BYTES_NONE);
    log_line(stream->peer->peers->log, TRACE_INFO, "replication %s %s: stream open",
             channel_name(stream->channel), region_id_name(stream->peer->region));
}

static void stream_end(struct stream *stream, const char *reason)
{
    stream->call = NULL;
    stream->known = false;
    push_stream(stream, REGION_PEER_DOWN, BYTES_NONE);
    log_line(stream->peer->peers->log, TRACE_INFO, "replication %s %s: stream closed: %s",
             channel_name(stream->channel), region_id_name(stream->peer->region), reason);
}

static void on_stream_message(void *context, struct grpc_call *call, struct bytes message)
{
    struct stream *stream = context;
    if (stream->call == call)
        push_stream(stream, REGION_PEER_FRAME, message);
    else
        grpc_call_consume(call, message.len);
}

static void on_stream_half_closed(void *context, struct grpc_call *call)
{
    struct stream *stream = context;
    if (stream->channel == CHANNEL_INBOUND)
        grpc_call_finish(call, GRPC_OK, "");
}

static void on_stream_closed(void *context, struct grpc_call *call, enum grpc_status status,
                             const char *reason)
{
    (void)status;
    struct stream *stream = context;
    if (stream->call != call)
        return;
    stream_end(stream, reason ? reason : "");
    struct peer *peer = stream->peer;
    if (stream->channel == CHANNEL_OUTBOUND && peer->link_up)
        peer->reopen_ns = peer->peers->loop->mono_ns + REOPEN_MS * UINT64_C(1000000);
}

static struct grpc_events stream_events(struct stream *stream)
{
    return (struct grpc_events){on_stream_message, on_stream_half_closed, on_stream_closed, stream};
}

static void open_outbound(struct peer *peer)
{
    peer->reopen_ns = UINT64_MAX;
    const char *headers[] = {HEADER_REGION, region_id_name(peer->peers->config->core.region), NULL};
    struct grpc_events events = stream_events(&peer->outbound);
    struct grpc_call *call = grpc_link_call(peer->link, PATH_REPLICATE, headers, &events);
    if (call)
        stream_begin(&peer->outbound, call);
    else
        peer->reopen_ns = peer->peers->loop->mono_ns + REOPEN_MS * UINT64_C(1000000);
}

static void on_link_up(void *context)
{
    struct peer *peer = context;
    peer->link_up = true;
    open_outbound(peer);
}

static void on_link_down(void *context, const char *reason)
{
    struct peer *peer = context;
    peer->link_up = false;
    peer->reopen_ns = UINT64_MAX;
    log_line(peer->peers->log, TRACE_DEBUG, "connection to %s: %s", region_id_name(peer->region),
             reason ? reason : "");
}

/* A newer stream of the same peer replaces the older one, whose end we may not have heard of yet.
 */
static void accept_stream(struct peer *peer, struct grpc_call *call)
{
    struct stream *stream = &peer->inbound;
    struct grpc_call *older = stream->call;
    struct grpc_events events = stream_events(stream);
    if (older) {
        stream_end(stream, "replaced by a newer one");
        grpc_call_cancel(older, "replaced by a newer stream");
    }
    grpc_call_on(call, &events);
    stream_begin(stream, call);
}

void peers_send(struct peers *peers, uint16_t peer, enum region_channel channel,
                struct bytes message)
{
    struct stream *stream = find_stream(peers, peer, channel);
    if (stream->call && stream->known)
        grpc_call_send(stream->call, message);
}

void peers_close(struct peers *peers, uint16_t peer, enum region_channel channel,
                 const char *reason)
{
    struct stream *stream = find_stream(peers, peer, channel);
    if (stream->call && stream->known) {
        log_line(peers->log, TRACE_WARN, "replication %s %s: closing the stream: %s",
                 channel_name(channel), region_id_name(peer), reason);
        grpc_call_cancel(stream->call, reason);
    }
}

void peers_taken(struct peers *peers, const struct region_input *in, uint64_t tag)
{
    struct stream *stream = find_stream(peers, in->peer, in->channel);
    if (!stream->call || stream->generation != tag)
        return;
    if (in->kind == REGION_PEER_UP)
        stream->known = true;
    else if (in->kind == REGION_PEER_FRAME)
        grpc_call_consume(stream->call, in->bytes.len);
}

/* ---- Accepting ---- */

static void ignore_message(void *context, struct grpc_call *call, struct bytes message)
{
    (void)context;
    grpc_call_consume(call, message.len);
}

static void ignore_closed(void *context, struct grpc_call *call, enum grpc_status status,
                          const char *reason)
{
    (void)context;
    (void)call;
    (void)status;
    (void)reason;
}

static void refuse_call(struct grpc_call *call, enum grpc_status status, const char *reason)
{
    static const struct grpc_events ignore = {ignore_message, NULL, ignore_closed, NULL};
    grpc_call_on(call, &ignore);
    grpc_call_finish(call, status, reason);
}

bool peers_accept(struct peers *peers, struct grpc_call *call, struct bytes path)
{
    bool stream = bytes_is(path, PATH_REPLICATE);
    if (!stream && !bytes_is(path, PATH_CONTROL))
        return false;
    struct bytes name = grpc_call_header(call, HEADER_REGION);
    struct peer *peer = peers_find(peers, region_id_find(name));
    if (!peers->driver)
        refuse_call(call, GRPC_UNAVAILABLE, "shutting down");
    else if (!peer)
        refuse_call(call, GRPC_FAILED_PRECONDITION,
                    "the header tidemark-region must name a configured peer of this Region");
    else if (stream)
        accept_stream(peer, call);
    else if (peers->incoming_count == CALLS_MAX)
        refuse_call(call, GRPC_RESOURCE_EXHAUSTED, "too many control calls under way");
    else
        peers_accept_call(peer, call);
    return true;
}

/* ---- Time ---- */

void peers_round(struct peers *peers)
{
    uint64_t now_ns = peers->loop->mono_ns;
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->at[i].reopen_ns <= now_ns)
            open_outbound(&peers->at[i]);
    }
    peers_expire_calls(peers);
}

uint64_t peers_deadline(const struct peers *peers)
{
    uint64_t deadline_ns = peers_calls_deadline(peers);
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->at[i].reopen_ns < deadline_ns)
            deadline_ns = peers->at[i].reopen_ns;
    }
    return deadline_ns;
}

uint64_t peers_queued(const struct peers *peers, uint16_t region)
{
    uint64_t queued = 0;
    for (uint32_t i = 0; i < peers->count; i++) {
        const struct peer *peer = &peers->at[i];
        if (peer->region != region)
            continue;
        if (peer->outbound.call)
            queued += grpc_call_queued(peer->outbound.call);
        if (peer->inbound.call)
            queued += grpc_call_queued(peer->inbound.call);
    }
    return queued;
}

/* ---- Life ---- */

struct peers *peers_new(struct loop *loop, const struct config *config, const struct log *log,
                        uint64_t seed)
{
    struct peers *peers = xcalloc(1, sizeof(*peers));
    peers->loop = loop;
    peers->config = config;
    peers->log = log;
    peers->seed = seed;
    list_init(&peers->incoming);
    list_init(&peers->outgoing);
    peers->count = config->peer_count;
    for (uint32_t i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->at[i];
        peer->peers = peers;
        peer->region = config->peers[i].region;
        peer->reopen_ns = UINT64_MAX;
        peer->outbound = (struct stream){.peer = peer, .channel = CHANNEL_OUTBOUND};
        peer->inbound = (struct stream){.peer = peer, .channel = CHANNEL_INBOUND};
    }
    return peers;
}

void peers_start(struct peers *peers, struct driver *driver)
{
    peers->driver = driver;
    const struct config *config = peers->config;
    for (uint32_t i = 0; i < peers->count; i++) {
        struct grpc_link_config link = {.address = config->peers[i].address,
                                        .authority = config->peers[i].address,
                                        .connect_ms_max = config->connect_ms_max,
                                        .backoff_ms_min = config->backoff_ms_min,
                                        .backoff_ms_max = config->backoff_ms_max,
                                        .message_bytes_max = config->server.message_bytes_max,
                                        .silent_ms_max = config->core.replication.silence_ms_max,
                                        .seed = peers->seed + i};
        struct grpc_link_events events = {on_link_up, on_link_down, &peers->at[i]};
        peers->at[i].link = grpc_link_open(peers->loop, &link, &events);
    }
}

void peers_stop(struct peers *peers)
{
    peers->driver = NULL;
    for (uint32_t i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->at[i];
        if (peer->inbound.call)
            grpc_call_finish(peer->inbound.call, GRPC_UNAVAILABLE, "shutting down");
        if (peer->link)
            grpc_link_close(steal(&peer->link));
        peer->link_up = false;
        peer->reopen_ns = UINT64_MAX;
    }
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
    peers_calls_free(peers);
    free(peers);
}
