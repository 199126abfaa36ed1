/* SPDX-License-Identifier: Apache-2.0 */
/* The routes beside DynamoDB's, and who is refused at the peers' door. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/check.h"
#include "net/grpc.h"
#include "region/peers_internal.h"
#include "tests/lib/node/members.h"

/* ---- Beside DynamoDB ---- */

static void test_admin_routes(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    member_create_table(member);
    member_expect_ok(member, "PutItem", "{\"TableName\":\"orders\",\"Item\":" ITEM_ONE "}");
    member_ask(member, "GET", "/", NULL, 0, "");
    assert_int_equal(fixture->status, 200);
    assert_string_equal(members_body(fixture), "healthy: dynamodb.us-east-1.amazonaws.com");

    member_ask(member, "GET", "/tidemark/status", NULL, 0, "");
    assert_int_equal(fixture->status, 200);
    json_t *root = members_parse_body(fixture);
    const char *region = NULL, *durability = NULL, *name = NULL, *status = NULL;
    int ready = 0, items = 0, concurrent = -1;
    assert_int_equal(json_unpack(root, "{s:s,s:b,s:s,s:[{s:s,s:s,s:i}],s:{s:i}}", "region", &region,
                                 "ready", &ready, "durability", &durability, "tables", "name",
                                 &name, "status", &status, "items", &items, "conflicts",
                                 "concurrent", &concurrent),
                     0);
    assert_string_equal(region, "us-east-1");
    assert_true(ready);
    assert_string_equal(durability, "os");
    assert_string_equal(name, "orders");
    assert_string_equal(status, "ACTIVE");
    assert_int_equal(items, 1);
    assert_int_equal(concurrent, 0);
    json_decref(root);

    member_ask(member, "GET", "/metrics", NULL, 0, "");
    assert_int_equal(fixture->status, 200);
    assert_non_null(strstr(members_body(fixture),
                           "tidemark_requests_total{operation=\"PutItem\",status=\"200\""));
    member_ask(member, "GET", "/tidemark/conflicts", NULL, 0, "");
    assert_string_equal(members_body(fixture), "{\"conflicts\":[],\"next\":null}\n");
    member_ask(member, "GET", "/tidemark/conflicts?limit=0", NULL, 0, "");
    assert_int_equal(fixture->status, 400);
    member_ask(member, "GET", "/tidemark/conflicts?limit=5&after=xyz", NULL, 0, "");
    assert_int_equal(fixture->status, 400);
    member_ask(member, "GET", "/tidemark/nonsense", NULL, 0, "");
    assert_int_equal(fixture->status, 404);
}

static void test_clock_moves(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    member_ask(member, "PUT", "/tidemark/clock", NULL, 0, "{\"offset_ms\":-60000}");
    assert_int_equal(fixture->status, 200);
    member_ask(member, "GET", "/tidemark/status", NULL, 0, "");
    assert_non_null(strstr(members_body(fixture), "\"offset_ms\":-60000"));
    static const char *const bad[] = {"",
                                      "[]",
                                      "{\"offset_ms\":1.5}",
                                      "{\"offset_ms\":\"1\"}",
                                      "{\"offset\":1}",
                                      "{\"rate_ppm\":1000001}",
                                      "{\"offset_ms\":99999999999999}"};
    for (size_t i = 0; i < array_len(bad); i++) {
        member_ask(member, "PUT", "/tidemark/clock", NULL, 0, bad[i]);
        assert_int_equal(fixture->status, 400);
    }
    static const struct http_header elsewhere[] = {
        {{(const uint8_t *)"origin", 6}, {(const uint8_t *)"http://evil.example", 19}},
        {{(const uint8_t *)"sec-fetch-site", 14}, {(const uint8_t *)"cross-site", 10}},
    };
    for (size_t i = 0; i < array_len(elsewhere); i++) {
        member_ask(member, "PUT", "/tidemark/clock", &elsewhere[i], 1, "{\"offset_ms\":5}");
        assert_int_equal(fixture->status, 403);
    }
    member_ask(member, "GET", "/tidemark/status", NULL, 0, "");
    assert_non_null(strstr(members_body(fixture), "\"offset_ms\":-60000"));
}

/* ---- Strangers ---- */

struct stranger {
    struct grpc_link *link;
    bool up, closed;
    unsigned answers;
    enum grpc_status status;
};

static void on_stranger_up(void *context)
{
    ((struct stranger *)context)->up = true;
}

static void on_stranger_down(void *context, const char *reason)
{
    (void)context;
    (void)reason;
}

static void on_stranger_message(void *context, struct grpc_call *call, struct bytes message)
{
    ((struct stranger *)context)->answers++;
    grpc_call_consume(call, message.len);
}

static void on_stranger_closed(void *context, struct grpc_call *call, enum grpc_status status,
                               const char *reason)
{
    (void)call;
    (void)reason;
    struct stranger *stranger = context;
    stranger->closed = true;
    stranger->status = status;
}

