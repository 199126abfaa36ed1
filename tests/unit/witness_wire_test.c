/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of message comes back as it went; a frame with any bit wrong does not come back; and
 * what the codec vouches for it refuses to break. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "witness/consensus_wire.h"

enum { MEMORY_MAX = 1 << 20 };

static struct consensus_message sample(enum consensus_message_kind kind)
{
    static struct consensus_entry entries[] = {
        {.index = 8, .term = 3, .kind = CONSENSUS_NOOP, .origin = 1},
        {.index = 9,
         .term = 4,
         .kind = CONSENSUS_WRITE,
         .origin = 2,
         .incarnation = 77,
         .seq = 1ull << 41,
         .payload = {(const uint8_t *)"payload", 7}}};
    struct consensus_message m = {.kind = kind,
                                  .epoch = 3,
                                  .source = 2,
                                  .destination = 1,
                                  .term = 5,
                                  .incarnation = 77,
                                  .boot = 2,
                                  .standing = CONSENSUS_RECOVERING};
    memset(m.place.group_id, 0xab, sizeof(m.place.group_id));
    m.place.partition = 300;
    m.next_term = 6, m.last_index = 12, m.last_term = 4, m.transfer = true, m.granted = true;
    m.prev_index = 7, m.prev_term = 3, m.entries = entries, m.entry_count = 2;
    m.commit = 10, m.leader_durable = 11, m.all_durable = 9, m.rejoin_index = 12;
    m.round_trip_us = 8000, m.known_incarnation = 66, m.known_boot = 4, m.quiesce = true;
    m.round = 99, m.ok = true, m.full = true, m.quiesced = true;
    m.durable = 6, m.received = 7, m.conflict_index = 5, m.conflict_term = 2;
    m.seq = 1ull << 42, m.low = 1ull << 41, m.applied = 20, m.bytes = bytes_literal("bytes");
    m.outcome = PROPOSE_CONFLICT, m.index = 21, m.for_incarnation = 88, m.nonce = 23;
    m.refused = true, m.index_term = 4, m.offset = 24, m.last = true, m.installed = true;
    return m;
}

/* What a kind does not carry comes back as zero, so two encodings are compared, not two structs. */
static void test_round_trip(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    for (int kind = MESSAGE_PRE_VOTE; kind <= MESSAGE_SNAPSHOT_RESPONSE; kind++) {
        struct consensus_message m = sample((enum consensus_message_kind)kind), back;
        struct bytes frame = consensus_encode(&m, &arena);
        assert_true(consensus_decode(frame, MEMORY_MAX, &arena, &back));
        assert_int_equal(back.kind, kind);
        assert_true(bytes_equal(frame, consensus_encode(&back, &arena)));
        struct consensus_place place;
        assert_true(consensus_frame_place(frame, &place));
        assert_memory_equal(place.group_id, m.place.group_id, sizeof(place.group_id));
        assert_int_equal(place.partition, 300);
        assert_string_not_equal(consensus_message_name((enum consensus_message_kind)kind), "");
    }
    struct consensus_message m = sample(MESSAGE_APPEND), back;
    assert_true(consensus_decode(consensus_encode(&m, &arena), MEMORY_MAX, &arena, &back));
    assert_int_equal(back.entries[1].index, 9);
    assert_int_equal(back.entries[1].seq, 1ull << 41);
    assert_true(bytes_is(back.entries[1].payload, "payload"));
    assert_int_equal(back.rejoin_index, 12);
    assert_int_equal(back.known_boot, 4);
    arena_deinit(&arena);
}

static void test_any_bit(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct consensus_message m = sample(MESSAGE_APPEND), back;
    struct bytes frame = consensus_encode(&m, &arena);
    uint8_t *copy = arena_copy(&arena, frame.at, frame.len);
    for (size_t bit = 0; bit < 8 * frame.len; bit++) {
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(consensus_decode(bytes_make(copy, frame.len), MEMORY_MAX, &arena, &back));
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = 0; len < frame.len; len++)
        assert_false(consensus_decode(bytes_make(copy, len), MEMORY_MAX, &arena, &back));
    assert_false(consensus_decode(frame, 64, &arena, &back)); /* beyond its memory */
    arena_deinit(&arena);
}

static void expect_refused(struct consensus_message m)
{
    struct arena arena;
    struct consensus_message back;
    arena_init(&arena);
    assert_false(consensus_decode(consensus_encode(&m, &arena), MEMORY_MAX, &arena, &back));
    arena_deinit(&arena);
}

#define REFUSED(kind, change)                                                                      \
    do {                                                                                           \
        struct consensus_message m = sample(kind);                                                 \
        struct consensus_entry entries[2] = {m.entries[0], m.entries[1]};                          \
        m.entries = entries;                                                                       \
        change;                                                                                    \
        expect_refused(m);                                                                         \
    } while (0)

static void test_refused(void **state)
{
    (void)state;
    REFUSED(MESSAGE_VOTE, m.source = 3);
    REFUSED(MESSAGE_VOTE, m.destination = 2);
    REFUSED(MESSAGE_VOTE, m.standing = (enum consensus_standing)3);
    REFUSED(MESSAGE_VOTE, m.term = UINT64_MAX);
    REFUSED(MESSAGE_APPEND, m.prev_index = UINT64_MAX);
    REFUSED(MESSAGE_APPEND, m.last_index = 8);
    REFUSED(MESSAGE_APPEND, m.commit = 13);
    REFUSED(MESSAGE_APPEND, m.leader_durable = 13);
    REFUSED(MESSAGE_APPEND, m.all_durable = 11);
    REFUSED(MESSAGE_APPEND, m.rejoin_index = 13);
    REFUSED(MESSAGE_APPEND, entries[0].term = 2);
    REFUSED(MESSAGE_APPEND, entries[1].term = 6);
    REFUSED(MESSAGE_APPEND, entries[1].origin = 3);
    REFUSED(MESSAGE_APPEND, entries[1].kind = (enum consensus_entry_kind)2);
    REFUSED(MESSAGE_APPEND_RESPONSE, m.durable = 8);
    REFUSED(MESSAGE_PROPOSE_RESPONSE, m.outcome = (enum propose_outcome)5);
    REFUSED(MESSAGE_READ_INDEX_RESPONSE, m.index = UINT64_MAX);
    REFUSED(MESSAGE_SNAPSHOT, m.index = 0);
    REFUSED(MESSAGE_SNAPSHOT, m.index_term = 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_any_bit),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
