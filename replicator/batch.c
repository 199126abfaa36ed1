/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way from a frame to the owner. A batch is taken when it begins right behind what
 * we have (or repeats some of it); anything else is a gap, and we say again from where to go on. */

#include "conflict/base/alloc.h"
#include "conflict/base/plant.h"
#include "replicator/replicator_internal.h"

/* A record is at least two lengths, a key of one byte and the head of a body. */
enum { RECORD_LEN_MIN = 2 + 1 + 2 + VERSION_ENCODED_LEN + 1 };

bool window_fits(const struct peer *peer, uint64_t bytes)
{
    const struct replicator_config *config = &peer->replicator->config;
    /* The sender may exceed the window by its last frame. */
    return peer->in.applying_bytes + peer->in.old_bytes + bytes <=
           config->apply_bytes_max + config->frame_bytes_max;
}

struct apply *apply_new(struct member *member, enum apply_kind kind, uint64_t bytes)
{
    struct replicator *replicator = member->replica->replicator;
    struct list *link = list_take(&replicator->free_applies);
    struct apply *apply =
        link ? container_of(link, struct apply, link) : xmalloc(sizeof(struct apply));
    *apply = (struct apply){.id = ++replicator->next_apply_id,
                            .kind = kind,
                            .bytes = bytes,
                            .stream = member->peer->in.stream};
    list_append(&member->applies, &apply->link);
    member->peer->in.applying_bytes += bytes;
    return apply;
}

bool unpack_rows(struct peer *peer, const struct wire_message *message,
                 struct replicator_row **ret_rows, uint64_t *ret_hlc)
{
    uint32_t count = message->record_count;
    if (count > message->records.len / RECORD_LEN_MIN)
        return false;
    struct replicator_row *rows =
        arena_array(&peer->replicator->arena, struct replicator_row, count);
    struct bytes rest = message->records;
    uint64_t hlc = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct record record;
        if (!wire_record_take(&rest, &record, &rows[i].body))
            return false;
        if (message->kind == WIRE_BATCH &&
            (record.version.origin != peer->region || record.version.seq != message->first_seq + i))
            return false;
        rows[i].key = record.key;
        rows[i].seq = record.version.seq;
        if (record.version.hlc > hlc)
            hlc = record.version.hlc;
    }
    *ret_rows = rows;
    *ret_hlc = hlc;
    return rest.len == 0;
}

bool vv_has_room(const struct replica *replica, const struct vv *more)
{
    struct vv vv = replica->vv;
    if (!vv_join(&vv, more))
        return false;
    if (replica->snapshot_from && !vv_join(&vv, &replica->snapshot_from->in_vv))
        return false;
    for (uint32_t i = 0; i < replica->member_count; i++)
        if (!vv_raise(&vv, replica->members[i]->peer->region, replica->members[i]->received))
            return false;
    return vv_raise(&vv, replica->replicator->config.region, replica->stamped);
}

/* The bug that was planted: what comes first on a stream that is not the first gets lost, and is
 * acknowledged all the same. */
static bool drops(const struct member *member, const struct wire_message *batch)
{
    const struct inbound *in = &member->peer->in;
    return planted(PLANT_DROP_BATCH) && in->stream > 1 && in->received_bytes == batch->records.len;
}

static void batch_apply(struct member *member, const struct wire_message *batch,
                        struct replicator_row *rows, uint64_t hlc)
{
    struct peer *peer = member->peer;
    uint64_t last = batch->first_seq + batch->record_count - 1;
    uint32_t skip = 0;
    if (member->received >= batch->first_seq)
        skip = (uint32_t)(member->received - batch->first_seq + 1);
    struct apply *apply = apply_new(member, APPLY_LOG, batch->records.len);
    apply->seq = last;
    member->received = last;
    member->resuming = false;
    effect(peer->replicator, REPLICATOR_OBSERVE)->hlc = hlc;
    struct replicator_effect *at = effect_for(member, REPLICATOR_APPLY);
    at->apply_id = apply->id;
    at->origin = peer->region;
    at->seq = last;
    at->rows = rows + skip;
    at->row_count = drops(member, batch) ? 0 : batch->record_count - skip;
    if (planted(PLANT_ACK_EARLY))
        list_add_once(&peer->in.acks, &member->ack);
}

void batch_in(struct peer *peer, const struct wire_message *batch)
{
    struct member *member = member_at(peer, &batch->place);
    struct replicator_row *rows;
    uint64_t hlc;
    if (!unpack_rows(peer, batch, &rows, &hlc)) {
        peer_close(peer, false, "malformed batch");
        return;
    }
    if (!member)
        return;
    struct replica *replica = member->replica;
    if (replica->snapshot_from && (replica->snapshot_from != member || member->in_id)) {
        member->deferred = member->deferred || replica->snapshot_from != member;
        return;
    }
    uint64_t last = batch->first_seq + batch->record_count - 1;
    if (last <= member->received) {
        list_add_once(&peer->in.acks, &member->ack);
        return;
    }
    if (batch->first_seq > member->received &&
        !version_seq_follows(member->received, batch->first_seq)) {
        if (!member->resuming)
            member_resume(member);
        member->resuming = true;
        return;
    }
    struct vv vv = {.count = 1, .at = {{peer->region, last}}};
    if (!vv_has_room(replica, &vv)) {
        peer_close(peer, false, "too many Regions in one table");
        return;
    }
    if (!window_fits(peer, batch->records.len)) {
        peer_close(peer, false, "window exceeded");
        return;
    }
    batch_apply(member, batch, rows, hlc);
}
