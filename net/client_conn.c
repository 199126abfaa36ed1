/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a client: a request out, an answer in, again. http_parser finds the answer's
 * parts; they are gathered here until it is whole. */

#include "net/client_internal.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { HEAD_BYTES_MAX = 65536, BODY_BYTES_KEPT = 65536 };

static struct client_conn *conn_of(struct tcp *tcp)
{
    return container_of(tcp, struct client_conn, tcp);
}

void client_conn_close(struct client_conn *conn)
{
    struct client *client = conn->client;
    if (conn->tcp.closing)
        return;
    list_remove(&conn->link);
    list_remove(&conn->idle);
    client->conn_count--;
    tcp_close(&conn->tcp);
}

void client_conn_carry(struct client_conn *conn, struct client_request *request)
{
    list_remove(&conn->idle);
    list_remove(&request->link);
    list_append(&conn->client->active, &request->link);
    conn->request = request;
    request->conn = conn;
    conn->heard = conn->complete = false;
    if (conn->connect_ms == UINT64_MAX) {
        request->sent = true;
        tcp_wake(&conn->tcp);
        buf_append_bytes(&conn->tcp.out, buf_view(&request->bytes));
    }
}

/* The connection is of no more use. Its request is sent again if the server may have closed before
 * it saw it, which only a connection that had been idle allows us to think. */
static void conn_break(struct client_conn *conn, const char *failure)
{
    struct client *client = conn->client;
    struct client_request *request = conn->request;
    conn->request = NULL;
    bool again = request && conn->used && !conn->heard && !request->retried && !request->once &&
                 !client->closing;
    client_conn_close(conn);
    if (again) {
        request->conn = NULL;
        request->retried = true;
        list_remove(&request->link);
        /* To the front; waiting_count may pass its bound by as many as there are connections. */
        list_append(client->waiting.next, &request->link);
        client->waiting_count++;
    } else if (request) {
        client_request_fail(request, failure);
    }
    client_serve_waiting(client);
}

static int answer_began(struct http_parser *parser)
{
    struct client_conn *conn = parser->data;
    head_reset(&conn->head);
    buf_reset(&conn->body);
    conn->in_value = true;
    conn->head_done = false;
    return 0;
}

static int piece_of_head(struct client_conn *conn, const char *at, size_t len)
{
    if (conn->head.bytes.len + len > HEAD_BYTES_MAX) {
        conn->failure = "the answer's head is too long";
        return -1;
    }
    buf_append(&conn->head.bytes, at, len);
    return 0;
}

static int name_piece(struct http_parser *parser, const char *at, size_t len)
{
    struct client_conn *conn = parser->data;
    if (conn->head_done)
        return 0;
    if (conn->in_value) {
        conn->in_value = false;
        if (conn->head.count == HTTP_HEADERS_MAX) {
            conn->failure = "the answer has too many headers";
            return -1;
        }
        head_push(&conn->head);
    }
    conn->head.at[conn->head.count - 1].name.len += len;
    return piece_of_head(conn, at, len);
}

static int value_piece(struct http_parser *parser, const char *at, size_t len)
{
    struct client_conn *conn = parser->data;
    if (conn->head_done)
        return 0;
    conn->in_value = true;
    conn->head.at[conn->head.count - 1].value.len += len;
    return piece_of_head(conn, at, len);
}

static int head_complete(struct http_parser *parser)
{
    struct client_conn *conn = parser->data;
    conn->head_done = true;
    head_seal(&conn->head);
    for (uint32_t i = 0; i < conn->head.count; i++) {
        struct http_header *header = &conn->head.at[i];
        size_t offset = (size_t)(header->name.at - conn->head.bytes.at);
        if (!http_lower_name(conn->head.bytes.at + offset, header->name.len)) {
            conn->failure = "the answer has a header without a name";
            return -1;
        }
        header->value = http_trim(header->value);
    }
    /* These have no body, whatever length they name. */
    bool bare = conn->request->is_head || parser->status_code == 204 || parser->status_code == 304;
    return bare ? 1 : 0;
}

static int body_piece(struct http_parser *parser, const char *at, size_t len)
{
    struct client_conn *conn = parser->data;
    if (conn->body.len + len > conn->client->config.answer_bytes_max) {
        conn->failure = "the answer is too long";
        return -1;
    }
    buf_append(&conn->body, at, len);
    return 0;
}

static int answer_complete(struct http_parser *parser)
{
    struct client_conn *conn = parser->data;
    if (parser->status_code < 200)
        return 0; /* 100 Continue and its like: the answer is yet to come */
    conn->complete = true;
    conn->keep_alive = http_should_keep_alive(parser);
    http_parser_pause(parser, 1);
    return 0;
}

