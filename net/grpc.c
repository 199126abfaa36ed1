/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC call is a stream of messages, each behind five bytes: a flag and a big-endian length.
 *
 *     | 0 | length (4) | message | 0 | length | message ...        DATA frames cut this anywhere
 *
 * A message that lies whole in what was received is handed on in place; else it is assembled. What
 * a peer may send is bounded by its window, which grpc_call_consume gives back, and by
 * message_bytes_max.
 */

#include "net/grpc_internal.h"

#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { PREFIX_BYTES = 5, REASON_BYTES = 256, CALL_HEADERS_MAX = 32 };

struct grpc_call {
    struct h2_stream *stream; /* NULL once it has closed */
    struct grpc_events events;
    struct head head; /* server: the request's metadata; client: the answer's */
    struct buf partial;
    uint64_t message_bytes_max;
    uint64_t unconsumed; /* bytes of messages handed on and not given back */
    enum grpc_status status;
    char reason[REASON_BYTES];
    bool server;
    bool decided;   /* status is known: what the peer sends from now on is dropped */
    bool head_sent; /* server */
    bool answered;  /* client: the answer's head has come */
    bool delivering, dead;
};

static void decide(struct grpc_call *call, enum grpc_status status, const char *reason)
{
    if (call->decided)
        return;
    call->decided = true;
    call->status = status;
    snprintf(call->reason, sizeof(call->reason), "%s", reason ? reason : "");
}

static void call_free(struct grpc_call *call)
{
    head_deinit(&call->head);
    buf_deinit(&call->partial);
    free(call);
}

uint64_t grpc_window_bytes(uint64_t message_bytes_max)
{
    uint64_t window = 2 * message_bytes_max + 65536;
    return window < 1048576 ? 1048576 : window;
}

/* ---- Status texts ---- */

void grpc_encode_reason(const char *reason, struct buf *to)
{
    static const char hex[] = "0123456789ABCDEF";
    for (const char *at = reason; *at; at++) {
        uint8_t byte = (uint8_t)*at;
        if (byte >= 0x20 && byte <= 0x7e && byte != '%') {
            buf_append_u8(to, byte);
            continue;
        }
        buf_append_u8(to, '%');
        buf_append_u8(to, (uint8_t)hex[byte >> 4]);
        buf_append_u8(to, (uint8_t)hex[byte & 15]);
    }
}

static int hex_value(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return -1;
}

void grpc_decode_reason(struct bytes from, char *to, size_t to_len)
{
    size_t len = 0;
    for (size_t i = 0; i < from.len && len + 1 < to_len; i++) {
        uint8_t byte = from.at[i];
        if (byte == '%' && i + 2 < from.len && hex_value(from.at[i + 1]) >= 0 &&
            hex_value(from.at[i + 2]) >= 0) {
            byte = (uint8_t)(hex_value(from.at[i + 1]) << 4 | hex_value(from.at[i + 2]));
            i += 2;
        }
        to[len++] = byte ? (char)byte : '?';
    }
    to[len] = '\0';
}

/* ---- Receiving ---- */

/* The call ends here, by our decision: a server says so in trailers, a client resets. */
static void fail(struct grpc_call *call, enum grpc_status status, const char *reason)
{
    if (call->decided)
        return;
    if (call->server) {
        grpc_call_finish(call, status, reason);
        return;
    }
    decide(call, status, reason);
    h2_stream_reset(call->stream, NGHTTP2_CANCEL);
}

static void deliver(struct grpc_call *call, struct bytes message)
{
    h2_stream_consume(call->stream, PREFIX_BYTES);
    if (!call->events.message) {
        h2_stream_consume(call->stream, message.len);
        return;
    }
    call->unconsumed += message.len;
    call->events.message(call->events.context, call, message);
}

