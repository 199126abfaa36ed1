/* SPDX-License-Identifier: Apache-2.0 */
/* Readers never pass the end and change nothing when they refuse; what writers write, readers read.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "conflict/base/crc32c.h"
#include "conflict/base/rng.h"

static void fixed_numbers_round_trip(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_append_u8(&buf, 0xab);
    buf_append_be16(&buf, 0x1234);
    buf_append_be32(&buf, 0xdeadbeef);
    buf_append_be64(&buf, 0x0123456789abcdef);
    assert_int_equal(buf.len, 15);
    struct bytes rest = buf_view(&buf);
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    assert_true(bytes_take_u8(&rest, &u8) && u8 == 0xab);
    assert_true(bytes_take_be16(&rest, &u16) && u16 == 0x1234);
    assert_true(bytes_take_be32(&rest, &u32) && u32 == 0xdeadbeef);
    assert_true(bytes_take_be64(&rest, &u64) && u64 == 0x0123456789abcdef);
    assert_int_equal(rest.len, 0);
    assert_false(bytes_take_u8(&rest, &u8));
    buf_deinit(&buf);
}

static void varints_round_trip_and_cut_ones_are_refused(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t value = rng_next(&rng) >> rng_below(&rng, 64);
        uint8_t bytes[VARINT_LEN_MAX];
        size_t len = varint_encode(bytes, value);
        assert_int_equal(len, varint_len(value));
        uint64_t back = 0;
        for (size_t cut = 0; cut < len; cut++) {
            struct bytes rest = bytes_make(bytes, cut);
            assert_false(bytes_take_varint(&rest, &back));
            assert_int_equal(rest.len, cut);
        }
        struct bytes rest = bytes_make(bytes, len);
        assert_true(bytes_take_varint(&rest, &back));
        assert_true(back == value && rest.len == 0);
    }
}

static void varints_have_one_form(void **state)
{
    (void)state;
    uint64_t value;
    struct bytes padded = bytes_make("\x80\x00", 2);
    assert_false(bytes_take_varint(&padded, &value));
    struct bytes overlong = bytes_make("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
    assert_false(bytes_take_varint(&overlong, &value));
    struct bytes largest = bytes_make("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    assert_true(bytes_take_varint(&largest, &value));
    assert_true(value == UINT64_MAX);
}

static void prefixed_runs_are_bounded_by_what_is_there(void **state)
{
    (void)state;
    struct bytes run;
    struct bytes lying = bytes_make("\x05"
                                    "abcd",
                                    5);
    assert_false(bytes_take_prefixed(&lying, &run));
    assert_int_equal(lying.len, 5);
    struct bytes huge = bytes_make("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 11);
    assert_false(bytes_take_prefixed(&huge, &run));
    struct bytes right = bytes_make("\x04"
                                    "abcde",
                                    6);
    assert_true(bytes_take_prefixed(&right, &run));
    assert_true(bytes_is(run, "abcd") && bytes_is(right, "e"));
}

static void order_is_unsigned_and_prefix_first(void **state)
{
    (void)state;
    assert_int_equal(bytes_compare(bytes_text("a"), bytes_text("ab")), -1);
    assert_int_equal(bytes_compare(bytes_make("\xff", 1), bytes_make("\x01", 1)), 1);
    assert_int_equal(bytes_compare(BYTES_NONE, BYTES_NONE), 0);
}

static void checksum_matches_published_values(void **state)
{
    (void)state;
    /* RFC 3720, appendix B.4, and the usual check string. */
    uint8_t zeros[32] = {0};
    assert_true(crc32c(0, bytes_make(zeros, 32)) == 0x8a9136aa);
    assert_true(crc32c(0, bytes_text("123456789")) == 0xe3069283);
    uint32_t split = crc32c(crc32c(0, bytes_text("1234")), bytes_text("56789"));
    assert_true(split == 0xe3069283);
}

static void arena_reuses_its_first_block(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    void *first = arena_alloc(&arena, 100);
    assert_int_equal((uintptr_t)first % 16, 0);
    arena_alloc(&arena, 100000);
    assert_int_equal((uintptr_t)arena_alloc(&arena, 1) % 16, 0);
    arena_reset(&arena);
    assert_ptr_equal(arena_alloc(&arena, 100), first);
    arena_deinit(&arena);
}

static void draws_stay_in_range_and_repeat(void **state)
{
    (void)state;
    struct rng a, b;
    rng_init(&a, 42);
    rng_init(&b, 42);
    uint32_t seen[10] = {0};
    for (int i = 0; i < 10000; i++) {
        uint64_t value = rng_below(&a, 10);
        assert_true(value < 10 && value == rng_below(&b, 10));
        seen[value]++;
    }
    for (int i = 0; i < 10; i++)
        assert_true(seen[i] > 800 && seen[i] < 1200);
}

static void decimals_are_what_printf_writes(void **state)
{
    (void)state;
    for (int shift = 0; shift < 64; shift++) {
        for (uint64_t around = 0; around < 3; around++) {
            uint64_t value = ((uint64_t)1 << shift) - 1 + around;
            char expected[DECIMAL_LEN_MAX + 1], found[DECIMAL_LEN_MAX];
            snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);
            size_t len = decimal_encode(found, value);
            assert_int_equal(len, strlen(expected));
            assert_memory_equal(found, expected, len);
        }
    }
    char longest[DECIMAL_LEN_MAX];
    assert_int_equal(decimal_encode(longest, UINT64_MAX), DECIMAL_LEN_MAX);
    assert_memory_equal(longest, "18446744073709551615", DECIMAL_LEN_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_numbers_round_trip),
        cmocka_unit_test(varints_round_trip_and_cut_ones_are_refused),
        cmocka_unit_test(varints_have_one_form),
        cmocka_unit_test(decimals_are_what_printf_writes),
        cmocka_unit_test(prefixed_runs_are_bounded_by_what_is_there),
        cmocka_unit_test(order_is_unsigned_and_prefix_first),
        cmocka_unit_test(checksum_matches_published_values),
        cmocka_unit_test(arena_reuses_its_first_block),
        cmocka_unit_test(draws_stay_in_range_and_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
