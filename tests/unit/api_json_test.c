/* SPDX-License-Identifier: Apache-2.0 */
/* json_read lifts texts out before the parser comes and puts them back: whatever the text, the
 * tree, or the refusal, must be the one that the parser alone gives. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "region/api/json.h"

static void free_text(char **text)
{
    free(*text);
}

static void compare_with(struct json_reader *reader, struct bytes text, const json_t *plain)
{
    json_t *ours cleanup(json_release) = json_read(reader, text);
    if ((ours == NULL) != (plain == NULL))
        fail_msg("%s: %.*s", plain ? "refused" : "taken", (int)text.len, (const char *)text.at);
    if (!ours)
        return;
    /* Their texts, as equal trees may still differ in order. */
    char *a cleanup(free_text) = json_dumps(ours, JSON_COMPACT);
    char *b cleanup(free_text) = json_dumps(plain, JSON_COMPACT);
    assert_string_equal(a, b);
}

static struct json_reader *common_reader;

/* Returns whether it is JSON: read without a reader, by one that may never have seen its form, and
 * by the same again, which has kept it by then and fills it in. */
static bool compare(struct bytes text)
{
    json_t *plain cleanup(json_release) =
        json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    compare_with(NULL, text, plain);
    for (int time = 0; time < 3; time++)
        compare_with(common_reader, text, plain);
    return plain != NULL;
}

static void texts_come_back(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{}",
        "[]",
        "{\"a\":\"\"}",
        "[\"\",\"\",\"long enough\",\"\",\"long enough as well\",\"\"]",
        "{\"long enough\":\"long enough\",\"\":\"\",\"x\":{\"\":\"as long as this\",\"y\":\"\"}}",
        "{\"name\" \t\r\n: \"long enough\" , \"next\":[\"long enough\"\n]}",
        "[\"one \\\" quote\",\"back\\\\slash\",\"\\u0041\\u00e9\\n\",\"plain text\"]",
        "[\"gr\xc3\xbc\xc3\x9f"
        "e\",\"\xf0\x9f\x8c\x8a\",\"plain text\"]",
        "[\"a text with \x7f in it\",\"{[,]}: all of it text\"]",
        "{\"a\":{\"b\":\"value\"},\"b\":{\"b\":\"value\"}}",
        "[\"nul \\u0000 inside\",\"plain text\"]",
        "[12345678,1.5e3,true,null,\"eight888\",\"seven77\",\"nine99999\"]",
    };
    static const char *const bad[] = {
        "",
        "\"",
        "\"long enough",
        "[\"long enough]",
        "[\"long enough\\",
        "[\"long enough\\\"]",
        "{\"long enough\"}",
        "{\"a\":\"long enough\",\"a\":\"another text\"}",
        "{\"a\":\"long enough\",\"\\u0061\":\"another text\"}",
        "{\"a\":\"\",\"x\":\"long enough\",\"a\":\"another text\"}",
        "{\"a\":{\"b\":\"text one\",\"b\":\"\"},\"c\":\"text two\"}",
        "{\"a\" \"long enough\"}",
        "[\"long enough\" \"long enough\"]",
        "[\"long enough\":\"long enough\"]",
        "[\"long\tenough\"]",
        "[\"long enough \xff\"]",
        "[\"long enough \\x\"]",
        "[\"long enough\"]]",
        "[\"long enough\"] \"x\"",
        "\"long enough\"",
        "['long enough',\"long enough\"]",
        "\"\":[\"long enough\"]",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(compare(bytes_text(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(compare(bytes_text(bad[i])));
    assert_true(compare(bytes_literal("[\"ends here\"]")));
}

static void append_string(struct rng *rng, struct buf *to)
{
    static const char *const pieces[] = {"a",       "bcdefgh",  "\\\"", "\\\\", "\\n", "\\u00e9",
                                         "\\u0000", "\xc3\xa9", " ",    ":",    ",",   "{}[]"};
    buf_append_text(to, "\"");
    for (uint64_t i = rng_one_in(rng, 3) ? 0 : rng_between(rng, 1, 30); i > 0; i--) {
        bool plain = !rng_one_in(rng, 12);
        buf_append_text(to, pieces[plain ? rng_between(rng, 0, 1) : rng_between(rng, 0, 11)]);
    }
    buf_append_text(to, "\"");
}

static void append_space(struct rng *rng, struct buf *to)
{
    if (rng_one_in(rng, 6))
        buf_append_text(to, rng_one_in(rng, 2) ? " \n" : "\t");
}

static void append_value(struct rng *rng, struct buf *to, uint32_t depth)
{
    uint64_t what = rng_between(rng, 0, depth < 5 ? 6 : 4);
    append_space(rng, to);
    if (what < 4) {
        append_string(rng, to);
    } else if (what == 4) {
        buf_append_text(to, rng_one_in(rng, 2) ? "true" : "-12.5");
    } else {
        bool object = what == 5;
        buf_append_text(to, object ? "{" : "[");
        for (uint64_t i = 0, count = rng_between(rng, 0, 5); i < count; i++) {
            if (i > 0)
                buf_append_text(to, ",");
            if (object) {
                if (rng_one_in(rng, 8))
                    append_string(rng, to);
                else
                    buf_printf(to, "\"%c%u\"", (int)rng_between(rng, 'a', 'z'), (unsigned)i);
                append_space(rng, to);
                buf_append_text(to, ":");
            }
            append_value(rng, to, depth + 1);
        }
        buf_append_text(to, object ? "}" : "]");
    }
    append_space(rng, to);
}

static void random_texts_are_read_as_by_the_parser(void **state)
{
    (void)state;
    struct rng rng;
    struct buf text;
    rng_init(&rng, 1);
    buf_init(&text);
    uint32_t good = 0, bad = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        buf_reset(&text);
        buf_append_text(&text, "[");
        append_value(&rng, &text, 0);
        buf_append_text(&text, "]");
        /* Half of them with a slip or two. */
        for (uint64_t slips = i % 2 == 0 ? 0 : rng_between(&rng, 1, 2); slips > 0; slips--) {
            static const char marks[] = "\"\\:,[]{} \x01\x80"
                                        "a";
            text.at[rng_between(&rng, 0, text.len - 1)] =
                (uint8_t)marks[rng_between(&rng, 0, sizeof(marks) - 2)];
        }
        /* A copy of its very size, so that no read beyond it goes unnoticed. */
        uint8_t *exact = xmalloc(text.len);
        memcpy(exact, text.at, text.len);
        if (compare(bytes_make(exact, text.len)))
            good++;
        else
            bad++;
        free(exact);
    }
    buf_deinit(&text);
    assert_true(good > 5000);
    assert_true(bad > 5000);
}

/* A few forms in turn, each time with other texts, which stand for '%': what one request leaves in
 * a tree that is kept is gone with the next, be it longer, or one that cannot be lifted. */
static void forms_are_filled_anew(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "{'Item':{'pk':{'S':'%'},'sk':{'S':'%'},'n':{'N':'%'}}}",
        "{'Item':{'pk':{'S':'%'},'sk':{'S':'%'},'m':{'N':'%'}}}",
        "['%',['%'],{'a':'%','b':''},'']",
        "['%','%','%',12,null]",
        "{'a':'%','a':'%'}",
        "['%','%' '%']",
    };
    static const char *const texts[] = {
        "",         "x",   "00",      "long enough",
        "\xc3\xa9", "\\n", "\\u0000", "longer than any of the others"};
    struct rng rng;
    struct buf text;
    rng_init(&rng, 2);
    buf_init(&text);
    uint32_t good = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        buf_reset(&text);
        for (const char *c = forms[rng_between(&rng, 0, array_len(forms) - 1)]; *c; c++) {
            if (*c == '%')
                buf_append_text(&text, texts[rng_between(&rng, 0, array_len(texts) - 1)]);
            else
                buf_append_u8(&text, *c == '\'' ? '"' : (uint8_t)*c);
        }
        good += compare(buf_view(&text));
    }
    buf_deinit(&text);
    assert_true(good > 3000);
    assert_true(good < 4000);
}

