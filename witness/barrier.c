/* SPDX-License-Identifier: Apache-2.0 */
/* Strong reads: when may the items here be read, so that every write acknowledged and every value
 * strongly read before shows? No clock has a part in it.
 *
 * At a follower: ask the leader for the last index of its log, under a number used once, made after
 * the read came; take the answer only if it is of our own term; wait until that index is applied
 * here. The last index and not the commit index, because an origin may have acknowledged what the
 * leader does not know to be committed yet. That we are in the leader's term is the second vote of
 * a quorum. At the leader: the index is its own last; then one FULL follower must answer, in this
 * term, an Append sent after the read came. Answers carry the number of the round that they answer,
 * so one of an earlier round proves nothing for a later read.
 *
 * Reads that come while enough is under way share the next question. A question without an answer
 * is asked again under a new number; the answer to any question asked after a read came, in this
 * term, will do for it, so one that is only slow is not thrown away. A read that was asked in
 * another term, or of another leader, begins anew. README.md has the proof. */

#include "witness/consensus_internal.h"

void consensus_read_begin(struct consensus *c, uint64_t token, bool strong)
{
    if (is_witness(c) || (strong && (c->hard.standing != CONSENSUS_FULL ||
                                     c->request_count >= c->config.pending_max))) {
        struct consensus_effect *out = consensus_emit(c, CONSENSUS_REPLY);
        out->token = token;
        out->outcome = CONSENSUS_NOT_SERVING;
        return;
    }
    if (!strong) {
        struct consensus_effect *ok = consensus_emit(c, CONSENSUS_READ_OK);
        ok->token = token;
        ok->index = c->applied;
        return;
    }
    consensus_wake(c);
    struct request *request = consensus_request_new(c, REQUEST_READ, token);
    list_append(&c->reads_new, &request->link);
}

static void asked(struct consensus *c, uint64_t nonce)
{
    list_each(link, spare, &c->reads_new)
    {
        struct request *request = container_of(link, struct request, link);
        request->nonce = nonce;
        list_remove(link);
        list_append(&c->reads_asked, link);
    }
}

/* The index that a read must see applied: everything in our log, and more than is committed. */
static uint64_t read_index(const struct consensus *c)
{
    if (planted(PLANT_READ_COMMIT))
        return c->commit;
    if (planted(PLANT_READ_OWN_TERM) && c->commit < c->term_start)
        return c->commit;
    return last_index(c);
}

static void flush_leader(struct consensus *c)
{
    if (is_witness(c))
        return;
    bool more = false;
    list_each(link, spare, &c->reads_new)
    {
        struct request *request = container_of(link, struct request, link);
        if (request->index == 0)
            request->index = read_index(c);
        more = true;
    }
    if (planted(PLANT_READ_NO_ROUND)) {
        list_each(at, next, &c->reads_new)
        {
            struct request *request = container_of(at, struct request, link);
            consensus_request_wait(c, request, request->index);
        }
        consensus_requests_applied(c);
        return;
    }
    /* Too many rounds under way: these reads go with the next heartbeat, or when one is answered.
     */
    if (!more || (c->round - c->round_answers >= ROUNDS_MAX && c->round_ns != c->now))
        return;
    consensus_leader_beat(c);
    asked(c, c->round);
}

static void ask(struct consensus *c, struct ask *slot)
{
    *slot = (struct ask){.nonce = ++c->next_nonce, .sent_ns = c->now};
    struct consensus_message m = consensus_message_to(c, MESSAGE_READ_INDEX, c->leader);
    m.nonce = c->next_nonce;
    consensus_send(c, &m);
}

static void flush_follower(struct consensus *c)
{
    for (int i = 0; i < NONCES_MAX && !list_empty(&c->reads_new); i++) {
        if (c->asks[i].nonce)
            continue;
        ask(c, &c->asks[i]);
        asked(c, c->next_nonce);
    }
}

void consensus_reads_flush(struct consensus *c)
{
    if (list_empty(&c->reads_new) || c->leader == CONSENSUS_NOBODY)
        return;
    if (role(c) == CONSENSUS_LEADER)
        flush_leader(c);
    else if (c->hard.standing == CONSENSUS_FULL)
        flush_follower(c);
}

/* A follower has answered a round of ours. */
void consensus_reads_round(struct consensus *c)
{
    each_peer(c, peer) c->round_answers = max_u64(c->round_answers, c->peers[peer].round);
    list_each(link, spare, &c->reads_asked)
    {
        struct request *request = container_of(link, struct request, link);
        if (request->nonce <= c->round_answers || planted(PLANT_ROUND_REUSED))
            consensus_request_wait(c, request, request->index);
    }
    consensus_requests_applied(c);
}

void consensus_on_read_index(struct consensus *c, const struct consensus_message *m)
{
    consensus_wake(c);
    struct consensus_message answer =
        consensus_message_to(c, MESSAGE_READ_INDEX_RESPONSE, m->source);
    answer.nonce = m->nonce;
    answer.for_incarnation = m->incarnation;
    answer.refused = role(c) != CONSENSUS_LEADER || is_witness(c) || m->term != c->hard.term;
    answer.index = answer.refused ? 0 : read_index(c);
    consensus_send(c, &answer);
}

void consensus_on_read_index_response(struct consensus *c, const struct consensus_message *m)
{
    /* An older term's leader may have been deposed before the read began. */
    bool right_term = m->term == c->hard.term || planted(PLANT_READ_OLD_TERM);
    if (m->refused || !right_term || m->for_incarnation != c->hard.incarnation ||
        role(c) == CONSENSUS_LEADER || c->hard.standing != CONSENSUS_FULL)
        return;
    /* Of those that were asked in this term. A repeated answer finds no read that it is for. */
    bool known = m->nonce >= c->nonce_first && m->nonce <= c->next_nonce;
    if (!known && !planted(PLANT_NONCE_REUSED))
        return;
    for (int i = 0; i < NONCES_MAX; i++) {
        if (c->asks[i].nonce <= m->nonce)
            c->asks[i] = (struct ask){0};
    }
    list_each(link, spare, &c->reads_asked)
    {
        struct request *request = container_of(link, struct request, link);
        if (request->nonce <= m->nonce || planted(PLANT_NONCE_REUSED))
            consensus_request_wait(c, request, m->index);
    }
    consensus_requests_applied(c);
}

void consensus_reads_timeout(struct consensus *c)
{
    for (int i = 0; i < NONCES_MAX; i++) {
        if (c->asks[i].nonce && c->now - c->asks[i].sent_ns >= consensus_retry(c))
            ask(c, &c->asks[i]);
    }
}

uint64_t consensus_reads_deadline(const struct consensus *c)
{
    uint64_t at = UINT64_MAX;
    if (c->leader == CONSENSUS_NOBODY || c->leader == c->config.self)
        return at;
    for (int i = 0; i < NONCES_MAX; i++)
        if (c->asks[i].nonce)
            at = min_u64(at, c->asks[i].sent_ns + consensus_retry(c));
    return at;
}
