/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions and their members: what the owner calls between steps. Nothing can be sent from here;
 * what is to be said is queued, and the deadline is now. */

#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "replicator/replicator_internal.h"

struct peer *peer_find(struct replicator *replicator, uint16_t region)
{
    for (uint32_t i = 0; i < replicator->config.peer_count; i++)
        if (replicator->peers[i].region == region)
            return &replicator->peers[i];
    return NULL;
}

/* An epoch's base is no entry: with nothing logged below it either, there is nothing that a peer
 * could acknowledge. */
static uint64_t given_out(const struct replica *replica, uint64_t seq)
{
    bool base = seq == version_epoch_base(version_epoch(seq));
    return base && !replica->log_first ? 0 : seq;
}

struct replica *replicator_open(struct replicator *replicator, const struct replica_state *state)
{
    struct replica *replica = xcalloc(1, sizeof(*replica));
    replica->replicator = replicator;
    memcpy(replica->place.group_id, state->group_id, WIRE_GROUP_ID_LEN);
    replica->place.partition = state->partition;
    check(!replica_find(replicator, &replica->place));
    HASH_ADD(hh, replicator->replicas, place, sizeof(replica->place), replica);
    replica->owner = state->owner;
    replica->vv = state->vv;
    replica->epoch = state->epoch;
    replica->partial = state->partial;
    replica->log_first = state->log_first;
    replica->stamped = given_out(replica, replica_last(replica));
    replica->log_bytes = replica->appended_bytes = state->log_bytes;
    replica->trimmed = state->log_first ? state->log_first - 1 : replica_last(replica);
    list_init(&replica->collect);
    list_init(&replica->trim);
    /* When the log we start with was committed is not known; it counts from now. */
    lag_ring_init(&replica->ring, replica->trimmed, 0);
    if (replica->trimmed < replica_last(replica))
        lag_ring_push(&replica->ring, (struct lag_entry){.seq = replica_last(replica),
                                                         .mono_ns = replicator->mono_ns,
                                                         .bytes = replica->appended_bytes});
    replicator->unborn = replicator->unborn || replicator->mono_ns == 0;
    return replica;
}

static struct lag_table *lag_ref(struct member *member)
{
    struct replicator *replicator = member->replica->replicator;
    struct lag_key key = {.peer = member->peer->region};
    memcpy(key.group_id, member->replica->place.group_id, WIRE_GROUP_ID_LEN);
    struct lag_table *table;
    HASH_FIND(hh, replicator->lags, &key, sizeof(key), table);
    if (!table) {
        table = xcalloc(1, sizeof(*table));
        table->key = key;
        HASH_ADD(hh, replicator->lags, key, sizeof(table->key), table);
    }
    table->refs++;
    return table;
}

static void lag_unref(struct replicator *replicator, struct lag_table *table)
{
    if (--table->refs)
        return;
    HASH_DEL(replicator->lags, table);
    lag_histogram_deinit(&table->histogram);
    free(table);
}

void replicator_add_member(struct replicator *replicator, struct replica *replica, uint16_t region)
{
    struct peer *peer = peer_find(replicator, region);
    if (!peer || member_find(replica, region))
        return;
    struct member *member = xcalloc(1, sizeof(*member));
    member->replica = replica;
    member->peer = peer;
    check(replica->member_count < VV_MAX);
    replica->members[replica->member_count++] = member;
    list_append(&peer->members, &member->of_peer);
    member->lag = lag_ref(member);
    outbound_join(member);
    inbound_join(member);
    replicator->urgent = true;
}

static void member_free(struct member *member)
{
    outbound_leave(member);
    inbound_leave(member);
    list_remove(&member->of_peer);
    lag_unref(member->replica->replicator, member->lag);
    free(member);
}

void replicator_remove_member(struct replicator *replicator, struct replica *replica,
                              uint16_t region)
{
    uint32_t i = 0;
    while (i < replica->member_count && replica->members[i]->peer->region != region)
        i++;
    if (i == replica->member_count)
        return;
    member_free(replica->members[i]);
    replica->member_count--;
    memmove(&replica->members[i], &replica->members[i + 1],
            (replica->member_count - i) * sizeof(replica->members[0]));
    /* What the rest have of the one that left must now come from each other. */
    for (i = 0; i < replica->member_count; i++)
        member_offer(replica->members[i]);
    trim_note(replica);
    replicator->urgent = true;
}

