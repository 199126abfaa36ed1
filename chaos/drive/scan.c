/* SPDX-License-Identifier: Apache-2.0 */
/* All that the tables hold, in each Region: one lane a Region, page after page. For our own table
 * an item is known by its key and carries its value. Of a user's program's tables nothing is known,
 * so an item there is what its digest says, and each digest that is met has a number as its key:
 * where two Regions differ, each has an item that the other lacks. */

#include <uthash.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "chaos/drive/drive_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { TABLES_MAX = 1000, TABLE_NAME_MAX = 255 };

struct scan_number {
    uint64_t digest;
    uint32_t key;
    UT_hash_handle hh;
};

static void lane_ask(struct lane *lane);

static bool is_exec(const struct drive *drive)
{
    return drive->workload->kind == SCENARIO_EXEC;
}

static void add_item(struct scan_result *result, const struct converge_item *item)
{
    if (result->count == result->cap) {
        result->cap = result->cap > 0 ? 2 * result->cap : 256;
        result->at = xrealloc(result->at, result->cap * sizeof(*result->at));
    }
    result->at[result->count++] = *item;
}

/* A table that an earlier list had keeps its number, whichever Region shows it first. */
static bool add_table(struct drive *drive, const char *name)
{
    if (strlen(name) > TABLE_NAME_MAX || drive->table_count == TABLES_MAX)
        return false;
    for (uint32_t i = 0; i < drive->table_count; i++)
        if (strcmp(drive->tables[i], name) == 0)
            return true;
    drive->tables = xrealloc(drive->tables, (drive->table_count + 1) * sizeof(*drive->tables));
    drive->tables[drive->table_count++] = xstrdup(name);
    return true;
}

static uint64_t digest_of(const json_t *item)
{
    char *text = json_dumps(item, JSON_COMPACT | JSON_SORT_KEYS);
    check(text != NULL);
    uint64_t digest = XXH3_64bits(text, strlen(text));
    free(text);
    return digest;
}

static uint32_t number_of(struct drive *drive, uint64_t digest)
{
    struct scan_number *number;
    HASH_FIND(hh, drive->numbers, &digest, sizeof(digest), number);
    if (number == NULL) {
        number = xmalloc(sizeof(*number));
        *number = (struct scan_number){.digest = digest, .key = HASH_COUNT(drive->numbers)};
        HASH_ADD(hh, drive->numbers, digest, sizeof(digest), number);
    }
    return number->key;
}

void scan_free(struct drive *drive)
{
    struct scan_number *number, *spare;
    HASH_ITER(hh, drive->numbers, number, spare)
    {
        HASH_DEL(drive->numbers, number);
        free(number);
    }
    for (uint8_t place = 0; place < drive->data_count; place++)
        free(drive->scan_items[place].at);
    for (uint32_t i = 0; i < drive->table_count; i++)
        free(drive->tables[i]);
    free(drive->tables);
}

/* What is not of our making gets a key of its own, so that it differs from everything. */
static struct converge_item read_item(struct drive *drive, const struct lane *lane,
                                      const json_t *item)
{
    struct converge_item ret = {.digest = digest_of(item), .table = (uint16_t)lane->table};
    if (is_exec(drive)) {
        ret.key = number_of(drive, ret.digest);
        return ret;
    }
    const char *pk = json_string_value(json_object_get(json_object_get(item, "pk"), "S"));
    if (pk == NULL || !request_read_key(bytes_text(pk), &ret.key)) {
        ret.key = UINT32_MAX;
        ret.element = ret.digest;
        ret.value = ANSWER_STRANGE;
    } else if (drive->style.shape == REQUEST_SET) {
        ret.element = ret.value = answer_number(json_object_get(item, "sk"));
    } else if (drive->workload->kind != SCENARIO_COUNTER &&
               drive->style.shape == REQUEST_REGISTER) {
        ret.value = answer_number(json_object_get(item, "v"));
        ret.value = ret.value > 0 ? ret.value : ANSWER_STRANGE;
    }
    return ret;
}

static void end_if_done(struct drive *drive)
{
    for (uint32_t i = 0; i < drive->lane_count; i++)
        if (!drive->lanes[i].done)
            return;
    for (uint32_t i = 0; i < drive->lane_count; i++) {
        uint8_t place = drive->lanes[i].place;
        drive->scans[i] = (struct converge_scan){drive->scan_items[place].at,
                                                 drive->scan_items[place].count, place};
    }
    drive->scan_count = drive->lane_count;
    chore_end(drive, true);
}

static void next_page(struct lane *lane, json_t *next)
{
    struct drive *drive = lane->drive;
    json_decref(lane->next);
    lane->next = json_incref(next);
    if (next != NULL) {
        lane_ask(lane);
    } else if (++lane->table < drive->table_count) {
        lane_ask(lane);
    } else {
        lane->done = true;
        end_if_done(drive);
    }
}

/* Also "ResourceNotFoundException" of a table that only other Regions have: it holds nothing. */
static bool is_absent(const struct drive *drive, const struct http_answer *answer)
{
    char scratch[64];
    return is_exec(drive) && answer->status == 400 &&
           bytes_is(answer_error_type(answer->body, scratch), "ResourceNotFoundException");
}

