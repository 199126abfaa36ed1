/* SPDX-License-Identifier: Apache-2.0 */
/* What everyone has, and what may therefore be forgotten.
 *
 * Log: up to the least acknowledgement among the members; a cut beyond it happens only when the log
 * is over its bound, and then who lacks the rest gets a snapshot.
 *
 * Tombstones (README.md has the proof): one with version v may go when
 *     v.seq <= Z[v.origin]   Z = the pointwise least vector among the members, ours included
 *     v.hlc <  H             H = the least stable promise among the origins
 * A promise (n, h) of an origin says: what it writes after n has a time above h. It is stable once
 * Z[origin] >= n. Promises come faster than they become stable, so one at a time is picked and
 * waited for. A member that is away holds Z, and so everything, back. So does what somebody has of
 * a lost disk and somebody else has not. */

#include "conflict/base/check.h"
#include "conflict/base/plant.h"
#include "conflict/hlc.h"
#include "replicator/replicator_internal.h"

enum { TRIM_INTERVAL_MS = 1000 };
enum { COLLECT_INTERVAL_MS_MIN = 1000, COLLECT_INTERVAL_MS_MAX = 10000 };
enum { STALLED_MS = 5000 };

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- Acknowledgements and lag ---- */

static uint64_t acked_least(const struct replica *replica)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < replica->member_count; i++)
        least = min_u64(least, acked(replica->members[i]));
    return least;
}

static void lag_record(struct member *member, uint64_t seq)
{
    const struct lag_ring *ring = &member->replica->ring;
    uint64_t now = member->replica->replicator->mono_ns;
    uint32_t end = lag_ring_find(ring, seq);
    for (uint32_t i = lag_ring_find(ring, member->lag_seq); i < end; i++) {
        const struct lag_entry *entry = lag_ring_at(ring, i);
        uint64_t before = i > 0 ? lag_ring_at(ring, i - 1)->seq : ring->base.seq;
        uint64_t writes = lag_distance(max_u64(before, member->lag_seq), entry->seq);
        uint64_t lag_ns = now > entry->mono_ns ? now - entry->mono_ns : 0;
        lag_histogram_record(&member->lag->histogram, now, lag_ns, writes);
        member->lag_count += writes;
        member->lag_sum_ms += (double)lag_ns / 1e6 * (double)writes;
    }
    member->lag_seq = max_u64(member->lag_seq, seq);
    member->acked_bytes = end > 0 ? lag_ring_at(ring, end - 1)->bytes : ring->base.bytes;
    member->acked_ns = now;
}

void member_check_caught_up(struct member *member)
{
    if (member->caught_up || member_state(member) != MEMBER_LOG || member->snapshot_unconfirmed ||
        acked(member) < member->caught_up_target)
        return;
    member->caught_up = true;
    effect_for(member, REPLICATOR_CAUGHT_UP);
}

/* Whether the peer tells of an epoch that is later than all that we knew of its origin. */
static bool new_epochs(const struct member *member, const struct vv *told)
{
    for (uint32_t i = 0; i < told->count; i++)
        if (version_epoch(told->at[i].seq) > replica_epoch(member->replica, told->at[i].origin))
            return true;
    return false;
}

void member_acknowledged(struct member *member, const struct vv *vv, bool exact)
{
    struct replica *replica = member->replica;
    uint64_t before = acked(member);
    bool epochs = new_epochs(member, vv);
    if (exact && !vv_covers(vv, &member->known)) {
        /* Its disk is new. */
        member->caught_up = member->has_orphans = false;
        member->promise = (struct promise){0};
    }
    if (exact && !planted(PLANT_KNOWN_KEPT))
        member->known = *vv;
    else if (!vv_join(&member->known, vv))
        return; /* more Regions than a table has: it tells us nothing */
    if (member->snapshot_unconfirmed && !member->orphans_sent &&
        member_state(member) == MEMBER_LOG && vv_covers(&member->known, &member->snapshot_vv)) {
        member->snapshot_unconfirmed = false;
        epochs = true; /* whatever has come to be the past meanwhile was not looked at */
    }
    uint64_t after = acked(member);
    if (after > before) {
        lag_record(member, after);
        effect_for(member, REPLICATOR_ACKED)->seq = after;
        if (replica->ring.count && lag_ring_at(&replica->ring, 0)->seq <= after)
            lag_ring_drop(&replica->ring, acked_least(replica));
        trim_note(replica);
    }
    member_pending_update(member);
    if (epochs)
        replica_reconsider(replica);
    member_check_caught_up(member);
}

