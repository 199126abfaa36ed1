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
    member->asked++;
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
        return false;
    return have + 1 >= replica->log_first || version_seq_follows(have, replica->log_first);
}

/* Whether the peer lacks writes that we hold and that no log is sure to bring it:
 *   - of a Region that is no member any more;
 *   - its own, from before its disk was new. That shows in the epoch, or in that it begins anew.
 * Else that we have more of its log than it says means nothing: its word may be older than its last
 * batch;
 *   - of another member, all of them: a new replica. That member's log may begin later, or be cut
 * off, and to be caught up with us is to have what we have. */
static bool lacks_the_past(const struct member *member)
{
    const struct replica *replica = member->replica;
    for (uint32_t i = 0; i < replica->vv.count; i++) {
        uint16_t origin = replica->vv.at[i].origin;
        uint64_t seq = replica->vv.at[i].seq, known = vv_get(&member->known, origin);
        bool lacks = known < seq;
        if (origin == replica->replicator->config.region)
            lacks = false;
        else if (origin == member->peer->region)
            lacks = version_epoch(known) != version_epoch(seq) ||
                    (member->begins && !member->caught_up && lacks);
        else if (member_find(replica, origin))
            lacks = known == 0 && !member->caught_up;
        if (lacks)
            return true;
    }
    return false;
}

void member_resumed(struct member *member, const struct wire_position *position)
{
    struct replica *replica = member->replica;
    uint64_t last = replica_last(replica);
    uint64_t have = position->have;
    if (position->round && position->round <= member->answered)
        return; /* the answer to a repetition; going back for it would send everything twice */
    if (position->round)
        member->answered = position->round;
    member_forget_read(member);
    list_remove(&member->ready);
    member->snapshot_unconfirmed = false;
    member->announce = true;
    member_acknowledged(member, &position->vv, true);
    if (have < acked(member))
        have = acked(member);
    member->sent = have;
    if (have > last) {
        trace_member(member, TRACE_WARN, "has more of our log than we do");
        member_move(member, MEMBER_AHEAD);
        effect_for(member, REPLICATOR_PEER_AHEAD)->seq = have;
    } else if (!log_reaches(replica, have) || lacks_the_past(member) || member->lacks_past) {
        snapshot_offer(member, true);
    } else {
        member_enter_log(member, have);
    }
}
