/* SPDX-License-Identifier: Apache-2.0 */
/* The observer: keeps the one committed log, as the first member to commit an entry shows it, and
 * holds every member against it after every event. By the numbers of the protocol's invariants:
 *
 *    1 one leader a term                      8 two durable copies of what is committed
 *    4 a new leader has all that is committed 9 the witness drops only what both data members have
 *    5 members apply the same, and their      10 and what a follower commits by itself likewise
 *      items are equal at an equal index      12 one by one, from where the stored items stand
 *    6 terms, commits and votes only grow     13 a proposal is one entry
 *    7 nothing committed is cut               14 what was refused for good never happens
 *   16 who does not count casts no vote
 *
 * 2 and 3 follow from 4, 5 and 7 being checked at every commit. That strong reads are fresh (11),
 * and conditions evaluated on what was committed before, is judged on the clients' history. Beyond
 * those: a member that hears nobody stays in its term, and leads no more. */

#include "chaos/sim/consensus_world.h"

#include "witness/consensus_wire.h"

void ghost_deinit(struct ghost_log *ghost)
{
    free(ghost->at);
    free(ghost->leaders);
    free(ghost->fates);
}

static unsigned long long number(uint64_t value)
{
    return (unsigned long long)value;
}

static uint8_t *grown(uint8_t *at, uint64_t *cap, uint64_t index)
{
    if (index < *cap)
        return at;
    uint64_t wanted = 2 * index + 64;
    at = xrealloc(at, wanted);
    memset(at + *cap, 0, wanted - *cap);
    *cap = wanted;
    return at;
}

void ghost_fate(struct world *world, uint64_t name, uint8_t fate)
{
    struct ghost_log *ghost = &world->ghost;
    ghost->fates = grown(ghost->fates, &ghost->fates_cap, name);
    if (ghost->fates[name] == FATE_COMMITTED && fate == FATE_COMMITTED)
        violate(world, "one proposal became two entries", "call %llu", number(name));
    else if (ghost->fates[name] && ghost->fates[name] != fate)
        violate(world, "what was refused for good was committed", "call %llu", number(name));
    ghost->fates[name] = fate;
}

/* ---- Commits ---- */

static bool holds(const struct world *world, const struct member *member, uint64_t index,
                  uint64_t term)
{
    const struct disk *disk = &member->disk;
    if (index <= disk->base_index)
        return true;
    if (is_data(world, member->index) && index <= disk->items_index)
        return true;
    return disk_has(disk, index, term);
}

static void check_copies(struct world *world, const struct member *by, uint64_t index,
                         uint64_t term)
{
    int copies = 0;
    for (int i = 0; i < MEMBERS; i++)
        copies += holds(world, &world->members[i], index, term);
    /* With a disk harmed in this run, the copy that was counted may be the one that was harmed. */
    if (copies < 2 - world->ghost.disks_harmed)
        violate(world, "a committed entry has too few durable copies",
                "member %u commits %llu of term %llu with %d", by->index, number(index),
                number(term), copies);
}

static void ghost_add(struct world *world, struct member *member,
                      const struct consensus_entry *entry, uint64_t commit_term)
{
    struct ghost_log *ghost = &world->ghost;
    if (ghost->count == ghost->cap) {
        ghost->cap = ghost->cap ? ghost->cap * 2 : 256;
        ghost->at = xrealloc(ghost->at, ghost->cap * sizeof(*ghost->at));
    }
    struct ghost_entry *added = &ghost->at[ghost->count++];
    *added = (struct ghost_entry){.term = entry->term,
                                  .incarnation = entry->incarnation,
                                  .seq = entry->seq,
                                  .commit_term = commit_term,
                                  .kind = entry->kind,
                                  .origin = entry->origin};
    if (ghost->count > 1)
        added->items = added[-1].items;
    check_copies(world, member, entry->index, entry->term);
    if (entry->kind != CONSENSUS_WRITE)
        return;
    check(entry->payload.len == sizeof(added->payload));
    memcpy(&added->payload, entry->payload.at, sizeof(added->payload));
    struct payload right;
    if (!items_evaluate(&added->items, &added->payload.call, &right) ||
        memcmp(&right, &added->payload, sizeof(right)) != 0)
        violate(world, "a write was evaluated on other items than those before it",
                "entry %llu, call %llu", number(entry->index), number(added->payload.call.name));
    items_apply(&added->items, &added->payload, entry->index, entry->origin);
    ghost_fate(world, added->payload.call.name, FATE_COMMITTED);
}

