/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of faults, of a few kinds a run (swarm testing), drawn whole so that it can be printed.
 * What no protocol survives is not done: a disk is harmed only while the other two are whole. */

#include "chaos/sim/consensus_world.h"

#include <stdio.h>

static const char *fault_name(enum sim_consensus_fault_kind kind)
{
    static const char *const names[] = {
#define FAULT(enumerator, name) [CONSENSUS_FAULT_##enumerator] = name,
        SIM_CONSENSUS_FAULT_MAP(FAULT)
#undef FAULT
    };
    check((unsigned)kind < array_len(names));
    return names[kind];
}

void faults_draw(struct world *world, uint64_t from_ns, uint64_t to_ns)
{
    static const uint32_t duel = 1u << CONSENSUS_FAULT_CUT | 1u << CONSENSUS_FAULT_ISOLATE |
                                 1u << CONSENSUS_FAULT_DELAY | 1u << CONSENSUS_FAULT_BLINK |
                                 1u << CONSENSUS_FAULT_PAUSE;
    bool at_leaders = world->options.duel;
    enum sim_consensus_fault_kind kinds[CONSENSUS_FAULT_COUNT];
    uint32_t kind_count = 0;
    for (enum sim_consensus_fault_kind kind = 0; kind < CONSENSUS_FAULT_COUNT; kind++)
        if (at_leaders ? duel >> kind & 1 && !chance(world, 3) : chance(world, 3))
            kinds[kind_count++] = kind;
    if (kind_count == 0)
        return;
    /* Some runs have a few faults, others a storm of short ones. */
    bool storm = at_leaders || chance(world, 2);
    uint32_t count = (uint32_t)(storm ? draw(world, 12, FAULTS_MAX) : draw(world, 1, 10));
    for (uint32_t i = 0; i < count; i++) {
        struct consensus_fault *fault = &world->faults[world->fault_count++];
        fault->number = (uint8_t)i;
        fault->kind = kinds[draw(world, 0, kind_count - 1)];
        fault->at_ns = draw(world, from_ns, to_ns - 1);
        uint64_t longest = storm || !chance(world, 3) ? 600 * ms : 5 * second;
        fault->until_ns = fault->at_ns + draw(world, 1 * ms, longest);
        if (fault->until_ns > to_ns)
            fault->until_ns = to_ns;
        fault->aimed = at_leaders ? !chance(world, 4) : chance(world, 2);
        fault->a = (uint8_t)draw(world, 0, MEMBERS - 1);
        fault->b = (uint8_t)((fault->a + draw(world, 1, MEMBERS - 1)) % MEMBERS);
        if (fault->kind == CONSENSUS_FAULT_DELAY)
            fault->amount = draw(world, 1, 600) * ms;
        if (fault->kind == CONSENSUS_FAULT_SLOW_DISK)
            fault->amount = draw(world, 2, 100);
    }
}

/* Those that are to happen. */
void faults_schedule(struct world *world)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->fault_count; i++)
        if (world->replay->faults >> world->faults[i].number & 1)
            world->faults[count++] = world->faults[i];
    world->fault_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct sim_event event = {.kind = EVENT_FAULT_BEGIN, .id = i};
        sim_schedule(&world->sim, world->faults[i].at_ns, &event);
        event.kind = EVENT_FAULT_END;
        sim_schedule(&world->sim, world->faults[i].until_ns, &event);
    }
}

static bool others_whole(const struct world *world, uint8_t but)
{
    for (uint8_t i = 0; i < MEMBERS; i++) {
        const struct disk *disk = &world->members[i].disk;
        if (i != but && (!disk->found || disk->hard.standing != CONSENSUS_FULL || disk->damaged))
            return false;
    }
    return true;
}

static void harm(struct world *world, struct member *member, enum sim_consensus_fault_kind kind)
{
    struct disk *disk = &member->disk;
    if (!others_whole(world, member->index))
        return;
    if (kind == CONSENSUS_FAULT_LOSE_DISK) {
        world->ghost.disks_harmed = true;
        disk_clear(disk);
    } else if (disk->synced > disk->base_index && !disk->damaged) {
        world->ghost.disks_harmed = true;
        disk->damaged = draw(world, disk->base_index + 1, disk->synced);
        disk->damage_framing = chance(world, 2);
    }
}

/* Most of what goes wrong goes wrong at the leader. */
static void aim(const struct world *world, struct consensus_fault *fault)
{
    uint8_t by = (uint8_t)((fault->b + MEMBERS - fault->a) % MEMBERS);
    for (uint8_t i = 0; i < MEMBERS; i++) {
        const struct member *member = &world->members[i];
        if (!member->core || consensus_status(member->core).role != CONSENSUS_LEADER)
            continue;
        fault->a = i;
        fault->b = (uint8_t)((i + by) % MEMBERS);
    }
    fault->aimed = false;
}

