/* SPDX-License-Identifier: Apache-2.0 */
/* The leader: sends its log, and commits what two members have durably.
 *
 * To each member entries flow without waiting for answers, up to a bound in bytes, once it is known
 * where that member's log parts from ours (thesis, 10.2). Our own disk is written at the same time:
 * `leader_durable` in every Append says how far it is, and follows by itself when it moves. What is
 * sent goes out once, at the end of a step. */

#include "witness/consensus_internal.h"

static void peer_reset(struct consensus *c, uint8_t index)
{
    struct peer *peer = &c->peers[index];
    consensus_snapshot_close(c, index);
    peer->next = last_index(c) + 1;
    peer->match = peer->received = peer->told = peer->round = 0;
    peer->probing = peer->beat = true;
    peer->full = peer->quiesced = false;
}

void consensus_leader_noop(struct consensus *c)
{
    struct consensus_entry noop = {
        .term = c->hard.term, .kind = CONSENSUS_NOOP, .origin = c->config.self};
    consensus_extend(c, &noop);
}

void consensus_leader_beat(struct consensus *c)
{
    c->round++;
    c->round_ns = c->now;
    c->round_times[c->round % ROUNDS_TIMED] = c->now;
    c->beat_at = c->now + c->config.heartbeat_ns;
    each_peer(c, peer) c->peers[peer].beat = true;
}

void consensus_lead(struct consensus *c)
{
    lifecycle_move(&c->role, CONSENSUS_LEADER);
    consensus_trace(c, TRACE_INFO, "leads from %llu", (unsigned long long)last_index(c) + 1);
    c->leader = c->config.self;
    c->quiet = false;
    c->round = c->round_answers = 0;
    c->all_durable = 0;
    c->stall_at = c->now + consensus_patience(c);
    c->placement_at = c->now + c->config.placement_ns;
    c->placement_favourite = CONSENSUS_NOBODY;
    each_peer(c, peer)
    {
        struct peer *at = &c->peers[peer];
        at->incarnation = at->boot = 0;
        at->standing = CONSENSUS_FULL;
        at->rejoin_index = at->rejoin_incarnation = 0;
        at->heard_ns = c->now;
        peer_reset(c, peer);
    }
    c->term_start = last_index(c) + 1;
    consensus_leader_noop(c);
    consensus_leader_beat(c);
    consensus_requests_restart(c);
}

void consensus_leader_stop(struct consensus *c)
{
    each_peer(c, peer) consensus_snapshot_close(c, peer);
    consensus_proposals_drop(c);
    c->transfer_to = CONSENSUS_NOBODY;
}

bool consensus_leader_serving(const struct consensus *c)
{
    return role(c) == CONSENSUS_LEADER && !is_witness(c) && c->applied >= c->term_start;
}

static void durables(const struct consensus *c, uint64_t *ret_durable, bool *ret_counts)
{
    for (int i = 0; i < CONSENSUS_MEMBERS; i++) {
        ret_durable[i] = c->peers[i].match;
        ret_counts[i] = c->peers[i].standing == CONSENSUS_FULL;
    }
    ret_durable[c->config.self] = planted(PLANT_LEADER_UNSYNCED) ? last_index(c) : claim(c);
    ret_counts[c->config.self] = true;
}

uint64_t consensus_leader_all_durable(const struct consensus *c)
{
    uint64_t durable[CONSENSUS_MEMBERS];
    bool counts[CONSENSUS_MEMBERS];
    durables(c, durable, counts);
    if (planted(PLANT_TRIM_COMMITTED))
        return c->commit;
    return min_u64(c->commit, quorum_everywhere(durable, counts, c->config.kinds));
}

/* Entries of older terms are never committed by counting (thesis, figure 3.7): only with one of
 * ours that follows them. */
void consensus_leader_advance(struct consensus *c)
{
    uint64_t durable[CONSENSUS_MEMBERS];
    bool counts[CONSENSUS_MEMBERS];
    durables(c, durable, counts);
    uint64_t index = quorum_durable(durable, counts);
    if (index > c->commit && index >= c->log.base_index &&
        (consensus_log_term(&c->log, index) == c->hard.term || planted(PLANT_FIGURE_8)))
        consensus_commit(c, index);
    c->all_durable = consensus_leader_all_durable(c);
    consensus_caretaker_try(c);
    consensus_transfer_try(c);
}

