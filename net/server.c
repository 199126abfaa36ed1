/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket, the sweep over time limits, draining, and the public face of exchanges. The
 * sweep's step follows the shortest limit, and it runs only while there are connections, so an idle
 * process sleeps. */

#include "net/server.h"

#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/h2_server.h"
#include "net/server_internal.h"

enum { BACKLOG = 1024, SWEEP_MS_MIN = 5, SWEEP_MS_MAX = 500, SWEEP_LATE_MS = 100 };
enum { SMALL_ANSWER_BYTES = 16384 }; /* always has room: it costs no more than the request did */

struct server_limits server_limits_default(void)
{
    return (struct server_limits){
        .connections_max = 4096,
        .head_bytes_max = 32 << 10,
        .body_bytes_max = 16 << 20,
        .body_bytes_total_max = 256 << 20,
        .answer_bytes_total_max = 256 << 20,
        .streams_max = 256,
        .pipeline_max = 64,
        .output_bytes_max = 4 << 20,
        .idle_ms_max = 60000,
        .request_ms_max = 30000,
        .message_bytes_max = 4 << 20,
    };
}

struct bytes http_request_header(const struct http_request *request, const char *name)
{
    return head_find(request->headers, request->header_count, name);
}

/* ---- Life ---- */

void server_release(struct server *server)
{
    check(server->holds > 0);
    if (--server->holds > 0)
        return;
    check(list_empty(&server->conns));
    pool_deinit(&server->pool);
    if (server->tls)
        SSL_CTX_free(server->tls);
    free(server);
}

static void own_handle_closed(uv_handle_t *handle)
{
    server_release(handle->data);
}

static void stop_listening(struct server *server)
{
    if (!uv_is_closing((uv_handle_t *)&server->listener))
        uv_close((uv_handle_t *)&server->listener, own_handle_closed);
}

static void finish_drain(struct server *server)
{
    void (*drained)(void *context) = server->drained;
    server->drained = NULL;
    server->drain_until_ms = UINT64_MAX;
    if (drained)
        drained(server->drained_context);
}

static void close_conns(struct server *server)
{
    list_each(link, spare, &server->conns) conn_close(container_of(link, struct conn, link));
}

static void sweep(uv_timer_t *timer)
{
    struct server *server = timer->data;
    loop_refresh_time(server->loop);
    uint64_t now_ms = server_now_ms(server);
    bool late = now_ms - server->swept_ms > 2 * server->sweep_step_ms + SWEEP_LATE_MS;
    server->swept_ms = now_ms;
    if (late)
        return; /* we were paused: what clients sent meanwhile is read before they are judged */
    list_each(link, spare, &server->conns) conn_sweep(container_of(link, struct conn, link));
    if (server->drained && server_now_ms(server) >= server->drain_until_ms)
        close_conns(server);
    if (server->drained && list_empty(&server->conns))
        finish_drain(server);
}

static uint64_t sweep_ms(const struct server_limits *limits)
{
    uint64_t least =
        limits->idle_ms_max < limits->request_ms_max ? limits->idle_ms_max : limits->request_ms_max;
    uint64_t step = least / 8;
    if (step < SWEEP_MS_MIN)
        return SWEEP_MS_MIN;
    return step > SWEEP_MS_MAX ? SWEEP_MS_MAX : step;
}

static void start_sweep(struct server *server, uint64_t step_ms)
{
    server->sweeping = true;
    server->sweep_step_ms = step_ms;
    server->swept_ms = server_now_ms(server);
    uv_timer_start(&server->sweep, sweep, step_ms, step_ms);
}

void server_conn_added(struct server *server, struct conn *conn)
{
    server->holds++;
    server->stats.connections++;
    list_append(&server->conns, &conn->link);
    if (!server->sweeping)
        start_sweep(server, sweep_ms(&server->limits));
}

void server_conn_gone(struct server *server, struct conn *conn)
{
    list_remove(&conn->link);
    server->stats.connections--;
    if (!list_empty(&server->conns))
        return;
    if (server->sweeping && !server->closing) {
        server->sweeping = false;
        uv_timer_stop(&server->sweep);
    }
    if (server->drained)
        finish_drain(server);
}

static void connection_came(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    if (status < 0)
        return; /* the client has gone already, or descriptors are short: libuv sheds it */
    loop_refresh_time(server->loop);
    conn_accept(server, listener);
}

static bool start_listening(struct server *server, const char *address, char *error,
                            size_t error_len)
{
    struct sockaddr_storage where;
    if (!tcp_address(address, &where)) {
        snprintf(error, error_len, "%s is not an address like 127.0.0.1:8000", address);
        return false;
    }
    int status = uv_tcp_bind(&server->listener, (struct sockaddr *)&where, 0);
    if (status == 0)
        status = uv_listen((uv_stream_t *)&server->listener, BACKLOG, connection_came);
    int len = sizeof(where);
    if (status == 0)
        status = uv_tcp_getsockname(&server->listener, (struct sockaddr *)&where, &len);
    if (status < 0) {
        snprintf(error, error_len, "cannot listen on %s: %s", address, uv_strerror(status));
        return false;
    }
    server->port = where.ss_family == AF_INET6
                       ? ntohs(((struct sockaddr_in6 *)(void *)&where)->sin6_port)
                       : ntohs(((struct sockaddr_in *)(void *)&where)->sin_port);
    return true;
}

