/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowed and owned byte runs, and the bounded readers that every decoder is made of. */

#include "conflict/base/bytes.h"

#include <stdarg.h>
#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/arena.h"
#include "conflict/base/check.h"

int bytes_compare(struct bytes a, struct bytes b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.at, b.at, len) : 0;
    if (order)
        return order < 0 ? -1 : 1;
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

bool bytes_starts_with(struct bytes a, struct bytes prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.at, prefix.at, prefix.len) == 0);
}

struct bytes bytes_copy(struct arena *arena, struct bytes from)
{
    return (struct bytes){arena_copy(arena, from.at, from.len), from.len};
}

char *bytes_copy_text(struct arena *arena, struct bytes from)
{
    char *text = arena_alloc(arena, from.len + 1);
    if (from.len)
        memcpy(text, from.at, from.len);
    text[from.len] = '\0';
    return text;
}

bool bytes_take(struct bytes *from, size_t len, struct bytes *ret)
{
    if (from->len < len)
        return false;
    *ret = (struct bytes){from->at, len};
    if (len) {
        from->at += len;
        from->len -= len;
    }
    return true;
}

bool bytes_take_u8(struct bytes *from, uint8_t *ret)
{
    struct bytes run;
    if (!bytes_take(from, 1, &run))
        return false;
    *ret = run.at[0];
    return true;
}

bool bytes_take_be16(struct bytes *from, uint16_t *ret)
{
    struct bytes run;
    if (!bytes_take(from, 2, &run))
        return false;
    *ret = (uint16_t)(run.at[0] << 8 | run.at[1]);
    return true;
}

bool bytes_take_be32(struct bytes *from, uint32_t *ret)
{
    struct bytes run;
    if (!bytes_take(from, 4, &run))
        return false;
    *ret = (uint32_t)run.at[0] << 24 | (uint32_t)run.at[1] << 16 | (uint32_t)run.at[2] << 8 |
           run.at[3];
    return true;
}

bool bytes_take_be64(struct bytes *from, uint64_t *ret)
{
    struct bytes run;
    if (!bytes_take(from, 8, &run))
        return false;
    *ret = be64_decode(run.at);
    return true;
}

bool bytes_take_varint(struct bytes *from, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < from->len && i < VARINT_LEN_MAX; i++) {
        uint8_t byte = from->at[i];
        if (i == VARINT_LEN_MAX - 1 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        if (byte == 0 && i > 0)
            return false; /* a longer form of a smaller number */
        from->at += i + 1;
        from->len -= i + 1;
        *ret = value;
        return true;
    }
    return false;
}

bool bytes_take_prefixed(struct bytes *from, struct bytes *ret)
{
    struct bytes rest = *from;
    uint64_t len;
    if (!bytes_take_varint(&rest, &len) || len > rest.len)
        return false;
    check(bytes_take(&rest, (size_t)len, ret));
    *from = rest;
    return true;
}

void buf_init(struct buf *buf)
{
    *buf = (struct buf){0};
}

void buf_deinit(struct buf *buf)
{
    free(buf->at);
    *buf = (struct buf){0};
}

/* The rare half of buf_reserve. */
void buf_grow(struct buf *buf, size_t len)
{
    size_t cap = buf->cap ? buf->cap * 2 : 256;
    while (cap - buf->len < len)
        cap *= 2;
    buf->at = xrealloc(buf->at, cap);
    buf->cap = cap;
}

void buf_append(struct buf *buf, const void *at, size_t len)
{
    if (len == 0)
        return;
    memcpy(buf_reserve(buf, len), at, len);
    buf->len += len;
}

void buf_append_bytes(struct buf *buf, struct bytes from)
{
    buf_append(buf, from.at, from.len);
}

void buf_append_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_append_u8(struct buf *buf, uint8_t value)
{
    *buf_reserve(buf, 1) = value;
    buf->len++;
}

void buf_append_be16(struct buf *buf, uint16_t value)
{
    uint8_t *to = buf_reserve(buf, 2);
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
    buf->len += 2;
}

void buf_append_be32(struct buf *buf, uint32_t value)
{
    buf_append_be16(buf, (uint16_t)(value >> 16));
    buf_append_be16(buf, (uint16_t)value);
}

void buf_append_be64(struct buf *buf, uint64_t value)
{
    be64_encode(buf_reserve(buf, 8), value);
    buf->len += 8;
}

void buf_append_varint(struct buf *buf, uint64_t value)
{
    buf->len += varint_encode(buf_reserve(buf, VARINT_LEN_MAX), value);
}

void buf_append_prefixed(struct buf *buf, struct bytes from)
{
    buf_append_varint(buf, from.len);
    buf_append_bytes(buf, from);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    check(len >= 0);
    uint8_t *to = buf_reserve(buf, (size_t)len + 1);
    vsnprintf((char *)to, (size_t)len + 1, format, again);
    va_end(again);
    buf->len += (size_t)len;
}

size_t varint_len(uint64_t value)
{
    size_t len = 1;
    while (value >= 0x80) {
        value >>= 7;
        len++;
    }
    return len;
}

size_t varint_encode(uint8_t *to, uint64_t value)
{
    size_t len = 0;
    while (value >= 0x80) {
        to[len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    to[len++] = (uint8_t)value;
    return len;
}

size_t decimal_encode(char *to, uint64_t value)
{
    char digits[DECIMAL_LEN_MAX];
    size_t len = 0;
    do {
        digits[sizeof(digits) - ++len] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(to, digits + sizeof(digits) - len, len);
    return len;
}
