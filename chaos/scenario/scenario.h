/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_SCENARIO_H
#define SCENARIO_SCENARIO_H

/* A scenario: a cluster, the load on it, faults on a timeline, and what must hold afterwards. A
 * file of it is read, checked and filled up with defaults before anything is started, so that
 * whoever runs a scenario meets no text, no unknown name and no value out of bounds any more.
 * Everything lies in the scenario's arena and is never changed after scenario_read, but for the
 * faults that random_expand draws into the phases that ask for some.
 *
 * Times are nanoseconds, shares are 0 to 1, rates of bytes are per second. A Region is its place in
 * `cluster.region`, which is also its number in histories and reports. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chaos/scenario/verbs.h"
#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"

enum {
    SCENARIO_REGIONS_MAX = 8,
    SCENARIO_PHASES_MAX = 64,
    SCENARIO_FAULTS_MAX = 1024, /* of all phases, the drawn ones included */
    SCENARIO_EXPECTS_MAX = 64,
    SCENARIO_FILE_MAX = 1 << 20, /* bytes */
    SCENARIO_REGION_NONE = 0xff, /* the fault has no such Region */
    SCENARIO_REGION_ALL = 0xfe,
    SCENARIO_REGION_LEADER = 0xfd, /* whoever leads most groups when the fault begins */
};

enum scenario_mode { SCENARIO_EVENTUAL, SCENARIO_STRONG };
enum scenario_durability { SCENARIO_FSYNC, SCENARIO_OS };
enum scenario_clock { SCENARIO_HYBRID, SCENARIO_WALL };
/* Around the delay: even within plus and minus jitter; normal or Pareto with jitter as its
 * deviation; a quarter normal and three quarters Pareto, as netem has it. */
enum scenario_distribution {
    SCENARIO_UNIFORM,
    SCENARIO_NORMAL,
    SCENARIO_PARETO,
    SCENARIO_PARETO_NORMAL
};
enum scenario_direction { SCENARIO_ONE_WAY, SCENARIO_BOTH_WAYS };
enum scenario_how { SCENARIO_CUT, SCENARIO_BLACKHOLE, SCENARIO_REFUSE, SCENARIO_RESET };
enum scenario_files {
    SCENARIO_FILES_ANY,
    SCENARIO_FILES_LOG,
    SCENARIO_FILES_TABLES,
    SCENARIO_FILES_MANIFEST
};
enum scenario_calls {
    SCENARIO_CALLS_ANY,
    SCENARIO_CALLS_READ,
    SCENARIO_CALLS_WRITE,
    SCENARIO_CALLS_SYNC
};

/* Who reaches whom. `region`, when the file names none, is the first; for a bridge, the middle one.
 *
 *   one              `region` is apart from all others
 *
 *   halves           the first half of the Regions, rounded down, is apart from the others
 *
 *   majorities-ring  each reaches a majority, and no two the same: the nearest in a ring; of three,
 *                    the first and the last do not reach each other
 *
 *   bridge           two halves, and `region` reaches both
 *
 *   primaries        every Region that leads a group is apart from all others
 *
 *   asymmetric       `region` hears all and is heard by none
 *
 *   swizzle          one Region after the other is cut off from all others, until all are; then
 * they come back in another order, the last when `for` is over */
enum scenario_shape {
    SCENARIO_ONE,
    SCENARIO_HALVES,
    SCENARIO_MAJORITIES_RING,
    SCENARIO_BRIDGE,
    SCENARIO_PRIMARIES,
    SCENARIO_ASYMMETRIC,
    SCENARIO_SWIZZLE
};

struct scenario_link {
    uint64_t delay_ns, jitter_ns; /* one way */
    uint64_t rate_bytes;          /* 0: without bound */
    uint8_t distribution;         /* enum scenario_distribution */
};

struct scenario_region {
    uint16_t id; /* conflict/region_id.h */
    const char *name;
};

struct scenario_cluster {
    uint8_t mode;         /* enum scenario_mode */
    uint8_t durability;   /* enum scenario_durability */
    uint8_t clock;        /* enum scenario_clock */
    uint8_t region_count; /* the witness included */
    uint8_t data_count;   /* these have data; the witness comes last */
    struct scenario_region region[SCENARIO_REGIONS_MAX]; /* as the file lists them */
    struct scenario_link link[SCENARIO_REGIONS_MAX][SCENARIO_REGIONS_MAX]; /* [from][to] */
};

