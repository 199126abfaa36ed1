/* SPDX-License-Identifier: Apache-2.0 */
/* From bytes to requests. The parser's callbacks only note where things lie; all decisions are made
 * in head_complete and message_complete. Pointers into the block are moved along when the block has
 * to grow, which is the only copy a request ever sees. The answers are in h1_answer.c. */

#include "net/h1_internal.h"

#include <string.h>

#include "conflict/base/check.h"

enum { BLOCK_ROOM_MIN = 2048, BODY_AHEAD_BYTES = 262144 };

static int fail(struct h1 *h1, int status)
{
    if (!h1->refuse_status)
        h1->refuse_status = status;
    return -1;
}

static size_t offset_of(const struct h1 *h1, const void *at)
{
    return (size_t)((const uint8_t *)at - h1->block->at);
}

static int message_began(struct http_parser *parser)
{
    struct h1 *h1 = parser->data;
    check(!h1->receiving);
    struct exchange *exchange = exchange_take(h1->host);
    exchange->h1 = h1;
    list_append(&h1->line, &exchange->link);
    h1->line_len++;
    h1->since_ms = h1->host->now_ms;
    h1->receiving = exchange;
    h1->in_value = true; /* so that the first name begins a header */
    h1->start = SIZE_MAX;
    return 0;
}

static int url_piece(struct http_parser *parser, const char *at, size_t len)
{
    struct h1 *h1 = parser->data;
    struct bytes *path = &h1->receiving->request.path;
    if (path->len == 0) {
        path->at = (const uint8_t *)at;
        h1->start = offset_of(h1, at);
    }
    path->len += len;
    return 0;
}

/* The header that ends here is whole: its name becomes lower case, in place. */
static bool seal_name(struct h1 *h1, struct http_header *header)
{
    return http_lower_name(h1->block->at + offset_of(h1, header->name.at), header->name.len);
}

static int name_piece(struct http_parser *parser, const char *at, size_t len)
{
    struct h1 *h1 = parser->data;
    struct exchange *exchange = h1->receiving;
    if (exchange->head_done)
        return 0; /* trailers: allowed, and of no use to us */
    struct head *head = &exchange->head;
    if (h1->in_value) {
        if (head->count == HTTP_HEADERS_MAX)
            return fail(h1, 431);
        h1->in_value = false;
        head_push(head)->name.at = (const uint8_t *)at;
    }
    head->at[head->count - 1].name.len += len;
    return 0;
}

/* Between a name and its value stand a colon and blanks; a line end there, or inside the value, is
 * the folding that RFC 9112 section 5.2 tells servers to refuse. */
static bool is_unfolded(const struct http_header *header, const uint8_t *value)
{
    for (const uint8_t *at = header->name.at + header->name.len; at < value; at++)
        if (*at != ':' && *at != ' ' && *at != '\t')
            return false;
    return true;
}

static int value_piece(struct http_parser *parser, const char *text, size_t len)
{
    struct h1 *h1 = parser->data;
    struct exchange *exchange = h1->receiving;
    if (exchange->head_done)
        return 0;
    const uint8_t *at = (const uint8_t *)text;
    struct http_header *header = &exchange->head.at[exchange->head.count - 1];
    if (!h1->in_value) {
        h1->in_value = true;
        if (!seal_name(h1, header))
            return fail(h1, 400);
    }
    if (header->value.len == 0) {
        if (len && !is_unfolded(header, at))
            return fail(h1, 400);
        header->value.at = at;
    } else if (len && at != header->value.at + header->value.len) {
        return fail(h1, 400);
    }
    header->value.len += len;
    return 0;
}

/* "http://host/path" and "*" are legal too; the handler sees a path. */
static bool settle_path(struct exchange *exchange)
{
    struct http_request *request = &exchange->request;
    if (request->path.len == 0)
        return false;
    if (request->path.at[0] == '/' || bytes_is(request->path, "*") ||
        bytes_is(request->method, "CONNECT"))
        return true;
    struct http_parser_url url;
    http_parser_url_init(&url);
    if (request->path.len > UINT16_MAX ||
        http_parser_parse_url((const char *)request->path.at, request->path.len, 0, &url) != 0)
        return false;
    if (!(url.field_set & 1u << UF_HOST))
        return false;
    struct bytes whole = request->path;
    uint32_t host_at = url.field_data[UF_HOST].off;
    uint32_t host_end = host_at + url.field_data[UF_HOST].len;
    if (url.field_set & 1u << UF_PORT)
        host_end = url.field_data[UF_PORT].off + url.field_data[UF_PORT].len;
    request->host = bytes_make(whole.at + host_at, host_end - host_at);
    if (url.field_set & 1u << UF_PATH)
        request->path = bytes_make(whole.at + url.field_data[UF_PATH].off,
                                   whole.len - url.field_data[UF_PATH].off);
    else
        request->path = bytes_literal("/");
    return true;
}

