/* SPDX-License-Identifier: Apache-2.0 */
/* A proposal at the leader. The owner evaluates it against the items as of the end of the log, and
 * what enters the log is the outcome, not the operation: so every replica applies the same bytes.
 * The order in which the owner answers is the order of the log.
 *
 * A proposal names the term it was sent in, and no leader of another term takes it. So when its
 * origin sees a later term's entry committed, whatever of its own is not in the log by then never
 * will be. Within a term, a proposal is known by (origin, incarnation, seq) and remembered until
 * its origin says that it is settled: a repeated one gets the same answer. */

#include "witness/consensus_internal.h"

static void proposal_free(struct consensus *c, struct proposal *proposal)
{
    struct origin *origin = &c->origins[proposal->origin];
    HASH_DELETE(by_id, c->proposals, proposal);
    HASH_DELETE(by_seq, origin->proposals, proposal);
    list_remove(&proposal->link);
    c->evaluating -= proposal->state == PROPOSAL_EVALUATING;
    buf_deinit(&proposal->operation);
    buf_deinit(&proposal->answer);
    free(proposal);
}

void consensus_proposals_drop(struct consensus *c)
{
    struct proposal *proposal, *next;
    HASH_ITER(by_id, c->proposals, proposal, next)
    proposal_free(c, proposal);
    for (int i = 0; i < CONSENSUS_MEMBERS; i++)
        c->origins[i] = (struct origin){0};
    check(c->evaluating == 0);
}

/* A member with a new disk counts its proposals anew. */
static void origin_begin(struct consensus *c, struct origin *origin, uint64_t incarnation)
{
    struct proposal *proposal, *next;
    HASH_ITER(by_seq, origin->proposals, proposal, next)
    proposal_free(c, proposal);
    origin->incarnation = incarnation;
    origin->low = 0;
}

/* Everything below low is settled at its origin. */
static void origin_settle(struct consensus *c, struct origin *origin, uint64_t low)
{
    if (low <= origin->low)
        return;
    origin->low = low;
    struct proposal *proposal, *next;
    /* Insertion is mostly by seq, so the settled ones are in front. */
    HASH_ITER(by_seq, origin->proposals, proposal, next)
    {
        if (proposal->seq >= low)
            break;
        if (proposal->state != PROPOSAL_EVALUATING)
            proposal_free(c, proposal);
    }
}

static struct consensus_message response(const struct consensus *c, uint8_t to,
                                         uint64_t incarnation, uint64_t seq,
                                         enum propose_outcome outcome)
{
    struct consensus_message m = consensus_message_to(c, MESSAGE_PROPOSE_RESPONSE, to);
    m.for_incarnation = incarnation;
    m.seq = seq;
    m.outcome = outcome;
    return m;
}

static void answer(struct consensus *c, const struct proposal *proposal)
{
    struct consensus_message m =
        response(c, proposal->origin, proposal->incarnation, proposal->seq, proposal->outcome);
    m.index = proposal->index;
    m.index_term = proposal->index_term;
    m.bytes = buf_view(&proposal->answer);
    if (proposal->origin == c->config.self)
        consensus_request_answered(c, &m);
    else
        consensus_send(c, &m);
}

static struct proposal *proposal_add(struct consensus *c, const struct consensus_message *m)
{
    struct origin *origin = &c->origins[m->source];
    struct proposal *proposal = xcalloc(1, sizeof(*proposal));
    proposal->id = ++c->next_id;
    proposal->origin = m->source;
    proposal->incarnation = m->incarnation;
    proposal->seq = m->seq;
    proposal->applied = m->applied;
    buf_append_bytes(&proposal->operation, m->bytes);
    HASH_ADD(by_id, c->proposals, id, sizeof(proposal->id), proposal);
    HASH_ADD(by_seq, origin->proposals, seq, sizeof(proposal->seq), proposal);
    list_append(&c->queue, &proposal->link);
    origin->proposed++;
    return proposal;
}

/* REFUSED and BUSY leave no trace; after any other outcome *ret is the remembered proposal, and it
 * is still open if its state is not SETTLED. */
