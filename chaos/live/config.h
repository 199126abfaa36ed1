/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_CONFIG_H
#define LIVE_CONFIG_H

/* What `tidemark up` is told: by a YAML file, then by options, which win. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/region_id.h"

enum { CONFIG_LINKS_MAX = REGION_ID_MAX * (REGION_ID_MAX - 1) };

enum durability { DURABILITY_FSYNC, DURABILITY_OS };
enum clock_mode { CLOCK_HYBRID, CLOCK_WALL };

struct link_config {
    uint16_t from, to; /* region ids */
    uint64_t delay_ms, jitter_ms;
};

struct config {
    uint16_t regions[REGION_ID_MAX]; /* region ids, distinct, in the order given */
    uint32_t region_count;
    uint16_t port; /* of the front door; 0: any, and regions get any too */
    char *control; /* HOST:PORT */
    char *listen;  /* host of the front door and the regions */
    char *data;    /* NULL: a temporary directory */
    enum durability durability;
    enum clock_mode clock;
    const char *log_level; /* of the regions; static */
    uint64_t seed;         /* of jitter and toxicity */
    struct link_config *links;
    uint32_t link_count;
};

void config_init(struct config *config);
void config_deinit(struct config *config);

/* Each sets one value from its text. False: `error` says what was expected, what came, and what to
 * do. */
bool config_set_regions(struct config *config, const char *text, struct buf *error);
bool config_set_port(struct config *config, const char *text, struct buf *error);
bool config_set_control(struct config *config, const char *text, struct buf *error);
bool config_set_listen(struct config *config, const char *text, struct buf *error);
bool config_set_durability(struct config *config, const char *text, struct buf *error);
bool config_set_clock(struct config *config, const char *text, struct buf *error);
bool config_set_log_level(struct config *config, const char *text, struct buf *error);
bool config_set_seed(struct config *config, const char *text, struct buf *error);
bool config_set_witness(struct config *config, const char *text, struct buf *error);
void config_set_data(struct config *config, const char *text);

/* Reads a file over what is there. False: `error` names file, line and field. */
bool config_load(struct config *config, const char *path, struct buf *error);
/* What no single value can tell: links name regions of the cluster, ports fit. */
bool config_check(const struct config *config, struct buf *error);

/* A whole number up to max, decimal digits only. */
bool parse_whole(const char *text, uint64_t max, uint64_t *ret);

#endif
