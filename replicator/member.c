/* SPDX-License-Identifier: Apache-2.0 */
/* One peer as a reader of one partition's log: the states of that, and the decision that the peer's
 * Resume asks for, log or snapshot.
 *
 *     AWAY --> OFFERED --> LOG <---------------- SNAPSHOT
 *                 |         |                      ^
 *                 +---------+--> SNAPSHOT_OFFERED -+
 *
 * Any goes to AWAY when the stream breaks, and to where the peer's Resume says; AHEAD, not drawn,
 * is for a peer that has more of our log than we do.
 */

#include "conflict/base/check.h"
#include "conflict/base/plant.h"
#include "replicator/replicator_internal.h"

#define FROM_ANYWHERE lifecycle_bit(MEMBER_AWAY)
static const struct lifecycle_state member_states[] = {
    [MEMBER_AWAY] = {"away", lifecycle_bit(MEMBER_OFFERED)},
    [MEMBER_OFFERED] = {"offered", FROM_ANYWHERE | lifecycle_bit(MEMBER_LOG) |
                                       lifecycle_bit(MEMBER_SNAPSHOT_OFFERED) |
                                       lifecycle_bit(MEMBER_AHEAD)},
    [MEMBER_LOG] = {"log", FROM_ANYWHERE | lifecycle_bit(MEMBER_SNAPSHOT_OFFERED) |
                               lifecycle_bit(MEMBER_AHEAD)},
    [MEMBER_SNAPSHOT_OFFERED] = {"snapshot offered", FROM_ANYWHERE | lifecycle_bit(MEMBER_LOG) |
                                                         lifecycle_bit(MEMBER_SNAPSHOT) |
                                                         lifecycle_bit(MEMBER_AHEAD)},
    [MEMBER_SNAPSHOT] = {"snapshot", FROM_ANYWHERE | lifecycle_bit(MEMBER_LOG) |
                                         lifecycle_bit(MEMBER_SNAPSHOT_OFFERED) |
                                         lifecycle_bit(MEMBER_AHEAD)},
    [MEMBER_AHEAD] = {"ahead", FROM_ANYWHERE | lifecycle_bit(MEMBER_LOG) |
                                   lifecycle_bit(MEMBER_SNAPSHOT_OFFERED)},
};
static const struct lifecycle_table member_table = {"member", member_states,
                                                    array_len(member_states)};

void member_move(struct member *member, enum member_state to)
{
    if (member_state(member) == to)
        return;
    lifecycle_move(&member->life, to);
    trace_member(member, TRACE_DEBUG, lifecycle_name(&member->life));
    if (to != MEMBER_OFFERED && to != MEMBER_SNAPSHOT_OFFERED)
        list_remove(&member->waiting);
    else
        list_add_once(&member->peer->out.waiting, &member->waiting);
    member_pending_update(member);
}

void outbound_join(struct member *member)
{
    lifecycle_init(&member->life, &member_table, NULL);
    list_init(&member->ready);
    list_init(&member->pending);
    list_init(&member->waiting);
    list_init(&member->offer);
    /* Until it is heard of, it may need all that is logged. */
    member->hold = member->replica->trimmed;
    member->acked_ns = member->replica->replicator->mono_ns;
    member_pending_update(member);
    member_offer(member);
}

void outbound_leave(struct member *member)
{
    member_forget_read(member);
    list_remove(&member->ready);
    list_remove(&member->pending);
    list_remove(&member->waiting);
    list_remove(&member->offer);
    buf_deinit(&member->snapshot_after);
}

void member_pending_update(struct member *member)
{
    enum member_state state = member_state(member);
    /* OFFERED: what the peer acknowledged on an earlier stream it may have lost with its disk. */
    bool pending = member->replica->stamped > acked(member) || member->snapshot_unconfirmed ||
                   member->announce || state == MEMBER_OFFERED ||
                   state == MEMBER_SNAPSHOT_OFFERED || state == MEMBER_SNAPSHOT;
    if (pending)
        list_add_once(&member->peer->out.pending, &member->pending);
    else
        list_remove(&member->pending);
}

void member_offer(struct member *member)
{
    if (!member->peer->out.up)
        return;
    if (member_state(member) == MEMBER_AWAY)
        member_move(member, MEMBER_OFFERED);
    /* Not counted per member: of one that left and came back an old answer may be on its way. */
    if (planted(PLANT_ROUND_AGAIN))
        member->asked++;
    else
        member->asked = ++member->replica->replicator->next_round;
    list_add_once(&member->peer->out.offers, &member->offer);
}

void member_ready(struct member *member)
{
    bool flows = member_state(member) == MEMBER_LOG || member_state(member) == MEMBER_SNAPSHOT;
    if (flows && !member->read)
        list_add_once(&member->peer->out.ready, &member->ready);
}

