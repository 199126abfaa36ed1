/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy on real sockets: a client and a server of plain system calls in threads of their own,
 * the proxy's loop in the test's thread. Waiting is for events with a far deadline, never for a
 * time to pass. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chaos/live/proxy.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { DEADLINE_S = 60 };

struct fixture {
    struct loop loop;
    struct proxy_set set;
    struct address server; /* where the peer listens */
    int listen_fd;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    loop_init(&f->loop);
    proxy_set_init(&f->set, &f->loop, 42);
    snprintf(f->server.host, sizeof(f->server.host), "127.0.0.1");
    f->listen_fd = address_hold(&f->server);
    assert_true(f->listen_fd >= 0);
    assert_int_equal(listen(f->listen_fd, 64), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    proxy_set_deinit(&f->set);
    loop_deinit(&f->loop);
    close(f->listen_fd);
    free(f);
    return 0;
}

/* ---- Small tools ---- */

static uint64_t seconds_now(void)
{
    return uv_hrtime() / UINT64_C(1000000000);
}

/* One round of the proxy's loop, which waits at most a millisecond when nothing happens. */
static void turn(struct fixture *f)
{
    uv_run(&f->loop.uv, UV_RUN_NOWAIT);
    (void)poll(NULL, 0, 1);
}

#define turn_until(f, condition)                                                                   \
    do {                                                                                           \
        uint64_t end_ = seconds_now() + DEADLINE_S;                                                \
        while (!(condition)) {                                                                     \
            assert_true(seconds_now() < end_);                                                     \
            turn(f);                                                                               \
        }                                                                                          \
    } while (0)

static int dial(const struct address *to)
{
    struct sockaddr_storage at;
    check(address_numeric(to, &at));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int failed = connect(fd, (const struct sockaddr *)&at, sizeof(struct sockaddr_in));
    if (failed != 0) {
        failed = errno;
        close(fd);
        return -failed;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static bool readable(int fd)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    return poll(&watched, 1, 0) == 1;
}

static int take(struct fixture *f)
{
    turn_until(f, readable(f->listen_fd));
    int fd = accept4(f->listen_fd, NULL, NULL, SOCK_NONBLOCK);
    assert_true(fd >= 0);
    return fd;
}

static void put_all(struct fixture *f, int fd, const void *data, size_t len)
{
    size_t done = 0;
    uint64_t end = seconds_now() + DEADLINE_S;
    while (done < len) {
        ssize_t wrote = send(fd, (const char *)data + done, len - done, MSG_NOSIGNAL);
        if (wrote > 0)
            done += (size_t)wrote;
        else
            assert_int_equal(errno, EAGAIN);
        assert_true(seconds_now() < end);
        turn(f);
    }
}

static void expect(struct fixture *f, int fd, const void *data, size_t len)
{
    char *got = xmalloc(len);
    for (size_t done = 0; done < len;) {
        turn_until(f, readable(fd));
        ssize_t read_now = recv(fd, got + done, len - done, 0);
        assert_true(read_now > 0);
        done += (size_t)read_now;
    }
    assert_memory_equal(got, data, len);
    free(got);
}

/* 0: closed in order; else the error, such as ECONNRESET. Bytes before it are skipped. */
static int expect_end(struct fixture *f, int fd)
{
    char skipped[4096];
    for (;;) {
        turn_until(f, readable(fd));
        ssize_t got = recv(fd, skipped, sizeof(skipped), 0);
        if (got == 0)
            return 0;
        if (got < 0)
            return errno;
    }
}

static struct proxy *proxy_up(struct fixture *f, const char *name, bool is_link)
{
    struct address any = {.host = "127.0.0.1"};
    struct proxy *proxy = proxy_new(&f->set, name, &any, &f->server, is_link);
    assert_int_equal(proxy_enable(proxy), 0);
    assert_true(proxy->listen.port != 0);
    return proxy;
}

static struct toxic *put_toxic(struct proxy *proxy, enum toxic_type type, enum toxic_stream stream,
                               int64_t value)
{
    struct toxic *toxic = toxic_new(type, stream, "t");
    toxic->value[0] = value;
    proxy_add_toxic(proxy, toxic);
    return toxic;
}

/* ---- Tests ---- */

static void bytes_pass_both_ways_and_half_closing_too(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "p", false);
    int client = dial(&proxy->listen), server = take(f);
    put_all(f, client, "hello", 5);
    expect(f, server, "hello", 5);
    shutdown(client, SHUT_WR);
    assert_int_equal(expect_end(f, server), 0);
    put_all(f, server, "bye", 3); /* the other way still flows */
    expect(f, client, "bye", 3);
    close(server);
    assert_int_equal(expect_end(f, client), 0);
    turn_until(f, proxy->counts.connections == 0);
    assert_int_equal(proxy->counts.passed_bytes[TOXIC_UPSTREAM], 5);
    assert_int_equal(proxy->counts.passed_bytes[TOXIC_DOWNSTREAM], 3);
    assert_int_equal(proxy->counts.blocked_bytes, 0);
    close(client);
}

/* The reader takes nothing at first: memory stays bounded, and in the end every byte is there. */
static void a_slow_reader_slows_the_sender_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "p", false);
    int client = dial(&proxy->listen), server = take(f);
    size_t len = 64 * 1024 * 1024, sent = 0;
    uint8_t *data = xmalloc(len);
    struct rng rng;
    rng_init(&rng, 7);
    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint64_t value = rng_next(&rng);
        memcpy(data + i, &value, 8);
    }
    for (int idle = 0; idle < 50;) {
        ssize_t wrote = send(client, data + sent, len - sent, MSG_NOSIGNAL);
        sent += wrote > 0 ? (size_t)wrote : 0;
        idle = wrote > 0 ? 0 : idle + 1;
        turn(f);
    }
    assert_true(sent < len); /* it was slowed */
    size_t got = 0;
    uint8_t *back = xmalloc(len);
    uint64_t end = seconds_now() + DEADLINE_S;
    while (got < len) {
        if (sent < len) {
            ssize_t wrote = send(client, data + sent, len - sent, MSG_NOSIGNAL);
            sent += wrote > 0 ? (size_t)wrote : 0;
        }
        uv_run(&f->loop.uv, UV_RUN_NOWAIT);
        ssize_t read_now = recv(server, back + got, len - got, 0);
        got += read_now > 0 ? (size_t)read_now : 0;
        assert_true(seconds_now() < end);
    }
    assert_memory_equal(back, data, len);
    free(back);
    free(data);
    close(client);
    close(server);
}

