/* SPDX-License-Identifier: Apache-2.0 */
/* One queue of events for all Regions. An effect becomes an event; performing an event is a step of
 * some core, which brings more effects. */

#include "tests/lib/core/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

static const uint16_t region_numbers[FIXTURE_REGIONS_MAX] = {1, 9, 17, 4};
static const uint64_t NS_PER_MS = 1000000;

enum { STEP_MS = 50 };

struct fixture_event {
    struct fixture_event *next;
    struct region_input in; /* kind and what it needs */
    uint32_t node;          /* whose step it is */
    uint64_t life;
    struct buf bytes, begin, end;
    struct store_read read; /* READ_DONE: what to read */
};

/* Calls whose answer is due: token is an index here. */
struct pending_call {
    uint32_t caller, callee;
    uint64_t id, life;
    bool done;
};
static struct pending_call calls[4096];
static uint64_t call_count;

static struct fixture_event *event_new(const struct fixture *f, uint32_t node,
                                       enum region_input_kind kind)
{
    struct fixture_event *event = xcalloc(1, sizeof(*event));
    event->node = node;
    event->life = f->nodes[node].life;
    event->in.kind = kind;
    return event;
}

static void event_free(struct fixture_event *event)
{
    buf_deinit(&event->bytes);
    buf_deinit(&event->begin);
    buf_deinit(&event->end);
    free(event);
}

static void queue_add(struct fixture_event ***end, struct fixture_event *event)
{
    **end = event;
    *end = &event->next;
}

static struct fixture_event *queue_take(struct fixture_event **head, struct fixture_event ***end)
{
    struct fixture_event *event = *head;
    if (event) {
        *head = event->next;
        event->next = NULL;
        if (!*head)
            *end = head;
    }
    return event;
}

static void queue_free(struct fixture_event **head, struct fixture_event ***end)
{
    struct fixture_event *event;
    while ((event = queue_take(head, end)))
        event_free(event);
}

static uint32_t node_of(const struct fixture *f, uint16_t region)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->nodes[i].region == region)
            return i;
    }
    fail_msg("no Region %u", region);
    return 0;
}

/* ---- Streams ---- */

static void stream_event(struct fixture *f, uint32_t node, uint32_t other,
                         enum region_channel channel, enum region_input_kind kind)
{
    if (!f->nodes[node].core)
        return;
    struct fixture_event *event = event_new(f, node, kind);
    event->in.peer = f->nodes[other].region;
    event->in.channel = channel;
    queue_add(&f->events_end, event);
}

static void stream_set(struct fixture *f, uint32_t from, uint32_t to, bool up)
{
    if (f->up[from][to] == up)
        return;
    f->up[from][to] = up;
    enum region_input_kind kind = up ? REGION_PEER_UP : REGION_PEER_DOWN;
    stream_event(f, from, to, CHANNEL_OUTBOUND, kind);
    stream_event(f, to, from, CHANNEL_INBOUND, kind);
    stream_event(f, from, to, CHANNEL_GROUPS_OUT, kind);
}

static void connect_all(struct fixture *f)
{
    for (uint32_t from = 0; from < f->count; from++) {
        for (uint32_t to = 0; to < f->count; to++) {
            bool alive = f->nodes[from].core && f->nodes[to].core;
            if (from != to && alive && !f->cut[from][to])
                stream_set(f, from, to, true);
        }
    }
}

void fixture_cut(struct fixture *f, uint32_t from, uint32_t to, bool cut)
{
    f->cut[from][to] = cut;
    if (cut)
        stream_set(f, from, to, false);
    else
        connect_all(f);
}

static void send_frame(struct fixture *f, uint32_t node, const struct region_effect *effect)
{
    uint32_t other = node_of(f, effect->peer);
    bool groups = effect->channel == CHANNEL_GROUPS_OUT;
    bool outbound = effect->channel == CHANNEL_OUTBOUND || groups;
    bool up = outbound ? f->up[node][other] : f->up[other][node];
    if (!up || !f->nodes[other].core || f->blocked & (groups ? FIXTURE_GROUPS : FIXTURE_LOGS) ||
        (f->drop && f->drop(f->context, node, other)))
        return;
    struct fixture_event *event = event_new(f, other, REGION_PEER_FRAME);
    event->in.peer = f->nodes[node].region;
    event->in.channel = groups ? CHANNEL_GROUPS_IN : outbound ? CHANNEL_INBOUND : CHANNEL_OUTBOUND;
    buf_append_bytes(&event->bytes, effect->bytes);
    queue_add(&f->events_end, event);
}

