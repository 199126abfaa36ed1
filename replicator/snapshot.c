/* SPDX-License-Identifier: Apache-2.0 */
/* A partition whole, for a peer that our log does not reach: new, or away for longer than the log
 * was kept. Rows are read in key order while writes go on, so they may be newer than the vector S
 * that was fixed at the start, never older: whatever S covers is in a row or beaten by one. A row
 * that S covers and that we do not have was deleted, and its tombstone collected: each chunk
 * therefore speaks for a whole interval of keys, and the receiver sweeps out what we lack there.
 * After the last chunk the receiver joins S into its vector and our log goes on after S.
 *
 *     SnapshotOffer(id) ->
 *                         <- SnapshotAccept(id)     at once, or when another peer's is done
 *     SnapshotChunk(id, 0, (begin, end], S, rows) ->
 *     SnapshotChunk(id, 1, ...) ->
 *     SnapshotChunk(id, n, last) ->
 *     Batch(S + 1 ...) ->
 *
 * While a partition takes a snapshot in, the logs of its other peers wait: an old write from one of
 * them could otherwise come in behind the sweep that its deletion depends on. */

#include "conflict/base/check.h"
#include "conflict/base/plant.h"
#include "replicator/replicator_internal.h"

/* ---- Sending ---- */

void snapshot_offer(struct member *member, bool now)
{
    member_forget_read(member);
    list_remove(&member->ready);
    member->snapshot_id = ++member->replica->replicator->next_snapshot_id;
    member->snapshot_chunks = 0;
    member->snapshot_unconfirmed = member->orphans_sent = false;
    member_move(member, MEMBER_SNAPSHOT_OFFERED);
    if (now)
        member_offer(member);
}

void snapshot_send_offer(struct member *member)
{
    struct wire_message message = {.kind = WIRE_SNAPSHOT_OFFER,
                                   .place = member->replica->place,
                                   .snapshot_id = member->snapshot_id};
    peer_send(member->peer, true, &message);
}

void snapshot_accepted(struct member *member, uint64_t id)
{
    struct replica *replica = member->replica;
    if (member_state(member) != MEMBER_SNAPSHOT_OFFERED || id != member->snapshot_id)
        return; /* an answer to an offer of long ago */
    member->snapshot_vv = replica->vv;
    member->snapshot_unconfirmed = true;
    member->orphans_sent = replica_has_orphans(replica);
    /* A log that reaches back to the peer is kept until it has the snapshot whole: should that
     * break off, the peer may still go on by the log. */
    if (!log_reaches(replica, vv_get(&member->known, replica->replicator->config.region)))
        member->hold = replica_last(replica);
    buf_reset(&member->snapshot_after);
    member_move(member, MEMBER_SNAPSHOT);
    trace_member(member, TRACE_INFO, "sending a snapshot");
    member_ready(member);
}

/* Rows of a snapshot that ended with its sender's disk are in no vector, so nobody would ask for
 * them: each member gets all of our rows. */
static bool is_orphan(const struct replica *replica, uint32_t i)
{
    uint16_t from = replica->partial.at[i].origin;
    return version_epoch(replica->partial.at[i].seq) < replica_epoch(replica, from);
}

bool replica_has_orphans(const struct replica *replica)
{
    for (uint32_t i = 0; i < replica->partial.count; i++)
        if (is_orphan(replica, i))
            return !planted(PLANT_ORPHANS_KEPT);
    return false;
}

static void orphans_shared(struct replica *replica)
{
    struct vv shared = {0}, left = replica->partial;
    for (uint32_t i = 0; i < replica->partial.count; i++) {
        uint16_t from = replica->partial.at[i].origin;
        uint64_t seq = replica->partial.at[i].seq;
        if (!is_orphan(replica, i))
            continue;
        check(vv_raise(&shared, from, seq));
        vv_drop(&left, from, version_epoch(seq));
    }
    replica->partial = left;
    trace_emit(&replica->replicator->config.trace, TRACE_INFO,
               "partition %u: what was left of a lost snapshot is everywhere",
               replica->place.partition);
    struct replicator_effect *at = effect(replica->replicator, REPLICATOR_ORPHANS_SHARED);
    at->replica = replica;
    at->vv = arena_copy(&replica->replicator->arena, &shared, sizeof(shared));
}