static void a_cut_resets_both_ends_at_once_and_counts(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "a->b", true);
    int client = dial(&proxy->listen), server = take(f);
    put_all(f, client, "before", 6);
    expect(f, server, "before", 6);
    put_toxic(proxy, TOXIC_LATENCY, TOXIC_UPSTREAM, 3600000);
    put_all(f, client, "on the way", 10);
    turn_until(f, !list_empty(&proxy->pairs) && proxy->counts.passed_bytes[0] == 6);

    struct proxy_instant instant = proxy_disable(proxy);
    assert_true(instant.wall_ms > 0);
    assert_true(instant.mono_ns > 0);
    assert_int_equal(proxy->counts.connections, 0);
    assert_int_equal(expect_end(f, client), ECONNRESET);
    assert_int_equal(expect_end(f, server), ECONNRESET);
    assert_int_equal(proxy->counts.blocked_connections, 1);
    assert_int_equal(proxy->counts.blocked_bytes, 10);
    assert_int_equal(proxy->counts.passed_bytes[0], 6);
    close(client);
    close(server);

    client = dial(&proxy->listen); /* a link counts what it refuses */
    if (client >= 0) {
        int end = expect_end(f, client);
        assert_true(end == ECONNRESET || end == 0);
        close(client);
    }
    turn_until(f, proxy->counts.blocked_connections == 2);
    assert_false(readable(f->listen_fd));

    assert_int_equal(proxy_enable(proxy), 0);
    proxy_remove_toxic(proxy, proxy_find_toxic(proxy, "t"));
    client = dial(&proxy->listen);
    server = take(f);
    put_all(f, client, "after", 5);
    expect(f, server, "after", 5);
    assert_int_equal(proxy->counts.blocked_connections, 2);
    close(client);
    close(server);
}

static void a_disabled_proxy_refuses_and_keeps_its_port(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "p", false);
    struct address at = proxy->listen;
    proxy_disable(proxy);
    turn(f);
    assert_int_equal(dial(&at), -ECONNREFUSED);
    assert_int_equal(proxy_enable(proxy), 0);
    assert_int_equal(proxy->listen.port, at.port);
    int client = dial(&at);
    assert_true(client >= 0);
    close(client);
}

static void a_dead_peer_resets_the_opener(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "p", false);
    close(f->listen_fd);
    int client = dial(&proxy->listen);
    assert_int_equal(expect_end(f, client), ECONNRESET);
    close(client);
    turn_until(f, proxy->counts.connections == 0);
    f->listen_fd = -1;
}

static void a_reset_passes_through_as_a_reset(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "p", false);
    int client = dial(&proxy->listen), server = take(f);
    put_all(f, client, "x", 1);
    expect(f, server, "x", 1);
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(server, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(server);
    assert_int_equal(expect_end(f, client), ECONNRESET);
    close(client);
}

