/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the worst that was found, and its operations in the order in which people read them. Of a
 * run that is wrong in a thousand places, the first ten say what kind of wrong it is. */

#include "chaos/check/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/check/history.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

void verdict_init(struct verdict *verdict)
{
    *verdict = (struct verdict){.kind = VERDICT_OK};
}

void verdict_deinit(struct verdict *verdict)
{
    buf_deinit(&verdict->text);
    for (uint32_t i = 0; i < verdict->more_count; i++)
        buf_deinit(&verdict->more[i].text);
    free(verdict->more);
    verdict->more = NULL;
    verdict->more_count = 0;
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

enum { TEXT_MAX = 512 };

static void say(struct buf *to, const char *format, va_list arguments)
{
    char text[TEXT_MAX];
    int len = vsnprintf(text, sizeof(text), format, arguments);
    check(len >= 0);
    buf_reset(to);
    buf_append_text(to, text);
}

/* What says the same of the same item as another finding shows nobody anything new. */
static bool is_told(const struct verdict *verdict, struct bytes text)
{
    if (bytes_equal(buf_view(&verdict->text), text))
        return true;
    for (uint32_t i = 0; i < verdict->more_count; i++)
        if (bytes_equal(buf_view(&verdict->more[i].text), text))
            return true;
    return false;
}

static bool keep_beside(struct verdict *verdict, const char *format, va_list arguments)
{
    if (verdict->more_count == VERDICT_MORE_MAX) {
        verdict->untold++;
        return false;
    }
    struct buf text = {0};
    say(&text, format, arguments);
    if (is_told(verdict, buf_view(&text))) {
        verdict->untold++;
        buf_deinit(&text);
        return false;
    }
    if (verdict->more == NULL)
        verdict->more = xcalloc(VERDICT_MORE_MAX, sizeof(*verdict->more));
    verdict->more[verdict->more_count++].text = text;
    return true;
}

bool verdict_worsen(struct verdict *verdict, enum verdict_kind kind, const char *format, ...)
{
    bool worse = kind > verdict->kind, kept = worse;
    if (!worse && kind != VERDICT_WRONG)
        return false;
    va_list arguments;
    va_start(arguments, format);
    if (worse) {
        verdict->kind = kind;
        verdict->op_count = 0;
        say(&verdict->text, format, arguments);
    } else {
        kept = keep_beside(verdict, format, arguments);
    }
    va_end(arguments);
    return kept;
}

void verdict_add_op(struct verdict *verdict, uint32_t op)
{
    struct verdict_finding *last =
        verdict->more_count == 0 ? NULL : &verdict->more[verdict->more_count - 1];
    uint32_t *ops = last == NULL ? verdict->ops : last->ops;
    uint32_t *count = last == NULL ? &verdict->op_count : &last->op_count;
    for (uint32_t i = 0; i < *count; i++)
        if (ops[i] == op)
            return;
    if (*count < VERDICT_OPS_MAX)
        ops[(*count)++] = op;
}

/* By their beginnings. They are few: an insertion sort, and it is stable. */
static void order(uint32_t *ops, uint32_t count, const struct history *history)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t op = ops[i], j = i;
        for (; j > 0 && history->ops[ops[j - 1]].invoke_ns > history->ops[op].invoke_ns; j--)
            ops[j] = ops[j - 1];
        ops[j] = op;
    }
}

void verdict_conclude(struct verdict *verdict, const struct history *history, const char *format,
                      ...)
{
    order(verdict->ops, verdict->op_count, history);
    for (uint32_t i = 0; i < verdict->more_count; i++)
        order(verdict->more[i].ops, verdict->more[i].op_count, history);
    if (verdict->kind != VERDICT_OK)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(&verdict->text, format, arguments);
    va_end(arguments);
}
