/* SPDX-License-Identifier: Apache-2.0 */
/* Routes and their guard. A browser sends a page's requests to whatever address the page names,
 * loopback included, so a route that changes something refuses what a page has asked for: such a
 * request bears an Origin, and from current browsers Sec-Fetch-Site. Programs send neither. */

#include "region/admin.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <jansson.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

enum { CONFLICTS_LIMIT = 100, CONFLICTS_LIMIT_MAX = 1000, CLOCK_BODY_MAX = 4096 };

void admin_respond(struct exchange *exchange, int status, const char *type, const struct buf *body)
{
    struct http_header headers[] = {
        {bytes_literal("server"), bytes_literal("tidemark")},
        {bytes_literal("content-type"), bytes_text(type)},
        {bytes_literal("cache-control"), bytes_literal("no-store")},
    };
    exchange_respond(exchange, status, headers, array_len(headers), buf_view(body));
}

/* {"error":"..."}; the text holds nothing that JSON would have to escape. */
void admin_respond_error(struct exchange *exchange, int status, const char *text)
{
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    buf_printf(&body, "{\"error\":\"%s\"}\n", text);
    admin_respond(exchange, status, "application/json", &body);
}

/* ---- Requests ---- */

static struct bytes path_only(struct bytes path)
{
    const uint8_t *mark = path.len > 0 ? memchr(path.at, '?', path.len) : NULL;
    return mark ? bytes_make(path.at, (size_t)(mark - path.at)) : path;
}

/* The value of a query parameter, as it stands; empty when absent. */
static struct bytes query_value(struct bytes path, const char *name)
{
    struct bytes rest = path;
    size_t skip = path_only(path).len;
    rest = bytes_make(path.at + skip, path.len - skip);
    while (rest.len > 1) {
        struct bytes pair = bytes_make(rest.at + 1, rest.len - 1); /* behind ? or & */
        const uint8_t *next = memchr(pair.at, '&', pair.len);
        if (next)
            pair.len = (size_t)(next - pair.at);
        rest = bytes_make(pair.at + pair.len, rest.len - 1 - pair.len);
        size_t len = strlen(name);
        if (pair.len > len && memcmp(pair.at, name, len) == 0 && pair.at[len] == '=')
            return bytes_make(pair.at + len + 1, pair.len - len - 1);
    }
    return BYTES_NONE;
}

static bool parse_count(struct bytes text, uint32_t max, uint32_t *ret)
{
    uint64_t value = 0;
    if (text.len == 0 || text.len > 9)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        value = value * 10 + (text.at[i] - '0');
    }
    if (value == 0 || value > max)
        return false;
    *ret = (uint32_t)value;
    return true;
}

/* No page of ours changes anything, so any page is another site's: comparing its Origin with our
 * Host would only let in one whose name has been made to point here. */
bool admin_from_a_page(const struct http_request *request)
{
    return http_request_header(request, "origin").len > 0 ||
           http_request_header(request, "sec-fetch-site").len > 0;
}

/* ---- PUT /tidemark/clock ---- */

/* An optional integer member. False when it is something else or out of bounds. */
static bool read_member(const json_t *body, const char *name, int64_t max, int64_t *ret)
{
    const json_t *member = json_object_get(body, name);
    if (!member)
        return true;
    if (!json_is_integer(member))
        return false;
    json_int_t value = json_integer_value(member);
    if (value > max || value < -max)
        return false;
    *ret = value;
    return true;
}

