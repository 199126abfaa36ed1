/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STORE_H
#define REGION_STORE_H

/* The storage seam: ordered byte keys, point and range reads, atomic batches. Narrow on purpose, so
 * that a Region's store can one day be a distributed engine. The core never calls it: reads and
 * batches leave the core as effects and come back as inputs. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

struct store_read {
    bool range;         /* false: the one row at `begin` */
    bool reverse;       /* range: from end (exclusive) down to begin (inclusive) */
    struct bytes begin; /* inclusive */
    struct bytes end;   /* exclusive */
    uint32_t rows_max;  /* range: stop after so many rows; > 0 */
    uint64_t bytes_max; /* range: stop once keys and values add up to this or more; > 0, so a range
                           that has a row always returns one */
};

struct store_row {
    struct bytes key;
    struct bytes value;
};

struct store_rows {
    struct store_row *at;
    uint32_t count;
    bool more; /* a limit stopped the range before its end */
};

/* A batch is a run of operations, applied in order, all or none:
 *   put    1 | key, length-prefixed | value, length-prefixed
 *   delete 2 | key, length-prefixed
 *   replace 3 | as put: of a row that nothing but `replace` and delete ever writes and that nobody
 * reads while batches are under way, such as a counter. A store that applies several batches at
 * once may leave out all but the last Batches concatenate. */
enum store_operation { STORE_PUT = 1, STORE_DELETE = 2, STORE_REPLACE = 3 };

void store_batch_put(struct buf *batch, struct bytes key, struct bytes value);
void store_batch_replace(struct buf *batch, struct bytes key, struct bytes value);
void store_batch_delete(struct buf *batch, struct bytes key);
/* Takes the next operation off the front; false at the end. `value` is empty for a delete. */
bool store_batch_take(struct bytes *rest, enum store_operation *ret, struct bytes *ret_key,
                      struct bytes *ret_value);

enum store_outcome {
    STORE_OK = 0,
    STORE_FULL = 1,    /* no space left: nothing of the batch was written; may be tried again */
    STORE_CORRUPT = 2, /* a checksum failed */
    STORE_FAILED = -1  /* anything else; after a failed sync nothing may be trusted */
};

/* The two implementations: store_mem (below) and region/store_leveldb. */
struct store {
    const struct store_ops *ops;
};

struct store_ops {
    /* Rows are valid until the next read on this store. */
    enum store_outcome (*read)(struct store *store, const struct store_read *read,
                               struct store_rows *ret);
    /* Durable on return if sync. May be called from one other thread than read. */
    enum store_outcome (*write)(struct store *store, struct bytes batch, bool sync);
    void (*free)(struct store *store);
};

/* In memory, ordered; for tests and the simulator. */
struct store *store_mem_new(void);

#endif
