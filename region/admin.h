/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_ADMIN_H
#define REGION_ADMIN_H

/* What a Region tells of itself beside DynamoDB's API, on the same port: health, metrics, status,
 * the lost-write ledger; and the one thing that can be moved, its clock. README.md lists the
 * routes. */

#include <stdbool.h>
#include <stdint.h>

#include "net/server.h"
#include "region/clock.h"
#include "region/config.h"
#include "region/driver.h"
#include "region/log.h"
#include "region/metrics.h"
#include "region/peers.h"

struct admin {
    const struct config *config;
    const struct loop *loop;
    const struct log *log;
    struct clock *clock;
    struct store *store;
    const struct driver *driver;
    const struct peers *peers;
    const struct metrics *metrics;
    const struct server *server;
    bool ready;
};

/* Answers the request if it is one of these; else returns false. */
bool admin_handle(struct admin *admin, struct exchange *exchange);

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

#endif