static void send_call(struct fixture *f, uint32_t node, const struct region_effect *effect)
{
    uint32_t other = node_of(f, effect->peer);
    if (!f->nodes[other].core || f->cut[node][other] || f->blocked & FIXTURE_CALLS) {
        struct fixture_event *event = event_new(f, node, REGION_CALL_DONE);
        event->in.id = effect->id;
        event->in.failed = true;
        queue_add(&f->events_end, event);
        return;
    }
    assert_true(call_count < array_len(calls));
    calls[call_count] = (struct pending_call){
        .caller = node, .callee = other, .id = effect->id, .life = f->nodes[node].life};
    struct fixture_event *event = event_new(f, other, REGION_CALL);
    event->in.token = call_count++;
    buf_append_bytes(&event->bytes, effect->bytes);
    queue_add(&f->events_end, event);
}

static void send_answer(struct fixture *f, const struct region_effect *effect)
{
    struct pending_call *call = &calls[effect->token];
    if (call->done)
        return; /* of an earlier life */
    call->done = true;
    if (!f->nodes[call->caller].core || f->nodes[call->caller].life != call->life)
        return;
    struct fixture_event *event = event_new(f, call->caller, REGION_CALL_DONE);
    event->in.id = call->id;
    buf_append_bytes(&event->bytes, effect->bytes);
    queue_add(&f->events_end, event);
}

/* The callee died: its caller hears that there is no answer. */
static void fail_call(struct fixture *f, struct pending_call *call)
{
    if (call->done || !f->nodes[call->caller].core || f->nodes[call->caller].life != call->life)
        return;
    call->done = true;
    struct fixture_event *answer = event_new(f, call->caller, REGION_CALL_DONE);
    answer->in.id = call->id;
    answer->in.failed = true;
    queue_add(&f->events_end, answer);
}

/* ---- Effects ---- */

static void take_read(struct fixture *f, uint32_t node, const struct region_effect *effect)
{
    struct fixture_event *event = event_new(f, node, REGION_READ_DONE);
    event->in.id = effect->id;
    event->read = effect->read;
    buf_append_bytes(&event->begin, effect->read.begin);
    buf_append_bytes(&event->end, effect->read.end);
    f->reads++;
    if (f->nodes[node].hold_reads)
        queue_add(&f->nodes[node].reads_end, event);
    else
        queue_add(&f->events_end, event);
}

static void take_batch(struct fixture *f, uint32_t node, const struct region_effect *effect)
{
    struct fixture_event *event = event_new(f, node, REGION_PERSISTED);
    event->in.id = effect->id;
    buf_append_bytes(&event->bytes, effect->bytes);
    if (f->nodes[node].hold_disk)
        queue_add(&f->nodes[node].batches_end, event);
    else
        queue_add(&f->events_end, event);
}

static void take_reply(struct fixture *f, const struct region_effect *effect)
{
    for (struct fixture_op *at = f->ops; at; at = at->next) {
        if (&at->op == effect->op) {
            assert_int_equal(at->replied, 0);
            assert_int_equal(at->token, effect->token);
            at->replied = ++f->replies;
            return;
        }
    }
    fail_msg("reply to an unknown op");
}

static void take_close(struct fixture *f, uint32_t node, const struct region_effect *effect)
{
    uint32_t other = node_of(f, effect->peer);
    bool outbound = effect->channel == CHANNEL_OUTBOUND;
    if (effect->channel == CHANNEL_GROUPS_IN || effect->channel == CHANNEL_GROUPS_OUT)
        fail_msg("a stream of the groups is refused: %s", effect->reason);
    /* Whoever closes knows it; only the other side is told. */
    uint32_t from = outbound ? node : other, to = outbound ? other : node;
    if (!f->up[from][to])
        return;
    f->up[from][to] = false;
    stream_event(f, other, node, outbound ? CHANNEL_INBOUND : CHANNEL_OUTBOUND, REGION_PEER_DOWN);
}

