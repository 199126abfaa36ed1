/* SPDX-License-Identifier: Apache-2.0 */
/* From answers to bytes. The answer to the first request in line goes straight to the connection's
 * output; any other is put together where it waits. */

#include "net/h1_internal.h"

#include <string.h>

#include "conflict/base/check.h"

void h1_continue(struct h1 *h1)
{
    struct exchange *exchange = h1->receiving;
    if (!exchange || !exchange->wants_continue || h1->line.next != &exchange->link)
        return;
    exchange->wants_continue = false;
    h1->host->wake(h1->host);
    buf_append_text(h1->host->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* The first in line is answered: it leaves, and with it all that were answered behind it. */
static void advance(struct h1 *h1)
{
    while (!list_empty(&h1->line)) {
        struct exchange *exchange = container_of(h1->line.next, struct exchange, link);
        if (exchange->life.state != EXCHANGE_ANSWERED)
            break;
        if (exchange->answer.len) {
            h1->held_bytes -= exchange->answer.len;
            buf_append_bytes(h1->host->out, buf_view(&exchange->answer));
        }
        bool keep_alive = exchange->keep_alive;
        h1->line_len--;
        exchange_release(exchange);
        if (!keep_alive) {
            h1->deaf = h1->finished = true;
            return;
        }
    }
    if (h1->line_len == 0) {
        h1->since_ms = h1->host->now_ms;
        if (h1->deaf)
            h1->finished = true;
    }
    h1_continue(h1);
}

static void append_answer(struct exchange *exchange, struct buf *to, int status,
                          const struct http_header *headers, uint32_t header_count,
                          struct bytes body)
{
    struct http_host *host = exchange->host;
    const char *connection = NULL;
    if (!exchange->keep_alive)
        connection = "close";
    else if (exchange->is_http10)
        connection = "keep-alive";
    struct http_answer_head head = {.status = status,
                                    .headers = headers,
                                    .header_count = header_count,
                                    .body_len = body.len,
                                    .date = host->pool->date,
                                    .connection = connection};
    bool has_body = !exchange->is_head && status != 204 && status != 304;
    http_append_answer_head(to, &head, has_body ? body.len : 0);
    if (has_body)
        buf_append_bytes(to, body);
}

/* All answers, also our own refusals, come through here. */
static void answer(struct h1 *h1, struct exchange *exchange, int status,
                   const struct http_header *headers, uint32_t header_count, struct bytes body)
{
    struct http_host *host = h1->host;
    bool in_turn = h1->line.next == &exchange->link;
    host->wake(host); /* before there is output, so that the buffer is there */
    if (host->draining && h1->line.prev == &exchange->link) {
        h1->deaf = true;
        exchange->keep_alive = false;
    }
    append_answer(exchange, in_turn ? host->out : &exchange->answer, status, headers, header_count,
                  body);
    lifecycle_move(&exchange->life, EXCHANGE_ANSWERED);
    if (in_turn)
        advance(h1);
    else
        h1->held_bytes += exchange->answer.len;
}

void h1_respond(struct exchange *exchange, int status, const struct http_header *headers,
                uint32_t header_count, struct bytes body)
{
    answer(exchange->h1, exchange, status, headers, header_count, body);
}

void h1_abort(struct exchange *exchange)
{
    struct h1 *h1 = exchange->h1;
    h1->deaf = h1->broken = true;
    lifecycle_move(&exchange->life, EXCHANGE_ANSWERED);
    exchange->h1 = NULL;
    h1->line_len--;
    h1->host->wake(h1->host);
    exchange_release(exchange);
}

void h1_refuse(struct h1 *h1, int status)
{
    if (h1->deaf)
        return;
    struct exchange *exchange = h1->receiving;
    if (!exchange) {
        exchange = exchange_take(h1->host);
        exchange->h1 = h1;
        list_append(&h1->line, &exchange->link);
        h1->line_len++;
    }
    h1->receiving = NULL;
    h1->deaf = h1->linger = true;
    exchange->keep_alive = false;
    struct buf body;
    buf_init(&body);
    const char *type = NULL;
    if (h1->host->refuse)
        h1->host->refuse(h1->host, status, &body, &type);
    struct http_header header = {bytes_literal("content-type"),
                                 type ? bytes_text(type) : BYTES_NONE};
    answer(h1, exchange, status, &header, type ? 1 : 0, buf_view(&body));
    buf_deinit(&body);
}
