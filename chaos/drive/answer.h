/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_ANSWER_H
#define DRIVE_ANSWER_H

/* What an answer, or its absence, means for a history, by the tables of history.h. Whatever does
 * not let one say for certain that a write was not done leaves it INFO. An item that holds no such
 * value as we write is not explained away: it reads as ANSWER_STRANGE, which nobody wrote, so that
 * the checkers tell of it as a phantom. Pure. */

#include <stdbool.h>

#include <jansson.h>

#include "chaos/check/history.h"
#include "net/client.h"

#define ANSWER_STRANGE UINT64_MAX

enum { ANSWER_LIST_MAX = 1 << 20 };

struct answer_list { /* owned */
    uint64_t *at;
    uint32_t count, cap;
};
void answer_list_deinit(struct answer_list *list);

/* Fills op's outcome, reason, saw, value, list_count and, if it was an item that came, bytes. A
 * list that is seen is added to `list`, so that the pages of a SCAN gather there. *ret_next: the
 * key that the next page starts from, or NULL; the caller's to decref. */
void answer_read(const struct http_answer *answer, struct history_op *op, struct answer_list *list,
                 json_t **ret_next);
/* The body; NULL if it is no JSON. With `cleanup(answer_json_free)`. */
json_t *answer_json(struct bytes body);
static inline void answer_json_free(json_t **json)
{
    json_decref(*json);
}
/* "PutItem: 500 InternalServerError: ..." or "no answer: ...", for people. */
void answer_print(const struct http_answer *answer, struct buf *to);
/* The type of an error answer, without its namespace; empty if it says none. In `scratch`. */
struct bytes answer_error_type(struct bytes body, char scratch[static 64]);
/* A number attribute {"N": "17"} of these: exactly digits that fit; else ANSWER_STRANGE. */
uint64_t answer_number(const json_t *attribute);

#endif
