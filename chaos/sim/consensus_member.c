/* SPDX-License-Identifier: Apache-2.0 */
/* A member: performs its core's effects in virtual time, and is the owner of its items, as the
 * region core will be: evaluates proposals in log order against what the log will have made of the
 * items, applies entries, gives and takes snapshots. */

#include "chaos/sim/consensus_world.h"

#include <stdio.h>

#include "conflict/base/plant.h"

/* ---- Items ---- */

bool items_evaluate(const struct items *items, const struct call *call, struct payload *ret)
{
    const struct item *item = &items->at[call->key];
    *ret = (struct payload){.call = *call, .present = 1, .value = call->argument};
    switch ((enum call_kind)call->kind) {
    case CALL_PUT:
        return true;
    case CALL_IF:
        return item->present == call->expected_present &&
               (!item->present || item->value == call->expected);
    case CALL_ADD:
        ret->value = (item->present ? item->value : 0) + call->argument;
        return true;
    case CALL_DELETE:
        ret->present = 0;
        ret->value = 0;
        return true;
    case CALL_READ:
        break;
    }
    unreachable();
}

void items_apply(struct items *items, const struct payload *payload, uint64_t index, uint8_t origin)
{
    items->at[payload->call.key] = (struct item){
        .value = payload->value, .present = payload->present, .index = index, .origin = origin};
}

/* ---- Effects ---- */

static void later(struct world *world, struct member *member, int kind, uint64_t id,
                  uint64_t delay_ns, struct bytes bytes)
{
    struct sim_event event = {.kind = kind,
                              .node = member->index,
                              .generation = member->generation,
                              .id = id,
                              .bytes = bytes};
    sim_schedule(&world->sim, world->sim.now_ns + delay_ns, &event);
}

static void do_apply(struct world *world, struct member *member,
                     const struct consensus_effect *effect)
{
    if (effect->index != member->applied + 1)
        violate(world, "entries are not applied one by one", "member %u: %llu after %llu",
                member->index, (unsigned long long)effect->index,
                (unsigned long long)member->applied);
    if (effect->entry.kind == CONSENSUS_WRITE) {
        struct payload payload;
        check(effect->entry.payload.len == sizeof(payload));
        memcpy(&payload, effect->entry.payload.at, sizeof(payload));
        items_apply(&member->items, &payload, effect->index, effect->entry.origin);
    }
    member->applied = effect->index;
    member->applied_term = effect->entry.term;
    ghost_applied(world, member);
    if (member->applied_due)
        return;
    member->applied_due = true;
    later(world, member, EVENT_APPLIED, 0, draw(world, 0, world->options.apply_ns_max), BYTES_NONE);
}

static void items_flush(struct member *member)
{
    member->disk.items = member->items;
    member->disk.items_index = member->applied;
    member->disk.items_term = member->applied_term;
}

/* flush: the items become durable now, as they do before long anyway. */
static void on_applied(struct world *world, struct member *member, bool flush)
{
    if (flush)
        member->flush_due = false;
    else
        member->applied_due = false;
    if (flush || chance(world, world->options.flush_one_in))
        items_flush(member);
    if (member->disk.items_index < member->applied && !member->flush_due) {
        member->flush_due = true;
        later(world, member, EVENT_APPLIED, 1, 300 * ms, BYTES_NONE);
    }
    struct consensus_input in = {
        .kind = CONSENSUS_APPLIED, .index = member->applied, .stable = member->disk.items_index};
    member_step(world, member, &in);
}

static void do_evaluate(struct world *world, struct member *member,
                        const struct consensus_effect *effect)
{
    if (member->evaluations_len == member->evaluations_cap) {
        member->evaluations_cap = member->evaluations_cap ? member->evaluations_cap * 2 : 8;
        member->evaluations =
            xrealloc(member->evaluations, member->evaluations_cap * sizeof(*member->evaluations));
    }
    struct evaluation *added = &member->evaluations[member->evaluations_len++];
    *added = (struct evaluation){
        .id = effect->id, .origin = effect->origin, .origin_applied = effect->index};
    check(effect->bytes.len == sizeof(added->call));
    memcpy(&added->call, effect->bytes.at, sizeof(added->call));
    /* Answered in the order of asking, each after a while. */
    uint64_t at = world->sim.now_ns + draw(world, 0, world->options.evaluate_ns_max);
    member->evaluated_ns = at > member->evaluated_ns ? at : member->evaluated_ns;
    later(world, member, EVENT_EVALUATED, 0, member->evaluated_ns - world->sim.now_ns, BYTES_NONE);
}

