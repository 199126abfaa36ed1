/* SPDX-License-Identifier: Apache-2.0 */
/* A number is taken as whole and billionths; units are whole, so that products stay exact until the
 * last division. */

#include "chaos/scenario/value.h"

#include "conflict/base/check.h"

#define BILLION UINT64_C(1000000000)

struct decimal {
    uint64_t whole;
    uint64_t billionths; /* below a billion */
};

static bool is_digit(struct bytes text)
{
    return text.len > 0 && *text.at >= '0' && *text.at <= '9';
}

static bool take_decimal(struct bytes *from, struct decimal *ret)
{
    struct bytes at = *from;
    struct decimal value = {0, 0};
    if (!is_digit(at))
        return false;
    for (; is_digit(at); at.at++, at.len--) {
        if (value.whole > (UINT64_MAX - 9) / 10)
            return false;
        value.whole = value.whole * 10 + (uint64_t)(*at.at - '0');
    }
    if (at.len > 0 && *at.at == '.') {
        uint64_t place = BILLION / 10;
        at.at++, at.len--;
        if (!is_digit(at))
            return false;
        for (; is_digit(at); at.at++, at.len--, place /= 10) {
            if (place == 0)
                return false;
            value.billionths += (uint64_t)(*at.at - '0') * place;
        }
    }
    *from = at;
    *ret = value;
    return true;
}

static bool take_text(struct bytes *from, const char *text)
{
    if (!bytes_starts_with(*from, bytes_text(text)))
        return false;
    size_t len = strlen(text);
    from->at += len;
    from->len -= len;
    return true;
}

/* value * unit, added to *sum. A unit above 2^30 is a multiple of a billion, so no product here is
 * too large and none is rounded but the last. */
static bool add_product(struct decimal value, uint64_t unit, uint64_t *sum)
{
    uint64_t part = unit <= UINT64_C(1) << 30 ? value.billionths * unit / BILLION
                                              : value.billionths * (unit / BILLION);
    if (value.whole > UINT64_MAX / unit)
        return false;
    uint64_t product = value.whole * unit;
    return !__builtin_add_overflow(product, part, &product) &&
           !__builtin_add_overflow(*sum, product, sum);
}

struct unit {
    const char *text;
    uint64_t size;
};

/* In an order in which no earlier text begins a later one. */
static const struct unit time_units[] = {{"ns", 1},           {"us", 1000},
                                         {"ms", 1000000},     {"s", BILLION},
                                         {"m", 60 * BILLION}, {"h", 3600 * BILLION}};
static const struct unit byte_units[] = {{"KiB", UINT64_C(1) << 10},
                                         {"MiB", UINT64_C(1) << 20},
                                         {"GiB", UINT64_C(1) << 30},
                                         {"kB", 1000},
                                         {"KB", 1000},
                                         {"MB", 1000000},
                                         {"GB", BILLION},
                                         {"B", 1}};
static const struct unit bit_units[] = {
    {"kbit", 125}, {"mbit", 125000}, {"Mbit", 125000}, {"gbit", 125000000}, {"Gbit", 125000000}};

static uint64_t take_unit(struct bytes *from, const struct unit *units, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (take_text(from, units[i].text))
            return units[i].size;
    return 0;
}

bool value_number(struct bytes text, double *ret)
{
    struct decimal value;
    if (!take_decimal(&text, &value) || text.len > 0)
        return false;
    *ret = (double)value.whole + (double)value.billionths / (double)BILLION;
    return true;
}

bool value_whole(struct bytes text, uint64_t *ret)
{
    struct decimal value;
    if (text.len > 0 && memchr(text.at, '.', text.len) != NULL)
        return false;
    if (!take_decimal(&text, &value) || text.len > 0)
        return false;
    *ret = value.whole;
    return true;
}

static bool with_sign(uint64_t size, bool negative, int64_t *ret)
{
    if (size > INT64_MAX)
        return false;
    *ret = negative ? -(int64_t)size : (int64_t)size;
    return true;
}

/* Takes a sign; true: it is a minus. */
static bool take_sign(struct bytes *from)
{
    return take_text(from, "-") || (take_text(from, "+") && false);
}