static void on_page(void *context, const struct http_answer *answer)
{
    struct lane *lane = context;
    struct drive *drive = lane->drive;
    lane->request = NULL;
    if (drive->freeing)
        return;
    json_t *root cleanup(answer_json_free) = answer_json(answer->body);
    const json_t *items = json_object_get(root, "Items");
    if (is_absent(drive, answer)) {
        next_page(lane, NULL);
    } else if (answer->status != 200 || !json_is_array(items)) {
        chore_trouble(drive, lane->place, "Scan", answer); /* again at the next tick */
    } else {
        for (size_t i = 0; i < json_array_size(items); i++) {
            struct converge_item item = read_item(drive, lane, json_array_get(items, i));
            add_item(&drive->scan_items[lane->place], &item);
        }
        next_page(lane, json_object_get(root, "LastEvaluatedKey"));
    }
}

static void lane_ask(struct lane *lane)
{
    struct drive *drive = lane->drive;
    char *start = lane->next != NULL ? json_dumps(lane->next, JSON_COMPACT) : NULL;
    const char *table = is_exec(drive) ? drive->tables[lane->table] : REQUEST_TABLE;
    buf_reset(&drive->body);
    request_write_scan(bytes_text(table), start ? bytes_text(start) : BYTES_NONE, &drive->body);
    free(start);
    lane->request =
        drive_ask(drive, drive->region[lane->place].admin, lane->place, "Scan",
                  buf_view(&drive->body), drive_timeout_ms(drive) + 1000, on_page, lane);
}

static void scan_tick(struct drive *drive)
{
    for (uint32_t i = 0; i < drive->lane_count; i++)
        if (!drive->lanes[i].done && drive->lanes[i].request == NULL)
            lane_ask(&drive->lanes[i]);
    end_if_done(drive); /* there may be no Region to scan */
}

/* ---- EXEC: which tables are there ---- */

static void list_ask(struct lane *lane);

/* The Regions are asked in turn, so that a table keeps the number of the first that has it. */
static void list_done(struct lane *lane)
{
    struct drive *drive = lane->drive;
    lane->done = true;
    for (uint32_t i = 0; i < drive->lane_count; i++)
        if (!drive->lanes[i].done) {
            list_ask(&drive->lanes[i]);
            return;
        }
    for (uint32_t i = 0; i < drive->lane_count; i++)
        drive->lanes[i].done = drive->table_count == 0;
    drive->chore.tick = scan_tick;
    scan_tick(drive);
}

static void on_tables(void *context, const struct http_answer *answer)
{
    struct lane *lane = context;
    struct drive *drive = lane->drive;
    lane->request = NULL;
    if (drive->freeing)
        return;
    json_t *root cleanup(answer_json_free) = answer_json(answer->body);
    const json_t *names = json_object_get(root, "TableNames");
    json_t *last = json_object_get(root, "LastEvaluatedTableName");
    if (answer->status != 200 || !json_is_array(names)) {
        chore_trouble(drive, lane->place, "ListTables", answer);
        return;
    }
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name == NULL || !add_table(drive, name)) {
            chore_trouble(drive, lane->place, "more tables than can be compared", NULL);
            chore_end(drive, false);
            return;
        }
    }
    json_decref(lane->next);
    lane->next = json_is_string(last) ? json_incref(last) : NULL;
    if (lane->next != NULL)
        list_ask(lane);
    else
        list_done(lane);
}

static void list_ask(struct lane *lane)
{
    struct drive *drive = lane->drive;
    char *start = lane->next ? json_dumps(lane->next, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    buf_reset(&drive->body);
    if (start != NULL)
        buf_printf(&drive->body, "{\"ExclusiveStartTableName\":%s}", start);
    else
        buf_append_text(&drive->body, "{}");
    free(start);
    lane->request =
        drive_ask(drive, drive->region[lane->place].admin, lane->place, "ListTables",
                  buf_view(&drive->body), drive_timeout_ms(drive) + 1000, on_tables, lane);
}

static void list_tick(struct drive *drive)
{
    for (uint32_t i = 0; i < drive->lane_count; i++) {
        struct lane *lane = &drive->lanes[i];
        if (lane->request != NULL)
            return;
        if (!lane->done) {
            list_ask(lane);
            return;
        }
    }
    chore_end(drive, true); /* no Region */
}

/* ---- Both ---- */

void drive_scan(struct drive *drive, uint64_t regions, uint64_t timeout_ns, drive_done *done,
                void *context)
{
    chore_free_lanes(drive);
    drive->scan_count = 0;
    drive->lanes = xcalloc(drive->data_count, sizeof(*drive->lanes));
    for (uint8_t place = 0; place < drive->data_count; place++) {
        drive->scan_items[place].count = 0;
        if (regions >> place & 1)
            drive->lanes[drive->lane_count++] = (struct lane){.drive = drive, .place = place};
    }
    chore_begin(drive, timeout_ns, is_exec(drive) ? list_tick : scan_tick, done, context);
}

const struct converge_scan *drive_scans(const struct drive *drive, uint32_t *ret_count)
{
    *ret_count = drive->scan_count;
    return drive->scans;
}

bool drive_find_key(const struct drive *drive, struct bytes table_name, struct bytes key_json,
                    uint16_t *ret_table, uint32_t *ret_key)
{
    if (is_exec(drive) || !bytes_is(table_name, REQUEST_TABLE))
        return false;
    json_t *root cleanup(answer_json_free) = answer_json(key_json);
    const char *pk = json_string_value(json_object_get(json_object_get(root, "pk"), "S"));
    if (pk == NULL || !request_read_key(bytes_text(pk), ret_key))
        return false;
    *ret_table = 0;
    return true;
}
