/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PATHS_H
#define LIVE_PATHS_H

/* Where our programs lie, and directories for what they write. */

#include <stdbool.h>
#include <sys/types.h>

/* Of the running program, with a slash at its end; the others lie beside it. The caller frees it.
 */
char *paths_programs(void);
/* Makes the directory and those above it that are missing, with that mode. False: errno says why.
 */
bool paths_make(const char *path, mode_t mode);

#endif
