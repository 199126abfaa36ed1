/* SPDX-License-Identifier: Apache-2.0 */
/* A library to be preloaded into a Region's process, between LevelDB and the kernel. LevelDB's C
 * API has no hook under its files, so its calls are taken where they leave it: open, read, pread,
 * write, fsync, fdatasync, mmap, rename, unlink, close, and posix_fallocate, by which the Region
 * looks for room. Each is made by a system call of our own and never by libc's function, which is
 * what we stand in the place of. Files outside of the Region's directory pass untouched.
 *
 * What is synced: LevelDB only appends, so one length a file says it. Directories are taken to be
 * durable at once: no file name is lost. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chaos/shim/disk_internal.h"

#define EXPORTED __attribute__((visibility("default")))

enum { FDS_MAX = 65536 };

struct disk_control *control;
static size_t directory_len;
static _Atomic uint16_t slots[FDS_MAX]; /* index of the file + 1; 0: none of ours */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the table of files */

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv(DISK_VARIABLE);
    if (path == NULL)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *at = (void *)syscall(SYS_mmap, NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED,
                               fd, 0);
    syscall(SYS_close, fd);
    if (at == MAP_FAILED)
        return;
    struct disk_control *found = at;
    if (found->magic != DISK_MAGIC || found->size != sizeof(*found))
        return;
    directory_len = strnlen(found->directory, DISK_PATH_MAX);
    atomic_fetch_add(&found->processes, 1);
    control = found;
}

/* ---- Files ---- */

/* The name within the directory; NULL: elsewhere. The directory itself is "". */
static const char *name_of(const char *path)
{
    if (control == NULL || strncmp(path, control->directory, directory_len) != 0)
        return NULL;
    const char *rest = path + directory_len;
    if (*rest != '/' && *rest != 0)
        return NULL;
    while (*rest == '/')
        rest++;
    return strlen(rest) < DISK_NAME_MAX ? rest : NULL;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

static uint32_t kind_of(const char *name)
{
    if (ends_with(name, ".log"))
        return DISK_LOG;
    if (ends_with(name, ".ldb") || ends_with(name, ".sst"))
        return DISK_TABLES;
    if (*name == 0 || strncmp(name, "MANIFEST-", 9) == 0 || strcmp(name, "CURRENT") == 0 ||
        ends_with(name, ".dbtmp"))
        return DISK_MANIFEST;
    return DISK_OTHER;
}

/* Under the lock. The index, or -1. */
static int find_file(const char *name)
{
    for (int i = 0; i < DISK_FILES_MAX; i++)
        if (control->files[i].used != 0 && strcmp(control->files[i].name, name) == 0)
            return i;
    return -1;
}

static int add_file(const char *name)
{
    for (int i = 0; i < DISK_FILES_MAX; i++) {
        struct disk_file *file = &control->files[i];
        if (file->used != 0)
            continue;
        *file = (struct disk_file){.kind = kind_of(name)};
        memcpy(file->name, name, strlen(name) + 1);
        file->used = 1;
        return i;
    }
    return -1;
}

/* A file has been opened. What it held before anybody knew of it counts as synced. */
static void note_open(int fd, const char *path, int flags)
{
    const char *name = name_of(path);
    struct stat status;
    if (name == NULL || fd >= FDS_MAX || fstat(fd, &status) != 0)
        return;
    pthread_mutex_lock(&lock);
    int index = find_file(name);
    if (index < 0 && (index = add_file(name)) >= 0 && S_ISREG(status.st_mode))
        control->files[index].written = control->files[index].synced = (uint64_t)status.st_size;
    if (index >= 0 && (flags & O_TRUNC) != 0)
        control->files[index].written = control->files[index].synced = 0;
    pthread_mutex_unlock(&lock);
    atomic_store(&slots[fd], (uint16_t)(index + 1));
}

static struct disk_file *file_of(int fd)
{
    if (control == NULL || fd < 0 || fd >= FDS_MAX)
        return NULL;
    uint16_t slot = atomic_load_explicit(&slots[fd], memory_order_relaxed);
    return slot == 0 ? NULL : &control->files[slot - 1];
}

static void note_written(struct disk_file *file, uint64_t from, uint64_t to)
{
    pthread_mutex_lock(&lock);
    if (from < file->synced) {
        atomic_fetch_add(&control->overwrites, 1);
        file->synced = from;
    }
    if (to > file->written)
        file->written = to;
    pthread_mutex_unlock(&lock);
}

static int fail(int number)
{
    errno = number;
    return -1;
}

_Noreturn static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* ---- The calls ---- */

static int open_at(const char *path, int flags, mode_t mode)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && control != NULL)
        note_open(fd, path, flags);
    return fd;
}

EXPORTED int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    bool creates = (flags & (O_CREAT | O_TMPFILE)) != 0;
    mode_t mode = creates ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_at(path, flags, mode);
}

EXPORTED int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    bool creates = (flags & (O_CREAT | O_TMPFILE)) != 0;
    mode_t mode = creates ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_at(path, flags, mode);
}

EXPORTED int close(int fd)
{
    if (fd >= 0 && fd < FDS_MAX)
        atomic_store(&slots[fd], 0);
    return (int)syscall(SYS_close, fd);
}

/* A reading call: 0, or an errno. */
static int before_read(const struct disk_file *file)
{
    size_t len = 1;
    disk_look_at_rules();
    atomic_fetch_add(&control->reads, 1);
    return disk_strike(file->kind, DISK_READ, &len, NULL);
}

EXPORTED ssize_t read(int fd, void *to, size_t len)
{
    const struct disk_file *file = file_of(fd);
    int failed = file == NULL ? 0 : before_read(file);
    return failed != 0 ? fail(failed) : syscall(SYS_read, fd, to, len);
}

