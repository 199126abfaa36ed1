/* SPDX-License-Identifier: Apache-2.0 */
/* The door: takes an input, hands it to the side it belongs to, lets the timers act, and at the end
 * of the step sends what has gathered. The sides are outbound.c (our log to a peer) and inbound.c
 * (a peer's log to us); snapshot.c has both ends of a snapshot, watermark.c what may be forgotten.
 */

#include "replicator/replicator.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "replicator/replicator_internal.h"

uint64_t ms_to_ns(uint64_t ms)
{
    return ms > UINT64_MAX / 1000000 ? UINT64_MAX : ms * 1000000;
}

void list_add_once(struct list *head, struct list *link)
{
    if (list_empty(link))
        list_append(head, link);
}

uint32_t list_length(const struct list *head, uint32_t max)
{
    uint32_t count = 0;
    for (const struct list *link = head->next; link != head && count < max; link = link->next)
        count++;
    return count;
}

/* ---- Effects ---- */

struct replicator_effect *effect(struct replicator *replicator, enum replicator_effect_kind kind)
{
    if (replicator->effect_count == replicator->effect_cap) {
        replicator->effect_cap = replicator->effect_cap ? replicator->effect_cap * 2 : 64;
        replicator->effects =
            xrealloc(replicator->effects, replicator->effect_cap * sizeof(replicator->effects[0]));
    }
    struct replicator_effect *at = &replicator->effects[replicator->effect_count++];
    *at = (struct replicator_effect){.kind = kind};
    return at;
}

struct replicator_effect *effect_for(struct member *member, enum replicator_effect_kind kind)
{
    struct replicator_effect *at = effect(member->replica->replicator, kind);
    at->replica = member->replica;
    at->peer = member->peer->region;
    return at;
}

void peer_send(struct peer *peer, bool outbound, const struct wire_message *message)
{
    struct bytes bytes = wire_encode(message, &peer->replicator->arena);
    struct replicator_effect *at = effect(peer->replicator, REPLICATOR_SEND);
    at->peer = peer->region;
    at->outbound = outbound;
    at->bytes = bytes;
}

void peer_close(struct peer *peer, bool outbound, const char *reason)
{
    if (outbound ? !peer->out.up : !peer->in.up)
        return;
    trace_emit(&peer->replicator->config.trace, TRACE_WARN, "closing %s %s: %s",
               outbound ? "stream to" : "stream from", region_id_name(peer->region), reason);
    if (outbound)
        outbound_down(peer);
    else
        inbound_down(peer);
    struct replicator_effect *at = effect(peer->replicator, REPLICATOR_CLOSE);
    at->peer = peer->region;
    at->outbound = outbound;
    at->reason = reason;
}

void trace_member(const struct member *member, enum trace_level level, const char *what)
{
    trace_emit(&member->replica->replicator->config.trace, level, "%s partition %u: %s",
               region_id_name(member->peer->region), member->replica->place.partition, what);
}

/* ---- Life ---- */

static uint64_t at_least(uint64_t value, uint64_t floor)
{
    return value > floor ? value : floor;
}

/* A configuration that cannot work is made one that can: a frame must hold the largest item. */
static struct replicator_config config_sane(struct replicator_config config)
{
    config.frame_bytes_max = at_least(config.frame_bytes_max, 1 << 20);
    config.window_bytes_max = at_least(config.window_bytes_max, 1);
    config.apply_bytes_max = at_least(config.apply_bytes_max, 1);
    config.batch_bytes_max = at_least(config.batch_bytes_max, 1);
    if (config.batch_bytes_max > config.frame_bytes_max / 4)
        config.batch_bytes_max = config.frame_bytes_max / 4;
    config.batch_records_max = (uint32_t)at_least(config.batch_records_max, 1);
    config.heartbeat_ms = at_least(config.heartbeat_ms, 1);
    config.silence_ms_max = at_least(config.silence_ms_max, 2 * config.heartbeat_ms);
    return config;
}

