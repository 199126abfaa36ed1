/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a global table. What a Region knows of them is a set of registers, one per member
 * and one for the shared settings; in each the later stamp wins. So descriptions can be joined in
 * any order, any number of times, and all Regions end up with the same ones, whoever was down when
 * something happened.
 *
 *      state       set by
 *      CREATING    the source, which sends the snapshot; or the member, if it has lost its disk
 *      ACTIVE      the source, when all partitions have caught up
 *      DELETING    whoever deletes the replica
 *      REMOVED     the member itself, as it drops its table; it may be CREATING again later
 *
 * Adding R, at the Region that was asked (the source): 1. checks everywhere, nothing changed; 2. R
 * is CREATING here, durably: from now on it will happen, after any crash; 3. all other members are
 * told, and hold their logs for R; 4. R is told, and makes its table; 5. the snapshot flows, and
 * the other logs behind it; 6. all partitions have caught up: R is ACTIVE. Each step looks only at
 * the registers and at who has confirmed them, so it can be taken again.
 *
 * Members of a strong table have the same registers, but no log flows between them in this way: its
 * groups (strong.h) carry everything. group_strong.c takes their steps. */

#include "conflict/base/plant.h"
#include "conflict/region_id.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

struct member *group_member(struct description *d, uint16_t region)
{
    for (uint32_t i = 0; i < d->member_count; i++) {
        if (d->members[i].region == region)
            return &d->members[i];
    }
    return NULL;
}

struct stamp group_stamp(struct region *region, struct stamp after)
{
    uint64_t now = hlc_make(region->wall_ms, 0);
    return (struct stamp){now > after.time ? now : after.time + 1, region->config.region};
}

/* A member that comes back is the newest to have joined. */
static struct member *move_last(struct description *d, struct member *member)
{
    struct member moved = *member;
    uint32_t index = (uint32_t)(member - d->members);
    memmove(d->members + index, d->members + index + 1,
            sizeof(*d->members) * (d->member_count - index - 1));
    d->members[d->member_count - 1] = moved;
    return &d->members[d->member_count - 1];
}

void group_set_member(struct region *region, struct description *d, uint16_t member,
                      enum member_state state)
{
    struct member *at = group_member(d, member);
    if (!at) {
        check(d->member_count < VV_MAX);
        at = &d->members[d->member_count++];
        *at = (struct member){.region = member, .source = region->config.region};
    } else if (at->state == MEMBER_REMOVED && state != MEMBER_REMOVED) {
        at = move_last(d, at);
    }
    if (state == MEMBER_CREATING) {
        at->source = region->config.region;
        at->since_ms = region->wall_ms;
    }
    at->state = state;
    at->stamp = group_stamp(region, at->stamp);
}

static bool merge_member(struct description *to, const struct member *from)
{
    struct member *at = group_member(to, from->region);
    if (!at) {
        if (to->member_count == VV_MAX)
            return false;
        to->members[to->member_count++] = *from;
        return true;
    }
    if (stamp_compare(from->stamp, at->stamp) <= 0)
        return false;
    if (at->state == MEMBER_REMOVED && from->state != MEMBER_REMOVED)
        at = move_last(to, at);
    *at = *from;
    return true;
}

bool group_merge(struct region *region, struct description *to, const struct description *from)
{
    if (to->table.partition_count != from->table.partition_count ||
        memcmp(to->table.group_id, from->table.group_id, TABLE_ID_LEN) != 0) {
        trace_emit(&region->config.trace, TRACE_WARN, "table descriptions disagree table=%s",
                   to->table.name);
        return false;
    }
    bool changed = false;
    for (uint32_t i = 0; i < from->member_count; i++)
        changed |= merge_member(to, &from->members[i]);
    changed |= strong_merge(region, to, from);
    if (from->grave || stamp_compare(from->settings_stamp, to->settings_stamp) <= 0)
        return changed;
    /* Each member of a strong table has a stream of its own or none. */
    if (!strong_setup_runs(&to->strong)) {
        if (to->table.stream == STREAM_NONE && from->table.stream != STREAM_NONE)
            to->table.stream_wall_ms = region->wall_ms;
        to->table.stream = from->table.stream;
    }
    to->table.billing = from->table.billing;
    to->table.read_units = from->table.read_units;
    to->table.write_units = from->table.write_units;
    to->table.sse_enabled = from->table.sse_enabled;
    to->settings_stamp = from->settings_stamp;
    return true;
}

