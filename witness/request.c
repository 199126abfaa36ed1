/* SPDX-License-Identifier: Apache-2.0 */
/* A proposal at its origin, and what reads share with it: one timeout, and waiting for APPLIED.
 *
 * An answer to the owner is definite only when it is so for good. "Committed" waits for the entry
 * to be applied here. "Failed" is a read, and obeys a read's rules. "Not serving" is said only of
 * what no leader can have, or what a later term's log shows to be nowhere. All else that runs out
 * of time is unknown (Jepsen found "failed" said of writes that happened in one system after
 * another). */

#include "witness/consensus_internal.h"

struct request *consensus_request_new(struct consensus *c, enum request_kind kind, uint64_t token)
{
    struct request *request = xcalloc(1, sizeof(*request));
    request->kind = kind;
    request->token = token;
    request->deadline_ns = c->now + c->config.request_timeout_ns;
    list_init(&request->link);
    list_init(&request->of_write);
    list_append(&c->requests, &request->by_age);
    c->request_count++;
    return request;
}

void consensus_request_free(struct consensus *c, struct request *request)
{
    list_remove(&request->by_age);
    list_remove(&request->link);
    list_remove(&request->of_write);
    if (request->kind == REQUEST_WRITE)
        HASH_DELETE(hh, c->by_seq, request);
    buf_deinit(&request->operation);
    buf_deinit(&request->answer);
    free(request);
    c->request_count--;
}

static void reply(struct consensus *c, struct request *request, enum consensus_outcome outcome)
{
    struct consensus_effect *out = consensus_emit(c, CONSENSUS_REPLY);
    out->token = request->token;
    out->outcome = outcome;
    out->index = request->index;
    out->bytes = bytes_copy(&c->arena, buf_view(&request->answer));
    consensus_request_free(c, request);
}

static void move(struct request *request, struct list *to)
{
    list_remove(&request->link);
    list_append(to, &request->link);
}

void consensus_request_propose(struct consensus *c, uint64_t token, struct bytes operation)
{
    if (c->hard.standing != CONSENSUS_FULL || is_witness(c) ||
        c->request_count >= c->config.pending_max) {
        struct consensus_effect *out = consensus_emit(c, CONSENSUS_REPLY);
        out->token = token;
        out->outcome = CONSENSUS_NOT_SERVING;
        return;
    }
    consensus_wake(c);
    struct request *request = consensus_request_new(c, REQUEST_WRITE, token);
    request->seq = ++c->next_seq;
    buf_append_bytes(&request->operation, operation);
    HASH_ADD(hh, c->by_seq, seq, sizeof(request->seq), request);
    list_append(&c->writes, &request->of_write);
    move(request, &c->unsent);
}

/* A leader refused it as its condition failed, so it is in no log and, as other terms do not take
 * it, never will be; but on what the condition failed is not so, or not known to be. */
static void begin_again(struct consensus *c, struct request *request)
{
    request->term_sent = 0;
    request->index = request->index_term = 0;
    request->outcome = CONSENSUS_COMMITTED;
    buf_reset(&request->answer);
    move(request, &c->unsent);
}

/* Into the list of those that wait for APPLIED, which is in order of index. */
void consensus_request_wait(struct consensus *c, struct request *request, uint64_t index)
{
    request->index = index;
    list_remove(&request->link);
    struct list *before = c->waiting.prev;
    while (before != &c->waiting && container_of(before, struct request, link)->index > index)
        before = before->prev;
    list_append(before->next, &request->link);
}

void consensus_requests_applied(struct consensus *c)
{
    while (!list_empty(&c->waiting)) {
        struct request *request = container_of(c->waiting.next, struct request, link);
        if (request->index > c->applied)
            return;
        if (request->index_term &&
            !consensus_log_has(&c->log, request->index, request->index_term)) {
            begin_again(c, request);
            continue;
        }
        if (request->kind == REQUEST_WRITE) {
            reply(c, request, request->outcome);
            continue;
        }
        struct consensus_effect *ok = consensus_emit(c, CONSENSUS_READ_OK);
        ok->token = request->token;
        ok->index = c->applied;
        consensus_request_free(c, request);
    }
}

/* A snapshot has jumped over entries that may have been ours. */
void consensus_requests_lost(struct consensus *c)
{
    list_each(link, spare, &c->writes)
    {
        struct request *request = container_of(link, struct request, of_write);
        bool settled =
            request->term_sent == 0 || request->outcome == CONSENSUS_FAILED || request->index > 0;
        if (!settled)
            reply(c, request, CONSENSUS_UNKNOWN);
    }
}

/* ---- To the leader ---- */

static struct consensus_message propose_message(const struct consensus *c,
                                                const struct request *request)
{
    struct consensus_message m = consensus_message_to(c, MESSAGE_PROPOSE, c->leader);
    m.seq = request->seq;
    m.low = container_of(c->writes.next, struct request, of_write)->seq;
    m.applied = c->applied;
    m.bytes = buf_view(&request->operation);
    return m;
}

static void forward(struct consensus *c, struct request *request)
{
    struct consensus_message m = propose_message(c, request);
    request->term_sent = c->hard.term;
    request->sent_ns = c->now;
    move(request, &c->sent);
    consensus_send(c, &m);
}

static void propose_here(struct consensus *c, struct request *request)
{
    struct consensus_message m = propose_message(c, request);
    struct proposal *proposal = NULL;
    consensus_leader_propose(c, &m, &proposal);
    if (!proposal)
        return; /* no room: it stays unsent */
    request->term_sent = c->hard.term;
    move(request, &c->limbo);
}

