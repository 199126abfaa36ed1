/* SPDX-License-Identifier: Apache-2.0 */
/* See h2.h. Three bounds stand beside those of nghttp2 itself: the size of a header block, how
 * often a peer may send frames that cost us work and him nothing (the floods of CVE-2019-9512 to
 * 9518 and the rapid reset of CVE-2023-44487), and windows, of which bytes are given back only when
 * they are consumed. Sending is in h2_send.c. */

#include "net/h2_internal.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    SPARE_STREAMS_MAX = 64,
    SPARE_BYTES_MAX = 8192,
    CALM_MAX = 1000,       /* frames at once */
    CALM_PER_SECOND = 200, /* and for ever */
};

struct h2_stream *h2_stream_new(struct h2 *h2, int32_t id)
{
    struct list *spare = list_take(&h2->spares);
    struct h2_stream *stream;
    if (spare) {
        stream = container_of(spare, struct h2_stream, link);
        h2->spare_count--;
    } else {
        stream = xcalloc(1, sizeof(*stream));
        list_init(&stream->link);
    }
    stream->h2 = h2;
    stream->id = id;
    stream->since_ms = h2->now_ms;
    list_append(&h2->streams, &stream->link);
    h2->stream_count++;
    return stream;
}

static void stream_free(struct h2_stream *stream)
{
    head_deinit(&stream->head);
    head_deinit(&stream->trailers);
    buf_deinit(&stream->out);
    free(stream);
}

void h2_stream_recycle(struct h2_stream *stream)
{
    struct h2 *h2 = stream->h2;
    h2->queued -= h2_stream_queued(stream);
    list_remove(&stream->link);
    if (--h2->stream_count == 0)
        h2->idle_since_ms = h2->now_ms;
    if (h2->spare_count == SPARE_STREAMS_MAX) {
        stream_free(stream);
        return;
    }
    struct head head = stream->head, trailers = stream->trailers;
    struct buf out = stream->out;
    head_reset(&head);
    head_reset(&trailers);
    buf_reset(&out);
    if (out.cap > SPARE_BYTES_MAX)
        buf_deinit(&out);
    *stream = (struct h2_stream){.head = head, .trailers = trailers, .out = out};
    list_init(&stream->link);
    list_append(&h2->spares, &stream->link);
    h2->spare_count++;
}

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return id == 0 ? NULL : nghttp2_session_get_stream_user_data(session, id);
}

/* False when the peer's allowance of cheap frames is used up. */
static bool stay_calm(struct h2 *h2)
{
    uint64_t refill = (h2->now_ms - h2->calm_ms) * CALM_PER_SECOND / 1000;
    if (refill > 0) {
        h2->calm = refill > CALM_MAX - h2->calm ? CALM_MAX : h2->calm + refill;
        h2->calm_ms = h2->now_ms;
    }
    if (h2->calm == 0)
        return false;
    h2->calm--;
    return true;
}

static bool is_cheap(const nghttp2_frame_hd *hd)
{
    switch (hd->type) {
    case NGHTTP2_PING:
    case NGHTTP2_SETTINGS:
        return !(hd->flags & NGHTTP2_FLAG_ACK);
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_PRIORITY:
        return true;
    case NGHTTP2_DATA:
        return hd->length == 0 && !(hd->flags & NGHTTP2_FLAG_END_STREAM);
    default:
        return false;
    }
}

static int frame_began(nghttp2_session *session, const nghttp2_frame_hd *hd, void *context)
{
    (void)session;
    struct h2 *h2 = context;
    if (is_cheap(hd) && !stay_calm(h2))
        h2_terminate(h2, NGHTTP2_ENHANCE_YOUR_CALM);
    return 0;
}

static int headers_began(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct h2 *h2 = context;
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (!stream && h2->config.server && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        stream = h2_stream_new(h2, frame->hd.stream_id);
        nghttp2_session_set_stream_user_data(session, stream->id, stream);
    }
    if (stream) {
        head_reset(&stream->head);
        stream->head_bytes = 0;
        stream->head_too_large = false;
    }
    return 0;
}

static int header_came(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                       void *context)
{
    (void)flags;
    struct h2 *h2 = context;
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (!stream || stream->head_too_large)
        return 0;
    stream->head_bytes += name_len + value_len + 32; /* as RFC 9113 section 6.5.2 counts */
    if (stream->head_bytes > h2->config.head_bytes_max || stream->head.count == HTTP_HEADERS_MAX) {
        stream->head_too_large = true;
        return 0;
    }
    head_copy(&stream->head, bytes_make(name, name_len), bytes_make(value, value_len));
    return 0;
}

/* Looks the stream up again: the sink may have lost the connection meanwhile. */
static void end_input(nghttp2_session *session, const nghttp2_frame *frame)
{
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (!stream || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || stream->in_ended)
        return;
    stream->in_ended = true;
    if (stream->sink)
        stream->sink->ended(stream);
}

static int frame_came(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct h2 *h2 = context;
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK) && !h2->settled) {
            h2->settled = true;
            if (h2->owner->settled)
                h2->owner->settled(h2);
        }
        break;
    case NGHTTP2_HEADERS:
        if (!stream)
            break;
        head_seal(&stream->head);
        if (h2->config.server && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            h2->owner->opened(h2, stream);
        else if (stream->sink)
            stream->sink->head(stream);
        end_input(session, frame);
        break;
    case NGHTTP2_DATA:
        end_input(session, frame);
        break;
    default:
        break;
    }
    return 0;
}

