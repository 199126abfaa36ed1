/* SPDX-License-Identifier: Apache-2.0 */
/* Toxiproxy's HTTP API, so that its client libraries work on our links and on proxies of their own.
 * Routes, status codes, field names and error texts are Toxiproxy's. What differs, and why: a link
 * of the cluster can't be deleted or moved, as the regions know its address; values that mean
 * nothing are refused; an empty listen host means loopback. */

#include <stdio.h>
#include <string.h>

#include "chaos/live/control.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* The version of the API that we follow, then ours. */
#define API_VERSION "2.12.0+tidemark." TIDEMARK_VERSION

/* What a body says of a proxy. */
struct wanted {
    const char *name;
    struct address listen, upstream;
    bool has_listen, has_upstream, enabled;
};

struct refusal {
    int status;
    char text[400];
};

static bool refuse(struct refusal *refusal, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct refusal *refusal, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    refusal->status = status;
    vsnprintf(refusal->text, sizeof(refusal->text), format, args);
    va_end(args);
    return false;
}

static void answer_refusal(struct control_request *request, const struct refusal *refusal)
{
    control_fail(request->control, request->exchange, refusal->status, "%s", refusal->text);
}

static void answer(struct control_request *request, int status, json_t *json)
{
    control_answer(request->control, request->exchange, status, json);
}

static struct proxy_set *proxies_of(struct control_request *request)
{
    return &request->control->cluster->proxies;
}

static json_t *encode(const struct proxy *proxy)
{
    char listen[ADDRESS_MAX], upstream[ADDRESS_MAX];
    json_t *toxics = json_array();
    for (int i = 0; i < 2; i++)
        list_each(link, spare, &proxy->toxics[i])
            json_array_append_new(toxics, toxic_encode(container_of(link, struct toxic, link)));
    address_print(&proxy->listen, listen);
    address_print(&proxy->upstream, upstream);
    return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", proxy->name, "listen", listen, "upstream",
                     upstream, "enabled", proxy->enabled, "toxics", toxics);
}

/* ---- Reading a proxy ---- */

static bool read_text(json_t *body, const char *field, const char **ret, struct refusal *refusal)
{
    json_t *value = json_object_get(body, field);
    *ret = NULL;
    if (value == NULL || json_is_null(value))
        return true;
    if (!json_is_string(value))
        return refuse(refusal, 400, "bad request body: %s must be a string", field);
    if (json_string_length(value) > 0)
        *ret = json_string_value(value);
    return true;
}

static bool read_address(json_t *body, const char *field, struct address *address, bool *ret_has,
                         struct refusal *refusal)
{
    const char *text;
    struct sockaddr_storage numeric;
    if (!read_text(body, field, &text, refusal))
        return false;
    *ret_has = text != NULL;
    if (text == NULL)
        return true;
    if (!address_parse(bytes_text(text), address))
        return refuse(refusal, 400, "bad request body: %s '%.64s': %s", field, text,
                      address_expected);
    if (strcmp(field, "listen") == 0) {
        if (!address_numeric(address, &numeric))
            return refuse(refusal, 400, "bad request body: listen '%.64s': expected an IP address",
                          text);
        if (strcmp(address->host, "localhost") == 0)
            snprintf(address->host, sizeof(address->host), "127.0.0.1");
    }
    return true;
}

/* Over what `wanted` already holds. */
static bool read_proxy(json_t *body, struct wanted *wanted, struct refusal *refusal)
{
    if (!json_is_object(body))
        return refuse(refusal, 400, "bad request body: an object was expected");
    if (!read_text(body, "name", &wanted->name, refusal) ||
        !read_address(body, "listen", &wanted->listen, &wanted->has_listen, refusal) ||
        !read_address(body, "upstream", &wanted->upstream, &wanted->has_upstream, refusal))
        return false;
    json_t *enabled = json_object_get(body, "enabled");
    if (enabled != NULL && !json_is_boolean(enabled) && !json_is_null(enabled))
        return refuse(refusal, 400, "bad request body: enabled must be true or false");
    if (json_is_boolean(enabled))
        wanted->enabled = json_is_true(enabled);
    return true;
}

