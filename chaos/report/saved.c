/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of what is kept of a run, and both ways through them. A line tells what it is by its
 * "type", but for operations, which have a file of their own. Kinds of lines are added here and
 * nowhere else; that is why this file has some more than 500 lines. */

#include "chaos/report/saved.h"

#include <inttypes.h>
#include <string.h>

#include "chaos/report/facts.h"
#include "chaos/report/text.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"

enum {
    SINK_FULL = 1 << 16,
    EVENTS_MAX = 65536,
    SAMPLES_MAX = 1 << 20,
    LOSSES_MAX = 4096,
    LEDGER_MAX = 1 << 23,
    ITEMS_MAX = 1 << 24
};

/* ---- Names ---- */

#define NAME_OF_KIND(name, text, writes) text,
#define NAME_OF(name, text) text,
#define NAME_OF_VERB(enumerator, name, ...) name,
static const char *const kinds[] = {HISTORY_KINDS(NAME_OF_KIND) NULL};
static const char *const outcomes[] = {HISTORY_OUTCOMES(NAME_OF) NULL};
static const char *const reasons[] = {HISTORY_REASONS(NAME_OF) NULL};
static const char *const observations[] = {HISTORY_OBSERVATIONS(NAME_OF) NULL};
static const char *const verbs[] = {SCENARIO_VERB_MAP(NAME_OF_VERB) NULL};

/* ---- Tables ---- */

#define OF(type, member) .key = #member, .offset = offsetof(struct type, member)

static const struct line_field op_fields[] = {
    {OF(history_op, kind), .type = LINE_NAME, .names = kinds, .required = true},
    {OF(history_op, outcome), .type = LINE_NAME, .names = outcomes, .required = true},
    {OF(history_op, reason), .type = LINE_NAME, .names = reasons, .none = HISTORY_REASON_NONE},
    {OF(history_op, region), .type = LINE_REGION, .required = true},
    {OF(history_op, client), .type = LINE_U32, .required = true},
    {OF(history_op, table), .type = LINE_U16},
    {OF(history_op, key), .type = LINE_U32, .required = true},
    {OF(history_op, intended_ns), .type = LINE_MOMENT, .required = true},
    {OF(history_op, invoke_ns), .type = LINE_MOMENT, .required = true},
    {OF(history_op, return_ns), .type = LINE_MOMENT, .required = true},
    {OF(history_op, written), .type = LINE_U64},
    {OF(history_op, expected), .type = LINE_U64},
    {OF(history_op, saw), .type = LINE_NAME, .names = observations, .none = HISTORY_SAW_NOTHING},
    {OF(history_op, value), .type = LINE_U64},
    {OF(history_op, bytes), .type = LINE_U32},
    {OF(history_op, strong), .type = LINE_BOOL},
    {OF(history_op, final), .type = LINE_BOOL},
};

static const struct line_field run_fields[] = {
    {OF(outcome, began_ns), .type = LINE_U64, .required = true},
    {OF(outcome, ended_ns), .type = LINE_MOMENT, .required = true},
    {OF(outcome, began_wall_ms), .type = LINE_U64, .required = true},
    {OF(outcome, scenario_file), .type = LINE_TEXT, .required = true},
    {OF(outcome, seed), .type = LINE_U64, .required = true},
    {OF(outcome, version), .type = LINE_TEXT, .required = true},
    {OF(outcome, stopped), .type = LINE_TEXT},
    {OF(outcome, harness), .type = LINE_TEXT},
    {OF(outcome, lost_ns), .type = LINE_MOMENT, .none = RPO_NEVER},
    {OF(outcome, lost_regions), .type = LINE_REGIONS},
    {OF(outcome, down_regions), .type = LINE_REGIONS},
    {OF(outcome, gone_regions), .type = LINE_REGIONS},
    {OF(outcome, healed_ns), .type = LINE_MOMENT},
    {OF(outcome, converged_ns), .type = LINE_MOMENT},
    {OF(outcome, region_rpo_count), .type = LINE_U64, .none = UINT64_MAX},
    {OF(outcome, region_rpo_why), .type = LINE_TEXT},
    {OF(outcome, asked_per_s), .type = LINE_U64},
    {OF(outcome, begun_per_s), .type = LINE_U64},
    {OF(outcome, exited), .type = LINE_BOOL},
    {OF(outcome, exit_code), .type = LINE_INT},
};

