/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

/* Runs of bytes: `struct bytes` borrows, `struct buf` owns and grows. Readers take from the front
 * of a borrowed run and say whether there was enough: they never read past the end, so a decoder
 * built of them needs no length checks of its own. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at; /* may be NULL only when len is 0 */
    size_t len;
};

struct buf {
    uint8_t *at; /* owned; NULL while cap is 0 */
    size_t len;
    size_t cap;
};

#define BYTES_NONE ((struct bytes){NULL, 0})
#define bytes_literal(text) ((struct bytes){(const uint8_t *)("" text), sizeof(text) - 1})

static inline struct bytes bytes_make(const void *at, size_t len)
{
    return (struct bytes){at, len};
}
/* Views a NUL-terminated string, without the NUL. */
static inline struct bytes bytes_text(const char *text)
{
    return (struct bytes){(const uint8_t *)text, strlen(text)};
}
static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}
static inline bool bytes_is(struct bytes a, const char *text)
{
    return bytes_equal(a, bytes_text(text));
}
/* Unsigned lexicographic order; a prefix comes first. */
int bytes_compare(struct bytes a, struct bytes b);
bool bytes_starts_with(struct bytes a, struct bytes prefix);

struct arena;
struct bytes bytes_copy(struct arena *arena, struct bytes from);
/* A NUL-terminated copy. */
char *bytes_copy_text(struct arena *arena, struct bytes from);

/* Readers: on success they advance *from and return true; else nothing changes. */
bool bytes_take(struct bytes *from, size_t len, struct bytes *ret);
bool bytes_take_u8(struct bytes *from, uint8_t *ret);
bool bytes_take_be16(struct bytes *from, uint16_t *ret);
bool bytes_take_be32(struct bytes *from, uint32_t *ret);
bool bytes_take_be64(struct bytes *from, uint64_t *ret);
/* LEB128, at most ten bytes, shortest form only. */
bool bytes_take_varint(struct bytes *from, uint64_t *ret);
/* A varint length and that many bytes. */
bool bytes_take_prefixed(struct bytes *from, struct bytes *ret);

void buf_init(struct buf *buf);
void buf_deinit(struct buf *buf);
/* Empties, keeps the memory. */
static inline void buf_reset(struct buf *buf)
{
    buf->len = 0;
}
void buf_grow(struct buf *buf, size_t len);
/* Makes room for len more bytes and returns where they go; the caller then adds to len. */
static inline uint8_t *buf_reserve(struct buf *buf, size_t len)
{
    if (!buf->at || buf->cap - buf->len < len)
        buf_grow(buf, len);
    return buf->at + buf->len;
}
void buf_append(struct buf *buf, const void *at, size_t len);
void buf_append_bytes(struct buf *buf, struct bytes from);
void buf_append_text(struct buf *buf, const char *text);
void buf_append_u8(struct buf *buf, uint8_t value);
void buf_append_be16(struct buf *buf, uint16_t value);
void buf_append_be32(struct buf *buf, uint32_t value);
void buf_append_be64(struct buf *buf, uint64_t value);
void buf_append_varint(struct buf *buf, uint64_t value);
void buf_append_prefixed(struct buf *buf, struct bytes from);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline struct bytes buf_view(const struct buf *buf)
{
    return (struct bytes){buf->at, buf->len};
}

enum { VARINT_LEN_MAX = 10 };
size_t varint_len(uint64_t value);
/* Writes at most VARINT_LEN_MAX bytes, returns how many. */
size_t varint_encode(uint8_t *to, uint64_t value);

/* What an English noun ends in after a count: "1 write", "2 writes". */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

enum { DECIMAL_LEN_MAX = 20 };
/* Writes the digits, at most DECIMAL_LEN_MAX, no NUL; returns how many. */
size_t decimal_encode(char *to, uint64_t value);

static inline void be64_encode(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (56 - 8 * i));
}
static inline uint64_t be64_decode(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | from[i];
    return value;
}

#endif