static const struct http_parser_settings callbacks = {
    .on_message_begin = answer_began,
    .on_header_field = name_piece,
    .on_header_value = value_piece,
    .on_headers_complete = head_complete,
    .on_body = body_piece,
    .on_message_complete = answer_complete,
};

/* The connection is free for the next request before done is called, which may send one. What the
 * answer lies in is not touched before that one's answer begins. */
static void finish_answer(struct client_conn *conn)
{
    struct client *client = conn->client;
    struct client_request *request = conn->request;
    struct http_answer answer = {.status = (int)conn->parser.status_code,
                                 .headers = conn->head.at,
                                 .header_count = conn->head.count,
                                 .body = buf_view(&conn->body),
                                 .sent = true};
    void (*done)(void *, const struct http_answer *) = request->done;
    void *context = request->context;
    conn->request = NULL;
    conn->used = true;
    client_request_free(request);
    if (conn->keep_alive) {
        http_parser_pause(&conn->parser, 0);
        list_append(client->idle.next, &conn->idle);
    } else {
        client_conn_close(conn);
    }
    client_serve_waiting(client);
    done(context, &answer);
    if (conn->body.cap > BODY_BYTES_KEPT)
        buf_deinit(&conn->body);
}

static uint8_t *space(struct tcp *tcp, size_t *ret_len)
{
    *ret_len = LOOP_SCRATCH_BYTES;
    return tcp->loop->scratch;
}

static void received(struct tcp *tcp, size_t len)
{
    struct client_conn *conn = conn_of(tcp);
    if (!conn->request) { /* bytes that nobody asked for */
        conn_break(conn, "");
        return;
    }
    conn->heard = true;
    size_t done =
        http_parser_execute(&conn->parser, &callbacks, (const char *)tcp->loop->scratch, len);
    if (conn->complete) {
        if (done < len)
            conn->keep_alive = false;
        finish_answer(conn);
    } else if (HTTP_PARSER_ERRNO(&conn->parser) != HPE_OK || conn->parser.upgrade) {
        conn_break(conn, conn->failure ? conn->failure : "the answer is not HTTP/1.1");
    }
}

static void ended(struct tcp *tcp)
{
    struct client_conn *conn = conn_of(tcp);
    if (conn->request && conn->heard) /* an answer may end with its connection */
        http_parser_execute(&conn->parser, &callbacks, NULL, 0);
    if (conn->request && conn->complete) {
        conn->keep_alive = false;
        finish_answer(conn);
    } else {
        conn_break(conn, "the connection was closed before the answer was whole");
    }
}

static void failed(struct tcp *tcp, const char *reason)
{
    struct client_conn *conn = conn_of(tcp);
    if (!conn->tcp.closing)
        conn_break(conn, reason);
}

static void connected(struct tcp *tcp)
{
    struct client_conn *conn = conn_of(tcp);
    conn->connect_ms = UINT64_MAX;
    if (conn->request)
        client_conn_carry(conn, conn->request);
    else
        list_append(&conn->client->idle, &conn->idle);
}

static void fill(struct tcp *tcp)
{
    (void)tcp; /* requests are put into out when they get their connection */
}

static void flushed(struct tcp *tcp)
{
    (void)tcp;
}

static void gone(struct tcp *tcp)
{
    struct client_conn *conn = conn_of(tcp);
    struct client *client = conn->client;
    head_deinit(&conn->head);
    buf_deinit(&conn->body);
    free(conn);
    client_release(client);
}

static const struct tcp_owner tcp_owner = {
    .space = space,
    .received = received,
    .fill = fill,
    .flushed = flushed,
    .ended = ended,
    .failed = failed,
    .connected = connected,
    .gone = gone,
};

void client_conn_open(struct client *client, struct client_request *request)
{
    struct client_conn *conn = xcalloc(1, sizeof(*conn));
    conn->client = client;
    conn->connect_ms = client_now_ms(client) + client->config.connect_ms_max;
    list_init(&conn->idle);
    list_init(&conn->link);
    list_append(&client->conns, &conn->link);
    client->conn_count++;
    client->holds++;
    http_parser_init(&conn->parser, HTTP_RESPONSE);
    conn->parser.data = conn;
    tcp_init(&conn->tcp, client->loop, &tcp_owner);
    client_conn_carry(conn, request);
    tcp_connect(&conn->tcp, (struct sockaddr *)&client->address);
}
