/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of disks, by rules for the shim in the Region's process; and bits flipped in its files,
 * whether it runs or not. A rule outlives the process: what comes up on a full disk finds it full.
 */

#include <inttypes.h>
#include <stdio.h>

#include "chaos/inject/inject_internal.h"
#include "conflict/base/check.h"

static uint32_t files_of(uint8_t files)
{
    switch ((enum scenario_files)files) {
    case SCENARIO_FILES_ANY:
        return DISK_ANY_FILE;
    case SCENARIO_FILES_LOG:
        return DISK_LOG;
    case SCENARIO_FILES_TABLES:
        return DISK_TABLES;
    case SCENARIO_FILES_MANIFEST:
        return DISK_MANIFEST;
    }
    unreachable();
}

static uint32_t calls_of(uint8_t calls)
{
    switch ((enum scenario_calls)calls) {
    case SCENARIO_CALLS_ANY:
        return DISK_ANY_CALL;
    case SCENARIO_CALLS_READ:
        return DISK_READ;
    case SCENARIO_CALLS_WRITE:
        return DISK_WRITE;
    case SCENARIO_CALLS_SYNC:
        return DISK_SYNC;
    }
    unreachable();
}

static struct disk_wish wish_of(const struct scenario_fault *spec)
{
    bool full = spec->verb == VERB_DISK_FULL, slow = spec->verb == VERB_DISK_SLOW;
    bool torn = spec->verb == VERB_DISK_TORN_WRITE, sync = spec->verb == VERB_DISK_FSYNC_ERROR;
    return (struct disk_wish){
        .kind = full   ? DISK_FULL
                : slow ? DISK_SLOW
                : torn ? DISK_TORN
                       : DISK_FAIL,
        .files = full ? DISK_ANY_FILE : files_of(spec->files),
        .calls = full || torn ? DISK_WRITE
                 : sync       ? DISK_SYNC
                              : calls_of(spec->calls),
        .share = full || torn ? 1 : spec->share,
        .delay_ns = spec->delay_ns,
        .jitter_ns = slow ? spec->jitter_ns : 0,
        .free_bytes = full ? spec->free_bytes : 0,
    };
}

static bool disk_fault_begin(struct fault *fault)
{
    struct inject *inject = fault->inject;
    struct disk_wish wish = wish_of(fault->spec);
    if (inject->disk_trouble[0] != 0)
        return fault_refuse(fault, "%s", inject->disk_trouble);
    for (uint8_t i = 0; i < inject->place_count; i++) {
        struct place *place = inject_place(inject, i);
        if ((fault->regions >> i & 1) == 0)
            continue;
        fault->rule[i] = (int8_t)disk_begin(place->disk, &wish);
        if (fault->rule[i] < 0) {
            for (uint8_t j = 0; j < i; j++)
                if (fault->rule[j] >= 0)
                    disk_end(inject_place(inject, j)->disk, fault->rule[j]);
            return fault_refuse(fault, "too many faults hold on the disk of %s",
                                inject_name(inject, i));
        }
        if (fault->spec->verb == VERB_DISK_TORN_WRITE && place->site->process != NULL)
            place->site->end_expected = true;
    }
    fault->next_ns = fault->began_ns;
    return true;
}

static uint64_t hits_of(const struct fault *fault)
{
    uint64_t hits = 0;
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        if (fault->rule[i] >= 0)
            hits += disk_hits(fault->inject->places[i].disk, fault->rule[i]);
    return hits;
}

/* A torn write is one: what comes up afterwards writes whole. */
static void disk_fault_step(struct fault *fault, uint64_t now_ns)
{
    struct inject *inject = fault->inject;
    fault->next_ns = now_ns + TICK_MS * NS_PER_MS;
    for (uint8_t i = 0; i < inject->place_count; i++) {
        struct place *place = inject_place(inject, i);
        uint8_t bit = (uint8_t)(1u << i);
        if (fault->spec->verb != VERB_DISK_TORN_WRITE || fault->rule[i] < 0 ||
            (fault->seen_down & bit) != 0 || !place_dead(place))
            continue;
        fault->held_most += disk_hits(place->disk, fault->rule[i]);
        disk_end(place->disk, fault->rule[i]);
        fault->rule[i] = -1;
        fault->seen_down |= bit;
        place->downs++;
    }
}

static void disk_fault_end(struct fault *fault)
{
    struct inject *inject = fault->inject;
    fault->next_ns = NEVER;
    fault->times = fault->held_most + hits_of(fault);
    for (uint8_t i = 0; i < inject->place_count; i++) {
        struct place *place = inject_place(inject, i);
        if (fault->rule[i] >= 0)
            disk_end(place->disk, fault->rule[i]);
        if ((fault->seen_down >> i & 1) != 0) {
            place->downs--;
            place_start(place);
        }
    }
}

static void disk_fault_evidence(struct fault *fault)
{
    fault_note(fault, "%" PRIu64 " call%s %s", fault->times, plural(fault->times),
               fault->spec->verb == VERB_DISK_SLOW         ? "slowed"
               : fault->spec->verb == VERB_DISK_TORN_WRITE ? "cut in half"
                                                           : "failed");
    fault->seen = fault->times > 0;
}

const struct verb verb_disk = {.begin = disk_fault_begin,
                               .step = disk_fault_step,
                               .end = disk_fault_end,
                               .evidence = disk_fault_evidence};

/* ---- disk.bitflip, disk.truncate: done to the files, whether the Region runs or not ---- */

static bool damage_begin(struct fault *fault)
{
    struct inject *inject = fault->inject;
    for (uint8_t i = 0; i < inject->place_count; i++) {
        char directory[DISK_PATH_MAX];
        if ((fault->regions >> i & 1) == 0)
            continue;
        snprintf(directory, sizeof(directory), "%s/%s", inject->config.cluster->data,
                 inject_name(inject, i));
        place_damage(inject_place(inject, i), directory);
        uint32_t files = files_of(fault->spec->files);
        fault->times += fault->spec->verb == VERB_DISK_TRUNCATE
                            ? disk_truncate(directory, files, fault->spec->size)
                            : disk_flip(directory, files, fault->spec->bits, &inject->rng);
    }
    return fault->times > 0 || fault_refuse(fault, "there is no such file that holds anything yet");
}

static void flip_evidence(struct fault *fault)
{
    fault_note(fault, "%" PRIu64 " bits flipped and read back", fault->times);
    fault->seen = true;
}

const struct verb verb_bitflip = {.begin = damage_begin, .evidence = flip_evidence};

static void truncate_evidence(struct fault *fault)
{
    fault_note(fault, "%" PRIu64 " byte%s cut off", fault->times, plural(fault->times));
    fault->seen = true;
}

const struct verb verb_truncate = {.begin = damage_begin, .evidence = truncate_evidence};