static void take_effect(struct fixture *f, uint32_t node, const struct region_effect *effect)
{
    switch (effect->kind) {
    case REGION_READ:
        take_read(f, node, effect);
        return;
    case REGION_PERSIST:
        take_batch(f, node, effect);
        return;
    case REGION_REPLY:
        take_reply(f, effect);
        return;
    case REGION_SEND:
        send_frame(f, node, effect);
        return;
    case REGION_CLOSE:
        take_close(f, node, effect);
        return;
    case REGION_CALL_PEER:
        send_call(f, node, effect);
        return;
    case REGION_CALL_REPLY:
        send_answer(f, effect);
        return;
    case REGION_READY:
        f->nodes[node].ready = true;
        return;
    }
    fail_msg("unknown effect");
}

void fixture_step(struct fixture *f, uint32_t node, struct region_input *in)
{
    struct fixture_node *at = &f->nodes[node];
    in->mono_ns = f->mono_ns;
    in->wall_ms = f->wall_ms + at->wall_offset_ms;
    struct region_output out;
    region_step(at->core, in, &out);
    for (uint32_t i = 0; i < out.count; i++)
        take_effect(f, node, &out.at[i]);
}

static void write_batch(struct fixture *f, uint32_t node, struct fixture_event *event)
{
    struct store *store = f->nodes[node].store;
    assert_int_equal(store->ops->write(store, buf_view(&event->bytes), true), STORE_OK);
}

static void perform(struct fixture *f, struct fixture_event *event)
{
    struct fixture_node *at = &f->nodes[event->node];
    if (!at->core || event->life != at->life)
        return;
    struct store_rows rows;
    event->in.bytes = buf_view(&event->bytes);
    if (event->in.kind == REGION_READ_DONE) {
        event->read.begin = buf_view(&event->begin);
        event->read.end = buf_view(&event->end);
        event->in.outcome = at->store->ops->read(at->store, &event->read, &rows);
        event->in.rows = &rows;
    }
    if (event->in.kind == REGION_PERSISTED) {
        if (at->disk_full) {
            event->in.kind = REGION_PERSIST_FAILED;
            event->in.outcome = STORE_FULL;
            /* Those behind it, emitted by now, are void with it. */
            for (struct fixture_event *other = f->events; other; other = other->next) {
                if (other->node == event->node && other->in.kind == REGION_PERSISTED)
                    other->life = UINT64_MAX;
            }
        } else {
            write_batch(f, event->node, event);
        }
    }
    fixture_step(f, event->node, &event->in);
}

void fixture_run(struct fixture *f)
{
    connect_all(f);
    struct fixture_event *event;
    uint32_t steps = 0;
    while ((event = queue_take(&f->events, &f->events_end))) {
        perform(f, event);
        event_free(event);
        assert_true(++steps < 2000000);
    }
}

void fixture_advance(struct fixture *f, uint64_t ms)
{
    for (uint64_t done = 0; done < ms; done += STEP_MS) {
        fixture_run(f);
        f->mono_ns += STEP_MS * NS_PER_MS;
        f->wall_ms += STEP_MS;
        for (uint32_t i = 0; i < f->count; i++) {
            if (f->nodes[i].core && region_deadline(f->nodes[i].core) <= f->mono_ns)
                fixture_step(f, i, &(struct region_input){.kind = REGION_TIMEOUT});
        }
    }
    fixture_run(f);
}

void fixture_sync(struct fixture *f, uint32_t node, uint32_t count)
{
    struct fixture_node *at = &f->nodes[node];
    struct fixture_event *event;
    while (count-- > 0 && (event = queue_take(&at->batches, &at->batches_end))) {
        write_batch(f, node, event);
        fixture_step(f, node, &event->in);
        event_free(event);
    }
}

void fixture_fail(struct fixture *f, uint32_t node)
{
    struct fixture_node *at = &f->nodes[node];
    struct fixture_event *first = at->batches;
    assert_non_null(first);
    struct region_input in = {
        .kind = REGION_PERSIST_FAILED, .id = first->in.id, .outcome = STORE_FULL};
    queue_free(&at->batches, &at->batches_end);
    fixture_step(f, node, &in);
}

