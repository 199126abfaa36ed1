/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_RAW_H
#define TESTS_NET_RAW_H

/* A client that sends what it is told and keeps what it gets, on the same loop as the server under
 * test, and waiting for a condition instead of for time. */

#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/tcp.h"

struct raw {
    struct tcp tcp;
    struct buf in;
    bool connected, ended, gone;
};

static inline uint8_t *raw_space(struct tcp *tcp, size_t *ret_len)
{
    *ret_len = LOOP_SCRATCH_BYTES;
    return tcp->loop->scratch;
}
static inline void raw_received(struct tcp *tcp, size_t len)
{
    buf_append(&container_of(tcp, struct raw, tcp)->in, tcp->loop->scratch, len);
}
static inline void raw_nothing(struct tcp *tcp)
{
    (void)tcp;
}
static inline void raw_ended(struct tcp *tcp)
{
    container_of(tcp, struct raw, tcp)->ended = true;
}
static inline void raw_failed(struct tcp *tcp, const char *reason)
{
    (void)reason;
    container_of(tcp, struct raw, tcp)->ended = true;
}
static inline void raw_connected(struct tcp *tcp)
{
    container_of(tcp, struct raw, tcp)->connected = true;
}
static inline void raw_gone(struct tcp *tcp)
{
    container_of(tcp, struct raw, tcp)->gone = true;
}

/* Runs the loop until the condition holds; ten seconds mean that it never will. */
#define raw_until(loop, condition)                                                                 \
    do {                                                                                           \
        loop_update_time(loop);                                                                    \
        uint64_t raw_limit_ns = (loop)->mono_ns + 10000000000u;                                    \
        while (!(condition)) {                                                                     \
            uv_run(&(loop)->uv, UV_RUN_ONCE);                                                      \
            if ((loop)->mono_ns > raw_limit_ns)                                                    \
                fail_msg("never: %s", #condition);                                                 \
        }                                                                                          \
    } while (0)

static inline struct raw *raw_open(struct loop *loop, uint16_t port)
{
    static const struct tcp_owner owner = {
        .space = raw_space,
        .received = raw_received,
        .fill = raw_nothing,
        .flushed = raw_nothing,
        .ended = raw_ended,
        .failed = raw_failed,
        .connected = raw_connected,
        .gone = raw_gone,
    };
    char address[32];
    struct sockaddr_storage where;
    struct raw *raw = xcalloc(1, sizeof(*raw));
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    check(tcp_address(address, &where));
    tcp_init(&raw->tcp, loop, &owner);
    tcp_connect(&raw->tcp, (struct sockaddr *)&where);
    while (!raw->connected && !raw->ended)
        uv_run(&loop->uv, UV_RUN_ONCE);
    return raw;
}

static inline void raw_send_bytes(struct raw *raw, struct bytes bytes)
{
    tcp_wake(&raw->tcp);
    buf_append_bytes(&raw->tcp.out, bytes);
}
static inline void raw_send(struct raw *raw, const char *text)
{
    raw_send_bytes(raw, bytes_text(text));
}

static inline const char *raw_text(struct raw *raw)
{
    buf_append_u8(&raw->in, 0);
    raw->in.len--;
    return (const char *)raw->in.at;
}
static inline bool raw_has(struct raw *raw, const char *text)
{
    return strstr(raw_text(raw), text) != NULL;
}

static inline void raw_close(struct raw *raw)
{
    struct loop *loop = raw->tcp.loop;
    tcp_close(&raw->tcp);
    while (!raw->gone)
        uv_run(&loop->uv, UV_RUN_ONCE);
    buf_deinit(&raw->in);
    free(raw);
}

#endif
