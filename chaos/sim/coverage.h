/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

/* What a batch of seeds must have come by, or it has proved less than it seems: the rare states
 * that the protocols are made for. A run notes each once, at the place that sees it; a batch counts
 * in how many of its seeds that was. (After Rust's and Antithesis's "sometimes" assertions.) */

#include <stdbool.h>
#include <stdint.h>

enum { WORLD_EVENTUAL = 1, WORLD_STRONG = 2, WORLD_CONSENSUS = 4 };

/* SOMETIMES_POINT(enumerator, worlds that can come by it, name, what it is) */
#define SOMETIMES_MAP(POINT)                                                                       \
    POINT(CRASHED, WORLD_EVENTUAL | WORLD_STRONG | WORLD_CONSENSUS, "crash", "a process died")     \
    POINT(CRASHED_UNSYNCED, WORLD_EVENTUAL | WORLD_STRONG | WORLD_CONSENSUS, "crash-unsynced",     \
          "a process died with writes on their way to the disk")                                   \
    POINT(UNKNOWN, WORLD_EVENTUAL | WORLD_STRONG | WORLD_CONSENSUS, "outcome-unknown",             \
          "a client never learned what became of its write")                                       \
    POINT(LEADER_UNSYNCED, WORLD_STRONG | WORLD_CONSENSUS, "leader-crash-unsynced",                \
          "a leader died between append and sync")                                                 \
    POINT(ORIGIN_FIRST, WORLD_CONSENSUS, "origin-commits-first",                                   \
          "the origin committed an entry before its leader knew")                                  \
    POINT(CARETAKER, WORLD_STRONG | WORLD_CONSENSUS, "caretaker-elected", "the witness led")       \
    POINT(WITNESS_TRIM, WORLD_CONSENSUS, "witness-trim",                                           \
          "the witness dropped what both data members have")                                       \
    POINT(SNAPSHOT, WORLD_EVENTUAL | WORLD_STRONG | WORLD_CONSENSUS, "snapshot",                   \
          "a snapshot was put in place")                                                           \
    POINT(SNAPSHOT_GIVEN_UP, WORLD_EVENTUAL, "snapshot-given-up", "a snapshot was broken off")     \
    POINT(RECOVERING, WORLD_STRONG | WORLD_CONSENSUS, "recovering",                                \
          "a member came back with a damaged log, and did not count")                              \
    POINT(REBUILDING, WORLD_STRONG | WORLD_CONSENSUS, "rebuilding",                                \
          "a member came back without its disk, and did not count")                                \
    POINT(RELAYED, WORLD_CONSENSUS, "relayed", "a frame went by way of the third member")          \
    POINT(READ_OVER_TERMS, WORLD_CONSENSUS, "read-over-terms",                                     \
          "a strong read was answered in a later term than it was asked in")                       \
    POINT(LOG_CUT, WORLD_CONSENSUS, "log-cut", "a follower cut entries that no quorum had")        \
    POINT(LOG_FULL, WORLD_STRONG | WORLD_CONSENSUS, "log-full", "a log took no more")              \
    POINT(QUIET, WORLD_STRONG | WORLD_CONSENSUS, "quiet", "a group fell silent")                   \
    POINT(CONFLICT, WORLD_STRONG | WORLD_CONSENSUS, "write-conflict",                              \
          "a write was refused for another Region's")                                              \
    POINT(CONDITION, WORLD_EVENTUAL | WORLD_STRONG | WORLD_CONSENSUS, "condition-failed",          \
          "a condition did not hold")                                                              \
    POINT(LOST_WRITE, WORLD_EVENTUAL, "lost-write", "a ledger got a row")                          \
    POINT(GAP_FILLED, WORLD_EVENTUAL, "gap-filled",                                                \
          "a log was resumed from behind what had been sent")                                      \
    POINT(TOMBSTONE_PURGED, WORLD_EVENTUAL, "tombstone-purged", "a tombstone was let go")          \
    POINT(MEMBER_EXPIRED, WORLD_EVENTUAL, "member-expired",                                        \
          "a replica was away for longer than the log reaches back")                               \
    POINT(JOINED_LATE, WORLD_EVENTUAL, "late-replica", "a replica was added amid faults")          \
    POINT(DISK_REFUSED, WORLD_EVENTUAL | WORLD_STRONG, "disk-refused",                             \
          "a full disk refused a batch")                                                           \
    POINT(DISSOLVED, WORLD_STRONG, "dissolved", "a strong table became regional")                  \
    POINT(MADE_AGAIN, WORLD_STRONG, "made-again", "and strong again")

enum sometimes {
#define POINT(enumerator, worlds, name, text) SOMETIMES_##enumerator,
    SOMETIMES_MAP(POINT)
#undef POINT
        SOMETIMES_COUNT
};
_Static_assert((int)SOMETIMES_COUNT <= 64, "a run's are a set of bits");

/* `sim` is a struct sim *. */
#define SOMETIMES(sim, name) ((sim)->sometimes |= UINT64_C(1) << SOMETIMES_##name)
#define SOMETIMES_IF(sim, name, condition)                                                         \
    ((sim)->sometimes |= (uint64_t)((condition) ? 1 : 0) << SOMETIMES_##name)

const char *sometimes_name(enum sometimes point);
const char *sometimes_text(enum sometimes point);
/* Whether a world can come by it. */
bool sometimes_is_of(enum sometimes point, unsigned world);

#endif
