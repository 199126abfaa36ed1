/* SPDX-License-Identifier: Apache-2.0 */
/* Our own log, to one peer. The stream opens with Hello, our tables and an Offer of every partition
 * the peer is a member of; the peer answers each with a Resume, and from there on a member is a
 * cursor: when there is something after it and the window has room, log rows are read and sent.
 * Members with work stand in line (peer.out.ready), one batch each, so no partition starves
 * another. Members at the same place share one read and one encoding. */

#include "conflict/base/check.h"
#include "replicator/replicator_internal.h"

/* What is not answered is asked again after so long; with TCP below that is never needed. */
enum { REPEAT_MS = 1000 };
/* What a message is longer than its records. */
enum { FRAME_OVERHEAD = 1024 };

/* ---- The stream ---- */

void outbound_up(struct peer *peer)
{
    struct replicator *replicator = peer->replicator;
    outbound_down(peer);
    struct outbound *out = &peer->out;
    out->up = true;
    out->greeted = false;
    out->tables_due = true;
    out->heard_ns = replicator->mono_ns;
    out->beat_ns = replicator->mono_ns + ms_to_ns(replicator->config.heartbeat_ms);
    out->offer_ns = replicator->mono_ns + ms_to_ns(REPEAT_MS);
    out->sent_bytes = out->consumed_bytes = out->window_bytes = 0;
    check(out->reserved_bytes == 0);
    struct wire_message hello = {
        .kind = WIRE_HELLO, .protocol = WIRE_PROTOCOL, .region = replicator->config.region};
    peer_send(peer, true, &hello);
    list_each(link, spare, &peer->members)
    {
        member_offer(container_of(link, struct member, of_peer));
    }
}

void outbound_down(struct peer *peer)
{
    if (!peer->out.up)
        return;
    peer->out.up = false;
    list_each(link, spare, &peer->members)
    {
        struct member *member = container_of(link, struct member, of_peer);
        member_forget_read(member);
        list_remove(&member->ready);
        list_remove(&member->offer);
        member->snapshot_unconfirmed = member->orphans_sent = false;
        member_move(member, MEMBER_AWAY);
    }
}

static void hello_in(struct peer *peer, const struct wire_message *message)
{
    if (message->protocol != WIRE_PROTOCOL || message->region != peer->region)
        peer_close(peer, true, "another protocol or Region");
    else
        peer->out.greeted = true;
}

static void ack_in(struct peer *peer, const struct wire_message *message)
{
    peer->out.window_bytes = message->window_bytes;
    peer->out.consumed_bytes = message->consumed_bytes;
    if (message->want_tables)
        peer->out.tables_due = true;
    for (uint32_t i = 0; i < message->position_count; i++) {
        struct member *member = member_at(peer, &message->positions[i].place);
        if (!member)
            continue;
        snapshot_done(member, message->positions[i].snapshot_id);
        member_acknowledged(member, &message->positions[i].vv, false);
    }
}

void outbound_message(struct peer *peer, const struct wire_message *message)
{
    if (!peer->out.greeted && message->kind != WIRE_HELLO) {
        peer_close(peer, true, "message before Hello");
        return;
    }
    struct member *member;
    switch (message->kind) {
    case WIRE_HELLO:
        hello_in(peer, message);
        return;
    case WIRE_RESUME:
        for (uint32_t i = 0; i < message->position_count; i++) {
            member = member_at(peer, &message->positions[i].place);
            if (member)
                member_resumed(member, &message->positions[i]);
        }
        return;
    case WIRE_ACK:
        ack_in(peer, message);
        return;
    case WIRE_SNAPSHOT_ACCEPT:
        member = member_at(peer, &message->place);
        if (member)
            snapshot_accepted(member, message->snapshot_id);
        return;
    case WIRE_TABLES:
    case WIRE_OFFER:
    case WIRE_BATCH:
    case WIRE_HEARTBEAT:
    case WIRE_SNAPSHOT_OFFER:
    case WIRE_SNAPSHOT_CHUNK:
        peer_close(peer, true, "message from the wrong side");
        return;
    }
    unreachable();
}

/* ---- Reading and sending ---- */

struct read *read_start(struct replica *replica, bool snapshot, uint64_t from)
{
    struct replicator *replicator = replica->replicator;
    check(replicator->free_read_count > 0);
    uint32_t at = replicator->free_reads[--replicator->free_read_count];
    struct read *read = &replicator->reads[at];
    *read = (struct read){.id = ++replicator->next_read_id * READS_MAX + at,
                          .active = true,
                          .snapshot = snapshot,
                          .replica = replica,
                          .from = from};
    return read;
}

void read_join(struct read *read, struct member *member)
{
    check(!member->read);
    check(read->member_count < VV_MAX);
    read->members[read->member_count++] = member;
    member->read = read;
    member->peer->out.reserved_bytes += member->peer->replicator->config.batch_bytes_max;
}

