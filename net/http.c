/* SPDX-License-Identifier: Apache-2.0 */
/* See http.h. The answer's head is put together with memcpy alone: it is the hottest code of a
 * region that serves small reads. */

#include "net/http.h"

#include <http_parser.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { HEAD_BYTES_KEPT = 16384 };

void head_deinit(struct head *head)
{
    buf_deinit(&head->bytes);
    free(head->at);
    *head = (struct head){0};
}

void head_reset(struct head *head)
{
    head->count = 0;
    buf_reset(&head->bytes);
    if (head->bytes.cap > HEAD_BYTES_KEPT)
        buf_deinit(&head->bytes);
}

struct http_header *head_push(struct head *head)
{
    if (head->count == head->cap) {
        head->cap = head->cap ? head->cap * 2 : 16;
        head->at = xrealloc(head->at, head->cap * sizeof(*head->at));
    }
    struct http_header *header = &head->at[head->count++];
    *header = (struct http_header){BYTES_NONE, BYTES_NONE};
    return header;
}

void head_copy(struct head *head, struct bytes name, struct bytes value)
{
    struct http_header *header = head_push(head);
    header->name.len = name.len;
    header->value.len = value.len;
    buf_append_bytes(&head->bytes, name);
    buf_append_bytes(&head->bytes, value);
}

void head_seal(struct head *head)
{
    const uint8_t *at = head->bytes.at;
    for (uint32_t i = 0; i < head->count; i++) {
        struct http_header *header = &head->at[i];
        header->name.at = at;
        at += header->name.len;
        header->value.at = at;
        at += header->value.len;
    }
    check(head->count == 0 || at == head->bytes.at + head->bytes.len);
}

struct bytes head_find(const struct http_header *headers, uint32_t count, const char *name)
{
    size_t len = strlen(name);
    for (uint32_t i = 0; i < count; i++)
        if (headers[i].name.len == len && memcmp(headers[i].name.at, name, len) == 0)
            return headers[i].value;
    return BYTES_NONE;
}

const uint8_t http_token[256] = {
    ['!'] = '!', ['#'] = '#', ['$'] = '$', ['%'] = '%', ['&'] = '&', ['\''] = '\'', ['*'] = '*',
    ['+'] = '+', ['-'] = '-', ['.'] = '.', ['^'] = '^', ['_'] = '_', ['`'] = '`',   ['|'] = '|',
    ['~'] = '~', ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4',   ['5'] = '5',
    ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9', ['A'] = 'a', ['B'] = 'b',   ['C'] = 'c',
    ['D'] = 'd', ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h', ['I'] = 'i',   ['J'] = 'j',
    ['K'] = 'k', ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p',   ['Q'] = 'q',
    ['R'] = 'r', ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v', ['W'] = 'w',   ['X'] = 'x',
    ['Y'] = 'y', ['Z'] = 'z', ['a'] = 'a', ['b'] = 'b', ['c'] = 'c', ['d'] = 'd',   ['e'] = 'e',
    ['f'] = 'f', ['g'] = 'g', ['h'] = 'h', ['i'] = 'i', ['j'] = 'j', ['k'] = 'k',   ['l'] = 'l',
    ['m'] = 'm', ['n'] = 'n', ['o'] = 'o', ['p'] = 'p', ['q'] = 'q', ['r'] = 'r',   ['s'] = 's',
    ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w', ['x'] = 'x', ['y'] = 'y',   ['z'] = 'z',
};

bool http_lower_name(uint8_t *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t lower = http_token[at[i]];
        if (lower == 0)
            return false;
        at[i] = lower;
    }
    return len > 0;
}

static bool is_value_byte(uint8_t byte)
{
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

bool http_is_value(struct bytes value)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    size_t i = 0;
    for (; i + 8 <= value.len; i += 8) {
        /* Eight at a time: a high bit is set where a byte is below 0x20 or is 0x7f, and perhaps
         * above such a byte, so what shows here is looked at again, one by one. */
        uint64_t word, deleted;
        memcpy(&word, value.at + i, 8);
        deleted = word ^ (ones * 0x7f);
        if ((((word - ones * 0x20) & ~word) | ((deleted - ones) & ~deleted)) & highs)
            for (size_t at = i; at < i + 8; at++)
                if (!is_value_byte(value.at[at]))
                    return false;
    }
    for (; i < value.len; i++)
        if (!is_value_byte(value.at[i]))
            return false;
    return true;
}

struct bytes http_trim(struct bytes value)
{
    while (value.len && (value.at[0] == ' ' || value.at[0] == '\t')) {
        value.at++;
        value.len--;
    }
    while (value.len && (value.at[value.len - 1] == ' ' || value.at[value.len - 1] == '\t'))
        value.len--;
    return value;
}

bool http_equal_nocase(struct bytes a, const char *lower)
{
    size_t len = strlen(lower);
    if (a.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = a.at[i];
        if (byte >= 'A' && byte <= 'Z')
            byte = (uint8_t)(byte + ('a' - 'A'));
        if (byte != (uint8_t)lower[i])
            return false;
    }
    return true;
}

