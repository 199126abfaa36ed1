/* SPDX-License-Identifier: Apache-2.0 */
/* See client.h. A request is put into bytes at once; it then waits for a connection, or has one.
 * Answers are parsed by http_parser and handed over when they are whole. Failures are told by a
 * task at the end of the round, so never from within client_send.
 *
 *     client_send --> waiting --> active (on a connection) --> done
 *                         \          \--- failed ---> failed --> done
 *                          \-- no room, timed out -----^
 */

#include "net/client_internal.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
enum { SWEEP_MS = 20, SWEEP_LATE_MS = 200 };

struct bytes http_answer_header(const struct http_answer *answer, const char *name)
{
    return head_find(answer->headers, answer->header_count, name);
}

void client_release(struct client *client)
{
    check(client->holds > 0);
    if (--client->holds > 0)
        return;
    free((char *)(uintptr_t)client->config.address);
    free(client);
}

/* ---- Requests ---- */

void client_request_free(struct client_request *request)
{
    list_remove(&request->link);
    buf_deinit(&request->bytes);
    free(request);
}

void client_request_fail(struct client_request *request, const char *failure)
{
    struct client *client = request->client;
    list_remove(&request->link);
    request->conn = NULL;
    request->failure = failure;
    list_append(&client->failed, &request->link);
    loop_soon(client->loop, &client->report);
}

static void tell_failure(struct client_request *request)
{
    struct http_answer answer = {
        .failure = request->failure, .sent = request->sent, .timed_out = request->timed_out};
    void (*done)(void *, const struct http_answer *) = request->done;
    void *context = request->context;
    client_request_free(request);
    done(context, &answer);
}

static void report_task(struct loop_task *task)
{
    struct client *client = container_of(task, struct client, report);
    client->loop->again = true;
    client->holds++; /* done may free the client */
    struct list *link;
    while ((link = list_take(&client->failed)) != NULL)
        tell_failure(container_of(link, struct client_request, link));
    client_release(client);
}

static void append_header(struct buf *to, struct bytes name, struct bytes value)
{
    buf_append_bytes(to, name);
    buf_append_text(to, ": ");
    buf_append_bytes(to, value);
    buf_append_text(to, "\r\n");
}

static void format_request(const struct client *client, const struct client_call *call,
                           struct buf *to)
{
    buf_reserve(to, 512 + call->body.len);
    buf_append_bytes(to, call->method);
    buf_append_u8(to, ' ');
    buf_append_bytes(to, call->path.len ? call->path : bytes_literal("/"));
    buf_append_text(to, " HTTP/1.1\r\n");
    bool has_host = false;
    for (uint32_t i = 0; i < call->header_count; i++) {
        struct http_header header = call->headers[i];
        if (http_is_framing(header.name) || http_equal_nocase(header.name, "content-length") ||
            http_equal_nocase(header.name, "transfer-encoding") ||
            http_equal_nocase(header.name, "connection") ||
            http_equal_nocase(header.name, "expect")) /* the body follows at once anyway */
            continue;
        has_host = has_host || http_equal_nocase(header.name, "host");
        append_header(to, header.name, header.value);
    }
    if (!has_host)
        append_header(to, bytes_literal("host"), bytes_text(client->config.address));
    if (call->body.len || bytes_is(call->method, "POST") || bytes_is(call->method, "PUT"))
        buf_printf(to, "content-length: %zu\r\n", call->body.len);
    buf_append_text(to, "\r\n");
    buf_append_bytes(to, call->body);
}
/* ---- The line ---- */

void client_serve_waiting(struct client *client)
{
    while (!list_empty(&client->waiting) && !client->closing) {
        struct client_request *request =
            container_of(client->waiting.next, struct client_request, link);
        bool has_idle = !list_empty(&client->idle) && !request->retried;
        if (!has_idle && client->conn_count >= client->config.connections_max) {
            if (list_empty(&client->idle))
                return;
            /* A second try deserves a connection that cannot be stale. */
            client_conn_close(container_of(client->idle.prev, struct client_conn, idle));
        }
        client->waiting_count--;
        if (has_idle)
            client_conn_carry(container_of(client->idle.next, struct client_conn, idle), request);
        else
            client_conn_open(client, request);
    }
}

static void sweep_requests(struct list *requests, uint64_t now, bool waiting)
{
    list_each(link, spare, requests)
    {
        struct client_request *request = container_of(link, struct client_request, link);
        if (now < request->deadline_ms)
            continue;
        struct client_conn *conn = request->conn;
        if (waiting)
            request->client->waiting_count--;
        request->timed_out = true;
        client_request_fail(request, "timed out");
        if (conn) {
            conn->request = NULL;
            client_conn_close(conn);
        }
    }
}

