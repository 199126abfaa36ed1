/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_STRONG_WORKLOAD_H
#define SIM_STRONG_WORKLOAD_H

/* Requests to a strong table, each with what it does to each key in the terms of linear.h. An item
 * holds `n`, the number that the history of its key is about, and `w`, the number of the request
 * part that wrote it, so that whatever a read or a replica shows can be traced to its writer. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/check/linear.h"
#include "conflict/base/rng.h"
#include "region/core/op.h"

enum { STRONG_HASHES_MAX = 4, STRONG_SORTS = 4 };
enum { STRONG_KEYS_MAX = STRONG_HASHES_MAX * STRONG_SORTS };

#define SIM_STRONG_KIND_MAP(KIND)                                                                  \
    KIND(PUT, "put")                                                                               \
    KIND(PUT_IF, "put-if")                                                                         \
    KIND(ADD, "add")                                                                               \
    KIND(DELETE, "delete")                                                                         \
    KIND(GET, "get")                                                                               \
    KIND(PEEK, "peek") /* an eventual get */                                                       \
    KIND(BATCH, "batch")                                                                           \
    KIND(QUERY, "query")

enum sim_strong_kind {
#define KIND(enumerator, name) SIM_STRONG_##enumerator,
    SIM_STRONG_KIND_MAP(KIND)
#undef KIND
        SIM_STRONG_KIND_COUNT
};
const char *sim_strong_kind_name(enum sim_strong_kind kind);

/* What one request does to one key. */
struct sim_strong_part {
    uint32_t key;
    uint64_t writer; /* 0: it writes nothing */
    struct linear_op linear;
};

struct sim_strong_request {
    enum sim_strong_kind kind;
    struct sim_strong_part parts[STRONG_SORTS];
    uint32_t part_count;
    struct op *op; /* in the arena */
};

struct sim_strong_workload {
    uint32_t hashes, hot; /* keys 0 to hot - 1 are wanted most */
    uint32_t weights[SIM_STRONG_KIND_COUNT];
    uint64_t next_writer;
    /* By key, what somebody was last told that it holds: for conditions. */
    bool seen_present[STRONG_KEYS_MAX];
    int64_t seen[STRONG_KEYS_MAX];
};

void sim_strong_workload_init(struct sim_strong_workload *workload, struct rng *rng);
void sim_strong_draw(struct sim_strong_workload *workload, struct rng *rng, struct arena *arena,
                     struct sim_strong_request *ret);
/* One of a given kind on a given key. */
void sim_strong_make(struct sim_strong_workload *workload, struct rng *rng, struct arena *arena,
                     enum sim_strong_kind kind, uint32_t key, struct sim_strong_request *ret);
/* False: it is no item of this workload. Any of the two may be NULL. */
bool sim_strong_item(struct bytes item, int64_t *ret_number, uint64_t *ret_writer);
/* Which key of the workload an item has. */
uint32_t sim_strong_key(struct bytes item);

struct op *sim_strong_create_table(struct arena *arena);
/* UpdateTable: makes or deletes two replicas, or one and a witness. */
struct op *sim_strong_update(struct arena *arena, bool create, const uint16_t others[2],
                             bool witness);

#endif
