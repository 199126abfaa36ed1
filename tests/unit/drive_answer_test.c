/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of answer to every kind of operation, against the table of history.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "chaos/drive/answer.h"
#include "conflict/base/check.h"

#define ERROR(type) "{\"__type\":\"com.amazonaws.dynamodb.v20120810#" type "\",\"message\":\"x\"}"

static struct answer_list list;

static struct history_op read_answer(enum history_kind kind, const struct http_answer *answer)
{
    struct history_op op = {.kind = (uint8_t)kind, .return_ns = 1};
    json_t *next;
    if (kind == HISTORY_PUT || kind == HISTORY_PUT_IF || kind == HISTORY_APPEND ||
        kind == HISTORY_INSERT)
        op.written = 5;
    list.count = 0;
    answer_read(answer, &op, &list, &next);
    json_decref(next);
    /* Whatever came, it is a thing that a workload can have recorded. */
    const char *fault = history_op_fault(&op);
    if (fault)
        fail_msg("%s: %d: %s", history_kind_text(kind), answer->status, fault);
    return op;
}

static struct history_op read_body(enum history_kind kind, int status, const char *body)
{
    return read_answer(
        kind, &(struct http_answer){.status = status, .body = bytes_text(body), .sent = true});
}

/* ---- Outcomes ---- */

static void expect_for_all(const struct http_answer *answer, enum history_outcome of_write,
                           enum history_outcome of_read, enum history_reason reason)
{
    for (int kind = 0; kind < HISTORY_KIND_COUNT; kind++) {
        struct history_op op = read_answer((enum history_kind)kind, answer);
        bool writes = history_kind_writes((enum history_kind)kind);
        assert_int_equal(op.outcome, writes ? of_write : of_read);
        assert_int_equal(op.reason, reason);
        assert_int_equal(op.saw, HISTORY_SAW_NOTHING);
    }
}

static void test_no_answer(void **state)
{
    (void)state;
    expect_for_all(&(struct http_answer){.failure = "connection refused"}, HISTORY_FAILED,
                   HISTORY_FAILED, HISTORY_REASON_REFUSED);
    /* In line, or connecting, until the time was over. */
    expect_for_all(&(struct http_answer){.failure = "timed out", .timed_out = true}, HISTORY_FAILED,
                   HISTORY_FAILED, HISTORY_REASON_REFUSED);
    expect_for_all(&(struct http_answer){.failure = "timed out", .timed_out = true, .sent = true},
                   HISTORY_INFO, HISTORY_FAILED, HISTORY_REASON_TIMEOUT);
    expect_for_all(&(struct http_answer){.failure = "closed", .sent = true}, HISTORY_INFO,
                   HISTORY_FAILED, HISTORY_REASON_DISCONNECTED);
}

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        enum history_outcome of_write;
        enum history_reason reason;
    } cases[] = {
        {400, ERROR("ReplicatedWriteConflictException"), HISTORY_FAILED, HISTORY_REASON_CONFLICT},
        {400, ERROR("ProvisionedThroughputExceededException"), HISTORY_FAILED,
         HISTORY_REASON_THROTTLED},
        {400, ERROR("ThrottlingException"), HISTORY_FAILED, HISTORY_REASON_THROTTLED},
        {400, ERROR("RequestLimitExceeded"), HISTORY_FAILED, HISTORY_REASON_THROTTLED},
        {400, "{\"__type\":\"ThrottlingException\"}", HISTORY_FAILED, HISTORY_REASON_THROTTLED},
        {400, ERROR("ValidationException"), HISTORY_FAILED, HISTORY_REASON_REJECTED},
        {400, ERROR("ResourceNotFoundException"), HISTORY_FAILED, HISTORY_REASON_REJECTED},
        {403, "", HISTORY_FAILED, HISTORY_REASON_REJECTED},
        {413, "<html>", HISTORY_FAILED, HISTORY_REASON_REJECTED},
        {400, "{\"__type\":17}", HISTORY_FAILED, HISTORY_REASON_REJECTED},
        {500, ERROR("InternalServerError"), HISTORY_INFO, HISTORY_REASON_SERVER},
        {503, ERROR("ServiceUnavailable"), HISTORY_INFO, HISTORY_REASON_SERVER},
        /* A name does not make certain what the status does not. */
        {500, ERROR("ConditionalCheckFailedException"), HISTORY_INFO, HISTORY_REASON_SERVER},
        {302, "", HISTORY_INFO, HISTORY_REASON_SERVER},
        {204, "", HISTORY_INFO, HISTORY_REASON_SERVER},
        {200, "", HISTORY_INFO, HISTORY_REASON_SERVER},
        {200, "{\"Attributes\":", HISTORY_INFO, HISTORY_REASON_SERVER},
        {200, "[]", HISTORY_INFO, HISTORY_REASON_SERVER},
    };
    for (size_t i = 0; i < array_len(cases); i++)
        expect_for_all(&(struct http_answer){.status = cases[i].status,
                                             .body = bytes_text(cases[i].body),
                                             .sent = true},
                       cases[i].of_write, HISTORY_FAILED, cases[i].reason);
}

