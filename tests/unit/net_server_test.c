/* SPDX-License-Identifier: Apache-2.0 */
/* The server on real sockets, with its clients on the same loop: what needs a socket, time or both.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/server.h"
#include "tests/lib/net_raw.h"

struct fixture {
    struct loop loop;
    struct server *server;
    struct exchange *held[1000];
    uint32_t held_count, requests;
    bool hold, closed, drained;
    struct bytes answer;
};

static void on_request(void *context, struct exchange *exchange)
{
    struct fixture *f = context;
    f->requests++;
    f->held[f->held_count++] = exchange;
}

static void answer_held(struct fixture *f)
{
    uint32_t count = f->held_count;
    f->held_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct http_request *request = exchange_request(f->held[i]);
        exchange_respond(f->held[i], 200, NULL, 0, f->answer.len ? f->answer : request->path);
    }
}

/* Answers come from the end of the round, as the region's do. */
static void on_round(void *context)
{
    struct fixture *f = context;
    if (!f->hold)
        answer_held(f);
}

static void on_refuse(void *context, int status, struct buf *body, const char **ret_type)
{
    (void)context;
    buf_printf(body, "refused with %d", status);
    *ret_type = "text/plain";
}

static void start(struct fixture *f, const struct server_limits *limits)
{
    char error[200];
    struct server_limits all = server_limits_default();
    struct server_handler handler = {.request = on_request, .refuse = on_refuse, .context = f};
    *f = (struct fixture){0};
    loop_init(&f->loop);
    loop_on_round(&f->loop, on_round, f);
    f->server = server_listen(&f->loop, "127.0.0.1:0", limits ? limits : &all, NULL, &handler,
                              error, sizeof(error));
    assert_non_null(f->server);
}

static void stop(struct fixture *f)
{
    if (!f->closed)
        server_close(f->server);
    answer_held(f);
    loop_deinit(&f->loop);
}