void replica_lag(const struct replica *replica, uint16_t peer, uint64_t mono_ns,
                 struct replication_lag *into)
{
    const struct member *member = member_find(replica, peer);
    if (!member)
        return;
    into->connected = member->peer->out.up && member->peer->out.greeted;
    into->count += member->lag_count;
    into->sum_ms += member->lag_sum_ms;
    const struct lag_histogram *histogram = &member->lag->histogram;
    if (into->p50_ms == 0) { /* not told by another partition */
        into->p50_ms = lag_histogram_quantile_ms(histogram, mono_ns, 0.50);
        into->p99_ms = lag_histogram_quantile_ms(histogram, mono_ns, 0.99);
    }
    /* Of a member that is joining, the log is what it waits for: the rest comes as a snapshot. Of
     * any other, also what a full log had to drop is pending, be it all that we ever wrote. */
    uint64_t has = acked(member);
    if (has == 0 && replica->log_first && !member->caught_up)
        has = replica->log_first - 1;
    uint64_t pending = lag_distance(has, replica_last(replica));
    if (pending == 0)
        return;
    into->pending += pending;
    into->pending_bytes += replica->appended_bytes - member->acked_bytes;
    uint32_t at = lag_ring_find(&replica->ring, has);
    uint64_t since = at < replica->ring.count ? lag_ring_at(&replica->ring, at)->mono_ns
                                              : replica->ring.base.mono_ns;
    if (since == 0)
        return; /* opened, and no step yet to tell the time */
    uint64_t age_ns = mono_ns > since ? mono_ns - since : 0;
    into->oldest_ms = max_u64(into->oldest_ms, age_ns / 1000000);
    if (mono_ns - min_u64(mono_ns, member->acked_ns) > ms_to_ns(STALLED_MS))
        into->stalled = true;
}

/* ---- Log ---- */

/* What the member may still need begins after this. */
static uint64_t member_bound(const struct member *member)
{
    uint64_t last = replica_last(member->replica);
    if (member_state(member) == MEMBER_AHEAD || acked(member) > last)
        return min_u64(member->hold, last);
    return max_u64(member->hold, acked(member));
}

void trim_note(struct replica *replica)
{
    struct replicator *replicator = replica->replicator;
    if (list_empty(&replicator->trims))
        replicator->trim_ns = replicator->mono_ns + ms_to_ns(TRIM_INTERVAL_MS);
    list_add_once(&replicator->trims, &replica->trim);
}

/* Everything up to seq goes. */
static void trim_to(struct replica *replica, uint64_t seq)
{
    uint64_t last = replica_last(replica);
    uint64_t logged = lag_distance(replica->trimmed, last);
    uint64_t left = lag_distance(seq, last);
    if (logged)
        replica->log_bytes = (uint64_t)((double)replica->log_bytes * (double)left / (double)logged);
    replica->trimmed = seq;
    replica->log_first = seq < last ? seq + 1 : 0;
    struct replicator_effect *at = effect(replica->replicator, REPLICATOR_TRIM);
    at->replica = replica;
    at->origin = replica->replicator->config.region;
    at->seq = seq;
}

void trim_run(struct replicator *replicator)
{
    if (list_empty(&replicator->trims) || replicator->mono_ns < replicator->trim_ns)
        return;
    for (struct list *link; (link = list_take(&replicator->trims));) {
        struct replica *replica = container_of(link, struct replica, trim);
        uint64_t bound = replica_last(replica);
        for (uint32_t i = 0; i < replica->member_count; i++)
            bound = min_u64(bound, member_bound(replica->members[i]));
        if (replica->member_count && replica->log_first && bound > replica->trimmed)
            trim_to(replica, bound);
    }
}

