/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a peer that is kept up: when it breaks, the next attempt comes after a pause that
 * doubles with every failure, with jitter so that peers that fell together do not rise together. It
 * is up only when the peer's HTTP/2 settings have arrived: a proxy that accepts and then stays
 * silent is not a peer.
 *
 *     WAITING --pause over--> CONNECTING --settings--> UP
 *        ^-------- failed, timed out --/--- broke -----/       CLOSED from any, by grpc_link_close
 */

#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/lifecycle.h"
#include "conflict/base/rng.h"
#include "net/grpc_internal.h"
#include "net/tcp.h"

enum link_state { LINK_WAITING, LINK_CONNECTING, LINK_UP, LINK_CLOSED };

static const struct lifecycle_state link_states[] = {
    [LINK_WAITING] = {"waiting", lifecycle_bit(LINK_CONNECTING) | lifecycle_bit(LINK_CLOSED)},
    [LINK_CONNECTING] = {"connecting", lifecycle_bit(LINK_UP) | lifecycle_bit(LINK_WAITING) |
                                           lifecycle_bit(LINK_CLOSED)},
    [LINK_UP] = {"up", lifecycle_bit(LINK_WAITING) | lifecycle_bit(LINK_CLOSED)},
    [LINK_CLOSED] = {"closed", 0},
};
static const struct lifecycle_table link_table = {"link", link_states, array_len(link_states)};

/* One attempt; outlives its end until libuv has let go of the socket. */
struct link_conn {
    struct tcp tcp;
    struct h2 h2;
    bool has_h2;
    struct grpc_link *link;
};

struct grpc_link {
    struct loop *loop;
    struct grpc_link_config config;
    struct grpc_link_events events;
    struct sockaddr_storage address;
    struct lifecycle life;
    struct link_conn *conn; /* CONNECTING and UP */
    uv_timer_t timer;
    struct rng rng;
    uint32_t failures;
    uint32_t holds;   /* the timer and the connections */
    uint32_t strikes; /* how far watch_silence has come; back to 0 with every byte */
};

static uint64_t now_ms(const struct grpc_link *link)
{
    return link->loop->mono_ns / 1000000u;
}

static void link_release(struct grpc_link *link)
{
    check(link->holds > 0);
    if (--link->holds > 0)
        return;
    free((char *)(uintptr_t)link->config.address);
    free((char *)(uintptr_t)link->config.authority);
    free(link);
}

static void timer_fired(uv_timer_t *timer);

static void arm(struct grpc_link *link, uint64_t delay_ms)
{
    uv_timer_start(&link->timer, timer_fired, delay_ms, 0);
}

static uint64_t pause_ms(struct grpc_link *link)
{
    uint64_t pause = link->config.backoff_ms_min ? link->config.backoff_ms_min : 1;
    for (uint32_t i = 0; i < link->failures && pause < link->config.backoff_ms_max; i++)
        pause *= 2;
    if (pause > link->config.backoff_ms_max)
        pause = link->config.backoff_ms_max;
    return rng_between(&link->rng, pause / 2, pause);
}

/* The connection is given up; its calls are told first, then the link's owner. */
static void break_off(struct grpc_link *link, const char *reason)
{
    struct link_conn *conn = link->conn;
    if (!conn)
        return;
    char text[192];
    snprintf(text, sizeof(text), "%s", reason); /* may lie in what is about to go */
    bool was_up = link->life.state == LINK_UP;
    link->conn = NULL;
    lifecycle_move(&link->life, LINK_WAITING);
    tcp_close(&conn->tcp);
    arm(link, pause_ms(link));
    if (link->failures < 32)
        link->failures++;
    if (conn->has_h2)
        h2_lose(&conn->h2, text);
    if (was_up && link->life.state != LINK_CLOSED && link->events.down)
        link->events.down(link->events.context, text);
}

/* ---- The connection ---- */

static struct link_conn *conn_of_tcp(struct tcp *tcp)
{
    return container_of(tcp, struct link_conn, tcp);
}
static struct link_conn *conn_of_h2(struct h2 *h2)
{
    return container_of(h2, struct link_conn, h2);
}

static void settled(struct h2 *h2)
{
    struct link_conn *conn = conn_of_h2(h2);
    struct grpc_link *link = conn->link;
    if (link->conn != conn || link->life.state != LINK_CONNECTING)
        return;
    lifecycle_move(&link->life, LINK_UP);
    link->failures = 0;
    link->strikes = 0;
    if (link->config.silent_ms_max)
        arm(link, link->config.silent_ms_max / 2);
    else
        uv_timer_stop(&link->timer);
    if (link->events.up)
        link->events.up(link->events.context);
}

static void wake(struct h2 *h2)
{
    tcp_wake(&conn_of_h2(h2)->tcp);
}

