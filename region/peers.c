/* SPDX-License-Identifier: Apache-2.0 */
/* A stream has a generation. The core learns of streams through a queue, so between the end of one
 * and the moment at which the core has heard of the next, it may still send to the first: such
 * messages are dropped here, since a new stream must begin with what the core sends on it. */

#include "region/peers.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/peers_internal.h"

enum { SCRATCH_KEPT_MAX = 1 << 20 };

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
    return &peer->streams[channel];
}

static const struct {
    const char *name; /* with a Region's name behind it */
    const char *path;
    bool ours;    /* we open it; else the peer does */
    bool two_way; /* the core hears that it is there, and both sides speak */
} channels[CHANNELS] = {
    [CHANNEL_OUTBOUND] = {"replication to", PATH_REPLICATE, true, true},
    [CHANNEL_INBOUND] = {"replication from", PATH_REPLICATE, false, true},
    [CHANNEL_GROUPS_OUT] = {"strong groups to", PATH_GROUPS, true, false},
    [CHANNEL_GROUPS_IN] = {"strong groups from", PATH_GROUPS, false, false},
};

static bool comes_and_goes(const struct stream *stream)
{
    return channels[stream->channel].ours || channels[stream->channel].two_way;
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
    stream->known = stream->dropping = stream->begun = stream->spoilt = stream->damaged = false;
    stream->generation = ++stream->peer->peers->generation;
    if (comes_and_goes(stream))
        push_stream(stream, REGION_PEER_UP, BYTES_NONE);
    log_line(stream->peer->peers->log, TRACE_INFO, "%s %s: stream open",
             channels[stream->channel].name, region_id_name(stream->peer->region));
}

static void stream_end(struct stream *stream, const char *reason)
{
    stream->call = NULL;
    stream->known = false;
    peers_drop_held(stream);
    if (stream->damaged && stream->peer->peers->faults)
        faults_stream_closed(stream->peer->peers->faults, stream->peer->region);
    if (comes_and_goes(stream))
        push_stream(stream, REGION_PEER_DOWN, BYTES_NONE);
    log_line(stream->peer->peers->log, TRACE_INFO, "%s %s: stream closed: %s",
             channels[stream->channel].name, region_id_name(stream->peer->region), reason);
}

static void take_groups(const struct stream *stream, struct grpc_call *call, struct bytes message)
{
    struct bytes body;
    if (!peers_take_groups(message, &body)) {
        grpc_call_consume(call, message.len);
        grpc_call_finish(call, GRPC_INVALID_ARGUMENT, "not a GroupsMessage");
        return;
    }
    grpc_call_consume(call, message.len - body.len); /* the rest, when the core has it */
    push_stream(stream, REGION_PEER_FRAME, body);
}

/* Everything after it on the stream goes with it, and is sent again on the next. */
static void refuse_damaged(struct stream *stream, struct grpc_call *call)
{
    static const char reason[] = "a message came damaged: its checksum does not fit";
    stream->spoilt = true;
    log_line(stream->peer->peers->log, TRACE_WARN, "%s %s: closing the stream: %s",
             channels[stream->channel].name, region_id_name(stream->peer->region), reason);
    if (channels[stream->channel].ours)
        grpc_call_cancel(call, reason);
    else
        grpc_call_finish(call, GRPC_DATA_LOSS, reason);
}

static void on_stream_message(void *context, struct grpc_call *call, struct bytes wire)
{
    struct stream *stream = context;
    struct bytes message = BYTES_NONE;
    bool wanted = stream->call == call && stream->channel != CHANNEL_GROUPS_OUT && !stream->spoilt;
    bool whole = wanted && peers_unseal(wire, &message);
    grpc_call_consume(call, wire.len - message.len); /* the rest, when the core has it */
    if (wanted && !whole)
        refuse_damaged(stream, call);
    else if (!wanted)
        return;
    else if (stream->channel == CHANNEL_GROUPS_IN)
        take_groups(stream, call, message);
    else
        push_stream(stream, REGION_PEER_FRAME, message);
}

