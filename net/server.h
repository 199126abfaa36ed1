/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_SERVER_H
#define NET_SERVER_H

/* An HTTP server on one TCP port: HTTP/1.1 (keep-alive, pipelining, chunked and fixed bodies,
 * Expect: 100-continue, gzip and deflate request bodies) and HTTP/2 (prior knowledge; by ALPN under
 * TLS), and gRPC calls on the latter. Requests arrive whole; answers may come later and in any
 * order, and are sent in the order their protocol needs. Slow or silent clients, oversize heads and
 * bodies, and too many of anything are refused within the limits below. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "net/loop.h"

struct server;
struct exchange; /* one request and its answer */

struct server_limits {
    uint32_t connections_max;      /* 4096; further ones are closed at once */
    uint32_t head_bytes_max;       /* 32 KiB; 431 beyond */
    uint64_t body_bytes_max;       /* 16 MiB after decompression; 413 beyond */
    uint64_t body_bytes_total_max; /* of all requests being received; 256 MiB; 503 beyond */
    /* Of answers that clients have not taken, all connections together; 256 MiB; beyond it, a large
     * answer is replaced by a 503. */
    uint64_t answer_bytes_total_max;
    uint32_t streams_max;  /* HTTP/2 concurrent streams a connection; 256 */
    uint32_t pipeline_max; /* HTTP/1.1 requests in progress a connection; 64, then reading stops */
    uint64_t output_bytes_max;  /* unsent a connection; 4 MiB, then reading stops */
    uint64_t idle_ms_max;       /* between requests; 60 s */
    uint64_t request_ms_max;    /* from a request's first byte to its last; 30 s; 408 beyond */
    uint64_t message_bytes_max; /* one gRPC message; 4 MiB; RESOURCE_EXHAUSTED beyond */
};
struct server_limits server_limits_default(void);

struct server_tls {
    const char *certificate_file; /* PEM; NULL: no TLS on this port */
    const char *key_file;
};

struct http_header {
    struct bytes name; /* lower case */
    struct bytes value;
};

struct http_request { /* borrowed from the exchange until it is answered */
    struct bytes method, path, host;
    struct http_header *headers;
    uint32_t header_count;
    struct bytes body; /* decompressed */
    int version_major; /* 1 or 2 */
};
/* Empty when absent; name in lower case. */
struct bytes http_request_header(const struct http_request *request, const char *name);

struct grpc_call; /* one gRPC call, either side; see grpc.h */

struct server_handler {
    /* A request is whole. Answer it with exchange_respond or exchange_abort, now or later, exactly
     * once; it stays valid until then, also when its connection goes. */
    void (*request)(void *context, struct exchange *exchange);
    /* The request can't be served for a reason found below HTTP (413, 431, 400, 408, 503...):
     * append a body and set its type. May be NULL: then the body is empty. */
    void (*refuse)(void *context, int status, struct buf *body, const char **ret_content_type);
    /* A gRPC call begins (POST, content-type application/grpc). Return false to answer
     * UNIMPLEMENTED. Set its events with grpc_call_on. May be NULL. */
    bool (*grpc)(void *context, struct grpc_call *call, struct bytes path);
    void *context;
};

struct server_stats {
    uint64_t connections, accepted, refused, requests, timeouts;
};

/* address: "127.0.0.1:8001"; port 0 takes a free one. On failure returns NULL and writes the reason
 * (at most error_len) into error. */
struct server *server_listen(struct loop *loop, const char *address,
                             const struct server_limits *limits, const struct server_tls *tls,
                             const struct server_handler *handler, char *error, size_t error_len);
uint16_t server_port(const struct server *server);
struct server_stats server_stats(const struct server *server);
/* Stops accepting, closes idle connections, lets the others finish their answers, at most drain_ms;
 * then calls done. */
void server_drain(struct server *server, uint64_t drain_ms, void (*done)(void *context),
                  void *context);
/* Closes everything at once. The memory goes when libuv lets go of it. */
void server_close(struct server *server);

const struct http_request *exchange_request(const struct exchange *exchange);
/* The user's own slot, NULL at first. */
void exchange_set_user(struct exchange *exchange, void *user);
void *exchange_user(const struct exchange *exchange);
/* Where the client is, "127.0.0.1:51234". */
const char *exchange_peer(const struct exchange *exchange);
/* Its connection's number among those of the server: the newest is server_stats().accepted. */
uint64_t exchange_connection(const struct exchange *exchange);
bool exchange_gone(const struct exchange *exchange); /* its connection has closed */

/* Sends the answer: content-length is added, headers and body are copied or written at once. The
 * exchange is gone afterwards. */
void exchange_respond(struct exchange *exchange, int status, const struct http_header *headers,
                      uint32_t header_count, struct bytes body);
/* No answer: closes the connection (HTTP/1.1) or resets the stream (HTTP/2), as a lost server
 * would. */
void exchange_abort(struct exchange *exchange);

#endif
