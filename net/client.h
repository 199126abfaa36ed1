/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_CLIENT_H
#define NET_CLIENT_H

/* An HTTP/1.1 client on the loop: a small pool of kept-alive connections to one address. For the
 * front door (a request in, the same request out), the command line and the harness's own
 * workloads. */

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "net/server.h"

struct client;
struct client_request;

struct client_config {
    const char *address;       /* "127.0.0.1:8001"; copied */
    uint32_t connections_max;  /* 256; requests beyond them wait in line */
    uint32_t waiting_max;      /* 10000; beyond it a request fails at once */
    uint64_t connect_ms_max;   /* 2000 */
    uint64_t answer_bytes_max; /* 32 MiB */
};

struct http_answer {     /* borrowed for the callback */
    int status;          /* 0: no answer; `failure` says why */
    const char *failure; /* NULL on success */
    bool sent;           /* the other side may have seen some of the request */
    bool timed_out;      /* no answer within timeout_ms */
    struct http_header *headers;
    uint32_t header_count;
    struct bytes body; /* as sent: not decompressed */
};
struct bytes http_answer_header(const struct http_answer *answer, const char *name);

struct client *client_new(struct loop *loop, const struct client_config *config);
/* Fails what is under way, then goes. */
void client_free(struct client *client);

struct client_call {
    struct bytes method, path;
    const struct http_header
        *headers; /* content-length is added; Host must be among them or is the address */
    uint32_t header_count;
    struct bytes body;
    uint64_t timeout_ms; /* 0: none */
    bool once;           /* never sent again, as it must not be carried out twice */
};
/* Copies all it needs. done comes exactly once, never from within this call. A request that met a
 * kept-alive connection closed by the other side before any byte of an answer is sent again, once,
 * on a new one, unless it says `once`. */
struct client_request *client_send(struct client *client, const struct client_call *call,
                                   void (*done)(void *context, const struct http_answer *answer),
                                   void *context);
/* done is not called any more; the connection is closed. */
void client_cancel(struct client_request *request);

#endif