void fixture_release_reads(struct fixture *f, uint32_t node)
{
    struct fixture_node *at = &f->nodes[node];
    struct fixture_event *event;
    while ((event = queue_take(&at->reads, &at->reads_end)))
        queue_add(&f->events_end, event);
}

/* ---- Life ---- */

void fixture_kill(struct fixture *f, uint32_t node)
{
    struct fixture_node *at = &f->nodes[node];
    for (uint32_t i = 0; i < f->count; i++) {
        if (i != node) {
            stream_set(f, node, i, false);
            stream_set(f, i, node, false);
        }
    }
    at->core = region_free(at->core);
    at->ready = false;
    at->life++;
    queue_free(&at->batches, &at->batches_end);
    queue_free(&at->reads, &at->reads_end);
    for (uint64_t i = 0; i < call_count; i++) {
        if (calls[i].callee == node)
            fail_call(f, &calls[i]);
    }
}

void fixture_start(struct fixture *f, uint32_t node)
{
    struct fixture_node *at = &f->nodes[node];
    struct region_config config = f->config;
    config.region = at->region;
    config.peer_count = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (i != node)
            config.peers[config.peer_count++] = f->nodes[i].region;
    }
    config.seed = 1000 + node;
    config.witness_only = at->witness_only;
    at->core = region_new(&config);
    at->life++;
    queue_add(&f->events_end, event_new(f, node, REGION_START));
    connect_all(f);
}

void fixture_restart(struct fixture *f, uint32_t node)
{
    fixture_kill(f, node);
    fixture_start(f, node);
    fixture_run(f);
    assert_true(f->nodes[node].ready);
}

void fixture_init(struct fixture *f, uint32_t count)
{
    *f = (struct fixture){.count = count, .mono_ns = NS_PER_MS, .wall_ms = 1764500000000};
    call_count = 0;
    f->events_end = &f->events;
    f->config = (struct region_config){
        .clock_mode = HLC_HYBRID,
        .clock_ahead_ms_max = 500,
        .partitions_per_table = 2,
        .tables_max = 50,
        .operations_in_flight_max = 1000,
        .persist_bytes_max = 1 << 20,
        .item_cache_bytes_max = 1 << 20,
        .call_timeout_ms = 2000,
        .ledger_rows_max = 1000,
        .strong = {.heartbeat_ms = 100,
                   .election_ms = 500,
                   .election_ms_max = 10000,
                   .request_timeout_ms = 2000,
                   .retry_ms = 200,
                   .placement_ms = 60000,
                   .relay_silence_ms = 300,
                   .log_bytes_max = 1 << 20},
        .replication =
            {
                .window_bytes_max = 1 << 20,
                .batch_bytes_max = 4096,
                .batch_records_max = 20,
                .frame_bytes_max = 1 << 20,
                .heartbeat_ms = 200,
                .silence_ms_max = 10000,
                .log_bytes_max = 1 << 20,
                .tombstone_grace_ms = 4000,
                .apply_bytes_max = 1 << 20,
            },
    };
    for (uint32_t i = 0; i < count; i++) {
        struct fixture_node *at = &f->nodes[i];
        at->region = region_numbers[i];
        at->store = store_mem_new();
        at->batches_end = &at->batches;
        at->reads_end = &at->reads;
    }
    for (uint32_t i = 0; i < count; i++)
        fixture_start(f, i);
    fixture_run(f);
    for (uint32_t i = 0; i < count; i++)
        assert_true(f->nodes[i].ready);
}

void fixture_deinit(struct fixture *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        struct fixture_node *at = &f->nodes[i];
        region_free(at->core);
        at->store->ops->free(at->store);
        queue_free(&at->batches, &at->batches_end);
        queue_free(&at->reads, &at->reads_end);
    }
    queue_free(&f->events, &f->events_end);
    while (f->ops) {
        struct fixture_op *next = f->ops->next;
        arena_deinit(&f->ops->arena);
        free(f->ops);
        f->ops = next;
    }
}
