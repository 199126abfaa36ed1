/* SPDX-License-Identifier: Apache-2.0 */
/* The door: takes an input, hands it to the file of its kind, and at the end of the step lets the
 * leader send, the owner apply, one PERSIST gather all that changed, and the messages go.
 *
 * Nothing in the other files waits for the disk by itself. What an answer claims is bounded by
 * `durable`, which moves only with PERSISTED; and every message, whatever it says, waits here while
 * the term and vote that it speaks from are on their way to disk. */

#include <stdarg.h>
#include <stdio.h>

#include "witness/consensus_internal.h"

static const struct lifecycle_state role_states[] = {
    [CONSENSUS_FOLLOWER] = {"follower", lifecycle_bit(CONSENSUS_PRECANDIDATE) |
                                            lifecycle_bit(CONSENSUS_CANDIDATE)},
    [CONSENSUS_PRECANDIDATE] = {"precandidate", lifecycle_bit(CONSENSUS_CANDIDATE) |
                                                    lifecycle_bit(CONSENSUS_FOLLOWER)},
    [CONSENSUS_CANDIDATE] = {"candidate", lifecycle_bit(CONSENSUS_LEADER) |
                                              lifecycle_bit(CONSENSUS_PRECANDIDATE) |
                                              lifecycle_bit(CONSENSUS_FOLLOWER)},
    [CONSENSUS_LEADER] = {"leader", lifecycle_bit(CONSENSUS_FOLLOWER)},
};
static const struct lifecycle_table roles = {"consensus", role_states, array_len(role_states)};

/* ---- Effects and messages ---- */

struct consensus_effect *consensus_emit(struct consensus *c, enum consensus_effect_kind kind)
{
    if (c->effect_count == c->effect_cap) {
        c->effect_cap = c->effect_cap ? c->effect_cap * 2 : 16;
        c->effects = xrealloc(c->effects, c->effect_cap * sizeof(*c->effects));
    }
    struct consensus_effect *added = &c->effects[c->effect_count++];
    *added = (struct consensus_effect){.kind = kind};
    return added;
}

void consensus_trace(const struct consensus *c, enum trace_level level, const char *format, ...)
{
    if (!c->config.trace.line || level < c->config.trace.level_min)
        return;
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    trace_emit(&c->config.trace, level, "member %u term %llu: %s", c->config.self,
               (unsigned long long)c->hard.term, line);
}

void consensus_bad_frame(struct consensus *c, uint8_t peer, const char *reason)
{
    struct consensus_effect *bad = consensus_emit(c, CONSENSUS_BAD_FRAME);
    bad->peer = peer;
    bad->reason = reason;
    consensus_trace(c, TRACE_DEBUG, "bad frame from %u: %s", peer, reason);
}

struct consensus_message consensus_message_to(const struct consensus *c,
                                              enum consensus_message_kind kind, uint8_t to)
{
    return (struct consensus_message){.kind = kind,
                                      .place = c->config.place,
                                      .epoch = c->config.epoch,
                                      .source = c->config.self,
                                      .destination = to,
                                      .term = c->hard.term,
                                      .incarnation = c->hard.incarnation,
                                      .boot = c->hard.boot,
                                      .standing = c->hard.standing};
}

/* Every message goes through the gate, so those of one step keep their order. */
void consensus_send(struct consensus *c, const struct consensus_message *m)
{
    if (c->gated_count == GATED_MAX)
        return;
    struct bytes frame = consensus_encode(m, &c->arena);
    struct gated *gated = xcalloc(1, sizeof(*gated));
    gated->peer = m->destination;
    buf_append_bytes(&gated->frame, frame);
    list_append(&c->gated, &gated->link);
    c->gated_count++;
}

static void gated_free(struct consensus *c, struct gated *gated)
{
    list_remove(&gated->link);
    buf_deinit(&gated->frame);
    free(gated);
    c->gated_count--;
}

static void flush_messages(struct consensus *c)
{
    if (c->hard_seq > c->persisted_seq && !planted(PLANT_VOTE_NOT_PERSISTED))
        return;
    list_each(link, spare, &c->gated)
    {
        struct gated *gated = container_of(link, struct gated, link);
        struct consensus_effect *out = consensus_emit(c, CONSENSUS_SEND);
        out->peer = gated->peer;
        out->bytes =
            bytes_make(arena_copy(&c->arena, gated->frame.at, gated->frame.len), gated->frame.len);
        gated_free(c, gated);
    }
}

/* ---- The log and what of it is durable ---- */

