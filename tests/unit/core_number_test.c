/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers against AWS's measured limits and sizes, and the arithmetic against a twin that works on
 * 400 decimal places in plain view. */

#include "region/core/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/check.h"
#include "conflict/base/rng.h"

static struct number number_of(const char *text)
{
    struct number number;
    assert_int_equal(number_parse(bytes_text(text), &number), NUMBER_OK);
    return number;
}

static const char *text_of(const struct number *number)
{
    static char text[NUMBER_TEXT_MAX + 1];
    size_t len = number_format(number, text);
    assert_true(len <= NUMBER_TEXT_MAX);
    text[len] = '\0';
    return text;
}

static void test_parse_and_format(void **state)
{
    static const char *const pairs[][2] = {
        {"0", "0"},
        {"-0", "0"},
        {"000", "0"},
        {"0.000", "0"},
        {"1", "1"},
        {"+1", "1"},
        {"-1", "-1"},
        {"0042.1200", "42.12"},
        {".5", "0.5"},
        {"5.", "5"},
        {"1e2", "100"},
        {"1E+2", "100"},
        {"1e-2", "0.01"},
        {"-12.5e1", "-125"},
        {"10", "10"},
        {"99", "99"},
        {"100.01", "100.01"},
        {"0.0000001", "0.0000001"},
        {"9876543210123450000000000000000000000000", "9876543210123450000000000000000000000000"},
        {"12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
        {"0e125", "0"},
        {"1.5e10", "15000000000"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(pairs); i++) {
        struct number number = number_of(pairs[i][0]);
        assert_string_equal(text_of(&number), pairs[i][1]);
    }
    struct number big = number_of("1E125");
    assert_int_equal(strlen(text_of(&big)), 126);
    struct number small = number_of("-1.2345678901234567890123456789012345678E-130");
    assert_int_equal(strlen(text_of(&small)), NUMBER_TEXT_MAX);
}

static void test_limits(void **state)
{
    static const struct {
        const char *text;
        enum number_outcome outcome;
    } cases[] = {
        {"9.99999999E125", NUMBER_OK},
        {"1E-130", NUMBER_OK},
        {"-1E-130", NUMBER_OK},
        {"1E126", NUMBER_OVERFLOW},
        {"10E125", NUMBER_OVERFLOW},
        {"-1E126", NUMBER_OVERFLOW},
        {"1E-131", NUMBER_UNDERFLOW},
        {"0.1E-130", NUMBER_UNDERFLOW},
        {"0e126", NUMBER_OVERFLOW},
        {"0e-131", NUMBER_UNDERFLOW},
        {"1e99999999999", NUMBER_OVERFLOW},
        {"1e-99999999999", NUMBER_UNDERFLOW},
        {"1e2147483648", NUMBER_OVERFLOW},
        {"1e9223372036854775807", NUMBER_OVERFLOW},
        {"1e9223372036854775808", NUMBER_NOT_NUMERIC},
        {"1e-9223372036854775808", NUMBER_UNDERFLOW},
        {"1e-9223372036854775809", NUMBER_NOT_NUMERIC},
        {"123456789012345678901234567890123456789", NUMBER_TOO_PRECISE},
        {"1.00000000000000000000000000000000000001", NUMBER_TOO_PRECISE},
        {"99999999999999999999999999999999999999", NUMBER_OK},
        {"NaN", NUMBER_NOT_NUMERIC},
        {"1 ", NUMBER_NOT_NUMERIC},
        {" 1", NUMBER_NOT_NUMERIC},
        {"", NUMBER_NOT_NUMERIC},
        {"-", NUMBER_NOT_NUMERIC},
        {".", NUMBER_NOT_NUMERIC},
        {"e5", NUMBER_NOT_NUMERIC},
        {"1e", NUMBER_NOT_NUMERIC},
        {"1e+", NUMBER_NOT_NUMERIC},
        {"1.2.3", NUMBER_NOT_NUMERIC},
        {"--1", NUMBER_NOT_NUMERIC},
        {"0x1", NUMBER_NOT_NUMERIC},
        {"Infinity", NUMBER_NOT_NUMERIC},
    };
    (void)state;
    struct number number;
    for (size_t i = 0; i < array_len(cases); i++) {
        if (number_parse(bytes_text(cases[i].text), &number) != cases[i].outcome)
            fail_msg("%s", cases[i].text);
    }
    assert_int_equal(number_parse(bytes_make("1\0", 2), &number), NUMBER_NOT_NUMERIC);
}

/* The sizes that paritysuite measured on AWS, to the byte. */
static void test_size(void **state)
{
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        {"0", 1},
        {"1", 2},
        {"12", 2},
        {"123", 3},
        {"1234", 3},
        {"0042", 2},
        {"100", 2},
        {"1010", 3},
        {"0.0000001", 2},
        {"1E125", 2},
        {"1E-100", 2},
        {"1.5", 3},
        {"15", 2},
        {"1.2", 3},
        {"1.200", 3},
        {"1.234", 4},
        {"3.14159", 5},
        {"123456", 4},
        {"100.5", 4},
        {"0.15", 2},
        {"-42", 3},
        {"-0", 1},
        {"12345678901234567890123456789012345678", 20},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct number number = number_of(cases[i].text);
        uint8_t encoded[NUMBER_ENCODED_MAX];
        size_t len = number_encode(&number, encoded);
        if (number_size(bytes_make(encoded, len)) != cases[i].size)
            fail_msg("%s", cases[i].text);
    }
}

/* The twin: a number as a row of digits from 10^199 down to 10^-200. */
enum { PLACES = 400, POINT = 200 };

struct twin {
    bool negative;
    int digits[PLACES];
};

static void twin_of(const struct number *number, struct twin *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->negative = number->negative;
    for (int i = 0; i < number->digits_len; i++)
        ret->digits[POINT - number->exponent + i] = number->digits[i];
}

static int twin_magnitude(const struct twin *a, const struct twin *b)
{
    for (int i = 0; i < PLACES; i++) {
        if (a->digits[i] != b->digits[i])
            return a->digits[i] < b->digits[i] ? -1 : 1;
    }
    return 0;
}

static int twin_compare(const struct twin *a, const struct twin *b)
{
    int order = twin_magnitude(a, b);
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? -order : order;
}

static void twin_add(const struct twin *a, const struct twin *b, struct twin *ret)
{
    bool swap = twin_magnitude(a, b) < 0;
    const struct twin *big = swap ? b : a, *little = swap ? a : b;
    int sign = big->negative == little->negative ? 1 : -1;
    int carry = 0;
    ret->negative = big->negative;
    for (int i = PLACES - 1; i >= 0; i--) {
        int digit = big->digits[i] + sign * little->digits[i] + carry;
        carry = digit < 0 ? -1 : digit > 9;
        ret->digits[i] = digit - 10 * carry;
    }
}

/* What number_add must say of that sum. */
static enum number_outcome twin_close(const struct twin *twin, struct number *ret)
{
    int first = 0, last = PLACES - 1;
    while (first < PLACES && !twin->digits[first])
        first++;
    while (last > first && !twin->digits[last])
        last--;
    memset(ret, 0, sizeof(*ret));
    if (first == PLACES)
        return NUMBER_OK;
    if (last - first >= NUMBER_DIGITS_MAX)
        return NUMBER_TOO_PRECISE;
    if (POINT - first > 126)
        return NUMBER_OVERFLOW;
    if (POINT - first < -129)
        return NUMBER_UNDERFLOW;
    ret->negative = twin->negative;
    ret->exponent = (int16_t)(POINT - first);
    ret->digits_len = (uint8_t)(last - first + 1);
    for (int i = first; i <= last; i++)
        ret->digits[i - first] = (uint8_t)twin->digits[i];
    return NUMBER_OK;
}

/* Few digits and near exponents as often as all of them, so that carries and cancellations happen.
 */
static struct number draw(struct rng *rng)
{
    struct number number = {0};
    if (rng_one_in(rng, 20))
        return number;
    number.negative = rng_one_in(rng, 2);
    number.digits_len = (uint8_t)rng_between(rng, 1, rng_one_in(rng, 2) ? 38 : 3);
    bool nines = rng_one_in(rng, 3);
    for (int i = 0; i < number.digits_len; i++)
        number.digits[i] = nines ? 9 : (uint8_t)rng_below(rng, 10);
    if (!number.digits[0])
        number.digits[0] = 1;
    if (!number.digits[number.digits_len - 1])
        number.digits[number.digits_len - 1] = 1;
    int exponent = rng_one_in(rng, 3) ? (int)rng_between(rng, 0, 255) - 129
                                      : (int)rng_between(rng, 0, 80) - 40;
    if (rng_one_in(rng, 10))
        exponent = rng_one_in(rng, 2) ? 126 : -129;
    number.exponent = (int16_t)exponent;
    return number;
}

static bool same(const struct number *a, const struct number *b)
{
    return a->negative == b->negative && a->digits_len == b->digits_len &&
           (!a->digits_len || a->exponent == b->exponent) &&
           memcmp(a->digits, b->digits, a->digits_len) == 0;
}

static void test_arithmetic_against_twin(void **state)
{
    struct rng rng;
    rng_init(&rng, 7);
    int outcomes[5] = {0};
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct number a = draw(&rng), b = draw(&rng), got, want;
        if (rng_one_in(&rng, 8)) {
            b = a;
            b.negative = a.digits_len && !a.negative;
        }
        struct twin twin_a, twin_b, twin_sum;
        twin_of(&a, &twin_a);
        twin_of(&b, &twin_b);
        assert_int_equal(number_compare(&a, &b), twin_compare(&twin_a, &twin_b));
        twin_add(&twin_a, &twin_b, &twin_sum);
        enum number_outcome wanted = twin_close(&twin_sum, &want);
        enum number_outcome outcome = number_add(&a, &b, &got);
        /* A sum may be wrong in two ways at once; which one is told is free. */
        assert_int_equal(outcome == NUMBER_OK, wanted == NUMBER_OK);
        outcomes[outcome]++;
        if (outcome == NUMBER_OK)
            assert_true(same(&got, &want));
        twin_b.negative = b.digits_len && !b.negative;
        twin_add(&twin_a, &twin_b, &twin_sum);
        wanted = twin_close(&twin_sum, &want);
        outcome = number_subtract(&a, &b, &got);
        assert_int_equal(outcome == NUMBER_OK, wanted == NUMBER_OK);
        if (outcome == NUMBER_OK)
            assert_true(same(&got, &want));
        outcome = number_add(&a, &b, &a); /* into itself */
        (void)outcome;
    }
    assert_true(outcomes[NUMBER_OK] > 1000);
    assert_true(outcomes[NUMBER_OVERFLOW] > 10);
    assert_true(outcomes[NUMBER_TOO_PRECISE] > 1000);
}

