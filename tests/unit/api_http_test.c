/* SPDX-License-Identifier: Apache-2.0 */
/* What happens around a body: protocol, target, signatures, Regions, compression, checksums, ids.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

#include "region/api/sigv4.h"
#include "tests/lib/language.h"

#define SIGNED(region)                                                                             \
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260131/" region "/dynamodb/aws4_request, "          \
    "SignedHeaders=host;x-amz-date, Signature=0123456789abcdef"
#define CORAL "{\"__type\":\"com.amazon.coral.service#"

static int setup(void **state)
{
    *state = language_new();
    return 0;
}

static int teardown(void **state)
{
    language_free(*state);
    return 0;
}

static struct api_request list_tables(char target[64])
{
    return language_request("ListTables", bytes_literal("{}"), target);
}

static void expect(struct language *language, const struct api_request *request, int status,
                   const char *body)
{
    const char *answer = language_send(language, request);
    assert_string_equal(answer, body);
    assert_int_equal(api_error_status(language->op->result.error), status);
}

static void protocol_comes_first(void **state)
{
    struct language *language = *state;
    char target[64];
    struct api_request request = list_tables(target);
    expect(language, &request, 200, "{\"TableNames\":[]}");
    request.content_type = bytes_literal("application/json; charset=utf-8");
    expect(language, &request, 200, "{\"TableNames\":[]}");
    request.content_type = bytes_literal("application/x-amz-json-1.1");
    expect(language, &request, 404, CORAL "UnknownOperationException\"}");
    request.content_type = BYTES_NONE;
    expect(language, &request, 404, CORAL "UnknownOperationException\"}");
    request = list_tables(target);
    request.method = bytes_literal("GET");
    expect(language, &request, 404, CORAL "UnknownOperationException\"}");
    request = list_tables(target);
    request.target = BYTES_NONE;
    expect(language, &request, 400, CORAL "UnknownOperationException\"}");
    request.target = bytes_literal("DynamoDB_20111205.ListTables");
    expect(language, &request, 400, CORAL "UnknownOperationException\"}");
    request.target = bytes_literal("DynamoDBStreams_20120810.ListStreams");
    expect(language, &request, 400,
           CORAL "UnknownOperationException\",\"message\":\"DynamoDB Streams is not available in "
                 "this version of Tidemark.\"}");
}

static void other_protocols_are_refused_by_name(void **state)
{
    struct language *language = *state;
    struct api_request request = {
        .method = bytes_literal("POST"),
        .path = bytes_literal("/service/DynamoDB_20120810/operation/ListTables"),
        .content_type = bytes_literal("application/cbor"),
        .body = bytes_literal("\xa0"),
    };
    const char *answer = language_send(language, &request);
    assert_non_null(strstr(answer, "rpc-v2-cbor is not available"));
    assert_int_equal(api_error_status(language->op->result.error), 404);
}

static void a_large_body_is_refused(void **state)
{
    struct language *language = *state;
    char target[64];
    struct api_request request = list_tables(target);
    request.body.at = calloc(1, REQUEST_BYTES_MAX + 1);
    request.body.len = REQUEST_BYTES_MAX + 1;
    expect(language, &request, 413, CORAL "RequestEntityTooLargeException\"}");
    free((void *)(uintptr_t)request.body.at);
}

/* Sixteen megabytes of "[]," would be a gigabyte of tree. */
static void a_body_of_too_many_nodes_is_refused(void **state)
{
    struct language *language = *state;
    char target[64];
    struct api_request request = list_tables(target);
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    buf_append_text(&body, "{\"x\":[[]");
    for (int i = 0; i < 250 * 1000; i++)
        buf_append_text(&body, ",[]");
    buf_append_text(&body, "]}");
    request.body = buf_view(&body);
    expect(language, &request, 400, CORAL "SerializationException\"}");
    /* In a string the same bytes are harmless. */
    body.at[5] = '"';
    body.at[body.len - 2] = '"';
    request.body = buf_view(&body);
    expect(language, &request, 200, "{\"TableNames\":[]}");
    buf_reset(&body);
    for (int i = 0; i < 100 * 1000; i++)
        buf_append_text(&body, "[");
    request.body = buf_view(&body);
    expect(language, &request, 400, CORAL "SerializationException\"}");
}