static const struct h2_owner h2_owner = {NULL, settled, wake};

static uint8_t *space(struct tcp *tcp, size_t *ret_len)
{
    *ret_len = LOOP_SCRATCH_BYTES;
    return tcp->loop->scratch;
}

static void received(struct tcp *tcp, size_t len)
{
    struct link_conn *conn = conn_of_tcp(tcp);
    conn->link->strikes = 0;
    h2_receive(&conn->h2, bytes_make(tcp->loop->scratch, len), now_ms(conn->link));
}

static void fill(struct tcp *tcp)
{
    struct link_conn *conn = conn_of_tcp(tcp);
    if (conn->has_h2)
        h2_fill(&conn->h2, &tcp->out, TCP_FILL_BYTES);
}

static void give_up(struct link_conn *conn, const char *reason)
{
    if (conn->link->conn == conn)
        break_off(conn->link, reason);
}

static void flushed(struct tcp *tcp)
{
    struct link_conn *conn = conn_of_tcp(tcp);
    if (conn->has_h2 && h2_is_over(&conn->h2))
        give_up(conn, "the peer ended the HTTP/2 session");
}

static void ended(struct tcp *tcp)
{
    give_up(conn_of_tcp(tcp), "the peer closed the connection");
}

static void failed(struct tcp *tcp, const char *reason)
{
    give_up(conn_of_tcp(tcp), reason);
}

static void connected(struct tcp *tcp)
{
    struct link_conn *conn = conn_of_tcp(tcp);
    struct grpc_link *link = conn->link;
    uint64_t window = grpc_window_bytes(link->config.message_bytes_max);
    struct h2_config config = {.server = false,
                               .streams_max = 0,
                               .head_bytes_max = 16384,
                               .window_bytes = window,
                               .connection_bytes = window * 4};
    h2_init(&conn->h2, &h2_owner, &config, now_ms(link));
    conn->has_h2 = true;
    tcp_wake(tcp);
}

static void gone(struct tcp *tcp)
{
    struct link_conn *conn = conn_of_tcp(tcp);
    struct grpc_link *link = conn->link;
    if (conn->has_h2)
        h2_deinit(&conn->h2);
    free(conn);
    link_release(link);
}

static const struct tcp_owner tcp_owner = {
    .space = space,
    .received = received,
    .fill = fill,
    .flushed = flushed,
    .ended = ended,
    .failed = failed,
    .connected = connected,
    .gone = gone,
};

static void attempt(struct grpc_link *link)
{
    struct link_conn *conn = xcalloc(1, sizeof(*conn));
    conn->link = link;
    link->conn = conn;
    link->holds++;
    lifecycle_move(&link->life, LINK_CONNECTING);
    tcp_init(&conn->tcp, link->loop, &tcp_owner);
    arm(link, link->config.connect_ms_max);
    /* Names may come up later than we do, so each attempt looks until it is found once. */
    if (link->address.ss_family == AF_UNSPEC &&
        !tcp_address(link->config.address, &link->address)) {
        break_off(link, "the peer's address cannot be resolved");
        return;
    }
    tcp_connect(&conn->tcp, (struct sockaddr *)&link->address);
}

/* Up, and watching for silence: half the limit without a byte asks for one. Before the peer is
 * given up, the loop reads once more: after a pause of ours, the bytes may be waiting. */
static void watch_silence(struct grpc_link *link)
{
    uint64_t limit_ms = link->config.silent_ms_max;
    uint64_t silent_ms = now_ms(link) - link->conn->h2.heard_ms;
    if (link->strikes == 0 && silent_ms * 2 < limit_ms) {
        arm(link, limit_ms / 2 - silent_ms + 1);
    } else if (link->strikes == 0) {
        link->strikes = 1;
        h2_ping(&link->conn->h2);
        arm(link, limit_ms / 2 + 1);
    } else if (link->strikes == 1) {
        link->strikes = 2;
        arm(link, 1);
    } else {
        break_off(link, "the peer has been silent for too long");
    }
}

static void timer_fired(uv_timer_t *timer)
{
    struct grpc_link *link = timer->data;
    loop_refresh_time(link->loop);
    switch ((enum link_state)link->life.state) {
    case LINK_WAITING:
        attempt(link);
        break;
    case LINK_CONNECTING:
        break_off(link, "connecting timed out");
        break;
    case LINK_UP:
        watch_silence(link);
        break;
    case LINK_CLOSED:
        break;
    }
}

static void timer_closed(uv_handle_t *handle)
{
    link_release(handle->data);
}

/* ---- The public half ---- */

