/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the worst that was found, and its operations in the order in which people read them. */

#include "chaos/check/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chaos/check/history.h"
#include "conflict/base/check.h"

void verdict_init(struct verdict *verdict)
{
    *verdict = (struct verdict){.kind = VERDICT_OK};
}

void verdict_deinit(struct verdict *verdict)
{
    buf_deinit(&verdict->text);
}

const char *verdict_text(enum verdict_kind kind)
{
    switch (kind) {
    case VERDICT_OK:
        return "ok";
    case VERDICT_UNKNOWN:
        return "unknown";
    case VERDICT_WRONG:
        return "wrong";
    }
    unreachable();
}

uint64_t verdict_get(const struct verdict *verdict, const char *name)
{
    for (uint32_t i = 0; i < verdict->figure_count; i++)
        if (strcmp(verdict->figures[i].name, name) == 0)
            return verdict->figures[i].value;
    return UINT64_MAX;
}

void verdict_figure(struct verdict *verdict, const char *name, uint64_t value)
{
    check(verdict->figure_count < VERDICT_FIGURES_MAX);
    verdict->figures[verdict->figure_count++] = (struct verdict_figure){name, value};
}

static void say(struct verdict *verdict, const char *format, va_list arguments)
{
    char text[512];
    int len = vsnprintf(text, sizeof(text), format, arguments);
    check(len >= 0);
    buf_reset(&verdict->text);
    buf_append_text(&verdict->text, text);
}

bool verdict_worsen(struct verdict *verdict, enum verdict_kind kind, const char *format, ...)
{
    if (kind <= verdict->kind)
        return false;
    verdict->kind = kind;
    verdict->op_count = 0;
    va_list arguments;
    va_start(arguments, format);
    say(verdict, format, arguments);
    va_end(arguments);
    return true;
}

void verdict_add_op(struct verdict *verdict, uint32_t op)
{
    for (uint32_t i = 0; i < verdict->op_count; i++)
        if (verdict->ops[i] == op)
            return;
    if (verdict->op_count < VERDICT_OPS_MAX)
        verdict->ops[verdict->op_count++] = op;
}

void verdict_conclude(struct verdict *verdict, const struct history *history, const char *format,
                      ...)
{
    for (uint32_t i = 1; i < verdict->op_count; i++) { /* few: insertion sort, and it is stable */
        uint32_t op = verdict->ops[i], j = i;
        for (; j > 0 && history->ops[verdict->ops[j - 1]].invoke_ns > history->ops[op].invoke_ns;
             j--)
            verdict->ops[j] = verdict->ops[j - 1];
        verdict->ops[j] = op;
    }
    if (verdict->kind != VERDICT_OK)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(verdict, format, arguments);
    va_end(arguments);
}