/* The headers that decide how the message is read. Returns 0 or the status to refuse with. */
static int settle_headers(struct h1 *h1, struct exchange *exchange)
{
    uint32_t host_count = 0;
    struct head *head = &exchange->head;
    struct bytes host = BYTES_NONE;
    for (uint32_t i = 0; i < head->count; i++) {
        struct http_header *header = &head->at[i];
        if (!http_is_value(header->value))
            return 400;
        header->value = http_trim(header->value);
        if (header->name.len == 4 && memcmp(header->name.at, "host", 4) == 0) {
            host = header->value;
            host_count++;
        } else if (header->name.len == 6 && memcmp(header->name.at, "expect", 6) == 0) {
            if (!http_equal_nocase(header->value, "100-continue"))
                return 417;
            exchange->wants_continue = !exchange->is_http10;
        } else if (header->name.len == 17 &&
                   memcmp(header->name.at, "transfer-encoding", 17) == 0) {
            /* HTTP/1.0 knows no chunks: a proxy between may have read another length. */
            if (exchange->is_http10)
                return 400;
            if (!http_equal_nocase(header->value, "chunked"))
                return 501;
        }
    }
    if (host_count > 1 || (host_count == 0 && !exchange->is_http10))
        return 400;
    if (exchange->request.host.len == 0)
        exchange->request.host = host;
    if (!(h1->parser.flags & F_CHUNKED) && h1->parser.content_length != UINT64_MAX &&
        h1->parser.content_length > h1->host->limits->body_bytes_max)
        return 413;
    return 0;
}

static int head_complete(struct http_parser *parser)
{
    struct h1 *h1 = parser->data;
    struct exchange *exchange = h1->receiving;
    if (exchange->head_done)
        return 0;
    exchange->head_done = true;
    parser->upgrade = 0; /* an offer (h2c, websocket) that we decline by answering as usual */
    if (parser->http_major != 1)
        return fail(h1, 505);
    exchange->is_http10 = parser->http_minor == 0;
    const char *method = http_method_str((enum http_method)parser->method);
    exchange->request.method = bytes_text(method);
    exchange->is_head = parser->method == HTTP_HEAD;
    exchange->keep_alive = http_should_keep_alive(parser) && parser->method != HTTP_CONNECT;
    if (exchange->head.count) {
        const struct http_header *last = &exchange->head.at[exchange->head.count - 1];
        if (!h1->in_value)
            return fail(h1, 400);
        const uint8_t *end =
            last->value.len ? last->value.at + last->value.len : last->name.at + last->name.len;
        if (offset_of(h1, end) - h1->start > h1->host->limits->head_bytes_max)
            return fail(h1, 431);
    }
    if (!settle_path(exchange))
        return fail(h1, 400);
    int status = settle_headers(h1, exchange);
    if (status)
        return fail(h1, status);
    if (!(parser->flags & F_CHUNKED) &&
        (parser->content_length == 0 || parser->content_length == UINT64_MAX))
        exchange->wants_continue = false;
    h1_continue(h1);
    return 0;
}

/* Pieces of a chunked body are moved together over the chunk lines between them. */
static int body_piece(struct http_parser *parser, const char *at, size_t len)
{
    struct h1 *h1 = parser->data;
    struct exchange *exchange = h1->receiving;
    exchange->wants_continue = false;
    if (!exchange->body_begun) {
        exchange->body_begun = true;
        exchange->body_at = exchange->body_end = offset_of(h1, at);
    }
    uint8_t *to = h1->block->at + exchange->body_end;
    if (to != (const uint8_t *)at)
        memmove(to, at, len);
    exchange->body_end += len;
    if (exchange->body_end - exchange->body_at > h1->host->limits->body_bytes_max)
        return fail(h1, 413);
    return 0;
}

