/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms, and their text. */

#include "region/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"

static void expect(struct buf *text, const char *part)
{
    buf_append_u8(text, 0);
    if (!strstr((const char *)text->at, part))
        fail_msg("expected\n%s\nin\n%s", part, (const char *)text->at);
    text->len--;
}

static void test_histogram(void **state)
{
    (void)state;
    struct histogram histogram = {0};
    histogram_add(&histogram, 50000);      /* on a bound: in its bucket */
    histogram_add(&histogram, 50001);      /* above it */
    histogram_add(&histogram, 9000000000); /* beyond all */
    struct buf text;
    buf_init(&text);
    metrics_histogram(&text, "x", "a=\"b\"", &histogram);
    expect(&text, "x_bucket{a=\"b\",le=\"0.05\"} 1\nx_bucket{a=\"b\",le=\"0.1\"} 2\n");
    expect(&text, "x_bucket{a=\"b\",le=\"2500\"} 2\nx_bucket{a=\"b\",le=\"+Inf\"} 3\n");
    expect(&text, "x_sum{a=\"b\"} 9000.100001\nx_count{a=\"b\"} 3\n");
    buf_deinit(&text);
}

static void test_requests(void **state)
{
    (void)state;
    struct metrics *metrics = xcalloc(1, sizeof(*metrics));
    metrics_request(metrics, OP_GET_ITEM, API_OK, 1000);
    metrics_request(metrics, OP_GET_ITEM, API_OK, 1000);
    metrics_request(metrics, OP_PUT_ITEM, API_CONDITION_FAILED, 1000);
    metrics_request(metrics, OP_KIND_COUNT, API_UNKNOWN_OPERATION, 1000);
    metrics_group(metrics, 100, 1000, true);
    metrics_group(metrics, 50, 1000, false);
    struct buf text;
    buf_init(&text);
    metrics_write(&text, metrics);
    expect(&text, "tidemark_requests_total{operation=\"GetItem\",status=\"200\",error=\"\"} 2\n");
    expect(&text,
           "{operation=\"PutItem\",status=\"400\",error=\"ConditionalCheckFailedException\"} 1\n");
    expect(&text, "{operation=\"Unknown\",status=\"400\",error=\"UnknownOperationException\"} 1\n");
    expect(&text, "SuccessfulRequestLatency_count{Operation=\"GetItem\"} 2\n");
    expect(&text, "tidemark_storage_groups_total 1\n");
    expect(&text, "tidemark_storage_group_bytes_total 100\n");
    expect(&text, "tidemark_storage_groups_refused_total 1\n");
    buf_deinit(&text);
    free(metrics);
}

static void test_label(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text);
    metrics_label(&text, bytes_literal("a\"b\\c\nd"));
    assert_true(bytes_is(buf_view(&text), "\"a\\\"b\\\\c\\nd\""));
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
