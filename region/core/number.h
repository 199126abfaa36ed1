/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_NUMBER_H
#define REGION_NUMBER_H

/* DynamoDB's number: exact decimal, up to 38 significant digits, magnitude 1E-130 up to
 * 9.99...E125. One encoding serves items and keys: memcmp order is numeric order, equal numbers
 * have equal bytes, and the length is known from the outside (it is not self-delimiting). */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

enum {
    NUMBER_DIGITS_MAX = 38,
    NUMBER_ENCODED_MAX = 24, /* bytes */
    NUMBER_TEXT_MAX = 170    /* characters, no NUL */
};

struct number {
    bool negative;      /* false for zero */
    uint8_t digits_len; /* 0 for zero; no leading and no trailing zero digit */
    int16_t exponent;   /* value = 0.d1d2d3... * 10^exponent */
    uint8_t digits[NUMBER_DIGITS_MAX];
};

enum number_outcome {
    NUMBER_OK = 0,
    NUMBER_NOT_NUMERIC = 1,
    NUMBER_OVERFLOW = 2,   /* magnitude too large */
    NUMBER_UNDERFLOW = 3,  /* magnitude too small, not zero */
    NUMBER_TOO_PRECISE = 4 /* more than 38 significant digits */
};

/* Accepts what AWS accepts: sign, digits with one point, exponent; no blanks, no NaN. */
enum number_outcome number_parse(struct bytes text, struct number *ret);
/* AWS's text form: plain digits, no exponent. Returns the length. */
size_t number_format(const struct number *number, char to[NUMBER_TEXT_MAX]);
size_t number_encode(const struct number *number, uint8_t to[NUMBER_ENCODED_MAX]);
/* False for anything number_encode does not write. */
bool number_decode(struct bytes from, struct number *ret);
/* Straight from the encoding to text, for the read path. */
size_t number_format_encoded(struct bytes encoded, char to[NUMBER_TEXT_MAX]);

int number_compare(const struct number *a, const struct number *b);
/* Exact or an outcome: TOO_PRECISE, OVERFLOW, UNDERFLOW. */
enum number_outcome number_add(const struct number *a, const struct number *b, struct number *ret);
enum number_outcome number_subtract(const struct number *a, const struct number *b,
                                    struct number *ret);
/* Bytes a number counts towards item size, as AWS measures: one, plus one per two significant
 * digits on either side of the point, each side rounded up, plus one for a minus. */
size_t number_size(struct bytes encoded);
/* For limits and counts: false when it is not an integer in [0, UINT64_MAX]. */
bool number_to_u64(const struct number *number, uint64_t *ret);
/* Straight to the encoding, for counts and sizes. */
size_t number_encode_u64(uint64_t value, uint8_t to[NUMBER_ENCODED_MAX]);
/* AWS's text for any outcome but NUMBER_OK. For NUMBER_NOT_NUMERIC the caller adds ": " and the
 * text that was sent, unless that is empty. */
const char *number_outcome_message(enum number_outcome outcome);

#endif