static void on_stream_half_closed(void *context, struct grpc_call *call)
{
    struct stream *stream = context;
    if (channels[stream->channel].ours)
        return;
    if (stream->channel == CHANNEL_GROUPS_IN)
        grpc_call_send(call, BYTES_NONE); /* a GroupsEnd, which has no fields */
    grpc_call_finish(call, GRPC_OK, "");
}

static void reopen_later(struct stream *stream)
{
    stream->reopen_ns = stream->peer->peers->loop->mono_ns + REOPEN_MS * UINT64_C(1000000);
}

static void on_stream_closed(void *context, struct grpc_call *call, enum grpc_status status,
                             const char *reason)
{
    (void)status;
    struct stream *stream = context;
    if (stream->call != call)
        return;
    stream_end(stream, reason ? reason : "");
    if (channels[stream->channel].ours && stream->peer->link_up)
        reopen_later(stream);
}

static struct grpc_events stream_events(struct stream *stream)
{
    return (struct grpc_events){on_stream_message, on_stream_half_closed, on_stream_closed, stream};
}

static void open_stream(struct stream *stream)
{
    struct peer *peer = stream->peer;
    stream->reopen_ns = UINT64_MAX;
    const char *headers[] = {HEADER_REGION, region_id_name(peer->peers->config->core.region), NULL};
    struct grpc_events events = stream_events(stream);
    struct grpc_call *call =
        grpc_link_call(peer->link, channels[stream->channel].path, headers, &events);
    if (call)
        stream_begin(stream, call);
    else
        reopen_later(stream);
}

static void on_link_up(void *context)
{
    struct peer *peer = context;
    peer->link_up = true;
    open_stream(&peer->streams[CHANNEL_OUTBOUND]);
    open_stream(&peer->streams[CHANNEL_GROUPS_OUT]);
    peers_calls_connected(peer);
}

static void forget_reopening(struct peer *peer)
{
    peer->link_up = false;
    for (unsigned i = 0; i < CHANNELS; i++)
        peer->streams[i].reopen_ns = UINT64_MAX;
}

static void on_link_down(void *context, const char *reason)
{
    struct peer *peer = context;
    forget_reopening(peer);
    log_line(peer->peers->log, TRACE_DEBUG, "connection to %s: %s", region_id_name(peer->region),
             reason ? reason : "");
}

/* A newer stream of the same peer replaces the older one, whose end we may not have heard of yet.
 */
static void accept_stream(struct stream *stream, struct grpc_call *call)
{
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
    if (!stream->call || !stream->known)
        return;
    if (peers->faults && peers->faults->count > 0)
        peers_send_faulty(stream, message);
    else
        peers_send_now(stream, message);
}

static void send_sealed(struct stream *stream, struct bytes message, const uint64_t *damage)
{
    struct buf *wire = &stream->peer->peers->scratch;
    bool groups = stream->channel == CHANNEL_GROUPS_OUT;
    stream->begun = true;
    buf_reset(wire);
    if (groups)
        peers_wrap_groups(message, wire);
    else
        buf_append_bytes(wire, message);
    peers_seal(wire);
    if (damage)
        peers_damage(wire, *damage);
    if (groups)
        peers_send_groups(stream, buf_view(wire));
    else
        grpc_call_send(stream->call, buf_view(wire));
    if (wire->cap > SCRATCH_KEPT_MAX)
        buf_deinit(wire);
}

void peers_send_now(struct stream *stream, struct bytes message)
{
    send_sealed(stream, message, NULL);
}

void peers_send_damaged(struct stream *stream, struct bytes message, uint64_t luck)
{
    stream->damaged = true;
    send_sealed(stream, message, &luck);
}

void peers_set_faults(struct peers *peers, struct faults *faults)
{
    peers->faults = faults;
}

