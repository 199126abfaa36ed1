/* SPDX-License-Identifier: Apache-2.0 */
/* One page at a time of each Region, all Regions at once. A page that is too large for an answer is
 * asked for again with fewer rows. */

#include "chaos/run/ledger.h"

#include <jansson.h>
#include <string.h>

#include "chaos/drive/answer.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { PAGE_ROWS = 1000, PAGE_MS = 10000, ROWS_MAX = 2000000, TRIES_MAX = 5 };

struct reader { /* of one Region */
    struct ledger_reading *reading;
    struct site *site;
    struct client_request *asking;
    char *after; /* token of the page before, in hexadecimal; NULL: from the start */
    uint32_t rows, tries;
};

struct ledger_reading {
    struct drive *drive;
    struct outcome *outcome;
    void (*done)(void *context, bool good, const char *error);
    void *context;
    struct ledgers_row *rows;
    uint32_t count, cap;
    uint32_t waiting;
    const char *failure; /* in the outcome's arena */
    struct reader readers[SCENARIO_REGIONS_MAX];
};

static void ask(struct reader *reader);

/* 0: deleted, or nothing of ours. */
static uint64_t value_of(const json_t *side)
{
    const json_t *item = json_object_get(side, "item");
    const json_t *attribute = json_object_get(item, "v");
    return attribute == NULL ? 0 : answer_number(attribute);
}

static void keep_row(struct ledger_reading *reading, const struct ledgers_row *row)
{
    if (reading->count == ROWS_MAX)
        return;
    if (reading->count == reading->cap) {
        reading->cap = reading->cap == 0 ? 256 : reading->cap * 2;
        reading->rows = xrealloc(reading->rows, reading->cap * sizeof(*reading->rows));
    }
    reading->rows[reading->count++] = *row;
}

static const json_t *list_of(const json_t *side)
{
    return json_object_get(json_object_get(json_object_get(side, "item"), "l"), "L");
}

/* Of two lists, a row for each element that the losing one had beyond what both begin with: that is
 * what was lost by it. */
static void keep_rows_of_lists(struct ledger_reading *reading, struct ledgers_row row,
                               const json_t *winner, const json_t *loser)
{
    size_t kept = json_array_size(winner), lost = json_array_size(loser), same = 0;
    while (same < kept && same < lost &&
           answer_number(json_array_get(winner, same)) ==
               answer_number(json_array_get(loser, same)))
        same++;
    row.winner = kept == 0 ? 0 : answer_number(json_array_get(winner, kept - 1));
    for (size_t i = same; i < lost; i++) {
        row.loser = answer_number(json_array_get(loser, i));
        keep_row(reading, &row);
    }
}

static void add_row(struct ledger_reading *reading, const struct site *site, const json_t *from)
{
    const char *table = json_string_value(json_object_get(from, "table"));
    const char *kind = json_string_value(json_object_get(from, "kind"));
    const json_t *winner = json_object_get(from, "winner"), *loser = json_object_get(from, "loser");
    char *key = json_dumps(json_object_get(from, "key"), JSON_COMPACT | JSON_ENCODE_ANY);
    struct ledgers_row row = {.winner = value_of(winner),
                              .loser = value_of(loser),
                              .regions = UINT64_C(1) << site->index,
                              .late = kind != NULL && strcmp(kind, "late") == 0};
    bool ours =
        table != NULL && key != NULL &&
        drive_find_key(reading->drive, bytes_text(table), bytes_text(key), &row.table, &row.key);
    free(key);
    if (!ours)
        return;
    if (list_of(loser) != NULL)
        keep_rows_of_lists(reading, row, list_of(winner), list_of(loser));
    else
        keep_row(reading, &row);
}

static void finish(struct ledger_reading *reading)
{
    struct outcome *outcome = reading->outcome;
    outcome->ledger =
        arena_copy(&outcome->arena, reading->rows == NULL ? "" : (void *)reading->rows,
                   reading->count * sizeof(*reading->rows));
    outcome->ledger_count = reading->count;
    reading->done(reading->context, reading->failure == NULL, reading->failure);
}

static void reader_done(struct reader *reader)
{
    struct ledger_reading *reading = reader->reading;
    check(reading->waiting > 0);
    if (--reading->waiting == 0)
        finish(reading);
}

static bool take_page(struct reader *reader, const json_t *page)
{
    const json_t *rows = json_object_get(page, "conflicts");
    const char *next = json_string_value(json_object_get(page, "next"));
    size_t i;
    json_t *row;
    if (!json_is_array(rows))
        return false;
    json_array_foreach(rows, i, row) add_row(reader->reading, reader->site, row);
    free(reader->after);
    reader->after = next == NULL ? NULL : xstrdup(next);
    return true;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct reader *reader = context;
    json_t *page = NULL;
    reader->asking = NULL;
    if (answer->status == 200)
        page = json_loadb((const char *)answer->body.at, answer->body.len, 0, NULL);
    bool good = page != NULL && take_page(reader, page);
    json_decref(page);
    if (!good && ++reader->tries < TRIES_MAX && reader->site->state == SITE_RUNNING) {
        reader->rows = reader->rows / 16 + 1;
        ask(reader);
    } else if (!good) {
        reader->reading->failure =
            outcome_text(reader->reading->outcome, "%s did not tell its ledger of lost writes: %s",
                         reader->site->name,
                         answer->failure == NULL ? "its answer is no page of it" : answer->failure);
        reader_done(reader);
    } else if (reader->after != NULL && reader->reading->count < ROWS_MAX) {
        ask(reader);
    } else {
        reader_done(reader);
    }
}

static void ask(struct reader *reader)
{
    struct buf path = {0};
    buf_printf(&path, "/tidemark/conflicts?limit=%u%s%s", reader->rows,
               reader->after == NULL ? "" : "&after=", reader->after == NULL ? "" : reader->after);
    const struct http_header headers[] = {
        {bytes_literal("host"), bytes_text(reader->site->dial)},
        {bytes_literal("accept"), bytes_literal("application/json")},
    };
    const struct client_call call = {.method = bytes_literal("GET"),
                                     .path = buf_view(&path),
                                     .headers = headers,
                                     .header_count = array_len(headers),
                                     .timeout_ms = PAGE_MS};
    reader->asking = client_send(reader->site->admin, &call, on_answer, reader);
    buf_deinit(&path);
}

struct ledger_reading *ledger_read(struct cluster *cluster, struct drive *drive,
                                   struct outcome *outcome,
                                   void (*done)(void *context, bool good, const char *error),
                                   void *context)
{
    struct ledger_reading *reading = xcalloc(1, sizeof(*reading));
    reading->drive = drive;
    reading->outcome = outcome;
    reading->done = done;
    reading->context = context;
    for (uint32_t i = 0; i < cluster->site_count; i++) {
        struct reader *reader = &reading->readers[i];
        *reader =
            (struct reader){.reading = reading, .site = &cluster->sites[i], .rows = PAGE_ROWS};
        if (reader->site->witness || reader->site->state != SITE_RUNNING)
            continue;
        reading->waiting++;
        ask(reader);
    }
    return reading;
}

void ledger_free(struct ledger_reading *reading)
{
    if (reading == NULL)
        return;
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++) {
        if (reading->readers[i].asking != NULL)
            client_cancel(reading->readers[i].asking);
        free(reading->readers[i].after);
    }
    free(reading->rows);
    free(reading);
}
