/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to messages: the link's own delay as the scenario gives it, and on top what the
 * faults that are active just now make of it. A cut is of the stream that `from` opens, as the
 * harness's proxies have it; all else is of what `from` sends to `to`. */

#include "chaos/live/delay.h"
#include "chaos/simulate/play_internal.h"
#include "conflict/base/check.h"

/* ---- Whom it is on ---- */

static uint8_t places_of(uint32_t count, uint8_t region)
{
    if (region == SCENARIO_REGION_ALL)
        return (uint8_t)((1u << count) - 1);
    unsigned bit = region < count ? 1u << region : 0;
    return (uint8_t)bit;
}

static uint8_t region_of(const struct play *play, uint8_t region)
{
    return region == SCENARIO_REGION_LEADER ? play_leader(play) : region;
}

static void resolve_pairs(const struct play *play, struct play_fault *fault)
{
    uint32_t count = play->cluster.node_count;
    uint8_t senders = places_of(count, region_of(play, fault->spec->from));
    uint8_t receivers = places_of(count, region_of(play, fault->spec->to));
    bool both = fault->spec->direction == SCENARIO_BOTH_WAYS;
    for (uint32_t i = 0; i < count; i++) {
        if (senders >> i & 1)
            fault->pairs[i] |= receivers;
        if (both && receivers >> i & 1)
            fault->pairs[i] |= senders;
        fault->pairs[i] &= (uint8_t) ~(1u << i);
    }
    fault->regions = senders | receivers;
}

bool play_links_resolve(const struct play *play, struct play_fault *fault)
{
    const struct scenario_cluster *cluster = &play->scenario->cluster;
    uint32_t count = play->cluster.node_count, any = 0;
    struct scenario_fault spec = *fault->spec;
    memset(fault->pairs, 0, sizeof(fault->pairs));
    memset(fault->last, 0, sizeof(fault->last));
    spec.region = region_of(play, spec.region);
    if (spec.verb == VERB_PARTITION) {
        scenario_partition(cluster, &spec, (uint8_t)play_leaders(play), fault->pairs);
    } else if (spec.verb == VERB_REPLICATION_PAUSE) {
        uint8_t paused = places_of(count, spec.region), all = places_of(count, SCENARIO_REGION_ALL);
        for (uint32_t i = 0; i < count; i++)
            fault->pairs[i] = (paused >> i & 1 ? all : paused) & (uint8_t) ~(1u << i);
        fault->regions = paused;
    } else {
        resolve_pairs(play, fault);
    }
    for (uint32_t i = 0; i < count; i++) {
        any |= fault->pairs[i];
        if (spec.verb == VERB_PARTITION && fault->pairs[i])
            fault->regions |= (uint8_t)(1u << i | fault->pairs[i]);
    }
    return any != 0;
}

/* ---- What they come to ---- */

/* ends: bits of both. */
static bool swizzled(const struct play *play, const struct play_fault *fault, uint8_t ends)
{
    return (scenario_swizzle(play->cluster.node_count, fault->luck, fault->steps) & ends) != 0;
}

static void add(const struct play *play, struct play_way *way, const struct play_fault *fault,
                uint8_t ends)
{
    const struct scenario_fault *spec = fault->spec;
    switch (spec->verb) {
    case VERB_LINK_CUT:
        way->cut = true;
        break;
    case VERB_LINK_FLAP:
        way->cut |= fault->odd;
        break;
    case VERB_LINK_BLACKHOLE:
    case VERB_REPLICATION_PAUSE:
        way->hole = true;
        break;
    case VERB_PARTITION:
        if (spec->shape == SCENARIO_SWIZZLE && !swizzled(play, fault, ends))
            break;
        way->hole |= spec->how == SCENARIO_BLACKHOLE;
        way->cut |= spec->how == SCENARIO_CUT || spec->how == SCENARIO_REFUSE;
        break;
    case VERB_LINK_BANDWIDTH:
        if (way->rate_bytes == 0 || spec->rate_bytes < way->rate_bytes)
            way->rate_bytes = spec->rate_bytes;
        break;
    default: /* drawn for each message */
        break;
    }
}

void play_links_apply(struct play *play)
{
    uint32_t count = play->cluster.node_count;
    for (uint32_t from = 0; from < count; from++) {
        for (uint32_t to = 0; to < count; to++) {
            struct play_way *way = &play->ways[from][to];
            struct play_way next = {.free_ns = way->free_ns,
                                    .rate_bytes =
                                        play->scenario->cluster.link[from][to].rate_bytes};
            for (uint32_t i = 0; i < play->fault_count; i++)
                if (play->faults[i].active && play->faults[i].pairs[from] >> to & 1)
                    add(play, &next, &play->faults[i], (uint8_t)(1u << from | 1u << to));
            bool was_hole = way->hole, was_cut = way->cut;
            *way = next;
            if (from == to)
                continue;
            if (next.cut != was_cut)
                sim_cluster_cut(&play->cluster, from, to, next.cut);
            if (was_hole && !next.hole) /* what was swallowed is not coming any more */
                sim_cluster_reset(&play->cluster, from, to);
        }
    }
}