void member_enter_log(struct member *member, uint64_t sent)
{
    member->sent = sent;
    if (member->hold > sent) /* of a snapshot that was given up, and is not needed any more */
        member->hold = sent;
    member->caught_up_target = replica_last(member->replica);
    member_move(member, MEMBER_LOG);
    if (sent < replica_last(member->replica))
        member_ready(member);
    member_check_caught_up(member);
}

bool log_reaches(const struct replica *replica, uint64_t have)
{
    if (have == replica_last(replica))
        return true;
    if (!replica->log_first)
        return have > replica_last(replica);
    return have + 1 >= replica->log_first || version_seq_follows(have, replica->log_first);
}

/* ---- The past ---- */

bool member_has(const struct member *member, uint16_t origin, uint64_t seq)
{
    if (origin == member->peer->region &&
        version_epoch(seq) >= version_epoch(vv_get(&member->known, origin)))
        return true;
    return vv_knows(&member->known, origin, seq);
}

uint64_t replica_epoch(const struct replica *replica, uint16_t origin)
{
    uint64_t newest = version_epoch(vv_get(&replica->vv, origin));
    if (origin != replica->replicator->config.region && !member_find(replica, origin))
        return UINT64_MAX;
    if (origin == replica->replicator->config.region && replica->epoch > newest)
        newest = replica->epoch;
    for (uint32_t i = 0; i < replica->member_count; i++) {
        uint64_t epoch = version_epoch(vv_get(&replica->members[i]->known, origin));
        newest = epoch > newest ? epoch : newest;
    }
    return newest;
}

/* Whether our log will bring the peer what we once numbered so. */
static bool log_brings(const struct member *member, uint64_t seq)
{
    uint64_t first = member->replica->log_first;
    return first != 0 && first <= seq && acked(member) < seq;
}

/* Whether the peer lacks writes that we hold and that no log is sure to bring it:
 *   - of a Region that is no member any more;
 *   - of an earlier epoch of a member, ourselves and the peer included: its disk was lost, and with
 * it the log;
 *   - of another member, all of them: a new replica. That member's log may begin later, or be cut
 * off, and to be caught up with us is to have what we have;
 *   - rows that are in no vector (snapshot.c). */
static bool lacks_the_past(const struct member *member)
{
    const struct replica *replica = member->replica;
    if (!member->has_orphans && replica_has_orphans(replica))
        return true;
    for (uint32_t i = 0; i < replica->vv.count; i++) {
        uint16_t origin = replica->vv.at[i].origin;
        uint64_t seq = replica->vv.at[i].seq;
        if (member_has(member, origin, seq))
            continue;
        bool past = version_epoch(seq) < replica_epoch(replica, origin);
        bool lacks;
        if (origin == replica->replicator->config.region)
            lacks = past && !log_brings(member, seq) && !planted(PLANT_PAST_KEPT);
        else if (origin == member->peer->region)
            lacks = past && !planted(PLANT_REFILL_FROM_FIRST);
        else
            lacks = (past && !planted(PLANT_PAST_KEPT)) ||
                    (vv_get(&member->known, origin) == 0 && !member->caught_up);
        if (lacks)
            return true;
    }
    return false;
}

void replica_reconsider(struct replica *replica)
{
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct member *member = replica->members[i];
        /* Others are looked at when they have said what they have. */
        if (member_state(member) == MEMBER_LOG && !member->snapshot_unconfirmed &&
            lacks_the_past(member))
            snapshot_offer(member, true);
    }
}

void member_ahead_ends(struct member *member)
{
    /* What we wrote below the peer's numbers it must get as rows: its log is not asked for it. */
    if (!log_reaches(member->replica, member->sent) || lacks_the_past(member))
        snapshot_offer(member, true);
    else
        member_enter_log(member, member->sent);
}

void member_resumed(struct member *member, const struct wire_position *position)
{
    struct replica *replica = member->replica;
    uint64_t last = replica_last(replica);
    uint64_t base = version_epoch_base(replica->epoch);
    uint64_t have = position->have;
    if (position->round && position->round <= member->answered)
        return; /* the answer to a repetition; going back for it would send everything twice */
    if (position->round)
        member->answered = position->round;
    member_forget_read(member);
    list_remove(&member->ready);
    member->snapshot_unconfirmed = false;
    member->announce = true;
    snapshot_done(member, position->snapshot_id);
    /* One that tells of a gap amid the log has no new disk; but it may be late, and what has been
     * acknowledged since is gone from our log. */
    bool exact = position->round || member_state(member) != MEMBER_LOG;
    member_acknowledged(member, &position->vv, exact);
    if (have < acked(member))
        have = acked(member);
    member->sent = have;
    if (have > last && have > base) {
        trace_member(member, TRACE_WARN, "has more of our log than we do");
        member_move(member, MEMBER_AHEAD);
        effect_for(member, REPLICATOR_PEER_AHEAD)->seq = have;
    } else if (!log_reaches(replica, have) || lacks_the_past(member)) {
        snapshot_offer(member, true);
    } else {
        member_enter_log(member, have);
    }
}
