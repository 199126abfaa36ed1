/* SPDX-License-Identifier: Apache-2.0 */
/* What the regions say, put together: /v1/status and /v1/console ask each once, /v1/conflicts reads
 * each one's ledger page by page, or its last rows. A region that is dead is not asked; one that is
 * silent for a second is shown as it is, without figures, and does not hold up the others. Every
 * region that learns of a write that lost notes it down, so the same loser comes several times and
 * is told once. */

#include <stdio.h>
#include <string.h>
#include <uthash.h>

#include "chaos/live/control.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { STATUS_MS = 1000, PAGE_MS = 10000, PAGE_ROWS = 1000, ROWS_MAX = 1000000 };
#define PAGES_BYTES_MAX (UINT64_C(256) * 1024 * 1024)

enum report_kind { REPORT_STATUS, REPORT_CONSOLE, REPORT_CONFLICTS };

struct ask {
    struct report *report;
    struct site *site;
    json_t *said;  /* the status, or an array of all conflicts; NULL: nothing */
    char *after;   /* page to ask for; NULL: the first */
    uint32_t rows; /* a page */
};

struct report {
    struct control *control;
    struct exchange *exchange;
    enum report_kind kind;
    uint32_t newest;  /* so many of the last conflicts; 0: all */
    uint32_t waiting; /* asks without their last answer */
    uint64_t bytes;
    const char *failure; /* of the whole */
    struct ask asks[];
};

static void ask_next(struct ask *ask);
static void finish(struct report *report);

static void ask_done(struct ask *ask)
{
    struct report *report = ask->report;
    check(report->waiting > 0);
    if (--report->waiting == 0)
        finish(report);
}

/* ---- Asking ---- */

static bool take_page(struct ask *ask, json_t *page)
{
    json_t *rows = json_object_get(page, "conflicts");
    json_t *next = json_object_get(page, "next");
    if (!json_is_array(rows))
        return false;
    if (ask->said == NULL)
        ask->said = json_array();
    json_array_extend(ask->said, rows);
    free(ask->after);
    ask->after = json_is_string(next) ? xstrdup(json_string_value(next)) : NULL;
    return true;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct ask *ask = context;
    struct report *report = ask->report;
    json_t *said = NULL;
    if (answer->status == 200)
        said = json_loadb((const char *)answer->body.at, answer->body.len, 0, NULL);
    if (report->kind != REPORT_CONFLICTS) {
        ask->said = said;
        ask_done(ask);
        return;
    }
    report->bytes += answer->body.len;
    bool good = said != NULL && take_page(ask, said);
    json_decref(said);
    if (!good && ask->rows > 1 &&
        ask->site->state == SITE_RUNNING) { /* items of 400 KB: the page was too large */
        ask->rows = ask->rows / 16 + 1;
        ask_next(ask);
    } else if (!good) {
        report->failure =
            "a region did not tell its conflicts: see `tidemark status`, and ask again";
        ask_done(ask);
    } else if (report->bytes > PAGES_BYTES_MAX || json_array_size(ask->said) > ROWS_MAX) {
        report->failure = "there are more conflicts than can be merged at once: read each region's "
                          "own /tidemark/conflicts page by page";
        ask_done(ask);
    } else if (ask->after != NULL && report->failure == NULL) {
        ask_next(ask);
    } else {
        ask_done(ask);
    }
}

static void escape(struct buf *to, const char *from)
{
    for (; *from != 0; from++) {
        uint8_t c = (uint8_t)*from;
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                     c == '-' || c == '_' || c == '.';
        buf_printf(to, plain ? "%c" : "%%%02X", c);
    }
}

static void ask_next(struct ask *ask)
{
    struct buf path;
    buf_init(&path);
    bool conflicts = ask->report->kind == REPORT_CONFLICTS;
    if (conflicts) {
        buf_printf(&path, "/tidemark/conflicts?%s=%u", ask->report->newest > 0 ? "newest" : "limit",
                   ask->rows);
        if (ask->after != NULL) {
            buf_append_text(&path, "&after=");
            escape(&path, ask->after);
        }
    } else {
        buf_append_text(&path, "/tidemark/status");
    }
    const struct http_header headers[] = {
        {bytes_literal("host"), bytes_text(ask->site->dial)},
        {bytes_literal("accept"), bytes_literal("application/json")},
    };
    const struct client_call call = {.method = bytes_literal("GET"),
                                     .path = buf_view(&path),
                                     .headers = headers,
                                     .header_count = array_len(headers),
                                     .timeout_ms = conflicts ? PAGE_MS : STATUS_MS};
    client_send(ask->site->admin, &call, on_answer, ask);
    buf_deinit(&path);
}

