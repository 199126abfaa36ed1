/* SPDX-License-Identifier: Apache-2.0 */
/* Headers are passed as views and the body is copied once, into the connection to the region.
 * Headers that describe this hop only, or a body encoding that the server has already undone, stay
 * behind. Requests whose client has gone are given up within a second, or a paused region would
 * collect them. */

#include "chaos/live/door.h"

#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/api/api.h"

enum { SWEEP_MS = 1000, TOLD_MAX = 64 };

struct door {
    struct cluster *cluster;
    struct server *server;
    struct list calls;
    uv_timer_t sweep;
    struct http_header *headers; /* scratch of one call */
    uint32_t header_cap;
    uint64_t answers; /* numbers the request ids of our own answers */
};

struct door_call {
    struct list link;
    struct door *door;
    struct exchange *exchange;
    struct client_request *request;
    struct site *assumed; /* NULL: the request named its region */
};

/* ---- Our own answers ---- */

static void answer_error(struct door *door, struct exchange *exchange, enum api_error error,
                         const char *message)
{
    struct buf body, scratch;
    struct api_answer answer;
    buf_init(&body);
    buf_init(&scratch);
    api_respond_error(error, message, &body);
    struct bytes view = buf_view(&body);
    api_finish(error, BYTES_NONE, uv_hrtime(), ++door->answers, &view, &scratch, &answer);
    const struct http_header headers[] = {
        {bytes_literal("content-type"), bytes_literal("application/x-amz-json-1.0")},
        {bytes_literal("x-amzn-requestid"), bytes_text(answer.request_id)},
        {bytes_literal("x-amz-crc32"), bytes_text(answer.crc32)},
    };
    exchange_respond(exchange, answer.status, headers, array_len(headers), view);
    buf_deinit(&body);
    buf_deinit(&scratch);
}

static void on_refuse(void *context, int status, struct buf *body, const char **ret_content_type)
{
    (void)context;
    bool large = status == 413;
    api_respond_error(large ? API_REQUEST_TOO_LARGE : API_SERIALIZATION,
                      large ? "The request body is too large" : "The request can't be read as HTTP",
                      body);
    *ret_content_type = "application/x-amz-json-1.0";
}

static void refuse_mismatch(struct door *door, struct exchange *exchange, struct bytes signed_for,
                            struct bytes named)
{
    char message[400];
    snprintf(
        message, sizeof(message),
        "Credential should be scoped to a valid region: the request is signed for '%.*s', but its "
        "Host names '%.*s'. Sign for the region that you send to.",
        (int)(signed_for.len < TOLD_MAX ? signed_for.len : TOLD_MAX), (const char *)signed_for.at,
        (int)(named.len < TOLD_MAX ? named.len : TOLD_MAX), (const char *)named.at);
    answer_error(door, exchange, API_INVALID_SIGNATURE, message);
}

static void refuse_unknown(struct door *door, struct exchange *exchange, struct bytes region)
{
    struct buf message;
    buf_init(&message);
    buf_printf(&message, "Region '%.*s' is not in this cluster, which has ",
               (int)(region.len < TOLD_MAX ? region.len : TOLD_MAX), (const char *)region.at);
    cluster_names(door->cluster, false, &message);
    buf_append_text(&message,
                    ". Set the client's region to one of these, or start the cluster with "
                    "--regions.");
    buf_append_u8(&message, 0);
    answer_error(door, exchange, API_UNRECOGNIZED_CLIENT, (const char *)message.at);
    buf_deinit(&message);
}

static void refuse_witness(struct door *door, struct exchange *exchange, const struct site *site)
{
    struct buf message;
    buf_init(&message);
    buf_printf(&message,
               "Region '%s' holds a witness in this cluster: it has no items and answers no "
               "DynamoDB requests. Set the client's region to one that has a replica: ",
               site->name);
    cluster_names(door->cluster, false, &message);
    buf_append_text(&message, ".");
    buf_append_u8(&message, 0);
    answer_error(door, exchange, API_UNKNOWN_OPERATION, (const char *)message.at);
    buf_deinit(&message);
}

/* ---- Choosing ---- */

enum door_choice door_choose(struct cluster *cluster, const struct http_request *request,
                             struct bytes *ret_signed_for, struct bytes *ret_named,
                             struct site **ret)
{
    struct bytes signed_for =
        sigv4_region(http_request_header(request, "authorization"), request->path);
    struct bytes named = host_region(request->host);
    *ret_signed_for = signed_for;
    *ret_named = named;
    if (signed_for.len == 0 && named.len == 0) {
        *ret = &cluster->sites[0];
        return DOOR_ASSUMED;
    }
    if (signed_for.len > 0 && named.len > 0 && !bytes_equal(signed_for, named))
        return DOOR_MISMATCH;
    *ret = cluster_find(cluster, signed_for.len > 0 ? signed_for : named);
    if (*ret == NULL)
        return DOOR_UNKNOWN;
    return (*ret)->witness ? DOOR_WITNESS : DOOR_FOUND;
}

/* ---- Passing on ---- */