void trim_force(struct replica *replica)
{
    uint64_t last = replica_last(replica);
    uint64_t keep = replica->replicator->config.log_bytes_max / 4 * 3;
    uint64_t logged = lag_distance(replica->trimmed, last);
    double share = 1 - (double)keep / (double)replica->log_bytes;
    uint64_t cut = min_u64((uint64_t)(share * (double)logged) + 1, logged);
    uint64_t from = replica->trimmed;
    if (version_epoch(from) != version_epoch(last))
        from = version_epoch_base(version_epoch(last));
    trim_to(replica, from + cut);
    trace_emit(&replica->replicator->config.trace, TRACE_WARN,
               "partition %u: the log is over its bound and was cut", replica->place.partition);
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct member *member = replica->members[i];
        /* The log behind its snapshot is gone before the snapshot is through. */
        if (member_state(member) == MEMBER_SNAPSHOT && member->hold < replica->trimmed)
            snapshot_offer(member, true);
    }
}

/* ---- Tombstones ---- */

static uint64_t collect_interval_ns(const struct replicator *replicator)
{
    uint64_t ms = replicator->config.tombstone_grace_ms;
    ms = min_u64(max_u64(ms, COLLECT_INTERVAL_MS_MIN), COLLECT_INTERVAL_MS_MAX);
    return ms_to_ns(ms);
}

void replica_note_tombstones(struct replica *replica, bool any)
{
    struct replicator *replicator = replica->replicator;
    if (!any) {
        list_remove(&replica->collect);
        return;
    }
    if (!list_empty(&replica->collect))
        return;
    replica->collect_ns = replicator->mono_ns + collect_interval_ns(replicator);
    list_append(&replicator->collects, &replica->collect);
}

/* Z[origin] in its newest epoch. */
static uint64_t stable_seq(const struct replica *replica, uint16_t origin)
{
    uint64_t least = vv_get(&replica->vv, origin);
    if (planted(PLANT_FORGET_TOMBSTONE))
        return least;
    for (uint32_t i = 0; i < replica->member_count; i++) {
        const struct member *member = replica->members[i];
        if (member->peer->region != origin)
            least = min_u64(least, vv_get(&member->known, origin));
    }
    return least;
}

/* Z, whole. */
static struct vv stable_vv(const struct replica *replica)
{
    struct vv stable = {0};
    for (uint32_t i = 0; i < replica->vv.count; i++) {
        uint16_t origin = replica->vv.at[i].origin;
        uint64_t least = replica->vv.at[i].seq, epoch = version_epoch(least);
        for (uint32_t j = 0; j < replica->member_count; j++) {
            const struct member *member = replica->members[j];
            if (!member_has(member, origin, least) && !planted(PLANT_FORGET_TOMBSTONE))
                least = vv_in_epoch(&member->known, origin, epoch);
        }
        check(vv_raise(&stable, origin, least));
    }
    return stable;
}

/* Whether everybody has what `vv` says of the past. */
static bool past_is_everywhere(const struct replica *replica, const struct vv *vv)
{
    for (uint32_t i = 0; i < vv->count; i++) {
        uint16_t origin = vv->at[i].origin;
        uint64_t seq = vv->at[i].seq;
        if (version_epoch(seq) >= replica_epoch(replica, origin))
            continue;
        bool everywhere = vv_knows(&replica->vv, origin, seq);
        for (uint32_t j = 0; j < replica->member_count; j++)
            everywhere = everywhere && member_has(replica->members[j], origin, seq);
        if (!everywhere)
            return false;
    }
    return true;
}

/* Whether everybody has what anybody has from before a disk was lost. Until then a promise says
 * nothing of what may still turn up. */