static void test_pipelined_requests(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    raw_send(raw, "GET /one HTTP/1.1\r\nHost: h\r\n\r\nGET /two HTTP/1.1\r\nHost: h\r\n\r\n"
                  "GET /three HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, raw_has(raw, "/three"));
    assert_true(strstr(raw_text(raw), "/one") < strstr(raw_text(raw), "/two"));
    raw_send(raw, "GET /again HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    raw_until(&f.loop, raw->ended);
    assert_true(raw_has(raw, "/again"));
    assert_int_equal(server_stats(f.server).requests, 4);
    raw_close(raw);
    stop(&f);
}

static void test_a_byte_at_a_time(void **state)
{
    (void)state;
    static const char text[] = "POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    struct fixture f;
    start(&f, NULL);
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        raw_send_bytes(raw, bytes_make(text + i, 1));
        raw_until(&f.loop, tcp_queued(&raw->tcp) == 0);
    }
    raw_until(&f.loop, raw_has(raw, "/slow"));
    raw_close(raw);
    stop(&f);
}

static void test_time_limits(void **state)
{
    (void)state;
    static const char *const slow[] = {"G", "GET / HTTP/1.1\r\nHost:",
                                       "POST / HTTP/1.1\r\nHost: h\r\n"
                                       "Content-Length: 5\r\n\r\nab"};
    struct server_limits limits = server_limits_default();
    limits.request_ms_max = 40;
    limits.idle_ms_max = 60;
    struct fixture f;
    start(&f, &limits);
    for (size_t i = 0; i < array_len(slow); i++) {
        struct raw *raw = raw_open(&f.loop, server_port(f.server));
        raw_send(raw, slow[i]);
        raw_until(&f.loop, raw->ended);
        assert_true(raw_has(raw, "HTTP/1.1 408 Request Timeout"));
        assert_true(raw_has(raw, "refused with 408"));
        raw_close(raw);
    }
    struct raw *silent = raw_open(&f.loop, server_port(f.server));
    struct raw *idle = raw_open(&f.loop, server_port(f.server));
    struct raw *half = raw_open(&f.loop, server_port(f.server));
    raw_send(idle, "GET /idle HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_send(half, "PRI * HTTP");
    raw_until(&f.loop, silent->ended && idle->ended && half->ended);
    assert_int_equal(silent->in.len, 0);
    assert_true(raw_has(idle, "/idle"));
    assert_int_equal(server_stats(f.server).timeouts, 6);
    raw_close(silent);
    raw_close(idle);
    raw_close(half);
    stop(&f);
}

/* As long as the handler takes its time, no limit strikes. */
static void test_a_slow_handler_is_not_the_clients_fault(void **state)
{
    (void)state;
    struct server_limits limits = server_limits_default();
    limits.request_ms_max = limits.idle_ms_max = 20;
    struct fixture f;
    start(&f, &limits);
    f.hold = true;
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    struct raw *other = raw_open(&f.loop, server_port(f.server));
    raw_send(raw, "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, f.held_count == 1 && other->ended); /* the idle one has been closed */
    assert_false(raw->ended);
    assert_false(exchange_gone(f.held[0]));
    answer_held(&f);
    raw_until(&f.loop, raw_has(raw, "/wait"));
    raw_close(raw);
    raw_close(other);
    stop(&f);
}

static void test_connections_max(void **state)
{
    (void)state;
    struct server_limits limits = server_limits_default();
    limits.connections_max = 2;
    struct fixture f;
    start(&f, &limits);
    struct raw *raws[3];
    for (int i = 0; i < 3; i++)
        raws[i] = raw_open(&f.loop, server_port(f.server));
    raw_until(&f.loop, raws[2]->ended);
    raw_send(raws[0], "GET /ok HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, raw_has(raws[0], "/ok"));
    raw_close(raws[1]);
    raw_until(&f.loop, server_stats(f.server).connections == 1);
    struct raw *late = raw_open(&f.loop, server_port(f.server));
    raw_send(late, "GET /late HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, raw_has(late, "/late"));
    raw_close(raws[0]);
    raw_close(raws[2]);
    raw_close(late);
    stop(&f);
}

/* A client that asks and asks and does not read: we stop reading, and go on when it reads. */
static void test_a_client_that_does_not_read(void **state)
{
    (void)state;
    enum { REQUESTS = 200, BODY = 1 << 20 };
    struct server_limits limits = server_limits_default();
    limits.output_bytes_max = 100000;
    limits.pipeline_max = 4;
    struct fixture f;
    start(&f, &limits);
    struct buf body = {0};
    memset(buf_reserve(&body, BODY), 'b', BODY);
    body.len = BODY;
    f.answer = buf_view(&body);
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    tcp_read(&raw->tcp, false);
    for (int i = 0; i < REQUESTS; i++)
        raw_send(raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    uint32_t before = 0;
    for (int quiet = 0; quiet < 50; quiet = f.requests == before ? quiet + 1 : 0) {
        before = f.requests;
        uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    }
    assert_true(f.requests < REQUESTS / 2);
    tcp_read(&raw->tcp, true);
    raw_until(&f.loop, raw->in.len >= (size_t)REQUESTS * BODY);
    assert_int_equal(f.requests, REQUESTS);
    raw_close(raw);
    stop(&f);
    buf_deinit(&body);
}

/* Many clients that ask for much and read nothing: together they hold no more than the limit, those
 * who ask for little are served, and all is well again when they have gone. */
static void test_answers_that_nobody_reads_are_bounded(void **state)
{
    (void)state;
    enum { CLIENTS = 8, EACH = 20, BODY = 1 << 20 };
    struct server_limits limits = server_limits_default();
    limits.answer_bytes_total_max = 10 * BODY;
    struct fixture f;
    start(&f, &limits);
    f.hold = true; /* so that all are asked before the first is answered */
    struct raw *raws[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        raws[i] = raw_open(&f.loop, server_port(f.server));
        tcp_read(&raws[i]->tcp, false);
        for (int request = 0; request < EACH; request++)
            raw_send(raws[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    raw_until(&f.loop, f.requests == CLIENTS * EACH);
    struct buf body = {0};
    memset(buf_reserve(&body, BODY), 'b', BODY);
    body.len = BODY;
    f.answer = buf_view(&body);
    answer_held(&f);
    assert_true(server_stats(f.server).refused >= CLIENTS * EACH - 10);
    f.hold = false;
    f.answer = bytes_literal("small");
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    raw_send(raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, raw_has(raw, "small"));
    tcp_read(&raws[1]->tcp, true);
    raw_until(&f.loop, raw_has(raws[1], "refused with 503"));
    for (int i = 0; i < CLIENTS; i++)
        raw_close(raws[i]);
    raw_until(&f.loop, server_stats(f.server).connections == 1);
    f.answer = buf_view(&body);
    raw_send(raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, raw->in.len >= BODY);
    raw_close(raw);
    stop(&f);
    buf_deinit(&body);
}

static void test_a_refusal_arrives_although_the_client_still_sends(void **state)
{
    (void)state;
    struct server_limits limits = server_limits_default();
    limits.body_bytes_max = 1000;
    struct fixture f;
    start(&f, &limits);
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    struct buf body = {0};
    memset(buf_reserve(&body, 3000000), 'b', 3000000);
    body.len = 3000000;
    raw_send(raw, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n");
    raw_send_bytes(raw, buf_view(&body));
    raw_until(&f.loop, raw->ended);
    assert_true(raw_has(raw, "HTTP/1.1 413 Payload Too Large"));
    assert_true(raw_has(raw, "connection: close"));
    assert_true(raw_has(raw, "refused with 413"));
    raw_close(raw);
    stop(&f);
    buf_deinit(&body);
}

static void test_sniffing(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    struct raw *h2 = raw_open(&f.loop, server_port(f.server));
    raw_send(h2, "PRI * HTTP/2.0\r\n");
    raw_until(&f.loop, tcp_queued(&h2->tcp) == 0);
    raw_send_bytes(h2, bytes_make("\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 17));
    raw_until(&f.loop, h2->in.len >= 9);
    assert_int_equal(h2->in.at[3], 4); /* SETTINGS */
    struct raw *h1 = raw_open(&f.loop, server_port(f.server));
    raw_send(h1, "PR");
    raw_until(&f.loop, tcp_queued(&h1->tcp) == 0);
    raw_send(h1, "OPFIND /dav HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, raw_has(h1, "/dav"));
    raw_close(h2);
    raw_close(h1);
    stop(&f);
}

static void test_half_closed(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    raw_send(raw, "GET /fin HTTP/1.1\r\nHost: h\r\n\r\n");
    tcp_finish(&raw->tcp);
    raw_until(&f.loop, raw->ended);
    assert_true(raw_has(raw, "/fin"));
    raw_close(raw);
    stop(&f);
}

static void on_drained(void *context)
{
    ((struct fixture *)context)->drained = true;
}

static void test_drain(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    f.hold = true;
    struct raw *idle = raw_open(&f.loop, server_port(f.server));
    struct raw *busy = raw_open(&f.loop, server_port(f.server));
    raw_send(busy, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_send(idle, "GET /0 HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, f.held_count == 3);
    for (uint32_t i = 0; i < 3; i++)
        if (bytes_is(exchange_request(f.held[i])->path, "/0")) {
            exchange_respond(f.held[i], 200, NULL, 0, BYTES_NONE);
            f.held[i] = f.held[2];
        }
    f.held_count = 2;
    raw_until(&f.loop, idle->in.len > 0);
    server_drain(f.server, 60000, on_drained, &f);
    assert_false(f.drained);
    raw_until(&f.loop, idle->ended);
    assert_false(f.drained);
    answer_held(&f);
    raw_until(&f.loop, busy->ended);
    assert_true(raw_has(busy, "/1") && raw_has(busy, "/2"));
    assert_true(raw_has(busy, "connection: close"));
    raw_close(busy);
    uint64_t before_ns = f.loop.mono_ns;
    raw_until(&f.loop, f.drained); /* though the idle one keeps its end open */
    assert_true(f.loop.mono_ns - before_ns < 500000000);
    raw_close(idle);
    stop(&f);

    start(&f, NULL); /* one that never answers is cut off */
    f.hold = true;
    busy = raw_open(&f.loop, server_port(f.server));
    raw_send(busy, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, f.held_count == 1);
    server_drain(f.server, 20, on_drained, &f);
    raw_until(&f.loop, f.drained && busy->ended);
    assert_true(exchange_gone(f.held[0]));
    raw_close(busy);
    stop(&f);
}

static void test_close_with_exchanges_out(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    f.hold = true;
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    raw_send(raw, "GET /kept HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, f.held_count == 2);
    assert_int_equal(strncmp(exchange_peer(f.held[0]), "127.0.0.1:", 10), 0);
    exchange_set_user(f.held[0], &f);
    server_close(f.server);
    f.closed = true;
    assert_true(exchange_gone(f.held[0]));
    raw_until(&f.loop, raw->ended);
    assert_true(bytes_is(exchange_request(f.held[0])->path, "/kept"));
    assert_ptr_equal(exchange_user(f.held[0]), &f);
    exchange_abort(f.held[1]);
    f.held_count = 1;
    raw_close(raw);
    stop(&f);
}

static void test_abort_closes(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    f.hold = true;
    struct raw *raw = raw_open(&f.loop, server_port(f.server));
    raw_send(raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_until(&f.loop, f.held_count == 1);
    exchange_abort(f.held[0]);
    f.held_count = 0;
    raw_until(&f.loop, raw->ended);
    assert_int_equal(raw->in.len, 0);
    raw_close(raw);
    stop(&f);
}

static void expect_no_listen(struct fixture *f, const char *address, const struct server_tls *tls,
                             const char *reason)
{
    char error[300] = "";
    struct server_limits limits = server_limits_default();
    struct server_handler handler = {.request = on_request};
    assert_null(server_listen(&f->loop, address, &limits, tls, &handler, error, sizeof(error)));
    if (!strstr(error, reason))
        fail_msg("%s does not say %s", error, reason);
}

static void test_listen_says_why_not(void **state)
{
    (void)state;
    struct fixture f;
    char taken[40];
    start(&f, NULL);
    snprintf(taken, sizeof(taken), "127.0.0.1:%u", server_port(f.server));
    expect_no_listen(&f, taken, NULL, "address already in use");
    expect_no_listen(&f, "nonsense", NULL, "is not an address");
    struct server_tls tls = {"/nonexistent.pem", "/nonexistent.key"};
    expect_no_listen(&f, "127.0.0.1:0", &tls, "certificate /nonexistent.pem");
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipelined_requests),
        cmocka_unit_test(test_a_byte_at_a_time),
        cmocka_unit_test(test_time_limits),
        cmocka_unit_test(test_a_slow_handler_is_not_the_clients_fault),
        cmocka_unit_test(test_connections_max),
        cmocka_unit_test(test_a_client_that_does_not_read),
        cmocka_unit_test(test_answers_that_nobody_reads_are_bounded),
        cmocka_unit_test(test_a_refusal_arrives_although_the_client_still_sends),
        cmocka_unit_test(test_sniffing),
        cmocka_unit_test(test_half_closed),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_close_with_exchanges_out),
        cmocka_unit_test(test_abort_closes),
        cmocka_unit_test(test_listen_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
