/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding, whose memcmp order is numeric order:
 *
 *   zero      80
 *   positive  80 + exponent   | digit + 1 ...                   exponent in base 100, offset 64
 *   negative  7f - exponent   | 101 - digit ... | 66            digits in base 100
 *
 * value = 0.D1D2... * 100^exponent, D1 and the last digit not zero. The digits of a negative number
 * are complemented, and 66 (hex), greater than any of them, ends it: of two negative numbers the
 * one that is longer is the smaller. Positive digits are at least 1, so that keys rarely need
 * escapes. */

#include "region/core/number.h"

#include <string.h>

#include "conflict/base/check.h"

enum {
    EXPONENT_MAX = 126,
    EXPONENT_MIN = -129,
    EXPONENT_OFFSET = 64, /* of the base 100 exponent */
    POSITIVE = 0x80,
    NEGATIVE = 0x7f,
    NEGATIVE_END = 0x66,
    PAIRS_MAX = 20, /* 38 digits, when the first pair holds one */
    WIDTH_MAX = 40  /* of an exact sum that can fit 38 digits; see number_sum */
};

const char *number_outcome_message(enum number_outcome outcome)
{
    switch (outcome) {
    case NUMBER_NOT_NUMERIC:
        return "The parameter cannot be converted to a numeric value";
    case NUMBER_OVERFLOW:
        return "Number overflow. Attempting to store a number with magnitude larger than supported "
               "range";
    case NUMBER_UNDERFLOW:
        return "Number underflow. Attempting to store a number with magnitude smaller than "
               "supported range";
    case NUMBER_TOO_PRECISE:
        return "Attempting to store more than 38 significant digits in a Number";
    case NUMBER_OK:
        break;
    }
    unreachable();
}

/* What the characters before the exponent say. */
struct mantissa {
    struct number number; /* exponent unset */
    int64_t exponent;     /* of number, before the written one is added */
    int64_t zeros;        /* after the last digit that is kept */
    int64_t fraction_len;
    bool digit_seen;
    bool point_seen;
    bool too_precise;
};

static void mantissa_add(struct mantissa *m, uint8_t digit)
{
    struct number *number = &m->number;
    m->digit_seen = true;
    if (m->point_seen)
        m->fraction_len++;
    if (number->digits_len == 0 && digit == 0) {
        m->exponent -= m->point_seen;
        return;
    }
    m->exponent += !m->point_seen;
    if (digit == 0) {
        m->zeros++;
        return;
    }
    if (m->too_precise || number->digits_len + m->zeros >= NUMBER_DIGITS_MAX) {
        m->too_precise = true;
        return;
    }
    memset(number->digits + number->digits_len, 0, (size_t)m->zeros);
    number->digits_len = (uint8_t)(number->digits_len + m->zeros + 1);
    number->digits[number->digits_len - 1] = digit;
    m->zeros = 0;
}

/* The characters after E. AWS reads the exponent as a 64-bit integer: a larger one is no number at
 * all, a smaller one is out of range. What is returned is cut to where that makes no difference. */
