/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_VALUE_H
#define SCENARIO_VALUE_H

/* The literals of scenario files, from text to numbers and exactly: no locale, no rounding of what
 * can be told exactly, no silent overflow. Each function takes the whole text or nothing. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

/* A number of at most nine places after the point: 12, 0.25. */
bool value_number(struct bytes text, double *ret);
bool value_whole(struct bytes text, uint64_t *ret);
bool value_signed(struct bytes text, int64_t *ret);
bool value_bool(struct bytes text, bool *ret); /* true, false */
/* Nanoseconds: 250ms, 1m30s, 1.5h, 0, PT1M30S, P1D. */
bool value_time(struct bytes text, uint64_t *ret);
/* The same with a sign. */
bool value_offset(struct bytes text, int64_t *ret);
/* 512, 4KiB, 10MB, 1.5GiB. */
bool value_bytes(struct bytes text, uint64_t *ret);
/* Bytes a second: 10MB/s, 512KiB/s, 8mbit/s. */
bool value_bandwidth(struct bytes text, uint64_t *ret);
/* Times a second: 400/s, 24000/min, or a plain number. */
bool value_frequency(struct bytes text, double *ret);
/* 0.5 or 50%: at most 1. */
bool value_share(struct bytes text, double *ret);
/* 50 or 50%: a share, too. */
bool value_percent(struct bytes text, double *ret);

#endif