struct replicator *replicator_new(const struct replicator_config *config)
{
    check(config->peer_count <= VV_MAX);
    check(region_id_valid(config->region));
    struct replicator *replicator = xcalloc(1, sizeof(*replicator));
    replicator->config = config_sane(*config);
    rng_init(&replicator->rng, config->seed);
    arena_init(&replicator->arena);
    list_init(&replicator->free_applies);
    list_init(&replicator->trims);
    list_init(&replicator->collects);
    for (uint32_t i = READS_MAX; i > 0; i--)
        replicator->free_reads[replicator->free_read_count++] = i - 1;
    for (uint32_t i = 0; i < config->peer_count; i++) {
        struct peer *peer = &replicator->peers[i];
        check(region_id_valid(config->peers[i]));
        peer->replicator = replicator;
        peer->region = config->peers[i];
        list_init(&peer->members);
        list_init(&peer->out.ready);
        list_init(&peer->out.pending);
        list_init(&peer->out.waiting);
        list_init(&peer->out.offers);
        list_init(&peer->in.acks);
        list_init(&peer->in.reports);
        list_init(&peer->in.resumes);
        list_init(&peer->in.snapshots);
        list_init(&peer->in.unnamed);
    }
    return replicator;
}

struct replicator *replicator_free(struct replicator *replicator)
{
    if (!replicator)
        return NULL;
    struct replica *replica, *spare;
    HASH_ITER(hh, replicator->replicas, replica, spare)
    {
        replicator_close(replicator, replica);
    }
    for (struct list *link; (link = list_take(&replicator->free_applies));)
        free(container_of(link, struct apply, link));
    for (uint32_t i = 0; i < replicator->config.peer_count; i++)
        buf_deinit(&replicator->peers[i].in.tables);
    buf_deinit(&replicator->tables);
    buf_deinit(&replicator->scratch);
    arena_deinit(&replicator->arena);
    free(replicator->effects);
    free(replicator);
    return NULL;
}

/* ---- Steps ---- */

static void frame(struct peer *peer, bool outbound, struct bytes bytes)
{
    struct replicator *replicator = peer->replicator;
    if (outbound ? !peer->out.up : !peer->in.up)
        return; /* closed by us a moment ago */
    struct wire_message message;
    if (bytes.len > replicator->config.frame_bytes_max) {
        peer_close(peer, outbound, "frame too large");
        return;
    }
    /* Sixteen times the frame is far above what any message of ours needs. */
    if (!wire_decode(bytes, 16 * replicator->config.frame_bytes_max, &replicator->arena,
                     &message)) {
        peer_close(peer, outbound, "malformed frame");
        return;
    }
    if (outbound) {
        peer->out.heard_ns = replicator->mono_ns;
        outbound_message(peer, &message);
    } else {
        peer->in.heard_ns = replicator->mono_ns;
        inbound_message(peer, &message);
    }
}

static void committed(const struct replicator_input *in)
{
    struct replica *replica = in->replica;
    struct replicator *replicator = replica->replicator;
    uint64_t before = replica_last(replica);
    if (in->seq <= before)
        return;
    if (!replica->log_first) {
        uint64_t epoch = version_epoch(in->seq);
        replica->log_first =
            (epoch > version_epoch(before) ? version_epoch_base(epoch) : before) + 1;
        replica->trimmed = replica->log_first - 1;
    }
    check(vv_raise(&replica->vv, replicator->config.region, in->seq));
    replica_note_epoch(replica, version_epoch(in->seq));
    replica_note_stamped(replica, in->seq);
    replica->log_bytes += in->log_bytes;
    replica->appended_bytes += in->log_bytes;
    struct lag_entry entry = {in->seq, replicator->mono_ns, replica->appended_bytes};
    if (replica->member_count)
        lag_ring_push(&replica->ring, entry);
    else
        replica->ring.base = entry;
    outbound_committed(replica, before);
    if (replica->log_bytes > replicator->config.log_bytes_max)
        trim_force(replica);
}

static void rows(struct replicator *replicator, const struct replicator_input *in)
{
    uint32_t at = (uint32_t)(in->id % READS_MAX);
    struct read *read = &replicator->reads[at];
    if (!read->active || read->id != in->id)
        return;
    outbound_rows(read, in);
    *read = (struct read){0};
    replicator->free_reads[replicator->free_read_count++] = at;
}

