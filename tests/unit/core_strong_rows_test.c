/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a consensus group: they come back as they went in, and no flipped bit passes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "region/core/strong_rows.h"
#include "tests/lib/strong_rows.h"

/* A number of any length. */
static uint64_t draw(struct rng *rng, uint64_t max)
{
    uint64_t value = rng_next(rng) >> rng_below(rng, 64);
    return value > max ? max : value;
}

static const uint64_t index_max = UINT64_MAX / 4;

static struct consensus_hard draw_hard(struct rng *rng)
{
    return (struct consensus_hard){.term = draw(rng, index_max),
                                   .voted_for = (uint8_t)rng_below(rng, CONSENSUS_NOBODY + 1),
                                   .incarnation = draw(rng, UINT64_MAX),
                                   .boot = draw(rng, UINT64_MAX),
                                   .standing = (enum consensus_standing)rng_below(rng, 3),
                                   .recover_upto = draw(rng, UINT64_MAX)};
}

static struct consensus_entry draw_entry(struct rng *rng, struct bytes payload)
{
    return (struct consensus_entry){.index = 1 + draw(rng, index_max - 1),
                                    .term = 1 + draw(rng, index_max - 1),
                                    .kind = (enum consensus_entry_kind)rng_below(rng, 2),
                                    .origin = (uint8_t)rng_below(rng, CONSENSUS_MEMBERS),
                                    .incarnation = draw(rng, UINT64_MAX),
                                    .seq = draw(rng, UINT64_MAX),
                                    .payload = payload};
}

static void rows_come_back(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    cleanup(buf_deinit) struct buf row = {0};
    for (int round = 0; round < 2000; round++) {
        struct consensus_hard hard = draw_hard(&rng), hard_back;
        uint64_t generation = draw(&rng, index_max), generation_back;
        buf_reset(&row);
        strong_hard_encode(&hard, generation, &row);
        assert_true(strong_hard_decode(buf_view(&row), &hard_back, &generation_back));
        assert_hard_equal(&hard, &hard_back);
        assert_int_equal(generation, generation_back);

        uint64_t index = draw(&rng, index_max), term = draw(&rng, index_max), index_back, term_back;
        buf_reset(&row);
        strong_base_encode(index, term, &row);
        assert_true(strong_base_decode(buf_view(&row), &index_back, &term_back));
        assert_int_equal(index, index_back);
        assert_int_equal(term, term_back);

        static const char text[] = "any bytes at all";
        struct consensus_entry back,
            entry = draw_entry(&rng, bytes_make(text, rng_below(&rng, sizeof(text))));
        uint64_t synced = draw(&rng, UINT64_MAX), synced_back;
        buf_reset(&row);
        strong_log_encode(&entry, synced, &row);
        assert_true(strong_log_decode(entry.index, buf_view(&row), &back, &synced_back));
        assert_entry_equal(&entry, &back);
        assert_int_equal(synced_back, synced < entry.index ? synced : entry.index - 1);
        /* Moved to another key, it is not that row. */
        assert_false(strong_log_decode(entry.index ^ 1, buf_view(&row), &back, &synced_back));
    }
}

enum row_kind { ROW_HARD, ROW_BASE, ROW_LOG };

static bool decodes(enum row_kind kind, struct bytes row)
{
    struct consensus_hard hard;
    struct consensus_entry entry;
    uint64_t one, two;
    switch (kind) {
    case ROW_HARD:
        return strong_hard_decode(row, &hard, &one);
    case ROW_BASE:
        return strong_base_decode(row, &one, &two);
    case ROW_LOG:
        return strong_log_decode(77, row, &entry, &one);
    }
    return true;
}

