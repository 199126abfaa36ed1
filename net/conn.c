/* SPDX-License-Identifier: Apache-2.0 */
/* See conn.h. Input goes up through the layers as it comes; output is pulled down by the socket at
 * the end of the round. Closing is two-step: conn_close stops the socket at once, and what the
 * protocols hold is freed when libuv lets go, which is never inside one of their callbacks. */

#include "net/conn.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/grpc_internal.h"
#include "net/h2_server.h"
#include "net/server_internal.h"

enum { PREFACE_LEN = 24, H2_ROOM_BYTES = 131072 };

static const struct lifecycle_state conn_states[] = {
    [CONN_HANDSHAKE] = {"handshake", lifecycle_bit(CONN_SNIFF) | lifecycle_bit(CONN_HTTP2) |
                                         lifecycle_bit(CONN_LINGER) | lifecycle_bit(CONN_CLOSED)},
    [CONN_SNIFF] = {"sniff", lifecycle_bit(CONN_HTTP1) | lifecycle_bit(CONN_HTTP2) |
                                 lifecycle_bit(CONN_CLOSED)},
    [CONN_HTTP1] = {"http1", lifecycle_bit(CONN_LINGER) | lifecycle_bit(CONN_CLOSED)},
    [CONN_HTTP2] = {"http2", lifecycle_bit(CONN_LINGER) | lifecycle_bit(CONN_CLOSED)},
    [CONN_LINGER] = {"linger", lifecycle_bit(CONN_CLOSED)},
    [CONN_CLOSED] = {"closed", 0},
};
static const struct lifecycle_table conn_table = {"conn", conn_states, array_len(conn_states)};

static struct conn *conn_of_tcp(struct tcp *tcp)
{
    return container_of(tcp, struct conn, tcp);
}
static struct conn *conn_of_host(struct http_host *host)
{
    return container_of(host, struct conn, host);
}
static struct conn *conn_of_h2(struct h2 *h2)
{
    return container_of(h2, struct conn, h2);
}

static void conn_move(struct conn *conn, enum conn_state to)
{
    lifecycle_move(&conn->life, to);
    conn->state_ms = conn->host.now_ms;
}

void conn_update_time(struct conn *conn)
{
    conn->host.now_ms = server_now_ms(conn->server);
    pool_set_time(&conn->server->pool, conn->server->loop->wall_ms);
}

void conn_close(struct conn *conn)
{
    if (conn->life.state == CONN_CLOSED)
        return;
    conn_move(conn, CONN_CLOSED);
    tcp_close(&conn->tcp);
}

/* ---- HTTP/2 ---- */

static void h2_opened(struct h2 *h2, struct h2_stream *stream)
{
    h2_server_opened(&conn_of_h2(h2)->host, stream);
}

static void h2_wake(struct h2 *h2)
{
    tcp_wake(&conn_of_h2(h2)->tcp);
}

static const struct h2_owner h2_owner = {h2_opened, NULL, h2_wake};

static void become_http2(struct conn *conn)
{
    struct h2_config config;
    h2_server_config(&conn->server->limits, &config);
    conn_move(conn, CONN_HTTP2);
    h2_init(&conn->h2, &h2_owner, &config, conn->host.now_ms);
    if (conn->host.draining)
        h2_drain(&conn->h2);
}

/* ---- Input ---- */

/* The first bytes tell: no HTTP/1.1 method is "PRI". */
static void sniff(struct conn *conn)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct bytes first = h1_pending(&conn->h1);
    size_t len = first.len < PREFACE_LEN ? first.len : PREFACE_LEN;
    if (len == 0)
        return;
    if (memcmp(first.at, preface, len) != 0) {
        conn_move(conn, CONN_HTTP1);
        return;
    }
    if (len < PREFACE_LEN)
        return; /* so far it could be either: wait for more */
    become_http2(conn);
    h2_receive(&conn->h2, first, conn->host.now_ms);
    h1_drop_pending(&conn->h1);
}

