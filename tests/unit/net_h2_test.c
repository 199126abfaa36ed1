/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 requests without sockets: our client side against our server side in memory, and, for what
 * no honest client sends, frames by hand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/net_wire.h"

/* ---- A client that writes down what it gets ---- */

struct answer {
    char status[8];
    struct buf body;
    bool ended, closed;
    uint32_t error;
};

static void answer_head(struct h2_stream *stream)
{
    struct answer *answer = stream->user;
    struct bytes status = head_find(stream->head.at, stream->head.count, ":status");
    snprintf(answer->status, sizeof(answer->status), "%.*s", (int)status.len,
             (const char *)status.at);
}
static void answer_data(struct h2_stream *stream, struct bytes piece)
{
    struct answer *answer = stream->user;
    buf_append_bytes(&answer->body, piece);
    h2_stream_consume(stream, piece.len);
}
static void answer_ended(struct h2_stream *stream)
{
    ((struct answer *)stream->user)->ended = true;
}
static void answer_closed(struct h2_stream *stream, uint32_t error, const char *reason)
{
    struct answer *answer = stream->user;
    (void)reason;
    assert_false(answer->closed);
    answer->closed = true;
    answer->error = error;
    stream->sink = NULL;
}
static const struct h2_sink answer_sink = {answer_head, answer_data, answer_ended, answer_closed};

static struct h2_stream *request(struct wire *wire, struct answer *answer, const char *method,
                                 const char *path, const char *name, const char *value)
{
    struct http_header headers[] = {
        {bytes_literal(":method"), bytes_text(method)},
        {bytes_literal(":scheme"), bytes_literal("http")},
        {bytes_literal(":path"), bytes_text(path)},
        {bytes_literal(":authority"), bytes_literal("here")},
        {bytes_text(name ? name : ""), bytes_text(value ? value : "")},
    };
    *answer = (struct answer){0};
    return h2_request(&wire->client, headers, name ? 5 : 4, &answer_sink, answer);
}

static const char *log_of(struct wire *wire)
{
    buf_append_u8(&wire->net.log, 0);
    wire->net.log.len--;
    return (const char *)wire->net.log.at;
}

static void test_requests(void **state)
{
    (void)state;
    size_t steps[] = {1 << 20, 1, 7};
    for (size_t i = 0; i < array_len(steps); i++) {
        struct wire wire;
        struct answer get, post;
        wire_init(&wire);
        wire.step = steps[i];
        h2_stream_end(request(&wire, &get, "GET", "/a", "x-one", "1"), NULL, 0);
        struct h2_stream *stream = request(&wire, &post, "POST", "/b", NULL, NULL);
        h2_stream_write(stream, bytes_literal("hel"));
        wire_run(&wire);
        assert_true(get.closed);
        assert_false(post.ended);
        h2_stream_write(stream, bytes_literal("lo"));
        h2_stream_end(stream, NULL, 0);
        wire_run(&wire);
        assert_string_equal(log_of(&wire), "GET /a here x-one=1 []\nPOST /b here [hello]\n");
        assert_string_equal(get.status, "200");
        assert_true(bytes_is(buf_view(&post.body), "hello"));
        assert_true(post.closed && post.error == 0);
        buf_deinit(&post.body);
        wire_deinit(&wire);
    }
}

static void test_answers_larger_than_windows(void **state)
{
    (void)state;
    struct wire wire;
    struct answer answer;
    struct buf body = {0};
    wire_init(&wire);
    for (uint32_t i = 0; i < 2500000; i++)
        buf_append_be32(&body, i);
    struct h2_stream *stream = request(&wire, &answer, "POST", "/big", NULL, NULL);
    h2_stream_write(stream, buf_view(&body));
    h2_stream_end(stream, NULL, 0);
    wire.net.hold = true;
    wire_run(&wire);
    assert_int_equal(wire.net.held_count, 1);
    net_host_answer(wire.net.held[0]);
    wire_run(&wire);
    assert_true(answer.closed);
    assert_true(bytes_equal(buf_view(&answer.body), buf_view(&body)));
    assert_int_equal(wire.server.queued, 0);
    buf_deinit(&answer.body);
    buf_deinit(&body);
    wire_deinit(&wire);
}

static void expect_refusal(struct wire *wire, struct answer *answer, const char *status)
{
    wire_run(wire);
    assert_string_equal(answer->status, status);
    assert_true(answer->ended);
    assert_int_equal(wire->net.requests, 0);
    buf_deinit(&answer->body);
    wire_deinit(wire);
}

