/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster part: Regions, the witness, and what lies between them. */

#include "chaos/scenario/fields.h"

#include "conflict/base/check.h"
#include "conflict/region_id.h"

static const char *const standard_regions[] = {"us-east-1", "eu-west-1", "ap-northeast-1"};

/* REGION_ID_NONE, after telling so, when there is no such Region. */
static uint16_t find_region(struct reader *reader, const struct node *node)
{
    const char *names[REGION_ID_MAX];
    if (!reader_wants(reader, node, NODE_SCALAR, "the name of a Region"))
        return REGION_ID_NONE;
    uint16_t id = region_id_find(bytes_text(node->text));
    if (id != REGION_ID_NONE)
        return id;
    for (uint16_t i = 0; i < REGION_ID_MAX; i++)
        names[i] = region_id_name((uint16_t)(i + 1));
    const char *nearest = field_nearest(node->text, names, REGION_ID_MAX);
    if (nearest != NULL)
        reader_fail(reader, node, "no AWS Region is named '%.64s': did you mean '%s'?", node->text,
                    nearest);
    else
        reader_fail(reader, node, "no AWS Region is named '%.64s': expected one such as us-east-1",
                    node->text);
    return REGION_ID_NONE;
}

static uint32_t place_of(const struct scenario_cluster *cluster, uint16_t id)
{
    uint32_t place = 0;
    while (place < cluster->region_count && cluster->region[place].id != id)
        place++;
    return place;
}

static void add_region(struct scenario_cluster *cluster, uint16_t id)
{
    check(cluster->region_count < SCENARIO_REGIONS_MAX);
    cluster->region[cluster->region_count++] = (struct scenario_region){id, region_id_name(id)};
}

void scenario_read_regions(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_cluster *cluster = into;
    uint32_t before = reader->errors;
    bool was_lost = reader->lost;
    reader->lost = true; /* until all of them are read */
    if (!reader_wants(reader, node, NODE_LIST, "a list of Regions"))
        return;
    if (node->count == 0 || node->count > SCENARIO_REGIONS_MAX) {
        reader_fail(reader, node, "expected 1 to %d Regions, but these are %u",
                    SCENARIO_REGIONS_MAX, node->count);
        return;
    }
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        uint16_t id = find_region(reader, at);
        if (id == REGION_ID_NONE)
            continue;
        if (place_of(cluster, id) < cluster->region_count)
            reader_fail(reader, at, "%s is listed twice: name each Region once",
                        region_id_name(id));
        else
            add_region(cluster, id);
    }
    cluster->data_count = cluster->region_count;
    reader->lost = was_lost || reader->errors > before;
}

static void set_standard_regions(struct scenario_cluster *cluster)
{
    for (size_t i = 0; i < array_len(standard_regions); i++)
        add_region(cluster, region_id_find(bytes_text(standard_regions[i])));
    cluster->data_count = cluster->region_count;
}

/* The witness comes last, whether or not the list of Regions has it, too. */
void scenario_read_witness(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_cluster *cluster = into;
    uint16_t id = find_region(reader, node);
    if (id == REGION_ID_NONE) {
        reader->lost = true;
        return;
    }
    if (cluster->mode != SCENARIO_STRONG) {
        if (!reader->lost)
            reader_fail(reader, node, "only a cluster of `mode: strong` has a witness");
        reader->lost = true;
        return;
    }
    if (cluster->region_count == 0)
        set_standard_regions(cluster);
    uint32_t place = place_of(cluster, id);
    if (place < cluster->region_count) {
        cluster->region_count--;
        for (; place < cluster->region_count; place++)
            cluster->region[place] = cluster->region[place + 1];
    }
    if (cluster->region_count == SCENARIO_REGIONS_MAX) {
        reader_fail(reader, node, "there is no place for a witness beside %d Regions",
                    SCENARIO_REGIONS_MAX);
        return;
    }
    cluster->data_count = cluster->region_count;
    add_region(cluster, id);
}

/* ---- Links ---- */

/* Reads the values over what the link has. */
static void read_link(struct reader *reader, const struct node *node, bool both_ways,
                      struct link_values *values)
{
    uint64_t given = shape_read(reader, node, &scenario_shape_link, values);
    if ((given & KEY_BIT(LINK_RTT)) != 0 && (given & KEY_BIT(LINK_DELAY)) != 0)
        reader_fail(reader, node, "rtt and delay say the same: give one of them");
    else if ((given & KEY_BIT(LINK_RTT)) != 0 && !both_ways)
        reader_fail(reader, node, "rtt is of both ways: give `delay` here, or name the pair a<->b");
    else if ((given & KEY_BIT(LINK_RTT)) != 0)
        values->link.delay_ns = values->rtt_ns / 2;
}

