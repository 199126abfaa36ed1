/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a strong table: how a regional table becomes one, and how one of its Regions gets
 * it back. Both happen whole, at the word of one Region, and go on after any crash, as each step
 * looks only at what is written.
 *
 *   made        S: checks everywhere; then setup, members CREATING, own first rows, in one batch
 *               others: are told by S, make the table and first rows, answer with an incarnation
 *               S: knows all three, tells all; the groups run; leaders serve; members ACTIVE
 *   dissolved   K: checks everywhere; then dissolver = K, and all are told
 *               K: has every group's log sealed by a last entry that names K
 *               K: all of it is in its store; then ended, the others DELETING; they drop theirs
 *
 * The seal decides, not the register: if two Regions dissolve at once, the one that the seal of
 * partition 0 names keeps the table, and whoever sees that writes it down.
 *
 * An incarnation reaches other Regions by way of S and no other, until the groups are formed. So a
 * member can have voted only after S knew its disk durably, and S will never ask that member to
 * begin with first rows again: a disk that is lost later has votes to forget, and must rebuild. */

#include "conflict/base/plant.h"
#include "conflict/region_id.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

/* ---- Taking part ---- */

uint64_t strong_incarnation_after(const struct region *region, uint64_t known)
{
    return region->wall_ms > known ? region->wall_ms : known + 1;
}

bool strong_take_part(const struct region *region, struct description *d, bool *ret_first)
{
    uint8_t own = strong_member_of(&d->strong, region->config.region);
    if (own >= STRONG_MEMBERS)
        return false;
    uint64_t *incarnation = &d->strong.incarnations[own];
    if (*incarnation >= STRONG_INCARNATION_MAX)
        return false;
    *ret_first = *incarnation == 0 || planted(PLANT_FIRST_AGAIN);
    *incarnation = strong_incarnation_after(region, *incarnation);
    d->table.stream = STREAM_NONE; /* each replica's own business, and off at first */
    return true;
}

bool strong_setup_equal(const struct strong_setup *a, const struct strong_setup *b)
{
    bool equal = a->epoch == b->epoch && a->witness == b->witness && a->ended == b->ended &&
                 a->dissolver == b->dissolver && stamp_compare(a->dissolved, b->dissolved) == 0;
    for (int i = 0; i < STRONG_MEMBERS; i++)
        equal = equal && a->regions[i] == b->regions[i] && a->incarnations[i] == b->incarnations[i];
    return equal;
}

/* Whether a setup can stand beside these members, as a description must. */
static bool fits(struct description *d, const struct strong_setup *setup)
{
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (strong_setup_runs(setup) && !group_member(d, setup->regions[i]))
            return false;
    }
    return true;
}

static bool same_members(const struct strong_setup *a, const struct strong_setup *b)
{
    return memcmp(a->regions, b->regions, sizeof(a->regions)) == 0 && a->witness == b->witness;
}

bool strong_merge(struct region *region, struct description *to, const struct description *from)
{
    struct strong_setup *ours = &to->strong;
    const struct strong_setup *theirs = &from->strong;
    if (from->grave || theirs->epoch < ours->epoch || theirs->epoch == 0)
        return false;
    bool newer = theirs->epoch > ours->epoch;
    if (!fits(to, theirs) || (!newer && !same_members(ours, theirs))) {
        trace_emit(&region->config.trace, TRACE_WARN, "strong setups disagree table=%s",
                   to->table.name);
        return false;
    }
    struct strong_setup before = *ours;
    if (newer)
        *ours = *theirs;
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (theirs->incarnations[i] > ours->incarnations[i])
            ours->incarnations[i] = theirs->incarnations[i];
    }
    if (stamp_compare(theirs->dissolved, ours->dissolved) > 0) {
        ours->dissolver = theirs->dissolver;
        ours->dissolved = theirs->dissolved;
    }
    ours->ended |= theirs->ended;
    return !strong_setup_equal(&before, ours);
}

void strong_censor(const struct region *region, struct description *d)
{
    uint8_t own = strong_member_of(&d->strong, region->config.region);
    if (strong_setup_runs(&d->strong) && own < STRONG_MEMBERS && !strong_formed(&d->strong))
        d->strong.incarnations[own] = 0;
}

/* ---- Step by step ---- */

void strong_set_dissolver(struct region *region, struct description *next, uint16_t dissolver)
{
    next->strong.dissolver = dissolver;
    next->strong.dissolved = group_stamp(region, next->strong.dissolved);
}

/* A number of our own log stands for all that came by way of the groups: should the table become
 * eventual, a new replica sees by it that there is something to be sent. */
static void number_items(struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++)
        table->partitions[i].meta.seq++;
}

void strong_take_over(struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        partition->seq_durable = partition->seq_reported = partition->meta.seq;
    }
}

/* All of it is in this Region's store, and nobody can add to it: the table is ours alone. */
static void end(struct region *region, struct table_state *table)
{
    struct change_op *change = change_new(table);
    struct description *next = &change->next;
    next->strong.ended = true;
    change->strong_last = true;
    number_items(table);
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (next->strong.regions[i] != region->config.region)
            group_set_member(region, next, next->strong.regions[i], MEMBER_DELETING);
    }
    trace_emit(&region->config.trace, TRACE_INFO, "strong table dissolved table=%s",
               table->d.table.name);
    change_write(region, change);
}

/* The seal has been given to somebody else than the register says. */
static void adopt_dissolver(struct region *region, struct table_state *table, uint16_t dissolver)
{
    struct change_op *change = change_new(table);
    strong_set_dissolver(region, &change->next, dissolver);
    change_write(region, change);
}

/* The members that are being made from here: all at once, when the groups serve. */
static void activate(struct region *region, struct table_state *table)
{
    struct change_op *change = NULL;
    if (!strong_ready(table))
        return;
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        const struct member *member = &table->d.members[i];
        if (member->state != MEMBER_CREATING || member->source != region->config.region)
            continue;
        if (!change)
            change = change_new(table);
        group_set_member(region, &change->next, member->region, MEMBER_ACTIVE);
    }
    if (!change)
        return;
    trace_emit(&region->config.trace, TRACE_INFO, "strong table active table=%s",
               table->d.table.name);
    change_write(region, change);
}

void strong_advance(struct region *region, struct table_state *table)
{
    const struct strong_setup *setup = &table->d.strong;
    uint16_t keeper = REGION_ID_NONE;
    enum strong_sealed sealed =
        strong_formed(setup) ? strong_sealed(table, &keeper) : STRONG_NOT_SEALED;
    bool ours = setup->dissolver == region->config.region;
    if (sealed == STRONG_SEALED_OTHER && keeper != setup->dissolver &&
        strong_member_of(setup, keeper) < STRONG_MEMBERS &&
        !strong_setup_has_witness(setup, keeper)) {
        adopt_dissolver(region, table, keeper);
        return;
    }
    if (sealed == STRONG_SEALED && ours) {
        end(region, table);
        return;
    }
    if (table->dirty)
        group_push(region, table, table->dirty);
    else
        activate(region, table);
    /* Last, as it may bring the next step with it. */
    if (ours && sealed == STRONG_NOT_SEALED && !table->changing)
        strong_seal(region, table);
}
