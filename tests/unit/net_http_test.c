/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that both HTTP versions share, and the texts of gRPC, against the C library's own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <time.h>

#include "conflict/base/rng.h"
#include "net/grpc_internal.h"
#include "net/tcp.h"

static void test_dates(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 2000; i++) {
        time_t seconds = (time_t)rng_below(&rng, 7258118400u);
        struct tm tm;
        char want[64], got[HTTP_DATE_LEN + 1];
        gmtime_r(&seconds, &tm);
        strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        http_date((uint64_t)seconds * 1000 + rng_below(&rng, 1000), got);
        assert_string_equal(got, want);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        bool is_token = (byte < 128 && isalnum(byte)) ||
                        (byte && byte < 128 && strchr("!#$%&'*+-.^_`|~", byte));
        assert_int_equal(http_token[byte], is_token ? tolower(byte) : 0);
    }
    uint8_t name[] = "X-Amz-Target";
    assert_true(http_lower_name(name, 12));
    assert_string_equal((char *)name, "x-amz-target");
    assert_false(http_lower_name(name, 0));
    assert_true(bytes_is(http_trim(bytes_text(" \t a b \t")), "a b"));
    assert_int_equal(http_trim(bytes_text(" \t ")).len, 0);
    assert_true(http_equal_nocase(bytes_text("GZip"), "gzip"));
    assert_false(http_equal_nocase(bytes_text("gzi"), "gzip"));
}

static void test_values(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    for (int i = 0; i < 200000; i++) {
        uint8_t value[40];
        size_t len = rng_below(&rng, sizeof(value));
        bool good = true;
        for (size_t at = 0; at < len; at++) {
            value[at] = (uint8_t)(rng_one_in(&rng, 30) ? rng_below(&rng, 256)
                                                       : rng_between(&rng, 0x80, 0xff));
            good = good && (value[at] == '\t' || (value[at] >= 0x20 && value[at] != 0x7f));
        }
        assert_int_equal(http_is_value(bytes_make(value, len)), good);
    }
}

static void test_answer_heads(void **state)
{
    (void)state;
    struct buf to = {0};
    struct http_header headers[] = {
        {bytes_literal("x-a"), bytes_literal("1")},
        {bytes_literal("content-length"), bytes_literal("999")},
        {bytes_literal("transfer-encoding"), bytes_literal("chunked")},
        {bytes_literal("connection"), bytes_literal("upgrade")},
        {bytes_literal("date"), bytes_literal("today")},
    };
    struct http_answer_head head = {.status = 413,
                                    .headers = headers,
                                    .header_count = 5,
                                    .body_len = 18446744073709551615u,
                                    .date = "Sun, 06 Nov 1994 08:49:37 GMT",
                                    .connection = "keep-alive"};
    http_append_answer_head(&to, &head, 0);
    assert_true(bytes_is(buf_view(&to),
                         "HTTP/1.1 413 Payload Too Large\r\nx-a: 1\r\ndate: today\r\n"
                         "content-length: 18446744073709551615\r\nconnection: keep-alive\r\n\r\n"));
    buf_reset(&to);
    head = (struct http_answer_head){.status = 204, .date = "Sun, 06 Nov 1994 08:49:37 GMT"};
    http_append_answer_head(&to, &head, 0);
    assert_true(bytes_is(buf_view(&to), "HTTP/1.1 204 No Content\r\n"
                                        "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"));
    buf_deinit(&to);
}

static void test_reasons(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    for (int i = 0; i < 2000; i++) {
        char reason[64], back[256];
        size_t len = rng_below(&rng, sizeof(reason));
        for (size_t at = 0; at < len; at++)
            reason[at] = (char)rng_between(&rng, 1, 255);
        reason[len] = '\0';
        struct buf encoded = {0};
        grpc_encode_reason(reason, &encoded);
        for (size_t at = 0; at < encoded.len; at++)
            assert_true(encoded.at[at] >= 0x20 && encoded.at[at] <= 0x7e);
        grpc_decode_reason(buf_view(&encoded), back, sizeof(back));
        assert_string_equal(back, reason);
        grpc_decode_reason(buf_view(&encoded), back, 4); /* never past the end */
        assert_true(strlen(back) < 4);
        buf_deinit(&encoded);
    }
    char odd[16];
    grpc_decode_reason(bytes_literal("a%4"), odd, sizeof(odd));
    assert_string_equal(odd, "a%4");
    grpc_decode_reason(bytes_literal("%00%zz"), odd, sizeof(odd));
    assert_string_equal(odd, "?%zz");
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {"",        ":80",        "127.0.0.1",    "127.0.0.1:",
                                      "h:70000", "1.2.3.4:8x", "[::1]:999999", "127.0.0.1:-1"};
    static const char *const good[] = {"127.0.0.1:8000", "[::1]:65535", "0.0.0.0:0"};
    struct sockaddr_storage address;
    char text[64];
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(tcp_address(bad[i], &address));
    for (size_t i = 0; i < array_len(good); i++) {
        assert_true(tcp_address(good[i], &address));
        tcp_address_text((struct sockaddr *)&address, text, sizeof(text));
        assert_string_equal(text, good[i]);
    }
    assert_true(tcp_address("localhost:1", &address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_values),  cmocka_unit_test(test_answer_heads),
        cmocka_unit_test(test_reasons), cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
