/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_CONSOLE_H
#define LIVE_CONSOLE_H

/* The console: the page at the control API's `/`, whose files (console/) are part of the program.
 * They hold nothing of the cluster, so anybody may load them; the page then asks /v1/ as any other
 * client does, and changes things only from its own origin. */

#include "net/server.h"

struct console_file {
    const char *path, *type, *etag; /* the tag in its quotes */
    struct bytes content;
};

/* Made from console/ when the program is built (console/embed.cmake). */
extern const struct console_file console_files[];
extern const uint32_t console_file_count;

/* The file that a GET or HEAD asks for; NULL: none of ours. */
const struct console_file *console_find(const struct http_request *request);
void console_serve(const struct console_file *file, struct exchange *exchange);

/* A chaos run's report, which is a page of its own: it is shown without the right to ask us
 * anything, for what it shows came from elsewhere. */
void console_serve_report(struct bytes content, struct exchange *exchange);

#endif