static bool stays_behind(struct bytes name)
{
    static const char *const hop[] = {
        "connection", "content-length",   "transfer-encoding", "keep-alive",
        "expect",     "proxy-connection", "upgrade",           "te",
        "trailer",    "http2-settings",   "content-encoding",
    };
    for (size_t i = 0; i < array_len(hop); i++)
        if (bytes_is(name, hop[i]))
            return true;
    return false;
}

static struct http_header *header_room(struct door *door, uint32_t count)
{
    if (count > door->header_cap) {
        door->header_cap = count + 32;
        door->headers = xrealloc(door->headers, door->header_cap * sizeof(*door->headers));
    }
    return door->headers;
}

static void call_end(struct door_call *call)
{
    list_remove(&call->link);
    free(call);
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct door_call *call = context;
    struct door *door = call->door;
    if (answer->status == 0) {
        exchange_abort(call->exchange);
        call_end(call);
        return;
    }
    struct http_header *headers = header_room(door, answer->header_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < answer->header_count; i++) {
        struct bytes name = answer->headers[i].name;
        /* An answer's encoding is of the bytes as they are. */
        if (!stays_behind(name) || bytes_is(name, "content-encoding"))
            headers[count++] = answer->headers[i];
    }
    char assumed[TOLD_MAX + 16];
    if (call->assumed != NULL) {
        snprintf(assumed, sizeof(assumed), "%s (assumed)", call->assumed->name);
        headers[count++] =
            (struct http_header){bytes_literal("x-tidemark-region"), bytes_text(assumed)};
    }
    exchange_respond(call->exchange, answer->status, headers, count, answer->body);
    call_end(call);
}

static void pass_on(struct door *door, struct site *site, bool assumed, struct exchange *exchange)
{
    const struct http_request *request = exchange_request(exchange);
    struct http_header *headers = header_room(door, request->header_count + 1);
    uint32_t count = 0;
    bool has_host = false;
    for (uint32_t i = 0; i < request->header_count; i++) {
        struct bytes name = request->headers[i].name;
        has_host |= bytes_is(name, "host");
        if (!stays_behind(name) && (name.len == 0 || name.at[0] != ':'))
            headers[count++] = request->headers[i];
    }
    if (!has_host && request->host.len > 0)
        headers[count++] = (struct http_header){bytes_literal("host"), request->host};
    struct door_call *call = xmalloc(sizeof(*call));
    *call =
        (struct door_call){.door = door, .exchange = exchange, .assumed = assumed ? site : NULL};
    list_append(&door->calls, &call->link);
    const struct client_call to = {.method = request->method,
                                   .path = request->path,
                                   .headers = headers,
                                   .header_count = count,
                                   .body = request->body};
    call->request = client_send(site->door, &to, on_answer, call);
}

static void on_request(void *context, struct exchange *exchange)
{
    struct door *door = context;
    struct bytes signed_for, named;
    struct site *site;
    switch (door_choose(door->cluster, exchange_request(exchange), &signed_for, &named, &site)) {
    case DOOR_MISMATCH:
        refuse_mismatch(door, exchange, signed_for, named);
        return;
    case DOOR_UNKNOWN:
        refuse_unknown(door, exchange, signed_for.len > 0 ? signed_for : named);
        return;
    case DOOR_WITNESS:
        refuse_witness(door, exchange, site);
        return;
    case DOOR_ASSUMED:
    case DOOR_FOUND:
        if (site->process == NULL)
            exchange_abort(exchange);
        else
            pass_on(door, site, signed_for.len == 0 && named.len == 0, exchange);
        return;
    }
    unreachable();
}

static void on_sweep(uv_timer_t *timer)
{
    struct door *door = timer->data;
    list_each(link, spare, &door->calls)
    {
        struct door_call *call = container_of(link, struct door_call, link);
        if (!exchange_gone(call->exchange))
            continue;
        client_cancel(call->request);
        exchange_abort(call->exchange);
        call_end(call);
    }
}

struct door *door_open(struct cluster *cluster, const char *address, struct buf *error)
{
    char reason[256];
    struct door *door = xcalloc(1, sizeof(*door));
    const struct server_handler handler = {
        .request = on_request, .refuse = on_refuse, .context = door};
    struct server_limits limits = server_limits_default();
    door->cluster = cluster;
    list_init(&door->calls);
    door->server =
        server_listen(cluster->loop, address, &limits, NULL, &handler, reason, sizeof(reason));
    if (door->server == NULL) {
        buf_printf(error, "the front door can't listen on %s: %s; choose another --port", address,
                   reason);
        free(door);
        return NULL;
    }
    check(uv_timer_init(&cluster->loop->uv, &door->sweep) == 0);
    door->sweep.data = door;
    check(uv_timer_start(&door->sweep, on_sweep, SWEEP_MS, SWEEP_MS) == 0);
    return door;
}

uint16_t door_port(const struct door *door)
{
    return server_port(door->server);
}

static void on_sweep_closed(uv_handle_t *handle)
{
    struct door *door = handle->data;
    free(door->headers);
    free(door);
}

void door_close(struct door *door)
{
    list_each(link, spare, &door->calls)
    {
        struct door_call *call = container_of(link, struct door_call, link);
        client_cancel(call->request);
        exchange_abort(call->exchange);
        call_end(call);
    }
    server_close(door->server);
    uv_close((uv_handle_t *)&door->sweep, on_sweep_closed);
}
