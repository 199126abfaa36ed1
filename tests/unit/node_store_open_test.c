/* SPDX-License-Identifier: Apache-2.0 */
/* Turned bits in real files: a store either says that it is damaged, or holds all that was durable;
 * never less in silence. And what becomes of a damaged store. */

#include "region/store_open.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "conflict/base/rng.h"
#include "region/store_tail.h"

/* ---- Logs, from memory ---- */

static void append_record(struct buf *to, uint8_t type, struct bytes data)
{
    uint32_t crc = crc32c(crc32c(0, bytes_make(&type, 1)), data);
    uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8u;
    for (int i = 0; i < 4; i++)
        buf_append_u8(to, (uint8_t)(masked >> 8 * i));
    buf_append_u8(to, (uint8_t)data.len);
    buf_append_u8(to, (uint8_t)(data.len >> 8));
    buf_append_u8(to, type);
    buf_append_bytes(to, data);
}

static void fill(struct buf *log, size_t *ends, int count)
{
    struct rng rng;
    rng_init(&rng, 7);
    for (int i = 0; i < count; i++) {
        uint8_t data[300];
        size_t len = rng_between(&rng, 0, sizeof(data));
        for (size_t j = 0; j < len; j++)
            data[j] = (uint8_t)rng_next(&rng);
        append_record(log, 1, bytes_make(data, len));
        ends[i] = log->len;
    }
}

static void test_torn_tails_are_sound(void **state)
{
    (void)state;
    struct buf log = {0};
    size_t ends[20];
    fill(&log, ends, 20);
    for (size_t len = 0; len <= log.len; len++)
        assert_true(store_tail_sound(bytes_make(log.at, len)));
    size_t whole = log.len;
    for (int i = 0; i < 500; i++)
        buf_append_u8(&log, 0);
    assert_true(store_tail_sound(buf_view(&log)));
    for (size_t len = whole; len < log.len; len++)
        assert_true(store_tail_sound(bytes_make(log.at, len)));
    buf_deinit(&log);
}

/* Every length that points beyond the end, in every record. */
static void test_damaged_lengths_are_found(void **state)
{
    (void)state;
    struct buf log = {0};
    size_t ends[20], begin = 0;
    fill(&log, ends, 20);
    unsigned found = 0;
    for (int i = 0; i < 20; begin = ends[i++]) {
        for (int bit = 0; bit < 16; bit++) {
            uint8_t *byte = log.at + begin + 4 + bit / 8;
            *byte ^= (uint8_t)(1 << bit % 8);
            size_t len = (size_t)log.at[begin + 4] | (size_t)log.at[begin + 5] << 8;
            if (begin + 7 + len > log.len) {
                assert_false(store_tail_sound(buf_view(&log)));
                found++;
            }
            *byte ^= (uint8_t)(1 << bit % 8);
        }
    }
    assert_true(found > 100);
    memset(log.at + ends[9], 0, 7); /* a lost sector in the middle */
    assert_false(store_tail_sound(buf_view(&log)));
    buf_deinit(&log);
}

/* ---- Stores, on disk ---- */

enum { ROWS = 40 };

