/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_DOCUMENT_H
#define SCENARIO_DOCUMENT_H

/* YAML text as a tree in which every node still knows its line, so that an error of meaning can
 * point at its place as well as one of syntax (libcyaml forgets lines; libyaml, which it stands on,
 * has them). JSON is read by the same code. Only plain trees: anchors, aliases and tags are
 * refused, keys are scalars and unique, and size, depth and count are bounded. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"

enum {
    DOCUMENT_DEPTH_MAX = 24,
    DOCUMENT_NODES_MAX = 65536,
    DOCUMENT_KEYS_MAX = 512, /* of one mapping */
    DOCUMENTS_MAX = 64,      /* in one file */
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    bool quoted;        /* a scalar in quotes: never null */
    uint32_t line;      /* from 1 */
    uint32_t index;     /* in its list */
    uint32_t count;     /* children */
    const char *key;    /* in its mapping; NULL in a list and at the top */
    const char *text;   /* of a scalar, else NULL; holds no NUL */
    struct node *first; /* child, in the order of the file */
    struct node *last;
    struct node *next; /* sibling */
    const struct node *parent;
};

/* The file's documents, at least one. False: each line of error is "file:line: reason"; *ret_count
 * is 0 if there is nothing to be read, else the rest of the file can be looked at for more. */
bool document_parse(struct arena *arena, const char *file, struct bytes text,
                    struct node *ret[DOCUMENTS_MAX], uint32_t *ret_count, struct buf *error);
/* NULL if the mapping has no such key, or the node is no mapping. */
const struct node *node_find(const struct node *map, const char *key);
/* No value is written: `key:`, `~` or `null`. */
bool node_is_null(const struct node *node);
/* "phases[1].faults[0].at"; nothing at the top. */
void node_path(const struct node *node, struct buf *to);

#endif