static void sweep(uv_timer_t *timer)
{
    struct client *client = timer->data;
    loop_refresh_time(client->loop);
    uint64_t now = client_now_ms(client);
    bool late = now - client->swept_ms > SWEEP_LATE_MS;
    client->swept_ms = now;
    if (late)
        return; /* we were paused: answers that came meanwhile are read first */
    sweep_requests(&client->active, now, false);
    sweep_requests(&client->waiting, now, true);
    list_each(link, spare, &client->conns)
    {
        struct client_conn *conn = container_of(link, struct client_conn, link);
        if (conn->connect_ms != UINT64_MAX && now >= conn->connect_ms) {
            struct client_request *request = conn->request;
            conn->request = NULL;
            client_conn_close(conn);
            if (request)
                client_request_fail(request, "connecting timed out");
        }
    }
    client_serve_waiting(client);
    if (list_empty(&client->active) && list_empty(&client->waiting)) {
        client->sweeping = false;
        uv_timer_stop(&client->sweep);
    }
}

/* ---- The public half ---- */

struct client *client_new(struct loop *loop, const struct client_config *config)
{
    struct client *client = xcalloc(1, sizeof(*client));
    client->loop = loop;
    client->config = *config;
    client->config.address = xstrdup(config->address);
    if (!config->connections_max)
        client->config.connections_max = 256;
    if (!config->waiting_max)
        client->config.waiting_max = 10000;
    if (!config->connect_ms_max)
        client->config.connect_ms_max = 2000;
    if (!config->answer_bytes_max)
        client->config.answer_bytes_max = 32 << 20;
    list_init(&client->conns);
    list_init(&client->idle);
    list_init(&client->waiting);
    list_init(&client->active);
    list_init(&client->failed);
    loop_task_init(&client->report, report_task);
    check(uv_timer_init(&loop->uv, &client->sweep) == 0);
    client->sweep.data = client;
    client->holds = 1;
    return client;
}

struct client_request *client_send(struct client *client, const struct client_call *call,
                                   void (*done)(void *context, const struct http_answer *answer),
                                   void *context)
{
    check(!client->closing);
    struct client_request *request = xcalloc(1, sizeof(*request));
    list_init(&request->link);
    request->client = client;
    request->done = done;
    request->context = context;
    request->is_head = bytes_is(call->method, "HEAD");
    request->once = call->once;
    request->deadline_ms = call->timeout_ms ? client_now_ms(client) + call->timeout_ms : UINT64_MAX;
    format_request(client, call, &request->bytes);
    if (client->address.ss_family == AF_UNSPEC &&
        !tcp_address(client->config.address, &client->address)) {
        client_request_fail(request, "the address cannot be resolved");
        return request;
    }
    if (client->waiting_count >= client->config.waiting_max) {
        client_request_fail(request, "too many requests are waiting");
        return request;
    }
    list_append(&client->waiting, &request->link);
    client->waiting_count++;
    if (!client->sweeping) {
        client->sweeping = true;
        client->swept_ms = client_now_ms(client);
        uv_timer_start(&client->sweep, sweep, SWEEP_MS, SWEEP_MS);
    }
    client_serve_waiting(client);
    return request;
}

void client_cancel(struct client_request *request)
{
    struct client *client = request->client;
    struct client_conn *conn = request->conn;
    if (conn) {
        conn->request = NULL;
        client_conn_close(conn);
    } else if (!request->failure) {
        client->waiting_count--;
    }
    client_request_free(request);
    client_serve_waiting(client);
}

static void timer_closed(uv_handle_t *handle)
{
    client_release(handle->data);
}

void client_free(struct client *client)
{
    if (client->closing)
        return;
    client->closing = true;
    loop_task_cancel(&client->report);
    list_each(link, spare, &client->conns)
    {
        struct client_conn *conn = container_of(link, struct client_conn, link);
        conn->request = NULL;
        client_conn_close(conn);
    }
    list_append_all(&client->failed, &client->active);
    list_append_all(&client->failed, &client->waiting);
    client->waiting_count = 0;
    struct list *link;
    while ((link = list_take(&client->failed)) != NULL) {
        struct client_request *request = container_of(link, struct client_request, link);
        request->conn = NULL;
        if (!request->failure)
            request->failure = "the client was closed";
        tell_failure(request);
    }
    uv_close((uv_handle_t *)&client->sweep, timer_closed);
}
