/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_LINEAGE_H
#define CHECK_LINEAGE_H

/* Which write stood on which. Every write of a register item names the value that it replaced, so
 * the writes of an item form trees: one grows from absence, others from writes whose predecessor
 * nobody was told (an INFO that somebody saw). A tree without forks is a chain, and says that no
 * update was lost.
 *
 *     absent - 1 - 2 - 4 - 6        6 is the last value: 1, 2, 4, 6 prevail
 *                   \- 3 - 5        5 is a lost update: 4 was written over 2 like 3, and prevailed
 *
 * Who prevails: from the item's last value (its `final` reads) back to where its tree begins. In
 * another tree it is the branch that ends in a deletion, for upon that the last value may stand,
 * else the one that was written to last.
 *
 * A deletion leaves an absence, which does not name it: what was written over one among deletions
 * begins a tree of its own ("loose"). So a tree that ends in a value and does not hold the last one
 * is lost, and nothing in it prevails, unless a write of unknown outcome may stand on its end and
 * have led on (a "link": it was seen, or is a deletion). Then its end is `open`. */

#include <stdbool.h>

#include "chaos/check/history.h"
#include "chaos/check/items.h"

/* In place of an operation. */
#define LINEAGE_ABSENT (UINT32_MAX - 1) /* the item was not there */
#define LINEAGE_UNKNOWN UINT32_MAX

enum lineage_role {
    LINEAGE_OUT,   /* failed, or nobody can tell whether it was done, or what it saw */
    LINEAGE_WRITE, /* happened */
    LINEAGE_READ   /* happened; also a condition that failed */
};

struct lineage_node {      /* of an operation */
    uint32_t parent;       /* WRITE: what it replaced; READ: what it saw */
    uint32_t child;        /* WRITE: the first written over it, or UNKNOWN; by invoke_ns */
    uint32_t sibling;      /* the next written over the same, or UNKNOWN */
    uint32_t heir;         /* WRITE: the child that prevails, or UNKNOWN */
    uint32_t latest;       /* WRITE: what of its subtree was sent last */
    uint32_t enter, leave; /* WRITE: its subtree is those with an enter in [enter, leave) */
    uint64_t by_ns;        /* WRITE: it had happened by then: it ended, or was seen */
    uint64_t erased_ns;    /* WRITE: when the first deletion in its subtree was sent, or MAX */
    uint64_t ended_ns;     /* WRITE: likewise, the first value that nothing was written over */
    uint64_t seen_by;      /* WRITE: the regions, as bits, that showed it or what was built on it */
    uint32_t tree;         /* WRITE: where its tree begins; ABSENT for all that grow from absence */
    uint32_t anchor;       /* WRITE: itself if it prevails, else its first ancestor that does, or
                              ABSENT: what is left of it in the end */
    uint8_t role;
    bool prevails; /* WRITE: on the way from a beginning to an end that no rival took */
    bool open;     /* WRITE: a tree's end of which nobody can tell whether it is lost */
};

struct lineage_item {
    const struct item_range *range;
    uint32_t root_child; /* the first write over absence, or UNKNOWN */
    uint32_t root_heir;  /* the one of them that prevails, or UNKNOWN */
    uint32_t final;      /* the last value's write, ABSENT, or UNKNOWN */
    uint64_t erased_ns;  /* when the first deletion was sent that may have been done, or MAX */
    uint64_t link_from_ns, link_to_ns; /* the first link was sent, the last had happened */
    uint64_t loose_by_ns;              /* all that may stand on a deletion had happened by then */
    uint32_t links;                    /* those that may lead to the last value */
    bool gone;   /* the last look shows no item, and `final` is only a guess of the deletion
                    that did it, or UNKNOWN */
    bool judged; /* it sees nothing but PUT, PUT_IF, READ, DELETE */
    bool blind;  /* something in it cannot be placed: see `why` */
    const char *why;
    /* What is wrong in any mode, or NULL, and the operations that show it. */
    const char *fault;
    uint32_t fault_ops[2];
    uint32_t fault_count;
};

struct lineage {
    const struct history *history;
    struct items items;
    struct writers writers;
    struct lineage_node *nodes;      /* by operation */
    struct lineage_item *item_array; /* by the index of items.at */
};

void lineage_init(struct lineage *lineage, const struct history *history);
void lineage_deinit(struct lineage *lineage);

/* The item of (table, key), or NULL. */
const struct lineage_item *lineage_find(const struct lineage *lineage, uint16_t table,
                                        uint32_t key);
/* b is a, or was written over it, directly or not. Both WRITE. */
bool lineage_descends(const struct lineage *lineage, uint32_t a, uint32_t b);
/* Whether b stands on a: as above, or through absences and writes of unknown outcome. */
enum lineage_answer { LINEAGE_NO, LINEAGE_MAYBE, LINEAGE_YES };
enum lineage_answer lineage_stands_on(const struct lineage *lineage, uint32_t b, uint32_t a);
/* The end of the branch that prevails from op on. */
uint32_t lineage_end(const struct lineage *lineage, uint32_t op);
/* Where the tree of a WRITE begins: of those that grow from absence, the one that prevails. */
uint32_t lineage_top(const struct lineage *lineage, const struct lineage_item *item, uint32_t op);
/* For lineage.c, between who prevails and what is left: see lineage_ends.c. */
void lineage_settle_ends(struct lineage *lineage, struct lineage_item *item);
/* Whether another region than the write's own showed it, or what was written over it. */
bool lineage_seen_elsewhere(const struct lineage *lineage, uint32_t op);

#endif