static const struct line_field phase_fields[] = {
    {OF(outcome_phase, name), .type = LINE_TEXT, .required = true},
    {OF(outcome_phase, from_ns), .type = LINE_MOMENT, .required = true},
    {OF(outcome_phase, to_ns), .type = LINE_MOMENT, .required = true},
    {OF(outcome_phase, timed_out), .type = LINE_BOOL},
};

static const struct line_field fault_fields[] = {
    {OF(outcome_fault, id), .type = LINE_TEXT, .required = true},
    {OF(outcome_fault, verb), .type = LINE_NAME, .names = verbs, .required = true},
    {OF(outcome_fault, target), .type = LINE_TEXT},
    {OF(outcome_fault, regions), .type = LINE_REGIONS},
    {OF(outcome_fault, from_ns), .type = LINE_MOMENT, .required = true},
    {OF(outcome_fault, to_ns), .type = LINE_MOMENT},
    {OF(outcome_fault, evidence), .type = LINE_TEXT},
    {OF(outcome_fault, effective), .type = LINE_BOOL},
    {OF(outcome_fault, refused), .type = LINE_BOOL},
};

static const struct line_field event_fields[] = {
    {OF(outcome_event, at_ns), .type = LINE_MOMENT, .required = true},
    {OF(outcome_event, region), .type = LINE_REGION, .none = SCENARIO_REGION_NONE},
    {OF(outcome_event, kind), .type = LINE_TEXT, .required = true},
    {OF(outcome_event, text), .type = LINE_TEXT, .required = true},
};

static const struct line_field loss_fields[] = {
    {OF(outcome_loss, at_ns), .type = LINE_MOMENT, .required = true},
    {OF(outcome_loss, region), .type = LINE_REGION, .required = true},
    {OF(outcome_loss, why), .type = LINE_NAME, .names = facts_disk_losses, .required = true},
    {OF(outcome_loss, kept), .type = LINE_BOOL},
};

#define OF_SAMPLE(member)                                                                          \
    .key = #member, .offset = offsetof(struct outcome_sample, region[0].member) -                  \
                              offsetof(struct outcome_sample, region[0])

static const struct line_field sample_fields[] = {
    {OF_SAMPLE(up), .type = LINE_BOOL},         {OF_SAMPLE(paused), .type = LINE_BOOL},
    {OF_SAMPLE(leads), .type = LINE_U32},       {OF_SAMPLE(pending), .type = LINE_U64},
    {OF_SAMPLE(lag_ns), .type = LINE_U64},      {OF_SAMPLE(clock_offset_ns), .type = LINE_I64},
    {OF_SAMPLE(conflicts), .type = LINE_U64},   {OF_SAMPLE(resident_bytes), .type = LINE_U64},
    {OF_SAMPLE(descriptors), .type = LINE_U32},
};

static const struct line_field row_fields[] = {
    {OF(ledgers_row, table), .type = LINE_U16},
    {OF(ledgers_row, key), .type = LINE_U32, .required = true},
    {OF(ledgers_row, winner), .type = LINE_U64},
    {OF(ledgers_row, loser), .type = LINE_U64},
    {OF(ledgers_row, regions), .type = LINE_REGIONS},
    {OF(ledgers_row, late), .type = LINE_BOOL},
};

static const struct line_field item_fields[] = {
    {OF(converge_item, table), .type = LINE_U16},
    {OF(converge_item, key), .type = LINE_U32, .required = true},
    {OF(converge_item, element), .type = LINE_U64},
    {OF(converge_item, value), .type = LINE_U64},
    {OF(converge_item, digest), .type = LINE_U64, .required = true},
};

