/* SPDX-License-Identifier: Apache-2.0 */

#include "chaos/live/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

char *paths_programs(void)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    check(len > 0);
    path[len] = 0;
    *(strrchr(path, '/') + 1) = 0;
    return xstrdup(path);
}

bool paths_make(const char *path, mode_t mode)
{
    char *copy = xstrdup(path);
    bool good = true;
    for (char *at = copy + 1; good; at++) {
        if (*at != '/' && *at != 0)
            continue;
        char kept = *at;
        *at = 0;
        good = mkdir(copy, mode) == 0 || errno == EEXIST;
        *at = kept;
        if (kept == 0)
            break;
    }
    int reason = errno;
    free(copy);
    errno = reason;
    return good;
}
