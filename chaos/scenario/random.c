/* SPDX-License-Identifier: Apache-2.0 */
/* The draw. Faults are dealt out to as many lanes as may hold at once; within a lane they follow
 * each other with random gaps, so no bound has to be checked afterwards and no draw is thrown away.
 */

#include "chaos/scenario/random.h"

#include "chaos/scenario/fields.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"

#define MS_NS UINT64_C(1000000)

bool random_can_draw(enum scenario_verb verb, bool strong)
{
    bool ends_others = verb == VERB_PROCESS_START || verb == VERB_PROCESS_RESUME ||
                       verb == VERB_CLOCK_RESET || verb == VERB_UNDO || verb == VERB_HEAL_ALL;
    bool of_leaders = verb == VERB_LEADER_KILL || verb == VERB_LEADER_TRANSFER;
    return !ends_others && (strong || !of_leaders);
}

/* In whole milliseconds, for people to read. */
static uint64_t draw_ms(struct rng *rng, uint64_t low_ms, uint64_t high_ms)
{
    return rng_between(rng, low_ms, high_ms) * MS_NS;
}

static enum scenario_verb draw_verb(struct rng *rng, const double weight[SCENARIO_VERB_COUNT])
{
    double sum = 0;
    enum scenario_verb last = SCENARIO_VERB_COUNT;
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++)
        sum += weight[i];
    double point = rng_unit(rng) * sum;
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++) {
        if (!(weight[i] > 0))
            continue;
        last = i;
        if (point < weight[i])
            break;
        point -= weight[i];
    }
    check(last != SCENARIO_VERB_COUNT);
    return last;
}

/* Swarm testing: leaving out some kinds of fault altogether lets the others go further. */
static void thin_out(struct rng *rng, double weight[SCENARIO_VERB_COUNT])
{
    enum scenario_verb keep = draw_verb(rng, weight);
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++) {
        bool out = rng_one_in(rng, 2);
        if (out && i != (uint32_t)keep)
            weight[i] = 0;
    }
}

/* ---- Parameters ---- */

static uint8_t draw_region(struct rng *rng, const struct scenario_cluster *cluster,
                           enum scenario_verb verb)
{
    bool of_process = verb == VERB_PROCESS_KILL || verb == VERB_PROCESS_PAUSE ||
                      verb == VERB_PROCESS_RESTART || verb == VERB_PROCESS_RESTART_LOOP ||
                      verb == VERB_PROCESS_HICCUP;
    bool witness_too = of_process || verb == VERB_PARTITION || verb == VERB_REPLICATION_PAUSE;
    uint64_t drawn = rng_below(rng, witness_too ? cluster->region_count : cluster->data_count);
    bool leader = rng_one_in(rng, 3);
    return leader && of_process && cluster->mode == SCENARIO_STRONG ? SCENARIO_REGION_LEADER
                                                                    : (uint8_t)drawn;
}

static uint8_t draw_shape(struct rng *rng, const struct scenario_cluster *cluster)
{
    for (;;) {
        uint8_t shape = (uint8_t)rng_below(rng, SCENARIO_SWIZZLE + 1);
        bool of_three = shape == SCENARIO_MAJORITIES_RING || shape == SCENARIO_BRIDGE;
        if ((cluster->region_count >= 3 || !of_three) &&
            (cluster->mode == SCENARIO_STRONG || shape != SCENARIO_PRIMARIES))
            return shape;
    }
}

static int64_t draw_signed(struct rng *rng, uint64_t low, uint64_t high)
{
    int64_t size = (int64_t)rng_between(rng, low, high);
    return rng_one_in(rng, 2) ? -size : size;
}

static uint8_t draw_other(struct rng *rng, uint8_t count, uint8_t not_this)
{
    uint8_t place = (uint8_t)rng_below(rng, count - 1u);
    return (uint8_t)(place + (place >= not_this));
}

/* Half of a period, if there is one. */
static uint64_t down_of(const struct scenario_fault *fault, uint64_t hold_ns)
{
    bool periodic = (fault->given & PARAM_BIT(PERIOD)) != 0;
    return periodic ? fault->period_ns / 2 / MS_NS * MS_NS : hold_ns;
}

