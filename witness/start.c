/* SPDX-License-Identifier: Apache-2.0 */
/* From what was found durable to a member that may speak. What it finds may be less than it once
 * had: a log with an unreadable part, items ahead of the log, no disk at all; then it does not
 * count until it has been helped (follow.c). */

#include "witness/consensus_internal.h"

/* The items may be ahead of the log: a snapshot was installed and the crash came before the log
 * knew. */
static void start_items(struct consensus *c, const struct consensus_start *start)
{
    if (is_witness(c))
        return;
    c->emitted = c->applied = c->stable = start->applied_index;
    c->emitted_term = start->applied_term;
    if (start->applied_index < c->log.base_index) {
        consensus_trace(c, TRACE_ERROR, "items end at %llu, before the log begins: rebuilding",
                        (unsigned long long)start->applied_index);
        c->hard.standing = CONSENSUS_REBUILDING;
        consensus_restart_log(c, start->applied_index, start->applied_term, true);
    } else if (!consensus_log_has(&c->log, start->applied_index, start->applied_term)) {
        consensus_restart_log(c, start->applied_index, start->applied_term, true);
    }
    consensus_commit(c, start->applied_index);
}

static void start_standing(struct consensus *c, const struct consensus_start *start)
{
    if (start->damaged_upto > last_index(c))
        c->truncate_from = last_index(c) + 1;
    if (start->damaged_upto > last_index(c) && c->hard.standing != CONSENSUS_REBUILDING &&
        !planted(PLANT_DAMAGE_AS_TORN)) {
        c->hard.standing = CONSENSUS_RECOVERING;
        c->hard.recover_upto = max_u64(c->hard.recover_upto, start->damaged_upto);
    }
    if (c->hard.standing != CONSENSUS_FULL)
        consensus_trace(c, TRACE_WARN,
                        "%s: no votes and no acknowledgements until a leader has helped",
                        c->hard.standing == CONSENSUS_RECOVERING ? "part of the log was damaged"
                                                                 : "the disk is new");
}

void consensus_begin(struct consensus *c, const struct consensus_start *start)
{
    check(!c->started);
    c->started = true;
    if (start->found)
        c->hard = start->hard;
    else
        c->hard = (struct consensus_hard){
            .voted_for = CONSENSUS_NOBODY,
            .incarnation = start->incarnation,
            .standing = planted(PLANT_NEW_DISK_VOTES) ? CONSENSUS_FULL : CONSENSUS_REBUILDING};
    c->hard.boot++;
    c->hard_dirty = true;
    c->next_seq = c->next_nonce = c->hard.boot << 40;
    c->log.base_index = start->base_index;
    c->log.base_term = start->base_term;
    c->commit = start->base_index;
    for (uint32_t i = 0; i < start->entry_count; i++)
        consensus_log_append(&c->log, &start->entries[i]);
    c->durable = last_index(c);
    c->unwritten = last_index(c) + 1;
    check(last_term(c) <= c->hard.term || !start->found);
    c->base_dirty = true; /* the owner may have left out more than it had dropped */
    start_standing(c, start);
    start_items(c, start);
    consensus_election_reset(c);
}

struct consensus_hard consensus_hard_initial(uint64_t incarnation)
{
    return (struct consensus_hard){.voted_for = CONSENSUS_NOBODY, .incarnation = incarnation};
}
