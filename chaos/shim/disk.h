/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_DISK_H
#define SHIM_DISK_H

/* The file that the harness and the disk shim of one Region share, mapped by both. The harness
 * writes rules, the shim obeys them and counts; the shim writes down what of each file is synced,
 * and the harness reads that when the process is dead. It outlives the process, so that a kill -9
 * loses none of it.
 *
 * Region processes of chaos runs only are started with the shim (LD_PRELOAD) and with the path of
 * this file in TIDEMARK_DISK. */

#include <stdatomic.h>
#include <stdint.h>

#define DISK_VARIABLE "TIDEMARK_DISK"
#define DISK_MAGIC UINT64_C(0x317364656d646974) /* "tidmeds1" */

enum { DISK_RULES_MAX = 16, DISK_FILES_MAX = 4096, DISK_NAME_MAX = 48, DISK_PATH_MAX = 4096 };

enum disk_kind {
    DISK_FULL, /* writes fail (ENOSPC) once free_bytes are used up */
    DISK_SLOW, /* a call takes delay_ns longer, off by at most jitter_ns */
    DISK_FAIL, /* share of the calls fail (EIO) */
    DISK_TORN  /* half of the next write is written, and the process killed */
};

enum { DISK_LOG = 1, DISK_TABLES = 2, DISK_MANIFEST = 4, DISK_OTHER = 8, DISK_ANY_FILE = 15 };
enum { DISK_READ = 1, DISK_WRITE = 2, DISK_SYNC = 4, DISK_ANY_CALL = 7 };

struct disk_rule {
    _Atomic uint32_t active; /* written last by the harness, read first by the shim */
    uint32_t kind;           /* enum disk_kind */
    uint32_t files, calls;   /* sets */
    uint64_t share;          /* of 2^32: how many of the calls */
    uint64_t delay_ns, jitter_ns;
    _Atomic int64_t free_bytes;
    _Atomic uint64_t hits;
};

struct disk_file {
    uint32_t used;
    uint32_t kind;            /* DISK_LOG, ... */
    uint64_t written, synced; /* bytes; what lies beyond `synced` is lost with the power */
    char name[DISK_NAME_MAX]; /* in the directory */
};

struct disk_control {
    uint64_t magic;
    uint64_t size;                         /* of this struct */
    uint64_t seed;                         /* of draws */
    _Atomic uint64_t draws;                /* so far */
    _Atomic uint64_t generation;           /* the harness counts it up when rules change */
    _Atomic uint64_t processes;            /* that the shim has come up in */
    _Atomic uint64_t reads, writes, syncs; /* calls on files of the directory */
    _Atomic uint64_t mapped_reads;         /* pages of mapped tables that a rule has seen read */
    _Atomic uint64_t overwrites;           /* writes into what was synced: LevelDB makes none */
    char directory[DISK_PATH_MAX];         /* whose files count, as the Region is told it */
    struct disk_rule rules[DISK_RULES_MAX];
    struct disk_file files[DISK_FILES_MAX];
};

#endif
