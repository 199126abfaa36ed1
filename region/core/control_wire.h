/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_CONTROL_WIRE_H
#define REGION_CONTROL_WIRE_H

/* A table's description as the control plane keeps it, and the messages Regions exchange about it.
 * One codec serves the store, the Hello of replication and the control calls (control.proto). A
 * decoded description is whole and within all limits, whoever sent it. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/version.h"
#include "region/core/table.h"

enum member_state { MEMBER_CREATING = 1, MEMBER_ACTIVE, MEMBER_DELETING, MEMBER_REMOVED };

/* When and where a register was last set; the later one wins everywhere. */
struct stamp {
    uint64_t time;
    uint16_t region;
};

struct member {
    uint16_t region;
    enum member_state state;
    uint16_t source;
    uint64_t since_ms;
    struct stamp stamp;
};

/* The consensus groups of a strong table, one per partition, all with the same three members. Set
 * up once, by the Region that is told to make the table strong; from then on each part only grows,
 * so that descriptions can be joined in any order. A later epoch replaces all of it. */
enum { STRONG_MEMBERS = 3 };
/* What is decoded leaves room for the epochs and disks that come after. */
enum { STRONG_EPOCH_MAX = 1 << 30 };
#define STRONG_INCARNATION_MAX (UINT64_MAX / 2)
struct strong_setup {
    uint32_t epoch;                   /* 0: never was strong; else how often it has become so */
    uint16_t regions[STRONG_MEMBERS]; /* in the order of consensus.h's members */
    uint8_t witness;                  /* index of the member that keeps no items; 3: none */
    uint64_t incarnations[STRONG_MEMBERS]; /* newest known of each member's disk; 0: has not made
                                              its part yet. The groups run once all three have */
    uint16_t dissolver;                    /* the Region that shall keep the table alone; 0: none */
    struct stamp dissolved;                /* of the dissolver; the later one wins */
    bool ended; /* the groups are sealed: the dissolver has everything. Without a dissolver:
                   this epoch has no groups, the table is eventual (strong_setup_blank) */
};
/* The table is strong now, or is becoming so, or ceasing to be. */
static inline bool strong_setup_runs(const struct strong_setup *setup)
{
    return setup->epoch > 0 && !setup->ended;
}
static inline bool strong_setup_has_witness(const struct strong_setup *setup, uint16_t region)
{
    return setup->epoch > 0 && setup->witness < STRONG_MEMBERS &&
           setup->regions[setup->witness] == region;
}
/* Of a table that was strong and becomes eventual: takes an epoch, so that nobody reads the old
 * setup into it. */
static inline struct strong_setup strong_setup_blank(uint32_t epoch)
{
    return (struct strong_setup){.epoch = epoch, .witness = STRONG_MEMBERS, .ended = true};
}

/* table.replicas and table.witness are not part of a description: they are derived from the
 * members, in their order. */
struct description {
    struct table table;
    struct stamp settings_stamp; /* of billing, units, stream and sse */
    uint64_t epoch;              /* in which this Region numbers the table's log */
    bool dropped;                /* gone, its rows being erased */
    bool grave;                  /* left for good: only the members say anything */
    struct member
        members[VV_MAX]; /* empty for a table that never was global; this Region included */
    uint32_t member_count;
    struct strong_setup strong; /* a witness's Region is a member like any other */
};

enum { DESCRIPTIONS_MAX = 4096, DESCRIPTION_FORMAT = 1 };

int stamp_compare(struct stamp a, struct stamp b);

/* `local`: with the parts that only the Region's own store holds. */
void description_encode(const struct description *description, bool local, struct buf *to);
bool description_decode(struct bytes from, bool local, struct description *ret);

/* A list: what Hello carries. Appends one description to a list. */
void descriptions_append(const struct description *description, struct buf *to);
/* Takes the next one off the front; false at the end or if it is malformed: *ret_bad then. */
bool descriptions_take(struct bytes *rest, struct description *ret, bool *ret_bad);

enum call_kind {
    CALL_CHECK_CREATE = 1, /* could you take a replica of this table? */
    CALL_CHECK_MEMBER,     /* are you there and a member? */
    CALL_CHECK_DELETE,     /* may your replica be deleted? */
    CALL_MERGE,            /* take this description in, and act on it */
    CALL_CHECK_WITNESS     /* could you hold a witness of this table? */
};
enum call_outcome {
    CALL_OK = 1,
    CALL_EXISTS, /* another table has this name */
    CALL_NOT_MEMBER,
    CALL_PROTECTED, /* deletion protection */
    CALL_SOURCE,    /* it was a source less than 24 h ago */
    CALL_LIMIT,     /* too many tables */
    CALL_BUSY,      /* a change of this table is under way: ask again */
    CALL_STARTING,
    CALL_MALFORMED,
    CALL_WITNESS_ONLY /* that process keeps no items */
};

void call_encode(enum call_kind kind, uint16_t from, const struct description *table,
                 struct buf *to);
bool call_decode(struct bytes from, enum call_kind *ret, uint16_t *ret_from,
                 struct description *ret_table);
/* table may be NULL. */
void answer_encode(enum call_outcome outcome, const struct description *table, struct buf *to);
bool answer_decode(struct bytes from, enum call_outcome *ret, bool *ret_given,
                   struct description *ret_table);

#endif