void member_forget_read(struct member *member)
{
    struct read *read = member->read;
    if (!read)
        return;
    for (uint32_t i = 0; i < read->member_count; i++)
        if (read->members[i] == member)
            read->members[i] = NULL;
    member->read = NULL;
    member->peer->out.reserved_bytes -= member->peer->replicator->config.batch_bytes_max;
}

static void log_read(struct member *member)
{
    struct replica *replica = member->replica;
    const struct replicator_config *config = &replica->replicator->config;
    if (member->sent >= replica_last(replica))
        return;
    if (!log_reaches(replica, member->sent)) {
        snapshot_offer(member, true);
        return;
    }
    uint64_t from = member->sent + 1;
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct read *read = replica->members[i]->read;
        if (read && !read->snapshot && read->from == from && read->member_count < VV_MAX) {
            read_join(read, member);
            return;
        }
    }
    struct read *read = read_start(replica, false, from);
    read_join(read, member);
    struct replicator_effect *at = effect(replica->replicator, REPLICATOR_READ_LOG);
    at->id = read->id;
    at->replica = replica;
    at->origin = config->region;
    at->seq = from;
    at->rows_max = config->batch_records_max;
    at->bytes_max = config->batch_bytes_max;
}

uint32_t pack_rows(struct replicator *replicator, const struct replicator_row *rows, uint32_t count)
{
    struct buf *to = &replicator->scratch;
    uint64_t bytes_max = replicator->config.frame_bytes_max - FRAME_OVERHEAD;
    buf_reset(to);
    uint32_t i;
    for (i = 0; i < count; i++) {
        uint64_t more = rows[i].key.len + rows[i].body.len + 2 * (uint64_t)VARINT_LEN_MAX;
        /* One that alone is too large goes out all the same: the peer closes the stream over it,
         * which is seen; skipping it would not be. */
        if (i > 0 && to->len + more > bytes_max)
            break;
        wire_record_append(rows[i].key, rows[i].body, to);
    }
    return i;
}

/* How many of the rows are the log right after `sent`, durable, and of one epoch. */
static uint32_t rows_in_line(const struct replica *replica, uint64_t sent,
                             const struct replicator_input *in)
{
    uint64_t last = replica_last(replica);
    uint32_t count = 0;
    if (in->failed || in->row_count == 0 || !version_seq_follows(sent, in->rows[0].seq))
        return 0;
    while (count < in->row_count && in->rows[count].seq == in->rows[0].seq + count &&
           in->rows[count].seq <= last)
        count++;
    return count;
}

static void log_rows(struct replica *replica, struct member *const *members, uint32_t member_count,
                     uint64_t from, const struct replicator_input *in)
{
    struct replicator *replicator = replica->replicator;
    uint32_t count = rows_in_line(replica, from - 1, in);
    if (count == 0) {
        for (uint32_t i = 0; i < member_count; i++) {
            trace_member(members[i], TRACE_WARN, "needs a part of the log that is gone");
            snapshot_offer(members[i], false);
        }
        return;
    }
    count = pack_rows(replicator, in->rows, count);
    struct wire_message batch = {.kind = WIRE_BATCH,
                                 .place = replica->place,
                                 .first_seq = in->rows[0].seq,
                                 .record_count = count,
                                 .records = buf_view(&replicator->scratch)};
    struct bytes encoded = wire_encode(&batch, &replicator->arena);
    for (uint32_t i = 0; i < member_count; i++) {
        struct peer *peer = members[i]->peer;
        struct replicator_effect *send = effect(replicator, REPLICATOR_SEND);
        send->peer = peer->region;
        send->outbound = true;
        send->bytes = encoded;
        peer->out.sent_bytes += batch.records.len;
        members[i]->sent = in->rows[count - 1].seq;
        if (members[i]->sent < replica_last(replica))
            member_ready(members[i]);
    }
}

void outbound_rows(struct read *read, const struct replicator_input *in)
{
    if (!read->replica)
        return;
    struct member *members[VV_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < read->member_count; i++) {
        struct member *member = read->members[i];
        if (!member)
            continue;
        member_forget_read(member);
        members[count++] = member;
    }
    if (count == 0)
        return;
    if (read->snapshot)
        snapshot_rows(members[0], in);
    else
        log_rows(read->replica, members, count, read->from, in);
}

void outbound_committed(struct replica *replica, uint64_t before)
{
    uint64_t last = replica_last(replica);
    for (uint32_t i = 0; i < replica->member_count; i++) {
        struct member *member = replica->members[i];
        if (acked(member) >= before)
            member->acked_ns = replica->replicator->mono_ns;
        member_pending_update(member);
        if (member_state(member) == MEMBER_LOG)
            member_ready(member);
        if (member_state(member) == MEMBER_AHEAD && last > member->sent)
            member_ahead_ends(member);
    }
}

