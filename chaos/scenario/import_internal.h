/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_IMPORT_INTERNAL_H
#define SCENARIO_IMPORT_INTERNAL_H

/* What both importers share: where they read, what they have gathered, and how it becomes text. */

#include "chaos/scenario/fields.h"
#include "chaos/scenario/import.h"

struct import {
    struct reader reader;
    const struct import_options *options;
    struct arena arena;
    struct node *documents[DOCUMENTS_MAX];
    uint32_t document_count;
    const char *tool;  /* "AWS FIS" */
    struct buf name;   /* of the scenario */
    struct buf about;  /* one line, as it came */
    struct buf faults; /* lines of YAML */
    uint32_t fault_count;
    uint64_t end_ns; /* of the last fault */
    bool stops;      /* there was an alarm, and options->stop_if is for it */
};

/* False: the text is no document. import_close is due in both cases. */
bool import_open(struct import *import, const char *file, struct bytes text, const char *tool,
                 const struct import_options *options, struct buf *error);
void import_close(struct import *import);
/* Appends the scenario and reads it once, as its user will. */
bool import_write(struct import *import, struct buf *to);

/* The Region that a word stands for: one of the cluster, or one that the options give it. NULL: it
 * stands for none. */
const char *import_region(const struct import *import, struct bytes word);
const char *import_own_region(const struct import *import);
/* The text of a scalar, after telling that it is missing or something else. NULL then. */
const char *import_text(struct import *import, const struct node *map, const char *key);
/* A time under that key. */
bool import_time(struct import *import, const struct node *map, const char *key, uint64_t *ret);
/* Refuses the keys that are not in the list, which ends with NULL. */
void import_keys(struct import *import, const struct node *map, const char *const *known);

/* One fault: begins with its times, verb and id; then come its parameters; then the end. */
void import_fault(struct import *import, uint64_t at_ns, uint64_t for_ns, const char *verb,
                  const char *id);
void import_param(struct import *import, const char *key, const char *value);
void import_fault_end(struct import *import);

/* ---- Chaos Mesh ---- */

struct mesh {
    struct import import;
    const char *name;        /* of the experiment at hand */
    const struct node *spec; /* of it */
    uint64_t for_ns;         /* of it */
};

/* The Regions that a selector names, each once. */
struct places {
    const char *at[SCENARIO_REGIONS_MAX];
    uint32_t count;
};

/* Of `spec` or of `spec.target`: {mode, selector}. False: told why. */
bool mesh_find_places(struct mesh *mesh, const struct node *of, struct places *places);
/* The text of an optional key; NULL: there is none. */
const char *mesh_text(struct mesh *mesh, const struct node *map, const char *key);
void mesh_read_network(struct mesh *mesh);

#endif
