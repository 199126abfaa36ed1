/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PLANT_H
#define BASE_PLANT_H

/* Deliberate bugs, to test the testers: in a build with TIDEMARK_PLANTED one of them can be
 * switched on, and the simulator, or a scenario on real processes, must then find it. In every
 * other build planted() is the constant false and the bug is not in the program. */

#include <stdbool.h>

/* PLANT(enumerator, name) */
#define PLANT_MAP(PLANT)                                                                           \
    PLANT(SKIP_TIE_BREAK, "skip-tie-break")     /* equal times: the stored record stays */         \
    PLANT(FORGET_TOMBSTONE, "forget-tombstone") /* collected before every member has seen it */    \
    PLANT(ACK_EARLY, "ack-early")               /* a receiver acknowledges what is not durable */  \
    PLANT(REPLY_EARLY, "reply-early")           /* a client is answered before its write is */     \
    PLANT(DROP_BATCH, "drop-batch") /* the first batch after a reconnect is lost, and counts */    \
    /* Eventual mode, when a Region's disk is lost. */                                             \
    PLANT(REFILL_FROM_FIRST, "refill-from-first") /* by whoever is first, and nobody else */       \
    PLANT(PAST_KEPT, "past-kept")       /* what one has of a lost disk, the others do not get */   \
    PLANT(EPOCH_COVERS, "epoch-covers") /* who has something of a later life has the earlier */    \
    PLANT(EPOCH_UNTOLD, "epoch-untold") /* a new life is not told of before it writes */           \
    PLANT(EPOCH_REUSED, "epoch-reused") /* it gives out the numbers of the earlier */              \
    PLANT(KNOWN_KEPT, "known-kept")     /* what a member had on its lost disk counts */            \
    PLANT(ORPHANS_KEPT, "orphans-kept") /* rows of a snapshot whose sender's disk is lost */       \
    PLANT(ROUND_AGAIN, "round-again")   /* questions are counted anew for a new life */            \
    PLANT(SOURCE_LOST, "source-lost")   /* who was to be created by a lost Region is left to it */ \
    /* Strong mode. */                                                                             \
    PLANT(READ_NO_ROUND, "read-no-round") /* the leader reads without asking anybody */            \
    PLANT(READ_OWN_TERM, "read-own-term") /* a new leader answers with what it knows committed */  \
    PLANT(READ_COMMIT, "read-commit")     /* the leader answers with its commit index */           \
    PLANT(READ_OLD_TERM, "read-old-term") /* an answer of an earlier term is taken */              \
    PLANT(NONCE_REUSED, "nonce-reused")   /* any answer answers any read */                        \
    PLANT(ROUND_REUSED, "round-reused")   /* likewise at the leader */                             \
    PLANT(MARK_EARLY, "mark-early")       /* the leader calls durable what it only has */          \
    PLANT(MARK_KEPT, "mark-kept")         /* the mark outlives its term */                         \
    PLANT(MARK_OLD_TERM, "mark-old-term") /* a follower commits entries of older terms */          \
    PLANT(CLAIM_UNSYNCED, "claim-unsynced")   /* a follower acknowledges before its disk does */   \
    PLANT(LEADER_UNSYNCED, "leader-unsynced") /* the leader counts itself before its disk does */  \
    PLANT(FIGURE_8, "figure-8")               /* the leader commits entries of older terms */      \
    PLANT(VOTE_NOT_PERSISTED, "vote-not-persisted")                                                \
    PLANT(NO_PREVOTE, "no-prevote")                                                                \
    PLANT(NO_CHECK_QUORUM, "no-check-quorum")                                                      \
    PLANT(NO_RELAY, "no-relay")                                                                    \
    PLANT(CUT_MATCHING, "cut-matching")     /* a late Append cuts a longer log that agrees */      \
    PLANT(DAMAGE_AS_TORN, "damage-as-torn") /* a damaged log is cut, and its member votes */       \
    PLANT(NEW_DISK_VOTES, "new-disk-votes") /* a member without its disk votes at once */          \
    PLANT(OLD_LIFE, "old-life")             /* acknowledgements of a lost disk count */            \
    PLANT(SNAPSHOT_TERM, "snapshot-term")   /* a snapshot with the wrong last term */              \
    PLANT(TRIM_COMMITTED, "trim-committed") /* the witness drops what is committed */              \
    PLANT(APPEND_TWICE, "append-twice")     /* a repeated proposal is appended again */            \
    PLANT(ANY_TERM, "any-term")             /* a leader takes proposals sent in another term */    \
    PLANT(UNKNOWN_AS_FAILED, "unknown-as-failed")                                                  \
    PLANT(FAIL_AT_ONCE, "fail-at-once")     /* a failed condition is not held back like a read */  \
    PLANT(EVALUATE_STALE, "evaluate-stale") /* the leader forgets writes under way */              \
    PLANT(APPLIED_APART, "applied-apart")   /* items and their index are not one write */          \
    /* Its owner, the region core. */                                                              \
    PLANT(PERSISTED_EARLY, "persisted-early") /* a log write is called durable as it is emitted */ \
    PLANT(STABLE_EARLY, "stable-early")       /* likewise the items */                             \
    PLANT(READ_UNSTABLE, "read-unstable")     /* a strong read before the items are durable */     \
    PLANT(EVALUATE_ON_LANE, "evaluate-on-lane") /* without what is evaluated and not applied */    \
    PLANT(INDEX_APART, "index-apart")           /* the applied index in a batch before its rows */ \
    PLANT(INSTALL_KEEPS, "install-keeps")       /* a snapshot takes nothing away */                \
    PLANT(INSTALL_AT_ONCE, "install-at-once") /* while entries are on their way into the items */  \
    PLANT(SEAL_IGNORED, "seal-ignored")       /* what comes behind the seal is done */             \
    PLANT(SEAL_AHEAD, "seal-ahead")           /* a snapshot's seal is newer than its index */      \
    PLANT(FIRST_AGAIN, "first-again")         /* a lost disk begins as that of a new group */      \
    PLANT(BATCH_UNDONE, "batch-undone") /* what is true of a part is said of the whole batch */

enum plant {
    PLANT_NONE = 0,
#define PLANT(enumerator, name) PLANT_##enumerator,
    PLANT_MAP(PLANT)
#undef PLANT
};

#ifdef TIDEMARK_PLANTED
extern enum plant plant_active;
static inline bool planted(enum plant bug)
{
    return plant_active == bug;
}
/* The name of the one that is switched on, NULL if none is. */
const char *plant_name(void);
/* For a program's main: takes `--plant NAME`, which no help speaks of, out of its arguments and
 * switches the bug on. False: there is none of that name. */
bool plant_take(int *argc, char **argv);
#else
static inline bool planted(enum plant bug)
{
    (void)bug;
    return false;
}
#endif

#endif
