/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_CONFIG_H
#define LIVE_CONFIG_H

/* What `tidemark up` is told: by a YAML file, then by options, which win. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/region_id.h"
#include "region/core/strong_limits.h"

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
    uint16_t witnesses[REGION_ID_MAX]; /* none of regions: processes that hold witnesses only */
    uint32_t witness_count;
    uint16_t port; /* of the front door; 0: any, and regions get any too */
    char *control; /* HOST:PORT */
    char *listen;  /* host of the front door and the regions */
    char *data;    /* NULL: a temporary directory */
    enum durability durability;
    enum clock_mode clock;
    const char *log_level; /* of the regions; static */
    uint64_t seed;         /* of jitter and toxicity */
    /* Of strong tables, by strong_limits.h's list; unset: the regions' default. */
    struct {
        bool set;
        uint64_t value;
    } mrsc[STRONG_LIMIT_COUNT];
    bool mrsc_serialize;        /* mrsc.conflict */
    bool discard_damaged_store; /* at the first start of each region */
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
bool config_set_mrsc_conflict(struct config *config, const char *text, struct buf *error);
void config_set_data(struct config *config, const char *text);

/* Reads a file over what is there. False: `error` names file, line and field. */
bool config_load(struct config *config, const char *path, struct buf *error);
/* What no single value can tell: links name regions of the cluster, ports fit. */
bool config_check(const struct config *config, struct buf *error);

/* Parts of the above: a region's id by its name, onto the end of a list, and a number of strong
 * tables by its index in strong_limits.h's list. */
bool config_find_region(struct bytes name, uint16_t *ret, struct buf *error);
bool config_add_region(uint16_t *list, uint32_t *count, struct bytes name, struct buf *error);
bool config_set_mrsc(struct config *config, uint32_t index, uint64_t value, struct buf *error);
/* The name of a number of strong tables, as tidemark-region knows it. */
const char *config_mrsc_name(uint32_t index);

/* A whole number up to max, decimal digits only. */
bool parse_whole(const char *text, uint64_t max, uint64_t *ret);

#endif
