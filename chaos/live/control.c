/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the control API that all routes share: who may ask, what was asked, how answers look.
 */

#include "chaos/live/control.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "chaos/live/console.h"
#include "chaos/live/runs.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { BODY_MAX = 1024 * 1024, CONNECTIONS_MAX = 256 };

/* ---- Who may ask ---- */

static struct bytes header(const struct http_request *request, const char *name)
{
    return http_request_header(request, name);
}

/* A page elsewhere can make a browser send here any Host that it can make resolve to us, but never
 * one of these. */
static bool host_is_ours(const struct control *control, struct bytes host)
{
    struct address address;
    char with_port[ADDRESS_MAX];
    struct sockaddr_storage numeric;
    bool parsed = address_parse(host, &address);
    if (!parsed && host.len < ADDRESS_MAX - 4) { /* a Host without a port */
        int len =
            snprintf(with_port, sizeof(with_port), "%.*s:80", (int)host.len, (const char *)host.at);
        parsed = address_parse(bytes_make(with_port, (size_t)len), &address);
    }
    if (!parsed)
        return false;
    if (strcasecmp(address.host, "localhost") == 0 || address_is_loopback(&address))
        return true;
    /* Listening wider was asked for: then an address in numbers is ours, as no name is rebound by
     * it. */
    return !address_is_loopback(&control->address) && address_numeric(&address, &numeric);
}

static bool origin_is_ours(const struct control *control, struct bytes origin, struct bytes host)
{
    static const char scheme[] = "http://";
    if (!bytes_starts_with(origin, bytes_text(scheme)))
        return false;
    struct bytes rest = bytes_make(origin.at + sizeof(scheme) - 1, origin.len - sizeof(scheme) + 1);
    return bytes_equal(rest, host) && host_is_ours(control, rest);
}

static bool is_safe(struct bytes method)
{
    return bytes_is(method, "GET") || bytes_is(method, "HEAD");
}

/* A person who follows a link from another site to the console has asked for it, and sees a page
 * that its site cannot look into. Every other fetch from there is the site's own. */
static bool is_visit(const struct http_request *request)
{
    return bytes_is(header(request, "sec-fetch-mode"), "navigate") &&
           bytes_is(header(request, "sec-fetch-dest"), "document");
}

/* Toxiproxy turns all browsers away. Ours are let in, for the console is one, and must say of a
 * change that they ask from here; what only reads gives a foreign page nothing that its browser
 * would let it see, and is refused all the same. */
const char *control_suspicion(const struct control *control, const struct http_request *request)
{
    struct bytes origin = header(request, "origin");
    struct bytes site = header(request, "sec-fetch-site");
    bool page = console_find(request) != NULL;
    bool browser = bytes_starts_with(header(request, "user-agent"), bytes_literal("Mozilla/"));
    if (browser && !page && !bytes_starts_with(request->path, bytes_literal("/v1/")))
        return "User agent not allowed";
    if (request->host.len > 0 && !host_is_ours(control, request->host))
        return "the Host is not this control API's address: ask for it by 127.0.0.1 or localhost";
    if (origin.len > 0 && !origin_is_ours(control, origin, request->host))
        return "the Origin is another site: web pages may not control a cluster";
    if (site.len > 0 && !bytes_is(site, "same-origin") && !bytes_is(site, "none") &&
        !(page && is_visit(request)))
        return "Sec-Fetch-Site is another site: web pages may not control a cluster";
    if (browser && !is_safe(request->method) && origin.len == 0 && !bytes_is(site, "same-origin"))
        return "a browser must say where a change comes from: neither Origin nor Sec-Fetch-Site";
    return NULL;
}

/* ---- Answers ---- */

static void respond(struct control *control, struct exchange *exchange, int status,
                    const char *note, struct bytes body)
{
    char id[32];
    uint32_t count = 0;
    struct http_header headers[6];
    snprintf(id, sizeof(id), "%020" PRIu64, ++control->answers);
    headers[count++] =
        (struct http_header){bytes_literal("x-toxiproxy-request-id"), bytes_text(id)};
    headers[count++] =
        (struct http_header){bytes_literal("cache-control"), bytes_literal("no-store")};
    headers[count++] =
        (struct http_header){bytes_literal("x-content-type-options"), bytes_literal("nosniff")};
    headers[count++] = (struct http_header){bytes_literal("cross-origin-resource-policy"),
                                            bytes_literal("same-origin")};
    if (body.len > 0)
        headers[count++] =
            (struct http_header){bytes_literal("content-type"), bytes_literal("application/json")};
    if (note != NULL)
        headers[count++] = (struct http_header){bytes_literal("x-tidemark-note"), bytes_text(note)};
    exchange_respond(exchange, status, headers, count, body);
}