struct server *server_listen(struct loop *loop, const char *address,
                             const struct server_limits *limits, const struct server_tls *tls,
                             const struct server_handler *handler, char *error, size_t error_len)
{
    check(handler->request != NULL);
    check(limits->streams_max > 0);
    check(limits->pipeline_max > 0);
    SSL_CTX *context = NULL;
    if (tls && tls->certificate_file) {
        context = tls_context_new(tls->certificate_file, tls->key_file, error, error_len);
        if (!context)
            return NULL;
    }
    struct server *server = xcalloc(1, sizeof(*server));
    server->loop = loop;
    server->limits = *limits;
    server->handler = *handler;
    server->tls = context;
    server->drain_until_ms = UINT64_MAX;
    server->holds = 2;
    list_init(&server->conns);
    pool_init(&server->pool, limits->body_bytes_total_max);
    check(uv_tcp_init(&loop->uv, &server->listener) == 0);
    check(uv_timer_init(&loop->uv, &server->sweep) == 0);
    server->listener.data = server->sweep.data = server;
    if (!start_listening(server, address, error, error_len)) {
        server_close(server);
        return NULL;
    }
    return server;
}

uint16_t server_port(const struct server *server)
{
    return server->port;
}

struct server_stats server_stats(const struct server *server)
{
    return server->stats;
}

void server_drain(struct server *server, uint64_t drain_ms, void (*done)(void *context),
                  void *context)
{
    check(!server->closing);
    stop_listening(server);
    server->drained = done;
    server->drained_context = context;
    server->drain_until_ms = server_now_ms(server) + drain_ms;
    list_each(link, spare, &server->conns) conn_drain(container_of(link, struct conn, link));
    /* Also when there is nothing to wait for, done comes later, not from within this call. */
    uint64_t step_ms = drain_ms / 8;
    start_sweep(server, step_ms < SWEEP_MS_MIN   ? SWEEP_MS_MIN
                        : step_ms > SWEEP_MS_MAX ? SWEEP_MS_MAX
                                                 : step_ms);
}

void server_close(struct server *server)
{
    if (server->closing)
        return;
    server->closing = true;
    server->drained = NULL;
    stop_listening(server);
    uv_close((uv_handle_t *)&server->sweep, own_handle_closed);
    close_conns(server);
}

/* ---- Exchanges ---- */

const struct http_request *exchange_request(const struct exchange *exchange)
{
    return &exchange->request;
}

void exchange_set_user(struct exchange *exchange, void *user)
{
    exchange->user = user;
}

void *exchange_user(const struct exchange *exchange)
{
    return exchange->user;
}

const char *exchange_peer(const struct exchange *exchange)
{
    return exchange->host->peer;
}

uint64_t exchange_connection(const struct exchange *exchange)
{
    return exchange->host->number;
}

bool exchange_gone(const struct exchange *exchange)
{
    if (!exchange->h1 && !exchange->stream)
        return true;
    const struct conn *conn = container_of(exchange->host, const struct conn, host);
    return conn->life.state == CONN_CLOSED;
}

static void respond(struct exchange *exchange, int status, const struct http_header *headers,
                    uint32_t header_count, struct bytes body)
{
    if (exchange->h1)
        h1_respond(exchange, status, headers, header_count, body);
    else
        h2_respond(exchange, status, headers, header_count, body);
}

/* Requests are small and answers may be large, and those who ask need not read: what waits for
 * them all is bounded here, as no limit of one connection can. */
static void refuse_answer(struct exchange *exchange)
{
    struct http_host *host = exchange->host;
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    const char *type = NULL;
    host->refuse(host, 503, &body, &type);
    struct http_header header = {bytes_literal("content-type"),
                                 type ? bytes_text(type) : BYTES_NONE};
    respond(exchange, 503, &header, type ? 1 : 0, buf_view(&body));
}

void exchange_respond(struct exchange *exchange, int status, const struct http_header *headers,
                      uint32_t header_count, struct bytes body)
{
    check(exchange->life.state == EXCHANGE_HANDED);
    if (!exchange->h1 && !exchange->stream) { /* nobody is there to hear it */
        lifecycle_move(&exchange->life, EXCHANGE_ANSWERED);
        exchange_release(exchange);
        return;
    }
    struct http_host *host = exchange->host;
    if (body.len > SMALL_ANSWER_BYTES && host->has_room && !host->has_room(host, body.len))
        refuse_answer(exchange);
    else
        respond(exchange, status, headers, header_count, body);
}

void exchange_abort(struct exchange *exchange)
{
    check(exchange->life.state == EXCHANGE_HANDED);
    if (exchange->h1) {
        h1_abort(exchange);
    } else if (exchange->stream) {
        h2_abort(exchange);
    } else {
        lifecycle_move(&exchange->life, EXCHANGE_ANSWERED);
        exchange_release(exchange);
    }
}
