/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of a phase. Which keys a fault may have depends on its verb: the table of verbs says
 * which, the table of parameters what they are. */

#include "chaos/scenario/fields.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { KNOWN_MAX = 40 };

static uint32_t known_keys(uint32_t params, const char *known[KNOWN_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scenario_shape_fault.count; i++)
        known[count++] = scenario_shape_fault.at[i].key;
    for (uint32_t i = 0; i < SCENARIO_PARAM_COUNT; i++)
        if ((params >> i & 1) != 0)
            known[count++] = scenario_shape_params.at[i].key;
    check(count <= KNOWN_MAX);
    return count;
}

static void refuse_strangers(struct reader *reader, const struct node *node,
                             const struct scenario_verb_info *verb)
{
    const char *known[KNOWN_MAX];
    uint32_t count = known_keys(verb->required | verb->optional, known);
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        bool found = false, elsewhere = false;
        for (uint32_t i = 0; i < count && !found; i++)
            found = strcmp(known[i], at->key) == 0;
        for (uint32_t i = 0; i < SCENARIO_PARAM_COUNT && !found; i++)
            elsewhere |= strcmp(scenario_shape_params.at[i].key, at->key) == 0;
        if (!found && elsewhere)
            reader_fail(reader, at, "%s has no such key", verb->name);
        else if (!found)
            field_unknown(reader, at, known, count);
    }
}

static enum scenario_verb read_verb(struct reader *reader, const struct node *node)
{
    const char *names[SCENARIO_VERB_COUNT];
    const struct node *word = node_find(node, "do");
    if (word == NULL) {
        static const char *const only[] = {"do"};
        const struct node *at = node->first;
        while (at != NULL && words_meant(at->key, only, 1) == NULL)
            at = at->next;
        if (at != NULL)
            field_unknown(reader, at, only, 1);
        else
            reader_fail(reader, node, "the key 'do' is missing: a verb such as link.cut");
        return SCENARIO_VERB_COUNT;
    }
    if (!reader_wants(reader, word, NODE_SCALAR, "a verb such as link.cut"))
        return SCENARIO_VERB_COUNT;
    enum scenario_verb verb = scenario_verb_find(bytes_text(word->text));
    if (verb != SCENARIO_VERB_COUNT)
        return verb;
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++)
        names[i] = scenario_verb_info(i)->name;
    const char *nearest = field_nearest(word->text, names, SCENARIO_VERB_COUNT);
    if (nearest != NULL)
        reader_fail(reader, word, "there is no verb '%.64s': did you mean '%s'?", word->text,
                    nearest);
    else
        reader_fail(reader, word,
                    "there is no verb '%.64s': expected one such as link.cut or process.kill",
                    word->text);
    return SCENARIO_VERB_COUNT;
}

static void read_params(struct reader *reader, const struct node *node,
                        const struct scenario_verb_info *verb, struct scenario_fault *fault)
{
    uint32_t all = verb->required | verb->optional;
    for (uint32_t i = 0; i < SCENARIO_PARAM_COUNT; i++) {
        const struct field *field = &scenario_shape_params.at[i];
        const struct node *value = node_find(node, field->key);
        if ((all >> i & 1) == 0)
            continue;
        field_set_standard(reader, field, fault);
        if (value != NULL) {
            fault->given |= UINT32_C(1) << i;
            field_read(reader, value, field, fault);
        } else if ((verb->required >> i & 1) != 0) {
            reader_fail(reader, node, "%s needs the key '%s': %s", verb->name, field->key,
                        field->help);
        }
    }
}

/* ---- What depends on several keys ---- */

static bool is_witness(const struct scenario_cluster *cluster, uint8_t region)
{
    return scenario_has_witness(cluster) && region == cluster->region_count - 1;
}

static const char *fault_of_partition(const struct scenario_cluster *cluster,
                                      const struct scenario_fault *fault)
{
    if (fault->shape == SCENARIO_PRIMARIES && cluster->mode != SCENARIO_STRONG)
        return "the shape primaries is of leaders, and so of `mode: strong`";
    if (cluster->region_count < 2)
        return "one Region alone cannot be partitioned";
    if (cluster->region_count < 3 &&
        (fault->shape == SCENARIO_MAJORITIES_RING || fault->shape == SCENARIO_BRIDGE))
        return "this shape needs three Regions or more";
    if (fault->shape == SCENARIO_SWIZZLE && fault->for_ns == 0)
        return "a swizzle needs 'for': its steps are parts of it";
    if (fault->shape == SCENARIO_SWIZZLE && fault->how != SCENARIO_CUT)
        return "a swizzle cuts: expected `how: cut`";
    if (fault->region == SCENARIO_REGION_ALL)
        return "a partition is drawn around one Region: name it, or leave 'region' out";
    return fault->how == SCENARIO_CUT || fault->how == SCENARIO_BLACKHOLE
               ? NULL
               : "a partition cuts or swallows: expected `how: cut` or `how: blackhole`";
}