/* ---- What follows from the members ---- */

static enum replica_status replica_status(enum member_state state)
{
    switch (state) {
    case MEMBER_CREATING:
        return REPLICA_CREATING;
    case MEMBER_ACTIVE:
        return REPLICA_ACTIVE;
    case MEMBER_DELETING:
    case MEMBER_REMOVED:
        return REPLICA_DELETING;
    }
    unreachable();
}

/* Whether this Region is seeing a change of this member through. */
static bool in_charge(const struct region *region, const struct member *member)
{
    uint16_t own = region->config.region;
    return (member->state == MEMBER_CREATING && member->source == own) ||
           (member->state == MEMBER_DELETING && member->stamp.region == own);
}

uint32_t group_charges(const struct region *region, const struct table_state *table)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        uint32_t index = peer_index(region, table->d.members[i].region);
        if (index != VV_MAX && in_charge(region, &table->d.members[i]))
            mask |= (uint32_t)1 << index;
    }
    return mask;
}

static void show_member(struct table *shown, const struct strong_setup *strong,
                        const struct member *member)
{
    enum replica_status status = replica_status(member->state);
    if (strong_setup_runs(strong) && strong->dissolver != 0 && member->region != strong->dissolver)
        status = REPLICA_DELETING;
    if (strong_setup_has_witness(strong, member->region)) {
        shown->witness = member->region;
        shown->witness_status = status;
        return;
    }
    shown->replicas[shown->replica_count++] = (struct table_replica){member->region, status};
}

static enum table_mode mode_of(const struct region *region, const struct description *d)
{
    const struct strong_setup *strong = &d->strong;
    if (strong_setup_runs(strong))
        return TABLE_STRONG;
    /* It has been dissolved for us; those who are still to drop it get nothing any more. */
    if (strong->dissolver == region->config.region)
        return TABLE_REGIONAL;
    return d->table.replica_count > 0 ? TABLE_EVENTUAL : TABLE_REGIONAL;
}

static void derive(struct region *region, struct table_state *table)
{
    struct table *shown = &table->d.table;
    const struct strong_setup *strong = &table->d.strong;
    struct member *own = group_member(&table->d, region->config.region);
    bool dissolving = strong_setup_runs(strong) && strong->dissolver != 0;
    bool stays = strong->dissolver == region->config.region;
    shown->status = dissolving && stays ? TABLE_UPDATING : TABLE_ACTIVE;
    shown->replica_count = 0;
    shown->witness = 0;
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        const struct member *member = &table->d.members[i];
        if (member == own || member->state == MEMBER_REMOVED)
            continue;
        show_member(shown, strong, member);
        if (in_charge(region, member))
            shown->status = TABLE_UPDATING;
    }
    shown->mode = mode_of(region, &table->d);
    if (own && own->state == MEMBER_CREATING)
        shown->status = TABLE_CREATING;
    if (own &&
        (own->state == MEMBER_DELETING || own->state == MEMBER_REMOVED || (dissolving && !stays)))
        shown->status = TABLE_DELETING;
}

static void open_partitions(struct region *region, struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        if (partition->replica)
            continue;
        struct replica_state state = {
            .partition = i,
            .vv = partition->meta.vv,
            .log_first = partition->meta.log_first,
            .log_bytes = partition->meta.log_bytes,
            .epoch = version_epoch(partition->seq_durable),
            .partial = partition->meta.partial,
            .owner = partition,
        };
        /* An epoch without a write yet is no position. */
        if (partition->seq_durable > version_epoch_base(version_epoch(partition->seq_durable)))
            vv_raise(&state.vv, region->config.region, partition->seq_durable);
        memcpy(state.group_id, table->d.table.group_id, sizeof(state.group_id));
        partition->replica = replicator_open(region->replicator, &state);
        partition->seq_reported = partition->seq_durable;
        partition->log_bytes_fresh = 0;
        partition->caught_up = 0;
        /* Writes that were numbered before and are still on their way to the disk. */
        if (partition->meta.seq > partition->seq_durable)
            replica_note_stamped(partition->replica, partition->meta.seq);
        replica_note_tombstones(partition->replica, partition->meta.tombstones > 0);
    }
}

