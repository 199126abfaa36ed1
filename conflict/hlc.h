/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFLICT_HLC_H
#define CONFLICT_HLC_H

/* The clock that versions are stamped with: 48 bits of wall milliseconds, 16 bits of counter.
 * Hybrid (Kulkarni et al. 2014): never behind anything it has issued or, within a limit, seen from
 * a peer. Plain ("wall"): never behind what it issued, deaf to peers, so that users can watch what
 * clock skew does. The wall clock comes in as an argument and may jump.
 *
 * After a restart the clock must not repeat itself. It may issue only up to a durable reservation;
 * the owner persists a new one (hlc_reservation_due) before the clock would pass it. */

#include <stdbool.h>
#include <stdint.h>

enum hlc_mode { HLC_HYBRID, HLC_WALL };

enum { HLC_COUNTER_BITS = 16 };
/* How far past the wall clock a persisted reservation reaches, and so how far ahead of it a Region
 * may find itself after a crash; less than a restart takes, lest its writes beat later ones. A
 * clock that is further ahead as it is reserves by the millisecond, so crashes do not add up. */
enum { HLC_RESERVATION_MS = 100 };

struct hlc {
    enum hlc_mode mode;
    uint64_t last;         /* newest issued, promised or observed time; 0 before the first */
    uint64_t reserved;     /* written or being written: nothing above was issued; see above */
    uint64_t durable;      /* the newest reservation known to be on disk */
    uint64_t ahead_ms_max; /* a peer's time counts only up to now plus this */
    uint64_t ahead_count;  /* peer times that were beyond it */
};

static inline uint64_t hlc_make(uint64_t wall_ms, uint16_t counter)
{
    return wall_ms << HLC_COUNTER_BITS | counter;
}
static inline uint64_t hlc_ms(uint64_t time)
{
    return time >> HLC_COUNTER_BITS;
}

/* reserved is what was durable, 0 in a new store: the clock starts above it. */
void hlc_init(struct hlc *hlc, enum hlc_mode mode, uint64_t ahead_ms_max, uint64_t reserved);
/* The promise that replication sends to peers, issuing nothing: every later hlc_tick returns more,
 * also when the wall clock steps back and also after a crash. Hence it is remembered, and hence it
 * stays within the durable reservation (hlc_reservation_kept), so it may lag behind the wall clock.
 */
uint64_t hlc_now(struct hlc *hlc, uint64_t wall_ms);
/* Issues a time above everything issued or observed and above `after` (0 for none; the version
 * being overwritten). In HLC_WALL mode `after` is ignored. Beating an item from beyond the ahead
 * limit does not drag the clock along: only that item's times are in the far future. */
uint64_t hlc_tick(struct hlc *hlc, uint64_t wall_ms, uint64_t after);
/* Takes note of a peer's time. */
void hlc_observe(struct hlc *hlc, uint64_t wall_ms, uint64_t time);
/* Whether `time` (just issued), or the clock, is above the reservation; if so sets the new one,
 * which must be written in the same batch as what bears the time, and returns it in *ret. A batch
 * that issues nothing (a peer's records) asks with hlc_make(wall_ms, 0), so that the promise of a
 * Region that takes no writes moves on. */
bool hlc_reservation_due(struct hlc *hlc, uint64_t wall_ms, uint64_t time, uint64_t *ret);
/* The batch with this reservation is durable. */
void hlc_reservation_kept(struct hlc *hlc, uint64_t reserved);
/* That batch failed, and with it every later one in flight: the next tick is due again. */
void hlc_reservation_lost(struct hlc *hlc);

#endif