static void dispatch(struct replicator *replicator, const struct replicator_input *in)
{
    struct peer *peer = peer_find(replicator, in->peer);
    struct member *member;
    bool known;
    switch (in->kind) {
    case REPLICATOR_PEER_UP:
        check(peer);
        if (in->outbound)
            outbound_up(peer);
        else
            inbound_up(peer);
        return;
    case REPLICATOR_PEER_DOWN:
        check(peer);
        if (in->outbound)
            outbound_down(peer);
        else
            inbound_down(peer);
        return;
    case REPLICATOR_FRAME:
        check(peer);
        frame(peer, in->outbound, in->bytes);
        return;
    case REPLICATOR_COMMITTED:
        committed(in);
        return;
    case REPLICATOR_APPLIED:
    case REPLICATOR_APPLY_FAILED:
        member = member_find(in->replica, in->peer);
        known = member && inbound_applied(member, in->apply_id, in->kind == REPLICATOR_APPLIED);
        if (!known && in->kind == REPLICATOR_APPLIED)
            inbound_applied_late(in);
        return;
    case REPLICATOR_ROWS:
        rows(replicator, in);
        return;
    case REPLICATOR_TIMEOUT:
        return;
    }
    unreachable();
}

/* Gives what was opened before the first step its time, which is now. */
static void born(struct replicator *replicator)
{
    struct replica *replica, *spare;
    HASH_ITER(hh, replicator->replicas, replica, spare)
    {
        if (replica->ring.count && replica->ring.at[replica->ring.head].mono_ns == 0)
            replica->ring.at[replica->ring.head].mono_ns = replicator->mono_ns;
        for (uint32_t i = 0; i < replica->member_count; i++)
            replica->members[i]->acked_ns = replicator->mono_ns;
    }
    replicator->unborn = false;
}

static void expire_lags(struct replicator *replicator)
{
    if (replicator->mono_ns < replicator->expire_ns)
        return;
    replicator->expire_ns = replicator->mono_ns + ms_to_ns(10000);
    struct lag_table *table, *spare;
    HASH_ITER(hh, replicator->lags, table, spare)
    {
        lag_histogram_expire(&table->histogram, replicator->mono_ns);
    }
}

void replicator_step(struct replicator *replicator, const struct replicator_input *in,
                     struct replicator_output *out)
{
    arena_reset(&replicator->arena);
    replicator->effect_count = 0;
    replicator->urgent = false;
    replicator->mono_ns = in->mono_ns;
    replicator->wall_ms = in->wall_ms;
    replicator->hlc_now = in->hlc_now;
    if (replicator->unborn)
        born(replicator);
    dispatch(replicator, in);
    for (uint32_t i = 0; i < replicator->config.peer_count; i++) {
        struct peer *peer = &replicator->peers[i];
        outbound_timers(peer);
        inbound_timers(peer);
        outbound_flush(peer);
        inbound_flush(peer);
    }
    trim_run(replicator);
    collect_run(replicator);
    expire_lags(replicator);
    *out = (struct replicator_output){replicator->effects, replicator->effect_count};
}

uint64_t replicator_deadline(const struct replicator *replicator)
{
    if (replicator->urgent)
        return replicator->mono_ns;
    uint64_t silence_ns = ms_to_ns(replicator->config.silence_ms_max);
    uint64_t deadline = watermark_deadline(replicator);
    for (uint32_t i = 0; i < replicator->config.peer_count; i++) {
        const struct peer *peer = &replicator->peers[i];
        uint64_t at = UINT64_MAX;
        if (peer->out.up) {
            at = peer->out.beat_ns;
            if (peer->out.heard_ns + silence_ns < at)
                at = peer->out.heard_ns + silence_ns;
        }
        if (peer->in.up && peer->in.heard_ns + silence_ns < at)
            at = peer->in.heard_ns + silence_ns;
        if (peer->in.greeted && !list_empty(&peer->in.resumes) && peer->in.hold_ns < at)
            at = peer->in.hold_ns;
        if (at < deadline)
            deadline = at;
    }
    return deadline;
}
