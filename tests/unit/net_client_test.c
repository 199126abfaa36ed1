/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server that follows a script: each request meets the next answer in line,
 * or, where the script says so, silence or a closed connection. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/client.h"
#include "tests/lib/net_raw.h"

#define SILENCE "silence"
#define CLOSE "close"

struct script_conn {
    uv_tcp_t handle;
    struct fixture *f;
    struct buf in;
};

struct fixture {
    struct loop loop;
    uv_tcp_t listener;
    uint16_t port;
    const char *const *script;
    uint32_t accepted, requests, open;
    struct client *client;
    struct buf log, seen; /* answers and requests */
    uint32_t answers;
    bool free_in_answer;
    bool sent, timed_out; /* of the last answer */
};

static void conn_gone(uv_handle_t *handle)
{
    struct script_conn *conn = container_of(handle, struct script_conn, handle);
    conn->f->open--;
    buf_deinit(&conn->in);
    free(conn);
}
static void close_conn(struct script_conn *conn)
{
    if (!uv_is_closing((uv_handle_t *)&conn->handle))
        uv_close((uv_handle_t *)&conn->handle, conn_gone);
}
static void space(uv_handle_t *handle, size_t suggested, uv_buf_t *run)
{
    (void)suggested;
    struct script_conn *conn = container_of(handle, struct script_conn, handle);
    *run = uv_buf_init((char *)conn->f->loop.scratch, LOOP_SCRATCH_BYTES);
}
static void received(uv_stream_t *stream, ssize_t len, const uv_buf_t *run)
{
    struct script_conn *conn = container_of(stream, struct script_conn, handle);
    struct fixture *f = conn->f;
    if (len < 0) {
        close_conn(conn);
        return;
    }
    buf_append(&conn->in, run->base, (size_t)len);
    buf_append_u8(&conn->in, 0);
    conn->in.len--;
    if (!strstr((char *)conn->in.at, "\r\n\r\n"))
        return;
    buf_append_bytes(&f->seen, buf_view(&conn->in));
    buf_reset(&conn->in);
    const char *answer = f->script[f->requests++];
    if (strcmp(answer, SILENCE) == 0)
        return;
    bool closes = strncmp(answer, CLOSE, strlen(CLOSE)) == 0;
    if (closes)
        answer += strlen(CLOSE);
    uv_buf_t out = uv_buf_init((char *)(uintptr_t)answer, (unsigned)strlen(answer));
    if (out.len)
        assert_int_equal(uv_try_write(stream, &out, 1), out.len);
    if (closes)
        close_conn(conn);
}
static void accepted(uv_stream_t *listener, int status)
{
    struct fixture *f = listener->data;
    struct script_conn *conn = xcalloc(1, sizeof(*conn));
    assert_int_equal(status, 0);
    conn->f = f;
    f->accepted++;
    f->open++;
    uv_tcp_init(&f->loop.uv, &conn->handle);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&conn->handle), 0);
    uv_read_start((uv_stream_t *)&conn->handle, space, received);
}

static void start(struct fixture *f, const char *const *script, const struct client_config *config)
{
    struct sockaddr_storage where;
    int len = sizeof(where);
    char address[40];
    *f = (struct fixture){.script = script};
    loop_init(&f->loop);
    check(tcp_address("127.0.0.1:0", &where));
    uv_tcp_init(&f->loop.uv, &f->listener);
    f->listener.data = f;
    uv_tcp_bind(&f->listener, (struct sockaddr *)&where, 0);
    assert_int_equal(uv_listen((uv_stream_t *)&f->listener, 100, accepted), 0);
    uv_tcp_getsockname(&f->listener, (struct sockaddr *)&where, &len);
    tcp_address_text((struct sockaddr *)&where, address, sizeof(address));
    struct client_config all = config ? *config : (struct client_config){0};
    all.address = address;
    f->client = client_new(&f->loop, &all);
}

static void stop(struct fixture *f)
{
    if (f->client)
        client_free(f->client);
    uv_close((uv_handle_t *)&f->listener, NULL);
    raw_until(&f->loop, f->open == 0);
    loop_deinit(&f->loop);
    buf_deinit(&f->log);
    buf_deinit(&f->seen);
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct fixture *f = context;
    f->answers++;
    f->sent = answer->sent;
    f->timed_out = answer->timed_out;
    if (answer->failure)
        buf_printf(&f->log, "failed: %s\n", answer->failure);
    else
        buf_printf(&f->log, "%d %.*s\n", answer->status, (int)answer->body.len,
                   (const char *)answer->body.at);
    if (f->free_in_answer) {
        f->free_in_answer = false;
        client_free(f->client);
        f->client = NULL;
    }
}

