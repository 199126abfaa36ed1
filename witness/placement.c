/* SPDX-License-Identifier: Apache-2.0 */
/* When a leader should not lead any more: nobody hears it, its disk stalls, another Region proposes
 * most, or it is only the witness, keeping house until a data member has caught up. A hand-over is
 * TimeoutNow to a member that has the whole log (thesis, 3.10); until it comes to pass, or is given
 * up, no new proposal is evaluated, so that the member stays caught up. */

#include "witness/consensus_internal.h"

/* Another Region must propose this many times as much, and at least so often, in two windows
 * running. */
enum { FAVOUR_TIMES = 2, FAVOUR_MIN = 16 };

bool consensus_quorum_heard(const struct consensus *c)
{
    if (c->quiet)
        return true;
    each_peer(c, peer)
    {
        if (c->now - c->peers[peer].heard_ns < consensus_patience(c))
            return true;
    }
    return false;
}

static bool can_lead(const struct consensus *c, uint8_t member)
{
    return member != c->config.self && c->config.kinds[member] == CONSENSUS_DATA &&
           c->peers[member].boot && c->peers[member].standing == CONSENSUS_FULL &&
           c->now - c->peers[member].heard_ns < consensus_patience(c);
}

void consensus_transfer_begin(struct consensus *c, uint8_t to)
{
    if (c->transfer_to != CONSENSUS_NOBODY || !can_lead(c, to))
        return;
    consensus_trace(c, TRACE_INFO, "hands over to %u", to);
    c->transfer_to = to;
    c->transfer_told = false;
    c->transfer_until = c->now + 2 * consensus_patience(c);
    consensus_transfer_try(c);
}

void consensus_transfer_try(struct consensus *c)
{
    if (c->transfer_to == CONSENSUS_NOBODY || c->transfer_told ||
        c->peers[c->transfer_to].match != last_index(c))
        return;
    struct consensus_message m = consensus_message_to(c, MESSAGE_TIMEOUT_NOW, c->transfer_to);
    consensus_send(c, &m);
    c->transfer_told = true;
}

void consensus_caretaker_try(struct consensus *c)
{
    if (!is_witness(c))
        return;
    for (uint8_t i = 0; i < CONSENSUS_MEMBERS; i++)
        if (can_lead(c, i) && c->peers[i].match == last_index(c))
            consensus_transfer_begin(c, i);
}

/* Writes that take longer than half an election: another disk may be faster. */
static void stall_timeout(struct consensus *c)
{
    c->stall_at = c->now + consensus_patience(c) / 2;
    if (!c->writing_count || c->now - c->writing[c->writing_head].at_ns < consensus_patience(c) / 2)
        return;
    uint8_t best = CONSENSUS_NOBODY;
    each_peer(c, i)
    {
        if (can_lead(c, i) &&
            (best == CONSENSUS_NOBODY || c->peers[i].match > c->peers[best].match))
            best = i;
    }
    if (best != CONSENSUS_NOBODY)
        consensus_transfer_begin(c, best);
}

static void favour_timeout(struct consensus *c)
{
    c->placement_at = c->now + c->config.placement_ns;
    uint64_t own = c->origins[c->config.self].proposed;
    uint8_t most = c->config.self;
    for (uint8_t i = 0; i < CONSENSUS_MEMBERS; i++)
        if (c->origins[i].proposed > c->origins[most].proposed)
            most = i;
    bool clear = most != c->config.self && c->origins[most].proposed >= FAVOUR_MIN &&
                 c->origins[most].proposed >= FAVOUR_TIMES * own;
    for (uint8_t i = 0; i < CONSENSUS_MEMBERS; i++)
        c->origins[i].proposed = 0;
    uint8_t before = c->placement_favourite;
    c->placement_favourite = clear ? most : CONSENSUS_NOBODY;
    if (clear && before == most)
        consensus_transfer_begin(c, most);
}

void consensus_placement_timeout(struct consensus *c)
{
    if (c->transfer_to != CONSENSUS_NOBODY && c->now >= c->transfer_until)
        c->transfer_to = CONSENSUS_NOBODY;
    if (c->now >= c->stall_at)
        stall_timeout(c);
    if (c->config.placement_ns && c->now >= c->placement_at)
        favour_timeout(c);
}
