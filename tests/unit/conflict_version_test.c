/* SPDX-License-Identifier: Apache-2.0 */
/* Versions and vectors: the order and its encoding agree, vectors join as maps would. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/rng.h"
#include "conflict/region_id.h"
#include "conflict/version.h"

static struct version draw(struct rng *rng)
{
    return (struct version){rng_below(rng, 4) << 40 | rng_below(rng, 3),
                            (uint16_t)rng_between(rng, 1, REGION_ID_MAX), rng_between(rng, 1, 300)};
}

static void encoding_keeps_the_order(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        struct version a = draw(&rng), b = rng_one_in(&rng, 8) ? a : draw(&rng), back;
        cleanup(buf_deinit) struct buf x = {0};
        cleanup(buf_deinit) struct buf y = {0};
        version_encode(a, &x);
        version_encode(b, &y);
        assert_int_equal(x.len, VERSION_ENCODED_LEN);
        assert_int_equal(version_compare(a, b), bytes_compare(buf_view(&x), buf_view(&y)));
        assert_int_equal(version_compare(a, b), -version_compare(b, a));
        struct bytes rest = buf_view(&x);
        assert_true(version_decode(&rest, &back));
        assert_int_equal(rest.len, 0);
        assert_int_equal(version_compare(a, back), 0);
        assert_true(version_compare(VERSION_NONE, a) < 0);
    }
}

static void no_version_of_nowhere(void **state)
{
    (void)state;
    const struct version bad[] = {{1, 0, 0}, {1, 0, 1}, {1, REGION_ID_MAX + 1, 1}, {1, 3, 0}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cleanup(buf_deinit) struct buf x = {0};
        struct version back;
        version_encode(bad[i], &x);
        struct bytes rest = buf_view(&x);
        assert_false(version_decode(&rest, &back));
        assert_int_equal(rest.len, VERSION_ENCODED_LEN);
    }
}

static void what_follows_what(void **state)
{
    (void)state;
    uint64_t two = version_epoch_base(2);
    assert_true(version_seq_follows(0, 1));
    assert_true(version_seq_follows(7, 8));
    assert_false(version_seq_follows(7, 7));
    assert_false(version_seq_follows(7, 9));
    assert_true(version_seq_follows(7, two + 1));
    assert_false(version_seq_follows(7, two + 2));
    assert_false(version_seq_follows(two + 3, version_epoch_base(1) + 1));
    assert_false(version_seq_follows(0, 0));
    assert_false(version_seq_follows(UINT64_MAX, 0));
}

/* The twin: a sequence per Region, 0 for none. */
struct twin {
    uint64_t seq[REGION_ID_MAX + 1];
};

static struct vv vv_of(const struct twin *twin)
{
    struct vv vv = {0};
    for (uint16_t id = REGION_ID_MAX; id > 0; id--)
        assert_true(vv_raise(&vv, id, twin->seq[id]));
    return vv;
}

static struct twin twin_draw(struct rng *rng)
{
    struct twin twin = {0};
    for (uint64_t n = rng_below(rng, 8); n > 0; n--)
        twin.seq[rng_between(rng, 1, REGION_ID_MAX)] = rng_below(rng, 4);
    return twin;
}

static void vectors_are_maps(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    for (int i = 0; i < 5000; i++) {
        struct twin a = twin_draw(&rng), b = twin_draw(&rng), both = {0};
        struct vv x = vv_of(&a), y = vv_of(&b), joined = x, back;
        bool covers = true;
        for (uint16_t id = 1; id <= REGION_ID_MAX; id++) {
            assert_int_equal(vv_get(&x, id), a.seq[id]);
            both.seq[id] = a.seq[id] > b.seq[id] ? a.seq[id] : b.seq[id];
            covers = covers && a.seq[id] >= b.seq[id];
        }
        assert_int_equal(vv_covers(&x, &y), covers);
        assert_true(vv_join(&joined, &y));
        for (uint16_t id = 1; id <= REGION_ID_MAX; id++)
            assert_int_equal(vv_get(&joined, id), both.seq[id]);
        cleanup(buf_deinit) struct buf bytes = {0};
        vv_encode(&joined, &bytes);
        struct bytes rest = buf_view(&bytes);
        assert_true(vv_decode(&rest, &back));
        assert_int_equal(rest.len, 0);
        assert_true(vv_covers(&back, &joined) && vv_covers(&joined, &back));
        assert_int_equal(back.count, joined.count);
        for (size_t len = 0; len < bytes.len; len++) {
            rest = bytes_make(bytes.at, len);
            assert_false(vv_decode(&rest, &back));
        }
    }
}