static bool exponent_parse(struct bytes text, int64_t *ret)
{
    bool negative = text.len && text.at[0] == '-';
    size_t i = text.len && (text.at[0] == '-' || text.at[0] == '+');
    if (i == text.len)
        return false;
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    uint64_t value = 0;
    for (; i < text.len; i++) {
        uint8_t digit = (uint8_t)(text.at[i] - '0');
        if (digit > 9 || value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    int64_t cut = value > (uint64_t)1 << 40 ? (int64_t)1 << 40 : (int64_t)value;
    *ret = negative ? -cut : cut;
    return true;
}

enum number_outcome number_parse(struct bytes text, struct number *ret)
{
    struct mantissa m = {0};
    int64_t exponent = 0;
    size_t i = text.len && (text.at[0] == '-' || text.at[0] == '+');
    for (; i < text.len; i++) {
        uint8_t digit = (uint8_t)(text.at[i] - '0');
        if (digit <= 9) {
            mantissa_add(&m, digit);
        } else if (text.at[i] == '.' && !m.point_seen) {
            m.point_seen = true;
        } else if ((text.at[i] | 0x20) == 'e') {
            if (!exponent_parse(bytes_make(text.at + i + 1, text.len - i - 1), &exponent))
                return NUMBER_NOT_NUMERIC;
            break;
        } else {
            return NUMBER_NOT_NUMERIC;
        }
    }
    if (!m.digit_seen)
        return NUMBER_NOT_NUMERIC;
    if (m.too_precise)
        return NUMBER_TOO_PRECISE;
    bool zero = m.number.digits_len == 0;
    /* Zero is held to the range by the exponent it is written with, as AWS does. */
    exponent += zero ? 1 - m.fraction_len : m.exponent;
    if (exponent > EXPONENT_MAX)
        return NUMBER_OVERFLOW;
    if (exponent < EXPONENT_MIN)
        return NUMBER_UNDERFLOW;
    *ret = m.number;
    if (!zero) {
        ret->exponent = (int16_t)exponent;
        ret->negative = text.at[0] == '-';
    }
    return NUMBER_OK;
}

/* A number's decimal digits and where the point is, for printing and measuring. */
struct decimal {
    bool negative;
    int exponent;
    size_t len;
    const char *digits;
    char pairs[2 * PAIRS_MAX];
};

static size_t decimal_format(const struct decimal *from, char *to)
{
    char *at = to;
    size_t exponent = (size_t)(from->exponent > 0 ? from->exponent : 0);
    if (from->negative)
        *at++ = '-';
    if (exponent == 0) {
        size_t zeros = (size_t)-from->exponent;
        *at++ = '0';
        *at++ = '.';
        memset(at, '0', zeros);
        memcpy(at + zeros, from->digits, from->len);
        at += zeros + from->len;
    } else if (exponent >= from->len) {
        memcpy(at, from->digits, from->len);
        memset(at + from->len, '0', exponent - from->len);
        at += exponent;
    } else {
        memcpy(at, from->digits, exponent);
        at[exponent] = '.';
        memcpy(at + exponent + 1, from->digits + exponent, from->len - exponent);
        at += from->len + 1;
    }
    return (size_t)(at - to);
}

/* Of an encoding that number_encode wrote and that is not zero. */
static void decimal_open(struct bytes encoded, struct decimal *ret)
{
    bool negative = encoded.at[0] < POSITIVE;
    size_t count = encoded.len - 1 - negative;
    check(count >= 1);
    check(count <= PAIRS_MAX);
    for (size_t i = 0; i < count; i++) {
        uint8_t byte = encoded.at[1 + i];
        int pair = (negative ? 101 - byte : byte - 1) % 100;
        ret->pairs[2 * i] = (char)('0' + pair / 10);
        ret->pairs[2 * i + 1] = (char)('0' + pair % 10);
    }
    int biased = negative ? NEGATIVE - encoded.at[0] : encoded.at[0] - POSITIVE;
    bool one_first = ret->pairs[0] == '0';
    ret->negative = negative;
    ret->exponent = 2 * (biased - EXPONENT_OFFSET) - one_first;
    ret->digits = ret->pairs + one_first;
    ret->len = 2 * count - one_first - (ret->pairs[2 * count - 1] == '0');
}

size_t number_format_encoded(struct bytes encoded, char to[NUMBER_TEXT_MAX])
{
    if (encoded.len <= 1) {
        to[0] = '0';
        return 1;
    }
    struct decimal decimal;
    decimal_open(encoded, &decimal);
    return decimal_format(&decimal, to);
}

size_t number_format(const struct number *number, char to[NUMBER_TEXT_MAX])
{
    uint8_t encoded[NUMBER_ENCODED_MAX];
    return number_format_encoded(bytes_make(encoded, number_encode(number, encoded)), to);
}

size_t number_size(struct bytes encoded)
{
    if (encoded.len <= 1)
        return 1;
    /* As decimal_open does, but looking only at what counts. */
    bool negative = encoded.at[0] < POSITIVE;
    size_t count = encoded.len - 1 - negative;
    uint8_t first = encoded.at[1], last = encoded.at[count];
    int biased = negative ? NEGATIVE - encoded.at[0] : encoded.at[0] - POSITIVE;
    bool one_first = negative ? first > 101 - 10 : first < 1 + 10;
    bool zero_last = (negative ? 101 - last : last - 1) % 10 == 0;
    int exponent = 2 * (biased - EXPONENT_OFFSET) - one_first;
    size_t len = 2 * count - one_first - zero_last;
    size_t whole = exponent <= 0 ? 0 : (size_t)exponent < len ? (size_t)exponent : len;
    return 1 + (whole + 1) / 2 + (len - whole + 1) / 2 + negative;
}

size_t number_encode(const struct number *number, uint8_t to[NUMBER_ENCODED_MAX])
{
    if (number->digits_len == 0) {
        to[0] = POSITIVE;
        return 1;
    }
    check(number->exponent >= EXPONENT_MIN);
    check(number->exponent <= EXPONENT_MAX);
    /* The shift rounds down, also below zero; an odd exponent leaves one digit in the first pair.
     */
    int exponent = ((number->exponent + 1) >> 1) + EXPONENT_OFFSET;
    to[0] = (uint8_t)(number->negative ? NEGATIVE - exponent : POSITIVE + exponent);
    size_t len = 1;
    size_t i = 0;
    int pair = number->exponent & 1 ? number->digits[i++] : -1;
    for (; pair >= 0 || i < number->digits_len; pair = -1) {
        if (pair < 0) {
            uint8_t second = i + 1 < number->digits_len ? number->digits[i + 1] : 0;
            pair = number->digits[i] * 10 + second;
            i += 2;
        }
        to[len++] = (uint8_t)(number->negative ? 101 - pair : pair + 1);
    }
    if (number->negative)
        to[len++] = NEGATIVE_END;
    return len;
}

size_t number_encode_u64(uint64_t value, uint8_t to[NUMBER_ENCODED_MAX])
{
    struct number number = {0};
    uint8_t reversed[20];
    uint8_t len = 0;
    for (; value; value /= 10)
        reversed[len++] = (uint8_t)(value % 10);
    uint8_t zeros = 0;
    while (zeros < len && reversed[zeros] == 0)
        zeros++;
    for (uint8_t i = len; i > zeros; i--)
        number.digits[number.digits_len++] = reversed[i - 1];
    number.exponent = len;
    return number_encode(&number, to);
}

bool number_decode(struct bytes from, struct number *ret)
{
    if (from.len == 1 && from.at[0] == POSITIVE) {
        *ret = (struct number){0};
        return true;
    }
    if (from.len < 2)
        return false;
    bool negative = from.at[0] < POSITIVE;
    size_t count = from.len - 1;
    if (negative && from.at[count--] != NEGATIVE_END)
        return false;
    if (count < 1 || count > PAIRS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        int pair = negative ? 101 - from.at[1 + i] : from.at[1 + i] - 1;
        bool edge = i == 0 || i == count - 1;
        if (pair < edge || pair > 99)
            return false;
    }
    struct decimal decimal;
    decimal_open(from, &decimal);
    if (decimal.len > NUMBER_DIGITS_MAX)
        return false;
    *ret = (struct number){.negative = negative,
                           .digits_len = (uint8_t)decimal.len,
                           .exponent = (int16_t)decimal.exponent};
    for (size_t i = 0; i < decimal.len; i++)
        ret->digits[i] = (uint8_t)(decimal.digits[i] - '0');
    return true;
}

static int magnitude_compare(const struct number *a, const struct number *b)
{
    if (!a->digits_len || !b->digits_len)
        return (a->digits_len != 0) - (b->digits_len != 0);
    if (a->exponent != b->exponent)
        return a->exponent < b->exponent ? -1 : 1;
    return bytes_compare(bytes_make(a->digits, a->digits_len),
                         bytes_make(b->digits, b->digits_len));
}

int number_compare(const struct number *a, const struct number *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? magnitude_compare(b, a) : magnitude_compare(a, b);
}

/* digits[0..width], most significant first, digits[0] being worth 10^exponent. */
static enum number_outcome number_close(const uint8_t *digits, int width, int exponent,
                                        bool negative, struct number *ret)
{
    int first = 0;
    while (first <= width && digits[first] == 0)
        first++;
    int last = width;
    while (last > first && digits[last] == 0)
        last--;
    if (first > width) {
        *ret = (struct number){0};
        return NUMBER_OK;
    }
    exponent += 1 - first;
    int len = last - first + 1;
    if (exponent > EXPONENT_MAX)
        return NUMBER_OVERFLOW;
    if (exponent < EXPONENT_MIN)
        return NUMBER_UNDERFLOW;
    if (len > NUMBER_DIGITS_MAX)
        return NUMBER_TOO_PRECISE;
    *ret = (struct number){
        .negative = negative, .digits_len = (uint8_t)len, .exponent = (int16_t)exponent};
    memcpy(ret->digits, digits + first, (size_t)len);
    return NUMBER_OK;
}

/* |a| >= |b|. The lowest digit of the two stays in the sum when their lowest digits stand in
 * different places, and the highest moves down by one at most, so a sum wider than WIDTH_MAX cannot
 * fit; when they stand in one place the width is that of a number, 38. */
static enum number_outcome number_sum(const struct number *a, const struct number *b, bool add,
                                      struct number *ret)
{
    int low_a = a->exponent - a->digits_len;
    int low_b = b->exponent - b->digits_len;
    int width = a->exponent - (low_a < low_b ? low_a : low_b);
    if (width > WIDTH_MAX)
        return NUMBER_TOO_PRECISE;
    uint8_t digits[WIDTH_MAX + 1] = {0}; /* digits[0] takes a carry */
    memcpy(digits + 1, a->digits, a->digits_len);
    uint8_t *other = digits + 1 + (a->exponent - b->exponent);
    int carry = 0;
    for (int i = b->digits_len - 1; i >= 0; i--) {
        int digit = add ? other[i] + b->digits[i] + carry : other[i] - b->digits[i] - carry;
        carry = digit < 0 || digit > 9;
        other[i] = (uint8_t)(digit + (digit < 0 ? 10 : digit > 9 ? -10 : 0));
    }
    for (uint8_t *at = other - 1; carry; at--) {
        check(at >= digits);
        int digit = add ? *at + 1 : *at - 1;
        carry = digit < 0 || digit > 9;
        *at = (uint8_t)(digit < 0 ? 9 : digit > 9 ? 0 : digit);
    }
    return number_close(digits, width, a->exponent, a->negative, ret);
}

enum number_outcome number_add(const struct number *a, const struct number *b, struct number *ret)
{
    struct number copy_a = *a, copy_b = *b; /* ret may be one of them */
    if (!a->digits_len || !b->digits_len) {
        *ret = a->digits_len ? copy_a : copy_b;
        return NUMBER_OK;
    }
    bool add = a->negative == b->negative;
    if (magnitude_compare(a, b) >= 0)
        return number_sum(&copy_a, &copy_b, add, ret);
    return number_sum(&copy_b, &copy_a, add, ret);
}

enum number_outcome number_subtract(const struct number *a, const struct number *b,
                                    struct number *ret)
{
    struct number opposite = *b;
    opposite.negative = b->digits_len && !b->negative;
    return number_add(a, &opposite, ret);
}

bool number_to_u64(const struct number *number, uint64_t *ret)
{
    if (number->negative || (number->digits_len && number->exponent < number->digits_len) ||
        number->exponent > 20)
        return false;
    uint64_t value = 0;
    for (int i = 0; number->digits_len && i < number->exponent; i++) {
        uint64_t digit = i < number->digits_len ? number->digits[i] : 0;
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}
