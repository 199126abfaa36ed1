/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that a Region is told to bring about: what is read and refused, what strikes whom, what is
 * counted, and that a list which replaces another keeps the counts of those that stay. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/region_id.h"
#include "region/faults.h"

static struct faults faults;

static bool set(const char *body, uint64_t newest)
{
    struct buf error;
    buf_init(&error);
    bool good = faults_set(&faults, bytes_text(body), newest, &error);
    assert_int_equal(good, error.len == 0);
    buf_deinit(&error);
    return good;
}

static void assert_told(const char *expected)
{
    struct buf told;
    buf_init(&told);
    faults_write(&faults, &told);
    buf_append_u8(&told, 0);
    assert_string_equal((const char *)told.at, expected);
    buf_deinit(&told);
}

static int fresh(void **state)
{
    (void)state;
    faults_init(&faults, 1);
    return 0;
}

static void bad_lists_change_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"faults\":{}}",
        "{\"faults\":[],\"more\":1}",
        "{\"faults\":[1]}",
        "{\"faults\":[{\"id\":\"a\"}]}",
        "{\"faults\":[{\"kind\":\"loss\"}]}",
        "{\"faults\":[{\"id\":\"\",\"kind\":\"loss\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"rain\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"share\":0}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"share\":1.5}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"share\":\"1\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"peer\":\"mars\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"delay_ms\":5}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"colour\":5}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"correlation\":1}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"correlation\":-0.1}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\",\"correlation\":\"0\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"corrupt\",\"delay_ms\":5}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"reorder\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"reorder\",\"delay_ms\":0}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"reorder\",\"delay_ms\":3600001}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"clients\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"clients\",\"how\":\"gently\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"error\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"error\",\"error\":\"Oops\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"error\",\"error\":\"InternalServerError\","
        "\"operations\":[\"Dance\"]}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"error\",\"error\":\"InternalServerError\","
        "\"operations\":\"PutItem\"}]}",
        "{\"faults\":[{\"id\":\"a\",\"kind\":\"loss\"},{\"id\":\"a\",\"kind\":\"loss\"}]}",
    };
    assert_true(set("{\"faults\":[{\"id\":\"kept\",\"kind\":\"loss\"}]}", 0));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (set(bad[i], 0))
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(faults.count, 1);
    }
    assert_told("{\"faults\":[{\"id\":\"kept\",\"kind\":\"loss\",\"hits\":0}],\"ended\":[]}\n");
}

static void there_are_at_most_so_many(void **state)
{
    (void)state;
    struct buf body;
    buf_init(&body);
    for (int count = FAULTS_MAX; count <= FAULTS_MAX + 1; count++) {
        buf_reset(&body);
        buf_append_text(&body, "{\"faults\":[");
        for (int i = 0; i < count; i++)
            buf_printf(&body, "%s{\"id\":\"%d\",\"kind\":\"loss\"}", i == 0 ? "" : ",", i);
        buf_append_text(&body, "]}");
        buf_append_u8(&body, 0);
        assert_int_equal(set((const char *)body.at, 0), count == FAULTS_MAX);
    }
    buf_deinit(&body);
}

static void messages_are_struck(void **state)
{
    (void)state;
    uint16_t ireland = region_id_find(bytes_text("eu-west-1"));
    uint16_t japan = region_id_find(bytes_text("ap-northeast-1"));
    assert_true(
        set("{\"faults\":["
            "{\"id\":\"l\",\"kind\":\"loss\",\"peer\":\"eu-west-1\",\"share\":0.25},"
            "{\"id\":\"d\",\"kind\":\"duplicate\"},"
            "{\"id\":\"r\",\"kind\":\"reorder\",\"peer\":\"ap-northeast-1\",\"delay_ms\":5},"
            "{\"id\":\"c\",\"kind\":\"clients\",\"how\":\"cut\"}]}",
            0));
    unsigned lost = 0;
    for (int i = 0; i < 10000; i++) {
        struct faults_message message = faults_message(&faults, ireland);
        lost += message.lost;
        assert_true(message.twice);
        assert_int_equal(message.delay_ms, 0);
    }
    assert_in_range(lost, 2300, 2700);
    struct faults_message message = faults_message(&faults, japan);
    assert_false(message.lost);
    assert_true(message.twice);
    assert_int_equal(message.delay_ms, 5);
    assert_int_equal(faults.rules[0].hits, lost);
    assert_int_equal(faults.rules[1].hits, 10001);
    assert_int_equal(faults.rules[2].hits, 1);
    assert_int_equal(faults.rules[3].hits, 0);
}