static const struct line_shape op_shape = LINE_SHAPE(op_fields);
static const struct line_shape run_shape = LINE_SHAPE(run_fields);
static const struct line_shape phase_shape = LINE_SHAPE(phase_fields);
static const struct line_shape fault_shape = LINE_SHAPE(fault_fields);
static const struct line_shape event_shape = LINE_SHAPE(event_fields);
static const struct line_shape loss_shape = LINE_SHAPE(loss_fields);
static const struct line_shape sample_shape = LINE_SHAPE(sample_fields);
static const struct line_shape row_shape = LINE_SHAPE(row_fields);
static const struct line_shape item_shape = LINE_SHAPE(item_fields);

/* ---- Writing ---- */

static struct lines lines_of(const struct outcome *outcome)
{
    return (struct lines){.cluster = &outcome->scenario->cluster, .began_ns = outcome->began_ns};
}

static void file_begin(struct saved_sink *sink)
{
    sink->summed = sink->to.len;
    sink->sum = (struct saved_sum){0};
}

static void line_end(struct saved_sink *sink)
{
    buf_append_text(&sink->to, "}\n");
    sink->sum.lines++;
    sink->sum.crc =
        crc32c(sink->sum.crc, bytes_make(sink->to.at + sink->summed, sink->to.len - sink->summed));
    if (sink->to.len >= SINK_FULL && sink->drain != NULL)
        sink->drain(sink);
    sink->summed = sink->to.len;
}

static void file_end(struct saved_sink *sink, const char *key)
{
    buf_printf(&sink->to, "{\"%s\":\"end\",\"lines\":%" PRIu64 ",\"crc32c\":%" PRIu32 "}\n", key,
               sink->sum.lines, sink->sum.crc);
}

static void write_one(const struct lines *lines, const char *type, const struct line_shape *shape,
                      const void *from, struct saved_sink *sink)
{
    buf_printf(&sink->to, "{\"type\":\"%s\"", type);
    line_write(lines, shape, from, false, &sink->to);
    line_end(sink);
}

void saved_history_write(const struct outcome *outcome, struct saved_sink *sink)
{
    const struct lines lines = lines_of(outcome);
    const struct history *history = &outcome->history;
    file_begin(sink);
    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_op *op = &history->ops[i];
        buf_append_u8(&sink->to, '{');
        line_write(&lines, &op_shape, op, true, &sink->to);
        if (op->saw == HISTORY_SAW_LIST) {
            const uint64_t *list = history_list(history, op);
            buf_append_text(&sink->to, ",\"list\":[");
            for (uint32_t j = 0; j < op->list_count; j++) {
                if (j > 0)
                    buf_append_u8(&sink->to, ',');
                line_u64_write(list[j], &sink->to);
            }
            buf_append_u8(&sink->to, ']');
        }
        line_end(sink);
    }
    file_end(sink, "kind");
}

static void write_samples(const struct outcome *outcome, const struct lines *lines,
                          struct saved_sink *sink)
{
    for (uint32_t i = 0; i < outcome->sample_count; i++) {
        const struct outcome_sample *sample = &outcome->samples[i];
        buf_printf(&sink->to, "{\"type\":\"sample\",\"at_ns\":%" PRId64 ",\"regions\":[",
                   (int64_t)(sample->at_ns - outcome->began_ns));
        for (uint8_t j = 0; j < lines->cluster->region_count; j++) {
            buf_append_text(&sink->to, j == 0 ? "{" : ",{");
            line_write(lines, &sample_shape, &sample->region[j], true, &sink->to);
            buf_append_u8(&sink->to, '}');
        }
        buf_append_u8(&sink->to, ']');
        line_end(sink);
    }
}

static void write_scans(const struct lines *lines, const char *type,
                        const struct converge_scan *scans, uint32_t count, struct saved_sink *sink)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(&sink->to, "{\"type\":\"%s\",\"region\":", type);
        text_json(lines->cluster->region[scans[i].region].name, &sink->to);
        buf_printf(&sink->to, ",\"items\":%" PRIu32, scans[i].count);
        line_end(sink);
        for (uint32_t j = 0; j < scans[i].count; j++)
            write_one(lines, "item", &item_shape, &scans[i].items[j], sink);
    }
}

