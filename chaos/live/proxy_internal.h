/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PROXY_INTERNAL_H
#define LIVE_PROXY_INTERNAL_H

/* Between proxy.c, which listens and decides, and pair.c, which moves the bytes of one connection.
 */

#include "chaos/live/proxy.h"

enum { BATCH_MAX = 32 }; /* segments a write */

struct pair;

struct way {
    struct pair *pair;
    struct chain chain;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct segment *batch[BATCH_MAX];
    uint32_t batch_count; /* > 0: a write is under way */
    bool reading;
    bool ended; /* the sender has sent all */
    bool shut;  /* and the receiver knows */
};

struct pair {
    struct list link;
    struct proxy *proxy; /* NULL once closing */
    uv_tcp_t end[2];
    struct way way[2]; /* way[i] reads end[i] and writes end[1 - i] */
    uv_poll_t timer;
    int timer_fd;
    bool timed;        /* there is a timer */
    uint64_t timer_ns; /* when it fires; UINT64_MAX: not */
    uv_connect_t connect;
    uv_getaddrinfo_t resolve;
    uint32_t uses; /* handles not yet closed, and the resolver */
    bool connected;
};

/* With the proxy's toxics on both ways; nothing is connected yet. */
struct pair *pair_new(struct proxy *proxy);
/* end[0] has been accepted: dials the upstream, and moves bytes from then on. */
void pair_open(struct pair *pair);
/* Steps both chains and sees to all that follows. The pair may be closing afterwards. */
void pair_step(struct pair *pair);
/* The pair is out of its proxy at once; its memory goes when libuv lets go of its handles. */
void pair_close(struct pair *pair, bool reset);
/* Bytes that have been sent and will not be delivered if the pair closes now. */
uint64_t pair_undelivered(struct pair *pair);

#endif