struct fixture {
    char root[64], directory[128];
    struct log log;
};

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static int setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    snprintf(fixture->root, sizeof(fixture->root), "/tmp/tidemark-open-XXXXXX");
    check(mkdtemp(fixture->root) != NULL);
    snprintf(fixture->directory, sizeof(fixture->directory), "%s/store", fixture->root);
    fixture->log = (struct log){open("/dev/null", O_WRONLY | O_CLOEXEC), TRACE_ERROR, "us-east-1"};
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    close(fixture->log.file);
    nftw(fixture->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

static struct store *open_store(const struct fixture *fixture, enum store_damage damage,
                                char *error, size_t error_len)
{
    struct store_leveldb_config config = {
        .directory = fixture->directory, .cache_bytes = 1 << 20, .write_buffer_bytes = 64 << 10};
    error[0] = '\0';
    return store_open(&config, damage, &fixture->log, error, error_len);
}

static void put_rows(struct store *store, uint8_t tag)
{
    for (uint8_t i = 0; i < ROWS; i++) {
        uint8_t key[] = {tag, i}, value[200];
        memset(value, i + 1, sizeof(value));
        struct buf batch = {0};
        store_batch_put(&batch, bytes_make(key, 2), bytes_make(value, i * 5));
        assert_int_equal(store->ops->write(store, buf_view(&batch), false), STORE_OK);
        buf_deinit(&batch);
    }
}

/* How many of put_rows' are there, or -1 if that cannot be read. */
static int count_rows(struct store *store, uint8_t tag)
{
    int count = 0;
    for (uint8_t i = 0; i < ROWS; i++) {
        uint8_t key[] = {tag, i};
        struct store_read read = {.begin = bytes_make(key, 2)};
        struct store_rows rows = {0};
        if (store->ops->read(store, &read, &rows) != STORE_OK)
            return -1;
        count += rows.count == 1 && rows.at[0].value.len == i * 5u;
    }
    return count;
}

/* Opened twice, LevelDB turns its log into a table; the log then holds the rows of the second. */
static void make_store(const struct fixture *fixture)
{
    char error[512];
    for (uint8_t tag = 0x20; tag <= 0x21; tag++) {
        struct store *store = open_store(fixture, STORE_REFUSE_DAMAGE, error, sizeof(error));
        assert_non_null(store);
        put_rows(store, tag);
        store->ops->free(store);
    }
}

struct image {
    uint32_t count;
    struct {
        char name[64];
        struct buf content;
    } at[16];
};

static void path_of(const struct fixture *fixture, const char *name, char ret[512])
{
    snprintf(ret, 512, "%s/%s", fixture->directory, name);
}

static void image_take(const struct fixture *fixture, struct image *ret)
{
    DIR *dir = opendir(fixture->directory);
    check(dir != NULL);
    ret->count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[512];
        if (entry->d_name[0] == '.')
            continue;
        check(ret->count < array_len(ret->at));
        snprintf(ret->at[ret->count].name, sizeof(ret->at[0].name), "%.63s", entry->d_name);
        path_of(fixture, entry->d_name, path);
        struct buf *content = &ret->at[ret->count++].content;
        buf_init(content);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = read(file, buf_reserve(content, 1 << 20), 1 << 20);
        check(len >= 0);
        content->len = (size_t)len;
        close(file);
    }
    closedir(dir);
}