static void start(struct control *control, struct exchange *exchange, enum report_kind kind,
                  uint32_t newest)
{
    struct cluster *cluster = control->cluster;
    struct report *report =
        xcalloc(1, sizeof(*report) + cluster->site_count * sizeof(report->asks[0]));
    report->control = control;
    report->exchange = exchange;
    report->kind = kind;
    report->newest = newest;
    report->waiting = 1;
    for (uint32_t i = 0; i < cluster->site_count; i++) {
        struct ask *ask = &report->asks[i];
        *ask = (struct ask){
            .report = report, .site = &cluster->sites[i], .rows = newest > 0 ? newest : PAGE_ROWS};
        /* A paused region can't answer; it is shown as paused. */
        if (ask->site->state != SITE_RUNNING)
            continue;
        report->waiting++;
        ask_next(ask);
    }
    ask_done(&report->asks[0]);
}

void report_status(struct control *control, struct exchange *exchange)
{
    start(control, exchange, REPORT_STATUS, 0);
}

void report_console(struct control *control, struct exchange *exchange)
{
    start(control, exchange, REPORT_CONSOLE, 0);
}

void report_conflicts(struct control *control, struct exchange *exchange, uint32_t newest)
{
    check(newest <= PAGE_ROWS);
    start(control, exchange, REPORT_CONFLICTS, newest);
}

/* ---- Status ---- */

static void copy_as(json_t *to, const char *name, json_t *from, const char *field)
{
    json_t *value = json_object_get(from, field);
    json_object_set(to, name, value == NULL ? json_null() : value);
}

static void copy(json_t *to, json_t *from, const char *field)
{
    copy_as(to, field, from, field);
}

static void add_replication(json_t *all, const struct ask *ask)
{
    static const char *const fields[] = {"to", "pending", "oldest_ms", "lag_p50_ms", "lag_p99_ms"};
    size_t i, j;
    json_t *table, *peer;
    json_array_foreach(json_object_get(ask->said, "tables"), i, table)
    {
        json_array_foreach(json_object_get(table, "replication"), j, peer)
        {
            json_t *line = json_object();
            json_t *name = json_object_get(table, "name");
            json_object_set(line, "table", name == NULL ? json_null() : name);
            json_object_set_new(line, "from", json_string(ask->site->name));
            for (size_t k = 0; k < array_len(fields); k++)
                copy(line, peer, fields[k]);
            json_array_append_new(all, line);
        }
    }
}

/* Each member's own view of each partition of a strong table. */
static void add_groups(json_t *all, const struct ask *ask)
{
    static const char *const fields[] = {"table", "partition", "members", "leader",
                                         "leads", "term",      "commit",  "applied",
                                         "last",  "standing",  "witness", "pending"};
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(ask->said, "groups"), i, group)
    {
        json_t *line = json_object();
        json_object_set_new(line, "region", json_string(ask->site->name));
        for (size_t k = 0; k < array_len(fields); k++)
            copy(line, group, fields[k]);
        json_array_append_new(all, line);
    }
}

/* Each region's own view of each of its tables. */
static void add_tables(json_t *all, const struct ask *ask)
{
    static const char *const fields[] = {"name", "status", "items", "bytes", "replicas"};
    size_t i;
    json_t *table;
    json_array_foreach(json_object_get(ask->said, "tables"), i, table)
    {
        json_t *line = json_object();
        json_object_set_new(line, "region", json_string(ask->site->name));
        for (size_t k = 0; k < array_len(fields); k++)
            copy(line, table, fields[k]);
        json_array_append_new(all, line);
    }
}

/* What the console shows beside the status. */
static void add_console(json_t *all, const struct report *report)
{
    struct cluster *cluster = report->control->cluster;
    const struct control_run *run = report->control->run;
    json_t *tables = json_array();
    for (uint32_t i = 0; i < cluster->site_count; i++)
        add_tables(tables, &report->asks[i]);
    json_object_set_new(all, "tables", tables);
    json_object_set_new(all, "faults", run == NULL ? json_array() : run->faults(run->context));
}

static json_t *status_of(struct report *report)
{
    struct cluster *cluster = report->control->cluster;
    bool console = report->kind == REPORT_CONSOLE;
    json_t *regions = json_array(), *links = json_array(), *replication = json_array();
    json_t *groups = json_array();
    for (uint32_t i = 0; i < cluster->site_count; i++) {
        const struct ask *ask = &report->asks[i];
        json_t *region = cluster_api_site(ask->site);
        json_t *conflicts = json_object_get(json_object_get(ask->said, "conflicts"), "rows");
        json_object_set(region, "conflicts", conflicts == NULL ? json_null() : conflicts);
        if (console)
            copy_as(region, "clock_offset_ms", json_object_get(ask->said, "clock"), "offset_ms");
        json_array_append_new(regions, region);
        add_replication(replication, ask);
        add_groups(groups, ask);
    }
    for (uint32_t i = 0; i < cluster->link_count; i++)
        json_array_append_new(links, cluster_api_link(&cluster->links[i]));
    json_t *all = json_pack("{s:o, s:o, s:o, s:o}", "regions", regions, "links", links,
                            "replication", replication, "groups", groups);
    if (console)
        add_console(all, report);
    return all;
}

/* ---- Conflicts ---- */