static void on_evaluated(struct world *world, struct member *member)
{
    if (member->evaluations_len == 0)
        return; /* void since */
    struct evaluation evaluation = member->evaluations[0];
    member->evaluations_len--;
    memmove(member->evaluations, member->evaluations + 1,
            member->evaluations_len * sizeof(*member->evaluations));
    const struct items *items = planted(PLANT_EVALUATE_STALE) ? &member->items : &member->view;
    const struct item *item = &items->at[evaluation.call.key];
    struct consensus_input in = {.kind = CONSENSUS_EVALUATED, .id = evaluation.id};
    if (world->options.conflicts && item->index > evaluation.origin_applied &&
        item->origin != evaluation.origin) {
        in.verdict = CONSENSUS_EVALUATED_CONFLICT;
    } else if (items_evaluate(items, &evaluation.call, &member->evaluated)) {
        in.verdict = CONSENSUS_EVALUATED_WRITE;
        in.bytes = bytes_make(&member->evaluated, sizeof(member->evaluated));
        member->evaluated_origin = evaluation.origin;
    } else {
        in.verdict = CONSENSUS_EVALUATED_FAILED;
        in.bytes = bytes_make(item, sizeof(*item));
    }
    member_step(world, member, &in);
}

static void on_role(struct world *world, struct member *member)
{
    struct consensus_status status = consensus_status(member->core);
    bool same = member->serving && status.serving && status.term == member->serving_term;
    if (!status.serving)
        member->evaluations_len = 0;
    if (status.serving && !same) {
        member->view = member->items;
        member->serving_term = status.term;
    }
    member->serving = status.serving;
    world->verdict->elections += status.role == CONSENSUS_LEADER && !status.serving;
    if (status.role == CONSENSUS_LEADER && !status.serving)
        sim_log_mark(world->sim.log, world->sim.now_ns, member->index, "leads, term %llu",
                     (unsigned long long)status.term);
    SOMETIMES_IF(&world->sim, CARETAKER,
                 status.role == CONSENSUS_LEADER && !is_data(world, member->index));
}

/* ---- Snapshots ---- */

struct piece {
    uint64_t index, offset;
    uint8_t last, bytes[31];
};

static void do_snapshot_read(struct world *world, struct member *member,
                             const struct consensus_effect *effect)
{
    struct snap *snap = NULL;
    for (uint32_t i = 0; i < member->snap_count; i++)
        if (member->snaps[i].id == effect->id)
            snap = &member->snaps[i];
    if (!snap) {
        check(member->snap_count < SNAPS_MAX);
        snap = &member->snaps[member->snap_count++];
        *snap = (struct snap){.id = effect->id, .index = member->applied, .items = member->items};
        world->verdict->snapshots++;
    }
    struct piece piece = {.index = snap->index, .offset = effect->offset};
    uint64_t left = sizeof(snap->items) - effect->offset;
    uint64_t len = left < sizeof(piece.bytes) ? left : sizeof(piece.bytes);
    piece.last = len == left;
    memcpy(piece.bytes, (const uint8_t *)&snap->items + effect->offset, len);
    later(world, member, EVENT_PIECE, effect->id, draw(world, 0, 3 * ms),
          bytes_make(&piece, offsetof(struct piece, bytes) + len));
}

static void on_piece(struct world *world, struct member *member, const struct sim_event *event)
{
    struct piece piece;
    memcpy(&piece, event->bytes.at, event->bytes.len);
    struct consensus_input in = {
        .kind = CONSENSUS_SNAPSHOT_PIECE,
        .id = event->id,
        .index = piece.index,
        .offset = piece.offset,
        .last = piece.last,
        .failed = chance(world, 40),
        .bytes = bytes_make(piece.bytes, event->bytes.len - offsetof(struct piece, bytes))};
    member_step(world, member, &in);
}

static void do_snapshot_write(struct world *world, struct member *member,
                              const struct consensus_effect *effect)
{
    if (effect->offset == 0)
        buf_reset(&member->staging);
    check(effect->offset == member->staging.len);
    buf_append_bytes(&member->staging, effect->bytes);
    member->staging_index = effect->index;
    member->staging_term = effect->term;
    later(world, member, effect->last ? EVENT_INSTALLED : EVENT_STAGED, effect->id,
          draw(world, 0, 5 * ms), bytes_make(&member->staging.len, sizeof(member->staging.len)));
}

