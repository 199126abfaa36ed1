/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves an HTTP/2 stream: heads, queued bytes, trailers. nghttp2 asks for bytes when a window
 * and the round's output have room for them; until then they wait in the stream. */

#include "net/h2_internal.h"

#include <string.h>

#include "conflict/base/check.h"

enum { SEND_HEADERS_MAX = 64, CONSUMED_BYTES_MAX = 65536, NAMES_MS = 1000 };

/* Values that differ from message to message would only churn the compression table. */
static uint8_t nv_flags(struct bytes name)
{
    if (name.at[0] == ':' || bytes_is(name, "content-type") || bytes_is(name, "te") ||
        bytes_is(name, "user-agent") || bytes_is(name, "date") || bytes_is(name, "server"))
        return NGHTTP2_NV_FLAG_NONE;
    return NGHTTP2_NV_FLAG_NO_INDEX;
}

static size_t make_nv(const struct http_header *headers, uint32_t count, nghttp2_nv *nv)
{
    check(count <= SEND_HEADERS_MAX);
    for (uint32_t i = 0; i < count; i++)
        nv[i] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)headers[i].name.at,
                             .namelen = headers[i].name.len,
                             .value = (uint8_t *)(uintptr_t)headers[i].value.at,
                             .valuelen = headers[i].value.len,
                             .flags = nv_flags(headers[i].name)};
    return count;
}

static ssize_t queued_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t len,
                           uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct h2 *h2 = context;
    struct h2_stream *stream = source->ptr;
    size_t queued = h2_stream_queued(stream);
    if (queued == 0 && !stream->out_ended) {
        stream->out_waiting = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    len = len < queued ? len : queued;
    if (len)
        memcpy(to, stream->out.at + stream->out_sent, len);
    stream->out_sent += len;
    stream->since_ms = h2->now_ms;
    h2->queued -= len;
    if (stream->out_sent == stream->out.len) {
        buf_reset(&stream->out);
        stream->out_sent = 0;
        if (stream->out_ended) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            if (stream->trailers.count) {
                nghttp2_nv nv[SEND_HEADERS_MAX];
                size_t count = make_nv(stream->trailers.at, stream->trailers.count, nv);
                *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                nghttp2_submit_trailer(session, id, nv, count);
            }
        }
    }
    return (ssize_t)len;
}

struct h2_stream *h2_request(struct h2 *h2, const struct http_header *headers, uint32_t count,
                             const struct h2_sink *sink, void *user)
{
    check(!h2->config.server);
    if (h2->failed)
        return NULL;
    struct h2_stream *stream = h2_stream_new(h2, 0);
    nghttp2_nv nv[SEND_HEADERS_MAX];
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = queued_read};
    size_t nv_count = make_nv(headers, count, nv);
    int32_t id = nghttp2_submit_request(h2->session, NULL, nv, nv_count, &provider, stream);
    if (id < 0) {
        h2_stream_recycle(stream);
        return NULL;
    }
    stream->id = id;
    stream->sink = sink;
    stream->user = user;
    h2->owner->wake(h2);
    return stream;
}

void h2_stream_respond(struct h2_stream *stream, const struct http_header *headers, uint32_t count,
                       bool end)
{
    struct h2 *h2 = stream->h2;
    check(h2->config.server);
    nghttp2_nv nv[SEND_HEADERS_MAX];
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = queued_read};
    size_t nv_count = make_nv(headers, count, nv);
    if (h2->now_ms - h2->names_ms >= NAMES_MS) {
        /* Now and then all are indexed: what changes is no use in the table, but the names are,
         * which would be spelled out each time. The dates push them out of it in the end. */
        h2->names_ms = h2->now_ms;
        for (size_t i = 0; i < nv_count; i++)
            nv[i].flags = NGHTTP2_NV_FLAG_NONE;
    }
    nghttp2_submit_response(h2->session, stream->id, nv, nv_count, end ? NULL : &provider);
    h2->owner->wake(h2);
}

void h2_stream_continue(struct h2_stream *stream)
{
    struct http_header header = {bytes_literal(":status"), bytes_literal("100")};
    nghttp2_nv nv;
    make_nv(&header, 1, &nv);
    nghttp2_submit_headers(stream->h2->session, NGHTTP2_FLAG_NONE, stream->id, NULL, &nv, 1, NULL);
    stream->h2->owner->wake(stream->h2);
}

static void resume_output(struct h2_stream *stream)
{
    if (stream->out_waiting) {
        stream->out_waiting = false;
        nghttp2_session_resume_data(stream->h2->session, stream->id);
    }
    stream->h2->owner->wake(stream->h2);
}

void h2_stream_write(struct h2_stream *stream, struct bytes bytes)
{
    check(!stream->out_ended);
    struct buf *out = &stream->out;
    if (stream->out_sent > CONSUMED_BYTES_MAX && stream->out_sent > out->len / 2) {
        out->len -= stream->out_sent;
        memmove(out->at, out->at + stream->out_sent, out->len);
        stream->out_sent = 0;
    }
    buf_append_bytes(out, bytes);
    stream->h2->queued += bytes.len;
    resume_output(stream);
}

void h2_stream_end(struct h2_stream *stream, const struct http_header *trailers, uint32_t count)
{
    check(!stream->out_ended);
    for (uint32_t i = 0; i < count; i++)
        head_copy(&stream->trailers, trailers[i].name, trailers[i].value);
    head_seal(&stream->trailers);
    stream->out_ended = true;
    resume_output(stream);
}

void h2_stream_reset(struct h2_stream *stream, uint32_t error)
{
    nghttp2_submit_rst_stream(stream->h2->session, NGHTTP2_FLAG_NONE, stream->id, error);
    stream->h2->owner->wake(stream->h2);
}

void h2_stream_consume(struct h2_stream *stream, size_t len)
{
    nghttp2_session_consume(stream->h2->session, stream->id, len);
    stream->h2->owner->wake(stream->h2);
}