/* ---- Timers and the end of the step ---- */

static void send_tables(struct peer *peer)
{
    struct bytes rest = buf_view(&peer->replicator->tables);
    uint64_t part_max = peer->replicator->config.frame_bytes_max - FRAME_OVERHEAD;
    peer->out.tables_due = false;
    struct wire_message message = {.kind = WIRE_TABLES};
    do {
        size_t len = rest.len < part_max ? rest.len : (size_t)part_max;
        check(bytes_take(&rest, len, &message.part));
        message.more = rest.len > 0;
        peer_send(peer, true, &message);
    } while (message.more);
}

static void heartbeat(struct peer *peer)
{
    struct replicator *replicator = peer->replicator;
    struct wire_message message = {.kind = WIRE_HEARTBEAT,
                                   .promise = replicator->hlc_now,
                                   .sent_bytes = peer->out.sent_bytes,
                                   .tables_crc = replicator->tables_crc};
    message.position_count = list_length(&peer->out.pending, POSITIONS_MAX + 1);
    if (message.position_count > POSITIONS_MAX) {
        message.position_count = POSITIONS_MAX;
        message.partial = true;
    }
    message.positions =
        arena_array(&replicator->arena, struct wire_position, message.position_count);
    uint32_t i = 0;
    list_each(link, spare, &peer->out.pending)
    {
        if (i == message.position_count)
            break;
        struct member *member = container_of(link, struct member, pending);
        struct wire_position *position = &message.positions[i++];
        enum member_state state = member_state(member);
        position->place = member->replica->place;
        position->stamped = member->replica->stamped;
        position->sent = state == MEMBER_LOG ? member->sent : 0;
        if (state == MEMBER_SNAPSHOT_OFFERED || state == MEMBER_SNAPSHOT) {
            position->snapshot_id = member->snapshot_id;
            position->snapshot_chunks = member->snapshot_chunks;
        }
        if (member->announce) {
            member->announce = false;
            member_pending_update(member);
        }
    }
    peer_send(peer, true, &message);
}

void outbound_timers(struct peer *peer)
{
    struct replicator *replicator = peer->replicator;
    struct outbound *out = &peer->out;
    if (!out->up)
        return;
    uint64_t now = replicator->mono_ns;
    if (now - out->heard_ns >= ms_to_ns(replicator->config.silence_ms_max)) {
        peer_close(peer, true, "silence");
        return;
    }
    if (now >= out->offer_ns) {
        out->offer_ns = now + ms_to_ns(REPEAT_MS);
        list_each(link, spare, &out->waiting)
        {
            struct member *member = container_of(link, struct member, waiting);
            list_add_once(&out->offers, &member->offer);
        }
    }
    if (now >= out->beat_ns) {
        out->beat_ns = now + ms_to_ns(replicator->config.heartbeat_ms);
        if (out->tables_due)
            send_tables(peer); /* the heartbeat tells their checksum */
        heartbeat(peer);
    }
}

static void send_offers(struct peer *peer)
{
    struct wire_message message = {.kind = WIRE_OFFER};
    uint32_t count = list_length(&peer->out.offers, POSITIONS_MAX);
    message.positions = arena_array(&peer->replicator->arena, struct wire_position, count);
    for (struct list *link; (link = list_take(&peer->out.offers));) {
        struct member *member = container_of(link, struct member, offer);
        if (member_state(member) == MEMBER_SNAPSHOT_OFFERED) {
            snapshot_send_offer(member);
            continue;
        }
        struct wire_position *position = &message.positions[message.position_count++];
        position->place = member->replica->place;
        position->round = member->asked;
        if (message.position_count == count) {
            peer_send(peer, true, &message);
            message.position_count = 0;
        }
    }
    if (message.position_count)
        peer_send(peer, true, &message);
}

/* Whether one more batch may be read. A window below a batch still lets out one at a time. */
static bool window_has_room(const struct peer *peer)
{
    const struct outbound *out = &peer->out;
    uint64_t window = peer->replicator->config.window_bytes_max;
    if (out->window_bytes < window)
        window = out->window_bytes;
    uint64_t flying =
        out->sent_bytes > out->consumed_bytes ? out->sent_bytes - out->consumed_bytes : 0;
    return flying + out->reserved_bytes < window;
}

void outbound_flush(struct peer *peer)
{
    struct outbound *out = &peer->out;
    if (!out->up)
        return;
    if (out->tables_due)
        send_tables(peer);
    while (out->greeted && !list_empty(&out->ready) && window_has_room(peer) &&
           peer->replicator->free_read_count > 0) {
        struct member *member = container_of(list_take(&out->ready), struct member, ready);
        if (member_state(member) == MEMBER_SNAPSHOT)
            snapshot_read(member);
        else
            log_read(member);
    }
    /* Last, since a look at the log may have ended in an offer. */
    if (!list_empty(&out->offers))
        send_offers(peer);
}
