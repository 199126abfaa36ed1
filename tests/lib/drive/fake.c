/* SPDX-License-Identifier: Apache-2.0 */
/* See fake.h. */

#include "tests/lib/drive/fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct fake fake;

static void respond(struct exchange *exchange, int status, const char *body)
{
    exchange_respond(exchange, status, NULL, 0, bytes_text(body));
}

static uint32_t key_of(const json_t *holder)
{
    const char *pk = NULL;
    check(json_unpack((json_t *)(uintptr_t)holder, "{s:{s:s}}", "pk", "S", &pk) == 0);
    uint32_t key = (uint32_t)strtoul(pk + 1, NULL, 10);
    check(key < KEYS);
    return key;
}

static void answer_put(struct exchange *exchange, const json_t *item)
{
    const char *number = NULL;
    char body[128] = "{}";
    if (json_unpack((json_t *)(uintptr_t)item, "{s:{s:s}}", "sk", "N", &number) == 0) {
        if (fake.conduct != LOSES || ++fake.puts % 10 != 0)
            fake.elements[fake.element_count++ % ELEMENTS] = strtoull(number, NULL, 10);
        respond(exchange, 200, body);
        return;
    }
    check(json_unpack((json_t *)(uintptr_t)item, "{s:{s:s}}", "v", "N", &number) == 0);
    uint32_t key = key_of(item);
    uint64_t value = strtoull(number, NULL, 10);
    if (fake.value[key] > 0)
        snprintf(body, sizeof(body), "{\"Attributes\":{\"v\":{\"N\":\"%llu\"}}}",
                 (unsigned long long)fake.value[key]);
    fake.repeated += value == fake.value[key];
    if (fake.conduct != LOSES || ++fake.puts % 10 != 0) {
        fake.before[key] = fake.value[key];
        fake.value[key] = value;
    }
    respond(exchange, 200, body);
}

static void answer_get(struct exchange *exchange, const json_t *root)
{
    char body[128] = "{}";
    uint32_t key = key_of(json_object_get(root, "Key"));
    uint64_t value = fake.conduct == STALE_READS ? fake.before[key] : fake.value[key];
    if (value > 0)
        snprintf(body, sizeof(body), "{\"Item\":{\"v\":{\"N\":\"%llu\"}}}",
                 (unsigned long long)value);
    respond(exchange, 200, body);
}

/* Two elements a page, so that a scan takes many. */
static void answer_query(struct exchange *exchange, const json_t *root)
{
    struct buf body cleanup(buf_deinit);
    const char *start = NULL;
    uint32_t from = 0, count = fake.element_count;
    buf_init(&body);
    if (json_unpack((json_t *)(uintptr_t)root, "{s:{s:{s:s}}}", "ExclusiveStartKey", "at", "N",
                    &start) == 0)
        from = (uint32_t)strtoul(start, NULL, 10);
    buf_append_text(&body, "{\"Items\":[");
    for (uint32_t i = from; i < from + 2 && i < count; i++)
        buf_printf(&body, "%s{\"sk\":{\"N\":\"%llu\"}}", i > from ? "," : "",
                   (unsigned long long)fake.elements[i]);
    buf_append_u8(&body, ']');
    if (from + 2 < count)
        buf_printf(&body, ",\"LastEvaluatedKey\":{\"at\":{\"N\":\"%u\"}}", from + 2);
    buf_append(&body, "}", 2);
    respond(exchange, 200, (const char *)body.at);
}

static bool seen_before(const char *peer)
{
    for (uint32_t i = 0; i < fake.seen_count; i++)
        if (strcmp(fake.seen[i], peer) == 0)
            return true;
    if (fake.seen_count < HELD)
        snprintf(fake.seen[fake.seen_count++], sizeof(fake.seen[0]), "%s", peer);
    return false;
}

static void on_request(void *context, struct exchange *exchange)
{
    (void)context;
    const struct http_request *request = exchange_request(exchange);
    struct bytes target = http_request_header(request, "x-amz-target");
    json_t *root = json_loadb((const char *)request->body.at, request->body.len, 0, NULL);
    bool second = fake.conduct == ONE_A_TIME && seen_before(exchange_peer(exchange));
    if (fake.conduct == SILENT && fake.held_count < HELD)
        fake.held[fake.held_count++] = exchange;
    else if (fake.conduct == BREAKS)
        respond(exchange, 500, "{\"__type\":\"x#InternalServerError\"}");
    else if (bytes_is(target, "DynamoDB_20120810.PutItem") && !(second && fake.puts++ % 2 == 0))
        answer_put(exchange, json_object_get(root, "Item"));
    else if (second || fake.conduct == HANGS_UP)
        exchange_abort(exchange);
    else if (bytes_is(target, "DynamoDB_20120810.GetItem"))
        answer_get(exchange, root);
    else if (bytes_is(target, "DynamoDB_20120810.Query"))
        answer_query(exchange, root);
    else
        respond(exchange, 400, "{\"__type\":\"x#UnknownOperationException\"}");
    json_decref(root);
}

int fake_setup(void **state)
{
    regions_setup_bare(state);
    struct regions *regions = *state;
    const struct server_limits limits = server_limits_default();
    const struct server_handler handler = {.request = on_request};
    char error[256];
    fake = (struct fake){.regions = regions};
    for (int i = 0; i < REGIONS; i++) {
        fake.server[i] = server_listen(&regions->loop, regions->addresses[i], &limits, NULL,
                                       &handler, error, sizeof(error));
        if (!fake.server[i])
            fail_msg("%s", error);
    }
    return 0;
}

int fake_teardown(void **state)
{
    struct regions *regions = *state;
    if (regions->drive)
        drive_free(regions->drive);
    regions->drive = NULL;
    for (uint32_t i = 0; i < fake.held_count; i++)
        exchange_abort(fake.held[i]);
    for (int i = 0; i < REGIONS; i++)
        if (fake.server[i])
            server_close(fake.server[i]);
    return regions_teardown(state);
}

void fake_close(void)
{
    for (int i = 0; i < REGIONS; i++) {
        server_close(fake.server[i]);
        fake.server[i] = NULL;
    }
    for (int i = 0; i < 5; i++)
        uv_run(&fake.regions->loop.uv, UV_RUN_NOWAIT);
}
