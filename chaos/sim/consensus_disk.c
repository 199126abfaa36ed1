/* SPDX-License-Identifier: Apache-2.0 */
/* A log file, a hard state and stored items, of which a crash keeps what was synced, and a random
 * part of what was not: whole writes from the front, and perhaps some entries of the next. Damage
 * hits only what the disk itself records as durable: a broken end that no later write vouches for
 * cannot be told from a torn one (witness/README.md says what a real store does about it). */

#include "chaos/sim/consensus_world.h"

uint64_t disk_last(const struct disk *disk)
{
    return disk->base_index + disk->count;
}

bool disk_has(const struct disk *disk, uint64_t index, uint64_t term)
{
    if (disk->damaged && index >= disk->damaged && index > disk->items_index)
        return false;
    if (index <= disk->base_index || index > disk_last(disk))
        return false;
    return disk->entries[index - disk->base_index - 1].entry.term == term;
}

static void copy_entry(struct consensus_entry *to, const struct consensus_entry *from)
{
    *to = *from;
    to->payload = BYTES_NONE;
    if (from->payload.len) {
        uint8_t *copy = xmalloc(from->payload.len);
        memcpy(copy, from->payload.at, from->payload.len);
        to->payload = bytes_make(copy, from->payload.len);
    }
}

static void drop_entry(struct consensus_entry *entry)
{
    free((void *)entry->payload.at);
}

void disk_clear(struct disk *disk)
{
    for (uint32_t i = 0; i < disk->count; i++)
        drop_entry(&disk->entries[i].entry);
    free(disk->entries);
    *disk = (struct disk){0};
}

static void write_drop(struct queued_write *write)
{
    for (uint32_t i = 0; i < write->entry_count; i++)
        drop_entry(&write->entries[i]);
    free(write->entries);
}

static void disk_cut(struct disk *disk, uint64_t from)
{
    while (disk->count && disk_last(disk) >= from)
        drop_entry(&disk->entries[--disk->count].entry);
    if (disk->synced > disk_last(disk))
        disk->synced = disk_last(disk);
    if (from <= disk->damaged)
        disk->damaged = 0;
}

static void disk_base(struct disk *disk, uint64_t index, uint64_t term)
{
    uint32_t gone = 0;
    while (gone < disk->count && disk->base_index + gone < index)
        drop_entry(&disk->entries[gone++].entry);
    disk->count -= gone;
    if (disk->count)
        memmove(disk->entries, disk->entries + gone, disk->count * sizeof(*disk->entries));
    disk->base_index = index;
    disk->base_term = term;
    if (disk->synced < index)
        disk->synced = index;
    if (disk->damaged <= index)
        disk->damaged = 0;
}

static void disk_append(struct disk *disk, const struct consensus_entry *entry)
{
    check(entry->index == disk_last(disk) + 1);
    if (disk->count == disk->cap) {
        disk->cap = disk->cap ? disk->cap * 2 : 32;
        disk->entries = xrealloc(disk->entries, disk->cap * sizeof(*disk->entries));
    }
    copy_entry(&disk->entries[disk->count++].entry, entry);
}

/* entries_max: less than all of them is a torn write. */
static void disk_do(struct world *world, struct member *member, const struct queued_write *write,
                    uint32_t entries_max)
{
    struct disk *disk = &member->disk;
    struct consensus_hard before = disk->hard;
    uint64_t vouched = disk_last(disk); /* by the head of this write, as all before is durable */
    disk->found = true;
    disk->synced = vouched;
    if (write->hard_set)
        disk->hard = write->hard;
    SOMETIMES_IF(&world->sim, LOG_CUT,
                 write->truncate_from && write->truncate_from <= disk_last(disk));
    if (write->truncate_from)
        disk_cut(disk, write->truncate_from);
    if (write->base_moved)
        disk_base(disk, write->base_index, write->base_term);
    for (uint32_t i = 0; i < write->entry_count && i < entries_max; i++)
        disk_append(disk, &write->entries[i]);
    ghost_write(world, member, write->hard_set ? &before : NULL);
}