void saved_events_write(const struct outcome *outcome, struct saved_sink *sink)
{
    const struct lines lines = lines_of(outcome);
    file_begin(sink);
    buf_printf(&sink->to, "{\"type\":\"run\",\"format\":%d", SAVED_FORMAT);
    line_write(&lines, &run_shape, outcome, false, &sink->to);
    line_end(sink);
    for (uint32_t i = 0; i < outcome->phase_count; i++)
        write_one(&lines, "phase", &phase_shape, &outcome->phases[i], sink);
    for (uint32_t i = 0; i < outcome->fault_count; i++)
        write_one(&lines, "fault", &fault_shape, &outcome->faults[i], sink);
    for (uint32_t i = 0; i < outcome->event_count; i++)
        write_one(&lines, "event", &event_shape, &outcome->events[i], sink);
    for (uint32_t i = 0; i < outcome->disk_loss_count; i++)
        write_one(&lines, "loss", &loss_shape, &outcome->disk_losses[i], sink);
    write_samples(outcome, &lines, sink);
    for (uint32_t i = 0; i < outcome->ledger_count; i++)
        write_one(&lines, "ledger", &row_shape, &outcome->ledger[i], sink);
    write_scans(&lines, "scan", outcome->scans, outcome->scan_count, sink);
    write_scans(&lines, "rescan", outcome->rescans, outcome->rescan_count, sink);
    file_end(sink, "type");
}

/* ---- Reading ---- */

void saved_reader_init(struct saved_reader *reader, struct outcome *outcome)
{
    *reader = (struct saved_reader){
        .outcome = outcome,
        .lines = {.cluster = &outcome->scenario->cluster, .arena = &outcome->arena}};
}

static bool fail(struct buf *why, const char *text)
{
    buf_append_text(why, text);
    return false;
}

/* Removes an entry that the tables know nothing of; false if it is no whole number up to max. */
static bool take_number(json_t *line, const char *key, uint64_t max, uint64_t *ret)
{
    const json_t *json = json_object_get(line, key);
    bool good = json != NULL && line_u64_read(json, max, ret);
    json_object_del(line, key);
    return good;
}

static bool read_run(struct saved_reader *reader, json_t *line, struct buf *why)
{
    struct outcome *outcome = reader->outcome;
    uint64_t format;
    const json_t *began = json_object_get(line, "began_ns");
    if (!take_number(line, "format", UINT32_MAX, &format))
        return fail(why, "format: expected a whole number");
    if (format != SAVED_FORMAT) {
        buf_printf(why,
                   "format: expected %d, which is what this version reads; %" PRIu64
                   " is of another one%s",
                   SAVED_FORMAT, format,
                   format == 1 ? ", whose files do not tell whether they are whole" : "");
        return false;
    }
    if (began == NULL || !line_u64_read(began, (uint64_t)INT64_MAX, &reader->lines.began_ns))
        return fail(why, "began_ns: expected a whole number below 2^63");
    if (!line_read(&reader->lines, &run_shape, line, outcome, why))
        return false;
    if (outcome->ended_ns < outcome->began_ns)
        return fail(why, "ended_ns: is before began_ns");
    outcome->phases = arena_array(&outcome->arena, struct outcome_phase, SCENARIO_PHASES_MAX);
    outcome->scans = arena_array(&outcome->arena, struct converge_scan, SCENARIO_REGIONS_MAX);
    outcome->rescans = arena_array(&outcome->arena, struct converge_scan, SCENARIO_REGIONS_MAX);
    reader->begun = true;
    return true;
}

static bool read_phase(struct saved_reader *reader, json_t *line, struct buf *why)
{
    struct outcome *outcome = reader->outcome;
    if (outcome->phase_count == SCENARIO_PHASES_MAX)
        return fail(why, "more phases than a scenario can have");
    struct outcome_phase *phase = &outcome->phases[outcome->phase_count];
    if (!line_read(&reader->lines, &phase_shape, line, phase, why))
        return false;
    if (phase->from_ns > phase->to_ns)
        return fail(why, "to_ns: is before from_ns");
    outcome->phase_count++;
    return true;
}

