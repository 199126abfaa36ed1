/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is saved and read is the same run: it is judged alike, and saving it again gives the
 * same bytes. What no run could have written is refused by its line. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "chaos/report/report.h"
#include "chaos/report/saved.h"
#include "conflict/base/check.h"
#include "tests/lib/report/outcomes.h"

/* ---- Files ---- */

static const char *const names[] = {"scenario.yaml", "seed",      "history.ndjson.gz",
                                    "events.ndjson", "junit.xml", "result.json",
                                    "report.html"};

struct directory {
    char path[64];
};

static struct directory new_directory(void)
{
    struct directory directory = {"/tmp/tidemark-report-XXXXXX"};
    assert_non_null(mkdtemp(directory.path));
    return directory;
}

static void name_file(char *path, size_t size, const char *directory, const char *name)
{
    int len = snprintf(path, size, "%s/%s", directory, name);
    assert_true(len > 0 && (size_t)len < size);
}

static void remove_all(const char *directory)
{
    char path[256];
    for (size_t i = 0; i < array_len(names); i++) {
        name_file(path, sizeof(path), directory, names[i]);
        assert_true(unlink(path) == 0 || errno == ENOENT);
    }
    assert_int_equal(rmdir(directory), 0); /* nothing else was left in it */
}

static void read_file(const char *directory, const char *name, struct buf *to)
{
    char path[256];
    name_file(path, sizeof(path), directory, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t len;
    do {
        len = fread(buf_reserve(to, 65536), 1, 65536, file);
        to->len += len;
    } while (len > 0);
    fclose(file);
}

static void write_file(const char *directory, const char *name, struct bytes text)
{
    char path[256];
    name_file(path, sizeof(path), directory, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(text.len == 0 || fwrite(text.at, 1, text.len, file) == text.len);
    assert_int_equal(fclose(file), 0);
}

static void save(const struct outcome *outcome, const char *directory)
{
    struct buf error = {0};
    if (!report_write(outcome, directory, &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    buf_deinit(&error);
}

static void same_files(const char *a, const char *b)
{
    for (size_t i = 0; i < array_len(names); i++) {
        struct buf first = {0}, second = {0};
        read_file(a, names[i], &first);
        read_file(b, names[i], &second);
        if (!bytes_equal(buf_view(&first), buf_view(&second)))
            fail_msg("%s differs after a round", names[i]);
        buf_deinit(&first);
        buf_deinit(&second);
    }
}

/* Saves, reads, judges, saves: all files must be the same, and so must the verdict. */
static void check_round(enum outcomes_kind kind)
{
    struct sample_run run;
    struct scenario scenario;
    struct outcome outcome;
    struct buf error = {0};
    const struct directory at_first = new_directory(), at_second = new_directory();
    const char *first = at_first.path, *second = at_second.path;
    outcomes_make(kind, &run);
    save(&run.outcome, first);
    if (!report_read(first, &scenario, &outcome, &error))
        fail_msg("%s: %.*s", outcomes_name(kind), (int)error.len, (const char *)error.at);
    assert_int_equal(error.len, 0);
    assert_int_equal(outcome.history.count, run.outcome.history.count);
    outcome_judge(&outcome, NULL);
    assert_int_equal(outcome.exit, run.outcome.exit);
    if (kind != OUTCOMES_HOSTILE) /* its texts are cleaned on the way */
        assert_string_equal(outcome.verdict, run.outcome.verdict);
    save(&outcome, second);
    same_files(first, second);
    outcome_deinit(&outcome);
    scenario_deinit(&scenario);
    outcomes_free(&run);
    remove_all(first);
    remove_all(second);
    buf_deinit(&error);
}

static void a_saved_run_is_judged_alike(void **state)
{
    (void)state;
    for (enum outcomes_kind kind = 0; kind < OUTCOMES_COUNT; kind++)
        if (kind != OUTCOMES_HUGE)
            check_round(kind);
}

static void files_are_whole_or_not_there(void **state)
{
    (void)state;
    struct sample_run run;
    struct buf error = {0};
    const struct directory made = new_directory();
    const char *directory = made.path;
    char path[256];
    outcomes_make(OUTCOMES_EMPTY, &run);
    name_file(path, sizeof(path), directory, "report.html");
    assert_int_equal(mkdir(path, 0755), 0); /* in the way of the last file */
    assert_false(report_write(&run.outcome, directory, &error));
    buf_append_u8(&error, 0);
    assert_non_null(strstr((const char *)error.at, "report.html: cannot be written"));
    assert_int_equal(rmdir(path), 0);
    remove_all(directory);
    buf_reset(&error);
    assert_false(report_write(&run.outcome, "/dev/null/x", &error));
    outcomes_free(&run);
    buf_deinit(&error);
}

/* Reads a directory that has gone bad; the message must hold the text. */
static void expect_refused(const char *directory, const char *text)
{
    struct scenario scenario;
    struct outcome outcome;
    struct buf error = {0};
    if (report_read(directory, &scenario, &outcome, &error))
        fail_msg("read, but expected: %s", text);
    buf_append_u8(&error, 0);
    if (strstr((const char *)error.at, text) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", text, (const char *)error.at);
    outcome_deinit(&outcome);
    scenario_deinit(&scenario);
    buf_deinit(&error);
}

static void bad_files_are_named(void **state)
{
    (void)state;
    struct sample_run run;
    struct buf packed = {0}, events = {0};
    const struct directory made = new_directory();
    const char *directory = made.path;
    outcomes_make(OUTCOMES_PASS, &run);
    save(&run.outcome, directory);
    read_file(directory, "history.ndjson.gz", &packed);
    read_file(directory, "events.ndjson", &events);
    write_file(directory, "history.ndjson.gz", bytes_make(packed.at, packed.len / 2));
    expect_refused(directory, "history.ndjson.gz:");
    packed.at[packed.len / 2] ^= 0x40;
    write_file(directory, "history.ndjson.gz", buf_view(&packed));
    expect_refused(directory, "history.ndjson.gz:");
    write_file(directory, "history.ndjson.gz", bytes_literal("{}\n")); /* plain will do */
    expect_refused(directory, "history.ndjson.gz:1: kind: is missing");
    write_file(directory, "events.ndjson", bytes_make(events.at, events.len - 2));
    expect_refused(directory, "events.ndjson:");
    write_file(directory, "events.ndjson", buf_view(&events));
    write_file(directory, "history.ndjson.gz", BYTES_NONE);
    expect_refused(directory, "history.ndjson.gz:1: the file is not whole: after 0 lines");
    write_file(directory, "events.ndjson", BYTES_NONE);
    expect_refused(directory, "events.ndjson:1: the file is empty");
    write_file(directory, "scenario.yaml", bytes_literal("nonsense: 1\n"));
    expect_refused(directory, "scenario.yaml:1: ");
    remove_all(directory);
    expect_refused("/nowhere", "/nowhere/scenario.yaml: cannot be read");
    outcomes_free(&run);
    buf_deinit(&packed);
    buf_deinit(&events);
}

/* Where the line before the one that begins at `to` begins. */
static size_t line_before(const struct buf *text, size_t to)
{
    for (to--; to > 0 && text->at[to - 1] != '\n'; to--) {
    }
    return to;
}

static size_t line_after(const struct buf *text, size_t from)
{
    while (text->at[from] != '\n')
        from++;
    return from + 1;
}

static void unpack(const char *directory, const char *name, struct buf *to)
{
    char path[256];
    name_file(path, sizeof(path), directory, name);
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    for (int len = 1; len > 0; to->len += (size_t)len) {
        len = gzread(file, buf_reserve(to, 65536), 65536);
        assert_true(len >= 0);
    }
    gzclose(file);
}

/* A file that was cut between two lines, one that lacks a line, one that has a digit changed, and
 * one that goes on after its end: each is refused by what it lacks, and never judged. */
static void cut_files_are_refused(void **state)
{
    (void)state;
    static const char *const files[] = {"events.ndjson", "history.ndjson.gz"};
    struct sample_run run;
    const struct directory made = new_directory();
    outcomes_make(OUTCOMES_PASS, &run);
    for (size_t i = 0; i < array_len(files); i++) {
        struct buf whole = {0}, other = {0};
        save(&run.outcome, made.path);
        unpack(made.path, files[i], &whole);
        size_t end = line_before(&whole, whole.len), last = line_before(&whole, end);
        write_file(made.path, files[i], bytes_make(whole.at, end));
        expect_refused(made.path, "the file is not whole: after ");
        write_file(made.path, files[i], bytes_make(whole.at, last));
        expect_refused(made.path, "has no end record");
        size_t first = line_after(&whole, 0), second = line_after(&whole, first);
        buf_append_bytes(&other, bytes_make(whole.at, first));
        buf_append_bytes(&other, bytes_make(whole.at + second, whole.len - second));
        write_file(made.path, files[i], buf_view(&other));
        expect_refused(made.path, "it ends with a record of ");
        buf_reset(&other);
        buf_append_bytes(&other, buf_view(&whole));
        const char *text = i == 0 ? "\"at_ns\":1" : "\"client\":1";
        uint8_t *number = memmem(other.at, other.len, text, strlen(text));
        assert_non_null(number);
        number[strlen(text) - 1] = '2';
        write_file(made.path, files[i], buf_view(&other));
        expect_refused(made.path, "the file is not as it was written");
        buf_reset(&other);
        buf_append_bytes(&other, buf_view(&whole));
        buf_append_bytes(&other, bytes_make(whole.at + last, end - last));
        write_file(made.path, files[i], buf_view(&other));
        expect_refused(made.path, "a line after the end record");
        buf_deinit(&whole);
        buf_deinit(&other);
    }
    remove_all(made.path);
    outcomes_free(&run);
}

/* ---- Lines ---- */

#define RUN                                                                                        \
    "{\"type\":\"run\",\"format\":2,\"began_ns\":1000,\"ended_ns\":5,\"began_wall_ms\":0,"         \
    "\"scenario_file\":\"\",\"seed\":1,\"version\":\"\"}"
#define OP "{\"kind\":\"put\",\"outcome\":\"ok\",\"region\":\"us-east-1\",\"client\":0,\"key\":0,"
#define TIMES "\"intended_ns\":0,\"invoke_ns\":0,\"return_ns\":1"

static const struct {
    bool operation;
    const char *line, *why;
} made_up[] = {
    {false, "", "an empty line"},
    {false, "[]", "expected an object"},
    {false, "{", "not JSON"},
    {false, "{}", "type: expected a text"},
    {false, "{\"type\":1}", "type: expected a text"},
    {false, "{\"type\":\"phase\",\"type\":\"phase\"}", "not JSON: duplicate"},
    {false, RUN, "type: a second run"},
    {false, "{\"type\":\"end\",\"lines\":2,\"crc32c\":0}", "it ends with a record of 2 lines"},
    {false, "{\"type\":\"end\",\"lines\":1}", "expected an end record"},
    {true, "{\"kind\":\"end\",\"lines\":0,\"crc32c\":1}", "its checksum differs"},
    {true, "{\"kind\":\"end\",\"lines\":0,\"crc32c\":0,\"x\":1}", "expected an end record"},
    {false, "{\"type\":\"strange\"}", "type: expected run, phase"},
    {false, "{\"type\":\"phase\",\"name\":\"a\",\"from_ns\":2,\"to_ns\":1}", "to_ns: is before"},
    {false, "{\"type\":\"phase\",\"name\":1,\"from_ns\":0,\"to_ns\":1}", "name: expected a text"},
    {false, "{\"type\":\"phase\",\"name\":\"\",\"from_ns\":-1001,\"to_ns\":1}",
     "from_ns: expected"},
    {false, "{\"type\":\"phase\",\"name\":\"\",\"from_ns\":0.5,\"to_ns\":1}", "from_ns: expected"},
    {false, "{\"type\":\"phase\",\"name\":\"\",\"from_ns\":0,\"to_ns\":\"9223372036854775807\"}",
     "to_ns: expected"},
    {false, "{\"type\":\"phase\",\"name\":\"\",\"from_ns\":0,\"to_ns\":1,\"x\":1}",
     "no such key: x"},
    {false, "{\"type\":\"fault\",\"id\":\"f\",\"verb\":\"pull\",\"target\":\"\",\"from_ns\":0}",
     "verb: expected one of its names: link.cut"},
    {false,
     "{\"type\":\"fault\",\"id\":\"f\",\"verb\":\"link.cut\",\"target\":\"\",\"from_ns\":0,"
     "\"regions\":[\"us-east-1\",\"us-east-1\"]}",
     "regions: expected Regions"},
    {false,
     "{\"type\":\"fault\",\"id\":\"f\",\"verb\":\"link.cut\",\"target\":\"\",\"from_ns\":0,"
     "\"effective\":true,\"refused\":true}",
     "refused: and effective"},
    {false, "{\"type\":\"event\",\"at_ns\":0,\"region\":\"mars\",\"kind\":\"up\",\"text\":\"\"}",
     "region: expected a Region"},
    {false, "{\"type\":\"loss\",\"at_ns\":0,\"region\":\"us-east-1\",\"why\":\"wiped\"}",
     "a loss that the line of the run does not know of"},
    {false, "{\"type\":\"loss\",\"at_ns\":0,\"region\":\"us-east-1\",\"why\":\"bored\"}", "why: "},
    {false, "{\"type\":\"loss\",\"at_ns\":0,\"why\":\"wiped\"}", "region: "},
    {false, "{\"type\":\"sample\",\"at_ns\":0,\"regions\":[]}", "regions: expected a list"},
    {false, "{\"type\":\"sample\",\"at_ns\":0,\"regions\":[1,2]}", "regions: expected a list"},
    {false, "{\"type\":\"sample\",\"at_ns\":0,\"regions\":[{\"up\":1},{}]}", "up: expected true"},
    {false, "{\"type\":\"ledger\",\"key\":4294967296}", "key: expected a whole number below"},
    {false, "{\"type\":\"ledger\",\"key\":1,\"winner\":-1}", "winner: expected"},
    {false, "{\"type\":\"ledger\",\"key\":1,\"winner\":\"18446744073709551616\"}",
     "winner: expected"},
    {false, "{\"type\":\"ledger\",\"key\":1,\"winner\":\"5\"}", "winner: expected"},
    {false, "{\"type\":\"ledger\",\"key\":1,\"winner\":9007199254740993}", "winner: expected"},
    {false, "{\"type\":\"item\",\"key\":1,\"digest\":1}", "an item of no scan"},
    {false, "{\"type\":\"scan\",\"region\":\"us-east-1\",\"items\":999999999}", "items: expected"},
    {true, OP TIMES "}", "a write without a value"},
    {true, OP TIMES ",\"written\":1,\"list\":[1]}", "a list that was not observed"},
    {true, OP TIMES ",\"written\":1,\"saw\":\"list\"}", "a list where"},
    {true, OP TIMES ",\"written\":1,\"list\":1}", "list: expected"},
    {true, OP TIMES ",\"written\":1,\"reason\":\"timeout\"}", "a write of unknown fate"},
    {true, OP "\"intended_ns\":1,\"invoke_ns\":0,\"return_ns\":1,\"written\":1}",
     "times that run backwards"},
    {true, OP TIMES ",\"written\":1,\"list_count\":5}", "no such key: list_count"},
};

static void made_up_lines_are_refused(void **state)
{
    (void)state;
    struct scenario scenario;
    struct buf error = {0}, why = {0};
    scenario_init(&scenario);
    assert_true(scenario_read(
        &scenario, "x",
        bytes_literal("name: x\ncluster: {mode: eventual, regions: [us-east-1, eu-west-1]}\n"
                      "phases: [{name: a, for: 1s}]\n"),
        &error));
    for (size_t i = 0; i < array_len(made_up); i++) {
        struct outcome outcome;
        struct saved_reader reader;
        outcome_init(&outcome, &scenario);
        saved_reader_init(&reader, &outcome);
        assert_false(saved_event_read(&reader, bytes_literal("{\"type\":\"item\"}"), &why));
        buf_reset(&why);
        if (!saved_event_read(&reader, bytes_literal(RUN), &why))
            fail_msg("%.*s", (int)why.len, (const char *)why.at);
        bool good = made_up[i].operation
                        ? saved_history_read(&reader, bytes_text(made_up[i].line), &why)
                        : saved_event_read(&reader, bytes_text(made_up[i].line), &why);
        buf_append_u8(&why, 0);
        if (good || strstr((const char *)why.at, made_up[i].why) == NULL)
            fail_msg("%s: expected \"%s\", got \"%s\"", made_up[i].line, made_up[i].why,
                     (const char *)why.at);
        outcome_deinit(&outcome);
        buf_reset(&why);
    }
    scenario_deinit(&scenario);
    buf_deinit(&error);
    buf_deinit(&why);
}

static void read_all(struct saved_reader *reader,
                     bool (*read)(struct saved_reader *, struct bytes, struct buf *),
                     struct bytes left)
{
    struct buf why = {0};
    while (left.len > 0) {
        const uint8_t *end = memchr(left.at, '\n', left.len);
        struct bytes line = bytes_make(left.at, (size_t)(end - left.at));
        if (!read(reader, line, &why))
            fail_msg("%.*s: %.*s", (int)line.len, line.at, (int)why.len, why.at);
        left = bytes_make(end + 1, left.len - line.len - 1);
    }
    buf_deinit(&why);
}

/* Numbers near every bound, lists, and all flags survive. */
static void extremes_survive(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0,
                                       1,
                                       (UINT64_C(1) << 53) - 1,
                                       UINT64_C(1) << 53,
                                       (UINT64_C(1) << 53) + 1,
                                       (uint64_t)INT64_MAX,
                                       (uint64_t)INT64_MAX + 1,
                                       UINT64_MAX - 1,
                                       UINT64_MAX};
    struct sample_run run;
    outcomes_make(OUTCOMES_EMPTY, &run);
    struct outcome *outcome = &run.outcome;
    for (size_t i = 0; i < array_len(numbers); i++) {
        const struct history_op op = {.kind = HISTORY_SCAN,
                                      .region = 1,
                                      .saw = HISTORY_SAW_LIST,
                                      .list_count = (uint32_t)i,
                                      .key = UINT32_MAX,
                                      .client = UINT32_MAX,
                                      .table = UINT16_MAX,
                                      .bytes = UINT32_MAX,
                                      .intended_ns = 0,
                                      .invoke_ns = outcome->began_ns,
                                      .return_ns = (uint64_t)INT64_MAX - 1,
                                      .strong = true,
                                      .final = i % 2 == 0};
        assert_null(history_op_fault(&op));
        assert_int_not_equal(history_append(&outcome->history, &op, numbers), HISTORY_FULL);
        struct outcome_sample *sample = outcome_sample(outcome, outcome->began_ns + i);
        sample->region[0].lag_ns = numbers[i];
        sample->region[0].clock_offset_ns = (int64_t)numbers[i];
        sample->region[1].clock_offset_ns = (int64_t)(0 - numbers[i]);
        sample->region[1].up = true;
    }
    outcome->region_rpo_count = 0;
    outcome->lost_ns = outcome->began_ns - 5;
    outcome->exited = true;
    outcome->exit_code = 137;
    struct saved_sink events = {0}, history = {0}, events_again = {0}, history_again = {0};
    saved_events_write(outcome, &events);
    saved_history_write(outcome, &history);
    struct outcome read;
    struct saved_reader reader;
    struct buf why = {0};
    outcome_init(&read, &run.scenario);
    saved_reader_init(&reader, &read);
    read_all(&reader, saved_event_read, buf_view(&events.to));
    read_all(&reader, saved_history_read, buf_view(&history.to));
    assert_true(saved_events_end(&reader, &why));
    assert_int_equal(read.lost_ns, outcome->lost_ns);
    assert_int_equal(read.exit_code, 137);
    assert_int_equal(read.samples[6].region[0].clock_offset_ns, INT64_MIN);
    saved_events_write(&read, &events_again);
    saved_history_write(&read, &history_again);
    assert_true(bytes_equal(buf_view(&events.to), buf_view(&events_again.to)));
    assert_true(bytes_equal(buf_view(&history.to), buf_view(&history_again.to)));
    buf_deinit(&events.to);
    buf_deinit(&history.to);
    buf_deinit(&events_again.to);
    buf_deinit(&history_again.to);
    outcome_deinit(&read);
    outcomes_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_saved_run_is_judged_alike),
        cmocka_unit_test(files_are_whole_or_not_there),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(made_up_lines_are_refused),
        cmocka_unit_test(extremes_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
