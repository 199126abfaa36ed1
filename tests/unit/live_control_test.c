/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no cluster: who may use the control API, where the front door sends a request, how the
 * regions' ledgers become one list, and how a toxic is read. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/live/control.h"
#include "chaos/live/door.h"
#include "chaos/live/render.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* ---- Who may ask ---- */

struct visit {
    const char *host, *origin, *fetch_site, *agent;
    bool allowed;
};

static void assert_visits(const char *listens, const struct visit *visits, size_t count)
{
    struct control control = {.answers = 0};
    assert_true(address_parse(bytes_text(listens), &control.address));
    for (size_t i = 0; i < count; i++) {
        const struct visit *visit = &visits[i];
        struct http_header headers[3];
        struct http_request request = {.headers = headers};
        if (visit->host != NULL)
            request.host = bytes_text(visit->host);
        if (visit->origin != NULL)
            headers[request.header_count++] =
                (struct http_header){bytes_literal("origin"), bytes_text(visit->origin)};
        if (visit->fetch_site != NULL)
            headers[request.header_count++] = (struct http_header){bytes_literal("sec-fetch-site"),
                                                                   bytes_text(visit->fetch_site)};
        if (visit->agent != NULL)
            headers[request.header_count++] =
                (struct http_header){bytes_literal("user-agent"), bytes_text(visit->agent)};
        bool allowed = control_suspicion(&control, &request) == NULL;
        if (allowed != visit->allowed)
            fail_msg("visit %zu on %s", i, listens);
    }
}

static void web_pages_are_refused(void **state)
{
    (void)state;
    static const struct visit loopback[] = {
        {"127.0.0.1:8474", NULL, NULL, "curl/7", true},
        {"localhost:8474", NULL, NULL, NULL, true},
        {"LOCALHOST", NULL, NULL, NULL, true},
        {"[::1]:8474", NULL, NULL, NULL, true},
        {"[::1]", NULL, NULL, NULL, true},
        {"127.3.2.1", NULL, NULL, NULL, true},
        {NULL, NULL, NULL, NULL, true},
        {"127.0.0.1:8474", NULL, NULL, "Mozilla/5.0", false},
        {"evil.example:8474", NULL, NULL, NULL, false},
        {"localhost.evil.example", NULL, NULL, NULL, false},
        {"127.0.0.1.evil.example", NULL, NULL, NULL, false},
        {"192.168.1.5:8474", NULL, NULL, NULL, false},
        {"", "http://evil.example", NULL, NULL, false},
        {"127.0.0.1:8474", "http://evil.example", NULL, NULL, false},
        {"127.0.0.1:8474", "null", NULL, NULL, false},
        {"127.0.0.1:8474", "http://127.0.0.1:9999", NULL, NULL, false},
        {"127.0.0.1:8474", "https://127.0.0.1:8474", NULL, NULL, false},
        {"127.0.0.1:8474", "http://127.0.0.1:8474", NULL, NULL, true},
        {"127.0.0.1:8474", NULL, "cross-site", NULL, false},
        {"127.0.0.1:8474", NULL, "same-site", NULL, false},
        {"127.0.0.1:8474", NULL, "same-origin", NULL, true},
        {"127.0.0.1:8474", NULL, "none", NULL, true},
        {"127.0.0.1:8474", "http://127.0.0.1:8474", "cross-site", NULL, false},
    };
    static const struct visit wide[] = {
        {"192.168.1.5:8474", NULL, NULL, NULL, true},
        {"localhost", NULL, NULL, NULL, true},
        {"evil.example:8474", NULL, NULL, NULL, false},
        {"192.168.1.5:8474", "http://192.168.1.5:8474", NULL, NULL, true},
        {"192.168.1.5:8474", "http://192.168.1.6:8474", NULL, NULL, false},
    };
    assert_visits("127.0.0.1:8474", loopback, array_len(loopback));
    assert_visits("0.0.0.0:8474", wide, array_len(wide));
}

/* ---- The front door ---- */