static bool read_fault(struct saved_reader *reader, json_t *line, struct buf *why)
{
    struct outcome_fault *fault = outcome_fault(reader->outcome);
    if (fault == NULL)
        return fail(why, "more faults than a scenario can have");
    if (!line_read(&reader->lines, &fault_shape, line, fault, why))
        return false;
    if (fault->to_ns != 0 && fault->from_ns > fault->to_ns)
        return fail(why, "to_ns: is before from_ns");
    if (fault->refused && fault->effective)
        return fail(why, "refused: and effective, which exclude each other");
    return true;
}

static bool read_event(struct saved_reader *reader, json_t *line, struct buf *why)
{
    struct outcome_event event = {0};
    if (reader->outcome->event_count >= EVENTS_MAX)
        return fail(why, "more events than a run notes");
    if (!line_read(&reader->lines, &event_shape, line, &event, why))
        return false;
    /* The text may be longer than outcome_event prints, so it is put in its place afterwards. */
    struct outcome *outcome = reader->outcome;
    outcome_event(outcome, event.at_ns, event.region, event.kind, "%s", "");
    outcome->events[outcome->event_count - 1].text = event.text;
    return true;
}

/* What the first line tells of all losses holds for each, so it is as it was when they are in. */
static bool read_loss(struct saved_reader *reader, json_t *line, struct buf *why)
{
    struct outcome *outcome = reader->outcome;
    struct outcome_loss loss = {0};
    if (outcome->disk_loss_count == LOSSES_MAX)
        return fail(why, "more losses than a run notes");
    if (!line_read(&reader->lines, &loss_shape, line, &loss, why))
        return false;
    if (!(outcome->lost_regions >> loss.region & 1) || outcome->lost_ns == RPO_NEVER ||
        loss.at_ns > outcome->lost_ns)
        return fail(why, "a loss that the line of the run does not know of");
    for (uint32_t i = 0; i < outcome->disk_loss_count; i++) {
        const struct outcome_loss *other = &outcome->disk_losses[i];
        if (other->region == loss.region &&
            ((other->at_ns == loss.at_ns && other->why == loss.why) || (other->kept && loss.kept)))
            return fail(why, "a loss that is above, or kept in the place of one above");
    }
    outcome_lost(outcome, loss.at_ns, loss.region, (enum outcome_loss_why)loss.why, loss.kept);
    return true;
}

static bool read_sample(struct saved_reader *reader, json_t *line, struct buf *why)
{
    static const struct line_field at_fields[] = {
        {OF(outcome_sample, at_ns), .type = LINE_MOMENT, .required = true}};
    static const struct line_shape at_shape = LINE_SHAPE(at_fields);
    struct outcome *outcome = reader->outcome;
    struct outcome_sample sample = {0};
    uint8_t regions = reader->lines.cluster->region_count;
    if (outcome->sample_count == SAMPLES_MAX)
        return fail(why, "more samples than a run takes");
    json_t *array = json_object_get(line, "regions");
    if (!json_is_array(array) || json_array_size(array) != regions)
        return fail(why, "regions: expected a list with an object for each Region");
    for (uint8_t i = 0; i < regions; i++) {
        json_t *region = json_array_get(array, i);
        if (!json_is_object(region))
            return fail(why, "regions: expected a list with an object for each Region");
        if (!line_read(&reader->lines, &sample_shape, region, &sample.region[i], why))
            return false;
    }
    json_object_del(line, "regions");
    if (!line_read(&reader->lines, &at_shape, line, &sample, why))
        return false;
    if (outcome->sample_count > 0 &&
        outcome->samples[outcome->sample_count - 1].at_ns > sample.at_ns)
        return fail(why, "at_ns: is before that of the sample above");
    *outcome_sample(outcome, sample.at_ns) = sample;
    return true;
}

static bool read_row(struct saved_reader *reader, json_t *line, struct buf *why)
{
    struct outcome *outcome = reader->outcome;
    if (outcome->ledger_count == LEDGER_MAX)
        return fail(why, "more rows of ledgers than can be judged");
    outcome->ledger = arena_grow(&outcome->arena, outcome->ledger, outcome->ledger_count,
                                 &reader->ledger_cap, sizeof(*outcome->ledger));
    if (!line_read(&reader->lines, &row_shape, line, &outcome->ledger[outcome->ledger_count], why))
        return false;
    outcome->ledger_count++;
    return true;
}

