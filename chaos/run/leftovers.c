/* SPDX-License-Identifier: Apache-2.0 */
/* /proc shows the environment that a process began with, which nobody can take out again but by
 * execing without it. A mark is of one run only, so whoever bears it belongs to that run, whatever
 * its number, group or session. */

#include "chaos/run/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/bytes.h"
#include "conflict/base/check.h"

#define NAME "TIDEMARK_RUN"
enum { ENVIRONMENT_MAX = 4 << 20, ROUNDS_MAX = 100, ROUND_MS = 10 };

void leftovers_begin(char ret_mark[LEFTOVERS_MARK_MAX])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(ret_mark, LEFTOVERS_MARK_MAX, "%d.%" PRIu64, (int)getpid(),
             (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    check(setenv(NAME, ret_mark, 1) == 0);
}

static bool is_mark(const char *text)
{
    size_t pid = strspn(text, "0123456789");
    size_t time = pid > 0 && text[pid] == '.' ? strspn(text + pid + 1, "0123456789") : 0;
    return time > 0 && text[pid + 1 + time] == 0 && pid + 1 + time < LEFTOVERS_MARK_MAX;
}

/* Entries end with a NUL each. */
static bool bears(pid_t pid, const char *entry, char *room)
{
    char path[64];
    size_t len = 0, entry_len = strlen(entry) + 1;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t got; len < ENVIRONMENT_MAX;) {
        got = read(fd, room + len, ENVIRONMENT_MAX - len);
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    close(fd);
    for (size_t at = 0; at + entry_len <= len; at += strnlen(room + at, len - at) + 1)
        if (memcmp(room + at, entry, entry_len) == 0)
            return true;
    return false;
}

static int kill_once(const char *entry, char *room)
{
    DIR *all = opendir("/proc");
    int count = 0;
    if (all == NULL)
        return 0;
    for (struct dirent *found; (found = readdir(all)) != NULL;) {
        char *end;
        long pid = strtol(found->d_name, &end, 10);
        if (*end == 0 && pid > 1 && pid != getpid() && bears((pid_t)pid, entry, room) &&
            kill((pid_t)pid, SIGKILL) == 0)
            count++;
    }
    closedir(all);
    return count;
}

/* Again until there are none, for they may be forking just now; one that is killed has no
 * environment once it is gone. */
int leftovers_kill(const char *mark)
{
    char entry[sizeof(NAME) + LEFTOVERS_MARK_MAX + 1];
    int first, now;
    if (!is_mark(mark))
        return 0;
    snprintf(entry, sizeof(entry), NAME "=%s", mark);
    char *room = xmalloc(ENVIRONMENT_MAX);
    first = now = kill_once(entry, room);
    for (int i = 0; i < ROUNDS_MAX && now > 0; i++) {
        poll(NULL, 0, ROUND_MS);
        now = kill_once(entry, room);
    }
    free(room);
    return first;
}