static void strict_credentials(void **state)
{
    struct language *language = *state;
    language->config.strict_credentials = true;
    char target[64];
    struct api_request request = list_tables(target);
    expect(language, &request, 400,
           CORAL "MissingAuthenticationTokenException\",\"message\":\"Request is missing "
                 "Authentication Token\"}");
    request.authorization = bytes_literal("AWS4-");
    expect(language, &request, 400,
           CORAL "IncompleteSignatureException\",\"message\":\"Authorization header requires "
                 "'Credential' parameter. Authorization header requires 'Signature' parameter. "
                 "Authorization header requires 'SignedHeaders' parameter. Authorization header "
                 "requires existence of either a 'X-Amz-Date' or a 'Date' header. "
                 "Authorization=AWS4-\"}");
    request.authorization = bytes_literal(SIGNED("us-east-1"));
    request.amz_date = bytes_literal("20260131T101010Z");
    expect(language, &request, 200, "{\"TableNames\":[]}");
    request.amz_date = bytes_literal("20260201T101010Z");
    const char *answer = language_send(language, &request);
    assert_non_null(strstr(answer, "'20260131' != '20260201', from '20260201T101010Z'."));
    request.authorization =
        bytes_literal("AWS4-HMAC-SHA256 Credential=a/b/c/d, SignedHeaders=host, "
                      "Signature=00");
    expect(language, &request, 400,
           CORAL "IncompleteSignatureException\",\"message\":\"Credential must have exactly 5 "
                 "slash-delimited elements, e.g. keyid/date/region/service/term, got 'a/b/c/d'\"}");
    request.authorization = bytes_literal(
        "AWS4-HMAC-SHA256 Credential=a/20260201/us-east-1/s3/e, SignedHeaders=host, Signature=00");
    expect(language, &request, 400,
           CORAL "InvalidSignatureException\",\"message\":\"Credential should be scoped to correct "
                 "service: 'dynamodb'. Credential should be scoped with a valid terminator: "
                 "'aws4_request', not 'e'. \"}");
}

static void signed_for_another_region(void **state)
{
    struct language *language = *state;
    static const char refusal[] =
        CORAL "InvalidSignatureException\",\"message\":\"Credential should be scoped to a valid "
              "region, not 'us-east-2'. This endpoint serves 'us-east-1'. \"}";
    char target[64];
    struct api_request request = list_tables(target);
    request.authorization = bytes_literal(SIGNED("us-east-2"));
    expect(language, &request, 400, refusal);
    request.host = bytes_literal("dynamodb.us-east-1.amazonaws.com");
    expect(language, &request, 400, refusal);
    /* Routed here by the scope, but the client called another Region's host. */
    language->config.region = 2;
    expect(language, &request, 400, refusal);
    request.host = bytes_literal("123456789012.ddb.us-east-2.amazonaws.com");
    expect(language, &request, 200, "{\"TableNames\":[]}");
    /* Two keys of one account see the same tables. */
    request.authorization = bytes_literal("AWS4-HMAC-SHA256 Credential=OTHER/20260131/us-east-2/"
                                          "dynamodb/aws4_request, SignedHeaders=host, Signature=1");
    expect(language, &request, 200, "{\"TableNames\":[]}");
    request.authorization = bytes_literal("Bearer \xff");
    expect(language, &request, 200, "{\"TableNames\":[]}");
    request.authorization = bytes_literal("AWS4-HMAC-SHA256 Credential=a/b/\xff\xfe/d/e");
    assert_non_null(strstr(language_send(language, &request), "not '?\?'"));
}

static void regions_of_scopes_and_hosts(void **state)
{
    (void)state;
    assert_true(
        bytes_is(sigv4_region(bytes_literal(SIGNED("eu-west-1")), BYTES_NONE), "eu-west-1"));
    assert_true(
        bytes_is(sigv4_region(BYTES_NONE,
                              bytes_literal("/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="
                                            "AKID%2F20260131%2Fap-south-1%2Fdynamodb%2F"
                                            "aws4_request&X-Amz-Signature=00")),
                 "ap-south-1"));
    assert_int_equal(sigv4_region(bytes_literal("Basic eDp5"), bytes_literal("/")).len, 0);
    static const char *const hosts[][2] = {
        {"dynamodb.us-west-2.amazonaws.com", "us-west-2"},
        {"123456789012.ddb.us-west-2.amazonaws.com:443", "us-west-2"},
        {"eu-west-1.localhost:8000", "eu-west-1"},
        {"dynamodb.eu-west-1.localhost", "eu-west-1"},
        {"DynamoDB.us-west-2.AmazonAWS.com", "us-west-2"},
        {"localhost:8000", ""},
        {"dynamodb.nowhere-1.amazonaws.com", ""},
        {"us-west-2.example.org", ""},
        {"", ""},
        {".localhost", ""},
    };
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
        assert_true(bytes_is(host_region(bytes_text(hosts[i][0])), hosts[i][1]));
}