void consensus_requests_flush(struct consensus *c)
{
    if (c->leader == CONSENSUS_NOBODY || c->hard.standing != CONSENSUS_FULL)
        return;
    list_each(link, spare, &c->unsent)
    {
        struct request *request = container_of(link, struct request, link);
        if (c->leader != c->config.self)
            forward(c, request);
        else if (!is_witness(c))
            propose_here(c, request);
    }
    /* Whoever was here while the leader was another member may have changed the log's end. */
    if (c->leader == c->config.self)
        consensus_proposals_pump(c);
}

/* The leader or the term is another. Reads ask again, from the start; a write that some leader may
 * have waits for the log to tell. */
void consensus_requests_restart(struct consensus *c)
{
    list_append_all(&c->limbo, &c->sent);
    if (planted(PLANT_READ_OLD_TERM) && role(c) != CONSENSUS_LEADER)
        return;
    for (int i = 0; i < NONCES_MAX; i++)
        c->asks[i] = (struct ask){0};
    c->nonce_first = c->next_nonce + 1;
    list_each(link, spare, &c->reads_asked)
        move(container_of(link, struct request, link), &c->reads_new);
    list_each(at, next, &c->reads_new)
    {
        struct request *request = container_of(at, struct request, link);
        request->nonce = request->index = 0;
        if (request->kind == REQUEST_WRITE)
            begin_again(c, request);
    }
}

/* ---- Answers ---- */

void consensus_request_answered(struct consensus *c, const struct consensus_message *m)
{
    struct request *request;
    HASH_FIND(hh, c->by_seq, &m->seq, sizeof(m->seq), request);
    if (!request || m->term != c->hard.term || request->term_sent != m->term || request->index ||
        request->outcome == CONSENSUS_FAILED)
        return;
    switch (m->outcome) {
    case PROPOSE_APPENDED:
        move(request, &c->limbo);
        break;
    case PROPOSE_FAILED:
        request->outcome = CONSENSUS_FAILED;
        buf_append_bytes(&request->answer, m->bytes);
        request->index = m->index;
        /* What is applied here was committed by this term, so the leader has the same there. */
        request->index_term = m->index > c->applied ? m->index_term : 0;
        if (planted(PLANT_FAIL_AT_ONCE))
            request->index_term = request->index = 0;
        if (role(c) == CONSENSUS_LEADER && !planted(PLANT_FAIL_AT_ONCE))
            move(request, &c->reads_new);
        else
            consensus_request_wait(c, request, request->index);
        consensus_requests_applied(c);
        break;
    case PROPOSE_CONFLICT:
        reply(c, request, CONSENSUS_CONFLICT);
        break;
    case PROPOSE_REFUSED:
    case PROPOSE_BUSY:
        break; /* sent again before long, or the log tells */
    }
}

void consensus_on_propose_response(struct consensus *c, const struct consensus_message *m)
{
    if (m->term == c->hard.term && m->source == c->leader &&
        m->for_incarnation == c->hard.incarnation)
        consensus_request_answered(c, m);
}

uint64_t consensus_request_committed(struct consensus *c, const struct consensus_entry *entry)
{
    if (entry->term > c->emitted_term) {
        c->emitted_term = entry->term;
        /* What was sent in an earlier term and is not in the log by now never will be. */
        list_each(link, spare, &c->limbo)
        {
            struct request *request = container_of(link, struct request, link);
            if (request->term_sent >= entry->term)
                continue;
            request->term_sent = 0;
            move(request, &c->unsent);
        }
    }
    if (entry->kind != CONSENSUS_WRITE || entry->origin != c->config.self ||
        entry->incarnation != c->hard.incarnation)
        return 0;
    struct request *request;
    HASH_FIND(hh, c->by_seq, &entry->seq, sizeof(entry->seq), request);
    if (!request)
        return 0;
    request->outcome = CONSENSUS_COMMITTED;
    consensus_request_wait(c, request, entry->index);
    return request->token;
}

/* ---- Time ---- */

static void expire(struct consensus *c, struct request *request)
{
    bool unknown = request->kind == REQUEST_WRITE && request->term_sent != 0 &&
                   request->outcome != CONSENSUS_FAILED && !planted(PLANT_UNKNOWN_AS_FAILED);
    reply(c, request, unknown ? CONSENSUS_UNKNOWN : CONSENSUS_NOT_SERVING);
}

void consensus_requests_timeout(struct consensus *c)
{
    while (!list_empty(&c->requests)) {
        struct request *oldest = container_of(c->requests.next, struct request, by_age);
        if (oldest->deadline_ns > c->now)
            break;
        expire(c, oldest);
    }
    if (c->leader == CONSENSUS_NOBODY || c->leader == c->config.self)
        return;
    while (!list_empty(&c->sent)) {
        struct request *first = container_of(c->sent.next, struct request, link);
        if (first->sent_ns + consensus_retry(c) > c->now)
            break;
        forward(c, first);
    }
    consensus_reads_timeout(c);
}

uint64_t consensus_requests_deadline(const struct consensus *c)
{
    uint64_t at = UINT64_MAX;
    if (!list_empty(&c->requests))
        at = container_of(c->requests.next, struct request, by_age)->deadline_ns;
    if (!list_empty(&c->sent) && c->leader != CONSENSUS_NOBODY)
        at = min_u64(at, container_of(c->sent.next, struct request, link)->sent_ns +
                             consensus_retry(c));
    return at;
}