bool value_signed(struct bytes text, int64_t *ret)
{
    uint64_t size;
    bool negative = take_sign(&text);
    return value_whole(text, &size) && with_sign(size, negative, ret);
}

bool value_bool(struct bytes text, bool *ret)
{
    if (!bytes_is(text, "true") && !bytes_is(text, "false"))
        return false;
    *ret = bytes_is(text, "true");
    return true;
}

/* After the P: days, then T and hours, minutes, seconds, each at most once and in this order. */
static bool iso_time(struct bytes text, uint64_t *ret)
{
    static const struct unit units[] = {
        {"D", 86400 * BILLION}, {"H", 3600 * BILLION}, {"M", 60 * BILLION}, {"S", BILLION}};
    uint64_t sum = 0;
    bool after_t = false;
    size_t next = 0;
    if (text.len == 0)
        return false;
    while (text.len > 0) {
        struct decimal value;
        if (!after_t && take_text(&text, "T")) {
            after_t = true;
            next = 1;
        }
        size_t end = after_t ? array_len(units) : 1;
        if (!take_decimal(&text, &value))
            return false;
        while (next < end && !take_text(&text, units[next].text))
            next++;
        if (next == end || !add_product(value, units[next].size, &sum))
            return false;
        next++;
    }
    *ret = sum;
    return true;
}

bool value_time(struct bytes text, uint64_t *ret)
{
    uint64_t sum = 0;
    if (take_text(&text, "P"))
        return iso_time(text, ret);
    if (bytes_is(text, "0")) {
        *ret = 0;
        return true;
    }
    do {
        struct decimal value;
        if (!take_decimal(&text, &value))
            return false;
        uint64_t unit = take_unit(&text, time_units, array_len(time_units));
        if (unit == 0 || !add_product(value, unit, &sum))
            return false;
    } while (text.len > 0);
    *ret = sum;
    return true;
}

bool value_offset(struct bytes text, int64_t *ret)
{
    uint64_t size;
    bool negative = take_sign(&text);
    return value_time(text, &size) && with_sign(size, negative, ret);
}

bool value_bytes(struct bytes text, uint64_t *ret)
{
    struct decimal value;
    uint64_t sum = 0;
    if (!take_decimal(&text, &value))
        return false;
    uint64_t unit = text.len == 0 ? 1 : take_unit(&text, byte_units, array_len(byte_units));
    if (unit == 0 || text.len > 0)
        return false;
    if (!add_product(value, unit, &sum))
        return false;
    *ret = sum;
    return true;
}

bool value_bandwidth(struct bytes text, uint64_t *ret)
{
    struct decimal value;
    struct bytes at = text;
    if (text.len < 2 || memcmp(text.at + text.len - 2, "/s", 2) != 0)
        return false;
    text.len -= 2;
    at.len -= 2;
    if (take_decimal(&at, &value)) {
        uint64_t sum = 0;
        uint64_t unit = take_unit(&at, bit_units, array_len(bit_units));
        if (unit != 0) {
            if (at.len > 0 || !add_product(value, unit, &sum))
                return false;
            *ret = sum;
            return true;
        }
    }
    /* A number of what is not said. */
    return !(text.len > 0 && text.at[text.len - 1] <= '9') && value_bytes(text, ret);
}

bool value_frequency(struct bytes text, double *ret)
{
    double divisor = 1;
    if (text.len > 2 && memcmp(text.at + text.len - 2, "/s", 2) == 0) {
        text.len -= 2;
    } else if (text.len > 4 && memcmp(text.at + text.len - 4, "/min", 4) == 0) {
        text.len -= 4;
        divisor = 60;
    }
    if (!value_number(text, ret))
        return false;
    *ret /= divisor;
    return true;
}

static bool share_of(struct bytes text, bool always_percent, double *ret)
{
    double value;
    bool percent = text.len > 0 && text.at[text.len - 1] == '%';
    if (percent)
        text.len--;
    if (!value_number(text, &value))
        return false;
    if (percent || always_percent)
        value /= 100;
    if (value > 1)
        return false;
    *ret = value;
    return true;
}

bool value_share(struct bytes text, double *ret)
{
    return share_of(text, false, ret);
}

bool value_percent(struct bytes text, double *ret)
{
    return share_of(text, true, ret);
}