static inline bool scenario_has_witness(const struct scenario_cluster *cluster)
{
    return cluster->data_count < cluster->region_count;
}

/* WORKLOAD(enumerator, name, shares of: writes, strong reads, eventual reads, deletes, scans). The
 * shares are the default in strong mode; in eventual mode the strong reads become eventual ones. */
#define SCENARIO_WORKLOAD_MAP(WORKLOAD)                                                            \
    WORKLOAD(SWAP_REGISTER, "swap-register", 0.5, 0.4, 0.1, 0, 0)                                  \
    WORKLOAD(CAS_REGISTER, "cas-register", 0.5, 0.5, 0, 0, 0)                                      \
    WORKLOAD(COUNTER, "counter", 0.8, 0.2, 0, 0, 0)                                                \
    WORKLOAD(APPEND, "append", 0.5, 0.5, 0, 0, 0)                                                  \
    WORKLOAD(SET, "set", 0.95, 0, 0, 0, 0.05)                                                      \
    WORKLOAD(LWW_CONFLICT, "lww-conflict", 0.8, 0, 0.15, 0.05, 0)                                  \
    WORKLOAD(YCSB_A, "ycsb-a", 0.5, 0.5, 0, 0, 0)                                                  \
    WORKLOAD(YCSB_B, "ycsb-b", 0.05, 0.95, 0, 0, 0)                                                \
    WORKLOAD(YCSB_F, "ycsb-f", 0.5, 0.5, 0, 0, 0)                                                  \
    WORKLOAD(EXEC, "exec", 0, 0, 0, 0, 0)

enum scenario_workload_kind {
#define WORKLOAD(enumerator, ...) SCENARIO_##enumerator,
    SCENARIO_WORKLOAD_MAP(WORKLOAD)
#undef WORKLOAD
        SCENARIO_WORKLOAD_COUNT
};

enum scenario_key_choice { SCENARIO_KEYS_UNIFORM, SCENARIO_KEYS_ZIPFIAN };

struct scenario_mix { /* sums to 1 */
    double write, read_strong, read_eventual, erase, scan;
};

struct scenario_workload {
    uint8_t kind;        /* enum scenario_workload_kind */
    uint8_t keys_chosen; /* enum scenario_key_choice */
    bool open_loop;      /* operations are due by the rate, whether the last was answered or not */
    uint8_t writers;     /* set of Regions whose clients write: bit of its place */
    uint64_t keys;
    double rate; /* operations a second of all clients together; 0: as fast as they are answered */
    uint64_t clients_per_region;
    uint64_t timeout_ns; /* of an operation */
    uint64_t item_bytes; /* about, when written */
    struct scenario_mix mix;
    const char *const *exec; /* EXEC: program and arguments, NULL at the end; else NULL */
};

struct scenario_texts {
    const char *const *at;
    uint32_t count;
};

struct scenario_fault {
    uint64_t at_ns;  /* from the beginning of its phase */
    uint64_t for_ns; /* 0: until undone, or once */
    const char *id;  /* unique in the scenario; made up when the file has none */
    uint32_t line;   /* of the file; 0: drawn */
    uint32_t order;  /* among those of its phase */
    uint8_t verb;    /* enum scenario_verb */
    bool drawn;      /* by random_expand */
    uint32_t given;  /* set of PARAM_BIT: what the file says; the others are defaults or unused */

    uint8_t region, from, to; /* place, ALL, LEADER or NONE */
    uint8_t direction;        /* enum scenario_direction */
    uint8_t distribution;     /* enum scenario_distribution */
    uint8_t shape;            /* enum scenario_shape */
    uint8_t how;              /* enum scenario_how */
    uint8_t files;            /* enum scenario_files */
    uint8_t calls;            /* enum scenario_calls */
    bool lose_unsynced;
    uint8_t signal; /* of signal.h */
    uint64_t delay_ns, jitter_ns, period_ns, down_ns;
    int64_t offset_ns, ppm;
    uint64_t rate_bytes, free_bytes, bits, size;
    double share, correlation;        /* of `percent`, as a share, too */
    const char *table;                /* NULL: all */
    const char *error;                /* AWS's name */
    const char *fault;                /* id of another, for undo */
    struct scenario_texts operations; /* none: all */
};

/* The phase lasts until all of what is asked for holds, at least for_ns and at most timeout_ns
 * more.
 */