/* `len` bytes of HTTP have been put into h1's space. */
static void take_into_h1(struct conn *conn, size_t len)
{
    if (conn->life.state == CONN_SNIFF) {
        h1_received(&conn->h1, len, false);
        sniff(conn);
        if (conn->life.state == CONN_HTTP1)
            h1_received(&conn->h1, 0, true);
    } else if (conn->life.state == CONN_HTTP1) {
        h1_received(&conn->h1, len, true);
    }
}

static bool reads_into_h1(const struct conn *conn)
{
    return (conn->life.state == CONN_SNIFF || conn->life.state == CONN_HTTP1) && !conn->h1.deaf;
}

/* Decrypts into whatever reads now. False when the session is over. */
static bool pump_tls(struct conn *conn)
{
    uint8_t plain[16384];
    for (;;) {
        if (conn->life.state == CONN_HTTP1 && !conn->h1.deaf && !h1_wants_input(&conn->h1))
            return true; /* stays encrypted until there is room in the line */
        size_t room = sizeof(plain), len = 0;
        bool into_h1 = reads_into_h1(conn);
        uint8_t *at = into_h1 ? h1_space(&conn->h1, &room) : plain;
        if (!at)
            continue; /* refused: deaf from now on */
        enum tls_outcome outcome = tls_read(&conn->tls, at, room, &len);
        if (outcome != TLS_OPEN)
            return false;
        if (len == 0)
            return true;
        if (into_h1)
            take_into_h1(conn, len);
        else if (conn->life.state == CONN_HTTP2)
            h2_receive(&conn->h2, bytes_make(plain, len), conn->host.now_ms);
        if (conn->life.state == CONN_CLOSED)
            return true;
    }
}

static void client_ended(struct conn *conn)
{
    conn->ended = true;
    switch ((enum conn_state)conn->life.state) {
    case CONN_HTTP1:
        h1_ended(&conn->h1); /* half-closed: answers that are due still go out */
        break;
    case CONN_HANDSHAKE:
    case CONN_SNIFF:
    case CONN_HTTP2:
    case CONN_LINGER:
        conn_close(conn);
        break;
    case CONN_CLOSED:
        break;
    }
}

static void received_tls(struct conn *conn, struct bytes ciphertext)
{
    tls_received(&conn->tls, ciphertext);
    tcp_wake(&conn->tcp); /* handshakes and alerts answer by themselves */
    if (conn->life.state == CONN_HANDSHAKE) {
        switch (tls_handshake(&conn->tls)) {
        case TLS_OPEN:
            if (tls_chose_h2(&conn->tls))
                become_http2(conn);
            else
                conn_move(conn, CONN_SNIFF);
            break;
        case TLS_HANDSHAKING:
            return;
        case TLS_ENDED:
        case TLS_BROKEN:
            conn_move(conn, CONN_LINGER); /* for the alert that says why */
            tcp_finish(&conn->tcp);
            return;
        }
    }
    if (!pump_tls(conn))
        client_ended(conn);
}

static uint8_t *conn_space(struct tcp *tcp, size_t *ret_len)
{
    struct conn *conn = conn_of_tcp(tcp);
    conn_update_time(conn);
    uint8_t *at = NULL;
    if (!conn->has_tls && reads_into_h1(conn))
        at = h1_space(&conn->h1, ret_len);
    if (!at) {
        at = tcp->loop->scratch;
        *ret_len = LOOP_SCRATCH_BYTES;
    }
    return at;
}

static void conn_received(struct tcp *tcp, size_t len)
{
    struct conn *conn = conn_of_tcp(tcp);
    struct bytes input = bytes_make(tcp->loop->scratch, len);
    conn->pinged_ms = 0;
    conn_update_time(conn);
    if (conn->life.state == CONN_CLOSED || conn->life.state == CONN_LINGER)
        return;
    if (conn->has_tls)
        received_tls(conn, input);
    else if (conn->life.state == CONN_HTTP2)
        h2_receive(&conn->h2, input, conn->host.now_ms);
    else
        take_into_h1(conn, len);
    /* What a request line costs is bounded: a full line stops reading before the next bytes come.
     */
    if (conn->life.state == CONN_HTTP1 && !h1_wants_input(&conn->h1))
        tcp_read(tcp, false);
}