static void put_two_digits(char *at, int value)
{
    at[0] = (char)('0' + value / 10 % 10);
    at[1] = (char)('0' + value % 10);
}

void http_date(uint64_t wall_ms, char text[HTTP_DATE_LEN + 1])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    check(gmtime_r(&seconds, &tm) != NULL);
    memcpy(text, "Sun, 06 Nov 1994 08:49:37 GMT", HTTP_DATE_LEN + 1);
    memcpy(text, days[tm.tm_wday], 3);
    put_two_digits(text + 5, tm.tm_mday);
    memcpy(text + 8, months[tm.tm_mon], 3);
    put_two_digits(text + 12, (tm.tm_year + 1900) / 100);
    put_two_digits(text + 14, (tm.tm_year + 1900) % 100);
    put_two_digits(text + 17, tm.tm_hour);
    put_two_digits(text + 20, tm.tm_min);
    put_two_digits(text + 23, tm.tm_sec);
}

bool http_is_framing(struct bytes name)
{
    switch (name.len) {
    case 10:
        return bytes_is(name, "connection") || bytes_is(name, "keep-alive");
    case 14:
        return bytes_is(name, "content-length");
    case 17:
        return bytes_is(name, "transfer-encoding");
    default:
        return false;
    }
}

static char *put(char *at, const void *from, size_t len)
{
    if (len)
        memcpy(at, from, len);
    return at + len;
}
#define put_literal(at, text) put((at), "" text, sizeof(text) - 1)

static char *put_decimal(char *at, uint64_t value)
{
    return at + decimal_encode(at, value);
}

static char *put_status_line(char *at, int status)
{
    if (status == 200)
        return put_literal(at, "HTTP/1.1 200 OK\r\n");
    const char *reason = http_status_str((enum http_status)status);
    at = put_literal(at, "HTTP/1.1 ");
    at = put_decimal(at, (uint64_t)status);
    at = put_literal(at, " ");
    at = put(at, reason, strlen(reason));
    return put_literal(at, "\r\n");
}

void http_append_answer_head(struct buf *to, const struct http_answer_head *head, size_t body_room)
{
    check(head->status >= 100);
    check(head->status <= 999);
    size_t room = 192; /* status line 64, date 37, content-length 38, connection 24, end 2 */
    for (uint32_t i = 0; i < head->header_count; i++)
        room += head->headers[i].name.len + head->headers[i].value.len + 4;
    char *start = (char *)buf_reserve(to, room + body_room);
    char *at = put_status_line(start, head->status);
    bool dated = false;
    for (uint32_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];
        if (http_is_framing(header->name))
            continue;
        dated = dated || bytes_is(header->name, "date");
        at = put(at, header->name.at, header->name.len);
        at = put_literal(at, ": ");
        at = put(at, header->value.at, header->value.len);
        at = put_literal(at, "\r\n");
    }
    if (!dated) {
        at = put_literal(at, "date: ");
        at = put(at, head->date, HTTP_DATE_LEN);
        at = put_literal(at, "\r\n");
    }
    if (head->status >= 200 && head->status != 204) { /* RFC 9110 section 8.6 */
        at = put_literal(at, "content-length: ");
        at = put_decimal(at, head->body_len);
        at = put_literal(at, "\r\n");
    }
    if (head->connection) {
        at = put_literal(at, "connection: ");
        at = put(at, head->connection, strlen(head->connection));
        at = put_literal(at, "\r\n");
    }
    at = put_literal(at, "\r\n");
    size_t len = (size_t)(at - start);
    check(len <= room);
    to->len += len;
}

/* One pass with one reading of the format; the outcome tells whether another is worth a try. */
static enum http_inflate_outcome inflate_as(int window_bits, struct bytes from, size_t len_max,
                                            struct buf *to)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)from.at, .avail_in = (uInt)from.len};
    check(inflateInit2(&stream, window_bits) == Z_OK);
    enum http_inflate_outcome outcome = HTTP_INFLATE_BROKEN;
    for (;;) {
        /* One byte more than allowed shows that it is too long without inflating the rest. */
        size_t room = len_max + 1 - to->len;
        if (room > 65536)
            room = 65536;
        stream.next_out = buf_reserve(to, room);
        stream.avail_out = (uInt)room;
        int status = inflate(&stream, Z_NO_FLUSH);
        to->len += room - stream.avail_out;
        if (to->len > len_max) {
            outcome = HTTP_INFLATE_TOO_LONG;
            break;
        }
        if (status == Z_STREAM_END) {
            outcome = stream.avail_in == 0 ? HTTP_INFLATED : HTTP_INFLATE_BROKEN;
            break;
        }
        if (status != Z_OK)
            break;
    }
    inflateEnd(&stream);
    return outcome;
}

enum http_inflate_outcome http_inflate(struct bytes from, size_t len_max, struct buf *to)
{
    check(from.len <= UINT32_MAX);
    buf_reset(to);
    /* 32: gzip or zlib, by their first bytes. */
    enum http_inflate_outcome outcome = inflate_as(15 + 32, from, len_max, to);
    if (outcome == HTTP_INFLATE_BROKEN && to->len == 0)
        outcome = inflate_as(-15, from, len_max, to);
    return outcome;
}