static void set_all(struct scenario_cluster *cluster, const struct scenario_link *link)
{
    for (uint32_t from = 0; from < cluster->region_count; from++)
        for (uint32_t to = 0; to < cluster->region_count; to++)
            if (from != to)
                cluster->link[from][to] = *link;
}

/* "a->b" or "a<->b". */
static bool find_ends(struct reader *reader, const struct node *node, uint32_t ends[2],
                      bool *ret_both_ways)
{
    const struct scenario_cluster *cluster = &reader->scenario->cluster;
    const char *arrow = strstr(node->key, "->");
    if (arrow == NULL || arrow == node->key) {
        reader_fail(reader, node, "expected `default`, or a link such as %s<->%s or %s->%s",
                    cluster->region[0].name, cluster->region[cluster->region_count - 1].name,
                    cluster->region[0].name, cluster->region[cluster->region_count - 1].name);
        return false;
    }
    bool both_ways = arrow[-1] == '<';
    struct bytes sides[2] = {bytes_make(node->key, (size_t)(arrow - node->key) - both_ways),
                             bytes_text(arrow + 2)};
    for (int i = 0; i < 2; i++) {
        while (sides[i].len > 0 && sides[i].at[0] == ' ')
            sides[i].at++, sides[i].len--;
        while (sides[i].len > 0 && sides[i].at[sides[i].len - 1] == ' ')
            sides[i].len--;
        ends[i] = place_of(cluster, region_id_find(sides[i]));
        if (ends[i] == cluster->region_count) {
            if (!reader->lost)
                reader_fail(reader, node, "'%.*s' is no Region of this cluster", (int)sides[i].len,
                            (const char *)sides[i].at);
            return false;
        }
    }
    if (ends[0] == ends[1]) {
        reader_fail(reader, node, "a link joins two Regions");
        return false;
    }
    *ret_both_ways = both_ways;
    return true;
}

void scenario_read_links(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_cluster *cluster = into;
    if (cluster->region_count == 0)
        set_standard_regions(cluster);
    if (cluster->data_count == 0 || !reader_wants(reader, node, NODE_MAP, "a mapping of links"))
        return;
    struct link_values standard = {0};
    const struct node *first = node_find(node, "default");
    if (first != NULL)
        read_link(reader, first, true, &standard);
    set_all(cluster, &standard.link);
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        uint32_t ends[2];
        bool both_ways;
        if (at == first || !find_ends(reader, at, ends, &both_ways))
            continue;
        struct link_values values = {.link = cluster->link[ends[0]][ends[1]]};
        read_link(reader, at, both_ways, &values);
        cluster->link[ends[0]][ends[1]] = values.link;
        if (both_ways)
            cluster->link[ends[1]][ends[0]] = values.link;
    }
}

/* ---- The whole ---- */

static void check_strong(struct reader *reader, const struct node *node,
                         const struct scenario_cluster *cluster)
{
    if (cluster->region_count != 3)
        reader_fail(reader, node,
                    "a strong cluster has exactly three members: three Regions, or two and a "
                    "witness; these are %u",
                    cluster->region_count);
    for (uint32_t i = 0; i < cluster->region_count; i++)
        if (!region_id_strong(cluster->region[i].id))
            reader_fail(reader, node, "AWS offers no multi-Region strong consistency in %s",
                        cluster->region[i].name);
}

/* `leader`, the witness and what is promised hang on it. */
static bool mode_is_known(const struct node *node)
{
    const struct node *mode = node_find(node, "mode");
    return mode == NULL || field_is_choice(scenario_modes, mode);
}

void scenario_read_cluster(struct reader *reader, const struct node *node, void *into)
{
    struct scenario_cluster *cluster = &((struct scenario *)into)->cluster;
    *cluster = (struct scenario_cluster){0};
    reader->lost = !node_is_null(node) && (node->kind != NODE_MAP || !mode_is_known(node));
    shape_read(reader, node, &scenario_shape_cluster, cluster);
    if (cluster->region_count == 0)
        set_standard_regions(cluster);
    if (!reader->lost && cluster->mode == SCENARIO_STRONG)
        check_strong(reader, node, cluster);
}

json_t *scenario_schema_regions(void)
{
    json_t *names = json_array();
    for (uint16_t i = 1; i <= REGION_ID_MAX; i++)
        json_array_append_new(names, json_string(region_id_name(i)));
    return json_pack("{s:s, s:{s:o}, s:i, s:i, s:b}", "type", "array", "items", "enum", names,
                     "minItems", 1, "maxItems", SCENARIO_REGIONS_MAX, "uniqueItems", 1);
}

json_t *scenario_schema_links(void)
{
    json_t *link = shape_schema(&scenario_shape_link);
    return json_pack("{s:s, s:{s:O}, s:{s:o}, s:b}", "type", "object", "properties", "default",
                     link, "patternProperties", "^ *[a-z0-9-]+ *<?-> *[a-z0-9-]+ *$", link,
                     "additionalProperties", 0);
}
