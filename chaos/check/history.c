/* SPDX-License-Identifier: Apache-2.0 */
/* Two arrays that grow, and the names of things. */

#include "chaos/check/history.h"

#include <inttypes.h>
#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

void history_init(struct history *history, uint32_t count_max, uint64_t value_max)
{
    check(count_max < HISTORY_FULL);
    *history = (struct history){.count_max = count_max, .value_max = value_max};
}

void history_deinit(struct history *history)
{
    free(history->ops);
    free(history->values);
    *history = (struct history){0};
}

static uint64_t grown(uint64_t cap, uint64_t need, uint64_t max)
{
    uint64_t larger = cap ? cap * 2 : 256;
    if (larger < need)
        larger = need;
    return larger < max ? larger : max;
}

uint32_t history_append(struct history *history, const struct history_op *op, const uint64_t *list)
{
    if (history->count == history->count_max ||
        op->list_count > history->value_max - history->value_count)
        return HISTORY_FULL;
    if (history->count == history->cap) {
        history->cap = (uint32_t)grown(history->cap, history->count + 1, history->count_max);
        history->ops = xrealloc(history->ops, history->cap * sizeof(*history->ops));
    }
    uint64_t need = history->value_count + op->list_count;
    if (need > history->value_cap) {
        history->value_cap = grown(history->value_cap, need, history->value_max);
        history->values = xrealloc(history->values, history->value_cap * sizeof(*history->values));
    }
    struct history_op *copy = &history->ops[history->count];
    *copy = *op;
    copy->list_at = history->value_count;
    if (op->list_count)
        memcpy(history->values + history->value_count, list, op->list_count * sizeof(*list));
    history->value_count = need;
    return history->count++;
}

static const char *reason_fault(const struct history_op *op)
{
    switch ((enum history_reason)op->reason) {
    case HISTORY_REASON_NONE:
        return op->outcome == HISTORY_OK ? NULL : "an operation that is not ok, without a reason";
    case HISTORY_REASON_CONDITION:
        if (op->kind != HISTORY_PUT_IF)
            return "a condition failed that was not set";
        break;
    case HISTORY_REASON_CONFLICT:
    case HISTORY_REASON_THROTTLED:
    case HISTORY_REASON_REFUSED:
    case HISTORY_REASON_REJECTED:
        break;
    case HISTORY_REASON_SERVER:
    case HISTORY_REASON_DISCONNECTED:
    case HISTORY_REASON_TIMEOUT:
    case HISTORY_REASON_UNFINISHED:
        if (history_kind_writes((enum history_kind)op->kind) && op->outcome != HISTORY_INFO)
            return "a write of unknown fate whose outcome is not info";
        return op->outcome == HISTORY_OK ? "an operation that is ok, with a reason" : NULL;
    case HISTORY_REASON_COUNT:
        unreachable();
    }
    return op->outcome == HISTORY_FAILED ? NULL : "an answer that is certain, and not failed";
}

static const char *saw_fault(const struct history_op *op)
{
    if (op->saw != HISTORY_SAW_NOTHING && !history_answered(op))
        return "an operation without an answer that observed something";
    if (op->saw != HISTORY_SAW_LIST && op->list_count)
        return "a list that was not observed";
    if (op->saw == HISTORY_SAW_LIST && op->kind != HISTORY_READ && op->kind != HISTORY_SCAN &&
        op->kind != HISTORY_APPEND)
        return "a list where there is none";
    if (op->saw == HISTORY_SAW_VALUE && (op->kind == HISTORY_SCAN || op->kind == HISTORY_APPEND))
        return "a value where there is a list";
    return NULL;
}

const char *history_op_fault(const struct history_op *op)
{
    if (op->kind >= HISTORY_KIND_COUNT || op->outcome >= HISTORY_OUTCOME_COUNT ||
        op->reason >= HISTORY_REASON_COUNT || op->saw >= HISTORY_SAW_COUNT)
        return "a name that is not known";
    if (op->region >= HISTORY_REGIONS_MAX)
        return "a region beyond the last";
    if (op->intended_ns > op->invoke_ns || op->invoke_ns > op->return_ns)
        return "times that run backwards";
    if (op->return_ns >= (uint64_t)INT64_MAX)
        return "a time beyond all clocks";
    bool names = op->kind == HISTORY_PUT || op->kind == HISTORY_PUT_IF ||
                 op->kind == HISTORY_APPEND || op->kind == HISTORY_INSERT;
    if (names && op->written == 0)
        return "a write without a value";
    if (!names && op->kind != HISTORY_ADD && op->written != 0)
        return "a written value where nothing is written";
    if (op->expected != 0 && op->kind != HISTORY_PUT_IF)
        return "an expected value without a condition";
    const char *fault = reason_fault(op);
    return fault ? fault : saw_fault(op);
}

/* ---- Names ---- */

