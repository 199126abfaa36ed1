/* SPDX-License-Identifier: Apache-2.0 */
/* The follower: takes the leader's entries, tells what of them it has durably, and decides by
 * itself what is committed.
 *
 * Follower-origin commit. Entry i is committed as soon as (1) our log is the leader's up to i,
 * checked in this term; (2) it is durable here; (3) the leader has said, in this term, that it is
 * durable there; (4) it is of this term. Then two members hold it for good, and the Region that
 * proposed it answers its client half a round trip before the leader knows. README.md has the
 * proof. Without (2), (3) or (4) acknowledged writes are lost; (1) follows from (4), as only this
 * term's leader makes entries of it, and keeps the claim from resting on that alone. */

#include "witness/consensus_internal.h"

void consensus_follow(struct consensus *c, uint8_t leader)
{
    check(role(c) != CONSENSUS_LEADER);
    if (role(c) != CONSENSUS_FOLLOWER || c->leader != leader)
        consensus_become_follower(c, leader);
    c->heard_ns = c->now;
    c->quiet = false;
    c->elections_failed = 0;
    consensus_election_reset(c);
}

static void advance(struct consensus *c)
{
    if (c->hard.standing != CONSENSUS_FULL || role(c) != CONSENSUS_FOLLOWER ||
        c->leader == CONSENSUS_NOBODY)
        return;
    uint64_t both = min_u64(min_u64(claim(c), c->leader_durable), c->matched);
    if (both > c->commit && both >= c->log.base_index &&
        (consensus_log_term(&c->log, both) == c->hard.term || planted(PLANT_MARK_OLD_TERM)))
        consensus_commit(c, both);
}

static void answer(struct consensus *c, uint64_t round, bool quiesced)
{
    struct consensus_message m = consensus_message_to(c, MESSAGE_APPEND_RESPONSE, c->leader);
    m.ok = true;
    m.received = c->matched;
    m.durable = c->told_durable = min_u64(c->matched, claim(c));
    m.round = round;
    m.full = consensus_full(c);
    m.quiesced = quiesced;
    consensus_send(c, &m);
}

static void refuse(struct consensus *c, const struct consensus_message *m)
{
    struct consensus_message no = consensus_message_to(c, MESSAGE_APPEND_RESPONSE, m->source);
    no.round = m->round;
    if (m->term == c->hard.term && m->prev_index > last_index(c)) {
        no.conflict_index = last_index(c) + 1;
    } else if (m->term == c->hard.term) {
        /* The whole of a term that the leader does not have goes at once. */
        no.conflict_term = consensus_log_term(&c->log, m->prev_index);
        no.conflict_index = m->prev_index;
        while (no.conflict_index > max_u64(c->log.base_index, c->commit) + 1 &&
               consensus_log_term(&c->log, no.conflict_index - 1) == no.conflict_term)
            no.conflict_index--;
    }
    consensus_send(c, &no);
}

/* A member whose log was damaged has again all that it ever acknowledged, once it has all that a
 * leader of a term no older than its own has: that leader has every entry that this member helped
 * to commit. "All" is what it once reached, or the leader's end as told after this start.
 *
 * A member whose disk was lost has forgotten its votes as well. It has them back in effect once a
 * leader has committed, without it, an entry that it made after it knew of the loss: then both
 * others were in the leader's term after the loss, so no vote of the old disk can matter in a later
 * one; and in this one it counts as having voted for the leader. */
static void regain_standing(struct consensus *c, const struct consensus_message *m)
{
    uint64_t have = min_u64(c->matched, claim(c));
    bool fresh = m && m->known_incarnation == c->hard.incarnation && m->known_boot == c->hard.boot;
    bool regained = false;
    switch (c->hard.standing) {
    case CONSENSUS_FULL:
        return;
    case CONSENSUS_RECOVERING:
        regained = have > 0 && (have >= c->hard.recover_upto || (fresh && have >= m->last_index));
        break;
    case CONSENSUS_REBUILDING:
        regained = fresh && m->rejoin_index > 0 && have >= m->rejoin_index;
        break;
    }
    if (!regained)
        return;
    if (c->hard.standing == CONSENSUS_REBUILDING)
        c->hard.voted_for = c->leader;
    c->hard.standing = CONSENSUS_FULL;
    c->hard.recover_upto = 0;
    c->hard_dirty = true;
    consensus_trace(c, TRACE_WARN, "counts again");
}

