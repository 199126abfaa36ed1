/* SPDX-License-Identifier: Apache-2.0 */
/* The LevelDB store against the store in memory on random operations, and against what a disk does:
 * restarts, a second process, damaged files, no space left. */

#include "region/store_leveldb.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "tests/lib/scratch.h"

struct fixture {
    char directory[64];
    struct store *store;
};

static struct store *open_at(const char *directory)
{
    char error[512] = "";
    bool damaged;
    struct store *store = store_leveldb_open(
        &(struct store_leveldb_config){
            .directory = directory, .cache_bytes = 1 << 20, .write_buffer_bytes = 64 << 10},
        error, sizeof(error), &damaged);
    if (!store)
        fail_msg("%s", error);
    return store;
}

static int setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/tidemark-store-XXXXXX");
    check(mkdtemp(fixture->directory) != NULL);
    fixture->store = open_at(fixture->directory);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    if (fixture->store)
        fixture->store->ops->free(fixture->store);
    remove_directory(fixture->directory);
    free(fixture);
    return 0;
}

static void reopen_store(struct fixture *fixture)
{
    fixture->store->ops->free(fixture->store);
    fixture->store = open_at(fixture->directory);
}

static enum store_outcome put_one(struct store *store, const char *key, struct bytes value)
{
    struct buf batch cleanup(buf_deinit);
    buf_init(&batch);
    store_batch_put(&batch, bytes_text(key), value);
    return store->ops->write(store, buf_view(&batch), true);
}

static enum store_outcome get_one(struct store *store, const char *key, struct store_rows *ret)
{
    struct store_read read = {.begin = bytes_text(key)};
    return store->ops->read(store, &read, ret);
}

/* ---- The twin ---- */

static void compare_rows(const struct store_rows *a, const struct store_rows *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->more, b->more);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_true(bytes_equal(a->at[i].key, b->at[i].key));
        assert_true(bytes_equal(a->at[i].value, b->at[i].value));
    }
}

static void compare_read(struct store *a, struct store *b, const struct store_read *read)
{
    struct store_rows from_a, from_b;
    assert_int_equal(a->ops->read(a, read, &from_a), STORE_OK);
    assert_int_equal(b->ops->read(b, read, &from_b), STORE_OK);
    compare_rows(&from_a, &from_b);
}

/* Few letters and short, so that keys collide, prefix each other and hold 0x00 and 0xff. */
static struct bytes random_key(struct rng *rng, uint8_t *to)
{
    static const uint8_t letters[] = {0x00, 'a', 'b', 0xff};
    size_t len = rng_between(rng, 1, 4);
    for (size_t i = 0; i < len; i++)
        to[i] = letters[rng_below(rng, sizeof(letters))];
    return bytes_make(to, len);
}

static void random_batch(struct rng *rng, struct buf *batch)
{
    static const uint8_t filler[3000] = {1, 2, 3};
    for (uint64_t i = rng_between(rng, 1, 8); i > 0; i--) {
        uint8_t key[8];
        struct bytes at = random_key(rng, key);
        if (rng_one_in(rng, 4)) {
            /* Counters are rows of their own, few and often, so that one batch has several of one.
             */
            uint8_t counter[] = {1, (uint8_t)rng_below(rng, 3)};
            at = bytes_make(counter, sizeof(counter));
            if (rng_one_in(rng, 5))
                store_batch_delete(batch, at);
            else
                store_batch_replace(batch, at, bytes_make(filler, rng_below(rng, 40)));
        } else if (rng_one_in(rng, 3))
            store_batch_delete(batch, at);
        else
            store_batch_put(batch, at, bytes_make(filler, rng_below(rng, sizeof(filler))));
    }
}