struct loss {
    char *id; /* table, key, version of the loser */
    json_t *row;
    UT_hash_handle hh;
};

static const char *text_of(json_t *row, const char *part, const char *field)
{
    const char *text =
        json_string_value(json_object_get(part == NULL ? row : json_object_get(row, part), field));
    return text == NULL ? "" : text;
}

static int64_t detected_ms(json_t *row)
{
    return json_integer_value(json_object_get(row, "detected_at_ms"));
}

/* A region that saw a later winner knows more; of two that know the same, the first to notice
 * tells. */
static bool tells_more(json_t *row, json_t *than)
{
    int order = strcmp(text_of(row, "winner", "order"), text_of(than, "winner", "order"));
    return order != 0 ? order > 0 : detected_ms(row) < detected_ms(than);
}

static void add_loss(struct loss **losses, json_t *row)
{
    if (!json_is_object(row))
        return;
    char *key =
        json_dumps(json_object_get(row, "key"), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    struct buf id;
    buf_init(&id);
    buf_printf(&id, "%s\n%s\n%s", text_of(row, NULL, "table"), key == NULL ? "" : key,
               text_of(row, "loser", "version"));
    buf_append_u8(&id, 0);
    free(key);
    struct loss *loss;
    HASH_FIND_STR(*losses, (const char *)id.at, loss);
    if (loss == NULL) {
        loss = xcalloc(1, sizeof(*loss));
        loss->id = (char *)steal(&id.at);
        loss->row = row;
        HASH_ADD_KEYPTR(hh, *losses, loss->id, strlen(loss->id), loss);
    } else {
        if (tells_more(row, loss->row))
            loss->row = row;
        buf_deinit(&id);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct loss *x = *(struct loss *const *)a, *y = *(struct loss *const *)b;
    int64_t p = detected_ms(x->row), q = detected_ms(y->row);
    if (p != q)
        return p < q ? -1 : 1;
    return strcmp(x->id, y->id);
}

static json_t *side(json_t *row, const char *name)
{
    json_t *from = json_object_get(row, name), *to = json_object();
    copy(to, from, "region");
    copy(to, from, "version");
    copy(to, from, "item");
    return to;
}

static json_t *loss_encode(json_t *row)
{
    json_t *to = json_object();
    copy(to, row, "table");
    copy(to, row, "key");
    copy(to, row, "kind");
    copy(to, row, "detected_in");
    copy(to, row, "detected_at_ms");
    json_object_set_new(to, "winner", side(row, "winner"));
    json_object_set_new(to, "loser", side(row, "loser"));
    return to;
}

json_t *report_merge(json_t *const *rows_of, uint32_t region_count)
{
    struct loss *losses = NULL, *loss, *spare;
    for (uint32_t i = 0; i < region_count; i++) {
        size_t j;
        json_t *row;
        json_array_foreach(rows_of[i], j, row) add_loss(&losses, row);
    }
    size_t count = HASH_COUNT(losses), at = 0;
    struct loss **sorted = xcalloc(count, sizeof(struct loss *));
    HASH_ITER(hh, losses, loss, spare)
    sorted[at++] = loss;
    qsort(sorted, count, sizeof(struct loss *), by_time);
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(all, loss_encode(sorted[i]->row));
    HASH_ITER(hh, losses, loss, spare)
    {
        HASH_DEL(losses, loss);
        free(loss->id);
        free(loss);
    }
    free(sorted);
    return all;
}

static json_t *conflicts_of(struct report *report)
{
    json_t *rows_of[REGION_ID_MAX];
    uint32_t count = report->control->cluster->site_count;
    for (uint32_t i = 0; i < count; i++)
        rows_of[i] = report->asks[i].said;
    json_t *all = report_merge(rows_of, count);
    while (report->newest > 0 && json_array_size(all) > report->newest)
        json_array_remove(all, 0);
    return all;
}

/* Which regions have said nothing; empty when all have spoken. */
static void name_silent(const struct report *report, struct buf *note)
{
    for (uint32_t i = 0; i < report->control->cluster->site_count; i++) {
        const struct ask *ask = &report->asks[i];
        if (ask->said == NULL)
            buf_printf(note, "%s%s", note->len == 0 ? "without word from " : ", ", ask->site->name);
    }
    buf_append_u8(note, 0);
}

static void finish(struct report *report)
{
    struct buf note;
    bool conflicts = report->kind == REPORT_CONFLICTS;
    buf_init(&note);
    name_silent(report, &note);
    if (report->failure != NULL)
        control_fail(report->control, report->exchange, 503, "%s", report->failure);
    else
        control_answer_noted(report->control, report->exchange, 200,
                             conflicts && note.len > 1 ? (const char *)note.at : NULL,
                             conflicts ? conflicts_of(report) : status_of(report));
    buf_deinit(&note);
    for (uint32_t i = 0; i < report->control->cluster->site_count; i++) {
        json_decref(report->asks[i].said);
        free(report->asks[i].after);
    }
    free(report);
}
