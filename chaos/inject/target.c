/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a fault is on: Regions for most verbs, ordered pairs of them for those of links. `leader` is
 * whoever leads most groups when the fault begins, and stays that one. */

#include "chaos/inject/inject_internal.h"
#include "conflict/base/check.h"

static uint8_t all_of(uint32_t count)
{
    return (uint8_t)((1u << count) - 1);
}

static uint8_t places_of(uint32_t count, uint8_t region)
{
    if (region == SCENARIO_REGION_ALL)
        return all_of(count);
    unsigned bit = region < count ? 1u << region : 0;
    return (uint8_t)bit;
}

void target_pairs(uint32_t count, uint8_t from, uint8_t to, bool both, uint8_t ret[PLACES_MAX])
{
    uint8_t senders = places_of(count, from), receivers = places_of(count, to);
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        ret[i] = (senders >> i & 1) != 0 ? receivers : 0;
        if (both && (receivers >> i & 1) != 0)
            ret[i] |= senders;
        ret[i] &= (uint8_t) ~(1u << i);
    }
}

static uint8_t leader_now(const struct fault *fault, const char *table)
{
    const struct inject_config *config = &fault->inject->config;
    uint8_t leader = config->leader_of == NULL ? SCENARIO_REGION_NONE
                                               : config->leader_of(config->context, table);
    return leader < fault->inject->place_count ? leader : SCENARIO_REGION_NONE;
}

/* A name as it stands in the file, to a place, ALL or NONE. False: there is no leader. */
static bool resolve(struct fault *fault, uint8_t *region)
{
    if (*region != SCENARIO_REGION_LEADER)
        return true;
    *region = leader_now(fault, NULL);
    if (*region != SCENARIO_REGION_NONE)
        return true;
    return fault_refuse(fault, "no Region is known to lead");
}

static bool resolve_link(struct fault *fault)
{
    uint32_t count = fault->inject->place_count;
    uint8_t from = fault->spec->from, to = fault->spec->to;
    if (!resolve(fault, &from) || !resolve(fault, &to))
        return false;
    target_pairs(count, from, to, fault->spec->direction == SCENARIO_BOTH_WAYS, fault->pairs);
    fault->regions = places_of(count, from) | places_of(count, to);
    for (uint32_t i = 0; i < count; i++)
        if (fault->pairs[i] != 0)
            return true;
    return fault_refuse(fault, "a link joins two Regions, and %s was named twice",
                        inject_name(fault->inject, from));
}

static bool resolve_partition(struct fault *fault)
{
    const struct inject_config *config = &fault->inject->config;
    uint64_t leaders = config->leaders == NULL ? 0 : config->leaders(config->context);
    struct scenario_fault spec = *fault->spec;
    if (!resolve(fault, &spec.region))
        return false;
    if (spec.shape == SCENARIO_PRIMARIES && leaders == 0)
        return fault_refuse(fault, "no Region is known to lead");
    scenario_partition(&config->scenario->cluster, &spec, (uint8_t)leaders, fault->pairs);
    for (uint32_t i = 0; i < fault->inject->place_count; i++)
        if (fault->pairs[i] != 0)
            fault->regions |= (uint8_t)(1u << i | fault->pairs[i]);
    return true;
}

static bool resolve_region(struct fault *fault)
{
    const struct scenario_cluster *cluster = &fault->inject->config.scenario->cluster;
    uint32_t count = fault->inject->place_count;
    uint8_t region = fault->spec->region;
    enum scenario_verb verb = fault->spec->verb;
    if (!resolve(fault, &region))
        return false;
    /* A witness has no clients. */
    if (verb == VERB_CLIENT_BLOCK || verb == VERB_API_ERROR || verb == VERB_API_THROTTLE)
        count = cluster->data_count;
    fault->regions = places_of(count, region);
    if (verb == VERB_REPLICATION_PAUSE)
        target_pairs(count, region, SCENARIO_REGION_ALL, true, fault->pairs);
    return fault->regions != 0 || fault_refuse(fault, "it names no Region of this cluster");
}

static bool resolve_leader(struct fault *fault)
{
    uint8_t leader = leader_now(fault, fault->spec->table);
    if (leader == SCENARIO_REGION_NONE)
        return fault_refuse(fault, "no Region is known to lead");
    fault->regions = (uint8_t)(1u << leader);
    return true;
}

bool target_resolve(struct fault *fault)
{
    switch ((enum scenario_verb)fault->spec->verb) {
    case VERB_LINK_CUT:
    case VERB_LINK_BLACKHOLE:
    case VERB_LINK_RESET:
    case VERB_LINK_DELAY:
    case VERB_LINK_JITTER:
    case VERB_LINK_BANDWIDTH:
    case VERB_LINK_FLAP:
    case VERB_LINK_LOSS:
    case VERB_LINK_DUPLICATE:
    case VERB_LINK_CORRUPT:
    case VERB_LINK_REORDER:
        return resolve_link(fault);
    case VERB_PARTITION:
        return resolve_partition(fault);
    case VERB_LEADER_KILL:
    case VERB_LEADER_TRANSFER:
        return resolve_leader(fault);
    case VERB_UNDO:
    case VERB_HEAL_ALL:
        return true;
    case VERB_REPLICATION_PAUSE:
    case VERB_CLIENT_BLOCK:
    case VERB_PROCESS_KILL:
    case VERB_PROCESS_START:
    case VERB_PROCESS_RESTART:
    case VERB_PROCESS_RESTART_LOOP:
    case VERB_PROCESS_PAUSE:
    case VERB_PROCESS_HICCUP:
    case VERB_PROCESS_RESUME:
    case VERB_CLOCK_OFFSET:
    case VERB_CLOCK_RATE:
    case VERB_CLOCK_STEP:
    case VERB_CLOCK_STROBE:
    case VERB_CLOCK_RESET:
    case VERB_DISK_FULL:
    case VERB_DISK_SLOW:
    case VERB_DISK_FSYNC_ERROR:
    case VERB_DISK_IO_ERROR:
    case VERB_DISK_BITFLIP:
    case VERB_DISK_TRUNCATE:
    case VERB_DISK_TORN_WRITE:
    case VERB_DISK_WIPE:
    case VERB_API_ERROR:
    case VERB_API_THROTTLE:
        return resolve_region(fault);
    case SCENARIO_VERB_COUNT:
        break;
    }
    unreachable();
}

/* "us-east-1, eu-west-1"; "us-east-1 -> eu-west-1, eu-west-1 -> us-east-1". */
void target_print(const struct fault *fault, struct buf *to)
{
    const struct inject *inject = fault->inject;
    const char *comma = "";
    bool pairs = false;
    for (uint8_t i = 0; i < inject->place_count; i++) {
        for (uint8_t j = 0; j < inject->place_count; j++) {
            if ((fault->pairs[i] >> j & 1) == 0)
                continue;
            pairs = true;
            buf_printf(to, "%s%s -> %s", comma, inject_name(inject, i), inject_name(inject, j));
            comma = ", ";
        }
    }
    for (uint8_t i = 0; i < inject->place_count && !pairs; i++) {
        if ((fault->regions >> i & 1) == 0)
            continue;
        buf_printf(to, "%s%s", comma, inject_name(inject, i));
        comma = ", ";
    }
}