static void a_full_vector_refuses_one_more(void **state)
{
    (void)state;
    struct vv vv = {0}, more = {0};
    for (uint16_t id = 1; id <= VV_MAX; id++)
        assert_true(vv_raise(&vv, id, id));
    struct vv before = vv;
    assert_false(vv_raise(&vv, VV_MAX + 1, 1));
    assert_true(vv_raise(&vv, 3, 99));
    assert_int_equal(vv_get(&vv, 3), 99);
    vv = before;
    assert_true(vv_raise(&more, 1, 77));
    assert_true(vv_raise(&more, VV_MAX + 2, 1));
    assert_false(vv_join(&vv, &more));
    assert_memory_equal(&vv, &before, sizeof(vv)); /* all or nothing */
}

/* Vectors of origins that began anew, against a table of origins and epochs. */
enum { TWIN_ORIGINS = 4, TWIN_EPOCHS = VV_EPOCHS_MAX };

struct epoch_twin {
    uint64_t last[TWIN_ORIGINS + 1][TWIN_EPOCHS + 1];
};

static uint64_t seq_of(uint64_t epoch, uint64_t number)
{
    return version_epoch_base(epoch) + number;
}

static struct vv draw_epochs(struct rng *rng, struct epoch_twin *twin)
{
    struct vv vv = {0};
    for (uint64_t n = rng_below(rng, 12); n > 0; n--) {
        uint16_t origin = (uint16_t)rng_between(rng, 1, TWIN_ORIGINS);
        uint64_t epoch = rng_between(rng, 1, TWIN_EPOCHS), number = rng_between(rng, 1, 4);
        assert_true(vv_raise(&vv, origin, seq_of(epoch, number)));
        if (number > twin->last[origin][epoch])
            twin->last[origin][epoch] = number;
    }
    return vv;
}

static void compare_epochs(const struct vv *vv, const struct epoch_twin *twin)
{
    for (uint16_t origin = 1; origin <= TWIN_ORIGINS; origin++) {
        uint64_t newest = 0;
        for (uint64_t epoch = 1; epoch <= TWIN_EPOCHS; epoch++) {
            uint64_t last = twin->last[origin][epoch];
            newest = last ? seq_of(epoch, last) : newest;
            assert_int_equal(vv_in_epoch(vv, origin, epoch), last ? seq_of(epoch, last) : 0);
            assert_true(vv_knows(vv, origin, seq_of(epoch, last)));
            assert_false(vv_knows(vv, origin, seq_of(epoch, last + 1)));
        }
        assert_int_equal(vv_get(vv, origin), newest);
    }
}

static void a_later_epoch_says_nothing_of_an_earlier(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    for (int i = 0; i < 5000; i++) {
        struct epoch_twin a = {0}, b = {0};
        struct vv x = draw_epochs(&rng, &a), y = draw_epochs(&rng, &b), joined = x, back;
        compare_epochs(&x, &a);
        bool covers = true;
        for (int origin = 1; origin <= TWIN_ORIGINS; origin++) {
            for (int epoch = 1; epoch <= TWIN_EPOCHS; epoch++) {
                covers = covers && a.last[origin][epoch] >= b.last[origin][epoch];
                if (b.last[origin][epoch] > a.last[origin][epoch])
                    a.last[origin][epoch] = b.last[origin][epoch];
            }
        }
        assert_int_equal(vv_covers(&x, &y), covers);
        assert_true(vv_join(&joined, &y));
        compare_epochs(&joined, &a);
        cleanup(buf_deinit) struct buf bytes = {0};
        vv_encode(&joined, &bytes);
        struct bytes rest = buf_view(&bytes);
        assert_true(vv_decode(&rest, &back));
        compare_epochs(&back, &a);
        uint16_t origin = (uint16_t)rng_between(&rng, 1, TWIN_ORIGINS);
        uint64_t epoch = rng_between(&rng, 1, TWIN_EPOCHS);
        a.last[origin][epoch] = 0;
        vv_drop(&joined, origin, epoch);
        for (uint64_t at = 1; at <= TWIN_EPOCHS; at++)
            assert_int_equal(vv_in_epoch(&joined, origin, at),
                             a.last[origin][at] ? seq_of(at, a.last[origin][at]) : 0);
    }
}