void replicator_close(struct replicator *replicator, struct replica *replica)
{
    while (replica->member_count)
        member_free(replica->members[--replica->member_count]);
    for (uint32_t i = 0; i < READS_MAX; i++)
        if (replicator->reads[i].replica == replica)
            replicator->reads[i].replica = NULL;
    list_remove(&replica->collect);
    list_remove(&replica->trim);
    lag_ring_deinit(&replica->ring);
    HASH_DEL(replicator->replicas, replica);
    free(replica);
}

void replicator_set_tables(struct replicator *replicator, struct bytes descriptions)
{
    buf_reset(&replicator->tables);
    buf_append_bytes(&replicator->tables, descriptions);
    replicator->tables_crc = crc32c(0, descriptions);
    for (uint32_t i = 0; i < replicator->config.peer_count; i++)
        replicator->peers[i].out.tables_due = true;
    replicator->urgent = true;
}

void *replica_owner(const struct replica *replica)
{
    return replica->owner;
}

const struct vv *replica_vv_durable(const struct replica *replica)
{
    return &replica->vv;
}

uint64_t replica_last(const struct replica *replica)
{
    return vv_get(&replica->vv, replica->replicator->config.region);
}

bool replica_learn(struct replica *replica, const struct vv *vv)
{
    uint64_t last = replica_last(replica);
    if (vv_covers(&replica->vv, vv) || !vv_join(&replica->vv, vv))
        return false;
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct member *member = replica->members[i];
        uint64_t seq = vv_get(&replica->vv, member->peer->region);
        if (seq <= member->received)
            continue;
        member->received = seq;
        member->deferred = true; /* its log may skip what came otherwise */
    }
    if (replica_last(replica) == last)
        return true;
    /* Writes of our own from before our disk was new, and none yet since. */
    replica_note_stamped(replica, replica_last(replica));
    if (!replica->log_first)
        replica->trimmed = replica_last(replica);
    for (uint32_t i = 0; i < replica->member_count; i++)
        member_offer(replica->members[i]);
    return true;
}

struct replica *replica_find(struct replicator *replicator, const struct wire_place *place)
{
    struct replica *replica;
    HASH_FIND(hh, replicator->replicas, place, sizeof(*place), replica);
    return replica;
}

struct member *member_find(const struct replica *replica, uint16_t region)
{
    for (uint32_t i = 0; i < replica->member_count; i++)
        if (replica->members[i]->peer->region == region)
            return replica->members[i];
    return NULL;
}

struct member *member_at(struct peer *peer, const struct wire_place *place)
{
    struct replica *replica = replica_find(peer->replicator, place);
    return replica ? member_find(replica, peer->region) : NULL;
}

void replica_note_epoch(struct replica *replica, uint64_t epoch)
{
    if (epoch <= replica->epoch)
        return;
    replica->epoch = epoch;
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct member *member = replica->members[i];
        if (member->peer->in.up)
            list_add_once(&member->peer->in.reports, &member->report);
        if (member_state(member) == MEMBER_AHEAD && member->sent <= version_epoch_base(epoch))
            member_ahead_ends(member);
    }
    replica_reconsider(replica);
    replica->replicator->urgent = true;
}

void replica_note_partial(struct replica *replica, const struct vv *partial)
{
    bool more = !vv_covers(&replica->partial, partial);
    replica->partial = *partial;
    if (!more)
        return;
    for (uint32_t i = 0; i < replica->member_count; i++)
        replica->members[i]->has_orphans = false;
    replica_reconsider(replica);
    replica->replicator->urgent = true;
}

void replica_note_stamped(struct replica *replica, uint64_t seq)
{
    if (seq <= replica->stamped)
        return;
    replica->stamped = seq;
    for (uint32_t i = 0; i < replica->member_count; i++)
        member_pending_update(replica->members[i]);
}

void replica_note_unstamped(struct replica *replica, uint64_t seq)
{
    check(seq >= replica_last(replica));
    if (seq >= replica->stamped)
        return;
    replica->stamped = given_out(replica, seq);
    for (uint32_t i = 0; i < replica->member_count; i++)
        member_pending_update(replica->members[i]);
}
