/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_SCRATCH_H
#define TESTS_LIB_SCRATCH_H

/* A directory of a test's own, with plain files in it. */

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static inline void remove_directory(const char *directory)
{
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
    rmdir(directory);
}

#endif
