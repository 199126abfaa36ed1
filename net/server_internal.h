/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_SERVER_INTERNAL_H
#define NET_SERVER_INTERNAL_H

/* What a server and its connections share. */

#include "net/conn.h"

struct server {
    struct loop *loop;
    struct server_limits limits;
    struct server_handler handler;
    struct server_stats stats;
    struct pool pool;
    SSL_CTX *tls; /* NULL: none */
    uv_tcp_t listener;
    uv_timer_t sweep;
    struct list conns;
    uint64_t answer_bytes; /* sum of the connections' noted_unsent */
    uint32_t holds;        /* handles of its own and connections: the memory goes with the last */
    uint16_t port;
    bool closing, sweeping;
    uint64_t sweep_step_ms, swept_ms;
    uint64_t drain_until_ms; /* UINT64_MAX: not draining */
    void (*drained)(void *context);
    void *drained_context;
};

void server_release(struct server *server);
void server_conn_added(struct server *server, struct conn *conn);
void server_conn_gone(struct server *server, struct conn *conn);
static inline uint64_t server_now_ms(const struct server *server)
{
    return server->loop->mono_ns / 1000000u;
}

#endif