static struct client_request *send_timed(struct fixture *f, const char *method, uint64_t timeout_ms)
{
    struct client_call call = {
        .method = bytes_text(method), .path = bytes_literal("/p"), .timeout_ms = timeout_ms};
    uint32_t before = f->answers;
    struct client_request *request = client_send(f->client, &call, on_answer, f);
    assert_int_equal(f->answers, before); /* never from within */
    return request;
}

static void expect(struct fixture *f, uint32_t answers, const char *log)
{
    raw_until(&f->loop, f->answers == answers);
    buf_append_u8(&f->log, 0);
    f->log.len--;
    assert_string_equal((char *)f->log.at, log);
}

#define OK(body, len) "HTTP/1.1 200 OK\r\nContent-Length: " len "\r\n\r\n" body

static void test_answers(void **state)
{
    (void)state;
    static const char *const script[] = {
        OK("one", "3"),
        "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: "
        "chunked\r\n\r\n2\r\ntw\r\n1\r\no\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n" OK("three", "5"),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", /* to a HEAD */
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        CLOSE "HTTP/1.0 200 OK\r\n\r\nto the end",
        OK("eight", "5"),
    };
    struct fixture f;
    start(&f, script, NULL);
    for (uint32_t i = 0; i < array_len(script); i++) {
        send_timed(&f, i == 3 ? "HEAD" : "GET", 0);
        raw_until(&f.loop, f.answers == i + 1);
    }
    expect(&f, 8, "200 one\n404 two\n200 three\n200 \n304 \n204 \n200 to the end\n200 eight\n");
    assert_int_equal(f.accepted, 2);
    stop(&f);
}

static void test_request_bytes(void **state)
{
    (void)state;
    static const char *const script[] = {OK("", "0"), OK("", "0")};
    struct fixture f;
    start(&f, script, NULL);
    struct http_header headers[] = {
        {bytes_literal("Host"), bytes_literal("dynamodb.eu-west-1.amazonaws.com")},
        {bytes_literal("Content-Length"), bytes_literal("77")},
        {bytes_literal("connection"), bytes_literal("close")},
        {bytes_literal("x-a"), bytes_literal("b")},
    };
    struct client_call call = {.method = bytes_literal("POST"),
                               .path = bytes_literal("/"),
                               .headers = headers,
                               .header_count = 4,
                               .body = bytes_literal("{}")};
    client_send(f.client, &call, on_answer, &f);
    raw_until(&f.loop, f.answers == 1);
    assert_true(bytes_is(buf_view(&f.seen),
                         "POST / HTTP/1.1\r\nHost: dynamodb.eu-west-1.amazonaws.com"
                         "\r\nx-a: b\r\ncontent-length: 2\r\n\r\n{}"));
    stop(&f);
}

static void test_a_stale_connection_is_tried_again(void **state)
{
    (void)state;
    static const char *const script[] = {OK("1", "1"), CLOSE, OK("2", "1"), CLOSE, CLOSE};
    struct fixture f;
    start(&f, script, NULL);
    send_timed(&f, "GET", 0);
    raw_until(&f.loop, f.answers == 1);
    send_timed(&f, "GET", 0);
    raw_until(&f.loop, f.answers == 2);
    assert_int_equal(f.accepted, 2);
    send_timed(&f, "GET", 0); /* the second try fails too: it is told */
    expect(&f, 3, "200 1\n200 2\nfailed: the connection was closed before the answer was whole\n");
    assert_int_equal(f.requests, 5);
    stop(&f);
}

/* Who must not do a thing twice has to know whether it may have been done. */
static void test_once_is_once(void **state)
{
    (void)state;
    static const char *const script[] = {OK("1", "1"), CLOSE, SILENCE};
    struct client_config config = {.connections_max = 1};
    struct fixture f;
    start(&f, script, &config);
    send_timed(&f, "PUT", 0);
    raw_until(&f.loop, f.answers == 1);
    assert_true(f.sent);
    struct client_call call = {
        .method = bytes_literal("PUT"), .path = bytes_literal("/p"), .once = true};
    client_send(f.client, &call, on_answer, &f); /* on the same connection, which then breaks */
    raw_until(&f.loop, f.answers == 2);
    assert_true(f.sent);
    assert_false(f.timed_out);
    assert_int_equal(f.requests, 2);
    assert_int_equal(f.accepted, 1);
    struct client_request *first = send_timed(&f, "GET", 0);
    raw_until(&f.loop, f.requests == 3);
    send_timed(&f, "GET", 30); /* in line behind it, to the end */
    raw_until(&f.loop, f.answers == 3);
    assert_false(f.sent);
    assert_true(f.timed_out);
    client_cancel(first);
    stop(&f);
}