static void join_member(struct region *region, struct table_state *table,
                        const struct member *member, uint32_t index)
{
    bool wanted = member->state == MEMBER_CREATING || member->state == MEMBER_ACTIVE;
    bool anew = member->state == MEMBER_CREATING &&
                stamp_compare(table->joins[index].since, member->stamp) != 0;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        if (table->joins[index].joined && (!wanted || anew)) {
            replicator_remove_member(region->replicator, partition->replica, member->region);
            partition->caught_up &= ~((uint32_t)1 << index);
        }
        if (!wanted || (table->joins[index].joined && !anew))
            continue;
        replicator_add_member(region->replicator, partition->replica, member->region);
    }
    if (wanted && (!table->joins[index].joined || anew))
        table->joins[index].since = member->stamp;
    table->joins[index].joined = wanted;
}

/* The table's logs are no longer shared. */
static void close_partitions(struct region *region, struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        if (!partition->replica)
            continue;
        apply_abandon(region, partition);
        if (partition->collect)
            purge_abandon(partition->collect);
        list_remove(&partition->dirty);
        replicator_close(region->replicator, partition->replica);
        partition->replica = NULL;
        partition->caught_up = 0;
    }
    memset(table->joins, 0, sizeof(table->joins));
}

void group_close(struct region *region, struct table_state *table)
{
    close_partitions(region, table);
    strong_close(region, table);
}

/* Nobody else has the table: neither log nor tombstones are of use. */
static void forget_others(struct region *region, struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        partition->trim_to = partition->meta.seq;
        replicate_trim(region, partition);
        collect_all(region, partition);
    }
}

void group_settle(struct region *region, struct table_state *table)
{
    derive(region, table);
    strong_settle(region, table);
    if (table->d.table.mode == TABLE_STRONG) {
        close_partitions(region, table);
        return;
    }
    table_shed(region, table);
    if (table->d.table.mode == TABLE_REGIONAL) {
        close_partitions(region, table);
        forget_others(region, table);
        return;
    }
    open_partitions(region, table);
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        const struct member *member = &table->d.members[i];
        uint32_t index = peer_index(region, member->region);
        if (index != VV_MAX)
            join_member(region, table, member, index);
    }
    struct replicator_input wake = {.kind = REPLICATOR_TIMEOUT};
    replicate(region, &wake);
}

/* ---- Step by step ---- */

/* Whether another Region will create this member. One that has lost its own store meanwhile may
 * not: two that were to create each other would wait for ever. */
static bool left_to_another(const struct region *region, struct table_state *table,
                            const struct member *member)
{
    if (member->state != MEMBER_CREATING || member->source == region->config.region)
        return false;
    const struct member *source = group_member(&table->d, member->source);
    return source && (source->state == MEMBER_ACTIVE || planted(PLANT_SOURCE_LOST));
}

/* Members that are to have our description: not those that another Region has yet to create. */
static uint32_t audience(struct region *region, struct table_state *table)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        const struct member *member = &table->d.members[i];
        uint32_t index = peer_index(region, member->region);
        if (index != VV_MAX && member->state != MEMBER_REMOVED &&
            !left_to_another(region, table, member))
            mask |= (uint32_t)1 << index;
    }
    return mask;
}

void group_mark_dirty(struct region *region, struct table_state *table)
{
    table->dirty = audience(region, table);
    table->dirty_generation++;
    table->push_after_ns = 0;
}