static uint8_t draw_how(struct rng *rng, uint8_t shape)
{
    bool silent = rng_one_in(rng, 3);
    return silent && shape != SCENARIO_SWIZZLE ? SCENARIO_BLACKHOLE : SCENARIO_CUT;
}

/* True: the parameter is set. Those that name tables and operations stay as they are. */
static bool draw_param(struct rng *rng, const struct scenario_cluster *cluster,
                       enum scenario_param param, uint64_t hold_ns, struct scenario_fault *fault)
{
    bool of_api = fault->verb == VERB_API_ERROR || fault->verb == VERB_API_THROTTLE;
    switch (param) {
    case PARAM_REGION:
        fault->region = draw_region(rng, cluster, fault->verb);
        return true;
    case PARAM_FROM:
        fault->from = (uint8_t)rng_below(rng, cluster->region_count);
        return true;
    case PARAM_TO: /* after FROM; a leader's successor is anyone's choice */
        if (fault->from == SCENARIO_REGION_NONE)
            return false;
        fault->to = draw_other(rng, cluster->region_count, fault->from);
        return true;
    case PARAM_DIRECTION:
        fault->direction = (uint8_t)rng_below(rng, 2);
        return true;
    case PARAM_DELAY:
        fault->delay_ns = draw_ms(rng, 5, 300);
        return true;
    case PARAM_JITTER:
        fault->jitter_ns = draw_ms(rng, 1, 100);
        return true;
    case PARAM_DISTRIBUTION:
        fault->distribution = (uint8_t)rng_below(rng, SCENARIO_PARETO_NORMAL + 1);
        return true;
    case PARAM_RATE:
        fault->rate_bytes = rng_between(rng, 20, 2000) * 1000;
        return true;
    case PARAM_PERIOD:
        fault->period_ns = draw_ms(rng, 100, 1000);
        return true;
    case PARAM_PERCENT:
        fault->share = (double)rng_between(rng, 1, of_api ? 50 : 20) / 100;
        return true;
    case PARAM_SHAPE:
        fault->shape = draw_shape(rng, cluster);
        return true;
    case PARAM_HOW:
        fault->how = draw_how(rng, fault->shape);
        return true;
    case PARAM_LOSE_UNSYNCED:
        fault->lose_unsynced = rng_one_in(rng, 2);
        return true;
    case PARAM_DOWN:
        fault->down_ns = down_of(fault, hold_ns);
        return true;
    case PARAM_OFFSET:
        fault->offset_ns = draw_signed(rng, 10, 500) * (int64_t)MS_NS;
        return true;
    case PARAM_PPM:
        fault->ppm = draw_signed(rng, 100, 100000);
        return true;
    case PARAM_BITS:
        fault->bits = rng_between(rng, 1, 8);
        return true;
    case PARAM_CORRELATION:
    case PARAM_SIGNAL:
    case PARAM_FILES:
    case PARAM_CALLS:
    case PARAM_FREE:
    case PARAM_SIZE:
    case PARAM_TABLE:
    case PARAM_OPERATIONS:
    case PARAM_ERROR:
    case PARAM_FAULT:
    case SCENARIO_PARAM_COUNT:
        return false;
    }
    unreachable();
}

static void draw_fault(struct reader *reader, struct rng *rng, const double *weight, uint64_t at_ns,
                       uint64_t hold_ns, struct scenario_fault *ret)
{
    enum scenario_verb verb = draw_verb(rng, weight);
    const struct scenario_verb_info *info = scenario_verb_info(verb);
    *ret = (struct scenario_fault){.verb = (uint8_t)verb,
                                   .drawn = true,
                                   .at_ns = at_ns,
                                   .for_ns = info->lasting == VERB_ONCE ? 0 : hold_ns,
                                   .region = SCENARIO_REGION_NONE,
                                   .from = SCENARIO_REGION_NONE,
                                   .to = SCENARIO_REGION_NONE};
    for (uint32_t i = 0; i < SCENARIO_PARAM_COUNT; i++) {
        if (((info->required | info->optional) >> i & 1) == 0)
            continue;
        bool whole =
            verb == VERB_DISK_SLOW && i == PARAM_PERCENT; /* each call, as it must be met */
        field_set_standard(reader, &scenario_shape_params.at[i], ret);
        if (!whole && draw_param(rng, &reader->scenario->cluster, i, hold_ns, ret))
            ret->given |= UINT32_C(1) << i;
    }
}

