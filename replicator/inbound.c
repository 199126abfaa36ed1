/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's log, to us. What is taken (batch.c) goes to the owner as one APPLY and counts as ours
 * when the owner reports it durable; only then is it acknowledged.
 *
 *     Batch ──> received ──> APPLY ... APPLIED ──> durable (replica.vv) ──> Ack
 *
 * The window: the peer may have so many bytes of records under way, that is sent and neither
 * dropped by us nor durable. Ack tells how many we are done with since the stream began; Heartbeat
 * tells how many there were, so that a lost frame does not shrink the window for ever. */

#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "conflict/base/plant.h"
#include "replicator/replicator_internal.h"

enum { TABLES_BYTES_MAX = 16 << 20 };
/* After the owner's disk was full, so long and up to twice as long until the next try. */
enum { RETRY_MS = 1000 };
/* Heartbeats that a partition may go unnamed before its peer is asked, again. */
enum { ASK_BEATS = 10 };

/* ---- Members ---- */

void inbound_join(struct member *member)
{
    list_init(&member->ack);
    list_init(&member->report);
    list_init(&member->resume);
    list_init(&member->applies);
    list_init(&member->snapshot);
    list_init(&member->unnamed);
    list_append(&member->peer->in.unnamed, &member->unnamed);
    member->ask_beat = member->peer->in.beat + ASK_BEATS;
    member->received = vv_get(&member->replica->vv, member->peer->region);
    if (member->peer->in.greeted)
        member_resume(member);
}

/* Takes the front off. */
static void apply_free(struct member *member, struct apply *apply)
{
    struct inbound *in = &member->peer->in;
    if (apply->stream == in->stream)
        in->applying_bytes -= apply->bytes;
    else
        in->old_bytes -= apply->bytes;
    list_remove(&apply->link);
    list_append(&member->replica->replicator->free_applies, &apply->link);
}

static void applies_free(struct member *member)
{
    list_each(link, spare, &member->applies)
        apply_free(member, container_of(link, struct apply, link));
}

void inbound_leave(struct member *member)
{
    applies_free(member);
    list_remove(&member->ack);
    list_remove(&member->report);
    list_remove(&member->resume);
    list_remove(&member->snapshot);
    list_remove(&member->unnamed);
    member->in_id = 0;
    buf_deinit(&member->in_end);
    member->deferred = false;
    if (member->replica->snapshot_from == member)
        snapshot_release(member->replica);
}

/* The peer's heartbeats speak of it from now on. */
static void member_named(struct member *member)
{
    member->offered = true;
    list_remove(&member->unnamed);
}

void member_resume(struct member *member)
{
    if (member->peer->in.up)
        list_add_once(&member->peer->in.resumes, &member->resume);
}

/* ---- The stream ---- */

void inbound_up(struct peer *peer)
{
    struct inbound *in = &peer->in;
    inbound_down(peer);
    in->up = true;
    in->greeted = in->ack_due = in->report_due = in->want_tables = in->tables_told = false;
    in->heard_ns = peer->replicator->mono_ns;
    in->stream++;
    in->old_bytes += in->applying_bytes;
    in->received_bytes = in->applying_bytes = in->told_bytes = 0;
    in->promise_beat = 0;
}

void inbound_down(struct peer *peer)
{
    if (!peer->in.up)
        return;
    peer->in.up = peer->in.greeted = false;
    buf_deinit(&peer->in.tables);
    list_each(link, spare, &peer->members)
    {
        struct member *member = container_of(link, struct member, of_peer);
        snapshot_drop(member);
        list_remove(&member->ack);
        list_remove(&member->report);
        list_remove(&member->resume);
        member->offered = member->resuming = member->deferred = false;
        member->in_done = 0;
        list_add_once(&peer->in.unnamed, &member->unnamed);
        member->ask_beat = peer->in.beat + ASK_BEATS;
        member->round = 0;
    }
}

