/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_EXCHANGE_H
#define NET_EXCHANGE_H

/* One request and its answer, as both HTTP versions see it, and the pool that recycles these and
 * the blocks of memory that input is read into: in steady state a request allocates nothing. A
 * block is counted: the connection holds it while it reads, each exchange while its request points
 * into it.
 *
 *     RECEIVING --whole--> HANDED --answered--> ANSWERED --its turn--> back to the pool
 *         \------ refused or connection lost -----^---------^
 */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/lifecycle.h"
#include "conflict/base/list.h"
#include "net/http.h"
#include "net/server.h"

struct h1;
struct h2_stream;

enum { BLOCK_BYTES = 16384, POOL_BLOCKS_MAX = 256, POOL_EXCHANGES_MAX = 1024 };

struct block {
    struct list link; /* in the pool's spare list */
    uint32_t refs;
    size_t cap, len;
    uint8_t at[];
};

struct pool {
    struct list blocks, exchanges;
    uint32_t block_count, exchange_count;
    uint64_t charged, charge_max; /* memory beyond one standard block a connection: large bodies */
    char date[HTTP_DATE_LEN + 1];
    uint64_t date_s;
};

void pool_init(struct pool *pool, uint64_t charge_max);
void pool_deinit(struct pool *pool);
void pool_set_time(struct pool *pool, uint64_t wall_ms);
/* NULL when it is beyond the standard size and the pool's budget does not allow it. */
struct block *pool_take_block(struct pool *pool, size_t cap);
struct block *block_ref(struct block *block);
/* Returns NULL. */
struct block *block_unref(struct pool *pool, struct block *block);
bool pool_charge(struct pool *pool, uint64_t bytes);
void pool_discharge(struct pool *pool, uint64_t bytes);

/* The connection as its protocol sees it; outlives the exchanges. The calls only enqueue: none of
 * them destroys the protocol's state before the calls into it have returned. */
struct http_host {
    const struct server_limits *limits;
    struct pool *pool;
    struct buf *out; /* answers go here, after wake */
    char peer[64];
    uint64_t number;    /* among all that the server has accepted, from 1 */
    uint64_t now_ms;    /* monotonic */
    uint32_t exchanges; /* alive */
    bool draining;      /* ask clients to close */
    void (*request)(struct http_host *host, struct exchange *exchange);
    void (*refuse)(struct http_host *host, int status, struct buf *body, const char **ret_type);
    bool (*grpc)(struct http_host *host, struct grpc_call *call, struct bytes path);
    /* Whether an answer of so many bytes may wait with all the others. NULL: always. */
    bool (*has_room)(struct http_host *host, size_t len);
    /* Output, or the wish to read, or the end of the connection, is to be looked at. */
    void (*wake)(struct http_host *host);
    void (*released)(struct http_host *host);
};

enum exchange_state { EXCHANGE_RECEIVING, EXCHANGE_HANDED, EXCHANGE_ANSWERED };

struct exchange {
    struct http_request request;
    struct list link; /* in its connection's pipeline, or the pool's spare list */
    struct lifecycle life;
    struct http_host *host;
    struct h1 *h1; /* one of these two; NULL when the connection or stream has gone */
    struct h2_stream *stream;
    void *user;
    struct head head;
    struct block *block; /* HTTP/1.1: what the request points into */
    struct buf body;     /* HTTP/2, or decompressed */
    uint64_t body_charged;
    struct buf answer;        /* HTTP/1.1: waits for its turn */
    size_t body_at, body_end; /* HTTP/1.1, while receiving: in the block */
    bool is_head, keep_alive, is_http10, wants_continue, head_done, body_begun;
};

struct exchange *exchange_take(struct http_host *host);
/* Back to the pool, when neither the user nor the protocol needs it. */
void exchange_release(struct exchange *exchange);
/* The connection is gone: releases it, or leaves that to the user's answer. */
void exchange_lose(struct exchange *exchange);
enum exchange_body {
    EXCHANGE_BODY_READY = 1,
    EXCHANGE_BODY_BROKEN,
    EXCHANGE_BODY_TOO_LONG,
    EXCHANGE_BODY_NO_ROOM
};
/* Undoes the content-encoding of request.body. One that we do not know is passed on untouched, for
 * AWS ignores it too (old SDKs say "amz-1.0"), and the reader of the body finds out. */
enum exchange_body exchange_decode_body(struct exchange *exchange);
/* The status with which to refuse such a body; 0 when it is ready. */
int exchange_body_status(enum exchange_body outcome);
/* Appends to the body, within the limits; HTTP/2. */
enum exchange_body exchange_append_body(struct exchange *exchange, struct bytes piece);

#endif