static void on_installed(struct world *world, struct member *member, uint64_t id)
{
    check(member->staging.len == sizeof(member->items));
    memcpy(&member->items, member->staging.at, sizeof(member->items));
    member->applied = member->staging_index;
    member->applied_term = member->staging_term;
    items_flush(member);
    SOMETIMES(&world->sim, SNAPSHOT);
    ghost_applied(world, member);
    struct consensus_input in = {.kind = CONSENSUS_SNAPSHOT_INSTALLED, .id = id};
    member_step(world, member, &in);
}

/* ---- The step ---- */

/* Members' monotonic clocks may run at different rates: only how soon things happen depends on
 * them. */
static uint64_t member_clock(const struct world *world, const struct member *member)
{
    return member->clock_ns +
           (world->sim.now_ns - member->clock_since_ns) * member->clock_rate / 16;
}

void member_clock_rate(struct world *world, struct member *member, uint64_t sixteenths)
{
    member->clock_ns = member_clock(world, member);
    member->clock_since_ns = world->sim.now_ns;
    member->clock_rate = sixteenths;
    member->timer_at_ns = UINT64_MAX;
}

static uint64_t true_time(const struct member *member, uint64_t clock_ns)
{
    if (clock_ns <= member->clock_ns)
        return member->clock_since_ns;
    if (clock_ns - member->clock_ns > UINT64_MAX / 32)
        return UINT64_MAX;
    uint64_t rate = member->clock_rate;
    return member->clock_since_ns + ((clock_ns - member->clock_ns) * 16 + rate - 1) / rate;
}

static void timer_set(struct world *world, struct member *member)
{
    uint64_t deadline = true_time(member, consensus_deadline(member->core));
    if (deadline >= member->timer_at_ns)
        return;
    if (deadline < world->sim.now_ns)
        deadline = world->sim.now_ns;
    member->timer_at_ns = deadline;
    later(world, member, EVENT_TIMER, 0, deadline - world->sim.now_ns, BYTES_NONE);
}

static void on_timer(struct world *world, struct member *member)
{
    if (member->timer_at_ns <= world->sim.now_ns)
        member->timer_at_ns = UINT64_MAX;
    struct consensus_input in = {.kind = CONSENSUS_TIMEOUT};
    if (consensus_deadline(member->core) <= member_clock(world, member))
        member_step(world, member, &in);
    else
        timer_set(world, member);
}

static void perform(struct world *world, struct member *member,
                    const struct consensus_effect *effect)
{
    switch (effect->kind) {
    case CONSENSUS_PERSIST:
        disk_take(world, member, effect);
        break;
    case CONSENSUS_SEND:
        ghost_frame(world, member, effect->bytes);
        net_send(world, member, effect->peer, effect->bytes);
        break;
    case CONSENSUS_EVALUATE:
        do_evaluate(world, member, effect);
        break;
    case CONSENSUS_APPENDED:
        items_apply(&member->view, &member->evaluated, effect->index, member->evaluated_origin);
        break;
    case CONSENSUS_APPLY:
        do_apply(world, member, effect);
        break;
    case CONSENSUS_REPLY:
        client_reply(world, member, effect);
        break;
    case CONSENSUS_READ_OK:
        client_read(world, member, effect);
        break;
    case CONSENSUS_ROLE_CHANGED:
        on_role(world, member);
        break;
    case CONSENSUS_SNAPSHOT_READ:
        do_snapshot_read(world, member, effect);
        break;
    case CONSENSUS_SNAPSHOT_CLOSE:
        for (uint32_t i = 0; i < member->snap_count; i++)
            if (member->snaps[i].id == effect->id)
                member->snaps[i] = member->snaps[--member->snap_count];
        break;
    case CONSENSUS_SNAPSHOT_WRITE:
        do_snapshot_write(world, member, effect);
        break;
    case CONSENSUS_BAD_FRAME:
        violate(world, "a member's frame was refused", "member %u from %u: %s", member->index,
                effect->peer, effect->reason);
        break;
    }
}

