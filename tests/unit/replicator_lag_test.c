/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram against sorted numbers, the ring against a list that forgets nothing. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "conflict/version.h"
#include "replicator/lag.h"

static const uint64_t SECOND = 1000000000;

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void quantiles_to_two_percent(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static uint64_t lags[COUNT];
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        struct lag_histogram histogram = {0};
        for (int i = 0; i < COUNT; i++) {
            lags[i] = rng_between(&rng, 1000, (uint64_t)2000 << rng_below(&rng, 28)); /* to 9 min */
            lag_histogram_record(&histogram, rng_below(&rng, 50) * SECOND, lags[i], 1);
        }
        qsort(lags, COUNT, sizeof(lags[0]), compare_u64);
        for (double q = 0; q < 1; q += 0.01) {
            double exact = (double)lags[(size_t)(q * (COUNT - 1))] / 1e6;
            double got = lag_histogram_quantile_ms(&histogram, 50 * SECOND, q);
            double error = got > exact ? got - exact : exact - got;
            assert_true(error <= exact * 0.02 + 0.0006);
        }
        lag_histogram_deinit(&histogram);
    }
}

static void a_minute_and_no_more(void **state)
{
    (void)state;
    struct lag_histogram histogram = {0};
    assert_true(lag_histogram_quantile_ms(&histogram, 0, 0.5) == 0);
    lag_histogram_record(&histogram, 100 * SECOND, 5 * SECOND, 3);
    lag_histogram_record(&histogram, 140 * SECOND, SECOND / 10, 1);
    assert_true(lag_histogram_quantile_ms(&histogram, 149 * SECOND, 0.5) > 4900);
    assert_true(lag_histogram_quantile_ms(&histogram, 165 * SECOND, 0.5) < 102);
    assert_true(lag_histogram_quantile_ms(&histogram, 205 * SECOND, 0.5) == 0);
    lag_histogram_expire(&histogram, 205 * SECOND);
    for (int i = 0; i < LAG_SLICES; i++)
        assert_null(histogram.slices[i]);
    /* A slice is taken over by a later one. */
    lag_histogram_record(&histogram, 300 * SECOND, SECOND, 1);
    lag_histogram_record(&histogram, 360 * SECOND, SECOND * 2, 1);
    assert_true(lag_histogram_quantile_ms(&histogram, 361 * SECOND, 0.0) > 1900);
    lag_histogram_record(&histogram, 361 * SECOND, UINT64_MAX, 1);
    lag_histogram_deinit(&histogram);
}

static void the_ring_remembers_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        struct lag_ring ring;
        lag_ring_init(&ring, 0, 0);
        uint64_t seq = 0, dropped = 0;
        for (uint64_t step = 1; step < 20000; step++) {
            seq += rng_between(&rng, 1, 3);
            lag_ring_push(&ring, (struct lag_entry){seq, step, seq * 10});
            if (rng_one_in(&rng, 4) && (seed % 2 || step < 100)) {
                dropped = rng_between(&rng, dropped, seq);
                lag_ring_drop(&ring, dropped);
            }
            assert_true(ring.count <= LAG_RING_MAX);
            if (!ring.count)
                continue;
            assert_int_equal(lag_ring_at(&ring, ring.count - 1)->seq, seq);
            uint64_t probe = rng_between(&rng, ring.base.seq, seq);
            uint32_t at = lag_ring_find(&ring, probe);
            assert_true(at == ring.count || lag_ring_at(&ring, at)->seq > probe);
            assert_true(at == 0 || lag_ring_at(&ring, at - 1)->seq <= probe);
        }
        /* Thinned, the old half is coarse and the newest quarter exact. */
        for (uint32_t i = 1; i < ring.count; i++) {
            assert_true(lag_ring_at(&ring, i)->seq > lag_ring_at(&ring, i - 1)->seq);
            assert_true(lag_ring_at(&ring, i)->mono_ns > lag_ring_at(&ring, i - 1)->mono_ns);
        }
        for (uint32_t i = ring.count > 1000 ? ring.count - 1000 : 1; i < ring.count; i++)
            assert_true(lag_ring_at(&ring, i)->seq - lag_ring_at(&ring, i - 1)->seq <= 3);
        lag_ring_drop(&ring, seq);
        assert_int_equal(ring.count, 0);
        assert_int_equal(ring.base.seq, seq);
        lag_ring_deinit(&ring);
    }
}

static void distances(void **state)
{
    (void)state;
    assert_int_equal(lag_distance(3, 10), 7);
    assert_int_equal(lag_distance(10, 3), 0);
    assert_int_equal(lag_distance(10, version_epoch_base(2) + 4), 4);
    assert_int_equal(lag_distance(0, version_epoch_base(2) + 4), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_to_two_percent),
        cmocka_unit_test(a_minute_and_no_more),
        cmocka_unit_test(the_ring_remembers_in_order),
        cmocka_unit_test(distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