/* NULL, or what is wrong with this verb in this cluster. */
static const char *fault_of_cluster(const struct scenario_cluster *cluster,
                                    const struct scenario_fault *fault)
{
    bool strong = cluster->mode == SCENARIO_STRONG;
    switch ((enum scenario_verb)fault->verb) {
    case VERB_LEADER_KILL:
    case VERB_LEADER_TRANSFER:
        if (!strong)
            return "there are leaders only in a cluster of `mode: strong`";
        if (fault->verb == VERB_LEADER_TRANSFER && is_witness(cluster, fault->to))
            return "a witness leads nothing: name a Region that has data";
        return fault->to == SCENARIO_REGION_ALL || fault->to == SCENARIO_REGION_LEADER
                   ? "leadership goes to one Region: name it, or leave 'to' out"
                   : NULL;
    case VERB_PARTITION:
        return fault_of_partition(cluster, fault);
    case VERB_CLIENT_BLOCK:
    case VERB_API_ERROR:
    case VERB_API_THROTTLE:
        return is_witness(cluster, fault->region) ? "a witness has no clients" : NULL;
    case VERB_REPLICATION_PAUSE:
        return cluster->region_count < 2 ? "one Region alone replicates to nobody" : NULL;
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
        if (cluster->region_count < 2)
            return "one Region alone has no links";
        return fault->from == fault->to && fault->from != SCENARIO_REGION_ALL
                   ? "a link joins two Regions: `from` and `to` are the same"
                   : NULL;
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
    case VERB_UNDO:
    case VERB_HEAL_ALL:
    case SCENARIO_VERB_COUNT:
        return NULL;
    }
    unreachable();
}

/* It is down for a part of each period. */
static bool has_down(enum scenario_verb verb)
{
    const struct scenario_verb_info *info = scenario_verb_info(verb);
    return (info->required & PARAM_BIT(PERIOD)) != 0 && (info->optional & PARAM_BIT(DOWN)) != 0;
}

/* NULL, or what is wrong with its times and sizes. */
static const char *fault_of_values(const struct scenario_fault *fault)
{
    enum scenario_lasting lasting = scenario_verb_info(fault->verb)->lasting;
    if (lasting == VERB_ONCE && fault->for_ns > 0)
        return "it is over at once: leave 'for' out";
    if (lasting == VERB_REPEATS && (fault->given & PARAM_BIT(PERIOD)) != 0 && fault->for_ns == 0)
        return "with a period it needs 'for': how long it goes on";
    if (has_down(fault->verb) && fault->down_ns >= fault->period_ns)
        return fault->verb == VERB_LINK_FLAP
                   ? "'down' must be shorter than the period, or the link never comes up"
                   : "'down' must be shorter than the period, or it never runs";
    if ((fault->given & PARAM_BIT(OFFSET)) != 0 && fault->offset_ns == 0)
        return "an offset of nothing changes nothing";
    if ((fault->given & PARAM_BIT(PERCENT)) != 0 && !(fault->share > 0))
        return "of 0 percent nothing happens";
    if ((fault->given & PARAM_BIT(CORRELATION)) != 0 && !(fault->correlation < 1))
        return "with a correlation of 100 percent the first would decide for all";
    if (fault->verb == VERB_LINK_JITTER && fault->jitter_ns == 0)
        return "a jitter of nothing changes nothing";
    if (fault->verb == VERB_CLOCK_RATE && fault->ppm == 0)
        return "a rate of 0 ppm changes nothing";
    return NULL;
}