/* ---- The timeline ---- */

static int compare_times(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* Times of `count` faults in a row: how long each holds and when it begins. */
static void draw_lane(struct rng *rng, const struct scenario_phase *phase, uint64_t count,
                      uint64_t *at_ns, uint64_t *hold_ns)
{
    const struct scenario_random *random = &phase->random;
    uint64_t sum = 0, before = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += hold_ns[i] = draw_ms(rng, random->hold_min_ns / MS_NS, random->hold_max_ns / MS_NS);
    if (sum > phase->for_ns) {
        /* All give up the same share of what they have above the least. */
        uint64_t least = count * (random->hold_min_ns / MS_NS * MS_NS);
        double kept = (double)(phase->for_ns - least) / (double)(sum - least);
        sum = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t low = random->hold_min_ns / MS_NS * MS_NS;
            hold_ns[i] = low + (uint64_t)((double)(hold_ns[i] - low) * kept) / MS_NS * MS_NS;
            sum += hold_ns[i];
        }
    }
    for (uint64_t i = 0; i < count; i++)
        at_ns[i] = draw_ms(rng, 0, (phase->for_ns - sum) / MS_NS);
    qsort(at_ns, count, sizeof(*at_ns), compare_times);
    for (uint64_t i = 0; i < count; i++) {
        at_ns[i] += before;
        before += hold_ns[i];
    }
}

static void expand_phase(struct reader *reader, struct scenario_phase *phase, struct rng *rng)
{
    const struct scenario_random *random = &phase->random;
    uint64_t count = random->count, lanes = random->at_once;
    uint64_t *at_ns = arena_array(reader->arena, uint64_t, count);
    uint64_t *hold_ns = arena_array(reader->arena, uint64_t, count);
    double weight[SCENARIO_VERB_COUNT];
    memcpy(weight, random->weight, sizeof(weight));
    if (random->swarm)
        thin_out(rng, weight);
    for (uint64_t lane = 0, first = 0; lane < lanes; lane++) {
        uint64_t in_lane = count / lanes + (lane < count % lanes);
        draw_lane(rng, phase, in_lane, at_ns + first, hold_ns + first);
        first += in_lane;
    }
    for (uint64_t i = 0; i < count; i++)
        draw_fault(reader, rng, weight, at_ns[i], hold_ns[i], &phase->faults[phase->fault_count++]);
}

/* Drops what was drawn before and makes room for what will be. */
static void make_room(struct scenario *scenario, struct scenario_phase *phase)
{
    struct scenario_fault *old = phase->faults;
    uint32_t old_count = phase->fault_count;
    phase->faults = arena_array(&scenario->arena, struct scenario_fault,
                                old_count + (size_t)phase->random.count);
    phase->fault_count = 0;
    for (uint32_t i = 0; i < old_count; i++)
        if (!old[i].drawn)
            phase->faults[phase->fault_count++] = old[i];
}

void random_expand(struct scenario *scenario, uint64_t seed)
{
    struct reader reader = {.arena = &scenario->arena, .scenario = scenario};
    uint32_t number = 0;
    for (uint32_t i = 0; i < scenario->phase_count; i++)
        if (scenario->phases[i].random.count > 0)
            make_room(scenario, &scenario->phases[i]);
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        struct scenario_phase *phase = &scenario->phases[i];
        struct rng rng;
        if (phase->random.count == 0)
            continue;
        rng_init(&rng, seed + UINT64_C(0x9e3779b97f4a7c15) * (i + 1));
        expand_phase(&reader, phase, &rng);
        scenario_sort_faults(phase);
        for (uint32_t j = 0; j < phase->fault_count; j++)
            if (phase->faults[j].drawn)
                phase->faults[j].id = scenario_new_id(scenario, "r", &number);
    }
}