void disk_take(struct world *world, struct member *member, const struct consensus_effect *effect)
{
    check(member->queue_len < WRITES_MAX);
    if (!member->queue)
        member->queue = xcalloc(WRITES_MAX, sizeof(*member->queue));
    const struct consensus_write *from = &effect->write;
    struct queued_write *write = &member->queue[member->queue_len++];
    *write = (struct queued_write){.seq = effect->seq,
                                   .hard_set = from->hard != NULL,
                                   .truncate_from = from->truncate_from,
                                   .base_moved = from->base_moved,
                                   .base_index = from->base_index,
                                   .base_term = from->base_term,
                                   .entry_count = from->entry_count};
    if (from->hard)
        write->hard = *from->hard;
    write->entries = xcalloc(from->entry_count, sizeof(*write->entries));
    for (uint32_t i = 0; i < from->entry_count; i++)
        copy_entry(&write->entries[i], &from->entries[i]);
    (void)world;
}

void disk_sync(struct world *world, struct member *member)
{
    if (member->syncing || member->queue_len == 0 || member->disk_full)
        return;
    member->syncing = member->queue_len;
    uint64_t took = draw(world, world->options.sync_ns_min, world->options.sync_ns_max);
    struct sim_event event = {
        .kind = EVENT_SYNCED, .node = member->index, .generation = member->generation};
    sim_schedule(&world->sim, world->sim.now_ns + took * (member->disk_slow + 1), &event);
}

static void queue_drop(struct member *member, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        write_drop(&member->queue[i]);
    member->queue_len -= count;
    if (member->queue_len)
        memmove(member->queue, member->queue + count, member->queue_len * sizeof(*member->queue));
}

void disk_synced(struct world *world, struct member *member)
{
    uint32_t count = member->syncing;
    member->syncing = 0;
    struct consensus_input in = {.kind = CONSENSUS_PERSISTED, .seq = member->queue[count - 1].seq};
    for (uint32_t i = 0; i < count; i++)
        disk_do(world, member, &member->queue[i], UINT32_MAX);
    queue_drop(member, count);
    member_step(world, member, &in);
}

void disk_crash(struct world *world, struct member *member)
{
    uint32_t kept = member->disk_full ? 0 : (uint32_t)draw(world, 0, member->queue_len);
    for (uint32_t i = 0; i < kept; i++)
        disk_do(world, member, &member->queue[i], UINT32_MAX);
    if (kept < member->queue_len && member->queue[kept].entry_count && chance(world, 2))
        disk_do(world, member, &member->queue[kept],
                (uint32_t)draw(world, 0, member->queue[kept].entry_count - 1));
    queue_drop(member, member->queue_len);
    member->syncing = 0;
}

void disk_found(const struct disk *disk, struct arena *arena, struct consensus_start *ret)
{
    *ret = (struct consensus_start){.found = disk->found,
                                    .hard = disk->hard,
                                    .base_index = disk->base_index,
                                    .base_term = disk->base_term,
                                    .applied_index = disk->items_index,
                                    .applied_term = disk->items_term};
    uint64_t upto = disk_last(disk);
    if (disk->damaged && disk->damaged <= disk->items_index && !disk->damage_framing &&
        disk->items_index <= upto) {
        /* What cannot be read is in the items: the log may as well begin after them. */
        ret->base_index = disk->items_index;
        ret->base_term = disk->items_term;
    } else if (disk->damaged) {
        ret->damaged_upto = disk->damage_framing ? UINT64_MAX : upto;
        upto = disk->damaged - 1;
    }
    struct consensus_entry *entries = arena_array(arena, struct consensus_entry, disk->count);
    for (uint64_t i = ret->base_index + 1; i <= upto; i++)
        entries[ret->entry_count++] = disk->entries[i - disk->base_index - 1].entry;
    ret->entries = entries;
}
