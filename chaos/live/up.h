/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_UP_H
#define LIVE_UP_H

/* `tidemark up`: one cluster in the foreground, from start to the signal that ends it. */

#include "chaos/live/config.h"

/* Returns the exit code. Prints the first screen and `ready`, or the first screen as one line of
 * JSON. */
int up_run(const struct config *config, bool json);

#endif
