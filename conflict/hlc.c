/* SPDX-License-Identifier: Apache-2.0 */
/* Times are single numbers, milliseconds above the counter, so "one later" is plus one: a counter
 * that overflows carries into the milliseconds by itself, and the clock then runs a little ahead of
 * the wall until the wall has caught up. */

#include "conflict/hlc.h"

#include <stddef.h>

#include "conflict/base/check.h"

/* A wall clock set further into the future than 48 bits reach counts as the end of time. */
static const uint64_t WALL_MS_MAX = ((uint64_t)1 << 48) - 2 * HLC_RESERVATION_MS;

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t wall_time(uint64_t wall_ms)
{
    return hlc_make(min_u64(wall_ms, WALL_MS_MAX), 0);
}

/* The latest time that may pull the clock forward. */
static uint64_t ahead_limit(const struct hlc *hlc, uint64_t wall_ms)
{
    uint64_t ahead_ms = min_u64(hlc->ahead_ms_max, WALL_MS_MAX);
    return hlc_make(min_u64(min_u64(wall_ms, WALL_MS_MAX) + ahead_ms, WALL_MS_MAX), UINT16_MAX);
}

void hlc_init(struct hlc *hlc, enum hlc_mode mode, uint64_t ahead_ms_max, uint64_t reserved)
{
    *hlc = (struct hlc){.mode = mode,
                        .last = reserved,
                        .reserved = reserved,
                        .durable = reserved,
                        .ahead_ms_max = ahead_ms_max};
}

uint64_t hlc_now(struct hlc *hlc, uint64_t wall_ms)
{
    uint64_t wall = wall_time(wall_ms);
    /* A tick may still return the wall's millisecond with counter 0, hence the minus one. */
    uint64_t now = max_u64(hlc->last, wall ? wall - 1 : 0);
    now = min_u64(now, hlc->durable);
    hlc->last = max_u64(hlc->last, now);
    return now;
}

uint64_t hlc_tick(struct hlc *hlc, uint64_t wall_ms, uint64_t after)
{
    check(hlc->last < UINT64_MAX);
    uint64_t time = max_u64(wall_time(wall_ms), hlc->last + 1);
    if (hlc->mode == HLC_WALL || after < time) {
        hlc->last = time;
        return time;
    }
    /* A hostile peer may have written the end of time; then only origin and seq can order on. */
    uint64_t beyond = after == UINT64_MAX ? after : after + 1;
    hlc->last = beyond <= ahead_limit(hlc, wall_ms) ? beyond : time;
    return beyond;
}

void hlc_observe(struct hlc *hlc, uint64_t wall_ms, uint64_t time)
{
    uint64_t limit = ahead_limit(hlc, wall_ms);
    if (time > limit) {
        hlc->ahead_count++;
        time = limit;
    }
    if (hlc->mode == HLC_HYBRID)
        hlc->last = max_u64(hlc->last, time);
}

bool hlc_reservation_due(struct hlc *hlc, uint64_t wall_ms, uint64_t time, uint64_t *ret)
{
    /* A far-future time (hlc_tick) must not take the clock there after a restart. */
    uint64_t reach = max_u64(hlc->last, min_u64(time, ahead_limit(hlc, wall_ms)));
    if (reach <= hlc->reserved)
        return false;
    uint64_t to_ms = max_u64(min_u64(wall_ms, WALL_MS_MAX) + HLC_RESERVATION_MS, hlc_ms(reach) + 1);
    hlc->reserved = max_u64(reach, hlc_make(to_ms, 0));
    *ret = hlc->reserved;
    return true;
}

void hlc_reservation_kept(struct hlc *hlc, uint64_t reserved)
{
    check(reserved <= hlc->reserved);
    hlc->durable = max_u64(hlc->durable, reserved);
}

void hlc_reservation_lost(struct hlc *hlc)
{
    hlc->reserved = hlc->durable;
}
