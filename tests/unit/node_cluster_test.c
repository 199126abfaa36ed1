/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of whole Regions sees: answers and their headers, what survives a restart, how a
 * Region stops, that two replicate, and that the write which lost is listed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

#include "conflict/base/check.h"
#include "tests/lib/node/members.h"

/* ---- One Region ---- */

static void test_serves(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    member_create_table(member);
    member_expect_ok(member, "PutItem", "{\"TableName\":\"orders\",\"Item\":" ITEM_ONE "}");
    member_expect_ok(member, "GetItem", GET_ONE);
    assert_string_equal(members_body(fixture),
                        "{\"Item\":{\"n\":{\"N\":\"1\"},\"pk\":{\"S\":\"one\"}}}");

    char crc[16];
    snprintf(crc, sizeof(crc), "%lu",
             crc32(0, fixture->body.at, (uInt)(fixture->body.len - 1)) & 0xffffffff);
    assert_string_equal(fixture->crc32, crc);
    assert_int_equal(strlen(fixture->request_id), 52);
    assert_string_equal(fixture->server, "tidemark");
    assert_string_equal(fixture->type, "application/x-amz-json-1.0");
    char before[64];
    snprintf(before, sizeof(before), "%s", fixture->request_id);

    assert_int_equal(member_call(member, "GetItem",
                                 "{\"TableName\":\"nowhere\",\"Key\":{\"pk\":{\"S\":\"a\"}}}"),
                     400);
    assert_non_null(strstr(members_body(fixture), "ResourceNotFoundException"));
    assert_string_not_equal(fixture->request_id, before);
    assert_true(fixture->crc32[0] != '\0');
    assert_int_equal(member_call(member, "Nonsense", "{}"), 400);
    assert_non_null(strstr(members_body(fixture), "UnknownOperationException"));
}

static void test_survives_restart(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    member_create_table(member);
    member_expect_ok(member, "PutItem", "{\"TableName\":\"orders\",\"Item\":" ITEM_ONE "}");
    member_stop(member);
    member_start(member);
    member_expect_ok(member, "GetItem", GET_ONE);
    assert_non_null(strstr(members_body(fixture), "\"one\""));
}

static void test_drains(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    member_create_table(member);
    node_drain(member->node);
    members_run_until(fixture, &member->drained);
}

/* A node that goes down with requests in its core lets go of them. */
static void test_closes_in_the_middle(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    member_create_table(member);
    static const struct http_header headers[] = {
        {{(const uint8_t *)"content-type", 12},
         {(const uint8_t *)"application/x-amz-json-1.0", 26}},
        {{(const uint8_t *)"x-amz-target", 12}, {(const uint8_t *)"DynamoDB_20120810.PutItem", 25}},
    };
    struct client_call call = {
        .method = bytes_literal("POST"),
        .path = bytes_literal("/"),
        .headers = headers,
        .header_count = array_len(headers),
        .body = bytes_literal("{\"TableName\":\"orders\",\"Item\":" ITEM_ONE "}"),
    };
    fixture->answered = false;
    client_send(member->client, &call, members_on_answer, fixture);
    /* Until the request has arrived, and no longer: its answer waits for the storage thread. */
    uint64_t before = node_requests(member->node);
    while (node_requests(member->node) == before)
        uv_run(&fixture->loop.uv, UV_RUN_ONCE);
    member_stop(member);
    members_run_until(fixture, &fixture->answered);
}

static void test_refuses_to_start_twice(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    struct node_events events = {NULL, NULL, NULL};
    char error[512] = "";
    assert_null(
        node_open(&fixture->loop, &member->config, &member->log, &events, error, sizeof(error)));
    assert_non_null(strstr(error, member->address));
    assert_non_null(strstr(error, "in use"));
    member_expect_ok(member, "ListTables", "{}"); /* and the first one is none the worse */
}

/* ---- Two Regions ---- */

