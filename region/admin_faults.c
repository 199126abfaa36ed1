/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a chaos run: faults that only the Region itself can bring about, and leadership
 * handed over as an operator would. Both are off unless asked for, and refuse web pages. */

#include "region/admin.h"

#include <jansson.h>

#include "conflict/base/alloc.h"
#include "conflict/region_id.h"

enum { TRANSFER_BODY_MAX = 4096 };

static bool guard(struct exchange *exchange, size_t body_max)
{
    const struct http_request *request = exchange_request(exchange);
    if (admin_from_a_page(request)) {
        admin_respond_error(exchange, 403, "requests made by a web page are refused");
        return false;
    }
    if (request->body.len > body_max) {
        admin_respond_error(exchange, 413, "the body is too large");
        return false;
    }
    return true;
}

/* ---- /tidemark/faults ---- */

static void tell_faults(struct admin *admin, struct exchange *exchange)
{
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    faults_write(admin->faults, &body);
    admin_respond(exchange, 200, "application/json", &body);
}

static void put_faults(struct admin *admin, struct exchange *exchange)
{
    struct buf error cleanup(buf_deinit);
    buf_init(&error);
    if (!guard(exchange, FAULTS_BODY_MAX))
        return;
    if (!faults_set(admin->faults, exchange_request(exchange)->body,
                    server_stats(admin->server).accepted, &error)) {
        buf_append_u8(&error, 0);
        admin_respond_error(exchange, 400, (const char *)error.at);
        return;
    }
    log_line(admin->log, TRACE_INFO, "faults: %u set", admin->faults->count);
    tell_faults(admin, exchange);
    serve_release(admin->serve);
}

/* ---- PUT /tidemark/transfer ---- */

/* The strong groups led here that `in` is about. */
static uint32_t led_here(const struct region *core, struct bytes table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < region_group_count(core); i++) {
        struct region_group group = region_group_at(core, i);
        count += group.leads && (table.len == 0 || bytes_is(table, group.table->name));
    }
    return count;
}

static void put_transfer(struct admin *admin, struct exchange *exchange)
{
    if (!guard(exchange, TRANSFER_BODY_MAX))
        return;
    struct bytes body = exchange_request(exchange)->body;
    json_t *root = json_loadb((const char *)body.at, body.len, JSON_REJECT_DUPLICATES, NULL);
    const char *to = json_string_value(json_object_get(root, "to"));
    const json_t *table = json_object_get(root, "table");
    struct region_input in = {.kind = REGION_TRANSFER};
    in.peer = to ? region_id_find(bytes_text(to)) : REGION_ID_NONE;
    if (json_is_string(table))
        in.bytes = bytes_make(json_string_value(table), json_string_length(table));
    if (in.peer == REGION_ID_NONE || (table && !json_is_string(table)) ||
        json_object_size(root) != 1 + (table != NULL)) {
        admin_respond_error(exchange, 400,
                            "expected a JSON object with the name of a Region as `to` and, if not "
                            "all are meant, the name of a table as `table`");
    } else {
        struct buf answer cleanup(buf_deinit);
        buf_init(&answer);
        buf_printf(&answer, "{\"groups\":%u}\n", led_here(driver_core(admin->driver), in.bytes));
        driver_push(admin->driver, &in, 0);
        admin_respond(exchange, 200, "application/json", &answer);
    }
    json_decref(root);
}

bool admin_handle_faults(struct admin *admin, struct exchange *exchange, struct bytes path)
{
    struct bytes method = exchange_request(exchange)->method;
    bool put = bytes_is(method, "PUT");
    if (bytes_is(path, "/tidemark/faults") && bytes_is(method, "GET"))
        tell_faults(admin, exchange);
    else if (bytes_is(path, "/tidemark/faults") && put)
        put_faults(admin, exchange);
    else if (bytes_is(path, "/tidemark/transfer") && put)
        put_transfer(admin, exchange);
    else
        return false;
    return true;
}
