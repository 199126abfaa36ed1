/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of two of three, on all small cases, against its definition spelled out. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "witness/quorum.h"

enum { TOP = 5 };

/* The greatest index that two counting members have: tried from the top. */
static uint64_t twin_durable(const uint64_t *durable, const bool *counts)
{
    for (uint64_t index = TOP; index > 0; index--) {
        int have = 0;
        for (int i = 0; i < CONSENSUS_MEMBERS; i++)
            have += counts[i] && durable[i] >= index;
        if (have >= 2)
            return index;
    }
    return 0;
}

static uint64_t twin_everywhere(const uint64_t *durable, const bool *counts,
                                const enum consensus_kind *kinds)
{
    for (uint64_t index = TOP; index > 0; index--) {
        bool all = true;
        for (int i = 0; i < CONSENSUS_MEMBERS; i++)
            all = all && (kinds[i] == CONSENSUS_WITNESS || (counts[i] && durable[i] >= index));
        if (all)
            return index;
    }
    return 0;
}

static void test_all_small_cases(void **state)
{
    (void)state;
    for (int set = 0; set < 8; set++) {
        bool counts[] = {set & 1, set & 2, set & 4};
        for (int number = 0; number < (TOP + 1) * (TOP + 1) * (TOP + 1); number++) {
            uint64_t durable[] = {(uint64_t)number % (TOP + 1),
                                  (uint64_t)number / (TOP + 1) % (TOP + 1),
                                  (uint64_t)number / (TOP + 1) / (TOP + 1)};
            assert_int_equal(quorum_durable(durable, counts), twin_durable(durable, counts));
            for (int witness = 0; witness <= CONSENSUS_MEMBERS; witness++) {
                enum consensus_kind kinds[CONSENSUS_MEMBERS] = {CONSENSUS_DATA};
                if (witness < CONSENSUS_MEMBERS)
                    kinds[witness] = CONSENSUS_WITNESS;
                assert_int_equal(quorum_everywhere(durable, counts, kinds),
                                 twin_everywhere(durable, counts, kinds));
            }
        }
    }
}

static void test_votes(void **state)
{
    (void)state;
    for (uint8_t voters = 0; voters < 8; voters++)
        assert_int_equal(quorum_elected(voters),
                         (voters & 1) + (voters >> 1 & 1) + (voters >> 2 & 1) >= 2);
    assert_true(quorum_up_to_date(2, 1, 1, 9));
    assert_false(quorum_up_to_date(1, 9, 2, 1));
    assert_true(quorum_up_to_date(2, 5, 2, 5));
    assert_false(quorum_up_to_date(2, 4, 2, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_small_cases),
                                       cmocka_unit_test(test_votes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
