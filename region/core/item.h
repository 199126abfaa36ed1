/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_ITEM_H
#define REGION_ITEM_H

/* An item is one contiguous run of bytes, written once when a request is read and used in place
 * ever after: by expressions, on disk, in the change log, on the wire.
 *
 *   item     version u8 = 1 | attribute...            to the end of the run
 *   attribute  name, length-prefixed | value          ascending by name bytes, no name twice
 *   value    tag u8 | payload, length-prefixed (varint)
 *
 *   payload  S   UTF-8            B   raw              N   number.h's encoding
 *            BOOL u8 0 or 1       NULL empty
 *            L   value...         M   attribute...     (as an item without its version byte)
 *            SS, NS, BS  length-prefixed elements, ascending by bytes, none twice
 *
 * The encoding is canonical: equal items have equal bytes. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"

enum value_type {
    VALUE_S = 1,
    VALUE_N,
    VALUE_B,
    VALUE_BOOL,
    VALUE_NULL,
    VALUE_L,
    VALUE_M,
    VALUE_SS,
    VALUE_NS,
    VALUE_BS
};

enum {
    ITEM_FORMAT = 1,
    ITEM_SIZE_MAX = 400 * 1024, /* AWS: names and values together */
    ITEM_DEPTH_MAX = 32,        /* levels; an attribute's own value is the first */
    ITEM_PARTITION_KEY_MAX = 2048,
    ITEM_SORT_KEY_MAX = 1024
};

/* A view of one value. */
struct value {
    enum value_type type;
    struct bytes payload;
    struct bytes whole; /* tag, length and payload: copy this to copy the value */
};

struct attribute {
    struct bytes name;
    struct value value;
};

/* "S", "N", ... as in JSON and in attribute_type(). */
const char *value_type_name(enum value_type type);
bool value_type_find(struct bytes name, enum value_type *ret);

/* Cursors: each takes the next one off the front of *rest and returns false at the end. They are
 * for bytes from our own encoder, or from item_check; on others they stop early, but stay inside.
 */
static inline bool item_take_prefixed(struct bytes *rest, struct bytes *ret)
{
    if (rest->len && rest->at[0] < 0x80 && rest->at[0] < rest->len) {
        *ret = (struct bytes){rest->at + 1, rest->at[0]};
        rest->at += 1 + ret->len;
        rest->len -= 1 + ret->len;
        return true;
    }
    return bytes_take_prefixed(rest, ret);
}
static inline bool value_take(struct bytes *rest, struct value *ret)
{
    struct bytes after = *rest;
    struct bytes payload;
    if (after.len < 2)
        return false;
    after.at++;
    after.len--;
    if (!item_take_prefixed(&after, &payload))
        return false;
    *ret = (struct value){(enum value_type)rest->at[0], payload, {rest->at, rest->len - after.len}};
    *rest = after;
    return true;
}
static inline bool attribute_take(struct bytes *rest, struct attribute *ret)
{
    struct bytes after = *rest;
    if (!item_take_prefixed(&after, &ret->name) || !value_take(&after, &ret->value))
        return false;
    *rest = after;
    return true;
}
static inline bool element_take(struct bytes *rest, struct bytes *ret) /* of a set */
{
    return item_take_prefixed(rest, ret);
}

/* The attributes of an item (skips the version byte). An empty run has none. */
struct bytes item_attributes(struct bytes item);
bool item_find(struct bytes item, struct bytes name, struct value *ret);
/* For a map's payload or item_attributes. */
bool attributes_find(struct bytes attributes, struct bytes name, struct value *ret);

/* Whole and canonical, depth within bounds: for bytes from disk or from a peer. */
bool item_check(struct bytes item);
/* Takes a value off the front that could be an attribute's in such an item; else nothing. */
bool value_take_checked(struct bytes *rest, struct value *ret);

/* Levels of a value: 1, and one more per list or map around the deepest leaf. At most
 * ITEM_DEPTH_MAX for an attribute of an item. */
uint32_t value_depth(struct value value);

/* Sizes as AWS counts them against 400 KB and for capacity units. */
size_t item_size(struct bytes item);
size_t value_size(struct value value);

/* Writers append to a buf. */
void value_write(struct buf *to, enum value_type type, struct bytes payload);
void attribute_write(struct buf *to, struct bytes name, struct value value);

/* Sorts attributes by name and writes them; used for items and maps alike. With item_begin first,
 * the result is an item. False if a name comes twice. */
bool attributes_write_sorted(struct buf *to, struct attribute *at, size_t count);
void item_begin(struct buf *to);
/* Sorts the elements and writes a set (SS, NS or BS; elements of NS in number.h's encoding). False
 * if an element comes twice: then nothing is written. */
bool set_write_sorted(struct buf *to, enum value_type type, struct bytes *at, size_t count);
/* For containers: writes a tag, remembers where its payload starts, and puts the length in front of
 * it once it is known. */
size_t value_begin(struct buf *to, enum value_type type);
void value_end(struct buf *to, size_t payload_start);

/* Total equality is bytes_equal on `whole`. Order within one type, for S, N, B: -1, 0, 1. */
int value_compare(struct value a, struct value b);

#endif
