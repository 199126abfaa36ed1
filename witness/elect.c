/* SPDX-License-Identifier: Apache-2.0 */
/* Who leads. Pre-vote and stickiness (thesis, 9.6) keep a member that comes back from a partition
 * from unseating a leader that the others hear; check-quorum (placement.c) makes a leader step down
 * whom nobody hears. Only a FULL member stands or votes: any other may have forgotten what it once
 * promised. The witness waits longest, so that it leads only when no data member can. */

#include "witness/consensus_internal.h"

uint64_t consensus_patience(const struct consensus *c)
{
    uint64_t wanted = max_u64(c->config.election_ns, 10 * c->round_trip_ns);
    return min_u64(wanted, max_u64(c->config.election_ns, c->config.election_ns_max));
}

/* Whether or not something is lost, an answer takes its time: nothing is asked again before. */
uint64_t consensus_retry(const struct consensus *c)
{
    return max_u64(c->config.retry_ns, 2 * c->round_trip_ns);
}

/* An election that failed may have failed because the answers are slow: each further one waits
 * twice as long for them. */
void consensus_election_reset(struct consensus *c)
{
    enum { DOUBLE_MAX = 16 };
    uint64_t patience = consensus_patience(c);
    uint64_t most = max_u64(patience, c->config.election_ns_max);
    uint64_t wait = min_u64(patience << min_u64(c->elections_failed, DOUBLE_MAX), most);
    c->election_at = c->now + wait + rng_below(&c->rng, wait) + (is_witness(c) ? 2 * wait : 0);
}

/* Somebody stirs in an idle group: a leader shows itself, a follower waits for it once more. */
void consensus_wake(struct consensus *c)
{
    if (!c->quiet)
        return;
    c->quiet = false;
    c->heard_ns = c->now;
    consensus_election_reset(c);
    if (role(c) == CONSENSUS_LEADER) {
        each_peer(c, peer) c->peers[peer].heard_ns = c->now;
        consensus_leader_beat(c);
    }
}

void consensus_become_follower(struct consensus *c, uint8_t leader)
{
    if (role(c) == CONSENSUS_LEADER)
        consensus_leader_stop(c);
    if (role(c) != CONSENSUS_FOLLOWER) {
        consensus_trace(c, TRACE_DEBUG, "stops being %s", lifecycle_name(&c->role));
        lifecycle_move(&c->role, CONSENSUS_FOLLOWER);
    }
    if (leader != c->leader || leader == CONSENSUS_NOBODY) {
        c->leader = leader;
        consensus_requests_restart(c);
    }
    c->quiet = false;
    consensus_election_reset(c);
}

void consensus_adopt_term(struct consensus *c, uint64_t term)
{
    check(term > c->hard.term);
    consensus_become_follower(c, CONSENSUS_NOBODY);
    c->hard.term = term;
    c->hard.voted_for = CONSENSUS_NOBODY;
    c->hard_dirty = true;
    /* All of these speak of the log of the old term's leader. */
    c->matched = 0;
    if (!planted(PLANT_MARK_KEPT))
        c->leader_durable = 0;
    c->leader_last = 0;
    c->told_durable = 0;
    c->round_answered = 0;
    c->transfer_vote = false;
    consensus_snapshot_abandon(c);
    consensus_requests_restart(c);
}

static void ask_votes(struct consensus *c, enum consensus_message_kind kind)
{
    c->votes = (uint8_t)(1u << c->config.self);
    c->asked_ns = c->now;
    consensus_election_reset(c);
    each_peer(c, peer)
    {
        struct consensus_message m = consensus_message_to(c, kind, peer);
        m.next_term = c->hard.term + 1;
        m.last_index = last_index(c);
        m.last_term = last_term(c);
        m.transfer = c->transfer_vote;
        consensus_send(c, &m);
    }
}

void consensus_campaign(struct consensus *c, bool transfer)
{
    check(c->hard.standing == CONSENSUS_FULL);
    check(role(c) != CONSENSUS_LEADER);
    c->leader = CONSENSUS_NOBODY;
    consensus_requests_restart(c);
    consensus_adopt_term(c, c->hard.term + 1);
    lifecycle_move(&c->role, CONSENSUS_CANDIDATE);
    c->hard.voted_for = c->config.self;
    c->transfer_vote = transfer;
    consensus_trace(c, TRACE_INFO, "stands%s", transfer ? ", as the leader asked" : "");
    ask_votes(c, MESSAGE_VOTE);
}

