/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_CONVERGE_H
#define CHECK_CONVERGE_H

/* Once all is healed and quiet, every region must hold the same items; deleted ones must not come
 * back when the tombstones have gone; and nobody may hold what nobody wrote. */

#include "chaos/check/history.h"
#include "chaos/check/verdict.h"

struct converge_item {
    uint64_t digest;  /* of the whole item, whatever hash the caller likes */
    uint64_t value;   /* the unique value it carries; 0: not looked at */
    uint64_t element; /* of a set: which; else 0. An item is a (table, key, element) */
    uint32_t key;
    uint16_t table;
};

struct converge_scan {
    const struct converge_item *items; /* any order */
    uint32_t count;
    uint8_t region;
};

struct converge_options {
    const struct converge_scan *scans; /* of each region that is alive, after settling */
    uint32_t scan_count;
    const struct converge_scan *rescans; /* the same after tombstones were purged; may be none */
    uint32_t rescan_count;
};

/* Figures: regions, items, different (keys that some regions hold differently or not at all),
 * zombies (in a re-scan and not in the scans), vanished (the other way), changed (between the two),
 * phantoms. Nothing may be written between scan and re-scan. */
void check_converge(const struct history *history, const struct converge_options *options,
                    struct verdict *ret);

#endif