/* ---- Output ---- */

static uint64_t unsent_bytes(const struct conn *conn)
{
    uint64_t bytes = tcp_queued(&conn->tcp) + conn->plain.len;
    if (conn->life.state == CONN_HTTP1)
        bytes += conn->h1.held_bytes;
    /* Not what waits in HTTP/2 streams: the window that lets it go must be read. */
    return bytes;
}

static void note_unsent(struct conn *conn, uint64_t bytes)
{
    struct server *server = conn->server;
    check(server->answer_bytes >= conn->noted_unsent);
    server->answer_bytes += bytes - conn->noted_unsent;
    conn->noted_unsent = bytes;
}

static uint64_t answer_bytes(const struct conn *conn)
{
    return unsent_bytes(conn) + (conn->life.state == CONN_HTTP2 ? conn->h2.queued : 0);
}

static void conn_fill(struct tcp *tcp)
{
    struct conn *conn = conn_of_tcp(tcp);
    if (conn->life.state == CONN_HTTP2)
        h2_fill(&conn->h2, conn->host.out, H2_ROOM_BYTES);
    if (!conn->has_tls)
        return;
    if (conn->plain.len && !tls_write(&conn->tls, buf_view(&conn->plain))) {
        conn_close(conn);
        return;
    }
    buf_reset(&conn->plain);
    loop_give_buf(tcp->loop, &conn->plain);
    tls_drain(&conn->tls, &tcp->out);
}

static void linger(struct conn *conn)
{
    if (conn->life.state == CONN_HTTP2)
        h2_lose(&conn->h2, "the connection was closed");
    bool was_http2 = conn->life.state == CONN_HTTP2;
    conn_move(conn, CONN_LINGER);
    if (was_http2)
        h2_deinit(&conn->h2);
    if (conn->has_tls) {
        tls_finish(&conn->tls);
        tls_drain(&conn->tls, &conn->tcp.out);
    }
    tcp_finish(&conn->tcp);
    if (conn->ended)
        conn_close(conn);
    else
        tcp_read(&conn->tcp, true);
}

/* The end of a round: decides whether to go on reading, and whether this is the end. */
static void conn_flushed(struct tcp *tcp)
{
    struct conn *conn = conn_of_tcp(tcp);
    const struct server_limits *limits = &conn->server->limits;
    bool sent = tcp_queued(tcp) == 0;
    bool reads = unsent_bytes(conn) <= limits->output_bytes_max;
    note_unsent(conn, answer_bytes(conn));
    conn_update_time(conn);
    if (conn->life.state == CONN_HTTP1) {
        if (conn->h1.broken) {
            conn_close(conn);
            return;
        }
        if (conn->h1.paused && reads) {
            h1_resume(&conn->h1);
            if (conn->has_tls && h1_wants_input(&conn->h1) && !pump_tls(conn))
                client_ended(conn);
            tcp->loop->again = true;
        }
        if (conn->h1.finished && sent) {
            linger(conn);
            return;
        }
        reads = reads && h1_wants_input(&conn->h1);
    } else if (conn->life.state == CONN_HTTP2) {
        if (h2_is_over(&conn->h2) && sent) {
            linger(conn);
            return;
        }
        reads = reads && conn->host.exchanges <= 2 * limits->streams_max;
        if (conn->host.draining && conn->h2.stream_count == 0 && sent)
            conn_close(conn);
    } else if (conn->life.state == CONN_CLOSED) {
        return;
    }
    if (!conn->ended)
        tcp_read(tcp, reads);
}

static void conn_ended(struct tcp *tcp)
{
    struct conn *conn = conn_of_tcp(tcp);
    conn_update_time(conn);
    client_ended(conn);
}

static void conn_failed(struct tcp *tcp, const char *reason)
{
    (void)reason;
    conn_close(conn_of_tcp(tcp));
}

static void conn_free(struct conn *conn)
{
    struct server *server = conn->server;
    free(conn);
    server_release(server);
}