static void no_truncation_and_no_flipped_bit_passes(void **state)
{
    (void)state;
    cleanup(buf_deinit) struct buf row = {0};
    const struct consensus_hard hard = {.term = 300,
                                        .voted_for = 1,
                                        .incarnation = 1700000000123,
                                        .boot = 7,
                                        .standing = CONSENSUS_RECOVERING,
                                        .recover_upto = 12345};
    const struct consensus_entry entry = {.index = 77,
                                          .term = 5,
                                          .kind = CONSENSUS_WRITE,
                                          .origin = 2,
                                          .incarnation = 1700000000123,
                                          .seq = 1ull << 40,
                                          .payload = bytes_literal("payload")};
    for (enum row_kind kind = ROW_HARD; kind <= ROW_LOG; kind++) {
        buf_reset(&row);
        if (kind == ROW_HARD)
            strong_hard_encode(&hard, 1000, &row);
        else if (kind == ROW_BASE)
            strong_base_encode(99999, 300, &row);
        else
            strong_log_encode(&entry, 76, &row);
        assert_true(decodes(kind, buf_view(&row)));
        for (size_t len = 0; len < row.len; len++)
            assert_false(decodes(kind, bytes_make(row.at, len)));
        for (size_t bit = 0; bit < 8 * row.len; bit++) {
            row.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(decodes(kind, buf_view(&row)));
            row.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        buf_append_u8(&row, 0);
        assert_false(decodes(kind, buf_view(&row)));
    }
}

/* {a:'x'} */
static const uint8_t item[] = {1, 1, 'a', 1, 1, 'x'};
#define ITEM bytes_make(item, sizeof(item))
#define KEY bytes_literal("12345678a\0\1") /* hash, "a", terminator */

static void assert_one_payload(struct bytes run)
{
    struct strong_payload payload;
    if (!strong_payload_decode(run, &payload))
        return;
    cleanup(buf_deinit) struct buf again = {0};
    strong_payload_encode(&payload, &again);
    assert_true(bytes_equal(buf_view(&again), run));
}

static void payloads_come_back(void **state)
{
    (void)state;
    const struct strong_payload payloads[] = {
        {.kind = STRONG_PUT, .key = KEY, .item = ITEM},
        {.kind = STRONG_DELETE, .key = KEY},
        {.kind = STRONG_SEAL, .dissolver = 9},
    };
    cleanup(buf_deinit) struct buf run = {0};
    for (size_t i = 0; i < array_len(payloads); i++) {
        struct strong_payload back;
        buf_reset(&run);
        strong_payload_encode(&payloads[i], &run);
        assert_true(strong_payload_decode(buf_view(&run), &back));
        assert_int_equal(back.kind, payloads[i].kind);
        assert_true(bytes_equal(back.key, payloads[i].key));
        assert_true(bytes_equal(back.item, payloads[i].item));
        assert_int_equal(back.dissolver, payloads[i].dissolver);
        /* They have no checksum of their own; what passes is one payload and no other. */
        for (size_t at = 0; at < run.len; at++) {
            assert_one_payload(bytes_make(run.at, at));
            for (unsigned flip = 1; flip < 256; flip++) {
                run.at[at] ^= (uint8_t)flip;
                assert_one_payload(buf_view(&run));
                run.at[at] ^= (uint8_t)flip;
            }
        }
    }
}

static void foreign_payloads_are_refused(void **state)
{
    (void)state;
    const struct bytes refused[] = {
        {NULL, 0},
        bytes_literal("\2\2\13"
                      "12345678a\0\1"), /* another format */
        bytes_literal("\1\0\0"),        /* no kind */
        bytes_literal("\1\4\0"),
        bytes_literal("\1\2\5short"), /* a key that is none */
        bytes_literal("\1\3\0\0"),    /* no Region */
        bytes_literal("\1\3\0\177"),  /* none of ours */
        bytes_literal("\1\3\1k\1"),   /* a seal of a key */
        bytes_literal("\1\3\0\1\0"),  /* more behind it */
        bytes_literal("\1\2\13"
                      "12345678a\0\1x"), /* a delete with an item */
        bytes_literal("\1\1\13"
                      "12345678a\0\1\1\1a\1\1\377"), /* not UTF-8 */
    };
    struct strong_payload back;
    for (size_t i = 0; i < array_len(refused); i++)
        assert_false(strong_payload_decode(refused[i], &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back),
        cmocka_unit_test(no_truncation_and_no_flipped_bit_passes),
        cmocka_unit_test(payloads_come_back),
        cmocka_unit_test(foreign_payloads_are_refused),
    };
    return cmocka_run_group_tests_name("core/strong_rows", tests, NULL, NULL);
}
