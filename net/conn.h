/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_CONN_H
#define NET_CONN_H

/* One accepted connection: it stacks the socket, TLS if the port has it, and the HTTP version that
 * ALPN or the first bytes ask for, and owns all three. Its time limits are looked at by the
 * server's sweep.
 *
 *     HANDSHAKE --> SNIFF --> HTTP1 ----> LINGER --> CLOSED
 *                     \-----> HTTP2 ------^            ^
 *     (from any state, when the socket breaks or time runs out) ---/
 */

#include "net/exchange.h"
#include "net/h1.h"
#include "net/h2.h"
#include "net/tcp.h"
#include "net/tls.h"

enum conn_state { CONN_HANDSHAKE, CONN_SNIFF, CONN_HTTP1, CONN_HTTP2, CONN_LINGER, CONN_CLOSED };

struct conn {
    struct list link; /* in the server's list, until it is gone */
    struct server *server;
    struct tcp tcp;
    struct lifecycle life;
    struct http_host host;
    bool has_tls, gone;    /* gone: libuv has let go, only exchanges keep it */
    bool ended;            /* the client will send no more */
    uint64_t noted_unsent; /* its share of the server's answer_bytes */
    struct tls tls;
    struct buf plain;  /* under TLS: output before encryption */
    struct h1 h1;      /* until HTTP2 */
    struct h2 h2;      /* in HTTP2 */
    uint64_t state_ms; /* since when it has been in this state */
    uint64_t
        pinged_ms; /* HTTP/2: when it was asked for a sign of life; 0: not since it last gave one */
};

/* Takes a connection off the listening socket. */
void conn_accept(struct server *server, uv_stream_t *listener);
void conn_close(struct conn *conn);
/* Makes the clock of the round the one that its protocols see. */
void conn_update_time(struct conn *conn);
void conn_sweep(struct conn *conn);
void conn_drain(struct conn *conn);

#endif