/* `number` is the proxy's place in a list, from 1; 0: it stands alone. */
static bool read_new_proxy(json_t *body, size_t number, struct wanted *wanted,
                           struct refusal *refusal)
{
    char place[32] = "";
    *wanted = (struct wanted){.enabled = true, .listen = {.host = "127.0.0.1"}};
    if (!read_proxy(body, wanted, refusal))
        return false;
    if (number > 0)
        snprintf(place, sizeof(place), " at proxy %zu", number);
    if (wanted->name == NULL)
        return refuse(refusal, 400, "missing required field: name%s", place);
    if (!wanted->has_upstream)
        return refuse(refusal, 400, "missing required field: upstream%s", place);
    if (strlen(wanted->name) > PROXY_NAME_MAX)
        return refuse(refusal, 400, "bad request body: name is longer than %d bytes",
                      PROXY_NAME_MAX);
    return true;
}

/* ---- Changing a proxy ---- */

static bool switch_proxy(struct control_request *request, struct proxy *proxy, bool enabled,
                         struct refusal *refusal)
{
    if (proxy->is_link) {
        cluster_proxy_switched(request->control->cluster, proxy, enabled);
        return true;
    }
    if (enabled == proxy->enabled)
        return true;
    if (!enabled) {
        proxy_disable(proxy);
        return true;
    }
    int failed = proxy_enable(proxy);
    if (failed == 0)
        return true;
    char listen[ADDRESS_MAX];
    address_print(&proxy->listen, listen);
    return refuse(refusal, 500, "listen tcp %s: bind: %s", listen, strerror(-failed));
}

static bool create_proxy(struct control_request *request, const struct wanted *wanted,
                         struct refusal *refusal, struct proxy **ret)
{
    struct proxy_set *set = proxies_of(request);
    if (proxy_find(set, wanted->name) != NULL)
        return refuse(refusal, 409, "proxy already exists");
    if (set->count >= PROXIES_MAX)
        return refuse(refusal, 400, "there are %d proxies already: delete some first", PROXIES_MAX);
    struct proxy *proxy = proxy_new(set, wanted->name, &wanted->listen, &wanted->upstream, false);
    if (!switch_proxy(request, proxy, wanted->enabled, refusal)) {
        proxy_free(proxy);
        return false;
    }
    *ret = proxy;
    return true;
}

static bool same_address(const struct address *a, const struct address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static bool moves(const struct proxy *proxy, const struct wanted *wanted)
{
    return !same_address(&proxy->listen, &wanted->listen) ||
           !same_address(&proxy->upstream, &wanted->upstream);
}

static bool refuse_link(const struct proxy *proxy, const char *verb, struct refusal *refusal)
{
    return refuse(
        refusal, 403,
        "%s is a link of this cluster and can't be %s: cut it (enabled: false) or give it "
        "toxics instead",
        proxy->name, verb);
}

static bool update_proxy(struct control_request *request, struct proxy *proxy,
                         struct refusal *refusal)
{
    struct wanted wanted = {
        .listen = proxy->listen, .upstream = proxy->upstream, .enabled = proxy->enabled};
    if (request->body == NULL)
        return refuse(refusal, 400, "bad request body: %s", request->body_error);
    if (!read_proxy(request->body, &wanted, refusal))
        return false;
    if (moves(proxy, &wanted)) {
        if (proxy->is_link)
            return refuse_link(proxy, "moved", refusal);
        proxy_move(proxy, &wanted.listen, &wanted.upstream);
    }
    return switch_proxy(request, proxy, wanted.enabled, refusal);
}

static bool add_or_replace(struct control_request *request, const struct wanted *wanted,
                           struct refusal *refusal, struct proxy **ret)
{
    struct proxy *proxy = proxy_find(proxies_of(request), wanted->name);
    if (proxy == NULL)
        return create_proxy(request, wanted, refusal, ret);
    if (moves(proxy, wanted)) {
        if (proxy->is_link)
            return refuse_link(proxy, "moved", refusal);
        proxy_free(proxy);
        return create_proxy(request, wanted, refusal, ret);
    }
    *ret = proxy;
    return switch_proxy(request, proxy, wanted->enabled, refusal);
}

/* All are read before one is changed. */
static bool populate(struct control_request *request, json_t *made, struct refusal *refusal)
{
    if (request->body == NULL)
        return refuse(refusal, 400, "bad request body: %s", request->body_error);
    if (!json_is_array(request->body))
        return refuse(refusal, 400, "bad request body: an array was expected");
    size_t count = json_array_size(request->body);
    if (count > PROXIES_MAX)
        return refuse(refusal, 400, "bad request body: more than %d proxies", PROXIES_MAX);
    struct wanted *wanted = xcalloc(count, sizeof(*wanted));
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        good = read_new_proxy(json_array_get(request->body, i), i + 1, &wanted[i], refusal);
        for (size_t j = 0; j < i && good; j++)
            if (strcmp(wanted[i].name, wanted[j].name) == 0)
                good = refuse(refusal, 400, "duplicate proxy name \"%.64s\"", wanted[i].name);
    }
    for (size_t i = 0; i < count && good; i++) {
        struct proxy *proxy;
        good = add_or_replace(request, &wanted[i], refusal, &proxy);
        if (good)
            json_array_append_new(made, encode(proxy));
    }
    free(wanted);
    return good;
}

