/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 without sockets: each input is fed whole, byte by byte and cut at random, and must give
 * the same requests and the same answers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zlib.h>

#include "conflict/base/rng.h"
#include "net/h1.h"
#include "tests/lib/net_host.h"

struct fixture {
    struct net_host net;
    struct h1 h1;
};

static void open_h1(struct fixture *f)
{
    net_host_init(&f->net);
    h1_init(&f->h1, &f->net.host);
}

static void close_h1(struct fixture *f)
{
    h1_deinit(&f->h1);
    net_host_deinit(&f->net);
}

/* Gives the parser the input as a socket would, at most `step` bytes at a time; 0: random steps. */
static void feed(struct fixture *f, struct bytes input, size_t step, struct rng *rng)
{
    while (input.len && !f->h1.deaf) {
        h1_resume(&f->h1);
        if (!h1_wants_input(&f->h1))
            return;
        size_t room = 0;
        uint8_t *at = h1_space(&f->h1, &room);
        if (!at)
            return;
        size_t len = step ? step : 1 + rng_below(rng, 40);
        len = len < room ? len : room;
        len = len < input.len ? len : input.len;
        memcpy(at, input.at, len);
        input.at += len;
        input.len -= len;
        h1_received(&f->h1, len, true);
    }
}

static const char *text_of(struct buf *buf)
{
    buf_append_u8(buf, 0);
    buf->len--;
    return (const char *)buf->at;
}

static void expect_log(const char *input, size_t input_len, const char *log)
{
    struct rng rng;
    rng_init(&rng, 7);
    size_t steps[] = {input_len ? input_len : 1, 1, 2, 0, 0, 0};
    for (size_t i = 0; i < array_len(steps); i++) {
        struct fixture f;
        open_h1(&f);
        feed(&f, bytes_make(input, input_len), steps[i], &rng);
        assert_string_equal(text_of(&f.net.log), log);
        close_h1(&f);
    }
}
#define EXPECT(input, log) expect_log((input), sizeof(input) - 1, (log))

static void test_requests(void **state)
{
    (void)state;
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / a []\n");
    EXPECT("POST /p?q=1 HTTP/1.1\r\nhost:a:80\r\nX-One:  v w \t\r\nContent-Length: 5\r\n\r\nhello",
           "POST /p?q=1 a:80 x-one=v w [hello]\n");
    EXPECT("\r\n\r\nHEAD / HTTP/1.1\nHost: a\n\n", "HEAD / a []\n");
    EXPECT("GET http://h:8/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x?y h:8 []\n");
    EXPECT("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * a []\n");
    EXPECT("GET / HTTP/1.0\r\n\r\n", "GET /  []\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
           "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET / a []\nGET /2 a []\n");
}

static void test_chunks(void **state)
{
    (void)state;
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\n1;ext=1\r\nd\r\nA\r\n0123456789\r\n0\r\nX-Trailer: t\r\n\r\n"
           "GET /next HTTP/1.1\r\nHost: a\r\n\r\n",
           "POST / a [abcd0123456789]\nGET /next a []\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST / a []\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n",
           "refused 400\n");
}

/* Each of these has been used to make two servers see different requests, or is malformed. */
static void test_refusals(void **state)
{
    (void)state;
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
           "0\r\n\r\n",
           "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
           "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc", "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
           "refused 400\n");
    EXPECT("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           "refused 501\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", "refused 501\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/1.1\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\nX-Fold: a\r\n b\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\nX-Fold:\r\n b\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\nX-A: \001\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "refused 505\n");
    EXPECT("GET / HTTP/1.x\r\nHost: a\r\n\r\n", "refused 400\n");
    EXPECT("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "refused 400\n");
    EXPECT("GET relative HTTP/1.1\r\nHost: a\r\n\r\n", "refused 400\n");
    EXPECT("GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", "refused 417\n");
    EXPECT("\x16\x03\x01\x02\x01", "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 17000000\r\n\r\n", "refused 413\n");
}

