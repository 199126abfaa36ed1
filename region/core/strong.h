/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STRONG_H
#define REGION_STRONG_H

/* Strong tables: one consensus group (witness/consensus.h) per partition, and what lies between it
 * and the rest of the region core: its log in the store, its entries in the items, its frames on
 * the streams, its proposals and reads in the requests. The groups run by the table's strong_setup.
 *
 *      strong.c        groups at work: inputs, effects
 *      strong_life.c   opening and closing; strong_timer.c
 *      strong_start.c  what a group finds in the store
 *      strong_log.c    PERSIST effects, to rows
 *      strong_write.c  requests to proposals; replies
 *      strong_evaluate.c  proposals at the leader
 *      strong_apply.c  entries into items, in order
 *      strong_read.c   barriers before strong reads
 *      strong_snapshot.c
 *      strong_net.c    streams, relay, bundles of frames */

#include "region/core/region_internal.h"
#include "witness/consensus.h"

/* ---- For the control plane ---- */

/* The index of a Region among the members; CONSENSUS_NOBODY. */
uint8_t strong_member_of(const struct strong_setup *setup, uint16_t region);
/* All three have made their part and the group has not ended. */
bool strong_formed(const struct strong_setup *setup);
/* The first rows of this Region's part, into the batch that writes `next`: of a group that is being
 * made, with full standing; of one whose disk was lost, none (it rebuilds). */
void strong_put_first(struct region *region, struct batch *batch, const struct description *next);
/* Opens, closes and wakes groups as d.strong says. After each change of d. */
void strong_settle(struct region *region, struct table_state *table);
void strong_close(struct region *region, struct table_state *table);
/* All groups are open and know a leader that serves. */
bool strong_ready(const struct table_state *table);
/* Writes the last entry into each group's log, partition 0 first: nothing is taken behind it. May
 * be called again at any time; group_advance is called whenever something has come of it. */
void strong_seal(struct region *region, struct table_state *table);
enum strong_sealed {
    STRONG_NOT_SEALED,
    STRONG_SEALED,      /* all of them, and all they hold is in this Region's store */
    STRONG_SEALED_OTHER /* partition 0 was sealed for another dissolver: *ret_region */
};
enum strong_sealed strong_sealed(const struct table_state *table, uint16_t *ret_region);

/* ---- For requests ---- */

/* One key of a write request, of a strong table. Settles it, at once or later. */
void strong_write(struct region *region, struct request *request, uint32_t index);
/* Whether strong tables must be asked before this read. Then read_continue (read.c) is called once
 * they have answered, or the request is finished with an error. */
bool strong_read(struct region *region, struct request *request);

/* ---- For the step ---- */

void strong_new(struct region *region);
void strong_free(struct region *region);
void strong_start_all(struct region *region); /* when the Region begins to serve */
void strong_peer(struct region *region, const struct region_input *in);
void strong_timeout(struct region *region);
/* Hands the groups of this table (empty: of all) that are led here over to that Region. */
void strong_transfer(struct region *region, uint16_t to, struct bytes table_name);
uint64_t strong_deadline(const struct region *region);
void strong_flush(struct region *region); /* at the end of each step */
void strong_rows(struct region *region, struct read read, const struct region_input *in);
void strong_durable(struct region *region, struct batch *batch, bool durable);
void strong_lane_known(struct region *region, struct wait *wait, struct lane *lane, bool broken);

#endif
