/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_SERVER_H
#define NET_H2_SERVER_H

/* What a server does with HTTP/2 streams: a request becomes an exchange, a gRPC call a grpc_call.
 */

#include "net/exchange.h"
#include "net/h2.h"

/* A request's head is whole. */
void h2_server_opened(struct http_host *host, struct h2_stream *stream);
/* Refuses requests that have been arriving for too long; returns how many. */
uint32_t h2_server_sweep(struct http_host *host, struct h2 *h2);
void h2_server_config(const struct server_limits *limits, struct h2_config *ret_config);

void h2_respond(struct exchange *exchange, int status, const struct http_header *headers,
                uint32_t header_count, struct bytes body);
void h2_abort(struct exchange *exchange);

#endif