static void test_refusals(void **state)
{
    (void)state;
    struct wire wire;
    struct answer answer;
    struct h2_stream *stream;

    wire_init(&wire);
    wire.net.limits.body_bytes_max = 10;
    stream = request(&wire, &answer, "POST", "/", NULL, NULL);
    h2_stream_write(stream, bytes_literal("12345678901"));
    expect_refusal(&wire, &answer, "413");

    wire_init(&wire);
    request(&wire, &answer, "POST", "/", "content-length", "99999999999");
    expect_refusal(&wire, &answer, "413");

    wire_init(&wire);
    wire.server.config.head_bytes_max = 300;
    char *value = xcalloc(1, 400);
    memset(value, 'v', 399);
    request(&wire, &answer, "POST", "/", "x-long", value);
    free(value);
    expect_refusal(&wire, &answer, "431");

    wire_init(&wire);
    request(&wire, &answer, "POST", "/", NULL, NULL);
    wire_run(&wire);
    wire.net.host.now_ms += wire.net.limits.request_ms_max + 1;
    assert_int_equal(h2_server_sweep(&wire.net.host, &wire.server), 1);
    expect_refusal(&wire, &answer, "408");

    wire_init(&wire);
    stream = request(&wire, &answer, "POST", "/", "content-encoding", "gzip");
    h2_stream_write(stream, bytes_literal("not gzip"));
    h2_stream_end(stream, NULL, 0);
    expect_refusal(&wire, &answer, "400");
}

static void test_gone_and_aborted(void **state)
{
    (void)state;
    struct wire wire;
    struct answer lost, aborted;
    wire_init(&wire);
    wire.net.hold = true;
    struct h2_stream *stream = request(&wire, &lost, "GET", "/lost", NULL, NULL);
    h2_stream_end(stream, NULL, 0);
    h2_stream_end(request(&wire, &aborted, "GET", "/aborted", NULL, NULL), NULL, 0);
    wire_run(&wire);
    h2_stream_reset(stream, NGHTTP2_CANCEL);
    wire_run(&wire);
    assert_null(wire.net.held[0]->stream);
    net_host_answer(wire.net.held[0]);
    exchange_abort(wire.net.held[1]);
    wire_run(&wire);
    assert_int_equal(aborted.error, NGHTTP2_INTERNAL_ERROR);
    wire_deinit(&wire);
}

