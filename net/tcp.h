/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TCP_H
#define NET_TCP_H

/* A TCP socket on the loop, used by both sides. Input goes where the owner wants it, output gathers
 * in one buffer and leaves in one write at the end of the round; what the kernel does not take
 * waits in a second buffer. tcp_close is final and quiet: the owner hears `gone` once libuv has let
 * go. */

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "conflict/base/bytes.h"
#include "net/loop.h"

struct tcp;

struct tcp_owner {
    /* Where the next bytes go, and how many fit; at least one. */
    uint8_t *(*space)(struct tcp *tcp, size_t *ret_len);
    void (*received)(struct tcp *tcp, size_t len);
    /* Asked at the end of a round, after tcp_wake: append to tcp->out what there is to send, not
     * much more than TCP_FILL_BYTES at a time. */
    void (*fill)(struct tcp *tcp);
    /* All of the round's output has been offered: time to reconsider tcp_read. */
    void (*flushed)(struct tcp *tcp);
    /* The other side will send no more. */
    void (*ended)(struct tcp *tcp);
    /* The connection is broken; close it. */
    void (*failed)(struct tcp *tcp, const char *reason);
    /* The answer to tcp_connect. */
    void (*connected)(struct tcp *tcp);
    void (*gone)(struct tcp *tcp);
};

enum { TCP_FILL_BYTES = 131072 };

struct tcp {
    uv_tcp_t handle;
    struct loop *loop;
    const struct tcp_owner *owner;
    struct loop_task flush;
    struct buf out;     /* what the owner has produced */
    struct buf writing; /* what libuv is writing */
    uv_write_t write;
    uv_shutdown_t shutdown;
    uv_connect_t connect;
    bool write_busy, reading, finishing, shut, closing;
    uint64_t progress_ms; /* uv_now of the last byte that left, or of the first that could not */
};

void tcp_init(struct tcp *tcp, struct loop *loop, const struct tcp_owner *owner);
/* Answered by `connected` or `failed`. */
void tcp_connect(struct tcp *tcp, const struct sockaddr *address);
/* After accept or connect: no delay, and reading begins. */
void tcp_start(struct tcp *tcp);
void tcp_read(struct tcp *tcp, bool on);
/* There is output, or something else to reconsider, at the end of this round. */
void tcp_wake(struct tcp *tcp);
/* Sends what is queued, then says that no more comes; reading goes on. */
void tcp_finish(struct tcp *tcp);
void tcp_close(struct tcp *tcp);
/* Bytes that the kernel has not taken. */
static inline size_t tcp_queued(const struct tcp *tcp)
{
    return tcp->out.len + (tcp->write_busy ? tcp->handle.write_queue_size : 0);
}

/* "127.0.0.1:80", "[::1]:80", "localhost:80". Names are looked up at once, so they should be local.
 */
bool tcp_address(const char *text, struct sockaddr_storage *ret_address);
/* "127.0.0.1:51234" */
void tcp_address_text(const struct sockaddr *address, char *text, size_t text_len);

#endif