struct scenario_until {
    bool converged; /* all Regions hold the same and have nothing to send (eventual mode) */
    bool caught_up; /* every member serves and has applied all (strong mode) */
    bool leaders;   /* every group has a serving leader (strong mode) */
    uint64_t timeout_ns;
};

struct scenario_random {
    uint64_t count; /* faults to draw; 0: this phase has no random part */
    uint64_t hold_min_ns, hold_max_ns;
    uint64_t at_once;                   /* how many may hold at one time */
    bool swarm;                         /* each run draws the verbs that it uses, too */
    double weight[SCENARIO_VERB_COUNT]; /* 0: never */
};

struct scenario_phase {
    const char *name;
    uint64_t for_ns;
    bool has_until;
    bool heal;       /* heal-all at its beginning */
    bool idle;       /* no load */
    uint8_t writers; /* as the workload's, for this phase */
    struct scenario_until until;
    struct scenario_fault *faults; /* by at_ns, then as the file has them */
    uint32_t fault_count;
    struct scenario_random random;
};

/* METRIC(enumerator, name, type of fields.h, whether it is of an operation class or Region, whether
 *        only timing (exit code 4), whether a run can be stopped by it, help) */
#define SCENARIO_METRIC_MAP(METRIC)                                                                \
    METRIC(RPO_COUNT, "rpo_count", NUMBER, false, false, false,                                    \
           "acknowledged writes that only a dead Region had")                                      \
    METRIC(RPO_TIME, "rpo_seconds", TIME, false, false, false,                                     \
           "age of the oldest of them at the fault")                                               \
    METRIC(RPO_BYTES, "rpo_bytes", BYTES, false, false, false, "their size")                       \
    METRIC(RTO, "rto", TIME, true, true, false, "from a fault until service is as good as before") \
    METRIC(FIRST_SUCCESS, "first_success", TIME, true, true, false,                                \
           "from a fault to the first answer")                                                     \
    METRIC(UNAVAILABLE, "unavailable", TIME, true, true, false,                                    \
           "all time in which less than half of the operations succeeded")                         \
    METRIC(LINEARIZABLE, "linearizable", BOOL, false, false, false,                                \
           "operations could have happened one after the other")                                   \
    METRIC(LOST_UPDATES, "lost_updates", NUMBER, false, false, false,                              \
           "acknowledged writes that another, concurrent one overwrote unseen")                    \
    METRIC(LOST_OTHER, "lost_other", NUMBER, false, false, false,                                  \
           "acknowledged writes that are missing without any reason: always a bug")                \
    METRIC(PHANTOMS, "phantoms", NUMBER, false, false, false,                                      \
           "values that nobody wrote, or whose write had failed")                                  \
    METRIC(ZOMBIES, "zombies", NUMBER, false, false, false, "deleted items that came back")        \
    METRIC(CONVERGED, "converged", BOOL, false, false, false, "all Regions end with the same")     \
    METRIC(CONVERGE, "converge", TIME, false, true, false, "from healing until they do")           \
    METRIC(CATCH_UP, "catch_up", TIME, true, true, false,                                          \
           "from a Region's return until it serves strong operations again")                       \
    METRIC(LEDGER_COMPLETE, "ledger_complete", BOOL, false, false, false,                          \
           "the ledgers of lost writes name what was lost, and nothing else")                      \
    METRIC(STALENESS_P50, "staleness_p50", TIME, true, true, false,                                \
           "half of the reads are fresher")                                                        \
    METRIC(STALENESS_P99, "staleness_p99", TIME, true, true, false, "so are 99 of 100")            \
    METRIC(STALENESS_MAX, "staleness_max", TIME, true, true, false, "no read was older")           \
    METRIC(LATENCY_P50, "latency_p50", TIME, true, true, true, "of answers, from when it was due") \
    METRIC(LATENCY_P99, "latency_p99", TIME, true, true, true, "of answers, from when it was due") \
    METRIC(THROUGHPUT, "throughput", NUMBER, true, true, true, "answers a second")                 \
    METRIC(ERROR_RATE, "error_rate", NUMBER, true, true, true,                                     \
           "share of operations without answer")                                                   \
    METRIC(UNKNOWN_RATE, "unknown_rate", NUMBER, true, true, true,                                 \
           "share of operations that nobody knows the outcome of")                                 \
    METRIC(CONFLICTS, "conflicts", NUMBER, true, false, true,                                      \
           "answers ReplicatedWriteConflictException")                                             \
    METRIC(LAG, "lag", TIME, true, true, true, "age of the oldest write that some Region lacks")   \
    METRIC(EXIT_CODE, "exit_code", NUMBER, false, false, false, "of an exec workload's program")