static int message_complete(struct http_parser *parser)
{
    struct h1 *h1 = parser->data;
    struct exchange *exchange = h1->receiving;
    struct http_request *request = &exchange->request;
    exchange->wants_continue = false;
    request->headers = exchange->head.at;
    request->header_count = exchange->head.count;
    request->version_major = 1;
    if (exchange->body_begun)
        request->body =
            bytes_make(h1->block->at + exchange->body_at, exchange->body_end - exchange->body_at);
    exchange->block = block_ref(h1->block);
    int status = exchange_body_status(exchange_decode_body(exchange));
    if (status)
        return fail(h1, status);
    h1->receiving = NULL;
    lifecycle_move(&exchange->life, EXCHANGE_HANDED);
    if (!exchange->keep_alive || h1->host->draining)
        h1->deaf = true;
    h1->host->request(h1->host, exchange);
    if (h1->line_len >= h1->host->limits->pipeline_max)
        h1->paused = true;
    if (h1->paused || h1->deaf)
        http_parser_pause(parser, 1);
    return 0;
}

static const struct http_parser_settings callbacks = {
    .on_message_begin = message_began,
    .on_url = url_piece,
    .on_header_field = name_piece,
    .on_header_value = value_piece,
    .on_headers_complete = head_complete,
    .on_body = body_piece,
    .on_message_complete = message_complete,
};

void h1_init(struct h1 *h1, struct http_host *host)
{
    *h1 = (struct h1){.host = host, .since_ms = host->now_ms};
    http_parser_init(&h1->parser, HTTP_REQUEST);
    h1->parser.data = h1;
    list_init(&h1->line);
}

void h1_deinit(struct h1 *h1)
{
    h1->receiving = NULL;
    h1->deaf = true;
    h1->line_len = 0;
    list_each(link, spare, &h1->line) exchange_lose(container_of(link, struct exchange, link));
    h1->block = block_unref(h1->host->pool, h1->block);
}

static int status_of_parser_error(enum http_errno error)
{
    if (error == HPE_HEADER_OVERFLOW)
        return 431;
    return 400;
}

/* The same place in a copy of the `kept` bytes from `from` at `to`; what lies elsewhere stays. */
static const uint8_t *moved(const uint8_t *at, struct bytes from, const uint8_t *to)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)from.at;
    return at && offset < from.len ? to + offset : at;
}

static void move_request(struct exchange *exchange, struct bytes from, const uint8_t *to)
{
    struct http_request *request = &exchange->request;
    request->path.at = moved(request->path.at, from, to);
    request->host.at = moved(request->host.at, from, to);
    for (uint32_t i = 0; i < exchange->head.count; i++) {
        struct http_header *header = &exchange->head.at[i];
        header->name.at = moved(header->name.at, from, to);
        header->value.at = moved(header->value.at, from, to);
    }
}

/* Where the bytes that must stay begin. */
static size_t keep_from(const struct h1 *h1)
{
    return h1->receiving && h1->start != SIZE_MAX ? h1->start : h1->parsed;
}

/* How large the next block should be to hold what is kept and what is known to come. */
static size_t next_cap(const struct h1 *h1, size_t kept)
{
    size_t cap = kept + BLOCK_ROOM_MIN;
    const struct exchange *exchange = h1->receiving;
    if (!exchange || !exchange->head_done)
        return kept > BLOCK_BYTES / 2 ? kept * 2 : cap;
    uint64_t rest = BLOCK_ROOM_MIN;
    if (!(h1->parser.flags & F_CHUNKED) && h1->parser.content_length != UINT64_MAX)
        rest = h1->parser.content_length;
    /* What a client announces is not believed further ahead than this or what it has sent. */
    size_t ahead = kept > BODY_AHEAD_BYTES ? kept : BODY_AHEAD_BYTES;
    if (h1->parser.flags & F_CHUNKED)
        return kept + ahead / 2;
    return kept + (size_t)(rest < ahead ? rest : ahead) + 1;
}

