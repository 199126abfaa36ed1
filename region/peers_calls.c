/* SPDX-License-Identifier: Apache-2.0 */
/* Control calls, one message each way. A call to a peer is answered exactly once towards the core,
 * also when the peer never does; a call from a peer waits for the core, also when the peer has gone
 * meanwhile. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/peers_internal.h"
#include "replicator/replicator.pb-c.h"

/* A call from a peer. Lives until the core has answered and the call is over. */
struct incoming {
    struct list link;
    struct peers *peers;
    struct grpc_call *call; /* NULL: over */
    uint64_t token;
    uint16_t region;
    bool asked; /* the core has it, and will answer */
};

/* A call to a peer. Waits for the connection a while, as one that is just being made is no reason
 * to refuse a user; then lives until the gRPC call is over. */
struct outgoing {
    struct list link;
    struct peer *peer;
    struct grpc_call *call; /* NULL: waits for the connection */
    struct buf body;        /* while it waits */
    uint64_t id;
    uint64_t deadline_ns;
    bool done; /* the core has been told */
};
enum { CONNECTION_WAIT_MS = 1000 };

/* ---- ControlMessage ---- */

static void encode_control(struct bytes body, struct buf *to)
{
    Tidemark__Replication__V1__ControlMessage message =
        TIDEMARK__REPLICATION__V1__CONTROL_MESSAGE__INIT;
    message.body.data = (uint8_t *)(uintptr_t)body.at;
    message.body.len = body.len;
    size_t len = tidemark__replication__v1__control_message__get_packed_size(&message);
    to->len += tidemark__replication__v1__control_message__pack(&message, buf_reserve(to, len));
}

/* To be freed; NULL for bytes that are no such message, or came damaged. */
static Tidemark__Replication__V1__ControlMessage *decode_control(struct bytes wire)
{
    struct bytes from;
    if (!peers_unseal(wire, &from))
        return NULL;
    return tidemark__replication__v1__control_message__unpack(NULL, from.len, from.at);
}

static void free_control(Tidemark__Replication__V1__ControlMessage *message)
{
    tidemark__replication__v1__control_message__free_unpacked(message, NULL);
}

static void send_control(struct grpc_call *call, struct bytes body)
{
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    encode_control(body, &message);
    peers_seal(&message);
    grpc_call_send(call, buf_view(&message));
}

/* ---- Calls from peers ---- */

static void incoming_free(struct incoming *incoming)
{
    incoming->peers->incoming_count--;
    list_remove(&incoming->link);
    free(incoming);
}

static void on_incoming_message(void *context, struct grpc_call *call, struct bytes message)
{
    struct incoming *incoming = context;
    grpc_call_consume(call, message.len);
    if (incoming->asked)
        return;
    Tidemark__Replication__V1__ControlMessage *control = decode_control(message);
    if (!control || !incoming->peers->driver) {
        free_control(control);
        grpc_call_finish(call, control ? GRPC_UNAVAILABLE : GRPC_INVALID_ARGUMENT,
                         control ? "shutting down" : "not a whole ControlMessage");
        return;
    }
    incoming->asked = true;
    struct region_input in = {.kind = REGION_CALL,
                              .peer = incoming->region,
                              .token = incoming->token,
                              .bytes = bytes_make(control->body.data, control->body.len)};
    driver_push(incoming->peers->driver, &in, 0);
    free_control(control);
}

static void on_incoming_closed(void *context, struct grpc_call *call, enum grpc_status status,
                               const char *reason)
{
    (void)call;
    (void)status;
    (void)reason;
    struct incoming *incoming = context;
    incoming->call = NULL;
    if (!incoming->asked)
        incoming_free(incoming);
}

void peers_call_reply(struct peers *peers, uint64_t token, struct bytes body)
{
    list_each(link, spare, &peers->incoming)
    {
        struct incoming *incoming = container_of(link, struct incoming, link);
        if (incoming->token != token)
            continue;
        check(incoming->asked);
        struct grpc_call *call = incoming->call;
        incoming->asked = false;
        if (!call) {
            incoming_free(incoming);
            return;
        }
        send_control(call, body);
        grpc_call_finish(call, GRPC_OK, ""); /* its end frees `incoming` */
        return;
    }
}

void peers_accept_call(struct peer *peer, struct grpc_call *call)
{
    struct peers *peers = peer->peers;
    struct incoming *incoming = xcalloc(1, sizeof(*incoming));
    *incoming = (struct incoming){
        .peers = peers, .call = call, .token = ++peers->token, .region = peer->region};
    list_append(&peers->incoming, &incoming->link);
    peers->incoming_count++;
    struct grpc_events events = {on_incoming_message, NULL, on_incoming_closed, incoming};
    grpc_call_on(call, &events);
}

/* ---- Calls to peers ---- */

