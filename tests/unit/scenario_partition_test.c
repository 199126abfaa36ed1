/* SPDX-License-Identifier: Apache-2.0 */
/* What each shape of a partition cuts, for every size of cluster, by what the shape promises. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/scenario/scenario.h"

static struct scenario_cluster cluster_of(uint8_t count)
{
    return (struct scenario_cluster){.region_count = count, .data_count = count};
}

static void cut(uint8_t count, enum scenario_shape shape, uint8_t region, uint8_t leaders,
                uint8_t ret[SCENARIO_REGIONS_MAX])
{
    struct scenario_cluster cluster = cluster_of(count);
    struct scenario_fault fault = {
        .verb = VERB_PARTITION, .shape = (uint8_t)shape, .region = region};
    scenario_partition(&cluster, &fault, leaders, ret);
    for (uint8_t from = 0; from < SCENARIO_REGIONS_MAX; from++) {
        assert_int_equal(ret[from] >> from & 1, 0);
        assert_int_equal(ret[from] >> count, 0);
        if (from >= count)
            assert_int_equal(ret[from], 0);
        for (uint8_t to = 0; to < count && shape != SCENARIO_ASYMMETRIC; to++)
            assert_int_equal(ret[from] >> to & 1, ret[to] >> from & 1);
    }
}

static uint8_t bits(uint8_t set)
{
    return (uint8_t)__builtin_popcount(set);
}

static void one_is_alone(void **state)
{
    (void)state;
    for (uint8_t count = 2; count <= SCENARIO_REGIONS_MAX; count++) {
        for (uint8_t alone = 0; alone < count; alone++) {
            uint8_t cuts[SCENARIO_REGIONS_MAX];
            cut(count, SCENARIO_ONE, alone, 0, cuts);
            for (uint8_t i = 0; i < count; i++)
                assert_int_equal(bits(cuts[i]), i == alone ? count - 1 : 1);
        }
    }
}

static void nobody_named_and_leaders(void **state)
{
    (void)state;
    uint8_t cuts[SCENARIO_REGIONS_MAX];
    cut(3, SCENARIO_ONE, SCENARIO_REGION_NONE, 0, cuts);
    assert_int_equal(cuts[0], 6);
    cut(3, SCENARIO_ONE, SCENARIO_REGION_LEADER, 4, cuts);
    assert_int_equal(cuts[2], 3);
    cut(3, SCENARIO_PRIMARIES, SCENARIO_REGION_NONE, 0, cuts);
    assert_int_equal(cuts[0] | cuts[1] | cuts[2], 0);
    cut(3, SCENARIO_PRIMARIES, SCENARIO_REGION_NONE, 2, cuts);
    assert_int_equal(cuts[1], 5);
    assert_int_equal(cuts[0], 2);
    cut(4, SCENARIO_PRIMARIES, SCENARIO_REGION_NONE, 3, cuts);
    assert_int_equal(cuts[0], 14);
    assert_int_equal(cuts[1], 13);
    assert_int_equal(cuts[2], 3);
}

static void halves_and_bridges(void **state)
{
    (void)state;
    uint8_t cuts[SCENARIO_REGIONS_MAX];
    for (uint8_t count = 2; count <= SCENARIO_REGIONS_MAX; count++) {
        cut(count, SCENARIO_HALVES, SCENARIO_REGION_NONE, 0, cuts);
        for (uint8_t i = 0; i < count; i++)
            assert_int_equal(bits(cuts[i]), i < count / 2 ? count - count / 2 : count / 2);
    }
    for (uint8_t count = 3; count <= SCENARIO_REGIONS_MAX; count++) {
        for (uint8_t bridge = 0; bridge < count; bridge++) {
            cut(count, SCENARIO_BRIDGE, bridge, 0, cuts);
            assert_int_equal(cuts[bridge], 0);
            for (uint8_t i = 0; i < count; i++)
                if (i != bridge)
                    assert_int_equal(bits(cuts[i]), i < count / 2
                                                        ? count - count / 2 - (bridge >= count / 2)
                                                        : count / 2 - (bridge < count / 2));
        }
    }
    cut(3, SCENARIO_BRIDGE, SCENARIO_REGION_NONE, 0, cuts);
    assert_int_equal(cuts[1], 0);
    assert_int_equal(cuts[0], 4);
}

/* Everybody reaches a majority, nobody reaches all that another does, but in a ring of three, whose
 * middle reaches all. */
static void rings_of_majorities(void **state)
{
    (void)state;
    for (uint8_t count = 3; count <= SCENARIO_REGIONS_MAX; count++) {
        uint8_t cuts[SCENARIO_REGIONS_MAX], all = (uint8_t)((1u << count) - 1);
        cut(count, SCENARIO_MAJORITIES_RING, SCENARIO_REGION_NONE, 0, cuts);
        for (uint8_t i = 0; i < count; i++) {
            uint8_t seen = (uint8_t)(all & ~cuts[i]);
            assert_true(bits(seen) > count / 2);
            assert_true(seen != all || count == 3);
            for (uint8_t j = 0; j < i; j++)
                assert_int_not_equal(seen, all & ~cuts[j]);
        }
    }
}

static void asymmetric_is_heard_by_none(void **state)
{
    (void)state;
    uint8_t cuts[SCENARIO_REGIONS_MAX];
    cut(4, SCENARIO_ASYMMETRIC, 2, 0, cuts);
    assert_int_equal(cuts[2], 11);
    assert_int_equal(cuts[0] | cuts[1] | cuts[3], 0);
}

/* One after the other until all are cut off, one after the other until none is; not all seeds in
 * the same order, and the way back is not the way there. */
static void a_swizzle_takes_all_and_brings_them_back(void **state)
{
    (void)state;
    uint8_t firsts = 0, differs = 0;
    for (uint64_t luck = 0; luck < 200; luck++) {
        for (uint32_t count = 2; count <= SCENARIO_REGIONS_MAX; count++) {
            uint8_t before = 0;
            assert_int_equal(scenario_swizzle(count, luck, 0), 0);
            for (uint32_t step = 1; step <= 2 * count; step++) {
                uint8_t apart = scenario_swizzle(count, luck, step);
                assert_int_equal(bits(apart), step <= count ? step : 2 * count - step);
                assert_int_equal(bits(apart ^ before), 1);
                assert_int_equal(apart >> (count - 1) >> 1, 0);
                before = apart;
            }
            assert_int_equal(scenario_swizzle(count, luck, 2 * count + 5), 0);
        }
        firsts |= scenario_swizzle(8, luck, 1);
        differs |= (uint8_t)(scenario_swizzle(8, luck, 7) != scenario_swizzle(8, luck, 9));
    }
    assert_int_equal(firsts, 0xff);
    assert_true(differs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_alone),
        cmocka_unit_test(nobody_named_and_leaders),
        cmocka_unit_test(halves_and_bridges),
        cmocka_unit_test(rings_of_majorities),
        cmocka_unit_test(asymmetric_is_heard_by_none),
        cmocka_unit_test(a_swizzle_takes_all_and_brings_them_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
