/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_COMMAND_H
#define LIVE_COMMAND_H

/* The commands that ask a running cluster for something, over its control API. */

#include <stdbool.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command_options {
    const char
        *control; /* "host:port" or "http://host:port"; NULL: TIDEMARK_CONTROL, or the default */
    bool json;
    bool discard_damaged_store; /* region restart only */
};

/* words[0] is the command. Returns the exit code; messages go to standard error. */
int command_run(const struct command_options *options, const char *const *words, int word_count);

#endif