static bool past_is_settled(const struct replica *replica)
{
    bool settled = past_is_everywhere(replica, &replica->vv);
    for (uint32_t i = 0; i < replica->member_count; i++)
        settled = settled && past_is_everywhere(replica, &replica->members[i]->known);
    return settled || planted(PLANT_FORGET_TOMBSTONE);
}

static uint64_t promise_update(struct promise *promise, uint64_t seq, uint64_t hlc, uint64_t stable)
{
    if (promise->pending_hlc && stable >= promise->pending_seq) {
        promise->stable = max_u64(promise->stable, promise->pending_hlc);
        promise->pending_hlc = 0;
    }
    if (stable >= seq) {
        promise->stable = max_u64(promise->stable, hlc);
        promise->pending_hlc = 0;
    } else if (!promise->pending_hlc) {
        promise->pending_seq = seq;
        promise->pending_hlc = hlc;
    }
    return promise->stable;
}

static uint64_t member_promise(struct member *member)
{
    const struct inbound *in = &member->peer->in;
    uint16_t origin = member->peer->region;
    uint64_t stable = stable_seq(member->replica, origin);
    bool fresh = in->up && member->offered && in->promise_beat;
    if (!fresh)
        return promise_update(&member->promise, UINT64_MAX, 0, stable);
    /* Not named in that heartbeat: then we had acknowledged all there was, and have it now too. */
    bool listed = member->listed_beat >= in->promise_beat;
    uint64_t seq = listed ? member->listed_seq : vv_get(&member->replica->vv, origin);
    return promise_update(&member->promise, seq, in->promise, stable);
}

/* What a member has of the others' logs it tells once, when it changes. Should that have been lost,
 * tombstones would stay for ever: being named in a heartbeat makes it tell again. */
static void ask_behind(struct replica *replica)
{
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct member *member = replica->members[i];
        if (vv_covers(&member->known, &replica->vv))
            continue;
        member->announce = true;
        member_pending_update(member);
    }
}

static void collect(struct replica *replica)
{
    struct replicator *replicator = replica->replicator;
    uint16_t self = replicator->config.region;
    if (replica->member_count == 0)
        return; /* the owner has not named them yet */
    ask_behind(replica);
    if (!past_is_settled(replica))
        return;
    uint64_t horizon = promise_update(&replica->promise, replica->stamped, replicator->hlc_now,
                                      stable_seq(replica, self));
    for (uint32_t i = 0; i < replica->member_count; i++)
        horizon = min_u64(horizon, member_promise(replica->members[i]));
    if (planted(PLANT_FORGET_TOMBSTONE))
        horizon = replicator->hlc_now;
    uint64_t grace_ms = replicator->config.tombstone_grace_ms;
    if (horizon == 0 || replicator->wall_ms <= grace_ms)
        return;
    horizon = min_u64(horizon, hlc_make(replicator->wall_ms - grace_ms, 0));
    struct vv stable = stable_vv(replica);
    struct replicator_effect *at = effect(replicator, REPLICATOR_COLLECT);
    at->replica = replica;
    at->vv = arena_copy(&replicator->arena, &stable, sizeof(stable));
    at->hlc = horizon;
}

void collect_run(struct replicator *replicator)
{
    uint64_t now = replicator->mono_ns;
    for (;;) {
        if (list_empty(&replicator->collects))
            return;
        struct replica *replica = container_of(replicator->collects.next, struct replica, collect);
        if (replica->collect_ns > now)
            return; /* all wait equally long, so the first is the earliest */
        list_remove(&replica->collect);
        replica->collect_ns = now + collect_interval_ns(replicator);
        list_append(&replicator->collects, &replica->collect);
        collect(replica);
    }
}

uint64_t watermark_deadline(const struct replicator *replicator)
{
    uint64_t deadline = UINT64_MAX;
    if (!list_empty(&replicator->trims))
        deadline = replicator->trim_ns;
    if (!list_empty(&replicator->collects)) {
        const struct replica *first =
            container_of(replicator->collects.next, struct replica, collect);
        deadline = min_u64(deadline, first->collect_ns);
    }
    return deadline;
}