void consensus_extend(struct consensus *c, struct consensus_entry *entry)
{
    entry->index = last_index(c) + 1;
    consensus_log_append(&c->log, entry);
}

void consensus_cut(struct consensus *c, uint64_t from)
{
    check(from > c->commit);
    consensus_log_truncate(&c->log, from);
    if (from < c->unwritten) {
        c->truncate_from = c->truncate_from ? min_u64(c->truncate_from, from) : from;
        c->unwritten = from;
    }
    c->durable = min_u64(c->durable, from - 1);
    for (uint32_t i = 0; i < c->writing_count; i++) {
        struct written *written = &c->writing[c->writing_head + i];
        written->last_index = min_u64(written->last_index, from - 1);
    }
}

/* Everything up to index is held elsewhere: as items, or on both data members. */
void consensus_restart_log(struct consensus *c, uint64_t index, uint64_t term, bool durable)
{
    consensus_log_reset(&c->log, index, term);
    c->unwritten = c->truncate_from = index + 1;
    c->base_dirty = true;
    /* A write under way is of entries that are gone. */
    for (uint32_t i = 0; i < c->writing_count; i++)
        c->writing[c->writing_head + i].last_index = 0;
    c->durable = durable ? index : min_u64(c->durable, index);
    c->commit = max_u64(c->commit, index);
    c->matched = min_u64(c->matched, index);
}

static void writing_push(struct consensus *c, uint64_t seq)
{
    if (c->writing_head + c->writing_count == c->writing_cap) {
        if (c->writing_head) {
            memmove(c->writing, c->writing + c->writing_head,
                    c->writing_count * sizeof(*c->writing));
            c->writing_head = 0;
        } else {
            c->writing_cap = c->writing_cap ? c->writing_cap * 2 : 8;
            c->writing = xrealloc(c->writing, c->writing_cap * sizeof(*c->writing));
        }
    }
    c->writing[c->writing_head + c->writing_count++] =
        (struct written){.seq = seq, .last_index = last_index(c), .at_ns = c->now};
}

static void flush_persist(struct consensus *c)
{
    uint64_t count = last_index(c) + 1 - c->unwritten;
    if (!c->hard_dirty && !c->base_dirty && !c->truncate_from && count == 0)
        return;
    struct consensus_effect *persist = consensus_emit(c, CONSENSUS_PERSIST);
    persist->seq = ++c->last_write_seq;
    struct consensus_write *write = &persist->write;
    if (c->hard_dirty) {
        write->hard = arena_copy(&c->arena, &c->hard, sizeof(c->hard));
        c->hard_seq = persist->seq;
    }
    write->truncate_from = c->truncate_from;
    write->base_moved = c->base_dirty;
    write->base_index = c->log.base_index;
    write->base_term = c->log.base_term;
    struct consensus_entry *entries = arena_array(&c->arena, struct consensus_entry, count);
    for (uint64_t i = 0; i < count; i++)
        entries[i] = *consensus_log_get(&c->log, c->unwritten + i);
    write->entries = entries;
    write->entry_count = (uint32_t)count;
    c->unwritten += count;
    c->hard_dirty = c->base_dirty = false;
    c->truncate_from = 0;
    writing_push(c, persist->seq);
}

static void on_persisted(struct consensus *c, uint64_t seq)
{
    check(seq <= c->last_write_seq);
    while (c->writing_count && c->writing[c->writing_head].seq <= seq) {
        c->durable = max_u64(c->durable, c->writing[c->writing_head].last_index);
        c->writing_head++;
        c->writing_count--;
    }
    check(c->durable <= last_index(c));
    c->persisted_seq = max_u64(c->persisted_seq, seq);
    if (role(c) == CONSENSUS_LEADER)
        consensus_leader_advance(c);
    else
        consensus_follower_durable(c);
}

void consensus_commit(struct consensus *c, uint64_t index)
{
    if (index <= c->commit)
        return;
    check(index <= last_index(c));
    c->commit = index;
}

/* Only what is durable here is applied, so the items never run ahead of the log. */
static void flush_apply(struct consensus *c)
{
    uint64_t upto = min_u64(c->commit, claim(c));
    while (!is_witness(c) && !c->staging_index && c->emitted < upto &&
           c->emitted - c->applied < APPLY_MAX) {
        const struct consensus_entry *entry = consensus_log_get(&c->log, ++c->emitted);
        uint64_t token = consensus_request_committed(c, entry);
        struct consensus_effect *apply = consensus_emit(c, CONSENSUS_APPLY);
        apply->index = entry->index;
        apply->entry = *entry;
        apply->token = token;
    }
}