EXPORTED ssize_t pread(int fd, void *to, size_t len, off_t offset)
{
    const struct disk_file *file = file_of(fd);
    int failed = file == NULL ? 0 : before_read(file);
    return failed != 0 ? fail(failed) : syscall(SYS_pread64, fd, to, len, offset);
}

EXPORTED ssize_t pread64(int fd, void *to, size_t len, off64_t offset)
{
    return pread(fd, to, len, offset);
}

/* offset < 0: at the end, as LevelDB does. */
static ssize_t write_file(struct disk_file *file, int fd, const void *from, size_t len,
                          off_t offset)
{
    bool torn = false;
    disk_look_at_rules();
    atomic_fetch_add(&control->writes, 1);
    int failed = disk_strike(file->kind, DISK_WRITE, &len, &torn);
    if (failed != 0)
        return fail(failed);
    ssize_t done = offset < 0 ? syscall(SYS_write, fd, from, len)
                              : syscall(SYS_pwrite64, fd, from, len, offset);
    if (torn)
        die();
    if (done > 0) {
        uint64_t begin = offset < 0 ? file->written : (uint64_t)offset;
        note_written(file, begin, begin + (uint64_t)done);
    }
    return done;
}

EXPORTED ssize_t write(int fd, const void *from, size_t len)
{
    struct disk_file *file = file_of(fd);
    return file == NULL ? syscall(SYS_write, fd, from, len) : write_file(file, fd, from, len, -1);
}

EXPORTED ssize_t pwrite(int fd, const void *from, size_t len, off_t offset)
{
    struct disk_file *file = file_of(fd);
    return file == NULL ? syscall(SYS_pwrite64, fd, from, len, offset)
                        : write_file(file, fd, from, len, offset);
}

EXPORTED ssize_t pwrite64(int fd, const void *from, size_t len, off64_t offset)
{
    return pwrite(fd, from, len, offset);
}

static int sync_file(struct disk_file *file, int fd, long call)
{
    size_t len = 1;
    disk_look_at_rules();
    atomic_fetch_add(&control->syncs, 1);
    int failed = disk_strike(file->kind, DISK_SYNC, &len, NULL);
    if (failed != 0)
        return fail(failed);
    uint64_t written = file->written;
    int result = (int)syscall(call, fd);
    if (result == 0) {
        pthread_mutex_lock(&lock);
        if (written > file->synced)
            file->synced = written;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

EXPORTED int fsync(int fd)
{
    struct disk_file *file = file_of(fd);
    return file == NULL ? (int)syscall(SYS_fsync, fd) : sync_file(file, fd, SYS_fsync);
}

EXPORTED int fdatasync(int fd)
{
    struct disk_file *file = file_of(fd);
    return file == NULL ? (int)syscall(SYS_fdatasync, fd) : sync_file(file, fd, SYS_fdatasync);
}

EXPORTED int ftruncate(int fd, off_t len)
{
    struct disk_file *file = file_of(fd);
    int result = (int)syscall(SYS_ftruncate, fd, len);
    if (file != NULL && result == 0) {
        pthread_mutex_lock(&lock);
        file->written = (uint64_t)len;
        if (file->synced > file->written)
            file->synced = file->written;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

/* Returns the error, as POSIX has it. */
EXPORTED int posix_fallocate(int fd, off_t offset, off_t len)
{
    struct disk_file *file = file_of(fd);
    if (file != NULL && len > 0) {
        size_t wanted = (size_t)len;
        disk_look_at_rules();
        int failed = disk_strike(file->kind, DISK_WRITE, &wanted, NULL);
        if (failed == 0 && wanted < (size_t)len)
            failed = ENOSPC;
        if (failed != 0)
            return failed;
    }
    return syscall(SYS_fallocate, fd, 0, offset, len) == 0 ? 0 : errno;
}

EXPORTED int posix_fallocate64(int fd, off64_t offset, off64_t len)
{
    return posix_fallocate(fd, offset, len);
}

EXPORTED int rename(const char *from, const char *to)
{
    int result = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    const char *old_name = name_of(from), *new_name = name_of(to);
    if (result != 0 || old_name == NULL)
        return result;
    pthread_mutex_lock(&lock);
    int moved = find_file(old_name), replaced = new_name == NULL ? -1 : find_file(new_name);
    if (replaced >= 0)
        control->files[replaced].used = 0;
    if (moved >= 0 && new_name != NULL) {
        memcpy(control->files[moved].name, new_name, strlen(new_name) + 1);
        control->files[moved].kind = kind_of(new_name);
    } else if (moved >= 0) {
        control->files[moved].used = 0;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORTED int unlink(const char *path)
{
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    const char *name = name_of(path);
    if (result == 0 && name != NULL) {
        pthread_mutex_lock(&lock);
        int index = find_file(name);
        if (index >= 0)
            control->files[index].used = 0;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

static void *map_file(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    const struct disk_file *file = file_of(fd);
    bool table = file != NULL && file->kind == DISK_TABLES && protection == PROT_READ;
    if (table) {
        int failed = before_read(file);
        if (failed != 0) {
            errno = failed;
            return MAP_FAILED;
        }
    }
    void *mapped = (void *)syscall(SYS_mmap, at, len, protection, flags, fd, offset);
    if (table && mapped != MAP_FAILED)
        disk_keep_map(mapped, len);
    return mapped;
}

EXPORTED void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    return map_file(at, len, protection, flags, fd, offset);
}

EXPORTED void *mmap64(void *at, size_t len, int protection, int flags, int fd, off64_t offset)
{
    return map_file(at, len, protection, flags, fd, offset);
}

EXPORTED int munmap(void *at, size_t len)
{
    if (control != NULL)
        disk_drop_map(at);
    return (int)syscall(SYS_munmap, at, len);
}