void consensus_election_timeout(struct consensus *c)
{
    if (role(c) == CONSENSUS_CANDIDATE)
        c->elections_failed++;
    consensus_become_follower(c, CONSENSUS_NOBODY);
    if (c->hard.standing != CONSENSUS_FULL) {
        /* Nobody will say yes; but an idle leader learns that there is somebody to help. */
        ask_votes(c, MESSAGE_PRE_VOTE);
        return;
    }
    if (planted(PLANT_NO_PREVOTE)) {
        consensus_campaign(c, false);
        return;
    }
    lifecycle_move(&c->role, CONSENSUS_PRECANDIDATE);
    ask_votes(c, MESSAGE_PRE_VOTE);
}

/* A leader that we hear, or are ourselves, is not to be disturbed. */
static bool content(struct consensus *c)
{
    if (role(c) == CONSENSUS_LEADER)
        return consensus_quorum_heard(c);
    return c->leader != CONSENSUS_NOBODY && c->now - c->heard_ns < consensus_patience(c);
}

static bool would_vote(const struct consensus *c, const struct consensus_message *m)
{
    return c->hard.standing == CONSENSUS_FULL && m->standing == CONSENSUS_FULL &&
           quorum_up_to_date(m->last_term, m->last_index, last_term(c), last_index(c));
}

void consensus_on_pre_vote(struct consensus *c, const struct consensus_message *m)
{
    consensus_wake(c);
    struct consensus_message answer = consensus_message_to(c, MESSAGE_PRE_VOTE_RESPONSE, m->source);
    answer.next_term = m->next_term;
    answer.granted = m->next_term > c->hard.term && !content(c) && would_vote(c, m);
    consensus_send(c, &answer);
    /* Whoever asks does not hear the leader, and the leader may not know. */
    if (role(c) == CONSENSUS_LEADER)
        c->peers[m->source].beat = true;
}

void consensus_on_pre_vote_response(struct consensus *c, const struct consensus_message *m)
{
    if (role(c) != CONSENSUS_PRECANDIDATE || !m->granted || m->next_term != c->hard.term + 1 ||
        m->standing != CONSENSUS_FULL)
        return;
    c->votes |= (uint8_t)(1u << m->source);
    if (quorum_elected(c->votes))
        consensus_campaign(c, false);
}

void consensus_on_vote(struct consensus *c, const struct consensus_message *m)
{
    consensus_wake(c);
    if (m->term > c->hard.term) {
        if (!m->transfer && content(c) && !planted(PLANT_NO_PREVOTE))
            return;
        consensus_adopt_term(c, m->term);
    }
    struct consensus_message answer = consensus_message_to(c, MESSAGE_VOTE_RESPONSE, m->source);
    bool free = c->hard.voted_for == CONSENSUS_NOBODY || c->hard.voted_for == m->source;
    answer.granted = m->term == c->hard.term && role(c) == CONSENSUS_FOLLOWER &&
                     c->leader == CONSENSUS_NOBODY && free && would_vote(c, m);
    if (answer.granted && c->hard.voted_for != m->source) {
        c->hard.voted_for = m->source;
        c->hard_dirty = !planted(PLANT_VOTE_NOT_PERSISTED);
        consensus_election_reset(c);
        consensus_trace(c, TRACE_INFO, "votes for %u", m->source);
    }
    consensus_send(c, &answer);
}

void consensus_on_vote_response(struct consensus *c, const struct consensus_message *m)
{
    if (role(c) != CONSENSUS_CANDIDATE || m->term != c->hard.term || !m->granted ||
        m->standing != CONSENSUS_FULL)
        return;
    c->votes |= (uint8_t)(1u << m->source);
    /* Asked once in this term, so this is a round trip; the new leader must wait as long to be
     * heard.
     */
    c->round_trip_ns = max_u64(c->round_trip_ns, c->now - c->asked_ns);
    if (quorum_elected(c->votes))
        consensus_lead(c);
}

void consensus_on_timeout_now(struct consensus *c, const struct consensus_message *m)
{
    if (m->term != c->hard.term || role(c) == CONSENSUS_LEADER ||
        c->hard.standing != CONSENSUS_FULL || is_witness(c))
        return;
    consensus_campaign(c, true);
}
