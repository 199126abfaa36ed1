/* SPDX-License-Identifier: Apache-2.0 */
/* One decoder of UTF-8 that lets nothing bad pass, and one writer for each language. */

#include "chaos/report/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "conflict/base/check.h"

#define REPLACEMENT UINT32_C(0xfffd)

static bool is_shown(uint32_t character)
{
    if (character < 0x20)
        return character == '\t' || character == '\n' || character == '\r';
    if (character >= 0x7f && character < 0xa0)
        return false;
    if (character >= 0xd800 && character < 0xe000)
        return false;
    /* Marks and overrides of direction: with them a text reads as another. */
    if ((character >= 0x200e && character <= 0x200f) ||
        (character >= 0x202a && character <= 0x202e) ||
        (character >= 0x2066 && character <= 0x2069) || character == 0x061c)
        return false;
    return character < 0x110000 && (character & 0xfffe) != 0xfffe;
}

/* Takes one character of a text that is not empty; a byte that begins none is REPLACEMENT. */
static uint32_t take_character(struct bytes *from)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint8_t first = from->at[0];
    size_t more = first < 0x80 ? 0 : (first & 0xe0) == 0xc0 ? 1 : (first & 0xf0) == 0xe0 ? 2 : 3;
    uint32_t character = more == 0 ? first : first & (0x3fu >> more);
    bool good = (first < 0x80 || (first >= 0xc0 && first < 0xf8)) && more < from->len;
    for (size_t i = 1; good && i <= more; i++) {
        good = (from->at[i] & 0xc0) == 0x80;
        character = character << 6 | (from->at[i] & 0x3fu);
    }
    good = good && character >= least[more];
    size_t len = good ? more + 1 : 1;
    *from = bytes_make(from->at + len, from->len - len);
    return good && is_shown(character) ? character : REPLACEMENT;
}

static void put_character(uint32_t character, struct buf *to)
{
    if (character < 0x80) {
        buf_append_u8(to, (uint8_t)character);
        return;
    }
    int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    buf_append_u8(to, (uint8_t)(marks[more] | character >> (6 * more)));
    for (int i = more - 1; i >= 0; i--)
        buf_append_u8(to, (uint8_t)(0x80 | (character >> (6 * i) & 0x3f)));
}

void text_clean(struct bytes text, struct buf *to)
{
    while (text.len > 0)
        put_character(take_character(&text), to);
}

void text_xml(struct bytes text, struct buf *to)
{
    while (text.len > 0) {
        uint32_t character = take_character(&text);
        if (character == '&')
            buf_append_text(to, "&amp;");
        else if (character == '<')
            buf_append_text(to, "&lt;");
        else if (character == '>')
            buf_append_text(to, "&gt;");
        else if (character == '"')
            buf_append_text(to, "&quot;");
        else if (character == '\'')
            buf_append_text(to, "&#39;");
        else if (character == '\r') /* would be read back as a newline */
            buf_append_text(to, "&#13;");
        else
            put_character(character, to);
    }
}

json_t *text_json_new(const char *text)
{
    if (text == NULL)
        return json_null();
    struct buf clean = {0};
    text_clean(bytes_text(text), &clean);
    json_t *json = json_stringn(clean.len == 0 ? "" : (const char *)clean.at, clean.len);
    buf_deinit(&clean);
    check(json != NULL);
    return json;
}

void text_json(const char *text, struct buf *to)
{
    json_t *json = text_json_new(text);
    size_t len = json_dumpb(json, NULL, 0, JSON_ENCODE_ANY);
    json_dumpb(json, (char *)buf_reserve(to, len), len, JSON_ENCODE_ANY);
    to->len += len;
    json_decref(json);
}

void text_count(uint64_t count, struct buf *to)
{
    char digits[DECIMAL_LEN_MAX];
    size_t len = decimal_encode(digits, count);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_append_u8(to, ',');
        buf_append_u8(to, (uint8_t)digits[i]);
    }
}

void text_duration(uint64_t ns, struct buf *to)
{
    if (ns == UINT64_MAX)
        buf_append_text(to, "never");
    else if (ns == 0)
        buf_append_text(to, "0 ms");
    else if (ns < 1000000)
        buf_printf(to, "%" PRIu64 " µs", (ns + 500) / 1000);
    else if (ns < 10000000)
        buf_printf(to, "%.1f ms", (double)ns / 1e6);
    else if (ns < 1000000000)
        buf_printf(to, "%" PRIu64 " ms", ns / 1000000);
    else if (ns < UINT64_C(120000000000))
        buf_printf(to, "%.3f s", (double)ns / 1e9);
    else if (ns < UINT64_C(7200000000000))
        buf_printf(to, "%" PRIu64 " min %02" PRIu64 " s", ns / UINT64_C(60000000000),
                   ns / 1000000000 % 60);
    else
        buf_printf(to, "%" PRIu64 " h %02" PRIu64 " min", ns / UINT64_C(3600000000000),
                   ns / UINT64_C(60000000000) % 60);
}

void text_offset(int64_t ns, struct buf *to)
{
    buf_append_text(to, ns < 0 ? "−" : "+");
    text_duration(ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, to);
}

void text_moment(uint64_t at_ns, uint64_t began_ns, struct buf *to)
{
    bool before = at_ns < began_ns;
    uint64_t ms = (before ? began_ns - at_ns : at_ns - began_ns) / 1000000;
    buf_printf(to, "%s%" PRIu64 ".%03" PRIu64 " s", before ? "−" : "+", ms / 1000, ms % 1000);
}

void text_size(uint64_t size, struct buf *to)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)size;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < array_len(units); unit++)
        value /= 1000;
    buf_printf(to, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void text_date(uint64_t wall_ms, struct buf *to)
{
    /* A file may claim any year; strftime prints them all, but gmtime does not know them all. */
    time_t seconds = (time_t)(wall_ms / 1000 % UINT64_C(253402300800));
    struct tm parts;
    char text[64];
    check(gmtime_r(&seconds, &parts) != NULL);
    check(strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts) > 0);
    buf_printf(to, "%s.%03uZ", text, (unsigned)(wall_ms % 1000));
}
