/* SPDX-License-Identifier: Apache-2.0 */
/* Two looks into /proc. A process that ends between them is one that there is nothing to read of.
 */

#include "chaos/run/watch_process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t read_resident(int pid)
{
    char path[64], line[128];
    uint64_t pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    /* All that it maps, then what of that is resident. */
    const char *second = fgets(line, sizeof(line), file) ? strchr(line, ' ') : NULL;
    if (second != NULL)
        pages = strtoull(second, NULL, 10);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint32_t count_descriptors(int pid)
{
    char path[64];
    uint32_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

void watch_process(const struct process *process, uint64_t *ret_resident_bytes,
                   uint32_t *ret_descriptors)
{
    *ret_resident_bytes = process == NULL ? 0 : read_resident(process_pid(process));
    *ret_descriptors = process == NULL ? 0 : count_descriptors(process_pid(process));
}