static void handle_clock(struct admin *admin, struct exchange *exchange)
{
    const struct http_request *request = exchange_request(exchange);
    if (admin_from_a_page(request)) {
        admin_respond_error(exchange, 403, "requests made by a web page are refused");
        return;
    }
    if (request->body.len > CLOCK_BODY_MAX) {
        admin_respond_error(exchange, 413, "the body is too large");
        return;
    }
    uint64_t now_ns = admin->loop->mono_ns;
    int64_t offset_ms = clock_ahead_ms(admin->clock, now_ns);
    int64_t rate_ppm = admin->clock->rate_ppm;
    json_t *body =
        json_loadb((const char *)request->body.at, request->body.len, JSON_REJECT_DUPLICATES, NULL);
    bool good = json_is_object(body) &&
                read_member(body, "offset_ms", CLOCK_OFFSET_MS_MAX, &offset_ms) &&
                read_member(body, "rate_ppm", CLOCK_RATE_PPM_MAX, &rate_ppm);
    size_t known = good ? (json_object_get(body, "offset_ms") != NULL) +
                              (size_t)(json_object_get(body, "rate_ppm") != NULL)
                        : 0;
    good = good && known == json_object_size(body);
    json_decref(body);
    if (!good) {
        admin_respond_error(
            exchange, 400,
            "expected a JSON object with the integers offset_ms (at most a hundred years) and "
            "rate_ppm (at most 1000000), both optional");
        return;
    }
    clock_set(admin->clock, now_ns, offset_ms, rate_ppm);
    log_line(admin->log, TRACE_INFO, "clock: offset %" PRId64 " ms, rate %" PRId64 " ppm",
             offset_ms, rate_ppm);
    struct buf answer cleanup(buf_deinit);
    buf_init(&answer);
    buf_printf(&answer, "{\"offset_ms\":%" PRId64 ",\"rate_ppm\":%" PRId64 "}\n", offset_ms,
               rate_ppm);
    admin_respond(exchange, 200, "application/json", &answer);
}

/* ---- GET ---- */

static void handle_health(const struct admin *admin, struct exchange *exchange)
{
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    buf_printf(&body,
               admin->config->core.witness_only ? "healthy: witness in %s"
                                                : "healthy: dynamodb.%s.amazonaws.com",
               region_id_name(admin->config->core.region));
    admin_respond(exchange, 200, "text/plain", &body);
}

static void handle_status(const struct admin *admin, struct exchange *exchange)
{
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    admin_write_status(admin, &body);
    admin_respond(exchange, 200, "application/json", &body);
}

static void handle_metrics(const struct admin *admin, struct exchange *exchange)
{
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    admin_write_metrics(admin, &body);
    admin_respond(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
}

static void handle_conflicts(const struct admin *admin, struct exchange *exchange)
{
    struct bytes path = exchange_request(exchange)->path;
    struct bytes limit_text = query_value(path, "limit");
    struct bytes newest_text = query_value(path, "newest");
    uint32_t limit = CONFLICTS_LIMIT;
    bool newest = newest_text.len > 0;
    if ((newest || limit_text.len > 0) &&
        !parse_count(newest ? newest_text : limit_text, CONFLICTS_LIMIT_MAX, &limit)) {
        admin_respond_error(exchange, 400,
                            newest ? "newest: expected a number from 1 to 1000"
                                   : "limit: expected a number from 1 to 1000");
        return;
    }
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    if (newest ? admin_write_newest_conflicts(admin, limit, &body)
               : admin_write_conflicts(admin, query_value(path, "after"), limit, &body))
        admin_respond(exchange, 200, "application/json", &body);
    else
        admin_respond_error(exchange, 400,
                            "after: expected the token of a page before, or nothing");
}

bool admin_handle(struct admin *admin, struct exchange *exchange)
{
    const struct http_request *request = exchange_request(exchange);
    struct bytes path = path_only(request->path);
    bool get = bytes_is(request->method, "GET") || bytes_is(request->method, "HEAD");
    bool ours = bytes_is(path, "/metrics") || bytes_starts_with(path, bytes_literal("/tidemark/"));
    if (get && bytes_is(path, "/"))
        handle_health(admin, exchange);
    else if (!ours)
        return false;
    else if (get && bytes_is(path, "/metrics"))
        handle_metrics(admin, exchange);
    else if (get && bytes_is(path, "/tidemark/status"))
        handle_status(admin, exchange);
    else if (get && bytes_is(path, "/tidemark/conflicts"))
        handle_conflicts(admin, exchange);
    else if (bytes_is(request->method, "PUT") && bytes_is(path, "/tidemark/clock"))
        handle_clock(admin, exchange);
    else if (!admin_handle_faults(admin, exchange, path))
        admin_respond_error(
            exchange, 404,
            "no such route: GET /metrics, GET /tidemark/status, GET /tidemark/conflicts, PUT "
            "/tidemark/clock, GET or PUT /tidemark/faults, PUT /tidemark/transfer");
    return true;
}
