/* SPDX-License-Identifier: Apache-2.0 */
/* Records and ledger entries: what is written is read, and no bit of a checksummed row may turn. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/rng.h"
#include "conflict/ledger.h"
#include "conflict/record.h"
#include "conflict/region_id.h"

static struct record draw(struct rng *rng, uint8_t *item)
{
    struct record record = {.kind = (enum record_kind)rng_between(rng, 1, 3),
                            .version = {rng_next(rng), (uint16_t)rng_between(rng, 1, REGION_ID_MAX),
                                        rng_between(rng, 1, UINT64_MAX)}};
    for (uint64_t n = rng_below(rng, 4); n > 0; n--)
        assert_true(
            vv_raise(&record.dep, (uint16_t)rng_between(rng, 1, REGION_ID_MAX), rng_next(rng)));
    size_t len = (size_t)rng_below(rng, 64);
    for (size_t i = 0; i < len; i++)
        item[i] = (uint8_t)rng_next(rng);
    if (record.kind == RECORD_PUT)
        record.item = bytes_make(item, len);
    return record;
}

static void assert_same(const struct record *a, const struct record *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(version_compare(a->version, b->version), 0);
    assert_int_equal(a->dep.count, b->dep.count);
    assert_true(vv_covers(&a->dep, &b->dep) && vv_covers(&b->dep, &a->dep));
    assert_true(bytes_equal(a->item, b->item));
}

static void bodies_and_log_rows_come_back(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 3000; i++) {
        uint8_t item[64];
        struct record record = draw(&rng, item), back;
        struct bytes body_back, key = bytes_literal("the key");
        cleanup(buf_deinit) struct buf body = {0};
        cleanup(buf_deinit) struct buf row = {0};
        cleanup(buf_deinit) struct buf again = {0};
        record_encode_body(&record, &body);
        assert_true(record_decode_body(buf_view(&body), &back));
        assert_same(&record, &back);
        assert_int_equal(back.key.len, 0);
        record_encode_log(key, buf_view(&body), &row);
        assert_true(record_decode_log(buf_view(&row), &back, &body_back));
        assert_same(&record, &back);
        assert_true(bytes_equal(back.key, key));
        assert_true(bytes_equal(body_back, buf_view(&body)));
        record_encode_body(&back, &again);
        assert_true(bytes_equal(buf_view(&again), buf_view(&body)));
    }
}

static void turned_bits_and_cuts_are_seen(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    for (int i = 0; i < 20; i++) {
        uint8_t item[64];
        struct record record = draw(&rng, item), back;
        cleanup(buf_deinit) struct buf body = {0};
        cleanup(buf_deinit) struct buf row = {0};
        record_encode_body(&record, &body);
        record_encode_log(bytes_literal("k"), buf_view(&body), &row);
        for (size_t bit = 0; bit < row.len * 8; bit++) {
            row.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(record_decode_log(buf_view(&row), &back, NULL));
            row.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        for (size_t len = 0; len < row.len; len++)
            assert_false(record_decode_log(bytes_make(row.at, len), &back, NULL));
    }
}

static void what_no_encoder_writes_is_refused(void **state)
{
    (void)state;
    struct record record = {.kind = RECORD_DELETE, .version = {1, 1, 1}}, back;
    cleanup(buf_deinit) struct buf body = {0};
    record_encode_body(&record, &body);
    assert_true(record_decode_body(buf_view(&body), &back));
    for (size_t at = 0; at < 2; at++) { /* another format, another kind */
        uint8_t was = body.at[at];
        body.at[at] = 4;
        assert_false(record_decode_body(buf_view(&body), &back));
        body.at[at] = was;
    }
    buf_append_u8(&body, 'x'); /* a tombstone with an item */
    assert_false(record_decode_body(buf_view(&body), &back));
    body.at[1] = RECORD_PUT;
    assert_true(record_decode_body(buf_view(&body), &back));
    memset(body.at + 2, 0, VERSION_ENCODED_LEN); /* of no version */
    assert_false(record_decode_body(buf_view(&body), &back));
}

static void ledger_entries_come_back(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    for (int i = 0; i < 500; i++) {
        uint8_t items[2][64];
        struct ledger_entry entry = {.detected_wall_ms = rng_next(&rng),
                                     .relation =
                                         rng_one_in(&rng, 2) ? RESOLVE_CONCURRENT : RESOLVE_LATE,
                                     .clock_suspect = rng_one_in(&rng, 2),
                                     .key = bytes_literal("a key"),
                                     .winner = draw(&rng, items[0]),
                                     .loser = draw(&rng, items[1])};
        struct ledger_entry back;
        cleanup(buf_deinit) struct buf row = {0};
        ledger_encode(&entry, &row);
        assert_true(ledger_decode(buf_view(&row), &back));
        assert_int_equal(back.detected_wall_ms, entry.detected_wall_ms);
        assert_int_equal(back.relation, entry.relation);
        assert_int_equal(back.clock_suspect, entry.clock_suspect);
        assert_true(bytes_equal(back.key, entry.key));
        assert_same(&back.winner, &entry.winner);
        assert_same(&back.loser, &entry.loser);
        size_t bit = (size_t)rng_below(&rng, row.len * 8);
        row.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(ledger_decode(buf_view(&row), &back));
        row.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(ledger_decode(bytes_make(row.at, (size_t)rng_below(&rng, row.len)), &back));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_and_log_rows_come_back),
        cmocka_unit_test(turned_bits_and_cuts_are_seen),
        cmocka_unit_test(what_no_encoder_writes_is_refused),
        cmocka_unit_test(ledger_entries_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
