/* SPDX-License-Identifier: Apache-2.0 */
/* The log against a plain array of terms and lengths, over random appends, cuts, trims and
 * restarts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "witness/log.h"

enum { STEPS = 20000, INDEX_MAX = 40000 };

struct twin {
    uint64_t base, last;
    uint64_t term[INDEX_MAX]; /* of the base, too */
    uint64_t len[INDEX_MAX];
};

static void compare(const struct consensus_log *log, const struct twin *twin, struct rng *rng)
{
    assert_int_equal(log->base_index, twin->base);
    assert_int_equal(consensus_log_last(log), twin->last);
    uint64_t at = rng_between(rng, twin->base, twin->last);
    assert_int_equal(consensus_log_term(log, at), twin->term[at]);
    assert_true(consensus_log_has(log, at, twin->term[at]));
    assert_false(consensus_log_has(log, at, twin->term[at] + 1));
    assert_false(consensus_log_has(log, twin->last + 1, twin->term[twin->last]));
    uint64_t to = rng_between(rng, at, twin->last), bytes = 0;
    for (uint64_t i = at + 1; i <= to; i++)
        bytes += twin->len[i];
    assert_int_equal(consensus_log_bytes(log, at, to), bytes);
    if (at > twin->base) {
        const struct consensus_entry *entry = consensus_log_get(log, at);
        assert_int_equal(entry->index, at);
        assert_int_equal(entry->payload.len, twin->len[at]);
        for (size_t i = 0; i < entry->payload.len; i++)
            assert_int_equal(entry->payload.at[i], (uint8_t)at);
    }
}

static void append(struct consensus_log *log, struct twin *twin, struct rng *rng)
{
    uint8_t payload[40];
    uint64_t index = ++twin->last;
    twin->term[index] = twin->term[index - 1] + rng_one_in(rng, 10);
    twin->len[index] = rng_below(rng, sizeof(payload));
    memset(payload, (int)(uint8_t)index, sizeof(payload));
    struct consensus_entry entry = {.index = index,
                                    .term = twin->term[index],
                                    .payload = bytes_make(payload, twin->len[index])};
    consensus_log_append(log, &entry);
}

static void test_against_twin(void **state)
{
    (void)state;
    static struct twin twin;
    struct consensus_log log;
    struct rng rng;
    rng_init(&rng, 7);
    consensus_log_init(&log);
    for (int step = 0; step < STEPS; step++) {
        uint64_t what = rng_below(&rng, 40);
        if (what == 0 && twin.last > twin.base) {
            uint64_t from = rng_between(&rng, twin.base + 1, twin.last);
            consensus_log_truncate(&log, from);
            twin.last = from - 1;
        } else if (what <= 2) {
            twin.base = rng_between(&rng, twin.base, twin.last);
            consensus_log_trim(&log, twin.base);
        } else if (what == 3 && step % 5 == 0) {
            uint64_t term = twin.term[twin.last] + 1;
            twin.base = twin.last = twin.last + rng_below(&rng, 20);
            twin.term[twin.base] = term;
            consensus_log_reset(&log, twin.base, term);
        } else {
            append(&log, &twin, &rng);
        }
        compare(&log, &twin, &rng);
    }
    consensus_log_deinit(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_twin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