/* When, for how long, and its name: what every fault has, also one whose verb nobody knows. */
static void read_frame(struct reader *reader, const struct node *node, struct scenario_fault *fault)
{
    for (uint32_t i = 0; i < FAULT_DO; i++) {
        const struct field *field = &scenario_shape_fault.at[i];
        const struct node *value = node_find(node, field->key);
        uint32_t before = reader->errors;
        field_set_standard(reader, field, fault);
        if (value != NULL)
            field_read(reader, value, field, fault);
        reader->ids_lost |= i == FAULT_ID && reader->errors > before;
    }
}

/* What is timed by others than a link's or a disk's own clock comes in whole milliseconds: a part
 * of one is refused, for to round it would be another fault than the one that is asked for. */
static void check_whole_ms(struct reader *reader, const struct node *node,
                           const struct scenario_fault *fault)
{
    uint32_t whole = PARAM_BIT(PERIOD) | PARAM_BIT(DOWN) | PARAM_BIT(OFFSET);
    if (fault->verb == VERB_LINK_REORDER)
        whole |= PARAM_BIT(DELAY);
    for (uint32_t i = 0; i < SCENARIO_PARAM_COUNT; i++) {
        const struct field *field = &scenario_shape_params.at[i];
        int64_t ns = 0;
        if ((fault->given & whole & UINT32_C(1) << i) == 0)
            continue;
        memcpy(&ns, (const char *)fault + field->offset, sizeof(ns));
        if (ns % 1000000 != 0)
            reader_fail(reader, node_find(node, field->key), "%s takes whole milliseconds here",
                        scenario_verb_info(fault->verb)->name);
    }
}

static void read_fault(struct reader *reader, const struct node *node, struct scenario_fault *fault)
{
    uint32_t before = reader->errors;
    enum scenario_verb verb = read_verb(reader, node);
    *fault = (struct scenario_fault){.verb = (uint8_t)verb,
                                     .line = node->line,
                                     .region = SCENARIO_REGION_NONE,
                                     .from = SCENARIO_REGION_NONE,
                                     .to = SCENARIO_REGION_NONE};
    read_frame(reader, node, fault);
    if (verb == SCENARIO_VERB_COUNT)
        return;
    const struct scenario_verb_info *info = scenario_verb_info(verb);
    read_params(reader, node, info, fault);
    refuse_strangers(reader, node, info);
    if (reader->errors > before)
        return;
    if (has_down(verb) && (fault->given & PARAM_BIT(DOWN)) == 0)
        fault->down_ns = fault->period_ns / 2;
    const char *wrong = reader->lost ? NULL : fault_of_cluster(&reader->scenario->cluster, fault);
    if (wrong == NULL)
        wrong = fault_of_values(fault);
    if (wrong != NULL)
        reader_fail(reader, node, "%s: %s", info->name, wrong);
    check_whole_ms(reader, node, fault);
    scenario_check_api(reader, node, fault);
}

static int compare_faults(const void *a, const void *b)
{
    const struct scenario_fault *left = a, *right = b;
    if (left->at_ns != right->at_ns)
        return left->at_ns < right->at_ns ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

void scenario_sort_faults(struct scenario_phase *phase)
{
    for (uint32_t i = 0; i < phase->fault_count; i++)
        phase->faults[i].order = i;
    if (phase->fault_count > 1)
        qsort(phase->faults, phase->fault_count, sizeof(*phase->faults), compare_faults);
}

void scenario_read_faults(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_phase *phase = into;
    if (node_is_null(node))
        return;
    if (!reader_wants(reader, node, NODE_LIST, "a list of faults")) {
        reader->ids_lost = true;
        return;
    }
    reader->fault_count += node->count;
    if (node->count > SCENARIO_FAULTS_MAX) {
        reader->ids_lost = true;
        return; /* told of after all phases */
    }
    phase->faults = arena_array(reader->arena, struct scenario_fault, node->count);
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        if (!reader_wants(reader, at, NODE_MAP, "a fault such as {at: 2s, do: link.cut, ...}")) {
            reader->ids_lost = true;
            continue;
        }
        struct scenario_fault *fault = &phase->faults[phase->fault_count++];
        read_fault(reader, at, fault);
        uint64_t end_ns = phase->for_ns + (phase->has_until ? phase->until.timeout_ns : 0);
        if (end_ns > 0 && fault->at_ns > end_ns)
            reader_fail(reader, node_find(at, "at"),
                        "it begins after the phase has ended: `at` counts from the "
                        "phase's beginning");
    }
    scenario_sort_faults(phase);
}

/* ---- Names ---- */

