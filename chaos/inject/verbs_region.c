/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that Regions bring about themselves, when they are told to: at the boundaries of messages
 * and requests, of their clocks, and hand-overs of leadership. */

#include <inttypes.h>

#include "chaos/inject/inject_internal.h"
#include "conflict/base/check.h"

/* ---- At the boundaries of messages and requests ---- */

static bool holds_on(const struct fault *fault, const struct verb *verb, uint8_t place)
{
    return fault->verb == verb && fault->state == FAULT_HOLDS && (fault->regions >> place & 1) != 0;
}

static json_t *message_rule(const struct fault *fault, const char *kind, uint8_t from)
{
    const struct inject *inject = fault->inject;
    uint8_t to = fault->pairs[from], peer = 0;
    json_t *rule = json_pack("{s:s, s:f, s:f}", "kind", kind, "share", fault->spec->share,
                             "correlation", fault->spec->correlation);
    while (peer + 1u < inject->place_count && (to >> peer & 1) == 0)
        peer++;
    if (to == 1u << peer) /* else it is all of them: nobody can name two */
        json_object_set_new(rule, "peer", json_string(inject_name(inject, peer)));
    if (fault->spec->verb == VERB_LINK_REORDER)
        json_object_set_new(
            rule, "delay_ms",
            json_integer((json_int_t)((fault->spec->delay_ns + NS_PER_MS - 1) / NS_PER_MS)));
    return rule;
}

static json_t *error_rule(const struct fault *fault, const char *error)
{
    json_t *rule =
        json_pack("{s:s, s:s, s:f}", "kind", "error", "error", error, "share", fault->spec->share);
    if (fault->spec->operations.count == 0)
        return rule;
    json_t *operations = json_array();
    for (uint32_t i = 0; i < fault->spec->operations.count; i++)
        json_array_append_new(operations, json_string(fault->spec->operations.at[i]));
    json_object_set_new(rule, "operations", operations);
    return rule;
}

static const char *how_name(uint8_t how)
{
    switch ((enum scenario_how)how) {
    case SCENARIO_CUT:
        return "cut";
    case SCENARIO_BLACKHOLE:
        return "blackhole";
    case SCENARIO_REFUSE:
        return "refuse";
    case SCENARIO_RESET:
        return "reset";
    }
    unreachable();
}

static json_t *rule_of(const struct fault *fault, uint8_t place)
{
    enum scenario_verb verb = fault->spec->verb;
    if (verb == VERB_CLIENT_BLOCK)
        return json_pack("{s:s, s:s}", "kind", "clients", "how", how_name(fault->spec->how));
    if (verb == VERB_API_THROTTLE)
        return error_rule(fault, "ProvisionedThroughputExceededException");
    if (verb == VERB_API_ERROR)
        return error_rule(fault, fault->spec->error);
    if (fault->pairs[place] == 0)
        return NULL; /* it only receives */
    return message_rule(fault,
                        verb == VERB_LINK_LOSS        ? "loss"
                        : verb == VERB_LINK_DUPLICATE ? "duplicate"
                        : verb == VERB_LINK_CORRUPT   ? "corrupt"
                                                      : "reorder",
                        place);
}

json_t *region_faults(const struct place *place)
{
    json_t *list = json_array();
    list_each(link, spare, &place->inject->faults)
    {
        const struct fault *fault = container_of(link, struct fault, link);
        json_t *rule =
            holds_on(fault, &verb_rule, place->index) ? rule_of(fault, place->index) : NULL;
        if (rule == NULL)
            continue;
        json_object_set_new(rule, "id", json_string(fault->spec->id));
        json_array_append_new(list, rule);
    }
    return json_pack("{s:o}", "faults", list);
}

static void change_places(struct fault *fault, void (*changed)(struct place *place))
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        if ((fault->regions >> i & 1) != 0)
            changed(inject_place(fault->inject, i));
}

static bool places_settled(struct fault *fault)
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        if ((fault->regions >> i & 1) != 0 && !place_settled(inject_place(fault->inject, i)))
            return false;
    return true;
}

static bool rule_begin(struct fault *fault)
{
    change_places(fault, place_changed);
    return true;
}