static void add_replica(struct fixture *fixture)
{
    member_create_table(&fixture->at[0]);
    /* The link may still be waiting to try again, since the other Region started later. */
    member_await(
        &fixture->at[0], "UpdateTable",
        "{\"TableName\":\"orders\",\"ReplicaUpdates\":[{\"Create\":{\"RegionName\":\"eu-west-1\"}"
        "}]}",
        "eu-west-1");
    member_await(&fixture->at[0], "DescribeTable", "{\"TableName\":\"orders\"}",
                 "\"ReplicaStatus\":\"ACTIVE\"");
    member_await(&fixture->at[1], "DescribeTable", "{\"TableName\":\"orders\"}",
                 "\"TableStatus\":\"ACTIVE\"");
}

static void test_replicates(void **state)
{
    struct fixture *fixture = *state;
    struct member *here = &fixture->at[0], *there = &fixture->at[1];
    member_start(there);
    add_replica(fixture);
    member_expect_ok(here, "PutItem", "{\"TableName\":\"orders\",\"Item\":" ITEM_ONE "}");
    member_await(there, "GetItem", GET_ONE, "\"n\":{\"N\":\"1\"}");
    member_expect_ok(
        there, "PutItem",
        "{\"TableName\":\"orders\",\"Item\":{\"pk\":{\"S\":\"one\"},\"n\":{\"N\":\"2\"}}}");
    member_await(here, "GetItem", GET_ONE, "\"n\":{\"N\":\"2\"}");
    member_expect_ok(here, "DeleteItem",
                     "{\"TableName\":\"orders\",\"Key\":{\"pk\":{\"S\":\"one\"}}}");
    do
        member_expect_ok(there, "GetItem", GET_ONE);
    while (strcmp(members_body(fixture), "{}") != 0);
    member_ask(there, "GET", "/tidemark/conflicts", NULL, 0, "");
    assert_string_equal(members_body(fixture), "{\"conflicts\":[],\"next\":null}\n");
}

/* Both write the same key while they do not hear each other. */
static void test_conflict_is_listed(void **state)
{
    struct fixture *fixture = *state;
    struct member *here = &fixture->at[0], *there = &fixture->at[1];
    member_start(there);
    add_replica(fixture);
    member_stop(there);
    member_expect_ok(here, "PutItem", "{\"TableName\":\"orders\",\"Item\":" ITEM_ONE "}");
    member_stop(here);
    member_start(there);
    member_expect_ok(
        there, "PutItem",
        "{\"TableName\":\"orders\",\"Item\":{\"pk\":{\"S\":\"one\"},\"n\":{\"N\":\"2\"}}}");
    member_start(here);
    member_await(here, "GetItem", GET_ONE, "\"n\":{\"N\":\"2\"}");
    member_ask(here, "GET", "/tidemark/conflicts?limit=10", NULL, 0, "");
    json_t *root = members_parse_body(fixture);
    const char *table = NULL, *kind = NULL, *pk = NULL, *winner = NULL, *loser = NULL, *kept = NULL,
               *lost = NULL;
    if (json_unpack(root, "{s:[{s:s,s:s,s:{s:{s:s}},s:{s:s,s:{s:{s:s}}},s:{s:s,s:{s:{s:s}}}}]}",
                    "conflicts", "table", &table, "kind", &kind, "key", "pk", "S", &pk, "winner",
                    "region", &winner, "item", "n", "N", &kept, "loser", "region", &loser, "item",
                    "n", "N", &lost) != 0)
        fail_msg("%s", members_body(fixture));
    assert_string_equal(table, "orders");
    assert_string_equal(kind, "concurrent");
    assert_string_equal(pk, "one");
    assert_string_equal(winner, "eu-west-1");
    assert_string_equal(kept, "2");
    assert_string_equal(loser, "us-east-1");
    assert_string_equal(lost, "1");
    assert_int_equal(json_array_size(json_object_get(root, "conflicts")), 1);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_serves, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(test_survives_restart, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(test_drains, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(test_closes_in_the_middle, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(test_refuses_to_start_twice, members_setup,
                                        members_teardown),
        cmocka_unit_test_setup_teardown(test_replicates, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(test_conflict_is_listed, members_setup, members_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
