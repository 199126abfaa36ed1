/* SPDX-License-Identifier: Apache-2.0 */
/* How the console's files are sent. The policy lets the page load its own files and ask its own
 * origin, and nothing else; no other page may frame it, where a click could be led astray. */

#include "chaos/live/console.h"

#include "conflict/base/check.h"

#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "        \
    "'self'; "                                                                                     \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
/* `sandbox` takes the origin away: a script in a report could draw, and not cut a link. */
#define REPORT_POLICY                                                                              \
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "                      \
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "              \
    "frame-ancestors 'none'"

const struct console_file *console_find(const struct http_request *request)
{
    if (!bytes_is(request->method, "GET") && !bytes_is(request->method, "HEAD"))
        return NULL;
    struct bytes path = request->path;
    const uint8_t *query = path.len == 0 ? NULL : memchr(path.at, '?', path.len);
    if (query != NULL)
        path.len = (size_t)(query - path.at);
    for (uint32_t i = 0; i < console_file_count; i++)
        if (bytes_is(path, console_files[i].path))
            return &console_files[i];
    return NULL;
}

void console_serve(const struct console_file *file, struct exchange *exchange)
{
    const struct http_header headers[] = {
        {bytes_literal("content-type"), bytes_text(file->type)},
        {bytes_literal("content-security-policy"), bytes_literal(POLICY)},
        {bytes_literal("cross-origin-resource-policy"), bytes_literal("same-origin")},
        {bytes_literal("cross-origin-opener-policy"), bytes_literal("same-origin")},
        {bytes_literal("referrer-policy"), bytes_literal("no-referrer")},
        {bytes_literal("x-content-type-options"), bytes_literal("nosniff")},
        {bytes_literal("cache-control"), bytes_literal("no-cache")},
        {bytes_literal("etag"), bytes_text(file->etag)},
    };
    struct bytes known = http_request_header(exchange_request(exchange), "if-none-match");
    bool fresh = bytes_is(known, file->etag);
    /* Of a 304, only the length is told. */
    exchange_respond(exchange, fresh ? 304 : 200, headers, array_len(headers), file->content);
}

void console_serve_report(struct bytes content, struct exchange *exchange)
{
    const struct http_header headers[] = {
        {bytes_literal("content-type"), bytes_literal("text/html; charset=utf-8")},
        {bytes_literal("content-security-policy"), bytes_literal(REPORT_POLICY)},
        {bytes_literal("cross-origin-resource-policy"), bytes_literal("same-origin")},
        {bytes_literal("referrer-policy"), bytes_literal("no-referrer")},
        {bytes_literal("x-content-type-options"), bytes_literal("nosniff")},
        {bytes_literal("cache-control"), bytes_literal("no-store")},
    };
    exchange_respond(exchange, 200, headers, array_len(headers), content);
}