static void test_answer_bytes(void **state)
{
    (void)state;
    static const char input[] = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
                                "HEAD /b HTTP/1.1\r\nHost: h\r\n\r\n"
                                "GET /c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
                                "GET /never HTTP/1.1\r\nHost: h\r\n\r\n";
    struct fixture f;
    open_h1(&f);
    pool_set_time(&f.net.pool, 784111777000u);
    feed(&f, bytes_make(input, sizeof(input) - 1), 1000, NULL);
    assert_string_equal(text_of(&f.net.out),
                        "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "content-length: 2\r\n\r\nhi"
                        "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "content-length: 0\r\n\r\n"
                        "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "content-length: 0\r\nconnection: close\r\n\r\n");
    assert_true(f.h1.finished);
    assert_int_equal(f.net.requests, 3);
    close_h1(&f);
}

static void test_keep_alive_of_1_0(void **state)
{
    (void)state;
    static const char input[] =
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n";
    struct fixture f;
    open_h1(&f);
    feed(&f, bytes_make(input, sizeof(input) - 1), 1000, NULL);
    assert_int_equal(f.net.requests, 2);
    assert_non_null(strstr(text_of(&f.net.out), "connection: keep-alive\r\n\r\nHTTP/1.1"));
    assert_true(f.h1.finished);
    close_h1(&f);
}

static void respond_text(struct exchange *exchange, const char *text)
{
    exchange_respond(exchange, 200, NULL, 0, bytes_text(text));
}

static void test_answers_keep_the_order_of_requests(void **state)
{
    (void)state;
    static const char input[] =
        "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
        "GET /3 HTTP/1.1\r\nHost: h\r\n\r\nbroken\r\n\r\n";
    struct fixture f;
    open_h1(&f);
    f.net.hold = true;
    feed(&f, bytes_make(input, sizeof(input) - 1), 1000, NULL);
    assert_int_equal(f.net.held_count, 3);
    respond_text(f.net.held[2], "three");
    respond_text(f.net.held[1], "two");
    assert_int_equal(f.net.out.len, 0);
    assert_true(f.h1.held_bytes > 0);
    respond_text(f.net.held[0], "one");
    assert_int_equal(f.h1.held_bytes, 0);
    const char *out = text_of(&f.net.out);
    const char *one = strstr(out, "one"), *two = strstr(out, "two"), *three = strstr(out, "three");
    const char *refusal = strstr(out, "no: 400");
    assert_true(one && one < two && two < three && three < refusal);
    assert_true(f.h1.finished);
    assert_true(f.h1.linger);
    close_h1(&f);
}

static void test_a_full_line_stops_reading(void **state)
{
    (void)state;
    struct buf input = {0};
    for (int i = 0; i < 100; i++)
        buf_printf(&input, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i);
    struct fixture f;
    open_h1(&f);
    f.net.hold = true;
    f.net.limits.pipeline_max = 3;
    feed(&f, buf_view(&input), input.len, NULL);
    assert_int_equal(f.net.held_count, 3);
    assert_false(h1_wants_input(&f.h1));
    for (uint32_t i = 0; i < f.net.held_count; i++) {
        respond_text(f.net.held[i], "x");
        h1_resume(&f.h1);
        assert_true(f.h1.line_len <= 3);
    }
    assert_int_equal(f.net.held_count, 100);
    assert_true(h1_wants_input(&f.h1));
    close_h1(&f);
    buf_deinit(&input);
}

static void test_continue(void **state)
{
    (void)state;
    static const char first[] = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char head[] =
        "POST /2 HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    struct fixture f;
    open_h1(&f);
    f.net.hold = true;
    feed(&f, bytes_make(first, sizeof(first) - 1), 1000, NULL);
    feed(&f, bytes_make(head, sizeof(head) - 1), 1000, NULL);
    assert_int_equal(f.net.out.len, 0); /* not before the first answer */
    respond_text(f.net.held[0], "one");
    const char *out = text_of(&f.net.out);
    assert_non_null(strstr(out, "oneHTTP/1.1 100 Continue\r\n\r\n"));
    feed(&f, bytes_literal("abc"), 1, NULL);
    assert_int_equal(f.net.held_count, 2);
    assert_string_equal(text_of(&f.net.log), "GET /1 h []\nPOST /2 h [abc]\n");
    respond_text(f.net.held[1], "two");
    close_h1(&f);
}

static void test_head_limit(void **state)
{
    (void)state;
    for (size_t len = 100; len < 200000; len *= 3) {
        for (int whole = 0; whole < 2; whole++) {
            struct fixture f;
            struct buf input = {0};
            open_h1(&f);
            buf_append_text(&input, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: ");
            for (size_t i = 0; i < len; i++)
                buf_append_u8(&input, 'v');
            if (whole)
                buf_append_text(&input, "\r\n\r\n");
            feed(&f, buf_view(&input), 1500, NULL);
            bool refused = strstr(text_of(&f.net.log), "refused 431") != NULL;
            assert_int_equal(refused, len > f.net.limits.head_bytes_max);
            assert_int_equal(f.net.requests, whole && !refused);
            close_h1(&f);
            buf_deinit(&input);
        }
    }
    struct buf many = {0};
    buf_append_text(&many, "GET / HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < HTTP_HEADERS_MAX; i++)
        buf_append_text(&many, "a:b\r\n");
    buf_append_text(&many, "\r\n");
    expect_log((const char *)many.at, many.len, "refused 431\n");
    buf_deinit(&many);
}

/* Bodies of every size around a block's, sent fixed and chunked, with a request behind them. */
static void test_bodies_grow(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    for (int round = 0; round < 60; round++) {
        size_t len = rng_below(&rng, round % 3 ? 40000 : 900000);
        bool chunked = rng_one_in(&rng, 2);
        struct buf input = {0}, body = {0};
        for (size_t i = 0; i < len; i++)
            buf_append_u8(&body, (uint8_t)('a' + i % 23));
        buf_append_text(&input, "POST / HTTP/1.1\r\nHost: h\r\nX-Tag: t\r\n");
        if (!chunked)
            buf_printf(&input, "Content-Length: %zu\r\n\r\n", len);
        else
            buf_append_text(&input, "Transfer-Encoding: chunked\r\n\r\n");
        if (!chunked)
            buf_append_bytes(&input, buf_view(&body));
        for (size_t at = 0; chunked && at < len;) {
            size_t piece = 1 + rng_below(&rng, 9000);
            piece = piece < len - at ? piece : len - at;
            buf_printf(&input, "%zx\r\n", piece);
            buf_append(&input, body.at + at, piece);
            buf_append_text(&input, "\r\n");
            at += piece;
        }
        if (chunked)
            buf_append_text(&input, "0\r\n\r\n");
        buf_append_text(&input, "GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
        struct fixture f;
        open_h1(&f);
        f.net.hold = true;
        feed(&f, buf_view(&input), 1 + rng_below(&rng, 20000), NULL);
        assert_int_equal(f.net.held_count, 2);
        const struct http_request *request = exchange_request(f.net.held[0]);
        assert_true(bytes_equal(request->body, buf_view(&body)));
        assert_true(bytes_is(request->path, "/"));
        assert_true(bytes_is(request->host, "h"));
        assert_true(bytes_is(http_request_header(request, "x-tag"), "t"));
        net_host_answer(f.net.held[1]);
        net_host_answer(f.net.held[0]);
        close_h1(&f);
        buf_deinit(&input);
        buf_deinit(&body);
    }
}

static void test_body_limits(void **state)
{
    (void)state;
    static const char chunked[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "8\r\n12345678\r\n8\r\n12345678\r\n";
    struct fixture f;
    open_h1(&f);
    f.net.limits.body_bytes_max = 15;
    feed(&f, bytes_make(chunked, sizeof(chunked) - 1), 3, NULL);
    assert_string_equal(text_of(&f.net.log), "refused 413\n");
    close_h1(&f);

    open_h1(&f);
    f.net.pool.charge_max = 100000; /* what all bodies together may take */
    struct buf input = {0};
    buf_append_text(&input, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n");
    size_t head_len = input.len;
    memset(buf_reserve(&input, 400000), 'x', 400000);
    input.len = head_len + 400000;
    feed(&f, buf_view(&input), 1000, NULL);
    assert_string_equal(text_of(&f.net.log), "refused 503\n");
    close_h1(&f);
    buf_deinit(&input);
}

static void compress_into(struct buf *to, struct bytes plain, int window_bits)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)plain.at, .avail_in = (uInt)plain.len};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    size_t room = deflateBound(&stream, plain.len);
    stream.next_out = buf_reserve(to, room);
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    to->len += room - stream.avail_out;
    deflateEnd(&stream);
}

static void expect_inflated(const char *encoding, int window_bits, size_t len, size_t cut,
                            const char *refusal)
{
    struct buf plain = {0}, packed = {0}, input = {0};
    memset(buf_reserve(&plain, len), 'z', len);
    plain.len = len;
    compress_into(&packed, buf_view(&plain), window_bits);
    packed.len -= cut;
    buf_printf(&input,
               "POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
               encoding, packed.len);
    buf_append_bytes(&input, buf_view(&packed));
    struct fixture f;
    open_h1(&f);
    f.net.hold = true;
    f.net.limits.body_bytes_max = 1000000;
    feed(&f, buf_view(&input), 100, NULL);
    if (refusal) {
        assert_string_equal(text_of(&f.net.log), refusal);
    } else {
        assert_int_equal(f.net.held_count, 1);
        assert_true(bytes_equal(exchange_request(f.net.held[0])->body, buf_view(&plain)));
        net_host_answer(f.net.held[0]);
    }
    close_h1(&f);
    buf_deinit(&plain);
    buf_deinit(&packed);
    buf_deinit(&input);
}

static void test_content_encoding(void **state)
{
    (void)state;
    expect_inflated("gzip", 15 + 16, 1000000, 0, NULL);
    expect_inflated("GZIP", 15 + 16, 5, 0, NULL);
    expect_inflated("deflate", 15, 70000, 0, NULL);
    expect_inflated("deflate", -15, 70000, 0, NULL);
    expect_inflated("gzip", 15 + 16, 1000001, 0, "refused 413\n");
    expect_inflated("gzip", 15 + 16, 100000000, 0, "refused 413\n");
    expect_inflated("gzip", 15 + 16, 1000, 3, "refused 400\n");
    EXPECT("POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: amz-1.0\r\nContent-Length: 2\r\n\r\nhi",
           "POST / h [hi]\n");
}

static void test_the_end(void **state)
{
    (void)state;
    struct fixture f;
    static const char one_and_a_half[] = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTT";
    open_h1(&f);
    f.net.hold = true;
    feed(&f, bytes_make(one_and_a_half, sizeof(one_and_a_half) - 1), 1000, NULL);
    h1_ended(&f.h1);
    assert_false(f.h1.finished);
    respond_text(f.net.held[0], "still answered");
    assert_true(f.h1.finished);
    assert_non_null(strstr(text_of(&f.net.out), "still answered"));
    close_h1(&f);

    open_h1(&f); /* the connection goes, the user's exchange stays */
    f.net.hold = true;
    feed(&f, bytes_make(one_and_a_half, sizeof(one_and_a_half) - 1), 1000, NULL);
    h1_deinit(&f.h1);
    assert_true(bytes_is(exchange_request(f.net.held[0])->path, "/1"));
    respond_text(f.net.held[0], "to nobody");
    net_host_deinit(&f.net);

    open_h1(&f);
    f.net.hold = true;
    feed(&f, bytes_make(one_and_a_half, sizeof(one_and_a_half) - 1), 1000, NULL);
    exchange_abort(f.net.held[0]);
    assert_true(f.h1.broken);
    close_h1(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_answer_bytes),
        cmocka_unit_test(test_keep_alive_of_1_0),
        cmocka_unit_test(test_answers_keep_the_order_of_requests),
        cmocka_unit_test(test_a_full_line_stops_reading),
        cmocka_unit_test(test_continue),
        cmocka_unit_test(test_head_limit),
        cmocka_unit_test(test_bodies_grow),
        cmocka_unit_test(test_body_limits),
        cmocka_unit_test(test_content_encoding),
        cmocka_unit_test(test_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