static void conn_gone(struct tcp *tcp)
{
    struct conn *conn = conn_of_tcp(tcp);
    conn->host.exchanges++; /* keeps it alive through what follows */
    if (conn->h2.session)
        h2_deinit(&conn->h2);
    h1_deinit(&conn->h1);
    if (conn->has_tls)
        tls_deinit(&conn->tls);
    buf_deinit(&conn->plain);
    note_unsent(conn, 0);
    server_conn_gone(conn->server, conn);
    conn->gone = true;
    if (--conn->host.exchanges == 0)
        conn_free(conn);
}

static const struct tcp_owner conn_owner = {
    .space = conn_space,
    .received = conn_received,
    .fill = conn_fill,
    .flushed = conn_flushed,
    .ended = conn_ended,
    .failed = conn_failed,
    .gone = conn_gone,
};

/* ---- What the protocols ask of their host ---- */

static void host_request(struct http_host *host, struct exchange *exchange)
{
    struct server *server = conn_of_host(host)->server;
    server->stats.requests++;
    server->handler.request(server->handler.context, exchange);
}

static void host_refuse(struct http_host *host, int status, struct buf *body, const char **ret_type)
{
    struct server *server = conn_of_host(host)->server;
    server->stats.refused++;
    if (server->handler.refuse)
        server->handler.refuse(server->handler.context, status, body, ret_type);
}

static bool host_grpc(struct http_host *host, struct grpc_call *call, struct bytes path)
{
    struct server *server = conn_of_host(host)->server;
    return server->handler.grpc(server->handler.context, call, path);
}

static bool host_has_room(struct http_host *host, size_t len)
{
    struct conn *conn = conn_of_host(host);
    const struct server *server = conn->server;
    uint64_t own = answer_bytes(conn);
    note_unsent(conn, own);
    if (server->answer_bytes + len > server->limits.answer_bytes_total_max)
        return false;
    note_unsent(conn, own + len); /* others may be answered before this one is seen to wait */
    return true;
}

static void host_wake(struct http_host *host)
{
    struct conn *conn = conn_of_host(host);
    conn_update_time(conn);
    if (conn->life.state != CONN_CLOSED)
        tcp_wake(&conn->tcp);
}

static void host_released(struct http_host *host)
{
    struct conn *conn = conn_of_host(host);
    if (conn->gone && host->exchanges == 0)
        conn_free(conn);
    else if (conn->life.state == CONN_HTTP2 && !conn->tcp.reading)
        tcp_wake(&conn->tcp); /* too many exchanges may have been what stopped reading */
}

/* ---- Life ---- */

void conn_accept(struct server *server, uv_stream_t *listener)
{
    struct conn *conn = xcalloc(1, sizeof(*conn));
    conn->server = server;
    list_init(&conn->link);
    lifecycle_init(&conn->life, &conn_table, NULL);
    conn->host = (struct http_host){
        .limits = &server->limits,
        .pool = &server->pool,
        .request = host_request,
        .refuse = host_refuse,
        .grpc = server->handler.grpc ? host_grpc : NULL,
        .has_room = host_has_room,
        .wake = host_wake,
        .released = host_released,
    };
    conn_update_time(conn);
    conn->state_ms = conn->host.now_ms;
    tcp_init(&conn->tcp, server->loop, &conn_owner);
    h1_init(&conn->h1, &conn->host);
    conn->has_tls = server->tls != NULL;
    conn->host.out = conn->has_tls ? &conn->plain : &conn->tcp.out;
    if (conn->has_tls)
        tls_init(&conn->tls, server->tls);
    else
        conn_move(conn, CONN_SNIFF);
    server_conn_added(server, conn);
    if (uv_accept(listener, (uv_stream_t *)&conn->tcp.handle) < 0 ||
        server->stats.connections > server->limits.connections_max) {
        server->stats.refused++;
        conn_close(conn);
        return;
    }
    struct sockaddr_storage peer = {0};
    int len = sizeof(peer);
    uv_tcp_getpeername(&conn->tcp.handle, (struct sockaddr *)&peer, &len);
    tcp_address_text((struct sockaddr *)&peer, conn->host.peer, sizeof(conn->host.peer));
    conn->host.number = ++server->stats.accepted;
    tcp_start(&conn->tcp);
}
