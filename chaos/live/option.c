/* SPDX-License-Identifier: Apache-2.0 */
/* argp takes the words apart, the slots say what becomes of them. */

#include "chaos/live/option.h"

#include <string.h>

#include "chaos/live/command.h"
#include "chaos/live/config.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct parsing {
    const struct option_command *command;
    void *arguments;
    struct option_words *words;
};

bool option_number(const char *text, uint64_t low, uint64_t high, uint64_t *ret)
{
    uint64_t value;
    check(low <= high);
    if (!parse_whole(text, high, &value) || value < low)
        return false;
    *ret = value;
    return true;
}

static const char *name_of(const struct option_command *command, int key)
{
    const struct argp_option *option = command->options;
    while (option->key != key)
        option++;
    return option->name;
}

static void take_number(const struct parsing *parsing, const struct option_slot *slot,
                        const char *value, struct argp_state *state)
{
    uint64_t number;
    if (option_number(value, slot->low, slot->high, &number))
        memcpy((char *)parsing->arguments + slot->offset, &number, sizeof(number));
    else
        argp_error(state, "--%s: expected a whole number from %llu to %llu, came '%s'",
                   name_of(parsing->command, slot->key), (unsigned long long)slot->low,
                   (unsigned long long)slot->high, value);
}

static void take(const struct parsing *parsing, const struct option_slot *slot, char *value,
                 struct argp_state *state)
{
    char *place = (char *)parsing->arguments + slot->offset;
    switch (slot->kind) {
    case OPTION_TEXT:
        memcpy(place, &value, sizeof(value));
        return;
    case OPTION_TRUTH:
        memcpy(place, &(bool){true}, sizeof(bool));
        return;
    case OPTION_NUMBER:
        take_number(parsing, slot, value, state);
        return;
    case OPTION_CALL:
        slot->take(parsing->arguments, value, state);
        return;
    }
    unreachable();
}

static void take_word(const struct parsing *parsing, const char *value, struct argp_state *state)
{
    struct option_words *words = parsing->words;
    if (parsing->command->words == NULL)
        argp_error(state, "this command takes options only; came '%s'", value);
    else if (words->count == OPTION_WORDS_MAX)
        argp_error(state, "too many words, from '%s' on", value);
    else
        words->at[words->count++] = value;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    const struct parsing *parsing = state->input;
    if (key == ARGP_KEY_ARG) {
        take_word(parsing, value, state);
        return 0;
    }
    for (size_t i = 0; i < parsing->command->slot_count; i++)
        if (parsing->command->slots[i].key == key) {
            take(parsing, &parsing->command->slots[i], value, state);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

static struct argp argp_of(const struct option_command *command)
{
    return (struct argp){command->options, parse, command->words, command->doc, NULL, NULL, NULL};
}

void option_parse(const struct option_command *command, int argc, char **argv, void *arguments,
                  struct option_words *ret_words)
{
    struct parsing parsing = {command, arguments, ret_words};
    const struct argp argp = argp_of(command);
    ret_words->count = 0;
    argp_err_exit_status = EXIT_USAGE;
    argv[0] = (char *)(uintptr_t)command->name; /* it is only printed */
    argp_parse(&argp, argc, argv, 0, NULL, &parsing);
}

void option_help(const struct option_command *command, FILE *to)
{
    const struct argp argp = argp_of(command);
    char *name = xstrdup(command->name);
    argp_help(&argp, to, ARGP_HELP_STD_HELP, name);
    free(name);
}
