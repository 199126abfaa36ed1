/* SPDX-License-Identifier: Apache-2.0 */
/* See sim_log.h. Messages are named by decoding them as their receiver will. */

#include "chaos/sim/sim_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/arena.h"
#include "conflict/base/check.h"
#include "replicator/replicator_wire.h"
#include "witness/consensus_wire.h"
#include "witness/relay.h"

enum { DECODE_BYTES_MAX = 16 << 20 };

void sim_log_init(struct sim_log *log, uint64_t until_ns)
{
    *log = (struct sim_log){.until_ns = until_ns, .at = xcalloc(SIM_LOG_MAX, sizeof(*log->at))};
}

void sim_log_deinit(struct sim_log *log)
{
    free(log->at);
    *log = (struct sim_log){0};
}

static struct sim_log_entry *add(struct sim_log *log)
{
    struct sim_log_entry *entry = &log->at[log->count++ % SIM_LOG_MAX];
    *entry = (struct sim_log_entry){0};
    return entry;
}

void sim_log_message(struct sim_log *log, uint64_t at_ns, uint64_t to_ns, bool lost, uint32_t from,
                     uint32_t to, const char *text)
{
    if (!log || at_ns > log->until_ns)
        return;
    struct sim_log_entry *entry = add(log);
    entry->at_ns = at_ns;
    entry->to_ns = to_ns;
    entry->kind = lost ? SIM_LOG_LOST : SIM_LOG_SENT;
    entry->from = (uint8_t)from;
    entry->to = (uint8_t)to;
    snprintf(entry->text, sizeof(entry->text), "%s", text);
}

void sim_log_mark(struct sim_log *log, uint64_t at_ns, uint32_t node, const char *format, ...)
{
    if (!log || at_ns > log->until_ns)
        return;
    struct sim_log_entry *entry = add(log);
    entry->at_ns = entry->to_ns = at_ns;
    entry->kind = SIM_LOG_MARK;
    entry->from = entry->to = (uint8_t)node;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(entry->text, sizeof(entry->text), format, arguments);
    va_end(arguments);
}

/* ---- Names ---- */

void sim_log_name_stream(struct bytes message, char ret[SIM_LOG_TEXT_MAX])
{
    static const char *const names[] = {
        [WIRE_HELLO] = "Hello",
        [WIRE_TABLES] = "Tables",
        [WIRE_OFFER] = "Offer",
        [WIRE_RESUME] = "Resume",
        [WIRE_BATCH] = "Batch",
        [WIRE_ACK] = "Ack",
        [WIRE_HEARTBEAT] = "Heartbeat",
        [WIRE_SNAPSHOT_OFFER] = "SnapshotOffer",
        [WIRE_SNAPSHOT_ACCEPT] = "SnapshotAccept",
        [WIRE_SNAPSHOT_CHUNK] = "SnapshotChunk",
    };
    struct arena arena;
    struct wire_message m;
    arena_init(&arena);
    if (!wire_decode(message, DECODE_BYTES_MAX, &arena, &m) || (unsigned)m.kind >= array_len(names))
        snprintf(ret, SIM_LOG_TEXT_MAX, "?");
    else if (m.kind == WIRE_BATCH)
        snprintf(ret, SIM_LOG_TEXT_MAX, "Batch p%u %u records", m.place.partition, m.record_count);
    else
        snprintf(ret, SIM_LOG_TEXT_MAX, "%s", names[m.kind]);
    arena_deinit(&arena);
}

static void name_consensus(const struct consensus_message *m, char ret[SIM_LOG_TEXT_MAX])
{
    const char *name = consensus_message_name(m->kind);
    unsigned long long term = m->term, index = m->index, commit = m->commit;
    switch (m->kind) {
    case MESSAGE_APPEND:
        snprintf(ret, SIM_LOG_TEXT_MAX, "%s t%llu %llu+%u c%llu", name, term,
                 (unsigned long long)m->prev_index, m->entry_count, commit);
        break;
    case MESSAGE_APPEND_RESPONSE:
        snprintf(ret, SIM_LOG_TEXT_MAX, "%s t%llu %s d%llu", "AppendResp", term,
                 m->ok ? "ok" : "no", (unsigned long long)m->durable);
        break;
    case MESSAGE_VOTE_RESPONSE:
    case MESSAGE_PRE_VOTE_RESPONSE:
        snprintf(ret, SIM_LOG_TEXT_MAX, "%s t%llu %s",
                 m->kind == MESSAGE_VOTE_RESPONSE ? "VoteResp" : "PreVoteResp", term,
                 m->granted ? "yes" : "no");
        break;
    case MESSAGE_READ_INDEX_RESPONSE:
    case MESSAGE_PROPOSE_RESPONSE:
    case MESSAGE_SNAPSHOT:
    case MESSAGE_SNAPSHOT_RESPONSE:
        snprintf(ret, SIM_LOG_TEXT_MAX, "%s t%llu i%llu", name, term, index);
        break;
    case MESSAGE_PRE_VOTE:
    case MESSAGE_VOTE:
    case MESSAGE_PROPOSE:
    case MESSAGE_READ_INDEX:
    case MESSAGE_TIMEOUT_NOW:
        snprintf(ret, SIM_LOG_TEXT_MAX, "%s t%llu", name, term);
        break;
    }
}

void sim_log_name_envelope(struct bytes envelope, char ret[SIM_LOG_TEXT_MAX])
{
    struct arena arena;
    struct consensus_message m;
    arena_init(&arena);
    if (envelope.len < RELAY_HEADER_LEN ||
        !consensus_decode(
            bytes_make(envelope.at + RELAY_HEADER_LEN, envelope.len - RELAY_HEADER_LEN),
            DECODE_BYTES_MAX, &arena, &m))
        snprintf(ret, SIM_LOG_TEXT_MAX, "?");
    else
        name_consensus(&m, ret);
    arena_deinit(&arena);
}

void sim_log_name_groups(struct bytes message, char ret[SIM_LOG_TEXT_MAX])
{
    uint32_t len, count = 0;
    struct bytes envelope, first = BYTES_NONE;
    while (bytes_take_be32(&message, &len) && bytes_take(&message, len, &envelope))
        if (count++ == 0)
            first = envelope;
    sim_log_name_envelope(first, ret);
    size_t used = strlen(ret);
    if (count > 1)
        snprintf(ret + used, SIM_LOG_TEXT_MAX - used, " +%u", count - 1);
}