static void test_condition(void **state)
{
    (void)state;
#define FAILED_CONDITION "{\"__type\":\"x#ConditionalCheckFailedException\",\"message\":\"The\""
    struct history_op op = read_body(HISTORY_PUT_IF, 400,
                                     FAILED_CONDITION ",\"Item\":{\"pk\":{\"S\":\"k1\"},"
                                                      "\"v\":{\"N\":\"4294967297\"}}}");
    assert_int_equal(op.outcome, HISTORY_FAILED);
    assert_int_equal(op.reason, HISTORY_REASON_CONDITION);
    assert_int_equal(op.saw, HISTORY_SAW_VALUE);
    assert_int_equal(op.value, 4294967297u);
    op = read_body(HISTORY_PUT_IF, 400, FAILED_CONDITION "}");
    assert_int_equal(op.saw, HISTORY_SAW_ABSENT);
    /* Nobody else set one. */
    op = read_body(HISTORY_PUT, 400, FAILED_CONDITION "}");
    assert_int_equal(op.reason, HISTORY_REASON_REJECTED);
    assert_int_equal(op.saw, HISTORY_SAW_NOTHING);
}

/* ---- Observations ---- */

static void expect_saw(enum history_kind kind, const char *body, enum history_saw saw,
                       uint64_t value)
{
    struct history_op op = read_body(kind, 200, body);
    assert_int_equal(op.outcome, HISTORY_OK);
    assert_int_equal(op.reason, HISTORY_REASON_NONE);
    assert_int_equal(op.saw, saw);
    assert_int_equal(op.value, value);
}

static void test_values(void **state)
{
    (void)state;
    static const enum history_kind writes[] = {HISTORY_PUT, HISTORY_PUT_IF, HISTORY_DELETE};
    for (size_t i = 0; i < array_len(writes); i++) {
        expect_saw(writes[i], "{}", HISTORY_SAW_ABSENT, 0);
        expect_saw(writes[i], "{\"Attributes\":{\"v\":{\"N\":\"17\"}}}", HISTORY_SAW_VALUE, 17);
    }
    expect_saw(HISTORY_READ, "{}", HISTORY_SAW_ABSENT, 0);
    expect_saw(HISTORY_READ, "{\"Item\":{\"f\":{\"S\":\"\"},\"v\":{\"N\":\"17\"}}}",
               HISTORY_SAW_VALUE, 17);
    expect_saw(HISTORY_ADD, "{\"Attributes\":{\"v\":{\"N\":\"3\"}}}", HISTORY_SAW_VALUE, 3);
    expect_saw(HISTORY_APPEND, "{}", HISTORY_SAW_NOTHING, 0);
    expect_saw(HISTORY_INSERT, "{}", HISTORY_SAW_NOTHING, 0);
    assert_int_equal(read_body(HISTORY_ADD, 200, "{}").outcome, HISTORY_INFO); /* no sum */
}

