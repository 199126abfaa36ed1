/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_HOST_H
#define TESTS_NET_HOST_H

/* A connection without a socket: what the protocols ask of their host is written down in a log, one
 * line a request, and answered at once with the request's body, or held for the test to answer. */

#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/exchange.h"

enum { NET_HOST_HELD_MAX = 4096 };

struct net_host {
    struct http_host host;
    struct pool pool;
    struct server_limits limits;
    struct buf out, log;
    bool hold;
    struct exchange *held[NET_HOST_HELD_MAX];
    uint32_t held_count;
    uint32_t requests, wakes;
};

static inline void net_host_answer(struct exchange *exchange)
{
    const struct http_request *request = exchange_request(exchange);
    exchange_respond(exchange, 200, NULL, 0, request->body);
}

static inline void net_host_request(struct http_host *host, struct exchange *exchange)
{
    struct net_host *net = container_of(host, struct net_host, host);
    const struct http_request *request = exchange_request(exchange);
    net->requests++;
    buf_append_bytes(&net->log, request->method);
    buf_append_u8(&net->log, ' ');
    buf_append_bytes(&net->log, request->path);
    buf_append_u8(&net->log, ' ');
    buf_append_bytes(&net->log, request->host);
    for (uint32_t i = 0; i < request->header_count; i++) {
        if (request->headers[i].name.len < 2 || memcmp(request->headers[i].name.at, "x-", 2) != 0)
            continue;
        buf_append_u8(&net->log, ' ');
        buf_append_bytes(&net->log, request->headers[i].name);
        buf_append_u8(&net->log, '=');
        buf_append_bytes(&net->log, request->headers[i].value);
    }
    buf_append_text(&net->log, " [");
    buf_append_bytes(&net->log, request->body);
    buf_append_text(&net->log, "]\n");
    if (!net->hold) {
        net_host_answer(exchange);
        return;
    }
    check(net->held_count < NET_HOST_HELD_MAX);
    net->held[net->held_count++] = exchange;
}

static inline void net_host_refuse(struct http_host *host, int status, struct buf *body,
                                   const char **ret_type)
{
    struct net_host *net = container_of(host, struct net_host, host);
    buf_printf(&net->log, "refused %d\n", status);
    buf_printf(body, "no: %d", status);
    *ret_type = "text/plain";
}

static inline void net_host_wake(struct http_host *host)
{
    container_of(host, struct net_host, host)->wakes++;
}

static inline void net_host_released(struct http_host *host)
{
    (void)host;
}

static inline void net_host_init(struct net_host *net)
{
    *net = (struct net_host){.limits = server_limits_default()};
    pool_init(&net->pool, net->limits.body_bytes_total_max);
    net->host = (struct http_host){.limits = &net->limits,
                                   .pool = &net->pool,
                                   .out = &net->out,
                                   .peer = "test",
                                   .request = net_host_request,
                                   .refuse = net_host_refuse,
                                   .wake = net_host_wake,
                                   .released = net_host_released};
}

static inline void net_host_deinit(struct net_host *net)
{
    check(net->host.exchanges == 0);
    pool_deinit(&net->pool);
    buf_deinit(&net->out);
    buf_deinit(&net->log);
}

/* exchange_gone looks into a struct conn, which is not here; the others work. */

#endif
