/* SPDX-License-Identifier: Apache-2.0 */
/* A run's time is the name of its directory, so the newest are known before a file is opened. Of
 * result.json only the beginning is read, where the verdict stands: the whole can be megabytes, and
 * the loop that asks also moves the bytes of every link. */

#include "chaos/live/runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    NAME_MAX_LEN = 64,
    ENTRIES_MAX = 16384,                /* of all directories together that are looked at */
    CANDIDATES_MAX = 2 * RUNS_MAX,      /* some may not have ended */
    HEAD_BYTES_MAX = 4096,              /* of a result */
    REPORT_BYTES_MAX = 16 * 1024 * 1024 /* of a page */
};

struct candidate {
    char name[NAME_MAX_LEN + 1], time[NAME_MAX_LEN + 1];
};

struct finding {
    struct candidate at[CANDIDATES_MAX]; /* newest first */
    uint32_t count, entries;
};

/* What scenarios and times are named with; so no path leads elsewhere. */
static bool is_plain(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return len > 0 && len <= NAME_MAX_LEN && name[len] == 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static int open_directory(int in, const char *name)
{
    return openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- Reading ---- */

/* The first len_max bytes of a plain file. False: it is none, or cannot be read. */
static bool read_file(int in, const char *name, size_t len_max, struct buf *to, struct stat *ret)
{
    /* Opening a pipe would otherwise wait for a writer. */
    int fd cleanup(close_fd) = openat(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, ret) != 0 || !S_ISREG(ret->st_mode))
        return false;
    size_t left = (uint64_t)ret->st_size < len_max ? (size_t)ret->st_size : len_max;
    ssize_t len = 1;
    while (left > 0 && (len = read(fd, buf_reserve(to, left), left)) > 0) {
        to->len += (size_t)len;
        left -= (size_t)len;
    }
    return len >= 0;
}

static int open_run(const char *directory, const char *name, const char *time)
{
    if (!is_plain(name) || !is_plain(time))
        return -1;
    int home cleanup(close_fd) = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int runs cleanup(close_fd) = home < 0 ? -1 : open_directory(home, name);
    return runs < 0 ? -1 : open_directory(runs, time);
}

bool runs_read_report(const char *directory, const char *name, const char *time, struct buf *to)
{
    struct stat status;
    int run cleanup(close_fd) = open_run(directory, name, time);
    return run >= 0 && read_file(run, "report.html", REPORT_BYTES_MAX + 1, to, &status) &&
           status.st_size <= REPORT_BYTES_MAX;
}

/* ---- Looking for them ---- */

static bool is_newer(const struct candidate *a, const char *name, const char *time)
{
    int order = strcmp(a->time, time);
    return order != 0 ? order > 0 : strcmp(a->name, name) > 0;
}

static void copy_plain(char to[NAME_MAX_LEN + 1], const char *name)
{
    size_t len = strlen(name);
    check(len <= NAME_MAX_LEN);
    memcpy(to, name, len + 1);
}

static void add(struct finding *finding, const char *name, const char *time)
{
    uint32_t place = finding->count;
    while (place > 0 && !is_newer(&finding->at[place - 1], name, time))
        place--;
    if (place == CANDIDATES_MAX)
        return;
    finding->count += finding->count < CANDIDATES_MAX;
    memmove(&finding->at[place + 1], &finding->at[place],
            (finding->count - 1 - place) * sizeof(finding->at[0]));
    copy_plain(finding->at[place].name, name);
    copy_plain(finding->at[place].time, time);
}

/* The next name that may be ours; NULL: there is no more, or we have seen enough. */
static const char *next_name(DIR *directory, struct finding *finding)
{
    const struct dirent *entry;
    while (finding->entries < ENTRIES_MAX && (entry = readdir(directory)) != NULL) {
        finding->entries++;
        if (is_plain(entry->d_name))
            return entry->d_name;
    }
    return NULL;
}

static void close_dir(DIR **directory)
{
    if (*directory != NULL)
        closedir(*directory);
}

static DIR *open_names(int in, const char *name)
{
    int fd = open_directory(in, name);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);
    if (names == NULL && fd >= 0)
        close(fd);
    return names;
}

static void find(const char *directory, struct finding *finding)
{
    const char *name, *time;
    DIR *names cleanup(close_dir) = opendir(directory);
    while (names != NULL && (name = next_name(names, finding)) != NULL) {
        DIR *times cleanup(close_dir) = open_names(dirfd(names), name);
        while (times != NULL && (time = next_name(times, finding)) != NULL)
            add(finding, name, time);
    }
}

/* ---- Telling ---- */

/* The members before "run", which are the verdict's; the rest is not read. A newline stands in no
 * JSON string, so the mark is where it seems to be. */
static json_t *read_verdict(struct bytes head)
{
    static const char mark[] = ",\n \"run\":";
    const uint8_t *end = head.len == 0 ? NULL : memmem(head.at, head.len, mark, sizeof(mark) - 1);
    if (end == NULL)
        return NULL;
    struct buf text = {0};
    buf_append_bytes(&text, bytes_make(head.at, (size_t)(end - head.at)));
    buf_append_u8(&text, '}');
    json_t *verdict = json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
    buf_deinit(&text);
    return verdict;
}

/* NULL: it has not ended, or this is no run. */
static json_t *tell(const char *directory, const struct candidate *candidate)
{
    struct stat status, page;
    struct buf head cleanup(buf_deinit) = {0};
    int run cleanup(close_fd) = open_run(directory, candidate->name, candidate->time);
    if (run < 0 || fstatat(run, "report.html", &page, AT_SYMLINK_NOFOLLOW) != 0 ||
        !read_file(run, "result.json", HEAD_BYTES_MAX, &head, &status))
        return NULL;
    json_t *found = read_verdict(buf_view(&head));
    const char *result = json_string_value(json_object_get(found, "result"));
    const char *verdict = json_string_value(json_object_get(found, "verdict"));
    char path[2 * NAME_MAX_LEN + 16];
    snprintf(path, sizeof(path), "/v1/runs/%s/%s", candidate->name, candidate->time);
    json_int_t at_ms = (json_int_t)status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1000000;
    json_t *told = NULL;
    if (result != NULL && verdict != NULL)
        told = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s}", "name", candidate->name, "time",
                         candidate->time, "result", result, "verdict", verdict, "at_ms", at_ms,
                         "report", path);
    json_decref(found);
    return told;
}

json_t *runs_list(const char *directory)
{
    struct finding *finding = xcalloc(1, sizeof(*finding));
    json_t *all = json_array();
    find(directory, finding);
    for (uint32_t i = 0; i < finding->count && json_array_size(all) < RUNS_MAX; i++) {
        json_t *told = tell(directory, &finding->at[i]);
        if (told != NULL)
            json_array_append_new(all, told);
    }
    free(finding);
    return all;
}
