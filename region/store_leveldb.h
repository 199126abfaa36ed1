/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STORE_LEVELDB_H
#define REGION_STORE_LEVELDB_H

/* The store seam on LevelDB: paranoid checks on open, verified checksums on every read, a bloom
 * filter for keys that are not there. Reads on the loop's thread, writes on the storage thread. */

#include <stddef.h>

#include "conflict/base/trace.h"
#include "region/core/store.h"

struct store_leveldb_config {
    const char *directory;     /* created if missing, with its parents */
    size_t cache_bytes;        /* of uncompressed blocks */
    size_t write_buffer_bytes; /* newest rows, in memory and in LevelDB's log */
    struct trace trace;        /* what went wrong; called from both threads */
};

/* On failure returns NULL and writes the reason into error; *ret_damaged tells whether it is that
 * what was there is damaged. */
struct store *store_leveldb_open(const struct store_leveldb_config *config, char *error,
                                 size_t error_len, bool *ret_damaged);

#endif
