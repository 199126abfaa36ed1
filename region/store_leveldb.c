/* SPDX-License-Identifier: Apache-2.0 */
/* LevelDB behind the store seam.
 *
 * A full disk needs care. When a write to its log fails, LevelDB 1.23 goes on with a log that has a
 * torn record in the middle, which a later recovery would refuse; when a compaction fails, it
 * refuses every write until it is opened anew. So after the first failure for lack of space nothing
 * more is written through that handle. It stays open for reads, which need no space, and each later
 * write first makes sure that there is room (by taking it, in a spare file), then closes the
 * database, gives the room back, and opens it again: recovery needs that room to turn its log into
 * a table. Readers wait for the swap on a lock. */

#include "region/store_leveldb.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <leveldb/c.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    BLOOM_BITS_PER_KEY = 10,
    OPEN_FILES_MAX = 500,
    SPARE_BYTES =
        1024 * 1024, /* beyond the two write buffers that a recovery may have to write out */
    SCRATCH_KEPT_MAX = 4 * 1024 * 1024 /* a range's memory beyond this is given back */
};

struct store_leveldb {
    struct store store;
    char *directory;
    size_t write_buffer_bytes;
    struct trace trace;

    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
    leveldb_readoptions_t *read_options;
    leveldb_writeoptions_t *write_options;
    leveldb_writebatch_t *batch; /* the writer's, reused */
    bool full;                   /* the writer's: see the head of the file */
    struct buf refused;          /* the writer's: what was refused when the disk became full */

    pthread_rwlock_t lock; /* held for reading while db is read, for writing while it is swapped */
    leveldb_t *db;

    /* The reader's: what the last read returned. */
    char *value;
    struct buf scratch;
    struct store_row *rows;
    uint32_t rows_cap;
};

static struct store_leveldb *self_of(struct store *store)
{
    return container_of(store, struct store_leveldb, store);
}

/* LevelDB's C API tells errors apart only by their text: "<kind>: <file>: <strerror>". */
static enum store_outcome outcome_of(const char *text)
{
    if (!text)
        return STORE_OK;
    static const int no_space[] = {ENOSPC, EDQUOT, EFBIG};
    for (size_t i = 0; i < array_len(no_space); i++) {
        char reason[128];
        if (strstr(text, strerror_r(no_space[i], reason, sizeof(reason))))
            return STORE_FULL;
    }
    return strncmp(text, "Corruption", strlen("Corruption")) == 0 ? STORE_CORRUPT : STORE_FAILED;
}

/* Takes the error text. */
static enum store_outcome outcome_take(const struct store_leveldb *self, char *text)
{
    enum store_outcome outcome = outcome_of(text);
    if (outcome == STORE_CORRUPT || outcome == STORE_FAILED)
        trace_emit(&self->trace, TRACE_ERROR, "storage: %s", text);
    leveldb_free(text);
    return outcome;
}

static void free_text(char **text)
{
    free(*text);
}

/* ---- Reading ---- */

static enum store_outcome read_one(struct store_leveldb *self, struct bytes key,
                                   struct store_rows *ret)
{
    char *error = NULL;
    size_t len = 0;
    self->value =
        leveldb_get(self->db, self->read_options, (const char *)key.at, key.len, &len, &error);
    if (error)
        return outcome_take(self, error);
    buf_append_bytes(&self->scratch, key);
    self->rows[0] = (struct store_row){buf_view(&self->scratch), bytes_make(self->value, len)};
    *ret = (struct store_rows){self->rows, self->value ? 1 : 0, false};
    return STORE_OK;
}

/* The row under the cursor, unless the range ends before it. */
static bool range_row(const leveldb_iterator_t *cursor, const struct store_read *read,
                      struct store_row *ret)
{
    if (!leveldb_iter_valid(cursor))
        return false;
    ret->key.at = (const uint8_t *)leveldb_iter_key(cursor, &ret->key.len);
    if (read->reverse ? bytes_compare(ret->key, read->begin) < 0
                      : bytes_compare(ret->key, read->end) >= 0)
        return false;
    ret->value.at = (const uint8_t *)leveldb_iter_value(cursor, &ret->value.len);
    return true;
}

