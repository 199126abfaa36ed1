/* SPDX-License-Identifier: Apache-2.0 */
/* The token that the core hands back is the request's address: the core answers each operation
 * exactly once, and the request lives until then, also when its client has gone. */

#include "region/serve.h"

#include "conflict/base/alloc.h"
#include "conflict/base/arena.h"
#include "conflict/base/check.h"
#include "conflict/base/list.h"
#include "region/api/api.h"
#include "region/api/json.h"

#define CONTENT_TYPE "application/x-amz-json-1.0"

enum {
    REQUESTS_KEPT_MAX = 256,
    ARENA_KEPT_MAX = 256 * 1024, /* a request that used more gives its memory back */
    BUFFER_KEPT_MAX = 1024 * 1024,
    HELD_MAX = 10000 /* by a fault; what comes on top of it is dropped */
};

struct request {
    struct list link; /* in spares, in pending, or in held */
    struct arena arena;
    struct exchange *exchange;
    struct op *op; /* held: answered by the core; NULL: it has not come to the core yet */
    uint64_t start_ns;
};

struct serve {
    struct api_config api;
    struct loop *loop;
    struct metrics *metrics;
    bool witness;
    struct driver *driver;    /* NULL: not ready */
    uint64_t id_high, id_low; /* of request ids */
    struct list spares, pending;
    uint32_t spare_count, pending_count;
    struct faults *faults; /* NULL: none */
    struct list held;
    uint32_t held_count;
    struct buf body, scratch;
};

static struct request *request_take(struct serve *serve)
{
    struct list *link = list_take(&serve->spares);
    if (link) {
        serve->spare_count--;
        return container_of(link, struct request, link);
    }
    struct request *request = xcalloc(1, sizeof(*request));
    list_init(&request->link);
    arena_init(&request->arena);
    return request;
}

static void request_free(struct request *request)
{
    arena_deinit(&request->arena);
    free(request);
}

static void request_recycle(struct serve *serve, struct request *request)
{
    if (serve->spare_count == REQUESTS_KEPT_MAX || request->arena.used > ARENA_KEPT_MAX) {
        request_free(request);
        return;
    }
    arena_reset(&request->arena);
    request->exchange = NULL;
    request->op = NULL;
    list_append(&serve->spares, &request->link);
    serve->spare_count++;
}

static void trim(struct buf *buf)
{
    if (buf->cap > BUFFER_KEPT_MAX)
        buf_deinit(buf);
}

/* Sends what is in serve->body. */
static void answer(struct serve *serve, struct exchange *exchange, enum api_error error)
{
    struct bytes body = buf_view(&serve->body);
    struct bytes accept = http_request_header(exchange_request(exchange), "accept-encoding");
    struct api_answer answer;
    buf_reset(&serve->scratch);
    api_finish(error, accept, serve->id_high, ++serve->id_low, &body, &serve->scratch, &answer);
    struct http_header headers[5] = {
        {bytes_literal("server"), bytes_literal("tidemark")},
        {bytes_literal("content-type"), bytes_literal(CONTENT_TYPE)},
        {bytes_literal("x-amzn-requestid"), bytes_text(answer.request_id)},
        {bytes_literal("x-amz-crc32"), bytes_text(answer.crc32)},
    };
    uint32_t count = 4;
    if (answer.content_encoding)
        headers[count++] = (struct http_header){bytes_literal("content-encoding"),
                                                bytes_text(answer.content_encoding)};
    exchange_respond(exchange, answer.status, headers, count, body);
    trim(&serve->body);
    trim(&serve->scratch);
}

static void finish(struct serve *serve, struct request *request, const struct op *op)
{
    enum api_error error = op->result.error;
    buf_reset(&serve->body);
    api_respond(op, &serve->body);
    answer(serve, request->exchange, error);
    metrics_request(serve->metrics, op->kind, error, uv_hrtime() - request->start_ns);
    request_recycle(serve, request);
}

/* An answer to any request, whatever it asks for. */
static void answer_all(struct serve *serve, struct exchange *exchange, enum api_error error,
                       const char *text)
{
    buf_reset(&serve->body);
    api_respond_error(error, text, &serve->body);
    answer(serve, exchange, error);
    metrics_request(serve->metrics, OP_KIND_COUNT, error, 0);
}

static void drop(struct serve *serve, struct request *request)
{
    exchange_abort(request->exchange);
    request_recycle(serve, request);
}

/* Until serve_release. */
static void hold(struct serve *serve, struct request *request, struct op *op)
{
    if (serve->held_count == HELD_MAX) {
        drop(serve, request);
        return;
    }
    request->op = op;
    list_append(&serve->held, &request->link);
    serve->held_count++;
}

/* Whether a fault has seen to the request. */
static bool strike_request(struct serve *serve, struct exchange *exchange)
{
    struct bytes target = http_request_header(exchange_request(exchange), "x-amz-target");
    enum api_error error = API_OK;
    switch (faults_request(serve->faults, exchange_connection(exchange), target, &error)) {
    case FAULTS_PASS:
        return false;
    case FAULTS_DROP:
        exchange_abort(exchange);
        return true;
    case FAULTS_HOLD: {
        struct request *request = request_take(serve);
        request->exchange = exchange;
        hold(serve, request, NULL);
        return true;
    }
    case FAULTS_FAIL:
        answer_all(serve, exchange, error, faults_error_text(error));
        return true;
    }
    unreachable();
}