enum propose_outcome consensus_leader_propose(struct consensus *c,
                                              const struct consensus_message *m,
                                              struct proposal **ret)
{
    bool right_term = m->term == c->hard.term || planted(PLANT_ANY_TERM);
    if (role(c) != CONSENSUS_LEADER || is_witness(c) || !right_term)
        return PROPOSE_REFUSED;
    struct origin *origin = &c->origins[m->source];
    if (m->incarnation < origin->incarnation || m->seq < m->low)
        return PROPOSE_REFUSED;
    if (m->incarnation > origin->incarnation)
        origin_begin(c, origin, m->incarnation);
    origin_settle(c, origin, m->low);
    if (m->seq < origin->low)
        return PROPOSE_REFUSED;
    struct proposal *found;
    HASH_FIND(by_seq, origin->proposals, &m->seq, sizeof(m->seq), found);
    if (found && !planted(PLANT_APPEND_TWICE)) {
        *ret = found;
        return found->outcome;
    }
    if (m->seq - origin->low >= c->config.pending_max ||
        HASH_CNT(by_seq, origin->proposals) >= 2 * c->config.pending_max)
        return PROPOSE_BUSY;
    *ret = proposal_add(c, m);
    return PROPOSE_APPENDED;
}

void consensus_on_propose(struct consensus *c, const struct consensus_message *m)
{
    consensus_wake(c);
    struct proposal *proposal = NULL;
    enum propose_outcome outcome = consensus_leader_propose(c, m, &proposal);
    if (!proposal) {
        struct consensus_message no = response(c, m->source, m->incarnation, m->seq, outcome);
        consensus_send(c, &no);
    } else if (proposal->state == PROPOSAL_SETTLED) {
        answer(c, proposal);
    }
}

/* A witness without room, and no other member to commit with. */
static bool no_room(const struct consensus *c)
{
    bool full = false, other = false;
    each_peer(c, i)
    {
        const struct peer *peer = &c->peers[i];
        if (c->config.kinds[i] == CONSENSUS_WITNESS && peer->full)
            full = true;
        if (c->config.kinds[i] == CONSENSUS_DATA)
            other = other || (peer->standing == CONSENSUS_FULL &&
                              c->now - peer->heard_ns < consensus_patience(c));
    }
    return consensus_full(c) || (full && !other);
}

/* Evaluation waits until all that earlier leaders left in the log is applied here; while leadership
 * is handed over; and while what is not committed fills the log. */
void consensus_proposals_pump(struct consensus *c)
{
    while (consensus_leader_serving(c) && c->transfer_to == CONSENSUS_NOBODY &&
           !list_empty(&c->queue) && c->evaluating < c->config.evaluate_max && !no_room(c)) {
        struct proposal *proposal = container_of(list_take(&c->queue), struct proposal, link);
        proposal->state = PROPOSAL_EVALUATING;
        c->evaluating++;
        struct consensus_effect *evaluate = consensus_emit(c, CONSENSUS_EVALUATE);
        evaluate->id = proposal->id;
        evaluate->origin = proposal->origin;
        evaluate->index = proposal->applied;
        evaluate->bytes = buf_view(&proposal->operation);
    }
}

static void append_write(struct consensus *c, struct proposal *proposal, struct bytes payload)
{
    struct consensus_entry entry = {.term = c->hard.term,
                                    .kind = CONSENSUS_WRITE,
                                    .origin = proposal->origin,
                                    .incarnation = proposal->incarnation,
                                    .seq = proposal->seq,
                                    .payload = payload};
    consensus_extend(c, &entry);
    proposal->outcome = PROPOSE_APPENDED;
    proposal->index = entry.index;
    struct consensus_effect *appended = consensus_emit(c, CONSENSUS_APPENDED);
    appended->id = proposal->id;
    appended->index = entry.index;
}

void consensus_on_evaluated(struct consensus *c, const struct consensus_input *in)
{
    struct proposal *proposal;
    HASH_FIND(by_id, c->proposals, &in->id, sizeof(in->id), proposal);
    if (!proposal || proposal->state != PROPOSAL_EVALUATING)
        return;
    proposal->state = PROPOSAL_SETTLED;
    c->evaluating--;
    switch (in->verdict) {
    case CONSENSUS_EVALUATED_WRITE:
        append_write(c, proposal, in->bytes);
        break;
    case CONSENSUS_EVALUATED_FAILED:
        /* A read of the log up to its end: true for the origin once that is applied there. */
        proposal->outcome = PROPOSE_FAILED;
        proposal->index = last_index(c);
        proposal->index_term = last_term(c);
        buf_append_bytes(&proposal->answer, in->bytes);
        break;
    case CONSENSUS_EVALUATED_CONFLICT:
        proposal->outcome = PROPOSE_CONFLICT;
        break;
    }
    buf_deinit(&proposal->operation);
    answer(c, proposal);
}