static void toxics_reach_connections_that_are_already_open(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "p", false);
    int client = dial(&proxy->listen), server = take(f);
    put_all(f, client, "a", 1);
    expect(f, server, "a", 1);
    struct toxic *held = put_toxic(proxy, TOXIC_LATENCY, TOXIC_UPSTREAM, 3600000);
    put_all(f, client, "b", 1);
    put_all(f, server, "c", 1);
    expect(f, client, "c", 1); /* the other direction is free */
    assert_false(readable(server));
    held->value[0] = 1;
    proxy_update_toxic(proxy, held);
    expect(f, server, "b", 1);
    put_toxic(proxy, TOXIC_LIMIT_DATA, TOXIC_DOWNSTREAM, 3);
    put_all(f, server, "defgh", 5);
    expect(f, client, "def", 3);
    expect_end(f, client);
    close(client);
    close(server);
}

static void reset_peer_resets_both(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_up(f, "p", false);
    put_toxic(proxy, TOXIC_RESET_PEER, TOXIC_UPSTREAM, 0);
    int client = dial(&proxy->listen), server = take(f);
    put_all(f, client, "x", 1);
    assert_int_equal(expect_end(f, client), ECONNRESET);
    assert_int_equal(expect_end(f, server), ECONNRESET);
    close(client);
    close(server);
}

static void names_are_resolved(void **state)
{
    struct fixture *f = *state;
    struct address any = {.host = "127.0.0.1"}, named = f->server;
    snprintf(named.host, sizeof(named.host), "ip4-loopback.invalid");
    struct proxy *lost = proxy_new(&f->set, "lost", &any, &named, false);
    assert_int_equal(proxy_enable(lost), 0);
    int client = dial(&lost->listen);
    int end = expect_end(f, client);
    assert_true(end == ECONNRESET);
    close(client);
}

static void a_held_port_is_nobody_elses(void **state)
{
    struct fixture *f = *state;
    struct address held = {.host = "127.0.0.1"};
    int fd = address_hold(&held);
    assert_true(fd >= 0);
    assert_int_equal(dial(&held), -ECONNREFUSED);
    int others[200];
    for (size_t i = 0; i < array_len(others); i++) {
        struct address other = {.host = "127.0.0.1"};
        others[i] = address_hold(&other);
        assert_true(others[i] >= 0);
        assert_int_not_equal(other.port, held.port);
    }
    struct proxy *proxy = proxy_new(&f->set, "p", &held, &f->server, false);
    assert_int_equal(proxy_enable(proxy), 0); /* but who is meant to may listen */
    assert_int_equal(proxy->listen.port, held.port);
    struct address taken = f->server;
    assert_int_equal(address_hold(&taken), -EADDRINUSE);
    for (size_t i = 0; i < array_len(others); i++)
        close(others[i]);
    close(fd);
}

static void addresses_are_read_and_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
    } good[] = {
        {"127.0.0.1:8000", "127.0.0.1:8000"},   {"[::1]:80", "[::1]:80"}, {":0", "127.0.0.1:0"},
        {"localhost:65535", "localhost:65535"}, {"a.b-c:1", "a.b-c:1"},
    };
    static const char *const bad[] = {"",
                                      ":",
                                      "host",
                                      "host:",
                                      "host:65536",
                                      "h:-1",
                                      "h:+1",
                                      "::1:80",
                                      "h:1x",
                                      "[::1]",
                                      "[::1",
                                      "h:000001",
                                      "h:99999999999999999999"};
    struct address address;
    char printed[ADDRESS_MAX];
    for (size_t i = 0; i < array_len(good); i++) {
        assert_true(address_parse(bytes_text(good[i].text), &address));
        address_print(&address, printed);
        assert_string_equal(printed, good[i].printed);
    }
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(address_parse(bytes_text(bad[i]), &address));
    assert_false(address_parse(bytes_make("a\0b:1", 5), &address));
    assert_true(address_parse(bytes_literal("127.9.9.9:1"), &address));
    assert_true(address_is_loopback(&address));
    assert_true(address_parse(bytes_literal("192.168.0.1:1"), &address));
    assert_false(address_is_loopback(&address));
}

int main(void)
{
#define proxy_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        proxy_test(bytes_pass_both_ways_and_half_closing_too),
        proxy_test(a_slow_reader_slows_the_sender_and_loses_nothing),
        proxy_test(a_cut_resets_both_ends_at_once_and_counts),
        proxy_test(a_disabled_proxy_refuses_and_keeps_its_port),
        proxy_test(a_dead_peer_resets_the_opener),
        proxy_test(a_reset_passes_through_as_a_reset),
        proxy_test(toxics_reach_connections_that_are_already_open),
        proxy_test(reset_peer_resets_both),
        proxy_test(names_are_resolved),
        proxy_test(a_held_port_is_nobody_elses),
        cmocka_unit_test(addresses_are_read_and_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
