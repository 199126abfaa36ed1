/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_REQUEST_H
#define DRIVE_REQUEST_H

/* Operations of a history as requests of the DynamoDB API. An item is
 *
 *     registers   { pk: "k17", v: VALUE, f: FILLER }
 *     counters    { pk: "k17", v: SUM }
 *     lists       { pk: "k17", l: [VALUE, ...] }
 *     sets        { pk: "k17", sk: ELEMENT, f: FILLER }, an item for each element
 *
 * Every write of a register asks for what it replaced, which is what makes histories exact. Pure.
 */

#include <stdbool.h>

#include "chaos/check/history.h"

#define REQUEST_TABLE "tidemark-chaos" /* table 0 of the history */
#define REQUEST_PROTOCOL "DynamoDB_20120810."

enum request_shape { REQUEST_REGISTER, REQUEST_LIST, REQUEST_SET }; /* a counter is a register */

struct request_style {
    uint8_t shape; /* enum request_shape */
    struct bytes filler;
};

/* About what one item of this many bytes needs beside its other attributes. */
uint64_t request_filler_len(uint64_t item_bytes);
/* Appends the body, sets op->bytes where it is known now, and returns the API's name of the
 * operation ("PutItem"). start: the LastEvaluatedKey of the page before, as JSON, or none. */
const char *request_write(const struct request_style *style, struct history_op *op,
                          struct bytes start, struct buf *to);
/* A page of a Scan of a whole table. */
void request_write_scan(struct bytes table, struct bytes start, struct buf *to);
/* CreateTable of ours. */
void request_write_create(const struct request_style *style, struct buf *to);

void request_write_key(uint32_t key, struct buf *to); /* "k17" */
/* The way back, of exactly what that writes. */
bool request_read_key(struct bytes text, uint32_t *ret);

#endif