static void hello_in(struct peer *peer, const struct wire_message *message)
{
    if (message->protocol != WIRE_PROTOCOL || message->region != peer->region) {
        peer_close(peer, false, "another protocol or Region");
        return;
    }
    if (peer->in.greeted)
        return;
    peer->in.greeted = peer->in.ack_due = true;
    struct wire_message hello = {
        .kind = WIRE_HELLO, .protocol = WIRE_PROTOCOL, .region = peer->replicator->config.region};
    peer_send(peer, false, &hello);
}

static void tables_in(struct peer *peer, const struct wire_message *message)
{
    struct buf *tables = &peer->in.tables;
    if (tables->len + message->part.len > TABLES_BYTES_MAX) {
        peer_close(peer, false, "table descriptions too large");
        return;
    }
    buf_append_bytes(tables, message->part);
    if (message->more)
        return;
    peer->in.tables_crc = crc32c(0, buf_view(tables));
    peer->in.tables_told = true;
    struct replicator_effect *at = effect(peer->replicator, REPLICATOR_PEER_TABLES);
    at->peer = peer->region;
    at->bytes = bytes_copy(&peer->replicator->arena, buf_view(tables));
    buf_deinit(tables);
}

static void offer_in(struct peer *peer, const struct wire_message *message)
{
    for (uint32_t i = 0; i < message->position_count; i++) {
        struct member *member = member_at(peer, &message->positions[i].place);
        if (!member)
            continue; /* when it is opened here, it will ask */
        member_named(member);
        member->round = message->positions[i].round;
        if (member->replica->snapshot_from && member->replica->snapshot_from != member)
            member->deferred = true;
        else
            member_resume(member);
    }
}

/* ---- Heartbeats ---- */

/* What the peer believes of one partition, held against what we have: frames may have been lost. */
static void position_in(struct member *member, const struct wire_position *position)
{
    struct peer *peer = member->peer;
    member_named(member);
    member->listed_beat = peer->in.beat;
    member->listed_seq = position->stamped;
    if (member->in_id && member->in_id == position->snapshot_id &&
        member->in_index >= position->snapshot_chunks)
        member->in_beat = peer->in.beat;
    if (position->snapshot_id)
        return;
    struct member *from = member->replica->snapshot_from;
    if (position->sent > member->received && !member->in_id && (!from || from == member)) {
        member->resuming = false;
        member_resume(member);
    } else {
        list_add_once(&peer->in.acks, &member->ack); /* the last one may have been lost */
    }
}

/* An Offer that came before the partition was opened here named nobody, and without being named it
 * has no promise. A Resume makes the peer name it in its next heartbeat. */
static void ask_unnamed(struct peer *peer)
{
    list_each(link, spare, &peer->in.unnamed)
    {
        struct member *member = container_of(link, struct member, unnamed);
        struct member *from = member->replica->snapshot_from;
        if (member->ask_beat > peer->in.beat || (from && from != member))
            continue;
        member->ask_beat = peer->in.beat + ASK_BEATS;
        member_resume(member);
    }
}

static void heartbeat_in(struct peer *peer, const struct wire_message *message)
{
    struct inbound *in = &peer->in;
    in->ack_due = in->report_due = true;
    /* The same as on an earlier stream may be news: a disk was lost again. */
    in->want_tables = !in->tables_told || message->tables_crc != in->tables_crc;
    in->received_bytes = message->sent_bytes;
    if (in->received_bytes < in->applying_bytes)
        in->received_bytes = in->applying_bytes;
    in->beat++;
    if (message->promise)
        effect(peer->replicator, REPLICATOR_OBSERVE)->hlc = message->promise;
    for (uint32_t i = 0; i < message->position_count; i++) {
        struct member *member = member_at(peer, &message->positions[i].place);
        if (member)
            position_in(member, &message->positions[i]);
    }
    if (message->partial)
        return;
    in->promise = message->promise;
    in->promise_beat = in->beat;
    ask_unnamed(peer);
    list_each(link, spare, &in->snapshots)
    {
        struct member *member = container_of(link, struct member, snapshot);
        if (member->in_beat == in->beat)
            continue;
        snapshot_drop(member); /* the peer is at something else */
        member_resume(member);
    }
}