static void test_unread_answers_refuse_streams(void **state)
{
    (void)state;
    struct wire wire;
    struct answer first, second;
    wire_init(&wire);
    wire.net.limits.output_bytes_max = 1000;
    wire.net.hold = true;
    h2_stream_end(request(&wire, &first, "GET", "/1", NULL, NULL), NULL, 0);
    wire_run(&wire);
    struct buf body = {0};
    memset(buf_reserve(&body, 20000000), 'b', 20000000);
    body.len = 20000000;
    exchange_respond(wire.net.held[0], 200, NULL, 0, buf_view(&body));
    h2_fill(&wire.server, &wire.to_client, 1 << 30); /* as far as the windows go */
    h2_stream_end(request(&wire, &second, "GET", "/2", NULL, NULL), NULL, 0);
    wire_run(&wire);
    assert_true(second.closed);
    assert_int_equal(second.error, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(first.body.len, body.len);
    buf_deinit(&first.body);
    buf_deinit(&body);
    wire_deinit(&wire);
}

/* ---- Frames by hand ---- */

static void put_frame(struct buf *to, uint8_t type, uint8_t flags, uint32_t id, struct bytes body)
{
    buf_append_u8(to, (uint8_t)(body.len >> 16));
    buf_append_be16(to, (uint16_t)body.len);
    buf_append_u8(to, type);
    buf_append_u8(to, flags);
    buf_append_be32(to, id);
    buf_append_bytes(to, body);
}

static void put_preface(struct buf *to)
{
    buf_append_text(to, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(to, NGHTTP2_SETTINGS, 0, 0, BYTES_NONE);
}

/* The code of the GOAWAY that the server has sent, or -1. */
static int64_t goaway_of(struct wire *wire)
{
    h2_fill(&wire->server, &wire->to_client, 1 << 30);
    struct bytes rest = buf_view(&wire->to_client);
    while (rest.len >= 9) {
        size_t len = (size_t)rest.at[0] << 16 | (size_t)rest.at[1] << 8 | rest.at[2];
        if (rest.at[3] == NGHTTP2_GOAWAY)
            return (int64_t)rest.at[13] << 24 | rest.at[14] << 16 | rest.at[15] << 8 | rest.at[16];
        rest.at += 9 + len;
        rest.len -= 9 + len;
    }
    return -1;
}

static void put_cheap_frames(struct buf *to, int kind, uint32_t count)
{
    /* A GET of "/" in HPACK: method, scheme and path from the static table, authority literal. */
    static const uint8_t get[] = {0x82, 0x86, 0x84, 0x41, 0x01, 'h'};
    static const uint8_t zero[8];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = 2 * i + 1;
        switch (kind) {
        case 0:
            put_frame(to, NGHTTP2_PING, 0, 0, bytes_make(zero, 8));
            break;
        case 1:
            put_frame(to, NGHTTP2_SETTINGS, 0, 0, BYTES_NONE);
            break;
        case 2: /* the rapid reset */
            put_frame(to, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id,
                      bytes_make(get, sizeof(get)));
            put_frame(to, NGHTTP2_RST_STREAM, 0, id, bytes_make(zero, 4));
            break;
        case 3:
            put_frame(to, NGHTTP2_PRIORITY, 0, id, bytes_make(zero, 5));
            break;
        default:
            if (i == 0)
                put_frame(to, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
                          bytes_make(get, sizeof(get)));
            put_frame(to, NGHTTP2_DATA, 0, 1, BYTES_NONE);
            break;
        }
    }
}

static void test_floods(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        for (int much = 0; much < 2; much++) {
            struct wire wire;
            wire_init(&wire);
            put_preface(&wire.to_server);
            put_cheap_frames(&wire.to_server, kind, much ? 1200 : 900);
            /* Answered as it comes, so it is the count that matters, not the queue. */
            for (size_t at = 0; at < wire.to_server.len; at += 1000) {
                size_t len = wire.to_server.len - at < 1000 ? wire.to_server.len - at : 1000;
                h2_receive(&wire.server, bytes_make(wire.to_server.at + at, len), wire.now_ms);
                h2_fill(&wire.server, &wire.to_client, 1 << 30);
            }
            assert_int_equal(goaway_of(&wire), much ? NGHTTP2_ENHANCE_YOUR_CALM : -1);
            wire_deinit(&wire);
        }
    }
}

static void test_calm_comes_back(void **state)
{
    (void)state;
    struct wire wire;
    struct buf pings = {0};
    wire_init(&wire);
    put_preface(&pings);
    for (int second = 0; second < 50; second++) {
        put_cheap_frames(&pings, 0, 190);
        h2_receive(&wire.server, buf_view(&pings), wire.now_ms);
        buf_reset(&pings);
        wire.now_ms += 1000;
        assert_int_equal(goaway_of(&wire), -1);
    }
    buf_deinit(&pings);
    wire_deinit(&wire);
}

static void test_too_many_streams(void **state)
{
    (void)state;
    struct wire wire;
    struct answer answers[300];
    wire_init(&wire);
    wire.net.hold = true;
    /* Our client honours the server's limit, once it knows it; before, the server refuses. */
    for (size_t i = 0; i < array_len(answers); i++)
        h2_stream_end(request(&wire, &answers[i], "GET", "/", NULL, NULL), NULL, 0);
    wire_run(&wire);
    assert_true(wire.net.held_count <= wire.net.limits.streams_max);
    for (uint32_t i = 0; i < wire.net.held_count; i++) {
        net_host_answer(wire.net.held[i]);
        wire_run(&wire);
    }
    wire_run(&wire);
    for (size_t i = 0; i < array_len(answers); i++)
        assert_true(answers[i].closed);
    wire_deinit(&wire);
}

static void test_garbage(void **state)
{
    (void)state;
    struct wire wire;
    wire_init(&wire);
    h2_receive(&wire.server, bytes_literal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense nonsense"), 1);
    assert_int_not_equal(goaway_of(&wire), -1);
    assert_true(h2_is_over(&wire.server));
    wire_deinit(&wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_answers_larger_than_windows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gone_and_aborted),
        cmocka_unit_test(test_unread_answers_refuse_streams),
        cmocka_unit_test(test_floods),
        cmocka_unit_test(test_calm_comes_back),
        cmocka_unit_test(test_too_many_streams),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
