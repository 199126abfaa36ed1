/* SPDX-License-Identifier: Apache-2.0 */
/* A member whose next entry the leader no longer holds gets the items instead: piece after piece,
 * one under way at a time, read through the owner here and staged by the owner there, which puts
 * the whole in the place of its items at the end. While one comes in nothing is applied. A witness
 * gets no items, only leave to begin its log later: then both data members have all that came
 * before. */

#include "witness/consensus_internal.h"

/* ---- The leader's side ---- */

void consensus_snapshot_close(struct consensus *c, uint8_t to)
{
    struct peer_snapshot *snapshot = &c->peers[to].snapshot;
    if (!snapshot->id)
        return;
    consensus_emit(c, CONSENSUS_SNAPSHOT_CLOSE)->id = snapshot->id;
    buf_deinit(&snapshot->piece);
    *snapshot = (struct peer_snapshot){0};
}

static void read_piece(struct consensus *c, uint8_t to)
{
    struct peer_snapshot *snapshot = &c->peers[to].snapshot;
    struct consensus_effect *read = consensus_emit(c, CONSENSUS_SNAPSHOT_READ);
    read->id = snapshot->id;
    read->peer = to;
    read->offset = snapshot->offset;
    snapshot->reading = true;
    snapshot->moved_ns = c->now;
}

static void send_piece(struct consensus *c, uint8_t to)
{
    struct peer_snapshot *snapshot = &c->peers[to].snapshot;
    struct consensus_message m = consensus_message_to(c, MESSAGE_SNAPSHOT, to);
    m.index = snapshot->index;
    m.index_term = planted(PLANT_SNAPSHOT_TERM) ? c->hard.term : snapshot->term;
    m.offset = snapshot->offset;
    m.transfer_id = snapshot->id;
    m.bytes = buf_view(&snapshot->piece);
    m.last = snapshot->piece_last;
    snapshot->moved_ns = c->now;
    consensus_send(c, &m);
}

/* Leave for a witness to begin after our base, where it lacks something at or before it.
 *
 * A FULL witness always has it: what it lacks was committed without it, so by both data members,
 * and with it all that came before. One that may have lost what it had has it when both data
 * members are known to have all up to our base; or while the other one rebuilds: then what the
 * witness lacks is nowhere but in our items, so it cannot have it, and the other cannot count again
 * without it. */
static void send_base(struct consensus *c, uint8_t to)
{
    bool rebuilding = false;
    each_peer(c, i) rebuilding |= i != to && c->peers[i].standing == CONSENSUS_REBUILDING;
    bool leave = c->all_durable >= c->log.base_index || rebuilding ||
                 c->peers[to].standing == CONSENSUS_FULL;
    if (!leave || c->log.base_index == 0)
        return;
    struct consensus_message m = consensus_message_to(c, MESSAGE_SNAPSHOT, to);
    m.index = c->log.base_index;
    m.index_term = c->log.base_term;
    m.last = true;
    consensus_send(c, &m);
}

void consensus_snapshot_send(struct consensus *c, uint8_t to)
{
    struct peer_snapshot *snapshot = &c->peers[to].snapshot;
    if (c->config.kinds[to] == CONSENSUS_WITNESS) {
        send_base(c, to);
    } else if (is_witness(c)) {
        return; /* it has what that member lacks nowhere but in a log it has cut: another must lead
                 */
    } else if (!snapshot->id) {
        snapshot->id = ++c->next_id;
        read_piece(c, to);
    } else if (!snapshot->reading && c->now - snapshot->moved_ns >= c->config.retry_ns) {
        send_piece(c, to);
    }
}

static uint8_t peer_of_snapshot(const struct consensus *c, uint64_t id)
{
    each_peer(c, peer)
    {
        if (c->peers[peer].snapshot.id == id)
            return peer;
    }
    return CONSENSUS_NOBODY;
}

void consensus_on_snapshot_piece(struct consensus *c, const struct consensus_input *in)
{
    uint8_t to = in->id ? peer_of_snapshot(c, in->id) : CONSENSUS_NOBODY;
    if (to == CONSENSUS_NOBODY)
        return;
    struct peer_snapshot *snapshot = &c->peers[to].snapshot;
    if (!snapshot->reading || in->offset != snapshot->offset)
        return;
    bool usable = !in->failed && in->index >= c->log.base_index && in->index <= c->commit &&
                  in->index > 0 && (snapshot->index == 0 || snapshot->index == in->index) &&
                  (in->bytes.len > 0 || in->last);
    if (snapshot->index == 0 && usable) {
        snapshot->index = in->index;
        snapshot->term = consensus_log_term(&c->log, in->index);
    } else if (!usable && (in->failed || snapshot->index != in->index || snapshot->index == 0)) {
        consensus_snapshot_close(c, to);
        c->peers[to].snapshot_failed = in->failed; /* else it begins anew at once */
        return;
    }
    snapshot->reading = false;
    buf_reset(&snapshot->piece);
    buf_append_bytes(&snapshot->piece, in->bytes);
    snapshot->piece_last = in->last;
    send_piece(c, to);
}

