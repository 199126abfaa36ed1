/* SPDX-License-Identifier: Apache-2.0 */
/* The one way for a process to stop when it finds itself in a state that must not be: say where,
 * then abort, so that a core dump or a supervisor shows it. Recovery is a restart. */

#include "conflict/base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
    abort();
}