/* An item that we did not write is a value that nobody wrote. */
static void test_strange_values(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "{}",
        "{\"v\":{\"N\":\"0\"}}",
        "{\"v\":{\"N\":\"017\"}}",
        "{\"v\":{\"N\":\"-1\"}}",
        "{\"v\":{\"N\":\"1.5\"}}",
        "{\"v\":{\"N\":\"\"}}",
        "{\"v\":{\"N\":17}}",
        "{\"v\":{\"S\":\"17\"}}",
        "{\"v\":17}",
        "[]",
        "null",
        "{\"v\":{\"N\":\"18446744073709551616\"}}",
        "{\"v\":{\"N\":\"99999999999999999999\"}}",
    };
    for (size_t i = 0; i < array_len(strange); i++) {
        char body[128];
        snprintf(body, sizeof(body), "{\"Item\":%s}", strange[i]);
        expect_saw(HISTORY_READ, body, HISTORY_SAW_VALUE, ANSWER_STRANGE);
        snprintf(body, sizeof(body), "{\"Attributes\":%s}", strange[i]);
        expect_saw(HISTORY_PUT, body, HISTORY_SAW_VALUE, ANSWER_STRANGE);
    }
    expect_saw(HISTORY_READ, "{\"Item\":{\"v\":{\"N\":\"18446744073709551614\"}}}",
               HISTORY_SAW_VALUE, UINT64_MAX - 1);
}

static void test_lists(void **state)
{
    (void)state;
    struct history_op op =
        read_body(HISTORY_READ, 200,
                  "{\"Item\":{\"l\":{\"L\":[{\"N\":\"7\"},{\"N\":\"9\"},{\"S\":\"x\"}]}}}");
    assert_int_equal(op.saw, HISTORY_SAW_LIST);
    assert_int_equal(op.list_count, 3);
    assert_int_equal(list.at[0], 7);
    assert_int_equal(list.at[1], 9);
    assert_true(list.at[2] == ANSWER_STRANGE);
    op = read_body(HISTORY_READ, 200, "{\"Item\":{\"l\":{\"L\":[]}}}");
    assert_int_equal(op.saw, HISTORY_SAW_LIST);
    assert_int_equal(op.list_count, 0);
    op = read_body(HISTORY_READ, 200, "{\"Item\":{\"l\":{\"N\":\"1\"}}}");
    assert_int_equal(op.list_count, 1);
    assert_true(list.at[0] == ANSWER_STRANGE);
}

static void test_pages(void **state)
{
    (void)state;
    struct history_op op = {.kind = HISTORY_SCAN, .return_ns = 1};
    json_t *next;
    struct http_answer answer = {.status = 200, .sent = true};
    list.count = 0;
    answer.body = bytes_literal("{\"Items\":[{\"sk\":{\"N\":\"3\"}}],\"LastEvaluatedKey\":{\"pk\":"
                                "{\"S\":\"k1\"},\"sk\":{\"N\":\"3\"}}}");
    answer_read(&answer, &op, &list, &next);
    assert_non_null(next);
    json_decref(next);
    answer.body = bytes_literal("{\"Items\":[{\"sk\":{\"N\":\"4\"}}]}");
    answer_read(&answer, &op, &list, &next);
    assert_null(next);
    assert_int_equal(op.list_count, 2);
    assert_int_equal(list.at[0], 3);
    assert_int_equal(list.at[1], 4);
    /* A page that does not come leaves nothing seen. */
    answer = (struct http_answer){.sent = true};
    answer_read(&answer, &op, &list, &next);
    assert_null(next);
    assert_int_equal(op.outcome, HISTORY_FAILED);
    assert_null(history_op_fault(&op));
    op = read_body(HISTORY_SCAN, 200, "{\"Items\":[]}");
    assert_int_equal(op.saw, HISTORY_SAW_LIST);
    op = read_body(HISTORY_SCAN, 200, "{}");
    assert_int_equal(op.outcome, HISTORY_FAILED);
}

static void test_prints(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text);
    answer_print(&(struct http_answer){.failure = "timed out"}, &text);
    buf_append_u8(&text, '|');
    answer_print(
        &(struct http_answer){.status = 400, .body = bytes_literal(ERROR("ValidationException"))},
        &text);
    buf_append_u8(&text, '|');
    answer_print(&(struct http_answer){.status = 502}, &text);
    buf_append_u8(&text, 0);
    assert_string_equal((char *)text.at, "no answer: timed out|400 ValidationException: x|502 ");
    buf_deinit(&text);
}

static int teardown(void **state)
{
    (void)state;
    answer_list_deinit(&list);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_answer),      cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_condition),      cmocka_unit_test(test_values),
        cmocka_unit_test(test_strange_values), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_pages),          cmocka_unit_test(test_prints),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
