/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_VERDICT_H
#define CHECK_VERDICT_H

/* What a checker says of a history. OK and WRONG are proofs; UNKNOWN means that the budget ran out
 * or that the history does not hold what the checker needs, and fails a run as "unknown", not as
 * "wrong". A WRONG names the fewest operations that show it, for people to follow by hand. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

enum verdict_kind { VERDICT_OK, VERDICT_UNKNOWN, VERDICT_WRONG }; /* the worse, the greater */

enum { VERDICT_FIGURES_MAX = 48, VERDICT_OPS_MAX = 64, VERDICT_MORE_MAX = 9 };

/* Names are constants such as "lost_count" or "stable_p99_ns"; the unit comes last. UINT64_MAX is
 * for "never". */
struct verdict_figure {
    const char *name;
    uint64_t value;
};

/* One more thing that is wrong, as the verdict's own text and operations say the first. */
struct verdict_finding {
    struct buf text;
    uint32_t ops[VERDICT_OPS_MAX];
    uint32_t op_count;
};

struct verdict {
    enum verdict_kind kind;
    struct buf text; /* one sentence, no newline; also when OK */
    /* WRONG: the counterexample, indices of history.ops by invoke_ns. The first VERDICT_OPS_MAX. */
    uint32_t ops[VERDICT_OPS_MAX];
    uint32_t op_count;
    struct verdict_finding *more; /* WRONG: what was found after the first, each text once */
    uint32_t more_count;          /* at most VERDICT_MORE_MAX */
    uint64_t untold;              /* findings that are not kept: repeated, or too many */
    struct verdict_figure figures[VERDICT_FIGURES_MAX];
    uint32_t figure_count;
};

void verdict_init(struct verdict *verdict);
void verdict_deinit(struct verdict *verdict);
const char *verdict_text(enum verdict_kind kind); /* "ok", "unknown", "wrong" */

/* The figure's value; UINT64_MAX if there is none of that name. */
uint64_t verdict_get(const struct verdict *verdict, const char *name);

/* For checkers. They initialise the verdict that they are given. */
void verdict_figure(struct verdict *verdict, const char *name, uint64_t value);
/* Makes it worse and gives the reason. If it is as bad already, the first reason stays; what else
 * is WRONG is kept beside it, up to VERDICT_MORE_MAX. Returns whether the caller's reason was kept,
 * so that it may name its operations. */
bool verdict_worsen(struct verdict *verdict, enum verdict_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* To the reason kept last; once for each operation, and at most VERDICT_OPS_MAX: others are passed
 * over. */
void verdict_add_op(struct verdict *verdict, uint32_t op);
/* The sentence of a verdict that is OK to the end; puts the operations in order. */
struct history;
void verdict_conclude(struct verdict *verdict, const struct history *history, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

#endif