static void rule_end(struct fault *fault)
{
    change_places(fault, place_changed);
}

static void rule_evidence(struct fault *fault)
{
    enum scenario_verb verb = fault->spec->verb;
    uint64_t hits = 0, closed = 0;
    for (uint8_t i = 0; i < fault->inject->place_count; i++) {
        hits += fault->hits[i].now + fault->hits[i].before;
        closed += fault->hits[i].closed_now + fault->hits[i].closed_before;
    }
    bool of_api = verb == VERB_API_ERROR || verb == VERB_API_THROTTLE;
    fault_note(fault, "%" PRIu64 " %s%s %s", hits,
               verb == VERB_LINK_CORRUPT             ? "byte"
               : of_api || verb == VERB_CLIENT_BLOCK ? "request"
                                                     : "message",
               plural(hits),
               verb == VERB_LINK_LOSS        ? "lost"
               : verb == VERB_LINK_DUPLICATE ? "doubled"
               : verb == VERB_LINK_CORRUPT   ? "corrupted"
               : of_api                      ? "answered with the error"
                                             : "kept back");
    fault->seen = hits > 0;
    if (verb != VERB_LINK_CORRUPT)
        return;
    fault_note(fault, "%" PRIu64 " stream%s closed by it", closed, plural(closed));
    fault->seen = closed > 0; /* a receiver that noticed nothing was not tried, or failed */
}

const struct verb verb_rule = {
    .begin = rule_begin, .end = rule_end, .settled = places_settled, .evidence = rule_evidence};

/* ---- Clocks ---- */

static int64_t round_ms(int64_t ns)
{
    int64_t half = (int64_t)NS_PER_MS / 2;
    return (ns + (ns < 0 ? -half : half)) / (int64_t)NS_PER_MS;
}

/* The last offset, plus all steps, plus what strobes add now, plus what the last rate has gained.
 */
void place_clock(const struct place *place, uint64_t now_ns, int64_t *ret_offset_ms,
                 int64_t *ret_rate_ppm)
{
    int64_t offset_ns = 0, moved_ns = 0, drift_ns = 0, rate_ppm = 0;
    list_each(link, spare, &place->inject->faults)
    {
        const struct fault *fault = container_of(link, struct fault, link);
        const struct scenario_fault *spec = fault->spec;
        if (!holds_on(fault, &verb_clock, place->index))
            continue;
        if (spec->verb == VERB_CLOCK_OFFSET) {
            offset_ns = spec->offset_ns;
        } else if (spec->verb == VERB_CLOCK_STEP || fault->phase) {
            moved_ns += spec->offset_ns;
        } else if (spec->verb == VERB_CLOCK_RATE) {
            rate_ppm = spec->ppm;
            drift_ns = (int64_t)((double)(now_ns - fault->began_ns) * (double)spec->ppm / 1e6);
        }
    }
    *ret_offset_ms = round_ms(offset_ns + moved_ns + drift_ns);
    *ret_rate_ppm = rate_ppm;
}

/* Of two offsets, or rates, the later one holds. */
static bool is_latest(const struct place *place, const struct fault *fault)
{
    bool latest = false;
    list_each(link, spare, &place->inject->faults)
    {
        const struct fault *other = container_of(link, struct fault, link);
        if (holds_on(other, &verb_clock, place->index) && other->spec->verb == fault->spec->verb)
            latest = other == fault;
    }
    return latest;
}

bool place_clock_shares(const struct place *place, const struct fault *fault)
{
    if (!holds_on(fault, &verb_clock, place->index))
        return false;
    if (fault->spec->verb == VERB_CLOCK_STROBE)
        return fault->phase;
    return fault->spec->verb == VERB_CLOCK_STEP || is_latest(place, fault);
}

static void clock_step(struct fault *fault, uint64_t now_ns)
{
    uint64_t half_ns = fault->spec->period_ns / 2;
    fault->phase = !fault->phase;
    fault->next_ns =
        fault->next_ns + half_ns < now_ns ? now_ns + half_ns : fault->next_ns + half_ns;
    change_places(fault, place_clock_changed);
}