/* The fault of that id, before `end` in the order of the file. */
static const struct scenario_fault *find_id(const struct scenario *scenario, const char *id,
                                            const struct scenario_fault *end)
{
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        for (uint32_t j = 0; j < scenario->phases[i].fault_count; j++) {
            const struct scenario_fault *fault = &scenario->phases[i].faults[j];
            if (fault == end)
                return NULL;
            if (fault->id != NULL && strcmp(fault->id, id) == 0)
                return fault;
        }
    }
    return NULL;
}

const char *scenario_new_id(struct scenario *scenario, const char *stem, uint32_t *number)
{
    struct buf text cleanup(buf_deinit);
    buf_init(&text);
    do {
        buf_reset(&text);
        buf_printf(&text, "%s%u", stem, ++*number);
        buf_append_u8(&text, 0);
    } while (find_id(scenario, (const char *)text.at, NULL) != NULL);
    return arena_copy(&scenario->arena, text.at, text.len);
}

/* The place-th of those children that are mappings: others are no phases and no faults. */
static const struct node *nth_mapping(const struct node *list, uint32_t place)
{
    const struct node *at = list->first;
    while (at->kind != NODE_MAP || place-- > 0)
        at = at->next;
    return at;
}

const struct node *scenario_fault_node(const struct node *phases, uint32_t phase,
                                       const struct scenario_fault *fault)
{
    const struct node *at = phases->first;
    while (phase-- > 0)
        at = at->next;
    return nth_mapping(node_find(at, "faults"), fault->order);
}

/* A name that is given twice, or names nothing. */
static void check_names(struct reader *reader, const struct node *node,
                        const struct scenario *scenario, const struct scenario_fault *fault)
{
    const struct node *id = node_find(node, "id"), *named = node_find(node, "fault");
    if (fault->id != NULL && id != NULL && find_id(scenario, fault->id, fault) != NULL)
        reader_fail(reader, id, "another fault has the same id");
    if (fault->verb != VERB_UNDO || fault->fault == NULL)
        return;
    const struct scenario_fault *other = find_id(scenario, fault->fault, fault);
    if (other == NULL && !reader->ids_lost)
        reader_fail(reader, named, "no fault before it has this id");
    else if (other != NULL && other->verb != SCENARIO_VERB_COUNT &&
             scenario_verb_info(other->verb)->lasting == VERB_ONCE)
        reader_fail(reader, named, "what it names is over at once");
}

void scenario_finish_faults(struct reader *reader, const struct node *phases,
                            struct scenario *scenario)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        for (uint32_t j = 0; j < scenario->phases[i].fault_count; j++) {
            struct scenario_fault *fault = &scenario->phases[i].faults[j];
            if (fault->id == NULL && reader->errors == 0)
                fault->id = scenario_new_id(scenario, "f", &number);
            check_names(reader, scenario_fault_node(phases, i, fault), scenario, fault);
        }
    }
}

/* ---- Schema ---- */

static json_t *verb_schema(enum scenario_verb verb)
{
    const struct scenario_verb_info *info = scenario_verb_info(verb);
    json_t *properties = json_object(), *required = json_array();
    for (uint32_t i = 0; i < FAULT_DO; i++)
        if (i != FAULT_FOR || info->lasting != VERB_ONCE)
            json_object_set_new(properties, scenario_shape_fault.at[i].key,
                                field_schema(&scenario_shape_fault.at[i]));
    json_object_set_new(properties, "do", json_pack("{s:s}", "const", info->name));
    json_array_append_new(required, json_string("do"));
    for (uint32_t i = 0; i < SCENARIO_PARAM_COUNT; i++) {
        const struct field *field = &scenario_shape_params.at[i];
        if (((info->required | info->optional) >> i & 1) != 0)
            json_object_set_new(properties, field->key,
                                json_pack("{s:s+}", "$ref", "#/$defs/", field->key));
        if ((info->required >> i & 1) != 0)
            json_array_append_new(required, json_string(field->key));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:b}", "description", info->help, "type", "object",
                     "properties", properties, "required", required, "additionalProperties", 0);
}

json_t *scenario_schema_faults(void)
{
    json_t *verbs = json_array();
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++)
        json_array_append_new(verbs, verb_schema(i));
    return json_pack("{s:[s,s], s:{s:o}, s:i}", "type", "array", "null", "items", "oneOf", verbs,
                     "maxItems", SCENARIO_FAULTS_MAX);
}