/* ---- Routes ---- */

static bool is(const struct control_request *request, const char *method)
{
    return bytes_is(request->method, method);
}

static bool is_update(const struct control_request *request)
{
    return is(request, "PATCH") || is(request, "POST");
}

static void refuse_method(struct control_request *request)
{
    control_fail(request->control, request->exchange, 405, "method not allowed");
}

static void serve_populate(struct control_request *request)
{
    struct refusal refusal;
    json_t *made = json_array();
    if (populate(request, made, &refusal))
        answer(request, 201, json_pack("{s:o}", "proxies", made));
    else
        answer(request, refusal.status,
               json_pack("{s:s, s:i, s:o}", "error", refusal.text, "status", refusal.status,
                         "proxies", made));
}

static void serve_proxies(struct control_request *request)
{
    struct refusal refusal;
    struct wanted wanted;
    struct proxy *proxy;
    if (is(request, "GET")) {
        json_t *all = json_object();
        list_each(link, spare, &proxies_of(request)->proxies)
        {
            proxy = container_of(link, struct proxy, link);
            json_object_set_new(all, proxy->name, encode(proxy));
        }
        answer(request, 200, all);
    } else if (!is(request, "POST")) {
        refuse_method(request);
    } else if (request->body == NULL) {
        control_fail(request->control, request->exchange, 400, "bad request body: %s",
                     request->body_error);
    } else if (read_new_proxy(request->body, 0, &wanted, &refusal) &&
               create_proxy(request, &wanted, &refusal, &proxy)) {
        answer(request, 201, encode(proxy));
    } else {
        answer_refusal(request, &refusal);
    }
}

static void serve_proxy(struct control_request *request, struct proxy *proxy)
{
    struct refusal refusal;
    if (is(request, "GET")) {
        answer(request, 200, encode(proxy));
    } else if (is_update(request)) {
        if (update_proxy(request, proxy, &refusal))
            answer(request, 200, encode(proxy));
        else
            answer_refusal(request, &refusal);
    } else if (!is(request, "DELETE")) {
        refuse_method(request);
    } else if (proxy->is_link) {
        refuse_link(proxy, "deleted", &refusal);
        answer_refusal(request, &refusal);
    } else {
        proxy_free(proxy);
        control_answer_empty(request->control, request->exchange, 204);
    }
}