void peers_close(struct peers *peers, uint16_t peer, enum region_channel channel,
                 const char *reason)
{
    struct stream *stream = find_stream(peers, peer, channel);
    if (stream->call && stream->known) {
        log_line(peers->log, TRACE_WARN, "%s %s: closing the stream: %s", channels[channel].name,
                 region_id_name(peer), reason);
        grpc_call_cancel(stream->call, reason);
    }
}

void peers_taken(struct peers *peers, const struct region_input *in, uint64_t tag)
{
    struct stream *stream = find_stream(peers, in->peer, in->channel);
    if (!stream->call || stream->generation != tag)
        return;
    if (in->kind != REGION_PEER_DOWN)
        stream->known = true;
    if (in->kind == REGION_PEER_FRAME)
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
    bool replicate = bytes_is(path, PATH_REPLICATE);
    bool groups = bytes_is(path, PATH_GROUPS);
    if (!replicate && !groups && !bytes_is(path, PATH_CONTROL))
        return false;
    struct bytes name = grpc_call_header(call, HEADER_REGION);
    struct peer *peer = peers_find(peers, region_id_find(name));
    if (!peers->driver)
        refuse_call(call, GRPC_UNAVAILABLE, "shutting down");
    else if (!peer)
        refuse_call(call, GRPC_FAILED_PRECONDITION,
                    "the header tidemark-region must name a configured peer of this Region");
    else if (replicate || groups)
        accept_stream(&peer->streams[groups ? CHANNEL_GROUPS_IN : CHANNEL_INBOUND], call);
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
        for (unsigned j = 0; j < CHANNELS; j++) {
            if (peers->at[i].streams[j].reopen_ns <= now_ns)
                open_stream(&peers->at[i].streams[j]);
            peers_send_held(&peers->at[i].streams[j]);
        }
    }
    peers_expire_calls(peers);
}

uint64_t peers_deadline(const struct peers *peers)
{
    uint64_t deadline_ns = peers_calls_deadline(peers);
    for (uint32_t i = 0; i < peers->count; i++) {
        for (unsigned j = 0; j < CHANNELS; j++) {
            if (peers->at[i].streams[j].reopen_ns < deadline_ns)
                deadline_ns = peers->at[i].streams[j].reopen_ns;
            uint64_t held_ns = peers_held_deadline(&peers->at[i].streams[j]);
            deadline_ns = held_ns < deadline_ns ? held_ns : deadline_ns;
        }
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
        for (unsigned j = 0; j < CHANNELS; j++) {
            if (peer->streams[j].call)
                queued += grpc_call_queued(peer->streams[j].call);
        }
    }
    return queued;
}

uint64_t peers_groups_dropped(const struct peers *peers, uint16_t region)
{
    uint64_t dropped = 0;
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->at[i].region == region)
            dropped = peers->at[i].groups_dropped;
    }
    return dropped;
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
    buf_init(&peers->scratch);
    list_init(&peers->incoming);
    list_init(&peers->outgoing);
    peers->count = config->peer_count;
    for (uint32_t i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->at[i];
        peer->peers = peers;
        peer->region = config->peers[i].region;
        for (unsigned j = 0; j < CHANNELS; j++) {
            peer->streams[j] = (struct stream){
                .peer = peer, .channel = (enum region_channel)j, .reopen_ns = UINT64_MAX};
            list_init(&peer->streams[j].held);
        }
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
        for (unsigned j = 0; j < CHANNELS; j++) {
            if (!channels[j].ours && peer->streams[j].call)
                grpc_call_finish(peer->streams[j].call, GRPC_UNAVAILABLE, "shutting down");
        }
        if (peer->link)
            grpc_link_close(steal(&peer->link));
        forget_reopening(peer);
    }
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
    for (uint32_t i = 0; i < peers->count; i++) {
        for (unsigned j = 0; j < CHANNELS; j++)
            peers_drop_held(&peers->at[i].streams[j]);
    }
    peers_calls_free(peers);
    buf_deinit(&peers->scratch);
    free(peers);
}
