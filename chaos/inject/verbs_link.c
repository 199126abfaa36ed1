/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of links, by their proxies. Several may be on one link: cuts are counted, toxics bear the
 * fault's name. A delay, a bound and a black hole are on what `from` sends on its own connection to
 * `to`; what `to` answers on that one returns at once. */

#include <inttypes.h>
#include <stdio.h>

#include "chaos/inject/inject_internal.h"

/* Calls it for every link of the fault. */
static void each_link(struct fault *fault,
                      void (*act)(struct fault *fault, struct cluster_link *link, uint8_t from,
                                  uint8_t to))
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        for (uint8_t j = 0; j < fault->inject->place_count; j++)
            if ((fault->pairs[i] >> j & 1) != 0)
                act(fault, inject_link(fault->inject, i, j), i, j);
}

/* ---- Evidence ---- */

static struct traffic measure(struct fault *fault)
{
    struct traffic sum = {0};
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        for (uint8_t j = 0; j < fault->inject->place_count; j++) {
            if ((fault->pairs[i] >> j & 1) == 0)
                continue;
            const struct proxy_counts *counts = &inject_link(fault->inject, i, j)->proxy->counts;
            sum.resets += counts->blocked_connections;
            sum.blocked += counts->blocked_bytes;
            sum.passed += counts->passed_bytes[TOXIC_UPSTREAM];
        }
    }
    return sum;
}

static struct traffic since(struct fault *fault)
{
    struct traffic now = measure(fault);
    return (struct traffic){now.resets - fault->before.resets, now.blocked - fault->before.blocked,
                            now.passed - fault->before.passed};
}

static void cut_evidence(struct fault *fault)
{
    struct traffic traffic = since(fault);
    if (fault->times > 0)
        fault_note(fault, "%" PRIu64 " time%s", fault->times, plural(fault->times));
    fault_note(fault, "%" PRIu64 " connection%s reset or refused, %" PRIu64 " byte%s not delivered",
               traffic.resets, plural(traffic.resets), traffic.blocked, plural(traffic.blocked));
    fault->seen = traffic.resets > 0;
}

static void swallow_evidence(struct fault *fault)
{
    struct traffic traffic = since(fault);
    fault_note(fault, "%" PRIu64 " byte%s swallowed", traffic.blocked, plural(traffic.blocked));
    fault->seen = traffic.blocked > 0;
}

static void slow_evidence(struct fault *fault)
{
    struct traffic traffic = since(fault);
    fault_note(fault, "%" PRIu64 " byte%s passed through it", traffic.passed,
               plural(traffic.passed));
    fault->seen = traffic.passed > 0;
}

/* ---- Cuts ---- */

static void cut_link(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    if (fault->inject->cuts[from][to]++ == 0)
        link_cut(link, true);
}

static void join_link(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    if (--fault->inject->cuts[from][to] == 0)
        link_cut(link, false);
}

static bool cut_begin(struct fault *fault)
{
    fault->before = measure(fault);
    each_link(fault, cut_link);
    return true;
}

static void cut_end(struct fault *fault)
{
    each_link(fault, join_link);
}

const struct verb verb_cut = {.begin = cut_begin, .end = cut_end, .evidence = cut_evidence};

/* Cuts that come and go; phase: it is cut now. */
static void flap_step(struct fault *fault, uint64_t now_ns)
{
    each_link(fault, fault->phase ? join_link : cut_link);
    fault_alternate(fault, now_ns);
}

static bool flap_begin(struct fault *fault)
{
    fault->before = measure(fault);
    fault->next_ns = fault->began_ns;
    flap_step(fault, fault->began_ns);
    return true;
}

static void flap_end(struct fault *fault)
{
    fault->next_ns = NEVER;
    if (fault->phase)
        each_link(fault, join_link);
}

const struct verb verb_flap = {
    .begin = flap_begin, .step = flap_step, .end = flap_end, .evidence = cut_evidence};

