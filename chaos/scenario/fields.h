/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_FIELDS_H
#define SCENARIO_FIELDS_H

/* Mappings of a document, read into structs by tables. A table says for each key what it may be,
 * where it goes, its bounds and its default; the reader, the wording of its refusals and the JSON
 * Schema are all made from it. A refusal does not end the reading: the user learns of everything
 * that is wrong at once. Only the files of this directory see this header. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chaos/scenario/document.h"
#include "chaos/scenario/scenario.h"

/* What a value may be; the type of its member. Bounds are in the member's unit. */
enum field_type {
    FIELD_TEXT,      /* const char *; bounds are of its length */
    FIELD_BOOL,      /* bool */
    FIELD_WHOLE,     /* uint64_t */
    FIELD_SIGNED,    /* int64_t */
    FIELD_NUMBER,    /* double */
    FIELD_SHARE,     /* double */
    FIELD_PERCENT,   /* double, a share */
    FIELD_TIME,      /* uint64_t, ns */
    FIELD_OFFSET,    /* int64_t, ns */
    FIELD_BYTES,     /* uint64_t */
    FIELD_BANDWIDTH, /* uint64_t, bytes a second */
    FIELD_FREQUENCY, /* double, a second */
    FIELD_CHOICE,    /* uint8_t, one of `choices` */
    FIELD_REGION,    /* uint8_t, a place, ALL or LEADER */
    FIELD_REGIONS,   /* uint8_t, a set of places with data */
    FIELD_TEXTS,     /* struct scenario_texts; bounds are of the length of each */
    FIELD_MAP,       /* struct, by `shape` */
    FIELD_CUSTOM     /* by `read`, which is given the struct that the field is of */
};

struct choice {
    const char *name; /* NULL: the end */
    uint8_t value;
};

struct reader {
    const char *file;
    struct arena *arena;
    struct buf *error;
    uint32_t errors;
    struct scenario *scenario;
    uint32_t fault_count; /* of all phases */
    bool lost;    /* which Regions there are is not understood: any name of one is let pass */
    uint64_t bad; /* keys of the shape that was read last, with something wrong in what they hold */
    bool ids_lost; /* a fault could not be read, and so perhaps an id that others name */
};

struct shape;

struct field {
    const char *key;
    enum field_type type;
    size_t offset;
    int64_t min, max; /* both 0: what the type bears */
    const struct choice *choices;
    const struct shape *shape;
    void (*read)(struct reader *reader, const struct node *node, void *into);
    json_t *(*schema)(void);
    const char *standard; /* the default, as text; NULL: the member stays as it is */
    bool required;
    const char *help;
};

struct shape {
    const struct field *at;
    uint32_t count; /* at most 64 */
};