void group_push(struct region *region, struct table_state *table, uint32_t mask)
{
    if (region->mono_ns < table->push_after_ns) {
        retry_at(region, table->push_after_ns);
        return;
    }
    for (uint32_t i = 0; i < region->config.peer_count; i++) {
        if ((mask & ~table->calling) >> i & 1)
            call_peer(region, region->config.peers[i], CALL_MERGE, table, &table->d, NULL);
    }
}

static bool all_caught_up(const struct table_state *table, uint32_t index)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        if (!(table->partitions[i].caught_up >> index & 1))
            return false;
    }
    return true;
}

/* One member that is joining from here. True: its turn is over, another change has begun. */
static bool advance_joining(struct region *region, struct table_state *table,
                            const struct member *member)
{
    uint32_t index = peer_index(region, member->region);
    if (index == VV_MAX)
        return false;
    uint32_t bit = (uint32_t)1 << index;
    if (table->dirty & ~bit) {
        group_push(region, table, table->dirty & ~bit); /* first those who must hold their logs */
    } else if (table->dirty & bit) {
        group_push(region, table, bit);
    } else if (all_caught_up(table, index)) {
        struct change_op *change = change_new(table);
        group_set_member(region, &change->next, member->region, MEMBER_ACTIVE);
        trace_emit(&region->config.trace, TRACE_INFO, "replica active table=%s region=%s",
                   table->d.table.name, region_id_name(member->region));
        change_write(region, change);
        return true;
    }
    return false;
}

static void leave(struct region *region, struct table_state *table)
{
    struct change_op *change = change_new(table);
    change->kind = CHANGE_DROP;
    change->next.dropped = true;
    group_set_member(region, &change->next, region->config.region, MEMBER_REMOVED);
    change_write(region, change);
}

void group_advance(struct region *region, struct table_state *table)
{
    if (!region->ready || table->changing || table->hidden || table->d.dropped)
        return;
    if (table->shed_wanted)
        table_erase(region, table);
    struct member *own = group_member(&table->d, region->config.region);
    if (!own)
        return;
    table->dirty &= audience(region, table);
    if (own->state == MEMBER_DELETING || own->state == MEMBER_REMOVED) {
        if (in_charge(region, own) && table->dirty)
            group_push(region, table, table->dirty); /* all shall know before the table is gone */
        else
            leave(region, table);
        return;
    }
    if (strong_setup_runs(&table->d.strong)) {
        strong_advance(region, table);
        return;
    }
    bool joining = false;
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        const struct member *member = &table->d.members[i];
        if (member == own || member->state != MEMBER_CREATING || !in_charge(region, member))
            continue;
        joining = true;
        if (advance_joining(region, table, member))
            return;
    }
    if (!joining && table->dirty)
        group_push(region, table, table->dirty);
}

void group_advance_all(struct region *region)
{
    /* A step may drop a table, which then leaves the list. */
    for (uint32_t i = region->table_count; i-- > 0;) {
        if (i < region->table_count)
            group_advance(region, region->tables[i]);
    }
}

void group_caught_up(struct region *region, struct partition *partition, uint16_t peer)
{
    uint32_t index = peer_index(region, peer);
    if (index == VV_MAX)
        return;
    partition->caught_up |= (uint32_t)1 << index;
    group_advance(region, partition->table);
}

void group_tell_peers(struct region *region)
{
    if (!region->tables_changed)
        return;
    region->tables_changed = false;
    cleanup(buf_deinit) struct buf list;
    buf_init(&list);
    for (uint32_t i = 0; i < region->table_count; i++) {
        struct table_state *table = region->tables[i];
        if (table->hidden || table->d.member_count == 0)
            continue;
        struct description said = table->d;
        strong_censor(region, &said);
        descriptions_append(&said, &list);
    }
    for (const struct list *link = region->graves.next; link != &region->graves; link = link->next)
        descriptions_append(&container_of(link, struct grave, link)->d, &list);
    replicator_set_tables(region->replicator, buf_view(&list));
    struct replicator_input wake = {.kind = REPLICATOR_TIMEOUT};
    replicate(region, &wake);
}