static enum grpc_status knock(struct fixture *fixture, struct stranger *stranger, const char *path,
                              const char *region, struct bytes message)
{
    const char *headers[] = {"tidemark-region", region, NULL};
    struct grpc_events events = {on_stranger_message, NULL, on_stranger_closed, stranger};
    stranger->closed = false;
    struct grpc_call *call = grpc_link_call(stranger->link, path, region ? headers : NULL, &events);
    assert_non_null(call);
    if (message.len > 0)
        grpc_call_send(call, message);
    members_run_until(fixture, &stranger->closed);
    return stranger->status;
}

static void test_strangers_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct stranger stranger = {0};
    struct grpc_link_config config = {.address = fixture->at[0].address,
                                      .authority = "test",
                                      .connect_ms_max = 2000,
                                      .backoff_ms_min = 20,
                                      .backoff_ms_max = 100,
                                      .message_bytes_max = 1 << 20,
                                      .seed = 1};
    struct grpc_link_events events = {on_stranger_up, on_stranger_down, &stranger};
    stranger.link = grpc_link_open(&fixture->loop, &config, &events);
    members_run_until(fixture, &stranger.up);
    const char *replicate = "/tidemark.replication.v1.Replicator/Replicate";
    const char *control = "/tidemark.replication.v1.Replicator/Control";
    struct bytes garbage = bytes_literal("\xff\xff\xff\xff");
    assert_int_equal(knock(fixture, &stranger, replicate, NULL, BYTES_NONE),
                     GRPC_FAILED_PRECONDITION);
    assert_int_equal(knock(fixture, &stranger, replicate, "sa-east-1", BYTES_NONE),
                     GRPC_FAILED_PRECONDITION);
    assert_int_equal(knock(fixture, &stranger, replicate, "us-east-1", BYTES_NONE),
                     GRPC_FAILED_PRECONDITION);
    assert_int_equal(knock(fixture, &stranger, control, NULL, garbage), GRPC_FAILED_PRECONDITION);
    assert_int_equal(knock(fixture, &stranger, control, "eu-west-1", garbage),
                     GRPC_INVALID_ARGUMENT);
    assert_int_equal(knock(fixture, &stranger, "/nonsense/Call", NULL, BYTES_NONE),
                     GRPC_UNIMPLEMENTED);
    /* A peer that talks nonsense loses its stream, and nothing else. */
    assert_int_not_equal(knock(fixture, &stranger, replicate, "eu-west-1", garbage), GRPC_OK);
    grpc_link_close(stranger.link);
    member_expect_ok(&fixture->at[0], "ListTables", "{}");
}

/* A client in any language: it says what it has to say, closes, and gets its one answer. */
static void test_the_groups_are_an_ordinary_call(void **state)
{
    struct fixture *fixture = *state;
    struct stranger stranger = {0};
    struct grpc_link_config config = {.address = fixture->at[0].address,
                                      .authority = "test",
                                      .message_bytes_max = 1 << 20,
                                      .seed = 1};
    struct grpc_link_events events = {on_stranger_up, on_stranger_down, &stranger};
    stranger.link = grpc_link_open(&fixture->loop, &config, &events);
    members_run_until(fixture, &stranger.up);
    const char *groups = "/tidemark.replication.v1.Replicator/Groups";
    const char *headers[] = {"tidemark-region", "eu-west-1", NULL};
    assert_int_equal(knock(fixture, &stranger, groups, NULL, BYTES_NONE), GRPC_FAILED_PRECONDITION);
    struct buf sealed = {0};
    buf_append_text(&sealed, "\xff\xff");
    assert_int_equal(knock(fixture, &stranger, groups, "eu-west-1", buf_view(&sealed)),
                     GRPC_DATA_LOSS); /* nobody can know what was meant */
    peers_seal(&sealed);
    assert_int_equal(knock(fixture, &stranger, groups, "eu-west-1", buf_view(&sealed)),
                     GRPC_INVALID_ARGUMENT);
    buf_deinit(&sealed);
    struct grpc_events call_events = {on_stranger_message, NULL, on_stranger_closed, &stranger};
    stranger.closed = false;
    struct grpc_call *call = grpc_link_call(stranger.link, groups, headers, &call_events);
    grpc_call_finish(call, GRPC_OK, "");
    members_run_until(fixture, &stranger.closed);
    assert_int_equal(stranger.status, GRPC_OK);
    assert_int_equal(stranger.answers, 1);

    /* A newer stream of the same Region takes the older one's place. */
    stranger.closed = false;
    assert_non_null(grpc_link_call(stranger.link, groups, headers, &call_events));
    struct stranger other = {0};
    struct grpc_events other_events = {on_stranger_message, NULL, on_stranger_closed, &other};
    assert_non_null(grpc_link_call(stranger.link, groups, headers, &other_events));
    members_run_until(fixture, &stranger.closed);
    assert_false(other.closed);
    grpc_link_close(stranger.link);
    member_expect_ok(&fixture->at[0], "ListTables", "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_admin_routes, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(test_clock_moves, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(test_strangers_are_refused, members_setup,
                                        members_teardown),
        cmocka_unit_test_setup_teardown(test_the_groups_are_an_ordinary_call, members_setup,
                                        members_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
