/* SPDX-License-Identifier: Apache-2.0 */
/* See disk.h. */

#include "chaos/inject/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { FLIP_FILES_MAX = 4096, PATH_LEN_MAX = DISK_PATH_MAX + 256 };

struct disk {
    char *path;
    struct disk_control *control;
};

struct disk *disk_new(const char *path, const char *directory, uint64_t seed)
{
    check(strlen(directory) < DISK_PATH_MAX);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    struct disk_control *control = MAP_FAILED;
    if (ftruncate(fd, sizeof(*control)) == 0)
        control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int reason = errno;
    close(fd);
    if (control == MAP_FAILED) {
        unlink(path);
        errno = reason;
        return NULL;
    }
    control->magic = DISK_MAGIC;
    control->size = sizeof(*control);
    control->seed = seed;
    snprintf(control->directory, sizeof(control->directory), "%s", directory);
    struct disk *disk = xcalloc(1, sizeof(*disk));
    disk->path = xstrdup(path);
    disk->control = control;
    return disk;
}

void disk_free(struct disk *disk)
{
    if (disk == NULL)
        return;
    munmap(disk->control, sizeof(*disk->control));
    unlink(disk->path);
    free(disk->path);
    free(disk);
}

const struct disk_control *disk_control(const struct disk *disk)
{
    return disk->control;
}

/* ---- Rules ---- */

int disk_begin(struct disk *disk, const struct disk_wish *wish)
{
    for (int i = 0; i < DISK_RULES_MAX; i++) {
        struct disk_rule *rule = &disk->control->rules[i];
        if (atomic_load(&rule->active) != 0)
            continue;
        rule->kind = wish->kind;
        rule->files = wish->files;
        rule->calls = wish->calls;
        rule->share = (uint64_t)(wish->share * 4294967296.0);
        rule->delay_ns = wish->delay_ns;
        rule->jitter_ns = wish->jitter_ns;
        int64_t room = wish->free_bytes > INT64_MAX ? INT64_MAX : (int64_t)wish->free_bytes;
        atomic_store(&rule->free_bytes, room);
        atomic_store(&rule->hits, 0);
        atomic_store_explicit(&rule->active, 1, memory_order_release);
        atomic_fetch_add(&disk->control->generation, 1);
        return i;
    }
    return -1;
}

void disk_end(struct disk *disk, int rule)
{
    atomic_store(&disk->control->rules[rule].active, 0);
    atomic_fetch_add(&disk->control->generation, 1);
}

uint64_t disk_hits(const struct disk *disk, int rule)
{
    return atomic_load(&disk->control->rules[rule].hits);
}

/* ---- Files ---- */

struct disk_loss disk_lose_unsynced(struct disk *disk)
{
    struct disk_loss loss = {0};
    for (int i = 0; i < DISK_FILES_MAX; i++) {
        struct disk_file *file = &disk->control->files[i];
        char path[PATH_LEN_MAX];
        struct stat status;
        if (file->used == 0 || file->name[0] == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%.*s", disk->control->directory, DISK_NAME_MAX,
                 file->name);
        /* The file tells how long it is: the process may have ended between a write and its note.
         */
        if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
            (uint64_t)status.st_size <= file->synced)
            continue;
        if (truncate(path, (off_t)file->synced) != 0) {
            loss.failed = loss.failed == 0 ? errno : loss.failed;
            continue;
        }
        loss.files++;
        loss.bytes += (uint64_t)status.st_size - file->synced;
        file->written = file->synced;
    }
    return loss;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

uint32_t disk_kind_of(const char *name)
{
    if (ends_with(name, ".log"))
        return DISK_LOG;
    if (ends_with(name, ".ldb") || ends_with(name, ".sst"))
        return DISK_TABLES;
    if (strncmp(name, "MANIFEST-", 9) == 0 || strcmp(name, "CURRENT") == 0 ||
        ends_with(name, ".dbtmp"))
        return DISK_MANIFEST;
    return DISK_OTHER;
}

struct flip_file {
    char *path;
    uint64_t size;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct flip_file *)a)->path, ((const struct flip_file *)b)->path);
}

/* The directory's files of these kinds that hold something, by name, so that the same bits are
 * drawn whatever order the directory has. */
static uint32_t list_files(const char *directory, uint32_t kinds,
                           struct flip_file files[FLIP_FILES_MAX])
{
    uint32_t count = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char path[PATH_LEN_MAX];
        struct stat status;
        if ((disk_kind_of(entry->d_name) & kinds) == 0 || count == FLIP_FILES_MAX)
            continue;
        int len = snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (len >= (int)sizeof(path) || lstat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
            status.st_size == 0)
            continue;
        files[count++] = (struct flip_file){xstrdup(path), (uint64_t)status.st_size};
    }
    if (dir != NULL)
        closedir(dir);
    qsort(files, count, sizeof(*files), by_path);
    return count;
}