/* Looks at a message's prefix; false when the call has failed over it. */
static bool open_prefix(struct grpc_call *call, const uint8_t *prefix, size_t *ret_len)
{
    struct bytes rest = bytes_make(prefix + 1, PREFIX_BYTES - 1);
    uint32_t len = 0;
    check(bytes_take_be32(&rest, &len));
    if (prefix[0] != 0) {
        fail(call, prefix[0] == 1 ? GRPC_UNIMPLEMENTED : GRPC_INTERNAL,
             prefix[0] == 1 ? "compressed messages are not supported; send identity"
                            : "a message's first byte is neither 0 nor 1");
        return false;
    }
    if (len > call->message_bytes_max) {
        char reason[128];
        snprintf(reason, sizeof(reason), "a message of %u bytes is larger than the %llu allowed",
                 len, (unsigned long long)call->message_bytes_max);
        fail(call, GRPC_RESOURCE_EXHAUSTED, reason);
        return false;
    }
    *ret_len = len;
    return true;
}

/* Takes one message, or as much of it as there is; false when the call has failed. */
static bool take_message(struct grpc_call *call, struct bytes *piece)
{
    struct buf *partial = &call->partial;
    size_t len = 0;
    struct bytes run;
    if (partial->len == 0 && piece->len >= PREFIX_BYTES) {
        if (!open_prefix(call, piece->at, &len))
            return false;
        if (piece->len - PREFIX_BYTES >= len) {
            check(bytes_take(piece, PREFIX_BYTES + len, &run));
            deliver(call, bytes_make(run.at + PREFIX_BYTES, len));
            return true;
        }
        buf_reserve(partial, PREFIX_BYTES + (len < 65536 ? len : 65536));
    }
    if (partial->len < PREFIX_BYTES) {
        size_t want = PREFIX_BYTES - partial->len;
        check(bytes_take(piece, want < piece->len ? want : piece->len, &run));
        buf_append_bytes(partial, run);
        if (partial->len < PREFIX_BYTES)
            return true;
    }
    if (!open_prefix(call, partial->at, &len))
        return false;
    size_t want = PREFIX_BYTES + len - partial->len;
    check(bytes_take(piece, want < piece->len ? want : piece->len, &run));
    buf_append_bytes(partial, run);
    if (partial->len < PREFIX_BYTES + len)
        return true;
    struct buf whole = *partial;
    *partial = (struct buf){0}; /* the handler may free the call */
    deliver(call, bytes_make(whole.at + PREFIX_BYTES, len));
    buf_reset(&whole);
    if (whole.cap <= 65536)
        *partial = whole; /* the next one will fit */
    else
        buf_deinit(&whole);
    return true;
}

static void call_data(struct h2_stream *stream, struct bytes piece)
{
    struct grpc_call *call = stream->user;
    struct bytes rest = piece;
    call->delivering = true;
    while (rest.len && call->stream && !call->decided)
        if (!take_message(call, &rest))
            break;
    call->delivering = false;
    if (call->stream && call->decided)
        h2_stream_consume(call->stream, rest.len);
    if (call->dead)
        call_free(call);
}

static void call_head_server(struct h2_stream *stream)
{
    (void)stream; /* a client's trailers mean nothing in gRPC */
}

static void take_status(struct grpc_call *call, const struct head *head)
{
    struct bytes text = head_find(head->at, head->count, "grpc-status");
    if (text.len == 0 || text.len > 2 || call->decided)
        return;
    unsigned status = 0;
    for (size_t i = 0; i < text.len; i++)
        status = status * 10 + (unsigned)(text.at[i] - '0');
    char reason[REASON_BYTES];
    grpc_decode_reason(head_find(head->at, head->count, "grpc-message"), reason, sizeof(reason));
    decide(call, status <= 16 ? (enum grpc_status)status : GRPC_UNKNOWN, reason);
}

/* What an answer without gRPC's own status means: the table of http-grpc-status-mapping.md. */
static enum grpc_status status_of_http(struct bytes status)
{
    if (bytes_is(status, "400"))
        return GRPC_INTERNAL;
    if (bytes_is(status, "404"))
        return GRPC_UNIMPLEMENTED;
    if (bytes_is(status, "429") || bytes_is(status, "502") || bytes_is(status, "503") ||
        bytes_is(status, "504"))
        return GRPC_UNAVAILABLE;
    return GRPC_UNKNOWN;
}