static bool read_scan(struct saved_reader *reader, json_t *line, struct converge_scan *scans,
                      uint32_t *count, struct buf *why)
{
    static const struct line_field region_fields[] = {
        {OF(converge_scan, region), .type = LINE_REGION, .required = true}};
    static const struct line_shape region_shape = LINE_SHAPE(region_fields);
    struct converge_scan scan = {0};
    uint64_t items;
    if (!take_number(line, "items", ITEMS_MAX, &items))
        return fail(why, "items: expected a whole number up to 2^24");
    if (!line_read(&reader->lines, &region_shape, line, &scan, why))
        return false;
    for (uint32_t i = 0; i < *count; i++)
        if (scans[i].region == scan.region)
            return fail(why, "region: has been scanned above");
    scans[*count] = scan; /* there is room for each Region */
    reader->scan = &scans[(*count)++];
    reader->items_left = (uint32_t)items;
    reader->items = NULL;
    reader->item_cap = 0;
    return true;
}

static bool read_item(struct saved_reader *reader, json_t *line, struct buf *why)
{
    struct converge_scan *scan = reader->scan;
    if (reader->items_left == 0)
        return fail(why, "an item of no scan");
    reader->items = arena_grow(&reader->outcome->arena, reader->items, scan->count,
                               &reader->item_cap, sizeof(*reader->items));
    scan->items = reader->items;
    if (!line_read(&reader->lines, &item_shape, line, &reader->items[scan->count], why))
        return false;
    scan->count++;
    reader->items_left--;
    return true;
}

/* ---- The end of a file ---- */

/* A line that was taken. */
static void sum_line(struct saved_sum *sum, struct bytes text)
{
    sum->lines++;
    sum->crc = crc32c(crc32c(sum->crc, text), bytes_literal("\n"));
}

static bool read_end(struct saved_sum *sum, json_t *line, struct buf *why)
{
    uint64_t lines, crc;
    if (!take_number(line, "lines", UINT64_MAX, &lines) ||
        !take_number(line, "crc32c", UINT32_MAX, &crc) || json_object_size(line) > 0)
        return fail(why, "expected an end record: the numbers lines and crc32c");
    if (lines != sum->lines) {
        buf_printf(why,
                   "the file is not whole: it ends with a record of %" PRIu64
                   " lines, but has %" PRIu64,
                   lines, sum->lines);
        return false;
    }
    if (crc != sum->crc)
        return fail(why, "the file is not as it was written: its checksum differs");
    sum->ended = true;
    return true;
}

static bool check_end(const struct saved_sum *sum, struct buf *why)
{
    if (!sum->ended)
        buf_printf(why,
                   "the file is not whole: after %" PRIu64 " line%s it has no end record, so what "
                   "follows is missing",
                   sum->lines, sum->lines == 1 ? "" : "s");
    return sum->ended;
}

bool saved_history_end(const struct saved_reader *reader, struct buf *why)
{
    return check_end(&reader->history, why);
}

bool saved_events_end(const struct saved_reader *reader, struct buf *why)
{
    if (!reader->begun)
        return fail(why, "the file is empty; its first line must have the type run");
    return check_end(&reader->events, why);
}

