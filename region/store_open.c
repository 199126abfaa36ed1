/* SPDX-License-Identifier: Apache-2.0 */
/* See store_open.h. Damage shows in three ways: a log's tail that only looks torn (store_tail.h),
 * what LevelDB finds when it opens, and blocks whose checksum fails when they are read. Setting
 * aside is one rename, under LevelDB's own lock, so that a store in use is never moved. */

#include "region/store_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/keyspace.h"
#include "region/store_tail.h"

enum { PAGE_ROWS = 4096, PAGE_BYTES = 4 << 20, ASIDE_MAX = 10000, PATH_BYTES = 4200 };

/* Reads all rows with begin <= key < end, whose blocks LevelDB checks on the way. */
static enum store_outcome read_all(struct store *store, uint8_t end)
{
    struct buf begin cleanup(buf_deinit);
    buf_init(&begin);
    buf_append_u8(&begin, 0);
    struct store_rows rows = {.more = true};
    enum store_outcome outcome = STORE_OK;
    while (outcome == STORE_OK && rows.more) {
        struct store_read read = {.range = true,
                                  .begin = buf_view(&begin),
                                  .end = bytes_make(&end, 1),
                                  .rows_max = PAGE_ROWS,
                                  .bytes_max = PAGE_BYTES};
        outcome = store->ops->read(store, &read, &rows);
        if (outcome != STORE_OK || !rows.more)
            break;
        check(rows.count > 0);
        buf_reset(&begin);
        buf_append_bytes(&begin, rows.at[rows.count - 1].key);
        buf_append_u8(&begin, 0);
    }
    return outcome;
}

/* NULL with *ret_damaged when damage is the reason. */
static struct store *try_open(const struct store_leveldb_config *config, enum store_damage damage,
                              char *error, size_t error_len, bool *ret_damaged)
{
    *ret_damaged = !store_tails_sound(config->directory, error, error_len);
    if (*ret_damaged)
        return NULL;
    struct store *store = store_leveldb_open(config, error, error_len, ret_damaged);
    if (!store)
        return NULL;
    bool all = damage == STORE_DISCARD_DAMAGE;
    enum store_outcome outcome = read_all(store, all ? KEYSPACE_END : KEYSPACE_START_END);
    if (outcome != STORE_CORRUPT)
        return store; /* another trouble is told to whoever reads there next */
    *ret_damaged = true;
    snprintf(error, error_len, "%s: the checksum of a block in a table file is wrong",
             config->directory);
    store->ops->free(store);
    return NULL;
}

/* Like LevelDB: whoever holds this lock has the store open. The descriptor, or -1. */
static int take_lock(const char *directory)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/LOCK", directory);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (file < 0 || fcntl(file, F_SETLK, &lock) == 0)
        return file;
    close(file);
    return -1;
}

/* Renames the directory; its new name is in ret_path. */
static bool set_aside(const char *directory, char ret_path[PATH_BYTES])
{
    size_t len = strlen(directory);
    while (len > 1 && directory[len - 1] == '/')
        len--;
    int lock = take_lock(directory);
    if (lock < 0)
        return false;
    unsigned number = 0;
    do
        snprintf(ret_path, PATH_BYTES, "%.*s.damaged-%u", (int)len, directory, ++number);
    while (access(ret_path, F_OK) == 0 && number < ASIDE_MAX);
    bool done = rename(directory, ret_path) == 0;
    int reason = errno;
    close(lock);
    errno = reason;
    return done;
}

struct store *store_open(const struct store_leveldb_config *config, enum store_damage damage,
                         const struct log *log, char *error, size_t error_len)
{
    bool damaged = false;
    char reason[512] = "", aside[PATH_BYTES];
    struct store *store = try_open(config, damage, reason, sizeof(reason), &damaged);
    if (store)
        return store;
    if (!damaged) {
        snprintf(error, error_len, "%s", reason);
        return NULL;
    }
    if (damage == STORE_REFUSE_DAMAGE) {
        snprintf(error, error_len,
                 "the store is damaged: %s. To set it aside and start empty, give "
                 "--discard-damaged-store (to `tidemark region restart %s`, or to `tidemark up`): "
                 "global tables are then filled again by their other Regions, tables of this "
                 "Region alone are lost",
                 reason, log->region);
        return NULL;
    }
    if (!set_aside(config->directory, aside)) {
        snprintf(error, error_len, "the store is damaged (%s) and cannot be set aside: %s", reason,
                 strerror(errno));
        return NULL;
    }
    log_line(log, TRACE_WARN,
             "the store is damaged: %s. It has been set aside as %s; starting empty: global tables "
             "are filled again by their other Regions, tables of this Region alone are lost",
             reason, aside);
    return try_open(config, damage, error, error_len, &damaged);
}
