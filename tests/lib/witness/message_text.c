/* SPDX-License-Identifier: Apache-2.0 */
/* Only what tells one message of a kind from another is said. */

#include "tests/lib/witness/message_text.h"

#define u(x) ((unsigned long long)(x))

static void print_append(const struct consensus_message *m, struct buf *to)
{
    buf_printf(to, " %llu.%llu", u(m->prev_index), u(m->prev_term));
    for (uint32_t i = 0; i < m->entry_count; i++)
        buf_printf(to, " +%.*s", (int)(m->entries[i].payload.len ? m->entries[i].payload.len : 4),
                   m->entries[i].payload.len ? (const char *)m->entries[i].payload.at : "noop");
    buf_printf(to, " commit %llu durable %llu", u(m->commit), u(m->leader_durable));
    if (m->all_durable)
        buf_printf(to, " everywhere %llu", u(m->all_durable));
    if (m->rejoin_index)
        buf_printf(to, " rejoin %llu", u(m->rejoin_index));
    buf_printf(to, " round %llu%s", u(m->round), m->quiesce ? " quiesce" : "");
}

void message_print(const struct consensus_message *m, struct buf *to)
{
    buf_printf(to, "%c -> %c term %llu %s", 'a' + m->source, 'a' + m->destination, u(m->term),
               consensus_message_name(m->kind));
    if (m->standing != CONSENSUS_FULL)
        buf_append_text(to,
                        m->standing == CONSENSUS_RECOVERING ? " (recovering)" : " (rebuilding)");
    if (m->kind == MESSAGE_APPEND)
        print_append(m, to);
    if (m->kind == MESSAGE_APPEND_RESPONSE && m->ok)
        buf_printf(to, " durable %llu of %llu round %llu%s", u(m->durable), u(m->received),
                   u(m->round), m->quiesced ? " quiesced" : "");
    if (m->kind == MESSAGE_APPEND_RESPONSE && !m->ok)
        buf_printf(to, " no: before %llu, term %llu", u(m->conflict_index), u(m->conflict_term));
    if (m->kind == MESSAGE_VOTE || m->kind == MESSAGE_PRE_VOTE)
        buf_printf(to, " last %llu.%llu%s", u(m->last_index), u(m->last_term),
                   m->transfer ? " transfer" : "");
    if (m->kind == MESSAGE_VOTE_RESPONSE || m->kind == MESSAGE_PRE_VOTE_RESPONSE)
        buf_append_text(to, m->granted ? " yes" : " no");
    if (m->kind == MESSAGE_PROPOSE)
        buf_printf(to, " %.*s", (int)m->bytes.len, m->bytes.at);
    if (m->kind == MESSAGE_PROPOSE_RESPONSE) {
        static const char *const names[] = {"appended", "failed", "conflict", "refused", "busy"};
        buf_printf(to, " %s %llu", names[m->outcome], u(m->index));
    }
    if (m->kind == MESSAGE_READ_INDEX_RESPONSE)
        buf_printf(to, m->refused ? " refused" : " %llu", u(m->index));
    if (m->kind == MESSAGE_SNAPSHOT)
        buf_printf(to, " %llu.%llu %zu bytes%s", u(m->index), u(m->index_term), m->bytes.len,
                   m->last ? " last" : "");
    if (m->kind == MESSAGE_SNAPSHOT_RESPONSE)
        buf_printf(to, " %llu%s", u(m->index), m->installed ? " installed" : "");
    buf_printf(to, "\n");
}
