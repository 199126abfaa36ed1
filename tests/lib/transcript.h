/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRANSCRIPT_H
#define TESTS_TRANSCRIPT_H

/* A test as a file: commands, each followed by all that it made happen. The file is run command by
 * command and must come out as it stands; with REWRITE=1 in the environment it is written anew, and
 * the difference is reviewed like code.
 *
 *     # a comment
 *     command and its arguments
 *     ----
 *     what came out
 *
 *     next command
 *     ...
 */

#include "conflict/base/bytes.h"

/* Runs one command line and appends what it made happen, in lines. */
typedef void transcript_command(void *context, char *line, struct buf *out);

/* Fails the running cmocka test at the first command that comes out otherwise. */
void transcript_run(const char *path, transcript_command *command, void *context);

#endif