void consensus_fault_begin(struct world *world, struct consensus_fault *fault)
{
    if (fault->aimed)
        aim(world, fault);
    struct member *a = &world->members[fault->a];
    switch (fault->kind) {
    case CONSENSUS_FAULT_CUT:
        world->cut[fault->a][fault->b] = true;
        break;
    case CONSENSUS_FAULT_PARTITION:
        world->cut[fault->a][fault->b] = world->cut[fault->b][fault->a] = true;
        break;
    case CONSENSUS_FAULT_ISOLATE:
        for (int i = 0; i < MEMBERS; i++)
            if (i != fault->a)
                world->cut[fault->a][i] = world->cut[i][fault->a] = true;
        break;
    case CONSENSUS_FAULT_DELAY:
        world->extra_ns[fault->a][fault->b] = fault->amount;
        break;
    case CONSENSUS_FAULT_CRASH:
    case CONSENSUS_FAULT_BLINK:
    case CONSENSUS_FAULT_SYNC_FAILS:
    case CONSENSUS_FAULT_DAMAGE:
    case CONSENSUS_FAULT_LOSE_DISK:
        if (!a->core)
            break;
        member_crash(world, a);
        if (fault->kind == CONSENSUS_FAULT_DAMAGE || fault->kind == CONSENSUS_FAULT_LOSE_DISK)
            harm(world, a, fault->kind);
        if (fault->kind == CONSENSUS_FAULT_BLINK && !a->held)
            member_start(world, a);
        break;
    case CONSENSUS_FAULT_PAUSE:
        if (a->core && fault->until_ns > a->resume_ns)
            a->resume_ns = fault->until_ns;
        break;
    case CONSENSUS_FAULT_SLOW_DISK:
        a->disk_slow = fault->amount;
        break;
    case CONSENSUS_FAULT_FULL_DISK:
        a->disk_full = true;
        break;
    case CONSENSUS_FAULT_COUNT:
        unreachable();
    }
}

static void links_heal(struct world *world)
{
    memset(world->cut, 0, sizeof(world->cut));
    memset(world->extra_ns, 0, sizeof(world->extra_ns));
}

/* What another fault holds down goes up early now and then; all the better. Only links are held
 * together, as cuts are what isolation is made of. */
void consensus_fault_end(struct world *world, struct consensus_fault *fault)
{
    struct member *a = &world->members[fault->a];
    switch (fault->kind) {
    case CONSENSUS_FAULT_CUT:
    case CONSENSUS_FAULT_PARTITION:
    case CONSENSUS_FAULT_ISOLATE:
    case CONSENSUS_FAULT_DELAY:
        links_heal(world);
        for (uint32_t i = 0; i < world->fault_count; i++) {
            struct consensus_fault *other = &world->faults[i];
            if (other != fault && !other->aimed && other->kind <= CONSENSUS_FAULT_DELAY &&
                other->at_ns <= world->sim.now_ns && world->sim.now_ns < other->until_ns)
                consensus_fault_begin(world, other);
        }
        break;
    case CONSENSUS_FAULT_CRASH:
    case CONSENSUS_FAULT_SYNC_FAILS:
    case CONSENSUS_FAULT_DAMAGE:
    case CONSENSUS_FAULT_LOSE_DISK:
        if (!a->core && !a->held)
            member_start(world, a);
        break;
    case CONSENSUS_FAULT_SLOW_DISK:
        a->disk_slow = 0;
        break;
    case CONSENSUS_FAULT_FULL_DISK:
        a->disk_full = false;
        if (a->core)
            disk_sync(world, a);
        break;
    case CONSENSUS_FAULT_BLINK:
    case CONSENSUS_FAULT_PAUSE:
        break;
    case CONSENSUS_FAULT_COUNT:
        unreachable();
    }
}

void faults_heal(struct world *world)
{
    links_heal(world);
    for (int i = 0; i < MEMBERS; i++) {
        struct member *member = &world->members[i];
        member->resume_ns = 0;
        member_clock_rate(world, member, 16);
        member->disk_slow = 0;
        member->disk_full = member->held = false;
        if (!member->core)
            member_start(world, member);
        else
            member_poke(world, member);
    }
}

static void describe(const struct consensus_fault *fault, struct buf *to)
{
    buf_printf(to, "%-10s member %u", fault_name(fault->kind), fault->a);
    if (fault->kind == CONSENSUS_FAULT_CUT || fault->kind == CONSENSUS_FAULT_PARTITION ||
        fault->kind == CONSENSUS_FAULT_DELAY)
        buf_printf(to, " and %u", fault->b);
    if (fault->kind == CONSENSUS_FAULT_DELAY)
        buf_printf(to, "  %llu ms", (unsigned long long)(fault->amount / ms));
    if (fault->kind == CONSENSUS_FAULT_SLOW_DISK)
        buf_printf(to, "  %llu times", (unsigned long long)fault->amount);
}

void faults_print(const struct world *world, struct buf *to)
{
    for (uint32_t i = 0; i < world->fault_count; i++) {
        const struct consensus_fault *fault = &world->faults[i];
        buf_printf(to, "  %6.3fs to %6.3fs  ", (double)fault->at_ns / 1e9,
                   (double)fault->until_ns / 1e9);
        describe(fault, to);
        buf_append_text(to, "\n");
    }
}

void faults_tell(const struct world *world, struct sim_told *told)
{
    struct buf text = {0};
    for (uint32_t i = 0; i < world->fault_count; i++) {
        const struct consensus_fault *fault = &world->faults[i];
        struct sim_told_fault *to = &told->faults[told->fault_count++];
        *to = (struct sim_told_fault){.from_ns = fault->at_ns,
                                      .to_ns = fault->until_ns,
                                      .number = fault->number,
                                      .node = fault->a};
        buf_reset(&text);
        describe(fault, &text);
        snprintf(to->text, sizeof(to->text), "%.*s", (int)text.len, (const char *)text.at);
    }
    buf_deinit(&text);
}