static int data_came(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *at,
                     size_t len, void *context)
{
    (void)flags;
    (void)context;
    struct h2_stream *stream = stream_of(session, id);
    if (stream && stream->sink)
        stream->sink->data(stream, bytes_make(at, len));
    else
        nghttp2_session_consume(session, id, len);
    return 0;
}

static int stream_closed(nghttp2_session *session, int32_t id, uint32_t error, void *context)
{
    (void)context;
    struct h2_stream *stream = stream_of(session, id);
    if (!stream)
        return 0;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    list_remove(&stream->link); /* the sink may call h2_lose */
    if (stream->sink)
        stream->sink->closed(stream, error, NULL);
    h2_stream_recycle(stream);
    return 0;
}

/* A call that the server has ended is over, also when the client has more to say (RFC 9113
 * section 8.1). A plain request's rest is thrown away instead: curl 7.88 loses the answer when a
 * reset follows it. */
static int frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct h2 *h2 = context;
    bool ends = (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
                (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
    struct h2_stream *stream = ends ? stream_of(session, frame->hd.stream_id) : NULL;
    if (stream && stream->sink && h2->config.server && !stream->in_ended)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_NO_ERROR);
    return 0;
}

static nghttp2_session_callbacks *callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks = NULL;
    check(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, frame_began);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, headers_began);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header_came);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_came);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_came);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
    return callbacks;
}

static void session_init(struct h2 *h2)
{
    nghttp2_session_callbacks *callbacks = callbacks_new();
    nghttp2_option *option = NULL;
    check(nghttp2_option_new(&option) == 0);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    /* Ours answers ENHANCE_YOUR_CALM first. */
    nghttp2_option_set_stream_reset_rate_limit(option, CALM_MAX * 2, CALM_PER_SECOND * 2);
    nghttp2_option_set_max_outbound_ack(option, CALM_MAX * 2);
    int status = h2->config.server
                     ? nghttp2_session_server_new2(&h2->session, callbacks, h2, option)
                     : nghttp2_session_client_new2(&h2->session, callbacks, h2, option);
    check(status == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
}

static uint32_t window_of(uint64_t bytes)
{
    return bytes > NGHTTP2_MAX_WINDOW_SIZE ? NGHTTP2_MAX_WINDOW_SIZE : (uint32_t)bytes;
}

void h2_init(struct h2 *h2, const struct h2_owner *owner, const struct h2_config *config,
             uint64_t now_ms)
{
    *h2 = (struct h2){.owner = owner,
                      .config = *config,
                      .now_ms = now_ms,
                      .heard_ms = now_ms,
                      .idle_since_ms = now_ms,
                      .calm = CALM_MAX,
                      .calm_ms = now_ms,
                      .names_ms = now_ms - 1000};
    list_init(&h2->streams);
    list_init(&h2->spares);
    session_init(h2);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, config->streams_max},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window_of(config->window_bytes)},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, config->head_bytes_max},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    size_t count = array_len(settings) - (config->server ? 1 : 0);
    check(nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings, count) == 0);
    check(nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                                (int32_t)window_of(config->connection_bytes)) == 0);
}

void h2_lose(struct h2 *h2, const char *reason)
{
    h2->failed = true;
    while (!list_empty(&h2->streams)) {
        struct h2_stream *stream = container_of(h2->streams.next, struct h2_stream, link);
        nghttp2_session_set_stream_user_data(h2->session, stream->id, NULL);
        list_remove(&stream->link);
        if (stream->sink)
            stream->sink->closed(stream, NGHTTP2_NO_ERROR, reason);
        h2_stream_recycle(stream);
    }
}

void h2_deinit(struct h2 *h2)
{
    h2_lose(h2, "closed");
    struct list *link;
    while ((link = list_take(&h2->spares)) != NULL)
        stream_free(container_of(link, struct h2_stream, link));
    nghttp2_session_del(h2->session);
    h2->session = NULL;
}

void h2_receive(struct h2 *h2, struct bytes input, uint64_t now_ms)
{
    h2->now_ms = h2->heard_ms = now_ms;
    if (h2->failed)
        return;
    ssize_t done = nghttp2_session_mem_recv(h2->session, input.at, input.len);
    if (done < 0 && !h2->failed) {
        bool flooded = done == NGHTTP2_ERR_FLOODED;
        h2_terminate(h2, flooded ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
    }
    h2->owner->wake(h2);
}

void h2_fill(struct h2 *h2, struct buf *out, size_t room)
{
    while (!h2->failed && out->len < room) {
        const uint8_t *at;
        ssize_t len = nghttp2_session_mem_send(h2->session, &at);
        if (len < 0)
            h2->failed = true;
        if (len <= 0)
            break;
        buf_append(out, at, (size_t)len);
    }
}

bool h2_is_over(const struct h2 *h2)
{
    return h2->failed ||
           (!nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session));
}

void h2_drain(struct h2 *h2)
{
    int32_t last = nghttp2_session_get_last_proc_stream_id(h2->session);
    nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0);
    h2->owner->wake(h2);
}

void h2_terminate(struct h2 *h2, uint32_t error)
{
    nghttp2_session_terminate_session(h2->session, error);
    h2->owner->wake(h2);
}

void h2_ping(struct h2 *h2)
{
    nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);
    h2->owner->wake(h2);
}