void snapshot_done(struct member *member, uint64_t id)
{
    struct replica *replica = member->replica;
    if (!member->orphans_sent || id != member->snapshot_id)
        return;
    member->orphans_sent = false;
    member->has_orphans = true;
    for (uint32_t i = 0; i < replica->member_count; i++)
        if (!replica->members[i]->has_orphans)
            return;
    if (replica_has_orphans(replica))
        orphans_shared(replica);
}

void snapshot_read(struct member *member)
{
    struct replica *replica = member->replica;
    const struct replicator_config *config = &replica->replicator->config;
    struct read *read = read_start(replica, true, 0);
    read_join(read, member);
    struct replicator_effect *at = effect_for(member, REPLICATOR_READ_SNAPSHOT);
    at->id = read->id;
    at->after = bytes_copy(&replica->replicator->arena, buf_view(&member->snapshot_after));
    at->rows_max = config->batch_records_max;
    at->bytes_max = config->batch_bytes_max;
}

void snapshot_rows(struct member *member, const struct replicator_input *in)
{
    struct replicator *replicator = member->replica->replicator;
    check(member_state(member) == MEMBER_SNAPSHOT);
    if (in->failed || (in->more && in->row_count == 0)) {
        trace_member(member, TRACE_ERROR, "rows for a snapshot cannot be read");
        snapshot_offer(member, false);
        return;
    }
    uint32_t count = pack_rows(replicator, in->rows, in->row_count);
    struct bytes begin = bytes_copy(&replicator->arena, buf_view(&member->snapshot_after));
    struct wire_message chunk = {.kind = WIRE_SNAPSHOT_CHUNK,
                                 .place = member->replica->place,
                                 .snapshot_id = member->snapshot_id,
                                 .index = member->snapshot_chunks++,
                                 .begin = begin,
                                 .last = !in->more && count == in->row_count,
                                 .vv = member->snapshot_vv,
                                 .epoch = member->replica->epoch,
                                 .record_count = count,
                                 .records = buf_view(&replicator->scratch)};
    if (!chunk.last) {
        chunk.end = in->rows[count - 1].key;
        buf_reset(&member->snapshot_after);
        buf_append_bytes(&member->snapshot_after, chunk.end);
    }
    peer_send(member->peer, true, &chunk);
    member->peer->out.sent_bytes += chunk.records.len;
    if (!chunk.last) {
        member_ready(member);
        return;
    }
    trace_member(member, TRACE_INFO, "snapshot sent");
    member_enter_log(member, vv_get(&member->snapshot_vv, replicator->config.region));
}

/* ---- Taking in ---- */

void snapshot_offered(struct member *member, uint64_t id)
{
    struct replica *replica = member->replica;
    struct inbound *in = &member->peer->in;
    if (replica->snapshot_from && (replica->snapshot_from != member || member->in_id == 0)) {
        member->deferred = true; /* its turn comes when that one is done */
        return;
    }
    if (member->in_id == id && member->in_index > 0)
        return; /* a late repetition */
    if (member->in_id != id) {
        list_remove(&member->snapshot);
        list_append(&in->snapshots, &member->snapshot);
        replica->snapshot_from = member;
        member->deferred = false;
        member->in_id = id;
        member->in_index = 0;
        member->in_beat = in->beat;
        buf_reset(&member->in_end);
        trace_member(member, TRACE_INFO, "taking a snapshot in");
    }
    struct wire_message accept = {
        .kind = WIRE_SNAPSHOT_ACCEPT, .place = replica->place, .snapshot_id = id};
    peer_send(member->peer, false, &accept);
}

void snapshot_release(struct replica *replica)
{
    replica->snapshot_from = NULL;
    for (uint32_t i = 0; i < replica->member_count; i++) {
        if (!replica->members[i]->deferred)
            continue;
        replica->members[i]->deferred = false;
        member_resume(replica->members[i]);
    }
}

