/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H1_H
#define NET_H1_H

/* The server's side of one HTTP/1.1 connection, bytes in and bytes out, no socket: http_parser
 * finds the parts, which stay where they were read; a body that arrives in chunks is closed up in
 * place. Requests stand in a line in the order they came, and answers that come out of turn wait in
 * it. Whatever is wrong with the input is answered once, in turn, and ends the connection: after a
 * broken request nobody knows where the next one begins, which is how requests are smuggled.
 *
 *     block  | done | GET /x HTTP/1.1 .. headers .. body | next request, not parsed yet | room |
 *                   ^ start                              ^ parsed                       ^ len
 */

#include <http_parser.h>

#include "net/exchange.h"

struct h1 {
    struct http_host *host;
    struct http_parser parser;
    struct block *block;        /* NULL while nothing is kept */
    size_t parsed, start;       /* in block; start: first byte that the request needs */
    struct exchange *receiving; /* the last in line, or NULL */
    struct list line;
    uint32_t line_len;
    uint64_t held_bytes; /* answers that wait for their turn */
    uint64_t since_ms;   /* the request's first byte; while idle, the end of the last answer */
    int refuse_status;   /* found inside the parser's callbacks */
    bool in_value;
    bool paused;   /* the line is full: the rest of the block waits */
    bool deaf;     /* no further request is wanted; input is thrown away */
    bool finished; /* the last answer is out: close once it has been sent */
    bool linger;   /* ... after reading on for a while, for the client still sends */
    bool broken;   /* close at once, no answer */
};

void h1_init(struct h1 *h1, struct http_host *host);
/* The connection has gone: exchanges that the user holds stay valid. */
void h1_deinit(struct h1 *h1);

/* Where to put the next bytes: at least one byte. NULL when the budget for bodies does not allow
 * it: the request has been refused then. */
uint8_t *h1_space(struct h1 *h1, size_t *ret_len);
/* They are there. Without `parse` they are only kept, to be looked at with h1_pending. */
void h1_received(struct h1 *h1, size_t len, bool parse);
struct bytes h1_pending(const struct h1 *h1);
void h1_drop_pending(struct h1 *h1);
/* Goes on with what had to wait for the line to shorten. */
void h1_resume(struct h1 *h1);
/* The client will send no more. */
void h1_ended(struct h1 *h1);
void h1_refuse(struct h1 *h1, int status);
/* Nothing received and not taken, nothing being answered. */
bool h1_idle(const struct h1 *h1);
/* No new requests: closes when it is idle, or else after the requests in line. */
void h1_drain(struct h1 *h1);

static inline bool h1_wants_input(const struct h1 *h1)
{
    return !h1->paused;
}
static inline bool h1_is_idle(const struct h1 *h1)
{
    return h1->line_len == 0;
}

void h1_respond(struct exchange *exchange, int status, const struct http_header *headers,
                uint32_t header_count, struct bytes body);
void h1_abort(struct exchange *exchange);

#endif