static void the_signature_then_the_host_choose_the_region(void **state)
{
    (void)state;
    static const struct {
        const char *signed_for, *host;
        enum door_choice choice;
        const char *region;
    } cases[] = {
        {"eu-west-1", "localhost:8000", DOOR_FOUND, "eu-west-1"},
        {"us-east-1", "127.0.0.1", DOOR_FOUND, "us-east-1"},
        {NULL, "localhost:8000", DOOR_ASSUMED, "us-east-1"},
        {NULL, "dynamodb.eu-west-1.amazonaws.com", DOOR_FOUND, "eu-west-1"},
        {NULL, "123456789012.ddb.eu-west-1.amazonaws.com", DOOR_FOUND, "eu-west-1"},
        {NULL, "eu-west-1.localhost:8000", DOOR_FOUND, "eu-west-1"},
        {"eu-west-1", "dynamodb.eu-west-1.amazonaws.com", DOOR_FOUND, "eu-west-1"},
        {"eu-west-1", "dynamodb.us-east-1.amazonaws.com", DOOR_MISMATCH, NULL},
        {"eu-west-1", "us-east-1.localhost", DOOR_MISMATCH, NULL},
        {"localhost", "localhost:8000", DOOR_UNKNOWN, NULL},
        {"ap-south-1", "localhost:8000", DOOR_UNKNOWN, NULL},
        {NULL, "dynamodb.ap-south-1.amazonaws.com", DOOR_UNKNOWN, NULL},
        {"us-west-2", "localhost:8000", DOOR_WITNESS, "us-west-2"},
        {NULL, "dynamodb.us-west-2.amazonaws.com", DOOR_WITNESS, "us-west-2"},
    };
    struct site sites[3] = {
        {.name = "us-east-1"}, {.name = "eu-west-1"}, {.name = "us-west-2", .witness = true}};
    struct cluster cluster = {.sites = sites, .site_count = 3};
    for (size_t i = 0; i < array_len(cases); i++) {
        char authorization[300];
        struct http_header header = {bytes_literal("authorization"), BYTES_NONE};
        struct http_request request = {
            .headers = &header, .path = bytes_literal("/"), .host = bytes_text(cases[i].host)};
        if (cases[i].signed_for != NULL) {
            snprintf(authorization, sizeof(authorization),
                     "AWS4-HMAC-SHA256 Credential=AKID/20260101/%s/dynamodb/aws4_request, "
                     "SignedHeaders=host;x-amz-date, Signature=00",
                     cases[i].signed_for);
            header.value = bytes_text(authorization);
            request.header_count = 1;
        }
        struct bytes signed_for, named;
        struct site *site = NULL;
        enum door_choice choice = door_choose(&cluster, &request, &signed_for, &named, &site);
        if (choice != cases[i].choice)
            fail_msg("case %zu: choice %d", i, (int)choice);
        if (cases[i].region != NULL)
            assert_string_equal(site->name, cases[i].region);
    }
}

/* ---- Strong tables, as a person reads them ---- */

static json_t *group(const char *region, int partition, bool leads, int term, int applied, int last,
                     const char *standing, bool witness)
{
    return json_pack("{s:s, s:s, s:i, s:n, s:b, s:i, s:i, s:i, s:i, s:s, s:b, s:i}", "table", "t",
                     "region", region, "partition", partition, "leader", "leads", leads, "term",
                     term, "commit", applied, "applied", applied, "last", last, "standing",
                     standing, "witness", witness, "pending", 0);
}

static void assert_shown(json_t *groups, const char *line)
{
    struct buf text = {0};
    json_t *status =
        json_pack("{s:[], s:[], s:[], s:o}", "regions", "links", "replication", "groups", groups);
    render_status(status, &text);
    buf_append_u8(&text, 0);
    const char *shown = strstr((const char *)text.at, "STRONG TABLE");
    assert_non_null(shown);
    if (!strstr(shown, line))
        fail_msg("expected %s in\n%s", line, shown);
    json_decref(status);
    buf_deinit(&text);
}

