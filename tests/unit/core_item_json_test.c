/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of every type, and string escapes against a twin that goes byte by byte. */

#include "region/core/item_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "tests/lib/value_text.h"

static void expect_json(const char *item, const char *json)
{
    struct arena arena;
    struct buf buf = {0};
    arena_init(&arena);
    item_write_json(&buf, item_of_text(&arena, item));
    buf_append_u8(&buf, '\0');
    assert_string_equal((const char *)buf.at, json);
    buf_deinit(&buf);
    arena_deinit(&arena);
}

static void test_types(void **state)
{
    (void)state;
    expect_json("{}", "{}");
    expect_json("{s:'a\"b'}", "{\"s\":{\"S\":\"a\\\"b\"}}");
    expect_json("{n:1e3, m:-0.50}", "{\"m\":{\"N\":\"-0.5\"},\"n\":{\"N\":\"1000\"}}");
    expect_json("{b:x''}", "{\"b\":{\"B\":\"\"}}");
    expect_json("{b:x'66'}", "{\"b\":{\"B\":\"Zg==\"}}");
    expect_json("{b:x'666f'}", "{\"b\":{\"B\":\"Zm8=\"}}");
    expect_json("{b:x'666f6f'}", "{\"b\":{\"B\":\"Zm9v\"}}");
    expect_json("{b:x'fbefbefff0'}", "{\"b\":{\"B\":\"++++//A=\"}}");
    expect_json("{a:true,b:false,c:null}",
                "{\"a\":{\"BOOL\":true},\"b\":{\"BOOL\":false},\"c\":{\"NULL\":true}}");
    expect_json("{l:[]}", "{\"l\":{\"L\":[]}}");
    expect_json("{l:[1,['x'],{}]}",
                "{\"l\":{\"L\":[{\"N\":\"1\"},{\"L\":[{\"S\":\"x\"}]},{\"M\":{}}]}}");
    expect_json("{m:{a:{b:1},c:''}}",
                "{\"m\":{\"M\":{\"a\":{\"M\":{\"b\":{\"N\":\"1\"}}},\"c\":{\"S\":\"\"}}}}");
    expect_json("{a:<'y' 'x'>,b:<10 9>,c:<x'00'>}",
                "{\"a\":{\"SS\":[\"x\",\"y\"]},\"b\":{\"NS\":[\"9\",\"10\"]},\"c\":{\"BS\":["
                "\"AA==\"]}}");
}

static void twin_string(struct buf *to, struct bytes text)
{
    buf_append_u8(to, '"');
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = text.at[i];
        const char *at = strchr("\bb\ff\nn\rr\tt\"\"\\\\", byte);
        if (byte && at && (byte < 0x20 || byte == '"' || byte == '\\')) {
            buf_append_u8(to, '\\');
            buf_append_u8(to, (uint8_t)at[1]);
        } else if (byte < 0x20) {
            buf_printf(to, "\\u%04x", byte);
        } else {
            buf_append_u8(to, byte);
        }
    }
    buf_append_u8(to, '"');
}

static void test_strings_against_twin(void **state)
{
    struct rng rng;
    struct buf got = {0}, want = {0};
    rng_init(&rng, 5);
    (void)state;
    for (int round = 0; round < 5000; round++) {
        uint8_t text[100];
        size_t len = rng_below(&rng, sizeof(text));
        for (size_t i = 0; i < len; i++)
            text[i] = (uint8_t)(rng_one_in(&rng, 12) ? rng_below(&rng, 256)
                                                     : rng_between(&rng, 0x20, 0x7f));
        buf_reset(&got);
        buf_reset(&want);
        json_write_string(&got, bytes_make(text, len));
        twin_string(&want, bytes_make(text, len));
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.at, want.at, want.len);
    }
    buf_deinit(&got);
    buf_deinit(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_strings_against_twin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