/* True: flipped, and read back so. */
static bool flip_bit(const char *path, uint64_t bit)
{
    uint8_t before, after;
    bool good = false;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    off_t at = (off_t)(bit / 8);
    if (fd >= 0 && pread(fd, &before, 1, at) == 1) {
        after = (uint8_t)(before ^ (1u << bit % 8));
        good = pwrite(fd, &after, 1, at) == 1 && pread(fd, &before, 1, at) == 1 && before == after;
    }
    if (fd >= 0)
        close(fd);
    return good;
}

uint64_t disk_flip(const char *directory, uint32_t files, uint64_t bits, struct rng *rng)
{
    struct flip_file *list = xcalloc(FLIP_FILES_MAX, sizeof(*list));
    uint32_t count = list_files(directory, files, list);
    uint64_t total = 0, flipped = 0;
    for (uint32_t i = 0; i < count; i++)
        total += list[i].size * 8;
    if (bits > total)
        bits = total;
    /* Every stretch of total / bits gives one, so none is drawn twice. */
    for (uint64_t i = 0; i < bits; i++) {
        uint64_t stretch = total / bits;
        uint64_t at = i * stretch + rng_below(rng, stretch);
        uint32_t file = 0;
        while (at >= list[file].size * 8)
            at -= list[file++].size * 8;
        flipped += flip_bit(list[file].path, at);
    }
    for (uint32_t i = 0; i < count; i++)
        free(list[i].path);
    free(list);
    return flipped;
}

uint64_t disk_truncate(const char *directory, uint32_t files, uint64_t size)
{
    struct flip_file *list = xcalloc(FLIP_FILES_MAX, sizeof(*list));
    uint32_t count = list_files(directory, files, list);
    uint64_t cut = 0;
    if (count > 0) { /* LevelDB counts its files up */
        const struct flip_file *last = &list[count - 1];
        cut = size < last->size ? size : last->size;
        if (truncate(last->path, (off_t)(last->size - cut)) != 0)
            cut = 0;
    }
    for (uint32_t i = 0; i < count; i++)
        free(list[i].path);
    free(list);
    return cut;
}

/* nftw has no context of its own. */
static _Thread_local int wiped;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type;
    if (where->level == 0) /* the directory itself stays */
        return 0;
    wiped++;
    return remove(path);
}

static int count_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)path, (void)status, (void)type;
    wiped += where->level > 0;
    return 0;
}

int disk_set_aside(struct disk *disk, const char *directory, const char *aside)
{
    if (access(aside, F_OK) == 0 && (disk_wipe(NULL, aside) < 0 || rmdir(aside) != 0))
        return -1;
    wiped = 0;
    if (nftw(directory, count_one, 16, FTW_PHYS) != 0 || rename(directory, aside) != 0 ||
        mkdir(directory, 0700) != 0)
        return -1;
    for (int i = 0; disk != NULL && i < DISK_FILES_MAX; i++)
        disk->control->files[i].used = 0;
    return wiped;
}

int disk_wipe(struct disk *disk, const char *directory)
{
    wiped = 0;
    if (nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return -1;
    for (int i = 0; disk != NULL && i < DISK_FILES_MAX; i++)
        disk->control->files[i].used = 0;
    return wiped;
}

static bool copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t sent = out < 0 ? -1 : 1;
    while (sent > 0)
        sent = sendfile(out, in, NULL, 1 << 20);
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0)
        sent = -1;
    return sent == 0;
}

static bool copy_all(const char *directory, const char *aside)
{
    DIR *dir = opendir(directory);
    bool good = dir != NULL;
    for (struct dirent *entry; good && (entry = readdir(dir)) != NULL;) {
        char from[PATH_LEN_MAX], to[PATH_LEN_MAX];
        struct stat status;
        int from_len = snprintf(from, sizeof(from), "%s/%s", directory, entry->d_name);
        int to_len = snprintf(to, sizeof(to), "%s/%s", aside, entry->d_name);
        good = from_len < (int)sizeof(from) && to_len < (int)sizeof(to) &&
               lstat(from, &status) == 0 && (!S_ISREG(status.st_mode) || copy_file(from, to));
    }
    if (dir != NULL)
        closedir(dir);
    return good;
}

bool disk_copy(const char *directory, const char *aside)
{
    if (access(aside, F_OK) == 0 && (disk_wipe(NULL, aside) < 0 || rmdir(aside) != 0))
        return false;
    if (mkdir(aside, 0700) != 0)
        return false;
    if (copy_all(directory, aside))
        return true;
    int reason = errno;
    if (disk_wipe(NULL, aside) >= 0)
        rmdir(aside);
    errno = reason;
    return false;
}
