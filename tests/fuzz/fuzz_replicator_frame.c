/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as frames from a peer, on both of its streams, to a replicator that has a partition
 * with the peer, and a Hello behind it. The input is a run of frames, each with its length as a
 * varint before it; the lowest bit of a byte before that says on which stream, the next whether the
 * owner then does what it was asked to. Nothing may crash, and what comes out must be what a peer
 * can decode. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "replicator/replicator.h"
#include "replicator/replicator_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PEER = 9, TASKS_MAX = 256 };

struct target {
    struct replicator *replicator;
    struct replica *replica;
    uint64_t now_ms;
    struct replicator_input tasks[TASKS_MAX];
    uint32_t task_count;
};

static void step(struct target *target, struct replicator_input in)
{
    in.mono_ns = target->now_ms * 1000000;
    in.wall_ms = target->now_ms;
    in.hlc_now = target->now_ms << 16;
    struct replicator_output out;
    replicator_step(target->replicator, &in, &out);
    struct arena arena;
    arena_init(&arena);
    for (uint32_t i = 0; i < out.count; i++) {
        const struct replicator_effect *e = &out.at[i];
        struct wire_message message;
        if (e->kind == REPLICATOR_SEND)
            check(wire_decode(e->bytes, 1 << 24, &arena, &message));
        for (uint32_t row = 0; row < e->row_count; row++) {
            struct record record;
            check(e->rows[row].key.len > 0);
            check(record_decode_body(e->rows[row].body, &record));
        }
        if (target->task_count == TASKS_MAX)
            continue;
        struct replicator_input *task = &target->tasks[target->task_count];
        if (e->apply_id) {
            *task = (struct replicator_input){.kind = REPLICATOR_APPLIED,
                                              .peer = e->peer,
                                              .replica = e->replica,
                                              .apply_id = e->apply_id};
            target->task_count++;
        } else if (e->id) {
            *task = (struct replicator_input){.kind = REPLICATOR_ROWS, .id = e->id, .failed = true};
            target->task_count++;
        }
    }
    arena_deinit(&arena);
}

static void work(struct target *target)
{
    for (uint32_t i = 0; i < target->task_count; i++) {
        struct replicator_input task = target->tasks[i];
        step(target, task);
    }
    target->task_count = 0;
}

static void connect(struct target *target, bool outbound)
{
    struct arena arena;
    arena_init(&arena);
    struct wire_message hello = {.kind = WIRE_HELLO, .protocol = WIRE_PROTOCOL, .region = PEER};
    struct bytes frame = wire_encode(&hello, &arena);
    step(target,
         (struct replicator_input){.kind = REPLICATOR_PEER_UP, .peer = PEER, .outbound = outbound});
    step(target, (struct replicator_input){
                     .kind = REPLICATOR_FRAME, .peer = PEER, .outbound = outbound, .bytes = frame});
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct replicator_config config = {.region = 1,
                                       .peers = {PEER},
                                       .peer_count = 1,
                                       .window_bytes_max = 1 << 20,
                                       .batch_bytes_max = 1 << 16,
                                       .batch_records_max = 100,
                                       .frame_bytes_max = 1 << 20,
                                       .heartbeat_ms = 200,
                                       .silence_ms_max = 10000,
                                       .log_bytes_max = 1 << 20,
                                       .apply_bytes_max = 1 << 20};
    struct target target = {.replicator = replicator_new(&config), .now_ms = 1000};
    struct replica_state state = {.log_first = 3, .log_bytes = 100};
    memcpy(state.group_id, "0123456789abcdef", sizeof(state.group_id));
    check(vv_raise(&state.vv, 1, 7));
    target.replica = replicator_open(target.replicator, &state);
    replicator_add_member(target.replicator, target.replica, PEER);
    replica_note_tombstones(target.replica, true);
    connect(&target, true);
    connect(&target, false);
    struct bytes rest = bytes_make(data, size), frame;
    uint8_t how;
    while (bytes_take_u8(&rest, &how) && bytes_take_prefixed(&rest, &frame)) {
        step(&target,
             (struct replicator_input){
                 .kind = REPLICATOR_FRAME, .peer = PEER, .outbound = how & 1, .bytes = frame});
        if (how & 2)
            work(&target);
        if (how & 4) {
            target.now_ms += 300;
            step(&target, (struct replicator_input){.kind = REPLICATOR_TIMEOUT});
        }
    }
    replicator_free(target.replicator);
    return 0;
}