static void test_encoding_order(void **state)
{
    struct rng rng;
    rng_init(&rng, 11);
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct number a = draw(&rng), b = draw(&rng), back;
        if (rng_one_in(&rng, 2))
            b.exponent = a.exponent;
        uint8_t a_at[NUMBER_ENCODED_MAX], b_at[NUMBER_ENCODED_MAX];
        char direct[NUMBER_TEXT_MAX], through[NUMBER_TEXT_MAX];
        struct bytes a_bytes = {a_at, number_encode(&a, a_at)};
        struct bytes b_bytes = {b_at, number_encode(&b, b_at)};
        assert_true(a_bytes.len <= NUMBER_ENCODED_MAX);
        assert_int_equal(bytes_compare(a_bytes, b_bytes), number_compare(&a, &b));
        assert_true(number_decode(a_bytes, &back));
        assert_true(same(&a, &back));
        size_t len = number_format_encoded(a_bytes, direct);
        assert_int_equal(number_parse(bytes_make(direct, len), &back), NUMBER_OK);
        assert_true(same(&a, &back));
        assert_int_equal(number_format(&a, through), len);
        assert_memory_equal(direct, through, len);
    }
}

/* Every run of up to three bytes: what decodes is what encodes to the same bytes. */
static void test_decode_is_strict(void **state)
{
    (void)state;
    int decoded = 0;
    for (uint32_t all = 0; all < 1u << 24; all += 1 + all % 7) {
        uint8_t run[3] = {(uint8_t)(all >> 16), (uint8_t)(all >> 8), (uint8_t)all};
        for (size_t len = 1; len <= 3; len++) {
            struct number number;
            uint8_t again[NUMBER_ENCODED_MAX];
            if (!number_decode(bytes_make(run, len), &number))
                continue;
            decoded++;
            assert_int_equal(number_encode(&number, again), len);
            assert_memory_equal(again, run, len);
        }
    }
    assert_true(decoded > 1000);
    struct number number;
    assert_false(number_decode(BYTES_NONE, &number));
}

