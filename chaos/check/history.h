/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_HISTORY_H
#define CHECK_HISTORY_H

/* What the clients saw: one record for each operation that a workload sent. Workloads append,
 * checkers read, the report draws and saves it. It holds nothing that a client could not know, so
 * the same checkers judge the simulator, live clusters and foreign programs.
 *
 * An item is named by (table, key), both numbers. Its value is a number too: a write to a register,
 * list or set writes one that no other write of the same table writes ("unique"), and never 0, so
 * that a value read names its writer. Absence is 0.
 *
 * All times are of the harness's CLOCK_MONOTONIC. `OK` and `FAILED` are certain, `INFO` is not: a
 * request that timed out may have been carried out, or may be at any later moment, or never. To
 * call it failed is the classic mistake, for then a later read of it looks like a phantom.
 *
 * This directory opens no file and knows no JSON. Whoever saves histories owns the codec: he writes
 * every field under its own name and the names below, one operation a line in the order of the
 * array, and history_append()s them again. Indices into `ops` name operations everywhere, and so
 * survive that. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

/* The operation, its text, and whether it changes an item. What it writes and what it observes:
 *
 *   PUT     puts `written`;                                observes the value it replaced (ALL_OLD)
 *   PUT_IF  puts `written` if the value is `expected`;     observes the value it replaced, or, when
 *           (0: if the item is absent)                     FAILED by CONDITION, the one it found
 *   ADD     adds `written`, mostly 1;                      observes the sum (UPDATED_NEW)
 *   APPEND  appends `written` to the list;                 observes nothing, or the list (ALL_NEW)
 *   INSERT  puts an item of its own: the element `written` of the set `key`; observes nothing
 *   READ    one item;                                      observes a value, a list or absence
 *   SCAN    all elements of the set `key` (Query, Scan);   observes a list, in any order
 *   DELETE  the item;                                      observes the value it removed (ALL_OLD)
 */
#define HISTORY_KINDS(X)                                                                           \
    X(PUT, "put", true)                                                                            \
    X(PUT_IF, "put_if", true)                                                                      \
    X(ADD, "add", true)                                                                            \
    X(APPEND, "append", true)                                                                      \
    X(INSERT, "insert", true)                                                                      \
    X(READ, "read", false)                                                                         \
    X(SCAN, "scan", false)                                                                         \
    X(DELETE, "delete", true)

/* OK: answered, done. FAILED: certainly not done, and never will be. INFO: nobody knows. */
#define HISTORY_OUTCOMES(X)                                                                        \
    X(OK, "ok")                                                                                    \
    X(FAILED, "failed")                                                                            \
    X(INFO, "info")

/* Why an operation is not OK. CONDITION is an answer like any other, for it tells what was there.
 *
 *   CONDITION    ConditionalCheckFailedException                                  FAILED
 *   CONFLICT     ReplicatedWriteConflictException                                 FAILED
 *   THROTTLED    ProvisionedThroughputExceededException, ThrottlingException ...  FAILED
 *   REFUSED      no connection was made, or nothing of the request was sent       FAILED
 *   REJECTED     any other answer of status 4xx                                   FAILED
 *   SERVER       any answer of status 5xx                                         INFO, reads
 * FAILED DISCONNECTED the connection broke after something was sent                    INFO, reads
 * FAILED TIMEOUT      no answer in time                                                INFO, reads
 * FAILED UNFINISHED   the run ended first                                              INFO, reads
 * FAILED
 */
#define HISTORY_REASONS(X)                                                                         \
    X(NONE, "none")                                                                                \
    X(CONDITION, "condition")                                                                      \
    X(CONFLICT, "conflict")                                                                        \
    X(THROTTLED, "throttled")                                                                      \
    X(REFUSED, "refused")                                                                          \
    X(REJECTED, "rejected")                                                                        \
    X(SERVER, "server")                                                                            \
    X(DISCONNECTED, "disconnected")                                                                \
    X(TIMEOUT, "timeout")                                                                          \
    X(UNFINISHED, "unfinished")

#define HISTORY_OBSERVATIONS(X)                                                                    \
    X(NOTHING, "nothing") /* it did not ask, or got no answer */                                   \
    X(ABSENT, "absent")   /* there was no item */                                                  \
    X(VALUE, "value")     /* history_op.value */                                                   \
    X(LIST, "list")       /* history_list() */

enum { HISTORY_REGIONS_MAX = 64 };

