/* SPDX-License-Identifier: Apache-2.0 */
/* Literals of scenario files: what each means exactly, what is refused, and times against a dumb
 * twin. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "chaos/scenario/value.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"

static void times_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0", 0},
        {"0s", 0},
        {"1ns", 1},
        {"250ms", 250000000},
        {"1.5s", 1500000000},
        {"0.000000001s", 1},
        {"1m30s", 90000000000},
        {"1h", 3600000000000},
        {"10m100ns", 600000000100},
        {"PT1M", 60000000000},
        {"PT1M30S", 90000000000},
        {"PT12H", 43200000000000},
        {"P1D", 86400000000000},
        {"P1DT0.5S", 86400500000000},
    };
    for (size_t i = 0; i < array_len(good); i++) {
        uint64_t ns = 77;
        assert_true(value_time(bytes_text(good[i].text), &ns));
        assert_int_equal(ns, good[i].ns);
    }
    static const char *const bad[] = {"",
                                      "1",
                                      "s",
                                      "1 s",
                                      "-1s",
                                      "1.s",
                                      ".5s",
                                      "1.0000000001s",
                                      "1x",
                                      "1sx",
                                      "P",
                                      "PT",
                                      "P1",
                                      "PT1",
                                      "P1DT",
                                      "PT1S1M",
                                      "1d",
                                      "PT1D",
                                      "PT1M ",
                                      "+1s",
                                      "1e3s",
                                      "0x1s",
                                      "18446744073709551616ns",
                                      "99999999999999h"};
    for (size_t i = 0; i < array_len(bad); i++) {
        uint64_t ns;
        if (value_time(bytes_text(bad[i]), &ns))
            fail_msg("'%s' was taken for a time", bad[i]);
    }
}

static void times_agree_with_sums(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t h = rng_below(&rng, 100), m = rng_below(&rng, 100), s = rng_below(&rng, 100),
                 ms = rng_below(&rng, 2000), ns = 0;
        char text[64];
        snprintf(text, sizeof(text), "%uh%um%us%ums", (unsigned)h, (unsigned)m, (unsigned)s,
                 (unsigned)ms);
        assert_true(value_time(bytes_text(text), &ns));
        assert_int_equal(ns, ((h * 60 + m) * 60 + s) * 1000000000 + ms * 1000000);
        snprintf(text, sizeof(text), "PT%uH%uM%u.%03uS", (unsigned)h, (unsigned)m, (unsigned)s,
                 (unsigned)(ms % 1000));
        assert_true(value_time(bytes_text(text), &ns));
        assert_int_equal(ns, ((h * 60 + m) * 60 + s) * 1000000000 + ms % 1000 * 1000000);
    }
}

static void offsets_have_signs(void **state)
{
    (void)state;
    int64_t ns;
    assert_true(value_offset(bytes_text("-10m100ns"), &ns));
    assert_int_equal(ns, -600000000100);
    assert_true(value_offset(bytes_text("200ms"), &ns));
    assert_int_equal(ns, 200000000);
    assert_true(value_offset(bytes_text("+1s"), &ns));
    assert_int_equal(ns, 1000000000);
    assert_false(value_offset(bytes_text("--1s"), &ns));
    assert_false(value_offset(bytes_text("-"), &ns));
    assert_true(value_signed(bytes_text("-40"), &ns));
    assert_int_equal(ns, -40);
    assert_false(value_signed(bytes_text("9223372036854775808"), &ns));
}

static void sizes_and_rates(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_true(value_bytes(bytes_text("512"), &bytes) && bytes == 512);
    assert_true(value_bytes(bytes_text("4KiB"), &bytes) && bytes == 4096);
    assert_true(value_bytes(bytes_text("1.5GiB"), &bytes) && bytes == 1610612736);
    assert_true(value_bytes(bytes_text("10MB"), &bytes) && bytes == 10000000);
    assert_false(value_bytes(bytes_text("10mb"), &bytes));
    assert_false(value_bytes(bytes_text("99999999999GiB"), &bytes));
    assert_true(value_bandwidth(bytes_text("1MB/s"), &bytes) && bytes == 1000000);
    assert_true(value_bandwidth(bytes_text("8mbit/s"), &bytes) && bytes == 1000000);
    assert_true(value_bandwidth(bytes_text("0.5KiB/s"), &bytes) && bytes == 512);
    assert_false(value_bandwidth(bytes_text("1MB"), &bytes));
    assert_false(value_bandwidth(bytes_text("100/s"), &bytes));
    assert_false(value_bandwidth(bytes_text("/s"), &bytes));
    assert_false(value_bandwidth(bytes_text("1mbitx/s"), &bytes));
}

static bool near(double value, double wanted)
{
    double apart = value - wanted;
    return apart < 1e-9 && apart > -1e-9;
}

static void shares_and_frequencies(void **state)
{
    (void)state;
    double value;
    assert_true(value_share(bytes_text("0.25"), &value) && near(value, 0.25));
    assert_true(value_share(bytes_text("25%"), &value) && near(value, 0.25));
    assert_false(value_share(bytes_text("25"), &value));
    assert_false(value_share(bytes_text("101%"), &value));
    assert_false(value_share(bytes_text("-1"), &value));
    assert_true(value_percent(bytes_text("25"), &value) && near(value, 0.25));
    assert_true(value_percent(bytes_text("0.5%"), &value) && near(value, 0.005));
    assert_false(value_percent(bytes_text("100.1"), &value));
    assert_true(value_frequency(bytes_text("400/s"), &value) && near(value, 400));
    assert_true(value_frequency(bytes_text("60/min"), &value) && near(value, 1));
    assert_true(value_frequency(bytes_text("3"), &value) && near(value, 3));
    assert_false(value_frequency(bytes_text("3/h"), &value));
    assert_false(value_frequency(bytes_text("nan"), &value));
    assert_false(value_number(bytes_text("inf"), &value));
    assert_false(value_number(bytes_text("1e400"), &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_exact),        cmocka_unit_test(times_agree_with_sums),
        cmocka_unit_test(offsets_have_signs),     cmocka_unit_test(sizes_and_rates),
        cmocka_unit_test(shares_and_frequencies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
