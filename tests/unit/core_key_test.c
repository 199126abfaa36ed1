/* SPDX-License-Identifier: Apache-2.0 */
/* Row keys: their order is that of hash, partition key, sort key, compared one after the other; one
 * collection's keys lie between its prefix and the prefix's end; partitions cover the hashes. */

#include "region/core/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "tests/lib/value_text.h"

/* Few letters, so that prefixes of one another, zeros and 0xff are common. */
static struct value draw(struct rng *rng, uint8_t at[8])
{
    static const uint8_t letters[] = {0x00, 0x01, 0x61, 0xff};
    size_t len = rng_below(rng, 5);
    for (size_t i = 0; i < len; i++)
        at[i] = letters[rng_below(rng, sizeof(letters))];
    return (struct value){.type = VALUE_B, .payload = {at, len}};
}

/* Without the hash, which scatters. */
static int twin_compare(struct value a_hash, struct value a_range, struct value b_hash,
                        struct value b_range)
{
    int order = bytes_compare(a_hash.payload, b_hash.payload);
    return order ? order : bytes_compare(a_range.payload, b_range.payload);
}

static struct bytes without_hash(const struct buf *key)
{
    return bytes_make(key->at + 8, key->len - 8);
}

static void test_order_against_twin(void **state)
{
    struct rng rng;
    struct buf a = {0}, b = {0}, end = {0};
    rng_init(&rng, 1);
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint8_t at[4][8];
        struct value a_hash = draw(&rng, at[0]), a_range = draw(&rng, at[1]);
        struct value b_hash = draw(&rng, at[2]), b_range = draw(&rng, at[3]);
        buf_reset(&a);
        buf_reset(&b);
        buf_reset(&end);
        key_write_hash(&a, a_hash);
        assert_true(key_prefix_end(buf_view(&a), &end));
        size_t prefix_len = a.len;
        key_write_range(&a, a_range);
        key_write_hash(&b, b_hash);
        key_write_range(&b, b_range);
        assert_int_equal(bytes_compare(without_hash(&a), without_hash(&b)),
                         twin_compare(a_hash, a_range, b_hash, b_range));
        bool same_partition = bytes_equal(a_hash.payload, b_hash.payload);
        bool inside = bytes_compare(bytes_make(a.at, prefix_len), buf_view(&b)) <= 0 &&
                      bytes_compare(buf_view(&b), buf_view(&end)) < 0;
        assert_int_equal(inside, same_partition);
        assert_int_equal(key_hash64(buf_view(&a)) == key_hash64(buf_view(&b)), same_partition);
    }
    buf_deinit(&a);
    buf_deinit(&b);
    buf_deinit(&end);
}

static void test_number_order(void **state)
{
    static const char *const ascending[] = {"-1e125", "-10", "-9.5", "-9", "-1e-130", "0",
                                            "1e-130", "1",   "1.5",  "2",  "10",      "1e125"};
    struct arena arena;
    struct buf before = {0}, key = {0};
    (void)state;
    arena_init(&arena);
    for (size_t i = 0; i < array_len(ascending); i++) {
        buf_reset(&key);
        key_write_hash(&key, value_of_text(&arena, "'p'"));
        key_write_range(&key, value_of_text(&arena, ascending[i]));
        if (i)
            assert_int_equal(bytes_compare(buf_view(&before), buf_view(&key)), -1);
        struct buf swap = before;
        before = key;
        key = swap;
    }
    buf_deinit(&before);
    buf_deinit(&key);
    arena_deinit(&arena);
}

static void test_prefix_end(void **state)
{
    struct buf end = {0};
    (void)state;
    assert_false(key_prefix_end(BYTES_NONE, &end));
    assert_false(key_prefix_end(bytes_literal("\xff\xff"), &end));
    assert_int_equal(end.len, 0);
    assert_true(key_prefix_end(bytes_literal("a\xff"), &end));
    assert_true(bytes_is(buf_view(&end), "b"));
    buf_deinit(&end);
}

static void test_partitions(void **state)
{
    struct rng rng;
    rng_init(&rng, 2);
    (void)state;
    for (uint32_t count = 1; count <= TABLE_PARTITIONS_MAX; count++) {
        uint8_t key[8];
        be64_encode(key, 0);
        assert_int_equal(key_partition(bytes_make(key, 8), count), 0);
        be64_encode(key, UINT64_MAX);
        assert_int_equal(key_partition(bytes_make(key, 8), count), count - 1);
        assert_true(key_partition_start(0, count) == 0);
        for (uint32_t index = 1; index < count; index++) {
            uint64_t start = key_partition_start(index, count);
            be64_encode(key, start);
            assert_int_equal(key_partition(bytes_make(key, 8), count), index);
            be64_encode(key, start - 1);
            assert_int_equal(key_partition(bytes_make(key, 8), count), index - 1);
        }
        uint64_t hash = rng_next(&rng);
        be64_encode(key, hash);
        uint32_t index = key_partition(bytes_make(key, 8), count);
        assert_true(key_partition_start(index, count) <= hash);
        assert_true(index + 1 == count || key_partition_start(index + 1, count) > hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_against_twin),
        cmocka_unit_test(test_number_order),
        cmocka_unit_test(test_prefix_end),
        cmocka_unit_test(test_partitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
