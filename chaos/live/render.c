/* SPDX-License-Identifier: Apache-2.0 */
/* A table is filled cell by cell and printed once every column's width is known. Figures that a
 * region did not give are a dash, never a zero: silence is not health. */

#include "chaos/live/render.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "chaos/live/text.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

enum { COLUMNS_MAX = 8 };

struct table {
    uint32_t columns, cells, cap;
    char **cell; /* row by row, the head first */
};

static void cell(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void cell(struct table *table, const char *format, ...)
{
    va_list args;
    if (table->cells == table->cap) {
        table->cap = table->cap * 2 + 64;
        table->cell = xrealloc(table->cell, table->cap * sizeof(char *));
    }
    va_start(args, format);
    table->cell[table->cells++] = text_new_list(format, args);
    va_end(args);
}

static void table_print(struct table *table, struct buf *to)
{
    int width[COLUMNS_MAX] = {0};
    check(table->columns <= COLUMNS_MAX);
    for (uint32_t i = 0; i < table->cells; i++) {
        int len = (int)strlen(table->cell[i]);
        if (len > width[i % table->columns])
            width[i % table->columns] = len;
    }
    for (uint32_t i = 0; i < table->cells; i++) {
        bool last = i % table->columns == table->columns - 1;
        if (last) {
            buf_append_text(to, table->cell[i]);
            while (to->len > 0 && to->at[to->len - 1] == ' ')
                to->len--;
            buf_append_u8(to, '\n');
        } else {
            buf_printf(to, "%-*s  ", width[i % table->columns], table->cell[i]);
        }
        free(table->cell[i]);
    }
    free(table->cell);
}

static const char *text(json_t *object, const char *field)
{
    const char *value = json_string_value(json_object_get(object, field));
    return value == NULL ? "-" : value;
}

static void number(struct table *table, json_t *object, const char *field, const char *unit)
{
    json_t *value = json_object_get(object, field);
    if (json_is_integer(value))
        cell(table, "%" JSON_INTEGER_FORMAT "%s", json_integer_value(value), unit);
    else if (json_is_real(value))
        cell(table, "%.1f%s", json_real_value(value), unit);
    else
        cell(table, "-");
}

static void head(struct table *table, const char *const *names, uint32_t count)
{
    table->columns = count;
    for (uint32_t i = 0; i < count; i++)
        cell(table, "%s", names[i]);
}

static void render_regions(json_t *regions, struct buf *to)
{
    static const char *const names[] = {"REGION", "KIND",      "STATE", "ADDRESS",
                                        "PID",    "CONFLICTS", ""};
    struct table table = {0};
    size_t i;
    json_t *region;
    head(&table, names, array_len(names));
    json_array_foreach(regions, i, region)
    {
        bool silent = strcmp(text(region, "state"), "running") == 0 &&
                      json_is_null(json_object_get(region, "conflicts"));
        cell(&table, "%s", text(region, "name"));
        cell(&table, "%s", text(region, "kind"));
        cell(&table, "%s", text(region, "state"));
        cell(&table, "%s", text(region, "address"));
        number(&table, region, "pid", "");
        number(&table, region, "conflicts", "");
        cell(&table, "%s%s", json_is_true(json_object_get(region, "isolated")) ? "isolated " : "",
             silent ? "gives no answer" : "");
    }
    table_print(&table, to);
}

static void render_links(json_t *links, struct buf *to)
{
    static const char *const names[] = {
        "FROM", "TO", "LINK", "DELAY", "BLOCKED BYTES", "BLOCKED CONNECTIONS"};
    struct table table = {0};
    size_t i;
    json_t *link;
    head(&table, names, array_len(names));
    json_array_foreach(links, i, link)
    {
        cell(&table, "%s", text(link, "from"));
        cell(&table, "%s", text(link, "to"));
        cell(&table, "%s", text(link, "state"));
        number(&table, link, "delay_ms", " ms");
        number(&table, link, "blocked_bytes", "");
        number(&table, link, "blocked_connections", "");
    }
    table_print(&table, to);
}

static void render_replication(json_t *lines, struct buf *to)
{
    static const char *const names[] = {"TABLE",  "FROM",    "TO",     "PENDING",
                                        "OLDEST", "LAG P50", "LAG P99"};
    struct table table = {0};
    size_t i;
    json_t *line;
    head(&table, names, array_len(names));
    json_array_foreach(lines, i, line)
    {
        cell(&table, "%s", text(line, "table"));
        cell(&table, "%s", text(line, "from"));
        cell(&table, "%s", text(line, "to"));
        number(&table, line, "pending", "");
        number(&table, line, "oldest_ms", " ms");
        number(&table, line, "lag_p50_ms", " ms");
        number(&table, line, "lag_p99_ms", " ms");
    }
    table_print(&table, to);
}

/* ---- Strong tables ---- */

enum { PARTITIONS_MAX = 64, MEMBERS_MAX = REGION_ID_MAX }; /* a table has no more */

/* What the members of one strong table say, put together. */
struct strong {
    struct {
        json_int_t term, commit;
        const char *leader; /* who leads in the latest term; NULL: nobody says so */
    } partitions[PARTITIONS_MAX];
    json_int_t partition_count;
    struct {
        const char *region, *standing;
        bool witness;
        json_int_t leads, behind;
    } members[MEMBERS_MAX];
    uint32_t member_count;
};

static json_int_t integer(json_t *object, const char *field)
{
    return json_integer_value(json_object_get(object, field));
}

static uint32_t strong_member(struct strong *strong, const char *region)
{
    uint32_t i = 0;
    while (i < strong->member_count && strcmp(strong->members[i].region, region) != 0)
        i++;
    if (i == strong->member_count && i < MEMBERS_MAX) {
        strong->members[i].region = region;
        strong->members[i].standing = "full";
        strong->member_count++;
    }
    return i;
}

static void strong_collect(struct strong *strong, json_t *groups)
{
    size_t i;
    json_t *group;
    json_array_foreach(groups, i, group)
    {
        json_int_t partition = integer(group, "partition"), term = integer(group, "term");
        if (partition < 0 || partition >= PARTITIONS_MAX)
            continue;
        if (partition >= strong->partition_count)
            strong->partition_count = partition + 1;
        if (integer(group, "commit") > strong->partitions[partition].commit)
            strong->partitions[partition].commit = integer(group, "commit");
        if (json_is_true(json_object_get(group, "leads")) &&
            (strong->partitions[partition].leader == NULL ||
             term > strong->partitions[partition].term)) {
            strong->partitions[partition].leader = text(group, "region");
            strong->partitions[partition].term = term;
        }
    }
}

/* A witness has no items to apply entries to: what counts is that it holds them. */
static void strong_compare(struct strong *strong, json_t *groups)
{
    size_t i;
    json_t *group;
    json_array_foreach(groups, i, group)
    {
        json_int_t partition = integer(group, "partition");
        uint32_t m = strong_member(strong, text(group, "region"));
        if (partition < 0 || partition >= PARTITIONS_MAX || m == MEMBERS_MAX)
            continue;
        bool witness = json_is_true(json_object_get(group, "witness"));
        json_int_t has = integer(group, witness ? "last" : "applied");
        json_int_t commit = strong->partitions[partition].commit;
        const char *leader = strong->partitions[partition].leader;
        strong->members[m].witness |= witness;
        strong->members[m].behind += commit > has ? commit - has : 0;
        strong->members[m].leads += leader != NULL && strcmp(leader, text(group, "region")) == 0;
        if (strcmp(text(group, "standing"), "full") != 0)
            strong->members[m].standing = text(group, "standing");
    }
}

static void comma(struct buf *list)
{
    if (list->len > 0)
        buf_append_text(list, ", ");
}

static void cell_list(struct table *table, struct buf *list)
{
    cell(table, "%.*s", list->len == 0 ? 1 : (int)list->len,
         list->len == 0 ? "-" : (const char *)list->at);
    buf_deinit(list);
}

/* Members that did not say a word. Nobody knows how far behind they are. */
static void add_silent(const struct strong *strong, json_t *groups, struct buf *members,
                       struct buf *behind)
{
    size_t i;
    json_t *member;
    json_array_foreach(json_object_get(json_array_get(groups, 0), "members"), i, member)
    {
        const char *region = json_string_value(member);
        uint32_t m = 0;
        while (region && m < strong->member_count && strcmp(strong->members[m].region, region) != 0)
            m++;
        if (!region || m < strong->member_count)
            continue;
        comma(members);
        buf_append_text(members, region);
        comma(behind);
        buf_printf(behind, "%s silent", region);
    }
}

static void render_strong_table(struct table *table, const char *name, json_t *groups)
{
    struct strong strong = {.partition_count = 0};
    struct buf leaders = {0}, members = {0}, behind = {0};
    strong_collect(&strong, groups);
    strong_compare(&strong, groups);
    json_int_t led = 0;
    for (uint32_t i = 0; i < strong.member_count; i++) {
        comma(&members);
        buf_printf(&members, "%s%s", strong.members[i].region,
                   strong.members[i].witness ? " (witness)" : "");
        led += strong.members[i].leads;
        if (strong.members[i].leads > 0) {
            comma(&leaders);
            buf_printf(&leaders, "%s %" JSON_INTEGER_FORMAT, strong.members[i].region,
                       strong.members[i].leads);
        }
        bool full = strcmp(strong.members[i].standing, "full") == 0;
        if (strong.members[i].behind == 0 && full)
            continue;
        comma(&behind);
        buf_printf(&behind, "%s by %" JSON_INTEGER_FORMAT "%s%s", strong.members[i].region,
                   strong.members[i].behind, full ? "" : ", ",
                   full ? "" : strong.members[i].standing);
    }
    add_silent(&strong, groups, &members, &behind);
    if (led < strong.partition_count) {
        comma(&leaders);
        buf_printf(&leaders, "nobody %" JSON_INTEGER_FORMAT, strong.partition_count - led);
    }
    cell(table, "%s", name);
    cell_list(table, &leaders);
    cell_list(table, &members);
    cell_list(table, &behind);
}

static void render_strong(json_t *groups, struct buf *to)
{
    static const char *const names[] = {"STRONG TABLE", "LEADERS", "MEMBERS", "BEHIND"};
    struct table table = {0};
    json_t *by_table = json_object(), *group, *of_table;
    const char *name;
    size_t i;
    json_array_foreach(groups, i, group)
    {
        of_table = json_object_get(by_table, text(group, "table"));
        if (of_table == NULL) {
            of_table = json_array();
            json_object_set_new(by_table, text(group, "table"), of_table);
        }
        json_array_append(of_table, group);
    }
    head(&table, names, array_len(names));
    json_object_foreach(by_table, name, of_table) render_strong_table(&table, name, of_table);
    table_print(&table, to);
    json_decref(by_table);
}

void render_status(json_t *status, struct buf *to)
{
    json_t *groups = json_object_get(status, "groups");

    json_t *links = json_object_get(status, "links");
    json_t *replication = json_object_get(status, "replication");
    render_regions(json_object_get(status, "regions"), to);
    if (json_array_size(links) > 0) {
        buf_append_text(to, "\n");
        render_links(links, to);
    }
    if (json_array_size(replication) > 0) {
        buf_append_text(to, "\n");
        render_replication(replication, to);
    }
    if (json_array_size(groups) > 0) {
        buf_append_text(to, "\n");
        render_strong(groups, to);
    }
}

static void instant(json_t *object, const char *field, struct buf *to)
{
    json_int_t ms = json_integer_value(json_object_get(object, field));
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char printed[32];
    gmtime_r(&seconds, &parts);
    strftime(printed, sizeof(printed), "%Y-%m-%dT%H:%M:%S", &parts);
    buf_printf(to, "%s.%03dZ", printed, (int)(ms % 1000));
}

static void render_side(const char *name, json_t *side, struct buf *to)
{
    json_t *item = json_object_get(side, "item");
    char *printed = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_printf(to, "  %-6s  %s  %s  %s\n", name, text(side, "region"), text(side, "version"),
               printed == NULL || json_is_null(item) ? "(deleted)" : printed);
    free(printed);
}

void render_conflicts(json_t *conflicts, struct buf *to)
{
    size_t i;
    json_t *loss;
    if (json_array_size(conflicts) == 0)
        buf_append_text(to, "no write has been lost to a later one from another region\n");
    json_array_foreach(conflicts, i, loss)
    {
        char *key = json_dumps(json_object_get(loss, "key"), JSON_COMPACT | JSON_ENCODE_ANY);
        instant(loss, "detected_at_ms", to);
        buf_printf(to, "  %s  %s  %s, noticed in %s\n", text(loss, "table"),
                   key == NULL ? "-" : key, text(loss, "kind"), text(loss, "detected_in"));
        render_side("kept", json_object_get(loss, "winner"), to);
        render_side("lost", json_object_get(loss, "loser"), to);
        free(key);
    }
}

void render_link(json_t *link, struct buf *to)
{
    bool cut = strcmp(text(link, "state"), "cut") == 0;
    const char *held_by = json_string_value(json_object_get(link, "held_by"));
    buf_printf(to, "%s -> %s is %s", text(link, "from"), text(link, "to"), cut ? "cut" : "up");
    if (json_integer_value(json_object_get(link, "effective_ms")) > 0) {
        buf_append_text(to, cut ? ", nothing passes since " : " since ");
        instant(link, "effective_ms", to);
    }
    json_int_t delay_ms = json_integer_value(json_object_get(link, "delay_ms"));
    if (delay_ms > 0)
        buf_printf(to, ", delay %" JSON_INTEGER_FORMAT " ms", delay_ms);
    if (held_by != NULL)
        buf_printf(to, "; it stays cut while %s is isolated: `tidemark region rejoin %s` ends that",
                   held_by, held_by);
    buf_append_text(to, "\n");
}

void render_region(json_t *region, struct buf *to)
{
    json_t *pid = json_object_get(region, "pid");
    bool isolated = json_is_true(json_object_get(region, "isolated"));
    buf_printf(to, "%s is %s", text(region, "name"), text(region, "state"));
    if (json_is_integer(pid))
        buf_printf(to, ", process %" JSON_INTEGER_FORMAT, json_integer_value(pid));
    if (isolated)
        buf_append_text(to, ", isolated");
    if (json_object_get(region, "effective_ms") != NULL) {
        buf_append_text(to, isolated ? ": nothing passes on its links since " : ", rejoined at ");
        instant(region, "effective_ms", to);
    }
    buf_append_text(to, "\n");
}