void member_step(struct world *world, struct member *member, struct consensus_input *in)
{
    in->mono_ns = member_clock(world, member);
    struct consensus_output out;
    consensus_step(member->core, in, &out);
    sim_note_u64(&world->sim, world->sim.now_ns << 8 | member->index << 4 | in->kind);
    for (uint32_t i = 0; i < out.count; i++) {
        const struct consensus_effect *effect = &out.at[i];
        sim_note_u64(&world->sim, effect->index << 16 ^ effect->token << 8 ^ effect->kind);
        if (effect->bytes.len)
            sim_note(&world->sim, effect->bytes.at, effect->bytes.len);
        perform(world, member, effect);
    }
    timer_set(world, member);
    disk_sync(world, member);
    ghost_step(world, member);
}

void member_poke(struct world *world, struct member *member)
{
    struct consensus_input in = {.kind = CONSENSUS_TIMEOUT};
    member_step(world, member, &in);
}

void member_event(struct world *world, const struct sim_event *event)
{
    struct member *member = &world->members[event->node];
    if (!member->core || (event->kind != EVENT_FRAME && event->generation != member->generation))
        return;
    if (world->sim.now_ns < member->resume_ns) { /* stopped: all of it waits */
        sim_schedule(&world->sim, member->resume_ns, event);
        return;
    }
    switch (event->kind) {
    case EVENT_FRAME:
        net_arrive(world, event);
        break;
    case EVENT_SYNCED:
        disk_synced(world, member);
        break;
    case EVENT_TIMER:
        on_timer(world, member);
        break;
    case EVENT_APPLIED:
        on_applied(world, member, event->id == 1);
        break;
    case EVENT_EVALUATED:
        on_evaluated(world, member);
        break;
    case EVENT_PIECE:
        on_piece(world, member, event);
        break;
    case EVENT_STAGED: {
        struct consensus_input in = {.kind = CONSENSUS_SNAPSHOT_STAGED, .id = event->id};
        memcpy(&in.offset, event->bytes.at, sizeof(in.offset));
        member_step(world, member, &in);
        break;
    }
    case EVENT_INSTALLED:
        on_installed(world, member, event->id);
        break;
    default:
        unreachable();
    }
}

/* ---- Life ---- */

static void trace_line(void *context, enum trace_level level, const char *line)
{
    const struct world *world = context;
    (void)level;
    fprintf(stderr, "%9.4f %s\n", (double)world->sim.now_ns / 1e9, line);
}

void member_start(struct world *world, struct member *member)
{
    check(!member->core);
    sim_log_mark(world->sim.log, world->sim.now_ns, member->index, "starts");
    member->generation++;
    member->timer_at_ns = UINT64_MAX;
    member->applied_due = member->flush_due = member->serving = false;
    member->evaluations_len = member->snap_count = 0;
    member->evaluated_ns = 0;
    member->items = member->disk.items;
    member->applied = member->disk.items_index;
    member->applied_term = member->disk.items_term;
    member->seen = (struct consensus_status){0};
    member->isolated_since = 0;
    struct consensus_config config = world->config;
    config.self = member->index;
    config.seed = rng_next(&world->sim.rng);
    if (world->trace)
        config.trace = (struct trace){.line = trace_line, .context = world};
    uint64_t rate = world->options.clocks && !world->calm ? draw(world, 8, 32) : 16;
    member_clock_rate(world, member, rate);
    relay_init(&member->relay, member->index, 2 * config.heartbeat_ns, world->sim.now_ns);
    member->core = consensus_new(&config);
    struct consensus_start start;
    arena_reset(&world->arena);
    disk_found(&member->disk, &world->arena, &start);
    start.incarnation = ++world->next_incarnation;
    world->verdict->rebuilds += !start.found;
    struct consensus_input in = {.kind = CONSENSUS_START, .start = &start};
    member_step(world, member, &in);
    world->verdict->recoveries += consensus_status(member->core).standing == CONSENSUS_RECOVERING;
}

void member_crash(struct world *world, struct member *member)
{
    check(member->core);
    bool leads = consensus_status(member->core).role == CONSENSUS_LEADER;
    SOMETIMES_IF(&world->sim, CRASHED_UNSYNCED, member->queue_len > 0);
    for (uint32_t i = 0; i < member->queue_len; i++)
        SOMETIMES_IF(&world->sim, LEADER_UNSYNCED, leads && member->queue[i].entry_count > 0);
    sim_log_mark(world->sim.log, world->sim.now_ns, member->index, "dies");
    member->core = consensus_free(member->core);
    member->resume_ns = 0;
    if (planted(PLANT_APPLIED_APART)) /* the items of a write, without its index */
        member->disk.items = member->items;
    disk_crash(world, member);
    clients_crashed(world, member);
    world->verdict->crashes++;
}
