/* SPDX-License-Identifier: Apache-2.0 */
/* A directory per run. Each file is written beside its place and then moved there, so that whoever
 * finds one finds all of it. Reading goes line by line, through zlib for either file (it passes on
 * what is not compressed), and holds no more than one line at a time. */

#include "chaos/report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "chaos/report/saved.h"
#include "chaos/report/text.h"
#include "chaos/scenario/random.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static const char scenario_name[] = "scenario.yaml";
static const char events_name[] = "events.ndjson";
static const char history_name[] = "history.ndjson.gz";

static char *path_of(const char *directory, const char *name, const char *suffix)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%s%s", directory, name, suffix);
    buf_append_u8(&path, 0);
    return (char *)path.at;
}

static void free_path(char **path)
{
    free(*path);
}

/* ---- Writing ---- */

struct target {
    struct saved_sink sink; /* first, so that a drain finds the rest */
    int fd;
    gzFile gz; /* NULL: plain */
    bool failed;
    int error; /* errno */
};

static void target_failed(struct target *target)
{
    if (!target->failed)
        target->error = errno == 0 ? EIO : errno;
    target->failed = true;
}

static void write_plain(struct target *target, struct bytes bytes)
{
    while (bytes.len > 0) {
        ssize_t done = write(target->fd, bytes.at, bytes.len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            target_failed(target);
            return;
        }
        bytes = bytes_make(bytes.at + done, bytes.len - (size_t)done);
    }
}

static void write_packed(struct target *target, struct bytes bytes)
{
    while (bytes.len > 0) { /* zlib counts in unsigned int */
        unsigned len = bytes.len < (1u << 30) ? (unsigned)bytes.len : 1u << 30;
        if (gzwrite(target->gz, bytes.at, len) != (int)len) {
            target_failed(target);
            return;
        }
        bytes = bytes_make(bytes.at + len, bytes.len - len);
    }
}

static void drain(struct saved_sink *sink)
{
    struct target *target = container_of(sink, struct target, sink);
    if (!target->failed && target->gz != NULL)
        write_packed(target, buf_view(&sink->to));
    else if (!target->failed)
        write_plain(target, buf_view(&sink->to));
    buf_reset(&sink->to);
}

static bool target_open(struct target *target, const char *path, bool packed)
{
    *target = (struct target){.sink = {.drain = drain}};
    target->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (target->fd < 0)
        return false;
    if (packed) { /* level 1: a million operations in about a second */
        int copy = fcntl(target->fd, F_DUPFD_CLOEXEC, 0);
        target->gz = copy < 0 ? NULL : gzdopen(copy, "wb1");
        if (target->gz == NULL) {
            if (copy >= 0)
                close(copy);
            close(target->fd);
            return false;
        }
    }
    return true;
}

static bool target_close(struct target *target)
{
    drain(&target->sink);
    if (target->gz != NULL && gzclose(target->gz) != Z_OK)
        target_failed(target);
    if (!target->failed && fsync(target->fd) != 0)
        target_failed(target);
    if (close(target->fd) != 0)
        target_failed(target);
    buf_deinit(&target->sink.to);
    errno = target->error;
    return !target->failed;
}

static bool write_file(const struct outcome *outcome, const char *directory, const char *name,
                       void (*fill)(const struct outcome *, struct saved_sink *), struct buf *error)
{
    char *part cleanup(free_path) = path_of(directory, name, ".part");
    char *path cleanup(free_path) = path_of(directory, name, "");
    struct target target;
    bool good = target_open(&target, part, fill == saved_history_write);
    if (good) {
        fill(outcome, &target.sink);
        good = target_close(&target) && rename(part, path) == 0;
    }
    if (!good) {
        buf_printf(error, "%s: cannot be written: %s\n", path, strerror(errno));
        (void)unlink(part);
    }
    return good;
}

static void fill_result(const struct outcome *outcome, struct saved_sink *sink)
{
    report_result(outcome, &sink->to);
}

static void fill_junit(const struct outcome *outcome, struct saved_sink *sink)
{
    report_junit(outcome, &sink->to);
}

static void fill_html(const struct outcome *outcome, struct saved_sink *sink)
{
    report_html(outcome, &sink->to);
}

static void fill_scenario(const struct outcome *outcome, struct saved_sink *sink)
{
    buf_append_text(&sink->to, outcome->scenario_text);
}

static void fill_seed(const struct outcome *outcome, struct saved_sink *sink)
{
    buf_printf(&sink->to, "%" PRIu64 "\n", outcome->seed);
}

bool report_write(const struct outcome *outcome, const char *directory, struct buf *error)
{
    /* What a run can be judged by again comes first: it is the part that cannot be made anew. */
    static const struct {
        const char *name;
        void (*fill)(const struct outcome *, struct saved_sink *);
    } files[] = {
        {scenario_name, fill_scenario},      {"seed", fill_seed},
        {history_name, saved_history_write}, {events_name, saved_events_write},
        {"result.json", fill_result},        {"junit.xml", fill_junit},
        {"report.html", fill_html},
    };
    if (mkdir(directory, 0755) != 0 && errno != EEXIST) {
        buf_printf(error, "%s: cannot be made: %s\n", directory, strerror(errno));
        return false;
    }
    for (size_t i = 0; i < array_len(files); i++)
        if (!write_file(outcome, directory, files[i].name, files[i].fill, error))
            return false;
    return true;
}

