/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INJECT_INJECT_INTERNAL_H
#define INJECT_INJECT_INTERNAL_H

/* What the files of this directory share. A fault goes through the table of its verb:
 *
 *     begin -> HOLDS -(its time, undo, heal)-> end -> ENDING -(settled, or patience)-> OVER
 *
 * with a step whenever next_ns has come.
 *
 * Evidence is gathered while it holds and told when it is over. What Regions must be told (clocks,
 * faults at message boundaries) is not sent by the faults: each place computes from all that hold
 * what its Region should be in, and sees to it, again after each restart (place.c). */

#include <jansson.h>

#include "chaos/inject/disk.h"
#include "chaos/inject/inject.h"
#include "chaos/inject/journal.h"
#include "conflict/base/list.h"
#include "conflict/base/rng.h"
#include "net/client.h"

enum {
    PLACES_MAX = SCENARIO_REGIONS_MAX,
    TICK_MS = 50,
    ENDING_MS_MAX = 3000,    /* a Region that does not answer is not waited for any longer */
    STARTING_MS_MAX = 30000, /* nor one that does not come up */
    POLL_MS = 500            /* between two looks at what a Region's faults have hit */
};
#define NS_PER_MS UINT64_C(1000000)
#define NEVER UINT64_MAX

enum fault_state { FAULT_HOLDS, FAULT_ENDING, FAULT_OVER };

struct traffic { /* of some links, since each was made */
    uint64_t resets, blocked, passed;
};

struct fault {
    struct list link;
    struct inject *inject;
    const struct scenario_fault *spec;
    const struct verb *verb;
    struct outcome_fault *told;
    enum fault_state state;
    uint64_t began_ns, ends_ns, next_ns;
    uint64_t ended_ns;         /* it was undone; told when the evidence is whole */
    uint64_t patience_ns;      /* ENDING: so long */
    uint8_t regions;           /* bits */
    uint8_t pairs[PLACES_MAX]; /* [from]: bits of to */
    bool seen;                 /* it has taken effect */
    bool phase;                /* of what comes and goes: it is there now */
    uint64_t times;            /* that it came */
    struct traffic before;
    uint64_t held_most;
    struct { /* hits that the Region's process has counted; those of processes that are gone */
        uint64_t now, before;
        uint64_t closed_now, closed_before; /* link.corrupt: streams that ended by it */
    } hits[PLACES_MAX];
    int8_t rule[PLACES_MAX]; /* of the disk; -1: none */
    uint8_t asked; /* bits: Regions whose clock was told with its share in it, not read back */
    int64_t clock_ms[2]; /* the clock's offset, as it was read back before it and with it */
    uint64_t luck;       /* of a swizzle */
    uint8_t apart;       /* of a swizzle: Regions that are cut off */
    uint8_t down;        /* bits: Regions that it has ended */
    uint8_t seen_down;   /* and that were seen dead */
    uint8_t to;          /* leader.transfer */
    struct buf note;     /* for the evidence */
};

struct verb {
    /* False: refused; the reason is in fault->note. */
    bool (*begin)(struct fault *fault);
    void (*step)(struct fault *fault, uint64_t now_ns); /* may be NULL */
    void (*end)(struct fault *fault);                   /* may be NULL */
    bool (*settled)(struct fault *fault);               /* may be NULL */
    void (*evidence)(struct fault *fault);              /* to note and seen */
};

enum asked { ASKED_NOTHING, ASKED_CLOCK, ASKED_FAULTS, ASKED_TRANSFER };

struct place {
    struct inject *inject;
    uint8_t index;
    struct site *site;
    struct disk *disk; /* NULL: without the shim */
    char *variables[3];
    const char *environment[4];
    uint64_t starts;                    /* of the process that was told */
    uint64_t version, told;             /* of its faults: wished, known to the Region */
    uint64_t clock_version, clock_told; /* the same of its clock */
    uint64_t poll_ns, retry_ns;
    struct client_request *request; /* one at a time */
    enum asked asked;
    uint64_t asked_version;
    int64_t asked_offset_ms, asked_rate_ppm;
    int64_t read_offset_ms; /* as the process that runs has last told it */
    struct fault *asking;   /* leader.transfer */
    uint32_t downs, pauses; /* faults that want it dead, or stopped */
    bool flipped;           /* its files were damaged: it may refuse them, and must start anew */
    bool damaged;           /* and since it last began to serve */
    bool kept;              /* what it had before that damage is kept (DISK_ASIDE) */
    uint32_t asides;        /* stores of it that were set aside */
    uint64_t served;        /* of its starts, the last one that served */
    uint64_t start_ns;      /* not started again before */
};