static void leaders_and_laggards_are_named(void **state)
{
    (void)state;
    json_t *groups = json_array();
    for (int i = 0; i < 4; i++) {
        json_array_append_new(groups, group("a", i, i < 3, 5, 10, 10, "full", false));
        json_array_append_new(groups, group("b", i, i == 3, 5, 10, 12, "full", false));
        json_array_append_new(groups, group("w", i, false, 5, 0, 10, "full", true));
    }
    assert_shown(groups, "t             a 3, b 1  a, b, w (witness)  -\n");

    /* One that leads no more, and does not know; one that lags; one that rebuilds; and nobody. */
    groups = json_array();
    json_t *only = group("b", 0, true, 5, 10, 11, "full", false);
    json_object_set_new(only, "members", json_pack("[s, s, s]", "a", "b", "c"));
    json_array_append_new(groups, only);
    assert_shown(groups, "t             b 1      b, a, c  a silent, c silent\n");
    groups = json_array();
    json_array_append_new(groups, group("a", 0, true, 5, 10, 11, "full", false));
    json_array_append_new(groups, group("b", 0, true, 6, 17, 17, "full", false));
    json_array_append_new(groups, group("c", 0, false, 6, 3, 3, "rebuilding", false));
    json_array_append_new(groups, group("c", 1, false, 6, 3, 3, "full", false));
    json_array_append_new(groups, group("c", 99999, true, 6, 3, 3, "full", false));
    assert_shown(groups, "t             b 1, nobody 1  a, b, c  a by 7, c by 14, rebuilding\n");
}

/* ---- Merged ledgers ---- */

static json_t *row(const char *table, const char *key, const char *loser, const char *winner_order,
                   const char *where, int at_ms)
{
    return json_pack(
        "{s:s, s:{s:{s:s}}, s:s, s:s, s:i, s:{s:s, s:s, s:s, s:{}}, s:{s:s, s:s, s:n}}", "table",
        table, "key", "pk", "S", key, "kind", "concurrent", "detected_in", where, "detected_at_ms",
        at_ms, "winner", "region", "a", "version", winner_order, "order", winner_order, "item",
        "loser", "region", "b", "version", loser, "item");
}

static void every_loser_is_told_once(void **state)
{
    (void)state;
    json_t *regions[3] = {json_array(), NULL, json_array()};
    json_array_append_new(regions[0], row("t", "k", "v1", "05", "a", 20));
    json_array_append_new(regions[0], row("t", "k", "v2", "05", "a", 21));
    json_array_append_new(regions[0], row("t", "other", "v1", "05", "a", 10));
    json_array_append_new(regions[0], json_string("no row at all"));
    json_array_append_new(regions[2],
                          row("t", "k", "v1", "0a", "c", 30)); /* knows a later winner */
    json_array_append_new(regions[2], row("t", "k", "v2", "05", "c", 15)); /* noticed earlier */
    json_array_append_new(regions[2], row("u", "k", "v1", "05", "c", 5));
    json_t *all = report_merge(regions, 3);
    static const struct {
        const char *table, *loser, *winner, *where;
        int at_ms;
    } expected[] = {
        {"u", "v1", "05", "c", 5},
        {"t", "v1", "05", "a", 10},
        {"t", "v2", "05", "c", 15},
        {"t", "v1", "0a", "c", 30},
    };
    assert_int_equal(json_array_size(all), array_len(expected));
    for (size_t i = 0; i < array_len(expected); i++) {
        json_t *told = json_array_get(all, i), *winner = json_object_get(told, "winner");
        json_t *loser = json_object_get(told, "loser");
        assert_string_equal(json_string_value(json_object_get(told, "table")), expected[i].table);
        assert_string_equal(json_string_value(json_object_get(loser, "version")),
                            expected[i].loser);
        assert_string_equal(json_string_value(json_object_get(winner, "version")),
                            expected[i].winner);
        assert_string_equal(json_string_value(json_object_get(told, "detected_in")),
                            expected[i].where);
        assert_int_equal(json_integer_value(json_object_get(told, "detected_at_ms")),
                         expected[i].at_ms);
        assert_null(json_object_get(winner, "order"));
        assert_true(json_is_null(json_object_get(loser, "item")));
        assert_int_equal(json_object_size(told), 7);
    }
    json_decref(all);
    json_decref(regions[0]);
    json_decref(regions[2]);
}

/* ---- Toxics as JSON ---- */

