/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions go through the codec whole, and nothing comes out that breaks a limit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "conflict/region_id.h"
#include "region/core/control_wire.h"

static void fill(struct rng *rng, struct description *d)
{
    *d = (struct description){0};
    struct table *table = &d->table;
    size_t len = (size_t)rng_between(rng, TABLE_NAME_MIN, TABLE_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        table->name[i] = "abcXYZ019_-."[rng_below(rng, 12)];
    for (int i = 0; i < TABLE_ID_LEN; i++) {
        table->group_id[i] = (uint8_t)rng_next(rng);
        table->id[i] = (uint8_t)rng_next(rng);
    }
    memcpy(table->key.hash_name, "hash", 5);
    table->key.hash_type = VALUE_N;
    table->key.has_range = rng_one_in(rng, 2);
    if (table->key.has_range) {
        memcpy(table->key.range_name, "range", 6);
        table->key.range_type = VALUE_B;
    }
    table->partition_count = (uint32_t)rng_between(rng, 1, TABLE_PARTITIONS_MAX);
    table->billing = BILLING_PAY_PER_REQUEST;
    table->stream = STREAM_BOTH;
    table->number = (uint32_t)rng_next(rng);
    table->created_wall_ms = rng_next(rng);
    table->deletion_protection = rng_one_in(rng, 2);
    d->epoch = rng_next(rng);
    d->settings_stamp = (struct stamp){rng_next(rng), 1};
    d->member_count = (uint32_t)rng_below(rng, VV_MAX + 1);
    for (uint32_t i = 0; i < d->member_count; i++)
        d->members[i] = (struct member){
            .region = (uint16_t)(i + 1),
            .state = (enum member_state)rng_between(rng, MEMBER_CREATING, MEMBER_REMOVED),
            .source = (uint16_t)rng_between(rng, 1, REGION_ID_MAX),
            .since_ms = rng_next(rng),
            .stamp = {rng_next(rng), (uint16_t)rng_between(rng, 1, REGION_ID_MAX)},
        };
}

/* Of the first three members. */
static void make_strong(struct rng *rng, struct description *d)
{
    struct strong_setup *setup = &d->strong;
    setup->epoch = (uint32_t)rng_between(rng, 1, STRONG_EPOCH_MAX);
    setup->witness = (uint8_t)rng_between(rng, 1, STRONG_MEMBERS);
    for (uint32_t i = 0; i < STRONG_MEMBERS; i++) {
        setup->regions[i] = d->members[i].region;
        setup->incarnations[i] = rng_next(rng) >> rng_between(rng, 1, 63);
    }
    if (rng_one_in(rng, 2)) {
        setup->dissolver = setup->regions[setup->witness == 1 ? 2 : 1];
        setup->dissolved = (struct stamp){rng_next(rng), 3};
        setup->ended = rng_one_in(rng, 2);
    } else if (rng_one_in(rng, 4)) {
        *setup = strong_setup_blank(setup->epoch);
    }
}

static void check_strong(const struct strong_setup *in, const struct strong_setup *out)
{
    assert_int_equal(out->epoch, in->epoch);
    assert_int_equal(out->witness, in->witness);
    assert_memory_equal(out->regions, in->regions, sizeof(in->regions));
    assert_memory_equal(out->incarnations, in->incarnations, sizeof(in->incarnations));
    assert_int_equal(out->dissolver, in->dissolver);
    assert_int_equal(stamp_compare(out->dissolved, in->dissolved), 0);
    assert_int_equal(out->ended, in->ended);
}

static void comes_back_whole(void **state)
{
    (void)state;
    struct rng rng;
    struct buf bytes;
    struct description in, out;
    rng_init(&rng, 3);
    buf_init(&bytes);
    for (int round = 0; round < 200; round++) {
        fill(&rng, &in);
        if (in.member_count >= STRONG_MEMBERS && rng_one_in(&rng, 2))
            make_strong(&rng, &in);
        buf_reset(&bytes);
        description_encode(&in, true, &bytes);
        assert_true(description_decode(buf_view(&bytes), true, &out));
        check_strong(&in.strong, &out.strong);
        assert_string_equal(out.table.name, in.table.name);
        assert_memory_equal(out.table.id, in.table.id, TABLE_ID_LEN);
        assert_memory_equal(out.table.group_id, in.table.group_id, TABLE_ID_LEN);
        assert_memory_equal(&out.table.key, &in.table.key, sizeof(in.table.key));
        assert_int_equal(out.table.partition_count, in.table.partition_count);
        assert_int_equal(out.table.number, in.table.number);
        assert_int_equal(out.epoch, in.epoch);
        assert_int_equal(out.table.deletion_protection, in.table.deletion_protection);
        assert_int_equal(out.member_count, in.member_count);
        for (uint32_t i = 0; i < in.member_count; i++) {
            assert_int_equal(out.members[i].region, in.members[i].region);
            assert_int_equal(out.members[i].state, in.members[i].state);
            assert_int_equal(out.members[i].since_ms, in.members[i].since_ms);
            assert_int_equal(stamp_compare(out.members[i].stamp, in.members[i].stamp), 0);
        }
        /* Peers do not see what is this Region's own. */
        buf_reset(&bytes);
        description_encode(&in, false, &bytes);
        assert_true(description_decode(buf_view(&bytes), false, &out));
        assert_int_equal(out.table.number, 0);
        assert_false(out.table.deletion_protection);
        assert_false(description_decode(buf_view(&bytes), true, &out));
    }
    buf_deinit(&bytes);
}

static void limits_hold(void **state)
{
    (void)state;
    struct rng rng;
    struct buf bytes;
    struct description in, out;
    rng_init(&rng, 4);
    buf_init(&bytes);
    for (int broken = 0; broken < 8; broken++) {
        fill(&rng, &in);
        in.member_count = 2;
        for (uint16_t i = 0; i < 2; i++)
            in.members[i] = (struct member){
                .region = (uint16_t)(i + 1), .state = MEMBER_ACTIVE, .source = 1, .stamp = {1, 1}};
        switch (broken) {
        case 0:
            in.table.name[0] = '/';
            break;
        case 1:
            in.table.name[2] = 0;
            break;
        case 2:
            in.table.partition_count = TABLE_PARTITIONS_MAX + 1;
            break;
        case 3:
            in.members[1].region = 1;
            break;
        case 4:
            in.members[1].region = REGION_ID_MAX + 1;
            break;
        case 5:
            in.table.key.hash_type = VALUE_L;
            break;
        case 6:
            in.table.key.has_range = true;
            memcpy(in.table.key.range_name, "hash", 5);
            in.table.key.range_type = VALUE_S;
            break;
        default:
            in.settings_stamp.region = 0;
            break;
        }
        buf_reset(&bytes);
        description_encode(&in, true, &bytes);
        if (description_decode(buf_view(&bytes), true, &out))
            fail_msg("case %d", broken);
    }
    buf_deinit(&bytes);
}

static void break_setup(struct strong_setup *setup, int how)
{
    switch (how) {
    case 0:
        setup->regions[2] = setup->regions[0];
        return;
    case 1:
        setup->regions[2] = 30; /* valid, and no member */
        return;
    case 2:
        setup->regions[2] = REGION_ID_MAX + 1;
        return;
    case 3:
        setup->witness = STRONG_MEMBERS + 1;
        return;
    case 4:
        setup->epoch = STRONG_EPOCH_MAX + 1U;
        return;
    case 5:
        setup->incarnations[1] = STRONG_INCARNATION_MAX + 1;
        return;
    case 6:
        setup->dissolver = 30;
        return;
    case 7:
        setup->dissolver = setup->regions[setup->witness = 1];
        return;
    case 8:
        setup->dissolved.region = 0;
        return;
    case 9:
        setup->dissolver = 0; /* a stamp of nothing */
        return;
    case 10: /* blank, with something left in it */
        setup->dissolver = 0;
        setup->ended = true;
        return;
    default: /* nothing is wrong */
        return;
    }
}

static void setups_are_whole(void **state)
{
    (void)state;
    struct rng rng;
    struct buf bytes;
    struct description in, out;
    rng_init(&rng, 6);
    buf_init(&bytes);
    for (int broken = -1; broken < 11; broken++) {
        fill(&rng, &in);
        in.member_count = STRONG_MEMBERS;
        for (uint16_t i = 0; i < STRONG_MEMBERS; i++)
            in.members[i] = (struct member){
                .region = (uint16_t)(i + 1), .state = MEMBER_ACTIVE, .source = 1, .stamp = {1, 1}};
        in.strong = (struct strong_setup){.epoch = 1,
                                          .regions = {1, 2, 3},
                                          .witness = 2,
                                          .incarnations = {5, 6, 7},
                                          .dissolver = 1,
                                          .dissolved = {9, 1}};
        break_setup(&in.strong, broken);
        buf_reset(&bytes);
        description_encode(&in, true, &bytes);
        if (description_decode(buf_view(&bytes), true, &out) != (broken < 0))
            fail_msg("case %d", broken);
    }
    buf_deinit(&bytes);
}

static void calls_and_answers(void **state)
{
    (void)state;
    struct rng rng;
    struct buf bytes;
    struct description in, out;
    rng_init(&rng, 5);
    buf_init(&bytes);
    fill(&rng, &in);
    call_encode(CALL_MERGE, 9, &in, &bytes);
    enum call_kind kind;
    uint16_t from;
    assert_true(call_decode(buf_view(&bytes), &kind, &from, &out));
    assert_int_equal(kind, CALL_MERGE);
    assert_int_equal(from, 9);
    assert_int_equal(out.member_count, in.member_count);
    buf_reset(&bytes);
    answer_encode(CALL_EXISTS, NULL, &bytes);
    enum call_outcome outcome;
    bool given;
    assert_true(answer_decode(buf_view(&bytes), &outcome, &given, &out));
    assert_int_equal(outcome, CALL_EXISTS);
    assert_false(given);
    assert_false(call_decode(buf_view(&bytes), &kind, &from, &out));
    assert_false(answer_decode(bytes_literal("\xff\xff"), &outcome, &given, &out));
    buf_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_whole),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(setups_are_whole),
        cmocka_unit_test(calls_and_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
