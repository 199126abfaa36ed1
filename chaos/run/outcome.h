/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_OUTCOME_H
#define RUN_OUTCOME_H

/* Everything there is to know of one run of a scenario: what was done to the cluster, what the
 * clients saw, what was measured beside them, and what it is judged to mean. The runner fills it, a
 * recheck fills it from files, reports are drawn from it and from nothing else.
 *
 * All times are ns of the harness's CLOCK_MONOTONIC; `began_ns` is the run's zero. A Region is its
 * place in the scenario. Texts and arrays live in the outcome's arena. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/check/chain.h"
#include "chaos/check/converge.h"
#include "chaos/check/history.h"
#include "chaos/check/ledgers.h"
#include "chaos/check/rpo.h"
#include "chaos/check/rto.h"
#include "chaos/check/staleness.h"
#include "chaos/check/verdict.h"
#include "chaos/scenario/scenario.h"
#include "conflict/base/arena.h"

/* A phase as it came to pass. */
struct outcome_phase {
    const char *name;
    uint64_t from_ns, to_ns;
    bool timed_out; /* its `until` did not come true in time */
};

/* A fault as it came to pass. */
struct outcome_fault {
    const char *id;
    uint8_t verb;            /* enum scenario_verb */
    const char *target;      /* "us-east-1", "us-east-1 -> eu-west-1" */
    uint64_t regions;        /* bits: whose lanes it shades */
    uint64_t from_ns, to_ns; /* to: 0 while it lasts */
    const char *evidence; /* "14 connections reset, 3120 bytes held", "offset read back: 200 ms" */
    bool effective;       /* it was seen to take effect */
    bool refused;         /* it could not be begun; evidence says why */
};

/* Something that happened, beside phases and faults: a leader change, a process that ended, a
 * Region that serves again, a heal. */
struct outcome_event {
    uint64_t at_ns;
    uint8_t region;   /* SCENARIO_REGION_NONE: of the cluster */
    const char *kind; /* "leader", "down", "up", "ready", "heal", "stop", "note"; constant */
    const char *text;
};

/* Why a Region has less than it had. */
enum outcome_loss_why {
    OUTCOME_LOSS_WIPED,     /* disk.wipe */
    OUTCOME_LOSS_DISCARDED, /* its damaged store was refused and set aside: it began empty */
    OUTCOME_LOSS_DAMAGED,   /* it serves what disk.bitflip or disk.truncate left of its store */
    OUTCOME_LOSS_UNSYNCED,  /* lose_unsynced, where nobody waited for the disk */
    OUTCOME_LOSS_DOWN,      /* it was not running when the run ended */
    OUTCOME_LOSS_WHY_COUNT
};

/* Data that one Region lost: each loss takes what only that Region had. All but DOWN are noted as
 * they happen (chaos/inject, and the simulator); those that are DOWN when the run ends, by whoever
 * ends it. A recheck reads them from the events. */
struct outcome_loss {
    uint64_t at_ns; /* when its last process ended that had the data, or the disk was damaged */
    uint8_t region;
    uint8_t why; /* enum outcome_loss_why */
    bool kept;   /* what it had then is whole in DATA/REGION.lost (DISK_ASIDE), to be counted */
};

/* What the Regions said of themselves, every 100 ms. */
struct outcome_sample {
    uint64_t at_ns;
    struct {
        bool up;
        bool paused;
        uint32_t leads;          /* groups that it leads (strong) */
        uint64_t pending;        /* writes that some other Region lacks (eventual) */
        uint64_t lag_ns;         /* age of the oldest of them */
        int64_t clock_offset_ns; /* against the harness */
        uint64_t conflicts;      /* rows of its ledger */
        uint64_t resident_bytes; /* of its process; 0: unknown */
        uint32_t descriptors;
    } region[SCENARIO_REGIONS_MAX];
};

/* One checker's word. */
struct outcome_check {
    const char *name; /* "chain", "rpo", ...; constant */
    struct verdict verdict;
    uint64_t took_ns;
};

/* One line of `expect`. */
struct outcome_expect {
    const struct scenario_expect *expect;
    bool known;    /* there was something to measure */
    double actual; /* INFINITY: never, of a time */
    bool holds;
};

