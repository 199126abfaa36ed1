/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_CLIENT_INTERNAL_H
#define NET_CLIENT_INTERNAL_H

/* client.c holds the requests and their line, client_conn.c the connections that carry them. */

#include <http_parser.h>

#include "conflict/base/list.h"
#include "net/client.h"
#include "net/http.h"
#include "net/tcp.h"

struct client_conn;

struct client_request {
    struct list link; /* waiting, active or failed */
    struct client *client;
    struct client_conn *conn; /* while active */
    struct buf bytes;         /* the whole request: it may have to be sent twice */
    uint64_t deadline_ms;     /* UINT64_MAX: none */
    bool is_head, retried, once;
    bool sent, timed_out; /* see http_answer */
    const char *failure;
    void (*done)(void *context, const struct http_answer *answer);
    void *context;
};

struct client_conn {
    struct list link; /* in all */
    struct list idle;
    struct tcp tcp;
    struct client *client;
    struct http_parser parser;
    struct client_request *request; /* NULL while idle */
    struct head head;
    struct buf body;
    uint64_t connect_ms; /* deadline; UINT64_MAX once connected */
    bool in_value, head_done;
    bool used;  /* has answered before: it may have gone stale */
    bool heard; /* some of the answer has come */
    bool complete, keep_alive;
    const char *failure; /* found inside the parser's callbacks */
};

struct client {
    struct loop *loop;
    struct client_config config;
    struct sockaddr_storage address;
    struct list conns, idle, waiting, active, failed;
    uint32_t conn_count, waiting_count;
    struct loop_task report;
    uv_timer_t sweep;
    bool sweeping, closing;
    uint64_t swept_ms;
    uint32_t holds; /* the timer and the connections */
};

static inline uint64_t client_now_ms(const struct client *client)
{
    return client->loop->mono_ns / 1000000u;
}
/* The memory goes with the last hold. */
void client_release(struct client *client);
void client_request_free(struct client_request *request);
/* done is called at the end of the round. */
void client_request_fail(struct client_request *request, const char *failure);
/* Gives connections to those who wait, as far as they go. */
void client_serve_waiting(struct client *client);

/* A new connection, for this request. */
void client_conn_open(struct client *client, struct client_request *request);
/* The request goes out on an idle connection. */
void client_conn_carry(struct client_conn *conn, struct client_request *request);
void client_conn_close(struct client_conn *conn);

#endif
