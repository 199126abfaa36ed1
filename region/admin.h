/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_ADMIN_H
#define REGION_ADMIN_H

/* What a Region tells of itself beside DynamoDB's API, on the same port: health, metrics, status,
 * the lost-write ledger; and what can be done to it: its clock moved, faults set (faults.h), the
 * leadership of its strong groups handed over. README.md lists the routes. */

#include <stdbool.h>
#include <stdint.h>

#include "net/server.h"
#include "region/clock.h"
#include "region/config.h"
#include "region/driver.h"
#include "region/faults.h"
#include "region/log.h"
#include "region/metrics.h"
#include "region/peers.h"
#include "region/serve.h"

struct admin {
    const struct config *config;
    const struct loop *loop;
    const struct log *log;
    struct clock *clock;
    struct store *store;
    struct driver *driver;
    struct serve *serve;
    struct faults *faults;
    const struct peers *peers;
    const struct metrics *metrics;
    const struct server *server;
    bool ready;
};

/* Answers the request if it is one of these; else returns false. */
bool admin_handle(struct admin *admin, struct exchange *exchange);

/* admin_faults.c: the routes that a chaos run uses. */
bool admin_handle_faults(struct admin *admin, struct exchange *exchange, struct bytes path);
void admin_respond(struct exchange *exchange, int status, const char *type, const struct buf *body);
/* {"error":"..."}; the text holds nothing that JSON would have to escape. */
void admin_respond_error(struct exchange *exchange, int status, const char *text);
/* The request was made by a web page: what changes something refuses it. */
bool admin_from_a_page(const struct http_request *request);

/* The parts, as text. */
void admin_write_status(const struct admin *admin, struct buf *to);
void admin_write_metrics(const struct admin *admin, struct buf *to);
/* Their parts on strong tables: a JSON array, and families of metrics (admin_groups.c). */
void admin_write_groups(const struct region *core, struct buf *to);
void admin_write_group_metrics(const struct admin *admin, struct buf *to);
/* A page of the ledger after this token (hexadecimal; empty: from the start). False for a token or
 * a store that cannot be read. */
bool admin_write_conflicts(const struct admin *admin, struct bytes after, uint32_t limit,
                           struct buf *to);
/* Its last rows, newest winner first. */
bool admin_write_newest_conflicts(const struct admin *admin, uint32_t limit, struct buf *to);

#endif
