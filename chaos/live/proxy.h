/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PROXY_H
#define LIVE_PROXY_H

/* A TCP proxy between real processes, with toxics: Toxiproxy's proxy, and the only way from one
 * region to another. It is either enabled, or nothing passes: disabling resets all that is
 * established and refuses what comes, in one step, so that the instant it reports is the truth.
 *
 * A proxy that carries a link of the cluster keeps listening while disabled and resets each
 * connection as it comes, so that what the cut blocks can be counted. Any other stops listening, as
 * Toxiproxy does, but keeps its port. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/live/address.h"
#include "chaos/live/chain.h"
#include "conflict/base/list.h"
#include "net/loop.h"

enum {
    PROXY_NAME_MAX = 255,
    PROXY_CONNECTIONS_MAX = 4096,
    PROXY_TOXICS_MAX = 64,
    PROXIES_MAX = 4096,
};

struct proxy_counts {
    uint64_t connections;         /* open now */
    uint64_t passed_bytes[2];     /* written to the other side, by stream */
    uint64_t blocked_connections; /* refused or reset, because disabled */
    uint64_t blocked_bytes; /* had been sent and were not delivered: cut or eaten by a toxic */
};

struct proxy {
    struct list link; /* in its proxy_set */
    struct proxy_set *set;
    char *name;
    struct address listen, upstream; /* listen: as bound, once it was */
    bool enabled;
    bool is_link;
    bool refuses;          /* new connections, as if disabled; those that are go on */
    struct list toxics[2]; /* by stream, in order of addition */
    struct proxy_counts counts;

    struct loop *loop;
    struct rng rng;
    int hold_fd;                     /* -1: the port is not held */
    struct proxy_listener *listener; /* NULL: does not listen */
    struct list pairs;
};

struct proxy_set {
    struct loop *loop;
    uint64_t seed;
    struct list proxies; /* in order of creation */
    uint32_t count;
};

struct proxy_instant {
    uint64_t wall_ms, mono_ns;
};

void proxy_set_init(struct proxy_set *set, struct loop *loop, uint64_t seed);
/* Resets every connection. The memory of connections goes in later rounds of the loop. */
void proxy_set_deinit(struct proxy_set *set);
struct proxy *proxy_find(struct proxy_set *set, const char *name);

/* The proxy is there, but disabled, and its port not held before it is enabled for the first time.
 */
struct proxy *proxy_new(struct proxy_set *set, const char *name, const struct address *listen,
                        const struct address *upstream, bool is_link);
/* Resets its connections. */
void proxy_free(struct proxy *proxy);
/* Returns 0, or a negative errno when it can't listen; it is disabled then. */
int proxy_enable(struct proxy *proxy);
/* Nothing passes from the instant that is returned on. */
struct proxy_instant proxy_disable(struct proxy *proxy);
/* Bytes that have come, both ways, and wait here: delayed, held, or because nobody takes them. */
uint64_t proxy_held(const struct proxy *proxy);
/* Disables it and gives its port back. */
void proxy_move(struct proxy *proxy, const struct address *listen, const struct address *upstream);

struct toxic *proxy_find_toxic(struct proxy *proxy, const char *name);
/* Takes the toxic, for the connections that are and for those that come. */
void proxy_add_toxic(struct proxy *proxy, struct toxic *toxic);
void proxy_update_toxic(struct proxy *proxy, struct toxic *toxic);
void proxy_remove_toxic(struct proxy *proxy, struct toxic *toxic);

#endif
