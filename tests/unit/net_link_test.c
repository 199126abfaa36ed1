/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC on real sockets: our link against our server, what happens when either goes, and a client
 * that is not ours (tests/live/grpc_client_test.py). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/grpc.h"
#include "net/server.h"
#include "tests/lib/net_raw.h"

struct fixture {
    struct loop loop;
    struct server *server;
    char address[40];
    struct grpc_link *link;
    uint32_t ups, downs, done, done_at_down, server_closed, messages;
    char down_reason[100];
    enum grpc_status status;
    struct buf answer;
    bool call_closed, close_link;
    int64_t exit_status;
};

/* ---- The server: echoes each message; finishes when the client does ---- */

static void echo_message(void *context, struct grpc_call *call, struct bytes message)
{
    (void)context;
    grpc_call_consume(call, message.len);
    if (bytes_is(message, "fail"))
        grpc_call_finish(call, GRPC_FAILED_PRECONDITION, "as asked: \xc3\xa4 % \n");
    else if (!bytes_is(message, "silence"))
        grpc_call_send(call, message);
    else
        grpc_call_on(call, &(struct grpc_events){0}); /* never another word */
}
static void echo_half_closed(void *context, struct grpc_call *call)
{
    (void)context;
    grpc_call_finish(call, GRPC_OK, NULL);
}
static void echo_closed(void *context, struct grpc_call *call, enum grpc_status status,
                        const char *reason)
{
    (void)call;
    (void)status;
    (void)reason;
    ((struct fixture *)context)->server_closed++;
}
static bool on_call(void *context, struct grpc_call *call, struct bytes path)
{
    struct grpc_events events = {echo_message, echo_half_closed, echo_closed, context};
    grpc_call_on(call, &events);
    return bytes_is(path, "/test.Echo/Echo");
}
static void on_request(void *context, struct exchange *exchange)
{
    (void)context;
    exchange_respond(exchange, 404, NULL, 0, BYTES_NONE);
}

static void listen_at(struct fixture *f, const char *address)
{
    char error[200];
    struct server_limits limits = server_limits_default();
    struct server_handler handler = {.request = on_request, .grpc = on_call, .context = f};
    f->server = server_listen(&f->loop, address, &limits, NULL, &handler, error, sizeof(error));
    if (!f->server)
        fail_msg("%s", error);
    snprintf(f->address, sizeof(f->address), "127.0.0.1:%u", server_port(f->server));
}

static void start(struct fixture *f)
{
    *f = (struct fixture){0};
    loop_init(&f->loop);
    listen_at(f, "127.0.0.1:0");
}

static void stop(struct fixture *f)
{
    if (f->link)
        grpc_link_close(f->link);
    if (f->server)
        server_close(f->server);
    loop_deinit(&f->loop);
    buf_deinit(&f->answer);
}

/* ---- The client ---- */

static void on_up(void *context)
{
    ((struct fixture *)context)->ups++;
}
static void on_down(void *context, const char *reason)
{
    struct fixture *f = context;
    f->downs++;
    f->done_at_down = f->done;
    snprintf(f->down_reason, sizeof(f->down_reason), "%s", reason);
}
static void on_done(void *context, enum grpc_status status, struct bytes message)
{
    struct fixture *f = context;
    f->done++;
    f->status = status;
    buf_reset(&f->answer);
    buf_append_bytes(&f->answer, message);
    if (f->close_link) {
        grpc_link_close(f->link);
        f->link = NULL;
    }
}

static void open_link(struct fixture *f, uint64_t silent_ms_max)
{
    struct grpc_link_config config = {.address = f->address,
                                      .authority = "peer",
                                      .connect_ms_max = 50,
                                      .backoff_ms_min = 1,
                                      .backoff_ms_max = 10,
                                      .message_bytes_max = 2 << 20,
                                      .silent_ms_max = silent_ms_max,
                                      .seed = 1};
    struct grpc_link_events events = {on_up, on_down, f};
    f->link = grpc_link_open(&f->loop, &config, &events);
}

static void call_unary(struct fixture *f, const char *text, uint64_t timeout_ms)
{
    grpc_link_unary(f->link, "/test.Echo/Echo", bytes_text(text), timeout_ms, on_done, f);
}

static void test_unary(void **state)
{
    (void)state;
    struct fixture f;
    start(&f);
    open_link(&f, 0);
    call_unary(&f, "too early", 100);
    assert_int_equal(f.done, 1);
    assert_int_equal(f.status, GRPC_UNAVAILABLE);
    raw_until(&f.loop, f.ups == 1);
    call_unary(&f, "hello", 5000);
    raw_until(&f.loop, f.done == 2);
    assert_int_equal(f.status, GRPC_OK);
    assert_true(bytes_is(buf_view(&f.answer), "hello"));
    call_unary(&f, "fail", 5000);
    raw_until(&f.loop, f.done == 3);
    assert_int_equal(f.status, GRPC_FAILED_PRECONDITION);
    grpc_link_unary(f.link, "/test.Echo/None", BYTES_NONE, 0, on_done, &f);
    raw_until(&f.loop, f.done == 4);
    assert_int_equal(f.status, GRPC_UNIMPLEMENTED);
    call_unary(&f, "silence", 30);
    raw_until(&f.loop, f.done == 5);
    assert_int_equal(f.status, GRPC_DEADLINE_EXCEEDED);
    f.close_link = true; /* from within an answer */
    call_unary(&f, "last", 5000);
    raw_until(&f.loop, f.done == 6);
    assert_int_equal(f.downs, 0);
    stop(&f);
}

