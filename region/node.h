/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_NODE_H
#define REGION_NODE_H

/* One Region, whole: storage, core, API, peers and admin routes on one loop. main.c runs one; tests
 * run several on one loop. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "region/config.h"
#include "region/log.h"

struct node;

struct node_events {
    void (*ready)(void *context);   /* requests are served from now on */
    void (*drained)(void *context); /* after node_drain: everything is answered and written */
    void *context;
};

/* config and log outlive the node. On failure returns NULL and writes the reason into error. */
struct node *node_open(struct loop *loop, const struct config *config, const struct log *log,
                       const struct node_events *events, char *error, size_t error_len);
uint16_t node_port(const struct node *node);
uint64_t node_requests(const struct node *node); /* HTTP requests that have arrived, ever */
/* Once a round of the loop; returns the monotonic time by which the next is due. */
uint64_t node_round(struct node *node);
/* Stops accepting, lets requests finish within config.drain_ms, and waits for the storage thread.
 */
void node_drain(struct node *node);
/* Closes everything at once, as a crash would but for the memory. */
void node_close(struct node *node);
/* After node_close, when the loop has let go of the sockets (loop_deinit). */
void node_free(struct node *node);

#endif