static void check_entry(struct world *world, struct member *member,
                        const struct consensus_entry *entry)
{
    const struct ghost_entry *known = &world->ghost.at[entry->index - 1];
    bool same = known->term == entry->term && known->kind == entry->kind &&
                known->origin == entry->origin && known->seq == entry->seq &&
                known->incarnation == entry->incarnation;
    if (same && entry->kind == CONSENSUS_WRITE)
        same = memcmp(&known->payload, entry->payload.at, sizeof(known->payload)) == 0;
    if (!same)
        violate(world, "two members committed different entries at one index",
                "member %u: %llu of term %llu, not %llu", member->index, number(entry->index),
                number(entry->term), number(known->term));
}

static void see_commits(struct world *world, struct member *member,
                        const struct consensus_status *now)
{
    for (uint64_t i = member->seen.commit + 1; i <= now->commit; i++) {
        struct consensus_entry entry;
        /* What was committed and cut in one step is still on the disk. */
        const struct disk *disk = &member->disk;
        bool cut = i == world->ghost.count + 1 && i > disk->base_index && i <= disk_last(disk);
        if (cut)
            entry = disk->entries[i - disk->base_index - 1].entry;
        if (!consensus_entry_at(member->core, i, &entry) && !cut) {
            if (i > world->ghost.count)
                violate(world, "a snapshot holds what nobody committed", "member %u: %llu",
                        member->index, number(i));
            continue;
        }
        if (i == world->ghost.count + 1)
            SOMETIMES_IF(&world->sim, ORIGIN_FIRST,
                         entry.kind == CONSENSUS_WRITE && entry.origin == member->index &&
                             now->role != CONSENSUS_LEADER);
        if (i == world->ghost.count + 1)
            ghost_add(world, member, &entry, now->term);
        else if (i <= world->ghost.count)
            check_entry(world, member, &entry);
        else
            violate(world, "a commit leaves a gap", "member %u: %llu after %llu", member->index,
                    number(i), number(world->ghost.count));
    }
}

void ghost_applied(struct world *world, struct member *member)
{
    const struct ghost_log *ghost = &world->ghost;
    /* The step that commits is seen after its effects: what is not known yet is checked later. */
    if (member->applied == 0 || member->applied > ghost->count)
        return;
    if (memcmp(&ghost->at[member->applied - 1].items, &member->items, sizeof(member->items)) != 0)
        violate(world, "items differ at an equal index", "member %u at %llu", member->index,
                number(member->applied));
}

/* ---- Leaders ---- */

static void see_leader(struct world *world, struct member *member,
                       const struct consensus_status *now)
{
    struct ghost_log *ghost = &world->ghost;
    ghost->leaders = grown(ghost->leaders, &ghost->terms_cap, now->term);
    uint8_t known = ghost->leaders[now->term];
    if (known && known != member->index + 1)
        violate(world, "two leaders in one term", "term %llu: %u and %u", number(now->term),
                known - 1, member->index);
    ghost->leaders[now->term] = (uint8_t)(member->index + 1);
    for (uint64_t i = 1; i <= ghost->count; i++) {
        uint64_t term;
        /* A leader that comes late, after one of a later term, need not have what that one
         * committed. */
        if (i < now->base || i == 0 || ghost->at[i - 1].commit_term >= now->term)
            continue;
        if (!consensus_term_at(member->core, i, &term) || term != ghost->at[i - 1].term) {
            violate(world, "a new leader lacks what is committed",
                    "member %u, term %llu, entry %llu of term %llu", member->index,
                    number(now->term), number(i), number(ghost->at[i - 1].term));
            return;
        }
    }
}