static void call_head_client(struct h2_stream *stream)
{
    struct grpc_call *call = stream->user;
    struct head *head = &stream->head;
    if (call->answered) {
        take_status(call, head);
        return;
    }
    struct bytes status = head_find(head->at, head->count, ":status");
    if (status.len && status.at[0] == '1')
        return;
    call->answered = true;
    take_status(call, head); /* an answer may be nothing but trailers */
    if (!call->decided && !bytes_is(status, "200")) {
        char reason[64];
        snprintf(reason, sizeof(reason), "the server answered HTTP %.*s", (int)status.len,
                 (const char *)status.at);
        fail(call, status_of_http(status), reason);
    } else if (!call->decided &&
               !bytes_starts_with(head_find(head->at, head->count, "content-type"),
                                  bytes_literal("application/grpc"))) {
        fail(call, GRPC_UNKNOWN, "the server's answer is not gRPC");
    }
    struct head empty = call->head;
    call->head = *head;
    *head = empty;
    head_reset(head);
}

static void call_ended(struct h2_stream *stream)
{
    struct grpc_call *call = stream->user;
    if (!call->decided && call->partial.len) {
        fail(call, GRPC_INTERNAL, "the stream ended within a message");
        return;
    }
    if (!call->server) {
        /* The server has said all; if we have not, the rest is of no interest to anyone. */
        decide(call, GRPC_UNKNOWN, "the server ended the call without a status");
        if (!stream->out_ended || h2_stream_queued(stream))
            h2_stream_reset(stream, NGHTTP2_NO_ERROR);
        return;
    }
    if (!call->decided && call->events.half_closed)
        call->events.half_closed(call->events.context, call);
}

static enum grpc_status status_of_error(uint32_t error)
{
    switch (error) {
    case NGHTTP2_REFUSED_STREAM:
        return GRPC_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return GRPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return GRPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_NO_ERROR:
        return GRPC_UNKNOWN;
    default:
        return GRPC_INTERNAL;
    }
}

static void call_closed(struct h2_stream *stream, uint32_t error, const char *reason)
{
    struct grpc_call *call = stream->user;
    stream->sink = NULL;
    if (reason) {
        decide(call, GRPC_UNAVAILABLE, reason);
    } else {
        char text[64];
        snprintf(text, sizeof(text), "the stream was reset: %s", nghttp2_http2_strerror(error));
        decide(call, status_of_error(error), text);
        /* Bytes that nobody will give back any more still count against the connection. */
        uint64_t owed = call->unconsumed + call->partial.len;
        if (owed)
            nghttp2_session_consume_connection(stream->h2->session, (size_t)owed);
    }
    call->stream = NULL;
    if (call->events.closed)
        call->events.closed(call->events.context, call, call->status, call->reason);
    if (call->delivering)
        call->dead = true;
    else
        call_free(call);
}

static const struct h2_sink server_sink = {call_head_server, call_data, call_ended, call_closed};
static const struct h2_sink client_sink = {call_head_client, call_data, call_ended, call_closed};

bool grpc_owns(const struct h2_stream *stream)
{
    return stream->sink == &server_sink || stream->sink == &client_sink;
}

/* ---- Opening ---- */

void grpc_accept(struct http_host *host, struct h2_stream *stream)
{
    struct grpc_call *call = xcalloc(1, sizeof(*call));
    call->server = true;
    call->stream = stream;
    call->message_bytes_max = host->limits->message_bytes_max;
    call->head = stream->head;
    stream->head = (struct head){0};
    stream->user = call;
    stream->sink = &server_sink;
    struct bytes path = head_find(call->head.at, call->head.count, ":path");
    if (!host->grpc(host, call, path) && !call->decided) {
        char reason[128];
        snprintf(reason, sizeof(reason), "no such method: %.*s", path.len < 80 ? (int)path.len : 80,
                 (const char *)path.at);
        grpc_call_finish(call, GRPC_UNIMPLEMENTED, reason);
    }
}

