/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_PROCESS_H
#define REGION_PROCESS_H

/* The programs tidemark-region and tidemark-witness: one Region's process from its command line to
 * its end. Prints `ready` on standard output once it serves, logs to standard error, and leaves on
 * SIGTERM or SIGINT when everything accepted is answered and written. */

#include <stdbool.h>

/* Returns the exit code. */
int process_run(int argc, char **argv, bool witness);

#endif