#define HISTORY_ENUMERATOR_KIND(name, text, writes) HISTORY_##name,
#define HISTORY_ENUMERATOR(name, text) HISTORY_##name,
#define HISTORY_ENUMERATOR_REASON(name, text) HISTORY_REASON_##name,
#define HISTORY_ENUMERATOR_SAW(name, text) HISTORY_SAW_##name,
enum history_kind { HISTORY_KINDS(HISTORY_ENUMERATOR_KIND) HISTORY_KIND_COUNT };
enum history_outcome { HISTORY_OUTCOMES(HISTORY_ENUMERATOR) HISTORY_OUTCOME_COUNT };
enum history_reason { HISTORY_REASONS(HISTORY_ENUMERATOR_REASON) HISTORY_REASON_COUNT };
enum history_saw { HISTORY_OBSERVATIONS(HISTORY_ENUMERATOR_SAW) HISTORY_SAW_COUNT };

struct history_op {
    /* intended_ns: when an open-loop workload meant to send it, at most invoke_ns; a closed loop
     * repeats invoke_ns. return_ns: the answer, or the moment the client gave up; at least
     * invoke_ns. Checkers never take the return of an INFO for an end. */
    uint64_t intended_ns, invoke_ns, return_ns;
    uint64_t written;    /* see the kinds; 0 for those that write nothing, and for DELETE */
    uint64_t expected;   /* PUT_IF */
    uint64_t value;      /* saw VALUE: never 0, but for a sum */
    uint64_t list_at;    /* saw LIST: the place in history.values; set by history_append */
    uint32_t list_count; /* saw LIST, else 0 */
    uint32_t key;
    uint32_t client; /* number, over all regions; sends one operation at a time */
    uint32_t bytes;  /* of the item as it was sent or came back; 0: unknown */
    uint16_t table;
    uint8_t region; /* whose endpoint was asked: its place in the scenario's list */
    uint8_t kind, outcome, reason, saw; /* the enums above */
    bool strong;                        /* a read that asked for consistency */
    bool final;                         /* part of the last look, after healing and settling */
};

struct history {
    struct history_op *ops; /* in order of appending, which is of no meaning */
    uint64_t *values;       /* of all lists */
    uint64_t value_count, value_cap, value_max;
    uint32_t count, cap, count_max;
};

#define HISTORY_FULL UINT32_MAX

void history_init(struct history *history, uint32_t count_max, uint64_t value_max);
void history_deinit(struct history *history);
/* Adds one operation that is over (or UNFINISHED); list holds op->list_count values and is copied.
 * Returns its index, or HISTORY_FULL and adds nothing. Checks nothing else. */
uint32_t history_append(struct history *history, const struct history_op *op, const uint64_t *list);
/* For what was read from a file: NULL, or what no workload could have recorded, which would make a
 * checker's answer worthless. */
const char *history_op_fault(const struct history_op *op);

static inline const uint64_t *history_list(const struct history *history,
                                           const struct history_op *op)
{
    return history->value_count == 0 ? history->values : history->values + op->list_at;
}

/* The texts of the tables above, and back; false if there is no such text. */
const char *history_kind_text(enum history_kind kind);
const char *history_outcome_text(enum history_outcome outcome);
const char *history_reason_text(enum history_reason reason);
const char *history_saw_text(enum history_saw saw);
bool history_kind_find(struct bytes text, uint8_t *ret);
bool history_outcome_find(struct bytes text, uint8_t *ret);
bool history_reason_find(struct bytes text, uint8_t *ret);
bool history_saw_find(struct bytes text, uint8_t *ret);

bool history_kind_writes(enum history_kind kind);
/* The service answered: done, or refused by its condition. What counts as success for RTO. */
static inline bool history_answered(const struct history_op *op)
{
    return op->outcome == HISTORY_OK || op->reason == HISTORY_REASON_CONDITION;
}
/* When it was over for certain: never, for INFO. */
static inline uint64_t history_end(const struct history_op *op)
{
    return op->outcome == HISTORY_INFO ? UINT64_MAX : op->return_ns;
}

/* One line for people, without the newline: "us-east-1 c7 put 41 saw 40, 1.200000 to 1.204000 s".
 * Times are seconds from origin_ns; regions may be NULL, else holds each region's name. */
void history_print(const struct history *history, uint32_t index, const char *const *regions,
                   uint64_t origin_ns, struct buf *to);

#endif
