/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_H
#define NET_H2_H

/* One HTTP/2 connection, either side, bytes in and bytes out: nghttp2 does the protocol, this adds
 * streams with their queues, and bounds on what a peer may make us do. A stream belongs to a sink,
 * which is a request (h2_server.c) or a gRPC call (grpc.c). Everything runs inside nghttp2's
 * callbacks, where submitting is allowed and sending, receiving or deleting the session is not: so
 * calls here only enqueue, and the owner, woken, moves the bytes later. */

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/list.h"
#include "net/http.h"

struct h2;
struct h2_stream;

struct h2_sink {
    /* A further header block: a client's answer, or trailers. It lies in stream->head. */
    void (*head)(struct h2_stream *stream);
    /* Borrowed; to be given back with h2_stream_consume. */
    void (*data)(struct h2_stream *stream, struct bytes piece);
    /* The peer will send no more. */
    void (*ended)(struct h2_stream *stream);
    /* The stream is dead afterwards. error: an HTTP/2 code; reason: NULL unless the connection is
     * lost. */
    void (*closed)(struct h2_stream *stream, uint32_t error, const char *reason);
};

struct h2_owner {
    /* Server: a request's head is whole; give the stream a sink. */
    void (*opened)(struct h2 *h2, struct h2_stream *stream);
    /* Client: the peer has sent its settings, so it speaks HTTP/2. May be NULL. */
    void (*settled)(struct h2 *h2);
    /* There is output, or the end of the connection to be noticed. */
    void (*wake)(struct h2 *h2);
};

struct h2_stream {
    struct list link;
    struct h2 *h2;
    int32_t id;
    const struct h2_sink *sink; /* NULL: nobody cares for it any more */
    void *user;
    uint64_t since_ms; /* its beginning, or the last progress of its output */
    struct head head;  /* what was received last */
    uint64_t head_bytes;
    bool head_too_large;
    bool in_ended;
    struct buf out; /* queued, from out_sent on */
    size_t out_sent;
    struct head trailers;
    bool out_waiting; /* nghttp2 has been told that there is nothing to send until told again */
    bool out_ended;
};

struct h2_config {
    bool server;
    uint32_t streams_max;
    uint32_t head_bytes_max;
    uint64_t window_bytes;     /* of a stream */
    uint64_t connection_bytes; /* of all together */
};

struct h2 {
    nghttp2_session *session;
    const struct h2_owner *owner;
    struct h2_config config;
    struct list streams, spares;
    uint32_t stream_count, spare_count;
    uint64_t queued; /* bytes in the streams' queues */
    uint64_t now_ms, heard_ms, idle_since_ms;
    uint64_t calm, calm_ms; /* how many more frames that only make work are tolerated; as of when */
    uint64_t names_ms;      /* when the names of an answer's headers were indexed last */
    bool settled, failed;
};

void h2_init(struct h2 *h2, const struct h2_owner *owner, const struct h2_config *config,
             uint64_t now_ms);
/* Closes all streams, with this reason; afterwards nothing calls out any more. */
void h2_lose(struct h2 *h2, const char *reason);
/* Not from within a callback. */
void h2_deinit(struct h2 *h2);
void h2_receive(struct h2 *h2, struct bytes input, uint64_t now_ms);
/* Appends frames until there are about `room` bytes. */
void h2_fill(struct h2 *h2, struct buf *out, size_t room);
/* Nothing more will come or go. */
bool h2_is_over(const struct h2 *h2);
/* GOAWAY: open streams go on, new ones are refused. */
void h2_drain(struct h2 *h2);
/* GOAWAY with an error; the end. */
void h2_terminate(struct h2 *h2, uint32_t error);
void h2_ping(struct h2 *h2);

/* Client. Returns NULL when nghttp2 refuses (the peer is going away). */
struct h2_stream *h2_request(struct h2 *h2, const struct http_header *headers, uint32_t count,
                             const struct h2_sink *sink, void *user);
/* Server. With end, there is no body. */
void h2_stream_respond(struct h2_stream *stream, const struct http_header *headers, uint32_t count,
                       bool end);
void h2_stream_continue(struct h2_stream *stream);
void h2_stream_write(struct h2_stream *stream, struct bytes bytes);
/* After what is queued: the end, with trailers if there are any. */
void h2_stream_end(struct h2_stream *stream, const struct http_header *trailers, uint32_t count);
void h2_stream_reset(struct h2_stream *stream, uint32_t error);
void h2_stream_consume(struct h2_stream *stream, size_t len);
static inline size_t h2_stream_queued(const struct h2_stream *stream)
{
    return stream->out.len - stream->out_sent;
}

#endif