void inbound_message(struct peer *peer, const struct wire_message *message)
{
    struct inbound *in = &peer->in;
    struct member *member;
    if (!in->greeted && message->kind != WIRE_HELLO) {
        peer_close(peer, false, "message before Hello");
        return;
    }
    switch (message->kind) {
    case WIRE_HELLO:
        hello_in(peer, message);
        return;
    case WIRE_TABLES:
        tables_in(peer, message);
        return;
    case WIRE_OFFER:
        offer_in(peer, message);
        return;
    case WIRE_BATCH:
        in->received_bytes += message->records.len;
        batch_in(peer, message);
        return;
    case WIRE_HEARTBEAT:
        heartbeat_in(peer, message);
        return;
    case WIRE_SNAPSHOT_OFFER:
        member = member_at(peer, &message->place);
        if (member && in->hold_ns <= peer->replicator->mono_ns)
            snapshot_offered(member, message->snapshot_id);
        return;
    case WIRE_SNAPSHOT_CHUNK:
        in->received_bytes += message->records.len;
        member = member_at(peer, &message->place);
        if (member)
            snapshot_chunk(member, message);
        return;
    case WIRE_RESUME:
    case WIRE_ACK:
    case WIRE_SNAPSHOT_ACCEPT:
        peer_close(peer, false, "message from the wrong side");
        return;
    }
    unreachable();
}

/* ---- What the owner made durable ---- */

static void applied(struct member *member, struct apply *apply)
{
    struct replica *replica = member->replica;
    struct peer *peer = member->peer;
    if (apply->kind == APPLY_LOG) {
        uint64_t before = vv_get(&replica->vv, peer->region);
        check(vv_raise(&replica->vv, peer->region, apply->seq));
        if (before && version_epoch(before) != version_epoch(apply->seq))
            replica_reconsider(replica);
    }
    if (apply->kind == APPLY_FINISH) {
        if (apply->stream == peer->in.stream)
            member->in_done = apply->snapshot_id;
        snapshot_finished(member, &apply->vv);
    }
    if (apply->kind != APPLY_LOG && apply->kind != APPLY_FINISH)
        return;
    if (peer->in.up)
        list_add_once(&peer->in.acks, &member->ack);
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct member *other = replica->members[i];
        if (other != member && other->peer->in.up)
            list_add_once(&other->peer->in.reports, &other->report);
    }
}

static void apply_failed(struct member *member)
{
    struct replicator *replicator = member->replica->replicator;
    struct inbound *in = &member->peer->in;
    applies_free(member);
    member->received = vv_get(&member->replica->vv, member->peer->region);
    uint64_t wait_ms = rng_between(&replicator->rng, RETRY_MS, 2 * RETRY_MS);
    in->hold_ns = replicator->mono_ns + ms_to_ns(wait_ms);
    snapshot_drop(member);
    if (member->replica->snapshot_from == member)
        snapshot_release(member->replica); /* its end was among what failed */
    peer_close(member->peer, false, "nothing can be stored");
}

/* It was under way when its member left, or its stream failed. What the owner has is ours all the
 * same, and what only we have of a member that left must come from us: so the others are asked
 * anew. */
void inbound_applied_late(const struct replicator_input *in)
{
    struct replica *replica = in->replica;
    struct vv vv = {0};
    if (in->vv)
        vv = *in->vv;
    if (in->seq > 0 && !vv_raise(&vv, in->peer, in->seq))
        return;
    if (!replica_learn(replica, &vv))
        return;
    if (!replica->snapshot_from)
        snapshot_release(replica);
    for (uint32_t i = 0; i < replica->member_count; i++)
        member_offer(replica->members[i]);
}

