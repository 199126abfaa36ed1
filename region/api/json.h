/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_JSON_H
#define API_JSON_H

/* Bounds around the packaged JSON parser. A tree takes many times the room of its text ("[]," is
 * three bytes and a hundred in memory), so the number of nodes is bounded before a tree is built.
 */

#include <jansson.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"

enum {
    JSON_SMALL_BYTES_MAX = 64 * 1024, /* cannot grow enough to matter, and has no bounds */
    JSON_WEIGHT_MAX = 1000 * 1000,    /* a scalar weighs 1, a list or map 4 */
    JSON_DEPTH_MAX = 512              /* the parser recurses */
};

/* Remembers the forms of requests that it reads often. */
struct json_reader;
struct json_reader *json_reader_new(void);
struct json_reader *json_reader_free(struct json_reader *reader);

/* NULL when it is not JSON, not UTF-8, names a member twice or is out of bounds. The tree must be
 * released, and not be changed, before the reader is used again. The reader may be NULL. */
json_t *json_read(struct json_reader *reader, struct bytes text);
void json_release(json_t **json);

/* len: of the name. */
json_t *json_member_find(const json_t *object, const char *name, size_t len);
/* A member that is present and not null, else NULL. The API takes null for absence everywhere. */
static inline json_t *json_member(const json_t *object, const char *name)
{
    return json_member_find(object, name, strlen(name));
}
/* Text of a string node; borrowed. */
struct bytes json_text(const json_t *string);
/* The same, copied. */
struct bytes json_copy_text(struct arena *arena, const json_t *string);

#endif
