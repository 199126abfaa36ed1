/* SPDX-License-Identifier: Apache-2.0 */
/* The phases part, all but the faults: how long each lasts, what it waits for, what is drawn. */

#include "chaos/scenario/fields.h"
#include "chaos/scenario/random.h"
#include "chaos/scenario/value.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { WEIGHT_MAX = 1000000 };

void scenario_read_heal(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_phase *phase = into;
    phase->heal = node->kind == NODE_SCALAR && strcmp(node->text, "heal-all") == 0;
    if (!phase->heal)
        reader_fail(reader, node,
                    "a phase itself does heal-all or nothing: list other verbs under `faults`");
}

void scenario_read_until(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_phase *phase = into;
    struct scenario_until *until = &phase->until;
    bool strong = reader->scenario->cluster.mode == SCENARIO_STRONG;
    phase->has_until = true;
    if (!reader_wants(reader, node, NODE_MAP, "a mapping such as {converged: true, timeout: 60s}"))
        return;
    uint32_t before = reader->errors;
    shape_read(reader, node, &scenario_shape_until, until);
    if (reader->errors > before)
        return;
    if (!until->converged && !until->caught_up && !until->leaders)
        reader_fail(reader, node, "nothing to wait for: expected converged, caught_up or leaders");
    if (!strong && !reader->lost && (until->caught_up || until->leaders))
        reader_fail(reader, node,
                    "caught_up and leaders are of `mode: strong`: wait for "
                    "converged here");
}

void scenario_read_weights(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_random *random = into;
    bool strong = reader->lost || reader->scenario->cluster.mode == SCENARIO_STRONG;
    const char *known[SCENARIO_VERB_COUNT];
    uint32_t known_count = 0;
    double sum = 0;
    uint32_t before = reader->errors;
    if (!reader_wants(reader, node, NODE_MAP, "a mapping such as {link.cut: 3, process.kill: 1}"))
        return;
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++)
        if (random_can_draw(i, strong))
            known[known_count++] = scenario_verb_info(i)->name;
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        double weight;
        enum scenario_verb verb = scenario_verb_find(bytes_text(at->key));
        if (verb == SCENARIO_VERB_COUNT)
            field_unknown(reader, at, known, known_count);
        else if (!random_can_draw(verb, strong))
            reader_fail(reader, at, "%s cannot be drawn%s", at->key,
                        random_can_draw(verb, true) ? " in an eventual cluster"
                                                    : ": it only ends what others began");
        else if (at->kind != NODE_SCALAR || !value_number(bytes_text(at->text), &weight) ||
                 weight > WEIGHT_MAX)
            reader_fail(reader, at, "expected a number from 0 to %d", WEIGHT_MAX);
        else
            sum += random->weight[verb] = weight;
    }
    if (sum <= 0 && reader->errors == before)
        reader_fail(reader, node, "nothing can be drawn: give some verb a weight above 0");
}

static void finish_random(struct reader *reader, const struct node *node,
                          const struct scenario_phase *phase)
{
    const struct scenario_random *random = &phase->random;
    const struct node *at = node_find(node, "random");
    if (random->hold_min_ns > random->hold_max_ns)
        reader_fail(reader, at, "hold_min is above hold_max");
    if (phase->for_ns < random->hold_max_ns)
        reader_fail(reader, at,
                    "the phase must last (`for`) at least as long as hold_max, so "
                    "that what is drawn ends in it");
    uint64_t in_lane = (random->count + random->at_once - 1) / random->at_once;
    if (in_lane * random->hold_min_ns > phase->for_ns)
        reader_fail(reader, at,
                    "there is no room: %llu faults, %llu at once and each for hold_min, "
                    "take longer than the phase",
                    (unsigned long long)random->count, (unsigned long long)random->at_once);
    reader->fault_count += (uint32_t)random->count;
    if (reader->scenario->cluster.region_count < 2 && !reader->lost)
        reader_fail(reader, at, "a cluster of one Region is too small to draw faults for");
}

static void read_phase(struct reader *reader, const struct node *node, struct scenario_phase *phase)
{
    struct buf name cleanup(buf_deinit);
    buf_init(&name);
    buf_printf(&name, "phase-%u", node->index + 1);
    phase->name = bytes_copy_text(reader->arena, buf_view(&name));
    phase->writers = reader->scenario->workload.writers;
    uint64_t given = shape_read(reader, node, &scenario_shape_phase, phase);
    uint64_t bad = reader->bad, times = KEY_BIT(PHASE_FOR) | KEY_BIT(PHASE_UNTIL);
    if (!phase->has_until && phase->for_ns == 0 && (bad & times) == 0)
        reader_fail(reader, node, "how long? give it `for` or `until`");
    if ((given & KEY_BIT(PHASE_RANDOM)) != 0 &&
        (bad & (KEY_BIT(PHASE_RANDOM) | KEY_BIT(PHASE_FOR))) == 0)
        finish_random(reader, node, phase);
}

void scenario_read_phases(struct reader *reader, const struct node *node, void *into)
{
    struct scenario *scenario = into;
    if (!reader_wants(reader, node, NODE_LIST, "a list of phases"))
        return;
    if (node->count == 0 || node->count > SCENARIO_PHASES_MAX) {
        reader_fail(reader, node, "expected 1 to %d phases, but these are %u", SCENARIO_PHASES_MAX,
                    node->count);
        return;
    }
    scenario->phases = arena_array(reader->arena, struct scenario_phase, node->count);
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        struct scenario_phase *phase = &scenario->phases[scenario->phase_count++];
        phase->name = "";
        if (!reader_wants(reader, at, NODE_MAP, "a phase, which is a mapping")) {
            reader->ids_lost = true;
            continue;
        }
        read_phase(reader, at, phase);
        for (uint32_t i = 0; i + 1 < scenario->phase_count; i++)
            if (strcmp(scenario->phases[i].name, phase->name) == 0)
                reader_fail(reader, at, "a phase before is named '%s', too", phase->name);
    }
    if (reader->fault_count > SCENARIO_FAULTS_MAX)
        reader_fail(reader, node, "too many faults: %u, and at most %d in a scenario",
                    reader->fault_count, SCENARIO_FAULTS_MAX);
    scenario_finish_faults(reader, node, scenario);
}

json_t *scenario_schema_phases(void)
{
    return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items",
                     shape_schema(&scenario_shape_phase), "minItems", 1, "maxItems",
                     SCENARIO_PHASES_MAX);
}

json_t *scenario_schema_weights(void)
{
    json_t *verbs = json_object();
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++)
        if (random_can_draw(i, true))
            json_object_set_new(verbs, scenario_verb_info(i)->name,
                                json_pack("{s:s, s:i, s:i}", "type", "number", "minimum", 0,
                                          "maximum", WEIGHT_MAX));
    return json_pack("{s:s, s:o, s:b, s:i}", "type", "object", "properties", verbs,
                     "additionalProperties", 0, "minProperties", 1);
}