static void test_it_comes_back(void **state)
{
    (void)state;
    struct fixture f;
    start(&f);
    open_link(&f, 0);
    for (uint32_t round = 1; round <= 3; round++) {
        raw_until(&f.loop, f.ups == round);
        call_unary(&f, "silence", 0);
        call_unary(&f, "hello", 0);
        raw_until(&f.loop, f.done == 2 * round - 1);
        assert_int_equal(f.status, GRPC_OK);
        server_close(f.server);
        f.server = NULL;
        raw_until(&f.loop, f.downs == round);
        assert_int_equal(f.done_at_down, 2 * round); /* the open call was told before */
        assert_int_equal(f.status, GRPC_UNAVAILABLE);
        assert_null(grpc_link_call(f.link, "/test.Echo/Echo", NULL, NULL));
        listen_at(&f, f.address);
    }
    stop(&f);
}

static void count_connection(uv_stream_t *listener, int status)
{
    (void)status;
    ++*(uint32_t *)listener->data;
}

/* Something that takes connections and says nothing is no peer: the link tries again and again. */
static void test_silence_is_not_up(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t connections = 0;
    uv_tcp_t listener;
    struct sockaddr_storage where;
    int len = sizeof(where);
    start(&f);
    check(tcp_address("127.0.0.1:0", &where));
    uv_tcp_init(&f.loop.uv, &listener);
    listener.data = &connections;
    uv_tcp_bind(&listener, (struct sockaddr *)&where, 0);
    assert_int_equal(uv_listen((uv_stream_t *)&listener, 10, count_connection), 0);
    uv_tcp_getsockname(&listener, (struct sockaddr *)&where, &len);
    tcp_address_text((struct sockaddr *)&where, f.address, sizeof(f.address));
    open_link(&f, 0);
    raw_until(&f.loop, connections == 1);
    uint64_t until_ns = f.loop.mono_ns + 70000000;
    raw_until(&f.loop, f.loop.mono_ns >= until_ns);
    assert_int_equal(f.ups, 0);
    assert_int_equal(f.downs, 0);
    uv_close((uv_handle_t *)&listener, NULL);
    stop(&f);
}

static void stream_message(void *context, struct grpc_call *call, struct bytes message)
{
    struct fixture *f = context;
    f->messages++;
    grpc_call_consume(call, message.len);
}
static void stream_closed(void *context, struct grpc_call *call, enum grpc_status status,
                          const char *reason)
{
    struct fixture *f = context;
    (void)call;
    (void)reason;
    f->call_closed = true;
    f->status = status;
}

static void test_a_stream(void **state)
{
    (void)state;
    struct fixture f;
    start(&f);
    open_link(&f, 100);
    raw_until(&f.loop, f.ups == 1);
    struct grpc_events events = {stream_message, NULL, stream_closed, &f};
    struct grpc_call *call = grpc_link_call(f.link, "/test.Echo/Echo", NULL, &events);
    uint8_t *message = xcalloc(1, 1 << 20);
    for (uint32_t i = 1; i <= 40; i++) {
        grpc_call_send(call, bytes_make(message, 1 << 20));
        if (i % 10 == 0)
            raw_until(&f.loop, f.messages == i);
    }
    free(message);
    /* Silent, yet both sides answer pings, so that the link stays up. */
    uint64_t until_ns = f.loop.mono_ns + 350000000;
    raw_until(&f.loop, f.loop.mono_ns >= until_ns);
    assert_int_equal(f.downs, 0);
    grpc_call_finish(call, GRPC_OK, NULL);
    raw_until(&f.loop, f.call_closed && f.server_closed == 1);
    assert_int_equal(f.status, GRPC_OK);
    stop(&f);
}

static void on_exit_of_client(uv_process_t *process, int64_t status, int signal)
{
    struct fixture *f = process->data;
    f->exit_status = signal ? 1000 + signal : status;
    f->call_closed = true;
}

static void test_a_foreign_client(void **state)
{
    (void)state;
    struct fixture f;
    start(&f);
    char *arguments[] = {"python3", "tests/live/grpc_client_test.py", strchr(f.address, ':') + 1,
                         NULL};
    uv_stdio_container_t inherited[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = 1},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
    };
    uv_process_options_t options = {.file = "/usr/bin/python3",
                                    .args = arguments,
                                    .exit_cb = on_exit_of_client,
                                    .stdio = inherited,
                                    .stdio_count = 3};
    uv_process_t process;
    process.data = &f;
    if (uv_spawn(&f.loop.uv, &process, &options) != 0)
        f.exit_status = 77;
    else
        while (!f.call_closed) /* it has time limits of its own */
            uv_run(&f.loop.uv, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&process, NULL);
    stop(&f);
    if (f.exit_status == 77)
        skip();
    assert_int_equal(f.exit_status, 0);
    assert_true(f.server_closed >= 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_it_comes_back),
        cmocka_unit_test(test_silence_is_not_up),
        cmocka_unit_test(test_a_stream),
        cmocka_unit_test(test_a_foreign_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
