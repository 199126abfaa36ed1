/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_WIRE_H
#define TESTS_NET_WIRE_H

/* Two HTTP/2 sessions joined by memory: a client's (net/h2 in its client role) and a server's on a
 * net_host. wire_run carries bytes, at most `step` at a time, until neither has anything to say. */

#include "net/grpc_internal.h"
#include "net/h2_server.h"
#include "tests/lib/net_host.h"

struct wire {
    struct net_host net;
    struct h2 server, client;
    struct buf to_server, to_client;
    uint64_t now_ms;
    size_t step;
    bool server_only; /* the test speaks for the client, in bytes */
};

static inline void wire_wake(struct h2 *h2)
{
    (void)h2;
}

static inline void wire_opened(struct h2 *h2, struct h2_stream *stream)
{
    h2_server_opened(&container_of(h2, struct wire, server)->net.host, stream);
}

static inline void wire_init(struct wire *wire)
{
    static const struct h2_owner server_owner = {wire_opened, NULL, wire_wake};
    static const struct h2_owner client_owner = {NULL, NULL, wire_wake};
    *wire = (struct wire){.now_ms = 1000, .step = 1 << 20};
    net_host_init(&wire->net);
    wire->net.host.now_ms = wire->now_ms;
    struct h2_config config;
    h2_server_config(&wire->net.limits, &config);
    h2_init(&wire->server, &server_owner, &config, wire->now_ms);
    config.server = false;
    h2_init(&wire->client, &client_owner, &config, wire->now_ms);
}

static inline void wire_deinit(struct wire *wire)
{
    h2_deinit(&wire->client);
    h2_deinit(&wire->server);
    net_host_deinit(&wire->net);
    buf_deinit(&wire->to_server);
    buf_deinit(&wire->to_client);
}

/* False when there was nothing to carry. */
static inline bool wire_carry(struct wire *wire, struct h2 *from, struct buf *bytes, struct h2 *to)
{
    h2_fill(from, bytes, 1 << 20);
    if (bytes->len == 0)
        return false;
    for (size_t at = 0; at < bytes->len;) {
        size_t len = bytes->len - at < wire->step ? bytes->len - at : wire->step;
        h2_receive(to, bytes_make(bytes->at + at, len), wire->now_ms);
        at += len;
    }
    buf_reset(bytes);
    return true;
}

static inline void wire_run(struct wire *wire)
{
    for (;;) {
        bool moved = wire_carry(wire, &wire->client, &wire->to_server, &wire->server);
        moved = wire_carry(wire, &wire->server, &wire->to_client, &wire->client) || moved;
        if (!moved)
            return;
    }
}

#endif