struct grpc_link *grpc_link_open(struct loop *loop, const struct grpc_link_config *config,
                                 const struct grpc_link_events *events)
{
    struct grpc_link *link = xcalloc(1, sizeof(*link));
    check(config->message_bytes_max > 0);
    link->loop = loop;
    link->config = *config;
    link->config.address = xstrdup(config->address);
    link->config.authority = xstrdup(config->authority ? config->authority : config->address);
    if (!config->connect_ms_max)
        link->config.connect_ms_max = 2000;
    if (!config->backoff_ms_max)
        link->config.backoff_ms_max = 1000;
    if (events)
        link->events = *events;
    lifecycle_init(&link->life, &link_table, NULL);
    rng_init(&link->rng, config->seed);
    check(uv_timer_init(&loop->uv, &link->timer) == 0);
    link->timer.data = link;
    link->holds = 1;
    arm(link, 0);
    return link;
}

void grpc_link_close(struct grpc_link *link)
{
    struct link_conn *conn = link->conn;
    if (link->life.state == LINK_CLOSED)
        return;
    link->conn = NULL;
    lifecycle_move(&link->life, LINK_CLOSED);
    uv_close((uv_handle_t *)&link->timer, timer_closed);
    if (!conn)
        return;
    tcp_close(&conn->tcp);
    if (conn->has_h2)
        h2_lose(&conn->h2, "the link was closed");
}

struct grpc_call *grpc_link_call(struct grpc_link *link, const char *path,
                                 const char *const *headers, const struct grpc_events *events)
{
    if (link->life.state != LINK_UP)
        return NULL;
    return grpc_open(&link->conn->h2, link->config.authority, path, headers,
                     link->config.message_bytes_max, events);
}

/* ---- Unary calls ---- */

struct unary {
    struct grpc_call *call; /* NULL once closed */
    void (*done)(void *context, enum grpc_status status, struct bytes message); /* NULL: called */
    void *context;
    uv_timer_t timer;
    struct buf answer;
    uint32_t messages;
};

static void unary_timer_closed(uv_handle_t *handle)
{
    struct unary *unary = handle->data;
    buf_deinit(&unary->answer);
    free(unary);
}

static void unary_settle(struct unary *unary, enum grpc_status status, struct bytes message)
{
    void (*done)(void *, enum grpc_status, struct bytes) = unary->done;
    unary->done = NULL;
    if (done)
        done(unary->context, status, message);
}

static void unary_message(void *context, struct grpc_call *call, struct bytes message)
{
    struct unary *unary = context;
    if (unary->messages++ == 0)
        buf_append_bytes(&unary->answer, message);
    grpc_call_consume(call, message.len);
}

static void unary_closed(void *context, struct grpc_call *call, enum grpc_status status,
                         const char *reason)
{
    struct unary *unary = context;
    (void)call;
    (void)reason;
    unary->call = NULL;
    if (status == GRPC_OK && unary->messages != 1)
        status = GRPC_INTERNAL;
    unary_settle(unary, status, status == GRPC_OK ? buf_view(&unary->answer) : BYTES_NONE);
    uv_close((uv_handle_t *)&unary->timer, unary_timer_closed);
}

static void unary_timed_out(uv_timer_t *timer)
{
    struct unary *unary = timer->data;
    struct grpc_call *call = unary->call;
    /* Cancelled first: done may close the link, and with it the call. */
    if (call)
        grpc_call_cancel(call, "timed out");
    unary_settle(unary, GRPC_DEADLINE_EXCEEDED, BYTES_NONE);
}

void grpc_link_unary(struct grpc_link *link, const char *path, struct bytes message,
                     uint64_t timeout_ms,
                     void (*done)(void *context, enum grpc_status status, struct bytes message),
                     void *context)
{
    struct unary *unary = xcalloc(1, sizeof(*unary));
    unary->done = done;
    unary->context = context;
    /* The protocol allows eight digits. */
    char timeout[24];
    snprintf(timeout, sizeof(timeout), "%llum",
             (unsigned long long)(timeout_ms < 99999999 ? timeout_ms : 99999999));
    const char *headers[] = {"grpc-timeout", timeout, NULL};
    struct grpc_events events = {
        .message = unary_message, .closed = unary_closed, .context = unary};
    unary->call = grpc_link_call(link, path, timeout_ms ? headers : NULL, &events);
    if (!unary->call) {
        free(unary);
        done(context, GRPC_UNAVAILABLE, BYTES_NONE);
        return;
    }
    check(uv_timer_init(&link->loop->uv, &unary->timer) == 0);
    unary->timer.data = unary;
    if (timeout_ms)
        uv_timer_start(&unary->timer, unary_timed_out, timeout_ms, 0);
    grpc_call_send(unary->call, message);
    grpc_call_finish(unary->call, GRPC_OK, NULL);
}
