/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs as data, what a partition's shape means, and how a fault is told to people. */

#include "chaos/scenario/verbs.h"

#include "chaos/scenario/fields.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"

static const struct scenario_verb_info verbs[] = {
#define VERB(enumerator, text, lasts, must, may, undone_by, about)                                 \
    {text, VERB_##lasts, must, may, VERB_##undone_by, about},
    SCENARIO_VERB_MAP(VERB)
#undef VERB
};
_Static_assert(SCENARIO_PARAM_COUNT <= 32, "a set of parameters is 32 bits");

const struct scenario_verb_info *scenario_verb_info(enum scenario_verb verb)
{
    check(verb < SCENARIO_VERB_COUNT);
    return &verbs[verb];
}

enum scenario_verb scenario_verb_find(struct bytes name)
{
    enum scenario_verb verb = 0;
    while (verb < SCENARIO_VERB_COUNT && !bytes_is(name, verbs[verb].name))
        verb++;
    return verb;
}

const char *scenario_region_name(const struct scenario_cluster *cluster, uint8_t region)
{
    if (region < cluster->region_count)
        return cluster->region[region].name;
    return region == SCENARIO_REGION_ALL ? "all" : region == SCENARIO_REGION_LEADER ? "leader" : "";
}

/* ---- Partitions ---- */

static void cut_pair(uint32_t a, uint32_t b, uint8_t cuts[SCENARIO_REGIONS_MAX])
{
    cuts[a] |= (uint8_t)(1u << b);
    cuts[b] |= (uint8_t)(1u << a);
}

/* No Region of one set reaches one of the other; `bridge` is in neither. */
static void cut_sets(uint32_t count, uint8_t set, uint8_t bridge,
                     uint8_t cuts[SCENARIO_REGIONS_MAX])
{
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            if ((set >> a & 1) != 0 && (set >> b & 1) == 0 &&
                ((bridge >> a | bridge >> b) & 1) == 0)
                cut_pair(a, b, cuts);
}

/* Each Region keeps its nearest to either side, as many as make a majority with it; with an even
 * number of Regions that is one more. In a ring of three all are neighbours, so one pair goes. */
static void cut_ring(uint32_t count, uint8_t cuts[SCENARIO_REGIONS_MAX])
{
    uint32_t reach = (count / 2 + 1) / 2;
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = a + 1; b < count; b++) {
            uint32_t apart = b - a < count - (b - a) ? b - a : count - (b - a);
            if (apart > reach || (count == 3 && b - a == 2))
                cut_pair(a, b, cuts);
        }
    }
}

static uint8_t lowest_of(uint8_t set)
{
    uint8_t place = 0;
    while (place < 7 && (set >> place & 1) == 0)
        place++;
    return place;
}

void scenario_partition(const struct scenario_cluster *cluster, const struct scenario_fault *fault,
                        uint8_t leaders, uint8_t ret[SCENARIO_REGIONS_MAX])
{
    uint32_t count = cluster->region_count;
    uint8_t half = (uint8_t)((1u << count / 2) - 1), all = (uint8_t)((1u << count) - 1);
    uint8_t region = fault->region == SCENARIO_REGION_LEADER ? lowest_of(leaders) : fault->region;
    if (region >= count)
        region = fault->shape == SCENARIO_BRIDGE ? (uint8_t)(count / 2) : 0;
    uint8_t alone = (uint8_t)(1u << region);
    uint8_t cuts[SCENARIO_REGIONS_MAX] = {0};
    switch ((enum scenario_shape)fault->shape) {
    case SCENARIO_ONE:
        cut_sets(count, alone, 0, cuts);
        break;
    case SCENARIO_HALVES:
        cut_sets(count, half, 0, cuts);
        break;
    case SCENARIO_MAJORITIES_RING:
        cut_ring(count, cuts);
        break;
    case SCENARIO_BRIDGE:
        cut_sets(count, half, alone, cuts);
        break;
    case SCENARIO_PRIMARIES:
        for (uint32_t i = 0; i < count; i++)
            if ((leaders >> i & 1) != 0)
                cut_sets(count, (uint8_t)(1u << i), 0, cuts);
        break;
    case SCENARIO_ASYMMETRIC:
        cuts[region] = (uint8_t)(all & ~alone);
        break;
    case SCENARIO_SWIZZLE: /* all that it comes to */
        for (uint32_t i = 0; i < count; i++)
            cut_sets(count, (uint8_t)(1u << i), 0, cuts);
        break;
    }
    memcpy(ret, cuts, sizeof(cuts));
}