void control_answer_noted(struct control *control, struct exchange *exchange, int status,
                          const char *note, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    check(text != NULL);
    respond(control, exchange, status, note, bytes_text(text));
    free(text);
    json_decref(json);
}

void control_answer(struct control *control, struct exchange *exchange, int status, json_t *json)
{
    control_answer_noted(control, exchange, status, NULL, json);
}

void control_answer_empty(struct control *control, struct exchange *exchange, int status)
{
    respond(control, exchange, status, NULL, BYTES_NONE);
}

void control_fail(struct control *control, struct exchange *exchange, int status,
                  const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    /* A name that is no UTF-8 may have been cut in the middle; the answer must stay JSON. */
    json_t *told = json_string(message);
    if (told == NULL)
        told = json_string("the request names something that is not UTF-8");
    control_answer(control, exchange, status,
                   json_pack("{s:o, s:i}", "error", told, "status", status));
}

/* ---- Requests ---- */

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode_segment(struct bytes from, char *to)
{
    size_t len = 0;
    for (size_t i = 0; i < from.len; i++) {
        uint8_t c = from.at[i];
        if (c == '%') {
            bool whole = from.len - i > 2;
            int high = whole ? hex(from.at[i + 1]) : -1;
            int low = whole ? hex(from.at[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return false;
            c = (uint8_t)(high << 4 | low);
            i += 2;
        }
        if (len + 1 >= CONTROL_SEGMENT_MAX)
            return false;
        to[len++] = (char)c;
    }
    to[len] = 0;
    return true;
}

static bool split_path(struct bytes path, struct control_request *request)
{
    const uint8_t *query = path.len == 0 ? NULL : memchr(path.at, '?', path.len);
    if (query != NULL)
        path.len = (size_t)(query - path.at);
    if (path.len == 0 || path.at[0] != '/')
        return false;
    if (path.len > 1 && path.at[path.len - 1] == '/')
        path.len--;
    size_t at = 1;
    while (at < path.len) {
        const uint8_t *slash = memchr(path.at + at, '/', path.len - at);
        size_t end = slash == NULL ? path.len : (size_t)(slash - path.at);
        if (request->path_len == CONTROL_PATH_MAX ||
            !decode_segment(bytes_make(path.at + at, end - at), request->path[request->path_len++]))
            return false;
        at = end + 1;
    }
    return true;
}

static void on_request(void *context, struct exchange *exchange)
{
    struct control *control = context;
    const struct http_request *http = exchange_request(exchange);
    const char *suspicion = control_suspicion(control, http);
    if (suspicion != NULL) {
        control_fail(control, exchange, 403, "%s", suspicion);
        return;
    }
    const struct console_file *file = console_find(http);
    if (file != NULL) {
        console_serve(file, exchange);
        return;
    }
    struct control_request *request = xcalloc(1, sizeof(*request));
    request->control = control;
    request->exchange = exchange;
    request->method = http->method;
    snprintf(request->body_error, sizeof(request->body_error), "EOF");
    if (http->body.len > 0) {
        json_error_t error;
        request->body = json_loadb((const char *)http->body.at, http->body.len,
                                   JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
        if (request->body == NULL)
            snprintf(request->body_error, sizeof(request->body_error), "%.140s", error.text);
    }
    if (!split_path(http->path, request) || (!toxiproxy_api(request) && !cluster_api(request)))
        control_fail(control, exchange, 404,
                     "no such route: expected one of Toxiproxy's (/proxies, /populate, /reset, "
                     "/version) or /v1/status, /v1/conflicts, /v1/regions, /v1/links, /v1/runs, or "
                     "/ for the console");
    json_decref(request->body);
    free(request);
}

static void on_refuse(void *context, int status, struct buf *body, const char **ret_content_type)
{
    (void)context;
    buf_printf(body, "{\"error\":\"the request can't be served\",\"status\":%d}", status);
    *ret_content_type = "application/json";
}

struct control *control_open(struct cluster *cluster, const char *address, struct buf *error)
{
    char reason[256];
    struct control *control = xcalloc(1, sizeof(*control));
    const struct server_handler handler = {
        .request = on_request, .refuse = on_refuse, .context = control};
    struct server_limits limits = server_limits_default();
    limits.connections_max = CONNECTIONS_MAX;
    limits.body_bytes_max = BODY_MAX;
    control->cluster = cluster;
    control->runs = RUNS_DIRECTORY;
    check(address_parse(bytes_text(address), &control->address));
    control->server =
        server_listen(cluster->loop, address, &limits, NULL, &handler, reason, sizeof(reason));
    if (control->server == NULL) {
        buf_printf(error,
                   "the control API can't listen on %s: %s; choose another --control HOST:PORT",
                   address, reason);
        free(control);
        return NULL;
    }
    control->address.port = server_port(control->server);
    return control;
}

void control_close(struct control *control)
{
    server_close(control->server);
    free(control);
}