/* ---- Sending ---- */

static bool idle(const struct consensus *c)
{
    uint64_t last = last_index(c);
    if (!c->config.quiesce || c->request_count || !list_empty(&c->queue) || c->evaluating ||
        c->commit != last || c->durable != last || c->transfer_to != CONSENSUS_NOBODY ||
        (!is_witness(c) && c->applied != last))
        return false;
    each_peer(c, i)
    {
        const struct peer *peer = &c->peers[i];
        bool silent = !c->quiet && c->now - peer->heard_ns >= consensus_patience(c);
        if (peer->standing != CONSENSUS_FULL || peer->match != last || peer->told != last || silent)
            return false;
    }
    return true;
}

static uint32_t batch(const struct consensus *c, uint64_t from)
{
    uint64_t bytes = 0;
    uint32_t count = 0;
    for (uint64_t i = from; i <= last_index(c) && count < ENTRIES_MAX; i++, count++) {
        bytes += consensus_log_get(&c->log, i)->payload.len;
        if (count && bytes > c->config.batch_bytes_max)
            break;
    }
    return count;
}

static void send_append(struct consensus *c, uint8_t to, uint64_t prev, uint32_t count)
{
    struct peer *peer = &c->peers[to];
    struct consensus_message m = consensus_message_to(c, MESSAGE_APPEND, to);
    m.prev_index = prev;
    m.prev_term = consensus_log_term(&c->log, prev);
    m.entries = arena_array(&c->arena, struct consensus_entry, count);
    m.entry_count = count;
    for (uint32_t i = 0; i < count; i++)
        m.entries[i] = *consensus_log_get(&c->log, prev + 1 + i);
    m.commit = c->commit;
    m.leader_durable = planted(PLANT_MARK_EARLY) ? last_index(c) : c->durable;
    m.all_durable = c->all_durable;
    m.last_index = last_index(c);
    m.round = c->round;
    m.known_incarnation = peer->incarnation;
    m.known_boot = peer->boot;
    m.rejoin_index = peer->rejoin_index && peer->rejoin_index <= c->commit &&
                             peer->rejoin_incarnation == peer->incarnation
                         ? peer->rejoin_index
                         : 0;
    m.round_trip_us = c->round_trip_ns / 1000;
    m.quiesce = count == 0 && idle(c);
    if (!m.quiesce)
        peer->quiesced = false;
    peer->beat = false;
    peer->told = max_u64(c->commit, c->durable);
    consensus_send(c, &m);
}

static bool window_open(const struct consensus *c, const struct peer *peer)
{
    uint64_t from = max_u64(peer->received, c->log.base_index);
    return peer->next - 1 <= from ||
           consensus_log_bytes(&c->log, from, peer->next - 1) < c->config.inflight_bytes_max;
}

static void flush_peer(struct consensus *c, uint8_t to)
{
    struct peer *peer = &c->peers[to];
    if (peer->next <= c->log.base_index) {
        bool beat = peer->beat;
        if (beat)
            send_append(c, to, c->log.base_index, 0);
        if (beat)
            peer->snapshot_failed = false;
        if (beat || (!peer->snapshot.id && !peer->snapshot_failed))
            consensus_snapshot_send(c, to);
        return;
    }
    if (peer->snapshot.id)
        consensus_snapshot_close(c, to);
    /* A member that has no room is tried with every heartbeat. */
    while (!peer->probing && peer->next <= last_index(c) && window_open(c, peer) &&
           (!peer->full || peer->beat)) {
        uint32_t count = batch(c, peer->next);
        uint64_t prev = peer->next - 1;
        peer->next += count;
        send_append(c, to, prev, count);
    }
    if (peer->beat || (!peer->probing && max_u64(c->commit, c->durable) > peer->told))
        send_append(c, to, peer->next - 1, 0);
}

void consensus_leader_flush(struct consensus *c)
{
    if (c->quiet) {
        if (idle(c))
            return;
        consensus_wake(c);
    }
    /* Of this step's commits the caller saw to all but those that an APPLIED made readable. */
    each_peer(c, peer) flush_peer(c, peer);
}

/* ---- Answers ---- */

/* False: the frame is of an earlier life of that member, and what it says may not be so any more.
 */