static void draw_order(struct rng *rng, uint32_t count, uint8_t order[SCENARIO_REGIONS_MAX])
{
    for (uint8_t i = 0; i < count; i++) {
        uint32_t other = (uint32_t)rng_below(rng, i + 1u);
        order[i] = order[other];
        order[other] = i;
    }
}

uint8_t scenario_swizzle(uint32_t count, uint64_t luck, uint32_t steps)
{
    uint8_t leave[SCENARIO_REGIONS_MAX] = {0}, come[SCENARIO_REGIONS_MAX] = {0}, apart = 0;
    struct rng rng;
    check(count <= SCENARIO_REGIONS_MAX);
    rng_init(&rng, luck);
    draw_order(&rng, count, leave);
    draw_order(&rng, count, come);
    for (uint32_t i = 0; i < steps && i < 2 * count; i++) {
        uint8_t bit = (uint8_t)(1u << (i < count ? leave[i] : come[i - count]));
        apart = i < count ? apart | bit : apart & (uint8_t)~bit;
    }
    return apart;
}

/* ---- In words ---- */

static const char *choice_name(const struct choice *choices, uint8_t value)
{
    while (choices->name != NULL && choices->value != value)
        choices++;
    return choices->name == NULL ? "" : choices->name;
}

void scenario_print_time(int64_t ns, struct buf *to)
{
    double size = (double)ns;
    double positive = size < 0 ? -size : size;
    if (positive >= 3600e9)
        buf_printf(to, "%gh", size / 3600e9);
    else if (positive >= 1e9)
        buf_printf(to, "%gs", size / 1e9);
    else if (positive >= 1e6)
        buf_printf(to, "%gms", size / 1e6);
    else if (positive >= 1e3)
        buf_printf(to, "%gus", size / 1e3);
    else
        buf_printf(to, "%lldns", (long long)ns);
}

static void print_param(const struct scenario_cluster *cluster, const struct scenario_fault *fault,
                        const struct field *field, struct buf *to)
{
    const void *member = (const char *)fault + field->offset;
    if (field->type == FIELD_REGION)
        buf_append_text(to, scenario_region_name(cluster, *(const uint8_t *)member));
    else if (field->type == FIELD_CHOICE)
        buf_append_text(to, choice_name(field->choices, *(const uint8_t *)member));
    else if (field->type == FIELD_TIME || field->type == FIELD_OFFSET)
        scenario_print_time(*(const int64_t *)member, to);
    else if (field->type == FIELD_SIGNED)
        buf_printf(to, "%lld", (long long)*(const int64_t *)member);
    else if (field->type == FIELD_PERCENT)
        buf_printf(to, "%g", 100 * *(const double *)member);
    else if (field->type == FIELD_BOOL)
        buf_append_text(to, *(const bool *)member ? "true" : "false");
    else if (field->type == FIELD_TEXT)
        buf_append_text(to, *(const char *const *)member);
    else if (field->type == FIELD_TEXTS)
        for (uint32_t i = 0; i < ((const struct scenario_texts *)member)->count; i++)
            buf_printf(to, "%s%s", i == 0 ? "" : "+",
                       ((const struct scenario_texts *)member)->at[i]);
    else
        buf_printf(to, "%llu", (unsigned long long)*(const uint64_t *)member);
}

void scenario_fault_print(const struct scenario_cluster *cluster,
                          const struct scenario_fault *fault, struct buf *to)
{
    uint32_t rest = fault->given;
    buf_append_text(to, scenario_verb_info(fault->verb)->name);
    if ((rest & PARAM_BIT(REGION)) != 0)
        buf_printf(to, " %s", scenario_region_name(cluster, fault->region));
    if ((rest & LINK_ENDS) == LINK_ENDS) {
        buf_printf(to, " %s %s %s", scenario_region_name(cluster, fault->from),
                   fault->direction == SCENARIO_BOTH_WAYS ? "<->" : "->",
                   scenario_region_name(cluster, fault->to));
        rest &= ~(LINK_ENDS | PARAM_BIT(DIRECTION));
    }
    rest &= ~PARAM_BIT(REGION);
    for (uint32_t i = 0; i < SCENARIO_PARAM_COUNT; i++) {
        if ((rest >> i & 1) == 0)
            continue;
        buf_printf(to, " %s=", scenario_shape_params.at[i].key);
        print_param(cluster, fault, &scenario_shape_params.at[i], to);
    }
    if (fault->for_ns > 0) {
        buf_append_text(to, " for ");
        scenario_print_time((int64_t)fault->for_ns, to);
    }
}