/* Exit codes of `tidemark chaos run`, and what stands behind them. */
enum outcome_exit {
    OUTCOME_PASS = 0,
    OUTCOME_WRONG = 1,   /* an expectation that is about data, or a checker */
    OUTCOME_HARNESS = 2, /* the run itself failed, or a fault hit nothing */
    OUTCOME_UNKNOWN = 3, /* a checker ran out of its budget */
    OUTCOME_SLOW = 4     /* only timing */
};

struct outcome {
    struct arena arena;
    const struct scenario *scenario;
    const char *scenario_text; /* the file, as it was */
    const char *scenario_file;
    uint64_t seed;
    const char *version;
    uint64_t began_wall_ms;
    uint64_t began_ns, ended_ns;
    const char *stopped; /* why it ended early; NULL: it did not */
    const char *harness; /* what went wrong with the run itself; NULL: nothing */
    /* The command that plays it again, of a run in virtual time; NULL: it was one on processes. */
    const char *simulated;

    struct history history;
    struct outcome_phase *phases;
    uint32_t phase_count;
    struct outcome_fault *faults;
    uint32_t fault_count;
    struct outcome_event *events;
    uint32_t event_count, event_cap;
    struct outcome_sample *samples;
    uint32_t sample_count, sample_cap;
    struct outcome_loss *disk_losses; /* as they were noted */
    uint32_t disk_loss_count, disk_loss_cap;

    struct ledgers_row *ledger; /* of all Regions that were alive at the end (eventual) */
    uint32_t ledger_count;
    uint64_t lost_ns;      /* the last of disk_losses; RPO_NEVER: there is none */
    uint64_t lost_regions; /* bits: of disk_losses */
    uint64_t down_regions; /* bits: those that were not running when the run ended */
    uint64_t gone_regions; /* bits: those that ran in the end and had no table any more */
    uint64_t healed_ns;    /* the last heal; 0: none */
    uint64_t converged_ns; /* all Regions equal and quiet; 0: never seen */
    uint64_t
        region_rpo_count; /* what the Regions themselves count as lost; UINT64_MAX: not asked */
    const char *region_rpo_why; /* why it is not known; NULL: it is, or was not asked */
    /* All that each Region held after settling, and again after its tombstones were let go. */
    struct converge_scan *scans, *rescans;
    uint32_t scan_count, rescan_count;
    /* Operations a second that the scenario asked for, and that were begun; 0: it asked for none,
     * or there was no time to measure it. */
    uint64_t asked_per_s, begun_per_s;
    bool exited;   /* an exec workload's program has ended */
    int exit_code; /* with this; 128 + the signal */

    struct outcome_check *checks;
    uint32_t check_count;
    struct outcome_expect *expects;
    uint32_t expect_count;
    struct rpo_losses losses;
    struct rto_table rto;
    struct staleness_table staleness;
    struct chain_forks forks;
    enum outcome_exit exit;
    const char *verdict; /* one sentence for people: "pass: nothing acknowledged was lost ..." */
};

/* The outcome holds on to the scenario. */
void outcome_init(struct outcome *outcome, const struct scenario *scenario);
void outcome_deinit(struct outcome *outcome);
/* A text in its arena. */
const char *outcome_text(struct outcome *outcome, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void outcome_event(struct outcome *outcome, uint64_t at_ns, uint8_t region, const char *kind,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Whether clients began clearly less than the scenario asked for. */
bool outcome_fell_short(const struct outcome *outcome);
/* A new one, zeroed; it does not move. NULL: there are SCENARIO_FAULTS_MAX. */
struct outcome_fault *outcome_fault(struct outcome *outcome);
/* Notes a loss, and in lost_ns and lost_regions what they say of all. The same again (Region, time)
 * is noted once. */
void outcome_lost(struct outcome *outcome, uint64_t at_ns, uint8_t region,
                  enum outcome_loss_why why, bool kept);
/* "its disk was wiped", "its damaged store was set aside, and it began empty"; for people. */
const char *outcome_loss_text(enum outcome_loss_why why);
/* When the Region's last process that served has ended; now_ns if it has not, or none ever did. */
uint64_t outcome_death_ns(const struct outcome *outcome, uint8_t region, uint64_t now_ns);
/* A new one, zeroed; the next call may move it. */
struct outcome_sample *outcome_sample(struct outcome *outcome, uint64_t at_ns);

/* judge.c: runs the checkers that the workload calls for, on what the outcome holds of the run, and
 * fills all from `checks` on. Pure. now_ns is called to time checkers; NULL: not timed. */
void outcome_judge(struct outcome *outcome, uint64_t (*now_ns)(void));

#endif
