/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_OPTION_H
#define LIVE_OPTION_H

/* The options of a command as a table: argp knows their names and helps, a slot says where each
 * goes. Numbers are read in one way only, and refused with the range that they must lie in. */

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { OPTION_WORDS_MAX = 64 };

enum option_kind {
    OPTION_TEXT,   /* const char *, borrowed of argv */
    OPTION_TRUTH,  /* bool: it was given */
    OPTION_NUMBER, /* uint64_t */
    OPTION_CALL
};

struct option_slot {
    int key; /* of struct argp_option */
    enum option_kind kind;
    size_t offset; /* into the command's arguments */
    uint64_t low, high;
    void (*take)(void *arguments, char *value, struct argp_state *state);
};

struct option_words { /* what is no option */
    const char *at[OPTION_WORDS_MAX];
    int count;
};

struct option_command {
    const char *name; /* "tidemark sim" */
    const struct argp_option *options;
    const struct option_slot *slots;
    size_t slot_count;
    const char *words; /* for help, what it takes beside options; NULL: nothing */
    const char *doc;
};

/* Fills arguments and words, or ends the process: after help, or with EXIT_USAGE. */
void option_parse(const struct option_command *command, int argc, char **argv, void *arguments,
                  struct option_words *ret_words);
void option_help(const struct option_command *command, FILE *to);
/* A whole number of digits only, from low to high. */
bool option_number(const char *text, uint64_t low, uint64_t high, uint64_t *ret);

#endif
