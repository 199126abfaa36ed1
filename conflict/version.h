/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFLICT_VERSION_H
#define CONFLICT_VERSION_H

/* A version names one write for ever: when (hybrid time), where (the Region that took it), and
 * its place in that Region's log. Compared in that order, so no two writes are ever tied.
 *
 * A sequence number is (epoch << VERSION_EPOCH_SHIFT) + counter, counter from 1 without gaps. The
 * epoch rises whenever a Region's storage starts anew, so its old numbers are never used twice.
 * Sequences count per (table partition, origin).
 *
 * A `vv` (version vector) says for each origin and epoch up to which sequence everything is known.
 * An origin whose storage began anew has more epochs than one, and to know some of the later one
 * says nothing of the earlier: what was lost here may be known elsewhere. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

struct version {
    uint64_t hlc;
    uint16_t origin; /* region_id.h */
    uint64_t seq;
};

enum { VERSION_EPOCH_SHIFT = 34, VERSION_ENCODED_LEN = 18 };

#define VERSION_NONE ((struct version){0, 0, 0})

static inline bool version_is_none(struct version v)
{
    return v.origin == 0;
}
static inline uint64_t version_epoch(uint64_t seq)
{
    return seq >> VERSION_EPOCH_SHIFT;
}
#define VERSION_EPOCH_MAX version_epoch(UINT64_MAX)
/* Where a new epoch's log starts: its first entry has this plus one. */
static inline uint64_t version_epoch_base(uint64_t epoch)
{
    return epoch << VERSION_EPOCH_SHIFT;
}
/* Whether `next` may directly follow `last` in one origin's log: the next number, or the first of
 * a later epoch. */
bool version_seq_follows(uint64_t last, uint64_t next);

/* -1, 0, 1. VERSION_NONE is before everything. */
int version_compare(struct version a, struct version b);
/* Fixed length, order-preserving. */
void version_encode(struct version v, struct buf *to);
bool version_decode(struct bytes *from, struct version *ret);

enum { VV_MAX = 16 }; /* Regions in one table, past members included */
/* Of one origin. What is older than all of so many is taken for known. */
enum { VV_EPOCHS_MAX = 3 };

struct vv {
    uint32_t count;
    struct {
        uint16_t origin;
        uint64_t seq;
    } at[VV_MAX]; /* by origin and epoch, ascending */
};

/* The newest; 0 for an origin that is not in it. */
uint64_t vv_get(const struct vv *vv, uint16_t origin);
/* In that epoch; 0: nothing. */
uint64_t vv_in_epoch(const struct vv *vv, uint16_t origin, uint64_t epoch);
/* Whether all of an origin's epoch is known up to this one. */
bool vv_knows(const struct vv *vv, uint16_t origin, uint64_t seq);
/* Raises (never lowers) the sequence of an origin's epoch. When there is no room, what is known of
 * the oldest epochs is forgotten; false when VV_MAX origins are already in it. */
bool vv_raise(struct vv *vv, uint16_t origin, uint64_t seq);
/* Forgets an origin's epoch. */
void vv_drop(struct vv *vv, uint16_t origin, uint64_t epoch);
/* to := the pointwise maximum of both. False as vv_raise. */
bool vv_join(struct vv *to, const struct vv *from);
/* Whether everything b knows, a knows too. */
bool vv_covers(const struct vv *a, const struct vv *b);
void vv_encode(const struct vv *vv, struct buf *to);
/* Refuses disorder, unknown Regions and more than VV_MAX. */
bool vv_decode(struct bytes *from, struct vv *ret);

#endif
