/* SPDX-License-Identifier: Apache-2.0 */
/* See sigv4.h, and for the Region of a host name, api.h. */

#include "region/api/sigv4.h"

#include <strings.h>

#include "conflict/region_id.h"
#include "region/api/api.h"

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static struct bytes trim(struct bytes text)
{
    while (text.len > 0 && is_blank(text.at[0])) {
        text.at++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.at[text.len - 1]))
        text.len--;
    return text;
}

/* Takes what lies before the separator, or all, off the front of *rest. False at the end. */
static bool take_until(struct bytes *rest, char separator, struct bytes *ret)
{
    if (rest->len == 0)
        return false;
    const uint8_t *end = memchr(rest->at, separator, rest->len);
    size_t len = end ? (size_t)(end - rest->at) : rest->len;
    *ret = bytes_make(rest->at, len);
    size_t taken = end ? len + 1 : len;
    rest->at += taken;
    rest->len -= taken;
    return true;
}

/* The separator is "/" in a header and "%2F" in a query; some clients leave "/" in queries too. */
static void split_credential(struct sigv4 *to)
{
    struct bytes parts[5];
    struct bytes rest = to->credential;
    size_t count = 0;
    size_t start = 0;
    if (rest.len == 0)
        return;
    for (size_t i = 0; i <= rest.len; i++) {
        uint8_t c = i < rest.len ? rest.at[i] : '/';
        if (c != '/' && c != '%')
            continue;
        bool escaped = c == '%' && i + 3 <= rest.len && rest.at[i + 1] == '2' &&
                       (rest.at[i + 2] == 'F' || rest.at[i + 2] == 'f');
        if (c == '%' && !escaped)
            continue;
        if (count == 5)
            return; /* too many */
        parts[count++] = bytes_make(rest.at + start, i - start);
        if (escaped)
            i += 2;
        start = i + 1;
    }
    if (count != 5)
        return;
    to->credential_whole = true;
    to->key = parts[0];
    to->scope_date = parts[1];
    to->region = parts[2];
    to->service = parts[3];
    to->terminator = parts[4];
}

static bool read_header(struct bytes authorization, struct sigv4 *ret)
{
    if (!bytes_starts_with(authorization, bytes_literal("AWS4-")))
        return false;
    struct bytes rest = authorization;
    struct bytes part;
    take_until(&rest, ' ', &part); /* the algorithm */
    while (take_until(&rest, ',', &part)) {
        struct bytes name;
        part = trim(part);
        if (!take_until(&part, '=', &name))
            continue;
        if (bytes_is(name, "Credential"))
            ret->credential = part;
        else if (bytes_is(name, "SignedHeaders"))
            ret->signed_headers = part;
        else if (bytes_is(name, "Signature"))
            ret->signature = part;
    }
    return true;
}

static bool read_query(struct bytes path, struct sigv4 *ret)
{
    struct bytes part;
    if (!take_until(&path, '?', &part))
        return false;
    bool found = false;
    while (take_until(&path, '&', &part)) {
        struct bytes name;
        if (!take_until(&part, '=', &name))
            continue;
        if (bytes_is(name, "X-Amz-Credential")) {
            ret->credential = part;
            found = true;
        } else if (bytes_is(name, "X-Amz-SignedHeaders")) {
            ret->signed_headers = part;
        } else if (bytes_is(name, "X-Amz-Signature")) {
            ret->signature = part;
        } else if (bytes_is(name, "X-Amz-Date")) {
            ret->date = part;
        }
    }
    return found;
}

bool sigv4_read(struct bytes authorization, struct bytes path, struct sigv4 *ret)
{
    struct sigv4 found = {0};
    if (!read_header(trim(authorization), &found) && !read_query(path, &found))
        return false;
    split_credential(&found);
    *ret = found;
    return true;
}

struct bytes sigv4_region(struct bytes authorization, struct bytes path)
{
    struct sigv4 signature;
    return sigv4_read(authorization, path, &signature) ? signature.region : BYTES_NONE;
}

static bool ends_with(struct bytes text, struct bytes tail)
{
    return text.len >= tail.len && strncasecmp((const char *)text.at + text.len - tail.len,
                                               (const char *)tail.at, tail.len) == 0;
}

struct bytes host_region(struct bytes host)
{
    static const char *const tails[] = {".amazonaws.com", ".amazonaws.com.cn", ".api.aws",
                                        ".localhost"};
    const uint8_t *colon = host.len > 0 ? memchr(host.at, ':', host.len) : NULL;
    if (colon)
        host.len = (size_t)(colon - host.at);
    for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
        struct bytes tail = bytes_text(tails[i]);
        if (!ends_with(host, tail))
            continue;
        /* What is left is [service label.]REGION: the last label. */
        struct bytes left = bytes_make(host.at, host.len - tail.len);
        size_t start = left.len;
        while (start > 0 && left.at[start - 1] != '.')
            start--;
        struct bytes region = bytes_make(left.at + start, left.len - start);
        return region_id_find(region) != REGION_ID_NONE ? region : BYTES_NONE;
    }
    return BYTES_NONE;
}