/* Each epoch that is dropped for want of room counts as known, so that nobody asks for it for ever.
 */
static void the_oldest_epochs_are_forgotten(void **state)
{
    (void)state;
    struct vv vv = {0}, before;
    for (uint64_t epoch = 1; epoch <= VV_EPOCHS_MAX + 2; epoch++)
        assert_true(vv_raise(&vv, 7, seq_of(epoch, 5)));
    assert_int_equal(vv.count, VV_EPOCHS_MAX);
    assert_true(vv_knows(&vv, 7, seq_of(1, 9)));
    assert_false(vv_knows(&vv, 7, seq_of(3, 9)));
    assert_false(vv_knows(&vv, 7, seq_of(VV_EPOCHS_MAX + 3, 1)));
    before = vv;
    assert_true(vv_raise(&vv, 7, seq_of(1, 9)));
    assert_memory_equal(&vv, &before, sizeof(vv));
    /* New origins take the room of old epochs, never that of an origin. */
    for (uint16_t id = 10; id < 10 + VV_MAX - 1; id++)
        assert_true(vv_raise(&vv, id, seq_of(1, 1)));
    assert_int_equal(vv.count, VV_MAX);
    assert_int_equal(vv_get(&vv, 7), seq_of(VV_EPOCHS_MAX + 2, 5));
    assert_true(vv_knows(&vv, 7, seq_of(4, 9)));
    assert_false(vv_raise(&vv, 30, 1));
    assert_true(vv_raise(&vv, 12, seq_of(2, 1)));
    assert_int_equal(vv_get(&vv, 12), seq_of(2, 1));
    assert_int_equal(vv.count, VV_MAX);
}

static void epochs_out_of_order_are_refused(void **state)
{
    (void)state;
    uint64_t seqs[] = {seq_of(1, 1), seq_of(2, 1), seq_of(3, 1), seq_of(4, 1)};
    for (int swapped = 0; swapped < 3; swapped++) {
        for (uint8_t count = 2; count <= 4; count++) {
            cleanup(buf_deinit) struct buf bytes = {0};
            buf_append_u8(&bytes, count);
            for (uint8_t i = 0; i < count; i++) {
                buf_append_varint(&bytes, 5);
                /* In order; one epoch twice; or the wrong way round. */
                uint64_t seq = swapped == 0   ? seqs[i]
                               : swapped == 1 ? seq_of(1, (uint64_t)i + 1)
                                              : seqs[3 - i];
                buf_append_varint(&bytes, seq);
            }
            struct bytes rest = buf_view(&bytes);
            struct vv vv;
            assert_int_equal(vv_decode(&rest, &vv), swapped == 0 && count <= VV_EPOCHS_MAX);
        }
    }
}

static void disorder_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x02\x02\x01\x01\x01", "\x02\x01\x01\x01\x01",
                                      "\x01\x00\x01",         "\x01\x23\x01",
                                      "\x01\x01\x00",         "\x11"};
    static const size_t lens[] = {5, 5, 3, 3, 3, 1};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct vv vv;
        struct bytes rest = bytes_make(bad[i], lens[i]);
        assert_false(vv_decode(&rest, &vv));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_keeps_the_order),
        cmocka_unit_test(no_version_of_nowhere),
        cmocka_unit_test(what_follows_what),
        cmocka_unit_test(vectors_are_maps),
        cmocka_unit_test(a_full_vector_refuses_one_more),
        cmocka_unit_test(a_later_epoch_says_nothing_of_an_earlier),
        cmocka_unit_test(the_oldest_epochs_are_forgotten),
        cmocka_unit_test(epochs_out_of_order_are_refused),
        cmocka_unit_test(disorder_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
