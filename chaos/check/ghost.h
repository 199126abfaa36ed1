/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_GHOST_H
#define CHECK_GHOST_H

/* What an all-seeing observer knows of an eventual table: every record that became durable in its
 * own Region, and so what each key must hold once all is healed, which writes were thrown away, and
 * which of them the ledgers must name. It shares nothing with the replicator but the order of
 * versions. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/record.h"
#include "conflict/resolve.h"

struct ghost;

struct ghost_record {
    struct record record;             /* in the ghost's memory */
    uint64_t writer;                  /* the operation that wrote it; 0: unknown */
    bool ledgered;                    /* some ledger names it as a loser */
    bool lost;                        /* it is on no disk any more, nor known to be of the past */
    uint32_t holders;                 /* bits: whose disk has had it since it last was a new one */
    struct ghost_key *of_key;         /* the ghost's */
    struct ghost_record *next_of_key; /* any order */
};

struct ghost *ghost_new(void);
struct ghost *ghost_free(struct ghost *ghost);

/* A record (key set) is durable where it was written. Seeing it again changes nothing. */
const struct ghost_record *ghost_add(struct ghost *ghost, const struct record *record,
                                     uint64_t writer);
/* Likewise, and a disk has it, at this moment at least. `holder` is below 31. */
const struct ghost_record *ghost_hold(struct ghost *ghost, const struct record *record,
                                      uint64_t writer, uint32_t holder);
/* A disk lets go of what it has of the key. If that was deleted, the deletion was everywhere, and
 * no disk is needed any more to remember it. */
void ghost_settle(struct ghost *ghost, struct bytes key, uint32_t holder);
/* The disk is gone. What no other one has may be lost, which is no fault of anybody's; unless it
 * turns up once more. How many records that are. */
uint32_t ghost_lose(struct ghost *ghost, uint32_t holder);
/* The key was deleted for good before anyone shared it, which leaves no tombstone: it begins anew.
 */
void ghost_forget(struct ghost *ghost, struct bytes key);
/* NULL if that operation has no durable record. */
const struct ghost_record *ghost_find_writer(const struct ghost *ghost, uint64_t writer);
/* Whether the key has had this version since it last began anew. */
bool ghost_has(const struct ghost *ghost, struct bytes key, struct version version);
/* The greatest version of the key that is not lost, or NULL. */
const struct ghost_record *ghost_last(const struct ghost *ghost, struct bytes key);
uint32_t ghost_key_count(const struct ghost *ghost);
struct bytes ghost_key_at(const struct ghost *ghost, uint32_t index);

/* A ledger names `loser`, beaten by `winner`. NULL when that is true and worth a row; else what is
 * wrong. */
const char *ghost_ledger(struct ghost *ghost, struct bytes key, const struct record *winner,
                         const struct record *loser);

/* After all ledgers have been told: the first write that was lost and that no ledger accounts for,
 * or NULL. A write that is lost with the disks that had it needs no account.
 *
 * exact (two Regions, no snapshots): a record with a concurrent greater one must be named itself,
 * for when it reached the greater one's Region, what was stored there could not have seen it.
 * Otherwise: a record that the key's last one had not seen must be named, or one that had seen it.
 */
const struct ghost_record *ghost_unaccounted(const struct ghost *ghost, bool exact);

#endif