uint8_t *h1_space(struct h1 *h1, size_t *ret_len)
{
    struct pool *pool = h1->host->pool;
    if (!h1->block)
        h1->block = pool_take_block(pool, BLOCK_BYTES);
    struct block *block = h1->block;
    size_t from = keep_from(h1);
    if (from == block->len && block->refs == 1) {
        block->len = h1->parsed = 0;
    } else if (block->cap - block->len <
               (h1->receiving && h1->receiving->head_done ? 1 : BLOCK_ROOM_MIN)) {
        size_t kept = block->len - from;
        struct block *next = pool_take_block(pool, next_cap(h1, kept));
        if (!next) {
            h1_refuse(h1, 503);
            return NULL;
        }
        memcpy(next->at, block->at + from, kept);
        next->len = kept;
        if (h1->receiving && h1->start != SIZE_MAX) {
            move_request(h1->receiving, bytes_make(block->at + from, kept), next->at);
            h1->receiving->body_at -= h1->receiving->body_begun ? from : 0;
            h1->receiving->body_end -= h1->receiving->body_begun ? from : 0;
            h1->start = 0;
        }
        h1->parsed -= from;
        block_unref(pool, block);
        h1->block = block = next;
    }
    *ret_len = block->cap - block->len;
    return block->at + block->len;
}

/* The parser has seen all of the block: what no request needs is given up. */
static void tidy_block(struct h1 *h1)
{
    struct block *block = h1->block;
    struct exchange *exchange = h1->receiving;
    if (exchange && exchange->body_begun)
        h1->parsed = block->len = exchange->body_end;
    else if (!exchange && h1->parsed == block->len && !h1->paused)
        h1->block = block_unref(h1->host->pool, block);
    if (!h1->block)
        h1->parsed = 0;
}

static void parse(struct h1 *h1)
{
    if (h1->deaf || h1->paused || h1->broken)
        return;
    struct block *block = h1->block;
    size_t len = block->len - h1->parsed;
    if (len == 0) { /* to the parser that would mean the end of input */
        tidy_block(h1);
        return;
    }
    size_t done =
        http_parser_execute(&h1->parser, &callbacks, (const char *)block->at + h1->parsed, len);
    enum http_errno error = HTTP_PARSER_ERRNO(&h1->parser);
    h1->parsed += done;
    if (h1->broken)
        return;
    if (error == HPE_PAUSED) {
        http_parser_pause(&h1->parser, 0);
    } else if (error != HPE_OK) {
        h1_refuse(h1, h1->refuse_status ? h1->refuse_status : status_of_parser_error(error));
        return;
    }
    struct exchange *exchange = h1->receiving;
    if (exchange && !exchange->head_done && h1->start != SIZE_MAX &&
        block->len - h1->start > h1->host->limits->head_bytes_max) {
        h1_refuse(h1, 431);
        return;
    }
    if (!h1->deaf)
        tidy_block(h1);
}

void h1_received(struct h1 *h1, size_t len, bool parse_now)
{
    if (h1->deaf)
        return;
    check(h1->block != NULL);
    check(len <= h1->block->cap - h1->block->len);
    h1->block->len += len;
    if (parse_now)
        parse(h1);
}

struct bytes h1_pending(const struct h1 *h1)
{
    if (!h1->block)
        return BYTES_NONE;
    return bytes_make(h1->block->at + h1->parsed, h1->block->len - h1->parsed);
}

void h1_drop_pending(struct h1 *h1)
{
    h1->block = block_unref(h1->host->pool, h1->block);
    h1->parsed = 0;
}

void h1_resume(struct h1 *h1)
{
    while (h1->paused && !h1->deaf && h1->line_len < h1->host->limits->pipeline_max) {
        h1->paused = false;
        if (h1->block)
            parse(h1);
    }
    if (h1->deaf)
        h1->paused = false;
}

void h1_ended(struct h1 *h1)
{
    if (h1->deaf)
        return;
    h1->deaf = true;
    struct exchange *exchange = h1->receiving;
    if (exchange) { /* half a request: nobody waits for its answer */
        h1->receiving = NULL;
        h1->line_len--;
        exchange_lose(exchange);
    }
    if (h1->line_len == 0)
        h1->finished = true;
    h1->host->wake(h1->host);
}

bool h1_idle(const struct h1 *h1)
{
    return h1->line_len == 0 && h1_pending(h1).len == 0;
}

void h1_drain(struct h1 *h1)
{
    if (h1->line_len == 0 && !h1->deaf) {
        h1->deaf = h1->finished = true;
        h1->host->wake(h1->host);
    }
}