static void damage_is_counted(void **state)
{
    (void)state;
    static const char body[] = "{\"faults\":[{\"id\":\"c\",\"kind\":\"corrupt\",\"peer\":"
                               "\"eu-west-1\",\"share\":0.5}]}";
    uint16_t ireland = region_id_find(bytes_text("eu-west-1"));
    uint16_t japan = region_id_find(bytes_text("ap-northeast-1"));
    assert_true(set(body, 0));
    faults_stream_closed(&faults, ireland); /* by nothing of ours: none was struck yet */
    unsigned struck = 0;
    uint64_t luck = 0;
    for (int i = 0; i < 1000; i++) {
        struct faults_message message = faults_message(&faults, ireland);
        struck += message.corrupt;
        assert_true(!message.corrupt || message.luck != luck);
        luck = message.luck;
        assert_false(faults_message(&faults, japan).corrupt);
    }
    assert_in_range(struck, 430, 570);
    faults_stream_closed(&faults, japan);
    faults_stream_closed(&faults, ireland);
    assert_true(set(body, 0)); /* the counts of one that goes on are kept */
    faults_stream_closed(&faults, ireland);
    assert_int_equal(faults.rules[0].hits, struck);
    assert_int_equal(faults.rules[0].closed, 2);
    assert_true(set("{\"faults\":[]}", 0));
    faults_stream_closed(&faults, ireland); /* a stream ends a little later than the fault */
    char told[128];
    snprintf(told, sizeof(told),
             "{\"faults\":[],\"ended\":[{\"id\":\"c\",\"kind\":\"corrupt\",\"hits\":%u,"
             "\"closed\":3}]}\n",
             struck);
    assert_told(told);
}

/* Of so many, so many after another that was struck: the share, and the likeness of neighbours. */
static void strikes_come_in_runs(void **state)
{
    (void)state;
    static const double correlations[] = {0, 0.25, 0.9};
    enum { COUNT = 200000 };
    for (size_t i = 0; i < sizeof(correlations) / sizeof(*correlations); i++) {
        char body[128];
        unsigned struck = 0, after = 0, before = 0;
        snprintf(body, sizeof(body),
                 "{\"faults\":[{\"id\":\"%zu\",\"kind\":\"loss\",\"share\":0.2,"
                 "\"correlation\":%g}]}",
                 i, correlations[i]);
        assert_true(set(body, 0));
        for (unsigned j = 0; j < COUNT; j++) {
            bool lost = faults_message(&faults, 1).lost;
            struck += lost;
            after += before && lost;
            before = lost;
        }
        double share = (double)struck / COUNT, again = (double)after / struck;
        assert_true(fabs(share - 0.2) < 0.01);
        assert_true(fabs(again - (0.2 + correlations[i] * 0.8)) < 0.02);
    }
}

static enum faults_verdict ask(uint64_t connection)
{
    enum api_error error;
    return faults_request(&faults, connection, bytes_text("DynamoDB_20120810.PutItem"), &error);
}

static void clients_are_struck(void **state)
{
    (void)state;
    assert_true(set("{\"faults\":[{\"id\":\"c\",\"kind\":\"clients\",\"how\":\"refuse\"}]}", 7));
    assert_int_equal(ask(7), FAULTS_PASS);
    assert_int_equal(ask(8), FAULTS_DROP);
    assert_int_equal(faults_answer(&faults, 8), FAULTS_DROP);
    /* The same one again, later: it is still that of before. */
    assert_true(set("{\"faults\":[{\"id\":\"c\",\"kind\":\"clients\",\"how\":\"refuse\"}]}", 20));
    assert_int_equal(ask(8), FAULTS_DROP);
    assert_int_equal(faults.rules[0].hits, 3);
    assert_true(set("{\"faults\":[{\"id\":\"x\",\"kind\":\"clients\",\"how\":\"reset\"}]}", 20));
    assert_told("{\"faults\":[{\"id\":\"x\",\"kind\":\"clients\",\"hits\":0}],"
                "\"ended\":[{\"id\":\"c\",\"kind\":\"clients\",\"hits\":3}]}\n");
    assert_int_equal(ask(20), FAULTS_DROP);
    assert_int_equal(ask(21), FAULTS_PASS);
    assert_true(set("{\"faults\":[{\"id\":\"h\",\"kind\":\"clients\",\"how\":\"blackhole\"}]}", 0));
    assert_int_equal(ask(1), FAULTS_HOLD);
    assert_true(set("{\"faults\":[]}", 0));
    assert_int_equal(ask(1), FAULTS_PASS);
}

static void requests_are_struck(void **state)
{
    (void)state;
    enum api_error error = API_OK;
    assert_true(
        set("{\"faults\":[{\"id\":\"e\",\"kind\":\"error\",\"error\":\"ThrottlingException\","
            "\"operations\":[\"PutItem\",\"Query\"]}]}",
            0));
    static const struct {
        const char *target;
        enum faults_verdict verdict;
    } requests[] = {
        {"DynamoDB_20120810.PutItem", FAULTS_FAIL},
        {"DynamoDB_20120810.Query", FAULTS_FAIL},
        {"DynamoDB_20120810.GetItem", FAULTS_PASS},
        {"PutItem", FAULTS_PASS},
        {"", FAULTS_PASS},
        {"DynamoDB_20120810.", FAULTS_PASS},
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
        assert_int_equal(faults_request(&faults, 1, bytes_text(requests[i].target), &error),
                         requests[i].verdict);
    assert_int_equal(error, API_THROTTLING);
    assert_int_equal(faults.rules[0].hits, 2);
    for (enum api_error each = API_OK + 1; each < API_ERROR_COUNT; each++)
        assert_true(strlen(faults_error_text(each)) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bad_lists_change_nothing, fresh),
        cmocka_unit_test_setup(there_are_at_most_so_many, fresh),
        cmocka_unit_test_setup(messages_are_struck, fresh),
        cmocka_unit_test_setup(damage_is_counted, fresh),
        cmocka_unit_test_setup(strikes_come_in_runs, fresh),
        cmocka_unit_test_setup(clients_are_struck, fresh),
        cmocka_unit_test_setup(requests_are_struck, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