static void reset_link(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    (void)fault, (void)from, (void)to;
    if (!link_is_up(link))
        return;
    proxy_disable(link->proxy);
    (void)proxy_enable(link->proxy); /* a link keeps its port, so this cannot fail */
}

static void reset_step(struct fault *fault, uint64_t now_ns)
{
    (void)now_ns;
    each_link(fault, reset_link);
    fault->times++;
    fault->next_ns += fault->spec->period_ns;
}

static bool reset_begin(struct fault *fault)
{
    fault->before = measure(fault);
    fault->next_ns = fault->began_ns;
    reset_step(fault, fault->began_ns);
    if (fault->spec->for_ns == 0)
        fault->next_ns = NEVER;
    return true;
}

static void stop_stepping(struct fault *fault)
{
    fault->next_ns = NEVER;
}

const struct verb verb_reset = {
    .begin = reset_begin, .step = reset_step, .end = stop_stepping, .evidence = cut_evidence};

/* ---- Toxics ---- */

static void toxic_name(const struct fault *fault, char ret[TOXIC_NAME_MAX + 1])
{
    snprintf(ret, TOXIC_NAME_MAX + 1, "fault %s", fault->spec->id);
}

static void add_toxic(const struct fault *fault, struct cluster_link *link, enum toxic_type type,
                      enum toxic_stream stream, const struct toxic *like)
{
    char name[TOXIC_NAME_MAX + 1];
    toxic_name(fault, name);
    struct toxic *toxic = toxic_new(type, stream, name);
    if (like != NULL) {
        memcpy(toxic->value, like->value, sizeof(toxic->value));
        memcpy(toxic->rest_ns, like->rest_ns, sizeof(toxic->rest_ns));
        toxic->distribution = like->distribution;
    }
    proxy_add_toxic(link->proxy, toxic);
}

/* All of the name, as a hold is on both ways. They may have gone: a user can reset all proxies. */
static void remove_toxic(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    (void)from, (void)to;
    char name[TOXIC_NAME_MAX + 1];
    toxic_name(fault, name);
    for (struct toxic *toxic; (toxic = proxy_find_toxic(link->proxy, name)) != NULL;)
        proxy_remove_toxic(link->proxy, toxic);
}

static void remove_toxics(struct fault *fault)
{
    each_link(fault, remove_toxic);
}

static void swallow_link(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    (void)from, (void)to;
    add_toxic(fault, link, TOXIC_TIMEOUT, TOXIC_UPSTREAM, NULL);
}

static bool swallow_begin(struct fault *fault)
{
    fault->before = measure(fault);
    each_link(fault, swallow_link);
    return true;
}

const struct verb verb_blackhole = {
    .begin = swallow_begin, .end = remove_toxics, .evidence = swallow_evidence};

static void delay_link(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    (void)from, (void)to;
    const struct scenario_fault *spec = fault->spec;
    /* Jitter alone: around what the link has already, so as much earlier as later; what would come
     * before it was sent comes at once. The mean is the jitter, or half of it would be cut off. */
    uint64_t delay_ns = spec->verb == VERB_LINK_JITTER ? spec->jitter_ns : spec->delay_ns;
    struct toxic like = {.distribution = (enum delay_distribution)spec->distribution};
    toxic_set_latency(&like, delay_ns, spec->jitter_ns);
    add_toxic(fault, link, TOXIC_LATENCY, TOXIC_UPSTREAM, &like);
}

static bool delay_begin(struct fault *fault)
{
    fault->before = measure(fault);
    each_link(fault, delay_link);
    return true;
}

const struct verb verb_delay = {
    .begin = delay_begin, .end = remove_toxics, .evidence = slow_evidence};

static void limit_link(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    (void)from, (void)to;
    struct toxic like = {.value = {(int64_t)((fault->spec->rate_bytes + 999) / 1000)}};
    add_toxic(fault, link, TOXIC_BANDWIDTH, TOXIC_UPSTREAM, &like);
}

static bool limit_begin(struct fault *fault)
{
    if (fault->spec->rate_bytes > (uint64_t)TOXIC_VALUE_MAX)
        return fault_refuse(fault, "so high a rate is no bound");
    fault->before = measure(fault);
    each_link(fault, limit_link);
    return true;
}

