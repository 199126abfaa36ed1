/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_CONFIG_INTERNAL_H
#define REGION_CONFIG_INTERNAL_H

/* The names of the configuration, as the command line and the file see them: numbered, options
 * before limits. */

#include "region/config.h"
#include "region/core/strong_limits.h"

/* Names of strong tables' settings: `mrsc.conflict` to a flag, `conflict` in the file's section
 * `mrsc`. */
#define CONFIG_SECTION "mrsc"

enum {
    CONFIG_OPTIONS = 15,
    CONFIG_LIMITS = 35 + STRONG_LIMIT_COUNT,
    CONFIG_NAMES = CONFIG_OPTIONS + CONFIG_LIMITS,
    CONFIG_PEER = 4 /* the option that is a list */
};

struct config_name {
    const char *name;
    const char *argument; /* NULL: a flag without one stands for "true" */
    const char *help;     /* NULL for limits: those have no flag of their own */
};
struct config_name config_name_at(unsigned index);

/* Reads a value into the config. On failure the error begins with `where`: "--peer", or file, line
 * and name. */
bool config_set(struct config *config, unsigned index, const char *text, const char *where,
                char *error, size_t error_len);
/* All limits at their defaults. */
void config_set_limits(struct config *config);

#endif