static bool add_toxic(struct control_request *request, struct proxy *proxy, struct refusal *refusal,
                      struct toxic **ret)
{
    char reason[TOXIC_REASON_MAX];
    struct toxic *toxic = NULL;
    if (request->body == NULL)
        return refuse(refusal, 400, "bad request body: %s", request->body_error);
    switch (toxic_decode(request->body, reason, &toxic)) {
    case TOXIC_BAD_BODY:
        return refuse(refusal, 400, "bad request body: %s", reason);
    case TOXIC_BAD_STREAM:
        return refuse(refusal, 400, "stream was invalid, can be either upstream or downstream");
    case TOXIC_BAD_TYPE:
        return refuse(refusal, 400, "invalid toxic type");
    case TOXIC_OK:
        break;
    }
    size_t count = 0;
    for (int i = 0; i < 2; i++)
        list_each(link, spare, &proxy->toxics[i]) count++;
    bool exists = proxy_find_toxic(proxy, toxic->name) != NULL;
    if (exists || count >= PROXY_TOXICS_MAX) {
        toxic_free(toxic);
        return exists ? refuse(refusal, 409, "toxic already exists")
                      : refuse(refusal, 400, "a proxy has at most %d toxics", PROXY_TOXICS_MAX);
    }
    proxy_add_toxic(proxy, toxic);
    *ret = toxic;
    return true;
}

static void serve_toxics(struct control_request *request, struct proxy *proxy)
{
    struct refusal refusal;
    struct toxic *toxic = NULL;
    if (is(request, "GET")) {
        json_t *described = encode(proxy);
        answer(request, 200, json_incref(json_object_get(described, "toxics")));
        json_decref(described);
    } else if (!is(request, "POST")) {
        refuse_method(request);
    } else if (add_toxic(request, proxy, &refusal, &toxic)) {
        answer(request, 200, toxic_encode(toxic));
    } else {
        answer_refusal(request, &refusal);
    }
}

static void serve_toxic(struct control_request *request, struct proxy *proxy)
{
    char reason[TOXIC_REASON_MAX];
    struct toxic *toxic = proxy_find_toxic(proxy, request->path[3]);
    if (toxic == NULL) {
        control_fail(request->control, request->exchange, 404, "toxic not found");
    } else if (is(request, "GET")) {
        answer(request, 200, toxic_encode(toxic));
    } else if (is_update(request)) {
        if (request->body == NULL) {
            control_fail(request->control, request->exchange, 400, "bad request body: %s",
                         request->body_error);
        } else if (toxic_update(toxic, request->body, reason) != TOXIC_OK) {
            control_fail(request->control, request->exchange, 400, "bad request body: %s", reason);
        } else {
            proxy_update_toxic(proxy, toxic);
            answer(request, 200, toxic_encode(toxic));
        }
    } else if (is(request, "DELETE")) {
        proxy_remove_toxic(proxy, toxic);
        control_answer_empty(request->control, request->exchange, 204);
    } else {
        refuse_method(request);
    }
}

static void serve_reset(struct control_request *request)
{
    int failed = cluster_reset(request->control->cluster);
    if (failed == 0)
        control_answer_empty(request->control, request->exchange, 204);
    else
        control_fail(request->control, request->exchange, 500, "a proxy can't listen: %s",
                     strerror(-failed));
}

static void serve_named(struct control_request *request)
{
    struct proxy *proxy = proxy_find(proxies_of(request), request->path[1]);
    if (proxy == NULL)
        control_fail(request->control, request->exchange, 404, "proxy not found");
    else if (request->path_len == 2)
        serve_proxy(request, proxy);
    else if (request->path_len == 3)
        serve_toxics(request, proxy);
    else
        serve_toxic(request, proxy);
}

bool toxiproxy_api(struct control_request *request)
{
    uint32_t len = request->path_len;
    const char *first = len > 0 ? request->path[0] : "";
    if (len == 1 && strcmp(first, "version") == 0 && is(request, "GET")) {
        answer(request, 200, json_pack("{s:s}", "version", API_VERSION));
        return true;
    }
    if (len == 1 && (strcmp(first, "populate") == 0 || strcmp(first, "reset") == 0)) {
        if (!is(request, "POST"))
            refuse_method(request);
        else if (strcmp(first, "reset") == 0)
            serve_reset(request);
        else
            serve_populate(request);
        return true;
    }
    if (strcmp(first, "proxies") != 0 || len > 4 ||
        (len > 2 && strcmp(request->path[2], "toxics") != 0))
        return false;
    if (len == 1)
        serve_proxies(request);
    else
        serve_named(request);
    return true;
}
