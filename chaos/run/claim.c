/* SPDX-License-Identifier: Apache-2.0 */
/* The mark is a file of its own, because a run that was killed has no report yet. Directories that
 * an older version has filled are known by their result.json. */

#include "chaos/run/claim.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "chaos/live/text.h"

#define MARK ".tidemark"

static bool is_empty(DIR *directory)
{
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
    return true;
}

static bool has_mark(const char *directory)
{
    char *path = text_new("%s/" MARK, directory);
    bool has = access(path, F_OK) == 0;
    free(path);
    return has;
}

static bool has_result(const char *directory)
{
    char *path = text_new("%s/result.json", directory);
    json_t *result = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *run = json_object_get(result, "run");
    bool ours = json_is_integer(json_object_get(result, "version")) &&
                json_is_string(json_object_get(run, "tidemark"));
    json_decref(result);
    free(path);
    return ours;
}

bool claim_check(const char *directory, struct buf *error)
{
    DIR *found = opendir(directory);
    if (found == NULL && errno == ENOENT)
        return true;
    if (found == NULL) {
        buf_printf(error, "directory %s can't be read: %s", directory, strerror(errno));
        return false;
    }
    bool empty = is_empty(found);
    closedir(found);
    if (empty || has_mark(directory) || has_result(directory))
        return true;
    buf_printf(error,
               "directory %s holds files that are not of a run, and reports could take the place "
               "of some: choose one that is new or empty with --out DIR",
               directory);
    return false;
}

bool claim_mark(const char *directory, struct buf *error)
{
    char *path = text_new("%s/" MARK, directory);
    FILE *file = fopen(path, "we");
    bool good = file != NULL && fputs("Tidemark writes the reports of a run here.\n", file) >= 0;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (!good)
        buf_printf(error, "directory %s can't be written: %s", directory, strerror(errno));
    free(path);
    return good;
}

uint64_t claim_space(const char *directory)
{
    struct statvfs status;
    if (statvfs(directory, &status) != 0)
        return UINT64_MAX;
    return (uint64_t)status.f_bavail * status.f_frsize;
}

bool claim_check_space(const char *directory, uint64_t space, struct buf *error)
{
    if (space >= CLAIM_BYTES_MIN)
        return true;
    buf_printf(error,
               "only %" PRIu64 " MiB are free under %s, and a run begins with %" PRIu64
               " at least: make room, or choose another place with --out DIR",
               space >> 20, directory, (uint64_t)CLAIM_BYTES_MIN >> 20);
    return false;
}