bool inbound_applied(struct member *member, uint64_t apply_id, bool kept)
{
    struct apply *apply = NULL;
    list_each(link, spare, &member->applies)
    {
        struct apply *at = container_of(link, struct apply, link);
        if (at->id == apply_id) {
            apply = at;
            break;
        }
    }
    if (!apply)
        return false;
    if (!kept) {
        apply_failed(member);
        return true;
    }
    apply->done = true;
    list_each(link, spare, &member->applies)
    {
        apply = container_of(link, struct apply, link);
        if (!apply->done)
            break;
        applied(member, apply);
        apply_free(member, apply);
    }
    return true;
}

/* ---- The end of the step ---- */

void inbound_timers(struct peer *peer)
{
    struct replicator *replicator = peer->replicator;
    if (peer->in.up &&
        replicator->mono_ns - peer->in.heard_ns >= ms_to_ns(replicator->config.silence_ms_max))
        peer_close(peer, false, "silence");
}

static void position_fill(const struct member *member, struct wire_position *position)
{
    position->place = member->replica->place;
    position->vv = member->replica->vv;
    /* That a new epoch has begun is told before anything is written in it. */
    if (!planted(PLANT_EPOCH_UNTOLD))
        vv_raise(&position->vv, member->replica->replicator->config.region,
                 version_epoch_base(member->replica->epoch));
    position->have = member->received;
    position->snapshot_id = member->in_done;
    if (planted(PLANT_ACK_EARLY))
        vv_raise(&position->vv, member->peer->region, member->received);
}

static void send_resumes(struct peer *peer)
{
    struct wire_message message = {.kind = WIRE_RESUME};
    uint32_t count = list_length(&peer->in.resumes, POSITIONS_MAX);
    message.positions = arena_array(&peer->replicator->arena, struct wire_position, count);
    while (message.position_count < count) {
        struct member *member = container_of(list_take(&peer->in.resumes), struct member, resume);
        struct wire_position *position = &message.positions[message.position_count++];
        position_fill(member, position);
        position->round = member->round;
        member->round = 0;
    }
    peer_send(peer, false, &message);
}

static void send_ack(struct peer *peer)
{
    struct replicator *replicator = peer->replicator;
    struct inbound *in = &peer->in;
    uint64_t window = replicator->config.apply_bytes_max;
    struct wire_message message = {.kind = WIRE_ACK,
                                   .window_bytes =
                                       window > in->old_bytes ? window - in->old_bytes : 0,
                                   .consumed_bytes = in->received_bytes - in->applying_bytes,
                                   .want_tables = in->want_tables};
    uint32_t acks = list_length(&in->acks, POSITIONS_MAX);
    uint32_t reports = in->report_due ? list_length(&in->reports, POSITIONS_MAX - acks) : 0;
    message.positions = arena_array(&replicator->arena, struct wire_position, acks + reports);
    for (uint32_t i = 0; i < acks; i++) {
        struct member *member = container_of(list_take(&in->acks), struct member, ack);
        if (!list_empty(&member->report) && reports > 0)
            reports--; /* said with this one */
        list_remove(&member->report);
        position_fill(member, &message.positions[message.position_count++]);
    }
    for (uint32_t i = 0; i < reports && !list_empty(&in->reports); i++) {
        struct member *member = container_of(list_take(&in->reports), struct member, report);
        position_fill(member, &message.positions[message.position_count++]);
    }
    in->ack_due = in->report_due = in->want_tables = false;
    in->told_bytes = message.consumed_bytes;
    peer_send(peer, false, &message);
}

void inbound_flush(struct peer *peer)
{
    struct inbound *in = &peer->in;
    if (!in->up || !in->greeted)
        return;
    while (!list_empty(&in->resumes) && in->hold_ns <= peer->replicator->mono_ns)
        send_resumes(peer);
    if (in->received_bytes - in->applying_bytes != in->told_bytes)
        in->ack_due = true;
    while (in->ack_due || !list_empty(&in->acks))
        send_ack(peer);
}
