/* SPDX-License-Identifier: Apache-2.0 */
/* A process is known by its number and the time at which it began, as the kernel counts it, and by
 * the name of its program: numbers are used again. A file is removed only if it is a shim's control
 * file by its first bytes: a journal that somebody has edited is no way to remove others. */

#include "chaos/inject/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "chaos/shim/disk.h"
#include "conflict/base/alloc.h"

enum { JOURNAL_BYTES_MAX = 1 << 20 };

struct journal {
    FILE *file;
    char *path;
};

struct journal *journal_open(const char *path)
{
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return NULL;
    setvbuf(file, NULL, _IOLBF, 0);
    struct journal *journal = xcalloc(1, sizeof(*journal));
    journal->file = file;
    journal->path = xstrdup(path);
    return journal;
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    fclose(journal->file);
    unlink(journal->path);
    free(journal->path);
    free(journal);
}

/* Of a live process, in ticks since the machine came up; 0: there is none. */
static uint64_t began(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = 0;
    char *at = strrchr(text, ')'); /* behind the name, which may hold anything */
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

static void add(struct journal *journal, json_t *line)
{
    json_dumpf(line, journal->file, JSON_COMPACT);
    fputc('\n', journal->file);
    fflush(journal->file);
    json_decref(line);
}

void journal_add_process(struct journal *journal, pid_t pid)
{
    if (journal != NULL)
        add(journal, json_pack("{s:s, s:I, s:I}", "undo", "process", "pid", (json_int_t)pid,
                               "began", (json_int_t)began(pid)));
}

void journal_add_file(struct journal *journal, const char *path)
{
    if (journal != NULL)
        add(journal, json_pack("{s:s, s:s}", "undo", "file", "path", path));
}

/* ---- Recovering ---- */

static bool is_ours(pid_t pid, uint64_t since)
{
    char link[64], program[4096];
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    ssize_t len = pid > 1 && since != 0 && began(pid) == since
                      ? readlink(link, program, sizeof(program) - 1)
                      : -1;
    if (len <= 0)
        return false;
    program[len] = 0;
    const char *name = strrchr(program, '/');
    return name != NULL && strncmp(name + 1, "tidemark-", strlen("tidemark-")) == 0;
}

static bool undo_file(const char *path)
{
    uint64_t magic = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ours =
        fd >= 0 && read(fd, &magic, sizeof(magic)) == (ssize_t)sizeof(magic) && magic == DISK_MAGIC;
    if (fd >= 0)
        close(fd);
    return ours && unlink(path) == 0;
}

/* 1: undone; 0: there was nothing to undo; -1: not a line of ours. */
static int undo(const char *line, size_t len)
{
    json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    const char *what = json_string_value(json_object_get(root, "undo"));
    const char *path = json_string_value(json_object_get(root, "path"));
    json_int_t pid = json_integer_value(json_object_get(root, "pid"));
    json_int_t since = json_integer_value(json_object_get(root, "began"));
    int result = -1;
    if (what != NULL && strcmp(what, "process") == 0 && pid > 1 && pid <= INT32_MAX)
        result = is_ours((pid_t)pid, (uint64_t)since) && kill((pid_t)pid, SIGKILL) == 0;
    else if (what != NULL && strcmp(what, "file") == 0 && path != NULL)
        result = undo_file(path);
    json_decref(root);
    return result;
}

int journal_recover(const char *path, struct buf *error)
{
    int count = 0, number = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT)
        return 0;
    if (file == NULL) {
        buf_printf(error, "%s cannot be read: %s", path, strerror(errno));
        return -1;
    }
    char *text = xmalloc(JOURNAL_BYTES_MAX);
    size_t len = fread(text, 1, JOURNAL_BYTES_MAX, file);
    fclose(file);
    for (size_t at = 0; at < len && count >= 0;) {
        const char *end = memchr(text + at, '\n', len - at);
        if (end == NULL) /* torn by the crash: what it tells of had not been done yet */
            break;
        size_t line_len = (size_t)(end - (text + at));
        int undone = undo(text + at, line_len);
        number++;
        if (undone < 0)
            buf_printf(error, "%s:%d: not a journal of faults: remove it if you know it is not one",
                       path, number);
        count = undone < 0 ? -1 : count + undone;
        at += line_len + 1;
    }
    free(text);
    if (count >= 0)
        unlink(path);
    return count;
}