/* "file:line: path: reason", unless there have been many already. */
void reader_fail(struct reader *reader, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* False, after telling so, if the node is of another kind. */
bool reader_wants(struct reader *reader, const struct node *node, enum node_kind kind,
                  const char *what);

/* Reads the mapping into the struct, defaults first; node may be NULL or null for an empty one. Bit
 * i of the result: the mapping has the i-th key of the shape. */
uint64_t shape_read(struct reader *reader, const struct node *node, const struct shape *shape,
                    void *into);
/* Whether the value is one of these, without telling so if not. */
bool field_is_choice(const struct choice *choices, const struct node *node);
/* One value by one line of a table. */
void field_read(struct reader *reader, const struct node *node, const struct field *field,
                void *into);
/* The default, if there is one. */
void field_set_standard(struct reader *reader, const struct field *field, void *into);
/* Tells that there is no such key, and which one was meant. */
void field_unknown(struct reader *reader, const struct node *node, const char *const *known,
                   uint32_t known_count);
/* The known word that is meant by this one, by what others call it or by its letters; else NULL. */
const char *field_nearest(const char *word, const char *const *known, uint32_t count);
/* words.c: what a word of other tools is called here, if one of the known words is; else NULL. */
const char *words_meant(const char *word, const char *const *known, uint32_t count);

json_t *shape_schema(const struct shape *shape);
json_t *field_schema(const struct field *field);

/* The tables (tables.c). */
extern const struct shape scenario_shape_top, scenario_shape_cluster, scenario_shape_link,
    scenario_shape_workload, scenario_shape_phase, scenario_shape_until, scenario_shape_random,
    scenario_shape_fault;
extern const struct shape scenario_shape_params; /* of a fault, by enum scenario_param */
extern const struct choice scenario_modes[], scenario_distributions[], scenario_directions[],
    scenario_shapes[], scenario_hows[], scenario_files[], scenario_calls[], scenario_signals[];

/* Places in the tables of those keys whose presence matters by itself. */
enum link_key { LINK_RTT, LINK_DELAY, LINK_JITTER, LINK_BANDWIDTH, LINK_DISTRIBUTION };
enum workload_key {
    WORKLOAD_KIND,
    WORKLOAD_KEYS,
    WORKLOAD_KEY_CHOICE,
    WORKLOAD_RATE,
    WORKLOAD_OPEN_LOOP,
    WORKLOAD_CLIENTS,
    WORKLOAD_MIX,
    WORKLOAD_TIMEOUT,
    WORKLOAD_ITEM_SIZE,
    WORKLOAD_WRITERS,
    WORKLOAD_EXEC
};
enum phase_key {
    PHASE_NAME,
    PHASE_FOR,
    PHASE_UNTIL,
    PHASE_DO,
    PHASE_IDLE,
    PHASE_WRITERS,
    PHASE_FAULTS,
    PHASE_RANDOM
};
enum fault_key { FAULT_AT, FAULT_FOR, FAULT_ID, FAULT_DO };
#define KEY_BIT(key) (UINT64_C(1) << (key))

/* One entry of `links`, as it is written. */
struct link_values {
    uint64_t rtt_ns;
    struct scenario_link link;
};

/* Readers, schemas and last looks of what no table can say. */
void scenario_read_regions(struct reader *reader, const struct node *node, void *into);
void scenario_read_witness(struct reader *reader, const struct node *node, void *into);
void scenario_read_links(struct reader *reader, const struct node *node, void *into);
void scenario_read_exec(struct reader *reader, const struct node *node, void *into);
void scenario_read_heal(struct reader *reader, const struct node *node, void *into);
void scenario_read_until(struct reader *reader, const struct node *node, void *into);
void scenario_read_faults(struct reader *reader, const struct node *node, void *into);
void scenario_read_weights(struct reader *reader, const struct node *node, void *into);
void scenario_read_cluster(struct reader *reader, const struct node *node, void *into);
void scenario_read_workload(struct reader *reader, const struct node *node, void *into);
void scenario_read_phases(struct reader *reader, const struct node *node, void *into);
void scenario_read_expect(struct reader *reader, const struct node *node, void *into);
void scenario_read_stop_if(struct reader *reader, const struct node *node, void *into);
/* sense.c: what no file that is meant can say, though each part of it is well formed. */
void scenario_check_sense(struct reader *reader, const struct node *root);
/* The fault's place in the file, by its order among those of its phase. */
const struct node *scenario_fault_node(const struct node *phases, uint32_t phase,
                                       const struct scenario_fault *fault);
/* api_names.c: what a Region knows, up to a NULL; whether a fault names anything else. */
extern const char *const scenario_operations[], *const scenario_errors[];
void scenario_check_api(struct reader *reader, const struct node *node,
                        const struct scenario_fault *fault);
/* References from one fault to another. */
void scenario_finish_faults(struct reader *reader, const struct node *phases,
                            struct scenario *scenario);
/* In the unit that makes it short: 1.5s, 250ms. */
void scenario_print_time(int64_t ns, struct buf *to);
/* By at_ns, then as they stand. */
void scenario_sort_faults(struct scenario_phase *phase);
/* An id that no fault has: the stem and a number above *number, which is left there. */
const char *scenario_new_id(struct scenario *scenario, const char *stem, uint32_t *number);

json_t *scenario_schema_regions(void);
json_t *scenario_schema_links(void);
json_t *scenario_schema_exec(void);
json_t *scenario_schema_faults(void);
json_t *scenario_schema_weights(void);
json_t *scenario_schema_phases(void);
json_t *scenario_schema_expect(void);
json_t *scenario_schema_stop_if(void);

#endif
