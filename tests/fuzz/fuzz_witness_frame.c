/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a strong group from arbitrary bytes: through the decoder as they are, and, as far as
 * they decode, as a peer's to a living member, whose owner answers all its effects. The first byte
 * says what that member is: a data member or a witness, follower or leader. Each frame is two bytes
 * of length, a byte that says from whom, and a message without its checksum, which is put in front
 * here. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "witness/consensus_wire.h"
#include "witness/relay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 1 << 20, DEPTH_MAX = 8 };

struct fixture {
    struct consensus *core;
    struct arena arena;
    uint64_t now;
    uint64_t applied;
    int depth;
};

static void step(struct fixture *f, struct consensus_input in);

/* What the owner answers; the core's output is gone with the next step, so all is copied first. */
static void answer(struct fixture *f, const struct consensus_effect *effect)
{
    struct consensus_input in = {.id = effect->id};
    if (effect->kind == CONSENSUS_PERSIST) {
        in.kind = CONSENSUS_PERSISTED;
        in.seq = effect->seq;
    } else if (effect->kind == CONSENSUS_APPLY) {
        check(effect->index == f->applied + 1);
        f->applied = effect->index;
        in.kind = CONSENSUS_APPLIED;
        in.index = in.stable = effect->index;
    } else if (effect->kind == CONSENSUS_EVALUATE) {
        in.kind = CONSENSUS_EVALUATED;
        in.verdict = (enum consensus_verdict)(effect->id % 3);
        in.bytes = bytes_literal("post-image");
    } else if (effect->kind == CONSENSUS_SNAPSHOT_READ) {
        in.kind = CONSENSUS_SNAPSHOT_PIECE;
        in.index = f->applied;
        in.offset = effect->offset;
        in.last = effect->offset >= 10;
        in.bytes = bytes_literal("items");
    } else if (effect->kind == CONSENSUS_SNAPSHOT_WRITE) {
        in.kind = effect->last ? CONSENSUS_SNAPSHOT_INSTALLED : CONSENSUS_SNAPSHOT_STAGED;
        in.offset = effect->offset + effect->bytes.len;
        if (effect->last)
            f->applied = effect->index;
    } else {
        return;
    }
    step(f, in);
}

static void step(struct fixture *f, struct consensus_input in)
{
    struct consensus_output out;
    in.mono_ns = f->now;
    consensus_step(f->core, &in, &out);
    if (f->depth == DEPTH_MAX)
        return;
    struct consensus_effect *effects = xcalloc(out.count, sizeof(*effects));
    uint32_t count = out.count;
    for (uint32_t i = 0; i < count; i++)
        effects[i] = out.at[i];
    /* Of bytes only the length is looked at from here on. */
    f->depth++;
    for (uint32_t i = 0; i < count; i++)
        answer(f, &effects[i]);
    f->depth--;
    free(effects);
}

static void fixture_start(struct fixture *f, uint8_t what)
{
    struct consensus_config config = {.epoch = 1,
                                      .kinds = {what & 1 ? CONSENSUS_WITNESS : CONSENSUS_DATA},
                                      .heartbeat_ns = 50000000,
                                      .election_ns = 200000000,
                                      .election_ns_max = 400000000,
                                      .request_timeout_ns = 1000000000,
                                      .retry_ns = 100000000,
                                      .batch_bytes_max = 100,
                                      .inflight_bytes_max = 300,
                                      .log_bytes_max = 1000,
                                      .frame_bytes_max = 10000,
                                      .pending_max = 4,
                                      .evaluate_max = 2,
                                      .trim_entries = 2,
                                      .quiesce = what & 2};
    f->core = consensus_new(&config);
    struct consensus_start start = {
        .found = !(what & 4), .hard = consensus_hard_initial(3), .incarnation = 4};
    if (start.found && what & 8)
        start.damaged_upto = 3;
    step(f, (struct consensus_input){.kind = CONSENSUS_START, .start = &start});
}

static void deliver(struct fixture *f, const struct consensus_message *m)
{
    struct bytes frame = consensus_encode(m, &f->arena);
    step(f, (struct consensus_input){.kind = CONSENSUS_FRAME, .peer = m->source, .bytes = frame});
}

static void elect(struct fixture *f)
{
    f->now = consensus_deadline(f->core);
    step(f, (struct consensus_input){.kind = CONSENSUS_TIMEOUT});
    struct consensus_message yes = {.kind = MESSAGE_PRE_VOTE_RESPONSE,
                                    .epoch = 1,
                                    .source = 1,
                                    .incarnation = 1,
                                    .boot = 1,
                                    .next_term = 1,
                                    .granted = true};
    deliver(f, &yes);
    yes.kind = MESSAGE_VOTE_RESPONSE;
    yes.term = 1;
    deliver(f, &yes);
}

static void frame_take(struct fixture *f, uint8_t flags, struct bytes body)
{
    struct buf frame = {0};
    struct consensus_message m;
    buf_append_be32(&frame, crc32c(0, body));
    buf_append_bytes(&frame, body);
    struct consensus_place place;
    consensus_frame_place(buf_view(&frame), &place);
    if (consensus_decode(buf_view(&frame), MEMORY_MAX, &f->arena, &m)) {
        m.place = (struct consensus_place){0};
        m.epoch = 1;
        m.source = flags & 1 ? 1 : 2;
        m.destination = 0;
        deliver(f, &m);
    }
    buf_deinit(&frame);
    f->now += (uint64_t)flags * 1000000;
    if (flags & 2)
        step(f, (struct consensus_input){
                    .kind = CONSENSUS_PROPOSE, .token = 1, .bytes = bytes_literal("operation")});
    if (flags & 4)
        step(f, (struct consensus_input){.kind = CONSENSUS_READ, .token = 2, .strong = true});
    if (flags & 8)
        step(f, (struct consensus_input){.kind = CONSENSUS_TIMEOUT});
}

static void through_relay(struct bytes envelope)
{
    struct relay relay;
    struct buf onward = {0};
    uint8_t peer;
    struct bytes frame;
    relay_init(&relay, 0, 100, 0);
    if (relay_receive(&relay, 1, envelope, 1, &peer, &frame, &onward) == RELAY_FORWARD)
        check(onward.len == envelope.len);
    buf_deinit(&onward);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = bytes_make(data, size), body;
    uint8_t what, flags;
    uint16_t len;
    if (size > 20000 || !bytes_take_u8(&rest, &what))
        return 0;
    through_relay(rest);
    struct fixture f = {.now = 1};
    arena_init(&f.arena);
    struct consensus_message m;
    consensus_decode(rest, MEMORY_MAX, &f.arena, &m);
    fixture_start(&f, what);
    if (what & 16)
        elect(&f);
    for (int i = 0; i < 64 && bytes_take_be16(&rest, &len) && bytes_take_u8(&rest, &flags) &&
                    bytes_take(&rest, len < rest.len ? len : rest.len, &body);
         i++)
        frame_take(&f, flags, body);
    consensus_free(f.core);
    arena_deinit(&f.arena);
    return 0;
}