static void test_equals_memory(void **state)
{
    struct fixture *fixture = *state;
    struct store *twin = store_mem_new();
    struct rng rng;
    rng_init(&rng, 7);
    for (int round = 0; round < 3000; round++) {
        struct buf batch cleanup(buf_deinit);
        buf_init(&batch);
        random_batch(&rng, &batch);
        assert_int_equal(twin->ops->write(twin, buf_view(&batch), false), STORE_OK);
        assert_int_equal(fixture->store->ops->write(fixture->store, buf_view(&batch), false),
                         STORE_OK);

        uint8_t begin[8], end[8];
        struct store_read read = {.range = rng_one_in(&rng, 2),
                                  .reverse = rng_one_in(&rng, 2),
                                  .begin = random_key(&rng, begin),
                                  .end = random_key(&rng, end),
                                  .rows_max = (uint32_t)rng_between(&rng, 1, 40),
                                  .bytes_max = rng_between(&rng, 1, 20000)};
        compare_read(fixture->store, twin, &read);
        if (rng_one_in(&rng, 500))
            reopen_store(fixture);
    }
    for (int reverse = 0; reverse < 2; reverse++) {
        struct store_read all = {.range = true,
                                 .reverse = reverse,
                                 .begin = BYTES_NONE,
                                 .end = bytes_literal("\xff\xff\xff\xff\xff"),
                                 .rows_max = 100000,
                                 .bytes_max = UINT64_MAX};
        compare_read(fixture->store, twin, &all);
    }
    twin->ops->free(twin);
}

/* ---- The disk ---- */

static void test_survives_reopening(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(put_one(fixture->store, "key", bytes_literal("value")), STORE_OK);
    reopen_store(fixture);
    struct store_rows rows;
    assert_int_equal(get_one(fixture->store, "key", &rows), STORE_OK);
    assert_int_equal(rows.count, 1);
    assert_true(bytes_is(rows.at[0].key, "key"));
    assert_true(bytes_is(rows.at[0].value, "value"));
    assert_int_equal(get_one(fixture->store, "kez", &rows), STORE_OK);
    assert_int_equal(rows.count, 0);
}

/* LevelDB remembers what its own process has locked, and a fork inherits that memory but not the
 * lock: so the child asks the kernel. */
static bool locked_for_others(const char *directory)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/LOCK", directory);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int file = open(path, O_RDWR | O_CLOEXEC);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(file >= 0 && fcntl(file, F_SETLK, &lock) != 0 ? 0 : 1);
    }
    int status = 1;
    check(waitpid(child, &status, 0) == child);
    return status == 0;
}

static void test_second_opener_is_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_true(locked_for_others(fixture->directory));
    struct store_leveldb_config config = {fixture->directory, 1 << 20, 1 << 20, {0}};
    char error[512] = "";
    bool damaged;
    assert_null(store_leveldb_open(&config, error, sizeof(error), &damaged));
    assert_false(damaged);
    assert_non_null(strstr(error, "in use by this process"));
}

static void test_impossible_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char path[128], error[512] = "";
    snprintf(path, sizeof(path), "%s/CURRENT/below", fixture->directory);
    struct store_leveldb_config config = {path, 1 << 20, 1 << 20, {0}};
    bool damaged;
    assert_null(store_leveldb_open(&config, error, sizeof(error), &damaged));
    assert_false(damaged);
    assert_non_null(strstr(error, "cannot create data directory"));
    assert_non_null(strstr(error, "Not a directory"));
}

static void test_parents_are_created(void **state)
{
    struct fixture *fixture = *state;
    char path[128], parent[128];
    snprintf(parent, sizeof(parent), "%s/a", fixture->directory);
    snprintf(path, sizeof(path), "%s/a/b", fixture->directory);
    struct store *store = open_at(path);
    assert_int_equal(put_one(store, "key", bytes_literal("value")), STORE_OK);
    store->ops->free(store);
    remove_directory(path);
    assert_int_equal(rmdir(parent), 0);
}

/* Turns a bit in the middle of every table file. Returns how many there are. */
static int damage_tables(const char *directory)
{
    int damaged = 0;
    DIR *dir = opendir(directory);
    check(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".ldb") != 0)
            continue;
        int file = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC);
        struct stat info;
        uint8_t byte = 0;
        check(file >= 0 && fstat(file, &info) == 0);
        check(pread(file, &byte, 1, info.st_size / 3) == 1);
        byte ^= 0x10;
        check(pwrite(file, &byte, 1, info.st_size / 3) == 1);
        close(file);
        damaged++;
    }
    closedir(dir);
    return damaged;
}

static void fill(struct store *store, int keys)
{
    uint8_t value[1000];
    struct rng rng;
    rng_init(&rng, 3);
    for (int i = 0; i < keys; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key-%05d", i);
        for (size_t j = 0; j < sizeof(value); j++)
            value[j] = (uint8_t)rng_next(&rng);
        assert_int_equal(put_one(store, key, bytes_make(value, sizeof(value))), STORE_OK);
    }
}