void consensus_on_snapshot_response(struct consensus *c, const struct consensus_message *m)
{
    if (role(c) != CONSENSUS_LEADER || m->term != c->hard.term)
        return;
    struct peer *peer = &c->peers[m->source];
    struct peer_snapshot *snapshot = &peer->snapshot;
    if (m->standing == CONSENSUS_FULL)
        peer->heard_ns = c->now;
    bool of_base = c->config.kinds[m->source] == CONSENSUS_WITNESS;
    if (m->installed && m->index <= c->commit && (of_base || m->index == snapshot->index)) {
        consensus_snapshot_close(c, m->source);
        peer->next = max_u64(peer->next, m->index + 1);
        peer->probing = peer->beat = true;
    } else if (snapshot->id && !snapshot->reading && m->transfer_id == snapshot->id &&
               m->offset != snapshot->offset) {
        /* It has that piece, or has thrown away what it had. */
        snapshot->offset = m->offset;
        read_piece(c, m->source);
    }
}

/* ---- The member's side ---- */

static void respond(struct consensus *c, uint64_t index, uint64_t transfer, uint64_t offset,
                    bool installed)
{
    if (c->leader == CONSENSUS_NOBODY || c->leader == c->config.self)
        return;
    struct consensus_message m = consensus_message_to(c, MESSAGE_SNAPSHOT_RESPONSE, c->leader);
    m.index = index;
    m.offset = offset;
    m.installed = installed;
    m.transfer_id = transfer;
    consensus_send(c, &m);
}

/* Its sender leads no more, or it is not needed. Whatever the owner staged is thrown away when the
 * next one begins; but one that is complete is being installed, and cannot be called back. */
void consensus_snapshot_abandon(struct consensus *c)
{
    if (c->staging_index && !c->staging_last) {
        c->staging_index = 0;
        c->staging_write = false;
    }
}

static void take_base(struct consensus *c, const struct consensus_message *m)
{
    if (m->index > c->log.base_index && !consensus_log_has(&c->log, m->index, m->index_term))
        consensus_restart_log(c, m->index, m->index_term, false);
    respond(c, m->index, m->transfer_id, 0, true);
}

static void take_piece(struct consensus *c, const struct consensus_message *m)
{
    /* Pieces of two transfers do not go together, even if they are of one index: the rows of items
     * that change meanwhile are not the same. A leader numbers its transfers upwards. */
    bool same = c->staging_index && m->term == c->staging_sender_term &&
                m->transfer_id == c->staging_transfer;
    bool older = c->staging_index && !same &&
                 (m->term < c->staging_sender_term ||
                  (m->term == c->staging_sender_term && m->transfer_id < c->staging_transfer));
    if (older)
        return;
    if (!same && m->offset != 0) {
        respond(c, m->index, m->transfer_id, 0, false);
        return;
    }
    if (!same) {
        c->staging_index = m->index;
        c->staging_term = m->index_term;
        c->staging_sender_term = m->term;
        c->staging_transfer = m->transfer_id;
        c->staged = 0;
        consensus_trace(c, TRACE_INFO, "takes a snapshot of %llu", (unsigned long long)m->index);
    }
    if (m->offset != c->staged || m->index != c->staging_index) {
        respond(c, c->staging_index, c->staging_transfer, c->staged, false);
        return;
    }
    struct consensus_effect *write = consensus_emit(c, CONSENSUS_SNAPSHOT_WRITE);
    write->id = c->staging_id = ++c->next_id;
    write->index = m->index;
    write->term = m->index_term;
    write->offset = m->offset;
    write->bytes = bytes_copy(&c->arena, m->bytes);
    write->last = m->last;
    c->staging_write = true;
    c->staging_last = m->last;
}

void consensus_on_snapshot(struct consensus *c, const struct consensus_message *m)
{
    if (m->term < c->hard.term)
        return;
    if (role(c) == CONSENSUS_LEADER) {
        consensus_bad_frame(c, m->source, "it claims to lead our term");
        return;
    }
    consensus_follow(c, m->source);
    if (is_witness(c)) {
        take_base(c, m);
        return;
    }
    if (c->staging_write)
        return; /* the owner is at it; the piece comes again */
    if (m->index <= c->emitted) {
        respond(c, m->index, m->transfer_id, 0, true);
    } else if (consensus_log_has(&c->log, m->index, m->index_term) && m->index <= c->durable) {
        /* A snapshot is of what is committed, and all of it is here already. */
        consensus_commit(c, m->index);
        respond(c, m->index, m->transfer_id, 0, true);
    } else {
        take_piece(c, m);
    }
}

void consensus_on_snapshot_staged(struct consensus *c, const struct consensus_input *in)
{
    if (!c->staging_write || in->id != c->staging_id || c->staging_last)
        return; /* of a snapshot that was given up */
    c->staged = in->offset;
    c->staging_write = false;
    respond(c, c->staging_index, c->staging_transfer, c->staged, false);
}

void consensus_on_snapshot_installed(struct consensus *c, const struct consensus_input *in)
{
    check(c->staging_index && c->staging_last);
    check(in->id == c->staging_id);
    uint64_t index = c->staging_index, term = c->staging_term;
    c->staging_index = 0;
    c->staging_write = c->staging_last = false;
    check(index > c->emitted);
    c->emitted = c->applied = c->stable = index;
    c->emitted_term = term;
    if (consensus_log_has(&c->log, index, term))
        consensus_commit(c, index);
    else
        consensus_restart_log(c, index, term, true);
    consensus_trace(c, TRACE_INFO, "has the snapshot of %llu", (unsigned long long)index);
    consensus_requests_lost(c);
    consensus_requests_applied(c);
    respond(c, index, c->staging_transfer, 0, true);
}
