/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_IMPORT_H
#define SCENARIO_IMPORT_H

/* Experiments that were written for other tools, turned into scenarios: AWS FIS templates (JSON or
 * YAML) and Chaos Mesh manifests (YAML, several documents). Both only say which faults come when; a
 * scenario also needs a cluster, a load and expectations, so the caller says what he runs, and the
 * result is text for him to keep and to edit. What has no counterpart is refused by its name. */

#include "chaos/scenario/scenario.h"

enum { IMPORT_NAMES_MAX = 64 };

struct import_name {
    const char *selector; /* a pod's name, namespace or label value, a target's name */
    const char *region;
};

struct import_options {
    const char *regions[SCENARIO_REGIONS_MAX]; /* none: the three that `tidemark up` starts */
    uint32_t region_count;
    const char *region; /* where the experiment runs; NULL: the first */
    bool strong;
    const char *stop_if; /* stands for the template's alarms: "error_rate: '>0.5 for 30s'" */
    struct import_name names[IMPORT_NAMES_MAX];
    uint32_t name_count;
};

/* Appends a scenario as YAML, which scenario_read takes, to *to. False: each line of error is
 * "file:line: field: what is not supported". */
bool scenario_import_fis(const char *file, struct bytes text, const struct import_options *options,
                         struct buf *to, struct buf *error);
bool scenario_import_chaos_mesh(const char *file, struct bytes text,
                                const struct import_options *options, struct buf *to,
                                struct buf *error);

#endif
