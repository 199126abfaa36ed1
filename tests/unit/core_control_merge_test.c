/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions are joined in any order, any number of times, and all Regions end up with the same
 * one: members, settings and the setup of a strong table are registers or only grow. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "region/core/region_internal.h"
#include "tests/lib/core/fixture.h"

/* What a stamp was given with is a function of the stamp, as it is in life. */
static struct stamp draw_stamp(struct rng *rng)
{
    return (struct stamp){rng_below(rng, 6), (uint16_t)rng_between(rng, 1, 3)};
}

static uint32_t of_stamp(struct stamp stamp, uint32_t bound)
{
    return (uint32_t)((stamp.time * 7 + stamp.region * 13) % bound);
}

static void draw_setup(struct rng *rng, struct strong_setup *setup)
{
    uint32_t epoch = (uint32_t)rng_below(rng, 4);
    if (epoch == 0)
        return;
    if (epoch == 3) { /* each epoch is of one kind everywhere */
        *setup = strong_setup_blank(epoch);
        return;
    }
    setup->epoch = epoch;
    setup->witness = epoch == 1 ? STRONG_MEMBERS : 2;
    for (uint16_t i = 0; i < STRONG_MEMBERS; i++) {
        setup->regions[i] = (uint16_t)(epoch == 1 ? i + 1 : STRONG_MEMBERS - i);
        setup->incarnations[i] = rng_below(rng, 4);
    }
    if (rng_one_in(rng, 2)) {
        setup->dissolved = draw_stamp(rng);
        setup->dissolver = setup->regions[of_stamp(setup->dissolved, 2)];
        setup->ended = rng_one_in(rng, 3);
    }
}

static void draw(struct rng *rng, struct description *d)
{
    *d = (struct description){.table = {.partition_count = 2}};
    d->settings_stamp = draw_stamp(rng);
    d->table.read_units = of_stamp(d->settings_stamp, 100);
    for (uint16_t i = 1; i <= 4; i++) {
        if (i > 3 && rng_one_in(rng, 2))
            continue;
        struct member *member = &d->members[d->member_count++];
        member->region = i;
        member->stamp = draw_stamp(rng);
        member->state = (enum member_state)(1 + of_stamp(member->stamp, 4));
        member->source = member->stamp.region;
    }
    draw_setup(rng, &d->strong);
}

/* Streams are each member's own in a strong table, and the order of members is that of arrival. */
static void expect_same(struct description *a, struct description *b)
{
    assert_int_equal(a->member_count, b->member_count);
    for (uint32_t i = 0; i < a->member_count; i++) {
        const struct member *other = group_member(b, a->members[i].region);
        assert_non_null(other);
        assert_int_equal(stamp_compare(a->members[i].stamp, other->stamp), 0);
        assert_int_equal(a->members[i].state, other->state);
    }
    assert_int_equal(stamp_compare(a->settings_stamp, b->settings_stamp), 0);
    assert_int_equal(a->table.read_units, b->table.read_units);
    assert_true(strong_setup_equal(&a->strong, &b->strong));
}

static void merging_is_a_join(void **state)
{
    (void)state;
    struct fixture f;
    struct rng rng;
    fixture_init(&f, 1);
    struct region *region = f.nodes[0].core;
    rng_init(&rng, 20);
    for (int round = 0; round < 20000; round++) {
        struct description a, b, c;
        draw(&rng, &a);
        draw(&rng, &b);
        draw(&rng, &c);
        struct description ab = a, ba = b, left, right = a, bc = b;
        bool changed = group_merge(region, &ab, &b);
        group_merge(region, &ba, &a);
        expect_same(&ab, &ba);
        assert_false(group_merge(region, &ab, &b));
        assert_false(group_merge(region, &ab, &a));
        left = ab;
        group_merge(region, &left, &c);
        group_merge(region, &bc, &c);
        group_merge(region, &right, &bc);
        expect_same(&left, &right);
        if (!changed)
            expect_same(&ab, &a);
        /* What comes of it can be stored and sent. */
        struct buf bytes;
        buf_init(&bytes);
        memcpy(left.table.name, "tbl", 4);
        left.table.key = (struct key_schema){.hash_name = "pk", .hash_type = VALUE_S};
        description_encode(&left, false, &bytes);
        assert_true(description_decode(buf_view(&bytes), false, &right));
        expect_same(&left, &right);
        buf_deinit(&bytes);
    }
    fixture_deinit(&f);
}

/* What cannot be is not taken in, whoever says it: a setup whose members are not, and two setups of
 * one epoch. A grave speaks of members only. */
static void nonsense_is_left_out(void **state)
{
    (void)state;
    struct fixture f;
    struct rng rng;
    fixture_init(&f, 1);
    struct region *region = f.nodes[0].core;
    rng_init(&rng, 21);
    struct description to, from;
    draw(&rng, &to);
    to.strong = (struct strong_setup){
        .epoch = 5, .regions = {1, 2, 3}, .witness = STRONG_MEMBERS, .incarnations = {1, 1, 1}};
    struct strong_setup before = to.strong;
    from = to;
    from.strong.witness = 2;
    from.strong.incarnations[0] = 9;
    assert_false(group_merge(region, &to, &from));
    from.strong = before;
    from.strong.epoch = 6;
    from.strong.regions[1] = 30;
    assert_false(group_merge(region, &to, &from));
    from.strong = before;
    from.strong.incarnations[0] = 9;
    from.grave = true;
    assert_false(group_merge(region, &to, &from));
    from.grave = false;
    from.strong.epoch = 4;
    assert_false(group_merge(region, &to, &from));
    assert_true(strong_setup_equal(&to.strong, &before));
    from.strong.epoch = 5;
    assert_true(group_merge(region, &to, &from));
    assert_int_equal(to.strong.incarnations[0], 9);
    fixture_deinit(&f);
}

/* The first rows are written once in the life of a group: for a disk that nobody has heard of. */
static void a_part_is_begun_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct region *region = f.nodes[0].core;
    struct description d = {.strong = {.epoch = 1, .regions = {9, 1, 17}, .witness = 0}};
    bool first = false;
    assert_true(strong_take_part(region, &d, &first));
    assert_true(first);
    assert_int_equal(d.strong.incarnations[1], region->wall_ms);
    uint64_t known = region->wall_ms + 5000; /* the clock was ahead then */
    d.strong.incarnations[1] = known;
    assert_true(strong_take_part(region, &d, &first));
    assert_false(first);
    assert_int_equal(d.strong.incarnations[1], known + 1);
    d.strong.incarnations[1] = STRONG_INCARNATION_MAX;
    assert_false(strong_take_part(region, &d, &first));
    d.strong.regions[1] = 2;
    assert_false(strong_take_part(region, &d, &first));
    /* Others hear of it by the answer to the maker, not by Hello, until all three are known. */
    d.strong = (struct strong_setup){
        .epoch = 1, .regions = {9, 1, 17}, .witness = 0, .incarnations = {7, 8, 0}};
    struct description said = d;
    strong_censor(region, &said);
    assert_int_equal(said.strong.incarnations[0], 7);
    assert_int_equal(said.strong.incarnations[1], 0);
    d.strong.incarnations[2] = 9;
    said = d;
    strong_censor(region, &said);
    assert_int_equal(said.strong.incarnations[1], 8);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_a_join),
        cmocka_unit_test(nonsense_is_left_out),
        cmocka_unit_test(a_part_is_begun_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