void snapshot_drop(struct member *member)
{
    if (member->in_id == 0)
        return;
    trace_member(member, TRACE_INFO, "snapshot given up");
    member->in_id = 0;
    list_remove(&member->snapshot);
    snapshot_release(member->replica);
}

/* Whether the rows are in order of key and inside the interval. */
static bool rows_in_interval(const struct wire_message *chunk, const struct replicator_row *rows)
{
    struct bytes before = chunk->begin;
    for (uint32_t i = 0; i < chunk->record_count; i++) {
        if (bytes_compare(rows[i].key, before) <= 0)
            return false;
        before = rows[i].key;
    }
    return chunk->last ||
           (bytes_compare(before, chunk->end) <= 0 && bytes_compare(chunk->begin, chunk->end) < 0);
}

static void chunk_apply(struct member *member, const struct wire_message *chunk,
                        const struct replicator_row *rows)
{
    struct arena *arena = &member->replica->replicator->arena;
    struct apply *apply;
    struct replicator_effect *at;
    if (chunk->record_count) {
        apply = apply_new(member, APPLY_ROWS, chunk->records.len);
        at = effect_for(member, REPLICATOR_APPLY_SNAPSHOT);
        at->apply_id = apply->id;
        at->epoch = chunk->epoch;
        at->rows = rows;
        at->row_count = chunk->record_count;
    }
    struct vv *vv = arena_copy(arena, &chunk->vv, sizeof(chunk->vv));
    apply = apply_new(member, APPLY_SWEEP, 0);
    at = effect_for(member, REPLICATOR_SWEEP_SNAPSHOT);
    at->apply_id = apply->id;
    at->begin = chunk->begin;
    at->end = chunk->end;
    at->vv = vv;
    at->rows = rows;
    at->row_count = chunk->record_count;
    if (!chunk->last)
        return;
    apply = apply_new(member, APPLY_FINISH, 0);
    apply->vv = chunk->vv;
    apply->snapshot_id = chunk->snapshot_id;
    at = effect_for(member, REPLICATOR_FINISH_SNAPSHOT);
    at->apply_id = apply->id;
    at->epoch = chunk->epoch;
    at->vv = vv;
    /* Its log goes on behind, and what it sends now is in order with what we have just handed over.
     */
    uint64_t seq = vv_get(&chunk->vv, member->peer->region);
    if (seq > member->received)
        member->received = seq;
    member->in_id = 0;
    list_remove(&member->snapshot);
}

void snapshot_chunk(struct member *member, const struct wire_message *chunk)
{
    struct peer *peer = member->peer;
    if (member->in_id != chunk->snapshot_id || chunk->index < member->in_index)
        return; /* of one that was given up, or twice */
    if (chunk->index > member->in_index) {
        snapshot_drop(member);
        member_resume(member);
        return;
    }
    if (chunk->index == 0)
        member->in_vv = chunk->vv;
    bool same = vv_covers(&member->in_vv, &chunk->vv) && vv_covers(&chunk->vv, &member->in_vv);
    struct replicator_row *rows;
    uint64_t hlc;
    if (!same || !vv_has_room(member->replica, &chunk->vv) ||
        !bytes_equal(chunk->begin, buf_view(&member->in_end)) ||
        !unpack_rows(peer, chunk, &rows, &hlc) || !rows_in_interval(chunk, rows)) {
        peer_close(peer, false, "malformed snapshot chunk");
        return;
    }
    if (!window_fits(peer, chunk->records.len)) {
        peer_close(peer, false, "window exceeded");
        return;
    }
    member->in_index++;
    buf_reset(&member->in_end);
    buf_append_bytes(&member->in_end, chunk->end);
    if (hlc)
        effect(peer->replicator, REPLICATOR_OBSERVE)->hlc = hlc;
    chunk_apply(member, chunk, rows);
}

void snapshot_finished(struct member *member, const struct vv *vv)
{
    struct replica *replica = member->replica;
    trace_member(member, TRACE_INFO, "snapshot taken in");
    replica_learn(replica, vv);
    snapshot_release(replica);
    replica_reconsider(replica);
}
