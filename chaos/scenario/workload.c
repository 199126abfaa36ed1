/* SPDX-License-Identifier: Apache-2.0 */
/* The workload part. Its defaults depend on its kind and on the cluster's mode. */

#include "chaos/scenario/fields.h"

#include <math.h>

#include "conflict/base/check.h"

static const struct {
    const char *name;
    struct scenario_mix mix;
} kinds[] = {
#define WORKLOAD(enumerator, text, write, read_strong, read_eventual, erase, scan)                 \
    {text, {write, read_strong, read_eventual, erase, scan}},
    SCENARIO_WORKLOAD_MAP(WORKLOAD)
#undef WORKLOAD
};

const char *scenario_workload_name(enum scenario_workload_kind kind)
{
    check(kind < SCENARIO_WORKLOAD_COUNT);
    return kinds[kind].name;
}

/* A text is a command for the shell, a list is the program and its arguments. */
void scenario_read_exec(struct reader *reader, const struct node *node, void *into)
{
    static const struct field texts = {
        .key = "exec", .type = FIELD_TEXTS, .offset = 0, .min = 1, .max = 4096};
    static const struct field text = {.key = "exec", .type = FIELD_TEXT, .min = 1, .max = 4096};
    struct scenario_workload *workload = into;
    if (node->kind == NODE_SCALAR) {
        const char **argv = arena_array(reader->arena, const char *, 4);
        argv[0] = "/bin/sh";
        argv[1] = "-c";
        field_read(reader, node, &text, &argv[2]);
        workload->exec = argv;
    } else {
        struct scenario_texts list = {NULL, 0};
        field_read(reader, node, &texts, &list);
        workload->exec = list.at;
    }
}

static bool is_ycsb(uint8_t kind)
{
    return kind == SCENARIO_YCSB_A || kind == SCENARIO_YCSB_B || kind == SCENARIO_YCSB_F;
}

static void finish_kind(struct reader *reader, const struct node *node, uint64_t given)
{
    struct scenario_workload *workload = &reader->scenario->workload;
    if ((given & KEY_BIT(WORKLOAD_KIND)) == 0)
        workload->kind = workload->exec != NULL ? SCENARIO_EXEC
                         : reader->scenario->cluster.mode == SCENARIO_STRONG
                             ? SCENARIO_SWAP_REGISTER
                             : SCENARIO_LWW_CONFLICT;
    if ((given & KEY_BIT(WORKLOAD_KEY_CHOICE)) == 0)
        workload->keys_chosen =
            is_ycsb(workload->kind) ? SCENARIO_KEYS_ZIPFIAN : SCENARIO_KEYS_UNIFORM;
    if (workload->kind == SCENARIO_EXEC && workload->exec == NULL)
        reader_fail(reader, node, "kind exec needs the key 'exec': the program to run");
    if (workload->kind != SCENARIO_EXEC && workload->exec != NULL)
        reader_fail(reader, node, "'exec' is for `kind: exec`: leave out one of them");
}

static void finish_mix(struct reader *reader, const struct node *node, bool has_mix)
{
    struct scenario_workload *workload = &reader->scenario->workload;
    struct scenario_mix *mix = &workload->mix;
    uint8_t kind = workload->kind;
    if (!has_mix) {
        *mix = kinds[kind].mix;
        if (reader->scenario->cluster.mode == SCENARIO_EVENTUAL) {
            mix->read_eventual += mix->read_strong;
            mix->read_strong = 0;
        }
        return;
    }
    double sum = mix->write + mix->read_strong + mix->read_eventual + mix->erase + mix->scan;
    if (kind == SCENARIO_EXEC)
        reader_fail(reader, node, "a program of your own has its own mix: leave this out");
    else if (fabs(sum - 1) > 1e-6)
        reader_fail(reader, node, "the shares must add up to 1, but they add up to %g", sum);
    if (mix->erase > 0 && kind != SCENARIO_SWAP_REGISTER && kind != SCENARIO_LWW_CONFLICT)
        reader_fail(reader, node,
                    "the workload %s has no deletes: only swap-register and "
                    "lww-conflict have",
                    kinds[kind].name);
    if (mix->scan > 0 && kind != SCENARIO_SET)
        reader_fail(reader, node, "the workload %s has no scans: only set has", kinds[kind].name);
}

void scenario_read_workload(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_workload *workload = &((struct scenario *)into)->workload;
    *workload = (struct scenario_workload){0};
    uint64_t given = shape_read(reader, node, &scenario_shape_workload, workload);
    uint64_t bad = reader->bad;
    if ((bad & (KEY_BIT(WORKLOAD_KIND) | KEY_BIT(WORKLOAD_EXEC))) == 0)
        finish_kind(reader, node, given);
    const struct node *mix = node_find(node, "mix");
    if ((bad & (KEY_BIT(WORKLOAD_KIND) | KEY_BIT(WORKLOAD_MIX))) == 0)
        finish_mix(reader, mix == NULL ? node : mix, (given & KEY_BIT(WORKLOAD_MIX)) != 0);
    if ((given & KEY_BIT(WORKLOAD_WRITERS)) == 0)
        workload->writers = (uint8_t)((1u << reader->scenario->cluster.data_count) - 1);
    if (workload->open_loop && workload->rate == 0 && (bad & KEY_BIT(WORKLOAD_RATE)) == 0)
        reader_fail(reader, node, "an open loop needs the key 'rate', for answers do not pace it");
}

json_t *scenario_schema_exec(void)
{
    return json_pack("{s:[{s:s, s:i, s:i}, {s:s, s:{s:s, s:i, s:i}, s:i, s:i}]}", "oneOf", "type",
                     "string", "minLength", 1, "maxLength", 4096, "type", "array", "items", "type",
                     "string", "minLength", 1, "maxLength", 4096, "minItems", 1, "maxItems", 64);
}