static bool dispatch(struct saved_reader *reader, const char *type, json_t *line, struct buf *why)
{
    struct outcome *outcome = reader->outcome;
    bool first = strcmp(type, "run") == 0;
    if (first == reader->begun)
        return fail(why, first ? "type: a second run" : "type: the first line must be a run");
    if (first)
        return read_run(reader, line, why);
    if (strcmp(type, "item") == 0)
        return read_item(reader, line, why);
    if (reader->items_left > 0)
        return fail(why, "fewer items than their scan says");
    if (strcmp(type, "end") == 0)
        return read_end(&reader->events, line, why);
    if (strcmp(type, "phase") == 0)
        return read_phase(reader, line, why);
    if (strcmp(type, "fault") == 0)
        return read_fault(reader, line, why);
    if (strcmp(type, "event") == 0)
        return read_event(reader, line, why);
    if (strcmp(type, "loss") == 0)
        return read_loss(reader, line, why);
    if (strcmp(type, "sample") == 0)
        return read_sample(reader, line, why);
    if (strcmp(type, "ledger") == 0)
        return read_row(reader, line, why);
    if (strcmp(type, "scan") == 0)
        return read_scan(reader, line, outcome->scans, &outcome->scan_count, why);
    if (strcmp(type, "rescan") == 0)
        return read_scan(reader, line, outcome->rescans, &outcome->rescan_count, why);
    return fail(why,
                "type: expected run, phase, fault, event, loss, sample, ledger, scan, rescan, item "
                "or end");
}

static json_t *parse(struct bytes line, struct buf *why)
{
    json_error_t error;
    json_t *json =
        line.len == 0 ? NULL
                      : json_loadb((const char *)line.at, line.len, JSON_REJECT_DUPLICATES, &error);
    if (line.len == 0) {
        buf_append_text(why, "an empty line");
    } else if (json == NULL) {
        buf_append_text(why, "not JSON: ");
        text_clean(bytes_text(error.text), why);
    } else if (!json_is_object(json)) {
        buf_append_text(why, "expected an object");
        json_decref(json);
        json = NULL;
    }
    return json;
}

bool saved_event_read(struct saved_reader *reader, struct bytes text, struct buf *why)
{
    if (reader->events.ended)
        return fail(why, "a line after the end record");
    json_t *line = parse(text, why);
    if (line == NULL)
        return false;
    json_t *type = json_incref(json_object_get(line, "type"));
    json_object_del(line, "type");
    bool good = json_is_string(type) ? dispatch(reader, json_string_value(type), line, why)
                                     : fail(why, "type: expected a text");
    json_decref(type);
    json_decref(line);
    if (good)
        sum_line(&reader->events, text);
    return good;
}

static bool read_list(json_t *line, struct history_op *op, struct buf *values, struct buf *why)
{
    json_t *list = json_object_get(line, "list");
    if (list == NULL)
        return true;
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > UINT32_MAX)
        return fail(why, "list: expected a list of whole numbers");
    for (size_t i = 0; i < count; i++) {
        uint64_t value;
        if (!line_u64_read(json_array_get(list, i), UINT64_MAX, &value))
            return fail(why, "list: expected a list of whole numbers");
        buf_append(values, &value, sizeof(value));
    }
    op->list_count = (uint32_t)count;
    json_object_del(line, "list");
    return true;
}

bool saved_history_read(struct saved_reader *reader, struct bytes text, struct buf *why)
{
    struct history_op op = {0};
    struct buf values = {0}; /* what realloc gives is aligned */
    if (reader->history.ended)
        return fail(why, "a line after the end record");
    json_t *line = parse(text, why);
    const char *kind = json_string_value(json_object_get(line, "kind"));
    if (kind != NULL && strcmp(kind, "end") == 0) {
        json_object_del(line, "kind");
        bool ended = read_end(&reader->history, line, why);
        json_decref(line);
        return ended;
    }
    bool listed = line != NULL && json_object_get(line, "list") != NULL;
    bool good = line != NULL && read_list(line, &op, &values, why);
    uint32_t list_count = op.list_count;
    good = good && line_read(&reader->lines, &op_shape, line, &op, why);
    op.list_count = list_count;
    const char *fault = good ? history_op_fault(&op) : NULL;
    if (fault == NULL && good && listed != (op.saw == HISTORY_SAW_LIST))
        fault = "a list where none was seen, or the other way round";
    if (fault != NULL)
        good = fail(why, fault);
    if (good && history_append(&reader->outcome->history, &op,
                               (const uint64_t *)(void *)values.at) == HISTORY_FULL)
        good = fail(why, "more operations than the scenario's budget allows");
    if (good)
        sum_line(&reader->history, text);
    buf_deinit(&values);
    json_decref(line);
    return good;
}
