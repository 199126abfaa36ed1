/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold after a run (`expect`) and what ends one (`stop_if`). A metric has one comparison,
 * a list of them, or a mapping from an operation class, a Region or both to those:
 *
 *     rpo_count: 0
 *     lost_updates: [">0", "<500"]
 *     rto: {write: "<=5s", us-east-2: "<=3s", "us-west-2 read_strong": "<=2s"} */

#include "chaos/scenario/fields.h"

#include "chaos/scenario/value.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum limit_type { LIMIT_NUMBER, LIMIT_TIME, LIMIT_BYTES, LIMIT_BOOL };

static const struct {
    const char *name;
    enum limit_type type;
    bool divided; /* by class and Region */
    bool timing;
    bool live; /* known while the run goes on */
    const char *help;
} metrics[] = {
#define METRIC(enumerator, name, type, divided, timing, live, help)                                \
    {name, LIMIT_##type, divided, timing, live, help},
    SCENARIO_METRIC_MAP(METRIC)
#undef METRIC
};

/* The second name of a class is that of the specification's tables. */
static const char *const class_names[SCENARIO_CLASS_COUNT][2] = {
    [SCENARIO_CLASS_ANY] = {"any", "any"},
    [SCENARIO_CLASS_WRITE] = {"write", "strong_write"},
    [SCENARIO_CLASS_READ_STRONG] = {"read_strong", "strong_read"},
    [SCENARIO_CLASS_READ_EVENTUAL] = {"read_eventual", "eventual_read"},
};

static const struct {
    const char *text;
    enum scenario_comparison comparison;
} comparisons[] = {
    {"<=", SCENARIO_AT_MOST},   {">=", SCENARIO_AT_LEAST},
    {"==", SCENARIO_EQUAL}, /* longer first */
    {"!=", SCENARIO_NOT_EQUAL}, {"<", SCENARIO_LESS},
    {">", SCENARIO_MORE},       {"=", SCENARIO_EQUAL},
};

bool scenario_metric_is_timing(enum scenario_metric metric)
{
    check(metric < SCENARIO_METRIC_COUNT);
    return metrics[metric].timing;
}

const char *scenario_metric_name(enum scenario_metric metric)
{
    check(metric < SCENARIO_METRIC_COUNT);
    return metrics[metric].name;
}

const char *scenario_class_name(enum scenario_class class)
{
    check(class < SCENARIO_CLASS_COUNT);
    return class_names[class][0];
}

bool scenario_expect_holds(const struct scenario_expect *expect, double actual)
{
    switch ((enum scenario_comparison)expect->comparison) {
    case SCENARIO_EQUAL:
        return !(actual < expect->limit || actual > expect->limit);
    case SCENARIO_NOT_EQUAL:
        return actual < expect->limit || actual > expect->limit;
    case SCENARIO_LESS:
        return actual < expect->limit;
    case SCENARIO_AT_MOST:
        return actual <= expect->limit;
    case SCENARIO_MORE:
        return actual > expect->limit;
    case SCENARIO_AT_LEAST:
        return actual >= expect->limit;
    }
    unreachable();
}

/* ---- One comparison ---- */

static struct bytes trim(struct bytes text)
{
    while (text.len > 0 && *text.at == ' ')
        text.at++, text.len--;
    while (text.len > 0 && text.at[text.len - 1] == ' ')
        text.len--;
    return text;
}

static bool read_limit(enum scenario_metric metric, struct bytes text, double *ret)
{
    uint64_t whole;
    bool truth;
    switch (metrics[metric].type) {
    case LIMIT_NUMBER:
        return value_number(text, ret) ||
               (text.len > 0 && text.at[text.len - 1] == '%' && value_share(text, ret));
    case LIMIT_TIME:
        if (metric == METRIC_RPO_TIME && value_number(text, ret)) {
            *ret *= 1e9; /* its name has the unit */
            return true;
        }
        if (!value_time(text, &whole))
            return false;
        *ret = (double)whole;
        return true;
    case LIMIT_BYTES:
        if (!value_bytes(text, &whole))
            return false;
        *ret = (double)whole;
        return true;
    case LIMIT_BOOL:
        if (!value_bool(text, &truth))
            return false;
        *ret = truth ? 1 : 0;
        return true;
    }
    unreachable();
}

static enum scenario_comparison take_comparison(struct bytes *from)
{
    for (size_t i = 0; i < array_len(comparisons); i++) {
        struct bytes word = bytes_text(comparisons[i].text);
        if (bytes_starts_with(*from, word)) {
            *from = trim(bytes_make(from->at + word.len, from->len - word.len));
            return comparisons[i].comparison;
        }
    }
    return SCENARIO_EQUAL;
}

/* Cuts " for 60s" off the end. */
static bool take_for(struct bytes *from, uint64_t *ret)
{
    const char *at = from->len == 0 ? NULL : memmem(from->at, from->len, " for ", 5);
    if (at == NULL)
        return false;
    size_t before = (size_t)(at - (const char *)from->at);
    struct bytes time = trim(bytes_make(at + 5, from->len - before - 5));
    if (!value_time(time, ret) || *ret == 0)
        return false;
    *from = trim(bytes_make(from->at, before));
    return true;
}

static void refuse_limit(struct reader *reader, const struct node *node,
                         enum scenario_metric metric)
{
    static const char *const examples[] = {
        [LIMIT_NUMBER] = "0, \"<=10\" or \">0\"",
        [LIMIT_TIME] = "\"<=5s\" or \"<250ms\"",
        [LIMIT_BYTES] = "0 or \"<=64KiB\"",
        [LIMIT_BOOL] = "true or false",
    };
    reader_fail(reader, node, "'%.64s' is no limit of %s: expected such as %s",
                node->kind == NODE_SCALAR ? node->text : "", metrics[metric].name,
                examples[metrics[metric].type]);
}

struct place {
    struct scenario_expects *list;
    bool is_stop_if;
    struct scenario_expect base; /* metric, class and Region */
};

static void set_text(struct reader *reader, const struct node *node, struct scenario_expect *expect)
{
    struct buf text cleanup(buf_deinit);
    buf_init(&text);
    buf_append_text(&text, metrics[expect->metric].name);
    if (expect->region != SCENARIO_REGION_ALL)
        buf_printf(&text, " %s", scenario_region_name(&reader->scenario->cluster, expect->region));
    if (expect->class != SCENARIO_CLASS_ANY)
        buf_printf(&text, " %s", class_names[expect->class][0]);
    buf_printf(&text, " %s", node->text);
    expect->text = bytes_copy_text(reader->arena, buf_view(&text));
}

static void read_comparison(struct reader *reader, const struct node *node,
                            const struct place *place)
{
    struct scenario_expect expect = place->base;
    enum scenario_metric metric = expect.metric;
    if (node->kind != NODE_SCALAR) {
        refuse_limit(reader, node, metric);
        return;
    }
    struct bytes text = trim(bytes_text(node->text));
    bool lasting = take_for(&text, &expect.for_ns);
    expect.comparison = (uint8_t)take_comparison(&text);
    expect.line = node->line;
    if (lasting && !place->is_stop_if) {
        reader_fail(reader, node, "only stop_if looks at how long something holds");
    } else if (!read_limit(metric, text, &expect.limit)) {
        refuse_limit(reader, node, metric);
    } else if (metrics[metric].type == LIMIT_BOOL && expect.comparison != SCENARIO_EQUAL) {
        reader_fail(reader, node, "%s is true or false, not more or less", metrics[metric].name);
    } else if (metrics[metric].type == LIMIT_TIME && expect.comparison == SCENARIO_EQUAL &&
               expect.limit > 0) {
        reader_fail(reader, node, "no time is ever exactly that: write \"<=%.*s\"", (int)text.len,
                    (const char *)text.at);
    } else if (place->list->count == SCENARIO_EXPECTS_MAX) {
        reader_fail(reader, node, "more than %d limits", SCENARIO_EXPECTS_MAX);
    } else {
        set_text(reader, node, &expect);
        place->list->at[place->list->count++] = expect;
    }
}

static void read_comparisons(struct reader *reader, const struct node *node,
                             const struct place *place)
{
    if (node->kind != NODE_LIST) {
        read_comparison(reader, node, place);
        return;
    }
    if (node->count == 0)
        refuse_limit(reader, node, place->base.metric);
    for (const struct node *at = node->first; at != NULL; at = at->next)
        read_comparison(reader, at, place);
}

/* ---- Whose ---- */

static bool set_selector(const struct reader *reader, struct bytes word,
                         struct scenario_expect *expect)
{
    const struct scenario_cluster *cluster = &reader->scenario->cluster;
    for (uint8_t class = 1; class < SCENARIO_CLASS_COUNT; class ++) {
        if (bytes_is(word, class_names[class][0]) || bytes_is(word, class_names[class][1])) {
            bool first = expect->class == SCENARIO_CLASS_ANY;
            expect->class = class;
            return first;
        }
    }
    for (uint8_t i = 0; i < cluster->data_count; i++) {
        if (bytes_is(word, cluster->region[i].name)) {
            bool first = expect->region == SCENARIO_REGION_ALL;
            expect->region = i;
            return first;
        }
    }
    return reader->lost;
}

static void read_selected(struct reader *reader, const struct node *node,
                          const struct place *metric)
{
    const struct scenario_cluster *cluster = &reader->scenario->cluster;
    struct place place = *metric;
    struct bytes rest = trim(bytes_text(node->key));
    bool good = rest.len > 0;
    while (rest.len > 0 && good) {
        const uint8_t *space = memchr(rest.at, ' ', rest.len);
        size_t len = space == NULL ? rest.len : (size_t)(space - rest.at);
        good = set_selector(reader, bytes_make(rest.at, len), &place.base);
        rest = trim(bytes_make(rest.at + len, rest.len - len));
    }
    if (good)
        read_comparisons(reader, node, &place);
    else
        reader_fail(reader, node,
                    "expected a class (write, read_strong, read_eventual), a Region with data "
                    "such as %s, or both",
                    cluster->region[0].name);
}

static void read_metric(struct reader *reader, const struct node *node, struct place *place)
{
    const char *known[SCENARIO_METRIC_COUNT];
    uint32_t known_count = 0, metric = 0;
    while (metric < SCENARIO_METRIC_COUNT && strcmp(metrics[metric].name, node->key) != 0)
        metric++;
    for (uint32_t i = 0; i < SCENARIO_METRIC_COUNT; i++)
        if (!place->is_stop_if || metrics[i].live)
            known[known_count++] = metrics[i].name;
    if (metric == SCENARIO_METRIC_COUNT) {
        field_unknown(reader, node, known, known_count);
        return;
    }
    if (place->is_stop_if && !metrics[metric].live) {
        reader_fail(reader, node, "it is known only after the run: put it under `expect`");
        return;
    }
    place->base =
        (struct scenario_expect){.metric = (uint8_t)metric, .region = SCENARIO_REGION_ALL};
    if (node->kind != NODE_MAP) {
        read_comparisons(reader, node, place);
        return;
    }
    if (!metrics[metric].divided) {
        reader_fail(reader, node, "%s is one figure of the whole run: give it one limit",
                    node->key);
        return;
    }
    if (node->count == 0)
        reader_fail(reader, node, "there is no limit in it: expected such as {%s: \"<=5s\"}",
                    reader->scenario->cluster.region[0].name);
    for (const struct node *at = node->first; at != NULL; at = at->next)
        read_selected(reader, at, place);
}

static void read_all(struct reader *reader, const struct node *node, bool is_stop_if,
                     struct scenario_expects *list)
{
    struct place place = {.list = list, .is_stop_if = is_stop_if};
    list->at = arena_array(reader->arena, struct scenario_expect, SCENARIO_EXPECTS_MAX);
    if (node_is_null(node) ||
        !reader_wants(reader, node, NODE_MAP, "a mapping such as {rpo_count: 0}"))
        return;
    for (const struct node *at = node->first; at != NULL; at = at->next)
        read_metric(reader, at, &place);
}

void scenario_read_expect(struct reader *reader, const struct node *node, void *into)
{
    read_all(reader, node, false, &((struct scenario *)into)->expect);
}

void scenario_read_stop_if(struct reader *reader, const struct node *node, void *into)
{
    read_all(reader, node, true, &((struct scenario *)into)->stop_if);
}

/* ---- Schema ---- */

static json_t *limits_schema(bool is_stop_if)
{
    json_t *properties = json_object();
    for (uint32_t i = 0; i < SCENARIO_METRIC_COUNT; i++)
        if (!is_stop_if || metrics[i].live)
            json_object_set_new(properties, metrics[i].name,
                                json_pack("{s:s, s:s+}", "description", metrics[i].help, "$ref",
                                          "#/$defs/",
                                          metrics[i].type == LIMIT_BOOL ? "truth"
                                          : metrics[i].divided          ? "limits"
                                                                        : "limit"));
    return json_pack("{s:[s,s], s:o, s:b}", "type", "object", "null", "properties", properties,
                     "additionalProperties", 0);
}

json_t *scenario_schema_expect(void)
{
    return limits_schema(false);
}

json_t *scenario_schema_stop_if(void)
{
    return limits_schema(true);
}
