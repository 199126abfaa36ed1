/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HISTORY_MAKE_H
#define TESTS_HISTORY_MAKE_H

/* Short ways to write histories down, and to look at what a checker said of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"
#include "conflict/base/rng.h"

enum { NO_ANSWER = 0 }; /* as a return time: the outcome is unknown */

static inline struct history new_history(void)
{
    struct history history;
    history_init(&history, 10000000, 100000000);
    return history;
}

/* A read or an acknowledged write of (0, key) in region 0; return_ns 0 makes it INFO. */
static inline struct history_op make_op(enum history_kind kind, uint32_t key, uint64_t invoke_ns,
                                        uint64_t return_ns)
{
    struct history_op op = {.kind = (uint8_t)kind,
                            .key = key,
                            .intended_ns = invoke_ns,
                            .invoke_ns = invoke_ns,
                            .return_ns = return_ns,
                            .strong = true};
    if (return_ns == NO_ANSWER) {
        op.return_ns = invoke_ns + 1000;
        op.outcome = history_kind_writes(kind) ? HISTORY_INFO : HISTORY_FAILED;
        op.reason = HISTORY_REASON_TIMEOUT;
    }
    return op;
}

static inline void saw(struct history_op *op, uint64_t value)
{
    op->saw = value ? HISTORY_SAW_VALUE : HISTORY_SAW_ABSENT;
    op->value = value;
}

static inline uint32_t add(struct history *history, const struct history_op *op)
{
    assert_null(history_op_fault(op));
    uint32_t index = history_append(history, op, NULL);
    assert_int_not_equal(index, HISTORY_FULL);
    return index;
}

/* PUT of `written` that was told `old`, by region. */
static inline uint32_t put(struct history *history, uint8_t region, uint32_t key,
                           uint64_t invoke_ns, uint64_t return_ns, uint64_t written, uint64_t old)
{
    struct history_op op = make_op(HISTORY_PUT, key, invoke_ns, return_ns);
    op.region = region;
    op.written = written;
    if (return_ns != NO_ANSWER)
        saw(&op, old);
    return add(history, &op);
}

static inline uint32_t get(struct history *history, uint8_t region, uint32_t key,
                           uint64_t invoke_ns, uint64_t return_ns, uint64_t value)
{
    struct history_op op = make_op(HISTORY_READ, key, invoke_ns, return_ns);
    op.region = region;
    saw(&op, value);
    return add(history, &op);
}

static inline uint32_t last_look(struct history *history, uint8_t region, uint32_t key,
                                 uint64_t invoke_ns, uint64_t value)
{
    uint32_t index = get(history, region, key, invoke_ns, invoke_ns + 1, value);
    history->ops[index].final = true;
    return index;
}

static inline uint32_t list(struct history *history, enum history_kind kind, uint32_t key,
                            uint64_t invoke_ns, uint64_t return_ns, const uint64_t *values,
                            uint32_t count)
{
    struct history_op op = make_op(kind, key, invoke_ns, return_ns);
    op.saw = HISTORY_SAW_LIST;
    op.list_count = count;
    assert_null(history_op_fault(&op));
    return history_append(history, &op, values);
}

/* The verdict's text, for a failing test to show. */
static inline const char *said(struct verdict *verdict)
{
    static char text[600];
    size_t len = verdict->text.len < sizeof(text) ? verdict->text.len : sizeof(text) - 1;
    if (len)
        memcpy(text, verdict->text.at, len);
    text[len] = '\0';
    return text;
}

static inline void expect_verdict(struct verdict *verdict, enum verdict_kind kind, const char *part)
{
    if (verdict->kind != kind || !strstr(said(verdict), part))
        fail_msg("expected %s \"%s\", got %s \"%s\"", verdict_text(kind), part,
                 verdict_text(verdict->kind), said(verdict));
}

static inline bool names_op(const struct verdict *verdict, uint32_t op)
{
    for (uint32_t i = 0; i < verdict->op_count; i++)
        if (verdict->ops[i] == op)
            return true;
    return false;
}

#endif