static void range_seek(leveldb_iterator_t *cursor, const struct store_read *read)
{
    if (!read->reverse) {
        leveldb_iter_seek(cursor, (const char *)read->begin.at, read->begin.len);
        return;
    }
    leveldb_iter_seek(cursor, (const char *)read->end.at, read->end.len);
    if (leveldb_iter_valid(cursor))
        leveldb_iter_prev(cursor);
    else
        leveldb_iter_seek_to_last(cursor);
}

/* Copies the row behind the others; the addresses are set when all are there and scratch stands
 * still. */
static void range_keep(struct store_leveldb *self, uint32_t index, const struct store_row *row)
{
    if (index == self->rows_cap) {
        self->rows_cap *= 2;
        self->rows = xrealloc(self->rows, self->rows_cap * sizeof(*self->rows));
    }
    buf_append_bytes(&self->scratch, row->key);
    buf_append_bytes(&self->scratch, row->value);
    self->rows[index] = (struct store_row){{NULL, row->key.len}, {NULL, row->value.len}};
}

static enum store_outcome read_range(struct store_leveldb *self, const struct store_read *read,
                                     struct store_rows *ret)
{
    check(read->rows_max > 0);
    check(read->bytes_max > 0);
    leveldb_iterator_t *cursor = leveldb_create_iterator(self->db, self->read_options);
    range_seek(cursor, read);

    uint32_t count = 0;
    struct store_row row;
    bool found = range_row(cursor, read, &row);
    while (found && count < read->rows_max && self->scratch.len < read->bytes_max) {
        range_keep(self, count++, &row);
        if (read->reverse)
            leveldb_iter_prev(cursor);
        else
            leveldb_iter_next(cursor);
        found = range_row(cursor, read, &row);
    }
    char *error = NULL;
    leveldb_iter_get_error(cursor, &error);
    leveldb_iter_destroy(cursor);
    if (error)
        return outcome_take(self, error);

    const uint8_t *at = self->scratch.at;
    for (uint32_t i = 0; i < count; i++) {
        self->rows[i].key.at = at;
        at += self->rows[i].key.len;
        self->rows[i].value.at = at;
        at += self->rows[i].value.len;
    }
    *ret = (struct store_rows){self->rows, count, found};
    return STORE_OK;
}

static void forget_last_read(struct store_leveldb *self)
{
    leveldb_free(self->value);
    self->value = NULL;
    if (self->scratch.cap > SCRATCH_KEPT_MAX)
        buf_deinit(&self->scratch);
    buf_reset(&self->scratch);
}

static enum store_outcome leveldb_read(struct store *store, const struct store_read *read,
                                       struct store_rows *ret)
{
    struct store_leveldb *self = self_of(store);
    forget_last_read(self);
    pthread_rwlock_rdlock(&self->lock);
    enum store_outcome outcome =
        read->range ? read_range(self, read, ret) : read_one(self, read->begin, ret);
    pthread_rwlock_unlock(&self->lock);
    return outcome;
}

/* ---- Writing ---- */

/* Whether the database holds what the batch leaves behind. A batch is written whole or not at all,
 * so after a failure this tells which. Only the last operation on a key counts. */
static bool batch_is_there(struct store_leveldb *self, struct bytes batch)
{
    enum store_operation operation;
    struct bytes rest = batch, key, value;
    while (store_batch_take(&rest, &operation, &key, &value)) {
        enum store_operation later;
        struct bytes ahead = rest, later_key, later_value;
        bool superseded = false;
        while (!superseded && store_batch_take(&ahead, &later, &later_key, &later_value))
            superseded = bytes_equal(key, later_key);
        if (superseded)
            continue;
        char *error = NULL;
        size_t len = 0;
        char *found =
            leveldb_get(self->db, self->read_options, (const char *)key.at, key.len, &len, &error);
        bool there = operation != STORE_DELETE ? found && bytes_equal(bytes_make(found, len), value)
                                               : !found;
        leveldb_free(found);
        if (error || !there) {
            leveldb_free(error);
            return false;
        }
    }
    return true;
}

static char *spare_path(const struct store_leveldb *self)
{
    struct buf path;
    buf_init(&path);
    buf_printf(&path, "%s/spare", self->directory);
    buf_append_u8(&path, 0);
    return (char *)path.at;
}

/* Takes as much room as a recovery may need, and leaves it taken. */
static bool spare_take(const struct store_leveldb *self)
{
    char *path cleanup(free_text) = spare_path(self);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool taken = posix_fallocate(file, 0, (off_t)(2 * self->write_buffer_bytes + SPARE_BYTES)) == 0;
    close(file);
    if (!taken)
        unlink(path);
    return taken;
}