static bool clock_begin(struct fault *fault)
{
    fault->next_ns = fault->began_ns;
    if (fault->spec->verb == VERB_CLOCK_STROBE)
        clock_step(fault, fault->began_ns);
    else
        fault->next_ns = NEVER;
    change_places(fault, place_clock_changed);
    return true;
}

static void clock_end(struct fault *fault)
{
    fault->next_ns = NEVER;
    fault->phase = false;
    change_places(fault, place_clock_changed);
}

static void clock_evidence(struct fault *fault)
{
    const struct scenario_fault *spec = fault->spec;
    if (!fault->seen)
        fault_note(fault, "no Region has said that its clock was moved");
    else if (spec->verb == VERB_CLOCK_RATE)
        fault_note(fault, "rate read back: %" PRId64 " ppm", spec->ppm);
    else if (spec->verb == VERB_CLOCK_STROBE)
        fault_note(fault, "moved %" PRIu64 " time%s by %" PRId64 " ms", fault->times,
                   plural(fault->times), round_ms(spec->offset_ns));
    else if (fault->clock_ms[0] == 0)
        fault_note(fault, "offset read back: %" PRId64 " ms", fault->clock_ms[1]);
    else
        fault_note(fault, "offset read back: %" PRId64 " ms, and %" PRId64 " ms before",
                   fault->clock_ms[1], fault->clock_ms[0]);
}

const struct verb verb_clock = {.begin = clock_begin,
                                .step = clock_step,
                                .end = clock_end,
                                .settled = places_settled,
                                .evidence = clock_evidence};

/* ---- leader.transfer: asked for until those that led groups lead none of them any more ---- */

enum { TRANSFER_MS_MAX = 10000, TRANSFER_AGAIN_MS = 200 };

/* From the leader of most to the next Region; or, if one is named, from all others to that one. */
static bool transfer_begin(struct fault *fault)
{
    struct inject *inject = fault->inject;
    uint8_t count = inject->config.scenario->cluster.data_count, leader = 0;
    while ((fault->regions >> leader & 1) == 0)
        leader++;
    fault->to = fault->spec->to;
    if (fault->to == SCENARIO_REGION_NONE) { /* the next with data that runs */
        for (uint8_t i = 1; i < count && fault->to == SCENARIO_REGION_NONE; i++)
            if (place_running(inject_place(inject, (uint8_t)((leader + i) % count))))
                fault->to = (uint8_t)((leader + i) % count);
    } else {
        fault->regions = (uint8_t)(((1u << count) - 1) & ~(1u << fault->to));
    }
    if (fault->to >= count)
        return fault_refuse(fault, "no Region with data is there to lead");
    fault->patience_ns = TRANSFER_MS_MAX * NS_PER_MS;
    fault->next_ns = fault->began_ns;
    return true;
}

static void transfer_step(struct fault *fault, uint64_t now_ns)
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        if (((fault->regions & ~fault->seen_down) >> i & 1) != 0)
            place_ask_transfer(inject_place(fault->inject, i), fault);
    fault->next_ns = now_ns + TRANSFER_AGAIN_MS * NS_PER_MS;
}

/* Who does not run leads nothing. */
static bool transfer_settled(struct fault *fault)
{
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        if (((fault->regions & ~fault->seen_down) >> i & 1) != 0 &&
            place_running(inject_place(fault->inject, i)))
            return false;
    return true;
}

static void transfer_evidence(struct fault *fault)
{
    uint64_t groups = 0;
    for (uint8_t i = 0; i < fault->inject->place_count; i++)
        groups += fault->hits[i].now;
    bool all = transfer_settled(fault);
    fault_note(fault, "%" PRIu64 " group%s to be led by %s, %s", groups,
               groups == 1 ? " was" : "s were", inject_name(fault->inject, fault->to),
               all ? "and none is led by whom it was any more" : "and some have stayed");
    fault->seen = all && groups > 0;
}

const struct verb verb_transfer = {.begin = transfer_begin,
                                   .step = transfer_step,
                                   .settled = transfer_settled,
                                   .evidence = transfer_evidence};