/* Takes entries that follow the agreed prefix. False when the frame is against the rules. */
static bool take_entries(struct consensus *c, const struct consensus_message *m)
{
    uint64_t verified = max_u64(m->prev_index, c->log.base_index);
    for (uint32_t i = 0; i < m->entry_count; i++) {
        struct consensus_entry entry = m->entries[i];
        if (entry.index <= c->log.base_index)
            continue;
        /* Only a conflict cuts: an Append that came late may be shorter than what we have. */
        if (entry.index <= last_index(c) &&
            consensus_log_term(&c->log, entry.index) != entry.term) {
            if (entry.index <= c->commit)
                return false;
            consensus_trace(c, TRACE_INFO, "cuts its log from %llu",
                            (unsigned long long)entry.index);
            consensus_cut(c, entry.index);
        }
        if (entry.index > last_index(c)) {
            if (!consensus_room_for(c, entry.payload.len))
                break;
            if (entry.term < last_term(c))
                return false;
            consensus_extend(c, &entry);
        }
        verified = entry.index;
    }
    if (planted(PLANT_CUT_MATCHING) && verified < last_index(c) && verified >= c->commit)
        consensus_cut(c, verified + 1);
    c->matched = max_u64(c->matched, verified);
    return true;
}

static void note(struct consensus *c, const struct consensus_message *m)
{
    consensus_follow(c, m->source);
    c->leader_durable = max_u64(c->leader_durable, m->leader_durable);
    c->leader_last = max_u64(c->leader_last, m->last_index);
    c->all_durable = m->all_durable;
    c->round_trip_ns = min_u64(m->round_trip_us, 60u * 1000 * 1000) * 1000;
}

void consensus_on_append(struct consensus *c, const struct consensus_message *m)
{
    if (m->term < c->hard.term) {
        refuse(c, m);
        return;
    }
    if (role(c) == CONSENSUS_LEADER) {
        consensus_bad_frame(c, m->source, "it claims to lead our term");
        return;
    }
    note(c, m);
    /* What is before our base is committed, so every leader has it as we had. */
    if (m->prev_index >= c->log.base_index &&
        !consensus_log_has(&c->log, m->prev_index, m->prev_term)) {
        refuse(c, m);
        return;
    }
    uint64_t had = c->matched;
    if (!take_entries(c, m)) {
        consensus_bad_frame(c, m->source, "it changes what is committed");
        return;
    }
    /* The leader has what we need as entries, after all. */
    if (c->matched > c->emitted)
        consensus_snapshot_abandon(c);
    consensus_commit(c, min_u64(m->commit, c->matched));
    advance(c);
    regain_standing(c, m);
    bool quiesced = m->quiesce && c->request_count == 0 && !c->staging_index &&
                    c->matched == m->last_index && c->matched == last_index(c) &&
                    c->durable == c->matched && c->commit == c->matched &&
                    c->hard.standing == CONSENSUS_FULL;
    bool news =
        m->round > c->round_answered || c->matched == had || quiesced || c->durable >= c->matched;
    c->round_answered = max_u64(c->round_answered, m->round);
    /* New entries are answered when they are durable. */
    if (news)
        answer(c, m->round, quiesced);
    c->quiet = quiesced;
}

void consensus_follower_durable(struct consensus *c)
{
    if (role(c) != CONSENSUS_FOLLOWER || c->leader == CONSENSUS_NOBODY)
        return;
    advance(c);
    regain_standing(c, NULL);
    if (min_u64(c->matched, claim(c)) > c->told_durable)
        answer(c, 0, false);
}
