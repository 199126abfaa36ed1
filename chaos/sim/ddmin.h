/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DDMIN_H
#define SIM_DDMIN_H

/* Which of up to 64 things are needed for something to fail: delta debugging (Zeller and
 * Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002). Pure. */

#include <stdbool.h>
#include <stdint.h>

/* fails() of a set of bits; `set` itself is known to fail. Returns a subset that fails and of which
 * no single one can be left out, by the last answers at least. Stops early, with what it has, after
 * `tries_max` questions. */
uint64_t ddmin(uint64_t set, uint32_t tries_max, bool (*fails)(void *context, uint64_t subset),
               void *context);

#endif