static void spare_give_back(const struct store_leveldb *self)
{
    char *path cleanup(free_text) = spare_path(self);
    unlink(path);
}

/* Opens the database anew if there is room for it. */
static enum store_outcome reopen(struct store_leveldb *self)
{
    if (!spare_take(self))
        return STORE_FULL;
    char *error = NULL;
    pthread_rwlock_wrlock(&self->lock);
    leveldb_close(self->db);
    spare_give_back(self);
    self->db = leveldb_open(self->options, self->directory, &error);
    pthread_rwlock_unlock(&self->lock);
    if (error) {
        /* Somebody else took the room in between. There is no database to read from any more: only
         * a restart helps, once there is space. */
        trace_emit(&self->trace, TRACE_ERROR,
                   "storage: the disk is full and the database cannot be opened again: %s", error);
        check(self->db != NULL);
    }
    self->full = false;
    trace_emit(&self->trace, TRACE_INFO, "storage: there is space again");
    return STORE_OK;
}

static void batch_put(struct store_leveldb *self, struct bytes key, struct bytes value)
{
    leveldb_writebatch_put(self->batch, (const char *)key.at, key.len, (const char *)value.at,
                           value.len);
}

/* Rows of STORE_REPLACE wait here until the end of the group, so that of the counters that every
 * write brings along only the last is written. */
struct replaced {
    uint32_t count;
    struct {
        struct bytes key, value;
    } at[64];
};

static uint32_t replaced_find(const struct replaced *replaced, struct bytes key)
{
    uint32_t i = 0;
    while (i < replaced->count && !bytes_equal(replaced->at[i].key, key))
        i++;
    return i;
}

static void batch_replace(struct store_leveldb *self, struct replaced *replaced, struct bytes key,
                          struct bytes value)
{
    uint32_t i = replaced_find(replaced, key);
    if (i == array_len(replaced->at)) {
        batch_put(self, key, value); /* more than fit: no harm, they are written in order */
        return;
    }
    replaced->at[i].key = key;
    replaced->at[i].value = value;
    if (i == replaced->count)
        replaced->count++;
}

static void batch_delete(struct store_leveldb *self, struct replaced *replaced, struct bytes key)
{
    uint32_t i = replaced_find(replaced, key);
    if (i < replaced->count)
        replaced->at[i] = replaced->at[--replaced->count];
    leveldb_writebatch_delete(self->batch, (const char *)key.at, key.len);
}

static enum store_outcome write_batch(struct store_leveldb *self, struct bytes batch, bool sync)
{
    leveldb_writebatch_clear(self->batch);
    struct replaced replaced = {.count = 0};
    enum store_operation operation;
    struct bytes rest = batch, key, value;
    while (store_batch_take(&rest, &operation, &key, &value)) {
        switch (operation) {
        case STORE_PUT:
            batch_put(self, key, value);
            break;
        case STORE_REPLACE:
            batch_replace(self, &replaced, key, value);
            break;
        case STORE_DELETE:
            batch_delete(self, &replaced, key);
            break;
        }
    }
    for (uint32_t i = 0; i < replaced.count; i++)
        batch_put(self, replaced.at[i].key, replaced.at[i].value);
    check(rest.len == 0);
    char *error = NULL;
    leveldb_writeoptions_set_sync(self->write_options, sync);
    leveldb_write(self->db, self->write_options, self->batch, &error);
    return outcome_take(self, error);
}

/* The first write after the disk was full. */
static enum store_outcome recover(struct store_leveldb *self)
{
    enum store_outcome outcome = reopen(self);
    if (outcome != STORE_OK)
        return outcome;
    /* A file system that reports a full disk only in fsync may leave a whole record in the log, and
     * the recovery brings back what its writer was told is not there. A restart believes only the
     * disk. */
    bool came_back = self->refused.len > 0 && batch_is_there(self, buf_view(&self->refused));
    check(!came_back);
    buf_deinit(&self->refused);
    return STORE_OK;
}

