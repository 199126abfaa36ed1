/* SPDX-License-Identifier: Apache-2.0 */
/* Messages come back as they went, checksums catch turned bits in records, and a small frame cannot
 * make a large message. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/rng.h"
#include "replicator/replicator_wire.h"

static const uint64_t MEMORY = 1 << 24;

static struct wire_place place(uint32_t partition)
{
    struct wire_place to = {.partition = partition};
    memcpy(to.group_id, "0123456789abcdef", WIRE_GROUP_ID_LEN);
    return to;
}

static void lists_come_back(void **state)
{
    (void)state;
    static const enum wire_kind kinds[] = {WIRE_OFFER, WIRE_RESUME, WIRE_ACK, WIRE_HEARTBEAT};
    struct wire_position positions[3] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        positions[i] = (struct wire_position){.place = place(i),
                                              .have = i + 1,
                                              .stamped = UINT64_MAX - i,
                                              .sent = i,
                                              .snapshot_id = i * 7,
                                              .snapshot_chunks = i * 3,
                                              .round = i + 5};
        assert_true(vv_raise(&positions[i].vv, 9, i));
    }
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct arena arena;
        arena_init(&arena);
        struct wire_message message = {.kind = kinds[k],
                                       .positions = positions,
                                       .position_count = 3,
                                       .window_bytes = 11,
                                       .consumed_bytes = 12,
                                       .want_tables = true,
                                       .promise = 13,
                                       .sent_bytes = 14,
                                       .partial = true,
                                       .tables_crc = 15};
        struct wire_message back;
        assert_true(wire_decode(wire_encode(&message, &arena), MEMORY, &arena, &back));
        assert_int_equal(back.kind, kinds[k]);
        assert_int_equal(back.position_count, 3);
        for (uint32_t i = 0; i < 3; i++) {
            const struct wire_position *p = &back.positions[i];
            assert_memory_equal(&p->place, &positions[i].place, sizeof(p->place));
            assert_true(p->have == positions[i].have && p->stamped == positions[i].stamped &&
                        p->sent == positions[i].sent && p->round == positions[i].round &&
                        p->snapshot_id == positions[i].snapshot_id &&
                        p->snapshot_chunks == positions[i].snapshot_chunks);
            bool vectors = kinds[k] == WIRE_RESUME || kinds[k] == WIRE_ACK;
            assert_int_equal(vv_get(&p->vv, 9), vectors ? i : 0);
        }
        bool ack = kinds[k] == WIRE_ACK, beat = kinds[k] == WIRE_HEARTBEAT;
        assert_true(back.window_bytes == (ack ? 11 : 0) && back.consumed_bytes == (ack ? 12 : 0) &&
                    back.want_tables == ack);
        assert_true(back.promise == (beat ? 13 : 0) && back.sent_bytes == (beat ? 14 : 0) &&
                    back.partial == beat && back.tables_crc == (beat ? 15 : 0));
        arena_deinit(&arena);
    }
}

static void records_are_checksummed(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    cleanup(buf_deinit) struct buf records = {0};
    cleanup(buf_deinit) struct buf body = {0};
    struct record record = {.kind = RECORD_PUT, .version = {7, 1, 5}, .item = bytes_literal("it")};
    record_encode_body(&record, &body);
    wire_record_append(bytes_literal("key"), buf_view(&body), &records);
    struct wire_message batch = {.kind = WIRE_BATCH,
                                 .place = place(2),
                                 .first_seq = 5,
                                 .record_count = 1,
                                 .records = buf_view(&records)};
    struct wire_message chunk = {.kind = WIRE_SNAPSHOT_CHUNK,
                                 .place = place(3),
                                 .snapshot_id = 4,
                                 .index = 6,
                                 .begin = bytes_literal("a"),
                                 .end = bytes_literal("z"),
                                 .record_count = 1,
                                 .records = buf_view(&records)};
    const struct wire_message *messages[] = {&batch, &chunk};
    for (int i = 0; i < 2; i++) {
        struct wire_message back;
        struct bytes frame = wire_encode(messages[i], &arena);
        assert_true(wire_decode(frame, MEMORY, &arena, &back));
        assert_true(bytes_equal(back.records, buf_view(&records)));
        struct bytes rest = back.records, body_back;
        struct record record_back;
        assert_true(wire_record_take(&rest, &record_back, &body_back));
        assert_true(bytes_is(record_back.key, "key") && bytes_is(record_back.item, "it"));
        assert_true(bytes_equal(body_back, buf_view(&body)));
        assert_false(wire_record_take(&rest, &record_back, &body_back));
        /* The records are the frame's last field. */
        uint8_t *at = (uint8_t *)frame.at;
        for (size_t bit = 0; bit < records.len * 8; bit++) {
            at[frame.len - 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(wire_decode(frame, MEMORY, &arena, &back));
            at[frame.len - 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    struct wire_message back;
    chunk.epoch = VERSION_EPOCH_MAX;
    assert_true(wire_decode(wire_encode(&chunk, &arena), MEMORY, &arena, &back));
    assert_true(back.epoch == VERSION_EPOCH_MAX);
    chunk.epoch++;
    assert_false(wire_decode(wire_encode(&chunk, &arena), MEMORY, &arena, &back));
    chunk.epoch = 0;
    /* Numbers that would overflow, nothing at all, an end that is none. */
    batch.first_seq = UINT64_MAX;
    assert_false(wire_decode(wire_encode(&batch, &arena), MEMORY, &arena, &back));
    batch.first_seq = 5;
    batch.record_count = 0;
    assert_false(wire_decode(wire_encode(&batch, &arena), MEMORY, &arena, &back));
    chunk.last = true;
    assert_false(wire_decode(wire_encode(&chunk, &arena), MEMORY, &arena, &back));
    chunk.end = BYTES_NONE;
    assert_true(wire_decode(wire_encode(&chunk, &arena), MEMORY, &arena, &back));
    arena_deinit(&arena);
}

static void short_messages_come_back(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct wire_message back;
    struct wire_message hello = {.kind = WIRE_HELLO, .protocol = 1, .region = 9};
    assert_true(wire_decode(wire_encode(&hello, &arena), MEMORY, &arena, &back));
    assert_true(back.kind == WIRE_HELLO && back.protocol == 1 && back.region == 9);
    struct wire_message tables = {.kind = WIRE_TABLES, .part = bytes_literal("xyz"), .more = true};
    assert_true(wire_decode(wire_encode(&tables, &arena), MEMORY, &arena, &back));
    assert_true(back.kind == WIRE_TABLES && bytes_is(back.part, "xyz") && back.more);
    struct wire_message offer = {.kind = WIRE_SNAPSHOT_OFFER, .place = place(1), .snapshot_id = 3};
    assert_true(wire_decode(wire_encode(&offer, &arena), MEMORY, &arena, &back));
    assert_true(back.kind == WIRE_SNAPSHOT_OFFER && back.snapshot_id == 3);
    offer.kind = WIRE_SNAPSHOT_ACCEPT;
    assert_true(wire_decode(wire_encode(&offer, &arena), MEMORY, &arena, &back));
    assert_true(back.kind == WIRE_SNAPSHOT_ACCEPT && back.place.partition == 1);
    assert_false(wire_decode(BYTES_NONE, MEMORY, &arena, &back));
    arena_deinit(&arena);
}

static void a_small_frame_makes_no_large_message(void **state)
{
    (void)state;
    /* An Offer of 100,000 empty positions: two bytes each in the frame, a hundred in memory. */
    enum { COUNT = 100000 };
    cleanup(buf_deinit) struct buf frame = {0};
    buf_append_u8(&frame, 0x1a);
    buf_append_varint(&frame, 2 * COUNT);
    for (int i = 0; i < COUNT; i++) {
        buf_append_u8(&frame, 0x0a);
        buf_append_u8(&frame, 0);
    }
    struct arena arena;
    arena_init(&arena);
    struct wire_message back;
    assert_false(wire_decode(buf_view(&frame), 1 << 20, &arena, &back));
    assert_true(arena.used <= (1 << 20) + (1 << 17));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_come_back),
        cmocka_unit_test(records_are_checksummed),
        cmocka_unit_test(short_messages_come_back),
        cmocka_unit_test(a_small_frame_makes_no_large_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