const struct verb verb_bandwidth = {
    .begin = limit_begin, .end = remove_toxics, .evidence = slow_evidence};

/* ---- Partitions ---- */

/* A link is cut while either end is cut off from all. */
static void swizzle_to(struct fault *fault, uint8_t apart)
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        for (uint8_t j = 0; j < fault->inject->place_count; j++) {
            uint8_t ends = (uint8_t)(1u << i | 1u << j);
            bool was = (fault->apart & ends) != 0, is = (apart & ends) != 0;
            if (i != j && was != is)
                (is ? cut_link : join_link)(fault, inject_link(fault->inject, i, j), i, j);
        }
    }
    fault->apart = apart;
}

static void partition_step(struct fault *fault, uint64_t now_ns)
{
    uint32_t count = fault->inject->place_count;
    (void)now_ns;
    swizzle_to(fault, scenario_swizzle(count, fault->luck, (uint32_t)++fault->times));
    fault->next_ns = fault->times == 2 * count
                         ? NEVER
                         : fault->began_ns + fault->times * fault->spec->for_ns / (2 * count);
}

static bool swizzle_begin(struct fault *fault)
{
    fault->before = measure(fault);
    fault->luck = rng_next(&fault->inject->rng);
    partition_step(fault, fault->began_ns);
    return true;
}

static bool partition_begin(struct fault *fault)
{
    if (fault->spec->shape == SCENARIO_SWIZZLE)
        return swizzle_begin(fault);
    return fault->spec->how == SCENARIO_BLACKHOLE ? swallow_begin(fault) : cut_begin(fault);
}

static void partition_end(struct fault *fault)
{
    fault->next_ns = NEVER;
    if (fault->spec->shape == SCENARIO_SWIZZLE)
        swizzle_to(fault, 0);
    else if (fault->spec->how == SCENARIO_BLACKHOLE)
        remove_toxics(fault);
    else
        cut_end(fault);
}

static void partition_evidence(struct fault *fault)
{
    if (fault->spec->how == SCENARIO_BLACKHOLE)
        swallow_evidence(fault);
    else
        cut_evidence(fault);
}

const struct verb verb_partition = {.begin = partition_begin,
                                    .step = partition_step,
                                    .end = partition_end,
                                    .evidence = partition_evidence};

/* ---- replication.pause: held both ways, and delivered after, as FIS has it ---- */

static void hold_link(struct fault *fault, struct cluster_link *link, uint8_t from, uint8_t to)
{
    (void)from, (void)to;
    add_toxic(fault, link, TOXIC_HOLD, TOXIC_UPSTREAM, NULL);
    add_toxic(fault, link, TOXIC_HOLD, TOXIC_DOWNSTREAM, NULL);
}

static void hold_step(struct fault *fault, uint64_t now_ns)
{
    uint64_t held = 0;
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        for (uint8_t j = 0; j < fault->inject->place_count; j++)
            if ((fault->pairs[i] >> j & 1) != 0)
                held += proxy_held(inject_link(fault->inject, i, j)->proxy);
    if (held > fault->held_most)
        fault->held_most = held;
    fault->next_ns = now_ns + TICK_MS * NS_PER_MS;
}

static bool hold_begin(struct fault *fault)
{
    fault->before = measure(fault);
    each_link(fault, hold_link);
    fault->next_ns = fault->began_ns;
    return true;
}

static void hold_end(struct fault *fault)
{
    hold_step(fault, fault->ended_ns);
    fault->next_ns = NEVER;
    remove_toxics(fault);
}

static void hold_evidence(struct fault *fault)
{
    struct traffic traffic = since(fault);
    fault_note(fault, "%" PRIu64 " byte%s held", fault->held_most, plural(fault->held_most));
    fault->seen = fault->held_most > 0 || traffic.blocked > 0;
}

const struct verb verb_pause_replication = {
    .begin = hold_begin, .step = hold_step, .end = hold_end, .evidence = hold_evidence};
