/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_JUDGE_H
#define RUN_JUDGE_H

/* The parts of judge.c and judge_sentence.c that they share. */

#include <stdbool.h>

#include "chaos/run/outcome.h"

/* Whether a fault may have hit nothing: one that was drawn may come in another's way. */
bool judge_excuses(const struct outcome *outcome, const struct outcome_fault *fault);
/* One sentence, in the outcome's arena: what is worst, then what is known. */
const char *judge_sentence(struct outcome *outcome);

#endif
