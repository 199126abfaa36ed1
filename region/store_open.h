/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STORE_OPEN_H
#define REGION_STORE_OPEN_H

/* Opens a Region's store. A damaged one is refused, so that its owner may look at it; or it is set
 * aside and a new one is begun, for the other members of strong tables and the replicas of eventual
 * ones to fill. A witness has nothing that its two fellows do not have, so it does so by itself. */

#include "region/log.h"
#include "region/store_leveldb.h"

enum store_damage {
    STORE_REFUSE_DAMAGE, /* what opening shows, and what a start must read */
    STORE_DISCARD_DAMAGE /* all of the store is read first */
};

/* NULL: the reason is in error. */
struct store *store_open(const struct store_leveldb_config *config, enum store_damage damage,
                         const struct log *log, char *error, size_t error_len);

#endif