static bool peer_known(struct consensus *c, const struct consensus_message *m)
{
    struct peer *peer = &c->peers[m->source];
    bool older = m->incarnation < peer->incarnation ||
                 (m->incarnation == peer->incarnation && m->boot < peer->boot);
    if (older && !planted(PLANT_OLD_LIFE))
        return false;
    if (!older && (m->incarnation != peer->incarnation || m->boot != peer->boot)) {
        bool first = peer->boot == 0;
        peer->incarnation = m->incarnation;
        peer->boot = m->boot;
        if (!first)
            peer_reset(c, m->source);
        peer->beat = true;
    }
    peer->standing = m->standing;
    if (m->standing == CONSENSUS_REBUILDING && peer->rejoin_incarnation != m->incarnation) {
        peer->rejoin_incarnation = m->incarnation;
        peer->rejoin_index = last_index(c) + 1;
        consensus_leader_noop(c);
        consensus_trace(c, TRACE_WARN, "member %u rebuilds, and counts again after %llu", m->source,
                        (unsigned long long)peer->rejoin_index);
    }
    return true;
}

/* The member's log does not contain next - 1: go back, to the start of what it has of that term. */
static void back_up(struct consensus *c, struct peer *peer, const struct consensus_message *m)
{
    uint64_t to = m->conflict_index;
    if (to == 0 || to >= peer->next)
        return;
    if (m->conflict_term) {
        uint64_t index = min_u64(peer->next - 1, last_index(c));
        while (index > max_u64(c->log.base_index, to) &&
               consensus_log_term(&c->log, index) > m->conflict_term)
            index--;
        if (index >= c->log.base_index && index >= to &&
            consensus_log_term(&c->log, index) == m->conflict_term && index + 1 < peer->next)
            to = index + 1;
    }
    /* A run of one term may begin before what is known to agree. */
    to = max_u64(to, peer->match + 1);
    if (to >= peer->next)
        return;
    peer->next = to;
    peer->probing = true;
    peer->beat = true;
}

void consensus_on_append_response(struct consensus *c, const struct consensus_message *m)
{
    if (role(c) != CONSENSUS_LEADER || m->term != c->hard.term || !peer_known(c, m))
        return;
    struct peer *peer = &c->peers[m->source];
    if (m->standing == CONSENSUS_FULL) {
        peer->heard_ns = c->now;
        peer->round = max_u64(peer->round, min_u64(m->round, c->round));
        if (c->round - min_u64(m->round, c->round) < ROUNDS_TIMED && m->round > 0) {
            uint64_t sample = c->now - c->round_times[m->round % ROUNDS_TIMED];
            c->round_trip_ns = max_u64(sample, (7 * c->round_trip_ns + sample) / 8);
        }
    }
    if (!m->ok) {
        back_up(c, peer, m);
    } else if (m->received > last_index(c)) {
        consensus_bad_frame(c, m->source, "it has more than it was sent");
        return;
    } else {
        peer->match = max_u64(peer->match, m->durable);
        peer->received = max_u64(peer->received, m->received);
        peer->next = max_u64(peer->next, peer->received + 1);
        peer->probing = false;
        /* A member that was full has given up what did not fit: from there again. */
        if (m->full || peer->full)
            peer->next = peer->received + 1;
        peer->full = m->full;
        peer->quiesced = m->quiesced;
    }
    consensus_leader_advance(c);
    consensus_reads_round(c);
    bool all_quiet = idle(c);
    each_peer(c, i) all_quiet = all_quiet && c->peers[i].quiesced;
    c->quiet = all_quiet;
}

/* ---- Time ---- */

void consensus_leader_timeout(struct consensus *c)
{
    if (c->quiet)
        return;
    if (c->now >= c->beat_at)
        consensus_leader_beat(c);
    consensus_placement_timeout(c);
}

uint64_t consensus_leader_deadline(const struct consensus *c)
{
    if (c->quiet)
        return UINT64_MAX;
    uint64_t heard = 0;
    each_peer(c, i) heard = max_u64(heard, c->peers[i].heard_ns);
    uint64_t at = min_u64(c->beat_at, c->stall_at);
    if (!planted(PLANT_NO_CHECK_QUORUM))
        at = min_u64(at, heard + consensus_patience(c));
    if (c->config.placement_ns)
        at = min_u64(at, c->placement_at);
    return c->transfer_to == CONSENSUS_NOBODY ? at : min_u64(at, c->transfer_until);
}