static void test_damage_is_not_served(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture->store, 300);
    reopen_store(fixture); /* the log becomes a table */
    fixture->store->ops->free(fixture->store);
    assert_true(damage_tables(fixture->directory) > 0);
    fixture->store = open_at(fixture->directory);

    int corrupt = 0;
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key-%05d", i);
        struct store_rows rows;
        enum store_outcome outcome = get_one(fixture->store, key, &rows);
        assert_true(outcome == STORE_OK || outcome == STORE_CORRUPT);
        corrupt += outcome == STORE_CORRUPT;
        if (outcome == STORE_OK)
            assert_int_equal(rows.count, 1);
    }
    assert_true(corrupt > 0);
    struct store_read all = {.range = true,
                             .begin = BYTES_NONE,
                             .end = bytes_literal("z"),
                             .rows_max = 1000,
                             .bytes_max = UINT64_MAX};
    struct store_rows rows;
    assert_int_equal(fixture->store->ops->read(fixture->store, &all, &rows), STORE_CORRUPT);
}

/* ---- No space left ---- */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    check(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* A limit on the size of files stands for the full disk: LevelDB sees the same failed write. It
 * fails in the log here; with a small buffer, in a table that a compaction writes. */
static void test_full_disk_recovers(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    signal(SIGXFSZ, SIG_IGN);
    fill(store, 5);
    limit_files(40000);
    uint8_t value[1000] = {9};
    int written = 0;
    enum store_outcome outcome = STORE_OK;
    for (; outcome == STORE_OK && written < 1000; written++) {
        char key[16];
        snprintf(key, sizeof(key), "new-%05d", written);
        outcome = put_one(store, key, bytes_make(value, sizeof(value)));
    }
    assert_int_equal(outcome, STORE_FULL);
    assert_int_equal(put_one(store, "refused", bytes_literal("x")), STORE_FULL);

    /* Everything that was acknowledged is read, nothing that was refused is. */
    struct store_rows rows;
    assert_int_equal(get_one(store, "key-00004", &rows), STORE_OK);
    assert_int_equal(rows.count, 1);
    assert_int_equal(get_one(store, "new-00000", &rows), STORE_OK);
    assert_int_equal(rows.count, 1);
    assert_int_equal(get_one(store, "refused", &rows), STORE_OK);
    assert_int_equal(rows.count, 0);

    limit_files(RLIM_INFINITY);
    assert_int_equal(put_one(store, "after", bytes_literal("space")), STORE_OK);
    reopen_store(fixture);
    for (int i = 0; i < written; i++) {
        char key[16];
        snprintf(key, sizeof(key), "new-%05d", i);
        assert_int_equal(get_one(fixture->store, key, &rows), STORE_OK);
        assert_int_equal(rows.count, i < written - 1);
    }
    assert_int_equal(get_one(fixture->store, "after", &rows), STORE_OK);
    assert_int_equal(rows.count, 1);
}

/* The same by compaction: the log stays below the limit, a merged table does not. */
static void test_full_disk_in_compaction_recovers(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    signal(SIGXFSZ, SIG_IGN);
    fill(store, 200);
    limit_files(90000);
    enum store_outcome outcome = STORE_OK;
    uint8_t value[1000];
    struct rng rng;
    rng_init(&rng, 5);
    for (int i = 0; outcome == STORE_OK && i < 3000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key-%05d", (int)rng_below(&rng, 2000));
        for (size_t j = 0; j < sizeof(value); j++)
            value[j] = (uint8_t)rng_next(&rng);
        outcome = put_one(store, key, bytes_make(value, sizeof(value)));
    }
    assert_int_equal(outcome, STORE_FULL);
    struct store_rows rows;
    assert_int_equal(get_one(store, "key-00100", &rows), STORE_OK);
    assert_int_equal(rows.count, 1);
    limit_files(RLIM_INFINITY);
    assert_int_equal(put_one(store, "after", bytes_literal("space")), STORE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_equals_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_survives_reopening, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_opener_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_impossible_directory_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parents_are_created, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_not_served, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk_recovers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk_in_compaction_recovers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