void play_links_strike(struct play *play, struct play_fault *fault)
{
    for (uint32_t from = 0; from < play->cluster.node_count; from++)
        for (uint32_t to = 0; to < play->cluster.node_count; to++)
            fault->hits += fault->pairs[from] >> to & 1 && play->ways[from][to].cut &&
                           play_node_up(play, from) && play_node_up(play, to);
}

/* ---- Messages ---- */

/* What swallows or throttles is kept together for all faults: each of them has struck. */
static void strike_all(struct play *play, uint32_t from, uint32_t to, bool hole)
{
    for (uint32_t i = 0; i < play->fault_count; i++) {
        struct play_fault *fault = &play->faults[i];
        bool swallows = fault->spec->verb == VERB_LINK_BLACKHOLE ||
                        fault->spec->verb == VERB_REPLICATION_PAUSE ||
                        fault->spec->verb == VERB_PARTITION;
        if (fault->active && fault->pairs[from] >> to & 1 &&
            (hole ? swallows : fault->spec->verb == VERB_LINK_BANDWIDTH))
            fault->hits++;
    }
}

/* Whether this message is one of the fault's share: as region/faults.c draws. */
static bool strikes(struct play *play, struct play_fault *fault, uint32_t from, uint32_t to)
{
    double share = fault->spec->share, correlation = fault->spec->correlation;
    uint8_t bit = (uint8_t)(1u << to);
    if (fault->last[from].begun & bit)
        share += fault->last[from].struck & bit ? correlation * (1 - share) : -correlation * share;
    bool struck = rng_unit(&play->cluster.sim.rng) < share;
    fault->last[from].begun |= bit;
    fault->last[from].struck =
        (uint8_t)(struck ? fault->last[from].struck | bit : fault->last[from].struck & ~bit);
    return struck;
}

/* The longest that an active fault of the verb holds the message back; 0: none strikes it; 1: for
 * what has no time of its own. */
static uint64_t struck_ns(struct play *play, enum scenario_verb verb, uint32_t from, uint32_t to)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < play->fault_count; i++) {
        struct play_fault *fault = &play->faults[i];
        if (!fault->active || fault->spec->verb != verb || !(fault->pairs[from] >> to & 1) ||
            !strikes(play, fault, from, to))
            continue;
        fault->hits++;
        uint64_t ns = verb == VERB_LINK_REORDER ? fault->spec->delay_ns : 1;
        longest = ns > longest ? ns : longest;
    }
    return longest;
}

static uint64_t extra_delay(struct play *play, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < play->fault_count; i++) {
        struct play_fault *fault = &play->faults[i];
        const struct scenario_fault *spec = fault->spec;
        bool delays = spec->verb == VERB_LINK_DELAY || spec->verb == VERB_LINK_JITTER;
        if (!fault->active || !delays || !(fault->pairs[from] >> to & 1))
            continue;
        fault->hits++;
        sum += delay_draw(&play->cluster.sim.rng, (enum delay_distribution)spec->distribution,
                          spec->verb == VERB_LINK_DELAY ? spec->delay_ns : 0, spec->jitter_ns);
    }
    return sum;
}

struct sim_travel play_travel(void *context, uint32_t from, uint32_t to, size_t len)
{
    struct play *play = context;
    struct rng *rng = &play->cluster.sim.rng;
    struct play_way *way = &play->ways[from][to];
    const struct scenario_link *link = &play->scenario->cluster.link[from][to];
    /* What a checksum refuses is lost, and takes a log's stream with it, as what is lost does. */
    struct sim_travel travel = {.lost = way->hole ||
                                        struck_ns(play, VERB_LINK_LOSS, from, to) > 0 ||
                                        struck_ns(play, VERB_LINK_CORRUPT, from, to) > 0};
    if (way->hole)
        strike_all(play, from, to, true);
    if (travel.lost)
        return travel;
    travel.delay_ns = 50000 + extra_delay(play, from, to) +
                      delay_draw(rng, (enum delay_distribution)link->distribution, link->delay_ns,
                                 link->jitter_ns);
    if (way->rate_bytes > 0) {
        uint64_t now = now_of(play);
        uint64_t begins = way->free_ns > now ? way->free_ns : now;
        way->free_ns = begins + (uint64_t)((double)len * 1e9 / (double)way->rate_bytes);
        travel.delay_ns += way->free_ns - now;
        strike_all(play, from, to, false);
    }
    travel.repeated = struck_ns(play, VERB_LINK_DUPLICATE, from, to) > 0;
    uint64_t held_ns = struck_ns(play, VERB_LINK_REORDER, from, to);
    travel.overtakes = held_ns > 0;
    travel.delay_ns += held_ns;
    return travel;
}
