/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_SERVE_H
#define REGION_SERVE_H

/* From an HTTP request to the core and back: parses it into an operation, lends that to the core,
 * and writes the answer with the headers that AWS sends. In steady state a request allocates
 * nothing: requests are recycled with their arenas, and all answers are written in one buffer. */

#include <stdbool.h>

#include "net/server.h"
#include "region/config.h"
#include "region/driver.h"
#include "region/faults.h"
#include "region/metrics.h"

struct serve;

/* What a witness says to every request. */
#define SERVE_WITNESS_TEXT                                                                         \
    "This Region holds witnesses of strongly consistent global tables and nothing else: it has "   \
    "no "                                                                                          \
    "items and answers no DynamoDB requests. Send them to a Region that has a replica."

struct serve *serve_new(const struct config *config, struct loop *loop, struct metrics *metrics,
                        uint64_t seed);
void serve_free(struct serve *serve);

/* What clients meet on the way in and out; NULL, as at first: nothing. */
void serve_set_faults(struct serve *serve, struct faults *faults);
/* The faults have changed: what they held back goes on, unless they still hold it. */
void serve_release(struct serve *serve);
/* The core serves from now on; before, requests are answered with a 503 that clients retry. */
void serve_begin(struct serve *serve, struct driver *driver);
/* An API request. */
void serve_request(struct serve *serve, struct exchange *exchange);
/* Gives the answer that the core has finished; driver_events.reply. */
void serve_reply(struct serve *serve, uint64_t token, struct op *op);
/* Requests that the core has and has not answered. */
uint32_t serve_pending(const struct serve *serve);
/* Drops the connections of all that have not been answered; the core must not answer them any more.
 */
void serve_abort(struct serve *serve);
/* Answers that have no operation: server_handler.refuse. */
void serve_refuse(int status, struct buf *body, const char **ret_content_type);

#endif