void serve_request(struct serve *serve, struct exchange *exchange)
{
    if (serve->faults && serve->faults->count > 0 && strike_request(serve, exchange))
        return;
    if (serve->witness) {
        answer_all(serve, exchange, API_UNKNOWN_OPERATION, SERVE_WITNESS_TEXT);
        return;
    }
    if (!serve->driver) {
        answer_all(serve, exchange, API_UNAVAILABLE, "The Region is starting. Try again shortly.");
        return;
    }
    const struct http_request *http = exchange_request(exchange);
    struct request *request = request_take(serve);
    request->exchange = exchange;
    request->start_ns = serve->loop->mono_ns;
    struct api_request api = {
        .method = http->method, .path = http->path, .host = http->host, .body = http->body};
    /* One pass: the headers that matter are few among many. */
    for (uint32_t i = 0; i < http->header_count; i++) {
        struct bytes name = http->headers[i].name;
        struct bytes value = http->headers[i].value;
        if (bytes_is(name, "x-amz-target"))
            api.target = value;
        else if (bytes_is(name, "content-type"))
            api.content_type = value;
        else if (bytes_is(name, "authorization"))
            api.authorization = value;
        else if (bytes_is(name, "x-amz-date"))
            api.amz_date = value;
        else if (bytes_is(name, "x-amz-security-token"))
            api.amz_security_token = value;
    }
    struct op *op = api_parse(&serve->api, &api, &request->arena);
    if (op->result.error != API_OK || op->answered) {
        finish(serve, request, op);
        return;
    }
    list_append(&serve->pending, &request->link);
    serve->pending_count++;
    struct region_input in = {
        .kind = REGION_REQUEST, .token = (uint64_t)(uintptr_t)request, .op = op};
    driver_push(serve->driver, &in, 0);
}

/* An answer on its way out, past the faults. */
static void give(struct serve *serve, struct request *request, struct op *op)
{
    enum faults_verdict verdict = FAULTS_PASS;
    if (serve->faults && serve->faults->count > 0)
        verdict = faults_answer(serve->faults, exchange_connection(request->exchange));
    if (verdict == FAULTS_DROP)
        drop(serve, request);
    else if (verdict == FAULTS_HOLD)
        hold(serve, request, op);
    else
        finish(serve, request, op);
}

void serve_reply(struct serve *serve, uint64_t token, struct op *op)
{
    struct request *request = (struct request *)(uintptr_t)token;
    list_remove(&request->link);
    serve->pending_count--;
    give(serve, request, op);
}

void serve_release(struct serve *serve)
{
    struct list held;
    list_init(&held);
    list_append_all(&held, &serve->held);
    serve->held_count = 0;
    for (struct list *link; (link = list_take(&held)) != NULL;) {
        struct request *request = container_of(link, struct request, link);
        struct exchange *exchange = request->exchange;
        if (request->op) {
            give(serve, request, request->op);
        } else if (exchange_gone(exchange)) {
            drop(serve, request); /* nobody waits for it any more: it is not carried out */
        } else {
            request_recycle(serve, request);
            serve_request(serve, exchange);
        }
    }
}

void serve_set_faults(struct serve *serve, struct faults *faults)
{
    serve->faults = faults;
}

uint32_t serve_pending(const struct serve *serve)
{
    return serve->pending_count;
}

void serve_abort(struct serve *serve)
{
    list_each(link, spare, &serve->pending)
    {
        exchange_abort(container_of(link, struct request, link)->exchange);
    }
    for (struct list *link; (link = list_take(&serve->held)) != NULL;)
        drop(serve, container_of(link, struct request, link));
    serve->held_count = 0;
    serve->driver = NULL;
}

void serve_refuse(int status, struct buf *body, const char **ret_content_type)
{
    *ret_content_type = CONTENT_TYPE;
    switch (status) {
    case 413:
        api_respond_error(API_REQUEST_TOO_LARGE, "Request size exceeded 16 MB limit", body);
        return;
    case 503:
        api_respond_error(API_UNAVAILABLE, "The Region is busy. Try again shortly.", body);
        return;
    case 408:
        api_respond_error(API_SERIALIZATION, "The request did not arrive in time.", body);
        return;
    case 431:
        api_respond_error(API_SERIALIZATION, "The request's headers are too large.", body);
        return;
    default:
        api_respond_error(API_SERIALIZATION, "The request is not well-formed HTTP.", body);
        return;
    }
}

void serve_begin(struct serve *serve, struct driver *driver)
{
    serve->driver = driver;
}

struct serve *serve_new(const struct config *config, struct loop *loop, struct metrics *metrics,
                        uint64_t seed)
{
    struct serve *serve = xcalloc(1, sizeof(*serve));
    serve->api = (struct api_config){
        .region = config->core.region,
        .strict_credentials = config->strict_credentials,
        .json = json_reader_new(),
    };
    serve->loop = loop;
    serve->metrics = metrics;
    serve->witness = config->core.witness_only;
    serve->id_high = seed;
    list_init(&serve->spares);
    list_init(&serve->pending);
    list_init(&serve->held);
    buf_init(&serve->body);
    buf_init(&serve->scratch);
    return serve;
}

void serve_free(struct serve *serve)
{
    if (!serve)
        return;
    list_append_all(&serve->spares, &serve->pending);
    for (struct list *link = list_take(&serve->spares); link; link = list_take(&serve->spares))
        request_free(container_of(link, struct request, link));
    json_reader_free(serve->api.json);
    buf_deinit(&serve->body);
    buf_deinit(&serve->scratch);
    free(serve);
}
