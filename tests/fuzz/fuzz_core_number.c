/* SPDX-License-Identifier: Apache-2.0 */
/* Number texts and number encodings: what is accepted comes back the same, by every road. */

#include "conflict/base/check.h"
#include "region/core/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct bytes text, struct number *ret)
{
    uint8_t encoded[NUMBER_ENCODED_MAX];
    char printed[NUMBER_TEXT_MAX];
    struct number again;
    *ret = (struct number){0};
    if (number_parse(text, ret) != NUMBER_OK)
        return;
    struct bytes run = {encoded, number_encode(ret, encoded)};
    check(number_decode(run, &again));
    check(number_compare(ret, &again) == 0);
    check(number_size(run) <= NUMBER_ENCODED_MAX);
    size_t len = number_format_encoded(run, printed);
    check(len <= NUMBER_TEXT_MAX);
    check(number_parse(bytes_make(printed, len), &again) == NUMBER_OK);
    check(number_compare(ret, &again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text = {data, size};
    struct number number, left, right, sum, back;
    uint8_t encoded[NUMBER_ENCODED_MAX];
    check_text(text, &number);
    if (number_decode(text, &number)) {
        check(number_encode(&number, encoded) == size);
        check(memcmp(encoded, data, size) == 0);
    }
    /* Two texts around a blank are added, and the sum is undone where that is exact. */
    const uint8_t *blank = size ? memchr(data, ' ', size) : NULL;
    if (!blank)
        return 0;
    size_t len = (size_t)(blank - data);
    check_text(bytes_make(data, len), &left);
    check_text(bytes_make(blank + 1, size - len - 1), &right);
    if (number_add(&left, &right, &sum) == NUMBER_OK &&
        number_subtract(&sum, &right, &back) == NUMBER_OK)
        check(number_compare(&back, &left) == 0);
    return 0;
}