struct grpc_call *grpc_open(struct h2 *h2, const char *authority, const char *path,
                            const char *const *headers, uint64_t message_bytes_max,
                            const struct grpc_events *events)
{
    struct http_header all[CALL_HEADERS_MAX] = {
        {bytes_literal(":method"), bytes_literal("POST")},
        {bytes_literal(":scheme"), bytes_literal("http")},
        {bytes_literal(":path"), bytes_text(path)},
        {bytes_literal(":authority"), bytes_text(authority)},
        {bytes_literal("te"), bytes_literal("trailers")},
        {bytes_literal("content-type"), bytes_literal("application/grpc")},
        {bytes_literal("user-agent"), bytes_literal("tidemark/" TIDEMARK_VERSION)},
    };
    uint32_t count = 7;
    for (; headers && headers[0]; headers += 2) {
        check(count < CALL_HEADERS_MAX);
        all[count++] = (struct http_header){bytes_text(headers[0]), bytes_text(headers[1])};
    }
    struct grpc_call *call = xcalloc(1, sizeof(*call));
    call->message_bytes_max = message_bytes_max;
    if (events)
        call->events = *events;
    call->stream = h2_request(h2, all, count, &client_sink, call);
    if (!call->stream) {
        call_free(call);
        return NULL;
    }
    return call;
}

/* ---- The public half ---- */

void grpc_call_on(struct grpc_call *call, const struct grpc_events *events)
{
    call->events = *events;
}

struct bytes grpc_call_header(const struct grpc_call *call, const char *name)
{
    return head_find(call->head.at, call->head.count, name);
}

static void send_head(struct grpc_call *call)
{
    const struct http_header head[] = {
        {bytes_literal(":status"), bytes_literal("200")},
        {bytes_literal("content-type"), bytes_literal("application/grpc")},
    };
    if (!call->server || call->head_sent)
        return;
    call->head_sent = true;
    h2_stream_respond(call->stream, head, array_len(head), false);
}

void grpc_call_send(struct grpc_call *call, struct bytes message)
{
    if (!call->stream || call->decided || call->stream->out_ended)
        return; /* over: `closed` is on its way */
    check(message.len <= UINT32_MAX);
    send_head(call);
    uint8_t prefix[PREFIX_BYTES] = {0, (uint8_t)(message.len >> 24), (uint8_t)(message.len >> 16),
                                    (uint8_t)(message.len >> 8), (uint8_t)message.len};
    h2_stream_write(call->stream, bytes_make(prefix, sizeof(prefix)));
    h2_stream_write(call->stream, message);
}

uint64_t grpc_call_queued(const struct grpc_call *call)
{
    return call->stream ? h2_stream_queued(call->stream) : 0;
}

void grpc_call_consume(struct grpc_call *call, uint64_t message_bytes)
{
    check(message_bytes <= call->unconsumed);
    call->unconsumed -= message_bytes;
    if (call->stream && message_bytes)
        h2_stream_consume(call->stream, (size_t)message_bytes);
}

static void send_trailers(struct grpc_call *call)
{
    char status[12];
    struct buf reason;
    buf_init(&reason);
    snprintf(status, sizeof(status), "%d", (int)call->status);
    grpc_encode_reason(call->reason, &reason);
    struct http_header all[] = {
        {bytes_literal(":status"), bytes_literal("200")},
        {bytes_literal("content-type"), bytes_literal("application/grpc")},
        {bytes_literal("grpc-status"), bytes_text(status)},
        {bytes_literal("grpc-message"), buf_view(&reason)},
    };
    uint32_t skip = call->head_sent ? 2 : 0;
    uint32_t count = (reason.len ? 4 : 3) - skip;
    if (call->head_sent) {
        h2_stream_end(call->stream, all + skip, count);
    } else { /* an answer that is nothing but trailers */
        h2_stream_respond(call->stream, all, count, true);
        call->stream->out_ended = true;
    }
    buf_deinit(&reason);
}

void grpc_call_finish(struct grpc_call *call, enum grpc_status status, const char *reason)
{
    if (!call->stream || call->decided || call->stream->out_ended)
        return;
    if (!call->server) {
        h2_stream_end(call->stream, NULL, 0);
        return;
    }
    decide(call, status, reason);
    send_trailers(call);
}

void grpc_call_cancel(struct grpc_call *call, const char *reason)
{
    if (!call->stream)
        return;
    decide(call, GRPC_CANCELLED, reason);
    h2_stream_reset(call->stream, NGHTTP2_CANCEL);
}
