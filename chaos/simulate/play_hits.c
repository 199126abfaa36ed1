/* SPDX-License-Identifier: Apache-2.0 */
/* What faults strike. As on processes, one that holds must have met something by its end, or it
 * tried nothing: a message, a request, a connection, a call of the disk. What is drawn for each
 * message or request is counted where it is drawn; the rest is here. */

#include "chaos/simulate/play_internal.h"

bool play_fault_counts(const struct scenario_fault *spec)
{
    switch ((int)spec->verb) {
    case VERB_LINK_CUT:
    case VERB_LINK_BLACKHOLE:
    case VERB_LINK_DELAY:
    case VERB_LINK_JITTER:
    case VERB_LINK_BANDWIDTH:
    case VERB_LINK_FLAP:
    case VERB_LINK_LOSS:
    case VERB_LINK_DUPLICATE:
    case VERB_LINK_CORRUPT:
    case VERB_LINK_REORDER:
    case VERB_REPLICATION_PAUSE:
    case VERB_API_ERROR:
    case VERB_API_THROTTLE:
    case VERB_CLOCK_OFFSET:
    case VERB_CLOCK_RATE:
    case VERB_CLOCK_STEP:
    case VERB_CLOCK_STROBE:
    case VERB_DISK_FULL:
    case VERB_DISK_SLOW:
    case VERB_DISK_FSYNC_ERROR:
        return true;
    case VERB_PARTITION:
    case VERB_CLIENT_BLOCK:
        return spec->how != SCENARIO_RESET;
    default:
        return false;
    }
}

void play_disk_used(struct play *play, uint32_t node, bool durable)
{
    for (uint32_t i = 0; i < play->fault_count; i++) {
        struct play_fault *fault = &play->faults[i];
        if (fault->active && fault->regions >> node & 1)
            fault->hits += fault->spec->verb == (durable ? VERB_DISK_SLOW : VERB_DISK_FULL);
    }
}

void play_fault_strike(struct play *play, struct play_fault *fault)
{
    enum scenario_verb verb = fault->spec->verb;
    if (verb == VERB_LINK_CUT || verb == VERB_LINK_FLAP || verb == VERB_PARTITION)
        play_links_strike(play, fault);
    for (uint32_t i = 0; i < play->cluster.node_count; i++)
        fault->hits += verb >= VERB_CLOCK_OFFSET && verb <= VERB_CLOCK_STROBE &&
                       fault->regions >> i & 1 && play_node_up(play, i);
}