static void toxics_are_read_as_toxiproxy_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum toxic_error error;
        const char *encoded;
    } cases[] = {
        {"{\"type\":\"latency\",\"attributes\":{\"latency\":100,\"jitter\":5}}", TOXIC_OK,
         "{\"attributes\":{\"latency\":100,\"jitter\":5},\"name\":\"latency_downstream\","
         "\"type\":\"latency\",\"stream\":\"downstream\",\"toxicity\":1}"},
        {"{\"name\":\"x\",\"type\":\"timeout\",\"stream\":\"upstream\",\"toxicity\":0.5}", TOXIC_OK,
         "{\"attributes\":{\"timeout\":0},\"name\":\"x\",\"type\":\"timeout\",\"stream\":"
         "\"upstream\","
         "\"toxicity\":0.5}"},
        {"{\"type\":\"bandwidth\",\"name\":\"\",\"stream\":null,\"attributes\":{\"rate\":10.0,"
         "\"more\":1}}",
         TOXIC_OK,
         "{\"attributes\":{\"rate\":10},\"name\":\"bandwidth_downstream\",\"type\":\"bandwidth\","
         "\"stream\":\"downstream\",\"toxicity\":1}"},
        {"{\"type\":\"slicer\",\"attributes\":{\"average_size\":9,\"size_variation\":3,\"delay\":7}"
         "}",
         TOXIC_OK,
         "{\"attributes\":{\"average_size\":9,\"size_variation\":3,\"delay\":7},\"name\":"
         "\"slicer_downstream\",\"type\":\"slicer\",\"stream\":\"downstream\",\"toxicity\":1}"},
        {"{\"type\":\"laser\"}", TOXIC_BAD_TYPE, NULL},
        {"{}", TOXIC_BAD_TYPE, NULL},
        {"{\"type\":\"latency\",\"stream\":\"sideways\"}", TOXIC_BAD_STREAM, NULL},
        {"[]", TOXIC_BAD_BODY, NULL},
        {"{\"type\":5}", TOXIC_BAD_BODY, NULL},
        {"{\"type\":\"latency\",\"toxicity\":7}", TOXIC_BAD_BODY, NULL},
        {"{\"type\":\"latency\",\"toxicity\":\"1\"}", TOXIC_BAD_BODY, NULL},
        {"{\"type\":\"latency\",\"attributes\":[]}", TOXIC_BAD_BODY, NULL},
        {"{\"type\":\"latency\",\"attributes\":{\"latency\":-1}}", TOXIC_BAD_BODY, NULL},
        {"{\"type\":\"latency\",\"attributes\":{\"latency\":1e300}}", TOXIC_BAD_BODY, NULL},
        {"{\"type\":\"latency\",\"attributes\":{\"latency\":9223372036854775807}}", TOXIC_BAD_BODY,
         NULL},
        {"{\"type\":\"slicer\",\"attributes\":{\"average_size\":1,\"size_variation\":3}}",
         TOXIC_BAD_BODY, NULL},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        char reason[TOXIC_REASON_MAX];
        struct toxic *toxic = NULL;
        json_t *body = json_loads(cases[i].body, 0, NULL);
        assert_non_null(body);
        if (toxic_decode(body, reason, &toxic) != cases[i].error)
            fail_msg("case %zu", i);
        if (toxic != NULL) {
            json_t *told = toxic_encode(toxic);
            char *text = json_dumps(told, JSON_COMPACT);
            assert_string_equal(text, cases[i].encoded);
            free(text);
            json_decref(told);
        }
        toxic_free(toxic);
        json_decref(body);
    }
}

static void an_update_changes_all_or_nothing(void **state)
{
    (void)state;
    char reason[TOXIC_REASON_MAX];
    struct toxic *toxic = toxic_new(TOXIC_LATENCY, TOXIC_UPSTREAM, "x");
    toxic->value[TOXIC_LATENCY_MS] = 5;
    toxic->value[TOXIC_JITTER_MS] = 6;
    json_t *good = json_pack("{s:{s:i}, s:f}", "attributes", "latency", 50, "toxicity", 0.25);
    json_t *bad = json_pack("{s:{s:i, s:i}, s:f}", "attributes", "latency", 70, "jitter", -1,
                            "toxicity", 0.75);
    assert_int_equal(toxic_update(toxic, good, reason), TOXIC_OK);
    assert_int_equal(toxic_update(toxic, bad, reason), TOXIC_BAD_BODY);
    assert_int_equal(toxic->value[TOXIC_LATENCY_MS], 50);
    assert_int_equal(toxic->value[TOXIC_JITTER_MS], 6);
    assert_true(toxic->toxicity == 0.25);
    json_decref(good);
    json_decref(bad);
    toxic_free(toxic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(web_pages_are_refused),
        cmocka_unit_test(the_signature_then_the_host_choose_the_region),
        cmocka_unit_test(leaders_and_laggards_are_named),
        cmocka_unit_test(every_loser_is_told_once),
        cmocka_unit_test(toxics_are_read_as_toxiproxy_reads_them),
        cmocka_unit_test(an_update_changes_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
