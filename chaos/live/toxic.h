/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TOXIC_H
#define LIVE_TOXIC_H

/* A toxic: one fault on one direction of a proxy, in Toxiproxy's words. A toxic only says what is
 * wished; what it does to a connection's bytes is in chain.h. Upstream is the way from the opener
 * to the peer, downstream the way back. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "chaos/live/delay.h"
#include "conflict/base/list.h"

/* TYPE(enumerator, name, attributes, default): the names and the order of the attributes are
 * Toxiproxy's; every attribute is a whole number and 0 when absent. */
#define TOXIC_TYPE_MAP(TYPE)                                                                       \
    TYPE(NOOP, "noop", NULL, NULL, NULL)                                                           \
    TYPE(LATENCY, "latency", "latency", "jitter", NULL)   /* ms, ms */                             \
    TYPE(BANDWIDTH, "bandwidth", "rate", NULL, NULL)      /* thousand bytes a second */            \
    TYPE(SLOW_CLOSE, "slow_close", "delay", NULL, NULL)   /* ms */                                 \
    TYPE(TIMEOUT, "timeout", "timeout", NULL, NULL)       /* ms; 0: until removed */               \
    TYPE(RESET_PEER, "reset_peer", "timeout", NULL, NULL) /* ms */                                 \
    TYPE(SLICER, "slicer", "average_size", "size_variation", "delay") /* bytes, bytes, us */       \
    TYPE(LIMIT_DATA, "limit_data", "bytes", NULL, NULL)                                            \
    TYPE(HOLD, "hold", NULL, NULL, NULL) /* until removed; ours, not to be had by their routes */

enum toxic_type {
#define TYPE(enumerator, name, a, b, c) TOXIC_##enumerator,
    TOXIC_TYPE_MAP(TYPE)
#undef TYPE
        TOXIC_TYPE_COUNT
};

enum toxic_stream { TOXIC_UPSTREAM, TOXIC_DOWNSTREAM };

enum {
    TOXIC_ATTRIBUTES_MAX = 3,
    TOXIC_NAME_MAX = 255,
};
#define TOXIC_VALUE_MAX                                                                            \
    INT64_C(1000000000000) /* keeps every product of times and rates in 64 bits */

enum { TOXIC_LATENCY_MS = 0, TOXIC_JITTER_MS = 1 };
enum { TOXIC_AVERAGE_SIZE = 0, TOXIC_SIZE_VARIATION = 1, TOXIC_SLICE_DELAY_US = 2 };

struct toxic {
    struct list link;
    char *name;
    enum toxic_type type;
    enum toxic_stream stream;
    double toxicity; /* share of the connections that it applies to, 0 to 1 */
    int64_t value[TOXIC_ATTRIBUTES_MAX];
    uint64_t rest_ns[2]; /* of a latency and its jitter, beyond whole milliseconds; ours */
    enum delay_distribution distribution; /* of a latency's jitter; ours: theirs is uniform */
};

enum toxic_error {
    TOXIC_OK,
    TOXIC_BAD_BODY, /* with a reason */
    TOXIC_BAD_STREAM,
    TOXIC_BAD_TYPE,
};

enum { TOXIC_REASON_MAX = 160 };

struct toxic *toxic_new(enum toxic_type type, enum toxic_stream stream, const char *name);
struct toxic *toxic_free(struct toxic *toxic);
const char *toxic_type_name(enum toxic_type type);

/* Reads {name, type, stream, toxicity, attributes}; the name defaults to TYPE_STREAM, the stream to
 * downstream, the toxicity to 1. reason is written on TOXIC_BAD_BODY. */
enum toxic_error toxic_decode(json_t *body, char reason[TOXIC_REASON_MAX], struct toxic **ret);
/* Reads {attributes, toxicity} over what the toxic has; all of it or nothing. */
enum toxic_error toxic_update(struct toxic *toxic, json_t *body, char reason[TOXIC_REASON_MAX]);
/* A latency that need not be whole milliseconds, as theirs are. */
void toxic_set_latency(struct toxic *toxic, uint64_t latency_ns, uint64_t jitter_ns);
json_t *toxic_encode(const struct toxic *toxic);

#endif