static void on_applied(struct consensus *c, const struct consensus_input *in)
{
    check(in->index <= c->emitted);
    check(in->stable <= in->index);
    c->applied = max_u64(c->applied, in->index);
    c->stable = max_u64(c->stable, in->stable);
    consensus_requests_applied(c);
}

/* ---- Frames ---- */

static void dispatch(struct consensus *c, const struct consensus_message *m)
{
    switch (m->kind) {
    case MESSAGE_PRE_VOTE:
        consensus_on_pre_vote(c, m);
        break;
    case MESSAGE_PRE_VOTE_RESPONSE:
        consensus_on_pre_vote_response(c, m);
        break;
    case MESSAGE_VOTE:
        consensus_on_vote(c, m);
        break;
    case MESSAGE_VOTE_RESPONSE:
        consensus_on_vote_response(c, m);
        break;
    case MESSAGE_APPEND:
        consensus_on_append(c, m);
        break;
    case MESSAGE_APPEND_RESPONSE:
        consensus_on_append_response(c, m);
        break;
    case MESSAGE_PROPOSE:
        consensus_on_propose(c, m);
        break;
    case MESSAGE_PROPOSE_RESPONSE:
        consensus_on_propose_response(c, m);
        break;
    case MESSAGE_READ_INDEX:
        consensus_on_read_index(c, m);
        break;
    case MESSAGE_READ_INDEX_RESPONSE:
        consensus_on_read_index_response(c, m);
        break;
    case MESSAGE_TIMEOUT_NOW:
        consensus_on_timeout_now(c, m);
        break;
    case MESSAGE_SNAPSHOT:
        consensus_on_snapshot(c, m);
        break;
    case MESSAGE_SNAPSHOT_RESPONSE:
        consensus_on_snapshot_response(c, m);
        break;
    }
}

static void on_frame(struct consensus *c, const struct consensus_input *in)
{
    struct consensus_message m;
    if (in->bytes.len > c->config.frame_bytes_max ||
        !consensus_decode(in->bytes, 4 * c->config.frame_bytes_max, &c->arena, &m)) {
        consensus_bad_frame(c, in->peer, "it cannot be read");
        return;
    }
    if (memcmp(&m.place.group_id, c->config.place.group_id, CONSENSUS_GROUP_ID_LEN) != 0 ||
        m.place.partition != c->config.place.partition || m.epoch != c->config.epoch ||
        m.destination != c->config.self || m.source != in->peer) {
        consensus_bad_frame(c, in->peer, "it is not for this member of this group");
        return;
    }
    /* A request to vote moves no term by itself (elect.c decides); all else shows a term that is
     * durable at the sender. */
    if (m.term > c->hard.term && m.kind != MESSAGE_PRE_VOTE && m.kind != MESSAGE_VOTE)
        consensus_adopt_term(c, m.term);
    dispatch(c, &m);
}

/* ---- The step ---- */

static void timeouts(struct consensus *c)
{
    consensus_requests_timeout(c);
    if (role(c) == CONSENSUS_LEADER)
        consensus_leader_timeout(c);
    else if (!c->quiet && c->now >= c->election_at)
        consensus_election_timeout(c);
}

static void show_role(struct consensus *c)
{
    struct consensus_status now = consensus_status(c);
    if (now.role == c->shown.role && now.term == c->shown.term && now.leader == c->shown.leader &&
        now.serving == c->shown.serving && now.standing == c->shown.standing)
        return;
    c->shown = now;
    consensus_emit(c, CONSENSUS_ROLE_CHANGED);
}

static void take(struct consensus *c, const struct consensus_input *in)
{
    switch (in->kind) {
    case CONSENSUS_START:
        consensus_begin(c, in->start);
        break;
    case CONSENSUS_FRAME:
        on_frame(c, in);
        break;
    case CONSENSUS_PERSISTED:
        on_persisted(c, in->seq);
        break;
    case CONSENSUS_PROPOSE:
        consensus_request_propose(c, in->token, in->bytes);
        break;
    case CONSENSUS_READ:
        consensus_read_begin(c, in->token, in->strong);
        break;
    case CONSENSUS_EVALUATED:
        consensus_on_evaluated(c, in);
        break;
    case CONSENSUS_APPLIED:
        on_applied(c, in);
        break;
    case CONSENSUS_SNAPSHOT_PIECE:
        consensus_on_snapshot_piece(c, in);
        break;
    case CONSENSUS_SNAPSHOT_STAGED:
        consensus_on_snapshot_staged(c, in);
        break;
    case CONSENSUS_SNAPSHOT_INSTALLED:
        consensus_on_snapshot_installed(c, in);
        break;
    case CONSENSUS_PEER_DOWN:
        consensus_wake(c);
        break;
    case CONSENSUS_TRANSFER:
        check(in->peer < CONSENSUS_MEMBERS);
        consensus_wake(c);
        if (consensus_leader_serving(c))
            consensus_transfer_begin(c, in->peer);
        break;
    case CONSENSUS_TIMEOUT:
        break;
    }
}

