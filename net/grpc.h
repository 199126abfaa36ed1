/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_H
#define NET_GRPC_H

/* gRPC over HTTP/2 (the public protocol, PROTOCOL-HTTP2.md: length-prefixed messages, trailers),
 * enough for bidirectional streams and unary calls, both as server (server.h) and as client.
 * Messages are opaque. Flow control both ways: what has been received must be given back with
 * grpc_call_consume before the peer may send more; what we send beyond the peer's window waits
 * here, and grpc_call_queued tells how much. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "net/loop.h"

struct grpc_call;

enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15
};

struct grpc_events {
    /* One whole message, borrowed for the call. Its bytes count against the window until consumed.
     */
    void (*message)(void *context, struct grpc_call *call, struct bytes message);
    /* The other side will send no more (server: the client half-closed). May be NULL. */
    void (*half_closed)(void *context, struct grpc_call *call);
    /* The call is over; the pointer is dead afterwards. Comes exactly once, also after
     * grpc_call_finish and grpc_call_cancel. */
    void (*closed)(void *context, struct grpc_call *call, enum grpc_status status,
                   const char *reason);
    void *context;
};

void grpc_call_on(struct grpc_call *call, const struct grpc_events *events);
/* Metadata of the request, empty when absent; name in lower case. */
struct bytes grpc_call_header(const struct grpc_call *call, const char *name);
/* Copies. */
void grpc_call_send(struct grpc_call *call, struct bytes message);
uint64_t grpc_call_queued(const struct grpc_call *call);
void grpc_call_consume(struct grpc_call *call, uint64_t message_bytes);
/* Server: sends the trailers. Client: half-closes. */
void grpc_call_finish(struct grpc_call *call, enum grpc_status status, const char *reason);
/* Resets the stream. */
void grpc_call_cancel(struct grpc_call *call, const char *reason);

/* ---- Client: one HTTP/2 connection to one address, kept up ---- */

struct grpc_link;

struct grpc_link_config {
    const char *address;     /* "127.0.0.1:18012"; copied */
    const char *authority;   /* copied */
    uint64_t connect_ms_max; /* 2000 */
    uint64_t backoff_ms_min; /* 20; doubles per failure up to the maximum, with jitter */
    uint64_t backoff_ms_max; /* 250: so long may a healed link go unnoticed */
    uint64_t message_bytes_max;
    uint64_t silent_ms_max; /* 0: any; else pings, and gives up after this long without a byte */
    uint64_t seed;
};
struct grpc_link_events {
    void (*up)(void *context);                       /* connected: calls may be opened */
    void (*down)(void *context, const char *reason); /* all its calls have been closed before */
    void *context;
};

/* Starts connecting, and goes on for ever, with backoff. */
struct grpc_link *grpc_link_open(struct loop *loop, const struct grpc_link_config *config,
                                 const struct grpc_link_events *events);
void grpc_link_close(struct grpc_link *link);
/* Opens a call; NULL when the link is down. `headers` is a list of "name", "value", ..., NULL, or
 * NULL. */
struct grpc_call *grpc_link_call(struct grpc_link *link, const char *path,
                                 const char *const *headers, const struct grpc_events *events);
/* One message out, one back, or a failure (message empty, status not GRPC_OK) within timeout_ms.
 * done comes exactly once, later or at once. */
void grpc_link_unary(struct grpc_link *link, const char *path, struct bytes message,
                     uint64_t timeout_ms,
                     void (*done)(void *context, enum grpc_status status, struct bytes message),
                     void *context);

#endif