static enum store_outcome leveldb_write_all(struct store *store, struct bytes batch, bool sync)
{
    struct store_leveldb *self = self_of(store);
    enum store_outcome outcome = self->full ? recover(self) : STORE_OK;
    if (outcome != STORE_OK)
        return outcome;
    outcome = write_batch(self, batch, sync);
    if (outcome != STORE_FULL)
        return outcome;
    self->full = true;
    trace_emit(&self->trace, TRACE_WARN,
               "storage: no space left: writes are refused until there is some again");
    if (sync)
        buf_append_bytes(&self->refused, batch);
    return STORE_FULL;
}

/* ---- Life ---- */

static void leveldb_release(struct store *store)
{
    struct store_leveldb *self = self_of(store);
    forget_last_read(self);
    if (self->db)
        leveldb_close(self->db);
    leveldb_writebatch_destroy(self->batch);
    leveldb_writeoptions_destroy(self->write_options);
    leveldb_readoptions_destroy(self->read_options);
    leveldb_options_destroy(self->options);
    leveldb_filterpolicy_destroy(self->filter);
    leveldb_cache_destroy(self->cache);
    pthread_rwlock_destroy(&self->lock);
    buf_deinit(&self->scratch);
    buf_deinit(&self->refused);
    free(self->rows);
    free(self->directory);
    free(self);
}

static const struct store_ops leveldb_ops = {leveldb_read, leveldb_write_all, leveldb_release};

/* Like mkdir -p. False: errno. */
static bool make_directories(const char *directory)
{
    char *path cleanup(free_text) = xstrdup(directory);
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return false;
        *at = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static void set_options(struct store_leveldb *self, const struct store_leveldb_config *config)
{
    self->cache = leveldb_cache_create_lru(config->cache_bytes);
    self->filter = leveldb_filterpolicy_create_bloom(BLOOM_BITS_PER_KEY);
    self->options = leveldb_options_create();
    leveldb_options_set_create_if_missing(self->options, 1);
    leveldb_options_set_paranoid_checks(self->options, 1);
    leveldb_options_set_filter_policy(self->options, self->filter);
    leveldb_options_set_cache(self->options, self->cache);
    leveldb_options_set_write_buffer_size(self->options, config->write_buffer_bytes);
    leveldb_options_set_max_open_files(self->options, OPEN_FILES_MAX);
    leveldb_options_set_compression(self->options, leveldb_snappy_compression);
    self->read_options = leveldb_readoptions_create();
    leveldb_readoptions_set_verify_checksums(self->read_options, 1);
    self->write_options = leveldb_writeoptions_create();
    self->batch = leveldb_writebatch_create();
}

/* LevelDB's words, and ours where there is more to say. */
static void explain(const char *directory, const char *text, char *error, size_t error_len)
{
    if (strstr(text, "/LOCK") && strstr(text, "Resource temporarily unavailable"))
        snprintf(error, error_len, "data directory %s is in use by another process", directory);
    else if (strstr(text, "/LOCK") && strstr(text, "already held"))
        snprintf(error, error_len, "data directory %s is in use by this process", directory);
    else if (outcome_of(text) == STORE_CORRUPT)
        snprintf(error, error_len, "%s: %s", directory, text);
    else
        snprintf(error, error_len, "cannot open data directory %s: %s", directory, text);
}

struct store *store_leveldb_open(const struct store_leveldb_config *config, char *error,
                                 size_t error_len, bool *ret_damaged)
{
    *ret_damaged = false;
    if (!make_directories(config->directory)) {
        char reason[128];
        snprintf(error, error_len, "cannot create data directory %s: %s", config->directory,
                 strerror_r(errno, reason, sizeof(reason)));
        return NULL;
    }
    struct store_leveldb *self = xcalloc(1, sizeof(*self));
    self->store.ops = &leveldb_ops;
    self->directory = xstrdup(config->directory);
    self->write_buffer_bytes = config->write_buffer_bytes;
    self->trace = config->trace;
    self->rows_cap = 64;
    self->rows = xmalloc(self->rows_cap * sizeof(*self->rows));
    pthread_rwlock_init(&self->lock, NULL);
    set_options(self, config);

    spare_give_back(self); /* a crash may have left it */
    char *text = NULL;
    self->db = leveldb_open(self->options, self->directory, &text);
    if (text) {
        explain(self->directory, text, error, error_len);
        *ret_damaged = outcome_of(text) == STORE_CORRUPT;
        leveldb_free(text);
        leveldb_release(&self->store);
        return NULL;
    }
    return &self->store;
}
