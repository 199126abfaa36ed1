/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile texts come out harmless, and figures as people write them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/report/text.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"

static void expect(struct buf *got, const char *wanted)
{
    if (!bytes_is(buf_view(got), wanted))
        fail_msg("expected \"%s\", got \"%.*s\"", wanted, (int)got->len, (const char *)got->at);
    buf_reset(got);
}

static void markup_is_taken_apart(void **state)
{
    (void)state;
    struct buf got = {0};
    text_xml(bytes_text("<script>alert(\"x\" & 'y')</script>"), &got);
    expect(&got, "&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt;");
    text_xml(bytes_text("a\r\nb\tc"), &got);
    expect(&got, "a&#13;\nb\tc");
    text_xml(bytes_text("Größe 日本 🙂"), &got);
    expect(&got, "Größe 日本 🙂");
    text_xml(BYTES_NONE, &got);
    expect(&got, "");
    buf_deinit(&got);
}

static void what_is_not_text_becomes_a_mark(void **state)
{
    (void)state;
    const struct {
        struct bytes from;
        const char *to;
    } cases[] = {
        {bytes_literal("\x00\x01\x1b\x7f"), "����"},
        {bytes_literal("\xff\xfe"), "��"},
        {bytes_literal("\xc0\xaf"), "��"},           /* a slash in two bytes */
        {bytes_literal("\xe0\x80\xaf"), "���"},      /* in three */
        {bytes_literal("\xf0\x80\x80\xaf"), "����"}, /* in four */
        {bytes_literal("\xed\xa0\x80"), "�"},        /* half of a pair; one character */
        {bytes_literal("\xf4\x90\x80\x80"), "�"},    /* beyond the last */
        {bytes_literal("\xf8\x88\x80\x80\x80"), "�����"},
        {bytes_literal("\xe2\x82"), "��"}, /* cut off */
        {bytes_literal("\xe2\x82x"), "��x"},
        {bytes_literal("a\xe2\x80\xae"
                       "b"),
         "a�b"}, /* turns what follows round */
        {bytes_literal("\xef\xbf\xbe\xef\xbf\xbf"), "��"},
        {bytes_literal("\xc2\x80"), "�"},
    };
    struct buf got = {0};
    for (size_t i = 0; i < array_len(cases); i++) {
        text_xml(cases[i].from, &got);
        expect(&got, cases[i].to);
        text_clean(cases[i].from, &got);
        expect(&got, cases[i].to);
    }
    buf_deinit(&got);
}

static void any_bytes_are_json_afterwards(void **state)
{
    (void)state;
    struct rng rng;
    struct buf once = {0}, twice = {0}, json = {0};
    rng_init(&rng, 1);
    for (int round = 0; round < 20000; round++) {
        char text[17];
        size_t len = rng_below(&rng, sizeof(text));
        for (size_t i = 0; i < len; i++) /* mostly of bytes that matter to UTF-8 */
            text[i] = (char)(rng_one_in(&rng, 2) ? 0x80 | rng_below(&rng, 128)
                                                 : 1 + rng_below(&rng, 255));
        text[len] = 0;
        text_clean(bytes_text(text), &once);
        text_clean(buf_view(&once), &twice);
        assert_true(bytes_equal(buf_view(&once), buf_view(&twice)));
        text_json(text, &json);
        json_t *read = json_loadb((const char *)json.at, json.len, JSON_DECODE_ANY, NULL);
        assert_non_null(read);
        assert_true(bytes_equal(buf_view(&once), bytes_text(json_string_value(read))));
        json_decref(read);
        buf_reset(&once);
        buf_reset(&twice);
        buf_reset(&json);
    }
    buf_deinit(&once);
    buf_deinit(&twice);
    buf_deinit(&json);
}

static void figures_read_well(void **state)
{
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } durations[] = {
        {0, "0 ms"},
        {499, "0 µs"},
        {820000, "820 µs"},
        {4040000, "4.0 ms"},
        {35999999, "35 ms"},
        {999999999, "999 ms"},
        {1204000000, "1.204 s"},
        {UINT64_C(125000000000), "2 min 05 s"},
        {UINT64_C(7260000000000), "2 h 01 min"},
        {UINT64_MAX, "never"},
    };
    struct buf got = {0};
    for (size_t i = 0; i < array_len(durations); i++) {
        text_duration(durations[i].ns, &got);
        expect(&got, durations[i].text);
    }
    text_count(0, &got);
    expect(&got, "0");
    text_count(999, &got);
    expect(&got, "999");
    text_count(1234567, &got);
    expect(&got, "1,234,567");
    text_count(UINT64_MAX, &got);
    expect(&got, "18,446,744,073,709,551,615");
    text_moment(5204999999, 5000000000, &got);
    expect(&got, "+0.204 s");
    text_moment(1, 2000000001, &got);
    expect(&got, "−2.000 s");
    text_size(999, &got);
    expect(&got, "999 bytes");
    text_size(3200000, &got);
    expect(&got, "3.2 MB");
    text_date(UINT64_C(1767182400250), &got);
    expect(&got, "2025-12-31T12:00:00.250Z");
    text_date(UINT64_MAX, &got);
    assert_int_equal(got.len, 24);
    buf_deinit(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_is_taken_apart),
        cmocka_unit_test(what_is_not_text_becomes_a_mark),
        cmocka_unit_test(any_bytes_are_json_afterwards),
        cmocka_unit_test(figures_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