enum scenario_metric {
#define METRIC(enumerator, ...) METRIC_##enumerator,
    SCENARIO_METRIC_MAP(METRIC)
#undef METRIC
        SCENARIO_METRIC_COUNT
};

enum scenario_class {
    SCENARIO_CLASS_ANY,
    SCENARIO_CLASS_WRITE,
    SCENARIO_CLASS_READ_STRONG,
    SCENARIO_CLASS_READ_EVENTUAL,
    SCENARIO_CLASS_COUNT
};

enum scenario_comparison {
    SCENARIO_EQUAL,
    SCENARIO_NOT_EQUAL,
    SCENARIO_LESS,
    SCENARIO_AT_MOST,
    SCENARIO_MORE,
    SCENARIO_AT_LEAST
};

/* actual COMPARISON limit. A limit that is a time is in ns, one that is a truth 0 or 1. */
struct scenario_expect {
    uint8_t metric;     /* enum scenario_metric */
    uint8_t class;      /* enum scenario_class */
    uint8_t region;     /* place, or ALL: the greatest counts; of throughput, the sum */
    uint8_t comparison; /* enum scenario_comparison */
    double limit;
    uint64_t for_ns;  /* stop_if: it must hold so long */
    const char *text; /* "rto us-east-1 write <=5s", for reports */
    uint32_t line;
};

struct scenario_expects {
    struct scenario_expect *at;
    uint32_t count;
};

struct scenario_budgets {
    uint64_t checker_seconds; /* of each checker; beyond it the verdict is unknown */
    uint64_t checker_bytes;
    uint64_t wall_ns;    /* of the run */
    uint64_t operations; /* of the history */
    uint64_t report_bytes;
};

struct scenario {
    struct arena arena;
    const char *name;
    const char *about; /* one line; "" if the file says nothing */
    uint64_t seed;
    struct scenario_cluster cluster;
    struct scenario_workload workload;
    struct scenario_phase *phases;
    uint32_t phase_count;
    struct scenario_expects expect, stop_if;
    struct scenario_budgets budgets;
};

void scenario_init(struct scenario *scenario);
void scenario_deinit(struct scenario *scenario);
/* Reads a scenario from its text; `file` is its name in messages. False: each line of error is
 * "file:line: field: what was expected, what came", and the scenario is worth nothing. */
bool scenario_read(struct scenario *scenario, const char *file, struct bytes text,
                   struct buf *error);
/* The same, from a file of at most SCENARIO_FILE_MAX bytes. */
bool scenario_load(struct scenario *scenario, const char *path, struct buf *error);

/* The published JSON Schema of scenario files, made from the tables that the reader goes by. */
void scenario_schema_write(struct buf *to);

bool scenario_metric_is_timing(enum scenario_metric metric);
/* measured.c: why no run of this scenario's workload and mode has the figure; NULL: one may. */
const char *scenario_never_measured(const struct scenario *scenario, enum scenario_metric metric);
const char *scenario_metric_name(enum scenario_metric metric);
const char *scenario_class_name(enum scenario_class class);
const char *scenario_workload_name(enum scenario_workload_kind kind);
/* "all" and "leader" for those two, "" for NONE. */
const char *scenario_region_name(const struct scenario_cluster *cluster, uint8_t region);
/* Whether the limit is kept. */
bool scenario_expect_holds(const struct scenario_expect *expect, double actual);
/* What a partition cuts: ret[from] is the set (bit of its place) of those that no longer hear it.
 * leaders: the Regions that lead a group just now, for `primaries` and the Region `leader`. */
void scenario_partition(const struct scenario_cluster *cluster, const struct scenario_fault *fault,
                        uint8_t leaders, uint8_t ret[SCENARIO_REGIONS_MAX]);
/* Of a swizzle: which of `count` Regions are cut off after so many steps, of which there are 2 *
 * count; the first is at once. luck decides both orders. */
uint8_t scenario_swizzle(uint32_t count, uint64_t luck, uint32_t steps);
/* "link.delay us-east-1 <-> eu-west-1 delay=80ms for 5s", for people. */
void scenario_fault_print(const struct scenario_cluster *cluster,
                          const struct scenario_fault *fault, struct buf *to);

#endif
