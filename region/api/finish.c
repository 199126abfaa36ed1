/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of an answer: compression, checksum, request id. */

#include <strings.h>
#include <zlib.h>

#include "conflict/base/check.h"
#include "region/api/api.h"

enum { COMPRESS_BYTES_MIN = 4096 };

/* Qualities of RFC 9110, in thousandths; -1: not named. */
struct accepted {
    int gzip, deflate, any;
};

static struct bytes trim(struct bytes text)
{
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
        text.at++;
        text.len--;
    }
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* Takes what lies before the separator off the front, trimmed. */
static struct bytes take_part(struct bytes *rest, char separator)
{
    const uint8_t *end = rest->len > 0 ? memchr(rest->at, separator, rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->at) : rest->len;
    struct bytes part = bytes_make(rest->at, len);
    size_t taken = end ? len + 1 : len;
    if (taken > 0)
        rest->at += taken;
    rest->len -= taken;
    return trim(part);
}

static bool same_word(struct bytes text, const char *word)
{
    return text.len == strlen(word) && strncasecmp((const char *)text.at, word, text.len) == 0;
}

/* "q=0.5": 0 to 1000; what is no quality counts as none, so that it does no harm. */
static int quality_of(struct bytes parameters)
{
    while (parameters.len > 0) {
        struct bytes parameter = take_part(&parameters, ';');
        if (parameter.len < 3 || (parameter.at[0] | 0x20) != 'q' || parameter.at[1] != '=')
            continue;
        int value = 0;
        int scale = 1000;
        bool fraction = false;
        for (size_t i = 2; i < parameter.len; i++) {
            uint8_t c = parameter.at[i];
            if (c == '.' && !fraction) {
                fraction = true;
            } else if (c >= '0' && c <= '9' && scale > 0) {
                if (fraction)
                    scale /= 10;
                value += (c - '0') * scale;
            } else {
                return 0;
            }
            if (value > 1000)
                return 1000;
        }
        return value;
    }
    return 1000;
}

static void read_accepted(struct bytes header, struct accepted *ret)
{
    *ret = (struct accepted){-1, -1, -1};
    while (header.len > 0) {
        struct bytes parameters = take_part(&header, ',');
        struct bytes coding = take_part(&parameters, ';');
        int quality = quality_of(parameters);
        if (same_word(coding, "gzip") || same_word(coding, "x-gzip"))
            ret->gzip = quality;
        else if (same_word(coding, "deflate"))
            ret->deflate = quality;
        else if (same_word(coding, "*"))
            ret->any = quality;
    }
    if (ret->gzip < 0)
        ret->gzip = ret->any;
    if (ret->deflate < 0)
        ret->deflate = ret->any;
}

static const char *choose_coding(struct bytes header)
{
    struct accepted accepted;
    read_accepted(header, &accepted);
    if (accepted.gzip > 0 && accepted.gzip >= accepted.deflate)
        return "gzip";
    return accepted.deflate > 0 ? "deflate" : NULL;
}

/* False when zlib cannot, which only lack of memory can bring about: then the body goes as it is.
 */
static bool compress_body(struct bytes body, bool gzip, struct buf *to)
{
    z_stream stream = {0};
    if (body.len > UINT32_MAX || deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED,
                                              15 + (gzip ? 16 : 0), 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t bound = deflateBound(&stream, (uLong)body.len);
    stream.next_in = (Bytef *)(uintptr_t)body.at;
    stream.avail_in = (uInt)body.len;
    stream.next_out = buf_reserve(to, bound);
    stream.avail_out = bound > UINT32_MAX ? UINT32_MAX : (uInt)bound;
    int outcome = deflate(&stream, Z_FINISH);
    to->len += stream.total_out;
    deflateEnd(&stream);
    return outcome == Z_STREAM_END;
}

/* A bijection that spreads every bit (splitmix64's finalizer), so unlike ids stay unlike. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void write_request_id(uint64_t high, uint64_t low, char to[53])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    uint64_t words[4] = {mix(high ^ 0x9e3779b97f4a7c15), mix(low + 0x9e3779b97f4a7c15), 0, 0};
    words[2] = mix(words[0] + words[1]);
    words[3] = mix(words[2] ^ words[1]);
    for (int i = 0; i < 52; i++) {
        uint64_t *word = &words[i / 13];
        to[i] = letters[*word & 31];
        *word >>= 5;
    }
    to[52] = 0;
}

void api_finish(enum api_error error, struct bytes accept_encoding, uint64_t id_high,
                uint64_t id_low, struct bytes *body, struct buf *scratch, struct api_answer *ret)
{
    ret->status = api_error_status(error);
    ret->content_encoding = NULL;
    if (body->len > COMPRESS_BYTES_MIN && accept_encoding.len > 0) {
        const char *coding = choose_coding(accept_encoding);
        buf_reset(scratch);
        if (coding && compress_body(*body, strcmp(coding, "gzip") == 0, scratch)) {
            ret->content_encoding = coding;
            *body = buf_view(scratch);
        }
    }
    write_request_id(id_high, id_low, ret->request_id);
    uLong crc = crc32_z(0, body->at, body->len);
    char digits[DECIMAL_LEN_MAX];
    size_t len = decimal_encode(digits, crc & 0xffffffffUL);
    check(len < sizeof(ret->crc32));
    memcpy(ret->crc32, digits, len);
    ret->crc32[len] = 0;
}