#define TEXT_KIND(name, text, writes) text,
#define TEXT(name, text) text,
static const char *const kind_texts[] = {HISTORY_KINDS(TEXT_KIND)};
static const char *const outcome_texts[] = {HISTORY_OUTCOMES(TEXT)};
static const char *const reason_texts[] = {HISTORY_REASONS(TEXT)};
static const char *const saw_texts[] = {HISTORY_OBSERVATIONS(TEXT)};

static bool find(struct bytes text, const char *const *texts, uint8_t count, uint8_t *ret)
{
    for (uint8_t i = 0; i < count; i++)
        if (bytes_is(text, texts[i])) {
            *ret = i;
            return true;
        }
    return false;
}

const char *history_kind_text(enum history_kind kind)
{
    check(kind < HISTORY_KIND_COUNT);
    return kind_texts[kind];
}

const char *history_outcome_text(enum history_outcome outcome)
{
    check(outcome < HISTORY_OUTCOME_COUNT);
    return outcome_texts[outcome];
}

const char *history_reason_text(enum history_reason reason)
{
    check(reason < HISTORY_REASON_COUNT);
    return reason_texts[reason];
}

const char *history_saw_text(enum history_saw saw)
{
    check(saw < HISTORY_SAW_COUNT);
    return saw_texts[saw];
}

bool history_kind_find(struct bytes text, uint8_t *ret)
{
    return find(text, kind_texts, HISTORY_KIND_COUNT, ret);
}

bool history_outcome_find(struct bytes text, uint8_t *ret)
{
    return find(text, outcome_texts, HISTORY_OUTCOME_COUNT, ret);
}

bool history_reason_find(struct bytes text, uint8_t *ret)
{
    return find(text, reason_texts, HISTORY_REASON_COUNT, ret);
}

bool history_saw_find(struct bytes text, uint8_t *ret)
{
    return find(text, saw_texts, HISTORY_SAW_COUNT, ret);
}

bool history_kind_writes(enum history_kind kind)
{
#define WRITES(name, text, writes) writes,
    static const bool answers[] = {HISTORY_KINDS(WRITES)};
    check(kind < HISTORY_KIND_COUNT);
    return answers[kind];
}

/* ---- For people ---- */

static void print_seconds(uint64_t at_ns, uint64_t origin_ns, struct buf *to)
{
    bool before = at_ns < origin_ns;
    uint64_t us = (before ? origin_ns - at_ns : at_ns - origin_ns) / 1000;
    buf_printf(to, "%s%" PRIu64 ".%06" PRIu64, before ? "-" : "", us / 1000000, us % 1000000);
}

static void print_action(const struct history_op *op, struct buf *to)
{
    buf_append_text(to, history_kind_text((enum history_kind)op->kind));
    if (op->kind == HISTORY_READ && !op->strong)
        buf_append_text(to, " (weak)");
    if (op->written)
        buf_printf(to, " %" PRIu64, op->written);
    if (op->kind == HISTORY_PUT_IF && op->expected)
        buf_printf(to, " if %" PRIu64, op->expected);
    else if (op->kind == HISTORY_PUT_IF)
        buf_append_text(to, " if absent");
}

static void print_seen(const struct history *history, const struct history_op *op, struct buf *to)
{
    enum { SHOWN_MAX = 16 };
    switch ((enum history_saw)op->saw) {
    case HISTORY_SAW_NOTHING:
        return;
    case HISTORY_SAW_ABSENT:
        buf_append_text(to, " saw nothing there");
        return;
    case HISTORY_SAW_VALUE:
        buf_printf(to, " saw %" PRIu64, op->value);
        return;
    case HISTORY_SAW_LIST: {
        const uint64_t *list = history_list(history, op);
        uint32_t skipped = op->list_count > SHOWN_MAX ? op->list_count - SHOWN_MAX : 0;
        buf_append_text(to, skipped ? " saw [..." : " saw [");
        for (uint32_t i = skipped; i < op->list_count; i++)
            buf_printf(to, i > 0 ? " %" PRIu64 : "%" PRIu64, list[i]);
        buf_append_text(to, "]");
        return;
    }
    case HISTORY_SAW_COUNT:
        break;
    }
    unreachable();
}

void history_print(const struct history *history, uint32_t index, const char *const *regions,
                   uint64_t origin_ns, struct buf *to)
{
    check(index < history->count);
    const struct history_op *op = &history->ops[index];
    if (regions)
        buf_printf(to, "%s c%" PRIu32 " ", regions[op->region], op->client);
    else
        buf_printf(to, "region %u c%" PRIu32 " ", op->region, op->client);
    print_action(op, to);
    print_seen(history, op, to);
    if (op->outcome != HISTORY_OK)
        buf_printf(to, ": %s, %s", history_outcome_text((enum history_outcome)op->outcome),
                   history_reason_text((enum history_reason)op->reason));
    buf_append_text(to, ", ");
    print_seconds(op->invoke_ns, origin_ns, to);
    buf_append_text(to, " to ");
    print_seconds(op->return_ns, origin_ns, to);
    buf_append_text(to, " s");
}
