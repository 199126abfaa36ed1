/* SPDX-License-Identifier: Apache-2.0 */
/* See store_tail.h. A record: checksum 4 (masked, over type and data), length 2, type 1, data; all
 * little-endian (LevelDB's doc/log_format.md). Records do not cross blocks, so the last block can
 * be read by itself. */

#include "region/store_tail.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/crc32c.h"

enum { BLOCK_BYTES = 32768, HEADER_BYTES = 7, TYPE_AT = 6 };

static uint32_t take_crc(const uint8_t *header)
{
    uint32_t masked = (uint32_t)header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 |
                      (uint32_t)header[3] << 24;
    uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
}

/* Whether the checksum fits at some length: then this record was written whole. */
static bool fits_somewhere(struct bytes rest)
{
    uint32_t wanted = take_crc(rest.at);
    uint32_t crc = crc32c(0, bytes_make(rest.at + TYPE_AT, 1));
    for (size_t at = HEADER_BYTES; crc != wanted && at < rest.len; at++)
        crc = crc32c(crc, bytes_make(rest.at + at, 1));
    return crc == wanted;
}

static bool only_zeros(struct bytes rest)
{
    for (size_t i = 0; i < rest.len; i++)
        if (rest.at[i] != 0)
            return false;
    return true;
}

bool store_tail_sound(struct bytes block)
{
    if (block.len >= BLOCK_BYTES)
        return true; /* LevelDB itself takes no length beyond a whole block */
    struct bytes rest = block;
    while (rest.len >= HEADER_BYTES) {
        size_t len = (size_t)rest.at[4] | (size_t)rest.at[5] << 8;
        if (rest.at[TYPE_AT] == 0 && len == 0)
            return only_zeros(rest);
        if (HEADER_BYTES + len > rest.len)
            return !fits_somewhere(rest);
        rest = bytes_make(rest.at + HEADER_BYTES + len, rest.len - HEADER_BYTES - len);
    }
    return true;
}

/* ---- Files ---- */

static bool file_sound(int directory, const char *name)
{
    int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0)
        return true;
    bool sound = true;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        uint8_t *block = xmalloc(BLOCK_BYTES);
        ssize_t len = pread(file, block, BLOCK_BYTES, status.st_size / BLOCK_BYTES * BLOCK_BYTES);
        sound = len <= 0 || store_tail_sound(bytes_make(block, (size_t)len));
        free(block);
    }
    close(file);
    return sound;
}

static bool is_log(const char *name)
{
    size_t len = strlen(name);
    return (len > 4 && strcmp(name + len - 4, ".log") == 0) || strncmp(name, "MANIFEST-", 9) == 0;
}

bool store_tails_sound(const char *directory, char *error, size_t error_len)
{
    DIR *dir = opendir(directory);
    bool sound = true;
    for (struct dirent *entry; sound && dir && (entry = readdir(dir)) != NULL;) {
        if (!is_log(entry->d_name))
            continue;
        sound = file_sound(dirfd(dir), entry->d_name);
        if (!sound)
            snprintf(error, error_len, "%s/%s: the length of its last record is damaged", directory,
                     entry->d_name);
    }
    if (dir)
        closedir(dir);
    return sound;
}
