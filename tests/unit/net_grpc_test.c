/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls over two sessions in memory: messages cut anywhere, both windows, every way for a call
 * to end. Real sockets, and a client that is not ours, are in net_link_test.c. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "tests/lib/net_wire.h"

/* One side of a call, and what it has seen. */
struct side {
    struct grpc_call *call;
    struct buf log; /* messages joined by '|' */
    uint32_t messages, closes;
    bool half_closed, consume, echo;
    enum grpc_status status;
    char reason[128];
};

static void on_message(void *context, struct grpc_call *call, struct bytes message)
{
    struct side *side = context;
    side->messages++;
    buf_append_bytes(&side->log, message);
    buf_append_u8(&side->log, '|');
    if (side->consume)
        grpc_call_consume(call, message.len);
    if (side->echo)
        grpc_call_send(call, message);
}
static void on_half_closed(void *context, struct grpc_call *call)
{
    struct side *side = context;
    side->half_closed = true;
    if (side->echo)
        grpc_call_finish(call, GRPC_OK, "fine");
}
static void on_closed(void *context, struct grpc_call *call, enum grpc_status status,
                      const char *reason)
{
    struct side *side = context;
    assert_ptr_equal(side->call, call);
    side->call = NULL;
    side->closes++;
    side->status = status;
    snprintf(side->reason, sizeof(side->reason), "%s", reason);
}

struct fixture {
    struct wire wire;
    struct side server, client;
    char header[32];
};

static bool on_call(struct http_host *host, struct grpc_call *call, struct bytes path)
{
    struct fixture *f = container_of(host, struct fixture, wire.net.host);
    if (!bytes_is(path, "/svc/Echo"))
        return false;
    struct grpc_events events = {on_message, on_half_closed, on_closed, &f->server};
    struct bytes header = grpc_call_header(call, "tidemark-region");
    snprintf(f->header, sizeof(f->header), "%.*s", (int)header.len, (const char *)header.at);
    f->server.call = call;
    grpc_call_on(call, &events);
    return true;
}

static void open_call(struct fixture *f, const char *path)
{
    static const char *const headers[] = {"tidemark-region", "eu-west-1", NULL};
    *f = (struct fixture){0};
    wire_init(&f->wire);
    f->wire.net.host.grpc = on_call;
    f->server.consume = f->client.consume = true;
    struct grpc_events events = {on_message, on_half_closed, on_closed, &f->client};
    f->client.call = grpc_open(&f->wire.client, "peer", path, headers,
                               f->wire.net.limits.message_bytes_max, &events);
    wire_run(&f->wire);
}

static void close_call(struct fixture *f)
{
    wire_deinit(&f->wire);
    assert_true(f->server.closes <= 1);
    assert_int_equal(f->client.closes, 1);
    assert_null(f->server.call);
    buf_deinit(&f->server.log);
    buf_deinit(&f->client.log);
}

static void test_echo(void **state)
{
    (void)state;
    size_t steps[] = {1 << 20, 1, 3, 100};
    for (size_t i = 0; i < array_len(steps); i++) {
        struct fixture f;
        open_call(&f, "/svc/Echo");
        f.wire.step = steps[i];
        f.server.echo = true;
        assert_string_equal(f.header, "eu-west-1");
        grpc_call_send(f.client.call, bytes_literal("one"));
        grpc_call_send(f.client.call, BYTES_NONE);
        wire_run(&f.wire);
        assert_true(bytes_is(buf_view(&f.client.log), "one||"));
        grpc_call_send(f.client.call, bytes_literal("three"));
        grpc_call_finish(f.client.call, GRPC_OK, NULL);
        wire_run(&f.wire);
        assert_true(bytes_is(buf_view(&f.client.log), "one||three|"));
        assert_int_equal(f.client.status, GRPC_OK);
        assert_string_equal(f.client.reason, "fine");
        assert_int_equal(f.server.closes, 1);
        assert_int_equal(f.server.status, GRPC_OK);
        close_call(&f);
    }
}

static void test_random_sizes(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 11);
    struct fixture f;
    struct buf want = {0};
    open_call(&f, "/svc/Echo");
    f.server.echo = true;
    for (int i = 0; i < 200; i++) {
        size_t len = rng_below(&rng, i % 10 ? 300 : 300000);
        uint8_t *message = xmalloc(len);
        for (size_t at = 0; at < len; at++)
            message[at] = (uint8_t)rng_next(&rng);
        buf_append(&want, message, len);
        buf_append_u8(&want, '|');
        grpc_call_send(f.client.call, bytes_make(message, len));
        free(message);
        if (rng_one_in(&rng, 3)) {
            f.wire.step = 1 + rng_below(&rng, 5000);
            wire_run(&f.wire);
        }
    }
    wire_run(&f.wire);
    assert_true(bytes_equal(buf_view(&f.client.log), buf_view(&want)));
    assert_int_equal(grpc_call_queued(f.client.call), 0);
    buf_deinit(&want);
    close_call(&f);
    assert_int_equal(f.client.status, GRPC_UNAVAILABLE); /* the connection went first */
}

static void test_the_window_holds_the_sender(void **state)
{
    (void)state;
    struct fixture f;
    open_call(&f, "/svc/Echo");
    f.server.consume = false;
    uint64_t window = grpc_window_bytes(f.wire.net.limits.message_bytes_max);
    uint8_t *message = xcalloc(1, 100000);
    for (uint64_t sent = 0; sent < 3 * window; sent += 100000)
        grpc_call_send(f.client.call, bytes_make(message, 100000));
    free(message);
    wire_run(&f.wire);
    uint64_t received = (uint64_t)f.server.messages * 100000;
    assert_true(received <= window);
    assert_true(received > window - 200000);
    assert_true(grpc_call_queued(f.client.call) >= window);
    for (uint32_t given = 0; given < f.server.messages; given++) {
        grpc_call_consume(f.server.call, 100000);
        wire_run(&f.wire);
    }
    assert_int_equal(grpc_call_queued(f.client.call), 0);
    /* Closed without giving back the rest: the connection's window must not suffer. */
    f.server.consume = true;
    grpc_call_cancel(f.client.call, "enough");
    wire_run(&f.wire);
    assert_int_equal(f.client.status, GRPC_CANCELLED);
    assert_int_equal(f.server.status, GRPC_CANCELLED);
    close_call(&f);
}

