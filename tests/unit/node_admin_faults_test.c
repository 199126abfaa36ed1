/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a chaos run, on a whole Region: who may use them, what requests meet, and that what
 * is held back neither leaks nor is carried out for nobody. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/check.h"
#include "tests/lib/node/members.h"

#define ERROR_RULE                                                                                 \
    "{\"faults\":[{\"id\":\"e\",\"kind\":\"error\",\"error\":\"InternalServerError\","             \
    "\"operations\":[\"PutItem\"]}]}"
#define HOLD_RULE "{\"faults\":[{\"id\":\"h\",\"kind\":\"clients\",\"how\":\"blackhole\"}]}"
#define PUT_ONE "{\"TableName\":\"orders\",\"Item\":" ITEM_ONE "}"

static int put(struct member *member, const char *path, const char *body)
{
    member_ask(member, "PUT", path, NULL, 0, body);
    return member->fixture->status;
}

static void pages_and_nonsense_are_refused(void **state)
{
    struct member *member = &((struct fixture *)*state)->at[0];
    static const char *const paths[] = {"/tidemark/faults", "/tidemark/transfer"};
    static const struct http_header page = {{(const uint8_t *)"origin", 6},
                                            {(const uint8_t *)"http://evil.example", 19}};
    static const char *const transfers[] = {"",
                                            "{}",
                                            "[]",
                                            "{\"to\":\"mars\"}",
                                            "{\"to\":5}",
                                            "{\"to\":\"eu-west-1\",\"table\":5}",
                                            "{\"to\":\"eu-west-1\",\"more\":5}"};
    for (size_t i = 0; i < array_len(paths); i++) {
        member_ask(member, "PUT", paths[i], &page, 1, "{\"faults\":[]}");
        assert_int_equal(member->fixture->status, 403);
        assert_int_equal(put(member, paths[i], "nonsense"), 400);
    }
    for (size_t i = 0; i < array_len(transfers); i++)
        assert_int_equal(put(member, "/tidemark/transfer", transfers[i]), 400);
    assert_int_equal(put(member, "/tidemark/transfer", "{\"to\":\"eu-west-1\"}"), 200);
    assert_string_equal(members_body(member->fixture), "{\"groups\":0}\n");
    member_ask(member, "GET", "/tidemark/faults", NULL, 0, "");
    assert_string_equal(members_body(member->fixture), "{\"faults\":[],\"ended\":[]}\n");
    char *large = malloc(70000);
    memset(large, ' ', 69999);
    large[69999] = 0;
    assert_int_equal(put(member, "/tidemark/faults", large), 413);
    free(large);
}

static void errors_are_aws_own(void **state)
{
    struct member *member = &((struct fixture *)*state)->at[0];
    member_create_table(member);
    assert_int_equal(put(member, "/tidemark/faults", ERROR_RULE), 200);
    assert_int_equal(member_call(member, "PutItem", PUT_ONE), 500);
    assert_string_equal(members_body(member->fixture),
                        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\","
                        "\"message\":\"Internal server error\"}");
    member_expect_ok(member, "GetItem", GET_ONE);
    assert_int_equal(put(member, "/tidemark/faults", "{\"faults\":[]}"), 200);
    assert_string_equal(
        members_body(member->fixture),
        "{\"faults\":[],\"ended\":[{\"id\":\"e\",\"kind\":\"error\",\"hits\":1}]}\n");
    member_expect_ok(member, "PutItem", PUT_ONE);
}

struct held {
    bool answered;
    int status;
};

static void on_held(void *context, const struct http_answer *answer)
{
    struct held *held = context;
    held->answered = true;
    held->status = answer->status;
}

static void send_scan(struct member *member, struct held *held)
{
    static const struct http_header headers[] = {
        {{(const uint8_t *)"content-type", 12},
         {(const uint8_t *)"application/x-amz-json-1.0", 26}},
        {{(const uint8_t *)"x-amz-target", 12},
         {(const uint8_t *)"DynamoDB_20120810.ListTables", 28}},
    };
    struct client_call call = {.method = bytes_text("POST"),
                               .path = bytes_text("/"),
                               .headers = headers,
                               .header_count = 2,
                               .body = bytes_text("{}")};
    client_send(member->client, &call, on_held, held);
}

static void await_hits(struct member *member, const char *hits)
{
    do
        member_ask(member, "GET", "/tidemark/faults", NULL, 0, "");
    while (strstr(members_body(member->fixture), hits) == NULL);
}

/* The health route, which is no request of a client, is served meanwhile. */
static void what_is_held_goes_on(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    struct held held = {.answered = false};
    assert_int_equal(put(member, "/tidemark/faults", HOLD_RULE), 200);
    send_scan(member, &held);
    await_hits(member, "\"hits\":1");
    assert_false(held.answered);
    assert_int_equal(put(member, "/tidemark/faults", "{\"faults\":[]}"), 200);
    members_run_until(fixture, &held.answered);
    assert_true(held.status == 200 || held.status == 400); /* unsigned: an answer all the same */
}

/* A Region may end while it holds something. */
static void what_is_held_at_the_end_goes_with_it(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->at[0];
    struct held held = {.answered = false};
    assert_int_equal(put(member, "/tidemark/faults", HOLD_RULE), 200);
    send_scan(member, &held);
    await_hits(member, "\"hits\":1");
    member_stop(member);
    members_run_until(fixture, &held.answered);
    assert_int_equal(held.status, 0);
    member_start(member);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_and_nonsense_are_refused, members_setup,
                                        members_teardown),
        cmocka_unit_test_setup_teardown(errors_are_aws_own, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(what_is_held_goes_on, members_setup, members_teardown),
        cmocka_unit_test_setup_teardown(what_is_held_at_the_end_goes_with_it, members_setup,
                                        members_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