static void test_u64(void **state)
{
    static const uint64_t values[] = {
        0,         1, 9, 10, 99, 100, 101, 12345, 409600, 1u << 31, UINT64_MAX / 10, UINT64_MAX - 5,
        UINT64_MAX};
    static const char *const refused[] = {"-1",   "0.5",   "18446744073709551616",
                                          "1e20", "1e125", "10.5"};
    (void)state;
    for (size_t i = 0; i < array_len(values); i++) {
        uint8_t encoded[NUMBER_ENCODED_MAX];
        char text[NUMBER_TEXT_MAX], want[32];
        struct number number;
        uint64_t back;
        size_t len = number_encode_u64(values[i], encoded);
        assert_true(number_decode(bytes_make(encoded, len), &number));
        assert_true(number_to_u64(&number, &back));
        assert_true(back == values[i]);
        snprintf(want, sizeof(want), "%llu", (unsigned long long)values[i]);
        size_t text_len = number_format(&number, text);
        assert_int_equal(text_len, strlen(want));
        assert_memory_equal(text, want, text_len);
    }
    for (size_t i = 0; i < array_len(refused); i++) {
        struct number number = number_of(refused[i]);
        uint64_t value;
        assert_false(number_to_u64(&number, &value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_and_format),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_arithmetic_against_twin),
        cmocka_unit_test(test_encoding_order),
        cmocka_unit_test(test_decode_is_strict),
        cmocka_unit_test(test_u64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