static void test_the_connections_window_is_given_back(void **state)
{
    (void)state;
    struct fixture f;
    open_call(&f, "/svc/Echo");
    f.server.consume = false;
    uint8_t *message = xcalloc(1, 1000000);
    struct grpc_events events = {on_message, on_half_closed, on_closed, &f.client};
    for (int round = 0; round < 40; round++) { /* twice what the connection's window holds */
        grpc_call_send(f.client.call, bytes_make(message, 1000000));
        wire_run(&f.wire);
        assert_int_equal(f.server.messages, (uint32_t)round + 1);
        grpc_call_cancel(f.client.call, "next");
        wire_run(&f.wire);
        f.client.call = grpc_open(&f.wire.client, "peer", "/svc/Echo", NULL, 2000000, &events);
        wire_run(&f.wire);
    }
    free(message);
    f.client.closes = f.server.closes = 0;
    close_call(&f);
}

static void expect_end(struct fixture *f, enum grpc_status status, const char *reason_part)
{
    wire_run(&f->wire);
    assert_int_equal(f->client.closes, 1);
    assert_int_equal(f->client.status, status);
    assert_non_null(strstr(f->client.reason, reason_part));
    close_call(f);
}

static void test_refused_calls(void **state)
{
    (void)state;
    struct fixture f;
    open_call(&f, "/svc/None");
    expect_end(&f, GRPC_UNIMPLEMENTED, "no such method: /svc/None");

    open_call(&f, "/svc/Echo");
    f.wire.net.limits.message_bytes_max = 100; /* too late for this call ... */
    grpc_call_finish(f.server.call, GRPC_FAILED_PRECONDITION, "100 % no\n");
    expect_end(&f, GRPC_FAILED_PRECONDITION, "100 % no\n");

    open_call(&f, "/svc/Echo");
    f.server.echo = true;
    size_t larger = server_limits_default().message_bytes_max + 1;
    uint8_t *message = xcalloc(1, larger);
    grpc_call_send(f.client.call, bytes_make(message, larger));
    free(message);
    expect_end(&f, GRPC_RESOURCE_EXHAUSTED, "larger than");
    assert_int_equal(f.server.messages, 0);

    open_call(&f, "/svc/Echo");
    h2_stream_write(container_of(f.wire.client.streams.next, struct h2_stream, link),
                    bytes_make("\1\0\0\0\1x", 6));
    expect_end(&f, GRPC_UNIMPLEMENTED, "compressed");

    open_call(&f, "/svc/Echo");
    h2_stream_write(container_of(f.wire.client.streams.next, struct h2_stream, link),
                    bytes_make("\2\0\0\0\1x", 6));
    expect_end(&f, GRPC_INTERNAL, "neither 0 nor 1");

    open_call(&f, "/svc/Echo");
    h2_stream_write(container_of(f.wire.client.streams.next, struct h2_stream, link),
                    bytes_make("\0\0\0\0\5x", 6));
    grpc_call_finish(f.client.call, GRPC_OK, NULL);
    expect_end(&f, GRPC_INTERNAL, "within a message");
}

static void test_an_answer_that_is_not_grpc(void **state)
{
    (void)state;
    struct fixture f;
    open_call(&f, "/svc/Echo");
    grpc_call_cancel(f.client.call, "");
    wire_run(&f.wire);
    f.wire.net.host.grpc = NULL; /* a plain server: it takes the call for a request */
    f.client.closes = f.server.closes = 0;
    struct grpc_events events = {on_message, on_half_closed, on_closed, &f.client};
    f.client.call = grpc_open(&f.wire.client, "peer", "/svc/Echo", NULL, 1000, &events);
    grpc_call_finish(f.client.call, GRPC_OK, NULL);
    expect_end(&f, GRPC_UNKNOWN, "not gRPC");
}

/* Also when the client has not half-closed and does not answer. */
static void test_the_servers_end_is_the_end(void **state)
{
    (void)state;
    struct fixture f;
    open_call(&f, "/svc/Echo");
    grpc_call_finish(f.server.call, GRPC_OK, NULL);
    h2_fill(&f.wire.server, &f.wire.to_client, 1 << 20);
    assert_int_equal(f.server.closes, 1);
    assert_int_equal(f.server.status, GRPC_OK);
    expect_end(&f, GRPC_OK, "");
}

static void test_calls_after_the_end_do_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_call(&f, "/svc/Echo");
    grpc_call_finish(f.server.call, GRPC_OK, NULL);
    grpc_call_finish(f.server.call, GRPC_INTERNAL, "twice");
    grpc_call_send(f.server.call, bytes_literal("late"));
    grpc_call_send(f.client.call, bytes_literal("late"));
    expect_end(&f, GRPC_OK, "");
    assert_int_equal(f.server.messages, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_random_sizes),
        cmocka_unit_test(test_the_window_holds_the_sender),
        cmocka_unit_test(test_the_connections_window_is_given_back),
        cmocka_unit_test(test_refused_calls),
        cmocka_unit_test(test_an_answer_that_is_not_grpc),
        cmocka_unit_test(test_the_servers_end_is_the_end),
        cmocka_unit_test(test_calls_after_the_end_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
