/* SPDX-License-Identifier: Apache-2.0 */
/* What time does to a connection: the limits on silence, slowness and unread answers, and draining.
 * The server's sweep comes by a few times within the shortest limit. */

#include "net/conn.h"
#include "net/h2_server.h"
#include "net/server_internal.h"

enum { LINGER_MS_MAX = 2000 };

static void time_out(struct conn *conn)
{
    conn->server->stats.timeouts++;
    conn_close(conn);
}

static void sweep_http1(struct conn *conn)
{
    const struct server_limits *limits = &conn->server->limits;
    struct h1 *h1 = &conn->h1;
    uint64_t age_ms = conn->host.now_ms - h1->since_ms;
    if (h1->receiving && age_ms > limits->request_ms_max) {
        conn->server->stats.timeouts++;
        h1_refuse(h1, 408);
    } else if (h1_is_idle(h1) && age_ms > limits->idle_ms_max) {
        time_out(conn);
    }
}

/* A connection with calls open may be silent for as long as it likes, if only it answers a ping. */
static void sweep_http2(struct conn *conn)
{
    const struct server_limits *limits = &conn->server->limits;
    struct h2 *h2 = &conn->h2;
    h2->now_ms = conn->host.now_ms;
    conn->server->stats.timeouts += h2_server_sweep(&conn->host, h2);
    if (h2->stream_count == 0) {
        if (conn->host.now_ms - h2->idle_since_ms > limits->idle_ms_max) {
            conn->server->stats.timeouts++;
            h2_terminate(h2, NGHTTP2_NO_ERROR);
        }
    } else if (conn->pinged_ms && conn->host.now_ms - conn->pinged_ms > limits->idle_ms_max) {
        time_out(conn);
    } else if (!conn->pinged_ms && conn->tcp.reading &&
               conn->host.now_ms - h2->heard_ms > limits->idle_ms_max) {
        conn->pinged_ms = conn->host.now_ms;
        h2_ping(h2);
    }
}

void conn_sweep(struct conn *conn)
{
    const struct server_limits *limits = &conn->server->limits;
    conn_update_time(conn);
    uint64_t age_ms = conn->host.now_ms - conn->state_ms;
    if (tcp_queued(&conn->tcp) &&
        uv_now(&conn->server->loop->uv) - conn->tcp.progress_ms > limits->idle_ms_max) {
        time_out(conn); /* a client that does not read its answers */
        return;
    }
    switch ((enum conn_state)conn->life.state) {
    case CONN_HANDSHAKE:
        if (age_ms > limits->request_ms_max)
            time_out(conn);
        break;
    case CONN_SNIFF:
        if (age_ms > limits->idle_ms_max)
            time_out(conn);
        break;
    case CONN_HTTP1:
        sweep_http1(conn);
        break;
    case CONN_HTTP2:
        sweep_http2(conn);
        break;
    case CONN_LINGER:
        if (age_ms > LINGER_MS_MAX)
            conn_close(conn);
        break;
    case CONN_CLOSED:
        break;
    }
}

void conn_drain(struct conn *conn)
{
    conn->host.draining = true;
    switch ((enum conn_state)conn->life.state) {
    case CONN_HANDSHAKE:
    case CONN_SNIFF:
        conn_close(conn);
        break;
    case CONN_HTTP1:
        /* A client that keeps its connection for later may not look at it for minutes: with all
         * answers gone there is nothing to linger for. */
        if (h1_idle(&conn->h1) && tcp_queued(&conn->tcp) == 0)
            conn_close(conn);
        else
            h1_drain(&conn->h1);
        break;
    case CONN_HTTP2:
        h2_drain(&conn->h2);
        break;
    case CONN_LINGER:
    case CONN_CLOSED:
        break;
    }
}