/* ---- After every event ---- */

void ghost_step(struct world *world, struct member *member)
{
    struct consensus_status now = consensus_status(member->core);
    struct consensus_status *seen = &member->seen;
    if (now.term < seen->term || now.commit < seen->commit || now.applied < seen->applied)
        violate(world, "a term, commit or applied index went back", "member %u", member->index);
    if (now.role == CONSENSUS_LEADER && (seen->role != CONSENSUS_LEADER || seen->term != now.term))
        see_leader(world, member, &now);
    see_commits(world, member, &now);
    if (now.applied != seen->applied)
        ghost_applied(world, member);
    world->verdict->quiet += now.quiet && !seen->quiet;
    SOMETIMES_IF(&world->sim, LOG_FULL, now.log_full);
    SOMETIMES_IF(&world->sim, WITNESS_TRIM,
                 !is_data(world, member->index) && seen->base > 0 && now.base > seen->base);
    *seen = now;
}

void ghost_frame(struct world *world, struct member *member, struct bytes frame)
{
    enum consensus_standing standing = consensus_status(member->core).standing;
    if (standing == CONSENSUS_FULL)
        return;
    struct consensus_message m;
    arena_reset(&world->arena);
    check(consensus_decode(frame, 1 << 20, &world->arena, &m));
    if ((m.kind == MESSAGE_VOTE_RESPONSE || m.kind == MESSAGE_PRE_VOTE_RESPONSE) && m.granted)
        violate(world, "a member that does not count cast a vote", "member %u", member->index);
}

/* A durable write of this member was just done; before: the hard state that it replaced. */
void ghost_write(struct world *world, struct member *member, const struct consensus_hard *before)
{
    const struct disk *disk = &member->disk;
    if (before && before->incarnation == disk->hard.incarnation) {
        bool changed = before->term == disk->hard.term && before->voted_for != CONSENSUS_NOBODY &&
                       before->voted_for != disk->hard.voted_for;
        if (changed || disk->hard.term < before->term)
            violate(world, "a vote was taken back", "member %u term %llu", member->index,
                    number(disk->hard.term));
    }
    if (is_data(world, member->index))
        return;
    for (int i = 0; i < MEMBERS; i++) {
        const struct member *other = &world->members[i];
        const struct disk *there = &other->disk;
        uint64_t last =
            disk_last(there) > there->items_index ? disk_last(there) : there->items_index;
        if (is_data(world, other->index) && there->found &&
            there->hard.standing == CONSENSUS_FULL && !there->damaged && last < disk->base_index)
            violate(world, "the witness dropped what a data member lacks",
                    "it begins after %llu, member %u ends at %llu", number(disk->base_index), i,
                    number(last));
    }
}

/* Called from time to time: who hears nobody. */
void ghost_isolation(struct world *world)
{
    for (uint8_t i = 0; i < MEMBERS; i++) {
        struct member *member = &world->members[i];
        bool alone = member->core && world->sim.now_ns >= member->resume_ns;
        for (uint8_t peer = 0; peer < MEMBERS && alone; peer++)
            alone = peer == i || (world->cut[peer][i] && world->cut[i][peer]);
        if (!alone) {
            member->isolated_since = 0;
            continue;
        }
        struct consensus_status now = consensus_status(member->core);
        if (!member->isolated_since) {
            member->isolated_since = world->sim.now_ns;
            member->isolated_term = now.term;
            continue;
        }
        uint64_t since = world->sim.now_ns - member->isolated_since;
        if (now.term > member->isolated_term + 1)
            violate(world, "a member that hears nobody moves its term", "member %u: %llu to %llu",
                    i, number(member->isolated_term), number(now.term));
        if (since > 15 * world->config.election_ns && now.role == CONSENSUS_LEADER && !now.quiet)
            violate(world, "a member that hears nobody leads", "member %u", i);
    }
}
