/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

/* Operations on few keys, so that regions collide. Every item carries the number of the operation
 * that wrote it, so that whatever a read or a replica shows can be traced to its writer. */

#include <stdint.h>

#include "conflict/base/rng.h"
#include "region/core/op.h"

#define WORKLOAD_TABLE "table"

enum { WORKLOAD_KEYS_MAX = 16 };

enum workload_kind {
    WORKLOAD_PUT,
    WORKLOAD_PUT_NEW, /* attribute_not_exists */
    WORKLOAD_ADD,     /* an update that counts */
    WORKLOAD_DELETE,
    WORKLOAD_GET,
    WORKLOAD_KIND_COUNT
};

struct workload {
    uint32_t key_count;
    uint32_t weights[WORKLOAD_KIND_COUNT];
};

struct workload_op {
    enum workload_kind kind;
    uint32_t key_index;
    uint64_t writer;
    struct version
        acknowledged_before; /* the caller's note: newest acknowledged when it was sent */
    struct op *op;           /* in the arena */
};

void workload_init(struct workload *workload, struct rng *rng);
void workload_draw(struct workload *workload, struct rng *rng, struct arena *arena, uint64_t writer,
                   struct workload_op *ret);
/* The number of the operation that wrote an item; 0 for an empty run. */
uint64_t workload_writer(struct bytes item);
struct op *workload_create_table(struct arena *arena);
struct op *workload_add_replica(struct arena *arena, uint16_t region);

/* What operations are made of. */
struct op *workload_op_new(struct arena *arena, enum op_kind kind);
struct value workload_value(struct arena *arena, enum value_type type, struct bytes payload);
struct value workload_number(struct arena *arena, uint64_t value);
struct bytes workload_item(struct arena *arena, struct attribute *attributes, size_t count);
void workload_give_value(struct op *op, const char *placeholder, struct value value);

#endif
