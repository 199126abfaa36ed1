/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INJECT_DISK_H
#define INJECT_DISK_H

/* One Region's disk: the harness's end of the shim (chaos/shim/disk.h), and what is done to the
 * files themselves, which needs no shim. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/shim/disk.h"
#include "conflict/base/bytes.h"
#include "conflict/base/rng.h"

struct disk;

/* Makes the control file (`path`) for a Region with its data in `directory`. NULL: errno. */
struct disk *disk_new(const char *path, const char *directory, uint64_t seed);
/* The file goes, too. */
void disk_free(struct disk *disk);
const struct disk_control *disk_control(const struct disk *disk);

/* What rules are made of; the rest of a disk_rule is the shim's. */
struct disk_wish {
    enum disk_kind kind;
    uint32_t files, calls;
    double share;
    uint64_t delay_ns, jitter_ns, free_bytes;
};
/* The rule's number, or -1: there are too many. */
int disk_begin(struct disk *disk, const struct disk_wish *wish);
void disk_end(struct disk *disk, int rule);
uint64_t disk_hits(const struct disk *disk, int rule);

/* The process is dead: cuts each file to what was synced. */
struct disk_loss {
    uint32_t files;
    uint64_t bytes;
    int failed; /* errno of the first that could not be cut */
};
struct disk_loss disk_lose_unsynced(struct disk *disk);

/* Flips bits in the directory's files of these kinds, each in a place of its own. Returns how many
 * were flipped and read back so. */
uint64_t disk_flip(const char *directory, uint32_t files, uint64_t bits, struct rng *rng);
/* Cuts so much off the end of the newest file of these kinds that holds anything. Returns how much
 * went; 0: there is none, or it could not be cut. */
uint64_t disk_truncate(const char *directory, uint32_t files, uint64_t size);
/* Removes what is in the directory, and forgets it (disk may be NULL). Returns how many entries;
 * -1: errno. */
int disk_wipe(struct disk *disk, const char *directory);
/* After the name of a Region's data directory, the name of where its data is kept when its disk is
 * lost. */
#define DISK_ASIDE ".lost"
/* The same, but what was there goes to `aside`, in place of what may be there. */
int disk_set_aside(struct disk *disk, const char *directory, const char *aside);
/* Copies the files of the directory to `aside`, in place of what may be there. False: errno, and
 * nothing of it is there. */
bool disk_copy(const char *directory, const char *aside);
/* DISK_LOG, ... of a file's name. */
uint32_t disk_kind_of(const char *name);

#endif
