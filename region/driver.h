/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_DRIVER_H
#define REGION_DRIVER_H

/* Runs the region core on the loop. Callbacks of the network only queue inputs; once a round the
 * driver steps the core through them, reads the store where the core asks for it, collects its
 * batches for the storage thread, and hands everything else that the core wants done to its owner.
 */

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "region/clock.h"
#include "region/core/region.h"
#include "region/core/store.h"
#include "region/metrics.h"

struct driver;

/* What the core wants done. Bytes are borrowed for the call. None of these may step the core: they
 * may push. */
struct driver_events {
    void (*ready)(void *context);
    void (*reply)(void *context, uint64_t token, struct op *op);
    void (*send)(void *context, uint16_t peer, enum region_channel channel, struct bytes message);
    void (*close)(void *context, uint16_t peer, enum region_channel channel, const char *reason);
    void (*call_peer)(void *context, uint16_t peer, uint64_t id, struct bytes body);
    void (*call_reply)(void *context, uint64_t token, struct bytes body);
    /* The core is about to take a PEER_UP, PEER_DOWN or PEER_FRAME that was pushed with this tag.
     */
    void (*taken)(void *context, const struct region_input *in, uint64_t tag);
    void *context;
};

struct driver_config {
    struct loop *loop;
    const struct region_config *core;
    struct store *store; /* stays the owner's; outlives the driver */
    const struct clock *clock;
    struct metrics *metrics;
    bool sync;
    uint64_t group_bytes_max;
    struct driver_events events;
};

struct driver *driver_new(const struct driver_config *config);
/* Requests that were not answered are forgotten. */
void driver_free(struct driver *driver);

/* Queues an input; its times are set when it is taken. in->bytes is copied. */
void driver_push(struct driver *driver, const struct region_input *in, uint64_t tag);
/* Once a round of the loop. */
void driver_round(struct driver *driver);
/* Monotonic time by which the next round is due. */
uint64_t driver_deadline(const struct driver *driver);
/* Nothing is queued and everything that was to be written is. */
bool driver_idle(const struct driver *driver);
/* For figures, between rounds' steps. */
const struct region *driver_core(const struct driver *driver);

#endif
