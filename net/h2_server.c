/* SPDX-License-Identifier: Apache-2.0 */
/* See h2_server.h. A stream whose exchange is answered has no sink any more: what is left of it is
 * nghttp2's business. */

#include "net/h2_server.h"

#include <string.h>

#include "conflict/base/check.h"
#include "net/grpc_internal.h"

enum { RESPONSE_HEADERS_MAX = 60 };

static void refuse(struct exchange *exchange, int status)
{
    struct http_host *host = exchange->host;
    struct buf body;
    buf_init(&body);
    const char *type = NULL;
    if (host->refuse)
        host->refuse(host, status, &body, &type);
    struct http_header header = {bytes_literal("content-type"),
                                 type ? bytes_text(type) : BYTES_NONE};
    h2_respond(exchange, status, &header, type ? 1 : 0, buf_view(&body));
    buf_deinit(&body);
}

static void request_head(struct h2_stream *stream)
{
    (void)stream; /* trailers: allowed, and of no use to us */
}

static void request_data(struct h2_stream *stream, struct bytes piece)
{
    struct exchange *exchange = stream->user;
    h2_stream_consume(stream, piece.len);
    int status = exchange_body_status(exchange_append_body(exchange, piece));
    if (status)
        refuse(exchange, status);
}

static void request_ended(struct h2_stream *stream)
{
    struct exchange *exchange = stream->user;
    struct http_host *host = exchange->host;
    exchange->request.body = buf_view(&exchange->body);
    int status = exchange_body_status(exchange_decode_body(exchange));
    if (status) {
        refuse(exchange, status);
        return;
    }
    lifecycle_move(&exchange->life, EXCHANGE_HANDED);
    host->request(host, exchange);
}

static void request_closed(struct h2_stream *stream, uint32_t error, const char *reason)
{
    (void)error;
    (void)reason;
    struct exchange *exchange = stream->user;
    stream->sink = NULL;
    exchange_lose(exchange);
}

static const struct h2_sink request_sink = {request_head, request_data, request_ended,
                                            request_closed};

/* nghttp2 has seen to it that the pseudo headers are there, once, and before the others. */
static void take_pseudo(struct http_request *request, struct head *head)
{
    uint32_t i = 0;
    for (; i < head->count && head->at[i].name.len && head->at[i].name.at[0] == ':'; i++) {
        const struct http_header *header = &head->at[i];
        if (bytes_is(header->name, ":method"))
            request->method = header->value;
        else if (bytes_is(header->name, ":path"))
            request->path = header->value;
        else if (bytes_is(header->name, ":authority"))
            request->host = header->value;
    }
    request->headers = head->at + i;
    request->header_count = head->count - i;
    if (request->host.len == 0)
        request->host = head_find(request->headers, request->header_count, "host");
    if (request->path.len == 0) /* CONNECT has none */
        request->path = bytes_literal("/");
}

static bool is_too_long(const struct exchange *exchange)
{
    struct bytes text = http_request_header(&exchange->request, "content-length");
    uint64_t len = 0;
    for (size_t i = 0; i < text.len; i++) { /* digits: nghttp2 has looked */
        if (len > exchange->host->limits->body_bytes_max)
            return true;
        len = len * 10 + (uint64_t)(text.at[i] - '0');
    }
    return len > exchange->host->limits->body_bytes_max;
}

