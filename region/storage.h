/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STORAGE_H
#define REGION_STORAGE_H

/* The storage thread: batches that come while it writes wait and go down together, so an fsync
 * costs one per group and not one per request. All functions are for the loop's thread; only the
 * store's write runs on the other. A write that fails for any reason but a full disk ends the
 * process: nothing may be trusted after it, and a restart recovers what was durable. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "net/loop.h"
#include "region/core/store.h"

struct storage;

struct storage_config {
    struct loop *loop;
    struct store *store;
    bool sync;
    uint64_t group_bytes_max; /* of one write; a larger batch goes alone */
    /* A group ended, on the loop's thread. STORE_OK: id is its last batch. STORE_FULL: id is its
     * first, and this and all later ones are dropped until storage_resume. ns is how long the write
     * took. */
    void (*done)(void *context, enum store_outcome outcome, uint64_t id, uint64_t bytes,
                 uint64_t ns);
    void *context;
};

struct storage *storage_new(const struct storage_config *config);
/* Waits for the group that is being written; those that wait are lost, as in a crash. */
void storage_free(struct storage *storage);
/* Ids ascend. Copies. */
void storage_add(struct storage *storage, uint64_t id, struct bytes batch);
/* Something waits, and the thread is idle. */
bool storage_can_flush(const struct storage *storage);
/* Hands a group to the thread if it is idle: at most once at the end of a round, so that groups are
 * large. */
void storage_flush(struct storage *storage);
/* Batches added from now on are new ones: whoever made the dropped ones knows of it. */
void storage_resume(struct storage *storage);
/* Nothing waits and nothing is being written. */
bool storage_idle(const struct storage *storage);

#endif