static void bounds_hold(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text);
    buf_append_text(&text, "[\"long enough\"");
    for (uint32_t i = 0; i + 8 < JSON_WEIGHT_MAX; i++)
        buf_append_text(&text, ",1");
    buf_append_text(&text, "]");
    json_t *json = json_read(NULL, buf_view(&text));
    assert_non_null(json);
    json_release(&json);
    text.len--;
    for (uint32_t i = 0; i < 8; i++)
        buf_append_text(&text, ",1");
    buf_append_text(&text, "]");
    assert_null(json_read(NULL, buf_view(&text)));
    for (uint32_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        buf_reset(&text);
        for (uint32_t i = 0; i < depth; i++)
            buf_append_text(&text, "[");
        for (uint32_t i = 0; i < depth; i++)
            buf_append_text(&text, "]");
        json = json_read(NULL, buf_view(&text));
        assert_non_null(json);
        json_release(&json);
        while (text.len <= JSON_SMALL_BYTES_MAX)
            buf_append_text(&text, " ");
        json = json_read(NULL, buf_view(&text));
        assert_int_equal(json != NULL, depth == JSON_DEPTH_MAX);
        json_release(&json);
    }
    buf_deinit(&text);
}

static void members_are_found(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text);
    for (uint32_t count = 0; count < 8; count++) {
        buf_reset(&text);
        buf_append_text(&text, "{");
        for (uint32_t i = 0; i < count; i++)
            buf_printf(&text, "%s\"name%u\":%s", i > 0 ? "," : "", i,
                       i == 1 ? "null" : "\"value\"");
        buf_append_text(&text, "}");
        json_t *json cleanup(json_release) = json_read(NULL, buf_view(&text));
        assert_non_null(json);
        for (uint32_t i = 0; i < 8; i++) {
            char name[16];
            snprintf(name, sizeof(name), "name%u", i);
            assert_int_equal(json_member(json, name) != NULL, i < count && i != 1);
        }
        assert_null(json_member(json, "name"));
        assert_null(json_member(json, "name00"));
    }
    assert_null(json_member(NULL, "name"));
    json_t *array cleanup(json_release) = json_read(NULL, bytes_literal("[]"));
    assert_null(json_member(array, "name"));
    buf_deinit(&text);
}

static int reader_new(void **state)
{
    (void)state;
    common_reader = json_reader_new();
    return 0;
}

static int reader_free(void **state)
{
    (void)state;
    common_reader = json_reader_free(common_reader);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(random_texts_are_read_as_by_the_parser),
        cmocka_unit_test(forms_are_filled_anew),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(members_are_found),
    };
    return cmocka_run_group_tests(tests, reader_new, reader_free);
}