void h2_server_opened(struct http_host *host, struct h2_stream *stream)
{
    /* Answers that the client's window holds back are memory; a refused stream may safely be sent
     * again. */
    if (stream->h2->queued > host->limits->output_bytes_max) {
        h2_stream_reset(stream, NGHTTP2_REFUSED_STREAM);
        return;
    }
    struct bytes type = head_find(stream->head.at, stream->head.count, "content-type");
    if (host->grpc && !stream->head_too_large &&
        bytes_starts_with(type, bytes_literal("application/grpc")) &&
        !bytes_starts_with(type, bytes_literal("application/grpc-web")) &&
        bytes_is(head_find(stream->head.at, stream->head.count, ":method"), "POST")) {
        grpc_accept(host, stream);
        return;
    }
    struct exchange *exchange = exchange_take(host);
    struct head empty = exchange->head;
    exchange->head = stream->head;
    stream->head = empty;
    take_pseudo(&exchange->request, &exchange->head);
    exchange->request.version_major = 2;
    exchange->is_head = bytes_is(exchange->request.method, "HEAD");
    exchange->stream = stream;
    stream->user = exchange;
    stream->sink = &request_sink;
    if (stream->head_too_large)
        refuse(exchange, 431);
    else if (is_too_long(exchange))
        refuse(exchange, 413);
    else if (http_equal_nocase(http_request_header(&exchange->request, "expect"), "100-continue"))
        h2_stream_continue(stream);
}

uint32_t h2_server_sweep(struct http_host *host, struct h2 *h2)
{
    uint32_t count = 0;
    list_each(link, spare, &h2->streams)
    {
        struct h2_stream *stream = container_of(link, struct h2_stream, link);
        uint64_t age_ms = host->now_ms - stream->since_ms;
        if (stream->sink == &request_sink && !stream->in_ended &&
            age_ms > host->limits->request_ms_max)
            refuse(stream->user, 408);
        else if (!stream->sink && age_ms > host->limits->idle_ms_max)
            h2_stream_reset(stream, NGHTTP2_CANCEL); /* answered, and the answer not taken */
        else
            continue;
        count++;
    }
    return count;
}

void h2_server_config(const struct server_limits *limits, struct h2_config *ret_config)
{
    uint64_t window = grpc_window_bytes(limits->message_bytes_max);
    *ret_config = (struct h2_config){.server = true,
                                     .streams_max = limits->streams_max,
                                     .head_bytes_max = limits->head_bytes_max,
                                     .window_bytes = window,
                                     .connection_bytes = window * 4};
}

/* ---- Answers ---- */

static void settle(struct exchange *exchange)
{
    struct h2_stream *stream = exchange->stream;
    stream->sink = NULL;
    stream->user = NULL;
    exchange->stream = NULL;
    lifecycle_move(&exchange->life, EXCHANGE_ANSWERED);
    exchange_release(exchange);
}

void h2_respond(struct exchange *exchange, int status, const struct http_header *headers,
                uint32_t header_count, struct bytes body)
{
    struct h2_stream *stream = exchange->stream;
    struct http_header all[RESPONSE_HEADERS_MAX + 3];
    char status_text[DECIMAL_LEN_MAX], length_text[DECIMAL_LEN_MAX];
    check(header_count <= RESPONSE_HEADERS_MAX);
    struct bytes status_digits =
        bytes_make(status_text, decimal_encode(status_text, (uint64_t)status));
    struct bytes length_digits = bytes_make(length_text, decimal_encode(length_text, body.len));
    uint32_t count = 0;
    bool dated = false;
    all[count++] = (struct http_header){bytes_literal(":status"), status_digits};
    for (uint32_t i = 0; i < header_count; i++) {
        if (http_is_framing(headers[i].name) || headers[i].name.len == 0)
            continue;
        dated = dated || bytes_is(headers[i].name, "date");
        all[count++] = headers[i];
    }
    if (!dated)
        all[count++] = (struct http_header){bytes_literal("date"),
                                            bytes_make(exchange->host->pool->date, HTTP_DATE_LEN)};
    if (status >= 200 && status != 204)
        all[count++] = (struct http_header){bytes_literal("content-length"), length_digits};
    bool has_body = body.len && !exchange->is_head && status != 204 && status != 304;
    h2_stream_respond(stream, all, count, !has_body);
    stream->since_ms = exchange->host->now_ms;
    if (has_body) {
        h2_stream_write(stream, body);
        h2_stream_end(stream, NULL, 0);
    }
    settle(exchange);
}

void h2_abort(struct exchange *exchange)
{
    h2_stream_reset(exchange->stream, NGHTTP2_INTERNAL_ERROR);
    settle(exchange);
}
