/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

/* What HTTP/1.1 and HTTP/2 share: a list of headers, the heads of answers, decompression of bodies.
 */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "net/server.h"

enum { HTTP_HEADERS_MAX = 200 };

/* Headers that own their bytes or point into someone's buffer. Bytes that it owns may move while it
 * is gathered, so those headers have only lengths until head_seal gives them their places. */
struct head {
    struct buf bytes;
    struct http_header *at;
    uint32_t count, cap;
};

void head_deinit(struct head *head);
/* Forgets the headers; keeps a modest amount of memory. */
void head_reset(struct head *head);
struct http_header *head_push(struct head *head);
void head_copy(struct head *head, struct bytes name, struct bytes value);
void head_seal(struct head *head);
struct bytes head_find(const struct http_header *headers, uint32_t count, const char *name);

/* Lower case of a byte that may stand in a header's name (RFC 9110 section 5.6.2), 0 for any other.
 */
extern const uint8_t http_token[256];
/* Lower-cases a name in place; false when it is none. */
bool http_lower_name(uint8_t *at, size_t len);
/* No control characters but tabs. http_parser as Debian builds it is not strict about them. */
bool http_is_value(struct bytes value);
struct bytes http_trim(struct bytes value);
/* Compares without regard to the case of ASCII letters. */
bool http_equal_nocase(struct bytes a, const char *lower);

/* "Sun, 06 Nov 1994 08:49:37 GMT": HTTP_DATE_LEN bytes and a NUL. */
enum { HTTP_DATE_LEN = 29 };
void http_date(uint64_t wall_ms, char text[HTTP_DATE_LEN + 1]);

/* True for headers that belong to a connection or a message's framing, so are this layer's to set.
 */
bool http_is_framing(struct bytes name);

struct http_answer_head {
    int status;
    const struct http_header *headers;
    uint32_t header_count;
    uint64_t body_len;
    const char *date;       /* HTTP_DATE_LEN bytes */
    const char *connection; /* "close", "keep-alive", or NULL to say nothing */
};
/* The head of an HTTP/1.1 answer up to and with the empty line; room for body_room more bytes is
 * reserved. */
void http_append_answer_head(struct buf *to, const struct http_answer_head *head, size_t body_room);

enum http_inflate_outcome { HTTP_INFLATED = 1, HTTP_INFLATE_BROKEN, HTTP_INFLATE_TOO_LONG };
/* Undoes gzip, zlib and raw deflate (which clients call "deflate" too), into at most len_max bytes.
 */
enum http_inflate_outcome http_inflate(struct bytes from, size_t len_max, struct buf *to);

#endif
