/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_INTERNAL_H
#define NET_GRPC_INTERNAL_H

/* How gRPC calls come to be, on either side. */

#include "net/exchange.h"
#include "net/grpc.h"
#include "net/h2.h"

/* Server: a stream that carries a gRPC call has opened. */
void grpc_accept(struct http_host *host, struct h2_stream *stream);
/* Client: opens a call; NULL when the connection takes none. */
struct grpc_call *grpc_open(struct h2 *h2, const char *authority, const char *path,
                            const char *const *headers, uint64_t message_bytes_max,
                            const struct grpc_events *events);
/* A stream's window: more than one message, or a message longer than the window could never be
 * whole; half of it is left when the longest is being assembled. */
uint64_t grpc_window_bytes(uint64_t message_bytes_max);
/* True while anything but calls keeps to the request's time limit. */
bool grpc_owns(const struct h2_stream *stream);

/* Message of grpc-message: percent-encoded (PROTOCOL-HTTP2.md, "Status-Message"). */
void grpc_encode_reason(const char *reason, struct buf *to);
void grpc_decode_reason(struct bytes from, char *to, size_t to_len);

#endif