void consensus_step(struct consensus *c, const struct consensus_input *in,
                    struct consensus_output *out)
{
    check(c->started || in->kind == CONSENSUS_START);
    arena_reset(&c->arena);
    c->effect_count = 0;
    c->now = max_u64(c->now, in->mono_ns);
    /* A process that was stopped for long is no leader any more, whatever waits in its sockets. */
    if (role(c) == CONSENSUS_LEADER && !consensus_quorum_heard(c) &&
        !planted(PLANT_NO_CHECK_QUORUM))
        consensus_become_follower(c, CONSENSUS_NOBODY);
    take(c, in);
    timeouts(c);
    if (role(c) == CONSENSUS_LEADER)
        consensus_leader_advance(c);
    flush_apply(c);
    consensus_proposals_pump(c);
    consensus_requests_flush(c);
    consensus_reads_flush(c);
    if (role(c) == CONSENSUS_LEADER)
        consensus_leader_flush(c);
    consensus_trim(c);
    flush_persist(c);
    flush_messages(c);
    show_role(c);
    *out = (struct consensus_output){.at = c->effects, .count = c->effect_count};
}

uint64_t consensus_deadline(const struct consensus *c)
{
    uint64_t at = min_u64(consensus_requests_deadline(c), consensus_reads_deadline(c));
    if (role(c) == CONSENSUS_LEADER)
        return min_u64(at, consensus_leader_deadline(c));
    return c->quiet ? at : min_u64(at, c->election_at);
}

/* ---- Life ---- */

struct consensus *consensus_new(const struct consensus_config *config)
{
    check(config->self < CONSENSUS_MEMBERS);
    struct consensus *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    rng_init(&c->rng, config->seed);
    lifecycle_init(&c->role, &roles, NULL);
    consensus_log_init(&c->log);
    c->leader = c->transfer_to = c->placement_favourite = CONSENSUS_NOBODY;
    c->hard.voted_for = CONSENSUS_NOBODY;
    c->shown.leader = CONSENSUS_NOBODY;
    struct list *lists[] = {&c->queue, &c->requests,  &c->writes,      &c->unsent,  &c->sent,
                            &c->limbo, &c->reads_new, &c->reads_asked, &c->waiting, &c->gated};
    for (size_t i = 0; i < array_len(lists); i++)
        list_init(lists[i]);
    return c;
}

struct consensus *consensus_free(struct consensus *c)
{
    if (!c)
        return NULL;
    consensus_proposals_drop(c);
    list_each(link, spare, &c->requests)
        consensus_request_free(c, container_of(link, struct request, by_age));
    list_each(at, next, &c->gated) gated_free(c, container_of(at, struct gated, link));
    for (int i = 0; i < CONSENSUS_MEMBERS; i++)
        buf_deinit(&c->peers[i].snapshot.piece);
    consensus_log_deinit(&c->log);
    arena_deinit(&c->arena);
    free(c->writing);
    free(c->effects);
    free(c);
    return NULL;
}

struct consensus_status consensus_status(const struct consensus *c)
{
    return (struct consensus_status){
        .role = role(c),
        .standing = c->hard.standing,
        .leader = c->leader,
        .serving = consensus_leader_serving(c),
        .quiet = c->quiet,
        .term = c->hard.term,
        .commit = c->commit,
        .durable = c->durable,
        .applied = c->applied,
        .base = c->log.base_index,
        .last = last_index(c),
        .log_bytes = consensus_log_bytes(&c->log, c->log.base_index, last_index(c)),
        .pending = c->request_count,
        .log_full = consensus_full(c)};
}

bool consensus_entry_at(const struct consensus *c, uint64_t index, struct consensus_entry *ret)
{
    if (index <= c->log.base_index || index > last_index(c))
        return false;
    *ret = *consensus_log_get(&c->log, index);
    return true;
}

bool consensus_term_at(const struct consensus *c, uint64_t index, uint64_t *ret)
{
    if (index < c->log.base_index || index > last_index(c))
        return false;
    *ret = consensus_log_term(&c->log, index);
    return true;
}