static void push_done(struct peers *peers, uint64_t id, bool failed, struct bytes body)
{
    struct region_input in = {.kind = REGION_CALL_DONE, .id = id, .failed = failed, .bytes = body};
    if (peers->driver)
        driver_push(peers->driver, &in, 0);
}

static void on_outgoing_message(void *context, struct grpc_call *call, struct bytes message)
{
    struct outgoing *outgoing = context;
    grpc_call_consume(call, message.len);
    if (outgoing->done)
        return;
    Tidemark__Replication__V1__ControlMessage *control = decode_control(message);
    outgoing->done = true;
    push_done(outgoing->peer->peers, outgoing->id, !control,
              control ? bytes_make(control->body.data, control->body.len) : BYTES_NONE);
    free_control(control);
}

static void outgoing_end(struct outgoing *outgoing)
{
    struct peers *peers = outgoing->peer->peers;
    if (!outgoing->done)
        push_done(peers, outgoing->id, true, BYTES_NONE);
    peers->outgoing_count--;
    list_remove(&outgoing->link);
    buf_deinit(&outgoing->body);
    free(outgoing);
}

static void on_outgoing_closed(void *context, struct grpc_call *call, enum grpc_status status,
                               const char *reason)
{
    (void)call;
    (void)status;
    (void)reason;
    outgoing_end(context);
}

static void outgoing_send(struct outgoing *outgoing)
{
    struct peer *peer = outgoing->peer;
    const struct config *config = peer->peers->config;
    struct grpc_events events = {on_outgoing_message, NULL, on_outgoing_closed, outgoing};
    const char *headers[] = {HEADER_REGION, region_id_name(config->core.region), NULL};
    outgoing->deadline_ns =
        peer->peers->loop->mono_ns + config->core.call_timeout_ms * UINT64_C(1000000);
    outgoing->call = grpc_link_call(peer->link, PATH_CONTROL, headers, &events);
    if (!outgoing->call) {
        outgoing_end(outgoing);
        return;
    }
    send_control(outgoing->call, buf_view(&outgoing->body));
    buf_deinit(&outgoing->body);
    buf_init(&outgoing->body);
    grpc_call_finish(outgoing->call, GRPC_OK, "");
}

void peers_call(struct peers *peers, uint16_t region, uint64_t id, struct bytes body)
{
    struct peer *peer = peers_find(peers, region);
    check(peer != NULL);
    if (peers->outgoing_count == CALLS_MAX) {
        push_done(peers, id, true, BYTES_NONE);
        return;
    }
    struct outgoing *outgoing = xcalloc(1, sizeof(*outgoing));
    *outgoing = (struct outgoing){.peer = peer,
                                  .id = id,
                                  .deadline_ns = peers->loop->mono_ns +
                                                 CONNECTION_WAIT_MS * UINT64_C(1000000)};
    buf_append_bytes(&outgoing->body, body);
    list_append(&peers->outgoing, &outgoing->link);
    peers->outgoing_count++;
    if (peer->link_up)
        outgoing_send(outgoing);
}

void peers_calls_connected(struct peer *peer)
{
    list_each(link, spare, &peer->peers->outgoing)
    {
        struct outgoing *outgoing = container_of(link, struct outgoing, link);
        if (outgoing->peer == peer && !outgoing->call)
            outgoing_send(outgoing);
    }
}

/* ---- Time and life ---- */

void peers_expire_calls(struct peers *peers)
{
    uint64_t now_ns = peers->loop->mono_ns;
    /* One at a time, from the start: the end of a call may take others out of the list. */
    for (bool again = true; again;) {
        again = false;
        list_each(link, spare, &peers->outgoing)
        {
            struct outgoing *outgoing = container_of(link, struct outgoing, link);
            if (outgoing->deadline_ns > now_ns)
                continue;
            outgoing->deadline_ns = UINT64_MAX;
            if (outgoing->call)
                grpc_call_cancel(outgoing->call, "no answer in time");
            else
                outgoing_end(outgoing);
            again = true;
            break;
        }
    }
}

uint64_t peers_calls_deadline(const struct peers *peers)
{
    uint64_t deadline_ns = UINT64_MAX;
    list_each(link, spare, &peers->outgoing)
    {
        const struct outgoing *outgoing = container_of(link, struct outgoing, link);
        if (outgoing->deadline_ns < deadline_ns)
            deadline_ns = outgoing->deadline_ns;
    }
    return deadline_ns;
}

void peers_calls_free(struct peers *peers)
{
    for (struct list *link = list_take(&peers->incoming); link; link = list_take(&peers->incoming))
        free(container_of(link, struct incoming, link));
    for (struct list *link = list_take(&peers->outgoing); link;
         link = list_take(&peers->outgoing)) {
        struct outgoing *outgoing = container_of(link, struct outgoing, link);
        buf_deinit(&outgoing->body);
        free(outgoing);
    }
}