struct inject {
    struct inject_config config;
    struct list faults;
    uint32_t place_count;
    struct place places[PLACES_MAX];
    uint32_t cuts[PLACES_MAX][PLACES_MAX], refusals[PLACES_MAX][PLACES_MAX]; /* [from][to] */
    struct journal *journal;
    struct rng rng;
    uv_timer_t *timer;
    bool ticking;
    bool leaving;           /* nothing is started any more */
    char disk_trouble[160]; /* why there is no shim */
    bool healing;
    uint64_t heal_until_ns;
    void (*healed)(void *context, bool good, const char *error);
    void *heal_context;
};

uint64_t inject_now(struct inject *inject);
/* Something is to be done before the next tick. */
void inject_wake(struct inject *inject);
struct place *inject_place(struct inject *inject, uint8_t region);
const char *inject_name(const struct inject *inject, uint8_t region);
struct cluster_link *inject_link(struct inject *inject, uint32_t from, uint32_t to);
/* Ends it now, if it holds. */
void fault_end(struct fault *fault);
/* Of what comes and goes in each period: it has come, or gone, just now. */
void fault_alternate(struct fault *fault, uint64_t now_ns);
bool fault_refuse(struct fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "ms", "s", for evidence. */
void fault_note(struct fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Calls it for every Region of the fault. */
void fault_each_place(struct fault *fault, void (*act)(struct fault *fault, struct place *place));
/* Ends the other faults of that kind on its Regions. */
void fault_end_those(struct fault *fault, bool (*of)(const struct fault *fault));

/* target.c: whom a fault is on. Pure but for leaders. */
bool target_resolve(struct fault *fault);
/* What `from`, `to` and `direction` mean; NONE is nobody. */
void target_pairs(uint32_t count, uint8_t from, uint8_t to, bool both, uint8_t ret[PLACES_MAX]);
void target_print(const struct fault *fault, struct buf *to);

/* place.c */
void place_init(struct place *place, struct inject *inject, uint8_t index);
void place_deinit(struct place *place);
/* What the faults that hold ask of it has changed: at its boundaries, of its clock. */
void place_changed(struct place *place);
void place_clock_changed(struct place *place);
/* Sees to it that the Region is as it should be; asks what there is to ask. */
void place_tick(struct place *place, uint64_t now_ns);
/* The Region is as it should be, or is not there. */
bool place_settled(const struct place *place);
bool place_running(const struct place *place);
bool place_dead(const struct place *place);
/* Clock, as all that hold together want it. */
void place_clock(const struct place *place, uint64_t now_ns, int64_t *ret_offset_ms,
                 int64_t *ret_rate_ppm);
/* Whether some of what place_clock tells is by this fault. */
bool place_clock_shares(const struct place *place, const struct fault *fault);
/* Starts it if nobody wants it dead any more. Call it again and again: a start may fail. */
void place_start(struct place *place);
/* Its files, in this directory, are about to be damaged. */
void place_damage(struct place *place, const char *directory);
/* Its process serves, maybe a new one: notes what it has lost. */
void place_serves(struct place *place);
/* Asks it to hand its groups over to fault->to. fault->hits: how many it led; seen_down: none more.
 */
void place_ask_transfer(struct place *place, struct fault *fault);

/* foreign.c: what others than faults do to the cluster: how much of it there is, and an end of it.
 */
uint32_t foreign_count(struct inject *inject);
void foreign_heal(struct inject *inject);

/* The verbs, by file. */
extern const struct verb verb_cut, verb_blackhole, verb_reset, verb_delay, verb_bandwidth,
    verb_flap, verb_partition, verb_pause_replication;         /* verbs_link.c */
extern const struct verb verb_rule, verb_clock, verb_transfer; /* verbs_region.c */
extern const struct verb verb_kill, verb_start, verb_restart, verb_restart_loop,
    verb_wipe;                                                   /* verbs_process.c */
extern const struct verb verb_pause, verb_hiccup, verb_resume;   /* verbs_pause.c */
extern const struct verb verb_disk, verb_bitflip, verb_truncate; /* verbs_disk.c */
extern const struct verb verb_clock_reset, verb_undo, verb_heal; /* verbs_end.c */

/* A Region's faults at its own boundaries, as PUT /tidemark/faults takes them (verbs_region.c). */
json_t *region_faults(const struct place *place);

#endif