/* The directory anew, as it was. */
static void image_restore(const struct fixture *fixture, const struct image *image)
{
    nftw(fixture->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    check(mkdir(fixture->directory, 0700) == 0);
    for (uint32_t i = 0; i < image->count; i++) {
        char path[512];
        path_of(fixture, image->at[i].name, path);
        int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        struct bytes content = buf_view(&image->at[i].content);
        check(write(file, content.at, content.len) == (ssize_t)content.len);
        close(file);
    }
}

static void image_free(struct image *image)
{
    for (uint32_t i = 0; i < image->count; i++)
        buf_deinit(&image->at[i].content);
}

/* Opens with all care; true when it was refused. Otherwise everything must be there. */
static bool refused_or_whole(const struct fixture *fixture, const char *name, size_t bit)
{
    char error[512];
    struct store *store = open_store(fixture, STORE_REFUSE_DAMAGE, error, sizeof(error));
    if (!store) {
        if (!strstr(error, "--discard-damaged-store"))
            fail_msg("%s, bit %zu: %s", name, bit, error);
        return true;
    }
    int first = count_rows(store, 0x20), second = count_rows(store, 0x21);
    bool table = strstr(name, ".ldb") != NULL; /* its blocks are checked when they are read */
    if (!(first == ROWS || (table && first == -1)) || second != ROWS)
        fail_msg("%s, bit %zu: %d and %d rows of %d are there, and nobody said so", name, bit,
                 first, second, ROWS);
    store->ops->free(store);
    return false;
}

static void test_a_bit_anywhere(void **state)
{
    struct fixture *fixture = *state;
    struct image image;
    struct rng rng;
    rng_init(&rng, 3);
    make_store(fixture);
    image_take(fixture, &image);
    unsigned logs = 0, log_bits = 0, refused = 0;
    for (uint32_t i = 0; i < image.count; i++) {
        const char *name = image.at[i].name;
        struct buf *content = &image.at[i].content;
        if (strcmp(name, "LOCK") == 0 || strncmp(name, "LOG", 3) == 0 || content->len == 0)
            continue;
        bool log = strstr(name, ".log") || strstr(name, "MANIFEST");
        size_t bits = content->len * 8;
        logs += log;
        /* All bits of what is short, a share of the others. */
        for (size_t bit = 0; bit < bits;
             bit += bits < 1600 ? 4 : rng_between(&rng, 1, bits / 150)) {
            content->at[bit / 8] ^= (uint8_t)(1 << bit % 8);
            image_restore(fixture, &image);
            bool found = refused_or_whole(fixture, name, bit);
            log_bits += log;
            refused += log && found;
            content->at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    assert_int_equal(logs, 2);
    assert_true(refused * 10 > log_bits * 9);
    image_free(&image);
}

/* The lengths in the log's own records are what LevelDB would let pass. */
static void test_every_length_of_a_log(void **state)
{
    struct fixture *fixture = *state;
    struct image image;
    make_store(fixture);
    image_take(fixture, &image);
    for (uint32_t i = 0; i < image.count; i++) {
        struct buf *content = &image.at[i].content;
        if (!strstr(image.at[i].name, ".log"))
            continue;
        for (size_t at = 0; at + 7 <= content->len;) {
            size_t len = (size_t)content->at[at + 4] | (size_t)content->at[at + 5] << 8;
            for (size_t bit = 32 + at % 3; bit < 48; bit += 3) {
                uint8_t *byte = content->at + at + bit / 8;
                *byte ^= (uint8_t)(1 << bit % 8);
                image_restore(fixture, &image);
                assert_true(refused_or_whole(fixture, image.at[i].name, at * 8 + bit));
                *byte ^= (uint8_t)(1 << bit % 8);
            }
            at += 7 + len;
        }
    }
    image_free(&image);
}

/* ---- Setting aside ---- */

static void turn_bit(const struct fixture *fixture, const char *suffix)
{
    struct image image;
    image_take(fixture, &image);
    bool turned = false;
    for (uint32_t i = 0; i < image.count; i++) {
        struct buf *content = &image.at[i].content;
        if (strstr(image.at[i].name, suffix) && content->len > 20) {
            content->at[content->len / 4] ^= 0x10;
            turned = true;
        }
    }
    check(turned);
    image_restore(fixture, &image);
    image_free(&image);
}

static void test_is_set_aside_on_request(void **state)
{
    struct fixture *fixture = *state;
    static const char *const files[] = {".log", ".ldb", "MANIFEST"};
    char error[512], aside[160];
    for (unsigned i = 0; i < array_len(files); i++) {
        make_store(fixture);
        turn_bit(fixture, files[i]);
        struct store *store = open_store(fixture, STORE_DISCARD_DAMAGE, error, sizeof(error));
        if (!store)
            fail_msg("%s: %s", files[i], error);
        assert_int_equal(count_rows(store, 0x20), 0);
        put_rows(store, 0x20);
        store->ops->free(store);
        snprintf(aside, sizeof(aside), "%s.damaged-%u", fixture->directory, i + 1);
        assert_int_equal(access(aside, F_OK), 0);
        nftw(fixture->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    /* One that is sound stays. */
    make_store(fixture);
    struct store *store = open_store(fixture, STORE_DISCARD_DAMAGE, error, sizeof(error));
    assert_int_equal(count_rows(store, 0x21), ROWS);
    store->ops->free(store);
    snprintf(aside, sizeof(aside), "%s.damaged-4", fixture->directory);
    assert_int_not_equal(access(aside, F_OK), 0);
}

static void test_one_in_use_is_not_moved(void **state)
{
    struct fixture *fixture = *state;
    char error[512], more[512];
    make_store(fixture);
    struct store *store = open_store(fixture, STORE_REFUSE_DAMAGE, error, sizeof(error));
    assert_non_null(store);
    assert_null(open_store(fixture, STORE_DISCARD_DAMAGE, more, sizeof(more)));
    assert_non_null(strstr(more, "in use"));
    assert_int_equal(count_rows(store, 0x20), ROWS);
    store->ops->free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torn_tails_are_sound),
        cmocka_unit_test(test_damaged_lengths_are_found),
        cmocka_unit_test_setup_teardown(test_a_bit_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_length_of_a_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_is_set_aside_on_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_in_use_is_not_moved, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
