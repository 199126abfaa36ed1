/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_FACTS_H
#define REPORT_FACTS_H

/* What all reports say in the same words. */

#include "chaos/run/outcome.h"

/* "pass", "wrong", "harness", "unknown", "slow" */
const char *facts_exit(enum outcome_exit exit);
/* The name of a Region; "" for SCENARIO_REGION_NONE. */
const char *facts_region(const struct outcome *outcome, uint8_t region);
/* The first fault that failed the run as it did nothing; NULL. */
const struct outcome_fault *facts_dud(const struct outcome *outcome);
/* What to type to do it again, without a newline. */
void facts_command(const struct outcome *outcome, struct buf *to);
/* history_print with the outcome's Regions and origin. */
void facts_operation(const struct outcome *outcome, uint32_t op, struct buf *to);
/* "rpo us-east-1 <=5s: 7.1 s"; an expectation nobody could measure says so. */
void facts_expect(const struct outcome_expect *expect, struct buf *to);
const char *facts_loss(enum rpo_class class); /* "unreplicated", "lww", "other" */
/* By enum outcome_loss_why: "wiped", "discarded", ...; ends with NULL. */
extern const char *const facts_disk_losses[];
struct bytes facts_verdict(const struct outcome_check *check);

#endif
