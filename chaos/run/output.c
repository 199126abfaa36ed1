/* SPDX-License-Identifier: Apache-2.0 */
/* The lock is flock's, which ends with the process however it ends; what the file says is only for
 * whoever comes next. */

#include "chaos/run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/inject/inject.h"
#include "chaos/live/paths.h"
#include "chaos/live/text.h"
#include "chaos/run/claim.h"
#include "conflict/base/alloc.h"

enum { HOLDER_MAX = 4400, DEPTH_MAX = 16 };

static bool make_directories(const char *path, struct buf *error)
{
    bool good = paths_make(path, 0755);
    if (!good)
        buf_printf(error, "directory %s can't be made: %s", path, strerror(errno));
    return good;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static void remove_tree(const char *path)
{
    if (nftw(path, remove_one, DEPTH_MAX, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        fprintf(stderr, "tidemark: %s could not be removed: %s\n", path, strerror(errno));
}

/* "PID\nDATA\nMARK\n", or nothing if the last run has ended well. */
static size_t read_holder(const struct output *output, char *to)
{
    ssize_t len = pread(output->lock_fd, to, HOLDER_MAX - 1, 0);
    to[len < 0 ? 0 : len] = 0;
    return strcspn(to, "\n");
}

static bool take_lock(struct output *output, struct buf *error)
{
    char holder[HOLDER_MAX];
    output->lock_fd = open(output->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (output->lock_fd < 0) {
        buf_printf(error, "%s can't be written: %s", output->lock, strerror(errno));
        return false;
    }
    bool taken = flock(output->lock_fd, LOCK_EX | LOCK_NB) == 0;
    size_t len = read_holder(output, holder);
    if (strspn(holder, "0123456789") != len) {
        buf_printf(error, "%s is not of a run: choose another place with --out DIR", output->lock);
        return false;
    }
    if (taken)
        return true;
    buf_printf(error,
               "another run is under way here (process %.*s): wait for it, or choose another place "
               "with --out DIR",
               len == 0 ? 1 : (int)len, len == 0 ? "?" : holder);
    return false;
}

/* The line that begins here, ended; moves on to the next. */
static char *take_line(char **rest)
{
    static char none[] = "";
    char *line = strsep(rest, "\n");
    return line == NULL ? none : line;
}

/* The data directory that the file names is removed only if its name is of our own making. */
static bool clear_leftovers(struct output *output, const char *home, struct buf *error)
{
    char holder[HOLDER_MAX], *rest = holder;
    int undone = access(output->journal, F_OK) == 0 ? inject_recover(output->journal, error) : 0;
    if (undone < 0)
        return false;
    if (undone > 0)
        fprintf(stderr,
                "tidemark: cleaned up what faults of a run that was killed had left: %d %s; links "
                "and clocks had ended with it\n",
                undone, undone == 1 ? "file or process" : "files and processes");
    size_t home_len = strlen(home);
    if (read_holder(output, holder) == 0)
        return true;
    take_line(&rest); /* its number: it is dead, or it would hold the lock */
    const char *data = take_line(&rest), *end = strrchr(data, '/');
    int ended = leftovers_kill(take_line(&rest));
    if (ended > 0)
        fprintf(stderr, "tidemark: ended %d process%s of a run that was killed\n", ended,
                ended == 1 ? "" : "es");
    bool ours = strncmp(data, home, home_len) == 0 && data[home_len] == '/' &&
                strstr(data, "..") == NULL && end != NULL && strcmp(end, "/data") == 0;
    if (ours && access(data, F_OK) == 0)
        remove_tree(data);
    return true;
}

static bool name_holder(struct output *output, struct buf *error)
{
    char holder[HOLDER_MAX];
    leftovers_begin(output->mark);
    int len =
        snprintf(holder, sizeof(holder), "%d\n%s\n%s\n", (int)getpid(), output->data, output->mark);
    if (len < (int)sizeof(holder) && ftruncate(output->lock_fd, 0) == 0 &&
        pwrite(output->lock_fd, holder, (size_t)len, 0) == len)
        return true;
    buf_printf(error, "%s can't be written: %s", output->lock, strerror(errno));
    return false;
}

bool output_open(struct output *output, const char *home, const char *directory, struct buf *error)
{
    *output = (struct output){.directory = xstrdup(directory),
                              .data = text_new("%s/data", directory),
                              .journal = text_new("%s/.undo", home),
                              .lock = text_new("%s/.lock", home),
                              .lock_fd = -1};
    if (!claim_check(directory, error) || !make_directories(home, error) ||
        !take_lock(output, error) || !clear_leftovers(output, home, error) ||
        !make_directories(directory, error) || !claim_mark(directory, error) ||
        !claim_check_space(directory, claim_space(directory), error))
        return false;
    if (access(output->data, F_OK) == 0) {
        buf_printf(error,
                   "%s is there already, from a run with --keep-data: remove it, or choose "
                   "another place with --out DIR",
                   output->data);
        return false;
    }
    return name_holder(output, error) && make_directories(output->data, error);
}

bool output_make_data(struct output *output, const char *region, struct buf *error)
{
    char *path = text_new("%s/%s", output->data, region);
    bool good = make_directories(path, error);
    free(path);
    return good;
}

static bool is_named(const struct output *output)
{
    char holder[HOLDER_MAX];
    return output->lock_fd >= 0 && read_holder(output, holder) > 0 &&
           strtol(holder, NULL, 10) == getpid();
}

void output_drop_data(struct output *output)
{
    if (!is_named(output))
        return;
    leftovers_kill(output->mark);
    if (access(output->data, F_OK) == 0)
        remove_tree(output->data);
}

void output_close(struct output *output, bool keep_data)
{
    bool named = is_named(output);
    if (named && keep_data)
        leftovers_kill(output->mark);
    else
        output_drop_data(output);
    if (named && ftruncate(output->lock_fd, 0) != 0)
        fprintf(stderr, "tidemark: %s can't be written: %s\n", output->lock, strerror(errno));
    if (output->lock_fd >= 0)
        close(output->lock_fd);
    free(output->directory);
    free(output->data);
    free(output->journal);
    free(output->lock);
}