static void test_failures(void **state)
{
    (void)state;
    static const char *const script[] = {CLOSE, SILENCE, "SMTP 1.0\r\n\r\n",
                                         "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
                                         CLOSE "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"};
    struct client_config config = {.answer_bytes_max = 50};
    struct fixture f;
    start(&f, script, &config);
    for (uint32_t i = 0; i < array_len(script); i++) {
        send_timed(&f, "GET", i == 1 || i == 3 ? 30 : 0);
        raw_until(&f.loop, f.answers == i + 1);
    }
    expect(&f, 5,
           "failed: the connection was closed before the answer was whole\nfailed: timed out\n"
           "failed: the answer is not HTTP/1.1\nfailed: timed out\n"
           "failed: the connection was closed before the answer was whole\n");
    stop(&f);
}

static void test_answer_too_long(void **state)
{
    (void)state;
    static const char *const script[] = {OK("12345678901", "11")};
    struct client_config config = {.answer_bytes_max = 10};
    struct fixture f;
    start(&f, script, &config);
    send_timed(&f, "GET", 0);
    expect(&f, 1, "failed: the answer is too long\n");
    stop(&f);
}

static void test_the_pool_and_its_line(void **state)
{
    (void)state;
    static const char *const script[] = {OK("a", "1"), OK("b", "1"), OK("c", "1"), OK("d", "1"),
                                         OK("e", "1")};
    struct client_config config = {.connections_max = 2, .waiting_max = 3};
    struct fixture f;
    start(&f, script, &config);
    for (int i = 0; i < 6; i++) /* two under way, three waiting, one too many */
        send_timed(&f, "GET", 1000);
    raw_until(&f.loop, f.answers == 6);
    assert_int_equal(f.accepted, 2);
    assert_int_equal(f.requests, 5);
    assert_non_null(strstr((char *)f.log.at, "failed: too many requests are waiting\n"));
    stop(&f);
}

static void test_cancel_and_free(void **state)
{
    (void)state;
    static const char *const script[] = {SILENCE, OK("2", "1"), SILENCE, OK("x", "1")};
    struct client_config config = {.connections_max = 1};
    struct fixture f;
    start(&f, script, &config);
    struct client_request *active = send_timed(&f, "GET", 0);
    struct client_request *waiting = send_timed(&f, "GET", 0);
    send_timed(&f, "GET", 0);
    raw_until(&f.loop, f.requests == 1);
    client_cancel(waiting);
    client_cancel(active);
    expect(&f, 1, "200 2\n");
    send_timed(&f, "GET", 0);
    send_timed(&f, "GET", 0);
    raw_until(&f.loop, f.requests == 3);
    client_free(f.client);
    f.client = NULL;
    expect(&f, 3, "200 2\nfailed: the client was closed\nfailed: the client was closed\n");
    stop(&f);

    start(&f, &script[3], NULL);
    f.free_in_answer = true;
    send_timed(&f, "GET", 0);
    expect(&f, 1, "200 x\n");
    stop(&f);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct fixture f;
    static const char *const script[] = {OK("", "0")};
    start(&f, script, NULL);
    struct client_config config = {.address = "127.0.0.1:1"};
    struct client *other = client_new(&f.loop, &config);
    struct client_call call = {.method = bytes_literal("GET"), .path = bytes_literal("/")};
    client_send(other, &call, on_answer, &f);
    expect(&f, 1, "failed: connection refused\n");
    assert_false(f.sent);
    client_free(other);
    config.address = "not an address";
    other = client_new(&f.loop, &config);
    client_send(other, &call, on_answer, &f);
    expect(&f, 2, "failed: connection refused\nfailed: the address cannot be resolved\n");
    client_free(other);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_request_bytes),
        cmocka_unit_test(test_a_stale_connection_is_tried_again),
        cmocka_unit_test(test_once_is_once),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_answer_too_long),
        cmocka_unit_test(test_the_pool_and_its_line),
        cmocka_unit_test(test_cancel_and_free),
        cmocka_unit_test(test_nobody_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
