/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_LINES_H
#define REPORT_LINES_H

/* Structs as lines of JSON and back, by a table of their fields. A field that holds its `none` is
 * left out. Moments are written as ns since the run began and may be negative; a Region is written
 * by its name; a number beyond 2^53, which most readers of JSON would round, is written as a text
 * of its digits. What is read is within its bounds, and no key is passed over. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chaos/scenario/scenario.h"
#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"

enum line_type {
    LINE_U64,
    LINE_U32,
    LINE_U16,
    LINE_I64,
    LINE_INT, /* of C; 0 to 255 */
    LINE_BOOL,
    LINE_MOMENT,  /* uint64_t */
    LINE_NAME,    /* uint8_t: place in `names` */
    LINE_REGION,  /* uint8_t */
    LINE_REGIONS, /* uint64_t: bits */
    LINE_TEXT     /* const char *; NULL is its none */
};

struct line_field {
    const char *key;
    enum line_type type;
    bool required;
    size_t offset;
    uint64_t none;
    const char *const *names; /* LINE_NAME: ends with NULL */
};

struct lines {
    const struct scenario_cluster *cluster;
    struct arena *arena; /* for texts that are read */
    uint64_t began_ns;
};

struct line_shape {
    const struct line_field *at;
    uint32_t count;
};

#define LINE_SHAPE(fields)                                                                         \
    {                                                                                              \
        fields, sizeof(fields) / sizeof((fields)[0])                                               \
    }

enum { LINE_TEXT_MAX = 4096 };

/* The members, without braces: each after a comma, but for the first if `first`. */
void line_write(const struct lines *lines, const struct line_shape *shape, const void *from,
                bool first, struct buf *to);
/* Fills *to, which holds nothing yet. False: `why` says which key is wrong. */
bool line_read(const struct lines *lines, const struct line_shape *shape, json_t *object, void *to,
               struct buf *why);

void line_u64_write(uint64_t value, struct buf *to);
bool line_u64_read(const json_t *json, uint64_t max, uint64_t *ret);

#endif