static const char *coding_for(const char *accept, size_t len)
{
    struct buf scratch cleanup(buf_deinit);
    buf_init(&scratch);
    uint8_t *text = xmalloc(len);
    memset(text, 'x', len);
    struct bytes body = bytes_make(text, len);
    struct api_answer answer;
    api_finish(API_OK, bytes_text(accept), 1, 2, &body, &scratch, &answer);
    char crc[16];
    snprintf(crc, sizeof(crc), "%lu", crc32(0, body.at, (uInt)body.len));
    assert_string_equal(answer.crc32, crc);
    if (answer.content_encoding) {
        uint8_t *back = xmalloc(len);
        z_stream stream = {.next_in = (Bytef *)(uintptr_t)body.at,
                           .avail_in = (uInt)body.len,
                           .next_out = back,
                           .avail_out = (uInt)len};
        bool gzip = strcmp(answer.content_encoding, "gzip") == 0;
        assert_int_equal(inflateInit2(&stream, 15 + (gzip ? 16 : 0)), Z_OK);
        assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
        assert_int_equal(stream.total_out, len);
        assert_memory_equal(back, text, len);
        inflateEnd(&stream);
        free(back);
    } else {
        assert_ptr_equal(body.at, text);
    }
    free(text);
    return answer.content_encoding ? answer.content_encoding : "none";
}

static void large_answers_are_compressed_as_accepted(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"gzip", "gzip"},
        {"identity", "none"},
        {"br", "none"},
        {"gzip;q=0, deflate;q=0.5", "deflate"},
        {"", "none"},
        {"deflate, gzip", "gzip"},
        {"gzip;q=0.5, deflate;q=0.8", "deflate"},
        {"GZIP; q=1.000", "gzip"},
        {"*", "gzip"},
        {"gzip;q=0, *;q=0.1", "deflate"},
        {"*;q=0", "none"},
        {"gzip;q=junk", "none"},
        {",,;,gzip", "gzip"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_string_equal(coding_for(cases[i][0], 10000), cases[i][1]);
        assert_string_equal(coding_for(cases[i][0], 100), "none");
        assert_string_equal(coding_for(cases[i][0], 4096), "none");
    }
}

static void request_ids_are_unlike(void **state)
{
    (void)state;
    struct buf scratch cleanup(buf_deinit);
    buf_init(&scratch);
    char ids[64][53];
    for (uint64_t i = 0; i < 64; i++) {
        struct bytes body = BYTES_NONE;
        struct api_answer answer;
        api_finish(API_VALIDATION, BYTES_NONE, i / 8, i % 8, &body, &scratch, &answer);
        assert_int_equal(answer.status, 400);
        assert_int_equal(strspn(answer.request_id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), 52);
        assert_int_equal(strlen(answer.request_id), 52);
        memcpy(ids[i], answer.request_id, 53);
        for (uint64_t before = 0; before < i; before++)
            assert_string_not_equal(ids[before], ids[i]);
    }
}

static void errors_without_an_operation(void **state)
{
    (void)state;
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    api_respond_error(API_INTERNAL, "a \"b\"", &body);
    assert_true(bytes_is(buf_view(&body),
                         "{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\","
                         "\"message\":\"a \\\"b\\\"\"}"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(protocol_comes_first),        TEST(other_protocols_are_refused_by_name),
        TEST(a_large_body_is_refused),     TEST(a_body_of_too_many_nodes_is_refused),
        TEST(strict_credentials),          TEST(signed_for_another_region),
        TEST(regions_of_scopes_and_hosts), TEST(large_answers_are_compressed_as_accepted),
        TEST(request_ids_are_unlike),      TEST(errors_without_an_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