/* ---- Reading ---- */

static void close_gz(gzFile *file)
{
    if (*file != NULL)
        gzclose(*file);
}

struct source {
    const char *path;
    gzFile file;
    struct buf held; /* read and not yet passed on */
    uint64_t total, total_max;
    uint64_t line; /* number of that which is next */
    bool (*read)(struct saved_reader *, struct bytes, struct buf *);
};

/* Reads more; *ret_end when there is none. */
static bool source_fill(struct source *source, bool *ret_end, struct buf *error)
{
    enum { CHUNK = 1 << 16 };
    int len = gzread(source->file, buf_reserve(&source->held, CHUNK), CHUNK);
    int code = Z_OK;
    const char *text = len < 0 ? gzerror(source->file, &code) : "";
    if (len == 0 && gzerror(source->file, &code) != NULL && code == Z_BUF_ERROR)
        text = "it ends in the middle";
    if (len < 0 || code == Z_BUF_ERROR) {
        buf_printf(error, "%s:%" PRIu64 ": cannot be read: %s\n", source->path, source->line,
                   code == Z_ERRNO ? strerror(errno) : text);
        return false;
    }
    source->held.len += (size_t)len;
    source->total += (uint64_t)len;
    *ret_end = len == 0;
    if (source->held.len <= SAVED_LINE_MAX && source->total <= source->total_max)
        return true;
    buf_printf(error, "%s:%" PRIu64 ": too large\n", source->path, source->line);
    return false;
}

static bool pass_line(struct source *source, struct bytes line, struct saved_reader *reader,
                      struct buf *error)
{
    struct buf why cleanup(buf_deinit) = {0};
    if (source->read(reader, line, &why)) {
        source->line++;
        return true;
    }
    buf_printf(error, "%s:%" PRIu64 ": ", source->path, source->line);
    buf_append_bytes(error, buf_view(&why));
    buf_append_u8(error, '\n');
    return false;
}

/* Passes on all whole lines, and at the end what is left. */
static bool pass_lines(struct source *source, bool end, struct saved_reader *reader,
                       struct buf *error)
{
    struct bytes left = buf_view(&source->held);
    while (left.len > 0) {
        const uint8_t *newline = memchr(left.at, '\n', left.len);
        if (newline == NULL && !end)
            break;
        size_t len = newline == NULL ? left.len : (size_t)(newline - left.at);
        if (!pass_line(source, bytes_make(left.at, len), reader, error))
            return false;
        size_t taken = len + (newline != NULL);
        left = bytes_make(left.at + taken, left.len - taken);
    }
    if (left.len > 0 && left.at != source->held.at)
        memmove(source->held.at, left.at, left.len);
    source->held.len = left.len;
    return true;
}

static bool read_lines(const char *directory, const char *name, uint64_t total_max,
                       bool (*read)(struct saved_reader *, struct bytes, struct buf *),
                       struct saved_reader *reader, struct buf *error)
{
    char *path cleanup(free_path) = path_of(directory, name, "");
    struct source source = {.path = path, .total_max = total_max, .line = 1, .read = read};
    gzFile file cleanup(close_gz) = gzopen(path, "rbe");
    bool end = false, good = file != NULL;
    source.file = file;
    if (!good)
        buf_printf(error, "%s: cannot be read: %s\n", path, strerror(errno));
    while (good && !end)
        good = source_fill(&source, &end, error) && pass_lines(&source, end, reader, error);
    buf_deinit(&source.held);
    if (good) {
        struct buf why cleanup(buf_deinit) = {0};
        good = read == saved_event_read ? saved_events_end(reader, &why)
                                        : saved_history_end(reader, &why);
        if (!good)
            buf_printf(error, "%s:%" PRIu64 ": %.*s\n", path, source.line, (int)why.len, why.at);
    }
    return good;
}

/* At most SCENARIO_FILE_MAX and one byte more, which scenario_read then refuses. */
static bool read_whole(const char *path, struct buf *to, struct buf *error)
{
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        to->len += fread(buf_reserve(to, SCENARIO_FILE_MAX + 1), 1, SCENARIO_FILE_MAX + 1, file);
        bool good = ferror(file) == 0;
        fclose(file);
        if (good)
            return true;
    }
    buf_printf(error, "%s: cannot be read: %s\n", path, strerror(errno));
    return false;
}

bool report_read(const char *directory, struct scenario *ret_scenario, struct outcome *ret,
                 struct buf *error)
{
    char *path cleanup(free_path) = path_of(directory, scenario_name, "");
    struct buf text cleanup(buf_deinit) = {0};
    struct saved_reader reader;
    scenario_init(ret_scenario);
    *ret = (struct outcome){0};
    if (!read_whole(path, &text, error) ||
        !scenario_read(ret_scenario, path, buf_view(&text), error))
        return false;
    outcome_init(ret, ret_scenario);
    ret->scenario_text = bytes_copy_text(&ret->arena, buf_view(&text));
    saved_reader_init(&reader, ret);
    uint64_t operations = ret->history.count_max, values = ret->history.value_max;
    if (!read_lines(directory, events_name, UINT64_C(1) << 32, saved_event_read, &reader, error) ||
        !read_lines(directory, history_name, operations * 1024 + values * 24, saved_history_read,
                    &reader, error))
        return false;
    random_expand(ret_scenario, ret->seed);
    return true;
}
