/* SPDX-License-Identifier: Apache-2.0 */
/* The memory store against a sorted array, on random operations. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "region/core/store.h"

enum { KEYS = 64, KEY_LEN_MAX = 3 };

struct twin {
    uint8_t key[KEYS][KEY_LEN_MAX];
    size_t key_len[KEYS];
    uint8_t value[KEYS];
    bool present[KEYS];
};

static struct bytes twin_key(const struct twin *twin, uint32_t i)
{
    return bytes_make(twin->key[i], twin->key_len[i]);
}

/* Distinct keys of one to three bytes over four letters, neighbours of each other. */
static void twin_init(struct twin *twin)
{
    static const uint8_t letters[4] = {0x00, 0x01, 0x7f, 0xff};
    *twin = (struct twin){0};
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t number = i;
        /* Bijective numeration in base four: every word once, short ones first. */
        do {
            twin->key[i][twin->key_len[i]++] = letters[number % 4];
            number = number / 4;
        } while (number-- > 0);
    }
}

static int order(const void *a, const void *b)
{
    const struct bytes *left = a, *right = b;
    return bytes_compare(*left, *right);
}

static bool inside(struct bytes key, const struct store_read *read)
{
    return bytes_compare(key, read->begin) >= 0 && bytes_compare(key, read->end) < 0;
}

/* What the store should return, by looking at everything. */
static void check_range(const struct twin *twin, struct store *store, const struct store_read *read)
{
    struct bytes keys[KEYS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        if (twin->present[i] && inside(twin_key(twin, i), read))
            keys[count++] = twin_key(twin, i);
    }
    qsort(keys, count, sizeof(keys[0]), order);
    struct store_rows rows;
    assert_int_equal(store->ops->read(store, read, &rows), STORE_OK);
    uint64_t bytes = 0;
    uint32_t expected = 0;
    while (expected < count && expected < read->rows_max && bytes < read->bytes_max) {
        struct bytes key = read->reverse ? keys[count - 1 - expected] : keys[expected];
        assert_true(expected < rows.count);
        assert_true(bytes_equal(rows.at[expected].key, key));
        bytes += key.len + rows.at[expected].value.len;
        expected++;
    }
    assert_int_equal(rows.count, expected);
    assert_int_equal(rows.more, expected < count);
}

static void check_points(const struct twin *twin, struct store *store)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        struct store_read read = {.begin = twin_key(twin, i)};
        struct store_rows rows;
        assert_int_equal(store->ops->read(store, &read, &rows), STORE_OK);
        assert_int_equal(rows.count, twin->present[i]);
        if (rows.count)
            assert_int_equal(rows.at[0].value.at[0], twin->value[i]);
    }
}

static void agrees_with_a_sorted_array(void **state)
{
    (void)state;
    struct rng rng;
    struct twin twin;
    struct store *store = store_mem_new();
    struct buf batch;
    buf_init(&batch);
    rng_init(&rng, 7);
    twin_init(&twin);
    for (int round = 0; round < 400; round++) {
        buf_reset(&batch);
        for (uint64_t n = rng_below(&rng, 6); n > 0; n--) {
            uint32_t i = (uint32_t)rng_below(&rng, KEYS);
            bool put = !rng_one_in(&rng, 3);
            uint8_t value = (uint8_t)rng_next(&rng);
            twin.present[i] = put;
            twin.value[i] = value;
            if (put)
                store_batch_put(&batch, twin_key(&twin, i), bytes_make(&value, 1));
            else
                store_batch_delete(&batch, twin_key(&twin, i));
        }
        assert_int_equal(store->ops->write(store, buf_view(&batch), false), STORE_OK);
        uint32_t a = (uint32_t)rng_below(&rng, KEYS), b = (uint32_t)rng_below(&rng, KEYS);
        struct store_read read = {
            .range = true,
            .reverse = rng_one_in(&rng, 2),
            .begin = twin_key(&twin, a),
            .end = twin_key(&twin, b),
            .rows_max = (uint32_t)rng_between(&rng, 1, 20),
            .bytes_max = rng_between(&rng, 1, 60),
        };
        check_range(&twin, store, &read);
    }
    buf_deinit(&batch);
    store->ops->free(store);
}

static void points_and_values(void **state)
{
    (void)state;
    struct twin twin;
    struct store *store = store_mem_new();
    struct buf batch;
    buf_init(&batch);
    twin_init(&twin);
    for (uint32_t i = 0; i < KEYS; i += 3) {
        twin.present[i] = true;
        twin.value[i] = (uint8_t)i;
        store_batch_put(&batch, twin_key(&twin, i), bytes_literal("first"));
        store_batch_put(&batch, twin_key(&twin, i), bytes_make(&twin.value[i], 1));
    }
    assert_int_equal(store->ops->write(store, buf_view(&batch), true), STORE_OK);
    check_points(&twin, store);
    buf_deinit(&batch);
    store->ops->free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_sorted_array),
        cmocka_unit_test(points_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
